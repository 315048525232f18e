//! Names of tools, and rules that name them: in any spelling, and never another's (SEC-31).

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::{CommandOutput, TempHome};

use crate::support::{servers, toolway};

/// The entry of a server with these tools.
fn offering(tools: &[&str]) -> Value {
    let tool = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" } });
    entry(&tools.iter().map(tool).collect())
}

/// The same, where each tool says whose it is.
fn answering(server: &str, tools: &[&str]) -> Value {
    let tool = |name: &&str| {
        let text = json!({ "type": "text", "text": format!("{server} {name}") });
        let answer = json!({ "content": [text] });
        json!({ "name": name, "inputSchema": { "type": "object" }, "answer": answer })
    };
    entry(&tools.iter().map(tool).collect())
}

fn entry(tools: &Value) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tools_server.py");
    json!({ "command": "python3", "args": ["-u", script, tools.to_string()] })
}

/// Writes settings with these servers and permissions.
fn write(home: &TempHome, entries: &[(&str, Value)], permissions: &Value) {
    let mut settings: Value = serde_json::from_str(&servers(entries)).unwrap();
    settings["permissions"] = permissions.clone();
    home.write_settings(settings.to_string());
}

fn names(home: &TempHome) -> Vec<String> {
    let listed = toolway(home, &["tools", "--json"]).expect_code(0).json();
    let tools = listed["tools"].as_array().unwrap().iter();
    let names = tools.map(|tool| tool["name"].as_str().unwrap().to_owned());
    names.collect()
}

/// A call as an agent's would be judged.
fn asked(home: &TempHome, server: &str, tool: &str) -> CommandOutput {
    toolway(home, &["call", server, tool, "--ask"])
}

#[test]
fn a_name_is_spelled_plainly_and_carries_a_digest_only_where_two_collide() {
    let home = TempHome::new();
    let odd = ("My Server!", offering(&["do thing"]));
    let plugin = ("plugin:p:s", offering(&["t"]));
    let hyphens = ("my-server", offering(&["get-item"]));
    write(&home, &[odd, plugin, hyphens], &json!({}));
    assert_eq!(
        names(&home),
        [
            "mcp__My_Server___do_thing",
            "mcp__my-server__get-item",
            "mcp__plugin_p_s__t"
        ]
    );
    let called = toolway(&home, &["call", "mcp__My_Server___do_thing"]).expect_code(0);
    assert_eq!(called.stdout, "{\"do thing\": {}}\n");

    let lossless = ("x_y", answering("x_y", &["t"]));
    let lossy = ("x y", answering("x y", &["t", "u"]));
    let alike = ("x.y", answering("x.y", &["t"]));
    write(&home, &[lossless, lossy, alike], &json!({}));
    let names = names(&home);
    assert_eq!(
        names,
        [
            "mcp__x_y__t_ecef90d093",
            "mcp__x_y__u",
            "mcp__x_y__t_a29c5a6353",
            "mcp__x_y__t"
        ]
    );
    // Each is called by the name that the list shows, and by server and tool.
    for (name, said) in names.iter().zip(["x y t", "x y u", "x.y t", "x_y t"]) {
        let (server, tool) = said.rsplit_once(' ').unwrap();
        for words in [&["call", server, tool][..], &["call", name]] {
            let output = toolway(&home, words).expect_code(0);
            assert_eq!(output.stdout, format!("{said}\n"), "{name}");
        }
    }
}

