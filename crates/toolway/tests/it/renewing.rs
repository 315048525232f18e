//! Logins at work: renewed while sessions stand, hindered for a while, over every transport.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use toolway::auth::{AuthOptions, Invitation, LoginOptions};
use toolway::{
    CallError, CallFault, CallOptions, Consent, Host, HostOptions, ToolRequest, ToolTarget,
};
use toolway_auth::login::LoginMethod;
use toolway_auth::vault::{StorageChoice, Vault, VaultOptions};
use toolway_testkit::authority::{Authority, AuthoritySettings, DpopMode, RequestedParty, Switch};
use toolway_testkit::browser::browse;
use toolway_testkit::{ListeningServer, ListeningTransport, Script, ScriptedServer};
use toolway_types::{ConnectionState, FailureKind, ToolKey};

use crate::guard::Gate;
use crate::support::*;

fn vault(home: &Home) -> Vault {
    Vault::open(VaultOptions {
        storage: StorageChoice::File,
        ..VaultOptions::new(home.path().join("vault"))
    })
}

async fn started(home: &Home, servers: &Value) -> Host {
    let options = HostOptions {
        auth: AuthOptions {
            vault: Some(vault(home)),
            ..AuthOptions::default()
        },
        ..home.options()
    };
    let host = Host::start(home.plan(servers), options);
    host.settled().await;
    host
}

/// Logs in to a server as a person with a browser would, and waits until it is connected.
async fn log_in(host: &Host, server: &str) {
    let login = host.login(server, LoginOptions::default()).await;
    let mut login = login.expect("begun");
    let Some(Invitation::Page { url, .. }) = login.invitation().await else {
        panic!("a page");
    };
    let visited = tokio::task::spawn_blocking(move || browse(url.as_str())).await;
    let last = visited.expect("no panic").pop();
    assert_eq!(last.map(|page| page.status), Some(200));
    let outcome = login.outcome().await.expect("it is ours");
    outcome.expect("logged in");
    until_connected(host, server).await;
}

async fn until_connected(host: &Host, server: &str) {
    let mut snapshots = host.watch();
    let connected = snapshots.wait_for(|snapshot| {
        let state = snapshot.server(server).map(|server| &server.state);
        matches!(state, Some(ConnectionState::Connected(_)))
    });
    let waited = tokio::time::timeout(Duration::from_mins(1), connected).await;
    let is_there = waited.is_ok_and(|snapshot| snapshot.is_ok());
    assert!(is_there, "{:?}", shown(host, server).state);
}

/// What a protected server says of who asks.
async fn whoami(host: &Host, server: &str) -> Result<String, CallError> {
    let request = ToolRequest::new(
        ToolTarget::Key(ToolKey::new(name(server), "whoami")),
        Map::new(),
    );
    let answer = host.call(request, CallOptions::new(Consent::Typed)).await;
    answer.map(|answer| text_of(&answer))
}

/// How often a connection was begun.
fn greetings(authority: &Authority) -> usize {
    let seen = authority.seen_at(RequestedParty::Resource, "/mcp");
    let greets = |body: &str| body.contains("\"initialize\"") || body.contains("server/discover");
    seen.iter().filter(|seen| greets(&seen.body)).count()
}

/// Time passes for whoever waits here, and for nobody else.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_token_that_expires_within_a_session_is_renewed_once_for_all_calls() {
    let authority = Authority::start(AuthoritySettings::default());
    let home = Home::new();
    let host = started(&home, &json!({ "shop": authority.entry() })).await;
    log_in(&host, "shop").await;
    whoami(&host, "shop").await.expect("an answer");
    let begun = greetings(&authority);
    for round in 1..=2 {
        authority.expire_access_tokens();
        let calls = [0; 10].map(|_| whoami(&host, "shop"));
        for answer in join_all(calls).await {
            let answer = answer.expect("an answer");
            assert!(answer.starts_with("subject=person-1"), "{answer}");
        }
        let report = authority.report();
        assert_eq!(report.token_requests("refresh_token"), round);
        assert_eq!(report.families_revoked, 0);
    }
    assert_eq!(greetings(&authority), begun, "the connection stood");
    host.shutdown().await;
}

