//! Servers whose certificate does not do: told apart from servers that are not there, and not
//! tried again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use toolway::{Host, HostOptions, RetryFirst};
use toolway_types::{CertificateFault, FailureKind};

use crate::support::{Home, failure};

/// A server with a certificate that nobody signed; gives its port and how often it was called.
async fn stranger() -> (u16, Arc<AtomicUsize>) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a configuration");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            let _ = acceptor.accept(stream).await;
        }
    });
    (port, calls)
}

#[tokio::test]
async fn rel_27_a_certificate_that_nobody_signed_is_named_and_not_tried_again() {
    for (kind, scheme) in [("http", "https"), ("sse", "https"), ("ws", "wss")] {
        let (port, calls) = stranger().await;
        let url = format!("{scheme}://127.0.0.1:{port}/mcp");
        let home = Home::new();
        let plan = home.plan(&json!({ "far": { "type": kind, "url": url } }));
        let options = HostOptions {
            retry_first: RetryFirst::Backoff,
            ..home.options()
        };
        let host = Host::start(plan, options);
        host.settled().await;
        let failure = failure(&host, "far");
        let untrusted = FailureKind::Certificate(CertificateFault::Untrusted);
        assert_eq!(failure.kind, untrusted, "{kind}: {failure:?}");
        let words = "not signed by an authority that this system trusts";
        assert!(failure.message.contains(words), "{kind}: {failure:?}");
        assert_eq!(calls.load(Ordering::SeqCst), 1, "{kind}");
        host.shutdown().await;
    }
}
