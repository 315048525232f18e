//! A home with a `toolway` in it.

use std::process::Command;

use serde_json::{Value, json};
use toolway_testkit::{CommandOutput, Script, ScriptedServer, TempHome};

/// The program under test.
pub(crate) fn program() -> &'static str {
    env!("CARGO_BIN_EXE_toolway")
}

/// `toolway` with these words, in this home.
pub(crate) fn command(home: &TempHome, words: &[&str]) -> Command {
    let mut command = home.command(program());
    command.args(words);
    command
}

/// Runs `toolway` with these words to its end.
pub(crate) fn toolway(home: &TempHome, words: &[&str]) -> CommandOutput {
    home.run(&mut command(home, words))
}

/// Settings or a `.mcp.json` with these servers.
pub(crate) fn servers(entries: &[(&str, Value)]) -> String {
    let map: serde_json::Map<String, Value> = entries
        .iter()
        .map(|(name, entry)| ((*name).to_owned(), entry.clone()))
        .collect();
    serde_json::to_string_pretty(&json!({ "mcpServers": map })).unwrap()
}

/// A home whose user settings hold one scripted stdio server, called `chaos`.
pub(crate) fn home_with(script: Script) -> TempHome {
    let home = TempHome::new();
    home.write_settings(servers(&[("chaos", ScriptedServer::new(script).entry())]));
    home
}
