//! One server's entry, checked by hand: one clear diagnosis per fault, with its line.
//!
//! Owns: what an entry may say. A key it does not know is kept and left alone.
//! Does not own: values that variables complete; those are checked again once they are expanded
//! (`spec`).

use serde_json::{Map, Value};
use toolway_types::{
    Diagnosis, ProtocolMode, Severity, ShareMode, ShieldMode, TransportKind, nearest,
};
use url::Url;

use super::ENOUGH;
use crate::expansion;
use crate::http_syntax::{header_value, is_header_name, parse_url};
use crate::idle::ServerIdle;
use crate::json::{EntryMembers as _, ValueLines, kind_of};
use crate::keys::{self, ValueShape};
use crate::source::TextSource;

mod oauth;
mod tools;

/// The shortest `timeout`; anything less was meant in seconds.
const MIN_TIMEOUT: u64 = 1_000;

/// What checking an entry found.
pub(crate) struct CheckedEntry {
    pub(crate) kind: Option<TransportKind>,
    /// Its `url`, where no variable completes it.
    pub(crate) url: Option<Url>,
    pub(crate) diagnoses: Vec<Diagnosis>,
}

/// Checks an entry as written, under the name it stands under.
pub(crate) fn check(
    name: &str,
    definition: &Map<String, Value>,
    lines: &ValueLines,
    source: &TextSource,
) -> CheckedEntry {
    let mut checker = EntryChecker {
        name,
        definition,
        lines,
        source,
        url: None,
        found: Vec::new(),
    };
    for (key, value) in definition {
        match keys::ENTRY.iter().find(|(known, _)| known == key) {
            Some((_, shape)) => checker.value(key, *shape, value),
            None => checker.unknown_key(key),
        }
    }
    let kind = checker.transport();
    checker.limits();
    checker.include_tools();
    checker.aliases();
    CheckedEntry {
        kind,
        url: checker.url,
        diagnoses: checker.found,
    }
}

struct EntryChecker<'a> {
    name: &'a str,
    definition: &'a Map<String, Value>,
    lines: &'a ValueLines,
    source: &'a TextSource,
    url: Option<Url>,
    found: Vec<Diagnosis>,
}

/// How a key is written, for people who got it wrong.
fn example(key: &str) -> String {
    match key.split('.').next().unwrap_or(key) {
        "command" => "write e.g. `\"command\": \"npx\"`".to_owned(),
        "args" => "write e.g. `\"args\": [\"-y\", \"a-server\"]`".to_owned(),
        "env" => "write e.g. `\"env\": {\"NAME\": \"value\"}`".to_owned(),
        "url" => "write e.g. `\"url\": \"https://example.com/mcp\"`".to_owned(),
        "headers" => "write e.g. `\"headers\": {\"Name\": \"value\"}`".to_owned(),
        "idle" => "write seconds, e.g. `\"idle\": 600`, or `\"idle\": \"never\"`".to_owned(),
        "timeout" | "requestTimeout" => format!("write milliseconds, e.g. `\"{key}\": 60000`"),
        "alias" => "write e.g. `\"alias\": {\"a_long_tool_name\": \"short\"}`".to_owned(),
        "tools" => "write e.g. `\"tools\": {\"a_tool\": {\"description\": \"…\"}}`".to_owned(),
        other => format!("mend `{other}` in the entry, or leave it out"),
    }
}

