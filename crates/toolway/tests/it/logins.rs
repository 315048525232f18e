//! Logins through the host: what servers are shown, and what follows when they refuse it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use toolway::auth::{AccessToken, AccessTokenError, AccessTokenSource, AuthOptions, LoginTarget};
use toolway::journal::Journal;
use toolway::{CallError, CallFault, Host, HostOptions};
use toolway_auth::token::TokenKind;
use toolway_testkit::marked;
use toolway_types::{ConnectionState, Secret};

use crate::http::{Server, document, reply};
use crate::support::*;

const CANARY: &str = marked!("93ab07d1-");
const OLD: &str = marked!("old-");
const NEW: &str = marked!("new-");
const ANOTHER: &str = marked!("another-");

/// A keeper of one login that the test changes.
#[derive(Debug)]
struct Purse {
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    token: Option<Result<String, AccessTokenError>>,
    /// What comes after the first token is refused.
    next: Option<String>,
    resource: Option<String>,
    renewals: usize,
    asked: usize,
    /// Why nothing can be renewed now.
    busy: Option<AccessTokenError>,
    /// Keeps the next who asks waiting.
    held: Option<oneshot::Receiver<()>>,
}

impl Purse {
    fn with(token: Option<&str>) -> Arc<Self> {
        let state = State {
            token: token.map(|token| Ok(token.to_owned())),
            ..State::default()
        };
        Arc::new(Self {
            state: Mutex::new(state),
            changes: watch::Sender::new(0),
        })
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().expect("no panic"));
        self.changes.send_modify(|count| *count += 1);
    }

    /// A change that nobody is told of.
    fn quietly(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().expect("no panic"));
    }

    fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock().expect("no panic"))
    }
}

