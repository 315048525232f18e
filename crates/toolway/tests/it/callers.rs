//! Two callers of one host at once: nothing of one reaches the other.
//!
//! The servers are real processes; the second caller is attached as a gateway's client would be.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolway::call::{PermissionAnswer, PermissionQuestion};
use toolway::{
    AttachOptions, Attached, CallError, CallOptions, Caller, CallerKind, ClientHandler,
    ClientOffers, CollectError, Consent, Elicitation, ElicitationAnswer, Host, HostOptions,
    Prompter, Root, RpcError, ToolOutcome, ToolRequest, ToolTarget,
};
use toolway_testkit::{Script, ScriptedServer, SpokenEras};
use toolway_types::{ServerName, ToolKey};

use crate::support::{Home, name};

/// Says yes for the session, and counts how often it is asked.
#[derive(Default)]
struct Agrees {
    asked: AtomicUsize,
}

impl Prompter for Agrees {
    fn ask<'a>(&'a self, _: &'a PermissionQuestion<'a>) -> BoxFuture<'a, PermissionAnswer> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(PermissionAnswer::Session))
    }
}

/// Fills in every form with its own name, and remembers which server asked.
struct Answers {
    name: &'static str,
    asked: Mutex<Vec<String>>,
}

impl Answers {
    fn named(name: &'static str) -> Arc<Self> {
        Arc::new(Self {
            name,
            asked: Mutex::default(),
        })
    }

    fn asked(&self) -> usize {
        self.asked.lock().expect("no panic").len()
    }
}

impl ClientHandler for Answers {
    fn offers(&self) -> ClientOffers {
        ClientOffers {
            form: true,
            ..ClientOffers::default()
        }
    }

    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        _: Elicitation,
    ) -> BoxFuture<'a, ElicitationAnswer> {
        self.asked
            .lock()
            .expect("no panic")
            .push(server.to_string());
        let fields = Map::from_iter([("word".to_owned(), Value::from(self.name))]);
        Box::pin(std::future::ready(ElicitationAnswer::Accept(Some(fields))))
    }

    fn sample<'a>(
        &'a self,
        _: &'a ServerName,
        _: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, RpcError>> {
        Box::pin(std::future::ready(Err(RpcError::new(-1, "no model"))))
    }
}

fn drama(speaks: SpokenEras) -> ScriptedServer {
    ScriptedServer::new(Script {
        drama: true,
        speaks,
        ..Script::default()
    })
}

fn asks(tool: &str, arguments: &Value) -> ToolRequest {
    ToolRequest::new(
        ToolTarget::Key(ToolKey::new(name("s"), tool)),
        arguments.as_object().cloned().unwrap_or_default(),
    )
}

async fn typed(caller: &Attached, tool: &str) -> Result<ToolOutcome, CallError> {
    let options = CallOptions::new(Consent::Typed);
    caller.call(asks(tool, &json!({})), options).await
}

/// What a call answered, as text.
async fn said(caller: &Attached, tool: &str) -> String {
    let outcome = typed(caller, tool).await.expect("an answer");
    outcome.raw.get().to_owned()
}

/// A host whose one server is `entry`, and whose owner can be asked.
async fn host(home: &Home, entry: Value, owner: &Arc<Answers>) -> Host {
    let options = HostOptions {
        client_handler: Some(Arc::clone(owner) as Arc<dyn ClientHandler>),
        roots: roots("owner"),
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({ "s": entry })), options);
    host.settled().await;
    host
}

fn roots(place: &str) -> Vec<Root> {
    let root = Root::directory(&std::path::Path::new("/work").join(place));
    root.into_iter().collect()
}

fn attach(host: &Host, answers: &Arc<Answers>) -> Attached {
    let caller = Caller::new(CallerKind::Client, answers.name);
    let options = AttachOptions {
        client_handler: Some(Arc::clone(answers) as Arc<dyn ClientHandler>),
        roots: roots(answers.name),
        ..AttachOptions::default()
    };
    host.attach(caller, options)
}

/// What tells whose question it is: the era, or a stream of its own for each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tells {
    Everything,
    Nothing,
}

