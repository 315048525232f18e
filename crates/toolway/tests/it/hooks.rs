//! Hooks of a whole host: functions of the embedding program, tools, and servers that ask.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use toolway::config::HookEvent;
use toolway::{
    AttachOptions, CallError, CallFault, CallOptions, Caller, CallerKind, Classification,
    ClientHandler, Consent, ElicitationAnswer, HookCaller, HookDecision, HookReply, Host,
    HostOptions, InProcessServer, LibraryClassifier, LibraryHook, RefusedBy,
};

use crate::asking::Person;
use crate::offered::ruled;
use crate::support::*;

/// What a server asks for a name.
fn who() -> Value {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    json!({ "message": "who are you?", "requestedSchema": schema })
}

/// A legacy server whose tool `ask` asks this, and answers with what it heard.
fn asking_server(question: Value) -> InProcessServer {
    let waiting: Arc<Mutex<Vec<Value>>> = Arc::default();
    let asked = AtomicUsize::new(0);
    scripted(move |message, speaker| {
        if message["method"] == "tools/list" {
            return Reply::Result(json!({ "tools": [tool("ask"), tool("echo")] }));
        }
        if message["method"] == "tools/call" && message["params"]["name"] == "ask" {
            waiting
                .lock()
                .expect("no panic")
                .push(message["id"].clone());
            let number = asked.fetch_add(1, Ordering::Relaxed);
            speaker.say(&json!({
                "jsonrpc": "2.0", "id": format!("q{number}"), "method": "elicitation/create",
                "params": question,
            }));
            return Reply::Silence;
        }
        if message["id"].as_str().is_some_and(|id| id.starts_with('q')) {
            // The question that was asked last is the one that is answered first.
            let id = waiting.lock().expect("no panic").pop();
            let heard = message["result"].to_string();
            let result = json!({ "content": [{ "type": "text", "text": heard }] });
            speaker.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
            return Reply::Silence;
        }
        legacy(message)
    })
}

fn hook(event: HookEvent, reply: Result<HookReply, String>) -> LibraryHook {
    LibraryHook::new("h", event, "asks", move |_| {
        std::future::ready(reply.clone())
    })
    .expect("a matcher")
}

fn accepts(name: &str) -> HookReply {
    HookReply {
        answer: Some(ElicitationAnswer::Accept(
            json!({ "name": name }).as_object().cloned(),
        )),
        ..HookReply::default()
    }
}

/// What the server hears, and what the person heard.
async fn heard(hooks: Vec<LibraryHook>, person: Option<&Arc<Person>>) -> Value {
    told(who(), hooks, person).await.0
}

/// What the server hears, and what comes with the outcome.
async fn told(
    question: Value,
    hooks: Vec<LibraryHook>,
    person: Option<&Arc<Person>>,
) -> (Value, Vec<String>) {
    let home = Home::new();
    let options = HostOptions {
        in_process: vec![(name("asks"), asking_server(question))],
        hooks,
        client_handler: person.map(|person| Arc::clone(person) as Arc<dyn ClientHandler>),
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({})), options);
    host.settled().await;
    let outcome = host
        .call(request("asks", "ask", ""), CallOptions::new(Consent::Typed))
        .await
        .expect("an answer");
    host.shutdown().await;
    let heard = serde_json::from_str(&text_of(&outcome)).expect("JSON");
    (heard, outcome.warnings)
}

