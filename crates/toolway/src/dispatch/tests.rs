//! Whole calls over a scripted route: what is sent, what is refused, what comes back.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toolway_transport::{CloseReason, SendFailure};
use toolway_types::{ServerName, ToolKey};
use toolway_wire::RpcError;

use self::scene::{Scene, Sent, settings};
use super::*;
use crate::call::{CallFault, Consent, Oversize, PermissionAnswer, PermissionQuestion, RefusedBy};
use crate::error::RequestError;

pub(super) mod scene;
mod structured;

fn typed() -> CallOptions {
    CallOptions::new(Consent::Typed)
}

fn asked() -> CallOptions {
    CallOptions::new(Consent::Prompt)
}

fn hello() -> Value {
    json!({"content": [{"type": "text", "text": "hello"}], "x-vendor": 1})
}

#[tokio::test]
async fn a_call_goes_all_the_way_and_the_result_comes_back_whole() {
    let scene = Scene::answering(hello());
    let outcome = scene.call("do.it", typed()).await.unwrap();
    assert_eq!(
        scene.sent(),
        [Sent {
            method: "tools/call".into(),
            params: r#"{"name":"do.it","arguments":{"n":1,"text":"x"}}"#.into(),
            timeout: Duration::from_secs(100),
            tool: Some("do.it".into()),
        }]
    );
    assert_eq!(outcome.raw.get(), hello().to_string());
    assert!(!outcome.is_error);
    assert_eq!((outcome.server.as_str(), &*outcome.tool), ("s", "do.it"));
    assert_eq!((outcome.saved, outcome.warnings), (vec![], vec![]));
}

#[tokio::test]
async fn a_tools_own_error_is_an_answer() {
    let scene = Scene::answering(json!({"content": [], "isError": true}));
    assert!(scene.call("do.it", typed()).await.unwrap().is_error);
}

#[tokio::test]
async fn the_call_then_the_entry_then_the_limit_decide_the_time() {
    let mut scene = Scene::answering(hello());
    Arc::get_mut(&mut scene.route).unwrap().timeout = Some(Duration::from_secs(20));
    scene.call("do.it", typed()).await.unwrap();
    let options = CallOptions {
        timeout: Some(Duration::from_secs(3)),
        ..typed()
    };
    scene.call("do.it", options).await.unwrap();
    let timeouts: Vec<u64> = scene
        .sent()
        .iter()
        .map(|sent| sent.timeout.as_secs())
        .collect();
    assert_eq!(timeouts, [20, 3]);
}

