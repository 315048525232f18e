//! What the shim writes anew in messages: the names of one server in a merged view become its own,
//! and the other way round.
//!
//! Owns the mapping of a JSON-RPC message, and nothing of how messages travel. Everything that it
//! does not know passes as it is.

use std::collections::BTreeMap;

use serde_json::Value;

/// How the server under judgement is called in the view.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// What stands before the names of its tools and prompts.
    pub(crate) prefix: String,
    /// What stands before the names of others, which are nobody's to change.
    pub(crate) others: String,
    /// Its addresses that the view had to change: its own, and the view's.
    pub(crate) addresses: BTreeMap<String, String>,
}

/// A request that passed, as far as its answer needs it.
pub(super) struct Passed {
    method: String,
    /// What `Mcp-Name` has to say where it said what the body said: before and after.
    pub(super) header: Option<(String, String)>,
}

impl Names {
    /// Maps a request or notification of the client.
    pub(super) fn request(&self, message: &mut Value) -> Passed {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let mut header = None;
        let Some(params) = message.get_mut("params") else {
            return Passed { method, header };
        };
        match method.as_str() {
            "tools/call" | "prompts/get" => {
                header = change(params.get_mut("name"), |name| self.theirs(name));
            }
            "resources/read" => {
                header = change(params.get_mut("uri"), |uri| self.away(uri));
            }
            "resources/subscribe"
            | "resources/unsubscribe"
            | "resources/directory/read"
            | "skills/get" => {
                change(params.get_mut("uri"), |uri| self.away(uri));
            }
            "completion/complete" => {
                change(params.pointer_mut("/ref/name"), |name| self.theirs(name));
                change(params.pointer_mut("/ref/uri"), |uri| self.away(uri));
            }
            "subscriptions/listen" => {
                let wanted = params.pointer_mut("/notifications/resourceSubscriptions");
                for uri in wanted.and_then(Value::as_array_mut).into_iter().flatten() {
                    change(Some(uri), |uri| self.away(uri));
                }
            }
            _ => {}
        }
        Passed { method, header }
    }

    /// Maps what the server says: the answer to a request that passed, or anything before it.
    pub(super) fn answer(&self, message: &mut Value, passed: &Passed) {
        if message["method"] == "notifications/resources/updated" {
            change(message.pointer_mut("/params/uri"), |uri| self.back(uri));
        }
        change(message.pointer_mut("/error/data/uri"), |uri| self.back(uri));
        let lists: &[(&str, &str, Kind)] = match passed.method.as_str() {
            "tools/list" => &[("tools", "name", Kind::Name)],
            "prompts/list" => &[("prompts", "name", Kind::Name)],
            "resources/list" | "resources/directory/read" => &[("resources", "uri", Kind::Address)],
            "resources/read" => &[("contents", "uri", Kind::Address)],
            "resources/templates/list" => &[("resourceTemplates", "uriTemplate", Kind::Address)],
            _ => &[],
        };
        for (list, key, kind) in lists {
            let items = message.pointer_mut(&format!("/result/{list}"));
            for item in items.and_then(Value::as_array_mut).into_iter().flatten() {
                change(item.get_mut(*key), |word| match kind {
                    Kind::Name => self.own(word),
                    Kind::Address => self.back(word),
                });
            }
        }
    }

    fn theirs(&self, name: &str) -> String {
        if name.starts_with(&self.others) {
            return name.to_owned();
        }
        format!("{}{name}", self.prefix)
    }

    fn own(&self, name: &str) -> String {
        name.strip_prefix(&self.prefix).unwrap_or(name).to_owned()
    }

    fn away(&self, uri: &str) -> String {
        self.addresses
            .get(uri)
            .map_or(uri, String::as_str)
            .to_owned()
    }

    /// An address that another server has too is that one's where it is not mapped to ours.
    fn back(&self, uri: &str) -> String {
        self.addresses
            .iter()
            .find(|(_, changed)| *changed == uri)
            .map_or(uri, |(own, _)| own)
            .to_owned()
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Name,
    Address,
}

/// Changes a text in place: before and after.
fn change(word: Option<&mut Value>, to: impl FnOnce(&str) -> String) -> Option<(String, String)> {
    let word = word?;
    let before = word.as_str()?.to_owned();
    let after = to(&before);
    *word = Value::String(after.clone());
    Some((before, after))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names() -> Names {
        Names {
            prefix: "fixture__".into(),
            others: "decoy__".into(),
            addresses: [("test://a".into(), "fixture+test://a".into())].into(),
        }
    }

    #[test]
    fn calls_go_to_the_view_under_its_names() {
        let mut call = json!({"id": 1, "method": "tools/call", "params": {"name": "add", "x": 1}});
        let passed = names().request(&mut call);
        assert_eq!(call["params"], json!({"name": "fixture__add", "x": 1}));
        let header = passed.header.unwrap();
        assert_eq!(header, ("add".to_owned(), "fixture__add".to_owned()));
        let mut other = json!({"method": "prompts/get", "params": {"name": "decoy__add"}});
        names().request(&mut other);
        assert_eq!(other["params"]["name"], "decoy__add");
        let mut complete = json!({
            "method": "completion/complete",
            "params": {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a"}},
        });
        names().request(&mut complete);
        assert_eq!(complete["params"]["ref"]["name"], "fixture__p");
        assert_eq!(complete["params"]["argument"]["name"], "a");
    }

    #[test]
    fn lists_come_back_under_own_names_and_those_of_others_stay() {
        let passed = names().request(&mut json!({"method": "tools/list"}));
        let mut answer = json!({"result": {"tools": [
            {"name": "decoy__add"}, {"name": "fixture__add", "description": "fixture__add"},
        ]}});
        names().answer(&mut answer, &passed);
        let tools = &answer["result"]["tools"];
        assert_eq!(tools[0]["name"], "decoy__add");
        assert_eq!(
            tools[1],
            json!({"name": "add", "description": "fixture__add"})
        );
    }

    #[test]
    fn addresses_are_mapped_only_where_the_view_changed_them() {
        let mut read = json!({"method": "resources/read", "params": {"uri": "test://a"}});
        let passed = names().request(&mut read);
        assert_eq!(read["params"]["uri"], "fixture+test://a");
        let mut answer =
            json!({"result": {"contents": [{"uri": "fixture+test://a"}, {"uri": "test://b"}]}});
        names().answer(&mut answer, &passed);
        let contents = &answer["result"]["contents"];
        assert_eq!(contents, &json!([{"uri": "test://a"}, {"uri": "test://b"}]));
        let mut error = json!({"error": {"data": {"uri": "test://none"}}});
        names().answer(&mut error, &passed);
        assert_eq!(error["error"]["data"]["uri"], "test://none");
        let mut updated = json!({
            "method": "notifications/resources/updated",
            "params": {"uri": "fixture+test://a"},
        });
        names().answer(&mut updated, &passed);
        assert_eq!(updated["params"]["uri"], "test://a");
    }

    #[test]
    fn what_is_not_known_passes_as_it_is() {
        let mut odd = json!({"method": "x/y", "params": {"name": "n", "uri": "test://a"}});
        let before = odd.clone();
        let passed = names().request(&mut odd);
        assert_eq!(odd, before);
        assert!(passed.header.is_none());
        let mut broken = json!({"method": "tools/call", "params": {"name": 7}});
        let before = broken.clone();
        names().request(&mut broken);
        assert_eq!(broken, before);
    }
}
