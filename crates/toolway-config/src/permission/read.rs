//! Reads one `permissions` object, collecting what is wrong with it.
//!
//! Owns the keys of the object and its diagnoses; what a rule's text means is `rule.rs`.

use std::sync::Arc;

use serde_json::Value;
use toolway_types::{Diagnosis, Origin, Scope, nearest, text};

use super::classifier::{self, Classifier};
use super::rule::{BrokenRule, PermissionRule};
use super::{PermissionList, PermissionMode, Permissions, PinPolicy, is_policy, not_here};
use crate::json::kind_of;
use crate::keys::listed;

pub(super) fn permissions(
    value: &Value,
    source: &Origin,
    scope: Scope,
) -> (Permissions, Vec<Diagnosis>) {
    let mut reader = PermissionsReader {
        path: PATH,
        source,
        scope,
        read: Permissions::empty(),
        found: Vec::new(),
    };
    reader.object(value);
    (reader.read, reader.found)
}

/// Reads rules that only narrow, each key with its own place.
pub(super) fn narrowing(
    value: &Value,
    path: &str,
    place: &dyn Fn(Option<&str>) -> Origin,
    scope: Scope,
) -> (Permissions, Vec<Diagnosis>) {
    let (mut read, mut found) = (Permissions::empty(), Vec::new());
    let Value::Object(members) = value else {
        let message = format!("`{path}` must be an object, not {}", kind_of(value));
        let hint = "write `\"permissions\": {\"ask\": [], \"deny\": []}`";
        found.push(Diagnosis::error(message).at(place(None)).hint(hint));
        return (read, found);
    };
    for (key, member) in members {
        let source = place(Some(key));
        let mut reader = PermissionsReader {
            path,
            source: &source,
            scope,
            read,
            found,
        };
        match key.as_str() {
            "deny" => reader.rules(key, member, PermissionList::Deny),
            "ask" => reader.rules(key, member, PermissionList::Ask),
            other => reader.widening(other),
        }
        (read, found) = (reader.read, reader.found);
    }
    (read, found)
}

struct PermissionsReader<'a> {
    /// What the object is called.
    path: &'a str,
    source: &'a Origin,
    scope: Scope,
    read: Permissions,
    found: Vec<Diagnosis>,
}

/// What the object of a settings file is called.
const PATH: &str = "permissions";

const KEYS: [&str; 8] = [
    "allow",
    "ask",
    "deny",
    "defaultMode",
    "disableBypass",
    "disableBypassPermissionsMode",
    "pins",
    "classifier",
];

