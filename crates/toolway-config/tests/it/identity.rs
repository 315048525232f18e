//! The identity provider and cross-app access in the plan: who may name one, who uses it, and
//! what the organisation can require.

use insta::assert_snapshot;
use toolway_config::Plan;
use toolway_types::{CrossApp, RemoteKind, TransportSpec};

use crate::{Stage, findings, spec, word};

const PROVIDER: &str =
    r#""identityProvider": {"issuer": "https://login.example.com", "clientId": "toolway"}"#;

const SERVERS: &str = r#""mcpServers": {
    "asks": {"type": "http", "url": "https://a.example/mcp", "oauth": {"xaa": true}},
    "does-not": {"type": "sse", "url": "https://b.example/sse"},
    "local": {"command": "true"}
}"#;

fn cross_app(plan: &Plan, name: &str) -> CrossApp {
    match &spec(plan, name).transport {
        TransportSpec::Remote(RemoteKind::Http | RemoteKind::Sse, remote) => {
            let oauth = remote.oauth.as_ref();
            oauth.map(|oauth| oauth.xaa.clone()).unwrap_or_default()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn sec_45_only_the_person_and_the_organisation_name_a_provider() {
    let stage = Stage::new();
    stage.project(&format!("{{\n{PROVIDER},\n\"mcpServers\": {{}}\n}}"));
    stage.local(&format!("{{\n{PROVIDER}\n}}"));
    stage.write(
        "home/repo/.toolway/settings.json",
        &format!("{{{PROVIDER}}}"),
    );
    let plan = stage.plan();
    assert!(plan.identity.is_none());
    assert_snapshot!(findings(&stage, &plan), @"
    home/repo/.toolway/settings.local.json:2 `identityProvider` is ignored: it does not count in this file | it counts only in your own settings (`settings.json` in the config home)
    home/repo/.toolway/settings.json:1 `identityProvider` is ignored: a project's own file cannot set it | it counts only in your own settings (`settings.json` in the config home)
    home/repo/.mcp.json:2 `identityProvider` is ignored: a project's own file cannot set it | it counts only in your own settings (`settings.json` in the config home)
    ");

    stage.user(&format!("{{{PROVIDER}}}"));
    let issuer = |plan: &Plan| plan.identity.as_ref().map(|it| it.issuer.clone());
    assert_eq!(
        issuer(&stage.plan()).as_deref(),
        Some("https://login.example.com")
    );
    stage.managed(
        r#"{"identityProvider": {"issuer": "https://work.example", "clientId": "toolway"}}"#,
    );
    assert_eq!(
        issuer(&stage.plan()).as_deref(),
        Some("https://work.example")
    );
    stage.managed(r#"{"identityProvider": {"issuer": "https://work.example"}}"#);
    let plan = stage.plan();
    assert_eq!(issuer(&plan), None, "nothing else takes its place");
    assert!(plan.blocked.is_none());
}

#[test]
fn sec_45_an_entry_has_no_key_for_a_provider() {
    let mut stage = Stage::new();
    stage
        .vars
        .insert("TOOLWAY_ENABLE_XAA".to_owned(), "1".to_owned());
    stage.user(
        r#"{"mcpServers": {"shop": {"type": "http", "url": "https://shop.example/mcp",
            "oauth": {"xaa": true, "identityProvider": "https://evil.example", "issuer": "https://evil.example"}}}}"#,
    );
    let plan = stage.plan();
    assert!(plan.identity.is_none());
    assert_snapshot!(findings(&stage, &plan), @"");
}

#[test]
fn an_entry_asks_for_it_where_it_is_switched_on() {
    let mut stage = Stage::new();
    stage.user(&format!("{{\n{SERVERS}}}"));
    let plan = stage.plan();
    assert_eq!(cross_app(&plan, "asks"), CrossApp::Off);
    assert_snapshot!(findings(&stage, &plan), @"home/.config/toolway/settings.json:3 `oauth.xaa` does not count: cross-app access is switched off | set `TOOLWAY_ENABLE_XAA=1`, or take `xaa` out");
    for (word, is_on) in [("1", true), ("true", true), ("0", false), ("", false)] {
        stage
            .vars
            .insert("TOOLWAY_ENABLE_XAA".to_owned(), word.to_owned());
        let plan = stage.plan();
        let wanted = if is_on {
            CrossApp::Preferred
        } else {
            CrossApp::Off
        };
        assert_eq!(cross_app(&plan, "asks"), wanted, "{word}");
        assert_eq!(cross_app(&plan, "does-not"), CrossApp::Off);
    }
}

#[test]
fn the_organisation_can_require_it_of_everybody_or_of_some() {
    let stage = Stage::new();
    stage.user(&format!("{{{SERVERS}}}"));
    stage.managed("{\n\"requireCrossAppAccess\": true}");
    let plan = stage.plan();
    for name in ["asks", "does-not"] {
        let CrossApp::Only { policy } = cross_app(&plan, name) else {
            panic!("{name}");
        };
        assert!(policy.contains("managed-settings.json:2"), "{policy}");
    }
    assert_eq!(word(&plan, "local"), "admitted");
    assert_snapshot!(findings(&stage, &plan), @"");

    stage.managed(r#"{"requireCrossAppAccess": [{"serverUrl": "https://b.example/*"}]}"#);
    let plan = stage.plan();
    assert_eq!(cross_app(&plan, "asks"), CrossApp::Off);
    assert!(matches!(
        cross_app(&plan, "does-not"),
        CrossApp::Only { .. }
    ));

    // Other files cannot, and one that cannot be understood stops everything.
    stage.user(&format!("{{\"requireCrossAppAccess\": true, {SERVERS}}}"));
    stage.managed(r#"{"requireCrossAppAccess": false}"#);
    let plan = stage.plan();
    assert_eq!(cross_app(&plan, "does-not"), CrossApp::Off);
    stage.managed(r#"{"requireCrossAppAccess": "yes"}"#);
    assert!(stage.plan().blocked.is_some());
    stage.managed(r#"{"requireCrossAppAcces": true}"#);
    assert!(stage.plan().blocked.is_some());
}
