//! Rules with a condition on arguments or annotations.

use serde_json::{Map, Value, json};
use toolway_types::Scope;

use super::super::*;
use super::{errors, key, rules, verdict};

#[test]
fn an_argument_predicate_is_evaluated_on_the_arguments() {
    let tool = key("github", "create_issue");
    let call = |list: &str, rule: &str, arguments: Value| {
        let permissions = rules(&json!({ list: [rule] }));
        let arguments = arguments.as_object().unwrap().clone();
        verdict(
            &permissions,
            CallSubject::tool(&tool).with_arguments(&arguments),
        )
        .0
    };
    let acme = "mcp__github__*(repo:acme/*)";
    assert_eq!(call("allow", acme, json!({ "repo": "acme/app" })), 'a');
    assert_eq!(call("deny", acme, json!({ "repo": "acme/app" })), 'd');
    for other in [
        json!({ "repo": "evil/app" }),
        json!({}),
        json!({ "owner": "acme/app" }),
    ] {
        assert_eq!(call("allow", acme, other.clone()), '?', "{other}");
        assert_eq!(call("deny", acme, other.clone()), '?', "{other}");
    }
    // Lists: one is enough to deny, all are needed to allow.
    let mixed = json!({ "repo": ["acme/app", "evil/app"] });
    assert_eq!(call("deny", acme, mixed.clone()), 'd');
    assert_eq!(call("allow", acme, mixed), '?');
    // Dotted keys, numbers, several conditions.
    let nested = "mcp__github__*(target.repo:acme/* && draft:true)";
    let arguments = json!({ "target": { "repo": "acme/app" }, "draft": true });
    assert_eq!(call("allow", nested, arguments), 'a');
    assert_eq!(
        call("allow", nested, json!({ "target": { "repo": "acme/app" } })),
        '?'
    );
    // Disguises do not get around a deny, nor into an allow.
    for disguised in [
        json!({ "Repo": "ACME/app" }),
        json!({ "repo": "ac\u{200b}me/app" }),
        json!({ "repo\u{feff}": "acme/app" }),
    ] {
        assert_eq!(call("deny", acme, disguised.clone()), 'd', "{disguised}");
        assert_eq!(call("allow", acme, disguised.clone()), '?', "{disguised}");
    }
    for climbing in [
        "acme/../evil/app",
        "acme/%2e%2e/evil",
        "acme/..\\evil",
        "acme/\u{202e}x",
    ] {
        assert_eq!(
            call("allow", acme, json!({ "repo": climbing })),
            '?',
            "{climbing}"
        );
    }
    let both = json!({ "repo": "acme/app", "Repo": "evil/app" });
    assert_eq!(call("allow", acme, both), '?');
}

#[test]
fn sec_31_a_predicate_denies_what_it_would_allow_in_every_alphabet() {
    let tool = key("fs", "read");
    for (rule, arguments) in [
        // The capital sigma has two small letters, and which one depends on what follows.
        (
            "mcp__fs__read(path:\u{391}\u{3a3}*)",
            json!({ "path": "\u{391}\u{3a3}\u{391}" }),
        ),
        (
            "mcp__fs__read(\u{391}\u{3a3}.b:x)",
            json!({ "\u{391}\u{3a3}": { "b": "x" } }),
        ),
    ] {
        let arguments = arguments.as_object().unwrap().clone();
        let subject = CallSubject::tool(&tool).with_arguments(&arguments);
        for (list, wanted) in [("allow", 'a'), ("deny", 'd')] {
            let decided = verdict(&rules(&json!({ list: [rule] })), subject).0;
            assert_eq!(decided, wanted, "{list} {rule}");
        }
    }
}

#[test]
fn sec_13_no_detour_leads_around_a_deny_or_into_an_allow() {
    let tool = key("fs", "read");
    let call = |list: &str, rule: &str, text: &str| {
        let arguments = json!({ "at": text }).as_object().unwrap().clone();
        verdict(
            &rules(&json!({ list: [rule] })),
            CallSubject::tool(&tool).with_arguments(&arguments),
        )
        .0
    };
    for path in [
        "/etc/passwd",
        "//etc//passwd",
        "/tmp/../etc/passwd",
        "/./etc/./passwd",
        "/%2e%2e/etc%2Fpasswd",
        "/ETC/passwd",
        "\\etc\\passwd",
    ] {
        assert_eq!(call("deny", "mcp__fs__*(at:/etc/*)", path), 'd', "{path}");
    }
    assert_eq!(
        call("deny", "mcp__fs__*(at:/etc/*)", "/tmp/etc/passwd"),
        '?'
    );
    let trusted = "mcp__fs__*(at:https://trusted.com/*)";
    assert_eq!(call("allow", trusted, "https://trusted.com/x"), 'a');
    for url in [
        "https://trusted.com.evil.com/",
        "https://trusted.com@evil.com/",
        "https://trusted.com./x",
        "https://TRUSTED.com/x",
        "https://trusted.com/../x",
    ] {
        assert_eq!(call("allow", trusted, url), '?', "{url}");
    }
}