impl PermissionsReader<'_> {
    fn object(&mut self, value: &Value) {
        let Value::Object(members) = value else {
            self.report(
                &format!("`permissions` must be an object, not {}", kind_of(value)),
                "write `\"permissions\": {\"allow\": [], \"ask\": [], \"deny\": []}`",
            );
            self.fail_closed();
            return;
        };
        for (key, member) in members {
            match key.as_str() {
                "allow" => self.rules(key, member, PermissionList::Allow),
                "ask" => self.rules(key, member, PermissionList::Ask),
                "deny" => self.rules(key, member, PermissionList::Deny),
                "defaultMode" => self.mode(member),
                "disableBypass" | "disableBypassPermissionsMode" => self.ban(key, member),
                "pins" => self.pins(member),
                "classifier" => self.classifier(member),
                other => self.unknown(other, member),
            }
        }
    }

    /// What was reported last may have been what forbids: in a policy it does (SEC-14).
    fn fail_closed(&mut self) {
        self.read.faults.extend(self.found.last().cloned());
        if is_policy(self.scope) {
            self.read.unreadable = Some(self.source.clone());
        }
    }

    fn rules(&mut self, key: &str, value: &Value, list: PermissionList) {
        let entries = match value {
            Value::Array(entries) => entries.as_slice(),
            // A lone string is plainly meant as one rule. It is kept, so that a deny still holds.
            Value::String(_) => {
                self.report(
                    &format!("`{}.{key}` must be an array, not a string", self.path),
                    format!("write `\"{key}\": [{value}]`"),
                );
                std::slice::from_ref(value)
            }
            other => {
                self.broken(key, value, list, &BrokenRule::not_a_list(other));
                return;
            }
        };
        for entry in entries {
            let parsed = match entry {
                Value::String(text) => {
                    PermissionRule::parse(text, list.stance(), self.source, self.scope)
                }
                other => Err(BrokenRule::not_text(kind_of(other))),
            };
            match parsed {
                Ok(rule) => self.keep(list, rule),
                Err(broken) => self.broken(key, entry, list, &broken),
            }
        }
    }

    fn broken(&mut self, key: &str, entry: &Value, list: PermissionList, broken: &BrokenRule) {
        let text = entry
            .as_str()
            .map_or_else(|| entry.to_string(), str::to_owned);
        let kept = (list != PermissionList::Allow)
            .then(|| broken.fallback(&text, self.source, self.scope))
            .flatten();
        let consequence = match (&kept, list) {
            _ if self.path != PATH => "the profile is not used".to_owned(),
            (Some(rule), PermissionList::Deny) => {
                format!("it denies everything of {}", rule.reach())
            }
            (Some(rule), _) => format!("it asks for everything of {}", rule.reach()),
            (None, _) => "it has no effect".to_owned(),
        };
        let shown = text::clean_line(&text).into_owned();
        let message = format!(
            "the rule `{shown}` in `{}.{key}` cannot be read: {}; {consequence}",
            self.path, broken.reason
        );
        self.report(&message, broken.hint);
        if list != PermissionList::Allow {
            self.read.faults.extend(self.found.last().cloned());
        }
        if let Some(rule) = kept {
            self.keep(list, rule);
        }
    }

    fn keep(&mut self, list: PermissionList, rule: PermissionRule) {
        let rules = Arc::make_mut(&mut self.read.rules);
        match list {
            PermissionList::Allow => rules.allow.push(rule),
            PermissionList::Ask => rules.ask.push(rule),
            PermissionList::Deny => rules.deny.push(rule),
        }
    }

    fn mode(&mut self, value: &Value) {
        let fault = match value.as_str() {
            Some(word) => match PermissionMode::parse(word) {
                Some(mode) => {
                    self.read.mode = Some((self.scope, mode));
                    return;
                }
                None => format!("cannot be `{word}`"),
            },
            None => format!("must be a string, not {}", kind_of(value)),
        };
        let message = format!("`permissions.defaultMode` {fault}");
        self.report(&message, "use `default`, `auto` or `bypass`");
    }

    fn pins(&mut self, value: &Value) {
        let policy = value.as_str().and_then(PinPolicy::parse);
        // A value that cannot be read must not hide a change.
        self.read.pins = Some((self.scope, policy.unwrap_or_default()));
        if policy.is_none() {
            self.report(
                &format!("`permissions.pins` cannot be {value}; a change asks"),
                "use `ask`, `warn` or `off`",
            );
        }
    }

    fn classifier(&mut self, value: &Value) {
        if !classifier::may_be_named_in(self.scope) {
            let ignored = not_here("permissions.classifier", self.source, self.scope);
            self.found.push(ignored);
            return;
        }
        let (classifier, found) = Classifier::read(value, self.source, self.scope);
        self.read.classifier = Some(Box::new(classifier));
        for (message, hint) in found {
            self.report(&message, hint);
        }
    }

    fn ban(&mut self, key: &str, value: &Value) {
        if *value == false {
            return;
        }
        // The key shows that a ban is wanted; a value that cannot be read must not lift it.
        self.read.bypass_forbidden = Some(self.source.clone());
        if *value != true && *value != "disable" {
            let message = format!("`permissions.{key}` cannot be {value}; bypass is forbidden");
            self.report(&message, "write `\"disableBypass\": true`");
        }
    }

    /// A key that is nearly a restricting one restricts: it may have been meant so.
    fn unknown(&mut self, key: &str, value: &Value) {
        let key = text::clean_line(key);
        let message = format!("`permissions` has no key `{key}`");
        match nearest(&key, KEYS) {
            Some(near) => {
                self.report(&message, format!("did you mean `{near}`?"));
                self.fail_closed();
                match near {
                    "ask" => self.rules(near, value, PermissionList::Ask),
                    "deny" => self.rules(near, value, PermissionList::Deny),
                    "disableBypass" | "disableBypassPermissionsMode" => self.ban(near, value),
                    _ => {}
                }
            }
            None => self.found.push(
                Diagnosis::warning(message)
                    .at(self.source.clone())
                    .hint(format!("it reads {}", listed(KEYS))),
            ),
        }
    }

    /// A key that a profile's rules do not have.
    fn widening(&mut self, key: &str) {
        let (path, key) = (self.path, text::clean_line(key).into_owned());
        if KEYS.contains(&key.as_str()) {
            let message = format!("`{path}` takes no `{key}`: a profile only narrows");
            self.report(&message, format!("write `{key}` in your `permissions`"));
            return;
        }
        let message = format!("`{path}.{key}` is not a key Toolway reads");
        match nearest(&key, ["deny", "ask"]) {
            Some(near) => self.report(&message, format!("did you mean `{path}.{near}`?")),
            None => self.report(&message, "it reads `deny` and `ask`"),
        }
    }

    /// The local file may come with a hostile repository, so what it holds is cleaned here.
    fn report(&mut self, message: &str, hint: impl AsRef<str>) {
        let diagnosis = Diagnosis::error(text::clean_line(message))
            .at(self.source.clone())
            .hint(text::clean_line(hint.as_ref()));
        self.found.push(diagnosis);
    }
}
