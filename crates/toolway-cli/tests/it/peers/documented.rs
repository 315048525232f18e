//! The README from its beginning to its end, as a newcomer would type it, with the servers that it
//! names.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::json;
use toolway_testkit::authority::{Authority, AuthoritySettings};
use toolway_testkit::peers;

use crate::documented::Town;
use crate::documented::command_block::CommandBlock;
use crate::support::servers;

/// What the text says is there before the commands below it are typed.
fn prepare(town: &Town, block: &CommandBlock) {
    let home = &town.home;
    let has = |words: &str| block.commands.iter().any(|it| it.line.contains(words));
    if has("toolway approve build") {
        home.write("tools/build-server.js", "");
        let build = json!({
            "command": "node",
            "args": ["tools/build-server.js"],
            "env": { "NODE_OPTIONS": "--max-old-space-size=512" },
        });
        home.write(".mcp.json", servers(&[("build", build)]));
    }
    if has("toolway import") {
        // The repository is another one now.
        std::fs::remove_file(home.project().join(".mcp.json")).unwrap();
        let codex = "[mcp_servers.tracker]\nurl = \"https://tracker.example/mcp\"\n\
                     startup_timeout_sec = 20\n";
        home.write(home.home().join(".codex/config.toml"), codex);
    }
    if has("toolway login tracker") {
        let node = peers::dir().join("node_modules/@modelcontextprotocol/server-everything/dist");
        let everything = json!({ "command": "node", "args": [node.join("index.js")] });
        let tracker = town.authority.as_ref().unwrap().entry();
        home.write_settings(servers(&[("everything", everything), ("tracker", tracker)]));
    }
    if has("toolway read file:") {
        let notes = home.home().join("notes");
        home.write(notes.join("today.md"), "Today.\n");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/documented/town.py");
        let docs = json!({ "command": "python3", "args": ["-u", script, "docs"] });
        home.write_settings(servers(&[("docs", docs)]));
    }
}

#[test]
fn the_readme_is_what_happens() {
    let everything =
        peers::dir().join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let time = peers::python_program("mcp-server-time");
    let packages = [
        ("npx", format!("node {}", everything.display())),
        ("uvx", time.display().to_string()),
    ];
    let authority = Authority::start(AuthoritySettings::default());
    let town = Town::new(&packages, Some(authority));
    let blocks = CommandBlock::of_pages();
    let readme = blocks.iter().filter(|it| it.place.starts_with("README"));
    let mut broken = 0;
    for block in readme {
        prepare(&town, block);
        for documented in &block.commands {
            if documented.line.starts_with("cargo ") {
                continue;
            }
            let follow = AssertUnwindSafe(|| town.follow(&block.place, documented));
            broken += usize::from(catch_unwind(follow).is_err());
        }
    }
    assert_eq!(broken, 0, "what stands above did not hold");
}
