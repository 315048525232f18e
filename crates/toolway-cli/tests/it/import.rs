//! `import`: previews, skips what is there, says what is lost, writes only after a yes.

use insta::assert_snapshot;
use serde_json::json;
use toolway_testkit::TempHome;

use crate::support::{servers, toolway};
use crate::terminal::TerminalProgram;

fn home_with_clients() -> TempHome {
    let home = TempHome::new();
    home.write(
        home.home().join(".cursor/mcp.json"),
        servers(&[
            (
                "files",
                json!({ "command": "npx", "args": ["-y", "server-files"] }),
            ),
            ("docs", json!({ "url": "https://docs.example/mcp" })),
        ]),
    );
    home.write(
        home.home().join(".codex/config.toml"),
        "[mcp_servers.tracker]\nurl = \"https://tracker.example/mcp\"\nbearer_token_env_var = \"TRACKER\"\nstartup_timeout_sec = 20\n",
    );
    home
}

#[test]
fn a_preview_changes_nothing() {
    let home = home_with_clients();
    assert_snapshot!(toolway(&home, &["import"]), @"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      + files  npx -y server-files
      + docs   https://docs.example/mcp
          ~ no transport was named; `http` was taken from the URL
    Codex ([HOME]/.codex/config.toml)
      + tracker  https://tracker.example/mcp
          ! `startup_timeout_sec` was left out: the time to connect is set for all servers by `MCP_TIMEOUT`
    ----- stderr
    nothing was changed: nobody is there to confirm this
    hint: run it again with `--yes` to add them
    ");
    assert!(!home.config_home().join("settings.json").exists());
}

#[test]
fn yes_adds_and_a_second_time_finds_nothing_new() {
    let home = home_with_clients();
    home.write_settings(servers(&[(
        "mine",
        json!({ "type": "http", "url": "https://docs.example/mcp" }),
    )]));
    assert_snapshot!(toolway(&home, &["import", "--yes"]), @"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      + files  npx -y server-files
      = docs   skipped: the same as `mine` of [HOME]/.config/toolway/settings.json:3
    Codex ([HOME]/.codex/config.toml)
      + tracker  https://tracker.example/mcp
          ! `startup_timeout_sec` was left out: the time to connect is set for all servers by `MCP_TIMEOUT`
    ----- stderr
    added `files` to the user scope: [HOME]/.config/toolway/settings.json:7
    added `tracker` to the user scope: [HOME]/.config/toolway/settings.json:11
    ");
    assert_snapshot!(home.read(home.config_home().join("settings.json")), @r#"
    {
      "mcpServers": {
        "mine": {
          "type": "http",
          "url": "https://docs.example/mcp"
        },
        "files": {
          "command": "npx",
          "args": ["-y", "server-files"]
        },
        "tracker": {
          "type": "http",
          "url": "https://tracker.example/mcp",
          "headers": {
            "Authorization": "Bearer ${TRACKER}"
          }
        }
      }
    }
    "#);
    assert_snapshot!(toolway(&home, &["import", "cursor", "--yes"]), @"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      = files  skipped: already there: [HOME]/.config/toolway/settings.json:7
      = docs   skipped: the same as `mine` of [HOME]/.config/toolway/settings.json:3
    ----- stderr
    nothing to import
    ");
}

#[test]
fn an_unknown_client_or_a_broken_file_is_named() {
    let home = TempHome::new();
    home.write(home.home().join(".cursor/mcp.json"), "{ \"mcpServers\": ");
    assert_snapshot!(toolway(&home, &["import", "cursr"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: invalid value 'cursr' for '[CLIENTS]...'
      [possible values: claude-desktop, claude-code, cursor, vscode, codex, gemini, windsurf, zed, opencode, goose]
    hint: did you mean `cursor`?
    ");
    assert_snapshot!(toolway(&home, &["import", "cursor"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: [HOME]/.cursor/mcp.json:1:17: not valid: expected value after colon in object property
    hint: mend the file at that place; nothing of it was imported
    nothing to import
    ");
}

/// A file that a repository brings, in the place where Cursor reads it.
fn strange_file(home: &TempHome, path: &str) {
    let entry = json!({
        "command": "sh",
        "args": ["-c", "true"],
        "env": { "LD_PRELOAD": "./x.so" },
    });
    home.write(path, servers(&[("repo", entry)]));
}

fn user_settings(home: &TempHome) -> std::path::PathBuf {
    home.config_home().join("settings.json")
}

#[test]
fn sec_01_a_yes_does_not_make_a_repositorys_file_the_persons_own() {
    // In a subfolder that has a project of its own, and in an archive that has no mark at all.
    for mark in ["sub/.toolway/settings.local.json", "sub/notes.txt"] {
        let home = TempHome::new();
        strange_file(&home, ".cursor/mcp.json");
        home.write(mark, "{}");
        for words in [
            &["import", "--yes"][..],
            &["import", "cursor", "--yes"],
            &["import", "cursor", "-s", "user", "--yes"],
            &["import", "cursor", "-s", "local", "--yes"],
            &["import", "--json", "--yes"],
            &["import"],
        ] {
            let mut command = crate::support::command(&home, words);
            command.current_dir(home.project().join("sub"));
            home.run(&mut command).expect_code(0);
            assert!(!user_settings(&home).exists(), "{mark}: {words:?}");
            let local = home.project().join("sub/.toolway/settings.local.json");
            let local = std::fs::read_to_string(local).unwrap_or_default();
            assert!(!local.contains("repo"), "{mark}: {words:?}");
        }
    }
}

#[test]
fn sec_01_what_a_repository_brings_is_shown_apart_and_left_out() {
    let home = home_with_clients();
    strange_file(&home, ".cursor/mcp.json");
    // The same name: the person's own counts.
    home.write(
        ".gemini/settings.json",
        servers(&[("files", json!({ "command": "evil" }))]),
    );
    assert_snapshot!(toolway(&home, &["import", "--yes"]), @"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      + files  npx -y server-files
      + docs   https://docs.example/mcp
          ~ no transport was named; `http` was taken from the URL
    Codex ([HOME]/.codex/config.toml)
      + tracker  https://tracker.example/mcp
          ! `startup_timeout_sec` was left out: the time to connect is set for all servers by `MCP_TIMEOUT`
    Cursor ([PROJECT]/.cursor/mcp.json)
      not your own: it came with this project
      - repo  sh -c true
          env: LD_PRELOAD
    Gemini CLI ([PROJECT]/.gemini/settings.json)
      not your own: it came with this project
      = files  skipped: the name is taken by this import (Cursor)
    ----- stderr
    warning: `[PROJECT]/.cursor/mcp.json` was left out: it came with this project
    hint: look at it, then name it: `toolway import cursor --from [PROJECT]/.cursor/mcp.json`
    added `files` to the user scope: [HOME]/.config/toolway/settings.json:3
    added `docs` to the user scope: [HOME]/.config/toolway/settings.json:7
    added `tracker` to the user scope: [HOME]/.config/toolway/settings.json:11
    ");
    assert!(!home.read(user_settings(&home)).contains("repo"));
    let shown = toolway(&home, &["import", "--json"]).expect_code(0).json();
    let repo = &shown["servers"][3];
    assert_eq!(
        (&repo["name"], &repo["writer"], &repo["skipped"]),
        (
            &json!("repo"),
            &json!("stranger"),
            &json!("it came with this project")
        )
    );
}

#[test]
fn sec_01_a_projects_file_goes_to_no_scope_of_the_persons_unless_it_is_named() {
    let home = TempHome::new();
    strange_file(&home, ".cursor/mcp.json");
    assert_snapshot!(toolway(&home, &["import", "cursor", "-s", "user", "--yes"]), @"
    exit: 0
    ----- stdout
    Cursor ([PROJECT]/.cursor/mcp.json)
      not your own: it came with this project
      - repo  sh -c true
          env: LD_PRELOAD
    ----- stderr
    warning: `[PROJECT]/.cursor/mcp.json` was left out: it came with this project
    hint: look at it, then name it: `toolway import cursor --from [PROJECT]/.cursor/mcp.json`
    nothing to import
    ");
    let words = ["import", "cursor", "-s", "user", "--json"];
    let shown = toolway(&home, &words).expect_code(0).json();
    let repo = &shown["servers"][0];
    assert_eq!(
        (&repo["writer"], &repo["skipped"], &repo["scope"]),
        (
            &json!("stranger"),
            &json!("it came with this project"),
            &json!(null)
        )
    );
    // With the project's scope it is the project's, and waits there.
    let words = ["import", "cursor", "-s", "project", "--json", "--yes"];
    let shown = toolway(&home, &words).expect_code(0).json();
    assert_eq!(shown["servers"][0]["scope"], "project");
    let got = toolway(&home, &["get", "repo", "--json"]).expect_code(0);
    assert_eq!(got.json()["verdict"], "pending-approval");
}

#[test]
fn a_person_is_asked_about_each_server() {
    let home = home_with_clients();
    strange_file(&home, ".cursor/mcp.json");
    let mut command = crate::support::command(&home, &["import"]);
    let mut terminal = TerminalProgram::take(&mut command);
    terminal.expect("y adds a server, n leaves it out, a adds it and all that follow, q ends");
    terminal.expect("Add `files` to the user scope? [y/N/a/q] ");
    terminal.type_line("x");
    terminal.expect("Add `files` to the user scope? [y/N/a/q] ");
    terminal.type_line("y");
    terminal.expect("added `files`");
    terminal.expect("Add `docs` to the user scope? [y/N/a/q] ");
    terminal.type_line("");
    terminal.expect("Add `tracker` to the user scope? [y/N/a/q] ");
    terminal.type_line("n");
    terminal.expect("Put `repo` into the project's `.mcp.json`, to be approved? [y/N] ");
    terminal.type_line("y");
    terminal.expect("added `repo` to the project scope");
    assert_eq!(terminal.leave().code, Some(0));
    let user = home.read(user_settings(&home));
    assert!(user.contains("files") && !user.contains("docs") && !user.contains("repo"));
    assert!(home.read(".mcp.json").contains("repo"));

    // All that are left, and none.
    for (answer, added) in [("q", false), ("a", true)] {
        let mut command = crate::support::command(&home, &["import"]);
        let mut terminal = TerminalProgram::take(&mut command);
        terminal.expect("Add `docs` to the user scope? [y/N/a/q] ");
        terminal.type_line(answer);
        let left = terminal.leave();
        assert_eq!(left.shown.contains("nothing was changed"), !added);
        assert_eq!(home.read(user_settings(&home)).contains("tracker"), added);
    }
}

#[test]
fn sec_01_a_file_that_is_named_goes_to_the_project_and_waits_for_approval() {
    let home = TempHome::new();
    strange_file(&home, ".cursor/mcp.json");
    let named = ["import", "cursor", "--from", ".cursor/mcp.json"];
    assert_snapshot!(toolway(&home, &named), @r#"
    exit: 0
    ----- stdout
    Cursor (.cursor/mcp.json)
      not your own: it came with this project
      for its `.mcp.json`, where each waits for `toolway approve`
      + repo  sh -c true
          env: LD_PRELOAD
          {
            "command": "sh",
            "args": [
              "-c",
              "true"
            ],
            "env": {
              "LD_PRELOAD": "./x.so"
            }
          }
    ----- stderr
    nothing was changed: nobody is there to confirm this
    hint: run it again with `--yes` to add them
    "#);
    assert!(!home.project().join(".mcp.json").exists());
    for scope in [&[][..], &["-s", "project"]] {
        let words = [&named[..], scope, &["--yes"]].concat();
        let added = toolway(&home, &words).expect_code(0);
        assert!(added.stderr.contains("toolway approve repo"), "{added}");
        let explained = toolway(&home, &["get", "repo", "--json"]).expect_code(0);
        assert_eq!(explained.json()["verdict"], "pending-approval");
        assert!(!user_settings(&home).exists());
        std::fs::remove_file(home.project().join(".mcp.json")).unwrap();
    }
    // Three words that nobody says unasked: this file, this scope, yes.
    let words = [&named[..], &["-s", "user", "--yes"]].concat();
    let added = toolway(&home, &words).expect_code(0);
    assert!(added.stderr.contains("to the user scope"), "{added}");
    assert!(!added.stderr.contains("toolway approve"), "{added}");
}

#[test]
fn sec_01_a_home_directory_that_is_the_working_directory_is_the_persons() {
    let home = home_with_clients();
    let mut command = crate::support::command(&home, &["import", "cursor", "--yes"]);
    command.current_dir(home.home());
    let output = home.run(&mut command).expect_code(0);
    assert!(output.stderr.contains("added `files`"), "{output}");
}

#[test]
fn sec_01_a_file_that_every_user_may_write_is_not_the_persons_own() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = home_with_clients();
    let file = home.home().join(".cursor/mcp.json");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_snapshot!(toolway(&home, &["import", "cursor", "--yes"]), @"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      not your own: every user may write it
      - files  npx -y server-files
      - docs   https://docs.example/mcp
    ----- stderr
    warning: `[HOME]/.cursor/mcp.json` was left out: every user may write it
    hint: keep others out of it: `chmod o-w [HOME]/.cursor/mcp.json`
    nothing to import
    ");
    assert!(!user_settings(&home).exists());
}

#[test]
fn sec_01_a_repository_takes_no_name_away_from_the_persons_own_servers() {
    let home = home_with_clients();
    home.write(
        ".mcp.json",
        servers(&[
            ("files", json!({ "command": "./evil" })),
            (
                "x",
                json!({ "type": "http", "url": "https://docs.example/mcp" }),
            ),
        ]),
    );
    assert_snapshot!(toolway(&home, &["import", "cursor", "--yes"]), @"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      + files  npx -y server-files
      + docs   https://docs.example/mcp
          ~ no transport was named; `http` was taken from the URL
    ----- stderr
    added `files` to the user scope: [HOME]/.config/toolway/settings.json:3
    added `docs` to the user scope: [HOME]/.config/toolway/settings.json:7
    ");
}
