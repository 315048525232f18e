//! What is printed with a daemon is what is printed without one.

use serde_json::json;
use toolway_testkit::{Script, ScriptedServer, SpokenEras, TempHome};

use super::{attaching, start};
use crate::support::{command, servers};

/// Command lines, each run twice without a daemon and twice with one.
const LINES: [&[&str]; 43] = [
    &["list"],
    &["list", "--json"],
    &["list", "--check"],
    &["list", "--no-connect"],
    &["list", "--cached"],
    &["tools"],
    &["tools", "--json"],
    &["tools", "legacy"],
    &["tools", "legacy", "report"],
    &["tools", "nobody"],
    &["tools", "broken"],
    &["tools", "--search", "remembers"],
    &["tools", "--all"],
    &["tools", "--format", "anthropic"],
    &["call", "legacy", "mirror", "a=1", "b:=[2]"],
    &["call", "modern", "mirror", "a=1", "--json"],
    &["call", "legacy", "mirrr"],
    &["call", "legacy", "log", "level=info"],
    &["call", "legacy", "log", "level=info", "data=x"],
    &["call", "broken", "x"],
    &["call", "nobody", "x"],
    &["call", "mcp__legacy__mirror", "a=1"],
    &["call", "denied", "mirror"],
    &[
        "call",
        "legacy",
        "verbatim",
        "error={\"code\":-32000,\"message\":\"no\"}",
    ],
    &["call", "legacy", "mirror", "--select", ".arguments"],
    &["call", "legacy"],
    &["call"],
    &["resources"],
    &["resources", "--templates", "--json"],
    &["prompts"],
    &["prompts", "legacy", "--json"],
    &["read", "nothing://there"],
    &["skills"],
    &["prompt", "legacy", "nothing"],
    &["state"],
    &["state", "--cached"],
    &["reconnect", "legacy"],
    &["reconnect", "--all"],
    &["reconnect", "legacy", "--json"],
    &["reconnect", "nobody"],
    &["read", "shared:one", "legacy"],
    &["explain", "legacy"],
    &["tools", "--cached"],
];

#[test]
fn a_command_prints_the_same_with_a_daemon_and_without() {
    let home = TempHome::new();
    let offers = |name: &str, speaks| {
        let script = Script {
            name: name.to_owned(),
            offers: true,
            speaks,
            ..Script::default()
        };
        ScriptedServer::new(script).entry()
    };
    let mut settings: serde_json::Value = serde_json::from_str(&servers(&[
        ("legacy", offers("legacy", SpokenEras::Legacy)),
        ("modern", offers("modern", SpokenEras::Modern)),
        ("denied", offers("denied", SpokenEras::Legacy)),
        ("broken", json!({ "command": "false" })),
        ("faulty", json!({ "comand": "misspelt" })),
    ]))
    .unwrap();
    settings["permissions"] = json!({ "deny": ["mcp__denied"] });
    home.write_settings(settings.to_string());
    home.write(
        ".mcp.json",
        servers(&[("waiting", offers("w", SpokenEras::Legacy))]),
    );
    let alone = |words: &[&str]| home.run(&mut command(&home, words)).to_string();
    // What is remembered of servers is known from the first run on.
    alone(&["list"]);
    let without: Vec<String> = LINES.iter().map(|words| steady(&alone(words))).collect();
    start(&home);
    for round in 0..2 {
        for (words, without) in LINES.iter().zip(&without) {
            let with = home.run(&mut attaching(&home, words)).to_string();
            assert_eq!(&steady(&with), without, "{words:?}, round {round}");
        }
    }
}

/// Without what differs from run to run.
fn steady(said: &str) -> String {
    let is_time = |line: &&str| !line.contains("ago");
    said.lines().filter(is_time).collect::<Vec<_>>().join("\n")
}
