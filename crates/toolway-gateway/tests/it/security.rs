//! What must not get past the edge: other machines, browsers (SEC-10, SEC-23, SEC-24), and
//! messages that two readers would read differently (SEC-21, SEC-22).

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use serde_json::json;
use toolway_gateway::ServeError;
use toolway_gateway::http::{self, HttpLimits, HttpOptions, HttpServer};

use crate::stdio::converse;
use crate::{Echo, exchange, post, request, served, with_options, with_server};

#[tokio::test]
async fn sec_10_an_address_that_other_machines_reach_is_refused() {
    // A free port, to see whether it is taken.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    for host in [
        "0.0.0.0",
        "[::]",
        "10.0.0.1",
        "192.0.2.1",
        "169.254.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "128.0.0.1",
        "[fe80::1]",
        "[::2]",
        "[2001:db8::1]",
        // What looks like loopback to one reader and like every address to another.
        "[::ffff:127.0.0.1]",
        "[::ffff:0.0.0.0]",
        "[::127.0.0.1]",
    ] {
        let address: SocketAddr = format!("{host}:{port}").parse().unwrap();
        let tried = HttpServer::bind(served(&Echo::shared()), &HttpOptions::at(address));
        let Err(refused) = tried else {
            panic!("{address} is served");
        };
        assert!(matches!(refused, ServeError::NotLoopback { address: it, .. } if it == address));
        let said = refused.to_string();
        assert!(said.contains(&address.to_string()), "{said}");
        assert!(said.contains("needs authentication, and TLS"), "{said}");
        // Refused before anything listened, on this address or on all.
        TcpListener::bind(("0.0.0.0", port)).unwrap();
    }
}

#[tokio::test]
async fn sec_10_a_server_listens_on_the_one_loopback_address_it_was_given() {
    with_server(Echo::shared(), async |address| {
        assert!(address.ip().is_loopback(), "{address}");
        let body = request(1, "echo", &json!({}));
        let answer = exchange(address, &post(address, &[], &body)).await;
        assert_eq!(answer.status, 200);
        // Another address of this machine is not answered, as it would be on all of them.
        let other = SocketAddr::from(([127, 0, 0, 2], address.port()));
        assert!(TcpStream::connect(other).is_err());
    })
    .await;
}

/// Messages in which the letters of a member's name differ from those that count.
const OTHER_LETTERS: &str = r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":{"name":"safe","Name":"danger"},"Method":"hang","METHOD":"bad","Params":{"name":"danger"},"ID":2,"Id":3,"JSONRPC":"1.0"}"#;

/// Without the one that counts, there is none.
const ONLY_OTHER_LETTERS: [&str; 2] = [
    r#"{"jsonrpc":"2.0","id":1,"Method":"echo","params":{}}"#,
    r#"{"jsonrpc":"2.0","id":1,"METHOD":"echo","params":{}}"#,
];

#[tokio::test]
async fn sec_21_members_count_by_their_exact_letters_over_http() {
    let service = Echo::shared();
    with_server(Arc::clone(&service), async |address| {
        let answer = exchange(address, &post(address, &[], OTHER_LETTERS)).await;
        let answer = answer.json();
        assert_eq!(answer["id"], 1);
        // The front hands over what came, neither in the place of the other; that a server never gets
        // the second one is in `attacks/clients.rs`.
        assert_eq!(
            answer["result"],
            json!({ "name": "safe", "Name": "danger" })
        );
        for body in ONLY_OTHER_LETTERS {
            let answer = exchange(address, &post(address, &[], body)).await;
            assert_eq!(answer.status, 400, "{body}: {answer:?}");
        }
        assert_eq!(service.seen(), 1);
    })
    .await;
}

#[tokio::test]
async fn sec_21_the_same_over_stdio() {
    let service = Echo::shared();
    converse(&service, async |client| {
        client.send(OTHER_LETTERS).await;
        let answer = client.receive().await;
        assert_eq!(answer["id"], 1);
        assert_eq!(
            answer["result"],
            json!({ "name": "safe", "Name": "danger" })
        );
        for body in ONLY_OTHER_LETTERS {
            client.send(body).await;
            let answer = client.receive().await;
            assert!(answer["error"]["code"].is_i64(), "{body}: {answer}");
        }
    })
    .await;
    assert_eq!(service.seen(), 1);
}

