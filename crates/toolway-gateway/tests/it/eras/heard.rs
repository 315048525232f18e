//! What a client hears without having asked: lists that changed, resources that did, the log.

use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::timeout;
use toolway::{CallOptions, Consent, RawJson, ToolRequest, ToolTarget};
use toolway_testkit::eventually;
use toolway_types::{Era, ServerName, ToolKey};

use crate::scene::{Scene, Upstream, Way, full, pairings};
use crate::speaker::Speaker;

const TAG: &str = "io.modelcontextprotocol/subscriptionId";

const LISTS: [&str; 3] = ["tools", "resources", "prompts"];

/// Listens for what a modern client names; the id of its listening.
async fn listen(client: &mut Speaker, wanted: Value) -> u64 {
    let id = client.begin(
        "subscriptions/listen",
        json!({ "notifications": wanted.clone() }),
    );
    let method = "notifications/subscriptions/acknowledged";
    let acknowledged = client.notice(method).await;
    assert_eq!(acknowledged["params"]["_meta"][TAG], id, "{acknowledged}");
    assert_eq!(acknowledged["params"]["notifications"], wanted);
    id
}

async fn names(client: &mut Speaker, list: &str) -> Vec<String> {
    let answer = client.ask(&format!("{list}/list"), json!({})).await;
    let items = answer["result"][list].as_array().unwrap();
    let member = if list == "resources" { "uri" } else { "name" };
    let names = items.iter().map(|it| it[member].as_str().unwrap());
    names.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_client_hears_that_lists_changed_and_gets_them_as_they_are_then() {
    for pairing in pairings() {
        pairing
            .play(async |_, client| {
                for list in LISTS {
                    let before = names(client, list).await;
                    assert!(!before.iter().any(|it| it.contains("grown")), "{before:?}");
                }
                let tag = if client.era == Era::Modern {
                    let wanted = json!({ "toolsListChanged": true, "promptsListChanged": true,
                        "resourcesListChanged": true });
                    json!(listen(client, wanted).await)
                } else {
                    Value::Null
                };
                client.call("grow", json!({})).await;
                for list in LISTS {
                    let method = format!("notifications/{list}/list_changed");
                    let told = client.notice(&method).await;
                    assert_eq!(told["params"]["_meta"][TAG], tag, "{pairing:?}: {told}");
                    let after = names(client, list).await;
                    assert!(
                        after.iter().any(|it| it.contains("grown")),
                        "{pairing:?}: {list}: {after:?}"
                    );
                }
            })
            .await;
    }
}

#[tokio::test]
async fn a_modern_client_hears_only_of_what_it_listens_for() {
    for pairing in pairings().filter(|it| it.client == Era::Modern) {
        pairing
            .play(async |_, client| {
                listen(client, json!({ "promptsListChanged": true })).await;
                client.call("grow", json!({})).await;
                client.notice("notifications/prompts/list_changed").await;
                assert_eq!(client.left().await, Vec::<Value>::new(), "{pairing:?}");
            })
            .await;
    }
}

#[tokio::test]
async fn a_client_that_follows_a_resource_hears_of_its_changes() {
    for pairing in pairings() {
        pairing
            .play(async |_, client| {
                let uri = "s:own";
                let tag = if client.era == Era::Modern {
                    let wanted = json!({ "resourceSubscriptions": [uri] });
                    json!(listen(client, wanted).await)
                } else {
                    let answer = client
                        .ask("resources/subscribe", json!({ "uri": uri }))
                        .await;
                    assert_eq!(answer["result"], json!({}), "{pairing:?}: {answer}");
                    Value::Null
                };
                if pairing.server == Era::Legacy {
                    client.reports("followed", &json!([uri])).await;
                }
                for _ in 0..2 {
                    client.call("touch", json!({ "uri": "s:page/1" })).await;
                    client.call("touch", json!({ "uri": uri })).await;
                    let told = client.notice("notifications/resources/updated").await;
                    assert_eq!(told["params"]["uri"], uri, "{pairing:?}: {told}");
                    assert_eq!(told["params"]["_meta"][TAG], tag, "{pairing:?}: {told}");
                }
                match client.era {
                    Era::Legacy => {
                        client
                            .ask("resources/unsubscribe", json!({ "uri": uri }))
                            .await;
                    }
                    Era::Modern => client.cancel(tag.as_u64().unwrap()),
                }
                if pairing.server == Era::Legacy {
                    client.reports("followed", &json!([])).await;
                }
                client.call("touch", json!({ "uri": uri })).await;
                assert_eq!(client.left().await, Vec::<Value>::new(), "{pairing:?}");
            })
            .await;
    }
}

#[tokio::test]
async fn a_client_hears_of_the_log_what_it_wants_to() {
    for pairing in pairings() {
        pairing
            .play(async |_, client| {
                match client.era {
                    Era::Legacy => {
                        let level = json!({ "level": "warning" });
                        let answer = client.ask("logging/setLevel", level).await;
                        assert_eq!(answer["result"], json!({}), "{pairing:?}");
                        if pairing.server == Era::Legacy {
                            client.reports("level", &json!("warning")).await;
                        }
                    }
                    Era::Modern => {
                        client.meta = json!({ "io.modelcontextprotocol/logLevel": "warning" });
                    }
                }
                for (level, data) in [
                    ("info", json!("too quiet")),
                    ("error", json!({ "loud": 1, "more": [] })),
                ] {
                    let arguments = json!({ "level": level, "data": data });
                    client.call("log", arguments).await;
                }
                let told = client.notice("notifications/message").await;
                let expected = json!({ "level": "error", "logger": "chaos",
                    "data": { "loud": 1, "more": [] } });
                assert_eq!(told["params"], expected, "{pairing:?}");
                assert_eq!(client.left().await, Vec::<Value>::new(), "{pairing:?}");
            })
            .await;
    }
}

#[tokio::test]
async fn one_servers_client_hears_and_tells_what_the_protocol_does_not_have() {
    for pairing in pairings() {
        pairing
            .play(async |scene, merged| {
                let mut alone = scene.line_to("s", pairing.client, pairing.down);
                alone.label = format!("alone, {pairing:?}");
                alone.greet().await;
                alone.call("remark", json!({ "method": "acme/said" })).await;
                let said = alone.notice("acme/said").await;
                let expected = json!({ "n": 1, "own": { "x": [] } });
                assert_eq!(said["params"], expected, "{pairing:?}");
                merged.tell("acme/merged", Some(json!({})));
                // A server could take it for a call that nobody permitted.
                let call = json!({ "name": "grow", "arguments": {} });
                alone.tell("tools/call", Some(call));
                for number in 1..=2 {
                    alone.tell("acme/told", Some(json!({ "number": number })));
                }
                let told = |number| json!(["acme/told", { "number": number }]);
                alone.reports("told", &json!([told(1), told(2)])).await;
                // Several servers could mean anything by it.
                let answer = merged
                    .call("remark", json!({ "method": "acme/said" }))
                    .await;
                assert_eq!(answer["result"]["content"][0]["text"], "remarked");
                let heard = merged.left().await;
                let is_it = |heard: &Value| heard["method"] == "acme/said";
                assert!(!heard.iter().any(is_it), "{pairing:?}: {heard:?}");
            })
            .await;
    }
}

#[tokio::test]
async fn a_rule_about_other_methods_holds_for_notifications_too() {
    let scene = Scene::under(&json!({ "deny": ["CallMcpMethod"] })).await;
    let mut alone = scene.line_to("s", Era::Legacy, Way::Stdio);
    alone.greet().await;
    alone.tell("acme/told", Some(json!({})));
    alone.ask("acme/asked", json!({})).await;
    assert_eq!(alone.report().await["told"], json!([]));
    drop(alone);
    scene.end().await;
}

/// How many notices wait, at a listener and of a client, and how large one is at most.
const WAITING: u64 = 64;
const LARGEST: u64 = 64 << 10;

#[tokio::test]
async fn a_notice_of_a_server_is_passed_on_up_to_its_largest_size() {
    const METHOD: &str = "acme/said";
    let fits = LARGEST - METHOD.len() as u64;
    for pairing in pairings() {
        pairing
            .play(async |scene, _| {
                let mut alone = scene.line_to("s", pairing.client, pairing.down);
                alone.greet().await;
                for bytes in [fits + 1, fits] {
                    let arguments = json!({ "method": METHOD, "bytes": bytes });
                    alone.call("remark", arguments).await;
                }
                let said = alone.notice(METHOD).await;
                let length = said["params"].to_string().len() as u64;
                assert_eq!(length, fits, "{pairing:?}");
                let left = alone.left().await;
                let is_it = |heard: &Value| heard["method"] == METHOD;
                assert!(!left.iter().any(is_it), "{pairing:?}");
            })
            .await;
    }
}

#[tokio::test]
async fn a_slow_listener_loses_the_oldest_of_more_notices_than_wait_for_it() {
    for (count, first) in [(WAITING, 1), (WAITING + 1, 2)] {
        let scene = Scene::of(Era::Legacy, Way::Stdio).await;
        let server = ServerName::new("s").unwrap();
        let mut notices = scene.host.notices(&server).unwrap();
        let arguments = json!({ "method": "acme/said", "count": count });
        let arguments = arguments.as_object().unwrap().clone();
        let target = ToolTarget::Key(ToolKey::new(server, "remark"));
        let options = CallOptions::new(Consent::Typed);
        let call = ToolRequest::new(target, arguments);
        scene.host.call(call, options).await.unwrap();
        // All of them came before the answer to the call.
        let mut heard = Vec::new();
        while let Ok(Some(notice)) = timeout(Duration::ZERO, notices.next()).await {
            let params: Value = serde_json::from_str(notice.params.unwrap().get()).unwrap();
            heard.push(params["n"].as_u64().unwrap());
        }
        assert_eq!(heard, (first..=count).collect::<Vec<_>>());
        drop(notices);
        scene.end().await;
    }
}

#[tokio::test]
async fn more_notices_of_a_client_than_wait_for_its_server_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let hook = format!(
        "touch '{}'; while [ ! -e '{}' ]; do sleep 0.01; done",
        file("begun").display(),
        file("open").display()
    );
    let settings = json!({ "hooks": { "PreToolUse": [{
        "matcher": "mcp__s__CallMcpMethod",
        "hooks": [{ "type": "command", "command": hook }],
    }] } });
    let upstream = Upstream::new("s", Way::Stdio, full(Era::Legacy, "s"));
    let scene = Scene::governed(vec![upstream], &settings).await;
    let mut alone = scene.line_to("s", Era::Legacy, Way::Stdio);
    alone.greet().await;
    // The first one is on its way, and waits for the hook; what follows waits behind it.
    alone.tell("acme/told", Some(json!({ "number": 0 })));
    eventually(|| {
        let begun = file("begun").exists();
        begun.then_some(()).ok_or_else(|| "no hook".to_owned())
    })
    .await;
    for number in 1..=WAITING + 1 {
        alone.tell("acme/told", Some(json!({ "number": number })));
    }
    // All were read before this is answered.
    alone.ask("ping", json!({})).await;
    std::fs::write(file("open"), "").unwrap();
    let told = (0..=WAITING).map(|number| json!(["acme/told", { "number": number }]));
    alone.reports("told", &told.collect()).await;
    // There is room again, and the one too many does not come late.
    alone.tell("acme/last", Some(json!({})));
    let mut told: Vec<Value> = Vec::new();
    while told.last().is_none_or(|last| last[0] != "acme/last") {
        told = serde_json::from_value(alone.report().await["told"].clone()).unwrap();
    }
    let expected = usize::try_from(WAITING).unwrap() + 2;
    assert_eq!(told.len(), expected, "{told:?}");
    drop(alone);
    scene.end().await;
}

