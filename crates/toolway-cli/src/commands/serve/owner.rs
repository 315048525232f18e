//! The owner's way into this gateway, and what the owner is told on stderr.
//!
//! Owns that a gateway which cannot have such a way in serves all the same. The socket and what it
//! answers are `toolway_gateway`'s.

use std::sync::Arc;

use toolway::OpenQuestion;
use toolway_gateway::owner_socket::OwnerSocket;
use toolway_gateway::{HostService, OwnerService, Service};
use toolway_types::text::clean_line;

use crate::age;
use crate::context::Context;
use crate::report::Report;

/// How much of an id is enough to type.
const SHORT: usize = 8;

/// The socket of this process, if it can have one.
pub(in crate::commands) async fn socket(context: &Context) -> Option<OwnerSocket> {
    match OwnerSocket::bind(&context.setup.files().gateways()).await {
        Ok(socket) => Some(socket),
        Err(error) => {
            let report = Report::from(error);
            context.warn(format!(
                "`toolway status` and `toolway approvals` do not reach this gateway: {}",
                report.message
            ));
            if let Some(hint) = &report.hint {
                context.hint(hint);
            }
            None
        }
    }
}

/// What the owner is served.
pub(super) fn service(context: &Context, service: &Arc<HostService>) -> OwnerService {
    let directory = context.environment().cwd();
    OwnerService::new(Arc::clone(service), &directory.display().to_string())
}

/// Serves the owner, where there is a way in.
pub(in crate::commands) async fn serve(socket: Option<&OwnerSocket>, service: &Arc<OwnerService>) {
    match socket {
        Some(socket) => socket.serve(Arc::clone(service) as Arc<dyn Service>).await,
        None => std::future::pending().await,
    }
}

/// Says that a question waits, and how it is answered.
pub(in crate::commands) fn tell(context: &Context, question: &OpenQuestion) {
    let tool = question.tool.as_ref().map_or("", |key| key.tool.as_str());
    let left = question.expires_at.duration_since(question.asked_at);
    let id: String = question.id.as_str().chars().take(SHORT).collect();
    context.say(format!(
        "the client `{}` wants to call `{}` of server `{}`, and waits {} for your answer",
        clean_line(&question.caller.shown),
        clean_line(tool),
        question.server,
        age::short(left.unwrap_or_default()),
    ));
    context.hint(format!(
        "see it with `toolway approvals`, or answer it with `toolway approvals answer {id} once`"
    ));
}
