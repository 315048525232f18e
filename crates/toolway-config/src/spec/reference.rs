//! References to secrets: where they may stand, and who may use them.
//!
//! Owns the rules. A reference is looked up when a connection or a login is made, never here. Only
//! a person's own files may name a person's secrets, and no secret becomes an argument, which
//! everyone on the machine can read, or a part of what decides which program runs or where a
//! connection goes. `docs/vault.md` has the table.

use std::fmt::Display;

use toolway_types::name::as_word;
use toolway_types::{Origin, ReferenceKind, Scope, SecretReference};
use url::Url;

use super::SpecBuild;

impl SpecBuild<'_> {
    /// Expands a string that may not hold a secret: `place` is its full name.
    pub(super) fn expand(&mut self, place: &str, text: &str) -> String {
        let mut found = None;
        let expanded = self
            .variables
            .expand(text, &mut self.missing, |kind, target| {
                found.get_or_insert_with(|| SecretReference {
                    kind,
                    target: target.to_owned(),
                    place: place.to_owned(),
                    file: None,
                });
                String::new()
            });
        if let Some(reference) = found {
            let (why, hint) = refusal(place);
            let message = format!("`{place}` may not use `{reference}`: {why}");
            self.refuse(place, message, hint);
        }
        expanded
    }

    /// Expands a string that may hold a secret: `place` is its full name.
    pub(super) fn expand_secret(&mut self, place: impl Display, text: &str) -> String {
        if !text.contains("${") {
            return text.to_owned();
        }
        let mut found = Vec::new();
        let home = self.builder.environment.home();
        let file = match self.builder.source.origin(0) {
            Origin::File { path, .. } => Some(path.to_path_buf()),
            _ => None,
        };
        let expanded = self
            .variables
            .expand(text, &mut self.missing, |kind, target| {
                let target = match (kind, target.strip_prefix("~/"), home) {
                    (ReferenceKind::File, Some(rest), Some(home)) => {
                        home.join(rest).to_string_lossy().into_owned()
                    }
                    _ => target.to_owned(),
                };
                let reference = SecretReference {
                    kind,
                    target,
                    place: place.to_string(),
                    file: file.clone(),
                };
                let word = reference.placeholder();
                found.push(reference);
                word
            });
        for reference in found {
            self.admit(reference);
        }
        expanded
    }

    fn admit(&mut self, reference: SecretReference) {
        let place = reference.place.clone();
        if !self.builder.author.may_name_secrets() {
            // Local settings are the user's own once approved.
            if self.builder.scope == Scope::Local {
                let message = format!(
                    "`{place}` may not use `{reference}`: nobody on this machine approved this entry"
                );
                let name = as_word(self.builder.name.as_str());
                let hint = format!("if you wrote it, run `toolway approve {name}`");
                return self.refuse(&place, message, &hint);
            }
            let message = format!(
                "`{place}` may not use `{reference}`: only your own settings, of scope user or \
                 local, can name your secrets"
            );
            let hint = "add the server with `--scope user` or `--scope local`, or read a variable";
            return self.refuse(&place, message, hint);
        }
        if reference.target.is_empty() {
            let message = format!("`{place}` has `{reference}`, which names nothing");
            return self.refuse(
                &place,
                message,
                "write a name, a path or a command after the colon",
            );
        }
        if reference.kind == ReferenceKind::File && !reference.target.starts_with('/') {
            let message = format!("`{place}` has `{reference}`, which is no absolute path");
            return self.refuse(&place, message, "begin the path with `/` or `~/`");
        }
        if !self.references.contains(&reference) {
            self.references.push(reference);
        }
    }

    /// The reference in an address that decides where it leads. Scheme, host and port decide who
    /// gets the secret; what follows `#` is never sent. A text that is no address may have become
    /// one by its value.
    pub(super) fn misled(&self, key: &str, url: Option<&Url>) -> Option<String> {
        let leads = |reference: &&SecretReference| {
            let word = reference.placeholder();
            reference.place == key
                && url.is_none_or(|url| {
                    let parts = [Some(url.scheme()), url.host_str(), url.fragment()];
                    parts.into_iter().flatten().any(|part| part.contains(&word))
                })
        };
        let found = self.references.iter().find(leads)?;
        Some(found.to_string())
    }

    pub(super) fn refuse_address(&mut self, key: &str, reference: &str) {
        let message = format!(
            "`{key}` may use `{reference}` in its path, its query, its user and its password only"
        );
        let hint = "write where the server is, or read a variable: `${VAR}`";
        self.refuse(key, message, hint);
    }

    pub(super) fn refuse(&mut self, place: &str, message: String, hint: &str) {
        self.fault(place, message);
        if let Some(diagnosis) = self.faults.last_mut() {
            diagnosis.hint = Some(hint.to_owned());
        }
    }
}

/// Why a secret may not stand somewhere, and where it may instead: what the last key of a place
/// says.
fn refusal(place: &str) -> (&'static str, &'static str) {
    match place.rsplit('.').next().unwrap_or(place) {
        "args" => (
            "everyone on this machine can read arguments",
            "use it in `env`: the server gets it as a variable",
        ),
        "headersHelper" => (
            "everyone on this machine can read arguments",
            "use it in `env`: the helper gets it as a variable",
        ),
        "PATH" => (
            "no secret decides which program runs",
            "write the directories, and use the secret in another variable",
        ),
        "command" => (
            "no secret decides which program runs",
            "write the program's name, and use the secret in `env`",
        ),
        "cwd" => (
            "no secret decides where a program runs",
            "write the directory, and use the secret in `env`",
        ),
        "sessionTokenFile" | "tokenFile" => (
            "it names a file",
            "write the path: the file is read when it is needed",
        ),
        "authServerMetadataUrl" => (
            "it decides who gets the login",
            "write the address, or read a variable: `${VAR}`",
        ),
        "scopes" | "audience" => (
            "it is shown wherever the login is",
            "write it, or read a variable: `${VAR}`",
        ),
        _ => (
            "a secret cannot stand there",
            "use it in `env`, in `headers` or in the path or the query of `url`",
        ),
    }
}
