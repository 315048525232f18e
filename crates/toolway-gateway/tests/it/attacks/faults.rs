//! What goes wrong on the way: servers that die at the worst moment, reloads and changes of lists under
//! load. Every accepted request has one answer, nobody has another's, and nobody else is slowed down.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolway_types::Era;

use crate::scene::{ERAS, Scene, Upstream, WAYS, Way, full};
use crate::speaker::{only_input, text_of};

/// Two servers, of which one can be made to die.
async fn two(era: Era) -> Scene {
    Scene::over(vec![
        Upstream::new("s", Way::Stdio, full(era, "s")),
        Upstream::new("t", Way::Stdio, full(era, "t")),
    ])
    .await
}

fn is_told(answer: &Value) -> bool {
    answer["error"].is_object() || answer["result"]["isError"] == true
}

#[tokio::test]
async fn a_server_that_dies_takes_its_own_calls_along_and_each_is_told() {
    for server in ERAS {
        let scene = two(server).await;
        for era in ERAS {
            for way in WAYS {
                let mut anna = scene.client_of(era, way, "anna").await;
                let mut bert = scene.client_of(era, way, "bert").await;
                assert_eq!(anna.text("echo", json!({ "text": "up" })).await, "up");
                let hanging: Vec<u64> =
                    (0..5).map(|_| anna.begin_call("hang", json!({}))).collect();
                bert.prefix = "t__";
                let slow = bert.begin_call("slow", json!({ "ms": 50 }));
                let crash = anna.begin_call("crash", json!({}));
                for id in hanging.into_iter().chain([crash]) {
                    let answer = anna.answer(id).await;
                    assert!(is_told(&answer), "{server:?}, {era:?}: {answer}");
                }
                let other = bert.answer(slow).await;
                assert!(!is_told(&other), "{other}");
                // It comes back by itself, and nothing was answered twice.
                assert_eq!(anna.text("echo", json!({ "text": "again" })).await, "again");
                let left = anna.left().await;
                assert!(left.iter().all(|it| it["id"].is_null()), "{left:?}");
            }
        }
        scene.end().await;
    }
}

#[tokio::test]
async fn a_server_that_dies_while_it_asks_leaves_one_answer_and_takes_its_question_back() {
    let scene = two(Era::Legacy).await;
    for way in WAYS {
        let mut client = scene.client_of(Era::Legacy, way, "anna").await;
        let asking = client.begin_call("elicit", json!({}));
        let asked = client.question_of("elicitation/create").await;
        let crash = client.begin_call("crash", json!({}));
        assert!(is_told(&client.answer(asking).await));
        assert!(is_told(&client.answer(crash).await));
        // An answer that comes too late reaches nobody.
        client.reply(
            &asked,
            &json!({ "action": "accept", "content": { "word": "late" } }),
        );
        assert_eq!(client.text("echo", json!({ "text": "up" })).await, "up");
        let left = client.left().await;
        assert!(left.iter().all(|it| it["id"].is_null()), "{left:?}");
    }
    scene.end().await;
}

#[tokio::test]
async fn a_server_that_dies_while_a_call_is_parked_is_told_of_when_the_client_comes_back() {
    let scene = two(Era::Legacy).await;
    for way in WAYS {
        let mut client = scene.client_of(Era::Modern, way, "anna").await;
        let asked = client.call("elicit", json!({})).await;
        only_input(&asked);
        let crash = client.begin_call("crash", json!({}));
        assert!(is_told(&client.answer(crash).await));
        let yes = json!({ "action": "accept", "content": { "word": "late" } });
        let id = client.retry("elicit", json!({}), &asked, &yes);
        let answer = client.answer(id).await;
        assert!(is_told(&answer), "{answer}");
        assert!(!answer.to_string().contains("late"), "{answer}");
        let id = client.retry("elicit", json!({}), &asked, &yes);
        assert_eq!(client.answer(id).await["error"]["code"], -32602);
        assert_eq!(client.text("echo", json!({ "text": "up" })).await, "up");
    }
    scene.end().await;
}

#[tokio::test]
async fn rel_31_no_answer_is_lost_or_anothers_while_rules_and_lists_change() {
    const ROUNDS: usize = 40;
    let scene = Scene::governed(
        vec![
            Upstream::new("s", Way::Http, full(Era::Modern, "s")),
            Upstream::new("t", Way::Stdio, full(Era::Legacy, "t")),
        ],
        &json!({}),
    )
    .await;
    let mut clients = Vec::new();
    for (number, era) in [Era::Legacy, Era::Modern, Era::Legacy, Era::Modern]
        .into_iter()
        .enumerate()
    {
        let way = WAYS[number / 2];
        let mut client = scene.client_of(era, way, &format!("client{number}")).await;
        client.prefix = if number % 2 == 0 { "s__" } else { "t__" };
        clients.push(client);
    }
    let mut talks = tokio::task::JoinSet::new();
    for (number, mut client) in clients.into_iter().enumerate() {
        talks.spawn(async move {
            for round in 0..ROUNDS {
                let canary = format!("{number}-{round}");
                let ids: Vec<u64> = (0..4)
                    .map(|part| {
                        client.begin_call("echo", json!({ "text": format!("{canary}-{part}") }))
                    })
                    .collect();
                if round % 8 == 0 {
                    client.text("grow", json!({})).await;
                }
                for (part, id) in ids.into_iter().enumerate() {
                    assert_eq!(
                        text_of(&client.answer(id).await),
                        format!("{canary}-{part}")
                    );
                }
            }
        });
    }
    // As fast as it goes, until everybody has had all of their answers.
    let mut changes = 0_u32;
    loop {
        let settings = json!({ "permissions": { "ask": [format!("mcp__s__none{changes}")] },
            "profiles": { format!("p{}", changes % 3): {} } });
        scene.change_settings(&settings).await;
        changes += 1;
        match talks.try_join_next() {
            Some(ended) => ended.unwrap(),
            None if talks.is_empty() => break,
            None => tokio::task::yield_now().await,
        }
    }
    assert!(changes > 10, "{changes}");
    scene.end().await;
}

#[tokio::test]
async fn rel_08_one_server_that_hangs_holds_up_no_list_of_the_others() {
    let mut upstreams: Vec<Upstream> = (["a", "b", "c", "d", "e", "f", "g", "h", "i"].into_iter())
        .map(|name| Upstream::new(name, Way::Http, full(Era::Legacy, name)))
        .collect();
    let mut hung = full(Era::Legacy, "hung");
    hung.silent = vec!["initialize".to_owned(), "server/discover".to_owned()];
    upstreams.push(Upstream::new("hung", Way::Http, hung));
    let scene = Scene::begun(upstreams, &toolway_gateway::EndpointOptions::default());
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
        scene.host.ready(name).await;
    }
    let mut client = scene.line(Era::Modern, Way::Http, "anna");
    let began = Instant::now();
    let listed = client.ask("tools/list", json!({})).await;
    let took = began.elapsed();
    let tools = listed["result"]["tools"].as_array().unwrap();
    let echoes = tools
        .iter()
        .filter(|tool| tool["name"].as_str().unwrap().ends_with("__echo"));
    assert_eq!(echoes.count(), 9, "{listed}");
    assert!(took <= Duration::from_millis(300), "{took:?}");
    drop(client);
    scene.end().await;
}
