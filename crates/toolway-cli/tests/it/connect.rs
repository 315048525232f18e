//! `connect`: one entry in another client's settings, what moves with it, and taking it all back.

mod clients;
mod hostile;
mod undoing;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use insta::assert_snapshot;
use serde_json::json;
use toolway_testkit::{CommandOutput, TempHome, marked};

use crate::support::{command, program, servers, toolway};
use crate::terminal::TerminalProgram;

/// A home in which `toolway` is found by its name.
fn home() -> TempHome {
    let home = TempHome::new();
    let bin = home.home().join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(program(), bin.join("toolway")).unwrap();
    home
}

/// `toolway connect` with these words.
fn connecting(home: &TempHome, words: &[&str]) -> Command {
    let mut command = command(home, &["connect"]);
    let bin = home.home().join("bin");
    command
        .args(words)
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    command
}

fn connect(home: &TempHome, words: &[&str]) -> CommandOutput {
    home.run(&mut connecting(home, words))
}

fn cursor_file(home: &TempHome) -> PathBuf {
    home.home().join(".cursor/mcp.json")
}

const CURSOR: &str = r#"{
  // Mine.
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "server-files"] },
    "docs": { "url": "https://docs.example/mcp" }, // slow
  },
  "telemetry": false
}
"#;

fn home_with_cursor() -> TempHome {
    let home = home();
    home.write(cursor_file(&home), CURSOR);
    home
}

