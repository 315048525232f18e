//! Workload identity: a token that the platform gives to what runs on it, shown to a server's
//! authorization server in place of a login (RFC 7523).
//!
//! Owns reading the platform's token, each time anew because platforms replace it, and that it is
//! shown to nobody it is not for.
//! Does not own: where it comes from; the caller hands in a file or a program.

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;
use toolway_transport::OpenOptions;
use toolway_transport::program::{self, Program, ProgramError};
use toolway_types::Secret;

use crate::jwt;
use crate::metadata::shown;
use crate::token::{Grant, TokenError, TokenRequest, Tokens, unix_now};
use crate::web::Web;
use crate::xaa::Target;

/// The longest token that is read.
const MAX_TOKEN: u64 = 64 * 1024;

/// Where the platform's token comes from.
pub enum Source {
    /// A file that the platform keeps up to date.
    File(PathBuf),
    /// A program that prints it, made anew for each run.
    Program(Box<dyn Fn() -> (Program, OpenOptions) + Send + Sync>),
    /// The token itself.
    Given(Secret),
}

impl fmt::Debug for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path) => formatter.debug_tuple("File").field(path).finish(),
            Source::Program(_) => formatter.write_str("Program"),
            Source::Given(_) => formatter.write_str("Given"),
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
    /// What was read is no token.
    #[error("what was read is not a JSON web token")]
    NoToken,
    /// It is for somebody else. It was not sent.
    #[error(
        "the workload's token is not for {issuer} and was not sent there: give it that audience"
    )]
    Audience {
        /// To whom it would have gone.
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
/// when it fails: there is no person to ask.
///
/// The platform's token must be for the authorization server (its issuer or its token endpoint),
/// or for `audience` where the person or the administrator wrote that down.
pub async fn obtain(
    web: &Web,
    target: &Target<'_>,
    source: &Source,
    audience: Option<&str>,
) -> Result<Tokens, WorkloadError> {
    let issuer = || shown(&target.server.issuer);
    let endpoint = target
        .server
        .token_endpoint
        .as_ref()
        .ok_or_else(|| WorkloadError::NoEndpoint { issuer: issuer() })?;
    let assertion = read(source).await?;
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
    let request = TokenRequest {
        endpoint,
        issuer: &target.server.issuer,
        client: target.client,
        resource: Some(target.resource),
        scopes: target.scopes,
        dpop: target.dpop,
    };
    let tokens = request.send(web, Grant::JwtBearer(&assertion)).await?;
    Ok(Tokens {
        refresh: None,
        ..tokens
    })
}

async fn read(source: &Source) -> Result<Secret, WorkloadError> {
    let bytes = match source {
        Source::Given(token) => return Ok(token.clone()),
        Source::File(path) => file(path).await.map_err(|source| WorkloadError::File {
            path: path.clone(),
            source,
        })?,
        Source::Program(make) => {
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
