//! Servers that nobody here wrote: official ones from npm and PyPI, FastMCP, and small ones of
//! ours on the official SDKs.
//!
//! `cargo xtask test` installs them; `tests/peers/README.md` says how each is started.

mod chains;
mod clients;
mod documented;
mod embedded;
mod generated;
mod library;
mod listening;
mod logins;
mod offers;
mod pages;
mod programs;
mod remote;
mod results;
mod tasks;
mod terminal;

use std::process::Command;

use serde_json::{Value, json};
use toolway_testkit::{CommandOutput, TempHome, peers};

use self::listening::Peer;
use crate::support::{servers, toolway};

fn node(package: &str, args: &[&str]) -> Value {
    let script = peers::dir()
        .join("node_modules/@modelcontextprotocol")
        .join(package)
        .join("dist/index.js");
    let mut words = vec![script.display().to_string()];
    words.extend(args.iter().map(|word| (*word).to_owned()));
    json!({ "command": "node", "args": words })
}

fn python(program: &str, args: &[&str]) -> Value {
    json!({ "command": peers::python_program(program).display().to_string(), "args": args })
}

fn home_with(name: &str, entry: Value) -> TempHome {
    let home = TempHome::new();
    home.write_settings(servers(&[(name, entry)]));
    home
}

/// The one server of `list --json`.
fn listed(home: &TempHome) -> Value {
    let output = toolway(home, &["list", "--json"]).expect_code(0);
    let server = output.json()["servers"][0].clone();
    assert_eq!(server["state"], "connected", "{output}");
    server
}

