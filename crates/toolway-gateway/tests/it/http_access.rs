//! Who may come in: tokens of every kind, and what is answered without one (SEC-27, SEC-46).

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolway_auth::clock::unix_now;
use toolway_auth::inbound::{InboundAuthorizer, InboundOptions};
use toolway_auth::web::WebClient;
use toolway_gateway::http::access::{OAuthAccess, OwnerToken};
use toolway_gateway::http::{Access, AnyOf, Authenticator, HttpOptions, HttpServer, TlsFiles};
use toolway_gateway::{Endpoint, ServeError};
use toolway_testkit::authority::TestKey;
use toolway_testkit::marked;
use toolway_transport::client::HttpClient;

use crate::http_stage::{MODERN, OnStage, Stage, initialize, modern, raw};
use crate::{Echo, HttpAnswer, exchange, request, served, with_options};

const TOKEN: &str = marked!("tw-");

fn with_token() -> HttpOptions {
    HttpOptions {
        access: Access::Checked(Arc::new(OwnerToken::new(TOKEN, "desk"))),
        ..HttpOptions::default()
    }
}

fn staged() -> (Arc<Stage>, Arc<OnStage>) {
    let stage = Arc::new(Stage::default());
    (Arc::clone(&stage), Arc::new(OnStage(stage)))
}

async fn whoami(address: SocketAddr, path: &str, token: Option<&str>) -> HttpAnswer {
    let value = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![MODERN, ("mcp-method", "whoami")];
    headers.extend(value.as_deref().map(|value| ("authorization", value)));
    let body = request(1, "whoami", &modern(json!({})));
    exchange(
        address,
        &raw(&format!("POST {path}"), address, &headers, Some(&body)),
    )
    .await
}

#[tokio::test]
async fn sec_27_nothing_is_served_without_the_token() {
    let (stage, service) = staged();
    let options = HttpOptions {
        old_transport: true,
        ..with_token()
    };
    let counters = Arc::clone(&options.counters);
    with_options(service, &options, async |address| {
        let body = request(1, "whoami", &json!({}));
        let mut tried = 0;
        for line in [
            "POST /mcp",
            "POST /mcp/github",
            "POST /mcp/p/work",
            "GET /mcp",
            "DELETE /mcp",
            "PUT /mcp",
            "GET /sse",
            "GET /sse/github",
            "POST /messages?sessionId=0",
            "GET /metrics",
        ] {
            let body = line.starts_with("POST").then_some(body.as_str());
            for headers in [
                vec![],
                vec![("authorization", marked!("Bearer wrong-"))],
                vec![("authorization", marked!("Bearer tw"))],
                vec![("authorization", marked!("Bearer tw-", "0"))],
                vec![("authorization", marked!("Basic tw-"))],
                vec![("authorization", TOKEN)],
                vec![("cookie", marked!("token=tw-"))],
                vec![("x-api-key", TOKEN)],
                vec![
                    ("x-forwarded-for", "127.0.0.1"),
                    ("x-forwarded-user", "owner"),
                ],
            ] {
                let answer = exchange(address, &raw(line, address, &headers, body)).await;
                assert_eq!(answer.status, 401, "{line} with {headers:?}");
                assert!(
                    answer.head.contains("www-authenticate: bearer"),
                    "{answer:?}"
                );
                assert!(!answer.body.contains("tw-"), "{answer:?}");
                tried += 1;
            }
            // In the address it would stand in logs.
            let parameter = if line.contains('?') { '&' } else { '?' };
            let line = format!("{line}{parameter}access_token={TOKEN}");
            let answer = exchange(address, &raw(&line, address, &[], body)).await;
            assert_eq!(answer.status, 400, "{line}");
            tried += 1;
        }
        assert_eq!(stage.begun(), 0);
        let unauthorized = counters
            .unauthorized
            .load(std::sync::atomic::Ordering::SeqCst);
        assert_eq!(unauthorized, tried);
        let answer = whoami(address, "/mcp", Some(TOKEN)).await;
        assert_eq!(answer.json()["result"]["principal"], "owner");
        assert_eq!(answer.json()["result"]["shown"], "desk");
    })
    .await;
}

