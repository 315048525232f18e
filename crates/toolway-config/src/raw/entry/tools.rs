//! The keys of an entry that change its server's tools: `includeTools`, `alias`, `tools`.
//!
//! Owns the checks beyond their shapes. What they mean is `curation`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toolway_types::name::{MAX_EXPOSED_LEN, normalize};

use super::EntryChecker;
use crate::json::{EntryMembers as _, kind_of};
use crate::keys::{self, TOOL};

impl EntryChecker<'_> {
    /// An empty list is valid, and hardly meant.
    pub(super) fn include_tools(&mut self) {
        if self.definition.member("includeTools") == Some(&Value::Array(Vec::new())) {
            self.warning(
                "includeTools",
                "`includeTools` is empty, so none of its tools is offered".to_owned(),
                "name some, or leave the key out to offer all".to_owned(),
            );
        }
    }

    /// `alias`: other names for tools, each unlike the others, so that a name means one tool.
    pub(super) fn aliases(&mut self) {
        let Some(Value::Object(aliases)) = self.definition.member("alias") else {
            return;
        };
        let mut first: BTreeMap<&str, &str> = BTreeMap::new();
        for (tool, alias) in aliases {
            let Value::String(alias) = alias else {
                continue; // Its shape was diagnosed.
            };
            let place = format!("alias.{tool}");
            let shown = keys::spelled_out(&place);
            if alias.is_empty() || normalize(alias) != *alias {
                let message = format!(
                    "`{shown}` may have letters, digits, `_` and `-` only, not `{}`",
                    keys::spelled_out(alias)
                );
                self.error(&place, message, None);
                continue;
            }
            let name = format!("mcp__{}__{alias}", normalize(self.name));
            if name.len() > MAX_EXPOSED_LEN {
                let message = format!(
                    "`{shown}` makes a name of {} characters, `{name}`; the most is {MAX_EXPOSED_LEN}",
                    name.len()
                );
                self.error(&place, message, Some("choose a shorter one".to_owned()));
                continue;
            }
            if let Some(other) = first.insert(alias, tool) {
                let message = format!(
                    "`{shown}` and `alias.{}` are both `{alias}`; a name is that of one tool",
                    keys::spelled_out(other)
                );
                self.error(&place, message, Some("choose another one".to_owned()));
            }
        }
    }

    /// `tools`: what is said of single tools.
    pub(super) fn tools(&mut self, tools: &Map<String, Value>) {
        for (tool, said) in tools {
            let place = format!("tools.{tool}");
            let shown = keys::spelled_out(&place);
            let Value::Object(said) = said else {
                let message = format!("`{shown}` must be an object, not {}", kind_of(said));
                self.error(&place, message, None);
                continue;
            };
            for (key, value) in said {
                match TOOL.iter().find(|(known, _)| known == key) {
                    Some(_) if value.as_str().is_some_and(|text| !text.trim().is_empty()) => {}
                    Some((_, shape)) => {
                        let found = match value {
                            Value::String(_) => "an empty one",
                            other => kind_of(other),
                        };
                        let message =
                            format!("`{shown}.{key}` must be {}, not {found}", shape.expected());
                        self.error(&place, message, None);
                    }
                    None => {
                        let key = keys::spelled_out(key);
                        let message = format!("`{shown}.{key}` is not a key Toolway reads");
                        let hint = match key.as_str() {
                            "name" | "alias" => "another name stands in the entry's `alias`",
                            _ => "it reads `description`",
                        };
                        self.warning(&place, message, hint.to_owned());
                    }
                }
            }
        }
    }
}