#[tokio::test]
async fn sec_23_every_route_refuses_foreign_hosts_and_origins() {
    let service = Echo::shared();
    let options = HttpOptions {
        old_transport: true,
        ..HttpOptions::default()
    };
    with_options(served(&service), &options, async |address| {
        let port = address.port();
        let body = request(1, "echo", &json!({}));
        // Existing, wrongly asked and missing routes: the guard stands in front of all of them.
        let routes = ["POST /mcp", "GET /mcp", "DELETE /mcp", "OPTIONS /mcp", "POST /mcp/server",
            "GET /mcp/p/profile", "GET /", "GET /sse", "POST /sse", "GET /sse/server",
            "POST /messages?sessionId=0", "GET /healthz", "GET /readyz", "GET /metrics", "GET /ws",
            "GET /.well-known/oauth-protected-resource"];
        let attacks = [
            ("a rebound name", format!("host: evil.example:{port}\r\n"), 403),
            ("a rebound name without port", "host: evil.example\r\n".to_owned(), 403),
            ("our name, another port", format!("host: localhost:{}\r\n", port ^ 1), 403),
            ("our name as a prefix", format!("host: localhost.evil.example:{port}\r\n"), 403),
            ("our name as user", format!("host: localhost@evil.example:{port}\r\n"), 403),
            ("a trailing dot", format!("host: localhost.:{port}\r\n"), 403),
            ("no host", String::new(), 400),
            ("two hosts", format!("host: localhost:{port}\r\nhost: evil.example\r\n"), 400),
            ("a foreign origin", format!("host: localhost:{port}\r\norigin: https://evil.example\r\n"), 403),
            ("the null origin", format!("host: localhost:{port}\r\norigin: null\r\n"), 403),
            ("a local page of another port", format!("host: localhost:{port}\r\norigin: http://localhost:{}\r\n", port ^ 1), 403),
            ("two origins", format!("host: localhost:{port}\r\norigin: http://localhost:{port}\r\norigin: https://evil.example\r\n"), 403),
        ];
        for route in routes {
            for (attack, headers, status) in &attacks {
                let raw = format!(
                    "{route} HTTP/1.1\r\n{headers}content-type: application/json\r\n\
                     connection: close\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                let answer = exchange(address, &raw).await;
                assert_eq!(answer.status, *status, "{route} with {attack}: {answer:?}");
                assert!(!answer.head.contains("access-control"), "{answer:?}");
            }
            let (method, path) = route.split_once(' ').unwrap();
            let raw = format!(
                "{method} http://evil.example{path} HTTP/1.1\r\nhost: localhost:{port}\r\n\
                 content-type: application/json\r\nconnection: close\r\n\r\n"
            );
            let answer = exchange(address, &raw).await;
            assert_eq!(answer.status, 400, "{route} with an absolute target");
        }
        assert_eq!(service.seen(), 0);
    })
    .await;
}

#[tokio::test]
async fn sec_23_our_own_names_and_origin_are_let_in() {
    with_server(Echo::shared(), async |address| {
        let port = address.port();
        let body = request(1, "echo", &json!({}));
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "[::1]"] {
            let raw = format!(
                "POST /mcp HTTP/1.1\r\nhost: {host}:{port}\r\norigin: http://{host}:{port}\r\n\
                 content-type: application/json\r\nconnection: close\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            );
            assert_eq!(exchange(address, &raw).await.status, 200, "{host}");
        }
    })
    .await;
}

#[tokio::test]
async fn sec_24_what_a_page_can_send_without_asking_is_refused() {
    let service = Echo::shared();
    with_server(Arc::clone(&service), async |address| {
        let body = request(1, "echo", &json!({}));
        for kind in [
            "text/plain",
            "text/plain;charset=application/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=application/json",
            "application/json-seq",
            "",
        ] {
            let raw = post(address, &[], &body).replace(
                "content-type: application/json",
                &format!("content-type: {kind}"),
            );
            assert_eq!(exchange(address, &raw).await.status, 415, "{kind}");
        }
        let untyped = post(address, &[], &body).replace("content-type: application/json\r\n", "");
        assert_eq!(exchange(address, &untyped).await.status, 415);
        let twice = post(address, &[("content-type", "text/plain")], &body);
        assert_eq!(exchange(address, &twice).await.status, 415);
        let packed = post(address, &[("content-encoding", "gzip")], &body);
        assert_eq!(exchange(address, &packed).await.status, 415);

        for site in ["cross-site", "same-site", "CROSS-SITE", "bogus"] {
            let raw = post(address, &[("sec-fetch-site", site)], &body);
            assert_eq!(exchange(address, &raw).await.status, 403, "{site}");
        }
        assert_eq!(service.seen(), 0);

        let ours = post(address, &[("sec-fetch-site", "same-origin")], &body)
            .replace("application/json", "Application/JSON; charset=utf-8");
        assert_eq!(exchange(address, &ours).await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn sec_24_a_preflight_gets_no_permission() {
    with_server(Echo::shared(), async |address| {
        let port = address.port();
        let raw = format!(
            "OPTIONS /mcp HTTP/1.1\r\nhost: localhost:{port}\r\norigin: https://evil.example\r\n\
             access-control-request-method: POST\r\nconnection: close\r\n\r\n"
        );
        let answer = exchange(address, &raw).await;
        assert_eq!(answer.status, 403);
        assert!(!answer.head.contains("access-control"), "{answer:?}");
    })
    .await;
}

/// Messages with a doubled member, and the id that can still be read of each.
const DOUBLED: [(&str, Option<u64>); 12] = [
    (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"echo"}"#, None),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"echo","meth\u006fd":"hang"}"#,
        None,
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":{},"params":{"x":1}}"#,
        None,
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","name":"danger"}}"#,
        Some(1),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","n\u0061me":"danger"}}"#,
        Some(1),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"a":[[{"path":"/a","path":"/b"}]]}}}"#,
        Some(1),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":{"_meta":{"v":1,"v":1}}}"#,
        Some(1),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":{},"unknown":{"a":1,"a":1}}"#,
        Some(1),
    ),
    // What a strict reader cannot take must not end its search for doubled members.
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":{"x":1e999,"name":"safe","name":"danger"}}"#,
        Some(1),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":{"x":"\ud800","name":"safe","name":"danger"}}"#,
        Some(1),
    ),
    (
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"requestId":2}}"#,
        None,
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"result":{"action":"decline","action":"accept"}}"#,
        None,
    ),
];

