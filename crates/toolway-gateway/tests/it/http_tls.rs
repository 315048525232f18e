//! Encrypted connections, and the certificate's files.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use toolway_gateway::http::{HEAD_TIMEOUT, HttpOptions, HttpServer, TlsFiles};

use crate::{Echo, post, request, served, with_options};

/// Makes a certificate for this machine.
pub(crate) fn certificate(folder: &Path, name: &str) -> TlsFiles {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let files = TlsFiles {
        certificate: folder.join(format!("{name}.pem")),
        key: folder.join(format!("{name}.key")),
    };
    std::fs::write(&files.certificate, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    files
}

/// What a client says that trusts this certificate alone.
async fn talk(address: std::net::SocketAddr, trusted: &[u8], raw: &str) -> std::io::Result<String> {
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(trusted).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::IpAddress(address.ip().into());
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, stream).await?;
    stream.write_all(raw.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8(answer).unwrap())
}

#[tokio::test]
async fn requests_are_served_encrypted_and_not_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let files = certificate(folder.path(), "one");
    let trusted = std::fs::read(&files.certificate).unwrap();
    let options = HttpOptions {
        tls: Some(files),
        ..HttpOptions::default()
    };
    let service = Echo::shared();
    with_options(served(&service), &options, async |address| {
        // More than one record.
        let fill = "x".repeat(100_000);
        let body = request(1, "echo", &json!({ "fill": fill }));
        let origin = format!("https://{address}");
        let call = post(address, &[("origin", &origin)], &body);
        let answer = talk(address, &trusted, &call).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.contains(&fill));
        // A page that was not encrypted is not ours.
        let origin = format!("http://{address}");
        let call = post(address, &[("origin", &origin)], &body);
        let answer = talk(address, &trusted, &call).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");

        let mut plain = TcpStream::connect(address).await.unwrap();
        plain
            .write_all(post(address, &[], &body).as_bytes())
            .await
            .unwrap();
        let mut heard = Vec::new();
        drop(plain.read_to_end(&mut heard).await);
        assert!(!heard.starts_with(b"HTTP"), "{heard:?}");
        assert_eq!(service.seen(), 1);

        // Who never greets is cut off in time.
        let mut silent = TcpStream::connect(address).await.unwrap();
        tokio::task::yield_now().await;
        tokio::time::pause();
        let started = tokio::time::Instant::now();
        let mut heard = Vec::new();
        drop(silent.read_to_end(&mut heard).await);
        let waited = started.elapsed();
        tokio::time::resume();
        assert!(waited.abs_diff(HEAD_TIMEOUT).as_secs() <= 1, "{waited:?}");
    })
    .await;
}

#[tokio::test]
async fn a_new_certificate_is_taken_without_a_restart_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let files = certificate(folder.path(), "one");
    let first = std::fs::read(&files.certificate).unwrap();
    let options = HttpOptions {
        tls: Some(files.clone()),
        ..HttpOptions::default()
    };
    let service = Echo::shared();
    let (server, driver) = HttpServer::bind(served(&service), &options).unwrap();
    let address = server.address();
    assert_eq!(server.url(), format!("https://{address}/mcp"));
    let talking = async {
        let call = post(address, &[], &request(1, "echo", &json!({})));
        assert!(talk(address, &first, &call).await.is_ok());
        let fresh = certificate(folder.path(), "two");
        let second = std::fs::read(&fresh.certificate).unwrap();
        std::fs::copy(&fresh.certificate, &files.certificate).unwrap();
        // With the old key it is of no use: the old certificate stays.
        let said = server.reload_certificate().unwrap_err().to_string();
        assert!(
            said.contains("one.pem") && said.contains("one.key"),
            "{said}"
        );
        assert!(talk(address, &first, &call).await.is_ok());
        std::fs::copy(&fresh.key, &files.key).unwrap();
        server.reload_certificate().unwrap();
        assert!(talk(address, &first, &call).await.is_err());
        assert!(talk(address, &second, &call).await.is_ok());

        // And by itself, when the files change.
        let third = certificate(folder.path(), "three");
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        for (from, to) in [
            (&third.certificate, &files.certificate),
            (&third.key, &files.key),
        ] {
            std::fs::copy(from, to).unwrap();
            let file = std::fs::File::options().write(true).open(to).unwrap();
            file.set_modified(later).unwrap();
        }
        tokio::time::pause();
        tokio::time::sleep(std::time::Duration::from_secs(20)).await;
        tokio::time::resume();
        let third = std::fs::read(&third.certificate).unwrap();
        assert!(talk(address, &third, &call).await.is_ok());
        server.shutdown().await;
    };
    tokio::join!(driver, talking);
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let good = certificate(folder.path(), "good");
    let other = certificate(folder.path(), "other");
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let broken = folder.path().join("broken.pem");
    std::fs::write(
        &broken,
        "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n",
    )
    .unwrap();
    let missing = folder.path().join("missing.pem");
    for (certificate, key, words) in [
        (&missing, &good.key, vec!["cannot read", "missing.pem"]),
        (
            &good.certificate,
            &missing,
            vec!["cannot read", "missing.pem"],
        ),
        (&empty, &good.key, vec!["empty.pem", "no certificate"]),
        (&broken, &good.key, vec!["cannot read", "broken.pem"]),
        (&good.certificate, &empty, vec!["cannot read", "empty.pem"]),
        (&good.certificate, &other.key, vec!["good.pem", "other.key"]),
        (
            &folder.path().to_owned(),
            &good.key,
            vec!["no regular file"],
        ),
    ] {
        let options = HttpOptions {
            tls: Some(TlsFiles {
                certificate: certificate.clone(),
                key: key.clone(),
            }),
            ..HttpOptions::default()
        };
        let tried = HttpServer::bind(served(&Echo::shared()), &options);
        let said = tried.err().unwrap().to_string();
        for word in words {
            assert!(said.contains(word), "{said}");
        }
        assert!(!said.contains("PRIVATE KEY"), "{said}");
    }
}
