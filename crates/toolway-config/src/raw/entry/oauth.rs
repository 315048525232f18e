//! The keys of an entry's `oauth`, and of the objects inside it.
//!
//! Owns the checks beyond their shapes. What they mean is `spec`.

use serde_json::{Map, Value};
use toolway_types::name::check_account;

use super::EntryChecker;
use crate::expansion;
use crate::http_syntax::parse_url;
use crate::keys::{self, ValueShape};

impl EntryChecker<'_> {
    pub(super) fn members(
        &mut self,
        of: &str,
        known: &[(&'static str, ValueShape)],
        map: &Map<String, Value>,
    ) {
        for (key, value) in map {
            let place = format!("{of}.{key}");
            match known.iter().find(|(known, _)| known == key) {
                Some((_, shape)) => self.value(&place, *shape, value),
                None => self.unknown_member(of, known, key),
            }
        }
    }

    pub(super) fn oauth(&mut self, map: &Map<String, Value>) {
        self.members("oauth", &keys::OAUTH, map);
        if let Some(Value::String(text)) = map.get("authServerMetadataUrl")
            && !expansion::mentions_variable(text)
            && let Err(why) = parse_url(text, &["https", "http"])
        {
            let key = "oauth.authServerMetadataUrl";
            self.error(key, format!("`{key}` {why}"), None);
        }
        if let Some(Value::String(text)) = map.get("account")
            // That it is empty is said of every text.
            && !text.trim().is_empty()
            && !expansion::mentions_variable(text)
            && let Err(why) = check_account(text)
        {
            let key = "oauth.account";
            let hint = "write your word for the account, e.g. `\"account\": \"work\"`";
            self.error(key, format!("`{key}` {why}"), Some(hint.to_owned()));
        }
    }

    fn unknown_member(&mut self, of: &str, known: &[(&'static str, ValueShape)], key: &str) {
        let place = format!("{of}.{key}");
        if let Some(seen) = keys::visible(key) {
            let shown = keys::spelled_out(&place);
            let message = format!("the key `{shown}` has hidden characters");
            self.error(&place, message, Some(format!("write it as `{seen}`")));
        } else if let Some(meant) = keys::meant(key, known.iter().map(|(known, _)| *known)) {
            let message = format!("`{place}` is not a key Toolway reads");
            self.warning(&place, message, format!("did you mean `{of}.{meant}`?"));
        }
    }
}
