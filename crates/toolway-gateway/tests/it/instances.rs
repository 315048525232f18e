//! Servers that clients do not share: `"share": "session"` in an entry.

use std::time::Duration;

use serde_json::{Value, json};
use toolway_testkit::eventually;
use toolway_types::Era;

use crate::scene::{ERAS, Scene, Upstream, WAYS, Way, full};
use crate::speaker::Speaker;

async fn scene(server: Era) -> Scene {
    let mut upstream = Upstream::new("s", Way::Stdio, full(server, "s"));
    upstream.also = json!({ "share": "session" });
    Scene::over(vec![upstream]).await
}

async fn process(client: &mut Speaker) -> Value {
    let report = client.report().await;
    assert!(report["process"].is_u64(), "{}: {report}", client.label);
    report["process"].clone()
}

/// Whether a process is there and not only its entry in the table.
fn is_there(process: &Value) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .map(|(_, rest)| rest.starts_with('Z'));
    state == Some(false)
}

async fn gone(process: &Value) {
    eventually(|| {
        if is_there(process) {
            return Err(format!("{process} is still there"));
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn clients_with_sessions_of_their_own_have_processes_of_their_own() {
    for server in ERAS {
        let scene = scene(server).await;
        for way in WAYS {
            let mut anna = scene.client_of(Era::Legacy, way, "anna").await;
            let mut again = scene.client_of(Era::Legacy, way, "anna").await;
            let mut bert = scene.client_of(Era::Legacy, way, "bert").await;
            let first = process(&mut anna).await;
            let second = process(&mut again).await;
            let third = process(&mut bert).await;
            assert_ne!(first, second, "{server:?} {way:?}");
            assert_ne!(first, third, "{server:?} {way:?}");
            assert_ne!(second, third, "{server:?} {way:?}");
            // It is theirs from request to request.
            assert_eq!(process(&mut anna).await, first);
            anna.leave().await;
            gone(&first).await;
            assert_eq!(process(&mut bert).await, third);
            assert!(is_there(&second));
            drop((again, bert));
        }
        scene.end().await;
    }
}

#[tokio::test]
async fn modern_clients_with_other_tokens_have_processes_of_their_own() {
    for server in ERAS {
        let scene = scene(server).await;
        let mut anna = scene.client_of(Era::Modern, Way::Http, "anna").await;
        let mut again = scene.client_of(Era::Modern, Way::Http, "anna").await;
        let mut bert = scene.client_of(Era::Modern, Way::Http, "bert").await;
        let first = process(&mut anna).await;
        assert_eq!(
            process(&mut again).await,
            first,
            "they cannot be told apart"
        );
        assert_ne!(process(&mut bert).await, first, "{server:?}");
        // There is no session that could end: it is over when nothing was heard for a while.
        tokio::time::pause();
        tokio::time::advance(Duration::from_mins(31)).await;
        tokio::time::resume();
        gone(&first).await;
        assert_ne!(process(&mut anna).await, first, "{server:?}");
        drop((anna, again, bert));
        scene.end().await;
    }
}