fn tool_names(home: &TempHome) -> Vec<String> {
    let output = toolway(home, &["tools", "--json"]).expect_code(0);
    output.json()["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

fn call(home: &TempHome, words: &[&str]) -> CommandOutput {
    let mut all = vec!["call"];
    all.extend(words);
    toolway(home, &all).expect_code(0)
}

#[test]
fn everything_over_stdio() {
    let home = home_with("everything", node("server-everything", &["stdio"]));
    let server = listed(&home);
    assert_eq!(server["era"], "legacy");
    assert!(server["tools"].as_u64().unwrap() >= 8, "{server}");
    assert!(server["resources"].as_u64().unwrap() > 0, "{server}");
    assert!(tool_names(&home).contains(&"mcp__everything__echo".to_owned()));
    assert_eq!(
        call(&home, &["everything", "echo", "message=hi"]).stdout,
        "Echo: hi\n"
    );
    let sum = call(&home, &["everything.get-sum", "a=2", "b=40"]);
    assert_eq!(sum.stdout, "The sum of 2 and 40 is 42.\n");
    let image = call(&home, &["everything", "get-tiny-image"]);
    assert!(image.stdout.contains("[image/png, "), "{image}");
}

#[test]
fn filesystem_over_stdio() {
    let home = TempHome::new();
    let file = home.write("notes/a.txt", "one\ntwo\n");
    let root = home.project().join("notes").canonicalize().unwrap();
    home.write_settings(servers(&[(
        "files",
        node("server-filesystem", &[root.to_str().unwrap()]),
    )]));
    let path = format!("path={}", file.canonicalize().unwrap().display());
    assert_eq!(
        call(&home, &["files", "read_text_file", &path]).stdout,
        "one\ntwo\n"
    );
    let outside = toolway(
        &home,
        &["call", "files", "read_text_file", "path=/etc/hostname"],
    );
    assert_eq!(outside.code, Some(7), "{outside}");
}

/// `server-filesystem` gives up the directories of its command line for a client's roots, at
/// whatever moment it hears of them.
#[test]
fn the_filesystem_server_keeps_to_the_directories_it_was_given() {
    let home = TempHome::new();
    let file = home.write(home.home().join("notes/a.txt"), "mine\n");
    let inside = home.write("private.txt", "the project's\n");
    let directory = home.home().join("notes").canonicalize().unwrap();
    home.write_settings(servers(&[
        (
            "files",
            node("server-filesystem", &[directory.to_str().unwrap()]),
        ),
        ("everything", node("server-everything", &["stdio"])),
    ]));
    let path = |file: &std::path::Path| format!("path={}", file.canonicalize().unwrap().display());
    let named = call(&home, &["files", "read_text_file", &path(&file)]);
    assert_eq!(named.stdout, "mine\n");
    let other = toolway(&home, &["call", "files", "read_text_file", &path(&inside)]);
    assert_eq!(other.code, Some(7), "{other}");
    // This tool is there only for clients that declare roots.
    assert!(!tool_names(&home).contains(&"mcp__everything__get-roots-list".to_owned()));
}

#[test]
fn memory_over_stdio_keeps_what_it_was_told() {
    let home = TempHome::new();
    let mut entry = node("server-memory", &[]);
    let store = home.home().join("memory.json").display().to_string();
    entry["env"] = json!({ "MEMORY_FILE_PATH": store });
    home.write_settings(servers(&[("memory", entry)]));
    let entities = r#"entities:=[{"name":"Ada","entityType":"person","observations":["writes"]}]"#;
    call(&home, &["memory", "create_entities", entities]);
    let graph = call(&home, &["memory", "read_graph", "--json"]).json();
    assert_eq!(graph["structuredContent"]["entities"][0]["name"], "Ada");
    // What one call of a batch writes, the next one reads.
    let write = json!({ "server": "memory", "tool": "create_entities", "arguments": {
        "entities": [{ "name": "Bob", "entityType": "person", "observations": ["reads"] }],
    }});
    let read =
        json!({ "server": "memory", "tool": "open_nodes", "arguments": { "names": ["Bob"] } });
    let mut batch = crate::support::command(&home, &["call", "--batch", "-"]);
    let output = home.run_with_input(&mut batch, &format!("{write}\n{read}\n"));
    let last = output.expect_code(0).stdout;
    let last: Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();
    let found = &last["result"]["structuredContent"]["entities"][0]["name"];
    assert_eq!(found, "Bob", "{last}");
}

#[test]
fn time_over_stdio() {
    let home = home_with(
        "time",
        python("mcp-server-time", &["--local-timezone", "UTC"]),
    );
    assert_eq!(listed(&home)["serverInfo"]["name"], "mcp-time");
    let now = call(
        &home,
        &["mcp__time__get_current_time", "timezone=Europe/Berlin"],
    );
    let now: Value = serde_json::from_str(&now.stdout).unwrap();
    assert_eq!(now["timezone"], "Europe/Berlin");
}

#[test]
fn git_over_stdio() {
    let home = TempHome::new();
    let repository = home.project().join("repository");
    std::fs::create_dir(&repository).unwrap();
    let status = Command::new("git")
        .args(["init", "--quiet"])
        .arg(&repository)
        .status()
        .unwrap();
    assert!(status.success());
    let path = repository.display().to_string();
    home.write_settings(servers(&[(
        "git",
        python("mcp-server-git", &["--repository", &path]),
    )]));
    let status = call(&home, &["git", "git_status", &format!("repo_path={path}")]);
    assert!(status.stdout.starts_with("Repository status:"), "{status}");
}

#[test]
fn everything_over_streamable_http() {
    let server = Peer::EverythingHttp.start();
    let home = home_with("everything", server.entry());
    assert_eq!(listed(&home)["era"], "legacy");
    assert_eq!(
        call(&home, &["everything", "echo", "message=over http"]).stdout,
        "Echo: over http\n"
    );
    // Without configuring it, too.
    let bare = TempHome::new();
    assert_eq!(
        call(&bare, &[&server.url, "echo", "message=hi"]).stdout,
        "Echo: hi\n"
    );
}

#[test]
fn fastmcp_over_http_in_the_modern_era() {
    let peer = Peer::FastMcp.start();
    let home = home_with("fast", peer.entry());
    let server = listed(&home);
    assert_eq!(server["era"], "modern");
    assert_eq!(server["protocolVersion"], "2026-07-28");
    assert_eq!(call(&home, &["fast", "add", "a=2", "b=40"]).stdout, "42\n");
    let weather = call(&home, &["fast", "forecast", "city=Rome", "--json"]).json();
    assert_eq!(weather["structuredContent"]["celsius"], 21.5);
    let failed = toolway(&home, &["call", "fast", "fail", "reason=no"]);
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(7), "no\n"));
}

#[test]
fn one_broken_server_does_not_hold_up_real_ones() {
    let home = TempHome::new();
    home.write_settings(servers(&[
        ("broken", json!({ "command": "/nonexistent/program" })),
        (
            "crashing",
            json!({ "command": "node", "args": ["-e", "process.exit(3)"] }),
        ),
        (
            "time",
            python("mcp-server-time", &["--local-timezone", "UTC"]),
        ),
    ]));
    let output = toolway(&home, &["list", "--json"]).expect_code(0);
    let states: Vec<Value> = output.json()["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["state"].clone())
        .collect();
    assert_eq!(states, ["failed", "failed", "connected"], "{output}");
}
