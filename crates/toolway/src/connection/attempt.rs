//! One attempt to connect: open, greet, list.
//!
//! Owns its steps, and the time that it has. Does not own what is open meanwhile
//! (`live_channel.rs`), when an attempt is made, or what follows one that failed
//! (`connection.rs`).

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolway_auth::references::no_resolver_error;
use toolway_transport::{OpenOptions, SendFailure};
use toolway_types::{MessageDelivery, Untrusted};
use tracing::debug;

use super::era_memory::EraKey;
use super::live_channel::{ConnectStep, LiveChannel, Opening};
use super::older::Older;
use super::{Connected, Connection};
use crate::connection::open_session::OpenSession;
use crate::error::{ConnectError, RequestError};
use crate::journal::{Redactor, secrets_of};
use crate::listing::{MemoryLabel, ServerLists};
use crate::server_source::ServerSource;
use crate::server_source::definition::ServerIdentity;
use crate::session::{Greeting, Session};
use crate::{account, auth};

/// The longest that an attempt holds its slot.
const SLOT_FOR: Duration = Duration::from_secs(3);

/// A time as people want to read it.
fn tenths(time: Duration) -> Duration {
    Duration::from_millis(time.as_secs() * 1000 + u64::from(time.subsec_millis() / 100 * 100))
}

impl Connection {
    /// Makes one attempt, within its time. What is open afterwards is in `live`, whatever the
    /// outcome. It holds a slot while it starts, but not for as long as it hangs: slots keep a
    /// hundred servers from starting at once, and a few that never answer must not block the
    /// others.
    pub(super) async fn attempt(
        &self,
        number: u32,
        live: &mut Option<LiveChannel>,
    ) -> Result<Connected, ConnectError> {
        let limits = &self.context.limits;
        // Never closed, so there always is one in the end.
        let slot = limits.slots(self.source.group()).acquire().await;
        let limit = limits.of_attempt(&self.source, number);
        let mut opening = Opening {
            live,
            step: ConnectStep::Opening,
            limit,
        };
        let begun = Instant::now();
        let outcome = {
            let establish = self.establish(&mut opening);
            let mut establish = pin!(tokio::time::timeout(limit, establish));
            tokio::select! {
                outcome = &mut establish => outcome,
                () = tokio::time::sleep(SLOT_FOR) => {
                    drop(slot);
                    establish.await
                }
            }
        };
        let too_late = |after| self.too_late(after, opening.step);
        match outcome {
            // A request has a limit of its own, which may be over a moment before this one.
            Ok(Err(ConnectError::Request {
                source: RequestError::TimedOut | RequestError::Send(SendFailure::TimedOut { .. }),
                ..
            })) => Err(too_late(tenths(begun.elapsed().min(limit)))),
            Ok(outcome) => outcome,
            Err(_) => Err(too_late(limit)),
        }
    }

    /// Opens, greets and lists.
    async fn establish(&self, opening: &mut Opening<'_>) -> Result<Connected, ConnectError> {
        if let Some(auth) = &self.context.auth {
            auth.note_connecting(&self.server, &self.source);
            if auth.remembers(&self.server, &self.source).await {
                return Err(ConnectError::NeedsAuth { challenge: None });
            }
        }
        let filled = self.filled().await?;
        let open = self.open_options(&filled);
        let (session, delivery) = match self.settle(opening, &filled, &open).await {
            Ok(settled) => settled,
            Err(error) => return Err(self.login_behind(error).await),
        };
        opening.step = ConnectStep::Listing;
        // Boxed: it is large, and over long before the connection is.
        let (limit, room) = (self.context.limits.usual(), &self.context.all_lists);
        let mut lists = Box::pin(ServerLists::fetch(&session, limit, room)).await?;
        lists.label = self.label(&filled);
        let open_session = OpenSession::new(session, delivery);
        Ok(Connected {
            open_session,
            lists,
            instructions: None,
        })
    }