#[tokio::test]
async fn progress_reaches_the_caller() {
    let scene = Scene::answering(hello());
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&seen);
    let options = CallOptions {
        progress: Some(Arc::new(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
        })),
        ..typed()
    };
    scene.call("do.it", options).await.unwrap();
    assert_eq!(seen.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_unchecked_schema_is_told_with_the_outcome() {
    let scene = Scene::answering(hello());
    let outcome = scene.call("odd", typed()).await.unwrap();
    assert_eq!(outcome.warnings.len(), 1);
    assert!(outcome.warnings[0].starts_with("the arguments of `odd` were checked in part only: "));
}

#[tokio::test]
async fn a_tool_of_a_server_that_is_not_connected_tells_of_the_server() {
    let scene = Scene::answering(hello());
    let call = |server: &str| {
        let key = ToolKey::new(ServerName::new(server).unwrap(), "x");
        scene.call_key(key, typed())
    };
    assert!(matches!(
        call("locked").await,
        Err(CallError::NeedsAuth { .. })
    ));
    let error = call("slow").await.unwrap_err();
    assert_eq!(error.to_string(), "server `slow` is pending");
    assert!(matches!(call("s").await, Err(CallError::Unknown { .. })));
}

async fn refusal(scene: &Scene, options: CallOptions) -> RefusedBy {
    let error = scene.call("do.it", options).await.unwrap_err();
    assert_eq!(scene.sent(), [], "a refused call was sent");
    assert_eq!(error.server().map(ServerName::as_str), Some("s"));
    match error {
        CallError::Failed(key, CallFault::Refused(by)) => {
            assert_eq!(key.tool, "do.it");
            by
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_deny_rule_refuses_even_what_a_person_typed_and_says_where_it_stands() {
    let scene = Scene::answering(hello()).permissions(&json!({
        "deny": ["mcp__s__do_it"], "allow": ["mcp__s"], "defaultMode": "bypass",
    }));
    for options in [typed(), asked()] {
        let by = refusal(&scene, options).await;
        assert_eq!(
            by,
            RefusedBy::Rule {
                rule: "mcp__s__do_it".into(),
                origin: settings()
            }
        );
    }
    let message = scene.call("do.it", typed()).await.unwrap_err().to_string();
    assert_eq!(
        message,
        "`do.it` of server `s` was refused by the rule `mcp__s__do_it` in /home/u/settings.json:4"
    );
}

#[tokio::test]
async fn an_allow_rule_and_the_bypass_mode_need_nobody() {
    for settings_value in [
        json!({"allow": ["mcp__s"]}),
        json!({"defaultMode": "bypass"}),
    ] {
        let scene = Scene::answering(hello()).permissions(&settings_value);
        scene.call("do.it", asked()).await.unwrap();
    }
}

#[tokio::test]
async fn nobody_to_ask_means_no() {
    let scene = Scene::answering(hello());
    assert_eq!(
        refusal(&scene, asked()).await,
        RefusedBy::NobodyToAsk { rule: None }
    );
    let scene = scene.permissions(&json!({"ask": ["mcp__s"]}));
    let rule = Some(("mcp__s".to_owned(), settings()));
    assert_eq!(
        refusal(&scene, asked()).await,
        RefusedBy::NobodyToAsk { rule }
    );
    // What a person typed is that person's yes.
    scene.call("do.it", typed()).await.unwrap();
}

/// Answers always the same, and checks that the question shows what will really run.
struct Person(PermissionAnswer);

impl Prompter for Person {
    fn ask<'a>(&'a self, question: &'a PermissionQuestion<'a>) -> BoxFuture<'a, PermissionAnswer> {
        assert_eq!(question.key.server.as_str(), "s");
        assert_eq!(question.key.tool, "do.it");
        assert_eq!(
            Value::Object(question.arguments.clone()),
            json!({"n": 1, "text": "x"})
        );
        Box::pin(std::future::ready(self.0.clone()))
    }
}

#[tokio::test]
async fn the_person_asked_decides() {
    let mut scene = Scene::answering(hello());
    scene.prompter = Some(Box::new(Person(PermissionAnswer::No)));
    assert_eq!(
        refusal(&scene, asked()).await,
        RefusedBy::Person { reason: None }
    );
    scene.prompter = Some(Box::new(Person(PermissionAnswer::Yes)));
    scene.call("do.it", asked()).await.unwrap();
}

#[tokio::test]
async fn every_failure_on_the_way_has_its_own_error() {
    let fail = |error: fn() -> RequestError| async move {
        Scene::failing(error)
            .call("do.it", typed())
            .await
            .unwrap_err()
    };
    assert!(matches!(
        fail(|| RequestError::TimedOut).await,
        CallError::Failed(_, CallFault::TimedOut { after, .. }) if after == Duration::from_secs(100)
    ));
    let asked = || RequestError::Closed(CloseReason::Asked);
    assert!(matches!(
        fail(asked).await,
        CallError::Failed(_, CallFault::Cancelled)
    ));
    let large = || RequestError::Send(SendFailure::TooLarge { limit: 9 });
    let large = fail(large).await;
    assert!(matches!(
        large,
        CallError::Failed(
            _,
            CallFault::TooLarge {
                what: Oversize::Answer,
                limit: 9,
                ..
            }
        )
    ));
    let gone = || RequestError::Closed(CloseReason::EndOfStream { stderr: vec![] });
    // It may have run (REL-10).
    let gone = fail(gone).await;
    assert!(matches!(
        gone,
        CallError::Failed(_, CallFault::Transport { sent: true, .. })
    ));
    assert_eq!(
        gone.to_string(),
        "the call of `do.it` of server `s` was sent, but its answer was lost: the server closed \
         the connection; nobody knows whether it ran"
    );
    let cut = || RequestError::Send(SendFailure::Cut("reset".to_owned()));
    assert!(matches!(
        fail(cut).await,
        CallError::Failed(_, CallFault::Transport { sent: true, .. })
    ));
    let unreachable = || {
        RequestError::Send(SendFailure::Unreachable {
            refused: true,
            message: "refused".to_owned(),
        })
    };
    assert_eq!(
        fail(unreachable).await.to_string(),
        "the call of `do.it` of server `s` did not get through: refused"
    );
    let rpc = || {
        let message = "no\u{1b}[31m\nhint: run this".to_owned();
        RequestError::Rpc(RpcError {
            code: -32602,
            message,
            data: None,
        })
    };
    assert_eq!(
        fail(rpc).await.to_string(),
        "server `s` answered `do.it` with error -32602: no hint: run this"
    );
    let status = |status: u16| SendFailure::Status {
        status,
        www_authenticate: None,
        body: bytes::Bytes::new(),
        had_session: false,
        retry_after: None,
    };
    let scene = Scene::failing(move || RequestError::Send(status(401)));
    assert!(matches!(
        scene.call("do.it", typed()).await,
        Err(CallError::NeedsAuth { .. })
    ));
    let scene = Scene::failing(move || RequestError::Send(status(500)));
    let message = scene.call("do.it", typed()).await.unwrap_err().to_string();
    assert!(
        message.ends_with("lost: HTTP status 500; nobody knows whether it ran"),
        "{message}"
    );
    let scene = Scene::failing(move || RequestError::Send(status(404)));
    let message = scene.call("do.it", typed()).await.unwrap_err().to_string();
    assert!(
        message.ends_with("did not get through: HTTP status 404"),
        "{message}"
    );
}

#[tokio::test]
async fn a_result_of_another_kind_is_malformed() {
    for answer in [
        json!("text"),
        json!([1]),
        json!({"content": 3}),
        json!({"content": [], "resultType": "input_required"}),
        json!({"content": [], "resultType": "task"}),
        json!({"content": [], "resultType": "surprise"}),
    ] {
        let scene = Scene::answering(answer.clone());
        let result = scene.call("do.it", typed()).await;
        assert!(
            matches!(result, Err(CallError::Failed(_, CallFault::Malformed(_)))),
            "{answer}"
        );
    }
    let complete = Scene::answering(json!({"content": [], "resultType": "complete"}));
    complete.call("do.it", typed()).await.unwrap();
}

#[tokio::test]
async fn media_are_saved_and_the_result_stays_whole() {
    let answer = json!({"content": [
        {"type": "text", "text": "see"},
        {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGVs\nbG8", "mimeType": "audio/x-wav"},
        {"type": "resource", "resource": {"uri": "file:///x", "blob": "AAEC"}},
        {"type": "image", "data": "not base64!", "mimeType": "image/png"},
    ]});
    let scene = Scene::answering(answer.clone());
    let outcome = scene.call("do.it", typed()).await.unwrap();
    assert_eq!(outcome.raw.get(), answer.to_string());
    let saved: Vec<(usize, &str, Vec<u8>)> = outcome
        .saved
        .iter()
        .map(|file| {
            (
                file.block,
                file.mime_type,
                std::fs::read(&file.path).unwrap(),
            )
        })
        .collect();
    assert_eq!(
        saved,
        [
            (1, "image/png", b"hello".to_vec()),
            (2, "audio/wav", b"hello".to_vec()),
            (3, "application/octet-stream", vec![0, 1, 2]),
        ]
    );
    assert_eq!(outcome.warnings.len(), 1);
    assert!(outcome.warnings[0].starts_with("block 4 of this result was not saved"));
}

#[tokio::test]
async fn a_result_survives_a_directory_that_cannot_be_used() {
    let answer =
        json!({"content": [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]});
    let scene = Scene::answering(answer.clone());
    std::fs::write(scene.output.path().join("results"), "a file in the way").unwrap();
    let outcome = scene.call("do.it", typed()).await.unwrap();
    assert_eq!(outcome.raw.get(), answer.to_string());
    assert_eq!(outcome.saved, []);
    assert!(
        outcome.warnings[0].contains("were not saved"),
        "{:?}",
        outcome.warnings
    );
}

fn bounded() -> CallOptions {
    CallOptions {
        delivery: crate::ResultDelivery::Bounded,
        ..typed()
    }
}

fn long(chars: usize) -> Value {
    json!({"content": [{"type": "text", "text": "1".repeat(chars)}]})
}

#[tokio::test]
async fn a_bounded_call_gives_the_whole_and_what_a_model_gets() {
    let scene = Scene::answering(long(300_000));
    let outcome = scene.call("do.it", bounded()).await.unwrap();
    assert_eq!(outcome.raw.get(), long(300_000).to_string());
    let bounded = outcome.bounded.unwrap();
    assert!(matches!(bounded.treatment, crate::Treatment::Saved { .. }));
    assert!(bounded.tokens < 1_000, "{}", bounded.tokens);
    assert!(
        scene
            .call("do.it", typed())
            .await
            .unwrap()
            .bounded
            .is_none()
    );
}

#[tokio::test]
async fn the_limit_is_the_settings_and_a_tool_may_raise_it() {
    let passed = async |scene: &Scene| {
        let outcome = scene.call("do.it", bounded()).await.unwrap();
        outcome.bounded.unwrap().treatment == crate::Treatment::Passed
    };
    let mut scene = Scene::answering(long(60_000));
    assert!(passed(&scene).await);
    scene.max_output_tokens = 19_999;
    assert!(!passed(&scene).await);
    scene.meta = json!({"anthropic/maxResultSizeChars": 200_000});
    assert!(passed(&scene).await);
}

#[tokio::test]
async fn an_editors_results_have_no_limits() {
    let mut scene = Scene::answering(long(900_000));
    Arc::get_mut(&mut scene.route).unwrap().is_editor = true;
    let outcome = scene.call("do.it", bounded()).await.unwrap();
    let bounded = outcome.bounded.unwrap();
    assert_eq!(bounded.treatment, crate::Treatment::Passed);
    assert_eq!(bounded.blocks[0].text().len(), 900_000);
}

#[tokio::test]
async fn a_selection_is_what_a_model_gets_and_a_bad_one_loses_nothing() {
    let answer = json!({
        "content": [{"type": "text", "text": "two items"}],
        "structuredContent": {"items": [{"id": 1, "x": "y"}, {"id": "b"}]},
    });
    let scene = Scene::answering(answer);
    let told = async |filter: &str| {
        let options = CallOptions {
            delivery: crate::ResultDelivery::Selected(filter.parse().unwrap()),
            ..typed()
        };
        let outcome = scene.call("do.it", options).await.unwrap();
        let blocks = outcome.bounded.unwrap().blocks;
        let texts: Vec<String> = blocks.iter().map(|block| block.text().into()).collect();
        texts.join("|")
    };
    assert_eq!(told(".items[].id").await, "1\nb\n");
    assert_eq!(
        told(".items.id").await,
        "[The selection `.items.id` failed: column 7: an array has no field `id`; for that of \
         every element write `[].id`]|two items|{\"items\":[{\"id\":1,\"x\":\"y\"},{\"id\":\"b\"}]}"
    );
    let plain = Scene::answering(hello());
    let outcome = plain.call("do.it", typed()).await.unwrap();
    let error = outcome.select(&".".parse().unwrap()).unwrap_err();
    assert_eq!(error, crate::SelectError::NoJson);
}
