//! `tools` as a model's session would see them: deferred tools, the host's own, and exports.

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::{ListeningServer, Script, ScriptedServer, TempHome};

use crate::support::{command, program, servers, toolway};

const FORMATS: [&str; 4] = ["anthropic", "openai", "openai-responses", "gemini"];

fn chaos(changes: &Value) -> Value {
    let mut entry = ScriptedServer::new(Script::default()).entry();
    for (key, value) in changes.as_object().unwrap() {
        entry[key] = value.clone();
    }
    entry
}

/// One server whose tools are deferred, one with resources, and one that wants a login.
fn mixed() -> (TempHome, ListeningServer) {
    let home = TempHome::new();
    let locked = ScriptedServer::new(Script {
        http_status: Some(401),
        ..Script::default()
    })
    .serve_http();
    let late = chaos(&json!({ "deferTools": true, "includeTools": ["echo", "count"] }));
    home.write_settings(servers(&[
        ("late", late),
        ("now", chaos(&json!({ "includeTools": ["echo"] }))),
        (
            "library",
            json!({ "command": program(), "args": ["demo-server", "library"] }),
        ),
        ("locked", locked.entry()),
    ]));
    (home, locked)
}

/// The names in an export, whatever its shape.
fn names(export: &Value) -> Vec<&str> {
    let declared = match &export[0]["functionDeclarations"] {
        Value::Array(declared) => declared,
        _ => export.as_array().unwrap(),
    };
    declared
        .iter()
        .map(|one| one.get("function").unwrap_or(one)["name"].as_str().unwrap())
        .collect()
}

#[test]
fn an_export_is_what_a_fresh_session_is_listed() {
    let (home, _locked) = mixed();
    let library = toolway(&home, &["tools", "library", "--json"]).json();
    let library = library["tools"].as_array().unwrap();
    let library: Vec<&str> = library
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert!(!library.is_empty());
    let own = [
        "ListMcpResources",
        "ReadMcpResource",
        "ToolSearch",
        "mcp__locked__authenticate",
    ];
    let mut fresh = [&own[..], &library, &["mcp__now__echo"]].concat();
    fresh.sort_unstable();
    for format in FORMATS {
        let output = toolway(&home, &["tools", "--format", format]).expect_code(0);
        let export = output.json();
        let mut listed = names(&export);
        listed.sort_unstable();
        assert_eq!(listed, fresh, "{format}");
        assert!(
            output.stderr.ends_with(
                "hint: 2 deferred tools are not listed: a model finds them with `ToolSearch`; \
                 `--all` prints them too\n"
            ),
            "{output}"
        );
    }
    // As if nothing were deferred: then there is nothing to search for.
    let output = toolway(&home, &["tools", "--format", "anthropic", "--all"]).expect_code(0);
    let export = output.json();
    let mut listed = names(&export);
    listed.sort_unstable();
    let mut all = fresh.clone();
    all.retain(|name| *name != "ToolSearch");
    all.extend(["mcp__late__echo", "mcp__late__count"]);
    all.sort_unstable();
    assert_eq!(listed, all);
    assert!(!output.stderr.contains("deferred"), "{output}");
}