#[tokio::test]
async fn rel_27_an_issuer_that_is_busy_fails_the_call_and_keeps_the_login() {
    for switch in [Switch::TokenBusyOnce, Switch::TokenUnavailable] {
        let [shop, bank] = [(); 2].map(|()| Authority::start(AuthoritySettings::default()));
        let home = Home::new();
        let servers = json!({ "shop": shop.entry(), "bank": bank.entry() });
        let host = started(&home, &servers).await;
        log_in(&host, "shop").await;
        log_in(&host, "bank").await;
        let begun = greetings(&shop);
        shop.expire_access_tokens();
        bank.expire_access_tokens();
        shop.turn_on(switch);
        let error = whoami(&host, "shop").await.expect_err("not now");
        let CallError::Failed(_, CallFault::Transport { message, .. }) = &error else {
            panic!("{switch:?}: {error:?}");
        };
        let message = message.as_received();
        assert!(
            message.contains("the login of `shop` cannot be renewed now"),
            "{message}"
        );
        assert!(message.contains("busy"), "{message}");
        whoami(&host, "bank")
            .await
            .expect("it has nothing to do with it");
        facts(&host, "shop");
        assert_eq!(host.logins().await.expect("logins").len(), 2, "{switch:?}");

        shop.turn_off(switch);
        pass(Duration::from_secs(3)).await;
        whoami(&host, "shop").await.expect("an answer");
        assert_eq!(greetings(&shop), begun, "the connection stood");
        assert_eq!(shop.report().families_revoked, 0);
        host.shutdown().await;
    }
}

#[tokio::test]
async fn an_issuer_that_hangs_is_named_by_calls_and_by_connections() {
    let authority = Authority::start(AuthoritySettings::default());
    let home = Home::new();
    let servers = json!({ "shop": authority.entry() });
    let host = started(&home, &servers).await;
    log_in(&host, "shop").await;
    authority.expire_access_tokens();
    let held = authority.hold("/token");
    let asked = || {
        let seen = authority.seen_at(RequestedParty::Issuer, "/token");
        let grants = seen.iter().filter_map(|seen| seen.param("grant_type"));
        grants.filter(|grant| *grant == "refresh_token").count()
    };
    let passing = async {
        while asked() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        pass(Duration::from_secs(10)).await;
    };
    let (call, ()) = tokio::join!(whoami(&host, "shop"), passing);
    let error = call.expect_err("nobody renews it").to_string();
    let place = format!("{}/token did not answer within 10 s", authority.issuer());
    assert!(error.contains(&place), "{error}");
    assert_eq!(asked(), 1, "who does not answer is not asked again at once");

    // One more process, in which somebody has less patience than the request for a token.
    let plan = home.plan_with(&servers, &[("MCP_TIMEOUT", "1000")]);
    let options = HostOptions {
        auth: AuthOptions {
            vault: Some(vault(&home)),
            ..AuthOptions::default()
        },
        ..home.options()
    };
    let other = Host::start(plan, options);
    other.settled().await;
    let failure = failure(&other, "shop");
    assert_eq!(failure.kind, FailureKind::Credentials);
    assert_eq!(
        failure.message,
        format!(
            "the login of `shop` cannot be renewed now: its authorization server {} did not answer \
             within 1 s",
            authority.issuer()
        )
    );
    // Before it answers: it may take the second request for a stolen token, and end the login.
    assert_eq!(host.logins().await.expect("logins").len(), 1);
    drop(held);
    tokio::join!(host.shutdown(), other.shutdown());
}

#[tokio::test]
async fn rel_27_an_issuer_that_names_a_time_is_asked_once_in_it_by_all_connections() {
    let authority = Authority::start(AuthoritySettings {
        retry_after: 600,
        ..AuthoritySettings::default()
    });
    let home = Home::new();
    let host = started(&home, &json!({ "shop": authority.entry() })).await;
    log_in(&host, "shop").await;
    let refreshes = || authority.report().token_requests("refresh_token");
    authority.expire_access_tokens();
    authority.turn_on(Switch::TokenUnavailable);
    whoami(&host, "shop").await.expect_err("not now");
    // Each is a connection of its own, and each has the refused token to show.
    for _ in 0..3 {
        let state = host.reconnect("shop").await.expect("known");
        assert!(matches!(state, ConnectionState::Failed(_)), "{state:?}");
        whoami(&host, "shop").await.expect_err("not now");
    }
    assert_eq!(refreshes(), 1);
    assert_eq!(host.logins().await.expect("logins").len(), 1);

    authority.turn_off(Switch::TokenUnavailable);
    pass(Duration::from_secs(601)).await;
    host.reconnect("shop").await.expect("known");
    whoami(&host, "shop").await.expect("an answer");
    assert_eq!(refreshes(), 2);
    assert_eq!(authority.report().families_revoked, 0);
    host.shutdown().await;
}

