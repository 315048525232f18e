//! An issuer that is accepted: its keys, fetched when they are needed and again when they changed.
//!
//! One request at a time fetches keys: a flood of unknown tokens causes at most one fetch a minute,
//! and tokens signed with a known key never wait.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use super::InboundFault;
use crate::discovery;
use crate::jwt::published::{KEEP, PAUSE, PublishedKeys};
use crate::jwt::{self, JwtAlgorithm, VerifyError};
use crate::web::WebClient;

/// How long after a failure the issuer is not asked again.
const RETRY_DELAY: Duration = Duration::from_secs(10);
/// How long keys are used at most while the issuer cannot be asked for newer ones.
const MAX_KEY_AGE: Duration = Duration::from_hours(2);

pub(super) struct TrustedIssuer {
    pub(super) name: String,
    places: Vec<Url>,
    known: RwLock<Option<Arc<PublishedKeys>>>,
    /// Held while fetching; when fetching last failed.
    turn: Mutex<Option<Instant>>,
}

impl fmt::Debug for TrustedIssuer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("TrustedIssuer")
            .field(&self.name)
            .finish()
    }
}

impl TrustedIssuer {
    pub(super) fn new(name: String, places: Vec<Url>) -> Self {
        Self {
            name,
            places,
            known: RwLock::default(),
            turn: Mutex::default(),
        }
    }

    /// The claims of a token that this issuer signed.
    pub(super) async fn verified(
        &self,
        web: &WebClient,
        token: &str,
        allowed: &[JwtAlgorithm],
    ) -> Result<Map<String, Value>, InboundFault> {
        let known = self.known();
        if let Some(known) = &known {
            let judged = known.keys.verify(token, allowed);
            let age = known.age();
            let is_final = match &judged {
                Ok(_) => age < KEEP,
                Err(error) => age < PAUSE || !may_be_newer(token, *error),
            };
            if is_final {
                return Ok(judged?);
            }
            // Another request is fetching, and these keys are still valid.
            if judged.is_ok() && age < MAX_KEY_AGE && self.turn.try_lock().is_err() {
                return Ok(judged?);
            }
        } else if !can_be_judged(token, allowed) {
            // Nothing that the issuer publishes could make this one good.
            return Err(VerifyError::Algorithm.into());
        }
        match self.newer(web, known.as_ref()).await {
            Some(newer) => Ok(newer.keys.verify(token, allowed)?),
            None => without(known.as_ref(), token, allowed),
        }
    }

    fn known(&self) -> Option<Arc<PublishedKeys>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }

    /// Keys newer than these; `None` when there are none to be had now.
    async fn newer(
        &self,
        web: &WebClient,
        than: Option<&Arc<PublishedKeys>>,
    ) -> Option<Arc<PublishedKeys>> {
        let mut failed = self.turn.lock().await;
        let now = self.known();
        let is_other = match (&now, than) {
            (Some(now), Some(than)) => !Arc::ptr_eq(now, than),
            (now, _) => now.is_some(),
        };
        if is_other {
            return now;
        }
        if failed.is_some_and(|failed| failed.elapsed() < RETRY_DELAY) {
            return None;
        }
        match self.fetch(web).await {
            Ok(published) => {
                *failed = None;
                let published = Arc::new(published);
                let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
                *known = Some(Arc::clone(&published));
                Some(published)
            }
            Err(why) => {
                tracing::warn!(issuer = %self.name, %why, "the keys of an issuer could not be had");
                *failed = Some(Instant::now());
                None
            }
        }
    }

    /// The metadata is asked for each time: it is where a new place of the keys is said.
    async fn fetch(&self, web: &WebClient) -> Result<PublishedKeys, String> {
        let is_named = |named: &str| named == self.name;
        let metadata = discovery::authority(web, &self.places, is_named, &self.name)
            .await
            .map_err(|error| error.to_string())?
            .ok_or("it has no metadata at any of the known places")?;
        let place = metadata
            .jwks_uri
            .ok_or("its metadata has no usable `jwks_uri`")?;
        let published = PublishedKeys::fetch(web, &place).await;
        published.map_err(|error| error.to_string())
    }
}

/// The verdict while the issuer cannot be asked: the old keys still count, but a token signed with
/// an unknown key is not called invalid.
fn without(
    known: Option<&Arc<PublishedKeys>>,
    token: &str,
    allowed: &[JwtAlgorithm],
) -> Result<Map<String, Value>, InboundFault> {
    known
        .filter(|known| known.age() < MAX_KEY_AGE)
        .and_then(|known| known.keys.verify(token, allowed).ok())
        .ok_or(InboundFault::NoKeys {
            seconds: RETRY_DELAY.as_secs(),
        })
}

/// Whether newer keys could change a refusal. A token without a key's name can be from any key.
fn may_be_newer(token: &str, error: VerifyError) -> bool {
    let is_nameless = || {
        let header = jwt::peek_all(token).map(|(header, _)| header);
        header.is_some_and(|header| !header.contains_key("kid"))
    };
    match error {
        VerifyError::UnknownKey => true,
        VerifyError::Signature => is_nameless(),
        VerifyError::Malformed | VerifyError::Algorithm | VerifyError::Critical => false,
    }
}

/// Whether a token's algorithm is allowed, whatever its key.
fn can_be_judged(token: &str, allowed: &[JwtAlgorithm]) -> bool {
    jwt::peek_all(token)
        .and_then(|(header, _)| JwtAlgorithm::named(header.get("alg")?.as_str()?))
        .is_some_and(|algorithm| allowed.contains(&algorithm))
}
