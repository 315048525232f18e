//! `mcp__<server>__authenticate`: what a model can do about a server that wants a login.
//!
//! Owns the tool. It is there while its server is in `needs-auth`, and says what that server
//! wants, where, and how a person gives it. It never takes a secret: a model has none to give.

use serde_json::json;
use toolway_types::name::{as_word, shell_word};
use toolway_types::{ConnectionState, ToolKey, Untrusted};

use super::{Builtin, BuiltinAnswer, BuiltinCall};
use crate::call::brief;
use crate::catalog::Hints;
use crate::snapshot::ServerSnapshot;

/// The tool's own name.
pub(super) const NAME: &str = "authenticate";

/// Stands where something was left out of an address.
const CUT: char = '…';

/// An address as its entry has it, without what is often a secret: user, password and query.
pub(crate) fn address(url: &str) -> String {
    let (start, rest) = url.split_once("://").unwrap_or(("", url));
    let (place, cut) = match rest.find(['?', '#']) {
        Some(end) => (&rest[..end], true),
        None => (rest, false),
    };
    let host_ends = place.find('/').unwrap_or(place.len());
    let (place, user) = match place[..host_ends].rfind('@') {
        Some(at) => (&place[at + 1..], true),
        None => (place, false),
    };
    let mut shown = format!("{start}://");
    if user {
        shown.push(CUT);
        shown.push('@');
    }
    shown.push_str(place);
    if cut {
        shown.push('?');
        shown.push(CUT);
    }
    shown
}

pub(super) fn tool(server: &ServerSnapshot, url: Option<String>) -> Builtin {
    let key = ToolKey::new(server.name.clone(), NAME);
    let name = server.name.clone();
    let entry = server.origin.to_string();
    let description = format!(
        "The server `{name}` is configured and wants a login before its tools can be used. This \
         tells what it wants and how a person gives it."
    );
    let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    Builtin::made(&key.exposed(), &description, schema, move |call| {
        let answer = state(&call, name.as_str(), url.as_deref(), &entry);
        async move { answer }
    })
    .hints(Hints {
        read_only: Some(true),
        destructive: Some(false),
        idempotent: Some(true),
        open_world: Some(false),
    })
    .without_asking()
}

/// The state of this moment, which may be another than when the tool was listed.
fn state(call: &BuiltinCall, name: &str, url: Option<&str>, entry: &str) -> BuiltinAnswer {
    let picture = call.host.snapshot();
    let detail = match picture.server(name).map(|server| &server.state) {
        Some(ConnectionState::NeedsAuth { detail }) => detail,
        Some(ConnectionState::Connected(_)) => {
            return BuiltinAnswer::text(format!(
                "server `{name}` is connected: no login is wanted any more"
            ));
        }
        Some(state) => {
            return BuiltinAnswer::error(format!(
                "server `{name}` is {}: whether it wants a login is not known now",
                state.as_str()
            ));
        }
        None => {
            return BuiltinAnswer::error(format!("server `{name}` is not configured any more"));
        }
    };
    let word = as_word(name);
    let shown = Untrusted::new(url.unwrap_or("its address"))
        .line()
        .into_owned();
    // What was left out of the address is not to be left out of the entry.
    let place = match url {
        Some(url) if !url.contains(CUT) => shell_word(&shown),
        _ => "<url>".into(),
    };
    let said = brief(detail);
    let said = if said.is_empty() {
        "It did not say which.".to_owned()
    } else {
        format!("Its challenge: `{said}`.")
    };
    BuiltinAnswer::error(format!(
        "server `{name}` at {shown} wants a login. {said}\n\
         A person has to give it a token, in a terminal:\n\
         \n  export TOKEN=…\n  toolway add {word} {place} --force -H 'Authorization: Bearer ${{TOKEN}}'\n\n\
         or by hand, in its entry ({entry}):\n\
         \n  \"headers\": {{\"Authorization\": \"Bearer ${{TOKEN}}\"}}\n\n\
         and then `toolway reconnect {word}`, or a restart. Do not ask for the token in a \
         conversation."
    ))
}
