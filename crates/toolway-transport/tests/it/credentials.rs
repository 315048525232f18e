//! Credentials over every remote transport: what a request carries, and what follows a refusal.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue};
use serde_json::json;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_transport::credentials::{
    CredentialHeaders, CredentialRefusal, CredentialRequest, RetryDecision,
};
use toolway_transport::{
    ChannelEvent, CloseReason, Credentials, CredentialsError, OpenOptions, RequestTag, SendFailure,
};
use toolway_types::{RemoteKind, RemoteSpec, TransportSpec};

use crate::peer::{Peer, at};
use crate::server::{Act, Seen, Server, accepted, chunked, json as json_reply, reply};

/// Presents one token after the other, and writes down what it is asked.
#[derive(Debug, Default)]
struct Purse {
    verdicts: Mutex<Vec<RetryDecision>>,
    said: Mutex<Vec<String>>,
    broken: Option<CredentialsError>,
}

impl Purse {
    fn with(verdicts: &[RetryDecision]) -> Arc<Self> {
        let mut verdicts = verdicts.to_vec();
        verdicts.reverse();
        Arc::new(Self {
            verdicts: Mutex::new(verdicts),
            ..Self::default()
        })
    }

    fn note(&self, what: String) {
        self.said.lock().expect("no panic").push(what);
    }

    fn refusals(&self) -> Vec<String> {
        let said = self.said.lock().expect("no panic");
        let refused = said.iter().filter(|what| what.starts_with("refused"));
        refused.cloned().collect()
    }
}

impl Credentials for Purse {
    fn present<'a>(
        &'a self,
        request: CredentialRequest<'a>,
    ) -> BoxFuture<'a, Result<CredentialHeaders, CredentialsError>> {
        async move {
            if let Some(error) = &self.broken {
                return Err(error.clone());
            }
            self.note(format!("{} {}", request.method, request.url.path()));
            let number = self.refusals().len();
            let mut headers = HeaderMap::new();
            for (name, value) in [
                ("authorization", format!("Bearer {MARK}-{number}")),
                ("x-repeated", "one".to_owned()),
                ("x-repeated", "two".to_owned()),
                ("host", "evil".to_owned()),
                ("content-type", "text/html".to_owned()),
                ("mcp-session-id", "forged".to_owned()),
                ("sec-websocket-protocol", "evil".to_owned()),
            ] {
                headers.append(name, HeaderValue::from_str(&value).expect("ASCII"));
            }
            Ok(CredentialHeaders::new(headers))
        }
        .boxed()
    }

    fn refused<'a>(
        &'a self,
        presented: &'a CredentialHeaders,
        refusal: CredentialRefusal<'a>,
    ) -> BoxFuture<'a, RetryDecision> {
        async move {
            let token = presented.headers()["authorization"]
                .to_str()
                .expect("ASCII");
            let challenge = refusal.challenges().unwrap_or_default();
            self.note(format!("refused {} {token} {challenge}", refusal.status));
            let mut verdicts = self.verdicts.lock().expect("no panic");
            verdicts.pop().unwrap_or(RetryDecision::GiveUp)
        }
        .boxed()
    }
}

const KINDS: [&str; 4] = ["http", "connector", "sse", "ws"];

fn transport(kind: &str, url: &str, headers: &[(&str, &str)]) -> TransportSpec {
    let spec: RemoteSpec = at(url, headers);
    match kind {
        "http" => TransportSpec::Remote(RemoteKind::Http, spec),
        "connector" => TransportSpec::Remote(RemoteKind::Connector, spec),
        "sse" => TransportSpec::Remote(RemoteKind::Sse, spec),
        _ => TransportSpec::Remote(RemoteKind::Ws, at(&url.replace("http:", "ws:"), headers)),
    }
}

async fn open(kind: &str, url: &str, purse: &Arc<Purse>) -> Peer {
    let configured = [
        ("Authorization", marked!("Bearer static-")),
        ("X-Static", "stays"),
    ];
    let options = OpenOptions {
        credentials: Some(Arc::clone(purse) as Arc<dyn Credentials>),
        ..OpenOptions::default()
    };
    Peer::open_with(transport(kind, url, &configured), &options).await
}

