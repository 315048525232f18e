//! opencode: `mcp` in `opencode.json` (or `mcp.servers`, from its second version on), the command
//! as one list, `environment`, `{env:NAME}`.

use serde_json::Value;
use toolway_types::Diagnosis;

use super::ClientFile;
use super::client_json::ClientJson;
use super::translate::{self, EntryDraft};
use super::variables::VariableSyntax;

pub(super) fn read(found: &mut ClientFile, text: &str) -> Result<(), Diagnosis> {
    let json = ClientJson::parse(found, text)?;
    // A server may itself be called `servers`; then it has a `type`.
    let second = json.get(&["mcp", "servers"]).is_some_and(|servers| {
        servers.is_object() && !servers.get("type").is_some_and(Value::is_string)
    });
    let mut entries = if second {
        json.entries(&["mcp", "servers"])
    } else {
        json.servers(found, &["mcp"])
    };
    // An entry of nothing but a switch turns a server on or off that an organisation provides.
    entries.retain(|entry| {
        entry.value.as_object().is_none_or(|value| {
            value
                .keys()
                .any(|key| key != "enabled" && key != "disabled")
        })
    });
    translate::each(found, entries, VariableSyntax::Bare, |draft| {
        draft.transport("type");
        command(draft);
        draft.process();
        draft.table("environment", "env");
        draft.remote("url");
        if let Some(oauth) = draft.take("oauth") {
            let snake = oauth.get("client_id").is_some();
            draft.restore("oauth", oauth);
            draft.oauth(
                "oauth",
                if snake { "client_id" } else { "clientId" },
                "scope",
            );
        }
        if let Some(limits) = draft.take("timeout") {
            if limits.get("startup").is_some() {
                draft.drop("`timeout.startup` was left out: the time to connect is set for all servers by `MCP_TIMEOUT`.");
            }
            let request = if limits.is_object() {
                limits.get("request")
            } else {
                Some(&limits)
            };
            draft.restore("timeout", request.cloned().unwrap_or_default());
        }
        draft.timeout("timeout", 1.0);
    });
    Ok(())
}

/// The command and its arguments stand in one list.
fn command(draft: &mut EntryDraft) {
    let Some(value) = draft.take("command") else {
        return;
    };
    if let Some((first, rest)) = value.as_array().and_then(|words| words.split_first()) {
        draft.restore("command", first.clone());
        if !rest.is_empty() {
            draft.restore("args", Value::Array(rest.to_vec()));
        }
    } else {
        draft.restore("command", value);
    }
}
