//! Taking it back: byte for byte, or what can be taken back of a file that was changed since.

use std::fs;

use insta::assert_snapshot;
use serde_json::json;

use super::{CURSOR, connect, cursor_file, everything, home, home_with_cursor};
use crate::support::servers;

#[test]
fn a_file_that_was_made_is_gone_again() {
    let home = home();
    assert_snapshot!(connect(&home, &["cursor", "--yes"]), @r#"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      @@ -0,0 +1,8 @@
      +{
      +  "mcpServers": {
      +    "toolway": {
      +      "command": "toolway",
      +      "args": ["serve"]
      +    }
      +  }
      +}
    ----- stderr
    connected Cursor: [HOME]/.cursor/mcp.json:3
    hint: restart Cursor to use it; take it back with `toolway connect cursor --undo`
    "#);
    assert_snapshot!(connect(&home, &["cursor", "--undo", "--yes"]), @r#"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      @@ -1,8 +0,0 @@
      -{
      -  "mcpServers": {
      -    "toolway": {
      -      "command": "toolway",
      -      "args": ["serve"]
      -    }
      -  }
      -}
    ----- stderr
    disconnected Cursor: [HOME]/.cursor/mcp.json is gone again
    "#);
    assert!(!cursor_file(&home).exists());
    assert_snapshot!(connect(&home, &["cursor", "--undo", "--yes"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    nothing to take back: Cursor is not connected in [HOME]/.cursor/mcp.json
    ");
}

#[test]
fn what_was_changed_since_stays() {
    let home = home_with_cursor();
    connect(&home, &["cursor", "--yes", "--move"]).expect_code(0);
    let changed = home
        .read(cursor_file(&home))
        .replace("\"telemetry\": false", "\"telemetry\": true /* again */")
        .replace(
            "\"args\": [\"serve\"]",
            "\"args\": [\"serve\"], \"disabled\": true",
        );
    home.write(cursor_file(&home), &changed);
    assert_snapshot!(connect(&home, &["cursor", "--undo", "--yes"]), @r#"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      @@ -3,8 +3,11 @@
         "mcpServers": {
           // slow
      -    "toolway": {
      -      "command": "toolway",
      -      "args": ["serve"], "disabled": true
      +    "files": {
      +      "command": "npx",
      +      "args": ["-y", "server-files"]
           },
      +    "docs": {
      +      "url": "https://docs.example/mcp"
      +    }
         },
         "telemetry": true /* again */
    ----- stderr
    disconnected Cursor: [HOME]/.cursor/mcp.json
    note: the file was changed since, so only the entries were taken back
    `files`, `docs` stand there again, and stay in Toolway too
    hint: take what you do not want twice out of Toolway: `toolway remove files -s user`
    "#);
    assert_snapshot!(home.read(cursor_file(&home)), @r#"
    {
      // Mine.
      "mcpServers": {
        // slow
        "files": {
          "command": "npx",
          "args": ["-y", "server-files"]
        },
        "docs": {
          "url": "https://docs.example/mcp"
        }
      },
      "telemetry": true /* again */
    }
    "#);
    assert_snapshot!(connect(&home, &["cursor", "--undo", "--yes"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    nothing to take back: Cursor is not connected in [HOME]/.cursor/mcp.json
    ");
}

#[test]
fn every_format_is_taken_back_after_a_change() {
    let home = home();
    for (client, path, text, line) in [
        (
            "codex",
            ".codex/config.toml",
            "model = \"a\"\n\n[mcp_servers.notes]\ncommand = \"n\"\nenv = { A = \"b\" }\nstartup_timeout_sec = 2.5\n",
            "# new\n",
        ),
        (
            "goose",
            ".config/goose/config.yaml",
            "extensions:\n  notes:\n    type: stdio\n    cmd: n\n    args: [\"1\", \"true\"]\n    envs: {A: \"no\"}\n",
            "GOOSE_MODEL: new\n",
        ),
        (
            "gemini",
            ".gemini/settings.json",
            "{\n  \"mcp\": {\"allowed\": [\"notes\"]},\n  \"mcpServers\": {\n    \"notes\": {\"command\": \"n\"}\n  }\n}\n",
            "// new\n",
        ),
    ] {
        let path = home.write(home.home().join(path), text);
        connect(&home, &[client, "--yes", "--move"]).expect_code(0);
        home.write(&path, format!("{}{line}", home.read(&path)));
        let said = connect(&home, &[client, "--undo", "--yes"]).expect_code(0);
        assert!(said.stderr.contains("was changed since"), "{said}");
        home.write(
            home.home().join(format!("{client}.after")),
            home.read(&path),
        );
    }
    let after = |client: &str| home.read(home.home().join(format!("{client}.after")));
    assert_snapshot!(after("codex"), @r#"
    model = "a"

    # new

    [mcp_servers.notes]
    command = "n"
    env = { A = "b" }
    startup_timeout_sec = 2.5
    "#);
    assert_snapshot!(after("goose"), @r#"
    extensions:
      notes:
        type: stdio
        cmd: n
        args: ["1", "true"]
        envs: {A: "no"}
    GOOSE_MODEL: new
    "#);
    assert_snapshot!(after("gemini"), @r#"
    {
      "mcp": {"allowed": ["notes"]},
      "mcpServers": {
        "notes": {"command": "n"}
      }
    }
    // new
    "#);
}

#[test]
fn what_is_no_longer_ours_is_left_with_a_clear_word() {
    let home = home_with_cursor();
    connect(&home, &["cursor", "--yes", "--move"]).expect_code(0);
    let written = home.read(cursor_file(&home));
    // The entry is another one.
    home.write(cursor_file(&home), written.replace("\"serve\"", "\"call\""));
    let before = everything(home.home());
    assert_snapshot!(connect(&home, &["cursor", "--undo", "--yes"]), @"
    exit: 6
    ----- stdout
    ----- stderr
    error: `toolway` is no longer what `toolway connect` wrote in `[HOME]/.cursor/mcp.json`
    hint: nothing was written; mend it by hand in `[HOME]/.cursor/mcp.json`
    ");
    assert_eq!(everything(home.home()), before);
    // Another server took the name of one that was moved.
    let taken = written.replace(
        "\"toolway\": {",
        "\"docs\": { \"command\": \"new\" },\n    \"toolway\": {",
    );
    home.write(cursor_file(&home), taken);
    let before = everything(home.home());
    assert_snapshot!(connect(&home, &["cursor", "--undo", "--yes"]), @"
    exit: 6
    ----- stdout
    ----- stderr
    error: `docs` was moved, and another server of that name stands in `[HOME]/.cursor/mcp.json`
    hint: nothing was written; mend it by hand in `[HOME]/.cursor/mcp.json`
    ");
    assert_eq!(everything(home.home()), before);
    // The file as it was written is taken back whole.
    home.write(cursor_file(&home), written);
    connect(&home, &["cursor", "--undo", "--yes"]).expect_code(0);
    assert_eq!(home.read(cursor_file(&home)), CURSOR);
}

#[test]
fn without_a_record_the_entry_alone_goes() {
    let home = home_with_cursor();
    connect(&home, &["cursor", "--yes", "--keep"]).expect_code(0);
    fs::remove_file(home.config_home().join("state/clients.json")).unwrap();
    assert_snapshot!(connect(&home, &["cursor", "--undo", "--yes"]), @r#"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      @@ -4,8 +4,4 @@
           "files": { "command": "npx", "args": ["-y", "server-files"] },
           "docs": { "url": "https://docs.example/mcp" }, // slow
      -    "toolway": {
      -      "command": "toolway",
      -      "args": ["serve"]
      -    },
         },
         "telemetry": false
    ----- stderr
    disconnected Cursor: [HOME]/.cursor/mcp.json
    "#);
    assert_eq!(home.read(cursor_file(&home)), CURSOR);
}

#[test]
fn a_record_that_cannot_be_read_keeps_everything_as_it_is() {
    let home = home_with_cursor();
    connect(&home, &["cursor", "--yes", "--keep"]).expect_code(0);
    fs::write(home.config_home().join("state/clients.json"), "{").unwrap();
    let before = everything(home.home());
    assert_snapshot!(connect(&home, &["cursor", "--undo", "--yes"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: `[HOME]/.config/toolway/state/clients.json` is not valid: it is no record of `toolway connect` (line 1, column 1); it was left as it is
    hint: mend `[HOME]/.config/toolway/state/clients.json` first; nothing was written
    ");
    assert_snapshot!(connect(&home, &["cursor", "--yes", "--profile", "x"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: `[HOME]/.config/toolway/state/clients.json` is not valid: it is no record of `toolway connect` (line 1, column 1); it was left as it is
    hint: mend `[HOME]/.config/toolway/state/clients.json` first; nothing was written
    ");
    let after: Vec<_> = everything(home.home());
    let locks = |path: &std::path::Path| path.ends_with("state/clients.json.lock");
    assert_eq!(
        after
            .iter()
            .filter(|(path, _)| !locks(path))
            .collect::<Vec<_>>(),
        before
            .iter()
            .filter(|(path, _)| !locks(path))
            .collect::<Vec<_>>()
    );
}

#[test]
fn one_of_two_entries_can_be_taken_back() {
    let home = home();
    home.write(
        cursor_file(&home),
        servers(&[("mine", json!({ "command": "mine" }))]),
    );
    connect(
        &home,
        &[
            "cursor",
            "--yes",
            "--keep",
            "--name",
            "work",
            "--profile",
            "work",
        ],
    )
    .expect_code(0);
    connect(
        &home,
        &[
            "cursor",
            "--yes",
            "--keep",
            "--name",
            "play",
            "--profile",
            "play",
        ],
    )
    .expect_code(0);
    connect(&home, &["cursor", "--undo", "--yes", "--name", "work"]).expect_code(0);
    assert_snapshot!(home.read(cursor_file(&home)), @r#"
    {
      "mcpServers": {
        "mine": {
          "command": "mine"
        },
        "play": {
          "command": "toolway",
          "args": ["serve", "--profile", "play"]
        }
      }
    }
    "#);
}
