//! Where servers lead, against what policy says about it: nothing is sent to a forbidden place.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use serde_json::json;
use toolway_testkit::marked::MARK;
use toolway_transport::client::HttpClient;
use toolway_transport::{ChannelLimits, CloseReason, OpenOptions, RequestTag, SendFailure};
use toolway_types::{RemoteKind, RemoteSpec, TransportSpec, UrlList, UrlPattern, UrlRules};

use crate::peer::{Peer, at};
use crate::server::{Act, Server, accepted, json as json_reply, reply, stream};
use crate::socket::{listen, open_door};

fn list(pattern: &str, reason: &str) -> UrlList {
    UrlList {
        patterns: vec![UrlPattern::parse(pattern).expect("a pattern")],
        reason: reason.to_owned(),
    }
}

fn denying(url: &str, pattern: &str) -> RemoteSpec {
    let rules = UrlRules {
        denied: vec![list(pattern, "denied by a rule")],
        allowed: Vec::new(),
    };
    RemoteSpec {
        rules: Arc::new(rules),
        ..at(url, &[("X-Api-Key", MARK)])
    }
}

async fn open(transport: TransportSpec) -> Peer {
    Peer::open(transport, ChannelLimits::default()).await
}

#[tokio::test]
async fn sec_53_a_redirect_to_a_forbidden_path_is_not_followed() {
    for location in ["/admin", "/x/..%2fadmin/y", "/ADMIN;a=b/", "//admin%5cx"] {
        let server = Server::start(move |seen| match seen.path.as_str() {
            "/mcp" => reply("307 There", &[("location", "/next")], b""),
            "/next" => reply("308 There", &[("location", location)], b""),
            _ => json_reply(&json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": {}})),
        })
        .await;
        let denied = denying(&server.url, "http://127.0.0.1:*/admin/*");
        let mut peer = open(TransportSpec::Remote(RemoteKind::Http, denied)).await;
        peer.request(1, "initialize", json!({})).await;
        let (tag, failure) = peer.failure().await;
        assert_eq!(tag, RequestTag(1));
        // Another origin is forbidden by another rule.
        if !location.starts_with("//") {
            let SendFailure::Denied { message } = &failure else {
                panic!("{location}: {failure:?}");
            };
            assert!(message.ends_with("it is denied by a rule"), "{message}");
        }
        let paths: Vec<_> = server.seen().iter().map(|seen| seen.path.clone()).collect();
        assert_eq!(paths, ["/mcp", "/next"], "{location}");
    }
}

#[tokio::test]
async fn sec_53_a_redirect_stays_within_what_is_allowed() {
    let server = Server::start(|seen| match seen.path.as_str() {
        "/mcp" => reply("307 There", &[("location", "/mcp/")], b""),
        "/mcp/" if seen.json()["id"] == 2 => reply("307 There", &[("location", "/other")], b""),
        _ => json_reply(&json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": {}})),
    })
    .await;
    let rules = UrlRules {
        denied: Vec::new(),
        allowed: vec![list("http://127.0.0.1:*/mcp", "not in a list")],
    };
    let spec = RemoteSpec {
        rules: Arc::new(rules),
        ..at(&server.url, &[("X-Api-Key", MARK)])
    };
    let mut peer = open(TransportSpec::Remote(RemoteKind::Http, spec)).await;
    peer.request(1, "initialize", json!({})).await;
    assert_eq!(peer.message().await["id"], 1);
    peer.request(2, "x", json!({})).await;
    let (_, failure) = peer.failure().await;
    assert!(
        matches!(&failure, SendFailure::Denied { message } if message.ends_with("it is not in a list")),
        "{failure:?}"
    );
    assert!(server.seen().iter().all(|seen| seen.path != "/other"));
}

#[tokio::test]
async fn sec_53_no_message_is_posted_to_a_forbidden_path() {
    let server = Server::start(move |seen| match seen.path.as_str() {
        "/mcp" => vec![
            stream("event: endpoint\ndata: /x/%2e%2e%2fadmin/post\n\n"),
            Act::Wait(Arc::default()),
        ],
        _ => accepted(),
    })
    .await;
    let denied = denying(&server.url, "http://localhost/admin/*");
    let mut peer = open(TransportSpec::Remote(RemoteKind::Sse, denied)).await;
    peer.request(1, "initialize", json!({})).await;
    let reason = peer.closed().await;
    assert!(
        matches!(&reason, CloseReason::Failed(SendFailure::Denied { message }) if message.ends_with("it is denied by a rule")),
        "{reason:?}"
    );
    assert_eq!(server.seen().len(), 1, "the stream only");
}

#[tokio::test]
async fn sec_53_a_name_that_leads_to_a_denied_address_is_not_connected_to() {
    let server = Server::start(|_| accepted()).await;
    let url = server.url.replace("127.0.0.1", "localhost");
    // The name itself is what the plan was asked about; here it shows where it leads.
    let denied = denying(&url, "http://127.0.0.1:*/*");
    let mut peer = open(TransportSpec::Remote(RemoteKind::Http, denied.clone())).await;
    peer.request(1, "initialize", json!({})).await;
    let (_, failure) = peer.failure().await;
    assert!(
        matches!(&failure, SendFailure::Denied { message } if message.ends_with("which is denied by a rule")),
        "{failure:?}"
    );
    let mut peer = open(TransportSpec::Remote(RemoteKind::Sse, denied)).await;
    let reason = peer.closed().await;
    assert!(
        matches!(&reason, CloseReason::Failed(SendFailure::Denied { message }) if message.ends_with("which is denied by a rule")),
        "{reason:?}"
    );
    assert!(server.seen().is_empty());

    let socket = listen(None, open_door, |_| async {}).await;
    let url = socket.url.replace("127.0.0.1", "localhost");
    let mut peer = open(TransportSpec::Remote(
        RemoteKind::Ws,
        denying(&url, "ws://127.0.0.1:*/*"),
    ))
    .await;
    let reason = peer.closed().await;
    assert!(
        matches!(&reason, CloseReason::Failed(SendFailure::Denied { message }) if message.ends_with("which is denied by a rule")),
        "{reason:?}"
    );
}

/// Every name leads to this machine.
struct Inwards;

impl Resolve for Inwards {
    fn resolve(&self, _: Name) -> Resolving {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        Box::pin(async move { Ok(Box::new(std::iter::once(here)) as Addrs) })
    }
}

#[tokio::test]
async fn sec_53_a_name_gives_no_way_to_a_denied_path_of_its_address() {
    let inwards = OpenOptions {
        client: HttpClient::default().resolving(Arc::new(Inwards)),
        ..OpenOptions::default()
    };
    let server = Server::start(|seen| match seen.path.as_str() {
        "/mcp" if seen.json()["id"] == 1 => reply("307 There", &[("location", "/next")], b""),
        "/mcp" => reply("307 There", &[("location", "/admin/secret")], b""),
        _ => json_reply(&json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": {}})),
    })
    .await;
    let url = server.url.replace("127.0.0.1", "inside.test");
    let denied = denying(&url, "*://localhost:*/admin/*");
    let mut peer = Peer::open_with(TransportSpec::Remote(RemoteKind::Http, denied), &inwards).await;
    // What is not denied is followed, also a second time.
    for _ in 0..2 {
        peer.request(1, "initialize", json!({})).await;
        assert_eq!(peer.message().await["id"], 1);
    }
    peer.request(2, "x", json!({})).await;
    let (_, failure) = peer.failure().await;
    assert!(
        matches!(&failure, SendFailure::Denied { message }
            if message.ends_with("it leads to 127.0.0.1, which is denied by a rule")),
        "{failure:?}"
    );
    let paths: Vec<_> = server.seen().iter().map(|seen| seen.path.clone()).collect();
    assert_eq!(paths, ["/mcp", "/next", "/mcp", "/next", "/mcp"]);

    let server = Server::start(|seen| match seen.path.as_str() {
        "/mcp" => vec![
            stream("event: endpoint\ndata: /admin/post\n\n"),
            Act::Wait(Arc::default()),
        ],
        _ => accepted(),
    })
    .await;
    let url = server.url.replace("127.0.0.1", "inside.test");
    let denied = denying(&url, "*://localhost:*/admin/*");
    let mut peer = Peer::open_with(TransportSpec::Remote(RemoteKind::Sse, denied), &inwards).await;
    peer.request(1, "initialize", json!({})).await;
    let (_, failure) = peer.failure().await;
    assert!(
        matches!(&failure, SendFailure::Denied { message }
            if message.ends_with("it leads to 127.0.0.1, which is denied by a rule")),
        "{failure:?}"
    );
    assert_eq!(server.seen().len(), 1, "the stream only");
}

#[tokio::test]
async fn a_denial_of_other_addresses_is_in_nobodys_way() {
    let server = Server::start(|seen| {
        json_reply(&json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": {}}))
    })
    .await;
    let url = server.url.replace("127.0.0.1", "localhost");
    let mut peer = open(TransportSpec::Remote(
        RemoteKind::Http,
        denying(&url, "*://10.*.*.*:*/*"),
    ))
    .await;
    peer.request(1, "initialize", json!({})).await;
    assert_eq!(peer.message().await["id"], 1);
}
