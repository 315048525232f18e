//! Workload identity: a token that the platform gives to what runs on it, shown to a server's
//! authorization server in place of a login (RFC 7523).
//!
//! Owns reading the platform's token, each time again because platforms replace it, and that it is
//! sent only to its audience.
//! Does not own: where it comes from; the caller hands in a file, a program, the names of secrets,
//! or where to ask.

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use serde_json::Value;
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;
use toolway_transport::OpenOptions;
use toolway_transport::program::{self, ProgramError, ProgramRun};
use toolway_types::{Secret, SecretReference, WorkloadSource};
use url::Url;

use crate::clock::unix_now;
use crate::jwt;
use crate::metadata::shown;
use crate::references::{ReferenceError, ReferenceResolver, no_resolver_error};
use crate::token::{TokenError, Tokens};
use crate::voucher::xaa::TokenTarget;
use crate::web::{WebClient, WebError};

/// The longest token that is read.
const MAX_TOKEN: u64 = 64 * 1024;

/// Where the platform's token comes from.
pub enum PlatformTokenSource {
    /// A file that the platform keeps up to date.
    File(PathBuf),
    /// A program that prints it, made again for each run.
    Program(Box<dyn Fn() -> (ProgramRun, OpenOptions) + Send + Sync>),
    /// The token itself.
    Given(Secret),
    /// A text that names where the token is; it is looked up each time.
    Named {
        /// The text.
        token: Secret,
        /// What it names.
        references: Vec<SecretReference>,
        /// What looks it up, where there is something.
        finder: Option<Box<(ReferenceResolver, OpenOptions)>>,
    },
    /// GitHub Actions, which gives a job a token for any audience.
    GithubActions {
        /// Where to ask.
        url: Url,
        /// What shows that the job asks.
        token: Secret,
        /// What asks: the address is the platform's.
        web: WebClient,
    },
}

impl PlatformTokenSource {
    /// Where an entry says that it comes from. `finder` finds the secrets that it names.
    pub fn of(
        source: &WorkloadSource,
        finder: Option<ReferenceResolver>,
        options: OpenOptions,
    ) -> Self {
        match source.clone() {
            WorkloadSource::File(path) => Self::File(path),
            WorkloadSource::Token { text, references } => Self::Named {
                token: text,
                references,
                finder: finder.map(|finder| Box::new((finder, options))),
            },
            WorkloadSource::GithubActions { url, token } => Self::GithubActions {
                url,
                token,
                // The environment says where it is, and no server.
                web: WebClient::trusted(options.client),
            },
        }
    }
}

impl fmt::Debug for PlatformTokenSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlatformTokenSource::File(path) => formatter.debug_tuple("File").field(path).finish(),
            PlatformTokenSource::Program(_) => formatter.write_str("Program"),
            PlatformTokenSource::Given(_) => formatter.write_str("Given"),
            PlatformTokenSource::Named { .. } => formatter.write_str("Named"),
            PlatformTokenSource::GithubActions { .. } => formatter.write_str("GithubActions"),
        }
    }
}