/// A server that answers everything once it accepts the token: in a document, on its stream, or
/// over a socket.
async fn guarded(accepts: impl Fn(&str) -> bool + Send + Sync + 'static) -> Server {
    Server::start(move |seen| {
        if !accepts(seen.header("authorization").unwrap_or_default()) {
            let challenge = [("www-authenticate", "Bearer scope=\"read\"")];
            return reply("401 Unauthorized", &challenge, b"no");
        }
        match (seen.method.as_str(), seen.header("sec-websocket-key")) {
            ("GET", Some(key)) => socket(key),
            ("GET", None) => {
                let endpoint = "event: endpoint\ndata: /mcp\n\n";
                let answer = r#"data: {"jsonrpc":"2.0","id":1,"result":{}}"#;
                vec![
                    chunked(&format!("{endpoint}{answer}\n\n")),
                    Act::AwaitClose(Arc::default()),
                ]
            }
            ("POST", _) if seen.json()["id"].is_null() => accepted(),
            ("POST", _) => {
                let mut acts =
                    json_reply(&json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": {}}));
                if let Some(Act::Write(bytes)) = acts.first_mut() {
                    let text = String::from_utf8(bytes.clone()).expect("text");
                    *bytes = text
                        .replacen("\r\n", "\r\nmcp-session-id: s-1\r\n", 1)
                        .into_bytes();
                }
                acts
            }
            _ => reply("204 No Content", &[], b""),
        }
    })
    .await
}

fn socket(key: &str) -> Vec<Act> {
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-accept: {}\r\nsec-websocket-protocol: mcp\r\n\r\n",
        derive_accept_key(key.as_bytes())
    );
    let message = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let length = u8::try_from(message.len()).expect("short");
    vec![
        Act::Write([head.as_bytes(), &[0x81, length], message].concat()),
        Act::AwaitClose(Arc::default()),
    ]
}

fn tokens(server: &Server) -> Vec<String> {
    let token = |seen: &Seen| {
        let token = seen.header("authorization").unwrap_or_default();
        format!("{} {token}", seen.method)
    };
    server.seen().iter().map(token).collect()
}

