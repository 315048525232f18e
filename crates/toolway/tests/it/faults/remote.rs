//! Servers behind a network that breaks: REL-12, REL-24, REL-25, REL-27.

use futures_util::future::join_all;
use toolway_testkit::{ConnectionCut, ConnectionEnd, Direction, FaultProxy, ProxyFaults};
use toolway_types::FailureKind;

use super::*;

/// A server that listens, with a proxy before it.
fn proxied(script: Script, way: ListeningTransport) -> (ListeningServer, FaultProxy, Value) {
    let server = ListeningServer::start(ScriptedServer::new(script), way);
    let proxy = FaultProxy::before(server.address());
    let entry = server.entry_at(&proxy.url(server.url()));
    (server, proxy, entry)
}

fn with_sessions(name: &str) -> Script {
    Script {
        speaks: toolway_testkit::SpokenEras::Legacy,
        sessions: true,
        ..script(name)
    }
}

#[tokio::test]
async fn rel_24_a_forgotten_session_is_made_anew_once_and_the_calls_get_their_answers() {
    let (server, proxy, entry) = proxied(with_sessions("forgetful"), ListeningTransport::Http);
    let check = LeakCheck::begin();
    let home = Home::new();
    let host = host(&home, &json!({ "forgetful": entry }));
    connected(&host, "forgetful").await;
    assert_eq!(server.stats()["greetings"], 1);
    // Between calls.
    server.forget_sessions();
    echoes(&host, "forgetful").await;
    assert_eq!(server.stats()["greetings"], 2);
    // For many calls at once: one handshake serves them all.
    server.forget_sessions();
    let outcomes = RequestLedger::new();
    join_all((0..50).map(|_| async {
        let ticket = outcomes.accept();
        let outcome = echo(&host, "forgetful", "again").await;
        outcomes.settle(ticket, word(&outcome));
    }))
    .await;
    outcomes.assert_each_exactly_once();
    assert_eq!(outcomes.tally()["answered"], 50, "{:?}", outcomes.tally());
    assert_eq!(server.stats()["greetings"], 3);
    host.shutdown().await;
    drop((proxy, server));
    check.assert_clean().await;
}

#[tokio::test]
async fn rel_24_a_server_that_restarts_between_and_during_calls_is_met_again() {
    let (mut server, proxy, entry) = proxied(with_sessions("reborn"), ListeningTransport::Http);
    let check = LeakCheck::begin();
    let home = Home::new();
    let host = host(&home, &json!({ "reborn": entry }));
    connected(&host, "reborn").await;
    server.restart();
    // The connections of before are dead, and so is the session.
    recovers(&host, "reborn").await;
    let limit = Duration::from_secs(10);
    let outcomes = RequestLedger::new();
    let calls = join_all((0..50).map(|_| async {
        let ticket = outcomes.accept();
        let outcome = call_within(&host, limit, "reborn", "hang", json!({})).await;
        outcomes.settle(ticket, word(&outcome));
    }));
    let restarting = async {
        eventually(|| match server.stats()["calls"].as_u64() {
            Some(calls) if calls > 50 => Ok(()),
            calls => Err(format!("{calls:?} calls")),
        })
        .await;
        server.restart();
    };
    tokio::join!(calls, restarting);
    outcomes.assert_each_exactly_once();
    assert_eq!(outcomes.tally().keys().collect::<Vec<_>>(), ["transport"]);
    recovers(&host, "reborn").await;
    host.shutdown().await;
    drop((proxy, server));
    check.assert_clean().await;
}

/// An answer is right or it is an error; it is never another's, never half, never awaited in vain.
async fn cut_at_every_so_many_bytes(script: Script, end: ConnectionEnd) {
    let (server, proxy, entry) = proxied(script, ListeningTransport::Http);
    let check = LeakCheck::begin();
    let home = Home::new();
    let host = host(&home, &json!({ "cut": entry }));
    connected(&host, "cut").await;
    let outcomes = RequestLedger::new();
    for after in (1..600).step_by(23) {
        connected(&host, "cut").await;
        // Only connections from now on have this end.
        proxy.cut(ConnectionEnd::Fin);
        proxy.set(ProxyFaults {
            cut: Some(ConnectionCut {
                after,
                direction: Direction::Down,
                end,
            }),
            ..ProxyFaults::default()
        });
        let text = format!("cut after {after}");
        let ticket = outcomes.accept();
        let limit = Duration::from_secs(2);
        let arguments = json!({ "text": text });
        let outcome = call_within(&host, limit, "cut", "echo", arguments).await;
        if let Ok(answer) = &outcome {
            assert_eq!(text_of(answer), text);
        }
        outcomes.settle(ticket, word(&outcome));
        proxy.heal();
        proxy.cut(ConnectionEnd::Fin);
        // An answer also ends the count of broken requests, after which the connection itself is
        // given up: the next call would wait for one that cannot be made, and run out of time.
        recovers(&host, "cut").await;
    }
    outcomes.assert_each_exactly_once();
    let tally = outcomes.tally();
    assert!(!tally.contains_key("timed out"), "{tally:?}");
    assert!(tally.contains_key("transport"), "{tally:?}");
    echoes(&host, "cut").await;
    host.shutdown().await;
    drop((proxy, server));
    check.assert_clean().await;
}