#[tokio::test]
async fn sec_22_a_notice_that_two_readers_could_read_in_two_ways_is_not_passed_on() {
    let scene = Scene::of(Era::Legacy, Way::Stdio).await;
    let server = ServerName::new("s").unwrap();
    let options = CallOptions::new(Consent::Typed);
    let tell = async |method: &str, params: &str| {
        let params = RawJson::from(RawValue::from_string(params.to_owned()).unwrap());
        let told = scene
            .host
            .pass_on_notice(&server, method, Some(&params), &options);
        told.await
    };
    for (method, params) in [
        ("acme/told", r#"{"safe":1,"safe":2}"#),
        ("acme/told", r#"{"safe":1,"sa\u0066e":2}"#),
        ("acme/told", "[]"),
        ("notifications//cancelled", r#"{"requestId":1}"#),
        ("notifications/Cancelled", r#"{"requestId":1}"#),
        ("/cancelled", r#"{"requestId":1}"#),
        (
            "notifications/notifications/cancelled",
            r#"{"requestId":1}"#,
        ),
    ] {
        let told = tell(method, params).await;
        assert!(told.is_err(), "{method} {params}");
    }
    let meta = r#"{"_meta":{"progressToken":1,"own":2},"x":3}"#;
    tell("acme/told", meta).await.unwrap();
    let mut client = scene.client(Era::Legacy, Way::Stdio).await;
    let told = json!([["acme/told", { "x": 3 }]]);
    assert_eq!(client.report().await["told"], told);
    drop(client);
    scene.end().await;
}
