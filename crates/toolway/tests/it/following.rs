//! Resources through the library: followed over connections and eras, completed, saved.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolway::{CompletionReference, Host, ResourceSubscription, SubscribeError};

use crate::support::*;

const NOTES: &str = "file:///notes";

/// What a server was told about resources, and its newest voice.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>, Arc<Mutex<Option<Speaker>>>);

impl Heard {
    fn note(&self, what: String, speaker: &Speaker) {
        self.0.lock().expect("no panic").push(what);
        *self.1.lock().expect("no panic") = Some(speaker.clone());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().expect("no panic").clone()
    }

    fn say(&self, message: &Value) {
        self.1
            .lock()
            .expect("no panic")
            .as_ref()
            .expect("one")
            .say(message);
    }

    async fn until(&self, count: usize) {
        while self.all().len() < count {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
}

fn updated(uri: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": uri } })
}

/// A legacy server that says when resources change, and goes when `echo` is called.
fn legacy_server(heard: Heard) -> toolway::InProcessServer {
    scripted(move |message, speaker| {
        let uri = message["params"]["uri"].as_str().unwrap_or_default();
        match message["method"].as_str() {
            Some("initialize") => Reply::Result(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {}, "resources": { "subscribe": true } },
                "serverInfo": { "name": "legacy", "version": "1" },
            })),
            Some("resources/list") => Reply::Result(json!({ "resources": [] })),
            Some("resources/templates/list") => Reply::Result(json!({ "resourceTemplates": [] })),
            Some("resources/subscribe") if uri == NOTES => {
                heard.note(format!("subscribe {uri}"), speaker);
                Reply::Result(json!({}))
            }
            Some("resources/unsubscribe") => {
                heard.note(format!("unsubscribe {uri}"), speaker);
                Reply::Result(json!({}))
            }
            Some("resources/subscribe") => Reply::Error(-32002),
            Some("tools/call") => Reply::Gone,
            _ => legacy(message),
        }
    })
}

/// A modern server that does the same over `subscriptions/listen`.
fn modern_server(heard: Heard) -> toolway::InProcessServer {
    scripted(move |message, speaker| {
        let method = message["method"].as_str();
        match method {
            Some("server/discover") => Reply::Result(json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {}, "resources": { "subscribe": true } },
                "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "modern", "version": "2" } },
            })),
            Some("resources/list") => Reply::Result(json!({
                "resultType": "complete", "resources": [], "ttlMs": 0, "cacheScope": "private",
            })),
            Some("resources/templates/list") => Reply::Result(json!({
                "resultType": "complete", "resourceTemplates": [], "ttlMs": 0,
                "cacheScope": "private",
            })),
            Some("subscriptions/listen") => {
                let wanted = &message["params"]["notifications"]["resourceSubscriptions"];
                let granted: Vec<&Value> = wanted
                    .as_array()
                    .expect("one")
                    .iter()
                    .filter(|uri| *uri == NOTES)
                    .collect();
                heard.note(format!("listen {wanted}"), speaker);
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
                speaker.say(&json!({
                    "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                    "params": { "_meta": meta,
                        "notifications": { "resourceSubscriptions": granted } },
                }));
                Reply::Silence
            }
            Some("notifications/cancelled") => {
                heard.note("cancelled".to_owned(), speaker);
                Reply::Silence
            }
            Some("tools/call") => Reply::Gone,
            _ => modern(message),
        }
    })
}

async fn follow(host: &Host, uri: &str) -> Result<ResourceSubscription, SubscribeError> {
    host.subscribe_resource(&name("notes"), uri).await
}