#[test]
fn an_export_follows_the_setting_for_all_servers() {
    let home = TempHome::new();
    home.write_settings(servers(&[("chaos", chaos(&json!({})))]));
    let listed = |setting: &str| {
        let mut command = command(&home, &["tools", "--format", "openai"]);
        command.env("TOOLWAY_TOOL_SEARCH", setting);
        let output = home.run(&mut command).expect_code(0);
        let export = output.json();
        names(&export)
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(listed("true"), ["ToolSearch"]);
    assert_eq!(listed("auto:0"), ["ToolSearch"]);
    let all = listed("false");
    assert!(all.contains(&"mcp__chaos__echo".to_owned()), "{all:?}");
    assert!(!all.contains(&"ToolSearch".to_owned()), "{all:?}");
    assert_eq!(listed("auto"), all);
}

#[test]
fn an_export_of_one_server_has_its_tools_and_its_login() {
    let (home, _locked) = mixed();
    let export = |words: &[&str]| {
        let output = toolway(&home, &[&["tools"], words].concat()).expect_code(0);
        (output.json(), output.stderr)
    };
    let (now, said) = export(&["now", "--format", "anthropic"]);
    assert_eq!((names(&now), said.as_str()), (vec!["mcp__now__echo"], ""));
    let (late, said) = export(&["late", "--format", "anthropic"]);
    assert_eq!(late, json!([]));
    assert_eq!(
        said,
        "hint: 2 deferred tools are not listed; `--all` prints them too\n"
    );
    let (late, said) = export(&["late", "--format", "anthropic", "--all"]);
    assert_eq!(names(&late), ["mcp__late__count", "mcp__late__echo"]);
    assert_eq!(said, "");
    let (locked, said) = export(&["locked", "--format", "anthropic"]);
    assert_eq!(names(&locked), ["mcp__locked__authenticate"]);
    assert_eq!(
        said,
        "warning: server `locked` wants a login first\nhint: log in with `toolway login locked`\n"
    );
    // Whoever wants to see its tools still learns that there are none.
    toolway(&home, &["tools", "locked", "--json"]).expect_code(5);
}

#[test]
fn what_is_exported_can_be_called_by_its_name() {
    let (home, _locked) = mixed();
    for words in [
        &["--search", "select:mcp__late__echo"][..],
        &["late", "--all"],
    ] {
        let output = toolway(&home, &[&["tools", "--format", "openai"], words].concat());
        let export = output.expect_code(0).json();
        let names = names(&export);
        assert!(names.contains(&"mcp__late__echo"), "{names:?}");
    }
    let called = toolway(&home, &["call", "mcp__late__echo", "text=here"]).expect_code(0);
    assert!(called.stdout.contains("here"), "{called}");
}

#[test]
fn a_search_is_exported_with_what_it_found() {
    let (home, _locked) = mixed();
    let output = toolway(
        &home,
        &[
            "tools",
            "--format",
            "gemini",
            "--search",
            "select:count,ecko",
        ],
    )
    .expect_code(0);
    assert_eq!(names(&output.json()), ["mcp__late__count"]);
    assert!(
        output.stderr.contains("warning: no tool is called `ecko`"),
        "{output}"
    );
    let output = toolway(&home, &["tools", "--format", "openai", "--search", "qqqq"]);
    assert_eq!(output.expect_code(0).json(), json!([]));
}

#[test]
fn words_that_exclude_each_other_are_refused() {
    let home = TempHome::new();
    for words in [
        &["--search", "x", "--all"][..],
        &["--search", "x", "--instructions"],
        &["--search", "x", "--no-connect"],
        &["--format", "openai", "--json"],
        &["--format", "openai", "--instructions"],
        &["--format", "openai", "--no-connect"],
        &["--instructions", "--no-connect"],
    ] {
        let output = toolway(&home, &[&["tools"], words].concat()).expect_code(2);
        assert!(output.stderr.contains("cannot be used with"), "{output}");
    }
}

#[test]
fn the_table_says_which_tools_are_deferred_and_how_they_are_found() {
    let home = TempHome::new();
    let late = chaos(&json!({ "deferTools": true, "includeTools": ["echo", "count"] }));
    home.write_settings(servers(&[
        ("late", late),
        ("now", chaos(&json!({ "includeTools": ["echo"] }))),
    ]));
    assert_snapshot!(toolway(&home, &["tools"]), @"
    exit: 0
    ----- stdout
    NAME              DESCRIPTION
    mcp__late__count  (deferred) How often this process was called
    mcp__late__echo   (deferred) Says it again
    mcp__now__echo    Says it again
    ----- stderr
    hint: 2 of 3 tools are deferred: a model finds them with `ToolSearch`
    ");
    let all = toolway(&home, &["tools", "--all"]).expect_code(0);
    assert!(
        all.stdout
            .contains("\nmcp__late__echo     yes      (deferred) Says it again\n"),
        "{all}"
    );
    assert!(all.stderr.contains("2 of 3 tools are deferred"), "{all}");
    assert_snapshot!(toolway(&home, &["tools", "now"]), @"
    exit: 0
    ----- stdout
    NAME            DESCRIPTION
    mcp__now__echo  Says it again
    ----- stderr
    ");
    assert_snapshot!(toolway(&home, &["tools", "--search", "how often"]), @"
    exit: 0
    ----- stdout
    NAME              DESCRIPTION
    mcp__late__count  (deferred) How often this process was called
    ----- stderr
    ");
}

#[test]
fn the_plan_is_told_as_json_too() {
    let home = TempHome::new();
    home.write_settings(servers(&[
        ("one", json!({ "command": "true" })),
        ("two", json!({ "command": "true" })),
        ("off", json!({ "command": "true", "disabled": true })),
    ]));
    assert_snapshot!(toolway(&home, &["tools", "--no-connect"]), @"
    exit: 0
    ----- stdout
    SERVER  SOURCE
    one     [HOME]/.config/toolway/settings.json:3
    two     [HOME]/.config/toolway/settings.json:6
    ----- stderr
    ");
    let told = toolway(&home, &["tools", "--no-connect", "--json"]).json();
    let path = "[HOME]/.config/toolway/settings.json";
    assert_eq!(
        told,
        json!({ "tools": [], "servers": [
            { "name": "one", "source": { "path": path, "line": 3 } },
            { "name": "two", "source": { "path": path, "line": 6 } },
        ] })
    );
    let told = toolway(&home, &["tools", "two", "--no-connect", "--json"]).json();
    assert_eq!(told["servers"][0]["name"], "two");
    assert_eq!(told["servers"].as_array().unwrap().len(), 1);
}
