//! What servers ask because of a client's call: forms, pages, a model's words, roots.

use serde_json::{Value, json};
use toolway::config::ProfileMode;
use toolway_gateway::EndpointOptions;
use toolway_types::Era;

use crate::scene::{ERAS, Pairing, Scene, Upstream, Way, full, pairings, roots, ways_of};
use crate::speaker::{Speaker, only_input, text_of};

/// One question that a server can have, as a tool that asks it.
struct Question {
    tool: &'static str,
    arguments: Value,
    method: &'static str,
    answer: Value,
    /// What the tool answers with, in part.
    told: &'static str,
}

fn form() -> Question {
    Question {
        tool: "elicit",
        arguments: json!({}),
        method: "elicitation/create",
        answer: json!({ "action": "accept", "content": { "word": "abracadabra" } }),
        told: r#""word":"abracadabra""#,
    }
}

fn page(server: Era) -> Question {
    let mut request = json!({ "mode": "url", "message": "pay, please",
        "url": "https://pay.example/now?x=1" });
    if server == Era::Legacy {
        request["elicitationId"] = "page-17".into();
    }
    Question {
        tool: "elicit",
        arguments: json!({ "request": request }),
        method: "elicitation/create",
        answer: json!({ "action": "accept" }),
        told: r#""action":"accept""#,
    }
}

fn sampling() -> Question {
    Question {
        tool: "sample",
        arguments: json!({}),
        method: "sampling/createMessage",
        answer: json!({ "role": "assistant", "model": "m", "stopReason": "endTurn",
            "content": { "type": "text", "text": "a poem" }, "more": { "than": "known" } }),
        told: r#""more":{"than":"known"}"#,
    }
}

fn places() -> Question {
    Question {
        tool: "roots",
        arguments: json!({}),
        method: "roots/list",
        answer: roots("elsewhere"),
        told: "file:///work/elsewhere",
    }
}

impl Question {
    /// Has it asked of the client, in the way of its era; what is asked, and the answer to the call.
    async fn put_to(&self, client: &mut Speaker) -> (Value, Value) {
        if client.era == Era::Legacy {
            let id = client.begin_call(self.tool, self.arguments.clone());
            let asked = client.question().await;
            client.reply(&asked, &self.answer);
            let answer = client.answer(id).await;
            return (asked, answer);
        }
        let asked = client.call(self.tool, self.arguments.clone()).await;
        let question = only_input(&asked).clone();
        let id = client.retry(self.tool, self.arguments.clone(), &asked, &self.answer);
        (question, client.answer(id).await)
    }

    async fn play(&self, pairing: Pairing, look: impl Fn(&Value)) {
        pairing
            .play(async |_, client| {
                let (asked, answer) = self.put_to(client).await;
                assert_eq!(asked["method"], self.method, "{pairing:?}");
                look(&asked["params"]);
                let told = text_of(&answer);
                assert!(told.contains(self.told), "{pairing:?}: {told}");
                // The server's own state stays between it and us.
                let (asked, answer) = (asked.to_string(), answer.to_string());
                let said = format!("{asked}{answer}");
                assert!(!said.contains("=round="), "{pairing:?}: {said}");
                assert_eq!(client.left().await, Vec::<Value>::new(), "{pairing:?}");
            })
            .await;
    }
}

#[tokio::test]
async fn a_form_is_put_to_the_client_in_the_way_of_its_era() {
    for pairing in pairings() {
        form()
            .play(pairing, |params| {
                assert_eq!(params["message"], "a word, please", "{pairing:?}");
                let schema = &params["requestedSchema"];
                assert_eq!(schema["required"], json!(["word"]), "{pairing:?}");
            })
            .await;
    }
}

