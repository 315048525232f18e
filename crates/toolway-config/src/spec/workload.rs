//! The parts of `oauth` that only some authors may write: a client's secret, the token of the
//! platform that this runs on, and what makes a login less safe.
//!
//! Owns who may write them, and what the environment must hold for them. No secret is written in a
//! file itself.
//! Does not own: getting a login by them (`toolway-auth`).

use std::path::PathBuf;

use serde_json::{Map, Value};
use toolway_types::{Secret, UnannouncedPkce, WorkloadSource, WorkloadSpec};

use super::SpecBuild;
use crate::expansion::mentions_variable;
use crate::http_syntax::parse_url;

/// Where a job of GitHub Actions asks for its token, and what it shows there.
const GITHUB_URL: &str = "ACTIONS_ID_TOKEN_REQUEST_URL";
const GITHUB_TOKEN: &str = "ACTIONS_ID_TOKEN_REQUEST_TOKEN";

/// The ways to a platform's token; an entry has one of them.
const WAYS: [&str; 3] = ["tokenFile", "token", "githubActions"];

impl SpecBuild<'_> {
    pub(super) fn client_secret(&mut self, text: &str) -> Secret {
        const KEY: &str = "oauth.clientSecret";
        self.never_written(KEY, text);
        Secret::new(self.expand_secret(KEY, text))
    }

    /// A secret in a file is known to every reader of the file.
    fn never_written(&mut self, place: &str, text: &str) {
        if !mentions_variable(text) {
            let message =
                format!("`{place}` must be a reference or a variable, not the secret itself");
            let hint = "keep it with `toolway vault set name`, and write `\"${keychain:name}\"`";
            self.refuse(place, message, hint);
        }
    }

    /// Whether a login may be made where PKCE is not announced. A repository cannot weaken what
    /// protects the user.
    pub(super) fn unannounced_pkce(&mut self, oauth: &Map<String, Value>) -> UnannouncedPkce {
        const KEY: &str = "oauth.allowUnannouncedPkce";
        if oauth.get("allowUnannouncedPkce").and_then(Value::as_bool) != Some(true) {
            return UnannouncedPkce::Refused;
        }
        if !self.builder.author.may_weaken_logins() {
            let message = format!(
                "`{KEY}` may not be used here: only your own settings, of scope user or local, \
                 your organisation's and flags can make a login less safe"
            );
            let hint = "add the server with `--scope user` or `--scope local`";
            self.refuse(KEY, message, hint);
            return UnannouncedPkce::Refused;
        }
        UnannouncedPkce::Allowed
    }

    /// The platform's token. It is the user's or the organisation's, and no repository says where
    /// it is.
    pub(super) fn workload(&mut self, map: &Map<String, Value>) -> Option<WorkloadSpec> {
        const KEY: &str = "oauth.workload";
        if !self.builder.author.may_use_machine_identity() {
            let message = format!(
                "`{KEY}` may not be used here: only your own settings, of scope user or local, and \
                 your organisation's can name this machine's identity"
            );
            let hint = "add the server with `--scope user` or `--scope local`";
            self.refuse(KEY, message, hint);
            return None;
        }
        let is_given = |key: &&&str| !matches!(map.get(**key), None | Some(Value::Bool(false)));
        let given: Vec<&str> = WAYS.iter().filter(is_given).copied().collect();
        let text = |key: &str| map.get(key).and_then(Value::as_str);
        let source = match given.as_slice() {
            ["tokenFile"] => {
                let path = self.expand("oauth.workload.tokenFile", text("tokenFile")?);
                Some(WorkloadSource::File(self.absolute(&path)?))
            }
            ["token"] => {
                const KEY: &str = "oauth.workload.token";
                let text = text("token")?;
                self.never_written(KEY, text);
                let text = Secret::new(self.expand_secret(KEY, text));
                let (references, others) = std::mem::take(&mut self.references)
                    .into_iter()
                    .partition(|reference| reference.place == KEY);
                self.references = others;
                Some(WorkloadSource::Token { text, references })
            }
            ["githubActions"] => self.github_actions(),
            _ => {
                let message = format!(
                    "`{KEY}` must have one of `tokenFile`, `token` and `githubActions`, not {}",
                    if given.is_empty() { "none" } else { "several" }
                );
                self.refuse(KEY, message, "say where the platform's token comes from");
                None
            }
        };
        let audience = text("audience").map(|text| self.expand("oauth.workload.audience", text));
        Some(WorkloadSpec {
            source: source?,
            audience,
        })
    }

    fn absolute(&mut self, path: &str) -> Option<PathBuf> {
        const KEY: &str = "oauth.workload.tokenFile";
        let home = self.builder.environment.home();
        let path = match (path.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(path),
        };
        if path.is_absolute() {
            return Some(path);
        }
        if self.missing.is_empty() {
            let message = format!("`{KEY}` is no absolute path");
            self.refuse(KEY, message, "begin the path with `/` or `~/`");
        }
        None
    }

    fn github_actions(&mut self) -> Option<WorkloadSource> {
        const KEY: &str = "oauth.workload.githubActions";
        let environment = self.builder.environment;
        let (Some(url), Some(token)) = (environment.var(GITHUB_URL), environment.var(GITHUB_TOKEN))
        else {
            let message = format!("`{KEY}` needs `{GITHUB_URL}` and `{GITHUB_TOKEN}`");
            let hint = "give the job `permissions: id-token: write`; elsewhere, leave the key out";
            self.refuse(KEY, message, hint);
            return None;
        };
        let token = Secret::new(token);
        match parse_url(url, &["https", "http"]) {
            Ok(url) => Some(WorkloadSource::GithubActions { url, token }),
            Err(why) => {
                self.fault(KEY, format!("`{GITHUB_URL}` {why}"));
                None
            }
        }
    }
}
