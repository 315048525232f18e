//! A standing connection as a call sees it.
//!
//! Owns nothing but the translation between `dispatch`'s words and the session's.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use toolway_wire::era::method;

use super::source::{Group, Source};
use crate::dispatch::send::{Line, SendError, SendOptions};
use crate::error::RequestError;
use crate::session::{RequestOptions, Session};

/// The way to one server.
struct ServerLine {
    session: Session,
    timeout: Option<Duration>,
    idle: Duration,
}

/// Makes a line of the session with a server.
pub(crate) fn of(session: Session, source: &Source) -> Arc<dyn Line> {
    // A process or an object of ours that works for long is at least there to be looked at; a
    // silent server across a network may be gone without anybody having been told.
    let idle = match source.group() {
        Group::Local => Duration::from_mins(30),
        Group::Remote => Duration::from_mins(5),
    };
    Arc::new(ServerLine {
        session,
        timeout: source.timeout(),
        idle,
    })
}

impl Line for ServerLine {
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Box<RawValue>,
        options: SendOptions<'a>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, SendError>> {
        let options = RequestOptions {
            timeout: options.timeout,
            idle: options.idle,
            progress: options.progress,
            headers_for: options.tool,
        };
        Box::pin(async move {
            let outcome = match method {
                // What a resource holds may be kept for as long as its server says.
                method::RESOURCES_READ => {
                    let session = &self.session;
                    session
                        .cached(method::RESOURCES_READ, params, options)
                        .await
                }
                _ => self.session.request(method, params, options).await,
            };
            outcome.map_err(|error| match error {
                RequestError::TimedOut => SendError::TimedOut,
                RequestError::Idle { after } => SendError::Idle { after },
                RequestError::Closed(reason) => SendError::Closed(reason),
                RequestError::Rpc(error) => SendError::Rpc(error),
                RequestError::Send(failure) => SendError::Send(failure),
                RequestError::Malformed(what) => SendError::Malformed(what),
                RequestError::InputRefused { input } => SendError::InputRefused { input },
                RequestError::TooManyRounds { rounds } => SendError::TooManyRounds { rounds },
                RequestError::TaskCancelled => SendError::TaskCancelled,
            })
        })
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn usual_idle(&self) -> Option<Duration> {
        Some(self.idle)
    }
}
