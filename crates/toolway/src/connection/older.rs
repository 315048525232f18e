//! Servers of the HTTP transport before the present one, behind entries that do not say so.
//!
//! Owns when an `http` server is greeted as an old HTTP+SSE server instead: after `initialize` was
//! answered with 400, 404 or 405 and no error of the protocol, as the specification asks, or at
//! once where that was found out before. A login wall is no such answer. The address, its headers
//! and what policy says about places that it leads to stay those of the entry.

use std::sync::Arc;
use std::time::Duration;

use toolway_transport::{CloseReason, OpenOptions, SendFailure};
use toolway_types::{Era, MessageDelivery, ProtocolMode, RemoteKind, TransportSpec};
use tracing::debug;

use super::era_memory::EraKey;
use super::live_channel::Opening;
use super::{Connection, EraMemory};
use crate::error::{ConnectError, RequestError};
use crate::server_source::ServerSource;
use crate::session::{Greeting, Session, is_era_evidence};

/// How long a server that was not known to be old may take to say where to post. It has just
/// answered, and an old one says it at once; a present one that opens a stream never does.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same server by the old transport.
pub(super) struct Older {
    /// With the secrets that its entry names.
    source: ServerSource,
    key: EraKey,
}

impl Older {
    /// Of an entry that could mean either; `filled` is the same with its secrets.
    pub(super) fn of(source: &ServerSource, filled: &ServerSource) -> Option<Self> {
        let key = EraKey::of_older(source)?;
        let mut spec = filled.spec()?.clone();
        let TransportSpec::Remote(kind @ RemoteKind::Http, _) = &mut spec.transport else {
            return None;
        };
        *kind = RemoteKind::Sse;
        spec.protocol = ProtocolMode::Legacy;
        Some(Self {
            source: ServerSource::Spec(Box::new(spec)),
            key,
        })
    }

    /// Whether this is how it was reached last time.
    pub(super) fn is_remembered(&self, eras: &EraMemory) -> bool {
        eras.recall(Some(&self.key)).is_some()
    }
}

impl Connection {
    /// Greets a server that is known to be old. `None` when it is not any more.
    pub(super) async fn greet_known_older(
        &self,
        opening: &mut Opening<'_>,
        older: &Older,
        open: &OpenOptions,
    ) -> Result<Option<Session>, ConnectError> {
        let eras = &self.context.eras;
        match self.greet_older(opening, older, open).await {
            Ok(session) => Ok(Some(session)),
            Err(error) if is_era_evidence(&error) => {
                debug!(%error, "not reached by the old transport any more");
                eras.learn(Some(&older.key), Err(&error)).await;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Greets a server that did not take `initialize` as an old one, and remembers that it is one.
    /// `refusal` is what it said.
    pub(super) async fn greet_as_older(
        &self,
        opening: &mut Opening<'_>,
        older: &Older,
        open: &OpenOptions,
        refusal: ConnectError,
    ) -> Result<Session, ConnectError> {
        let ConnectError::NotStreamable { status, .. } = refusal else {
            return Err(refusal);
        };
        debug!("`initialize` is refused: trying the old transport");
        let mut open = open.clone();
        open.limits.first_byte = open.limits.first_byte.min(PATIENCE);
        match self.greet_older(opening, older, &open).await {
            Ok(session) => {
                let eras = &self.context.eras;
                eras.learn(Some(&older.key), Ok(Era::Legacy)).await;
                Ok(session)
            }
            // It is there, and says who may come in.
            Err(
                error @ (ConnectError::NeedsAuth { .. }
                | ConnectError::Request {
                    source: RequestError::Closed(CloseReason::Failed(SendFailure::Denied { .. })),
                    ..
                }),
            ) => Err(error),
            Err(ConnectError::Request {
                source: RequestError::Closed(CloseReason::Failed(SendFailure::Status { .. })),
                ..
            }) => Err(ConnectError::NotStreamable {
                status,
                older: Some("it opens no event stream".to_owned()),
            }),
            Err(error) => Err(ConnectError::NotStreamable {
                status,
                older: Some(error.to_string()),
            }),
        }
    }

    async fn greet_older(
        &self,
        opening: &mut Opening<'_>,
        older: &Older,
        open: &OpenOptions,
    ) -> Result<Session, ConnectError> {
        let greeting = Greeting {
            client: Arc::clone(&self.context.client),
            delivery: MessageDelivery::Stream,
            mode: ProtocolMode::Legacy,
            remembered: None,
            again: true,
            timeout: opening.limit,
        };
        self.greet(opening, &greeting, &older.source, open).await
    }
}
