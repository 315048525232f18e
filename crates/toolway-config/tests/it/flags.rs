//! `--mcp-config`, `--mcp-server` and `--strict-mcp-config`.

use insta::assert_snapshot;
use toolway_config::Flags;
use toolway_types::{RemoteKind, TransportSpec};

use crate::{Stage, findings, spec, table, word};

#[test]
fn files_texts_and_single_servers_can_be_given() {
    let stage = Stage::new();
    stage.write(
        "home/repo/extra.json",
        r#"{"mcpServers": {"file": {"command": "f"}, "twice": {"command": "first"}}}"#,
    );
    let flags = Flags {
        mcp_config: vec![
            "extra.json".to_owned(),
            " {\"mcpServers\": {\"text\": {\"command\": \"t\"}, \"twice\": {\"command\": \"second\"}}}".to_owned(),
            "missing.json".to_owned(),
            "{broken".to_owned(),
        ],
        mcp_server: vec![
            "cmd=npx -y 'a b'".to_owned(),
            "web=https://a.example/mcp?x=1".to_owned(),
            "sock=wss://a.example".to_owned(),
            "nameless".to_owned(),
            "open='".to_owned(),
            "=x".to_owned(),
        ],
        ..Flags::default()
    };
    let plan = stage.plan_with(&flags);
    assert_snapshot!(table(&stage, &plan), @"
    cmd [dynamic] admitted
    file [dynamic] admitted
    sock [dynamic] admitted
    text [dynamic] admitted
    twice [dynamic] admitted
    twice [dynamic] shadowed: by precedence
    web [dynamic] admitted
    ");
    assert_snapshot!(findings(&stage, &plan), @"
    --mcp-config:1 `--mcp-config`: there is no file `home/repo/missing.json` | give a file's path, or JSON that starts with `{`
    --mcp-config:1 (column 2) the value of `--mcp-config`: not valid JSON: expected string for object property | mend the JSON given to `--mcp-config`
    --mcp-server:1 `--mcp-server` needs a name before `=` | write `--mcp-server name=command` or `--mcp-server name=https://…`
    --mcp-server:1 `--mcp-server open=…` cannot be split into words: a quote is not closed | write `--mcp-server name=command` or `--mcp-server name=https://…`
    --mcp-server:1 `--mcp-server` needs a name before `=` | write `--mcp-server name=command` or `--mcp-server name=https://…`
    ");
    assert!(matches!(&spec(&plan, "cmd").transport,
        TransportSpec::Stdio(stdio) if stdio.command == "npx" && stdio.args == ["-y", "a b"]));
    assert!(matches!(&spec(&plan, "twice").transport,
        TransportSpec::Stdio(stdio) if stdio.command == "second"));
    assert!(matches!(&spec(&plan, "web").transport,
        TransportSpec::Remote(RemoteKind::Http, remote) if remote.url.as_str() == "https://a.example/mcp?x=1"));
    assert!(matches!(
        &spec(&plan, "sock").transport,
        TransportSpec::Remote(RemoteKind::Ws, _)
    ));
}

#[test]
fn a_strict_run_has_only_given_servers_and_still_obeys_every_rule() {
    let stage = Stage::new();
    stage.user(r#"{"mcpServers": {"u": {"command": "u"}}, "disabledMcpServers": ["off"]}"#);
    stage.project(r#"{"mcpServers": {"p": {"command": "p"}}}"#);
    stage.managed(
        r#"{"mcpServers": {"m": {"command": "m"}}, "deniedMcpServers": [{"serverName": "bad"}]}"#,
    );
    let flags = Flags {
        mcp_server: vec!["bad=x".to_owned(), "good=y".to_owned(), "off=z".to_owned()],
        strict: true,
        ..Flags::default()
    };
    let plan = stage.plan_with(&flags);
    assert_eq!(plan.servers.len(), 3);
    assert_eq!(word(&plan, "bad"), "refused");
    assert_eq!(word(&plan, "good"), "admitted");
    assert_eq!(word(&plan, "off"), "disabled");
}