#[tokio::test]
async fn a_servers_question_reaches_the_caller_whose_call_caused_it() {
    let over_http = [
        drama(SpokenEras::Legacy).serve_http(),
        drama(SpokenEras::Modern).serve_http(),
    ];
    for (entry, tells) in [
        (drama(SpokenEras::Legacy).entry(), Tells::Nothing),
        (drama(SpokenEras::Modern).entry(), Tells::Everything),
        (over_http[0].entry(), Tells::Everything),
        (over_http[1].entry(), Tells::Everything),
    ] {
        let home = Home::new();
        let [owner, ada, bob] = ["owner", "ada", "bob"].map(Answers::named);
        let host = host(&home, entry.clone(), &owner).await;
        let (first, second) = (attach(&host, &ada), attach(&host, &bob));
        // One after the other, it is clear on every transport.
        for (caller, word) in [(&first, "ada"), (&second, "bob"), (&host, "owner")] {
            let answer = said(caller, "elicit").await;
            assert!(answer.contains(word), "{entry}: {word}: {answer}");
        }
        assert_eq!(
            [ada.asked(), bob.asked(), owner.asked()],
            [1, 1, 1],
            "{entry}"
        );
        // At once, only where something says whose it is.
        let both = tokio::join!(said(&first, "elicit"), said(&second, "elicit"));
        if tells == Tells::Everything {
            assert!(both.0.contains("ada"), "{entry}: {}", both.0);
            assert!(both.1.contains("bob"), "{entry}: {}", both.1);
            assert_eq!(
                [ada.asked(), bob.asked(), owner.asked()],
                [2, 2, 1],
                "{entry}"
            );
        } else {
            assert!(
                !both.0.contains("bob") && !both.1.contains("ada"),
                "{both:?}"
            );
        }
        drop((first, second));
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_question_that_may_be_of_two_callers_is_put_to_neither() {
    let home = Home::new();
    let [owner, ada, bob] = ["owner", "ada", "bob"].map(Answers::named);
    let host = host(&home, drama(SpokenEras::Legacy).entry(), &owner).await;
    let (first, second) = (attach(&host, &ada), attach(&host, &bob));
    let hanging = first
        .start_call(asks("hang", &json!({})), CallOptions::new(Consent::Typed))
        .expect("room for a call");
    // It has been sent once the server answers what was sent after it.
    let echo = asks("echo", &json!({ "text": "sent" }));
    let echo = first.call(echo, CallOptions::new(Consent::Typed)).await;
    echo.expect("an answer");
    let answer = said(&second, "elicit").await;
    assert!(answer.contains("decline"), "{answer}");
    assert_eq!([ada.asked(), bob.asked(), owner.asked()], [0, 0, 0]);
    assert!(first.cancel(hanging.id));
    let answer = said(&second, "elicit").await;
    assert!(answer.contains("bob"), "{answer}");
    // It is known as one that asks: callers do not share it any more, and all is clear.
    for _ in 0..3 {
        let both = tokio::join!(said(&first, "elicit"), said(&second, "elicit"));
        assert!(both.0.contains("ada"), "{}", both.0);
        assert!(both.1.contains("bob"), "{}", both.1);
    }
    assert_eq!(owner.asked(), 0);
    host.shutdown().await;
}

#[tokio::test]
async fn a_caller_that_cannot_be_asked_is_not_and_nobody_else_is_in_its_place() {
    for speaks in [SpokenEras::Legacy, SpokenEras::Modern] {
        let home = Home::new();
        let owner = Answers::named("owner");
        let host = host(&home, drama(speaks).entry(), &owner).await;
        let caller = Caller::new(CallerKind::Client, "mute");
        let mute = host.attach(caller, AttachOptions::default());
        let outcome = typed(&mute, "elicit").await;
        let heard = match &outcome {
            Ok(outcome) => outcome.raw.get().to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(!heard.contains("owner"), "{heard}");
        assert_eq!(owner.asked(), 0, "{speaks:?}: {heard}");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn roots_are_those_of_the_caller() {
    for speaks in [SpokenEras::Legacy, SpokenEras::Modern] {
        let home = Home::new();
        let [owner, ada, bob] = ["owner", "ada", "bob"].map(Answers::named);
        let host = host(&home, drama(speaks).entry(), &owner).await;
        let (first, second) = (attach(&host, &ada), attach(&host, &bob));
        for (caller, own) in [(&first, "ada"), (&second, "bob"), (&host, "owner")] {
            let answer = said(caller, "roots").await;
            for place in ["ada", "bob", "owner"] {
                let told = answer.contains(&format!("/work/{place}"));
                assert_eq!(told, place == own, "{speaks:?}: {own}: {answer}");
            }
        }
        first.set_roots(roots("elsewhere"));
        assert!(said(&first, "roots").await.contains("/work/elsewhere"));
        assert!(said(&second, "roots").await.contains("/work/bob"));
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_yes_for_the_session_is_one_callers_alone() {
    let home = Home::new();
    let host = host(
        &home,
        drama(SpokenEras::Modern).entry(),
        &Answers::named("owner"),
    )
    .await;
    let prompters = [Arc::new(Agrees::default()), Arc::new(Agrees::default())];
    let callers = prompters.clone().map(|prompter| {
        let options = AttachOptions {
            prompter: Some(prompter),
            ..AttachOptions::default()
        };
        host.attach(Caller::new(CallerKind::Agent, "same name"), options)
    });
    let asked = || {
        prompters
            .each_ref()
            .map(|it| it.asked.load(Ordering::Relaxed))
    };
    let prompted = || CallOptions::new(Consent::Prompt);
    for expected in [[1, 0], [1, 0]] {
        let echo = callers[0].call(asks("echo", &json!({ "text": "x" })), prompted());
        echo.await.expect("permitted");
        assert_eq!(asked(), expected);
    }
    let echo = callers[1].call(asks("echo", &json!({ "text": "x" })), prompted());
    echo.await.expect("permitted");
    assert_eq!(asked(), [1, 1]);
    // The host has nobody to ask, and no yes of theirs is its own.
    let refused = host.call(asks("echo", &json!({ "text": "x" })), prompted());
    refused.await.expect_err("nobody was asked");
    drop(callers);
    host.shutdown().await;
}

#[tokio::test]
async fn calls_in_the_background_are_one_callers_and_end_with_it() {
    let home = Home::new();
    let host = host(
        &home,
        drama(SpokenEras::Modern).entry(),
        &Answers::named("owner"),
    )
    .await;
    let [first, second] = ["a", "b"].map(|name| {
        host.attach(
            Caller::new(CallerKind::Agent, name),
            AttachOptions::default(),
        )
    });
    let typed = || CallOptions::new(Consent::Typed);
    let handle = first
        .start_call(asks("hang", &json!({})), typed())
        .expect("room");
    assert_eq!(
        [
            first.calls().len(),
            second.calls().len(),
            host.calls().len()
        ],
        [1, 0, 0]
    );
    assert!(!second.cancel(handle.id) && !host.cancel(handle.id));
    let collected = second.collect(handle.id).await;
    assert!(matches!(collected, Err(CollectError::Unknown(id)) if id == handle.id));
    assert_eq!(first.calls().len(), 1, "it still runs");
    // Cancelling a call of one leaves the other's alone.
    let slow = second.call(asks("slow", &json!({ "ms": 300 })), typed());
    let (slow, ()) = tokio::join!(slow, async { assert!(first.cancel(handle.id)) });
    slow.expect("its own call goes on");
    host.shutdown().await;
}

#[tokio::test]
async fn a_hundred_thousand_calls_of_two_callers_never_cross() {
    const CALLS: usize = 50_000;
    const AT_ONCE: usize = 16;
    let home = Home::new();
    let host = home.host([("s", crate::support::modern_server())]);
    host.settled().await;
    // Equal in everything but who they are.
    let callers = ["a", "b"].map(|_| {
        let caller = Caller::new(CallerKind::Client, "the same");
        host.attach(caller, AttachOptions::default())
    });
    let run = |caller: Attached, word: &'static str| async move {
        let calls = (0..CALLS).map(|number| {
            let text = format!("{word}{number}");
            let options = CallOptions::new(Consent::Typed);
            let call = caller.call(crate::support::request("s", "echo", &text), options);
            async move {
                let outcome = call.await.expect("an answer");
                assert_eq!(crate::support::text_of(&outcome), text);
            }
        });
        futures_util::StreamExt::for_each(
            futures_util::StreamExt::buffer_unordered(futures_util::stream::iter(calls), AT_ONCE),
            |()| std::future::ready(()),
        )
        .await;
    };
    let [first, second] = callers;
    tokio::time::timeout(Duration::from_mins(5), async {
        tokio::join!(run(first, "first "), run(second, "second "))
    })
    .await
    .expect("in time");
    host.shutdown().await;
}
