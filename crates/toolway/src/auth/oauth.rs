//! The credentials that a login gives one connection.
//!
//! Owns sending the access token with every request, renewing it before it expires and once when
//! the server refuses it, and the nonce that a server wants in a proof. Does not own: whether a
//! request is sent again (`toolway-transport`), or renewing itself.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;
use toolway_auth::challenge;
use toolway_auth::helper::RedactHeaders;
use toolway_auth::refresh::{DEFAULT_HOLD_OFF, LONGEST_WAIT};
use toolway_auth::token::dpop::{DPOP, DpopKey, USE_NONCE};
use toolway_transport::credentials::{
    CredentialHeaders, CredentialRefusal, CredentialRequest, Credentials, CredentialsError,
    RetryDecision,
};
use toolway_types::{Secret, request_url};
use tracing::{debug, warn};

use super::Auth;
use crate::auth::access_token::{AccessToken, AccessTokenError, LoginTarget};
use crate::error::is_short;

/// The credentials of a login.
pub(crate) struct LoginCredentials {
    target: LoginTarget,
    auth: Arc<Auth>,
    keep_back: RedactHeaders,
    known: Mutex<LastToken>,
    /// Whether it was widened, and the server has not taken it yet.
    is_wider: AtomicBool,
}

/// What was asked for last.
#[derive(Default)]
struct LastToken {
    access_token: Option<AccessToken>,
    /// Whether it was asked for at all.
    is_asked: bool,
    /// Whether any login changed since; watched as soon as there is one to show.
    changes: Option<watch::Receiver<u64>>,
    /// Why it cannot be renewed for a while.
    hindered: Option<RenewalPause>,
}

impl LastToken {
    /// The key that the token is bound to.
    fn key(&self) -> Option<&DpopKey> {
        self.access_token.as_ref()?.key.as_ref()
    }
}

/// A renewal that may work later. The login is kept. The store does not ask the authorization
/// server before its time either; this spares asking the store, and knows which token not to send.
struct RenewalPause {
    /// The token that the server refused, if it was that.
    refused: Option<Secret>,
    /// Until then no renewal is tried.
    until: Instant,
    error: AccessTokenError,
}

impl RenewalPause {
    /// What may pass; nothing when only a person can mend it.
    fn of(error: &AccessTokenError, refused: Option<&Secret>) -> Option<Self> {
        let wait: Duration = match error {
            AccessTokenError::Over(_) => return None,
            AccessTokenError::Unavailable(_) => DEFAULT_HOLD_OFF,
            AccessTokenError::Later { after, .. } => (*after).clamp(DEFAULT_HOLD_OFF, LONGEST_WAIT),
        };
        Some(Self {
            refused: refused.cloned(),
            until: Instant::now() + wait,
            error: error.clone(),
        })
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }
}

impl LoginCredentials {
    pub(crate) fn new(target: LoginTarget, auth: Arc<Auth>, keep_back: RedactHeaders) -> Self {
        Self {
            target,
            auth,
            keep_back,
            known: Mutex::default(),
            is_wider: AtomicBool::new(false),
        }
    }

    /// The pass of this moment, asked for anew when it is due or when any login changed.
    async fn access_token(&self) -> Result<Option<AccessToken>, AccessTokenError> {
        let mut known = self.known.lock().await;
        // A keeper that is gone changes nothing any more.
        let changed = known.changes.as_ref();
        let changed = changed.is_some_and(|changes| changes.has_changed().unwrap_or_default());
        let due = known.access_token.as_ref().is_some_and(is_due);
        let refused = match &known.hindered {
            Some(hindrance) if !changed && !hindrance.is_over() => {
                return Err(hindrance.error.clone());
            }
            Some(hindrance) => hindrance.refused.clone(),
            None if known.is_asked && !changed && !due => return Ok(known.access_token.clone()),
            None => None,
        };
        if let Some(changes) = &mut known.changes {
            changes.mark_unchanged();
        }
        known.is_asked = false;
        let refused = refused.as_ref();
        let asked = self.auth.access_tokens.access_token(&self.target, refused);
        let access_token = asked.await.inspect_err(|error| {
            known.hindered = RenewalPause::of(error, refused);
        })?;
        self.learn(&mut known, access_token.as_ref());
        Ok(access_token)
    }

    fn learn(&self, known: &mut LastToken, access_token: Option<&AccessToken>) {
        if let Some(access_token) = access_token {
            let value = Secret::new(authorization(access_token));
            (self.keep_back)(&[("Authorization".to_owned(), value)]);
            let access_tokens = &self.auth.access_tokens;
            known.changes.get_or_insert_with(|| access_tokens.changes());
        }
        let token = access_token.map(|access_token| &access_token.access);
        self.auth.note_sent_token(&self.target.identity(), token);
        known.access_token = access_token.cloned();
        known.is_asked = true;
        known.hindered = None;
    }

    /// Whether there is another pass than the one that was refused, or may be one later: then
    /// asking for it says why not now, which is no reason for a person to log in.
    async fn renew(&self, refused: Option<&Secret>) -> bool {
        let mut known = self.known.lock().await;
        if let Some(hindrance) = &known.hindered
            && hindrance.refused.as_ref() == refused
            && !hindrance.is_over()
        {
            return true;
        }
        let access_tokens = &self.auth.access_tokens;
        match access_tokens.access_token(&self.target, refused).await {
            Ok(Some(access_token)) if Some(&access_token.access) != refused => {
                self.learn(&mut known, Some(&access_token));
                true
            }
            Ok(_) => false,
            Err(error) => {
                debug!(server = %self.target.server, %error, "the login was not renewed");
                known.hindered = RenewalPause::of(&error, refused);
                known.hindered.is_some()
            }
        }
    }

