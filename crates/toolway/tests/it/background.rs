//! Calls that nobody waits for: by their number they are listed, cancelled and collected.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolway::{
    CallError, CallId, CallOptions, CallStage, Called, ClientHandler, ClientOffers, CollectError,
    Consent, Elicitation, ElicitationAnswer, Host, HostOptions, RpcError,
};
use toolway_types::ServerName;

use crate::batch::{Deeds, worker};
use crate::support::*;

fn typed() -> CallOptions {
    CallOptions::new(Consent::Typed)
}

fn leaving(milliseconds: u64) -> CallOptions {
    CallOptions {
        background_after: Some(Duration::from_millis(milliseconds)),
        ..typed()
    }
}

async fn pass(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}

async fn ready(home: &Home, deeds: &Deeds) -> Host {
    let host = home.host([("works", worker(deeds))]);
    host.settled().await;
    host
}

#[tokio::test(start_paused = true)]
async fn a_call_is_started_listed_and_collected_once() {
    let (home, deeds) = (Home::new(), Deeds::default());
    let host = ready(&home, &deeds).await;
    let handle = host
        .start_call(request("works", "write", "a:1000"), typed())
        .expect("room");
    pass(300).await;
    let listed = host.calls();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].id, handle.id);
    assert_eq!(listed[0].stage, CallStage::Running);
    assert_eq!(listed[0].took.as_millis(), 300);
    assert_eq!(listed[0].target.to_string(), "works.write");
    pass(1000).await;
    let listed = host.calls();
    assert_eq!(listed[0].stage, CallStage::Finished);
    assert_eq!(listed[0].took.as_millis(), 1000);
    let outcome = host.collect(handle.id).await.expect("known");
    assert_eq!(text_of(&outcome.expect("an answer")), "a");
    let again = host.collect(handle.id).await;
    assert_eq!(again.unwrap_err(), CollectError::Unknown(handle.id));
    assert!(host.calls().is_empty());
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn collecting_waits_and_an_error_is_an_outcome_like_any_other() {
    let (home, deeds) = (Home::new(), Deeds::default());
    let host = ready(&home, &deeds).await;
    let long = host.start_call(request("works", "read", "b:5000"), typed());
    let wrong = host.start_call(request("works", "nothing", "x"), typed());
    let outcome = host.collect(long.expect("room").id).await.expect("known");
    assert_eq!(text_of(&outcome.expect("an answer")), "b");
    let outcome = host.collect(wrong.expect("room").id).await.expect("known");
    assert!(matches!(outcome, Err(CallError::Unknown { .. })));
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn cancelling_by_number_tells_the_server_and_whoever_waits() {
    let (home, deeds) = (Home::new(), Deeds::default());
    let host = ready(&home, &deeds).await;
    let handle = host
        .start_call(request("works", "write", "a:60000"), typed())
        .expect("room");
    let cancel = async {
        pass(50).await;
        assert!(host.cancel(handle.id));
    };
    let (collected, ()) = tokio::join!(host.collect(handle.id), cancel);
    assert_eq!(collected.unwrap_err(), CollectError::Cancelled(handle.id));
    pass(50).await;
    assert_eq!(deeds.all(), ["begin a", "cancelled"]);
    assert!(!host.cancel(handle.id), "once");
    assert!(!host.cancel(CallId::new(77)));
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_ended_is_kept_for_a_while_and_not_without_bound() {
    let (home, deeds) = (Home::new(), Deeds::default());
    let host = ready(&home, &deeds).await;
    let mut first = None;
    for number in 0..130 {
        let text = format!("{number}:1");
        let handle = host
            .start_call(request("works", "read", &text), typed())
            .expect("room");
        first.get_or_insert(handle.id);
        pass(10).await;
    }
    let listed = host.calls();
    assert_eq!(listed.len(), 100);
    let first = first.expect("one");
    assert!(listed.iter().all(|call| call.id > first), "the newest stay");
    assert_eq!(
        host.collect(first).await.unwrap_err(),
        CollectError::Unknown(first)
    );
    pass(10 * 60 * 1000).await;
    assert!(host.calls().is_empty());
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn there_is_an_end_to_how_many_may_run() {
    let (home, deeds) = (Home::new(), Deeds::default());
    let host = ready(&home, &deeds).await;
    let start = || host.start_call(request("works", "read", "x:60000"), typed());
    let handles: Vec<_> = (0..100).map(|_| start().expect("room")).collect();
    let refused = start().expect_err("no room");
    assert!(refused.to_string().contains("cancel one"), "{refused}");
    host.cancel(handles[0].id);
    start().expect("room again");
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_goes_on_in_the_background() {
    let (home, deeds) = (Home::new(), Deeds::default());
    let host = ready(&home, &deeds).await;
    let quick = host
        .call_or_background(request("works", "read", "a:40"), leaving(50))
        .await;
    assert!(matches!(quick, Ok(Called::Finished(outcome)) if text_of(&outcome) == "a"));
    assert!(host.calls().is_empty());
    let long = host
        .call_or_background(request("works", "read", "b:400"), leaving(50))
        .await;
    let Ok(Called::Background(handle)) = long else {
        panic!("{long:?}")
    };
    assert_eq!(host.calls()[0].stage, CallStage::Running);
    let outcome = host.collect(handle.id).await.expect("known");
    assert_eq!(text_of(&outcome.expect("an answer")), "b");

    // Whoever stops waiting before that cancels it.
    let waited = host.call_or_background(request("works", "read", "c:60000"), leaving(5000));
    let stopped = tokio::time::timeout(Duration::from_millis(20), waited).await;
    assert!(stopped.is_err());
    pass(20).await;
    assert!(host.calls().is_empty());
    assert_eq!(deeds.all().last().map(String::as_str), Some("cancelled"));
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_ends_takes_its_calls_along() {
    let (home, deeds) = (Home::new(), Deeds::default());
    let host = ready(&home, &deeds).await;
    host.start_call(request("works", "read", "a:60000"), typed())
        .expect("room");
    pass(20).await;
    tokio::time::timeout(Duration::from_secs(30), host.shutdown())
        .await
        .expect("it ends");
    assert_eq!(deeds.all()[0], "begin a");
    assert!(!deeds.all().contains(&"end a".to_owned()));
}

/// A person who needs two seconds.
struct Slow;

impl ClientHandler for Slow {
    fn offers(&self) -> ClientOffers {
        ClientOffers {
            form: true,
            ..ClientOffers::default()
        }
    }

    fn elicit<'a>(
        &'a self,
        _server: &'a ServerName,
        _request: Elicitation,
    ) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            ElicitationAnswer::Accept(Some(Map::new()))
        })
    }

    fn sample<'a>(
        &'a self,
        _server: &'a ServerName,
        _request: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, RpcError>> {
        Box::pin(async { Err(RpcError::new(-32601, "nobody")) })
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_in_which_a_person_is_asked_does_not_count() {
    let call: Arc<Mutex<Value>> = Arc::default();
    let server = scripted(move |message, speaker| {
        if message["method"] == "tools/call" {
            *call.lock().expect("no panic") = message["id"].clone();
            speaker.say(&json!({
                "jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
                "params": { "message": "well?", "requestedSchema": { "type": "object" } },
            }));
            return Reply::Silence;
        }
        if message["id"] == "q" {
            let content = json!([{ "type": "text", "text": message["result"]["action"] }]);
            speaker.say(&json!({
                "jsonrpc": "2.0", "id": *call.lock().expect("no panic"),
                "result": { "content": content },
            }));
            return Reply::Silence;
        }
        legacy(message)
    });
    let home = Home::new();
    let host = Host::start(
        home.plan(&json!({})),
        HostOptions {
            in_process: vec![(name("asks"), server)],
            client_handler: Some(Arc::new(Slow)),
            ..home.options()
        },
    );
    host.settled().await;
    let called = host
        .call_or_background(request("asks", "echo", "x"), leaving(100))
        .await;
    assert!(
        matches!(&called, Ok(Called::Finished(outcome)) if text_of(outcome) == "accept"),
        "{called:?}"
    );
    host.shutdown().await;
}
