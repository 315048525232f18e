//! A standing connection as a call sees it.
//!
//! Owns nothing but the translation between `dispatch`'s words and the session's.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;

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
    Arc::new(ServerLine {
        session,
        timeout: source.timeout(),
        idle: usual_idle(source.group()),
    })
}

/// How long a server of this kind may be silent. A process or an object of ours that works for
/// long is at least there to be looked at; a server across a network may be gone without anybody
/// having been told.
fn usual_idle(group: Group) -> Duration {
    match group {
        Group::Local => Duration::from_mins(30),
        Group::Remote => Duration::from_mins(5),
    }
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
            let outcome = self.session.request(method, params, options).await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rel_09_a_remote_server_may_be_silent_for_less_long_than_a_local_one() {
        assert_eq!(usual_idle(Group::Local), Duration::from_millis(1_800_000));
        assert_eq!(usual_idle(Group::Remote), Duration::from_millis(300_000));
    }
}
