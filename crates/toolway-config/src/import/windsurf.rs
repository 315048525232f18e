//! Windsurf: one `mcp_config.json`, `serverUrl` for remote servers.

use std::path::PathBuf;

use toolway_types::Diagnosis;

use super::client_json::ClientJson;
use super::translate;
use super::variables::VariableSyntax;
use super::{ClientFile, ClientLocations};

pub(super) fn files(places: &ClientLocations) -> Vec<PathBuf> {
    Vec::from_iter(places.at_home(".codeium/windsurf/mcp_config.json"))
}

pub(super) fn read(found: &mut ClientFile, text: &str) -> Result<(), Diagnosis> {
    let entries = ClientJson::parse(found, text)?.servers(found, &["mcpServers"]);
    translate::each(found, entries, VariableSyntax::Editor, |draft| {
        draft.transport("type");
        draft.process();
        let url = if draft.has("serverUrl") {
            "serverUrl"
        } else {
            "url"
        };
        draft.remote(url);
        draft.list("disabledTools", "excludeTools");
        draft.leave("alwaysAllow", "write permission rules instead");
        draft.leave("registry", "Toolway does not take servers from a registry");
        draft.ignore(&["description"]);
    });
    Ok(())
}