/// Why there is no token. Shows nothing of the platform's.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The file cannot be read.
    #[error("the workload's token in `{}` cannot be read: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The program has no outcome.
    #[error("the program that prints the workload's token failed: {0}")]
    Program(#[from] ProgramError),
    /// The program says that it failed.
    #[error("the program that prints the workload's token ended with {0}")]
    Status(std::process::ExitStatus),
    /// What names the token leads to nothing.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// GitHub Actions did not answer.
    #[error("GitHub Actions gives no token: {0}")]
    Asked(#[from] WebError),
    /// GitHub Actions did not answer with a token.
    #[error(
        "GitHub Actions gives no token (HTTP {status}): give the job `permissions: id-token: write`"
    )]
    NotGiven {
        /// The HTTP status.
        status: u16,
    },
    /// What was read is no token.
    #[error("what was read is not a JSON web token")]
    NoToken,
    /// It is for another audience. It was not sent.
    #[error(
        "the workload's token is not for {issuer} and was not sent there: give it that audience"
    )]
    Audience {
        /// Where it would have been sent.
        issuer: String,
    },
    /// It is too old. It was not sent.
    #[error("the workload's token has expired: whatever keeps it up to date does not")]
    Expired,
    /// The authorization server has no token endpoint.
    #[error("the authorization server {issuer} has no token endpoint")]
    NoEndpoint {
        /// Which.
        issuer: String,
    },
    /// The authorization server gave no token.
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// Gets a token for a server, and again whenever the last one has expired. Nothing else follows
/// when it fails: there is no user to ask.
///
/// The platform's token must be for the authorization server (its issuer or its token endpoint), or
/// for `audience` where the user or the administrator wrote that down.
pub async fn obtain(
    web: &WebClient,
    target: &TokenTarget<'_>,
    source: &PlatformTokenSource,
    audience: Option<&str>,
) -> Result<Tokens, WorkloadError> {
    let issuer = || shown(&target.server.issuer);
    let endpoint = target
        .server
        .token_endpoint
        .as_ref()
        .ok_or_else(|| WorkloadError::NoEndpoint { issuer: issuer() })?;
    let asked_for = audience.unwrap_or(&target.server.issuer);
    let assertion = read(source, asked_for).await?;
    let claims = jwt::peek(assertion.expose()).ok_or(WorkloadError::NoToken)?;
    let takers = match audience {
        Some(audience) => vec![audience],
        None => vec![target.server.issuer.as_str(), endpoint.as_str()],
    };
    let meant = match claims.get("aud") {
        Some(Value::String(one)) => takers.contains(&one.as_str()),
        Some(Value::Array(all)) => all
            .iter()
            .filter_map(Value::as_str)
            .any(|one| takers.contains(&one)),
        _ => false,
    };
    if !meant {
        return Err(WorkloadError::Audience { issuer: issuer() });
    }
    let ends = claims.get("exp").and_then(Value::as_f64);
    #[expect(clippy::cast_precision_loss, reason = "seconds of this age fit")]
    if ends.is_some_and(|ends| ends <= unix_now() as f64) {
        return Err(WorkloadError::Expired);
    }
    Ok(target.by_assertion(web, endpoint, &assertion).await?)
}

async fn read(source: &PlatformTokenSource, audience: &str) -> Result<Secret, WorkloadError> {
    let bytes = match source {
        PlatformTokenSource::Given(token) => return Ok(token.clone()),
        PlatformTokenSource::Named {
            token,
            references,
            finder,
        } => {
            let filled = match (finder.as_deref(), references.first()) {
                (_, None) => token.clone(),
                (Some((finder, options)), _) => finder.fill(token, references, options).await?,
                (None, Some(first)) => return Err(no_resolver_error(first).into()),
            };
            return Ok(Secret::new(filled.expose().trim()));
        }
        PlatformTokenSource::GithubActions { url, token, web } => {
            return ask(url, token, web, audience).await;
        }
        PlatformTokenSource::File(path) => {
            file(path).await.map_err(|source| WorkloadError::File {
                path: path.clone(),
                source,
            })?
        }
        PlatformTokenSource::Program(make) => {
            let (program, options) = make();
            let finished = program::run(program, &options).await?;
            if !finished.status.success() {
                return Err(WorkloadError::Status(finished.status));
            }
            finished.stdout
        }
    };
    let text = String::from_utf8(bytes).map_err(|_| WorkloadError::NoToken)?;
    Ok(Secret::new(text.trim()))
}

/// Asks GitHub Actions for a token that is for `audience`.
async fn ask(
    url: &Url,
    token: &Secret,
    web: &WebClient,
    audience: &str,
) -> Result<Secret, WorkloadError> {
    let mut url = url.clone();
    url.query_pairs_mut().append_pair("audience", audience);
    let mut shown = HeaderValue::try_from(format!("Bearer {}", token.expose()))
        .map_err(|_| WorkloadError::NoToken)?;
    shown.set_sensitive(true);
    let headers = HeaderMap::from_iter([(AUTHORIZATION, shown)]);
    let reply = web.get_with(&url, headers).await?;
    if !reply.is_success() {
        return Err(WorkloadError::NotGiven {
            status: reply.status,
        });
    }
    let answer = reply.object()?;
    let value = answer.get("value").and_then(Value::as_str);
    value.map(Secret::new).ok_or(WorkloadError::NoToken)
}

async fn file(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path).await?;
    // One more than is taken, so that a longer one is not mistaken for its beginning.
    file.take(MAX_TOKEN + 1).read_to_end(&mut bytes).await?;
    if bytes.len() as u64 > MAX_TOKEN {
        return Err(std::io::Error::other("it is larger than a token can be"));
    }
    Ok(bytes)
}