#[tokio::test(start_paused = true)]
async fn a_followed_resource_is_followed_over_connections_and_let_go_when_dropped() {
    let first_and_again = |era: &str| match era {
        "legacy" => format!("subscribe {NOTES}"),
        _ => format!("listen [\"{NOTES}\"]"),
    };
    for era in ["legacy", "modern"] {
        let heard = Heard::default();
        let server = match era {
            "legacy" => legacy_server(heard.clone()),
            _ => modern_server(heard.clone()),
        };
        let home = Home::new();
        let host = home.host([("notes", server)]);
        let mut first = follow(&host, NOTES).await.expect("one");
        let mut second = follow(&host, NOTES).await.expect("one");
        assert_eq!(heard.all(), [first_and_again(era)], "both share one");
        heard.say(&updated("file:///other"));
        heard.say(&updated(NOTES));
        first.updated().await.expect("one");
        second.updated().await.expect("one");
        heard.say(&updated("file:///notes/part"));
        first.updated().await.expect("one");
        second.updated().await.expect("one");

        // The server goes; its successor is told as well, and what was missed is an update.
        echo(&host, "notes", "x").await.unwrap_err();
        first.updated().await.expect("one");
        assert_eq!(heard.all()[1..], [first_and_again(era)], "{era}");
        heard.say(&updated(NOTES));
        first.updated().await.expect("one");

        drop(first);
        drop(second);
        // Before anybody could look.
        let again = follow(&host, NOTES).await.expect("one");
        if era == "modern" {
            heard.until(4).await;
            // The farewell may come behind the new stream.
            let mut since = heard.all()[2..].to_vec();
            since.sort();
            assert_eq!(since, ["cancelled".to_owned(), first_and_again(era)]);
            heard.0.lock().expect("no panic").truncate(2);
        }
        drop(again);
        heard.until(3).await;
        let farewell = match era {
            "legacy" => format!("unsubscribe {NOTES}"),
            _ => "cancelled".to_owned(),
        };
        assert_eq!(heard.all()[2..], [farewell], "{era}");
        host.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_followed_says_so() {
    let home = Home::new();
    let host = home.host([
        ("notes", legacy_server(Heard::default())),
        ("plain", scripted(|message, _| legacy(message))),
        ("new", modern_server(Heard::default())),
        ("bare", scripted(|message, _| modern(message))),
    ]);
    let refused = follow(&host, "file:///other").await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "server `notes` answered `file:///other` with error -32002: no"
    );
    for server in ["plain", "new", "bare"] {
        let refused = host
            .subscribe_resource(&name(server), "file:///other")
            .await;
        assert_eq!(
            refused.unwrap_err().to_string(),
            format!(
                "server `{server}` does not say when `file:///other` changes: read it again instead"
            )
        );
    }
    // The refusal of one is nothing to the other.
    follow(&host, NOTES).await.expect("one");
    host.subscribe_resource(&name("new"), NOTES)
        .await
        .expect("one");
    let unknown = host.subscribe_resource(&name("nobody"), NOTES).await;
    assert!(
        matches!(unknown, Err(SubscribeError::Call(_))),
        "{unknown:?}"
    );
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn values_are_suggested_with_what_was_given_before() {
    let server = scripted(|message, _| match message["method"].as_str() {
        Some("initialize") => Reply::Result(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {}, "completions": {} },
            "serverInfo": { "name": "legacy", "version": "1" },
        })),
        Some("completion/complete") => {
            let params = &message["params"];
            assert_eq!(params["argument"], json!({ "name": "city", "value": "R" }));
            let context = &params["context"]["arguments"]["country"];
            let kind = params["ref"]["type"].as_str().expect("one");
            let named = params["ref"]["name"]
                .as_str()
                .or(params["ref"]["uri"].as_str());
            Reply::Result(json!({ "completion": {
                "values": [kind, named, context], "total": 9, "hasMore": true,
            } }))
        }
        _ => legacy(message),
    });
    let home = Home::new();
    let host = home.host([("a", server), ("b", scripted(|message, _| legacy(message)))]);
    let context = BTreeMap::from([("country".to_owned(), "Italy".to_owned())]);
    for (reference, expected) in [
        (
            CompletionReference::Prompt("tour".into()),
            ["ref/prompt", "tour", "Italy"],
        ),
        (
            CompletionReference::Template("map://{city}".into()),
            ["ref/resource", "map://{city}", "Italy"],
        ),
    ] {
        let found = host
            .complete(&name("a"), &reference, "city", "R", &context)
            .await
            .expect("one");
        let values: Vec<&str> = found
            .values
            .iter()
            .map(toolway_types::Untrusted::as_received)
            .collect();
        assert_eq!(values, expected);
        assert_eq!((found.total, found.has_more), (Some(9), true));
        // One that does not complete is not asked.
        let none = host
            .complete(&name("b"), &reference, "city", "R", &context)
            .await
            .expect("one");
        assert_eq!(none.values, []);
    }
    host.shutdown().await;
}