impl AccessTokenSource for Purse {
    fn access_token<'a>(
        &'a self,
        target: &'a LoginTarget,
        refused: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<Option<AccessToken>, AccessTokenError>> {
        async move {
            let held = self.state.lock().expect("no panic").held.take();
            if let Some(held) = held {
                held.await.expect("let go");
            }
            let mut state = self.state.lock().expect("no panic");
            state.asked += 1;
            let Some(token) = state.token.clone().transpose()? else {
                return Ok(None);
            };
            if refused.is_some_and(|refused| refused.expose() == token) {
                state.renewals += 1;
                if let Some(busy) = &state.busy {
                    return Err(busy.clone());
                }
                if let Some(next) = state.next.take() {
                    state.token = Some(Ok(next));
                }
            }
            let token = state.token.clone().transpose()?.expect("set");
            let url = target.url.to_string();
            Ok(Some(AccessToken {
                access: Secret::new(token),
                kind: TokenKind::Bearer,
                key: None,
                issuer: "https://issuer.example".to_owned(),
                resource: state.resource.clone().unwrap_or(url),
                renew_at: None,
            }))
        }
        .boxed()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

fn challenged(status: u16, challenge: &str) -> Response {
    let mut response = document(status, &json!({})).into_response();
    let value = challenge.parse().expect("a header");
    response.headers_mut().insert("www-authenticate", value);
    response
}

/// A server that lets one token in, and wants more for a call.
async fn guarded(token: &'static str) -> Server {
    guarded_by(&Arc::new(Mutex::new(token))).await
}

/// The same with a token that changes.
async fn guarded_by(token: &Arc<Mutex<&'static str>>) -> Server {
    let token = Arc::clone(token);
    Server::start(move |message: &Value, headers: &HeaderMap| {
        let token = *token.lock().expect("no panic");
        let shown = headers
            .get("authorization")
            .and_then(|value| value.to_str().ok());
        if shown != Some(&format!("Bearer {token}")) {
            return challenged(401, "Bearer realm=\"x\"");
        }
        if message["params"]["arguments"]["text"] == "wide" {
            let challenge = "Bearer error=\"insufficient_scope\", scope=\"files:write admin\"";
            return challenged(403, challenge);
        }
        reply(message, legacy(message))
    })
    .await
}

fn start(home: &Home, entry: &Value, purse: &Arc<Purse>) -> Host {
    let plan = home.plan(&json!({ "web": entry }));
    let options = HostOptions {
        auth: AuthOptions {
            access_tokens: Some(Arc::clone(purse) as Arc<dyn AccessTokenSource>),
            ..AuthOptions::default()
        },
        journal: Some(Journal::in_directory(home.path().join("logs"))),
        ..home.options()
    };
    Host::start(plan, options)
}

fn entry(server: &Server) -> Value {
    json!({ "type": "http", "url": server.url, "protocol": "legacy" })
}

fn names(host: &Host) -> Vec<String> {
    let snapshot = host.snapshot();
    snapshot
        .catalog
        .tools()
        .chain(snapshot.catalog.built_in())
        .map(|tool| tool.name.clone())
        .collect()
}

async fn connected(host: &Host) {
    let mut snapshots = host.watch();
    let connected = snapshots.wait_for(|snapshot| {
        let state = snapshot.server("web").map(|server| &server.state);
        matches!(state, Some(ConnectionState::Connected(_)))
    });
    drop(connected.await.expect("the host runs"));
}

#[tokio::test]
async fn a_login_is_shown_with_every_request_and_stays_out_of_the_journal() {
    let server = guarded(CANARY).await;
    let (home, purse) = (Home::new(), Purse::with(Some(CANARY)));
    let host = start(&home, &entry(&server), &purse);
    host.settled().await;
    facts(&host, "web");
    let answer = echo(&host, "web", CANARY).await.expect("an answer");
    assert_eq!(text_of(&answer), CANARY);
    host.shutdown().await;
    assert_eq!(
        purse.look(|state| state.asked),
        1,
        "kept as long as nothing changes"
    );
    let log = std::fs::read_dir(home.path().join("logs")).expect("logs");
    for file in log.flatten().filter(|file| file.path().is_file()) {
        let text = std::fs::read_to_string(file.path()).expect("text");
        assert!(!text.contains(CANARY), "{text}");
    }
}

#[tokio::test]
async fn what_is_refused_is_renewed_once_and_sent_again() {
    let server = guarded(NEW).await;
    let (home, purse) = (Home::new(), Purse::with(Some(OLD)));
    purse.change(|state| state.next = Some(NEW.to_owned()));
    let host = start(&home, &entry(&server), &purse);
    host.settled().await;
    facts(&host, "web");
    assert_eq!(server.methods()[..2], ["initialize", "initialize"]);
    assert_eq!(purse.look(|state| state.renewals), 1);
    host.shutdown().await;
}

#[tokio::test]
async fn rel_26_a_login_that_is_refused_for_good_is_renewed_once_and_then_needed() {
    let server = guarded(ANOTHER).await;
    let (home, purse) = (Home::new(), Purse::with(Some(OLD)));
    let host = start(&home, &entry(&server), &purse);
    host.settled().await;
    assert!(matches!(
        shown(&host, "web").state,
        ConnectionState::NeedsAuth { .. }
    ));
    assert_eq!(server.methods(), ["initialize"]);
    assert_eq!(purse.look(|state| state.renewals), 1);
    // A change that brings nothing new is no reason to ask the server again.
    let asked = purse.look(|state| state.asked);
    purse.change(|_| {});
    let looked = || purse.look(|state| state.asked > asked);
    while !looked() {
        tokio::task::yield_now().await;
    }
    // One that brings something is, so that both were followed when this one shows.
    purse.change(|state| state.token = Some(Ok(ANOTHER.to_owned())));
    connected(&host).await;
    let methods = server.methods().into_iter();
    assert_eq!(methods.filter(|method| method == "initialize").count(), 2);
    host.shutdown().await;
}

#[tokio::test]
async fn rel_27_who_wants_to_be_left_alone_is_not_asked_before_the_time() {
    let token = Arc::new(Mutex::new(NEW));
    let server = guarded_by(&token).await;
    let (home, purse) = (Home::new(), Purse::with(Some(NEW)));
    let host = start(&home, &entry(&server), &purse);
    host.settled().await;
    facts(&host, "web");
    // From here on the server refuses what it took, and nobody can give anything else.
    *token.lock().expect("no panic") = ANOTHER;
    purse.quietly(|state| {
        state.busy = Some(AccessTokenError::Later {
            why: "not for a minute".to_owned(),
            after: Duration::from_mins(1),
        });
    });
    let calls = [0; 5].map(|_| echo(&host, "web", "hi"));
    for outcome in futures_util::future::join_all(calls).await {
        let Err(CallError::Failed(_, CallFault::Transport { message, .. })) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(message.as_received(), "not for a minute");
    }
    assert_eq!(purse.look(|state| state.renewals), 1, "one for all");
    facts(&host, "web");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    purse.quietly(|state| {
        state.busy = None;
        state.next = Some(ANOTHER.to_owned());
    });
    echo(&host, "web", "hi").await.expect("an answer");
    host.shutdown().await;
}

#[tokio::test]
async fn a_login_of_any_process_connects_a_waiting_server_and_its_tools_replace_the_pseudo_tool() {
    let server = guarded(NEW).await;
    let (home, purse) = (Home::new(), Purse::with(None));
    let host = start(&home, &entry(&server), &purse);
    host.settled().await;
    assert_eq!(names(&host), ["mcp__web__authenticate"]);
    purse.change(|state| state.token = Some(Ok(NEW.to_owned())));
    connected(&host).await;
    assert_eq!(names(&host), ["mcp__web__echo", "mcp__web__mute"]);
    host.shutdown().await;
}

/// How often the server was connected to.
fn handshakes(server: &Server) -> usize {
    let methods = server.methods();
    methods
        .iter()
        .filter(|method| *method == "initialize")
        .count()
}

#[tokio::test]
async fn a_server_that_connected_by_itself_is_left_alone_when_somebody_logs_in() {
    let server = guarded(NEW).await;
    let (home, purse) = (Home::new(), Purse::with(None));
    let host = start(&home, &entry(&server), &purse);
    host.settled().await;
    purse.quietly(|state| state.token = Some(Ok(NEW.to_owned())));
    host.reconnect("web").await.expect("known");
    assert_eq!(handshakes(&server), 2);
    purse.change(|_| {});
    for _ in 0..10 {
        echo(&host, "web", "hi").await.expect("not cancelled");
    }
    assert_eq!(handshakes(&server), 2);
    host.shutdown().await;
}

#[tokio::test]
async fn a_login_that_was_looked_for_while_the_server_connected_ends_no_connection() {
    let server = guarded(NEW).await;
    let (home, purse) = (Home::new(), Purse::with(None));
    let host = start(&home, &entry(&server), &purse);
    host.settled().await;
    let (let_go, held) = oneshot::channel();
    purse.change(|state| state.held = Some(held));
    while purse.look(|state| state.held.is_some()) {
        tokio::task::yield_now().await;
    }
    purse.quietly(|state| state.token = Some(Ok(NEW.to_owned())));
    host.reconnect("web").await.expect("known");
    assert_eq!(handshakes(&server), 2);
    let_go.send(()).expect("somebody waits");
    for _ in 0..10 {
        echo(&host, "web", "hi").await.expect("not cancelled");
    }
    assert_eq!(handshakes(&server), 2);
    host.shutdown().await;
}

#[tokio::test]
async fn sec_19_a_login_for_another_resource_never_leaves() {
    let server = guarded(CANARY).await;
    let (home, purse) = (Home::new(), Purse::with(Some(CANARY)));
    purse.change(|state| state.resource = Some("https://elsewhere.example/mcp".to_owned()));
    let host = start(&home, &entry(&server), &purse);
    host.settled().await;
    assert!(matches!(
        shown(&host, "web").state,
        ConnectionState::NeedsAuth { .. }
    ));
    assert!(!server.saw(CANARY));
    host.shutdown().await;
}

#[tokio::test]
async fn a_token_that_a_person_wrote_down_is_the_login() {
    let server = guarded(ANOTHER).await;
    let (home, purse) = (Home::new(), Purse::with(Some(CANARY)));
    let mut entry = entry(&server);
    entry["headers"] = json!({ "Authorization": format!("Bearer {ANOTHER}") });
    let host = start(&home, &entry, &purse);
    host.settled().await;
    facts(&host, "web");
    host.shutdown().await;
    assert_eq!(purse.look(|state| state.asked), 0);
    assert!(!server.saw(CANARY));
}

#[tokio::test]
async fn a_call_that_needs_a_wider_login_says_which_scopes_and_the_connection_stands() {
    let server = guarded(NEW).await;
    let (home, purse) = (Home::new(), Purse::with(Some(NEW)));
    let host = start(&home, &entry(&server), &purse);
    host.settled().await;
    for _ in 0..3 {
        let Err(CallError::NeedsAuth { scopes, .. }) = echo(&host, "web", "wide").await else {
            panic!("refused");
        };
        assert_eq!(scopes, ["files:write", "admin"]);
    }
    assert_eq!(purse.look(|state| state.renewals), 0);
    let calls = server
        .methods()
        .into_iter()
        .filter(|method| method == "tools/call");
    assert_eq!(calls.count(), 3, "none was sent twice");
    assert_eq!(
        text_of(&echo(&host, "web", "hi").await.expect("an answer")),
        "hi"
    );
    host.shutdown().await;
}

#[tokio::test]
async fn a_login_that_is_over_is_needed_again_and_nothing_is_sent() {
    let server = guarded(NEW).await;
    let (home, purse) = (Home::new(), Purse::with(None));
    purse
        .change(|state| state.token = Some(Err(AccessTokenError::Over("log in again".to_owned()))));
    let host = start(&home, &entry(&server), &purse);
    host.settled().await;
    assert!(matches!(
        shown(&host, "web").state,
        ConnectionState::NeedsAuth { .. }
    ));
    assert!(server.methods().is_empty());
    host.shutdown().await;
}

#[tokio::test]
async fn rel_27_a_login_that_cannot_be_renewed_now_is_a_failure_that_may_pass() {
    let server = guarded(NEW).await;
    let (home, purse) = (Home::new(), Purse::with(None));
    let busy = "the authorization server is busy".to_owned();
    purse.change(|state| state.token = Some(Err(AccessTokenError::Unavailable(busy.clone()))));
    let host = start(&home, &entry(&server), &purse);
    host.settled().await;
    assert_eq!(failure(&host, "web").message, busy);
    assert!(server.methods().is_empty());
    purse.change(|state| state.token = Some(Ok(NEW.to_owned())));
    host.reconnect("web").await.expect("known");
    facts(&host, "web");
    host.shutdown().await;
}
