//! Who may come in over HTTP: a token of this gateway's own, named ones, those of an issuer, or
//! everybody on this machine.
//!
//! Owns the flags and what is said about them. Checking tokens is `toolway-auth`'s, asking for them
//! the front's (`toolway_gateway::http`).

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use toolway_auth::gateway_token::{GatewayToken, GatewayTokenError};
use toolway_auth::inbound::{InboundAuthorizer, InboundOptions};
use toolway_auth::named_tokens::{NamedToken, NamedTokens};
use toolway_auth::web::WebClient;
use toolway_gateway::http::access::{
    Access, AccessCheck, AccessLease, AccessRefusal, AnyOf, Authenticator, Identity, OAuthAccess,
    OwnerToken,
};
use toolway_types::text;
use url::Url;

use crate::context::Context;
use crate::report::Report;

/// Who may come in.
#[derive(Debug, Args)]
pub(crate) struct AccessArgs {
    /// Let everybody on this machine in
    #[arg(
        long,
        requires = "http",
        conflicts_with_all = ["token_file", "oauth_issuer"],
        help_heading = "Who may come in"
    )]
    no_token: bool,

    /// Where the token of this gateway lies; it is made when the file is absent
    #[arg(
        long,
        value_name = "FILE",
        requires = "http",
        help_heading = "Who may come in"
    )]
    token_file: Option<PathBuf>,

    /// Take tokens of this OAuth issuer. Repeatable
    #[arg(
        long,
        value_name = "URL",
        requires_all = ["http", "audience"],
        help_heading = "Who may come in"
    )]
    oauth_issuer: Vec<String>,

    /// The address of this gateway, which such tokens must be for
    #[arg(
        long,
        value_name = "URL",
        requires = "oauth_issuer",
        help_heading = "Who may come in"
    )]
    audience: Option<Url>,

    /// A scope that every such token must have. Repeatable
    #[arg(
        long,
        value_name = "SCOPE",
        requires = "oauth_issuer",
        help_heading = "Who may come in"
    )]
    scope: Vec<String>,

    /// Which profile a scope is bound to. Repeatable
    #[arg(
        long,
        value_name = "SCOPE=PROFILE",
        requires = "oauth_issuer",
        help_heading = "Who may come in"
    )]
    scope_profile: Vec<String>,
}

/// Who may come in, and what is to be said about it.
pub(super) struct OpenedAccess {
    pub(super) access: Access,
    pub(super) said: Vec<String>,
}

impl AccessArgs {
    /// Finds or makes the tokens.
    pub(super) fn open(&self, context: &Context) -> Result<OpenedAccess, Report> {
        if self.no_token {
            let said =
                "warning: every program of this machine can use this gateway, whoever runs it";
            return Ok(OpenedAccess {
                access: Access::Open,
                said: vec![said.to_owned()],
            });
        }
        let mut all: Vec<Arc<dyn Authenticator>> = Vec::new();
        let mut said = Vec::new();
        let files = context.setup.files();
        let path = self.token_file.clone();
        let path = path.unwrap_or_else(|| files.gateway_token());
        let token = GatewayToken::load_or_create(&path).map_err(|error| {
            let report = Report::configuration(error.to_string());
            let shown = text::clean_line(&path.display().to_string()).into_owned();
            match error {
                GatewayTokenError::Open(_) => report.hint(format!(
                    "make another where others cannot read it: `rm {shown}`, and it is made anew"
                )),
                GatewayTokenError::Malformed(_) => report.hint(format!(
                    "name a file that is not there, and a token is made in it; or `rm {shown}`"
                )),
                _ => report,
            }
        })?;
        said.push(format!(
            "clients show the token in {}",
            text::clean_line(&path.display().to_string())
        ));
        all.push(Arc::new(OwnerToken::new(token.token().expose(), "http")));
        all.push(Arc::new(NamedAccess(Arc::new(NamedTokens::open(
            files.tokens(),
        )))));
        // Last: its refusal tells clients where to get a token.
        if let Some(oauth) = self.oauth(context)? {
            all.push(oauth);
        }
        Ok(OpenedAccess {
            access: Access::Checked(Arc::new(AnyOf(all))),
            said,
        })
    }

    fn oauth(&self, context: &Context) -> Result<Option<Arc<dyn Authenticator>>, Report> {
        let Some(audience) = &self.audience else {
            return Ok(None);
        };
        let mut profiles = Vec::new();
        for pair in &self.scope_profile {
            let (scope, profile) = pair.split_once('=').ok_or_else(|| {
                Report::usage(format!("`--scope-profile {pair}` is no `SCOPE=PROFILE`"))
            })?;
            profiles.push((scope.to_owned(), profile.to_owned()));
        }
        let offered = profiles.iter().map(|(scope, _)| scope.clone());
        let options = InboundOptions {
            scopes: self.scope.clone(),
            offered: self.scope.iter().cloned().chain(offered).collect(),
            name: Some("Toolway".to_owned()),
            ..InboundOptions::new(audience.clone(), self.oauth_issuer.iter().cloned())
        };
        let web = WebClient::trusted(context.setup.http_client());
        let authorizer = InboundAuthorizer::new(options, web)
            .map_err(|error| Report::usage(error.to_string()))?;
        Ok(Some(Arc::new(OAuthAccess::new(authorizer, profiles))))
    }
}

/// Takes the tokens that `toolway tokens` made.
struct NamedAccess(Arc<NamedTokens>);

impl NamedAccess {
    /// Lasts until the token is revoked or over.
    fn lease(&self, token: Arc<NamedToken>) -> AccessLease {
        let tokens = Arc::clone(&self.0);
        AccessLease::lasting(move || tokens.is_good(&token))
    }
}

impl Authenticator for NamedAccess {
    fn check<'a>(&'a self, token: Option<&'a str>) -> AccessCheck<'a> {
        let checked = match token.map(|token| self.0.check(token)) {
            None => Err(AccessRefusal::no_token()),
            Some(None) => Err(AccessRefusal::unknown_token()),
            Some(Some(named)) => Ok(Arc::new(Identity {
                // Another token of this name, made after this one was revoked, is another's.
                principal: format!("token:{}:{}", named.name, named.mark).into(),
                shown: named.name.as_str().into(),
                profile: named.profile.as_deref().map(Into::into),
                scopes: Vec::new(),
                is_owner: false,
                lease: self.lease(named),
            })),
        };
        Box::pin(std::future::ready(checked))
    }
}