    /// Tries a federated login, where one is possible.
    async fn entered(
        &self,
        may_enter: bool,
        presented: &CredentialHeaders,
        challenge: Option<String>,
    ) -> RetryDecision {
        if !may_enter {
            return RetryDecision::GiveUp;
        }
        let refused = shown(presented);
        let mut known = self.known.lock().await;
        // Another request was quicker.
        if let Some(access_token) = &known.access_token
            && Some(&access_token.access) != refused.as_ref()
        {
            return RetryDecision::Again;
        }
        let login = self.auth.enter(&self.target, challenge.as_deref()).await;
        match login.map(AccessToken::from) {
            Some(access_token) if Some(&access_token.access) != refused.as_ref() => {
                self.learn(&mut known, Some(&access_token));
                RetryDecision::Again
            }
            _ => RetryDecision::GiveUp,
        }
    }
}

fn is_due(access_token: &AccessToken) -> bool {
    let now = UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
    access_token.renew_at.is_some_and(|at| now >= at)
}

impl fmt::Debug for LoginCredentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("LoginCredentials")
            .field(&self.target.server)
            .finish()
    }
}

impl Credentials for LoginCredentials {
    fn present<'a>(
        &'a self,
        request: CredentialRequest<'a>,
    ) -> BoxFuture<'a, Result<CredentialHeaders, CredentialsError>> {
        async move {
            let Some(access_token) = self.access_token().await? else {
                // Then the server says what it wants.
                return Ok(CredentialHeaders::default());
            };
            // A server may take requests at another path of its origin, as one of SSE does. It is
            // the server that was configured which names it, and which has the token anyhow.
            let is_there = request.url.origin() == request_url(&self.target.url).origin();
            if !is_there || !access_token.is_for(&self.target.url) {
                warn!(server = %self.target.server, "a login for another resource is not shown");
                return Ok(CredentialHeaders::default());
            }
            headers(&access_token, request)
        }
        .boxed()
    }

    fn refused<'a>(
        &'a self,
        presented: &'a CredentialHeaders,
        refusal: CredentialRefusal<'a>,
    ) -> BoxFuture<'a, RetryDecision> {
        async move {
            // 403 says that the login is known and does not reach that far: only a person can
            // change that.
            if refusal.status != 401 {
                // An organisation, or the client itself, can ask for more than the first time; a
                // person is not here.
                let challenge = refusal.challenges();
                let is_short = is_short(challenge.as_deref());
                let may_enter = is_short && self.auth.widens_itself(&self.target).await;
                let verdict = self.entered(may_enter, presented, challenge.clone()).await;
                if verdict == RetryDecision::Again {
                    self.is_wider.store(true, Ordering::Relaxed);
                }
                if verdict == RetryDecision::GiveUp
                    && is_short
                    && let Some(challenge) = challenge
                {
                    self.auth
                        .note_missing_scopes(&self.target.identity(), challenge);
                }
                return verdict;
            }
            let key = self.known.lock().await.key().cloned();
            if let Some(key) = key
                && wants_nonce(&refusal)
                && key.learn(refusal.request.url, refusal.headers)
            {
                return RetryDecision::WithNonce;
            }
            if self.renew(shown(presented).as_ref()).await {
                return RetryDecision::Again;
            }
            let may_enter = self.auth.takes_federated_login(&self.target);
            self.entered(may_enter, presented, refusal.challenges())
                .await
        }
        .boxed()
    }

    fn taken(&self) {
        if self.is_wider.swap(false, Ordering::Relaxed) {
            self.auth.helped(&self.target.identity());
        }
    }

    fn heard(&self, request: CredentialRequest<'_>, headers: &HeaderMap) {
        // A renewal under way learns the nonce with the next answer.
        let Ok(known) = self.known.try_lock() else {
            return;
        };
        if let Some(key) = known.key() {
            key.learn(request.url, headers);
        }
    }
}

fn authorization(token: &AccessToken) -> String {
    format!("{} {}", token.kind.scheme(), token.access.expose())
}

fn headers(
    access_token: &AccessToken,
    request: CredentialRequest<'_>,
) -> Result<CredentialHeaders, CredentialsError> {
    let broken = |what: &str| CredentialsError::Broken(format!("the login cannot be used: {what}"));
    let value = |text: String| {
        HeaderValue::try_from(text).map_err(|_| broken("its token does not fit into a header"))
    };
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, value(authorization(access_token))?);
    if let Some(key) = &access_token.key {
        let method = request.method.as_str();
        let proof = key.proof(method, request.url, Some(&access_token.access), None);
        let proof = proof.map_err(|error| broken(&error.to_string()))?;
        headers.insert(DPOP, value(proof)?);
    }
    Ok(CredentialHeaders::new(headers))
}

/// The token that was shown.
fn shown(presented: &CredentialHeaders) -> Option<Secret> {
    let value = presented.headers().get(AUTHORIZATION)?.to_str().ok()?;
    let (_, token) = value.split_once(' ')?;
    Some(Secret::new(token))
}

fn wants_nonce(refusal: &CredentialRefusal<'_>) -> bool {
    let challenges = refusal.challenges().unwrap_or_default();
    challenge::parse(&challenges).into_iter().any(|challenge| {
        challenge.scheme == "dpop" && challenge.parameter("error") == Some(USE_NONCE)
    })
}

impl From<AccessTokenError> for CredentialsError {
    fn from(error: AccessTokenError) -> Self {
        match error {
            AccessTokenError::Over(why) => CredentialsError::Login(why),
            AccessTokenError::Unavailable(why) | AccessTokenError::Later { why, .. } => {
                CredentialsError::Unavailable(why)
            }
        }
    }
}
