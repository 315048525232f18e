//! What comes back from an authorization server, read and not yet believed.
//!
//! Owns taking the parameters out of a query, and out of whatever a user pasted.

use toolway_types::{Secret, Untrusted};
use url::{Url, form_urlencoded};

/// The longest text that is looked into.
const MAX_PASTE: usize = 64 * 1024;

/// The parameters of an authorization response.
#[derive(Debug, Clone, Default)]
pub struct AuthorizationResponse {
    pub(super) code: Option<Secret>,
    pub(super) state: Option<Secret>,
    /// As received: it is compared byte for byte.
    pub(super) issuer: Option<String>,
    pub(super) error: Option<Untrusted>,
    pub(super) error_description: Option<Untrusted>,
    /// A parameter that is there more than once.
    pub(super) repeated: Option<&'static str>,
}

impl AuthorizationResponse {
    /// Reads a query, without its question mark.
    pub fn from_query(query: &str) -> Self {
        let mut answer = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = value.into_owned();
            let (before, name) = match name.as_ref() {
                "code" => (answer.code.replace(Secret::new(value)).is_some(), "code"),
                "state" => (answer.state.replace(Secret::new(value)).is_some(), "state"),
                "iss" => (answer.issuer.replace(value).is_some(), "iss"),
                "error" => (
                    answer.error.replace(Untrusted::new(value)).is_some(),
                    "error",
                ),
                "error_description" => {
                    answer.error_description = Some(Untrusted::new(value));
                    continue;
                }
                _ => continue,
            };
            if before {
                answer.repeated = Some(name);
            }
        }
        answer
    }
}

/// What a user pasted is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasteError {
    /// Nothing.
    #[error("nothing was pasted: paste the whole address that the browser shows after the login")]
    Empty,
    /// A code alone belongs to no login that could be told.
    #[error(
        "that is not the whole address: paste all of what the browser's address bar shows after the login, from `http` to the end"
    )]
    NotWhole,
    /// The address of the login page, which is the way there and not the way back.
    #[error(
        "that is the address of the login page: log in there first, then paste the address that the browser shows afterwards"
    )]
    LoginPage,
}

/// Reads what a user pasted: the address the browser ended at, or its query. Line breaks that a
/// terminal or a mail put into it are taken out.
pub fn pasted(text: &str) -> Result<AuthorizationResponse, PasteError> {
    let text: String = text
        .chars()
        .take(MAX_PASTE)
        .filter(|c| !c.is_whitespace() && !c.is_control())
        .collect();
    let text = text.trim_matches(['"', '\'', '<', '>', '`']);
    if text.is_empty() {
        return Err(PasteError::Empty);
    }
    let query = match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => {
            url.query().unwrap_or_default().to_owned()
        }
        _ => text.trim_start_matches('?').to_owned(),
    };
    let answer = AuthorizationResponse::from_query(&query);
    let mut names = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
    if names.any(|name| name == "code_challenge") {
        return Err(PasteError::LoginPage);
    }
    if answer.state.is_none() || (answer.code.is_none() && answer.error.is_none()) {
        return Err(PasteError::NotWhole);
    }
    Ok(answer)
}
