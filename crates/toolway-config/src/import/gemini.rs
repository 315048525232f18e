//! Gemini CLI: `mcpServers` in `settings.json`; `httpUrl` is Streamable HTTP, `url` is SSE.

use serde_json::Value;
use toolway_types::Diagnosis;

use super::ClientFile;
use super::client_json::ClientJson;
use super::translate;
use super::variables::VariableSyntax;

pub(super) fn read(found: &mut ClientFile, text: &str) -> Result<(), Diagnosis> {
    let json = ClientJson::parse(found, text)?;
    let names = |key: &str| -> Option<Vec<Value>> { json.get(&["mcp", key])?.as_array().cloned() };
    let (allowed, excluded) = (names("allowed"), names("excluded").unwrap_or_default());
    for entry in json.servers(found, &["mcpServers"]) {
        let name = Value::from(entry.name.as_str());
        let off =
            excluded.contains(&name) || allowed.as_ref().is_some_and(|list| !list.contains(&name));
        translate::each(found, vec![entry], VariableSyntax::Shell, |draft| {
            if draft.has("httpUrl") {
                draft.put("type", "http");
                draft.remote("httpUrl");
                draft.leave("url", "`httpUrl` goes before it");
            } else if draft.has("url") {
                if !draft.has("type") {
                    draft.put("type", "sse");
                    draft.note("no transport was named; a plain `url` means `sse` in Gemini CLI.");
                }
                draft.remote("url");
            }
            draft.transport("type");
            draft.process();
            draft.timeout("timeout", 1.0);
            draft.list("includeTools", "includeTools");
            draft.list("excludeTools", "excludeTools");
            draft.oauth("oauth", "clientId", "scopes");
            if draft.take("trust") == Some(Value::Bool(true)) {
                draft.drop("`trust` was left out: calls are asked about unless a permission rule allows them.");
            }
            for key in ["authProviderType", "targetAudience", "targetServiceAccount"] {
                draft.leave(key, "this kind of login is Google's own");
            }
            draft.ignore(&["description", "extensionName"]);
            if off {
                draft.disable();
            }
        });
    }
    Ok(())
}