#[tokio::test(start_paused = true)]
async fn a_hook_between_a_server_and_its_answer_is_named_with_the_outcome() {
    let (first, last) = (HookEvent::Elicitation, HookEvent::ElicitationResult);
    let person = Person::named("octocat");
    let answers = |answer| {
        Ok(HookReply {
            answer: Some(answer),
            ..HookReply::default()
        })
    };
    let seven = json!({ "name": 7 }).as_object().cloned();
    for (event, reply, action, remark) in [
        (
            first,
            Ok(HookReply::deny("not that")),
            "decline",
            "said no to a question of server `asks`: not that",
        ),
        (
            first,
            Err("broken".to_owned()),
            "decline",
            "failed on a question of server `asks`, so the server heard a no: broken",
        ),
        (
            first,
            answers(ElicitationAnswer::Cancel),
            "cancel",
            "put a question of server `asks` away",
        ),
        (
            last,
            Ok(HookReply::deny("not that")),
            "decline",
            "said no to what was answered to server `asks`: not that",
        ),
        (
            last,
            Err("broken".to_owned()),
            "decline",
            "failed on what was answered to server `asks`, so the server heard a no: broken",
        ),
        (
            last,
            answers(ElicitationAnswer::Decline),
            "decline",
            "declined what was answered to server `asks`",
        ),
        (
            last,
            answers(ElicitationAnswer::Accept(seven)),
            "cancel",
            "answered to server `asks` does not fit its form, so the server heard that nobody \
             answered: `/name`: value is not of type \"string\"",
        ),
    ] {
        let (heard, warnings) = told(who(), vec![hook(event, reply)], Some(&person)).await;
        assert_eq!(heard["action"], action, "{remark}");
        let [warning] = &warnings[..] else {
            panic!("{warnings:?}");
        };
        assert!(warning.contains("the hook `h` in (program)"), "{warning}");
        assert!(warning.ends_with(remark), "{warning}");
    }
    let (_, warnings) = told(who(), vec![hook(first, Ok(accepts("x")))], None).await;
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_nobody_is_sent_to_is_named_with_the_outcome() {
    let person = Person::named("octocat");
    for page in [
        "http://evil.example/x",
        "file:///etc/passwd",
        "https://bank.example@evil.example/",
    ] {
        let question =
            json!({ "mode": "url", "message": "pay", "url": page, "elicitationId": "e" });
        let (heard, warnings) = told(question, Vec::new(), Some(&person)).await;
        assert_eq!(heard, json!({ "action": "decline" }), "{page}");
        let [warning] = &warnings[..] else {
            panic!("{warnings:?}");
        };
        let wanted = format!("server `asks` wanted the page `{page}` opened and heard a no");
        assert!(warning.starts_with(&wanted), "{warning}");
    }
    assert!(person.heard.lock().expect("no panic").is_empty());
}

#[tokio::test(start_paused = true)]
async fn hooks_are_asked_before_the_person_and_see_the_persons_answer() {
    let first = HookEvent::Elicitation;
    let last = HookEvent::ElicitationResult;
    let person = Person::named("octocat");
    let is = |name: &str| json!({ "action": "accept", "content": { "name": name } });
    // A hook that answers leaves nothing to the person.
    let answered = heard(vec![hook(first, Ok(accepts("robot")))], Some(&person)).await;
    assert_eq!(answered, is("robot"));
    assert!(person.heard.lock().expect("no panic").is_empty());
    // One without an opinion does.
    let answered = heard(vec![hook(first, Ok(HookReply::default()))], Some(&person)).await;
    assert_eq!(answered, is("octocat"));
    assert_eq!(person.heard.lock().expect("no panic").len(), 1);
    // The last word is a hook's.
    let answered = heard(vec![hook(last, Ok(accepts("masked")))], Some(&person)).await;
    assert_eq!(answered, is("masked"));
    let decline = json!({ "action": "decline" });
    for no in [Ok(HookReply::deny("not that")), Err("broken".to_owned())] {
        for event in [first, last] {
            let answered = heard(vec![hook(event, no.clone())], Some(&person)).await;
            assert_eq!(answered, decline, "{event:?}");
        }
    }
    // A no beats a yes, whoever says it first.
    let both = vec![
        hook(first, Ok(HookReply::deny("x"))),
        hook(first, Ok(accepts("robot"))),
    ];
    assert_eq!(heard(both, Some(&person)).await, decline);
}

#[tokio::test(start_paused = true)]
async fn a_host_without_a_person_offers_questions_only_where_a_hook_may_answer() {
    let first = HookEvent::Elicitation;
    let answered = heard(vec![hook(first, Ok(accepts("robot")))], None).await;
    assert_eq!(answered["content"]["name"], "robot");
    // Nobody has an opinion: the question is put away.
    let answered = heard(vec![hook(first, Ok(HookReply::default()))], None).await;
    assert_eq!(answered, json!({ "action": "cancel" }));
    // A field that does not fit the form is not sent.
    let wrong = HookReply {
        answer: Some(ElicitationAnswer::Accept(
            json!({ "name": 7 }).as_object().cloned(),
        )),
        ..HookReply::default()
    };
    let answered = heard(vec![hook(first, Ok(wrong))], None).await;
    assert_eq!(answered, json!({ "action": "cancel" }));
    // Without a hook for it the server was never told that it may ask.
    let answered = heard(Vec::new(), None).await;
    assert!(answered.is_null(), "{answered}");
}

#[tokio::test(start_paused = true)]
async fn a_function_of_the_program_guards_every_call() {
    let home = Home::new();
    let guard = LibraryHook::new(
        "guard",
        HookEvent::PreToolUse,
        "mcp__.*",
        |input| async move {
            let text = input
                .tool_input
                .and_then(|input| input.get("text").cloned());
            Ok(match text.as_ref().and_then(Value::as_str) {
                Some("no") => HookReply::deny("it says no"),
                _ => HookReply::default(),
            })
        },
    );
    let options = HostOptions {
        in_process: vec![(name("one"), legacy_server())],
        hooks: vec![guard.expect("a matcher")],
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({})), options);
    host.settled().await;
    assert_eq!(
        text_of(&echo(&host, "one", "yes").await.expect("it runs")),
        "yes"
    );
    match echo(&host, "one", "no").await {
        Err(CallError::Failed(_, CallFault::Refused(RefusedBy::Hook { title, reason, .. }))) => {
            assert_eq!((&*title, &*reason), ("guard", "it says no"));
        }
        other => panic!("{other:?}"),
    }
    host.shutdown().await;
}

