//! `list` and `tools`: the table, the JSON, and what connecting finds out.

use insta::assert_snapshot;
use serde_json::json;
use toolway_testkit::{BulkLists, Script, ScriptedServer, SpokenEras, TempHome};

use crate::support::{home_with, servers, toolway};

#[test]
fn an_empty_configuration_says_what_to_do() {
    assert_snapshot!(toolway(&TempHome::new(), &["list"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    no server is configured
    hint: add one with `toolway add <name> <command or url>`
    ");
    assert_eq!(
        toolway(&TempHome::new(), &["list", "--json"]).json(),
        json!({ "servers": [] })
    );
}

#[test]
fn every_server_is_listed_with_its_state() {
    let home = TempHome::new();
    let peer = ScriptedServer::new(Script {
        speaks: SpokenEras::Modern,
        ..Script::default()
    })
    .serve_http();
    let locked = ScriptedServer::new(Script {
        http_status: Some(401),
        ..Script::default()
    })
    .serve_http();
    home.write_settings(servers(&[
        (
            "child",
            ScriptedServer::new(Script {
                speaks: SpokenEras::Legacy,
                ..Script::default()
            })
            .entry(),
        ),
        ("remote", peer.entry()),
        ("locked", locked.entry()),
        ("missing", json!({ "command": "/nonexistent/server" })),
        ("off", json!({ "command": "true", "disabled": true })),
    ]));
    home.write(
        ".mcp.json",
        servers(&[
            ("repo", json!({ "command": "true" })),
            ("child", json!({ "command": "true" })),
        ]),
    );
    assert_snapshot!(toolway(&home, &["list"]), @r#"
    exit: 0
    ----- stdout
    NAME     SCOPE    TYPE   STATE         TOOLS  DETAIL
    child    user     stdio  ✔ connected   8      protocol 2025-11-25
    child    project  stdio  ⊘ disabled    -      `child` comes from the project's `.mcp.json` and is not approved
    locked   user     http   ! needs-auth  -      wants a login first
    missing  user     stdio  ✘ failed      -      cannot start `/nonexistent/server`: no such program, or its interpreter is missing
    off      user     stdio  ⊘ disabled    -      its entry says `"disabled": true` ([HOME]/.config/toolway/settings.json:21)
    remote   user     http   ✔ connected   8      protocol 2026-07-28
    repo     project  stdio  ⊘ disabled    -      `repo` comes from the project's `.mcp.json` and is not approved
    ----- stderr
    hint: 2 servers wait for your word; look at each with `toolway approve --all`
    hint: log in to `locked` with `toolway login locked`
    hint: `missing`: check the program with `toolway get missing` and `toolway doctor`
    hint: switch `off` on with `toolway enable off`
    "#);
    let mut listing = toolway(&home, &["list", "--json"]).expect_code(0).json();
    for server in listing["servers"].as_array_mut().unwrap() {
        let mut keys: Vec<&String> = server.as_object().unwrap().keys().collect();
        // The one key that is not always there, beside who is logged in.
        if server["state"] == "needs-auth" {
            assert_eq!(keys.pop().unwrap(), "login");
            assert_eq!(server["login"], "toolway login locked");
        }
        assert_eq!(
            keys,
            [
                "name",
                "scope",
                "source",
                "transport",
                "state",
                "reason",
                "error",
                "era",
                "protocolVersion",
                "serverInfo",
                "tools",
                "resources",
                "prompts"
            ]
        );
    }
}

#[test]
fn the_plan_alone_starts_nothing() {
    let home = TempHome::new();
    let canary = home.home().join("canary");
    home.write_settings(servers(&[(
        "one",
        json!({ "command": "touch", "args": [canary] }),
    )]));
    assert_snapshot!(toolway(&home, &["list", "--no-connect"]), @"
    exit: 0
    ----- stdout
    NAME  SCOPE  TYPE   STATE      TOOLS  DETAIL
    one   user   stdio  · pending  -
    ----- stderr
    ");
    toolway(&home, &["tools", "--no-connect"]).expect_code(0);
    assert!(!canary.exists());
}

#[test]
fn tools_have_their_documented_shape() {
    let home = home_with(Script::default());
    let tools = toolway(&home, &["tools", "--json"]).expect_code(0).json();
    let echo = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["tool"] == "echo")
        .unwrap();
    assert_eq!(
        echo.as_object().unwrap().keys().collect::<Vec<_>>(),
        [
            "name",
            "server",
            "tool",
            "title",
            "description",
            "inputSchema",
            "outputSchema",
            "annotations",
            "deferred"
        ]
    );
    assert_eq!(echo["name"], "mcp__chaos__echo");
    assert_eq!(echo["inputSchema"]["required"], json!(["text"]));
    assert_snapshot!(toolway(&home, &["tools", "chaos"]), @"
    exit: 0
    ----- stdout
    NAME                 DESCRIPTION
    mcp__chaos__count    How often this process was called
    mcp__chaos__crash    Ends the process in the middle of the call
    mcp__chaos__echo     Says it again
    mcp__chaos__fail     Answers an error
    mcp__chaos__hang     Never answers
    mcp__chaos__huge     A text of that many bytes
    mcp__chaos__inspect  Shows the process: argv, cwd, env and open descriptors
    mcp__chaos__slow     Answers after a while
    ----- stderr
    ");
}

#[test]
fn one_malformed_tool_costs_only_itself() {
    let home = home_with(Script {
        bad_tools: true,
        fillers: 300,
        page_size: 50,
        ..Script::default()
    });
    let output = toolway(&home, &["tools", "--json"]).expect_code(0);
    assert!(
        output.json()["tools"].as_array().unwrap().len() >= 308,
        "{}",
        output.stderr
    );
    assert!(
        output.stderr.contains("warning: server `chaos`"),
        "{}",
        output.stderr
    );
}

#[test]
fn sec_51_a_list_without_end_is_cut_and_its_server_named() {
    let home = TempHome::new();
    let endless = ScriptedServer::new(Script {
        bulk: Some(BulkLists {
            pages: 100,
            items: 1000,
            item_bytes: 10,
            ..BulkLists::default()
        }),
        ..Script::default()
    });
    let honest = ScriptedServer::default().entry();
    home.write_settings(servers(&[("endless", endless.entry()), ("honest", honest)]));
    assert_snapshot!(toolway(&home, &["list"]), @"
    exit: 0
    ----- stdout
    NAME     SCOPE  TYPE   STATE        TOOLS  DETAIL
    endless  user   stdio  ✔ connected  512    protocol 2026-07-28
    honest   user   stdio  ✔ connected  8      protocol 2026-07-28
    ----- stderr
    warning: server `endless`: `tools/list`: the list has more than 10000 items; what follows the first 10000 items is left out
    warning: server `endless`: `resources/list`: the list has more than 10000 items; what follows the first 10000 items is left out
    warning: server `endless`: `resources/templates/list`: the list has more than 10000 items; what follows the first 10000 items is left out
    warning: server `endless`: `prompts/list`: the list has more than 10000 items; what follows the first 10000 items is left out
    warning: server `endless`: the server offers 10000 tools; only the first 512 it lists are used
    warning: server `endless`: the server offers 10000 prompts; only the first 512 it lists are used
    ");
}

#[test]
fn a_failed_server_is_named_and_its_last_words_are_shown() {
    let home = home_with(Script {
        complaint: Some("cannot find the licence file".to_owned()),
        exit: Some(toolway_testkit::ScriptedExit { code: 3, after: 0 }),
        ..Script::default()
    });
    let output = toolway(&home, &["tools", "chaos"]).expect_code(4);
    assert!(
        output.stderr.contains("cannot find the licence file"),
        "{output}"
    );
    let output = toolway(&home, &["tools"]).expect_code(0);
    assert!(output.stderr.contains("server `chaos`"), "{output}");
}

#[test]
fn a_server_that_exits_on_the_probe_still_connects() {
    let home = home_with(Script {
        exit_on_probe: Some(1),
        speaks: SpokenEras::Legacy,
        ..Script::default()
    });
    let listed = toolway(&home, &["list", "--json"]).json();
    assert_eq!(listed["servers"][0]["state"], "connected", "{listed}");
}

#[test]
fn tools_are_searched_by_words_and_by_name() {
    let home = home_with(Script::default());
    assert_snapshot!(toolway(&home, &["tools", "--search", "ecko text"]), @"
    exit: 0
    ----- stdout
    NAME              DESCRIPTION
    mcp__chaos__echo  Says it again
    mcp__chaos__huge  A text of that many bytes
    ----- stderr
    ");
    assert_snapshot!(toolway(&home, &["tools", "--search", "select:echo,ecko"]), @"
    exit: 0
    ----- stdout
    NAME              DESCRIPTION
    mcp__chaos__echo  Says it again
    ----- stderr
    warning: no tool is called `ecko`
    hint: did you mean `mcp__chaos__echo`?
    ");
    assert_snapshot!(toolway(&home, &["tools", "--search", "qqqq"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    no tool fits
    hint: use other words, or fewer; `toolway tools` shows all
    ");
    let found = toolway(
        &home,
        &[
            "tools",
            "chaos",
            "--search",
            "select:mcp__chaos__echo",
            "--json",
        ],
    );
    let found = found.expect_code(0).json();
    assert_eq!(found["tools"].as_array().unwrap().len(), 1);
    assert_eq!(found["tools"][0]["tool"], "echo");
}