#[tokio::test]
async fn sec_22_a_doubled_member_is_refused_at_any_depth_over_http() {
    let service = Echo::shared();
    with_server(Arc::clone(&service), async |address| {
        for (body, id) in DOUBLED {
            let answer = exchange(address, &post(address, &[], body)).await;
            assert_eq!(answer.status, 400, "{body}: {answer:?}");
            let answer = answer.json();
            assert_eq!(answer["error"]["code"], -32700, "{body}");
            assert_eq!(answer["id"].as_u64(), id, "{body}");
        }
        assert_eq!(service.seen(), 0);
        // The same name in two objects is nothing doubled.
        let twins = json!({ "a": { "name": "x" }, "b": [{ "name": "x" }, { "name": "x" }] });
        let answer = exchange(address, &post(address, &[], &request(1, "echo", &twins))).await;
        assert_eq!(answer.json()["result"], twins);
    })
    .await;
}

#[tokio::test]
async fn sec_22_the_same_over_stdio() {
    let service = Echo::shared();
    converse(&service, async |client| {
        for (body, id) in DOUBLED {
            client.send(body).await;
            let answer = client.receive().await;
            assert_eq!(answer["error"]["code"], -32700, "{body}");
            assert_eq!(answer["id"].as_u64(), id, "{body}");
        }
    })
    .await;
    assert_eq!(service.seen(), 0);
}

/// A change of one of these is a decision, never the side effect of a new dependency.
#[test]
fn sec_24_the_defaults_are_pinned() {
    assert_eq!(http::ENDPOINT, "/mcp");
    assert_eq!(http::MAX_BODY, 4 * 1024 * 1024);
    assert_eq!(http::MAX_HEAD, 16 * 1024);
    assert_eq!(http::HEAD_TIMEOUT.as_secs(), 10);
    assert_eq!(http::BODY_TIMEOUT.as_secs(), 30);
    assert_eq!(http::WRITE_TIMEOUT.as_secs(), 30);
    assert_eq!(http::KEEPALIVE.as_secs(), 15);
    let limits = HttpLimits::default();
    assert_eq!(limits.connections, 1024);
    assert_eq!((limits.calls, limits.streams), (1024, 100));
    assert_eq!((limits.sessions, limits.all_sessions), (10_000, 20_000));
    assert_eq!(limits.session_idle.as_secs(), 1800);
    let options = HttpOptions::default();
    assert!(options.address.ip().is_loopback());
    assert!(!options.behind_proxy && !options.old_transport && options.hosts.is_empty());
    assert_eq!(toolway_gateway::outlet::MAX_WAITING, 256);
    assert_eq!(toolway_gateway::outlet::MAX_WAITING_BYTES, 4 * 1024 * 1024);
    assert_eq!(toolway_gateway::outlet::MAX_UNREAD, 64 * 1024 * 1024);
}
