//! Adding, showing, switching and removing servers: what is printed and what is written.

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::marked::MARK;
use toolway_testkit::{TempHome, marked};

use crate::support::{servers, toolway};

#[test]
fn a_command_is_added_to_the_local_scope() {
    let home = TempHome::new();
    assert_snapshot!(toolway(&home, &["add", "files", "--force", "-e", "MODE=ro", "--", "npx", "-y", "server-files", "/tmp"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    warning: server `files`: `server-files` has no exact version: each start may run a newer one
    hint: write `server-files@<version>`; `npm view server-files version` says the newest
    added `files` to the local scope: [PROJECT]/.toolway/settings.local.json:3
    ");
    assert_snapshot!(home.read(".toolway/settings.local.json"), @r#"
    {
      "mcpServers": {
        "files": {
          "type": "stdio",
          "command": "npx",
          "args": ["-y", "server-files", "/tmp"],
          "env": {
            "MODE": "ro"
          }
        }
      }
    }
    "#);
    assert_snapshot!(toolway(&home, &["get", "files"]), @r#"
    exit: 0
    ----- stdout
    files
      scope      local
      source     [PROJECT]/.toolway/settings.local.json:3
      verdict    admitted
      type       stdio
      command    npx
      args       ["-y","server-files","/tmp"]
      env        {"MODE":"[redacted]"}
    ----- stderr
    "#);
}

#[test]
fn the_value_of_a_variable_is_kept_as_it_was_typed() {
    let home = TempHome::new();
    toolway(&home, &["add", "p", "true", "-e", "PROMPT= > "]).expect_code(0);
    let written: serde_json::Value =
        serde_json::from_str(&home.read(".toolway/settings.local.json")).unwrap();
    assert_eq!(written["mcpServers"]["p"]["env"]["PROMPT"], " > ");
}

#[test]
fn a_url_is_added_as_http() {
    let home = TempHome::new();
    assert_snapshot!(toolway(&home, &["add", "docs", "https://mcp.example.com/mcp", "-s", "user", "-H", "Authorization: Bearer ${TOKEN:-x}", "--client-id", "abc", "--callback-port", "7777", "--xaa"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    added `docs` to the user scope: [HOME]/.config/toolway/settings.json:3
    warning: `--xaa` does not count yet: cross-app access is switched off
    hint: set `TOOLWAY_ENABLE_XAA=1`
    ");
    assert_snapshot!(home.read(home.config_home().join("settings.json")), @r#"
    {
      "mcpServers": {
        "docs": {
          "type": "http",
          "url": "https://mcp.example.com/mcp",
          "headers": {
            "Authorization": "Bearer ${TOKEN:-x}"
          },
          "oauth": {
            "clientId": "abc",
            "callbackPort": 7777,
            "xaa": true
          }
        }
      }
    }
    "#);
}

#[test]
fn the_project_file_keeps_its_comments_and_order() {
    let home = TempHome::new();
    home.write(".mcp.json", "{\n  // ours\n  \"mcpServers\": {\n    \"b\": { \"command\": \"true\" }, // second\n    \"a\": { \"command\": \"true\" }\n  },\n  \"unknown\": [1, 2]\n}\n");
    toolway(&home, &["add", "-s", "project", "c", "true"]).expect_code(0);
    assert_snapshot!(home.read(".mcp.json"), @r#"
    {
      // ours
      "mcpServers": {
        "b": { "command": "true" }, // second
        "a": { "command": "true" },
        "c": {
          "type": "stdio",
          "command": "true"
        }
      },
      "unknown": [1, 2]
    }
    "#);
    toolway(&home, &["remove", "b"]).expect_code(0);
    assert_snapshot!(home.read(".mcp.json"), @r#"
    {
      // ours
      "mcpServers": {
        // second
        "a": { "command": "true" },
        "c": {
          "type": "stdio",
          "command": "true"
        }
      },
      "unknown": [1, 2]
    }
    "#);
}

#[test]
fn a_server_i_add_to_the_project_is_approved_by_me() {
    let home = TempHome::new();
    toolway(&home, &["add", "-s", "project", "mine", "true"]).expect_code(0);
    assert_eq!(
        toolway(&home, &["get", "mine", "--json"]).json()["verdict"],
        "admitted"
    );
}

#[test]
fn an_existing_name_is_not_overwritten() {
    let home = TempHome::new();
    toolway(&home, &["add", "one", "true"]).expect_code(0);
    assert_snapshot!(toolway(&home, &["add", "one", "false"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: server `one` is already in [PROJECT]/.toolway/settings.local.json
    hint: replace it with `--force`, or remove it first: `toolway remove one -s local`
    ");
    toolway(&home, &["add", "one", "false", "--force"]).expect_code(0);
    assert_eq!(
        toolway(&home, &["get", "one", "--json"]).json()["definition"]["command"],
        "false"
    );
}

#[test]
fn flags_that_do_not_fit_the_transport_are_refused() {
    let home = TempHome::new();
    assert_snapshot!(toolway(&home, &["add", "files", "true", "-H", "A: b"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `--header` is only for a server reached by URL
    hint: leave `--header` out, or see `toolway add --help` for what `files` can take
    ");
    assert_snapshot!(toolway(&home, &["add", "docs", "https://x.example/", "-e", "A=b"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `--env` is only for a server started by a command
    hint: leave `--env` out, or see `toolway add --help` for what `docs` can take
    ");
    assert_snapshot!(toolway(&home, &["add", "docs", "https://x.example/", "extra"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `extra` follows the URL, but a URL takes no arguments
    hint: leave it out: `toolway add docs https://x.example/`
    ");
    assert_snapshot!(toolway(&home, &["add", "docs", "ftp://x.example/", "-t", "http"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `ftp:/…` is not an address that Toolway can reach
    hint: did you mean `https://x.example…`?
    ");
}

#[test]
fn add_json_takes_an_entry() {
    let home = TempHome::new();
    toolway(
        &home,
        &[
            "add-json",
            "j",
            r#"{"command": "true", "timeout": 5000, "x-note": "kept"}"#,
        ],
    )
    .expect_code(0);
    assert_eq!(
        toolway(&home, &["get", "j", "--json"]).json()["definition"],
        json!({ "command": "true", "timeout": 5000, "x-note": "kept" })
    );
    assert_snapshot!(toolway(&home, &["add-json", "k", "{"]), @r#"
    exit: 2
    ----- stdout
    ----- stderr
    error: the entry of `k` is not a JSON object: EOF while parsing an object at line 1 column 1
    hint: write e.g. `toolway add-json k '{"command": "…", "args": ["…"]}'`
    "#);
    assert_snapshot!(toolway(&home, &["add-json", "k", r#"{"mcpServers": {"k": {}}}"#]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: this is a whole `mcpServers` object; one entry is wanted
    hint: pass only the object below `k`
    ");
    assert_snapshot!(toolway(&home, &["add-json", "k", r#"{"args": ["x"]}"#]), @r#"
    exit: 3
    ----- stdout
    ----- stderr
    error: server `k` is not added: neither `command` nor `url` is given
    hint: add `"command": "…"`, or `"type": "http"` and `"url": "https://…"`
    "#);
}

#[test]
fn remove_says_which_scope_it_means() {
    let home = TempHome::new();
    toolway(&home, &["add", "one", "true"]).expect_code(0);
    toolway(&home, &["add", "one", "true", "-s", "user"]).expect_code(0);
    assert_snapshot!(toolway(&home, &["remove", "one"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: server `one` stands in 2 scopes
    hint: say which one: `toolway remove one -s local` or `toolway remove one -s user`
    ");
    assert_snapshot!(toolway(&home, &["remove", "one", "-s", "user"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    removed `one` from the user scope: [HOME]/.config/toolway/settings.json
    ");
    assert_snapshot!(toolway(&home, &["remove", "one"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    removed `one` from the local scope: [PROJECT]/.toolway/settings.local.json
    ");
    assert_snapshot!(toolway(&home, &["remove", "one"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no server named `one` is configured
    hint: add one with `toolway add <name> <command or url>`
    ");
}

#[test]
fn a_typo_gets_the_nearest_name() {
    let home = TempHome::new();
    home.write_settings(servers(&[("github", json!({ "command": "true" }))]));
    assert_snapshot!(toolway(&home, &["get", "gihub"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no server named `gihub` is configured
    hint: did you mean `github`?
    ");
    assert_snapshot!(toolway(&home, &["remove", "gthub"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no server named `gthub` is configured
    hint: did you mean `github`?
    ");
    assert_snapshot!(toolway(&home, &["lst"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: unrecognized subcommand 'lst'

    Usage: toolway [OPTIONS] <COMMAND>
    hint: did you mean `toolway list`?
    ");
}

#[test]
fn a_server_can_be_switched_off_and_on() {
    let home = TempHome::new();
    home.write_settings(servers(&[
        ("one", json!({ "command": "true" })),
        ("two", json!({ "command": "true" })),
    ]));
    assert_snapshot!(toolway(&home, &["disable", "one"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    disabled `one` in the local scope: [PROJECT]/.toolway/settings.local.json:2
    ");
    assert_snapshot!(toolway(&home, &["list", "--no-connect"]), @"
    exit: 0
    ----- stdout
    NAME  SCOPE  TYPE   STATE       TOOLS  DETAIL
    one   user   stdio  ⊘ disabled  -      `one` is in `disabledMcpServers` ([PROJECT]/.toolway/settings.local.json:2)
    two   user   stdio  · pending   -
    ----- stderr
    hint: switch `one` on with `toolway enable one`
    ");
    toolway(&home, &["call", "one", "x"]).expect_code(6);
    assert_snapshot!(toolway(&home, &["enable", "one"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    enabled `one` in the local scope: [PROJECT]/.toolway/settings.local.json
    ");
    toolway(&home, &["disable", "all"]).expect_code(0);
    assert_snapshot!(home.read(".toolway/settings.local.json"), @r#"
    {
      "disabledMcpServers": ["one", "two"]
    }
    "#);
}

#[test]
fn secrets_are_not_shown() {
    let home = TempHome::new();
    home.write_settings(servers(&[
        ("a", json!({ "command": "true", "env": { "TOKEN": marked!("hunter2-"), "KEY": marked!("${KEY:-hunter3-", "}"), "REF": "${REF:-}" } })),
        ("b", json!({ "type": "http", "url": "https://x.example/", "headers": { "Authorization": marked!("Bearer hunter2-") } })),
    ]));
    for verb in [
        &["get", "a"][..],
        &["get", "b"],
        &["get", "a", "--json"],
        &["explain", "a"],
        &["explain", "b", "--json"],
        &["list", "--no-connect", "--json"],
        &["doctor"],
    ] {
        let output = toolway(&home, verb);
        assert!(!output.to_string().contains(MARK), "{output}");
    }
}

#[test]
fn an_approval_shows_everything_and_waits_for_a_yes() {
    let home = TempHome::new();
    home.write(".mcp.json", servers(&[("repo", json!({ "command": "node", "args": ["server.js", "--root", "${HOME}"], "env": { "A": "b" } }))]));
    assert_snapshot!(toolway(&home, &["approve", "repo"]), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    server `repo` from [PROJECT]/.mcp.json:3
      env A: b
      it reads these variables: HOME
    This runs on this machine, with your rights:
      node server.js --root ${HOME}
    error: nobody is there to confirm this
    hint: read the above, then run `toolway approve repo --yes`
    "#);
    assert_snapshot!(toolway(&home, &["approve", "repo", "--yes"]), @r#"
    exit: 0
    ----- stdout
    ----- stderr
    server `repo` from [PROJECT]/.mcp.json:3
      env A: b
      it reads these variables: HOME
    This runs on this machine, with your rights:
      node server.js --root ${HOME}
    approved `repo`: [HOME]/.config/toolway/approvals.json:6
    "#);
    assert_snapshot!(toolway(&home, &["reject", "repo"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    rejected `repo`: [HOME]/.config/toolway/approvals.json:6
    ");
    assert_snapshot!(toolway(&home, &["list", "--no-connect"]), @"
    exit: 0
    ----- stdout
    NAME  SCOPE    TYPE   STATE       TOOLS  DETAIL
    repo  project  stdio  ⊘ disabled  -      `repo` was rejected in this project
    ----- stderr
    hint: to change your mind about `repo`: `toolway approve repo`
    ");
    assert_snapshot!(toolway(&home, &["reset-approvals"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    forgot 1 decision: [HOME]/.config/toolway/approvals.json
    ");
}

#[test]
fn explain_tells_who_won_and_why() {
    let home = TempHome::new();
    home.write_settings(servers(&[("one", json!({ "command": "user" }))]));
    home.write(
        ".mcp.json",
        servers(&[("one", json!({ "command": "project" }))]),
    );
    assert_snapshot!(toolway(&home, &["explain", "one"]), @r#"
    exit: 0
    ----- stdout
    one (user scope) at [HOME]/.config/toolway/settings.json:3
      admitted
        {
          "command": "user"
        }
    one (project scope) at [PROJECT]/.mcp.json:3
      pending-approval: `one` comes from the project's `.mcp.json` and is not approved
        {
          "command": "project"
        }
    next: look at it with `toolway approve one`
    ----- stderr
    "#);
}

#[test]
fn explain_says_which_hooks_a_call_of_a_tool_sets_off() {
    let home = TempHome::new();
    let runs = |command: &str| json!([{ "type": "command", "command": command }]);
    let settings = json!({
        "mcpServers": { "one": { "command": "user" } },
        "hooks": {
            "PreToolUse": [
                { "matcher": "mcp__one__write_.*", "hooks": runs("guard") },
                { "matcher": "mcp__two__.*", "hooks": runs("other") },
            ],
            "PostToolUse": [{ "hooks": runs("note") }],
            "Elicitation": [{ "matcher": "one", "hooks": runs("answer") }],
        },
    });
    home.write_settings(serde_json::to_string_pretty(&settings).unwrap());
    assert_snapshot!(toolway(&home, &["explain", "one", "write_all"]), @r#"
    exit: 0
    ----- stdout
    one (user scope) at [HOME]/.config/toolway/settings.json:3
      admitted
        {
          "command": "user"
        }
    around a call of `write_all` run:
      PreToolUse on `mcp__one__write_.*`: `guard` at [HOME]/.config/toolway/settings.json:7
      PostToolUse on everything: `note` at [HOME]/.config/toolway/settings.json:7
      Elicitation on `one`: `answer` at [HOME]/.config/toolway/settings.json:7
    next: see its tools with `toolway tools one`
    ----- stderr
    "#);
    let hooks = toolway(&home, &["explain", "one", "read", "--json"]).json()["hooks"].clone();
    let runs: Vec<&Value> = hooks
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["runs"])
        .collect();
    assert_eq!(runs, ["note", "answer"]);
    home.write_settings(servers(&[("one", json!({ "command": "user" }))]));
    let none = toolway(&home, &["explain", "one", "read"]).stdout;
    assert!(
        none.contains("\nno hook runs around a call of `read`\n"),
        "{none}"
    );
}

#[test]
fn only_a_variable_that_is_read_can_be_allowed() {
    let home = TempHome::new();
    home.write(
        ".mcp.json",
        servers(&[("repo", json!({ "command": "true", "args": ["${TOKEN}"] }))]),
    );
    assert_snapshot!(toolway(&home, &["approve", "repo", "--yes", "--allow-env", "TOKN"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: no variable `TOKN` is read
    hint: what is read: `TOKEN`
    ");
}

#[test]
fn a_working_directory_that_is_gone_is_no_project() {
    let home = TempHome::new();
    let gone = home.project().join("gone");
    std::fs::create_dir(&gone).unwrap();
    let mut sh = home.command("/bin/sh");
    sh.args([
        "-c",
        "cd gone && rmdir ../gone && exec \"$0\" add -s project z true",
    ]);
    sh.arg(crate::support::program());
    assert_snapshot!(home.run(&mut sh), @"
    exit: 6
    ----- stdout
    ----- stderr
    error: there is no project scope to write to: the working directory is gone
    hint: nothing was written
    ");
}
