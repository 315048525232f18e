//! Questions as data: the same one for every front-end, answered once, by whom it may concern.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;
use toolway::types::ServerName;
use toolway::{
    AnswerError, Askee, AttachOptions, Attached, CallError, CallFault, CallOptions, Caller,
    CallerKind, ClientHandler, ClientOffers, Consent, Elicitation, ElicitationAnswer, Host,
    HostEvent, HostOptions, InProcessServer, KeepIn, Lasting, OpenQuestion, PermissionAnswer,
    PermissionQuestion, Prompter, QuestionAnswer, QuestionEnd, QuestionId, QuestionKind, RefusedBy,
    RpcError, RuleKeeper, RuleReach, ToolOutcome,
};

use crate::support::*;

fn question(text: &str) -> Value {
    match text {
        "page" => json!({ "mode": "url", "message": "pay", "url": "https://example.com/pay",
            "elicitationId": "e" }),
        _ => json!({ "mode": "form", "message": "a word, please", "requestedSchema": {
            "type": "object", "properties": { "word": { "type": "string" } },
            "required": ["word"] } }),
    }
}

/// A modern server that wants a `form` filled in or a `page` visited, and repeats what it heard.
fn modern_asker() -> InProcessServer {
    scripted(|message, _| {
        let params = &message["params"];
        let text = params["arguments"]["text"].as_str().unwrap_or_default();
        if message["method"] != "tools/call" || text.starts_with("plain") {
            return modern(message);
        }
        match params.get("inputResponses") {
            None => Reply::Result(json!({
                "resultType": "input_required",
                "inputRequests": {
                    "k": { "method": "elicitation/create", "params": question(text) },
                },
            })),
            Some(heard) => Reply::Result(json!({
                "content": [{ "type": "text", "text": heard["k"].to_string() }],
            })),
        }
    })
}

/// The same in the legacy era: it asks with a request.
fn legacy_asker() -> InProcessServer {
    let call: Arc<Mutex<Value>> = Arc::default();
    scripted(move |message, speaker| {
        if message["method"] == "tools/call" {
            *call.lock().expect("no panic") = message["id"].clone();
            let text = message["params"]["arguments"]["text"].as_str();
            speaker.say(&json!({
                "jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
                "params": question(text.unwrap_or_default()),
            }));
            return Reply::Silence;
        }
        if message["id"] == "q" {
            let text = message["result"].to_string();
            let result = json!({ "content": [{ "type": "text", "text": text }] });
            let id = call.lock().expect("no panic").clone();
            speaker.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
            return Reply::Silence;
        }
        legacy(message)
    })
}

async fn host_with(home: &Home, server: InProcessServer, options: HostOptions) -> Host {
    let options = HostOptions {
        in_process: vec![(name("asks"), server)],
        ..options
    };
    let host = Host::start(home.plan(&json!({})), options);
    host.settled().await;
    host
}

async fn host(home: &Home, server: InProcessServer) -> Host {
    let options = HostOptions {
        open_questions: true,
        ..home.options()
    };
    host_with(home, server, options).await
}

/// A caller whose questions stand, to be answered from elsewhere.
fn open(host: &Host, name: &str) -> Attached {
    let options = AttachOptions {
        open_questions: true,
        ..AttachOptions::default()
    };
    host.attach(Caller::new(CallerKind::Agent, name), options)
}

async fn call(caller: &Attached, text: &str, consent: Consent) -> Result<ToolOutcome, CallError> {
    let options = CallOptions::new(consent);
    caller.call(request("asks", "echo", text), options).await
}

/// The only open question that a caller sees, as soon as there is one.
async fn asked(caller: &Attached) -> Arc<OpenQuestion> {
    let mut watch = caller.watch_questions();
    loop {
        if let [question] = watch.shown() {
            return Arc::clone(question);
        }
        watch.changed().await;
    }
}

fn yes() -> QuestionAnswer {
    QuestionAnswer::Permission(PermissionAnswer::Yes)
}

fn fields(fields: &Value) -> QuestionAnswer {
    let fields = fields.as_object().cloned();
    QuestionAnswer::Elicitation(ElicitationAnswer::Accept(fields))
}

