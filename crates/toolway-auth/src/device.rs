//! Logging in on another device (RFC 8628): a code to type in there, and asking until it was.
//!
//! Owns the device request, what the user is shown, and the pace of asking.
//! Does not own: showing it, or the token request itself (`token.rs`).

#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until, timeout_at};
use toolway_types::text::{clean_line, is_hidden};
use toolway_types::{Secret, limits, may_be_opened};
use url::Url;

use crate::clock::unix_now;
use crate::token::request::members;
use crate::token::{TokenError, TokenGrant, TokenRequest, Tokens};
use crate::web::{WebClient, WebError, WebReply};

/// The pace when the server does not say (RFC 8628 section 3.2).
const DEFAULT_PACE: Duration = Duration::from_secs(5);
/// How much slower it gets each time the server asks for it.
const SLOWER: Duration = Duration::from_secs(5);
/// The quickest and the slowest pace, whatever the server says.
const PACE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
/// How long a code is good when the server does not say, and the longest that is waited.
const DEFAULT_LIFE: Duration = Duration::from_mins(10);
const MAX_LIFE: Duration = limits::login::DEVICE_TIME;
/// The longest code a user is asked to type.
const MAX_USER_CODE: usize = 64;

/// A device login failed.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The server refused to begin, or to give the token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The answer to the beginning cannot be used.
    #[error("the authorization server's answer cannot be used: {0}")]
    Malformed(&'static str),
    /// The user declined.
    #[error("the login was declined")]
    Declined,
    /// The code was not entered in time.
    #[error("nobody entered the code in time: start the login again")]
    Expired,
}

/// A device login that was begun. The user code is for the user alone.
#[derive(Clone)]
pub struct DeviceLogin {
    device_code: Secret,
    user_code: Secret,
    verification_uri: Url,
    complete: Option<Url>,
    life: Duration,
    pace: Duration,
}

/// The longer address has the code in it.
impl fmt::Debug for DeviceLogin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DeviceLogin")
            .field("verification_uri", &self.verification_uri.as_str())
            .field("life", &self.life)
            .field("pace", &self.pace)
            .finish_non_exhaustive()
    }
}

impl DeviceLogin {
    /// Asks for a code. `endpoint` is the device authorization endpoint.
    pub async fn begin(
        web: &WebClient,
        endpoint: &Url,
        request: &TokenRequest<'_>,
    ) -> Result<Self, DeviceError> {
        let ask = || Self::ask(web, endpoint, request);
        let (reply, secrets) = request.client.ask(ask).await?;
        Self::read(&members(&reply, &secrets)?)
    }

    async fn ask(
        web: &WebClient,
        endpoint: &Url,
        request: &TokenRequest<'_>,
    ) -> Result<(WebReply, Vec<Secret>), TokenError> {
        let said = request.client.introduce(request.issuer, unix_now())?;
        let scope = request.scopes.join(" ");
        let who = said.form.iter();
        let mut form: Vec<(&str, &str)> =
            who.map(|(name, value)| (*name, value.expose())).collect();
        // The endpoint has no other way to learn who asks.
        if !form.iter().any(|(name, _)| *name == "client_id") {
            form.push(("client_id", &request.client.id));
        }
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        if let Some(resource) = request.resource {
            form.push(("resource", resource));
        }
        let reply = web.post_form(endpoint, &form, said.headers).await;
        Ok((reply.map_err(TokenError::Web)?, said.secrets))
    }

    fn read(answer: &Map<String, Value>) -> Result<Self, DeviceError> {
        let text = |name: &str| answer.get(name).and_then(Value::as_str);
        let code = |name, fault| {
            let code = text(name).filter(|code| !code.is_empty());
            code.ok_or(DeviceError::Malformed(fault))
        };
        let device_code = code("device_code", "it has no `device_code`")?;
        let user_code = code("user_code", "it has no `user_code`")?;
        if user_code.chars().count() > MAX_USER_CODE || user_code.chars().any(is_hidden) {
            return Err(DeviceError::Malformed("nobody could type its `user_code`"));
        }
        // Some wrote it before the RFC was done.
        let address = text("verification_uri").or_else(|| text("verification_url"));
        let verification_uri = address.and_then(openable).ok_or(DeviceError::Malformed(
            "it has no `verification_uri` that could be opened",
        ))?;
        // The longer one is a convenience, and must not lead anywhere else.
        let complete = text("verification_uri_complete")
            .and_then(openable)
            .filter(|url| url.origin() == verification_uri.origin());
        let seconds = |name: &str| {
            let value = answer.get(name)?;
            let number = value
                .as_u64()
                .or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()))?;
            (number > 0).then(|| Duration::from_secs(number))
        };
        Ok(Self {
            device_code: Secret::new(device_code),
            user_code: Secret::new(clean_line(user_code)),
            verification_uri,
            complete,
            life: seconds("expires_in").unwrap_or(DEFAULT_LIFE).min(MAX_LIFE),
            pace: seconds("interval")
                .unwrap_or(DEFAULT_PACE)
                .clamp(PACE.0, PACE.1),
        })
    }

    /// What the user types.
    pub fn user_code(&self) -> &Secret {
        &self.user_code
    }

    /// Where they type it.
    pub fn verification_uri(&self) -> &Url {
        &self.verification_uri
    }

    /// The same place with the code in it, for a link or a picture of one.
    pub fn complete(&self) -> Option<&Url> {
        self.complete.as_ref()
    }

    /// How long they have.
    pub fn life(&self) -> Duration {
        self.life
    }

    /// Asks until the user is done.
    pub async fn wait(
        &self,
        web: &WebClient,
        request: &TokenRequest<'_>,
    ) -> Result<Tokens, DeviceError> {
        let grant = TokenGrant::device(&self.device_code);
        let end = Instant::now() + self.life;
        let mut pace = self.pace;
        loop {
            let next = Instant::now() + pace;
            if next >= end {
                sleep_until(end).await;
                return Err(DeviceError::Expired);
            }
            sleep_until(next).await;
            let asked = timeout_at(end, request.send(web, &grant));
            let answer = asked.await.map_err(|_| DeviceError::Expired)?;
            pace = match answer {
                Ok(tokens) => return Ok(tokens),
                Err(error) => next_pace(pace, error)?,
            };
        }
    }
}

/// After which time to ask again, or why not.
fn next_pace(pace: Duration, error: TokenError) -> Result<Duration, DeviceError> {
    let slower = match &error {
        TokenError::Refused { code, .. } => match code.as_str() {
            "authorization_pending" => return Ok(pace),
            "slow_down" => pace + SLOWER,
            "access_denied" => return Err(DeviceError::Declined),
            "expired_token" => return Err(DeviceError::Expired),
            _ => return Err(error.into()),
        },
        TokenError::Busy { retry_after } => retry_after.unwrap_or(pace * 2).max(pace),
        // The RFC asks for a slower pace when the network fails; the code is still good.
        TokenError::Lost
        | TokenError::Failed { .. }
        | TokenError::Web(WebError::Unreachable { .. } | WebError::NotJson { .. }) => pace * 2,
        _ => return Err(error.into()),
    };
    Ok(slower.clamp(PACE.0, PACE.1))
}

/// An address that a user can be sent to (SEC-16).
fn openable(text: &str) -> Option<Url> {
    if text.chars().any(|c| is_hidden(c) || c.is_whitespace()) || text.len() > 8 * 1024 {
        return None;
    }
    Url::parse(text).ok().filter(may_be_opened)
}
