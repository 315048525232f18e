//! What a legacy server asks, and who waits for the answer.

use super::*;
use crate::call::RequestOrigin;
use crate::client_handler::ClientOffers;
use crate::session::tests::client_handler::{Scripted, answered_by, answering};

async fn ask(peer: &Peer, id: Value, method: &str, params: Value) {
    peer.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
        .await;
}

fn form(message: &str) -> Value {
    json!({
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": { "age": { "type": "integer", "default": 30 } },
        },
    })
}

async fn asked_by_legacy(client_handler: &Arc<Scripted>) -> (Session, Task<()>, Peer) {
    let client_side = answered_by(client_handler);
    settled_with(ProtocolMode::Legacy, MessageDelivery::Stream, client_side).await
}

/// Waits, in no time at all, until a condition holds.
async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_offered_is_declared_in_both_eras() {
    let everything = Scripted::new();
    let url_only = Scripted {
        offers: ClientOffers {
            url: true,
            ..ClientOffers::default()
        },
        ..Scripted::new()
    };
    for (client_handler, wanted) in [
        (
            everything,
            json!({ "sampling": {}, "elicitation": { "form": {}, "url": {} } }),
        ),
        (url_only, json!({ "elicitation": { "url": {} } })),
    ] {
        let client_side = answered_by(&Arc::new(client_handler));
        let (correlator, _pump, mut peer) = open_with(client_side, None);
        let greeting = greeting(ProtocolMode::Auto, MessageDelivery::Stream);
        let script = async {
            let probe = peer.expect("server/discover").await;
            let meta = &probe.body["params"]["_meta"];
            let mut modern = meta["io.modelcontextprotocol/clientCapabilities"].clone();
            let extensions = modern["extensions"].take();
            assert_eq!(extensions, json!({ "io.modelcontextprotocol/tasks": {} }));
            modern
                .as_object_mut()
                .expect("an object")
                .remove("extensions");
            assert_eq!(modern, wanted);
            peer.refuse(&probe, -32601, Value::Null).await;
            let request = peer.expect("initialize").await;
            assert_eq!(request.body["params"]["capabilities"], wanted);
            peer.answer(&request, initialize_result("2025-11-25")).await;
        };
        let (session, ()) = tokio::join!(greet(&correlator, &greeting), script);
        assert!(session.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_form_is_filled_in_and_its_defaults_with_it() {
    let client_handler = Arc::new(Scripted::new());
    let (_session, _pump, mut peer) = asked_by_legacy(&client_handler).await;
    // As 2025-06-18 asks, without a mode, and as later revisions do.
    ask(&peer, json!(1), "elicitation/create", form("how old?")).await;
    let mut with_mode = form("again?");
    with_mode["mode"] = json!("form");
    let first = peer.next().await.body;
    ask(&peer, json!("two"), "elicitation/create", with_mode).await;
    let second = peer.next().await.body;
    for (answer, id) in [(first, json!(1)), (second, json!("two"))] {
        assert_eq!(answer["id"], id);
        assert_eq!(
            answer["result"],
            json!({ "action": "accept", "content": { "age": 30 } })
        );
    }
    assert_eq!(
        client_handler.asked(),
        ["scripted form how old?", "scripted form again?"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_url_reaches_a_person_only_when_it_can_be_judged() {
    let client_handler = Arc::new(Scripted::new());
    let (_session, _pump, mut peer) = asked_by_legacy(&client_handler).await;
    let url =
        |url: &str| json!({ "mode": "url", "message": "pay", "url": url, "elicitationId": "e" });
    for (place, action) in [
        ("https://example.com/pay", "accept"),
        ("http://example.com/pay", "decline"),
        ("javascript:alert(1)", "decline"),
    ] {
        ask(&peer, json!(1), "elicitation/create", url(place)).await;
        let answer = peer.next().await.body;
        assert_eq!(answer["result"], json!({ "action": action }), "{place}");
    }
    assert_eq!(
        client_handler.asked(),
        ["scripted url pay https://example.com/pay e"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_model_is_asked_with_the_bytes_that_came() {
    let client_handler = Arc::new(Scripted::new());
    let (_session, _pump, mut peer) = asked_by_legacy(&client_handler).await;
    let question = json!({ "messages": [], "maxTokens": 5 });
    ask(&peer, json!(1), "sampling/createMessage", question.clone()).await;
    assert_eq!(peer.next().await.body["result"], question);
    let forbidden = json!({ "messages": ["forbidden"] });
    ask(&peer, json!(2), "sampling/createMessage", forbidden).await;
    assert_eq!(
        peer.next().await.body["error"],
        json!({ "code": -1, "message": "no model today" })
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_handler_that_panics_costs_only_its_own_answer() {
    let client_handler = Arc::new(Scripted::new());
    let (_session, _pump, mut peer) = asked_by_legacy(&client_handler).await;
    let question = json!({ "systemPrompt": "panic" });
    ask(&peer, json!(1), "sampling/createMessage", question).await;
    let answer = peer.next().await.body;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(1), &json!(-32603))
    );
    ask(&peer, json!(1), "elicitation/create", form("still there?")).await;
    assert_eq!(peer.next().await.body["result"]["action"], "accept");
}

#[tokio::test(start_paused = true)]
async fn what_was_not_declared_is_not_put_to_anybody() {
    let client_handler = Arc::new(Scripted {
        offers: ClientOffers {
            form: true,
            ..ClientOffers::default()
        },
        ..Scripted::new()
    });
    let (_session, _pump, mut peer) = asked_by_legacy(&client_handler).await;
    let url = json!({ "mode": "url", "message": "pay", "url": "https://example.com" });
    let odd = json!({ "mode": "smoke", "message": "signals" });
    for (method, params, code) in [
        ("elicitation/create", url, -32602),
        ("elicitation/create", odd, -32602),
        ("sampling/createMessage", json!({}), -32601),
        ("roots/list", json!({}), -32601),
        ("tasks/list", json!({}), -32601),
        ("nonsense", json!({}), -32601),
    ] {
        ask(&peer, json!(1), method, params).await;
        let answer = peer.next().await.body;
        assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
    }
    assert!(client_handler.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_waits_for_a_person_and_there_is_an_end_to_questions() {
    let client_handler = Arc::new(Scripted::gated());
    let (session, _pump, mut peer) = asked_by_legacy(&client_handler).await;
    for id in 0..16 {
        ask(&peer, json!(id), "elicitation/create", form("?")).await;
    }
    ask(
        &peer,
        json!("one too many"),
        "elicitation/create",
        form("?"),
    )
    .await;
    let refusal = peer.next().await.body;
    assert_eq!(refusal["id"], "one too many");
    assert_eq!(refusal["error"]["code"], -32603);
    ask(&peer, json!(3), "elicitation/create", form("?")).await;
    assert_eq!(
        peer.next().await.body["error"]["code"],
        -32600,
        "an id in use"
    );

    // Meanwhile calls are answered.
    let script = async {
        let request = peer.expect("tools/call").await;
        peer.answer(&request, json!({})).await;
    };
    let call = session.request_owned("tools/call", empty(), RequestOptions::within(LIMIT));
    let (answer, ()) = tokio::join!(call, script);
    assert!(answer.is_ok());

    // One answer frees one place.
    until(|| client_handler.thinking() == 16).await;
    client_handler.gate.add_permits(1);
    assert_eq!(peer.next().await.body["result"]["action"], "accept");
    ask(&peer, json!("next"), "elicitation/create", form("?")).await;
    until(|| client_handler.asked().len() == 17).await;
}

#[tokio::test(start_paused = true)]
async fn sec_51_questions_that_wait_have_a_total() {
    let client_handler = Arc::new(Scripted::gated());
    let (_session, _pump, mut peer) = asked_by_legacy(&client_handler).await;
    let large = || form(&"?".repeat(6 << 20));
    for id in 0..3 {
        ask(&peer, json!(id), "elicitation/create", large()).await;
    }
    let refusal = peer.next().await.body;
    assert_eq!(refusal["id"], 2);
    assert_eq!(refusal["error"]["message"], "too much asked at once");
    // One that is taken back makes room for as much.
    peer.say(json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 0 },
    }))
    .await;
    ask(&peer, json!(3), "elicitation/create", large()).await;
    until(|| client_handler.asked().len() == 3).await;
}

#[tokio::test(start_paused = true)]
async fn a_question_taken_back_is_dropped_and_not_answered() {
    let client_handler = Arc::new(Scripted::gated());
    let (_session, _pump, mut peer) = asked_by_legacy(&client_handler).await;
    ask(&peer, json!("q"), "elicitation/create", form("?")).await;
    until(|| client_handler.thinking() == 1).await;
    peer.say(json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "q" },
    }))
    .await;
    until(|| client_handler.thinking() == 0).await;
    client_handler.gate.add_permits(9);
    ask(&peer, json!(2), "ping", json!({})).await;
    assert_eq!(peer.next().await.body["id"], 2, "nothing came before it");
}

#[tokio::test(start_paused = true)]
async fn questions_end_with_the_channel() {
    let client_handler = Arc::new(Scripted::gated());
    let (session, _pump, peer) = asked_by_legacy(&client_handler).await;
    ask(&peer, json!("q"), "elicitation/create", form("?")).await;
    until(|| client_handler.thinking() == 1).await;
    peer.close(CloseReason::Broken("gone".to_owned())).await;
    session.closed().await;
    until(|| client_handler.thinking() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_hears_that_roots_changed_and_gets_the_new_ones() {
    let root = |path: &str| Root::directory(Path::new(path)).expect("absolute");
    let (roots, current) = watch::channel(Arc::from([root("/work/project")]));
    let with_roots = ClientSide {
        roots: current,
        ..client_side()
    };
    let (_session, _pump, mut peer) = settled_with(
        ProtocolMode::Legacy,
        MessageDelivery::PerRequest,
        with_roots,
    )
    .await;
    roots.send_replace(Arc::from([root("/a b"), root("/c")]));
    let told = peer.expect("notifications/roots/list_changed").await;
    assert_eq!(told.header("mcp-protocol-version"), Some("2025-11-25"));
    ask(&peer, json!(1), "roots/list", json!({})).await;
    let answer = peer.next().await.body;
    assert_eq!(
        answer["result"]["roots"],
        json!([{ "uri": "file:///a%20b", "name": "a b" }, { "uri": "file:///c", "name": "c" }])
    );
    // None left is an answer too: the server was told that there is a list.
    roots.send_replace(Arc::from([]));
    peer.expect("notifications/roots/list_changed").await;
    ask(&peer, json!(2), "roots/list", json!({})).await;
    assert_eq!(peer.next().await.body["result"], json!({ "roots": [] }));
}

#[tokio::test(start_paused = true)]
async fn roots_are_declared_only_when_there_are_some() {
    let (roots, current) = watch::channel(Arc::from([]));
    let without = ClientSide {
        roots: current,
        ..client_side()
    };
    let (correlator, _pump, mut peer) = open_with(without, None);
    let greeting = greeting(ProtocolMode::Legacy, MessageDelivery::Stream);
    let script = async {
        let request = peer.expect("initialize").await;
        assert_eq!(request.body["params"]["capabilities"], json!({}));
        peer.answer(&request, initialize_result("2025-11-25")).await;
        peer.expect("notifications/initialized").await;
    };
    let (session, ()) = tokio::join!(greet(&correlator, &greeting), script);
    assert!(session.is_ok());
    // A server that never heard of roots does not hear that they changed.
    let root = Root::directory(Path::new("/new")).expect("absolute");
    roots.send_replace(Arc::from([root]));
    ask(&peer, json!(1), "roots/list", json!({})).await;
    assert_eq!(peer.next().await.body["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_may_be_of_two_callers_is_noticed() {
    let client_handler = Arc::new(Scripted::new());
    let (session, _pump, mut peer) = asked_by_legacy(&client_handler).await;
    let call = || {
        let options = RequestOptions {
            origin: Some(RequestOrigin::of(&answering(&client_handler), None)),
            ..RequestOptions::within(Duration::from_mins(10))
        };
        session.request_owned("tools/call", params(&json!({ "name": "t" })), options)
    };
    let script = async {
        let first = peer.expect("tools/call").await;
        let second = peer.expect("tools/call").await;
        ask(&peer, json!("q"), "elicitation/create", form("who?")).await;
        assert_eq!(peer.next().await.body["result"]["action"], "decline");
        let habits = &session.reception().client_side().habits;
        assert!(habits.asks_unclearly() && !habits.asks_for_roots());
        for request in [first, second] {
            peer.answer(&request, json!({})).await;
        }
    };
    let (first, second, ()) = tokio::join!(call(), call(), script);
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(client_handler.asked(), [] as [&str; 0]);
}
