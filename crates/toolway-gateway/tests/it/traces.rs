//! Traces through the gateway: what servers are told of them, and which spans a collector gets.

mod collector;

use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use serde_json::{Value, json};
use toolway::{SpanCounts, TraceContext};
use toolway_gateway::EndpointOptions;
use toolway_types::Era;

use self::collector::{Collector, Reaction, export_to, text_of};
use crate::scene::{ERAS, Scene, Upstream, WAYS, Way, full};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const OTHER: &str = "00-1af7651916cd43dd8448eb211c80319c-a7ad6b7169203331-01";

async fn scene(era: Era, way: Way, collector: Option<&Collector>) -> Scene {
    let upstreams = vec![Upstream::new("s", way, full(era, "s"))];
    let tracer = collector.map(|it| it.export.tracer().clone());
    let scene = Scene::traced(upstreams, &EndpointOptions::default(), tracer);
    scene.host.settled().await;
    scene
}

/// What the server was told: in `_meta`, and in the headers of the call.
fn told(scene: &Scene, answer: &Value) -> (Value, Option<Value>) {
    let meta = answer["result"]["_meta"].clone();
    let listening = scene.upstreams[0].listening.as_ref();
    (
        meta,
        listening.map(|server| server.stats()["trace"].clone()),
    )
}

fn of_kind(spans: &[Span], kind: SpanKind) -> &Span {
    let mut calls = spans.iter().filter(|span| {
        span.kind() == kind && text_of(&span.attributes, "mcp.method.name") == "tools/call"
    });
    let span = calls
        .next()
        .unwrap_or_else(|| panic!("no {kind:?} among {spans:?}"));
    assert!(calls.next().is_none(), "{spans:?}");
    span
}

fn span_id(traceparent: &Value) -> Vec<u8> {
    let text = traceparent.as_str().unwrap();
    let parent = TraceContext::of_texts(Some(text), None, None).parent();
    parent.unwrap().span.to_vec()
}

#[tokio::test]
async fn a_call_is_one_trace_from_the_client_to_the_server_in_every_combination() {
    for (server, up) in ERAS.into_iter().flat_map(|era| WAYS.map(|way| (era, way))) {
        for (era, down) in ERAS.into_iter().flat_map(|era| WAYS.map(|way| (era, way))) {
            let collector = Collector::start(&[]).await;
            let scene = scene(server, up, Some(&collector)).await;
            let mut client = scene.client(era, down).await;
            client.meta = json!({ "traceparent": PARENT, "tracestate": "a=1", "baggage": "b=2",
                "com.example/x": [1] });
            let secret = json!({ "word": "only for the server" });
            let answer = client.call("mirror", secret).await;
            let label = format!("{} at {server:?} over {up:?}", client.label);
            let (meta, headers) = told(&scene, &answer);
            drop(client);
            scene.end().await;
            let (spans, raw, counts) = collector.end().await;

            let answering = of_kind(&spans, SpanKind::Server);
            let asking = of_kind(&spans, SpanKind::Client);
            assert_eq!(answering.parent_span_id, span_id(&PARENT.into()), "{label}");
            assert_eq!(asking.parent_span_id, answering.span_id, "{label}");
            assert_eq!(span_id(&meta["traceparent"]), asking.span_id, "{label}");
            for span in [answering, asking] {
                assert_eq!(hex_of(&span.trace_id), TRACE);
                assert_eq!(span.trace_state, "a=1");
                assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
                assert!(span.status.is_none(), "{span:?}");
                assert_eq!(
                    text_of(&span.attributes, "gen_ai.operation.name"),
                    "execute_tool"
                );
            }
            assert_eq!(meta["com.example/x"], json!([1]), "{label}");
            assert_eq!(
                (&meta["tracestate"], &meta["baggage"]),
                (&json!("a=1"), &json!("b=2"))
            );
            if let Some(headers) = headers {
                for name in ["traceparent", "tracestate", "baggage"] {
                    assert_eq!(headers[name], meta[name], "{label}");
                }
            }

            let version = |era| {
                if era == Era::Modern {
                    "2026-07-28"
                } else {
                    "2025-11-25"
                }
            };
            let network = |way| if way == Way::Http { "tcp" } else { "pipe" };
            let of = |span: &Span, name| text_of(&span.attributes, name);
            assert_eq!(
                (&*answering.name, &*asking.name),
                ("tools/call s__mirror", "tools/call mirror")
            );
            assert_eq!(of(answering, "gen_ai.tool.name"), "s__mirror");
            assert_eq!(of(asking, "gen_ai.tool.name"), "mirror");
            assert_eq!(of(asking, "toolway.server.name"), "s");
            assert_eq!(
                of(answering, "mcp.protocol.version"),
                version(era),
                "{label}"
            );
            assert_eq!(
                of(asking, "mcp.protocol.version"),
                version(server),
                "{label}"
            );
            assert_eq!(of(answering, "network.transport"), network(down), "{label}");
            assert_eq!(of(asking, "network.transport"), network(up), "{label}");
            assert!(of(asking, "jsonrpc.request.id").parse::<u64>().is_ok());
            assert_eq!(counts.dropped, 0, "{label}");
            assert_eq!(usize::try_from(counts.exported).unwrap(), spans.len());
            let all = String::from_utf8_lossy(&raw).into_owned();
            assert!(!all.contains("only for the server"), "{label}");
            assert!(!all.contains("for the collector"), "{label}");
        }
    }
}

