//! Cursor: `mcp.json` in `.cursor`, a bare `url` for remote servers, the editor's variables.

use std::path::PathBuf;

use toolway_types::Diagnosis;

use super::client_json::ClientJson;
use super::translate;
use super::variables::VariableSyntax;
use super::{ClientFile, ClientLocations};

pub(super) fn files(places: &ClientLocations) -> Vec<PathBuf> {
    Vec::from_iter(places.at_home(".cursor/mcp.json"))
}

pub(super) fn read(found: &mut ClientFile, text: &str) -> Result<(), Diagnosis> {
    let entries = ClientJson::parse(found, text)?.servers(found, &["mcpServers"]);
    translate::each(found, entries, VariableSyntax::Editor, |draft| {
        draft.transport("type");
        draft.process();
        draft.remote("url");
        draft.oauth("auth", "CLIENT_ID", "scopes");
        draft.timeout("timeout", 1.0);
        draft.leave("envFile", "put its variables into `env`");
        draft.leave("autoApprove", "write permission rules instead");
        draft.ignore(&["description"]);
    });
    Ok(())
}