async fn refusal(peer: &mut Peer) -> u16 {
    match peer.event().await {
        ChannelEvent::Failed {
            tag: RequestTag(1),
            failure: SendFailure::Status { status, .. },
        }
        | ChannelEvent::Closed(CloseReason::Failed(SendFailure::Status { status, .. })) => status,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn every_request_carries_what_is_presented_and_the_protocols_own_headers_stay() {
    for kind in KINDS {
        let server = guarded(|_| true).await;
        let purse = Purse::with(&[]);
        let mut peer = open(kind, &server.url, &purse).await;
        peer.request(1, "initialize", json!({})).await;
        assert_eq!(peer.message().await["id"], 1, "{kind}");
        peer.end().await;
        for seen in server.seen() {
            let all = |name: &str| -> Vec<String> {
                let named = seen.headers.iter().filter(|(key, _)| key == name);
                named.map(|(_, value)| value.clone()).collect()
            };
            assert_eq!(all("authorization"), [marked!("Bearer ", "-0")], "{kind}");
            assert_eq!(all("x-repeated"), ["one", "two"], "{kind}");
            assert_eq!(all("x-static"), ["stays"], "{kind}");
            assert!(all("host")[0].starts_with("127.0.0.1:"), "{kind}");
            assert!(!all("content-type").contains(&"text/html".to_owned()));
            assert!(!all("mcp-session-id").contains(&"forged".to_owned()));
            assert!(!all("sec-websocket-protocol").contains(&"evil".to_owned()));
        }
    }
}

#[tokio::test]
async fn the_stream_and_the_end_of_a_legacy_session_carry_it_too() {
    let mut server = guarded(|_| true).await;
    let purse = Purse::with(&[]);
    let mut peer = open("http", &server.url, &purse).await;
    peer.request(1, "initialize", json!({})).await;
    peer.message().await;
    peer.notify("notifications/initialized", json!({})).await;
    let mut methods = Vec::new();
    while methods.len() < 3 {
        methods.push(server.arrival().await.method);
    }
    peer.end().await;
    methods.push(server.arrival().await.method);
    assert_eq!(methods, ["POST", "POST", "GET", "DELETE"]);
    assert!(
        tokens(&server)
            .iter()
            .all(|line| line.ends_with(marked!("Bearer ", "-0"))),
        "{:?}",
        tokens(&server)
    );
}

#[tokio::test]
async fn what_was_refused_is_sent_once_more_with_what_is_presented_then() {
    for kind in KINDS {
        let server = guarded(|token| token == marked!("Bearer ", "-1")).await;
        let purse = Purse::with(&[RetryDecision::Again, RetryDecision::Again]);
        let mut peer = open(kind, &server.url, &purse).await;
        peer.request(1, "initialize", json!({})).await;
        assert_eq!(peer.message().await["id"], 1, "{kind}");
        let refused = [marked!("refused 401 Bearer ", "-0 Bearer scope=\"read\"")];
        assert_eq!(purse.refusals(), refused, "{kind}");
        assert!(tokens(&server)[0].ends_with(marked!("", "-0")), "{kind}");
        assert!(tokens(&server)[1].ends_with(marked!("", "-1")), "{kind}");
    }
}

#[tokio::test]
async fn rel_26_a_server_that_refuses_everything_is_asked_twice() {
    for kind in KINDS {
        let server = guarded(|_| false).await;
        let purse = Purse::with(&[RetryDecision::Again; 9]);
        let mut peer = open(kind, &server.url, &purse).await;
        peer.request(1, "initialize", json!({})).await;
        assert_eq!(refusal(&mut peer).await, 401, "{kind}");
        assert_eq!(server.seen().len(), 2, "{kind}");
    }
}

#[tokio::test]
async fn a_refusal_that_stands_is_told_after_one_request() {
    for kind in KINDS {
        let server = guarded(|_| false).await;
        let purse = Purse::with(&[RetryDecision::GiveUp]);
        let mut peer = open(kind, &server.url, &purse).await;
        peer.request(1, "initialize", json!({})).await;
        assert_eq!(refusal(&mut peer).await, 401, "{kind}");
        assert_eq!(server.seen().len(), 1, "{kind}");
    }
}

#[tokio::test]
async fn a_nonce_counts_apart_and_once() {
    use RetryDecision::{Again, WithNonce};
    for kind in KINDS {
        for (verdicts, requests) in [
            (vec![WithNonce, Again, Again], 3),
            (vec![WithNonce, WithNonce, WithNonce], 2),
            (vec![Again, WithNonce], 2),
        ] {
            let server = guarded(|_| false).await;
            let purse = Purse::with(&verdicts);
            let mut peer = open(kind, &server.url, &purse).await;
            peer.request(1, "initialize", json!({})).await;
            assert_eq!(refusal(&mut peer).await, 401, "{kind}");
            assert_eq!(server.seen().len(), requests, "{kind} {verdicts:?}");
        }
    }
}

#[tokio::test]
async fn without_credentials_nothing_is_sent() {
    for kind in KINDS {
        let server = guarded(|_| true).await;
        let error = CredentialsError::Broken("the helper failed".to_owned());
        let purse = Arc::new(Purse {
            broken: Some(error.clone()),
            ..Purse::default()
        });
        let mut peer = open(kind, &server.url, &purse).await;
        peer.request(1, "initialize", json!({})).await;
        match peer.event().await {
            ChannelEvent::Failed {
                failure: SendFailure::Credentials(told),
                ..
            }
            | ChannelEvent::Closed(CloseReason::Failed(SendFailure::Credentials(told))) => {
                assert_eq!(told, error, "{kind}");
            }
            other => panic!("{kind}: {other:?}"),
        }
        peer.end().await;
        assert!(server.seen().is_empty(), "{kind}");
    }
}

#[tokio::test]
async fn sec_20_what_is_presented_never_reaches_another_origin() {
    for kind in KINDS {
        let thief = guarded(|_| true).await;
        let location = thief.url.clone();
        let server = Server::start(move |seen| match seen.path.as_str() {
            "/mcp" => reply("307 Temporary", &[("location", "/next")], b""),
            _ => reply("307 Temporary", &[("location", &location)], b""),
        })
        .await;
        let purse = Purse::with(&[RetryDecision::Again; 9]);
        let mut peer = open(kind, &server.url, &purse).await;
        peer.request(1, "initialize", json!({})).await;
        let event = peer.event().await;
        assert!(
            matches!(event, ChannelEvent::Failed { .. } | ChannelEvent::Closed(_)),
            "{event:?}"
        );
        peer.end().await;
        assert!(thief.seen().is_empty(), "{kind}");
        let asked = purse.said.lock().expect("no panic").clone();
        let paths = asked.iter().filter_map(|line| line.split(' ').nth(1));
        let expected: &[&str] = if kind == "ws" {
            &["/mcp"]
        } else {
            &["/mcp", "/next"]
        };
        assert_eq!(
            paths.collect::<Vec<_>>(),
            expected,
            "{kind}: each hop is asked for apart"
        );
    }
}

#[test]
fn sec_47_what_is_presented_is_not_shown() {
    let mut headers = HeaderMap::new();
    headers.insert(
        "authorization",
        HeaderValue::from_static(marked!("Bearer ")),
    );
    let presented = CredentialHeaders::new(headers);
    let shown = format!("{presented:?} {:?}", presented.headers());
    assert!(!shown.contains(MARK), "{shown}");
    assert!(shown.contains("authorization"), "{shown}");
}