#[test]
fn unknown_arguments_never_allow_and_make_a_deny_ask() {
    let tool = key("db", "query");
    let deny = rules(&json!({ "deny": ["mcp__db__query(sql:DROP *)"], "allow": ["*"] }));
    assert_eq!(
        verdict(&deny, &tool),
        ('?', "mcp__db__query(sql:DROP *)".into())
    );
    assert_eq!(deny.decide_tool(&tool), deny.decide(&tool));
    let allow = rules(&json!({ "allow": ["mcp__db__query(sql:SELECT *)"] }));
    assert_eq!(verdict(&allow, &tool), ('?', String::new()));
    // A plain deny behind an undecided one still denies.
    let both = rules(&json!({ "deny": ["mcp__db__query(sql:DROP *)", "mcp__db"] }));
    assert_eq!(verdict(&both, &tool), ('d', "mcp__db".into()));
}

#[test]
fn sec_34_annotations_restrict_by_default_and_permit_only_for_a_named_server() {
    let tool = key("db", "query");
    let read_only = ToolHints {
        read_only: Some(true),
        ..ToolHints::default()
    };
    let tame = ToolHints {
        destructive: Some(false),
        ..ToolHints::default()
    };
    let said =
        |value: Value, hints| verdict(&rules(&value), CallSubject::tool(&tool).with_hints(hints)).0;
    let allow = json!({ "allow": ["mcp__db__*(@readOnly)"] });
    assert_eq!(said(allow.clone(), read_only), 'a');
    assert_eq!(said(allow.clone(), tame), '?');
    assert_eq!(said(allow.clone(), ToolHints::default()), '?');
    assert_eq!(verdict(&rules(&allow), &tool).0, '?');
    let deny = json!({ "deny": ["*(@destructive)"] });
    assert_eq!(said(deny.clone(), ToolHints::default()), 'd');
    assert_eq!(said(deny.clone(), read_only), '?');
    assert_eq!(said(deny, tame), '?');
    assert_eq!(
        said(json!({ "deny": ["mcp__db(!@readOnlyHint)"] }), tame),
        'd'
    );
    for rule in [
        "*(@readOnly)",
        "mcp__*(@readOnly)",
        "mcp__*__query(@readOnly)",
        "Foo(@readOnly)",
    ] {
        let (permissions, said) = errors(&json!({ "allow": [rule] }), Scope::User);
        assert_eq!(said.len(), 1, "{rule}");
        assert!(said[0].contains("claim"), "{said:?}");
        assert_eq!(permissions, Permissions::empty());
    }
}

/// What a list with this one rule says of a call of `db.run` with these arguments, as they come.
fn said(list: &str, rule: &str, arguments: &str) -> char {
    let permissions = rules(&json!({ list: [rule] }));
    let tool = key("db", "run");
    let arguments: Map<String, Value> = serde_json::from_str(arguments).unwrap();
    verdict(
        &permissions,
        CallSubject::tool(&tool).with_arguments(&arguments),
    )
    .0
}

