//! Connectors whose account changes under them: a model that begins its login, and settings that
//! name another one.

use serde_json::{Value, json};
use toolway::{CallOptions, Consent, Host, ToolRequest, ToolTarget};
use toolway_testkit::authority::{Authority, AuthoritySettings, ConnectorAccount, holds_secret};
use toolway_testkit::browser::browse;
use toolway_types::ConnectionState;

use crate::account::{Stage, connected, fresh, settled, whoami};
use crate::support::{Home, name, shown};

/// What the tool of a server answers.
async fn authenticate(host: &Host, server: &str) -> (bool, String) {
    let request = ToolRequest::new(
        ToolTarget::Exposed(format!("mcp__{server}__authenticate")),
        serde_json::Map::new(),
    );
    let answer = host.call(request, CallOptions::new(Consent::Typed)).await;
    let answer: Value = serde_json::from_str(answer.expect("an answer").raw.get()).expect("JSON");
    let text = answer["content"][0]["text"].as_str().expect("text");
    (answer["isError"] == true, text.to_owned())
}

fn page(text: &str) -> &str {
    let mut words = text.split_whitespace();
    let page = words.find(|word| word.starts_with("http") && word.contains("code_challenge"));
    page.unwrap_or_else(|| panic!("{text}"))
}

fn needs_auth(host: &Host, server: &str) -> bool {
    matches!(shown(host, server).state, ConnectionState::NeedsAuth { .. })
}

#[tokio::test]
async fn the_tool_of_a_connector_begins_the_login_of_the_account_once_for_all_of_them() {
    let authority = Authority::start(AuthoritySettings::account_provider());
    let stage = Stage::at(&authority);
    stage.log_in().await;
    let host = stage.host();
    let servers = ["notes", "calendar"];
    for server in servers {
        connected(&host, server).await;
    }
    settled(&host).await;
    let logins = authority.report().authorizations;
    authority.revoke_everything();
    for server in servers {
        host.reconnect(server).await.expect("known");
        assert!(needs_auth(&host, server));
    }
    let (is_error, text) = authenticate(&host, "notes").await;
    assert!(!is_error, "{text}");
    assert!(
        text.contains("`toolway account login --no-browser`"),
        "{text}"
    );
    assert!(!text.contains("toolway login"), "{text}");
    let address = page(&text).to_owned();
    assert!(address.starts_with(authority.issuer()), "{address}");
    let (_, again) = authenticate(&host, "calendar").await;
    assert_eq!(page(&again), address, "one window for all of them");
    let visited = tokio::task::spawn_blocking(move || browse(&address));
    visited.await.expect("no panic");
    for server in servers {
        connected(&host, server).await;
    }
    let snapshot = host.snapshot();
    let mut own = snapshot.catalog.built_in().iter();
    assert!(!own.any(|tool| tool.name.ends_with("__authenticate")));
    assert_eq!(authority.report().authorizations, logins + 1);
    assert!(!holds_secret(&text));
    host.shutdown().await;
    assert_eq!(authority.report().attacker_requests, 0);
}

#[tokio::test]
async fn where_the_account_is_no_login_none_is_begun() {
    let authority = Authority::start(AuthoritySettings::account_provider());
    // It calls itself a connector, and leads past the provider's proxy.
    let beside = json!({ "type": "connector", "url": authority.resource() });
    let stage = Stage::new(
        &json!({ "url": authority.issuer() }),
        &json!({ "beside": beside }),
    );
    let host = stage.host();
    host.settled().await;
    settled(&host).await;
    assert!(needs_auth(&host, "beside"));
    let (is_error, text) = authenticate(&host, "beside").await;
    assert!(is_error && !text.contains("code_challenge"), "{text}");
    host.shutdown().await;

    // A host that has no account says where a person has one.
    let home = Home::new();
    let entry = json!({ "type": "connector", "url": authority.connector("notes") });
    let host = Host::start(home.plan(&json!({ "notes": entry })), home.options());
    host.settled().await;
    assert!(needs_auth(&host, "notes"));
    let (is_error, text) = authenticate(&host, "notes").await;
    assert!(
        is_error && text.contains("`toolway account login`"),
        "{text}"
    );
    host.shutdown().await;
    assert_eq!(authority.report().authorizations, 0);
}

#[tokio::test]
async fn another_account_takes_over_in_a_host_that_runs_and_none_takes_its_connectors_away() {
    let hosting = |connector: &str| {
        Authority::start(AuthoritySettings {
            account: Some(ConnectorAccount {
                connectors: vec![connector.to_owned()],
                ..ConnectorAccount::default()
            }),
            ..AuthoritySettings::account_provider()
        })
    };
    let (one, other) = (hosting("notes"), hosting("mail"));
    let of = |authority: &Authority| json!({ "account": { "url": authority.issuer() } });
    let stage = Stage::at(&other);
    stage.log_in().await;
    stage.settings(&of(&one));
    stage.log_in().await;
    let host = stage.host();
    connected(&host, "notes").await;
    assert_eq!(settled(&host).await, fresh());

    stage.settings(&of(&other));
    host.reload().await.expect("a plan");
    // Nothing that was learnt of the one is told of the other.
    connected(&host, "mail").await;
    assert_eq!(settled(&host).await, fresh());
    assert!(host.snapshot().server("notes").is_none());
    whoami(&host, "mail").await.expect("an answer");

    // The same account, asked with one header more: its connectors are reached anew.
    let requests = other.report().connector_requests;
    let mut with_header = of(&other);
    let headers = json!({ "X-Account-Client": "toolway", "X-More": "1" });
    with_header["account"]["connectors"] = json!({ "headers": headers });
    stage.settings(&with_header);
    let changes = host.reload().await.expect("a plan");
    assert_eq!(changes.replaced, [name("mail")]);
    connected(&host, "mail").await;
    assert!(other.report().connector_requests > requests);
    assert_eq!(settled(&host).await, fresh());

    stage.settings(&json!({}));
    let changes = host.reload().await.expect("a plan");
    assert_eq!(changes.stopped, [name("mail")]);
    assert!(host.directory().is_none());
    assert!(host.snapshot().servers.is_empty());

    stage.settings(&of(&one));
    host.reload().await.expect("a plan");
    connected(&host, "notes").await;
    assert_eq!(settled(&host).await, fresh());
    host.shutdown().await;
    // Neither ever got a token of the other's.
    for authority in [&one, &other] {
        assert_eq!(authority.report().attacker_requests, 0);
        for seen in authority.seen() {
            let shown = seen.header("authorization").unwrap_or_default();
            let token = shown.trim_start_matches("Bearer ");
            assert!(token.is_empty() || authority.is_valid(token), "{seen:?}");
        }
    }
}