/// Every file below a directory, with its content.
fn everything(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(everything(&path));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn without_a_client_those_that_are_found_are_listed() {
    let home = home();
    assert_snapshot!(connect(&home, &[]), @"
    exit: 0
    ----- stdout
    ----- stderr
    no client was found
    hint: name one all the same with `toolway connect <client>`: claude-desktop, claude-code, cursor, vscode, codex, gemini, windsurf, zed, opencode, goose
    ");
    home.write(cursor_file(&home), CURSOR);
    home.write(home.home().join(".codex/config.toml"), "[mcp_servers.toolway]\ncommand = \"/opt/bin/toolway\"\nargs = [\"serve\", \"--profile\", \"work\"]\n");
    home.write(
        home.home().join(".config/goose/config.yaml"),
        "extensions: [\n",
    );
    home.write(".vscode/mcp.json", "{}");
    fs::create_dir_all(home.home().join(".gemini")).unwrap();
    assert_snapshot!(connect(&home, &[]), @"
    exit: 0
    ----- stdout
    CLIENT  SCOPE    CONNECTED       OTHER SERVERS  FILE
    cursor  user     no              2              [HOME]/.cursor/mcp.json
    vscode  project  no              0              [PROJECT]/.vscode/mcp.json
    codex   user     as toolway      0              [HOME]/.codex/config.toml
    gemini  user     no              0              [HOME]/.gemini/settings.json
    goose   user     cannot be read  0              [HOME]/.config/goose/config.yaml
    ----- stderr
    warning: `[HOME]/.config/goose/config.yaml` is not valid: unclosed bracket '[' (line 1, column 13); it was left as it is
    ");
    assert_snapshot!(connect(&home, &["--json"]), @r#"
    exit: 0
    ----- stdout
    {
      "clients": [
        {
          "client": "cursor",
          "scope": "user",
          "path": "[HOME]/.cursor/mcp.json",
          "connected": [],
          "servers": 2,
          "problem": null
        },
        {
          "client": "vscode",
          "scope": "project",
          "path": "[PROJECT]/.vscode/mcp.json",
          "connected": [],
          "servers": 0,
          "problem": null
        },
        {
          "client": "codex",
          "scope": "user",
          "path": "[HOME]/.codex/config.toml",
          "connected": [
            "toolway"
          ],
          "servers": 0,
          "problem": null
        },
        {
          "client": "gemini",
          "scope": "user",
          "path": "[HOME]/.gemini/settings.json",
          "connected": [],
          "servers": 0,
          "problem": null
        },
        {
          "client": "goose",
          "scope": "user",
          "path": "[HOME]/.config/goose/config.yaml",
          "connected": [],
          "servers": 0,
          "problem": "`[HOME]/.config/goose/config.yaml` is not valid: unclosed bracket '[' (line 1, column 13); it was left as it is"
        }
      ]
    }
    ----- stderr
    "#);
}

#[test]
fn a_preview_changes_nothing() {
    let home = home_with_cursor();
    let before = everything(home.home());
    assert_snapshot!(connect(&home, &["cursor", "--dry-run"]), @r#"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      @@ -4,4 +4,8 @@
           "files": { "command": "npx", "args": ["-y", "server-files"] },
           "docs": { "url": "https://docs.example/mcp" }, // slow
      +    "toolway": {
      +      "command": "toolway",
      +      "args": ["serve"]
      +    },
         },
         "telemetry": false
    ----- stderr
    note: 2 servers stay there beside it; `toolway connect cursor --move` moves them behind Toolway
    "#);
    assert_snapshot!(connect(&home, &["cursor", "--dry-run", "--move"]), @r#"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      @@ -2,6 +2,9 @@
         // Mine.
         "mcpServers": {
      -    "files": { "command": "npx", "args": ["-y", "server-files"] },
      -    "docs": { "url": "https://docs.example/mcp" }, // slow
      +    // slow
      +    "toolway": {
      +      "command": "toolway",
      +      "args": ["serve"]
      +    },
         },
         "telemetry": false
    2 servers move behind Toolway:
      + files  npx -y server-files
      + docs   https://docs.example/mcp
          ~ no transport was named; `http` was taken from the URL
    ----- stderr
    "#);
    assert_snapshot!(connect(&home, &["cursor"]), @r#"
    exit: 6
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      @@ -4,4 +4,8 @@
           "files": { "command": "npx", "args": ["-y", "server-files"] },
           "docs": { "url": "https://docs.example/mcp" }, // slow
      +    "toolway": {
      +      "command": "toolway",
      +      "args": ["serve"]
      +    },
         },
         "telemetry": false
    ----- stderr
    note: 2 servers stay there beside it; `toolway connect cursor --move` moves them behind Toolway
    error: nothing was changed: nobody is there to confirm this
    hint: read the above, then run `toolway connect cursor --yes`
    "#);
    assert_snapshot!(connect(&home, &["cursor", "--undo"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    nothing to take back: Cursor is not connected in [HOME]/.cursor/mcp.json
    ");
    assert_eq!(everything(home.home()), before);
}

#[test]
fn servers_stay_unless_they_are_to_move() {
    let home = home_with_cursor();
    assert_snapshot!(connect(&home, &["cursor", "--yes"]), @r#"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      @@ -4,4 +4,8 @@
           "files": { "command": "npx", "args": ["-y", "server-files"] },
           "docs": { "url": "https://docs.example/mcp" }, // slow
      +    "toolway": {
      +      "command": "toolway",
      +      "args": ["serve"]
      +    },
         },
         "telemetry": false
    ----- stderr
    connected Cursor: [HOME]/.cursor/mcp.json:6
    the file as it was: [HOME]/.cursor/mcp.json.toolway.bak
    note: 2 servers stay there beside it; `toolway connect cursor --move` moves them behind Toolway
    hint: restart Cursor to use it; take it back with `toolway connect cursor --undo`
    "#);
    assert_snapshot!(home.read(cursor_file(&home)), @r#"
    {
      // Mine.
      "mcpServers": {
        "files": { "command": "npx", "args": ["-y", "server-files"] },
        "docs": { "url": "https://docs.example/mcp" }, // slow
        "toolway": {
          "command": "toolway",
          "args": ["serve"]
        },
      },
      "telemetry": false
    }
    "#);
    assert_eq!(
        home.read(home.home().join(".cursor/mcp.json.toolway.bak")),
        CURSOR
    );
    assert!(!home.config_home().join("settings.json").exists());
    // Once more, and then with the servers.
    assert_snapshot!(connect(&home, &["cursor", "--yes", "--keep"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    Cursor is connected already, as `toolway`: [HOME]/.cursor/mcp.json
    ");
    assert_snapshot!(connect(&home, &["cursor", "--yes", "--move"]), @r#"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      @@ -2,6 +2,5 @@
         // Mine.
         "mcpServers": {
      -    "files": { "command": "npx", "args": ["-y", "server-files"] },
      -    "docs": { "url": "https://docs.example/mcp" }, // slow
      +    // slow
           "toolway": {
             "command": "toolway",
    2 servers move behind Toolway:
      + files  npx -y server-files
      + docs   https://docs.example/mcp
          ~ no transport was named; `http` was taken from the URL
    ----- stderr
    added `files` to the user scope: [HOME]/.config/toolway/settings.json:3
    added `docs` to the user scope: [HOME]/.config/toolway/settings.json:7
    connected Cursor: [HOME]/.cursor/mcp.json:5
    the file as it was: [HOME]/.cursor/mcp.json.toolway.bak
    hint: restart Cursor to use it; take it back with `toolway connect cursor --undo`
    "#);
    assert_snapshot!(home.read(cursor_file(&home)), @r#"
    {
      // Mine.
      "mcpServers": {
        // slow
        "toolway": {
          "command": "toolway",
          "args": ["serve"]
        },
      },
      "telemetry": false
    }
    "#);
    assert_snapshot!(home.read(home.config_home().join("settings.json")), @r#"
    {
      "mcpServers": {
        "files": {
          "command": "npx",
          "args": ["-y", "server-files"]
        },
        "docs": {
          "type": "http",
          "url": "https://docs.example/mcp"
        }
      }
    }
    "#);
    connect(&home, &["cursor", "--undo", "--yes"]).expect_code(0);
    assert_eq!(home.read(cursor_file(&home)), CURSOR);
}

#[test]
fn a_person_is_asked_about_the_servers_and_about_the_change() {
    let home = home_with_cursor();
    let mut terminal = TerminalProgram::take_with_stdout(&mut connecting(&home, &["cursor"]));
    terminal.expect("+    \"toolway\": {");
    terminal.expect("2 servers are configured in Cursor:");
    terminal.expect("+ files  npx -y server-files");
    terminal.expect("Move them behind Toolway? [y/N] ");
    terminal.type_line("y");
    terminal.expect("-    \"files\"");
    terminal.expect("Write this to the settings of Cursor? [y/N] ");
    terminal.type_line("n");
    let left = terminal.leave();
    assert_eq!(left.code, Some(6), "{}", left.shown);
    assert_eq!(home.read(cursor_file(&home)), CURSOR);
    assert!(!home.config_home().join("settings.json").exists());

    let mut terminal = TerminalProgram::take_with_stdout(&mut connecting(&home, &["cursor"]));
    terminal.expect("Move them behind Toolway? [y/N] ");
    terminal.type_line("");
    terminal.expect("Write this to the settings of Cursor? [y/N] ");
    terminal.type_line("y");
    terminal.expect("connected Cursor");
    assert_eq!(terminal.leave().code, Some(0));
    let written = home.read(cursor_file(&home));
    assert!(
        written.contains("\"files\"") && written.contains("\"toolway\""),
        "{written}"
    );

    // Connected already: what is left to decide is asked all the same.
    let mut terminal = TerminalProgram::take_with_stdout(&mut connecting(&home, &["cursor"]));
    terminal.expect("Move them behind Toolway? [y/N] ");
    terminal.type_line("y");
    terminal.expect("Write this to the settings of Cursor? [y/N] ");
    terminal.type_line("y");
    terminal.expect("connected Cursor");
    assert_eq!(terminal.leave().code, Some(0));
    assert!(!home.read(cursor_file(&home)).contains("\"files\""));

    let mut terminal =
        TerminalProgram::take_with_stdout(&mut connecting(&home, &["cursor", "--undo"]));
    terminal.expect("Take this back in the settings of Cursor? [y/N] ");
    terminal.type_line("y");
    terminal.expect("`files`, `docs` stand there again");
    assert_eq!(terminal.leave().code, Some(0));
    assert_eq!(home.read(cursor_file(&home)), CURSOR);
}

#[test]
fn what_cannot_move_stays_and_says_why() {
    let home = home();
    home.write(
        home.system().join("managed-mcp.json"),
        r#"{ "deniedMcpServers": [{ "serverName": "denied" }] }"#,
    );
    home.write_settings(servers(&[
        ("files", json!({ "command": "other" })),
        (
            "mine",
            json!({ "type": "http", "url": "https://docs.example/mcp" }),
        ),
        ("half", json!({ "command": "half", "env": { "A": "1" } })),
    ]));
    home.write(
        cursor_file(&home),
        servers(&[
            (
                "files",
                json!({ "command": "npx", "args": ["-y", "server-files"] }),
            ),
            ("docs", json!({ "url": "https://docs.example/mcp" })),
            ("half", json!({ "command": "half", "env": { "A": "2" } })),
            ("denied", json!({ "command": "denied" })),
            ("broken", json!({ "args": [] })),
            ("free", json!({ "command": "free", "autoApprove": ["x"] })),
        ]),
    );
    assert_snapshot!(connect(&home, &["cursor", "--yes", "--move"]), @r#"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      @@ -8,7 +8,4 @@
             ]
           },
      -    "docs": {
      -      "url": "https://docs.example/mcp"
      -    },
           "half": {
             "command": "half",
      @@ -23,9 +20,7 @@
             "args": []
           },
      -    "free": {
      -      "command": "free",
      -      "autoApprove": [
      -        "x"
      -      ]
      +    "toolway": {
      +      "command": "toolway",
      +      "args": ["serve"]
           }
         }
    2 of 5 servers move behind Toolway:
      - files   stays: the name is taken by [HOME]/.config/toolway/settings.json:3
      = docs    the same as `mine` of [HOME]/.config/toolway/settings.json:6
      - half    stays: the name is taken by [HOME]/.config/toolway/settings.json:10
      - denied  stays: denied by `{"serverName":"denied"}` in `deniedMcpServers` ([SYSTEM]/managed-mcp.json:1)
      + free    free
          ! `autoApprove` was left out: write permission rules instead
    ----- stderr
    warning: [HOME]/.cursor/mcp.json:22: server `broken`: `broken` has neither a command nor a URL
    added `free` to the user scope: [HOME]/.config/toolway/settings.json:16
    connected Cursor: [HOME]/.cursor/mcp.json:22
    the file as it was: [HOME]/.cursor/mcp.json.toolway.bak
    hint: restart Cursor to use it; take it back with `toolway connect cursor --undo`
    "#);
    assert_snapshot!(home.read(cursor_file(&home)), @r#"
    {
      "mcpServers": {
        "files": {
          "command": "npx",
          "args": [
            "-y",
            "server-files"
          ]
        },
        "half": {
          "command": "half",
          "env": {
            "A": "2"
          }
        },
        "denied": {
          "command": "denied"
        },
        "broken": {
          "args": []
        },
        "toolway": {
          "command": "toolway",
          "args": ["serve"]
        }
      }
    }
    "#);
}

#[test]
fn a_broken_file_is_left_with_one_clear_message() {
    let home = home();
    for (client, path, text) in [
        (
            "cursor",
            ".cursor/mcp.json",
            "{\n  \"mcpServers\": {\n    \"a\" 1\n  }\n}\n",
        ),
        (
            "codex",
            ".codex/config.toml",
            "model = \"x\"\n[mcp_servers.a\n",
        ),
        (
            "goose",
            ".config/goose/config.yaml",
            "GOOSE_MODEL: x\nextensions: [\n",
        ),
        ("zed", ".config/zed/settings.json", "[1, 2]\n"),
        ("gemini", ".gemini/settings.json", "{ \"mcpServers\": 3 }\n"),
    ] {
        home.write(home.home().join(path), text);
        let before = everything(home.home());
        let said = connect(&home, &[client, "--yes", "--move"]).expect_code(3);
        assert_eq!(everything(home.home()), before, "{said}");
        home.write(home.home().join(format!("{client}.said")), said.stderr);
    }
    let said = |client: &str| home.read(home.home().join(format!("{client}.said")));
    assert_snapshot!(said("cursor"), @"
    error: `[HOME]/.cursor/mcp.json` is not valid: expected colon after the string or word in object property (line 3, column 9); it was left as it is
    hint: mend `[HOME]/.cursor/mcp.json` first; nothing was written
    ");
    assert_snapshot!(said("codex"), @"
    error: `[HOME]/.codex/config.toml` is not valid: unclosed table, expected `]` (line 2, column 15); it was left as it is
    hint: mend `[HOME]/.codex/config.toml` first; nothing was written
    ");
    assert_snapshot!(said("goose"), @"
    error: `[HOME]/.config/goose/config.yaml` is not valid: unclosed bracket '[' (line 2, column 13); it was left as it is
    hint: mend `[HOME]/.config/goose/config.yaml` first; nothing was written
    ");
    assert_snapshot!(said("zed"), @"
    error: the top level in `[HOME]/.config/zed/settings.json` is not an object (line 1); it was left as it is
    hint: look at `[HOME]/.config/zed/settings.json`; nothing was written
    ");
    assert_snapshot!(said("gemini"), @"
    error: mcpServers in `[HOME]/.gemini/settings.json` is not an object (line 1); it was left as it is
    hint: look at `[HOME]/.gemini/settings.json`; nothing was written
    ");
}

#[test]
fn another_server_of_that_name_is_not_written_over() {
    let home = home();
    let text = servers(&[("toolway", json!({ "command": "mine" }))]);
    home.write(cursor_file(&home), &text);
    assert_snapshot!(connect(&home, &["cursor", "--yes"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: `toolway` is another server in `[HOME]/.cursor/mcp.json`
    hint: choose a name that is free: `--name toolway-gateway`
    ");
    assert_eq!(home.read(cursor_file(&home)), text);
    let again = [
        "cursor",
        "--name",
        "gateway",
        "--profile",
        "my work",
        "--move",
    ];
    assert_snapshot!(connect(&home, &again).stderr, @"
    error: nothing was changed: nobody is there to confirm this
    hint: read the above, then run `toolway connect cursor --name gateway --profile 'my work' --move --yes`
    ");
    connect(&home, &["cursor", "--yes", "--keep", "--name", "gateway"]).expect_code(0);
    assert_snapshot!(home.read(cursor_file(&home)), @r#"
    {
      "mcpServers": {
        "toolway": {
          "command": "mine"
        },
        "gateway": {
          "command": "toolway",
          "args": ["serve"]
        }
      }
    }
    "#);
    assert_snapshot!(connect(&home, &["cursor", "--yes", "--name", "a b"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: a name here has letters, digits, `-` and `_` only
    hint: e.g. `--name toolway-work`
    ");
}

#[test]
fn a_second_time_changes_the_entry_that_is_there() {
    let home = home();
    let text = servers(&[(
        "gateway",
        json!({ "command": "/old/toolway", "args": ["serve"] }),
    )]);
    home.write(cursor_file(&home), &text);
    connect(&home, &["cursor", "--yes", "--profile", "work"]).expect_code(0);
    assert_snapshot!(home.read(cursor_file(&home)), @r#"
    {
      "mcpServers": {
        "gateway": {
          "command": "toolway",
          "args": [
            "serve",
            "--profile",
            "work"
          ]
        }
      }
    }
    "#);
    connect(&home, &["cursor", "--yes"]).expect_code(0);
    connect(
        &home,
        &["cursor", "--yes", "--name", "home", "--profile", "home"],
    )
    .expect_code(0);
    assert_snapshot!(connect(&home, &[]), @"
    exit: 0
    ----- stdout
    CLIENT  SCOPE  CONNECTED         OTHER SERVERS  FILE
    cursor  user   as gateway, home  0              [HOME]/.cursor/mcp.json
    ----- stderr
    ");
    connect(&home, &["cursor", "--undo", "--yes"]).expect_code(0);
    assert_eq!(home.read(cursor_file(&home)), text);
}

#[test]
fn the_program_is_named_by_its_path_where_its_name_does_not_lead_to_it() {
    let home = home();
    home.run(&mut command(&home, &["connect", "cursor", "--yes"]))
        .expect_code(0);
    let written = home
        .read(cursor_file(&home))
        .replace(program(), "[PROGRAM]");
    assert_snapshot!(written, @r#"
    {
      "mcpServers": {
        "toolway": {
          "command": "[PROGRAM]",
          "args": ["serve"]
        }
      }
    }
    "#);
    // Another program of that name stands before it.
    let other = home.home().join("bin/first/toolway");
    home.write(&other, "#!/bin/sh\n");
    home.run(home.command("chmod").arg("755").arg(&other));
    let mut command = connecting(&home, &["windsurf", "--yes"]);
    let first = home.home().join("bin/first");
    let path = format!("{}:{}/bin", first.display(), home.home().display());
    home.run(command.env("PATH", path)).expect_code(0);
    let file = home.home().join(".codeium/windsurf/mcp_config.json");
    assert!(home.read(file).contains(program()));
}

#[test]
fn other_settings_than_the_usual_go_along() {
    let home = home();
    let elsewhere = home.home().join("elsewhere");
    let mut command = connecting(&home, &["opencode", "--yes"]);
    home.run(command.env("TOOLWAY_HOME", &elsewhere))
        .expect_code(0);
    let file = home.home().join(".config/opencode/opencode.json");
    assert_snapshot!(home.normalise(&home.read(file)), @r#"
    {
      "mcp": {
        "toolway": {
          "type": "local",
          "command": ["toolway", "serve"],
          "enabled": true,
          "environment": {
            "TOOLWAY_HOME": "[HOME]/elsewhere"
          }
        }
      }
    }
    "#);
}

#[test]
fn a_link_to_the_settings_stays_a_link() {
    let home = home();
    let real = home.home().join("dotfiles/mcp.json");
    home.write(&real, CURSOR);
    fs::create_dir_all(home.home().join(".cursor")).unwrap();
    symlink("../dotfiles/mcp.json", cursor_file(&home)).unwrap();
    connect(&home, &["cursor", "--yes", "--keep"]).expect_code(0);
    assert!(
        fs::symlink_metadata(cursor_file(&home))
            .unwrap()
            .is_symlink()
    );
    assert!(home.read(&real).contains("\"toolway\""));
    connect(&home, &["cursor", "--undo", "--yes"]).expect_code(0);
    assert!(
        fs::symlink_metadata(cursor_file(&home))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(home.read(&real), CURSOR);
}

#[test]
fn sec_47_secrets_of_moved_servers_are_not_shown_and_lie_where_only_their_owner_reads_them() {
    let home = home();
    home.write(
        cursor_file(&home),
        servers(&[
            (
                "files",
                json!({ "command": "npx", "env": { "KEY": marked!("k-") } }),
            ),
            (
                "docs",
                json!({ "url": "https://docs.example/mcp", "headers": { "X": marked!("h") } }),
            ),
            (
                "db",
                json!({ "command": "db", "args": ["--password", marked!("p-")] }),
            ),
        ]),
    );
    let codex = home.write(
        home.home().join(".codex/config.toml"),
        concat!(
            "[mcp_servers.a]\ncommand = 'a'\nenv = { K = '",
            marked!("x-"),
            "' }\n# ",
            marked!("sk-", "1234567"),
            "\n"
        ),
    );
    home.may_keep_secrets(home.config_home());
    home.may_hold_secrets(home.home().join(".cursor/mcp.json.toolway.bak"));
    home.may_hold_secrets(home.home().join(".codex/config.toml.toolway.bak"));
    home.run(home.command("chmod").arg("600").arg(&codex));
    connect(&home, &["cursor", "--yes", "--move"]).expect_code(0);
    connect(&home, &["codex", "--yes", "--move"]).expect_code(0);
    let said = connect(&home, &["cursor", "--undo", "--yes"]).expect_code(0);
    assert!(said.stdout.contains("[redacted]"), "{said}");
    connect(&home, &["codex", "--undo", "--yes"]).expect_code(0);
    home.assert_no_secrets();
}

#[test]
fn two_at_once_do_it_once() {
    let home = home_with_cursor();
    let codex = "[mcp_servers.tracker]\nurl = \"https://tracker.example/mcp\"\n";
    home.write(home.home().join(".codex/config.toml"), codex);
    std::thread::scope(|scope| {
        for client in ["cursor", "codex", "cursor", "codex", "cursor"] {
            let home = &home;
            scope.spawn(move || connect(home, &[client, "--yes", "--move"]).expect_code(0));
        }
    });
    assert_snapshot!(home.read(cursor_file(&home)), @r#"
    {
      // Mine.
      "mcpServers": {
        // slow
        "toolway": {
          "command": "toolway",
          "args": ["serve"]
        },
      },
      "telemetry": false
    }
    "#);
    assert_snapshot!(home.read(home.home().join(".codex/config.toml")), @r#"
    [mcp_servers.toolway]
    command = "toolway"
    args = ["serve"]
    "#);
    let settings: serde_json::Value =
        serde_json::from_str(&home.read(home.config_home().join("settings.json"))).unwrap();
    let mut names: Vec<&String> = settings["mcpServers"].as_object().unwrap().keys().collect();
    names.sort();
    assert_eq!(names, ["docs", "files", "tracker"]);
    for client in ["cursor", "codex"] {
        connect(&home, &[client, "--undo", "--yes"]).expect_code(0);
    }
    assert_eq!(home.read(cursor_file(&home)), CURSOR);
    assert_eq!(home.read(home.home().join(".codex/config.toml")), codex);
}

#[test]
fn a_project_has_settings_of_its_own() {
    let home = home();
    fs::create_dir(home.project().join(".git")).unwrap();
    let text = "{\n\t\"servers\": {\n\t\t\"repo\": { \"command\": \"repo\" }\n\t}\n}\n";
    home.write(".vscode/mcp.json", text);
    assert_snapshot!(connect(&home, &["vscode", "--scope", "project", "--move", "--yes"]), @r#"
    exit: 0
    ----- stdout
    VS Code ([PROJECT]/.vscode/mcp.json)
      @@ -1,5 +1,9 @@
       {
         "servers": {
      -    "repo": { "command": "repo" }
      +    "toolway": {
      +      "type": "stdio",
      +      "command": "toolway",
      +      "args": ["serve"]
      +    }
         }
       }
    1 server moves behind Toolway:
      + repo  repo
          {
            "command": "repo"
          }
    ----- stderr
    added `repo` to the project scope: [PROJECT]/.mcp.json:3
    hint: it does not start before you approve it: `toolway approve repo`
    connected VS Code: [PROJECT]/.vscode/mcp.json:3
    the file as it was: [PROJECT]/.toolway/vscode-mcp.json.bak
    hint: restart VS Code to use it; take it back with `toolway connect vscode --scope project --undo`
    "#);
    assert_snapshot!(home.read(".vscode/mcp.json"), @r#"
    {
    	"servers": {
    		"toolway": {
    			"type": "stdio",
    			"command": "toolway",
    			"args": ["serve"]
    		}
    	}
    }
    "#);
    assert_snapshot!(home.read(".mcp.json"), @r#"
    {
      "mcpServers": {
        "repo": {
          "command": "repo"
        }
      }
    }
    "#);
    assert_eq!(home.read(".toolway/vscode-mcp.json.bak"), text);
    assert!(!home.project().join(".vscode/mcp.json.bak").exists());
    connect(&home, &["vscode", "-s", "project", "--undo", "--yes"]).expect_code(0);
    assert_eq!(home.read(".vscode/mcp.json"), text);

    assert_snapshot!(connect(&home, &["windsurf", "-s", "project", "--yes"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: Windsurf has no settings of a project
    hint: leave `--scope` out: it has settings of yours only
    ");
    // What a project's link leads to could be any file.
    fs::create_dir(home.home().join("precious")).unwrap();
    symlink("../precious", home.project().join(".cursor")).unwrap();
    assert_snapshot!(connect(&home, &["cursor", "-s", "project", "--yes"]), @"
    exit: 6
    ----- stdout
    ----- stderr
    error: `[PROJECT]/.cursor` is a link, and what a project's link leads to is not written
    hint: nothing was written
    ");
    assert!(!home.home().join("precious/mcp.json").exists());
}

#[test]
fn toolway_never_starts_itself() {
    let home = home();
    home.write(
        ".mcp.json",
        servers(&[("repo", json!({ "command": "repo" }))]),
    );
    connect(&home, &["claude-code", "-s", "project", "--move", "--yes"]).expect_code(0);
    assert_snapshot!(home.read(".mcp.json"), @r#"
    {
      "mcpServers": {
        "repo": {
          "command": "repo"
        },
        "toolway": {
          "type": "stdio",
          "command": "toolway",
          "args": ["serve"]
        }
      }
    }
    "#);
    assert_snapshot!(toolway(&home, &["list", "--no-connect"]), @"
    exit: 0
    ----- stdout
    NAME     SCOPE    TYPE   STATE       TOOLS  DETAIL
    repo     project  stdio  ⊘ disabled  -      `repo` comes from the project's `.mcp.json` and is not approved
    toolway  project  stdio  ⊘ disabled  -      it is Toolway itself, for other clients that read this file
    ----- stderr
    hint: look at `repo` with `toolway approve repo`
    ");
    assert_snapshot!(toolway(&home, &["explain", "toolway"]), @r#"
    exit: 0
    ----- stdout
    toolway (project scope) at [PROJECT]/.mcp.json:6
      refused: it is Toolway itself, for other clients that read this file
        {
          "type": "stdio",
          "command": "toolway",
          "args": [
            "serve"
          ]
        }
    ----- stderr
    "#);
    connect(&home, &["cursor", "--yes"]).expect_code(0);
    assert_snapshot!(toolway(&home, &["import", "--yes"]), @"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      = toolway  skipped: it is Toolway itself
    Claude Code ([PROJECT]/.mcp.json)
      not your own: it came with this project
      - repo     repo
      = toolway  skipped: it is Toolway itself
    ----- stderr
    warning: `[PROJECT]/.mcp.json` was left out: it came with this project
    hint: look at it, then name it: `toolway import claude-code --from [PROJECT]/.mcp.json`
    nothing to import
    ");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_read() {
    let home = home_with_cursor();
    let before = everything(home.home());
    for words in [
        &["cursor", "--url", "ftp://127.0.0.1/mcp"][..],
        &["cursor", "--url", "127.0.0.1:7777"],
        &["cursor", "--url", "http://gateway.example/mcp"],
        &["cursor", "--url", "https://me:word@gateway.example/mcp"],
        &[
            "cursor",
            "--url",
            "http://127.0.0.1:7777/mcp",
            "--profile",
            "work",
        ],
        &["cursor", "--token-file", "token"],
        &["cursor", "--profile", "--yes"],
        &["cursor", "--move", "--keep"],
        &["cursor", "--undo", "--move"],
        &["cursr"],
        &["--yes"],
        &["claude-desktop", "--url", "http://127.0.0.1:7777/mcp"],
    ] {
        connect(&home, words).expect_code(2);
    }
    assert_eq!(everything(home.home()), before);
    assert_snapshot!(connect(&home, &["cursor", "--url", "http://gateway.example/mcp"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: everybody on the way could read what goes to that address
    hint: use `https`; `http` is for this machine only
    ");
    assert_snapshot!(connect(&home, &["claude-desktop", "--url", "http://[::1]:1/mcp"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: Claude Desktop starts programs only: its settings take no address
    hint: leave `--url` out: it then starts `toolway serve` by itself
    ");
}