#[test]
fn rules_in_either_spelling_count() {
    let home = TempHome::new();
    let odd = || ("My Server!", offering(&["do thing"]));
    for rule in [
        "mcp__My_Server___do_thing",
        "mcp__My Server!__do thing",
        "mcp__My_Server_",
        "mcp__My_Server___*",
    ] {
        write(&home, &[odd()], &json!({ "allow": [rule] }));
        asked(&home, "My Server!", "do thing").expect_code(0);
        write(&home, &[odd()], &json!({ "deny": [rule] }));
        toolway(&home, &["call", "My Server!", "do thing"]).expect_code(6);
    }
    // It could mean either, so it allows neither, and both commands say so.
    let two = [odd(), ("My Server?", offering(&["do thing"]))];
    write(
        &home,
        &two,
        &json!({ "allow": ["mcp__My_Server___do_thing"] }),
    );
    asked(&home, "My Server!", "do thing").expect_code(6);
    asked(&home, "My Server?", "do thing").expect_code(6);
    assert_snapshot!(toolway(&home, &["permissions"]), @r"
    exit: 0
    ----- stdout
    LIST   RULE                       SCOPE  PLACE
    allow  mcp__My_Server___do_thing  user   [HOME]/.config/toolway/settings.json:1
    mode default: without a rule you are asked
    pins ask: what happens when a tool's definition changed
    ----- stderr
    warning: [HOME]/.config/toolway/settings.json:1: the rule `mcp__My_Server___do_thing` in `permissions.allow` can mean servers `My Server!` and `My Server?`; it allows nothing
    hint: write the server's name as it is configured: `mcp__My Server!`
    ");
    let doctor = toolway(&home, &["doctor"]);
    assert!(doctor.stdout.contains("it allows nothing"), "{doctor}");
    // What a person allows for good is written so that it can mean no other.
    let (_, out) = crate::permission::typing(
        &home,
        &["call", "My Server!", "do thing", "--ask"],
        &["t", "u"],
    );
    assert!(out.ends_with("exit 0"), "{out}");
    let rules = toolway(&home, &["permissions"]).expect_code(0).stdout;
    assert!(
        rules.contains("allow  mcp__My Server!__do thing"),
        "{rules}"
    );
    asked(&home, "My Server!", "do thing").expect_code(0);
    asked(&home, "My Server?", "do thing").expect_code(6);
}

#[test]
fn sec_31_a_rule_does_not_pass_on_with_the_name_it_was_given_for() {
    let home = TempHome::new();
    let rules = json!({ "allow": ["mcp__my_server__get_item"] });
    let lossy = || ("my server", offering(&["get.item"]));
    let lossless = || ("my_server", offering(&["get_item"]));
    write(&home, &[lossy()], &rules);
    asked(&home, "my server", "get.item").expect_code(0);
    // Another server comes, whose tool has that name as its own.
    write(&home, &[lossy(), lossless()], &rules);
    asked(&home, "my server", "get.item").expect_code(6);
    assert_snapshot!(asked(&home, "my_server", "get_item"), @r"
    exit: 6
    ----- stdout
    ----- stderr
    error: `get_item` of server `my_server` was refused because another tool was permitted under its name
      `mcp__my_server__get_item` stood for another tool, `my server.get.item`, when that was permitted
      what was allowed then was not meant for this one; accepted, it is
    hint: if that is as it should be, run it again with `--accept-change`
    ");
    // Nor is it forgotten when the first is gone.
    write(&home, &[lossless()], &rules);
    asked(&home, "my_server", "get_item").expect_code(6);
    let accept = ["call", "my_server", "get_item", "--accept-change"];
    toolway(&home, &accept).expect_code(0);
    asked(&home, "my_server", "get_item").expect_code(0);
    // The tools of one server are no exception.
    let other = TempHome::new();
    let rules = json!({ "allow": ["mcp__s__get_item"] });
    write(&other, &[("s", offering(&["get.item"]))], &rules);
    asked(&other, "s", "get.item").expect_code(0);
    write(
        &other,
        &[("s", offering(&["get.item", "get_item"]))],
        &rules,
    );
    asked(&other, "s", "get_item").expect_code(6);
    asked(&other, "s", "get.item").expect_code(6);
}

#[test]
fn sec_14_a_deny_rule_as_people_type_names_refuses() {
    let home = TempHome::new();
    let github = || ("github", offering(&["delete_repo", "list"]));
    for rule in [
        "github.delete_repo",
        "github delete_repo",
        "github/delete_repo",
        "GitHub.delete_*",
        "github",
    ] {
        write(&home, &[github()], &json!({ "deny": [rule] }));
        let refused = toolway(&home, &["call", "github", "delete_repo"]);
        assert_eq!(refused.code, Some(6), "{rule}: {refused}");
        assert!(
            refused.stderr.contains(&format!("the rule `{rule}`")),
            "{refused}"
        );
        write(
            &home,
            &[github()],
            &json!({ "ask": [rule], "allow": ["*"] }),
        );
        asked(&home, "github", "delete_repo").expect_code(6);
        // In a list that allows, it allows nothing, and every call says so.
        write(&home, &[github()], &json!({ "allow": [rule] }));
        asked(&home, "github", "delete_repo").expect_code(6);
    }
    write(
        &home,
        &[github()],
        &json!({ "deny": ["github delete_repo"], "ask": ["elsewhere.x", "mcp__elsewhere__y"], "allow": ["github.list"] }),
    );
    assert_snapshot!(toolway(&home, &["permissions"]), @r"
    exit: 0
    ----- stdout
    LIST   RULE                SCOPE  PLACE
    deny   github delete_repo  user   [HOME]/.config/toolway/settings.json:1
    ask    elsewhere.x         user   [HOME]/.config/toolway/settings.json:1
    ask    mcp__elsewhere__y   user   [HOME]/.config/toolway/settings.json:1
    allow  github.list         user   [HOME]/.config/toolway/settings.json:1
    mode default: without a rule you are asked
    pins ask: what happens when a tool's definition changed
    ----- stderr
    warning: [HOME]/.config/toolway/settings.json:1: the rule `github.list` in `permissions.allow` names no tool of a configured server
    hint: did you mean `mcp__github__list`?
    warning: [HOME]/.config/toolway/settings.json:1: the rule `github delete_repo` in `permissions.deny` is read as `mcp__github__delete_repo`
    hint: write `mcp__github__delete_repo`
    warning: [HOME]/.config/toolway/settings.json:1: the rule `elsewhere.x` in `permissions.ask` names no server that is configured here, unless a tool is called so
    hint: write `mcp__<server>__<tool>`
    warning: [HOME]/.config/toolway/settings.json:1: the rule `mcp__elsewhere__y` in `permissions.ask` speaks of `elsewhere`, and no such server is configured here
    hint: that is as it should be if the server is configured elsewhere
    ");
    let doctor = toolway(&home, &["doctor"]).stdout;
    for words in [
        "the rule `github delete_repo` in `permissions.deny` is read as `mcp__github__delete_repo`",
        "the rule `github.list` in `permissions.allow` names no tool",
        "speaks of `elsewhere`, and no such server is configured here",
    ] {
        assert!(doctor.contains(words), "{doctor}");
    }
    assert_snapshot!(toolway(&home, &["permissions", "github", "delete_repo"]).stdout, @r"
    mcp__github__delete_repo: denied by `github delete_repo` in [HOME]/.config/toolway/settings.json:1
    ");
}

#[test]
fn sec_14_a_deny_rule_that_cannot_be_read_refuses_every_call() {
    let home = TempHome::new();
    let entries = || [("github", offering(&["list"]))];
    write(
        &home,
        &entries(),
        &json!({ "deny": ["mcp__"], "allow": ["*"] }),
    );
    assert_snapshot!(toolway(&home, &["call", "github", "list"]), @r"
    exit: 6
    ----- stdout
    ----- stderr
    error: [HOME]/.config/toolway/settings.json:1: the rule `mcp__` in `permissions.deny` cannot be read: it names no server; it denies everything of every server
    hint: write `mcp__server`, `mcp__server__*`, `mcp__server__tool`, or `mcp__server__tool(argument:pattern)`
    warning: server `github`: its resources are left out: refused by the rule `mcp__` in [HOME]/.config/toolway/settings.json:1
    error: `list` of server `github` was refused by the rule `mcp__` in [HOME]/.config/toolway/settings.json:1
    hint: if it should run, take the rule out of `permissions.deny` at [HOME]/.config/toolway/settings.json:1
    ");
    assert_snapshot!(toolway(&home, &["permissions"]), @r"
    exit: 0
    ----- stdout
    LIST   RULE   SCOPE  PLACE
    deny   mcp__  user   [HOME]/.config/toolway/settings.json:1
    allow  *      user   [HOME]/.config/toolway/settings.json:1
    mode default: without a rule you are asked
    pins ask: what happens when a tool's definition changed
    ----- stderr
    error: [HOME]/.config/toolway/settings.json:1: the rule `mcp__` in `permissions.deny` cannot be read: it names no server; it denies everything of every server
    hint: write `mcp__server`, `mcp__server__*`, `mcp__server__tool`, or `mcp__server__tool(argument:pattern)`
    ");
    let doctor = toolway(&home, &["doctor"]).expect_code(3).stdout;
    assert!(
        doctor.contains("it denies everything of every server"),
        "{doctor}"
    );
}

#[test]
fn a_hook_around_questions_names_its_server_and_nobody_complains() {
    let home = TempHome::new();
    let write = |matcher: &str| {
        let mut settings: Value =
            serde_json::from_str(&servers(&[("shop", offering(&["buy"]))])).unwrap();
        settings["hooks"] = json!({ "Elicitation": [{ "matcher": matcher, "hooks": [
            { "type": "command", "command": "true" },
        ] }] });
        home.write_settings(settings.to_string());
    };
    let explained = || {
        toolway(&home, &["explain", "shop", "buy"])
            .expect_code(0)
            .stdout
    };
    for matcher in ["shop", "Shop", "mcp__shop", "shop|other", "sho.*"] {
        write(matcher);
        let called = toolway(&home, &["call", "shop", "buy"]).expect_code(0);
        assert_eq!(called.stderr, "", "{matcher}");
        assert!(explained().contains("Elicitation on"), "{matcher}");
    }
    write("shpo");
    assert_snapshot!(toolway(&home, &["call", "shop", "buy"]), @r#"
    exit: 0
    ----- stdout
    {"buy": {}}
    ----- stderr
    warning: [HOME]/.config/toolway/settings.json:1: the matcher `shpo` of a hook for Elicitation names no tool of a configured server
    hint: did you mean `shop`?
    "#);
    assert!(explained().contains("no hook runs"));
}

/// What `permissions` says of a tool by these words.
fn judged(home: &TempHome, words: &[&str]) -> CommandOutput {
    toolway(home, &[&["permissions"], words].concat()).expect_code(0)
}

#[test]
fn sec_31_permissions_judges_the_tool_that_a_call_by_that_name_would_reach() {
    let home = TempHome::new();
    let odd = || ("My Server!", offering(&["do thing", "do_other"]));
    for (list, rule, word, code) in [
        ("deny", "mcp__My Server!__do thing", "denied", 6),
        ("deny", "My Server!.do t*", "denied", 6),
        ("ask", "mcp__My Server!__do thing", "asked", 6),
        ("allow", "mcp__My Server!__do thing", "allowed", 0),
        ("deny", "mcp__My Server!__do_thing", "denied", 6),
    ] {
        let mut permissions = json!({ "allow": [if list == "allow" { "mcp__x" } else { "*" }] });
        permissions[list] = json!([rule]);
        write(&home, &[odd()], &permissions);
        // So that it is known what the server calls them.
        asked(&home, "My Server!", "do thing").expect_code(code);
        for words in [
            &["mcp__My_Server___do_thing"][..],
            &["My Server!", "do thing"],
            &["My Server!", "do_thing"],
            &["My Server!.do thing"],
        ] {
            let said = judged(&home, words);
            let start = format!("mcp__My_Server___do_thing: {word} by `{rule}` in ");
            assert!(said.stdout.starts_with(&start), "{words:?}: {said}");
            assert_eq!(said.stderr, "", "{words:?}");
        }
        let as_json = [
            &["permissions", "--json"],
            &["mcp__My_Server___do_thing"][..],
        ]
        .concat();
        let said = toolway(&home, &as_json).json();
        assert_eq!(said["server"], "My Server!");
        assert_eq!(said["tool"], "do thing");
        assert_eq!(said["decision"], word);
        assert_eq!(said["nameIsKnown"], Value::Null);
    }
    // Two of one spelling: a call is told apart from the other, and so is this.
    let two = [odd(), ("My Server?", offering(&["do thing"]))];
    write(
        &home,
        &two,
        &json!({ "deny": ["mcp__My Server?__do thing"] }),
    );
    let named = names(&home);
    let named = named
        .iter()
        .find(|name| name.starts_with("mcp__My_Server___do_thing_"));
    let (bang, both) = (named.unwrap().as_str(), "mcp__My_Server___do_thing");
    assert!(
        judged(&home, &[bang])
            .stdout
            .contains(": asked by the mode")
    );
    let call = toolway(&home, &["call", both]).expect_code(2);
    let said = toolway(&home, &["permissions", both]).expect_code(2);
    let told = call.stderr.lines().next();
    assert!(
        told.is_some_and(|told| told.starts_with("error: ")),
        "{call}"
    );
    assert_eq!(said.stderr.lines().next(), told);
    assert!(
        said.stderr
            .contains("`toolway permissions mcp__My_Server___do_thing_"),
        "{said}"
    );
}

#[test]
fn sec_31_a_name_that_nobody_can_read_back_is_judged_by_all_that_it_can_mean() {
    let home = TempHome::new();
    let odd = ("My Server!", offering(&["do thing"]));
    let dotted = ("a.b", offering(&["c"]));
    let rules = json!({
        "deny": ["mcp__My Server!__do thing", "mcp__My Server!__caf\u{e9}*", "mcp__a.b__c"],
        "ask": ["mcp__elsewhere!__x y"],
        "allow": ["*"],
    });
    write(&home, &[odd, dotted], &rules);
    assert_snapshot!(judged(&home, &["mcp__My_Server___do_thing"]), @"
    exit: 0
    ----- stdout
    mcp__My_Server___do_thing: denied by `mcp__My Server!__do thing` in [HOME]/.config/toolway/settings.json:1
    ----- stderr
    note: server `My Server!` has not said whether `do_thing` is what it calls the tool; a rule that restricts counts if it can mean it
    hint: ask it with `toolway tools 'My Server!'`
    ");
    let as_json = ["permissions", "My Server!", "do_thing", "--json"];
    let said = toolway(&home, &as_json).json();
    assert_eq!(said["decision"], "denied");
    assert_eq!(said["nameIsKnown"], false);
    for (words, start) in [
        // Composed or not, and with more behind it.
        (
            &["mcp__My_Server___caf_"][..],
            "mcp__My_Server___caf_: denied by",
        ),
        (
            &["mcp__My_Server___cafe_s"],
            "mcp__My_Server___cafe_s: denied by",
        ),
        // Nothing that it can mean.
        (
            &["mcp__My_Server___do_things"],
            "mcp__My_Server___do_things: allowed by `*`",
        ),
        (
            &["mcp__My_Server___do-thing"],
            "mcp__My_Server___do-thing: allowed by `*`",
        ),
        // A server that is not configured here.
        (&["mcp__elsewhere___x_y"], "mcp__elsewhere___x_y: asked by"),
        // The longest name that fits, as a call takes it.
        (&["a.b.c"], "mcp__a_b__c: denied by `mcp__a.b__c`"),
    ] {
        let said = judged(&home, words);
        assert!(said.stdout.starts_with(start), "{words:?}: {said}");
    }
    // A name with a digest can be one of whose end nothing is known.
    let long = format!("{} {}", "long".repeat(10), "end".repeat(10));
    let entry = || [("s", offering(&[&long]))];
    let denied = json!({ "deny": [format!("mcp__s__{long}")], "allow": ["*"] });
    write(&home, &entry(), &denied);
    let cut = toolway_types::ToolKey::new(toolway_types::ServerName::new("s").unwrap(), &long);
    let cut = cut.exposed();
    let said = judged(&home, &[&cut]);
    assert!(
        said.stdout.starts_with(&format!("{cut}: denied by")),
        "{said}"
    );
    assert!(
        said.stderr.starts_with("note: server `s` has not said"),
        "{said}"
    );
    asked(&home, "s", &long).expect_code(6);
    let said = judged(&home, &[&cut]);
    assert!(
        said.stdout.starts_with(&format!("{cut}: denied by")),
        "{said}"
    );
    assert_eq!(said.stderr, "");
}
