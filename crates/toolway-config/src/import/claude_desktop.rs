//! Claude Desktop: `claude_desktop_config.json`, processes only, no variables.

use std::path::PathBuf;

use toolway_types::Diagnosis;

use super::client_json::ClientJson;
use super::translate;
use super::variables::VariableSyntax;
use super::{ClientFile, ClientLocations};

pub(super) fn files(places: &ClientLocations) -> Vec<PathBuf> {
    places.at_applications("Claude/claude_desktop_config.json")
}

pub(super) fn read(found: &mut ClientFile, text: &str) -> Result<(), Diagnosis> {
    let entries = ClientJson::parse(found, text)?.servers(found, &["mcpServers"]);
    translate::each(found, entries, VariableSyntax::None, |draft| {
        draft.transport("type");
        draft.process();
        draft.remote("url");
        draft.ignore(&["description"]);
    });
    Ok(())
}