impl EntryChecker<'_> {
    fn error(&mut self, key: &str, message: String, hint: Option<String>) {
        if self.is_full(Severity::Error) {
            return;
        }
        let mut diagnosis = Diagnosis::error(message).at(self.origin(key));
        diagnosis.hint = hint.or_else(|| Some(example(key)));
        self.found.push(diagnosis);
    }

    fn warning(&mut self, key: &str, message: String, hint: String) {
        if !self.is_full(Severity::Warning) {
            self.found
                .push(Diagnosis::warning(message).at(self.origin(key)).hint(hint));
        }
    }

    /// Whether enough is said. Counted apart: warnings must not crowd out the one error.
    fn is_full(&self, severity: Severity) -> bool {
        let said = self.found.iter().filter(|found| found.severity == severity);
        said.count() >= ENOUGH
    }

    /// The line of a key; `a.b` means the member `b` of `a`.
    fn origin(&self, key: &str) -> toolway_types::Origin {
        let (outer, inner) = key
            .split_once('.')
            .map_or((key, None), |(a, b)| (a, Some(b)));
        let line = match (self.lines.member(self.definition, outer), inner) {
            (Some(lines), Some(inner)) => match self.definition.member(outer) {
                Some(Value::Object(object)) => lines.line_of(object, inner),
                Some(Value::Array(_)) => inner.parse().map_or(lines.line, |i| lines.line_at(i)),
                _ => lines.line,
            },
            (Some(lines), None) => lines.line,
            (None, _) => self.lines.line,
        };
        self.source.origin(line)
    }

    fn unknown_key(&mut self, key: &str) {
        let known = || keys::ENTRY.iter().map(|(known, _)| *known);
        if let Some(seen) = keys::visible(key) {
            let message = format!("the key `{}` has hidden characters", keys::spelled_out(key));
            self.error(key, message, Some(format!("write it as `{seen}`")));
        } else if let Some(meant) = keys::meant(key, known()) {
            let given = |key| self.definition.contains_key(key);
            if ["command", "url"].contains(&meant)
                && !["type", "command", "url"].into_iter().any(given)
            {
                return; // That nothing is given is said once, and names this key.
            }
            let message = format!("`{key}` is not a key Toolway reads");
            self.warning(key, message, format!("did you mean `{meant}`?"));
        }
    }

    fn value(&mut self, key: &str, shape: ValueShape, value: &Value) {
        match (shape, value) {
            (ValueShape::Text | ValueShape::Scopes, Value::String(text)) => self.text(key, text),
            (ValueShape::Word, Value::String(_))
            | (ValueShape::Switch, Value::Bool(_))
            | (ValueShape::Milliseconds | ValueShape::Idle, _) => {}
            (ValueShape::Texts | ValueShape::Scopes, Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    if is_plain(item) {
                        continue; // Nearly all are, and a name for each costs time.
                    }
                    self.item(&format!("{key}.{index}"), &format!("{key}[{index}]"), item);
                }
            }
            (ValueShape::TextMap, Value::Object(map)) => {
                for (name, item) in map {
                    let unfit = |text| key == "headers" && header_value(text).is_err();
                    if !is_plain(item) || item.as_str().is_some_and(unfit) {
                        self.item(&format!("{key}.{name}"), &format!("{key}.{name}"), item);
                    }
                    self.member_name(key, name);
                }
            }
            (ValueShape::Oauth, Value::Object(map)) => self.oauth(map),
            (ValueShape::Object(keys, _), Value::Object(map)) => self.members(key, keys, map),
            (ValueShape::Tools, Value::Object(map)) => self.tools(map),
            (ValueShape::Port, Value::Number(number))
                if number
                    .as_u64()
                    .is_some_and(|port| (1..=65_535).contains(&port)) => {}
            _ => {
                let found = match value {
                    Value::Number(number) if shape == ValueShape::Port => number.to_string(),
                    other => kind_of(other).to_owned(),
                };
                let message = format!("`{key}` must be {}, not {found}", shape.expected());
                self.error(key, message, None);
            }
        }
    }

    fn text(&mut self, key: &str, text: &str) {
        // An empty `command` or `url` is reported where the transport is settled.
        if text.contains('\0') {
            self.error(key, format!("`{key}` has a NUL character"), None);
        } else if text.trim().is_empty() && !matches!(key, "command" | "url") {
            self.error(key, format!("`{key}` must not be empty"), None);
        }
    }

    fn item(&mut self, place: &str, shown: &str, item: &Value) {
        let shown = keys::spelled_out(shown);
        match item {
            Value::String(text) if text.contains('\0') => {
                self.error(place, format!("`{shown}` has a NUL character"), None);
            }
            Value::String(text) if place.starts_with("headers.") => {
                if let Err(why) = header_value(text) {
                    self.error(place, format!("`{shown}` {why}"), None);
                }
            }
            Value::String(_) => {}
            other => {
                let message = format!("`{shown}` must be a string, not {}", kind_of(other));
                let hint = (other.is_number() || other.is_boolean())
                    .then(|| format!("write it in quotes: `\"{item}\"`"));
                self.error(place, message, hint);
            }
        }
    }

    fn member_name(&mut self, key: &str, name: &str) {
        if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return;
        }
        let place = format!("{key}.{name}");
        let shown = keys::spelled_out(name);
        if let Some(seen) = keys::visible(name) {
            let message = format!("`{shown}` in `{key}` has hidden characters");
            self.error(&place, message, Some(format!("write it as `{seen}`")));
            return;
        }
        let what = match key {
            "headers" if !is_header_name(name) => "header",
            "env" if name.is_empty() || name.contains('=') => "variable",
            _ => return,
        };
        self.error(
            &place,
            format!("`{shown}` is not a valid {what} name"),
            None,
        );
    }

    fn has(&self, key: &str) -> bool {
        match self.definition.member(key) {
            Some(Value::String(text)) => !text.trim().is_empty(),
            Some(Value::Null) | None => false,
            // A wrong type has its own diagnosis; it is not missing as well.
            Some(_) => true,
        }
    }

    /// Settles the transport from `type`, `command` and `url`.
    fn transport(&mut self) -> Option<TransportKind> {
        let (command, url) = (self.has("command"), self.has("url"));
        let kind = match self.definition.member("type") {
            Some(Value::String(word)) => {
                let kind = TransportKind::parse(word);
                if kind.is_none() {
                    self.unknown_type(word);
                    return None;
                }
                kind
            }
            Some(_) => return None,
            None => None,
        };
        if command && url {
            let message = "`command` and `url` are both given; a server has one of them";
            self.error(
                "url",
                message.to_owned(),
                Some("remove one of them".to_owned()),
            );
            return kind;
        }
        match kind {
            Some(kind) => self.needs(kind, command, url),
            None if url => return Some(self.inferred()),
            None if command => return Some(self.stdio()),
            None => self.nothing_given(),
        }
        kind
    }

    fn nothing_given(&mut self) {
        if self
            .definition
            .keys()
            .any(|key| keys::visible(key).is_some())
        {
            return; // That key's own diagnosis says it all.
        }
        if let Some(key) = ["command", "url"]
            .iter()
            .find(|key| self.definition.contains_key(**key))
        {
            self.error(key, format!("`{key}` is empty"), None);
            return;
        }
        let slip = self.definition.keys().find_map(|key| {
            keys::meant(key, ["command", "url"]).map(|right| format!("rename `{key}` to `{right}`"))
        });
        let hint = slip.unwrap_or_else(|| {
            "add `\"command\": \"…\"`, or `\"type\": \"http\"` and `\"url\": \"https://…\"`"
                .to_owned()
        });
        let message = "neither `command` nor `url` is given".to_owned();
        self.error("command", message, Some(hint));
    }

    fn needs(&mut self, kind: TransportKind, command: bool, url: bool) {
        let word = kind.as_str();
        match kind {
            TransportKind::Stdio if !command => {
                let hint = if url {
                    "set `type` to `http`"
                } else {
                    "add `\"command\": \"…\"`"
                };
                let message = format!("`type` is `{word}`, but `command` is missing");
                self.error("type", message, Some(hint.to_owned()));
            }
            TransportKind::Stdio => {
                self.stdio();
            }
            TransportKind::Sdk => {}
            // Its lock file says where it is.
            TransportKind::Remote(_) if kind.is_editor() && !url && !command => {}
            TransportKind::Remote(_) if !url => {
                let hint = if command {
                    "set `type` to `stdio`, or leave it out".to_owned()
                } else {
                    format!("add `\"url\": \"{}://…\"`", kind.facts().schemes[0])
                };
                let message = format!("`type` is `{word}`, but `url` is missing");
                self.error("type", message, Some(hint));
            }
            TransportKind::Remote(_) => self.url(kind),
        }
    }

    fn stdio(&mut self) -> TransportKind {
        if let Some(command) = self.definition.member("command").and_then(Value::as_str)
            && self.definition.member("args").is_none()
            && command.contains(char::is_whitespace)
            && !command.contains(['/', '\\'])
        {
            let message = "`command` has a space in it, and no shell will split it".to_owned();
            self.warning("command", message, "put the rest into `args`".to_owned());
        }
        TransportKind::Stdio
    }

    fn inferred(&mut self) -> TransportKind {
        let text = self
            .definition
            .member("url")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let kind = TransportKind::of_address(text);
        let message = format!("`url` without `type`: taken as `{}`", kind.as_str());
        self.warning(
            "url",
            message,
            format!("add `\"type\": \"{}\"`", kind.as_str()),
        );
        self.url(kind);
        kind
    }

    fn url(&mut self, kind: TransportKind) {
        if let Some(Value::String(text)) = self.definition.member("url")
            && !expansion::mentions_variable(text)
        {
            match parse_url(text, kind.facts().schemes) {
                Ok(url) => self.url = Some(url),
                Err(why) => self.error("url", format!("`url` {why}"), None),
            }
        }
    }

    fn unknown_type(&mut self, word: &str) {
        let known: Vec<_> = TransportKind::ALL
            .iter()
            .map(|kind| kind.as_str())
            .collect();
        let list = keys::listed(&known);
        let familiar = TransportKind::of_foreign_word(word).map(TransportKind::as_str);
        let hint = match familiar.or_else(|| nearest(word, known)) {
            Some(meant) => format!("did you mean `{meant}`? The types are {list}"),
            None => format!("the types are {list}"),
        };
        self.error(
            "type",
            format!("unknown `type` `{}`", keys::spelled_out(word)),
            Some(hint),
        );
    }

    /// The values with a range: time limits, `protocol` and `shield`.
    fn limits(&mut self) {
        for key in ["timeout", "requestTimeout"] {
            let Some(value) = self.definition.member(key) else {
                continue;
            };
            match value.as_u64() {
                Some(timeout) if timeout >= MIN_TIMEOUT => {}
                Some(short) => {
                    let message = format!("`{key}` is {short} ms; the least is {MIN_TIMEOUT}");
                    let hint = format!(
                        "it counts milliseconds: for {short} seconds write {}",
                        short.max(1).saturating_mul(1_000)
                    );
                    self.error(key, message, Some(hint));
                }
                None => {
                    let message = format!(
                        "`{key}` must be {}, not {}",
                        ValueShape::Milliseconds.expected(),
                        if value.is_number() {
                            value.to_string()
                        } else {
                            kind_of(value).to_owned()
                        },
                    );
                    self.error(key, message, None);
                }
            }
        }
        self.idle();
        let is_on = |key| self.definition.member(key) == Some(&Value::Bool(true));
        if is_on("alwaysLoad") && is_on("deferTools") {
            let message =
                "`alwaysLoad` and `deferTools` contradict each other; its tools are loaded";
            let hint = "leave one of them out".to_owned();
            self.warning("deferTools", message.to_owned(), hint);
        }
        self.word("protocol", "use `auto`, `legacy` or `2026-07-28`", |word| {
            ProtocolMode::parse(word).is_some()
        });
        self.word("shield", "use `off`, `best-effort` or `required`", |word| {
            ShieldMode::parse(word).is_some()
        });
        self.word("share", "use `user`, `project` or `session`", |word| {
            ShareMode::parse(word).is_some()
        });
    }

    fn idle(&mut self) {
        let Some(value) = self.definition.member("idle") else {
            return;
        };
        if ServerIdle::read(value).is_some() {
            return;
        }
        let found = match value {
            Value::String(word) => format!("`{}`", keys::spelled_out(word)),
            Value::Number(number) => number.to_string(),
            other => kind_of(other).to_owned(),
        };
        let expected = ValueShape::Idle.expected();
        let message = format!("`idle` must be {expected}, not {found}");
        let hint = (value.as_f64() == Some(0.0))
            .then(|| "for a server that never rests write `\"idle\": \"never\"`".to_owned());
        self.error("idle", message, hint);
    }

    fn word(&mut self, key: &str, hint: &str, is_known: fn(&str) -> bool) {
        if let Some(Value::String(word)) = self.definition.member(key)
            && !is_known(word)
        {
            let message = format!("unknown `{key}` `{}`", keys::spelled_out(word));
            self.error(key, message, Some(hint.to_owned()));
        }
    }
}

/// A string that needs no second look.
fn is_plain(item: &Value) -> bool {
    item.as_str().is_some_and(|text| !text.contains('\0'))
}
