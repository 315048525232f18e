//! `add` looks at what it is given: commands with flags, addresses, and slips.

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::TempHome;

use crate::support::{command, toolway};
use crate::terminal::TerminalProgram;

/// The entry of the only server in the local settings.
fn entry(home: &TempHome) -> Value {
    let text = home.read(".toolway/settings.local.json");
    let settings: Value = serde_json::from_str(&text).unwrap();
    settings["mcpServers"]["x"].clone()
}

/// Programs that the person has.
fn home_with_programs() -> (TempHome, String) {
    let home = TempHome::new();
    let bin = home.home().join("bin");
    for name in ["npx", "docker"] {
        home.write(bin.join(name), "#!/bin/sh\n");
    }
    let path = bin.to_str().unwrap().to_owned();
    (home, path)
}

#[test]
fn a_command_takes_its_own_flags_without_dashes_before_it() {
    let (home, path) = home_with_programs();
    let add = |words: &[&str]| home.run(command(&home, words).env("PATH", &path));
    add(&["add", "x", "npx", "-y", "pkg@1.0.0", "--port=80"]).expect_code(0);
    assert_eq!(
        entry(&home),
        json!({ "type": "stdio", "command": "npx", "args": ["-y", "pkg@1.0.0", "--port=80"] })
    );
    // Toolway's own flags are as before, where the command has none.
    add(&["add", "y", "npx", "pkg@1.0.0", "-s", "user"]).expect_code(0);
    assert_snapshot!(add(&["add", "z", "docker", "run", "-i", "-e", "A=b", "image"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: it is not clear whether `-e` is meant for Toolway or for `docker`
    hint: for Toolway: `toolway add z -e A=b -- docker run -i image`; for the command: `toolway add z -- docker run -i -e A=b image`
    ");
    assert_snapshot!(add(&["add", "z", "npx", "pkg", "--scpoe", "user"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: unexpected argument '--scpoe' found

    Usage: toolway add --scope <SCOPE> <NAME> <COMMAND|URL>...
    hint: did you mean `--scope`? if it is the command's, put `--` before the command
    ");
}

#[test]
fn slips_in_what_is_added_get_the_command_that_was_meant() {
    let (home, path) = home_with_programs();
    let add = |words: &[&str]| home.run(command(&home, words).env("PATH", &path));
    assert_snapshot!(add(&["add", "x", "npx -y foo", "-s", "user"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: 'npx -y foo' is one word, and no program has that name
    hint: did you mean `toolway add x -s user -- npx -y foo`?
    ");
    assert_snapshot!(add(&["add", "x", "mcp.example.com/mcp"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `mcp.example.com/mcp` has no scheme
    hint: did you mean `toolway add x https://mcp.example.com/mcp`?
    ");
    assert_snapshot!(add(&["add", "x", "-t", "http", "localhost:3000/mcp"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `localhost:3000/mcp` has no scheme
    hint: did you mean `toolway add x -t http http://localhost:3000/mcp`?
    ");
    assert_snapshot!(add(&["add", "-s", "user", "nxp", "nxp", "-y", "pkg"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: no program `nxp` is found in `PATH`
    hint: did you mean `toolway add -s user nxp npx -y pkg`?
    ");
    assert_snapshot!(add(&["add", "x", "./run.sh"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: there is no program at `./run.sh`
    hint: install it first, or add it all the same with `--force`
    ");
    assert!(
        !home.project().join(".toolway").exists(),
        "nothing was written"
    );
    add(&["add", "x", "later", "--force"]).expect_code(0);
    assert_eq!(entry(&home)["command"], "later");
    assert_snapshot!(add(&["tools", "mcp.example.com/mcp"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no server named `mcp.example.com/mcp` is configured
    hint: did you mean `https://mcp.example.com/mcp`?
    ");
}

#[test]
fn a_person_is_asked_about_what_looks_like_a_slip() {
    for (given, asked, expected) in [
        (
            "npx -y foo@1.0.0",
            "Add `npx -y foo@1.0.0` in its place? [y/N] ",
            json!({ "type": "stdio", "command": "npx", "args": ["-y", "foo@1.0.0"] }),
        ),
        (
            "mcp.example.com/mcp",
            "Add `https://mcp.example.com/mcp` in its place? [y/N] ",
            json!({ "type": "http", "url": "https://mcp.example.com/mcp" }),
        ),
        (
            "later",
            "Add it all the same? [y/N] ",
            json!({ "type": "stdio", "command": "later" }),
        ),
    ] {
        let (home, path) = home_with_programs();
        for (answer, code) in [("n", 2), ("y", 0)] {
            let words = ["add", "x", given];
            let mut terminal = TerminalProgram::small(command(&home, &words).env("PATH", &path));
            terminal.expect(asked);
            terminal.type_line(answer);
            assert_eq!(terminal.leave().code, Some(code), "{given}: {answer}");
        }
        assert_eq!(entry(&home), expected);
    }
}

#[test]
fn an_address_is_taken_for_the_transport_that_it_names() {
    for (address, kind) in [
        ("https://h.example/mcp", "http"),
        ("https://h.example/v1/sse", "sse"),
        ("https://h.example/sse/?x=1", "sse"),
        ("wss://h.example/sse", "ws"),
        ("WS://h.example", "ws"),
    ] {
        let home = TempHome::new();
        toolway(&home, &["add", "x", address]).expect_code(0);
        assert_eq!(entry(&home)["type"], kind, "{address}");
        let flag = format!("f={address}");
        let got = toolway(&home, &["--mcp-server", &flag, "get", "f", "--json"]);
        assert_eq!(got.json()["transport"], kind, "{address}");
        let file = json!({ "mcpServers": { "g": { "url": address } } }).to_string();
        let got = toolway(&home, &["--mcp-config", &file, "get", "g", "--json"]);
        assert_eq!(got.json()["transport"], kind, "{address}");
    }
}
