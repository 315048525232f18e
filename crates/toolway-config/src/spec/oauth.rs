//! The `oauth` of an entry: how to log in.
//!
//! Owns its values once expanded; and of the parts that only some authors may write (a client's
//! secret, who vouches, what makes a login less safe) who may, and what the environment must hold
//! for them. No secret is written in a file itself.
//! Does not own: getting a login by them (`toolway-auth`).

use std::path::PathBuf;

use serde_json::{Map, Value};
use toolway_types::name::check_account;
use toolway_types::{
    CrossApp, OauthSpec, Secret, UnannouncedPkce, VoucherKind, VoucherSpec, WorkloadSource,
};

use super::SpecBuild;
use crate::expansion::mentions_variable;
use crate::http_syntax::parse_url;
use crate::keys::WORKLOAD_WAYS;
use crate::policy::cross_app::cross_app_enabled;

/// Where a job of GitHub Actions asks for its token, and what it shows there.
const GITHUB_URL: &str = "ACTIONS_ID_TOKEN_REQUEST_URL";
const GITHUB_TOKEN: &str = "ACTIONS_ID_TOKEN_REQUEST_TOKEN";

impl SpecBuild<'_> {
    pub(super) fn oauth(&mut self) -> Option<OauthSpec> {
        let oauth = self
            .builder
            .definition
            .get("oauth")
            .and_then(Value::as_object)?;
        let text = |key: &str| oauth.get(key).and_then(Value::as_str);
        let client_id = text("clientId").map(|id| self.expand_secret("oauth.clientId", id));
        let client_secret = text("clientSecret").map(|secret| self.client_secret(secret));
        let auth_server_metadata_url = text("authServerMetadataUrl").and_then(|url| {
            const KEY: &str = "oauth.authServerMetadataUrl";
            let url = self.expand(KEY, url);
            parse_url(&url, &["https", "http"])
                .map_err(|why| self.fault(KEY, format!("`{KEY}` {why}")))
                .ok()
        });
        let account = text("account").map(|account| self.expand("oauth", account));
        if let Some(Err(why)) = account.as_deref().map(check_account) {
            self.fault("oauth", format!("`oauth.account` {why}"));
        }
        let scopes = oauth.get("scopes").map(|scopes| match scopes {
            Value::String(list) => self
                .expand("oauth.scopes", list)
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
            Value::Array(list) => list
                .iter()
                .filter_map(Value::as_str)
                .map(|scope| self.expand("oauth.scopes", scope))
                .collect(),
            _ => Vec::new(),
        });
        let voucher = self.voucher(oauth);
        let callback_port = oauth
            .get("callbackPort")
            .and_then(Value::as_u64)
            .and_then(|p| u16::try_from(p).ok());
        let xaa = match oauth.get("xaa").and_then(Value::as_bool) {
            Some(true) if cross_app_enabled(self.builder.environment) => CrossApp::Preferred,
            _ => CrossApp::Off,
        };
        let unannounced_pkce = self.unannounced_pkce(oauth);
        Some(OauthSpec {
            client_id,
            client_secret,
            callback_port,
            auth_server_metadata_url,
            scopes,
            xaa,
            account,
            voucher,
            unannounced_pkce,
            references: Vec::new(),
        })
    }

    fn client_secret(&mut self, text: &str) -> Secret {
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

    /// Refuses a key whose author may not write it.
    fn not_here(&mut self, key: &str, others: &str) {
        let message = format!(
            "`{key}` may not be used here: only your own settings, of scope user or local, {others}"
        );
        let hint = "add the server with `--scope user` or `--scope local`";
        self.refuse(key, message, hint);
    }

    /// Whether a login may be made where PKCE is not announced. A repository cannot weaken what
    /// protects the user.
    fn unannounced_pkce(&mut self, oauth: &Map<String, Value>) -> UnannouncedPkce {
        const KEY: &str = "oauth.allowUnannouncedPkce";
        if oauth.get("allowUnannouncedPkce").and_then(Value::as_bool) != Some(true) {
            return UnannouncedPkce::Refused;
        }
        if !self.builder.author.may_weaken_logins() {
            self.not_here(
                KEY,
                "your organisation's and flags can make a login less safe",
            );
            return UnannouncedPkce::Refused;
        }
        UnannouncedPkce::Allowed
    }

    /// Another party whose word is the login. It is the user's or the organisation's, and no
    /// repository says where it is.
    fn voucher(&mut self, oauth: &Map<String, Value>) -> Option<VoucherSpec> {
        let named = |kind: VoucherKind| Some((kind, oauth.get(kind.as_str())?));
        let (kind, value) = VoucherKind::ALL.into_iter().find_map(named)?;
        if !self.builder.author.may_use_machine_identity() {
            let key = format!("oauth.{}", kind.as_str());
            self.not_here(
                &key,
                "and your organisation's can name this machine's identity",
            );
            return None;
        }
        match kind {
            VoucherKind::Workload => self.workload(value.as_object()?),
        }
    }

    /// The platform's token.
    fn workload(&mut self, map: &Map<String, Value>) -> Option<VoucherSpec> {
        const KEY: &str = "oauth.workload";
        let is_given = |key: &&&str| !matches!(map.get(**key), None | Some(Value::Bool(false)));
        let given: Vec<&str> = WORKLOAD_WAYS.iter().filter(is_given).copied().collect();
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
        Some(VoucherSpec::Workload {
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