fn hex_of(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

#[tokio::test]
async fn a_subscription_carries_the_trace_of_the_client_that_caused_it() {
    for (server, up) in ERAS.into_iter().flat_map(|era| WAYS.map(|way| (era, way))) {
        for era in ERAS {
            let scene = scene(server, up, None).await;
            let mut clients = Vec::new();
            for (trace, name, uri) in [
                (PARENT, "anna", "s:own"),
                // It is followed already.
                (OTHER, "bob", "s:own"),
                (OTHER, "bob", "s:page/1"),
            ] {
                let mut client = scene.line(era, Way::Http, name);
                client.greet().await;
                client.meta = json!({ "traceparent": trace });
                if era == Era::Legacy {
                    let answer = client
                        .ask("resources/subscribe", json!({ "uri": uri }))
                        .await;
                    assert_eq!(answer["result"], json!({}));
                } else {
                    let wanted = json!({ "resourceSubscriptions": [uri] });
                    client.begin("subscriptions/listen", json!({ "notifications": wanted }));
                    client
                        .notice("notifications/subscriptions/acknowledged")
                        .await;
                }
                clients.push(client);
            }
            let label = format!("{era:?} at {server:?} over {up:?}");
            let report = clients[0].report().await;
            assert_eq!(report["traces"], json!([PARENT, OTHER]), "{label}");
            drop(clients);
            scene.end().await;
        }
    }
}

#[tokio::test]
async fn headers_are_heeded_where_meta_says_nothing_and_linked_where_it_does() {
    let collector = Collector::start(&[]).await;
    let scene = scene(Era::Modern, Way::Http, Some(&collector)).await;
    let mut client = scene.line_with(Era::Modern, &[("traceparent", PARENT), ("baggage", "b=2")]);
    let answer = client.call("mirror", json!({})).await;
    assert!(
        told(&scene, &answer).0["traceparent"]
            .as_str()
            .unwrap()
            .contains(TRACE)
    );
    assert_eq!(told(&scene, &answer).0["baggage"], "b=2");
    client.meta = json!({ "traceparent": OTHER });
    client.call("mirror", json!({})).await;
    drop(client);
    scene.end().await;
    let (spans, _, _) = collector.end().await;
    let calls: Vec<_> = spans
        .iter()
        .filter(|span| span.kind() == SpanKind::Server && span.name.starts_with("tools/call"))
        .collect();
    let [first, second] = calls[..] else {
        panic!("{calls:?}")
    };
    assert_eq!(first.parent_span_id, span_id(&PARENT.into()));
    assert!(first.links.is_empty());
    assert_eq!(second.parent_span_id, span_id(&OTHER.into()));
    assert_eq!(second.links[0].span_id, span_id(&PARENT.into()));
}

#[tokio::test]
async fn who_began_a_trace_that_is_not_kept_gets_no_spans_and_servers_are_told_the_same() {
    let collector = Collector::start(&[]).await;
    let scene = scene(Era::Legacy, Way::Http, Some(&collector)).await;
    let mut client = scene.client(Era::Modern, Way::Http).await;
    let off = PARENT.replace("-01", "-00");
    client.meta = json!({ "traceparent": off });
    let answer = client.call("mirror", json!({})).await;
    let (meta, headers) = told(&scene, &answer);
    assert_eq!(meta["traceparent"], off);
    assert_eq!(headers.unwrap()["traceparent"], off);
    drop(client);
    scene.end().await;
    let (spans, _, _) = collector.end().await;
    assert!(
        spans
            .iter()
            .all(|span| !span.name.starts_with("tools/call")),
        "{spans:?}"
    );
}

#[tokio::test]
async fn without_a_collector_a_context_passes_unchanged_from_meta_and_from_headers() {
    for (server, up) in ERAS.into_iter().flat_map(|era| WAYS.map(|way| (era, way))) {
        let scene = scene(server, up, None).await;
        for era in ERAS {
            let own = [
                ("traceparent", PARENT),
                ("tracestate", "a=1"),
                ("baggage", "b=2"),
            ];
            let mut client = scene.line_with(era, &own);
            client.greet().await;
            let expected = json!({ "traceparent": PARENT, "tracestate": "a=1", "baggage": "b=2" });
            let answer = client.call("mirror", json!({})).await;
            let (meta, headers) = told(&scene, &answer);
            assert_eq!(meta, expected, "{}", client.label);
            assert!(headers.is_none_or(|headers| headers == expected));
            client.meta = json!({ "traceparent": OTHER });
            let answer = client.call("mirror", json!({})).await;
            let (meta, headers) = told(&scene, &answer);
            let expected = json!({ "traceparent": OTHER, "baggage": "b=2" });
            assert_eq!(meta, expected, "{}", client.label);
            assert!(headers.is_none_or(|headers| headers == expected));
        }
        scene.end().await;
    }
}

#[tokio::test]
async fn sec_22_a_context_that_is_none_reaches_nobody_and_injects_nothing() {
    for traced in [false, true] {
        let collector = Collector::start(&[]).await;
        let collector = traced.then_some(collector);
        let scene = scene(Era::Modern, Way::Http, collector.as_ref()).await;
        let mut client = scene.client(Era::Modern, Way::Stdio).await;
        for (parent, baggage) in [
            (
                format!("{PARENT}\r\nx-evil: 1"),
                "a=1\r\nx-evil: 1".to_owned(),
            ),
            ("00".to_owned(), "no pair".to_owned()),
            (PARENT.to_uppercase(), format!("a={}", "x".repeat(10_000))),
        ] {
            client.meta = json!({ "traceparent": parent, "tracestate": "a=1\nx", "baggage": baggage,
                "com.example/x": 1 });
            let answer = client.call("mirror", json!({})).await;
            let (meta, headers) = told(&scene, &answer);
            let (meta, headers) = (meta.as_object().unwrap(), headers.unwrap());
            assert_eq!(meta["com.example/x"], 1);
            assert!(!meta.contains_key("baggage") && !meta.contains_key("tracestate"));
            // A trace of our own begins where spans are made, and none where not.
            assert_eq!(meta.contains_key("traceparent"), traced, "{meta:?}");
            assert_eq!(headers.get("traceparent"), meta.get("traceparent"));
            assert!(
                !meta
                    .get("traceparent")
                    .is_some_and(|it| it == parent.as_str())
            );
        }
        drop(client);
        scene.end().await;
    }
}

#[tokio::test]
async fn errors_have_their_type_and_no_words() {
    let collector = Collector::start(&[]).await;
    let scene = scene(Era::Modern, Way::Stdio, Some(&collector)).await;
    let mut client = scene.client(Era::Modern, Way::Http).await;
    let answer = client.call("fail", json!({})).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let answer = client.call("hostile\nname", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    client.ask("no/such/method", json!({})).await;
    let before = client.report().await["calls"].as_u64().unwrap();
    let id = client.begin_call("hang", json!({}));
    // Each look is a call itself; one more is the one that hangs.
    let mut looks = 1;
    while client.report().await["calls"].as_u64().unwrap() == before + looks {
        looks += 1;
    }
    client.cancel(id);
    client.reports("cancellations", &json!(1)).await;
    drop(client);
    scene.end().await;
    let (spans, raw, _) = collector.end().await;
    let failed: Vec<_> = spans
        .iter()
        .filter(|span| {
            span.status
                .as_ref()
                .is_some_and(|it| it.code() == StatusCode::Error)
        })
        .map(|span| {
            (
                span.kind(),
                &*span.name,
                text_of(&span.attributes, "error.type"),
            )
        })
        .collect();
    let expected = [
        (SpanKind::Client, "tools/call fail", "tool_error"),
        (SpanKind::Server, "tools/call s__fail", "tool_error"),
        (SpanKind::Server, "tools/call", "-32602"),
        (SpanKind::Server, "other", "-32601"),
        (SpanKind::Client, "tools/call hang", "cancelled"),
        (SpanKind::Server, "tools/call s__hang", "cancelled"),
    ];
    for (kind, name, error) in expected {
        assert!(
            failed.contains(&(kind, name, error.to_owned())),
            "{name} in {failed:?}"
        );
    }
    assert!(
        spans
            .iter()
            .flat_map(|span| &span.status)
            .all(|status| status.message.is_empty())
    );
    assert!(!String::from_utf8_lossy(&raw).contains("hostile"));
}

#[tokio::test]
async fn rel_29_a_collector_that_is_busy_refuses_hangs_or_talks_nonsense_harms_no_call() {
    for (reactions, exported) in [
        (&[Reaction::Busy, Reaction::Busy][..], false),
        (&[Reaction::Refuse], false),
        (&[Reaction::Hang], false),
        (&[Reaction::Nonsense], false),
        (&[Reaction::Endless], true),
        (&[], true),
    ] {
        let collector = Collector::start(reactions).await;
        let scene = scene(Era::Legacy, Way::Stdio, Some(&collector)).await;
        let mut client = scene.client(Era::Legacy, Way::Stdio).await;
        client.call("mirror", json!({})).await;
        drop(client);
        scene.end().await;
        let begun = Instant::now();
        let (
            _,
            _,
            SpanCounts {
                exported: taken,
                dropped,
            },
        ) = collector.end().await;
        assert!(begun.elapsed() < Duration::from_secs(8), "{reactions:?}");
        // When the program ends there is one attempt.
        assert_eq!(
            (taken > 0, dropped > 0),
            (exported, !exported),
            "{reactions:?}"
        );
    }
}

#[tokio::test]
async fn rel_29_a_busy_collector_is_asked_again_while_the_program_runs() {
    let collector = Collector::start(&[Reaction::Busy, Reaction::Busy]).await;
    let scene = scene(Era::Legacy, Way::Stdio, Some(&collector)).await;
    let mut client = scene.client(Era::Legacy, Way::Stdio).await;
    // A full batch is sent at once.
    while collector.seen() < 3 {
        client.ask("ping", json!({})).await;
    }
    drop(client);
    scene.end().await;
    let (spans, _, counts) = collector.end().await;
    assert_eq!(counts.dropped, 0);
    assert_eq!(u64::try_from(spans.len()).unwrap(), counts.exported);
}

#[tokio::test]
async fn rel_29_a_collector_that_is_down_costs_spans_and_no_memory() {
    let export = export_to("http://127.0.0.1:1/v1/traces");
    let tracer = export.tracer().clone();
    for _ in 0..5_000 {
        let (span, _) = tracer.answer(TraceContext::default(), None, "ping");
        span.unwrap().succeeded();
    }
    // No more wait than there is room for.
    assert!(tracer.counts().dropped >= 5_000 - 2_048 - 512);
    export.end().await;
    assert_eq!(
        tracer.counts(),
        SpanCounts {
            exported: 0,
            dropped: 5_000
        }
    );
}
