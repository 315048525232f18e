//! A home with a `toolway` in it, and terminals.

use std::fs::File;
use std::io::Read as _;
use std::process::Command;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use toolway_testkit::{CommandOutput, Script, ScriptedServer, TempHome, marked};

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

/// A terminal: our end of it and a child's.
pub(crate) fn terminal() -> (File, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = File::options()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    (File::from(ours), theirs)
}

/// What a terminal got, escapes and all. The command that was given the other end must be gone:
/// only then does the child alone have it, and reading ends with the child.
pub(crate) fn shown_on(mut ours: File) -> String {
    let mut shown = Vec::new();
    let ended = ours.read_to_end(&mut shown);
    assert!(
        ended
            .as_ref()
            .is_err_and(|error| error.raw_os_error() == Some(5))
            || ended.is_ok(),
        "{ended:?}"
    );
    marked::assert_none("the terminal", &shown);
    String::from_utf8(shown).unwrap()
}
