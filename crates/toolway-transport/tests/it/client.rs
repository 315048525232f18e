//! The HTTP client: trust, client certificates and proxies.

use serde_json::json;
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_transport::client::{HttpClient, HttpClientOptions};
use toolway_transport::{OpenError, OpenOptions, SendFailure};
use toolway_types::CertificateFault;

use crate::authority::Authority;
use crate::peer::{Peer, remote, spec};
use crate::server::{Seen, Server, json as json_reply};

fn ok(seen: &Seen) -> serde_json::Value {
    json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": {}})
}

async fn open(url: &str, options: HttpClientOptions) -> Result<Peer, OpenError> {
    let options = OpenOptions {
        client: HttpClient::new(options),
        ..OpenOptions::default()
    };
    toolway_transport::open(&spec(remote(url, &[])), &options)
        .await
        .map(Peer::new)
}

#[tokio::test]
async fn a_certificate_is_trusted_only_with_its_authority() {
    let authority = Authority::new();
    let server = Server::start_tls(authority.server(false), |seen| json_reply(&ok(seen))).await;
    let mut stranger = open(&server.url, HttpClientOptions::default())
        .await
        .expect("it opens");
    stranger.request(1, "initialize", json!({})).await;
    let (_, failure) = stranger.failure().await;
    assert!(
        matches!(
            failure,
            SendFailure::Certificate {
                fault: CertificateFault::Untrusted,
                ..
            }
        ),
        "{failure:?}"
    );
    assert!(server.seen().is_empty());

    let extra_ca = vec![authority.file("ca.pem")];
    let options = HttpClientOptions {
        extra_ca,
        ..HttpClientOptions::default()
    };
    let mut friend = open(&server.url, options).await.expect("it opens");
    friend.request(1, "initialize", json!({})).await;
    assert_eq!(friend.message().await["id"], 1);
}

#[tokio::test]
async fn our_own_certificate_is_shown_where_one_is_asked_for() {
    let authority = Authority::new();
    let server = Server::start_tls(authority.server(true), |seen| json_reply(&ok(seen))).await;
    let (certificate, key) = authority.leaf();
    std::fs::write(authority.file("own.pem"), certificate.pem()).expect("written");
    std::fs::write(authority.file("own.key"), key.serialize_pem()).expect("written");
    let options = HttpClientOptions {
        extra_ca: vec![authority.file("ca.pem")],
        client_certificate: Some(authority.file("own.pem")),
        client_key: Some(authority.file("own.key")),
        ..HttpClientOptions::default()
    };
    let mut peer = open(&server.url, options.clone()).await.expect("it opens");
    peer.request(1, "initialize", json!({})).await;
    assert_eq!(peer.message().await["id"], 1);

    let without = HttpClientOptions {
        client_certificate: None,
        client_key: None,
        ..options
    };
    let mut peer = open(&server.url, without).await.expect("it opens");
    peer.request(1, "initialize", json!({})).await;
    let (_, failure) = peer.failure().await;
    assert!(
        matches!(
            failure,
            SendFailure::Certificate {
                fault: CertificateFault::Ours,
                ..
            }
        ),
        "{failure:?}"
    );
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_certificate_file_that_cannot_be_used_is_named_and_concerns_only_https() {
    let directory = tempfile::tempdir().expect("a directory");
    let empty = directory.path().join("empty.pem");
    std::fs::write(&empty, "").expect("written");
    for path in [empty, directory.path().join("missing.pem")] {
        let options = HttpClientOptions {
            extra_ca: vec![path.clone()],
            ..HttpClientOptions::default()
        };
        let error = open("https://127.0.0.1:1/", options.clone())
            .await
            .err()
            .expect("refused");
        assert!(
            error.to_string().contains(path.to_str().expect("text")),
            "{error}"
        );
        assert!(open("http://127.0.0.1:1/", options).await.is_ok());
    }
}

#[tokio::test]
async fn a_proxy_carries_what_is_remote_and_nothing_of_this_machine() {
    let proxy = Server::start(|seen| json_reply(&ok(seen))).await;
    let local = Server::start(|seen| json_reply(&ok(seen))).await;
    let options = HttpClientOptions {
        http_proxy: Some(proxy.url.replace("http://", marked!("http://user:", "@"))),
        no_proxy: Some("elsewhere.invalid".to_owned()),
        ..HttpClientOptions::default()
    };
    assert!(!format!("{options:?} {:?}", HttpClient::new(options.clone())).contains(MARK));
    for url in ["http://far.invalid/mcp", &local.url] {
        let mut peer = open(url, options.clone()).await.expect("it opens");
        peer.request(1, "initialize", json!({})).await;
        assert_eq!(peer.message().await["id"], 1);
    }
    assert_eq!(proxy.seen()[0].path, "http://far.invalid/mcp");
    assert_eq!((proxy.seen().len(), local.seen().len()), (1, 1));
    let mut peer = open("http://elsewhere.invalid/mcp", options)
        .await
        .expect("it opens");
    peer.request(1, "initialize", json!({})).await;
    assert!(matches!(
        peer.failure().await.1,
        SendFailure::Unreachable { .. }
    ));
}
