//! Claude Desktop: `claude_desktop_config.json`, processes only, no variables.

use std::path::PathBuf;

use toolway_types::Diagnosis;

use super::source::Json;
use super::translate;
use super::variables::Syntax;
use super::{Found, Places};

pub(super) fn files(places: &Places) -> Vec<PathBuf> {
    places.at_applications("Claude/claude_desktop_config.json")
}

pub(super) fn read(found: &mut Found, text: &str) -> Result<(), Diagnosis> {
    let entries = Json::parse(found, text)?.servers(found, &["mcpServers"]);
    translate::each(found, entries, Syntax::None, |draft| {
        draft.transport("type");
        draft.process();
        draft.remote("url");
        draft.ignore(&["description"]);
    });
    Ok(())
}
