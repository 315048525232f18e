//! A legacy server that will not answer before a person has visited a page.

use crate::call::RequestOrigin;
use crate::session::tests::client_handler::{Scripted, answered_by, answering};
use crate::session::tests::*;

use crate::error::RequestResult;

const REQUIRED: i64 = -32042;

async fn asked_by_legacy(client_handler: &Arc<Scripted>) -> (Session, Task<()>, Peer) {
    let client_side = answered_by(client_handler);
    settled_with(ProtocolMode::Legacy, MessageDelivery::Stream, client_side).await
}

async fn call(session: &Session) -> RequestResult {
    call_as(session, None).await
}

async fn call_as(session: &Session, origin: Option<Arc<RequestOrigin>>) -> RequestResult {
    let params = params(&json!({ "name": "pay" }));
    let options = RequestOptions {
        origin,
        ..RequestOptions::within(Duration::from_mins(10))
    };
    session.request_owned("tools/call", params, options).await
}

fn visit(url: &str) -> Value {
    json!({ "elicitations": [
        { "mode": "url", "message": "pay", "url": url, "elicitationId": "e" }
    ] })
}

#[tokio::test(start_paused = true)]
async fn a_page_is_shown_and_the_call_sent_again_when_the_server_says_it_is_dealt_with() {
    let client_handler = Arc::new(Scripted::new());
    let (session, _pump, mut peer) = asked_by_legacy(&client_handler).await;
    let begun = tokio::time::Instant::now();
    let script = async {
        let first = peer.expect("tools/call").await;
        peer.refuse(&first, REQUIRED, visit("https://example.com/pay"))
            .await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        for id in ["another", "e"] {
            peer.say(
                json!({ "jsonrpc": "2.0", "method": "notifications/elicitation/complete",
                "params": { "elicitationId": id } }),
            )
            .await;
        }
        let second = peer.expect("tools/call").await;
        assert_ne!(first.body["id"], second.body["id"]);
        assert_eq!(first.body["params"]["name"], second.body["params"]["name"]);
        peer.answer(&second, json!({ "done": true })).await;
    };
    let (outcome, ()) = tokio::join!(call(&session), script);
    assert_eq!(outcome.expect("answered").get(), r#"{"done":true}"#);
    assert_eq!(begun.elapsed().as_secs(), 20);
    assert_eq!(
        client_handler.asked(),
        ["scripted url pay https://example.com/pay e"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_asked_again_after_a_while_and_three_times_at_most() {
    let client_handler = Arc::new(Scripted::new());
    let (session, _pump, mut peer) = asked_by_legacy(&client_handler).await;
    let script = async {
        for _ in 0..4 {
            let request = peer.expect("tools/call").await;
            peer.refuse(&request, REQUIRED, visit("https://example.com/pay"))
                .await;
        }
    };
    let origin = RequestOrigin::of(&answering(&client_handler), None);
    let call = call_as(&session, Some(Arc::clone(&origin)));
    let (outcome, ()) = tokio::join!(call, script);
    assert!(matches!(outcome, Err(RequestError::Rpc(error)) if error.code == REQUIRED));
    assert_eq!(client_handler.asked().len(), 3);
    let remarks = origin.take_remarks();
    assert!(remarks[0].contains("after 3 visits"), "{remarks:?}");
}

#[tokio::test(start_paused = true)]
async fn without_consent_a_page_or_somebody_to_ask_the_call_is_not_sent_again() {
    let everything = Arc::new(Scripted::new());
    let nobody = Arc::new(Scripted {
        offers: crate::client_handler::ClientOffers::default(),
        ..Scripted::new()
    });
    let safe = visit("https://example.com/pay");
    for (client_handler, data, refused) in [
        // Users are not sent to such a page.
        (&everything, visit("http://example.com/pay"), false),
        (&everything, json!({ "elicitations": [] }), false),
        (&everything, Value::Null, false),
        // A form's answer would have nowhere to go.
        (
            &everything,
            json!({ "elicitations": [{ "message": "who?", "requestedSchema": { "type": "object" } }] }),
            false,
        ),
        (&nobody, safe, true),
    ] {
        let (session, _pump, mut peer) = asked_by_legacy(client_handler).await;
        let script = async {
            let request = peer.expect("tools/call").await;
            peer.refuse(&request, REQUIRED, data.clone()).await;
        };
        let origin = RequestOrigin::of(&answering(client_handler), None);
        let call = call_as(&session, Some(Arc::clone(&origin)));
        let (outcome, ()) = tokio::join!(call, script);
        match outcome {
            Err(RequestError::InputRefused { .. }) if refused => {}
            Err(RequestError::Rpc(error)) if !refused => assert_eq!(error.code, REQUIRED),
            other => panic!("{data}: {other:?}"),
        }
        let remarks = origin.take_remarks().join("; ");
        if data == visit("http://example.com/pay") {
            for part in ["the page `http://example.com/pay` opened", "not sent again"] {
                assert!(remarks.contains(part), "{remarks}");
            }
        } else {
            assert_eq!(remarks, "");
        }
    }
    assert!(everything.asked().is_empty() && nobody.asked().is_empty());
}
