//! Files that are no good: one message that names the file, nothing changed, and no other client
//! kept from being connected.

use std::fs;
use std::os::unix::fs::symlink;

use insta::assert_snapshot;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use toolway_testkit::TempHome;

use super::{connect, cursor_file, everything, home, home_with_cursor};

/// What connecting a client with this text says, which leaves every file as it is.
#[track_caller]
fn refused(client: &str, path: &str, text: impl AsRef<[u8]>) -> String {
    let home = home();
    let path = home.write(home.home().join(path), "");
    fs::write(&path, text).unwrap();
    let before = everything(home.home());
    let said = connect(&home, &[client, "--yes", "--move"]);
    assert!(said.code.is_some_and(|code| code != 0), "{said}");
    assert_eq!(everything(home.home()), before, "{said}");
    listed(&home);
    let lines: Vec<&str> = said.stderr.lines().collect();
    lines[lines.len() - 2..].join("\n")
}

/// The list of clients, which no file stops.
#[track_caller]
fn listed(home: &TempHome) {
    connect(home, &[]).expect_code(0);
}

const CODEX: &str = ".codex/config.toml";
const GOOSE: &str = ".config/goose/config.yaml";

#[test]
fn what_is_no_file_is_named_and_neither_read_nor_waited_for() {
    let home = home();
    let place = cursor_file(&home);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    mknodat(CWD, &place, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    assert_snapshot!(connect(&home, &["cursor", "--yes"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: `[HOME]/.cursor/mcp.json` is not a regular file
    hint: look at `[HOME]/.cursor/mcp.json`; nothing was written
    ");
    listed(&home);
    fs::remove_file(&place).unwrap();
    fs::create_dir(&place).unwrap();
    assert_snapshot!(connect(&home, &["cursor", "--yes"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: `[HOME]/.cursor/mcp.json` is not a regular file
    hint: look at `[HOME]/.cursor/mcp.json`; nothing was written
    ");
    listed(&home);
    fs::remove_dir(&place).unwrap();
    symlink("mcp.json", &place).unwrap();
    assert_snapshot!(connect(&home, &["cursor", "--yes"]), @"
    exit: 1
    ----- stdout
    ----- stderr
    error: `[HOME]/.cursor/mcp.json`: too many links
    hint: see where the links at `[HOME]/.cursor/mcp.json` lead; nothing was written
    ");
    assert_snapshot!(connect(&home, &["cursor", "--undo", "--yes"]), @"
    exit: 1
    ----- stdout
    ----- stderr
    error: `[HOME]/.cursor/mcp.json`: too many links
    hint: see where the links at `[HOME]/.cursor/mcp.json` lead; nothing was written
    ");
    listed(&home);
    fs::remove_file(&place).unwrap();
    symlink("/dev/zero", &place).unwrap();
    assert_snapshot!(connect(&home, &["cursor", "--yes"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: `/dev/zero` is not a regular file
    hint: look at `/dev/zero`; nothing was written
    ");
    listed(&home);
}

#[test]
fn a_place_that_holds_no_servers_is_named_with_its_line() {
    assert_snapshot!(refused("cursor", ".cursor/mcp.json", "{\n  \"mcpServers\": []\n}"), @"
    error: mcpServers in `[HOME]/.cursor/mcp.json` is not an object (line 2); it was left as it is
    hint: look at `[HOME]/.cursor/mcp.json`; nothing was written
    ");
    assert_snapshot!(refused("codex", CODEX, "a = 1\nmcp_servers = 1\n"), @"
    error: mcp_servers in `[HOME]/.codex/config.toml` is not an object (line 2); it was left as it is
    hint: look at `[HOME]/.codex/config.toml`; nothing was written
    ");
    assert_snapshot!(refused("goose", GOOSE, "a: 1\nextensions: [a]\n"), @"
    error: extensions in `[HOME]/.config/goose/config.yaml` is not an object (line 2); it was left as it is
    hint: look at `[HOME]/.config/goose/config.yaml`; nothing was written
    ");
    assert_snapshot!(refused("goose", GOOSE, "- extensions\n"), @"
    error: the top level in `[HOME]/.config/goose/config.yaml` is not an object (line 1); it was left as it is
    hint: look at `[HOME]/.config/goose/config.yaml`; nothing was written
    ");
}

#[test]
fn a_way_of_writing_that_is_not_changed_says_which_one_is() {
    let inline = "# mine\nmcp_servers = { a = { command = \"a\" } }\n";
    assert_snapshot!(refused("codex", CODEX, inline), @"
    error: `mcp_servers` in `[HOME]/.codex/config.toml` is written in a way that cannot be changed safely (line 2); it was left as it is
    hint: write it in `[HOME]/.codex/config.toml` with a table for each entry, `[table.entry]`; nothing was written
    ");
    let referred = "x: 1\nextensions:\n  a: &a\n    type: stdio\n    cmd: a\n  b: *a\n";
    assert_snapshot!(refused("goose", GOOSE, referred), @"
    error: `extensions` in `[HOME]/.config/goose/config.yaml` is written in a way that cannot be changed safely (line 2); it was left as it is
    hint: write it in `[HOME]/.config/goose/config.yaml` with lines of its own for each entry, and no references between them; nothing was written
    ");
    assert_snapshot!(refused("goose", GOOSE, "a: 1\n...\n"), @"
    error: `extensions` in `[HOME]/.config/goose/config.yaml` is written in a way that cannot be changed safely (line 1); it was left as it is
    hint: write it in `[HOME]/.config/goose/config.yaml` with lines of its own for each entry, and no references between them; nothing was written
    ");
}

#[test]
fn what_is_too_deep_too_large_or_no_text_is_refused_at_once() {
    let deep = |open: &str, close: &str| open.repeat(100_000) + &close.repeat(100_000);
    assert_snapshot!(refused("cursor", ".cursor/mcp.json", deep("[", "]")), @"
    error: `[HOME]/.cursor/mcp.json` is not valid: maximum nesting depth exceeded (line 1, column 513); it was left as it is
    hint: mend `[HOME]/.cursor/mcp.json` first; nothing was written
    ");
    assert_snapshot!(refused("codex", CODEX, "a = ".to_owned() + &deep("[", "]")), @"
    error: `[HOME]/.codex/config.toml` is not valid: cannot recurse further; max recursion depth met (line 1, column 85); it was left as it is
    hint: mend `[HOME]/.codex/config.toml` first; nothing was written
    ");
    assert_snapshot!(refused("goose", GOOSE, "a: ".to_owned() + &deep("[", "]")), @"
    error: `[HOME]/.config/goose/config.yaml` is not valid: recursion limit exceeded (line 1, column 259); it was left as it is
    hint: mend `[HOME]/.config/goose/config.yaml` first; nothing was written
    ");
    let many = (0..2_000).map(|depth| "  ".repeat(depth) + "a:\n");
    assert_snapshot!(refused("goose", GOOSE, many.collect::<String>()), @"
    error: `[HOME]/.config/goose/config.yaml` is not valid: YAML document too large or too complex: limits breached: Depth { depth: 65 } (line 65, column 129); it was left as it is
    hint: mend `[HOME]/.config/goose/config.yaml` first; nothing was written
    ");
    assert_snapshot!(refused("goose", GOOSE, "a: 1\na: 2\n"), @"
    error: `[HOME]/.config/goose/config.yaml` is not valid: duplicate mapping key: a not allowed here (line 2, column 1); it was left as it is
    hint: mend `[HOME]/.config/goose/config.yaml` first; nothing was written
    ");
    assert_snapshot!(refused("goose", GOOSE, "a: 1\n---\nb: 1\n"), @"
    error: `[HOME]/.config/goose/config.yaml` is not valid: only single YAML document expected but multiple found (line 3, column 1); it was left as it is
    hint: mend `[HOME]/.config/goose/config.yaml` first; nothing was written
    ");
    assert_snapshot!(refused("cursor", ".cursor/mcp.json", b"\xFF\xFE{\0}\0"), @"
    error: `[HOME]/.cursor/mcp.json` is not valid: the text is not UTF-8 (line 1, column 1); it was left as it is
    hint: mend `[HOME]/.cursor/mcp.json` first; nothing was written
    ");
    assert_snapshot!(refused("cursor", ".cursor/mcp.json", vec![b' '; (16 << 20) + 1]), @"
    error: `[HOME]/.cursor/mcp.json`: the file is larger than 16777216 bytes
    hint: see why `[HOME]/.cursor/mcp.json` is that large; nothing was written
    ");
}

#[test]
fn odd_texts_are_given_back_as_they_were() {
    let mark = "\u{FEFF}";
    for (client, path, text) in [
        ("cursor", ".cursor/mcp.json", String::new()),
        ("cursor", ".cursor/mcp.json", mark.to_owned()),
        ("cursor", ".cursor/mcp.json", format!("{mark}{{\"mcpServers\":{{\"a\":{{\"command\":\"a\"}}}}}}")),
        ("cursor", ".cursor/mcp.json", "{\r\n  // c\r\n  \"mcpServers\": {\r\n    \"a\": {\"command\":\"a\"}\r\n  }\r\n}\r\n".to_owned()),
        ("cursor", ".cursor/mcp.json", r#"{"mcpServers":{"a":{"command":"a"}},"mcpServers":{"b":{"command":"b"},"b":{"command":"c"}}}"#.to_owned()),
        ("codex", CODEX, format!("{mark}[mcp_servers.a]\r\ncommand = \"a\"\r\n[x] # it\r\nd = 2001-01-01T00:00:00Z\r\nf = nan")),
        ("goose", GOOSE, format!("{mark}extensions: # mine\r\n  # first\r\n  a: # it\r\n    type: stdio\r\n    cmd: a # x\r\n# end\r\nz: 99999999999999999999999")),
        ("goose", GOOSE, "extensions:\n  a:\n    type: stdio\n    cmd: a\n    description: |\n      toolway:\n        x\n1: !own z".to_owned()),
    ] {
        let home = home();
        let path = home.write(home.home().join(path), &text);
        connect(&home, &[client, "--yes", "--move"]).expect_code(0);
        let written = home.read(&path);
        assert!(written.contains("toolway"), "{written}");
        assert_eq!(written.starts_with(mark), text.starts_with(mark), "{written:?}");
        if text.contains("\r\n") {
            assert_eq!(written.matches('\n').count(), written.matches("\r\n").count(), "{written:?}");
        }
        connect(&home, &[client, "--undo", "--yes"]).expect_code(0);
        assert_eq!(home.read(&path), text);
        let again = connect(&home, &[client, "--undo", "--yes"]).expect_code(0);
        assert!(again.stderr.contains("nothing to take back"), "{again}");
        assert_eq!(home.read(&path), text);
    }
}

#[test]
fn connecting_and_taking_back_at_once_loses_nothing() {
    let home = home_with_cursor();
    std::thread::scope(|scope| {
        for words in [
            &["cursor", "--yes", "--move"][..],
            &["cursor", "--undo", "--yes"],
            &["cursor", "--yes", "--move"],
            &["cursor", "--undo", "--yes"],
        ] {
            let home = &home;
            scope.spawn(move || connect(home, words));
        }
    });
    connect(&home, &["cursor", "--undo", "--yes"]).expect_code(0);
    let left = home.read(cursor_file(&home));
    for kept in ["// Mine.", "\"files\"", "\"docs\"", "\"telemetry\": false"] {
        assert!(left.contains(kept), "{left}");
    }
    assert!(!left.contains("\"toolway\""), "{left}");
}
