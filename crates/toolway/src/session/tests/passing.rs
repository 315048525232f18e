//! What is passed on as it came: results, the log, what a caller states for itself.

use super::*;
use crate::call::{
    CallOptions, CallerSide, Consent, LogLevel, LogNews, LogStream, RequestOrigin, ServerLogs,
};
use crate::route::PassedOn;

fn of(caller: &Arc<CallerSide>, options: &CallOptions) -> RequestOptions<'static> {
    RequestOptions {
        origin: Some(RequestOrigin::under(caller, None, options, None)),
        ..RequestOptions::within(LIMIT)
    }
}

fn plain() -> CallOptions {
    CallOptions::new(Consent::Typed)
}

#[tokio::test]
async fn a_result_is_a_slice_of_its_message() {
    let (session, _pump, mut peer) = legacy().await;
    let asked = session.request_owned("tools/call", empty(), RequestOptions::within(LIMIT));
    let script = async {
        let request = peer.expect("tools/call").await;
        let id = &request.body["id"];
        let message = format!(r#"{{"id":{id},"result" : {{"n": 1e400}} ,"jsonrpc":"2.0"}}"#);
        let message = Bytes::from(message);
        peer.text(message.clone()).await;
        message
    };
    let (result, message) = tokio::join!(asked, script);
    let result = result.expect("an answer");
    assert_eq!(result.get(), r#"{"n": 1e400}"#);
    let slice = result.bytes().as_ptr_range();
    let whole = message.as_ptr_range();
    assert!(whole.start <= slice.start && slice.end <= whole.end);
}

fn said(level: &str, data: &str) -> Value {
    json!({
        "jsonrpc": "2.0", "method": "notifications/message",
        "params": { "level": level, "data": data },
    })
}

/// What a stream has heard, read until the log is silent.
async fn heard(stream: &mut LogStream) -> Vec<String> {
    let mut heard = Vec::new();
    let silence = Duration::from_millis(20);
    while let Ok(news) = tokio::time::timeout(silence, stream.next()).await {
        let LogNews::Message(message) = news else {
            panic!("{news:?}")
        };
        let params: Value = serde_json::from_str(message.raw.get()).expect("JSON");
        heard.push(params["data"].as_str().expect("a text").to_owned());
    }
    heard
}

#[tokio::test(start_paused = true)]
async fn where_requests_have_streams_the_log_of_each_is_its_callers() {
    let logs = ServerLogs::default();
    let side = ClientSide {
        logs: logs.clone(),
        ..client_side()
    };
    let (ada, bob) = (Arc::<CallerSide>::default(), Arc::<CallerSide>::default());
    let mut of_ada = logs.listen(&ada, LogLevel::Info);
    let mut of_bob = logs.listen(&bob, LogLevel::Error);
    let (session, _pump, mut peer) =
        settled_with(ProtocolMode::Legacy, MessageDelivery::PerRequest, side).await;
    let first = session.request_owned("tools/call", empty(), of(&ada, &plain()));
    let second = session.request_owned("tools/call", empty(), of(&bob, &plain()));
    let script = async {
        let (one, two) = (
            peer.expect("tools/call").await,
            peer.expect("tools/call").await,
        );
        for (during, level, data) in [
            (one.tag, "debug", "too quiet"),
            (one.tag, "info", "ada's"),
            (two.tag, "info", "too quiet"),
            (two.tag, "alert", "bob's"),
            (None, "error", "everybody's"),
            (Some(RequestTag(99)), "alert", "of one that has ended"),
        ] {
            let bytes = Bytes::from(said(level, data).to_string());
            let event = ChannelEvent::Message { bytes, during };
            peer.events.send(event).await.expect("the session listens");
        }
        peer.answer(&one, json!({})).await;
        peer.answer(&two, json!({})).await;
    };
    let (first, second, ()) = tokio::join!(first, second, script);
    first.and(second).expect("answers");
    assert_eq!(heard(&mut of_ada).await, ["ada's", "everybody's"]);
    assert_eq!(heard(&mut of_bob).await, ["bob's", "everybody's"]);
}

#[tokio::test]
async fn a_modern_request_says_the_level_and_the_capabilities_of_its_caller() {
    const META: &str = "io.modelcontextprotocol/";
    let logs = ServerLogs::default();
    let side = ClientSide {
        logs: logs.clone(),
        ..client_side()
    };
    let (ada, bob) = (Arc::<CallerSide>::default(), Arc::<CallerSide>::default());
    let _of_ada = logs.listen(&ada, LogLevel::Notice);
    let (session, _pump, mut peer) =
        settled_with(ProtocolMode::Modern, MessageDelivery::Stream, side).await;
    let stated = r#"{"elicitation":{"url":{}},"x":1.0}"#;
    let stating = CallOptions {
        capabilities: Some(params(&serde_json::from_str(stated).expect("JSON")).into()),
        ..plain()
    };
    for (caller, options, passed_on, level, has_tasks) in [
        (&ada, &plain(), false, json!("notice"), true),
        (&bob, &plain(), false, Value::Null, true),
        (&bob, &stating, true, Value::Null, false),
        (&bob, &stating, false, Value::Null, true),
    ] {
        let options = RequestOptions {
            passed_on: PassedOn {
                input: passed_on,
                tasks: passed_on,
            },
            ..of(caller, options)
        };
        let asked = session.request_owned("tools/call", empty(), options);
        let script = async {
            let request = peer.expect("tools/call").await;
            peer.answer(&request, json!({ "resultType": "complete" }))
                .await;
            request.body["params"]["_meta"].clone()
        };
        let (answer, meta) = tokio::join!(asked, script);
        answer.expect("an answer");
        assert_eq!(meta[format!("{META}logLevel")], level);
        let capabilities = &meta[format!("{META}clientCapabilities")];
        assert_eq!(capabilities["extensions"].is_object(), has_tasks, "{meta}");
        // Nobody answers for these callers, so only who passes questions on can declare any.
        assert_eq!(capabilities["elicitation"].is_object(), passed_on, "{meta}");
        assert_eq!(capabilities["roots"], Value::Null, "{meta}");
    }
}
