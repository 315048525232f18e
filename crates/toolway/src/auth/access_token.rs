//! Access tokens: what a login gives a request, and the interface to what keeps logins.
//!
//! Owns the rule that a token is sent only where it was issued for (SEC-19).
//! Does not own: how logins are kept and renewed (`toolway-auth`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::server_source::definition::ServerIdentity;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use toolway_auth::token::TokenKind;
use toolway_auth::token::dpop::DpopKey;
use toolway_types::{OauthSpec, Secret, ServerName, UrlRules, request_url};
use url::Url;

/// The server that a login is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginTarget {
    /// Its name.
    pub server: ServerName,
    /// The digest of its definition: another definition under the same name is another server.
    pub definition: String,
    /// Its address.
    pub url: Url,
    /// The `oauth` settings of its entry. Without an account there it is `default`, else the newest.
    pub oauth: OauthSpec,
    /// The hosts that policy denies, also for redirects of the login.
    pub rules: Arc<UrlRules>,
}

impl LoginTarget {
    /// What is remembered of it is known by.
    pub(super) fn identity(&self) -> ServerIdentity {
        ServerIdentity {
            name: self.server.clone(),
            definition: self.definition.as_str().into(),
            account: self.oauth.account.as_deref().map(Into::into),
        }
    }
}

/// What a request shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessToken {
    /// The access token.
    pub access: Secret,
    /// How it is shown.
    pub kind: TokenKind,
    /// The key that it is bound to.
    pub key: Option<DpopKey>,
    /// Who issued it.
    pub issuer: String,
    /// What it was issued for.
    pub resource: String,
    /// When it should be renewed, in seconds since 1970; unknown when the issuer did not say.
    pub renew_at: Option<u64>,
}

impl AccessToken {
    /// Whether it may be shown at this address: the one it was issued for, or below it.
    pub(crate) fn is_for(&self, url: &Url) -> bool {
        let Ok(resource) = self.resource.parse::<Url>() else {
            return false;
        };
        let beneath = |path: &str, above: &str| {
            let above = above.trim_end_matches('/');
            path.strip_prefix(above)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        request_url(&resource).origin() == request_url(url).origin()
            && beneath(url.path(), resource.path())
    }
}

/// Why there is no pass although there is a login. The message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessTokenError {
    /// The login is over: a person has to log in again.
    #[error("{0}")]
    Over(String),
    /// It cannot be renewed or read at the moment.
    #[error("{0}")]
    Unavailable(String),
    /// The authorization server wants to be left alone for a while.
    #[error("{why}")]
    Later {
        /// What it said.
        why: String,
        /// For how long.
        after: Duration,
    },
}

/// Who keeps logins and renews them.
pub trait AccessTokenSource: Send + Sync + fmt::Debug {
    /// The access token for a server, renewed when it is due, or when `refused` is still the newest
    /// one. `None` without a login.
    fn access_token<'a>(
        &'a self,
        target: &'a LoginTarget,
        refused: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<Option<AccessToken>, AccessTokenError>>;

    /// Counts up whenever a login was saved or removed, by any process.
    fn changes(&self) -> watch::Receiver<u64>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_19_an_access_token_is_sent_only_where_it_was_issued_for() {
        let access_token = |resource: &str| AccessToken {
            access: Secret::new(toolway_testkit::marked!("t-")),
            kind: TokenKind::Bearer,
            key: None,
            issuer: "https://issuer.example".to_owned(),
            resource: resource.to_owned(),
            renew_at: None,
        };
        let is_for =
            |resource: &str, url: &str| access_token(resource).is_for(&url.parse().unwrap());
        for (resource, url) in [
            ("https://a.example/mcp", "https://a.example/mcp"),
            ("https://a.example/mcp/", "https://a.example/mcp"),
            ("https://a.example", "https://a.example/mcp"),
            (
                "https://a.example/mcp",
                "https://a.example/mcp/messages?session=1",
            ),
            ("https://a.example:443/mcp", "wss://a.example/mcp"),
        ] {
            assert!(is_for(resource, url), "{resource} {url}");
        }
        for (resource, url) in [
            ("https://a.example/mcp", "https://a.example/mcp2"),
            ("https://a.example/mcp", "https://a.example/"),
            ("https://a.example/mcp", "http://a.example/mcp"),
            ("https://a.example/mcp", "https://a.example:8443/mcp"),
            ("https://a.example/mcp", "https://b.example/mcp"),
            ("https://a.example", "https://a.example.evil/"),
            ("not a url", "https://a.example/"),
        ] {
            assert!(!is_for(resource, url), "{resource} {url}");
        }
    }
}
