//! Calls that become tasks.

use serde_json::{Value, json};
use toolway_types::Era;

use crate::scene::ways_of;
use crate::speaker::{Speaker, text_of};

/// Looks at a task until it is done.
async fn followed(client: &mut Speaker, id: &Value) -> Value {
    loop {
        let answer = client.ask("tasks/get", json!({ "taskId": id })).await;
        assert_eq!(answer["result"]["taskId"], *id, "{answer}");
        match answer["result"]["status"].as_str() {
            Some("working") => {}
            Some("completed") => return answer,
            _ => panic!("{answer}"),
        }
    }
}

#[tokio::test]
async fn a_modern_client_follows_the_task_of_a_modern_server_under_an_id_of_ours() {
    for pairing in ways_of(Era::Modern, Era::Modern) {
        pairing
            .play(async |scene, client| {
                let made = client.call("task", json!({ "polls": 2 })).await;
                assert_eq!(made["result"]["resultType"], "task", "{made}");
                let id = made["result"]["taskId"].clone();
                assert!(!id.as_str().unwrap().contains("task-"), "{id}");
                let done = followed(client, &id).await;
                let text = &done["result"]["result"]["content"][0]["text"];
                assert_eq!(text, "the task is done", "{done}");
                // It is nobody else's.
                let mut other = scene.client_of(Era::Modern, pairing.down, "bert").await;
                let refused = other.ask("tasks/get", json!({ "taskId": id })).await;
                assert_eq!(refused["error"]["code"], -32602, "{refused}");
                let made = client.call("task", json!({ "polls": 9 })).await;
                let id = &made["result"]["taskId"];
                let ended = client.ask("tasks/cancel", json!({ "taskId": id })).await;
                assert!(ended["result"].is_object(), "{ended}");
                let after = client.ask("tasks/get", json!({ "taskId": id })).await;
                assert_eq!(after["result"]["status"], "cancelled", "{after}");
            })
            .await;
    }
}

#[tokio::test]
async fn a_legacy_client_follows_the_task_of_a_legacy_server_under_an_id_of_ours() {
    for pairing in ways_of(Era::Legacy, Era::Legacy) {
        pairing
            .play(async |scene, client| {
                let params = json!({ "name": "s__task", "arguments": { "polls": 2 },
                    "task": { "ttl": 60_000 } });
                let made = client.ask("tools/call", params.clone()).await;
                let id = made["result"]["task"]["taskId"].clone();
                assert!(id.is_string(), "{made}");
                assert!(!id.as_str().unwrap().contains("task-"), "{id}");
                followed(client, &id).await;
                let done = client.ask("tasks/result", json!({ "taskId": id })).await;
                assert_eq!(text_of(&done), "the task is done", "{pairing:?}");
                let mut other = scene.client_of(Era::Legacy, pairing.down, "bert").await;
                let refused = other.ask("tasks/result", json!({ "taskId": id })).await;
                assert_eq!(refused["error"]["code"], -32602, "{refused}");
                let made = client.ask("tools/call", params).await;
                let id = &made["result"]["task"]["taskId"];
                let ended = client.ask("tasks/cancel", json!({ "taskId": id })).await;
                assert_eq!(ended["result"]["status"], "cancelled", "{ended}");
                assert_eq!(ended["result"]["taskId"], *id, "{ended}");
            })
            .await;
    }
}

#[tokio::test]
async fn a_task_of_the_other_era_is_followed_here_and_its_result_is_the_answer() {
    for (client, server, expected) in [
        (Era::Legacy, Era::Modern, "the task is done"),
        // What a client does not ask for as a task is none.
        (Era::Modern, Era::Legacy, "done at once"),
    ] {
        for pairing in ways_of(client, server) {
            pairing
                .play(async |_, client| {
                    let text = client.text("task", json!({ "polls": 2 })).await;
                    assert_eq!(text, expected, "{pairing:?}");
                })
                .await;
        }
    }
}
