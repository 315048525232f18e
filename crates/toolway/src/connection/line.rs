//! A standing connection as a call sees it.
//!
//! Owns nothing but the translation between `dispatch`'s words and the session's.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;

use crate::dispatch::send::{Line, SendError, SendOptions};
use crate::error::RequestError;
use crate::session::{RequestOptions, Session};

/// The way to one server.
struct ServerLine {
    session: Session,
    timeout: Option<Duration>,
}

/// Makes a line of a session; `timeout` is what the server's entry says.
pub(crate) fn of(session: Session, timeout: Option<Duration>) -> Arc<dyn Line> {
    Arc::new(ServerLine { session, timeout })
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
            progress: options.progress,
            headers_for: options.tool,
        };
        Box::pin(async move {
            self.session
                .request(method, params, options)
                .await
                .map_err(|error| match error {
                    RequestError::TimedOut => SendError::TimedOut,
                    RequestError::Closed(reason) => SendError::Closed(reason),
                    RequestError::Rpc(error) => SendError::Rpc(error),
                    RequestError::Send(failure) => SendError::Send(failure),
                    RequestError::Malformed(what) => SendError::Malformed(what),
                    RequestError::InputRequired => SendError::Malformed(error.to_string()),
                })
        })
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }
}
