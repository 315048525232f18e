//! References to secrets: where they may stand, and who may use them.
//!
//! Owns the rules. A reference is looked up when a connection is made, never here. Only a person's
//! own files may name a person's secrets, and no secret becomes an argument, which everyone on the
//! machine can read, or a part of what decides where a connection goes.

use toolway_types::{ReferenceKind, Scope, SecretReference};
use url::Url;

use super::Work;

impl Work<'_> {
    /// Expands a string that may not hold a secret.
    pub(super) fn expand(&mut self, key: &str, text: &str) -> String {
        let mut found = None;
        let expanded = self
            .variables
            .expand(text, &mut self.missing, |kind, target| {
                found.get_or_insert_with(|| SecretReference {
                    kind,
                    target: target.to_owned(),
                    place: key.to_owned(),
                });
                String::new()
            });
        if let Some(reference) = found {
            let why = if key == "args" {
                "everyone on this machine can read arguments"
            } else {
                "a secret cannot stand there"
            };
            self.refuse(
                key,
                format!("`{key}` may not use `{reference}`: {why}"),
                "use it in `env`, in `headers` or in the query of `url`",
            );
        }
        expanded
    }

    /// Expands a string that may hold a secret: `place` is its full name.
    pub(super) fn expand_secret(&mut self, key: &str, place: &str, text: &str) -> String {
        let mut found = Vec::new();
        let home = self.builder.environment.home();
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
                    place: place.to_owned(),
                };
                let word = reference.placeholder();
                found.push(reference);
                word
            });
        for reference in found {
            self.admit(key, reference);
        }
        expanded
    }

    fn admit(&mut self, key: &str, reference: SecretReference) {
        let place = &reference.place;
        if !matches!(self.builder.scope, Scope::User | Scope::Local) {
            let message = format!(
                "`{place}` may not use `{reference}`: only your own settings, of scope user or \
                 local, can name your secrets"
            );
            let hint = "add the server with `--scope user` or `--scope local`, or read a variable";
            return self.refuse(key, message, hint);
        }
        if reference.target.is_empty() {
            let message = format!("`{place}` has `{reference}`, which names nothing");
            return self.refuse(
                key,
                message,
                "write a name, a path or a command after the colon",
            );
        }
        if reference.kind == ReferenceKind::File && !reference.target.starts_with('/') {
            let message = format!("`{place}` has `{reference}`, which is no absolute path");
            return self.refuse(key, message, "begin the path with `/` or `~/`");
        }
        if !self.references.contains(&reference) {
            self.references.push(reference);
        }
    }

    /// In an address a reference stands in the query only: the rest decides who gets the secret,
    /// and what the organisation allows.
    pub(super) fn check_address(&mut self, key: &str, url: &Url) {
        let mut bare = url.clone();
        bare.set_query(None);
        let elsewhere = self
            .references
            .iter()
            .find(|reference| bare.as_str().contains(&reference.placeholder()))
            .map(ToString::to_string);
        if let Some(reference) = elsewhere {
            let message = format!("`{key}` may use `{reference}` in its query only");
            self.refuse(key, message, "use a header, or a variable: `${VAR}`");
        }
    }

    fn refuse(&mut self, key: &str, message: String, hint: &str) {
        self.fault(key, message);
        if let Some(diagnosis) = self.faults.last_mut() {
            diagnosis.hint = Some(hint.to_owned());
        }
    }
}