#[tokio::test]
async fn rel_25_a_list_cut_off_while_connecting_is_tried_again_and_never_half_a_server() {
    for event_stream in [false, true] {
        let broken_twice = Script {
            event_stream,
            cut_call_at: Some(40),
            cut_for: vec!["tools/list".to_owned()],
            cut_times: 2,
            ..script("halved")
        };
        let server =
            ListeningServer::start(ScriptedServer::new(broken_twice), ListeningTransport::Http);
        let check = LeakCheck::begin();
        let home = Home::new();
        let host = host(&home, &json!({ "halved": server.entry() }));
        connected(&host, "halved").await;
        let shown = shown(&host, "halved");
        assert_eq!(shown.warnings, Vec::<String>::new());
        assert_eq!(server.stats()["greetings"], 3, "one attempt for each cut");
        echoes(&host, "halved").await;
        host.shutdown().await;
        drop(server);
        check.assert_clean().await;
    }
}

#[tokio::test]
async fn rel_25_a_list_cut_off_each_time_is_a_failure_that_says_so() {
    let broken = Script {
        cut_call_at: Some(40),
        cut_for: vec!["tools/list".to_owned()],
        ..script("halved")
    };
    let server = ListeningServer::start(ScriptedServer::new(broken), ListeningTransport::Http);
    let check = LeakCheck::begin();
    let home = Home::new();
    // Asked for once, it is tried once.
    let plan = home.plan_with(&json!({ "halved": server.entry() }), &[]);
    let host = Host::start(plan, home.options());
    host.ready("halved").await;
    let ConnectionState::Failed(failure) = shown(&host, "halved").state else {
        panic!("{:?}", shown(&host, "halved").state)
    };
    assert_eq!(failure.kind, FailureKind::Unreachable);
    assert!(
        failure.message.starts_with("the answer was cut off: "),
        "{}",
        failure.message
    );
    host.shutdown().await;
    drop(server);
    check.assert_clean().await;
}

#[tokio::test]
async fn rel_25_a_json_answer_cut_anywhere_is_an_error_and_never_half_an_answer() {
    cut_at_every_so_many_bytes(script("cut"), ConnectionEnd::Reset).await;
}

#[tokio::test]
async fn rel_25_an_event_stream_cut_anywhere_is_an_error_and_never_half_an_answer() {
    let events = Script {
        event_stream: true,
        ..script("cut")
    };
    cut_at_every_so_many_bytes(events, ConnectionEnd::Fin).await;
}

#[tokio::test]
async fn rel_12_a_connection_that_swallows_everything_costs_the_call_and_no_more() {
    let (server, proxy, entry) = proxied(script("hole"), ListeningTransport::Http);
    let check = LeakCheck::begin();
    let home = Home::new();
    let host = host(&home, &json!({ "hole": entry }));
    connected(&host, "hole").await;
    proxy.set(ProxyFaults {
        half_open: true,
        ..ProxyFaults::default()
    });
    let limit = Duration::from_millis(300);
    let outcome = call_within(&host, limit, "hole", "echo", json!({ "text": "x" })).await;
    assert_eq!(word(&outcome), "timed out");
    proxy.heal();
    connected(&host, "hole").await;
    echoes(&host, "hole").await;
    host.shutdown().await;
    drop((proxy, server));
    check.assert_clean().await;
}

#[tokio::test]
async fn rel_27_a_server_that_is_busy_is_asked_again_and_a_portal_is_no_server() {
    let busy = Script {
        http_status: Some(503),
        http_status_times: 2,
        retry_after: Some("1".to_owned()),
        ..script("busy")
    };
    let portal = Script {
        html: true,
        ..script("portal")
    };
    let busy = ListeningServer::start(ScriptedServer::new(busy), ListeningTransport::Http);
    let portal = ListeningServer::start(ScriptedServer::new(portal), ListeningTransport::Http);
    let check = LeakCheck::begin();
    let home = Home::new();
    let servers = json!({
        "busy": busy.entry(),
        "portal": portal.entry(),
        "nowhere": { "type": "http", "url": "http://nowhere.invalid/mcp" },
    });
    let host = host(&home, &servers);
    connected(&host, "busy").await;
    echoes(&host, "busy").await;
    host.ready("portal").await;
    let ConnectionState::Failed(failure) = shown(&host, "portal").state else {
        panic!("{:?}", shown(&host, "portal").state)
    };
    assert_eq!(failure.kind, FailureKind::Protocol);
    assert!(failure.message.contains("text/html"), "{}", failure.message);
    // A name that nobody knows is tried again, and says so meanwhile.
    let nowhere = shown(&host, "nowhere").state;
    assert!(
        matches!(
            nowhere,
            ConnectionState::Pending { .. } | ConnectionState::Failed(_)
        ),
        "{nowhere:?}"
    );
    host.shutdown().await;
    drop((busy, portal));
    check.assert_clean().await;
}

#[tokio::test]
async fn rel_27_too_many_requests_fail_their_call_and_leave_the_connection() {
    let mut server = ListeningServer::start(
        ScriptedServer::new(script("throttled")),
        ListeningTransport::Http,
    );
    let check = LeakCheck::begin();
    let home = Home::new();
    let host = host(&home, &json!({ "throttled": server.entry() }));
    connected(&host, "throttled").await;
    server.become_like(Script {
        http_status: Some(429),
        http_status_for: vec!["tools/call".to_owned()],
        retry_after: Some("60".to_owned()),
        ..script("throttled")
    });
    let refused = echo(&host, "throttled", "x").await;
    assert_eq!(word(&refused), "transport");
    assert!(refused.is_err_and(|error| error.to_string().contains("429")));
    server.become_like(script("throttled"));
    echoes(&host, "throttled").await;
    assert_eq!(server.stats()["greetings"], 1, "it was not connected anew");
    host.shutdown().await;
    drop(server);
    check.assert_clean().await;
}