#[test]
fn sec_13_a_number_is_denied_in_every_spelling() {
    for (pattern, numbers) in [
        ("2", ["2", "2.0", "2.00", "2e0", "20e-1", "0.2e1"]),
        ("2.0", ["2", "2.0", "2.00", "2e0", "20e-1", "0.2e1"]),
        ("2e0", ["2", "2.0", "2.00", "2e0", "20e-1", "0.2e1"]),
        ("0", ["0", "-0", "0.0", "-0.0", "0e5", "0.00"]),
        (
            "-15",
            ["-15", "-15.0", "-1.5e1", "-150e-1", "-15e0", "-15.00"],
        ),
        ("1000000000000000000000", ["1e21"; 6]),
        (
            "0.0000001",
            ["1e-7", "0.0000001", "0.1e-6", "10e-8", "1E-7", "1.0e-7"],
        ),
        ("1*", ["1e21", "12.0", "1", "1.5", "100e-1", "1e0"]),
    ] {
        for number in numbers {
            let rule = format!("mcp__db__run(n:{pattern})");
            for arguments in [
                format!(r#"{{"n":{number}}}"#),
                format!(r#"{{"n":[7,{number}]}}"#),
            ] {
                assert_eq!(said("deny", &rule, &arguments), 'd', "{rule} {arguments}");
            }
        }
    }
    for other in ["3", "2.5", "20", "-2", "2e1", "\"x\"", "null"] {
        let arguments = format!(r#"{{"n":{other}}}"#);
        assert_eq!(
            said("deny", "mcp__db__run(n:2)", &arguments),
            '?',
            "{other}"
        );
    }
    let large = r#"{"n":9007199254740993}"#;
    assert_eq!(said("deny", "mcp__db__run(n:9007199254740992)", large), '?');
    // What is allowed is what is written.
    assert_eq!(said("allow", "mcp__db__run(n:2)", r#"{"n":2}"#), 'a');
    assert_eq!(said("allow", "mcp__db__run(n:2)", r#"{"n":2.0}"#), '?');
}

#[test]
fn sec_13_a_star_denies_whatever_is_there() {
    for value in [
        "[]",
        "{}",
        "[[]]",
        "null",
        "0",
        "\"\"",
        "false",
        r#"{"y":[]}"#,
    ] {
        let arguments = format!(r#"{{"x":{value}}}"#);
        for rule in ["mcp__db__run(x:*)", "mcp__db__run(x:**)"] {
            assert_eq!(said("deny", rule, &arguments), 'd', "{rule} {value}");
        }
    }
    assert_eq!(said("deny", "mcp__db__run(x:*)", r#"{"y":1}"#), '?');
    assert_eq!(
        said("deny", "mcp__db__run(x.y:*)", r#"{"x":{"y":[]}}"#),
        'd'
    );
    assert_eq!(said("deny", "mcp__db__run(x.y:*)", r#"{"x":{}}"#), '?');
    assert_eq!(said("allow", "mcp__db__run(x:*)", r#"{"x":[]}"#), '?');
    assert_eq!(said("allow", "mcp__db__run(x:*)", r#"{"x":{}}"#), '?');
}

#[test]
fn two_conditions_joined_without_spaces_fail_to_the_safe_side() {
    for rule in [
        "mcp__db__run(a:1&&b:2)",
        "mcp__db__run(a:1 &&b:2)",
        "mcp__db__run(a:1&& b.c:2)",
        "mcp__db__run(a:1&&@readOnly)",
    ] {
        let (denied, problems) = errors(&json!({ "deny": [rule] }), Scope::User);
        assert_eq!(problems.len(), 1, "{rule}");
        assert!(problems[0].contains("spaces around it"), "{problems:?}");
        assert_eq!(verdict(&denied, &key("db", "run")).0, 'd', "{rule}");
        assert_eq!(denied.faults().len(), 1);
        let (allowed, _) = errors(&json!({ "allow": [rule] }), Scope::User);
        assert_eq!(verdict(&allowed, &key("db", "run")).0, '?', "{rule}");
        assert_eq!(allowed.faults(), []);
    }
    // A shell's line may hold one.
    let line = "mcp__db__run(cmd:cd x&&ls*)";
    assert_eq!(said("deny", line, r#"{"cmd":"cd x&&ls -l"}"#), 'd');
    assert_eq!(said("deny", line, r#"{"cmd":"ls"}"#), '?');
}

#[test]
fn sec_59_a_denied_address_is_denied_behind_every_detour() {
    let tool = key("s", "ReadMcpResource");
    let decided = |address: &str, uri: &str| {
        let rule = format!("mcp__s__ReadMcpResource(uri:{address})");
        let deny = rules(&json!({ "deny": [rule] }));
        let arguments = json!({ "uri": uri }).as_object().unwrap().clone();
        verdict(&deny, CallSubject::tool(&tool).with_arguments(&arguments)).0
    };
    for uri in [
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        "file:///x/../etc/passwd",
        "file:///./etc/passwd",
        "file:////etc/passwd",
        "file:/etc/passwd",
        "file://localhost/etc/passwd",
        "file:///%65tc/passwd",
        "file:///x/%252e%252e/etc/passwd",
        "file:///x\\..\\etc/passwd",
        "file://127.0.0.1/etc/passwd",
        "file://x@localhost:/etc/passwd",
        "file://other/etc/passwd",
        "x:///etc/passwd",
        "x:/etc/passwd",
        "/etc/passwd",
        "//etc/passwd",
    ] {
        assert_eq!(decided("file:///etc/*", uri), 'd', "{uri}");
    }
    for uri in [
        "file:///var/etc/x",
        "http:///etc/x",
        "http://other/etc/passwd",
        "docs://other/etc/passwd",
        "etc/passwd",
        "what /etc/passwd is",
    ] {
        assert_eq!(decided("file:///etc/*", uri), '?', "{uri}");
    }
    for end in [
        "", "#", "?", "?x", ";a", "%00", "%00.txt", "%20", "%2500", ".",
    ] {
        let uri = format!("file:///etc/shadow{end}");
        assert_eq!(decided("file:///etc/shadow", &uri), 'd', "{uri}");
        assert_eq!(decided("file:///*/shadow", &uri), 'd', "{uri}");
    }
    for uri in [
        "http://host.example/secret",
        "http://host.example:80/secret",
        "http://host.example:/secret",
        "http://u:p@host.example/secret",
        "http://HOST.example./secret",
        "http:/host.example/secret",
        "http:host.example/secret",
        "http:///host.example/secret",
        "http:\\\\host.example\\secret",
        "http://host.example/x/..;/secret",
        "http://host.example?/../secret",
    ] {
        for rule in [
            "http://host.example/secret*",
            "http://host.example:80/secret*",
        ] {
            assert_eq!(decided(rule, uri), 'd', "{rule} {uri}");
        }
    }
    for uri in [
        "http://host.example:8080/secret",
        "https://host.example/secret",
        "http://host.example.org/secret",
        "http://host.example/open?next=/secret",
    ] {
        assert_eq!(decided("http://host.example/secret*", uri), '?', "{uri}");
    }
}
