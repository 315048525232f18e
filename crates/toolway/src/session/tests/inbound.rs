//! What the server asks and tells on its own.

use super::*;

async fn ask(peer: &mut Peer, id: Value, method: &str) -> Value {
    peer.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} }))
        .await;
    peer.next().await.body
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_gets_answers_to_its_requests() {
    let (_session, _pump, mut peer) = legacy().await;
    let pong = ask(&mut peer, json!("p-1"), "ping").await;
    assert_eq!(pong, json!({ "jsonrpc": "2.0", "id": "p-1", "result": {} }));

    let roots = ask(&mut peer, json!(7), "roots/list").await;
    assert_eq!(roots["id"], 7);
    assert_eq!(
        roots["result"]["roots"],
        json!([{ "uri": "file:///work/project", "name": "project" }])
    );

    for method in [
        "sampling/createMessage",
        "elicitation/create",
        "tasks/list",
        "nonsense",
    ] {
        let refusal = ask(&mut peer, json!(8), method).await;
        assert_eq!(refusal["error"]["code"], -32601, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_may_ping_before_it_answers_the_handshake() {
    let (correlator, _pump, mut peer) = open();
    let greeting = greeting(ProtocolMode::Legacy, MessageDelivery::Stream);
    let script = async {
        let request = peer.expect("initialize").await;
        assert!(request.body["params"]["capabilities"]["roots"].is_object());
        assert_eq!(ask(&mut peer, json!(1), "ping").await["result"], json!({}));
        peer.answer(&request, initialize_result("2025-11-25")).await;
    };
    let (session, ()) = tokio::join!(greet(&correlator, &greeting), script);
    assert!(session.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_gets_no_answer_because_it_must_not_ask() {
    let (session, _pump, mut peer) = settled(ProtocolMode::Modern, MessageDelivery::Stream).await;
    peer.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }))
        .await;
    let (_, next) = tokio::join!(
        session.request_owned(
            "tools/list",
            empty(),
            RequestOptions::within(Duration::from_secs(1))
        ),
        peer.next()
    );
    assert_eq!(next.method(), "tools/list", "nothing was written before it");
}

#[tokio::test(start_paused = true)]
async fn changes_of_lists_are_counted_and_unknown_notifications_ignored() {
    let (session, _pump, peer) = legacy().await;
    let mut changes = session.changes();
    for method in [
        "notifications/message",
        "notifications/unheard/of",
        "notifications/tools/list_changed",
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
    ] {
        peer.say(json!({ "jsonrpc": "2.0", "method": method }))
            .await;
    }
    changes
        .wait_for(|now| ListKind::ALL.map(|list| now.of(list)) == [2, 0, 1])
        .await
        .expect("the session lives");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_floods_and_never_reads_does_not_stop_the_answers() {
    let (session, _pump, mut peer) = legacy().await;
    let call = session.request_owned("tools/call", empty(), RequestOptions::within(LIMIT));
    let script = async {
        let request = peer.expect("tools/call").await;
        for id in 0..5_000 {
            peer.say(json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }))
                .await;
        }
        peer.answer(&request, json!({})).await;
    };
    let (answer, ()) = tokio::join!(call, script);
    assert!(answer.is_ok());
}