    /// Opens and greets, with whichever transport and era the server turns out to speak.
    async fn settle(
        &self,
        opening: &mut Opening<'_>,
        filled: &ServerSource,
        open: &OpenOptions,
    ) -> Result<(Session, MessageDelivery), ConnectError> {
        let mut older = Older::of(&self.source, filled);
        if let Some(known) = older.take_if(|older| older.is_remembered(&self.context.eras))
            && let Some(session) = self.greet_known_older(opening, &known, open).await?
        {
            return Ok((session, MessageDelivery::Stream));
        }
        let key = EraKey::of(&self.source);
        let mut greeting = Greeting {
            client: Arc::clone(&self.context.client),
            delivery: self.source.delivery(),
            mode: self.source.protocol(),
            remembered: self.context.eras.recall(key.as_ref()),
            again: false,
            timeout: opening.limit,
        };
        let eras = &self.context.eras;
        loop {
            let error = match self.greet(opening, &greeting, filled, open).await {
                Ok(session) => {
                    let era = session.facts().era;
                    eras.learn(key.as_ref(), Ok(era)).await;
                    return Ok((session, greeting.delivery));
                }
                Err(error) => error,
            };
            if let Some(next) = greeting.after(&error) {
                debug!(%error, "starting the server again for another handshake");
                greeting = next;
                continue;
            }
            eras.learn(key.as_ref(), Err(&error)).await;
            let Some(older) = &older else {
                return Err(error);
            };
            let greeted = self.greet_as_older(opening, older, open, error);
            return Ok((greeted.await?, MessageDelivery::Stream));
        }
    }

    /// What is behind a server that only says that something is forbidden: a login may be.
    async fn login_behind(&self, error: ConnectError) -> ConnectError {
        match &self.context.auth {
            Some(auth)
                if error.is_forbidden() && auth.could_help(&self.server, &self.source).await =>
            {
                ConnectError::NeedsAuth { challenge: None }
            }
            _ => error,
        }
    }

    /// Who was being waited for when the time was over: the authorization server that has to renew
    /// the login first, or the server itself.
    fn too_late(&self, after: Duration, step: ConnectStep) -> ConnectError {
        let auth = self.context.auth.as_ref();
        match auth.and_then(|auth| auth.asks(&ServerIdentity::of(&self.server, &self.source))) {
            Some(issuer) => ConnectError::NotRenewed {
                server: self.server.clone(),
                issuer: Untrusted::new(issuer),
                after,
            },
            None => ConnectError::TimedOut {
                after,
                waiting_for: step.waits(),
            },
        }
    }

    /// What this attempt opens its channels with. Credentials last as long as the connection.
    fn open_options(&self, filled: &ServerSource) -> OpenOptions {
        let mut open = self.context.open.clone();
        if let Some(limit) = self.context.limits.of_request(&self.source) {
            open.limits.first_byte = limit;
        }
        let journal = self.journal.as_ref();
        let (auth, connectors) = (self.context.auth.as_ref(), self.context.connectors.as_ref());
        let credentials = account::credentials(&self.source, connectors, journal).or_else(|| {
            auth::credentials(&self.server, &self.source, filled, &open, journal, auth)
        });
        OpenOptions {
            credentials,
            ..open
        }
    }

    /// What to connect to, with the secrets that it names. The journal keeps them back before
    /// anything is said to the server.
    async fn filled(&self) -> Result<Cow<'_, ServerSource>, ConnectError> {
        let ServerSource::Spec(spec) = &*self.source else {
            return Ok(Cow::Borrowed(&self.source));
        };
        let Some(first) = spec.references.first() else {
            return Ok(Cow::Borrowed(&self.source));
        };
        let Some(references) = &self.context.references else {
            return Err(no_resolver_error(first).into());
        };
        let (spec, mut secrets) = references.resolve(spec, &self.context.open).await?;
        if let Some(journal) = &self.journal {
            secrets.extend(secrets_of(&spec));
            journal.keep_secrets_back(secrets);
        }
        Ok(Cow::Owned(ServerSource::Spec(Box::new(spec))))
    }

    /// How what it offers is kept: under its definition as it was written, without what it was
    /// given or sent.
    fn label(&self, filled: &ServerSource) -> Option<MemoryLabel> {
        let redactor = match &self.journal {
            Some(journal) => journal.redactor(),
            None => Arc::new(Redactor::new(&filled.secrets())),
        };
        MemoryLabel::of(&self.source, redactor)
    }
}