fn refusal(outcome: Result<ToolOutcome, CallError>) -> RefusedBy {
    match outcome {
        Err(CallError::Failed(_, CallFault::Refused(by))) => by,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_is_answered_once_and_the_second_hears_that_it_was() {
    let home = Home::new();
    let host = host(&home, modern_asker()).await;
    let ada = open(&host, "ada");
    // Equal in everything but who it is.
    let other = open(&host, "ada");
    let person = async {
        let question = asked(&ada).await;
        let QuestionKind::Permission(permission) = &question.kind else {
            panic!("{question:?}");
        };
        assert_eq!(permission.as_question().arguments["text"], "plain");
        assert_eq!(permission.key.tool, "echo");
        assert_eq!(question.server, name("asks"));
        assert_eq!(question.tool.as_ref(), Some(&permission.key));
        assert_eq!(&*question.caller.id, "ada");
        let stands = question.expires_at.duration_since(question.asked_at);
        assert_eq!(stands.expect("later"), Duration::from_mins(10));
        // It stands in the snapshot of whoever may answer it, and in no other.
        let seen = |of: &Attached| (of.questions().len(), of.snapshot().questions.len());
        assert_eq!(
            [seen(&ada), seen(&host), seen(&other)],
            [(1, 1), (1, 1), (0, 0)]
        );
        // What is watched is shared by many, so no question stands there.
        for watched in [host.watch(), other.watch()] {
            assert!(watched.borrow().questions.is_empty());
        }
        let id = &question.id;
        assert_eq!(
            other.answer(id, yes()),
            Err(AnswerError::NotYours(id.clone()))
        );
        assert_eq!(ada.answer(id, yes()), Ok(()));
        let again = [ada.answer(id, yes()), host.answer(id, yes())];
        assert_eq!(
            again,
            [0, 1].map(|_| Err(AnswerError::AlreadyAnswered(id.clone())))
        );
        let stranger = other.answer(id, yes());
        assert_eq!(stranger, Err(AnswerError::NotYours(id.clone())));
        let made_up = QuestionId::new("00000000000000000000000000000000");
        assert_eq!(
            ada.answer(&made_up, yes()),
            Err(AnswerError::Unknown(made_up))
        );
    };
    let (outcome, ()) = tokio::join!(call(&ada, "plain", Consent::Prompt), person);
    assert_eq!(text_of(&outcome.expect("permitted")), "plain");
    assert!(host.questions().is_empty() && host.snapshot().questions.is_empty());
    // The owner may answer as well.
    let owner = async {
        let question = asked(&host).await;
        let no = QuestionAnswer::Permission(PermissionAnswer::NoBecause("not now".to_owned()));
        assert_eq!(host.answer(&question.id, no), Ok(()));
    };
    let (outcome, ()) = tokio::join!(call(&ada, "plain", Consent::Prompt), owner);
    let by = refusal(outcome).to_string();
    assert_eq!(by, "by the person asked: not now");
    drop((ada, other));
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_form_is_for_the_caller_that_caused_it_and_takes_only_what_fits() {
    for server in [modern_asker(), legacy_asker()] {
        let home = Home::new();
        let host = host(&home, server).await;
        let ada = open(&host, "ada");
        let person = async {
            let question = asked(&ada).await;
            let QuestionKind::Form { message, schema } = &question.kind else {
                panic!("{question:?}");
            };
            assert_eq!(message.to_string(), "a word, please");
            assert!(schema.get().contains("word"));
            assert_eq!(question.tool.as_ref().map(|it| &*it.tool), Some("echo"));
            let id = &question.id;
            // What a server asks is nobody else's, not even the owner's.
            assert!(host.questions().is_empty() && host.snapshot().questions.is_empty());
            let right = fields(&json!({ "word": "yes" }));
            assert_eq!(
                host.answer(id, right.clone()),
                Err(AnswerError::NotYours(id.clone()))
            );
            for unfit in [fields(&json!({ "word": 1 })), fields(&json!({})), yes()] {
                let refused = ada.answer(id, unfit).expect_err("it does not fit");
                assert!(matches!(refused, AnswerError::Unfit { .. }), "{refused}");
                assert_eq!(ada.questions().len(), 1, "it still stands");
            }
            assert_eq!(ada.answer(id, right), Ok(()));
        };
        let (outcome, ()) = tokio::join!(call(&ada, "form", Consent::Typed), person);
        let heard = text_of(&outcome.expect("an answer"));
        assert!(heard.contains(r#""word":"yes""#), "{heard}");
        // The owner's own is the owner's.
        let owner = async {
            let question = asked(&host).await;
            assert!(ada.questions().is_empty());
            let declined = QuestionAnswer::Elicitation(ElicitationAnswer::Decline);
            assert_eq!(host.answer(&question.id, declined), Ok(()));
        };
        let (outcome, ()) = tokio::join!(call(&host, "form", Consent::Typed), owner);
        assert!(text_of(&outcome.expect("an answer")).contains("decline"));
        drop(ada);
        host.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_is_agreed_to_from_elsewhere() {
    for server in [modern_asker(), legacy_asker()] {
        let home = Home::new();
        let host = host(&home, server).await;
        let ada = open(&host, "ada");
        let person = async {
            let question = asked(&ada).await;
            let QuestionKind::Page { message, url } = &question.kind else {
                panic!("{question:?}");
            };
            assert_eq!(
                (message.to_string().as_str(), url.as_str()),
                ("pay", "https://example.com/pay")
            );
            let unfit = ada.answer(&question.id, fields(&json!({ "word": "x" })));
            assert!(matches!(unfit, Err(AnswerError::Unfit { .. })));
            let agreed = QuestionAnswer::Elicitation(ElicitationAnswer::Accept(None));
            assert_eq!(ada.answer(&question.id, agreed), Ok(()));
        };
        let (outcome, ()) = tokio::join!(call(&ada, "page", Consent::Typed), person);
        let heard = text_of(&outcome.expect("an answer"));
        assert!(heard.contains(r#""action":"accept""#), "{heard}");
        drop(ada);
        host.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_ends_after_ten_minutes() {
    let home = Home::new();
    let host = host(&home, modern_asker()).await;
    let ada = open(&host, "ada");
    let begun = Instant::now();
    let by = refusal(call(&ada, "plain", Consent::Prompt).await);
    assert_eq!(begun.elapsed().as_secs(), 600);
    assert_eq!(
        by.to_string(),
        "because nobody answered the question whether it may run"
    );
    let outcome = call(&ada, "form", Consent::Typed).await;
    assert_eq!(begun.elapsed().as_secs(), 1200);
    assert!(text_of(&outcome.expect("an answer")).contains("cancel"));
    assert!(ada.questions().is_empty());
    drop(ada);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_question_goes_with_its_call_and_with_its_caller() {
    for (server, text, consent) in [
        (modern_asker(), "plain", Consent::Prompt),
        (modern_asker(), "form", Consent::Typed),
        (legacy_asker(), "form", Consent::Typed),
    ] {
        let home = Home::new();
        let host = host(&home, server).await;
        let mut events = host.subscribe();
        let mut closed = async || loop {
            if let HostEvent::QuestionClosed { id, end, .. } = events.recv().await.expect("events")
            {
                return (id, end);
            }
        };
        let ada = open(&host, "ada");
        let options = || CallOptions::new(consent);
        let started = ada.start_call(request("asks", "echo", text), options());
        let question = asked(&ada).await;
        assert!(ada.cancel(started.expect("room").id));
        assert_eq!(
            closed().await,
            (question.id.clone(), QuestionEnd::Withdrawn)
        );
        assert!(ada.questions().is_empty());
        let late = ada.answer(&question.id, yes());
        assert_eq!(late, Err(AnswerError::Ended(question.id.clone())));
        let started = ada.start_call(request("asks", "echo", text), options());
        started.expect("room");
        let question = asked(&ada).await;
        drop(ada);
        assert_eq!(
            closed().await,
            (question.id.clone(), QuestionEnd::Withdrawn)
        );
        host.shutdown().await;
    }
}

/// Asks a person who never says anything, or yes at once, and counts the dialogs that are shown.
#[derive(Default)]
struct Dialog {
    shown: Arc<AtomicUsize>,
    says: Option<PermissionAnswer>,
}

struct Shown(Arc<AtomicUsize>);

impl Drop for Shown {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Dialog {
    async fn show(&self) {
        self.shown.fetch_add(1, Ordering::SeqCst);
        let _shown = Shown(Arc::clone(&self.shown));
        if self.says.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

impl Prompter for Dialog {
    fn ask<'a>(&'a self, _: &'a PermissionQuestion<'a>) -> BoxFuture<'a, PermissionAnswer> {
        Box::pin(async {
            self.show().await;
            self.says.clone().expect("an answer")
        })
    }
}

impl ClientHandler for Dialog {
    fn offers(&self) -> ClientOffers {
        ClientOffers {
            roots: false,
            form: true,
            url: true,
            sampling: None,
        }
    }

    fn elicit<'a>(&'a self, _: &'a ServerName, _: Elicitation) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async {
            self.show().await;
            ElicitationAnswer::Decline
        })
    }

    fn sample<'a>(
        &'a self,
        _: &'a ServerName,
        _: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, RpcError>> {
        Box::pin(std::future::ready(Err(RpcError::new(-1, "no model"))))
    }
}

#[tokio::test(start_paused = true)]
async fn a_dialog_goes_away_when_its_question_is_answered_elsewhere() {
    let home = Home::new();
    let dialog = Arc::new(Dialog::default());
    let options = HostOptions {
        prompter: Some(Arc::clone(&dialog) as Arc<dyn Prompter>),
        client_handler: Some(Arc::clone(&dialog) as Arc<dyn ClientHandler>),
        ..home.options()
    };
    let host = host_with(&home, modern_asker(), options).await;
    for (text, consent, answer) in [
        ("plain", Consent::Prompt, yes()),
        ("form", Consent::Typed, fields(&json!({ "word": "w" }))),
        (
            "page",
            Consent::Typed,
            QuestionAnswer::Elicitation(ElicitationAnswer::Accept(None)),
        ),
    ] {
        let page = async {
            let question = asked(&host).await;
            // The dialog shows it as well.
            while dialog.shown.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
            assert_eq!(host.answer(&question.id, answer), Ok(()));
        };
        let (outcome, ()) = tokio::join!(call(&host, text, consent), page);
        outcome.expect("an answer");
        assert_eq!(dialog.shown.load(Ordering::SeqCst), 0, "{text}");
    }
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_dialog_answers_was_answered() {
    let home = Home::new();
    let dialog = Arc::new(Dialog {
        says: Some(PermissionAnswer::Yes),
        ..Dialog::default()
    });
    let options = HostOptions {
        prompter: Some(Arc::clone(&dialog) as Arc<dyn Prompter>),
        ..home.options()
    };
    let host = host_with(&home, modern_asker(), options).await;
    let mut events = host.subscribe();
    let outcome = call(&host, "plain", Consent::Prompt).await;
    outcome.expect("permitted");
    let mut told = Vec::new();
    while let Ok(event) = events.try_recv() {
        match event {
            HostEvent::QuestionOpened {
                id,
                kind,
                server,
                caller,
            } => told.push((id, format!("{kind} {server} {caller}"))),
            HostEvent::QuestionClosed { id, end, .. } => told.push((id, format!("{end:?}"))),
            _ => {}
        }
    }
    let words: Vec<_> = told.iter().map(|(_, word)| word.as_str()).collect();
    assert_eq!(words, ["permission asks owner", "Answered"]);
    let id = told[0].0.clone();
    assert_eq!(
        host.answer(&id, yes()),
        Err(AnswerError::AlreadyAnswered(id))
    );
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_owner_is_asked_for_permission_in_the_place_of_a_caller_that_cannot_be() {
    for owner_answers in [false, true] {
        let home = Home::new();
        let options = HostOptions {
            open_questions: true,
            answers_for_callers: owner_answers,
            ..home.options()
        };
        let host = host_with(&home, modern_asker(), options).await;
        let caller = Caller::new(CallerKind::Client, "mute");
        let mute = host.attach(caller, AttachOptions::default());
        let begun = Instant::now();
        if owner_answers {
            let owner = async {
                let question = asked(&host).await;
                assert_eq!(&*question.caller.shown, "mute");
                // Nobody says yes to their own wish.
                assert!(mute.questions().is_empty());
                let own = mute.answer(&question.id, yes());
                assert_eq!(own, Err(AnswerError::NotYours(question.id.clone())));
                assert_eq!(host.answer(&question.id, yes()), Ok(()));
            };
            let (outcome, ()) = tokio::join!(call(&mute, "plain", Consent::Prompt), owner);
            outcome.expect("permitted");
        } else {
            let by = refusal(call(&mute, "plain", Consent::Prompt).await);
            assert_eq!(by, RefusedBy::NobodyToAsk { rule: None });
        }
        // What a server asks is not the owner's to answer.
        let error = call(&mute, "form", Consent::Typed).await;
        let error = error.expect_err("nobody answers");
        assert!(
            matches!(error, CallError::Failed(_, CallFault::InputRefused(_))),
            "{error}"
        );
        assert_eq!(begun.elapsed(), Duration::ZERO, "at once");
        drop(mute);
        host.shutdown().await;
    }
}

/// Keeps rules in a list.
#[derive(Default)]
struct KeptRules(Mutex<Vec<String>>);

impl RuleKeeper for KeptRules {
    fn keep<'a>(&'a self, rule: &'a str, _: KeepIn) -> BoxFuture<'a, Result<(), String>> {
        self.0.lock().expect("no panic").push(rule.to_owned());
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A client's own person, who says always to everything.
struct Eager;

impl Prompter for Eager {
    fn ask<'a>(&'a self, question: &'a PermissionQuestion<'a>) -> BoxFuture<'a, PermissionAnswer> {
        assert_eq!(question.lasting, Lasting::Session, "no more is offered");
        Box::pin(std::future::ready(always()))
    }
}

fn always() -> PermissionAnswer {
    PermissionAnswer::Always {
        reach: RuleReach::Tool,
        keep_in: KeepIn::User,
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_owner_makes_a_rule_of_a_callers_question() {
    let home = Home::new();
    let kept = Arc::<KeptRules>::default();
    let options = HostOptions {
        open_questions: true,
        answers_for_callers: true,
        rule_keeper: Some(Arc::clone(&kept) as _),
        ..home.options()
    };
    let host = host_with(&home, modern_asker(), options).await;
    let caller = || Caller::new(CallerKind::Client, "client");
    let eager = AttachOptions {
        prompter: Some(Arc::new(Eager)),
        ..AttachOptions::default()
    };
    let eager = host.attach(caller(), eager);
    let outcome = call(&eager, "plain", Consent::Prompt).await;
    outcome.expect("its own person says so");
    assert_eq!(*kept.0.lock().expect("no panic"), Vec::<String>::new());
    let mute = host.attach(caller(), AttachOptions::default());
    let owner = async {
        let question = asked(&host).await;
        assert_eq!(question.put_to, Askee::Owner);
        let QuestionKind::Permission(permission) = &question.kind else {
            panic!("{question:?}");
        };
        assert!(matches!(permission.lasting, Lasting::Always { .. }));
        let beginning = &question.id.as_str()[..6];
        assert_eq!(
            host.question_ids(beginning),
            std::slice::from_ref(&question.id)
        );
        assert!(mute.question_ids(beginning).is_empty());
        let answer = QuestionAnswer::Permission(always());
        assert_eq!(host.answer(&question.id, answer), Ok(()));
        // What was answered is still known by its beginning.
        assert_eq!(
            host.question_ids(beginning),
            std::slice::from_ref(&question.id)
        );
    };
    let (outcome, ()) = tokio::join!(call(&mute, "plain", Consent::Prompt), owner);
    outcome.expect("permitted");
    assert_eq!(*kept.0.lock().expect("no panic"), ["mcp__asks__echo"]);
    drop((eager, mute));
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_an_owner_who_does_not_come_is_refused() {
    let home = Home::new();
    let options = HostOptions {
        open_questions: true,
        answers_for_callers: true,
        ..home.options()
    };
    let host = host_with(&home, modern_asker(), options).await;
    let mute = host.attach(
        Caller::new(CallerKind::Client, "mute"),
        AttachOptions::default(),
    );
    let begun = Instant::now();
    let by = refusal(call(&mute, "plain", Consent::Prompt).await);
    assert_eq!(by, RefusedBy::NobodyAnswered);
    assert_eq!(begun.elapsed(), Duration::from_mins(10));
    drop(mute);
    host.shutdown().await;
}

/// A client's person who lets nobody wait.
struct Compliant;

impl Prompter for Compliant {
    fn ask<'a>(&'a self, _: &'a PermissionQuestion<'a>) -> BoxFuture<'a, PermissionAnswer> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            PermissionAnswer::Yes
        })
    }
}

#[tokio::test(start_paused = true)]
async fn sec_34_a_callers_yes_never_answers_what_only_the_owner_is_asked() {
    let home = Home::new();
    let options = HostOptions {
        open_questions: true,
        answers_for_callers: true,
        ..home.options()
    };
    let host = host_with(&home, modern_asker(), options).await;
    let both = host.attach(
        Caller::new(CallerKind::Client, "both"),
        AttachOptions::default(),
    );
    let wish = || request("asks", "echo", "plain");
    // The same call twice at once: with one the client can be asked, with the other it cannot.
    let mut shown = CallOptions::new(Consent::Prompt);
    shown.asked.prompter = Some(Arc::new(Compliant));
    let hidden = CallOptions::new(Consent::Prompt);
    let owner = async {
        let mut watch = host.watch_questions();
        let is_owners = |it: &&Arc<OpenQuestion>| it.put_to == Askee::Owner;
        let question = loop {
            if let Some(question) = watch.shown().iter().find(is_owners) {
                break Arc::clone(question);
            }
            watch.changed().await;
        };
        tokio::time::sleep(Duration::from_secs(5)).await;
        let no = QuestionAnswer::Permission(PermissionAnswer::No);
        assert_eq!(host.answer(&question.id, no), Ok(()), "it still stood");
    };
    let (asked, unasked, ()) =
        tokio::join!(both.call(wish(), shown), both.call(wish(), hidden), owner);
    asked.expect("its own person said yes");
    let by = refusal(unasked);
    assert_eq!(by, RefusedBy::Person { reason: None });
    drop(both);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_has_a_bounded_number_of_questions_that_nobody_can_guess() {
    const CALLS: usize = 100;
    let home = Home::new();
    let host = host(&home, modern_asker()).await;
    let ada = open(&host, "ada");
    let options = || CallOptions::new(Consent::Prompt);
    for number in 0..CALLS {
        let wish = request("asks", "echo", &format!("plain {number}"));
        ada.start_call(wish, options()).expect("room");
    }
    let mut watch = ada.watch_questions();
    let mut seen = std::collections::HashSet::new();
    while seen.len() < CALLS {
        let shown = watch.shown().to_vec();
        assert!(shown.len() <= 32, "{}", shown.len());
        for question in shown {
            assert_eq!(question.id.as_str().len(), 32, "128 bits");
            let no = QuestionAnswer::Permission(PermissionAnswer::No);
            if seen.insert(question.id.clone()) {
                ada.answer(&question.id, no).expect("it stands");
            }
        }
        if seen.len() < CALLS {
            watch.changed().await;
        }
    }
    drop(ada);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_yes_for_the_session_answers_the_questions_beside_it() {
    let home = Home::new();
    let host = host(&home, modern_asker()).await;
    let person = async {
        let mut watch = host.watch_questions();
        while watch.shown().len() < 2 {
            watch.changed().await;
        }
        let session = QuestionAnswer::Permission(PermissionAnswer::Session);
        assert_eq!(host.answer(&watch.shown()[1].id, session), Ok(()));
    };
    let (first, second, ()) = tokio::join!(
        call(&host, "plain 1", Consent::Prompt),
        call(&host, "plain 2", Consent::Prompt),
        person
    );
    assert_eq!(text_of(&first.expect("permitted")), "plain 1");
    assert_eq!(text_of(&second.expect("permitted")), "plain 2");
    assert!(host.questions().is_empty());
    host.shutdown().await;
}
