//! A login that has to reach further in the middle of a request, and whoever agrees to it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use toolway::auth::{AuthOptions, Invitation, LoginOptions, NotWidened};
use toolway::config::HookEvent;
use toolway::types::ServerName;
use toolway::{
    CallError, CallOptions, ClientHandler, ClientOffers, Consent, Elicitation, ElicitationAnswer,
    HookReply, Host, HostEvent, HostOptions, LibraryHook, LoginChange, MoreRights, QuestionAnswer,
    QuestionKind, ToolRequest, ToolTarget,
};
use toolway_auth::login::LoginMethod;
use toolway_auth::vault::{StorageChoice, Vault, VaultOptions};
use toolway_testkit::authority::{Authority, AuthoritySettings, KnownClient, RequestedParty};
use toolway_testkit::browser::browse;
use toolway_testkit::marked;
use toolway_testkit::patience::eventually;
use toolway_types::{ConnectionState, Secret};
use toolway_wire::RpcError;

use crate::support::*;

/// What the person does with the page of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    /// Goes there and logs in.
    Grants,
    /// Thinks for two minutes, and then the same.
    Dawdles,
    /// Waits until told, and then the same.
    Waits,
    Declines,
    /// Agrees, and goes nowhere.
    Nothing,
}

/// A person who is asked to log in on a page.
struct Person {
    does: Does,
    /// How many questions are open.
    open: AtomicUsize,
    go: Notify,
    asked: Mutex<Vec<(String, String, MoreRights)>>,
}

impl Person {
    fn who(does: Does) -> Arc<Self> {
        Arc::new(Self {
            does,
            open: AtomicUsize::new(0),
            go: Notify::new(),
            asked: Mutex::default(),
        })
    }

    fn asked(&self) -> Vec<(String, String, MoreRights)> {
        self.asked.lock().expect("no panic").clone()
    }

    fn times(&self) -> usize {
        self.asked().len()
    }
}

/// A question is open until this is dropped.
struct Open<'a>(&'a AtomicUsize);

impl<'a> Open<'a> {
    fn of(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ClientHandler for Person {
    fn offers(&self) -> ClientOffers {
        ClientOffers {
            roots: false,
            form: false,
            url: true,
            sampling: None,
        }
    }

    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        request: Elicitation,
    ) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async move {
            let Elicitation::Url {
                message,
                url,
                rights: Some(rights),
                ..
            } = request
            else {
                panic!("{request:?}");
            };
            let heard = (server.as_str().to_owned(), message.to_string(), *rights);
            self.asked.lock().expect("no panic").push(heard);
            let _open = Open::of(&self.open);
            match self.does {
                Does::Grants => {}
                Does::Waits => self.go.notified().await,
                Does::Dawdles => {
                    tokio::time::pause();
                    tokio::time::advance(Duration::from_mins(2)).await;
                    tokio::time::resume();
                }
                Does::Declines => return ElicitationAnswer::Decline,
                Does::Nothing => return ElicitationAnswer::Accept(None),
            }
            // On a thread of its own: the page leads back to a callback that waits for it.
            std::thread::spawn(move || browse(url.as_str()));
            ElicitationAnswer::Accept(None)
        })
    }

    fn sample<'a>(
        &'a self,
        _: &'a ServerName,
        _: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, RpcError>> {
        Box::pin(async { Err(RpcError::new(-32601, "no model")) })
    }
}

async fn until(is_so: impl Fn() -> bool) {
    eventually(|| is_so().then_some(()).ok_or_else(|| "not so".to_owned())).await;
}

/// Tools that take one more scope each.
fn tools(names: &[&str]) -> AuthoritySettings {
    let scope = |name: &&str| ((*name).to_owned(), vec![format!("{name}:use")]);
    let more = names.iter().map(|name| format!("{name}:use"));
    let known = ["read".to_owned(), "offline_access".to_owned()];
    AuthoritySettings {
        challenge_scopes: vec!["read".to_owned()],
        scopes: known.into_iter().chain(more).collect(),
        tool_scopes: names.iter().map(scope).collect(),
        ..AuthoritySettings::default()
    }
}