#[tokio::test]
async fn a_page_is_put_to_the_client_with_an_id_where_its_era_has_one() {
    for pairing in pairings() {
        page(pairing.server)
            .play(pairing, |params| {
                assert_eq!(params["mode"], "url", "{pairing:?}");
                assert_eq!(params["message"], "pay, please", "{pairing:?}");
                assert_eq!(params["url"], "https://pay.example/now?x=1", "{pairing:?}");
                let id = params.get("elicitationId");
                match (pairing.client, pairing.server) {
                    (Era::Legacy, Era::Legacy) => assert_eq!(id, Some(&json!("page-17"))),
                    // The legacy era does not know pages without one.
                    (Era::Legacy, Era::Modern) => {
                        assert!(id.is_some_and(Value::is_string), "{pairing:?}: {params}");
                    }
                    (Era::Modern, _) => assert_eq!(id, None, "{pairing:?}"),
                }
            })
            .await;
    }
}

#[tokio::test]
async fn a_model_is_asked_of_the_client_and_its_words_arrive_as_they_are() {
    for pairing in pairings() {
        sampling()
            .play(pairing, |params| {
                assert_eq!(params["maxTokens"], 8, "{pairing:?}");
                let message = &params["messages"][0]["content"]["text"];
                assert_eq!(message, "a word", "{pairing:?}");
            })
            .await;
    }
}

#[tokio::test]
async fn roots_are_those_that_the_client_names_when_it_is_asked() {
    for pairing in pairings() {
        places().play(pairing, |_| {}).await;
    }
}

#[tokio::test]
async fn a_no_of_the_client_reaches_the_server() {
    for pairing in pairings() {
        for action in ["decline", "cancel"] {
            let question = Question {
                answer: json!({ "action": action }),
                told: if action == "decline" {
                    r#""action":"decline""#
                } else {
                    r#""action":"cancel""#
                },
                ..form()
            };
            question.play(pairing, |_| {}).await;
        }
    }
}

#[tokio::test]
async fn several_rounds_of_a_modern_server_are_put_one_after_the_other() {
    for client_era in ERAS {
        for pairing in ways_of(client_era, Era::Modern) {
            pairing
                .play(async |_, client| {
                    let arguments = json!({ "rounds": 3 });
                    let yes = form().answer;
                    let answer = if client_era == Era::Legacy {
                        let id = client.begin_call("elicit", arguments);
                        for _ in 0..3 {
                            let asked = client.question().await;
                            client.reply(&asked, &yes);
                        }
                        client.answer(id).await
                    } else {
                        let mut asked = client.call("elicit", arguments.clone()).await;
                        let mut states = Vec::new();
                        for _ in 0..2 {
                            only_input(&asked);
                            states.push(asked["result"]["requestState"].clone());
                            let id = client.retry("elicit", arguments.clone(), &asked, &yes);
                            asked = client.answer(id).await;
                        }
                        assert_ne!(states[0], states[1]);
                        let id = client.retry("elicit", arguments, &asked, &yes);
                        client.answer(id).await
                    };
                    assert!(text_of(&answer).contains("abracadabra"), "{pairing:?}");
                })
                .await;
        }
    }
}

