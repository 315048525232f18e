//! Profiles that are narrowed while their clients are there, and clients that look past theirs.

use serde_json::{Value, json};
use toolway_types::Era;

use crate::http_stage::{LEGACY, initialize, raw};
use crate::scene::{ERAS, Scene, Upstream, WAYS, Way, full};
use crate::speaker::{Speaker, only_input, text_of};
use crate::{exchange, request};

fn two() -> Vec<Upstream> {
    vec![
        Upstream::new("s", Way::Http, full(Era::Modern, "s")),
        Upstream::new("t", Way::Http, full(Era::Legacy, "t")),
    ]
}

fn settings(profile: &Value) -> Value {
    json!({ "profiles": { "guest": profile, "boss": {} } })
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

async fn tool_names(client: &mut Speaker) -> Vec<String> {
    let listed = client.ask("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

#[tokio::test]
async fn sec_27_a_profile_that_is_narrowed_is_narrower_for_those_who_are_there() {
    let scene = Scene::governed(two(), &settings(&json!({}))).await;
    let mut clients = Vec::new();
    for era in ERAS {
        for way in WAYS {
            let mut client = scene.client_of(era, way, "anna.guest").await;
            assert_eq!(client.text("echo", json!({ "text": "wide" })).await, "wide");
            clients.push(client);
        }
    }
    scene
        .change_settings(&settings(&json!({ "servers": ["t"] })))
        .await;
    for client in &mut clients {
        let refused = client.call("echo", json!({ "text": "still" })).await;
        assert!(
            !refused.to_string().contains("still"),
            "{}: {refused}",
            client.label
        );
        let names = tool_names(client).await;
        assert!(
            names.iter().all(|name| name.starts_with("t__")),
            "{names:?}"
        );
        client.prefix = "t__";
        assert_eq!(client.text("echo", json!({ "text": "t" })).await, "t");
    }
    // A mode is as much a part of it.
    let careful = json!({ "servers": ["t"], "mode": "ask" });
    scene.change_settings(&settings(&careful)).await;
    for client in &mut clients {
        let id = client.begin_call("echo", json!({ "text": "quiet" }));
        if client.era == Era::Legacy {
            let asked = client.question_of("elicitation/create").await;
            client.reply(&asked, &json!({ "action": "decline" }));
        } else {
            only_input(&client.answer(id).await);
            continue;
        }
        let refused = client.answer(id).await;
        assert_eq!(refused["result"]["isError"], true, "{refused}");
    }
    // One that is taken away shows nothing to anybody.
    scene.change_settings(&json!({})).await;
    for client in &mut clients {
        let id = client.begin_call("echo", json!({ "text": "gone" }));
        if client.era == Era::Modern && client.is_over_http() {
            let answer = client.answer(id).await;
            assert!(answer["error"]["code"].is_i64(), "{answer}");
            continue;
        }
        let refused = client.answer(id).await.to_string();
        assert!(
            !refused.contains(r#""text":"gone""#),
            "{}: {refused}",
            client.label
        );
    }
    drop(clients);
    scene.end().await;
}

#[tokio::test]
async fn sec_26_a_session_belongs_to_the_profile_that_it_began_with() {
    let scene = Scene::governed(two(), &settings(&json!({ "servers": ["t"] }))).await;
    let address = scene.address();
    let (wide, narrow) = (bearer("anna.boss"), bearer("anna.guest"));
    let wide = ("authorization", wide.as_str());
    let narrow = ("authorization", narrow.as_str());
    let id = initialize(address, "/mcp", &[wide]).await;
    let session = ("mcp-session-id", id.as_str());
    let call = request(
        1,
        "tools/call",
        &json!({ "name": "s__echo", "arguments": { "text": "mine" } }),
    );
    for line in ["POST /mcp", "GET /mcp", "DELETE /mcp"] {
        let body = line.starts_with("POST").then_some(call.as_str());
        let tried = raw(line, address, &[narrow, session, LEGACY], body);
        assert_eq!(exchange(address, &tried).await.status, 404, "{line}");
    }
    let own = raw("POST /mcp", address, &[wide, session, LEGACY], Some(&call));
    assert!(exchange(address, &own).await.body.contains("mine"));
    scene.end().await;
}

#[tokio::test]
async fn sec_26_what_was_sealed_under_one_profile_is_of_no_use_under_another() {
    let scene = Scene::governed(
        two(),
        &settings(&json!({ "servers": ["s"], "tools": ["mcp__s__echo"] })),
    )
    .await;
    let mut wide = scene.client_of(Era::Modern, Way::Http, "anna.boss").await;
    let begun = wide.call("task", json!({ "polls": 1 })).await;
    let task = begun["result"]["taskId"].clone();
    assert!(task.is_string(), "{begun}");
    let mut narrow = scene.client_of(Era::Modern, Way::Http, "anna.guest").await;
    let tried = narrow.ask("tasks/get", json!({ "taskId": task })).await;
    assert_eq!(tried["error"]["code"], -32602, "{tried}");
    let own = wide.ask("tasks/get", json!({ "taskId": task })).await;
    assert!(own["result"].is_object(), "{own}");
    drop((wide, narrow));
    scene.end().await;
}

#[tokio::test]
async fn a_narrow_profile_is_narrow_by_every_name_and_every_way() {
    let guest = json!({ "servers": ["s"], "tools": ["mcp__s__echo"] });
    let scene = Scene::governed(two(), &settings(&guest)).await;
    for era in ERAS {
        for way in WAYS {
            let mut client = scene.client_of(era, way, "anna.guest").await;
            client.prefix = "";
            assert_eq!(tool_names(&mut client).await, ["s__echo"]);
            for name in [
                "s__report",
                "mcp__s__report",
                "report",
                "S__report",
                "s__REPORT",
                "mcp__mcp__s__report",
                "s__report ",
                "s\u{200b}__report",
                "t__echo",
                "mcp__t__echo",
                "echo ",
                "t:echo",
            ] {
                let refused = client.call(name, json!({ "text": "x" })).await;
                assert!(
                    refused["error"].is_object() || refused["result"]["isError"] == true,
                    "{name}: {refused}"
                );
            }
            for (method, params) in [
                ("resources/read", json!({ "uri": "toolway:t:t:own" })),
                ("resources/read", json!({ "uri": "t:own" })),
                (
                    "prompts/get",
                    json!({ "name": "t__greet", "arguments": { "who": "x" } }),
                ),
                (
                    "completion/complete",
                    json!({ "ref": { "type": "ref/prompt", "name": "t__greet" },
                    "argument": { "name": "who", "value": "" } }),
                ),
                (
                    "resources/directory/read",
                    json!({ "uri": "toolway:t:skill://x" }),
                ),
                ("made/up", json!({})),
                ("tasks/get", json!({ "taskId": "1" })),
            ] {
                let refused = client.ask(method, params.clone()).await;
                assert!(refused["error"].is_object(), "{method} {params}: {refused}");
            }
            drop(client);
        }
    }
    // Neither another profile nor a server by itself is there for it.
    let address = scene.address();
    let bound = bearer("anna.guest");
    let bound = ("authorization", bound.as_str());
    let call = request(1, "tools/list", &json!({}));
    for path in [
        "/mcp/s",
        "/mcp/t",
        "/mcp/p/boss",
        "/mcp/p/none",
        "/mcp/none",
    ] {
        let tried = raw(
            &format!("POST {path}"),
            address,
            &[bound, LEGACY],
            Some(&call),
        );
        assert_eq!(exchange(address, &tried).await.status, 404, "{path}");
    }
    scene.end().await;
}

#[tokio::test]
async fn a_read_only_profile_runs_nothing_that_writes_by_any_way() {
    let guest = json!({ "readOnly": true });
    let scene = Scene::governed(two(), &settings(&guest)).await;
    for era in ERAS {
        let mut client = scene.client_of(era, Way::Http, "anna.guest").await;
        let names = tool_names(&mut client).await;
        assert!(!names.contains(&"s__grow".to_owned()), "{names:?}");
        let refused = client.call("grow", json!({})).await;
        assert!(
            refused["error"].is_object() || refused["result"]["isError"] == true,
            "{refused}"
        );
    }
    scene.end().await;
}

/// What comes of a permission question that is answered after the server left the profile.
#[tokio::test]
async fn a_yes_comes_too_late_when_its_server_is_gone_by_then() {
    let careful = settings(&json!({ "mode": "ask" }));
    let narrow = settings(&json!({ "mode": "ask", "servers": ["t"] }));
    for (era, way) in [
        (Era::Legacy, Way::Http),
        (Era::Legacy, Way::Stdio),
        (Era::Modern, Way::Http),
    ] {
        let scene = Scene::governed(two(), &careful).await;
        let mut client = scene.client_of(era, way, "anna.guest").await;
        let arguments = json!({ "text": "through" });
        let yes = json!({ "action": "accept", "content": { "answer": "once" } });
        let id = client.begin_call("echo", arguments.clone());
        let answer = if era == Era::Legacy {
            let asked = client.question_of("elicitation/create").await;
            scene.change_settings(&narrow).await;
            client.reply(&asked, &yes);
            client.answer(id).await
        } else {
            let asked = client.answer(id).await;
            only_input(&asked);
            scene.change_settings(&narrow).await;
            let id = client.retry("echo", arguments, &asked, &yes);
            client.answer(id).await
        };
        let said = answer.to_string();

        assert!(!said.contains(r#""text":"through""#), "{era:?}: {said}");
        drop(client);
        scene.end().await;
    }
}

/// What a client hears of a server's log, of its notices and of its resources.
#[tokio::test]
async fn sec_27_a_server_that_left_the_profile_is_heard_no_more() {
    const NEWS: [&str; 2] = ["notifications/message", "notifications/resources/updated"];
    let narrow = settings(&json!({ "servers": ["s"] }));
    for way in WAYS {
        let scene = Scene::governed(two(), &settings(&json!({}))).await;
        let mut client = scene.client_of(Era::Legacy, way, "anna.guest").await;
        let mut other = scene.client_of(Era::Legacy, way, "bob.boss").await;
        other.prefix = "t__";
        let level = json!({ "level": "debug" });
        client.ask("logging/setLevel", level).await;
        let followed = json!({ "uri": "t:own" });
        client.ask("resources/subscribe", followed.clone()).await;
        let beside = json!({ "level": "error", "data": "d", "beside": true });
        other.call("touch", followed.clone()).await;
        other.call("log", beside.clone()).await;
        for news in NEWS {
            client.notice(news).await;
        }
        scene.change_settings(&narrow).await;
        other.call("touch", followed).await;
        other.call("log", beside).await;
        let left = client.left().await;
        let is_news = |heard: &Value| NEWS.contains(&heard["method"].as_str().unwrap_or_default());
        assert!(!left.iter().any(is_news), "{way:?}: {left:?}");
        drop((client, other));
        scene.end().await;
    }
}

/// What comes of a permission question that is answered after the rule became a no.
#[tokio::test]
async fn a_yes_comes_too_late_when_a_rule_says_no_by_then() {
    let asks = json!({ "permissions": { "ask": ["mcp__s__echo"] } });
    let denies = json!({ "permissions": { "deny": ["mcp__s__echo"] } });
    for era in ERAS {
        let scene = Scene::governed(two(), &asks).await;
        let mut client = scene.client_of(era, Way::Http, "anna").await;
        let arguments = json!({ "text": "through" });
        let yes = json!({ "action": "accept", "content": { "answer": "once" } });
        let id = client.begin_call("echo", arguments.clone());
        let answer = if era == Era::Legacy {
            let asked = client.question_of("elicitation/create").await;
            scene.change_settings(&denies).await;
            client.reply(&asked, &yes);
            client.answer(id).await
        } else {
            let asked = client.answer(id).await;
            only_input(&asked);
            scene.change_settings(&denies).await;
            let id = client.retry("echo", arguments, &asked, &yes);
            client.answer(id).await
        };
        assert_eq!(answer["result"]["isError"], true, "{era:?}: {answer}");
        assert_ne!(text_of(&answer), "through");
        drop(client);
        scene.end().await;
    }
}
