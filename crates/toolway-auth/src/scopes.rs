//! Which scopes are asked for, and how often.
//!
//! Owns the choice at a first login (what the user wrote, else what the challenge wants, else what
//! the resource offers, else nothing), `offline_access`, the union at a step-up, and the cap on
//! attempts: a server that always wants more must not open one window after the other (REL-26).
//! Does not own: logging in (`login.rs`), or reading the challenge (`challenge.rs`).

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolway_types::limits;

use crate::metadata::{ResourceMetadata, ServerMetadata};

/// What gets a refresh token from servers that want to be asked for one.
pub const OFFLINE_ACCESS: &str = "offline_access";

/// The most scopes, and the most bytes of them, in one request: they go into an address.
const MAX_SCOPES: usize = 100;
const MAX_BYTES: usize = 4096;

/// The most step-ups of a server within [`WINDOW`], unless one of them helped.
pub const MAX_STEP_UPS: usize = limits::login::STEP_UPS;

/// How long attempts are remembered.
pub const WINDOW: Duration = Duration::from_mins(15);

/// Where scopes come from at a first login, the strongest first.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScopeSources<'a> {
    /// What the user wrote (`oauth.scopes`).
    pub configured: Option<&'a [String]>,
    /// What the server's challenge wants.
    pub challenged: &'a [String],
    /// What the resource says of itself.
    pub resource: Option<&'a ResourceMetadata>,
    /// What the authorization server says of itself.
    pub server: Option<&'a ServerMetadata>,
}

/// The scopes of a first login.
pub fn initial(sources: &ScopeSources<'_>) -> Vec<String> {
    let chosen = match sources.configured {
        Some(configured) => configured,
        None if !sources.challenged.is_empty() => sources.challenged,
        None => sources
            .resource
            .map(|resource| resource.scopes.as_slice())
            .unwrap_or_default(),
    };
    let offline = sources.server.filter(|server| {
        let listed = server.scopes.iter().any(|scope| scope == OFFLINE_ACCESS);
        listed && server.offers("refresh_token")
    });
    let offline = offline.map(|_| OFFLINE_ACCESS.to_owned());
    let scopes = union(&[], chosen.iter().chain(&offline));
    // Alone it would take the place of the scopes that the server gives to those who name none.
    let is_asked_for = sources.configured.is_some() || !sources.challenged.is_empty();
    if scopes == [OFFLINE_ACCESS] && (!is_asked_for || chosen.is_empty()) {
        return Vec::new();
    }
    scopes
}

/// Both, each scope once and in order. What no scope can be is left out, and what is too much.
fn union<'a>(asked: &'a [String], more: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let mut scopes = Vec::new();
    let mut bytes = 0;
    for scope in asked.iter().chain(more) {
        if !is_scope(scope) || scopes.contains(scope) {
            continue;
        }
        bytes += scope.len() + 1;
        if scopes.len() == MAX_SCOPES || bytes > MAX_BYTES {
            break;
        }
        scopes.push(scope.clone());
    }
    scopes
}

/// The grammar of RFC 6749 section 3.3.
pub(crate) fn is_scope(text: &str) -> bool {
    let allowed = |byte: u8| matches!(byte, b'!' | b'#'..=b'[' | b']'..=b'~');
    !text.is_empty() && text.bytes().all(allowed)
}

/// Why there is no further attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LoginAttemptError {
    /// What is wanted was asked for already, and did not help.
    #[error("the server wants scopes that were asked for already: a further login would not help")]
    NothingNew,
    /// The server wants more, and does not say what.
    #[error("the server wants a login that reaches further, and did not say which scopes")]
    Unnamed,
    /// Several attempts did not help.
    #[error("the server wants more scopes after every login: it is not asked again for now")]
    TooOften,
    /// A login is under way.
    #[error("a login for this server is under way")]
    UnderWay,
}

/// The logins of each server: past step-ups, and whether one is running.
#[derive(Debug, Default)]
pub struct LoginAttempts(Mutex<HashMap<String, ServerAttempts>>);

#[derive(Debug, Default)]
struct ServerAttempts {
    step_ups: Vec<(Instant, Vec<String>)>,
    is_open: bool,
}

impl LoginAttempts {
    /// The scopes of a step-up: all that were asked for, and what the server wants now. Counts as
    /// an attempt.
    pub fn step_up(
        &self,
        server: &str,
        requested: &[String],
        challenged: &[String],
    ) -> Result<Vec<String>, LoginAttemptError> {
        let scopes = union(requested, challenged);
        if scopes.iter().all(|scope| requested.contains(scope)) {
            return Err(LoginAttemptError::NothingNew);
        }
        let now = Instant::now();
        let mut servers = self.lock();
        let tries = servers.entry(server.to_owned()).or_default();
        tries.step_ups.retain(|(then, _)| now - *then < WINDOW);
        let mut sorted = scopes.clone();
        sorted.sort_unstable();
        if tries.step_ups.iter().any(|(_, tried)| *tried == sorted) {
            return Err(LoginAttemptError::NothingNew);
        }
        if tries.step_ups.len() >= MAX_STEP_UPS {
            return Err(LoginAttemptError::TooOften);
        }
        tries.step_ups.push((now, sorted));
        Ok(scopes)
    }

    /// A server took what a step-up got it: it starts again.
    pub fn helped(&self, server: &str) {
        if let Some(tries) = self.lock().get_mut(server) {
            tries.step_ups.clear();
        }
    }

    /// Marks the one login of a server as running, until the guard is dropped.
    pub fn open<'a>(&'a self, server: &str) -> Result<LoginGuard<'a>, LoginAttemptError> {
        let mut servers = self.lock();
        let tries = servers.entry(server.to_owned()).or_default();
        if tries.is_open {
            return Err(LoginAttemptError::UnderWay);
        }
        tries.is_open = true;
        Ok(LoginGuard {
            attempts: self,
            server: server.to_owned(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, ServerAttempts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A login that is under way.
#[derive(Debug)]
pub struct LoginGuard<'a> {
    attempts: &'a LoginAttempts,
    server: String,
}

impl Drop for LoginGuard<'_> {
    fn drop(&mut self) {
        if let Some(tries) = self.attempts.lock().get_mut(&self.server) {
            tries.is_open = false;
        }
    }
}
