//! Modern requests that take more than one round.

use toolway_wire::view;

use super::*;
use crate::client_handler::ClientOffers;
use crate::error::RequestResult;
use crate::session::tests::client_handler::{Scripted, answered_by};

async fn asked_by_modern(
    client_handler: &Arc<Scripted>,
    delivery: MessageDelivery,
) -> (Session, Task<()>, Peer) {
    settled_with(ProtocolMode::Modern, delivery, answered_by(client_handler)).await
}

fn form(message: &str) -> Value {
    json!({
        "method": "elicitation/create",
        "params": { "message": message, "requestedSchema": { "type": "object" } },
    })
}

async fn request(session: &Session, method: &str) -> RequestResult {
    let params = params(&json!({ "name": "x", "arguments": { "a": 1 } }));
    session
        .request_owned(method, params, RequestOptions::within(LIMIT))
        .await
}

/// Answers with raw text as the result.
async fn answer_raw(peer: &Peer, request: &Received, result: &str) {
    let id = &request.body["id"];
    peer.text(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
    ))
    .await;
}

#[tokio::test(start_paused = true)]
async fn every_input_is_given_and_the_state_goes_back_byte_for_byte() {
    for method in ["tools/call", "prompts/get", "resources/read"] {
        let client_handler = Arc::new(Scripted::new().fields(json!({ "name": "octocat" })));
        let root = Root::directory(Path::new("/work/project")).expect("absolute");
        let client_side = ClientSide {
            roots: watch::channel(Arc::from([root])).1,
            ..answered_by(&client_handler)
        };
        let (session, _pump, mut peer) =
            settled_with(ProtocolMode::Modern, MessageDelivery::Stream, client_side).await;
        let script = async {
            let first = peer.expect(method).await;
            assert!(first.body["params"]["inputResponses"].is_null());
            answer_raw(
                &peer,
                &first,
                r#"{"resultType":"input_required","inputRequests":{
                    "z":{"method":"elicitation/create","params":{"mode":"form","message":"who?","requestedSchema":{"type":"object"}}},
                    "m":{"method":"sampling/createMessage","params":{"maxTokens":7}},
                    "r":{"method":"roots/list"}},"requestState":"\u0041\/b \"é\""}"#,
            )
            .await;
            let ChannelCommand::Send(OutgoingMessage { bytes, .. }) = peer.command().await else {
                panic!("the request is sent again")
            };
            let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
            assert!(
                text.contains(r#""requestState":"\u0041\/b \"é\"""#),
                "{text}"
            );
            let second: Value = serde_json::from_str(&text).expect("JSON");
            assert_ne!(second["id"], first.body["id"]);
            assert_eq!(second["params"]["arguments"], json!({ "a": 1 }));
            assert_eq!(
                second["params"]["inputResponses"],
                json!({
                    "z": { "action": "accept", "content": { "name": "octocat" } },
                    "m": { "maxTokens": 7 },
                    "r": { "roots": [{ "uri": "file:///work/project", "name": "project" }] },
                })
            );
            let meta = &second["params"]["_meta"];
            assert!(meta["io.modelcontextprotocol/clientCapabilities"]["roots"].is_object());
            peer.say(json!({ "jsonrpc": "2.0", "id": second["id"], "result": { "done": true } }))
                .await;
        };
        let (outcome, ()) = tokio::join!(request(&session, method), script);
        assert_eq!(outcome.expect("answered").get(), r#"{"done":true}"#);
        assert_eq!(
            client_handler.asked(),
            ["scripted form who?", "scripted model"]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_is_sent_once_and_only_with_its_own_request() {
    let client_handler = Arc::new(Scripted::gated());
    let (session, _pump, mut peer) =
        asked_by_modern(&client_handler, MessageDelivery::Stream).await;
    let script = async {
        let first = peer.expect("tools/call").await;
        let asks = json!({
            "resultType": "input_required", "inputRequests": { "k": form("?") },
            "requestState": "secret",
        });
        peer.answer(&first, asks).await;
        // Another call while the first one waits for a person.
        let other = peer.expect("resources/read").await;
        assert!(!other.body.to_string().contains("secret"));
        assert!(other.body["params"]["inputResponses"].is_null());
        peer.answer(&other, json!({})).await;
        client_handler.gate.add_permits(2);
        let second = peer.expect("tools/call").await;
        assert_eq!(second.body["params"]["requestState"], "secret");
        // The next round has no state of its own.
        let asks = json!({ "resultType": "input_required", "inputRequests": { "k2": form("!") } });
        peer.answer(&second, asks).await;
        let third = peer.expect("tools/call").await;
        let params = third.body["params"].as_object().expect("an object");
        assert!(!params.contains_key("requestState"));
        let keys: Vec<_> = params["inputResponses"]
            .as_object()
            .expect("an object")
            .keys()
            .collect();
        assert_eq!(keys, ["k2"], "only what this round asked for");
        peer.answer(&third, json!({})).await;
    };
    let other = async {
        while client_handler.thinking() == 0 {
            tokio::task::yield_now().await;
        }
        request(&session, "resources/read").await
    };
    let (call, other, ()) = tokio::join!(request(&session, "tools/call"), other, script);
    assert!(call.is_ok() && other.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_only_wants_to_be_asked_again_is_after_a_while() {
    let client_handler = Arc::new(Scripted::new());
    let (session, _pump, mut peer) =
        asked_by_modern(&client_handler, MessageDelivery::Stream).await;
    let started = tokio::time::Instant::now();
    let script = async {
        for turn in 0..3 {
            let request = peer.expect("tools/call").await;
            if turn > 0 {
                assert_eq!(
                    request.body["params"]["requestState"],
                    json!(turn.to_string())
                );
                assert!(request.body["params"]["inputResponses"].is_null());
            }
            let state = (turn + 1).to_string();
            let again = json!({ "resultType": "input_required", "requestState": state });
            peer.answer(&request, again).await;
        }
        let request = peer.expect("tools/call").await;
        peer.answer(&request, json!({})).await;
    };
    let (outcome, ()) = tokio::join!(request(&session, "tools/call"), script);
    assert!(outcome.is_ok());
    assert_eq!(started.elapsed(), Duration::from_millis(250 + 500 + 1000));
}

#[tokio::test(start_paused = true)]
async fn rounds_have_an_end() {
    let client_handler = Arc::new(Scripted::new());
    let (session, _pump, mut peer) =
        asked_by_modern(&client_handler, MessageDelivery::Stream).await;
    let script = async {
        for _ in 0..=10 {
            let request = peer.expect("tools/call").await;
            let asks =
                json!({ "resultType": "input_required", "inputRequests": { "k": form("?") } });
            peer.answer(&request, asks).await;
        }
    };
    let (outcome, ()) = tokio::join!(request(&session, "tools/call"), script);
    assert!(
        matches!(outcome, Err(RequestError::TooManyRounds { rounds: 10 })),
        "{outcome:?}"
    );
    assert_eq!(client_handler.asked().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn input_that_is_not_offered_is_named_and_nobody_is_asked_in_vain() {
    let client_handler = Arc::new(Scripted {
        offers: ClientOffers {
            form: true,
            ..ClientOffers::default()
        },
        ..Scripted::new()
    });
    let (session, _pump, mut peer) =
        asked_by_modern(&client_handler, MessageDelivery::Stream).await;
    let url = json!({
        "method": "elicitation/create",
        "params": { "mode": "url", "message": "pay", "url": "https://example.com" },
    });
    for (wanted, name) in [
        (url, "elicitation/create (url)"),
        (
            json!({ "method": "sampling/createMessage" }),
            "sampling/createMessage",
        ),
        (json!({ "method": "roots/list" }), "roots/list"),
        (json!({ "method": "coffee/brew" }), "coffee/brew"),
    ] {
        let script = async {
            let request = peer.expect("tools/call").await;
            let asks = json!({
                "resultType": "input_required",
                "inputRequests": { "a": form("in vain"), "b": wanted },
            });
            peer.answer(&request, asks).await;
        };
        let (outcome, ()) = tokio::join!(request(&session, "tools/call"), script);
        let Err(RequestError::InputRefused { input }) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(input.to_string(), name);
    }
    assert!(client_handler.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn input_that_cannot_be_read_or_got_ends_the_request() {
    let client_handler = Arc::new(Scripted::new());
    let (session, _pump, mut peer) =
        asked_by_modern(&client_handler, MessageDelivery::Stream).await;
    let many: serde_json::Map<String, Value> =
        (0..17).map(|n| (n.to_string(), form("?"))).collect();
    for (asks, wanted) in [
        (json!([1]), "inputRequests"),
        (
            json!({ "a": { "method": "elicitation/create" } }),
            "requestedSchema",
        ),
        (
            json!({ "a": { "method": "sampling/createMessage", "params": { "x": "forbidden" } } }),
            "no model today",
        ),
        (Value::Object(many), "17 questions"),
    ] {
        let script = async {
            let request = peer.expect("tools/call").await;
            let result = json!({ "resultType": "input_required", "inputRequests": asks });
            peer.answer(&request, result).await;
        };
        let (outcome, ()) = tokio::join!(request(&session, "tools/call"), script);
        let error = outcome.expect_err("no input").to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn other_requests_may_not_ask_for_input() {
    let client_handler = Arc::new(Scripted::new());
    let (session, _pump, mut peer) =
        asked_by_modern(&client_handler, MessageDelivery::Stream).await;
    let script = async {
        let request = peer.expect("tools/list").await;
        let result = json!({ "resultType": "input_required", "inputRequests": { "k": form("?") } });
        peer.answer(&request, result).await;
    };
    let (outcome, ()) = tokio::join!(request(&session, "tools/list"), script);
    assert!(matches!(outcome, Err(RequestError::Malformed(_))));
    assert!(client_handler.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn all_rounds_share_one_deadline_and_a_person_is_not_idle() {
    let client_handler = Arc::new(Scripted::gated());
    let (session, _pump, mut peer) =
        asked_by_modern(&client_handler, MessageDelivery::Stream).await;
    let options = RequestOptions {
        idle: Some(Duration::from_secs(10)),
        ..RequestOptions::within(Duration::from_secs(100))
    };
    let started = tokio::time::Instant::now();
    let call = session.request_owned("tools/call", empty(), options);
    let script = async {
        let request = peer.expect("tools/call").await;
        tokio::time::sleep(Duration::from_secs(9)).await;
        let asks = json!({ "resultType": "input_required", "inputRequests": { "k": form("?") } });
        peer.answer(&request, asks.clone()).await;
        tokio::time::sleep(Duration::from_secs(50)).await;
        client_handler.gate.add_permits(1);
        let request = peer.expect("tools/call").await;
        tokio::time::sleep(Duration::from_secs(9)).await;
        // This one is not answered before the whole time is over.
        peer.answer(&request, asks).await;
    };
    let (outcome, ()) = tokio::join!(call, script);
    assert!(
        matches!(outcome, Err(RequestError::TimedOut)),
        "{outcome:?}"
    );
    assert_eq!(started.elapsed(), Duration::from_secs(100));
    assert_eq!(client_handler.thinking(), 0, "the person is let go");
}

fn tool_with_header(header: &str) -> Value {
    json!({
        "name": "x",
        "inputSchema": {
            "type": "object",
            "properties": { "region": { "type": "string", "x-mcp-header": header } },
        },
    })
}

#[tokio::test(start_paused = true)]
async fn refused_headers_are_made_anew_once_from_a_fresh_list() {
    let (session, _pump, mut peer) =
        settled(ProtocolMode::Modern, MessageDelivery::PerRequest).await;
    let mut changes = session.changes();
    let page = params(&json!({ "tools": [tool_with_header("Old")] }));
    let old = view::tools(&page).expect("a page").items.remove(0);
    let arguments = json!({ "name": "x", "arguments": { "region": "eu" } });
    for refusals in [1, 2] {
        let options = RequestOptions {
            tool: Some(&old),
            ..RequestOptions::within(LIMIT)
        };
        let call = session.request_owned("tools/call", params(&arguments), options);
        let script = async {
            let first = peer.expect("tools/call").await;
            assert_eq!(first.header("mcp-param-old"), Some("eu"));
            let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"mismatch"}}"#;
            let failure = SendFailure::Status {
                status: 400,
                www_authenticate: None,
                body: Bytes::from_static(body.as_bytes()),
                had_session: false,
                retry_after: None,
            };
            peer.fail(&first, failure).await;
            let list = peer.expect("tools/list").await;
            peer.answer(&list, json!({ "tools": [tool_with_header("New")] }))
                .await;
            let second = peer.expect("tools/call").await;
            assert_eq!(second.header("mcp-param-new"), Some("eu"));
            assert_ne!(second.body["id"], first.body["id"]);
            if refusals == 1 {
                peer.answer(&second, json!({})).await;
            } else {
                peer.refuse(&second, -32020, Value::Null).await;
            }
        };
        let (outcome, ()) = tokio::join!(call, script);
        match (refusals, outcome) {
            (1, Ok(_)) => {}
            (2, Err(RequestError::Rpc(error))) => assert_eq!(error.code, -32020),
            (_, outcome) => panic!("{outcome:?}"),
        }
        // The catalogue is told to fetch the list again as well.
        changes
            .wait_for(|now| now.of(ListKind::Tools) == refusals)
            .await
            .expect("the session lives");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_fresh_tool_the_refusal_of_headers_stands() {
    let (session, _pump, mut peer) =
        settled(ProtocolMode::Modern, MessageDelivery::PerRequest).await;
    let page = params(&json!({ "tools": [tool_with_header("Old")] }));
    let old = view::tools(&page).expect("a page").items.remove(0);
    let options = RequestOptions {
        tool: Some(&old),
        ..RequestOptions::within(LIMIT)
    };
    let call = session.request_owned("tools/call", params(&json!({ "name": "x" })), options);
    let script = async {
        let first = peer.expect("tools/call").await;
        peer.refuse(&first, -32020, Value::Null).await;
        let list = peer.expect("tools/list").await;
        peer.answer(&list, json!({ "tools": [] })).await;
    };
    let (outcome, ()) = tokio::join!(call, script);
    assert!(matches!(outcome, Err(RequestError::Rpc(error)) if error.code == -32020));
}
