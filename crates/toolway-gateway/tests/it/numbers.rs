//! What the page of numbers says after things have really happened.

use serde_json::json;
use toolway_testkit::eventually;
use toolway_types::Era;

use crate::scene::{Scene, Upstream, Way, full};
use crate::speaker::Speaker;

/// The value of one series.
fn value(page: &str, series: &str) -> u64 {
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let line = line.unwrap_or_else(|| panic!("no {series} in\n{page}"));
    line.parse().unwrap()
}

async fn answered_question(client: &mut Speaker) {
    let id = client.begin_call("elicit", json!({}));
    let question = client.question_of("elicitation/create").await;
    let answer = json!({ "action": "accept", "content": { "word": "yes" } });
    client.reply(&question, &answer);
    client.answer(id).await;
}

#[tokio::test]
async fn calls_errors_durations_sessions_servers_and_questions_are_counted() {
    let scene = Scene::over(vec![
        Upstream::new("s", Way::Stdio, full(Era::Legacy, "s")),
        Upstream::new("other", Way::Http, full(Era::Modern, "other")),
    ])
    .await;
    let mut client = scene.client(Era::Legacy, Way::Http).await;
    let mut visitor = scene.client_of(Era::Modern, Way::Http, "berta").await;
    client.call("mirror", json!({})).await;
    visitor.call("mirror", json!({})).await;
    client.call("fail", json!({})).await;
    answered_question(&mut client).await;
    let page = scene.metrics();
    let calls = |outcome: &str| {
        let series = format!(r#"toolway_calls_total{{server="s",outcome="{outcome}"}}"#);
        value(&page, &series)
    };
    assert_eq!((calls("answered"), calls("tool-error")), (3, 1), "{page}");
    let series = r#"toolway_call_duration_seconds_count{server="s"}"#;
    assert_eq!(value(&page, series), 4);
    let series = r#"toolway_call_duration_seconds_bucket{server="s",le="+Inf"}"#;
    assert_eq!(value(&page, series), 4);
    assert_eq!(value(&page, r#"toolway_sessions{era="legacy"}"#), 1);
    assert_eq!(value(&page, r#"toolway_sessions{era="modern"}"#), 1);
    assert_eq!(value(&page, r#"toolway_servers{state="connected"}"#), 2);
    assert!(!page.contains("toolway_spans_total"), "{page}");
    // Questions are counted beside requests.
    eventually(|| {
        let page = scene.metrics();
        match value(&page, r#"toolway_questions_total{outcome="answered"}"#) {
            1 => Ok(()),
            _ => Err(page),
        }
    })
    .await;
    drop((client, visitor));
    scene.end().await;
}

#[tokio::test]
async fn sec_30_names_that_clients_invent_make_no_series() {
    let scene = Scene::of(Era::Modern, Way::Stdio).await;
    let mut client = scene.client(Era::Modern, Way::Http).await;
    client.call("mirror", json!({})).await;
    let before = scene.metrics().lines().count();
    for number in 0..20 {
        let name = format!("s{number}__x\"}} 1\ntoolway_fake_total 1");
        client
            .ask("tools/call", json!({ "name": name, "arguments": {} }))
            .await;
        let uri = format!("toolway:s{number}:file:///x");
        client.ask("resources/read", json!({ "uri": uri })).await;
        client.ask("prompts/get", json!({ "name": name })).await;
        client.ask(&format!("made/up{number}"), json!({})).await;
    }
    let page = scene.metrics();
    assert!(!page.contains("fake"), "{page}");
    // Calls of tools that nobody has are the gateway's own: one more server at most.
    let of_one_server = page
        .lines()
        .filter(|line| line.contains(r#"server="s""#))
        .count();
    assert!(page.lines().count() <= before + of_one_server, "{page}");
    drop(client);
    scene.end().await;
}
