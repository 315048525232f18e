//! What is seen from outside: health, readiness, metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use toolway_gateway::http::access::OwnerToken;
use toolway_gateway::http::{Access, FrontObserver, HttpOptions, HttpServer};

use toolway_testkit::marked;

use crate::{Echo, exchange, http_stage::raw, post, request, served, with_options};

#[derive(Default)]
struct Gauge {
    is_ready: AtomicBool,
}

impl FrontObserver for Gauge {
    fn readiness(&self) -> Result<(), String> {
        if self.is_ready.load(Ordering::SeqCst) {
            Ok(())
        } else {
            Err("no server is connected".to_owned())
        }
    }

    fn write_metrics(&self, out: &mut String) {
        out.push_str("toolway_calls_total 7\n");
    }
}

fn observed() -> (Arc<Gauge>, HttpOptions) {
    let gauge = Arc::new(Gauge::default());
    let options = HttpOptions {
        observer: Some(Arc::clone(&gauge) as _),
        access: Access::Checked(Arc::new(OwnerToken::new(marked!(""), "desk"))),
        ..HttpOptions::default()
    };
    (gauge, options)
}

#[tokio::test]
async fn health_and_readiness_are_told_to_everybody() {
    let (gauge, options) = observed();
    with_options(served(&Echo::shared()), &options, async |address| {
        let get = async |line: &str| exchange(address, &raw(line, address, &[], None)).await;
        assert_eq!(get("GET /healthz").await.body, "ok\n");
        let answer = get("GET /readyz").await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (503, "no server is connected\n")
        );
        gauge.is_ready.store(true, Ordering::SeqCst);
        assert_eq!(get("GET /readyz").await.status, 200);
        let head = get("HEAD /readyz").await;
        assert_eq!((head.status, head.body.as_str()), (200, ""));
        for line in ["DELETE /healthz", "PUT /readyz"] {
            let answer = get(line).await;
            assert_eq!(answer.status, 405, "{line}");
            assert!(answer.head.contains("allow: get"), "{line}");
        }
    })
    .await;
}

#[tokio::test]
async fn metrics_are_the_owners() {
    let (_, options) = observed();
    with_options(served(&Echo::shared()), &options, async |address| {
        let token = [("authorization", marked!("Bearer "))];
        let answer = exchange(address, &raw("GET /metrics", address, &token, None)).await;
        assert!(
            answer
                .head
                .contains("content-type: text/plain; version=0.0.4")
        );
        assert!(
            answer.body.starts_with("toolway_calls_total 7\n"),
            "{}",
            answer.body
        );
        assert!(answer.body.contains("\ntoolway_http_connections_total 1\n"));
        let answer = exchange(address, &raw("DELETE /metrics", address, &token, None)).await;
        assert_eq!(answer.status, 405);
    })
    .await;
    // Where nobody shows a token, nobody is the owner.
    with_options(
        served(&Echo::shared()),
        &HttpOptions::default(),
        async |address| {
            let answer = exchange(address, &raw("GET /metrics", address, &[], None)).await;
            assert_eq!(answer.status, 403);
        },
    )
    .await;
}

#[tokio::test]
async fn sec_23_metrics_at_an_address_of_their_own_are_behind_the_guard_too() {
    let (_, mut options) = observed();
    options.metrics_address = Some(([127, 0, 0, 1], 0).into());
    let service = Echo::shared();
    let (server, driver) = HttpServer::bind(served(&service), &options).unwrap();
    let talking = async {
        let metrics = server.metrics_address().unwrap();
        let get = async |line: &str| exchange(metrics, &raw(line, metrics, &[], None)).await;
        assert!(
            get("GET /metrics")
                .await
                .body
                .contains("toolway_calls_total 7")
        );
        assert_eq!(get("GET /healthz").await.status, 200);
        let body = request(1, "echo", &json!({}));
        let call = post(metrics, &[("authorization", marked!("Bearer "))], &body);
        assert_eq!(exchange(metrics, &call).await.status, 404);
        assert_eq!(get("GET /mcp").await.status, 404);
        for (headers, status) in [
            ("host: evil.example\r\n".to_owned(), 403),
            (format!("host: {}\r\n", server.address()), 403),
            (
                format!("host: {metrics}\r\norigin: https://evil.example\r\n"),
                403,
            ),
            (String::new(), 400),
        ] {
            let call = format!("GET /metrics HTTP/1.1\r\n{headers}connection: close\r\n\r\n");
            assert_eq!(exchange(metrics, &call).await.status, status, "{headers}");
        }
        assert_eq!(service.seen(), 0);
        server.shutdown().await;
    };
    tokio::join!(driver, talking);
}