#[tokio::test]
async fn sec_27_what_is_public_needs_no_token() {
    let (_, service) = staged();
    with_options(service, &with_token(), async |address| {
        for (path, status) in [
            ("/healthz", 200),
            ("/readyz", 200),
            ("/nowhere", 404),
            // Without an issuer there is no such document.
            ("/.well-known/oauth-protected-resource", 404),
            ("/sse", 404),
        ] {
            let get = raw(&format!("GET {path}"), address, &[], None);
            assert_eq!(exchange(address, &get).await.status, status, "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn sec_46_what_was_for_us_reaches_nobody_behind_us() {
    let (_, service) = staged();
    with_options(service, &with_token(), async |address| {
        let bearer = format!("Bearer {TOKEN}");
        let owner = ("authorization", bearer.as_str());
        let id = initialize(address, "/mcp", &[owner]).await;
        let secrets = [
            owner,
            ("cookie", "a=b"),
            ("proxy-authorization", "Basic eA=="),
            ("mcp-session-id", id.as_str()),
            ("x-kept", "1"),
        ];
        let body = request(1, "headers", &json!({}));
        let legacy = raw("POST /mcp", address, &secrets, Some(&body));
        let body = request(1, "headers", &modern(json!({})));
        let mut headers = secrets.to_vec();
        headers.extend([MODERN, ("mcp-method", "headers")]);
        let modern = raw("POST /mcp", address, &headers, Some(&body));
        for call in [legacy, modern] {
            let answer = exchange(address, &call).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let seen = answer.json()["result"].to_string();
            assert!(seen.contains("x-kept"), "{seen}");
            for secret in ["authorization", "cookie", "mcp-session-id"] {
                assert!(!seen.contains(secret), "{secret} in {seen}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn paths_name_what_a_client_talks_to() {
    let (_, service) = staged();
    with_options(service, &HttpOptions::default(), async |address| {
        for (path, endpoint) in [
            ("/mcp", Endpoint::All),
            ("/mcp/github", Endpoint::Server("github".into())),
            ("/mcp/a%20b", Endpoint::Server("a b".into())),
            ("/mcp/p", Endpoint::Server("p".into())),
            ("/mcp/p/work", Endpoint::Profile("work".into())),
        ] {
            let answer = whoami(address, path, None).await;
            let seen = &answer.json()["result"]["endpoint"];
            assert_eq!(*seen, format!("{endpoint:?}"), "{path}");
        }
        assert_eq!(whoami(address, "/mcp/missing", None).await.status, 404);
        assert_eq!(whoami(address, "/mcp/crowded", None).await.status, 503);
        assert_eq!(whoami(address, "/mcp/a%2Fb", None).await.status, 404);
    })
    .await;
}

/// No route takes a command, a path or the definition of a server: what is sent to one is a message
/// of MCP, or nothing at all.
#[tokio::test]
async fn sec_09_no_route_takes_a_definition_of_a_server() {
    let (stage, service) = staged();
    let options = HttpOptions {
        old_transport: true,
        ..HttpOptions::default()
    };
    with_options(service, &options, async |address| {
        let definition = json!({
            "mcpServers": { "evil": { "command": "/bin/touch", "args": ["/tmp/pwned"], "env": {} } },
            "command": "/bin/touch", "args": ["/tmp/pwned"],
        });
        let methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE"];
        let known = [
            "/mcp",
            "/mcp/evil",
            "/mcp/p/evil",
            "/sse",
            "/sse/evil",
            "/messages",
            "/healthz",
            "/readyz",
            "/metrics",
            "/.well-known/oauth-protected-resource",
        ];
        let tried = [
            "/",
            "/api/servers",
            "/servers",
            "/config",
            "/test",
            "/mcp/test/connection",
            "/mcp/rest/test/connection",
            "/admin",
            "/toolway",
            "/stdio",
            "/shell",
            "/../etc/passwd",
            "/mcp/../../etc/passwd",
        ];
        for method in methods {
            for path in known.iter().chain(&tried) {
                let line = format!("{method} {path}");
                let call = raw(&line, address, &[], Some(&definition.to_string()));
                let mut answer = crate::http_stage::RawConnection::open(address, &call).await;
                let is_public = matches!(*path, "/healthz" | "/readyz")
                    && matches!(method, "GET" | "HEAD");
                let is_stream = method == "GET" && path.starts_with("/sse");
                if is_public || is_stream {
                    assert_eq!(answer.status, 200, "{line}");
                } else {
                    let refused = matches!(answer.status, 400 | 403 | 404 | 405);
                    assert!(refused, "{line}: {}", answer.status);
                    if tried.contains(path) {
                        assert_eq!(answer.status, 404, "{line}");
                    }
                }
                if is_stream {
                    assert_eq!(answer.event().await.unwrap().kind, "endpoint");
                }
            }
        }
        assert_eq!(stage.begun(), 0);
        assert!(stage.heard.lock().unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn sec_10_beyond_loopback_both_tokens_and_encryption_are_needed() {
    let folder = tempfile::tempdir().unwrap();
    let tls = crate::http_tls::certificate(folder.path(), "one");
    let anywhere: SocketAddr = ([0, 0, 0, 0], 0).into();
    let with = |access: Access, tls: Option<TlsFiles>, behind_proxy: bool| HttpOptions {
        address: anywhere,
        access,
        tls,
        behind_proxy,
        ..HttpOptions::default()
    };
    let checked = || with_token().access;
    let tried = |options: &HttpOptions| match HttpServer::bind(served(&Echo::shared()), options) {
        Ok(_) => "served".to_owned(),
        Err(error) => error.to_string(),
    };
    for (options, missing) in [
        (
            with(Access::Open, None, false),
            "it needs authentication, and TLS or a proxy in front that has it",
        ),
        (
            with(Access::Open, Some(tls.clone()), false),
            "it needs authentication",
        ),
        (
            with(checked(), None, false),
            "it needs TLS, or a proxy in front that has it",
        ),
        (with(Access::Open, None, true), "needs authentication"),
    ] {
        let said = tried(&options);
        assert!(said.ends_with(missing), "{said}");
    }
    assert_eq!(tried(&with(checked(), Some(tls), false)), "served");
    assert_eq!(tried(&with(checked(), None, true)), "served");
    // A proxy on this machine brings others to loopback.
    let behind = HttpOptions {
        behind_proxy: true,
        ..HttpOptions::default()
    };
    let refused = HttpServer::bind(served(&Echo::shared()), &behind);
    assert!(matches!(refused, Err(ServeError::OpenBehindProxy(_))));
    for host in ["", "*", "a b", "http://a", "a/b", "*.example"] {
        let options = HttpOptions {
            hosts: vec![host.to_owned()],
            ..HttpOptions::default()
        };
        let refused = HttpServer::bind(served(&Echo::shared()), &options);
        assert!(matches!(refused, Err(ServeError::HostName(_))), "{host}");
    }
}

/// An issuer of tokens: two documents, again and again.
async fn issue(listener: TcpListener, origin: String, key: &TestKey) {
    let metadata = json!({ "issuer": origin, "jwks_uri": format!("{origin}/keys") });
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if stream.read(&mut byte).await.unwrap() == 0 {
                break;
            }
            head.push(byte[0]);
        }
        let body = if head.starts_with(b"GET /keys ") {
            key.jwks().to_string()
        } else {
            metadata.to_string()
        };
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        drop(stream.write_all(answer.as_bytes()).await);
    }
}

#[tokio::test]
async fn sec_46_tokens_of_an_issuer_must_be_for_us_and_allow_enough() {
    const OURS: &str = "https://gateway.example/mcp";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let key = TestKey::new();
    let mut inbound = InboundOptions::new(OURS.parse().unwrap(), [origin.clone()]);
    inbound.scopes = vec!["mcp".to_owned()];
    inbound.offered = vec!["mcp".to_owned(), "mcp:work".to_owned()];
    let web = WebClient::trusted(HttpClient::default());
    let authorizer = InboundAuthorizer::new(inbound, web).unwrap();
    let profiles = vec![("mcp:work".to_owned(), "work".to_owned())];
    let both: Vec<Arc<dyn Authenticator>> = vec![
        Arc::new(OwnerToken::new(TOKEN, "desk")),
        Arc::new(OAuthAccess::new(authorizer, profiles)),
    ];
    let options = HttpOptions {
        access: Access::Checked(Arc::new(AnyOf(both))),
        hosts: vec!["gateway.example".to_owned()],
        behind_proxy: true,
        ..HttpOptions::default()
    };
    let (stage, service) = staged();
    let token = |changes: Value| {
        let now = unix_now();
        let mut claims = json!({
            "iss": origin, "aud": OURS, "sub": "person", "client_id": "editor",
            "scope": "mcp mcp:work", "iat": now, "exp": now + 600,
        });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        key.sign("at+jwt", &claims)
    };
    let talking = with_options(service, &options, async |address| {
        let document = "GET /.well-known/oauth-protected-resource/mcp";
        let document = exchange(address, &raw(document, address, &[], None)).await;
        assert_eq!(document.json()["resource"], OURS);
        assert_eq!(document.json()["authorization_servers"], json!([origin]));

        let answer = whoami(address, "/mcp", None).await;
        assert_eq!(answer.status, 401);
        let challenge = "www-authenticate: bearer resource_metadata=\"https://gateway.example/\
                         .well-known/oauth-protected-resource/mcp\", scope=\"mcp\"";
        assert!(answer.head.contains(challenge), "{}", answer.head);

        let good = token(json!({}));
        for _ in 0..3 {
            let answer = whoami(address, "/mcp", Some(&good)).await;
            let result = answer.json()["result"].clone();
            assert_eq!(result["shown"], "person");
            assert_eq!(result["principal"], format!("[\"{origin}\",\"person\"]"));
            assert_eq!(result["profile"], "work");
        }
        let served = stage.begun();
        for (changes, status, said) in [
            (
                json!({ "aud": "https://other.example/mcp" }),
                401,
                "invalid_token",
            ),
            (
                json!({ "iss": "https://other.example" }),
                401,
                "invalid_token",
            ),
            (json!({ "exp": 1 }), 401, "invalid_token"),
            (json!({ "scope": "other" }), 403, "insufficient_scope"),
            // Good, but for none of the profiles.
            (json!({ "scope": "mcp" }), 403, "insufficient_scope"),
        ] {
            let answer = whoami(address, "/mcp", Some(&token(changes.clone()))).await;
            assert_eq!(answer.status, status, "{changes}");
            assert!(answer.head.contains(said), "{changes}: {}", answer.head);
        }
        let mut forged = good.clone();
        forged.replace_range(good.len() - 8.., "AAAAAAAA");
        assert_eq!(whoami(address, "/mcp", Some(&forged)).await.status, 401);
        assert_eq!(stage.begun(), served);
        // The owner's own token is taken beside them.
        let answer = whoami(address, "/mcp", Some(TOKEN)).await;
        assert_eq!(answer.json()["result"]["principal"], "owner");
    });
    tokio::select! {
        () = issue(listener, origin.clone(), &key) => {}
        () = talking => {}
    }
}