/// Settings of the user's with these hooks.
fn write_hooks(home: &Home, hooks: &Value) {
    let directory = home.path().join("home/.config/toolway");
    std::fs::create_dir_all(&directory).expect("a directory");
    let settings = json!({ "hooks": hooks }).to_string();
    std::fs::write(directory.join("settings.json"), settings).expect("a file");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_asks_while_it_is_asked_ends_with_a_no() {
    let home = Home::new();
    write_hooks(
        &home,
        &json!({ "Elicitation": [{ "hooks": [
            { "type": "mcp_tool", "server": "asks", "tool": "ask", "input": { "text": "x" } },
        ] }] }),
    );
    let options = HostOptions {
        in_process: vec![(name("asks"), asking_server(who()))],
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({})), options);
    host.settled().await;
    let call = host.call(request("asks", "ask", ""), CallOptions::new(Consent::Typed));
    let outcome = call.await.expect("an answer");
    assert_eq!(text_of(&outcome), r#"{"action":"decline"}"#);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_answers_what_another_server_asks_and_a_reload_changes_who_does() {
    let home = Home::new();
    let answer = |word: &str| {
        let text = json!({ "action": "accept", "content": { "name": word } }).to_string();
        json!({ "Elicitation": [{ "matcher": "asks", "hooks": [
            { "type": "mcp_tool", "server": "one", "tool": "echo", "input": { "text": text } },
        ] }] })
    };
    write_hooks(&home, &answer("first"));
    let options = HostOptions {
        in_process: vec![
            (name("asks"), asking_server(who())),
            (name("one"), legacy_server()),
        ],
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({})), options);
    host.settled().await;
    for word in ["first", "second"] {
        write_hooks(&home, &answer(word));
        host.apply(home.plan(&json!({}))).await;
        let call = host.call(request("asks", "ask", ""), CallOptions::new(Consent::Typed));
        let heard = text_of(&call.await.expect("an answer"));
        let heard: Value = serde_json::from_str(&heard).expect("JSON");
        assert_eq!(heard["content"]["name"], word);
    }
    host.shutdown().await;
}

/// A server that answers nothing before it is let.
fn late_server(go: &Arc<Notify>) -> InProcessServer {
    let (go, inner) = (Arc::clone(go), legacy_server());
    Arc::new(move |end| {
        let (go, inner) = (Arc::clone(&go), Arc::clone(&inner));
        Box::pin(async move {
            go.notified().await;
            inner(end).await;
        })
    })
}

