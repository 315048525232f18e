//! Telling a server from which level on its log is wanted.
//!
//! Owns `logging/setLevel`, which the legacy era has; modern requests say it themselves
//! (`session/modern.rs`). Who listens is `call/logs.rs`'s.

use serde_json::json;
use serde_json::value::to_raw_value;
use toolway_types::Era;
use toolway_wire::era::method;
use tracing::debug;

use super::Connection;
use crate::call::LogLevel;
use crate::connection::open_session::OpenSession;
use crate::error::RequestError;
use crate::route::RequestOptions;

/// What is wanted again when those who wanted more have gone.
const USUAL: LogLevel = LogLevel::Info;

impl Connection {
    /// Sets the most talkative level that anybody wants, for as long as the session stands. A
    /// server that nobody ever listened to keeps its own.
    pub(super) async fn follow_log_level(&self, open_session: &OpenSession) {
        let session = &open_session.session;
        let facts = session.facts();
        let logs = facts.capabilities.get("logging");
        if facts.era != Era::Legacy || logs.is_none_or(serde_json::Value::is_null) {
            return;
        }
        self.logs.note_told(None);
        let mut wanted = self.logs.watch();
        let mut level = None;
        loop {
            let now = wanted.now().or(level.map(|_| USUAL));
            if now != level
                && let Some(now) = now
            {
                level = Some(now);
                let Ok(params) = to_raw_value(&json!({ "level": now.as_str() })) else {
                    return;
                };
                let options = RequestOptions::within(self.context.limits.usual());
                let set = session.request(method::LOGGING_SET_LEVEL, &params, &options);
                match set.await {
                    Err(RequestError::Closed(_)) => return,
                    Err(error) => debug!(%error, "the server did not take a log level"),
                    Ok(_) => {}
                }
                // Whatever it made of it.
                self.logs.note_told(Some(now));
            }
            if !wanted.changed().await {
                return;
            }
        }
    }
}
