//! What a client asks for: calls, their progress, their end, completion, pages to visit first.

use serde_json::{Value, json};
use toolway_types::Era;

use crate::scene::{ERAS, Scene, Way, pairings, ways_of};
use crate::speaker::{only_input, text_of};

/// The members that only modern results have.
fn era_of_result(answer: &Value) -> Option<&str> {
    answer["result"]["resultType"].as_str()
}

#[tokio::test]
async fn a_call_is_answered_in_the_era_of_its_client() {
    for pairing in pairings() {
        pairing
            .play(async |_, client| {
                let answer = client.call("echo", json!({ "text": "hello" })).await;
                assert_eq!(text_of(&answer), "hello", "{pairing:?}");
                let expected = (client.era == Era::Modern).then_some("complete");
                assert_eq!(era_of_result(&answer), expected, "{pairing:?}: {answer}");
            })
            .await;
    }
}

#[tokio::test]
async fn progress_comes_under_the_clients_own_token_and_before_the_answer() {
    for pairing in pairings() {
        pairing
            .play(async |_, client| {
                client.meta = json!({ "progressToken": "mine" });
                let id = client.begin_call("progress", json!({ "count": 3 }));
                let answer = client.answer(id).await;
                assert_eq!(text_of(&answer), "done");
                client.meta = json!({});
                let told: Vec<Value> = client.left().await;
                let steps: Vec<(&Value, &Value)> = told
                    .iter()
                    .map(|it| (&it["params"]["progressToken"], &it["params"]["progress"]))
                    .collect();
                let mine = json!("mine");
                let expected = [json!(1), json!(2), json!(3)];
                let expected: Vec<_> = expected.iter().map(|step| (&mine, step)).collect();
                assert_eq!(steps, expected, "{pairing:?}");
            })
            .await;
    }
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_its_server_and_not_answered() {
    for pairing in pairings() {
        pairing
            .play(async |_, client| {
                client.meta = json!({ "progressToken": 7 });
                let id = client.begin_call("progress", json!({}));
                client.notice("notifications/progress").await;
                client.cancel(id);
                client.meta = json!({});
                client.reports("cancellations", &json!(1)).await;
                let left = client.left().await;
                let answered = left.iter().any(|it| it["id"] == id);
                assert!(!answered, "{pairing:?}: {left:?}");
            })
            .await;
    }
}

#[tokio::test]
async fn completion_reaches_the_server_of_the_prompt_or_the_template() {
    for pairing in pairings() {
        pairing
            .play(async |_, client| {
                for (reference, own) in [
                    (json!({ "type": "ref/prompt", "name": "s__greet" }), "greet"),
                    (
                        json!({ "type": "ref/resource", "uri": "s:page/{number}" }),
                        "s:page/{number}",
                    ),
                ] {
                    let argument = json!({ "name": "who", "value": "wor" });
                    let params = json!({ "ref": reference, "argument": argument });
                    let answer = client.ask("completion/complete", params).await;
                    let values = &answer["result"]["completion"]["values"];
                    assert_eq!(values, &json!(["s", own, "wor"]), "{pairing:?}: {answer}");
                }
            })
            .await;
    }
}

#[tokio::test]
async fn resources_and_prompts_are_read_in_the_era_of_the_client() {
    for pairing in pairings() {
        pairing
            .play(async |_, client| {
                let answer = client
                    .ask("resources/read", json!({ "uri": "s:own" }))
                    .await;
                let text = &answer["result"]["contents"][0]["text"];
                assert_eq!(text, "s:own of s", "{pairing:?}: {answer}");
                let is_modern = client.era == Era::Modern;
                for member in ["resultType", "ttlMs", "cacheScope"] {
                    let has_it = answer["result"].get(member).is_some();
                    assert_eq!(has_it, is_modern, "{pairing:?}: {member}: {answer}");
                }
                let params = json!({ "name": "s__greet", "arguments": { "who": "you" } });
                let answer = client.ask("prompts/get", params).await;
                let text = &answer["result"]["messages"][0]["content"]["text"];
                assert_eq!(text, "s greets you", "{pairing:?}: {answer}");
                assert_eq!(era_of_result(&answer).is_some(), is_modern, "{pairing:?}");
            })
            .await;
    }
}

#[tokio::test]
async fn a_resource_that_is_not_there_has_the_code_of_the_clients_era() {
    for pairing in pairings() {
        pairing
            .play(async |_, client| {
                let answer = client
                    .ask("resources/read", json!({ "uri": "s:missing" }))
                    .await;
                let expected = match client.era {
                    Era::Legacy => -32002,
                    Era::Modern => -32602,
                };
                assert_eq!(answer["error"]["code"], expected, "{pairing:?}: {answer}");
            })
            .await;
    }
}

#[tokio::test]
async fn a_legacy_client_gets_the_error_of_a_legacy_server_that_wants_a_page_visited() {
    for pairing in ways_of(Era::Legacy, Era::Legacy) {
        pairing
            .play(async |_, client| {
                let answer = client.call("login", json!({})).await;
                assert_eq!(answer["error"]["code"], -32042, "{pairing:?}: {answer}");
                let page = &answer["error"]["data"]["elicitations"][0];
                assert_eq!(page["elicitationId"], "login-page", "{answer}");
                assert_eq!(page["url"], "https://login.example/chaos", "{answer}");
                client.call("visited", json!({ "id": "login-page" })).await;
                assert_eq!(client.text("login", json!({})).await, "logged in");
            })
            .await;
    }
}

#[tokio::test]
async fn a_modern_client_is_asked_to_visit_the_page_that_a_legacy_server_wants_visited() {
    for pairing in ways_of(Era::Modern, Era::Legacy) {
        pairing
            .play(async |_, client| {
                let asked = client.call("login", json!({})).await;
                let page = only_input(&asked);
                assert_eq!(page["method"], "elicitation/create", "{pairing:?}");
                assert_eq!(page["params"]["mode"], "url", "{pairing:?}: {page}");
                assert_eq!(page["params"]["url"], "https://login.example/chaos");
                client.call("visited", json!({ "id": "login-page" })).await;
                let id = client.retry("login", json!({}), &asked, &json!({ "action": "accept" }));
                let answer = client.answer(id).await;
                assert_eq!(text_of(&answer), "logged in", "{pairing:?}");
            })
            .await;
    }
}

#[tokio::test]
async fn a_page_that_nobody_visits_leaves_a_modern_client_with_the_servers_error() {
    for pairing in ways_of(Era::Modern, Era::Legacy) {
        pairing
            .play(async |_, client| {
                let asked = client.call("login", json!({})).await;
                let no = json!({ "action": "decline" });
                let id = client.retry("login", json!({}), &asked, &no);
                let answer = client.answer(id).await;
                assert_eq!(answer["error"]["code"], -32042, "{pairing:?}: {answer}");
            })
            .await;
    }
}

#[tokio::test]
async fn a_modern_server_that_wants_a_page_visited_asks_for_it_in_both_eras() {
    for pairing in ways_of(Era::Legacy, Era::Modern) {
        pairing
            .play(async |_, client| {
                let id = client.begin_call("login", json!({}));
                let asked = client.question().await;
                assert_eq!(asked["params"]["url"], "https://login.example/chaos");
                client.reply(&asked, &json!({ "action": "accept" }));
                assert!(text_of(&client.answer(id).await).contains("accept"));
            })
            .await;
    }
    for pairing in ways_of(Era::Modern, Era::Modern) {
        pairing
            .play(async |_, client| {
                let asked = client.call("login", json!({})).await;
                let page = only_input(&asked);
                assert_eq!(page["params"]["url"], "https://login.example/chaos");
                let id = client.retry("login", json!({}), &asked, &json!({ "action": "accept" }));
                assert!(text_of(&client.answer(id).await).contains("accept"));
            })
            .await;
    }
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_told_by_the_names_that_the_client_knows() {
    let scene = Scene::of(Era::Legacy, Way::Stdio).await;
    for era in ERAS {
        let mut merged = scene.line(era, Way::Http, "anna");
        merged.greet().await;
        let answer = merged.call("eco", json!({})).await;
        assert_eq!(
            answer["error"]["message"],
            "no tool `s__eco`; did you mean `s__echo`?"
        );
        let mut one = scene.line_to("s", era, Way::Http);
        one.greet().await;
        let answer = one.call("eco", json!({})).await;
        assert_eq!(
            answer["error"]["message"],
            "no tool `eco`; did you mean `echo`?"
        );
        drop((merged, one));
    }
    scene.end().await;
}