#[tokio::test(start_paused = true)]
async fn a_hook_waits_for_its_server_as_long_as_the_hook_may_take() {
    let home = Home::new();
    let no = json!({ "hookSpecificOutput": {
        "permissionDecision": "deny", "permissionDecisionReason": "asked in time",
    } });
    write_hooks(
        &home,
        &json!({ "PreToolUse": [{ "matcher": "mcp__one__.*", "hooks": [
            { "type": "mcp_tool", "server": "late", "tool": "echo",
              "input": { "text": no.to_string() }, "timeout": 5 },
        ] }] }),
    );
    let go = Arc::new(Notify::new());
    let options = HostOptions {
        in_process: vec![
            (name("one"), legacy_server()),
            (name("late"), late_server(&go)),
        ],
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({})), options);
    host.ready("one").await;
    let reason = async || match echo(&host, "one", "x").await {
        Err(CallError::Failed(_, CallFault::Refused(RefusedBy::Hook { reason, .. }))) => {
            reason.into_string()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(reason().await, "it did not end within 5s");
    let (reason, ()) = tokio::join!(reason(), async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        go.notify_one();
    });
    assert_eq!(reason, "asked in time");
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_hook_wakes_its_server_when_that_rests() {
    let home = Home::new();
    let no = json!({ "hookSpecificOutput": {
        "permissionDecision": "deny", "permissionDecisionReason": "woken",
    } });
    write_hooks(
        &home,
        &json!({ "PreToolUse": [{ "matcher": "mcp__one__.*", "hooks": [
            { "type": "mcp_tool", "server": "guard", "tool": "echo",
              "input": { "text": no.to_string() }, "timeout": 5 },
        ] }] }),
    );
    let options = HostOptions {
        in_process: vec![
            (name("one"), legacy_server()),
            (name("guard"), legacy_server()),
        ],
        rest_after: Some(Duration::from_mins(1)),
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({})), options);
    host.settled().await;
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_mins(2)).await;
        assert!(shown(&host, "guard").is_resting());
        match echo(&host, "one", "x").await {
            Err(CallError::Failed(_, CallFault::Refused(RefusedBy::Hook { reason, .. }))) => {
                assert_eq!(&*reason, "woken");
            }
            other => panic!("{other:?}"),
        }
    }
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_classifier_of_the_embedding_program_decides_in_mode_auto_alone() {
    let home = Home::new();
    let classifier = || {
        LibraryClassifier::new("texts", |input| async move {
            let decision = match input.tool_input["text"].as_str() {
                Some("fine") => HookDecision::Allow,
                Some("bad") => HookDecision::Deny,
                Some("slow") => {
                    tokio::time::sleep(Duration::from_mins(1)).await;
                    HookDecision::Allow
                }
                Some("panic") => panic!("as the test wants it"),
                _ => return Err("no idea".to_owned()),
            };
            Ok(Classification {
                decision,
                reason: Some(format!("it says {}", input.tool_input["text"])),
            })
        })
    };
    for mode in ["auto", "default"] {
        let host = Host::start(
            ruled(&home, &json!({ "defaultMode": mode })),
            HostOptions {
                in_process: vec![(name("asks"), asking_server(who()))],
                classifier: Some(classifier()),
                ..home.options()
            },
        );
        host.settled().await;
        for text in ["fine", "bad", "slow", "panic", "other"] {
            let options = CallOptions::new(Consent::Prompt);
            let outcome = host.call(request("asks", "echo", text), options).await;
            let by = match outcome {
                Ok(outcome) => text_of(&outcome),
                Err(CallError::Failed(_, CallFault::Refused(by))) => by.to_string(),
                Err(error) => panic!("{error}"),
            };
            let expected = match (mode, text) {
                ("default", _) => "because a person must be asked and there is none",
                (_, "fine") => "fine",
                (_, "bad") => "by the classifier `texts` in (program): it says \"bad\"",
                (_, "slow") => {
                    "because the classifier `texts` in (program) failed and there is nobody to \
                     ask: it did not end within 10s"
                }
                (_, "panic") => {
                    "because the classifier `texts` in (program) failed and there is nobody to \
                     ask: it panicked"
                }
                _ => {
                    "because the classifier `texts` in (program) failed and there is nobody to \
                     ask: no idea"
                }
            };
            assert_eq!(by, expected, "{mode} {text}");
        }
        host.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_is_told_who_calls_and_whose_call_a_question_is_about() {
    let told: Arc<Mutex<Vec<(&str, HookCaller)>>> = Arc::default();
    let listener = |event| {
        let told = Arc::clone(&told);
        let hook = LibraryHook::new("listener", event, "", move |input| {
            let caller = input.caller.expect("a caller");
            let mut told = told.lock().expect("no panic");
            told.push((input.hook_event_name, caller));
            std::future::ready(Ok(HookReply::default()))
        });
        hook.expect("a matcher")
    };
    let events = [
        HookEvent::PreToolUse,
        HookEvent::PostToolUse,
        HookEvent::Elicitation,
        HookEvent::ElicitationResult,
    ];
    let home = Home::new();
    let person = || Some(Person::named("octocat") as Arc<dyn ClientHandler>);
    let options = HostOptions {
        in_process: vec![(name("asks"), asking_server(who()))],
        hooks: events.map(listener).into(),
        client_handler: person(),
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({})), options);
    host.settled().await;
    let caller = Caller {
        principal: "ada@example.com".into(),
        ..Caller::new(CallerKind::Client, "editor")
    };
    let options = AttachOptions {
        client_handler: person(),
        ..AttachOptions::default()
    };
    let editor = host.attach(caller, options);
    for (caller, id, kind, principal) in [
        (&editor, "editor", "client", "ada@example.com"),
        (&*host, "owner", "person", "owner"),
    ] {
        let options = CallOptions::new(Consent::Typed);
        let outcome = caller.call(request("asks", "ask", "x"), options).await;
        outcome.expect("an answer");
        let expected = HookCaller {
            id: id.to_owned(),
            kind,
            principal: principal.to_owned(),
            shown: id.to_owned(),
        };
        let mut told = std::mem::take(&mut *told.lock().expect("no panic"));
        told.sort_by_key(|(event, _)| *event);
        let names = [
            "Elicitation",
            "ElicitationResult",
            "PostToolUse",
            "PreToolUse",
        ];
        assert_eq!(told, names.map(|event| (event, expected.clone())));
    }
    drop(editor);
    host.shutdown().await;
}
