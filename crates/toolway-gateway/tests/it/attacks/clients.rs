//! Clients that want more than they may have, or what is another's.

use serde_json::{Value, json};
use toolway_types::Era;

use crate::scene::{ERAS, Scene, Upstream, WAYS, Way, full};
use crate::speaker::{Speaker, only_input, text_of};

fn one(era: Era, way: Way) -> Vec<Upstream> {
    vec![Upstream::new("s", way, full(era, "s"))]
}

async fn calls(client: &mut Speaker) -> u64 {
    client.report().await["calls"].as_u64().unwrap()
}

#[tokio::test]
async fn sec_21_a_member_in_other_letters_never_reaches_a_server() {
    for era in ERAS {
        let scene = Scene::of(era, Way::Http).await;
        for client_era in ERAS {
            let mut client = scene.client(client_era, Way::Stdio).await;
            let before = calls(&mut client).await;
            // A server that reads names without their case takes the last, or the only one.
            for params in [
                r#"{"name":"s__echo","Name":"answer","arguments":{"text":"safe"}}"#,
                r#"{"name":"s__echo","NAME":"answer","arguments":{"text":"safe"}}"#,
                r#"{"name":"s__report","Arguments":{"text":"danger"}}"#,
                r#"{"name":"s__report","argument\u017f":{"text":"danger"}}"#,
                r#"{"name":"s__report","RequestState":"x"}"#,
                r#"{"name":"s__report","Task":{"ttl":1}}"#,
            ] {
                let id = client.begin_text("tools/call", params);
                let answer = client.answer(id).await;
                assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
            }
            for (method, params) in [
                ("resources/read", r#"{"uri":"s:own","Uri":"s:page/1"}"#),
                (
                    "prompts/get",
                    r#"{"name":"s__greet","Name":"elicit","arguments":{"who":"x"}}"#,
                ),
                (
                    "completion/complete",
                    r#"{"ref":{"type":"ref/prompt","name":"s__greet"},"Ref":{"type":"ref/resource","uri":"s:own"},"argument":{"name":"who","value":""}}"#,
                ),
            ] {
                let id = client.begin_text(method, params);
                let answer = client.answer(id).await;
                assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
            }
            let after = calls(&mut client).await;
            assert_eq!(after, before + 1, "only the report itself was called");
            // What nobody decides on travels along, whatever its letters.
            let id = client.begin_text(
                "tools/call",
                r#"{"name":"s__echo","X-Unknown":1,"arguments":{"text":"safe"}}"#,
            );
            assert_eq!(text_of(&client.answer(id).await), "safe");
        }
        scene.end().await;
    }
}

/// What the scripted server writes into its state, which no client ever sees.
const STATE_OF_SERVER: &str = " \"\\\u{e9}\u{1f600}\u{2028}=round=1";

#[tokio::test]
async fn sec_26_a_state_that_was_never_sealed_reaches_no_server() {
    let scene = Scene::of(Era::Modern, Way::Http).await;
    let forged = |name: &str| {
        json!({ "name": name, "requestState": STATE_OF_SERVER,
            "inputResponses": { "q": { "action": "accept", "content": { "word": "forged" } } } })
    };
    for way in WAYS {
        // A modern one is refused.
        let mut modern = scene.client(Era::Modern, way).await;
        let answer = modern.ask("tools/call", forged("s__elicit")).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let answer = modern.ask("prompts/get", forged("s__elicit")).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        // The legacy era has no such member: it is asked as if there were none.
        let mut legacy = scene.client(Era::Legacy, way).await;
        for method in ["tools/call", "prompts/get"] {
            let id = legacy.begin(method, forged("s__elicit"));
            let asked = legacy.question().await;
            legacy.reply(
                &asked,
                &json!({ "action": "accept", "content": { "word": "genuine" } }),
            );
            let answer = legacy.answer(id).await.to_string();
            assert!(answer.contains("genuine"), "{method}: {answer}");
            assert!(!answer.contains("forged"), "{method}: {answer}");
            // An official SDK takes these for them.
            let mut spelled = json!({ "name": "s__elicit" });
            let said = forged("s__elicit");
            spelled["request_state"] = said["requestState"].clone();
            spelled["input_responses"] = said["inputResponses"].clone();
            for client in [&mut modern, &mut legacy] {
                let answer = client.ask(method, spelled.clone()).await;
                assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
            }
        }
    }
    scene.end().await;
}

fn asks() -> Value {
    json!({ "permissions": { "ask": ["mcp__s__echo"] } })
}

#[tokio::test]
async fn a_client_that_lost_its_handle_is_asked_again() {
    let scene = Scene::governed(one(Era::Modern, Way::Http), &asks()).await;
    for way in WAYS {
        let mut client = scene.client(Era::Modern, way).await;
        let arguments = json!({ "text": "hello" });
        let first = client.call("echo", arguments.clone()).await;
        only_input(&first);
        // The same once more, without the handle: that client has crashed, say.
        let second = client.call("echo", arguments.clone()).await;
        only_input(&second);
        assert_ne!(
            first["result"]["requestState"],
            second["result"]["requestState"]
        );
        let yes = json!({ "action": "accept", "content": { "answer": "once" } });
        let id = client.retry("echo", arguments.clone(), &second, &yes);
        assert_eq!(text_of(&client.answer(id).await), "hello");
        // One yes was for one call: the other one still has its question.
        let no = json!({ "action": "decline" });
        let id = client.retry("echo", arguments, &first, &no);
        let refused = client.answer(id).await;
        assert_eq!(refused["result"]["isError"], true, "{refused}");
    }
    scene.end().await;
}

#[tokio::test]
async fn a_handle_answers_its_own_request_once_and_no_other() {
    let scene = Scene::governed(one(Era::Legacy, Way::Http), &asks()).await;
    let yes = json!({ "action": "accept", "content": { "answer": "once" } });
    let mut anna = scene.client_of(Era::Modern, Way::Http, "anna").await;
    let mut bert = scene.client_of(Era::Modern, Way::Http, "bert").await;
    let asked = anna.call("echo", json!({ "text": "safe" })).await;
    only_input(&asked);
    // Of another client, for other arguments, for another tool.
    let stolen = bert.retry("echo", json!({ "text": "safe" }), &asked, &yes);
    assert_eq!(bert.answer(stolen).await["error"]["code"], -32602);
    let moved = anna.retry("echo", json!({ "text": "danger" }), &asked, &yes);
    assert_eq!(anna.answer(moved).await["error"]["code"], -32602);
    let moved = anna.retry("mirror", json!({ "text": "safe" }), &asked, &yes);
    assert_eq!(anna.answer(moved).await["error"]["code"], -32602);
    // All of that left the question where it was.
    let id = anna.retry("echo", json!({ "text": "safe" }), &asked, &yes);
    assert_eq!(text_of(&anna.answer(id).await), "safe");
    let again = anna.retry("echo", json!({ "text": "safe" }), &asked, &yes);
    assert_eq!(anna.answer(again).await["error"]["code"], -32602);
    drop((anna, bert));
    scene.end().await;
}

#[tokio::test]
async fn a_client_that_parks_questions_keeps_no_other_from_being_asked() {
    let scene = Scene::of(Era::Legacy, Way::Http).await;
    let mut anna = scene.client_of(Era::Modern, Way::Http, "anna").await;
    for _ in 0..20 {
        anna.begin_call("elicit", json!({}));
    }
    for id in 2..=21 {
        anna.answer(id).await;
    }
    let mut bert = scene.client_of(Era::Modern, Way::Http, "bert").await;
    let asked = bert.call("elicit", json!({})).await;
    only_input(&asked);
    let yes = json!({ "action": "accept", "content": { "word": "bert" } });
    let id = bert.retry("elicit", json!({}), &asked, &yes);
    assert!(text_of(&bert.answer(id).await).contains("bert"));
    drop((anna, bert));
    scene.end().await;
}

#[tokio::test]
async fn a_client_that_changes_its_roots_all_the_time_is_asked_one_thing_at_a_time() {
    let scene = Scene::of(Era::Legacy, Way::Http).await;
    for way in WAYS {
        let mut client = scene.client(Era::Legacy, way).await;
        for _ in 0..200 {
            client.tell("notifications/roots/list_changed", None);
        }
        let asked = client.left().await;
        let asked: Vec<_> = asked
            .iter()
            .filter(|it| it["method"] == "roots/list")
            .collect();
        assert!(asked.len() <= 1, "{} questions", asked.len());
        // The answer to it is not the last: what changed meanwhile is asked for once more.
        client.reply(asked[0], &crate::scene::roots("late"));
        client.question_of("roots/list").await;
    }
    scene.end().await;
}

#[tokio::test]
async fn completion_is_asked_for_what_was_judged_and_nothing_else() {
    let scene = Scene::of(Era::Legacy, Way::Http).await;
    let mut client = scene.client(Era::Modern, Way::Stdio).await;
    let both = json!({ "ref": { "type": "ref/resource", "name": "s__greet", "uri": "s:page/{number}" },
        "argument": { "name": "who", "value": "" } });
    let answer = client.ask("completion/complete", both).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    drop(client);
    scene.end().await;
}

#[tokio::test]
async fn a_method_of_the_protocol_in_other_letters_is_no_other_method() {
    let scene = Scene::of(Era::Legacy, Way::Http).await;
    let mut client = scene.line_to("s", Era::Legacy, Way::Stdio);
    client.greet().await;
    for method in [
        "Tools/Call",
        "tools/CALL",
        " tools/call",
        "tools//call",
        "tool\u{17f}/call",
        "Notifications/cancelled",
        "notification\u{17f}/cancelled",
        "INITIALIZE",
        "tasks/list",
        "tasks/result\u{0}",
    ] {
        let answer = client.ask(
            method,
            json!({ "name": "echo", "arguments": { "text": "x" } }),
        );
        let answer = answer.await;
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
    drop(client);
    scene.end().await;
}
