//! Codex: `[mcp_servers.<name>]` tables in `config.toml`, times in seconds, no variables in
//! strings but keys that name them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;
use toolway_types::Diagnosis;

use super::ClientFile;
use super::client_json::{self, ClientEntry};
use super::translate::{self, EntryDraft};
use super::variables::VariableSyntax;
use crate::edit::toml_text::syntax_error;
use crate::json::syntax_tree;

/// The part of the file that matters here.
#[derive(Deserialize)]
struct CodexFile {
    #[serde(default)]
    mcp_servers: BTreeMap<Spanned<String>, Value>,
}

pub(super) fn read(found: &mut ClientFile, text: &str) -> Result<(), Diagnosis> {
    let entries = entries(found, text)?;
    translate::each(found, entries, VariableSyntax::None, entry);
    Ok(())
}

fn entries(found: &ClientFile, text: &str) -> Result<Vec<ClientEntry>, Diagnosis> {
    let file: CodexFile = toml::from_str(text)
        .map_err(|error| client_json::broken(&found.path, &syntax_error(text, &error)))?;
    let mut entries: Vec<ClientEntry> = file
        .mcp_servers
        .into_iter()
        .map(|(name, value)| ClientEntry {
            line: Some(syntax_tree::line_at(text, name.span().start)),
            place: vec!["mcp_servers".to_owned(), name.as_ref().clone()],
            name: name.into_inner(),
            value,
        })
        .collect();
    entries.sort_by_key(|entry| entry.line);
    Ok(entries)
}

fn entry(draft: &mut EntryDraft) {
    draft.process();
    draft.passed_variables("env_vars");
    draft.text("url", "url");
    // Codex speaks no other remote transport, so this is no guess.
    if draft.is_set("url") {
        draft.put("type", "http");
    }
    draft.table("http_headers", "headers");
    for (header, variable) in draft
        .take("env_http_headers")
        .as_ref()
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        if let Some(variable) = variable.as_str() {
            draft.join("headers", header, format!("${{{variable}}}"));
        }
    }
    if let Some(variable) = draft.take_text("bearer_token_env_var") {
        draft.join(
            "headers",
            "Authorization",
            format!("Bearer ${{{variable}}}"),
        );
    }
    draft.leave(
        "bearer_token",
        "Codex refuses it too; name a variable in a header",
    );
    if let Some(scopes) = draft.take("scopes") {
        draft.put("oauth", Map::from_iter([("scopes".to_owned(), scopes)]));
    }
    draft.leave("oauth_resource", "the resource is taken from the URL");
    draft.timeout("tool_timeout_sec", 1_000.0);
    for key in ["startup_timeout_sec", "startup_timeout_ms"] {
        draft.leave(
            key,
            "the time to connect is set for all servers by `MCP_TIMEOUT`",
        );
    }
    draft.list("enabled_tools", "includeTools");
    draft.list("disabled_tools", "excludeTools");
    for key in ["default_tools_approval_mode", "tools"] {
        draft.leave(key, "write permission rules instead");
    }
    draft.leave("required", "no server is required to start");
}