struct Scene {
    home: Home,
    authority: Authority,
}

impl Scene {
    fn new(settings: AuthoritySettings) -> Self {
        Self {
            home: Home::new(),
            authority: Authority::start(settings),
        }
    }

    fn options(&self) -> HostOptions {
        let vault = Vault::open(VaultOptions {
            storage: StorageChoice::File,
            ..VaultOptions::new(self.home.path().join("vault"))
        });
        HostOptions {
            auth: AuthOptions {
                vault: Some(vault),
                ..AuthOptions::default()
            },
            ..self.home.options()
        }
    }

    /// A host whose person has logged in to `shop`, as far as it wanted then.
    async fn host(&self, options: HostOptions) -> Host {
        let plan = self.home.plan(&json!({ "shop": self.authority.entry() }));
        let host = Host::start(plan, options);
        host.settled().await;
        let login = host.login("shop", LoginOptions::default()).await;
        let mut login = login.expect("begun");
        let Some(Invitation::Page { url, .. }) = login.invitation().await else {
            panic!("no page");
        };
        let visited = tokio::task::spawn_blocking(move || browse(url.as_str()));
        visited.await.expect("no panic");
        login.outcome().await.expect("ours").expect("logged in");
        let state = host.reconnect("shop").await.expect("known");
        assert!(matches!(state, ConnectionState::Connected(_)), "{state:?}");
        host
    }

    async fn with(&self, person: &Arc<Person>) -> Host {
        let options = HostOptions {
            client_handler: Some(Arc::clone(person) as Arc<dyn ClientHandler>),
            ..self.options()
        };
        self.host(options).await
    }

    /// How often somebody was sent to the authorization server.
    fn windows(&self) -> usize {
        self.authority
            .seen_at(RequestedParty::Issuer, "/authorize")
            .len()
    }
}

async fn call_with(host: &Host, tool: &str, options: CallOptions) -> Result<String, CallError> {
    let request = ToolRequest::new(
        ToolTarget::Exposed(format!("mcp__shop__{tool}")),
        Map::new(),
    );
    let answer = host.call(request, options).await?;
    Ok(text_of(&answer))
}

async fn call(host: &Host, tool: &str) -> Result<String, CallError> {
    call_with(host, tool, CallOptions::new(Consent::Typed)).await
}

