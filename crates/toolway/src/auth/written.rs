//! Servers that cannot be logged in to, because their entries hold the login; and servers that only
//! say no, although a login may be what they want.
//!
//! Owns the two questions, and the words for what an entry has in place of a login and a server
//! refuses, or may: a person who is sent to `toolway login` for it goes round in circles.

use std::time::Duration;

use tokio::time::timeout;
use toolway_auth::discovery::describes_itself;
use toolway_types::{
    Failure, FailureKind, Origin, Secret, SecretReference, ServerName, ServerSpec,
};

use super::{Auth, target};
use crate::lock::lock;
use crate::server_source::ServerSource;

/// How long a server may take to say where its logins are made.
const DESCRIBED_WITHIN: Duration = Duration::from_secs(5);

/// What an entry has in place of a login. A token that a person wrote down is one; so is a secret
/// in the path: what a login is for is told to authorization servers, and listed.
pub(super) fn written(spec: &ServerSpec) -> Option<&'static str> {
    let remote = spec.transport.open_to_logins()?;
    let is_header = |(name, _): &(String, Secret)| name.eq_ignore_ascii_case("authorization");
    if remote.headers.iter().any(is_header) {
        return Some("the `Authorization` header of its entry");
    }
    let path = remote.url.path();
    let is_in_path = |reference: &SecretReference| path.contains(&reference.placeholder());
    let is_secret = spec.references.iter().any(is_in_path);
    is_secret.then_some("the secret in the `url` of its entry")
}

/// What it means that such a server wants a login: what its entry has is not good.
pub(crate) fn refused(source: &ServerSource, origin: &Origin) -> Option<Failure> {
    let spec = source.spec()?;
    Some(Failure {
        kind: FailureKind::Credentials,
        message: format!("the server refuses {} ({origin})", written(spec)?),
        stderr: Vec::new(),
    })
}

/// What it may mean that such a server only says that something is forbidden: what its entry has
/// every request show is not good. A gentler word than [`refused`]: addresses and origins are
/// forbidden too.
pub(crate) fn forbidden(source: &ServerSource, origin: &Origin, failure: Failure) -> Failure {
    let Some(shown) = source.spec().and_then(shown) else {
        return failure;
    };
    Failure {
        kind: FailureKind::Credentials,
        message: format!("{}; it may refuse {shown} ({origin})", failure.message),
        ..failure
    }
}

/// What every request shows because its entry says so.
fn shown(spec: &ServerSpec) -> Option<String> {
    if let Some(login) = written(spec) {
        return Some(login.to_owned());
    }
    let headers = spec.transport.open_to_logins()?.headers.iter();
    let names: Vec<String> = headers.map(|(name, _)| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => None,
        [one] => Some(format!("the {one} header of its entry")),
        several => Some(format!("the headers {} of its entry", several.join(", "))),
    }
}

impl Auth {
    /// Whether a login may be what a server wants that only answers 403: it says where logins are
    /// made, and there is none.
    pub(crate) async fn could_help(&self, server: &ServerName, source: &ServerSource) -> bool {
        let (Some(store), Some(target)) = (&self.store, target(server, source)) else {
            return false;
        };
        let has_helper = matches!(source, ServerSource::Spec(spec)
            if spec.transport.open_to_logins().is_some_and(|remote| remote.headers_helper.is_some()));
        if has_helper || lock(&self.shown).contains_key(&target.identity()) {
            return false;
        }
        let described = async {
            let web = store.web(&target).await;
            describes_itself(&web, &target.url).await
        };
        timeout(DESCRIBED_WITHIN, described).await.unwrap_or(false)
    }
}