#[tokio::test]
async fn a_login_is_shown_to_servers_of_every_transport() {
    for (kind, way) in [
        ("sse", ListeningTransport::Sse),
        ("ws", ListeningTransport::WebSocket),
    ] {
        let server = ListeningServer::start(ScriptedServer::new(Script::default()), way);
        let at: url::Url = server.url().parse().expect("an address");
        let gate = Gate::new(at.path()).await;
        let authority = Arc::new(Authority::start(AuthoritySettings {
            resources: vec![gate.resource.clone()],
            ..AuthoritySettings::default()
        }));
        let mut url: url::Url = gate.resource.parse().expect("an address");
        if kind == "ws" {
            url.set_scheme("ws").expect("as good as http");
        }
        let guard = gate.serve(&authority, server.address());
        let home = Home::new();
        let host = started(&home, &json!({ "far": server.entry_at(url.as_str()) })).await;
        assert!(
            matches!(shown(&host, "far").state, ConnectionState::NeedsAuth { .. }),
            "{kind}: {:?}",
            shown(&host, "far").state
        );
        assert_eq!(guard.passed(), [""; 0], "{kind}");
        log_in(&host, "far").await;
        let answer = echo(&host, "far", "hi").await.expect("an answer");
        assert_eq!(text_of(&answer), "hi");
        // What expired meanwhile is renewed for the next connection.
        authority.expire_access_tokens();
        host.reconnect("far").await.expect("known");
        facts(&host, "far");
        echo(&host, "far", "hi").await.expect("an answer");
        assert_eq!(
            authority.report().token_requests("refresh_token"),
            1,
            "{kind}"
        );
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_login_that_proves_its_key_is_used_and_renewed_with_the_nonces_of_both_servers() {
    let authority = Authority::start(AuthoritySettings {
        dpop: DpopMode::RequiredWithNonce,
        ..AuthoritySettings::default()
    });
    let home = Home::new();
    let host = started(&home, &json!({ "shop": authority.entry() })).await;
    log_in(&host, "shop").await;
    whoami(&host, "shop").await.expect("an answer");
    let begun = greetings(&authority);
    authority.expire_access_tokens();
    whoami(&host, "shop").await.expect("an answer");
    assert_eq!(greetings(&authority), begun, "the connection stood");
    let shown = authority.seen_at(RequestedParty::Resource, "/mcp");
    let shown: Vec<_> = shown
        .iter()
        .filter_map(|seen| seen.header("authorization"))
        .collect();
    assert!(!shown.is_empty() && shown.iter().all(|shown| shown.starts_with("DPoP ")));
    host.shutdown().await;
    // The key outlives the process.
    let next = started(&home, &json!({ "shop": authority.entry() })).await;
    whoami(&next, "shop").await.expect("an answer");
    next.shutdown().await;
}

#[tokio::test]
async fn a_code_typed_on_another_device_logs_in() {
    let authority = Authority::start(AuthoritySettings {
        device_polls: None,
        device_interval: 1,
        ..AuthoritySettings::default()
    });
    let home = Home::new();
    let host = started(&home, &json!({ "shop": authority.entry() })).await;
    let options = LoginOptions {
        way: LoginMethod::Device,
        ..LoginOptions::default()
    };
    let mut login = host.login("shop", options).await.expect("begun");
    let Some(Invitation::Code { code, url, .. }) = login.invitation().await else {
        panic!("a code");
    };
    assert!(url.as_str().starts_with(authority.issuer()), "{url}");
    assert!(
        authority.decide_device(code.expose(), true),
        "it is shown as it is"
    );
    let logged_in = login.outcome().await.expect("ours").expect("logged in");
    assert!(logged_in.renews);
    until_connected(&host, "shop").await;
    whoami(&host, "shop").await.expect("an answer");
    host.shutdown().await;
}