fn not_widened(outcome: Result<String, CallError>) -> (Vec<String>, Option<NotWidened>) {
    match outcome {
        Err(CallError::NeedsAuth {
            scopes,
            not_widened,
            ..
        }) => (scopes, not_widened),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_call_that_falls_short_asks_once_and_is_sent_again() {
    let scene = Scene::new(tools(&["post"]));
    let person = Person::who(Does::Grants);
    let host = scene.with(&person).await;
    let answer = call(&host, "post").await.expect("granted");
    assert!(
        answer.contains("read") && answer.contains("post:use"),
        "{answer}"
    );
    let asked = person.asked();
    let [(server, message, rights)] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert_eq!(server, "shop");
    assert!(rights.has.contains(&"read".to_owned()), "{rights:?}");
    assert_eq!(rights.wants, ["post:use"]);
    for word in ["`shop`", "read", "`post:use`"] {
        assert!(message.contains(word), "no {word} in {message}");
    }
    call(&host, "post").await.expect("it reaches now");
    assert_eq!((person.times(), scene.windows()), (1, 2));
    assert_eq!(scene.authority.report().forbidden, 1);
    host.shutdown().await;
}

#[tokio::test]
async fn a_login_that_a_call_wants_is_agreed_to_from_elsewhere_and_told_of() {
    let scene = Scene::new(tools(&["post"]));
    let options = HostOptions {
        open_questions: true,
        ..scene.options()
    };
    let host = scene.host(options).await;
    let mut events = host.subscribe();
    let page = async {
        let mut watch = host.watch_questions();
        while watch.shown().is_empty() {
            watch.changed().await;
        }
        let question = Arc::clone(&watch.shown()[0]);
        let QuestionKind::Login { url, rights, .. } = &question.kind else {
            panic!("{question:?}");
        };
        assert_eq!(rights.wants, ["post:use"]);
        assert_eq!(question.tool.as_ref().map(|it| &*it.tool), Some("post"));
        let agreed = QuestionAnswer::Elicitation(ElicitationAnswer::Accept(None));
        assert_eq!(host.answer(&question.id, agreed), Ok(()));
        let url = url.clone();
        std::thread::spawn(move || browse(url.as_str()));
    };
    let (answer, ()) = tokio::join!(call(&host, "post"), page);
    assert!(answer.expect("granted").contains("post:use"));
    host.logout("shop", None).await.expect("logged out");
    host.ready("shop").await;
    let mut told = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let HostEvent::LoginChanged { server, login } = event {
            told.push((server.as_str().to_owned(), login));
        }
    }
    let changes = [
        LoginChange::LoggedIn,
        LoginChange::LoggedOut,
        LoginChange::Wanted,
    ];
    assert_eq!(told, changes.map(|change| ("shop".to_owned(), change)));
    host.shutdown().await;
}

#[tokio::test]
async fn who_declines_is_not_asked_again_and_the_error_says_what_is_missing() {
    let scene = Scene::new(tools(&["post"]));
    let person = Person::who(Does::Declines);
    let host = scene.with(&person).await;
    let (scopes, why) = not_widened(call(&host, "post").await);
    assert_eq!(scopes, ["post:use"]);
    assert_eq!(why, Some(NotWidened::Declined));
    let (scopes, why) = not_widened(call(&host, "post").await);
    assert_eq!((scopes, why), (vec!["post:use".to_owned()], None));
    assert_eq!((person.times(), scene.windows()), (1, 1));
    facts(&host, "shop");
    host.shutdown().await;
}

#[tokio::test]
async fn without_anybody_to_ask_the_error_is_what_it_was() {
    let scene = Scene::new(tools(&["post"]));
    let host = scene.host(scene.options()).await;
    let (scopes, why) = not_widened(call(&host, "post").await);
    assert_eq!((scopes, why), (vec!["post:use".to_owned()], None));
    assert_eq!(scene.windows(), 1);
    host.shutdown().await;
}

#[tokio::test]
async fn rel_26_a_server_that_refuses_still_gets_the_call_once_more_and_no_further_window() {
    let mut settings = tools(&["post"]);
    // Asked for, and never granted.
    settings.scopes.retain(|scope| scope != "post:use");
    let scene = Scene::new(settings);
    let person = Person::who(Does::Grants);
    let host = scene.with(&person).await;
    let error = call(&host, "post").await.expect_err("refused");
    assert!(error.to_string().contains("refuses still"), "{error}");
    assert_eq!(not_widened(Err(error)).1, Some(NotWidened::StillRefused));
    assert_eq!(scene.authority.report().forbidden, 2);
    not_widened(call(&host, "post").await);
    assert_eq!(scene.authority.report().forbidden, 3);
    assert_eq!((person.times(), scene.windows()), (1, 2));
    host.shutdown().await;
}

#[tokio::test]
async fn rel_26_step_ups_that_helped_do_not_count_and_those_that_did_not_do() {
    let names = ["one", "two", "three", "four"];
    let scene = Scene::new(tools(&names));
    let person = Person::who(Does::Grants);
    let host = scene.with(&person).await;
    for name in names {
        call(&host, name).await.expect("each is granted");
    }
    assert_eq!(person.times(), names.len());
    host.shutdown().await;

    let mut settings = tools(&names);
    settings.scopes.retain(|scope| !scope.ends_with(":use"));
    let scene = Scene::new(settings);
    let person = Person::who(Does::Grants);
    let host = scene.with(&person).await;
    for name in names {
        // What else the server takes meanwhile says nothing about the step-up.
        not_widened(call(&host, name).await);
        call(&host, "whoami").await.expect("it takes no more");
    }
    assert_eq!(person.times(), 2);
    host.shutdown().await;
}

#[tokio::test]
async fn calls_that_fall_short_together_share_one_window_and_are_all_sent_again() {
    let scene = Scene::new(tools(&["post"]));
    let person = Person::who(Does::Waits);
    let host = scene.with(&person).await;
    let calls = futures_util::future::join_all((0..5).map(|_| call(&host, "post")));
    let release = async {
        // All of them have been refused before anybody agrees.
        until(|| scene.authority.report().forbidden == 5).await;
        person.go.notify_one();
    };
    let (outcomes, ()) = tokio::join!(calls, release);
    for outcome in outcomes {
        outcome.expect("granted");
    }
    assert_eq!((person.times(), scene.windows()), (1, 2));
    host.shutdown().await;
}

#[tokio::test]
async fn calls_that_lack_different_scopes_are_asked_about_one_after_the_other() {
    let scene = Scene::new(tools(&["one", "two"]));
    let person = Person::who(Does::Grants);
    let host = scene.with(&person).await;
    let (one, two) = tokio::join!(call(&host, "one"), call(&host, "two"));
    one.expect("granted");
    two.expect("granted");
    assert_eq!(person.times(), 2);
    let answer = call(&host, "one").await.expect("both are there");
    assert!(answer.contains("two:use"), "{answer}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_leaves_the_question_to_the_others() {
    let scene = Scene::new(tools(&["post"]));
    let person = Person::who(Does::Waits);
    let host = scene.with(&person).await;
    {
        let mut first = std::pin::pin!(call(&host, "post"));
        let mut second = std::pin::pin!(call(&host, "post"));
        tokio::select! {
            _ = &mut first => panic!("nobody agreed"),
            _ = &mut second => panic!("nobody agreed"),
            () = until(|| person.times() == 1 && scene.authority.report().forbidden == 2) => {}
        }
        // Here the first is dropped, and the other goes on.
        first.set(call(&host, "whoami"));
        first.await.expect("it takes no more");
        person.go.notify_one();
        second.await.expect("granted");
    }
    assert_eq!((person.times(), scene.windows()), (1, 2));
    host.shutdown().await;
}

#[tokio::test]
async fn the_last_call_that_is_given_up_takes_question_and_login_along() {
    let scene = Scene::new(tools(&["post"]));
    let person = Person::who(Does::Waits);
    let host = scene.with(&person).await;
    tokio::select! {
        _ = call(&host, "post") => panic!("nobody agreed"),
        () = until(|| person.open.load(Ordering::SeqCst) == 1) => {}
    }
    until(|| person.open.load(Ordering::SeqCst) == 0).await;
    // Another login is its own, and asks for what the call lacked.
    let options = LoginOptions {
        scopes: vec!["post:use".to_owned()],
        ..LoginOptions::default()
    };
    let mut login = host.login("shop", options).await.expect("begun");
    let Some(Invitation::Page { url, .. }) = login.invitation().await else {
        panic!("no page");
    };
    let visited = tokio::task::spawn_blocking(move || browse(url.as_str()));
    visited.await.expect("no panic");
    login.outcome().await.expect("ours").expect("logged in");
    call(&host, "post").await.expect("it reaches now");
    host.shutdown().await;
}

#[tokio::test]
async fn the_time_that_a_person_takes_is_not_the_calls() {
    let scene = Scene::new(tools(&["post"]));
    let person = Person::who(Does::Dawdles);
    let host = scene.with(&person).await;
    let options = CallOptions {
        timeout: Some(Duration::from_mins(1)),
        ..CallOptions::new(Consent::Typed)
    };
    let answer = call_with(&host, "post", options).await.expect("in time");
    assert!(answer.contains("post:use"), "{answer}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_login_by_device_is_widened_by_device() {
    let scene = Scene::new(AuthoritySettings {
        device_interval: 1,
        ..tools(&["post"])
    });
    let person = Person::who(Does::Nothing);
    let options = HostOptions {
        client_handler: Some(Arc::clone(&person) as Arc<dyn ClientHandler>),
        ..scene.options()
    };
    let plan = scene.home.plan(&json!({ "shop": scene.authority.entry() }));
    let host = Host::start(plan, options);
    host.settled().await;
    let device = LoginOptions {
        way: LoginMethod::Device,
        ..LoginOptions::default()
    };
    let login = host.login("shop", device).await.expect("begun");
    login.outcome().await.expect("ours").expect("logged in");
    host.reconnect("shop").await.expect("known");
    // The authority lets a device in after its first question.
    let answer = call(&host, "post").await.expect("granted");
    assert!(answer.contains("post:use"), "{answer}");
    let asked = person.asked();
    let [(_, message, rights)] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    let code = rights.code.as_ref().expect("a code");
    assert!(message.contains(code.expose()), "the code is shown");
    assert_eq!(scene.windows(), 0);
    host.shutdown().await;
}

#[tokio::test]
async fn resources_and_prompts_go_the_same_way() {
    let scene = Scene::new(AuthoritySettings {
        challenge_scopes: vec!["read".to_owned()],
        offer_scopes: vec!["write".to_owned()],
        ..AuthoritySettings::default()
    });
    let person = Person::who(Does::Grants);
    let host = scene.with(&person).await;
    let read = host.read_resource(&name("shop"), "who://ami").await;
    assert!(read.expect("granted").raw.get().contains("write"));
    let prompt = host.get_prompt(&name("shop"), "who", Map::new()).await;
    assert!(prompt.expect("granted").raw.get().contains("write"));
    assert_eq!(person.times(), 1);
    host.shutdown().await;
}

#[tokio::test]
async fn a_client_that_logged_in_for_itself_asks_for_more_with_nobody_there() {
    let mut settings = tools(&["one", "two", "three"]);
    settings.clients = vec![KnownClient {
        id: "bot".to_owned(),
        secret: Some(marked!("s3cret-").to_owned()),
        ..KnownClient::default()
    }];
    let scene = Scene::new(settings);
    let person = Person::who(Does::Declines);
    let options = HostOptions {
        client_handler: Some(Arc::clone(&person) as Arc<dyn ClientHandler>),
        ..scene.options()
    };
    let plan = scene.home.plan(&json!({ "shop": scene.authority.entry() }));
    let host = Host::start(plan, options);
    host.settled().await;
    let login = LoginOptions {
        way: LoginMethod::ClientCredentials,
        client_id: Some("bot".to_owned()),
        client_secret: Some(Secret::new(marked!("s3cret-"))),
        ..LoginOptions::default()
    };
    let login = host.login("shop", login).await.expect("begun");
    login.outcome().await.expect("ours").expect("logged in");
    host.reconnect("shop").await.expect("known");
    // More of them than may fail: each helps.
    for name in ["one", "two", "three"] {
        let answer = call(&host, name).await.expect("granted");
        assert!(answer.contains(&format!("{name}:use")), "{answer}");
    }
    assert_eq!((person.times(), scene.windows()), (0, 0));
    assert_eq!(scene.authority.report().granted("client_credentials"), 4);
    host.shutdown().await;
}

#[tokio::test]
async fn a_hook_may_say_no_before_anybody_is_asked() {
    let scene = Scene::new(tools(&["post"]));
    let person = Person::who(Does::Grants);
    let heard: Arc<Mutex<Vec<Value>>> = Arc::default();
    let seen = Arc::clone(&heard);
    let hook = LibraryHook::new("h", HookEvent::Elicitation, "shop", move |input| {
        let input = serde_json::to_value(&input).expect("JSON");
        seen.lock().expect("no panic").push(input);
        std::future::ready(Ok(HookReply {
            answer: Some(ElicitationAnswer::Decline),
            ..HookReply::default()
        }))
    });
    let options = HostOptions {
        client_handler: Some(Arc::clone(&person) as Arc<dyn ClientHandler>),
        hooks: vec![hook.expect("a matcher")],
        ..scene.options()
    };
    let host = scene.host(options).await;
    let (_, why) = not_widened(call(&host, "post").await);
    assert_eq!(why, Some(NotWidened::Declined));
    assert_eq!((person.times(), scene.windows()), (0, 1));
    let heard = heard.lock().expect("no panic").clone();
    let [heard] = heard.as_slice() else {
        panic!("{heard:?}");
    };
    assert_eq!(heard["mode"], "url");
    assert_eq!(heard["mcp_server_name"], "shop");
    let message = heard["message"].as_str().expect("text");
    assert!(message.contains("post:use"), "{message}");
    host.shutdown().await;
}
