//! Tokens of OAuth: what the check of `toolway_auth::inbound` says, as an identity.
//!
//! Owns which profile a token's scopes choose, and remembering for a short time that a token was
//! good, so that not every request costs a signature. Whether it is good is `toolway-auth`'s.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderValue};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use toolway_auth::inbound::{InboundAuthorizer, InboundRefusal, Principal};

use super::{AccessCheck, AccessLease, AccessRefusal, Authenticator, Identity};

/// How long a token that was found good is not checked again. A key that its issuer takes back is
/// believed for this long.
const REMEMBERED: Duration = Duration::from_mins(1);

/// How many tokens are remembered.
const MAX_REMEMBERED: usize = 1024;

/// Takes tokens that issuers made for us.
pub struct OAuthAccess {
    authorizer: InboundAuthorizer,
    document: Bytes,
    profiles: Vec<(String, Arc<str>)>,
    good: Mutex<HashMap<[u8; 32], GoodToken>>,
}

/// A token that was found good.
struct GoodToken {
    identity: Arc<Identity>,
    until: Instant,
}

impl OAuthAccess {
    /// Takes what `authorizer` takes. A token with one of these scopes is bound to its profile; the
    /// first that fits counts. Where profiles are named, a token with none of their scopes is
    /// refused.
    pub fn new(authorizer: InboundAuthorizer, profiles: Vec<(String, String)>) -> Self {
        Self {
            document: authorizer.document().to_string().into(),
            authorizer,
            profiles: profiles
                .into_iter()
                .map(|(scope, profile)| (scope, profile.into()))
                .collect(),
            good: Mutex::default(),
        }
    }

    async fn identify(&self, token: Option<&str>) -> Result<Arc<Identity>, AccessRefusal> {
        let digest = token.map(|token| <[u8; 32]>::from(Sha256::digest(token.as_bytes())));
        if let Some(identity) = digest.and_then(|digest| self.remembered(&digest)) {
            return Ok(identity);
        }
        let mut headers = HeaderMap::new();
        if let Some(token) = token {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| AccessRefusal::unknown_token())?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let principal = (self.authorizer.check(&headers, None).await).map_err(refusal)?;
        let identity = Arc::new(self.identity(&principal)?);
        if let Some(digest) = digest {
            self.remember(digest, &identity, principal.expires_at);
        }
        Ok(identity)
    }

    fn identity(&self, principal: &Principal) -> Result<Identity, AccessRefusal> {
        let chosen = self
            .profiles
            .iter()
            .find(|(scope, _)| principal.scopes.contains(scope));
        if let (None, Some((scope, _))) = (chosen, self.profiles.first()) {
            // Says which scope would open something.
            let wanted = std::slice::from_ref(scope);
            self.authorizer.demand(principal, wanted).map_err(refusal)?;
        }
        let Principal {
            issuer, subject, ..
        } = principal;
        let expires_at = principal.expires_at;
        Ok(Identity {
            // Neither part can be chosen so that two principals are one: JSON keeps them apart.
            principal: serde_json::json!([issuer, subject]).to_string().into(),
            shown: subject.as_str().into(),
            profile: chosen.map(|(_, profile)| Arc::clone(profile)),
            scopes: principal.scopes.clone(),
            is_owner: false,
            lease: AccessLease::lasting(move || unix_now() < Duration::from_secs(expires_at)),
        })
    }

    fn remembered(&self, digest: &[u8; 32]) -> Option<Arc<Identity>> {
        let good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        let token = good.get(digest)?;
        (Instant::now() < token.until).then(|| Arc::clone(&token.identity))
    }

    fn remember(&self, digest: [u8; 32], identity: &Arc<Identity>, expires_at: u64) {
        let left = Duration::from_secs(expires_at).saturating_sub(unix_now());
        let now = Instant::now();
        let mut good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        if good.len() >= MAX_REMEMBERED {
            good.retain(|_, token| now < token.until);
        }
        if good.len() < MAX_REMEMBERED {
            let identity = Arc::clone(identity);
            let until = now + left.min(REMEMBERED);
            good.insert(digest, GoodToken { identity, until });
        }
    }
}

fn unix_now() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}

impl Authenticator for OAuthAccess {
    fn check<'a>(&'a self, token: Option<&'a str>) -> AccessCheck<'a> {
        Box::pin(self.identify(token))
    }

    fn resource_metadata(&self) -> Option<Bytes> {
        Some(self.document.clone())
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is what an error is mapped by"
)]
fn refusal(refusal: InboundRefusal) -> AccessRefusal {
    AccessRefusal {
        status: refusal.status(),
        challenge: refusal.challenge(),
        retry_after: refusal.retry_after(),
        why: refusal.why().to_string(),
    }
}
