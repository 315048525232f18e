//! The account: a user's login at a provider of connectors.
//!
//! Owns what a request to the provider carries, that a refused one is asked again once with another
//! token (another process may have renewed it), and getting the directory of connectors.
//! Does not own: the login ([`stored`]), what settings and a directory mean (`toolway-config`), how
//! a token is renewed (`refresh.rs`), or requests to connectors (the transport).

pub mod stored;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use tokio::sync::watch;
use toolway_types::Secret;
use url::Url;

pub use self::stored::{AccountLoginTarget, AccountLogout, AccountStatus, StoredAccount};
use crate::refresh::LoginEnd;
use crate::web::{WebClient, WebError, shown};

/// A provider, as far as asking it goes.
#[derive(Debug, Clone)]
pub struct AccountSpec {
    /// The provider's host, for people.
    pub host: String,
    /// Where the directory of connectors lies.
    pub directory: Url,
    /// What every request carries besides the token.
    pub headers: Vec<(String, Secret)>,
    /// The header of the token.
    pub token_header: String,
    /// What stands before the token in it; nothing when empty.
    pub token_prefix: String,
}

/// Why the provider is not asked, or did not answer. No message holds a token.
#[derive(Debug, thiserror::Error)]
pub enum ProviderAccountError {
    /// There is no login.
    #[error("nobody is logged in at {host}; run `toolway account login`")]
    LoggedOut {
        /// The provider.
        host: String,
    },
    /// The login is not good any more.
    #[error("the login at {host} has ended ({why}); run `toolway account login`")]
    Ended {
        /// The provider.
        host: String,
        /// What ended it.
        why: LoginEnd,
    },
    /// The provider takes neither the token nor the one that came in its place.
    #[error("{host} does not take the account's token; run `toolway account login`")]
    Refused {
        /// The provider.
        host: String,
    },
    /// The token cannot be had now.
    #[error("{0}")]
    Unavailable(String),
    /// The provider answered something else.
    #[error("{url} answered HTTP {status}")]
    Status {
        /// The address without its query.
        url: String,
        /// The status.
        status: u16,
    },
    /// It could not be asked, or its answer is not JSON.
    #[error(transparent)]
    Web(#[from] WebError),
}

impl ProviderAccountError {
    /// Whether a user has to log in.
    pub fn wants_login(&self) -> bool {
        matches!(
            self,
            Self::LoggedOut { .. } | Self::Ended { .. } | Self::Refused { .. }
        )
    }
}

/// An account at a provider.
#[derive(Clone)]
pub struct ProviderAccount {
    spec: Arc<AccountSpec>,
    web: WebClient,
    tokens: Arc<StoredAccount>,
}

impl fmt::Debug for ProviderAccount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ProviderAccount")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

impl ProviderAccount {
    /// The account that these tokens are for.
    pub fn new(spec: AccountSpec, web: WebClient, tokens: Arc<StoredAccount>) -> Self {
        Self {
            spec: Arc::new(spec),
            web,
            tokens,
        }
    }

    /// The provider's host.
    pub fn host(&self) -> &str {
        &self.spec.host
    }

    /// Changes whenever the user logs in or out, in any process.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.tokens.changes()
    }

    /// Waits until what is being renewed is saved, and no longer than this. For a program that is
    /// about to end.
    pub async fn settle(&self, within: Duration) {
        self.tokens.settle(within).await;
    }

    /// What a request carries now.
    pub async fn present(&self) -> Result<HeaderMap, ProviderAccountError> {
        let token = self.tokens.token(None).await?;
        Ok(self.headers(&token))
    }

    /// What a request carries that was refused with these headers; nothing when there is nothing
    /// else to try.
    pub async fn instead_of(
        &self,
        sent: &HeaderMap,
    ) -> Result<Option<HeaderMap>, ProviderAccountError> {
        let Some(refused) = self.token_in(sent) else {
            return Ok(None);
        };
        let token = self.tokens.token(Some(&refused)).await?;
        Ok((token != refused).then(|| self.headers(&token)))
    }

    /// The directory of connectors, as the provider writes it.
    pub async fn directory(&self) -> Result<Map<String, Value>, ProviderAccountError> {
        let url = &self.spec.directory;
        let sent = self.present().await?;
        let mut reply = self.web.get_with(url, sent.clone()).await?;
        if reply.status == 401
            && let Some(other) = self.instead_of(&sent).await?
        {
            reply = self.web.get_with(url, other).await?;
        }
        match reply.status {
            200..300 => Ok(reply.object()?),
            401 => Err(ProviderAccountError::Refused {
                host: self.spec.host.clone(),
            }),
            status => Err(ProviderAccountError::Status {
                url: shown(url),
                status,
            }),
        }
    }

    fn headers(&self, token: &Secret) -> HeaderMap {
        let spec = &self.spec;
        let token = match spec.token_prefix.as_str() {
            "" => token.expose().to_owned(),
            prefix => format!("{prefix} {}", token.expose()),
        };
        let token = (&spec.token_header, token.as_str());
        let others = spec
            .headers
            .iter()
            .map(|(name, value)| (name, value.expose()));
        let mut headers = HeaderMap::new();
        // The settings were checked for what a header may hold, and so was the token.
        for (name, value) in others.chain([token]) {
            let name = HeaderName::try_from(name.as_str());
            let value = HeaderValue::try_from(value);
            if let (Ok(name), Ok(mut value)) = (name, value) {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        headers
    }

    fn token_in(&self, headers: &HeaderMap) -> Option<Secret> {
        let value = headers
            .get(self.spec.token_header.as_str())?
            .to_str()
            .ok()?;
        let token = value.strip_prefix(self.spec.token_prefix.as_str())?;
        Some(Secret::new(token.trim_start()))
    }
}