#[tokio::test]
async fn a_prompt_that_asks_is_answered_as_a_tool_is() {
    for pairing in pairings() {
        pairing
            .play(async |_, client| {
                let params = json!({ "name": "s__elicit" });
                let yes = form().answer;
                let answer = if client.era == Era::Legacy {
                    let id = client.begin("prompts/get", params);
                    let asked = client.question().await;
                    client.reply(&asked, &yes);
                    client.answer(id).await
                } else {
                    let asked = client.ask("prompts/get", params.clone()).await;
                    only_input(&asked);
                    let key = asked["result"]["inputRequests"].as_object().unwrap();
                    let key = key.keys().next().unwrap();
                    let mut again = params;
                    again["inputResponses"] = json!({ key: yes });
                    again["requestState"] = asked["result"]["requestState"].clone();
                    client.ask("prompts/get", again).await
                };
                let text = answer["result"]["messages"][0]["content"]["text"].as_str();
                let text = text.unwrap_or_else(|| panic!("{pairing:?}: {answer}"));
                assert!(text.contains("abracadabra"), "{pairing:?}: {text}");
            })
            .await;
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_not_asked() {
    for pairing in pairings() {
        for question in [form(), page(pairing.server), sampling(), places()] {
            let scene = crate::scene::Scene::of(pairing.server, pairing.up).await;
            let mut client = scene.line(pairing.client, pairing.down, "anna");
            client.capabilities = json!({});
            client.greet().await;
            let answer = client.call(question.tool, question.arguments).await;
            // Whatever the server makes of a refusal, it is no answer of somebody.
            let said = answer.to_string();
            assert!(!said.contains("input_required"), "{pairing:?}: {said}");
            assert!(!said.contains(question.told), "{pairing:?}: {said}");
            assert_eq!(client.left().await, Vec::<Value>::new(), "{pairing:?}");
            drop(client);
            scene.end().await;
        }
    }
}

#[tokio::test]
async fn a_modern_client_is_told_what_it_had_to_declare_to_a_modern_server() {
    for pairing in ways_of(Era::Modern, Era::Modern) {
        pairing
            .play(async |_, client| {
                client.capabilities = json!({ "elicitation": { "url": {} } });
                for (question, required) in [
                    (form(), json!({ "elicitation": { "form": {} } })),
                    (sampling(), json!({ "sampling": {} })),
                    (places(), json!({ "roots": {} })),
                ] {
                    let refused = client.call(question.tool, question.arguments).await;
                    assert_eq!(refused["error"]["code"], -32021, "{pairing:?}: {refused}");
                    let data = &refused["error"]["data"];
                    assert_eq!(data["requiredCapabilities"], required, "{refused}");
                }
                let question = page(Era::Modern);
                let asked = client.call(question.tool, question.arguments).await;
                only_input(&asked);
            })
            .await;
    }
}

#[tokio::test]
async fn what_a_server_asks_may_hold_numbers_of_any_size() {
    let request = json!({ "mode": "form", "message": "how much?", "requestedSchema": {
        "type": "object", "properties": { "word": { "type": "string", "x-limit": 17 } } } });
    // No double has room for it; a form may say so all the same.
    let huge = request.to_string().replace("17", "1e999");
    for pairing in pairings() {
        pairing
            .play(async |_, client| {
                let name = format!("{}elicit", client.prefix);
                let arguments = json!({ "raw": huge });
                let params = json!({ "name": name, "arguments": arguments });
                let id = client.begin("tools/call", params.clone());
                if client.era == Era::Legacy {
                    let asked = client.question_text().await;
                    assert!(asked.contains("1e999"), "{pairing:?}: {asked}");
                    let asked = asked.replace("1e999", "17");
                    let asked: Value = serde_json::from_str(&asked).unwrap();
                    client.reply(&asked, &form().answer);
                } else {
                    let asked = client.heard(id).await.text;
                    assert!(asked.contains("1e999"), "{pairing:?}: {asked}");
                    let asked: Value = serde_json::from_str(&asked.replace("1e999", "17")).unwrap();
                    let id = client.retry("elicit", arguments, &asked, &form().answer);
                    let answer = client.answer(id).await;
                    assert!(text_of(&answer).contains("abracadabra"), "{pairing:?}");
                    return;
                }
                let answer = client.answer(id).await;
                assert!(text_of(&answer).contains("abracadabra"), "{pairing:?}");
            })
            .await;
    }
}

#[tokio::test]
async fn progress_after_a_retry_is_told_by_the_token_of_the_retry() {
    let options = EndpointOptions {
        mode: ProfileMode::Ask,
        ..EndpointOptions::default()
    };
    for server in ERAS {
        let upstream = Upstream::new("s", Way::Stdio, full(server, "s"));
        let scene = Scene::begun(vec![upstream], &options);
        scene.host.settled().await;
        let mut client = scene.client(Era::Modern, Way::Http).await;
        let arguments = json!({ "count": 2 });
        client.meta = json!({ "progressToken": "first" });
        let asked = client.call("progress", arguments.clone()).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        client.meta = json!({ "progressToken": "second" });
        let yes = json!({ "action": "accept", "content": { "answer": "once" } });
        let id = client.retry("progress", arguments, &asked, &yes);
        for _ in 0..2 {
            let told = client.notice("notifications/progress").await;
            assert_eq!(told["params"]["progressToken"], "second", "{told}");
        }
        let answer = client.answer(id).await;
        assert!(answer["result"]["content"].is_array(), "{answer}");
        drop(client);
        scene.end().await;
    }
}
