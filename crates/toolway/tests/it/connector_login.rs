//! What a model can do about a connector that wants a login: it is the account's.

use serde_json::{Value, json};
use toolway::{CallOptions, Consent, Host, ToolRequest, ToolTarget};
use toolway_testkit::authority::{Authority, Settings, holds_secret};
use toolway_testkit::browser::browse;
use toolway_types::ConnectionState;

use crate::account::{Stage, connected, settled};
use crate::support::{Home, shown};

/// What the tool of a server answers.
async fn authenticate(host: &Host, server: &str) -> (bool, String) {
    let request = ToolRequest {
        target: ToolTarget::Exposed(format!("mcp__{server}__authenticate")),
        arguments: serde_json::Map::new(),
    };
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
    let authority = Authority::start(Settings::account_provider());
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
    let picture = host.snapshot();
    let mut own = picture.catalog.built_in().iter();
    assert!(!own.any(|tool| tool.name.ends_with("__authenticate")));
    assert_eq!(authority.report().authorizations, logins + 1);
    assert!(!holds_secret(&text));
    host.shutdown().await;
    assert_eq!(authority.report().attacker_requests, 0);
}

#[tokio::test]
async fn where_the_account_is_no_login_none_is_begun() {
    let authority = Authority::start(Settings::account_provider());
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
