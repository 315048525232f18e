//! Hostile servers: what they say must harm neither a client nor another server.

use std::fmt::Write as _;

use serde_json::{Value, json};
use toolway_testkit::{Script, ScriptedSkills, SkillFlaw};
use toolway_types::Era;

use crate::scene::{ERAS, Scene, Upstream, Way, full};

fn hex(text: &str) -> String {
    let mut digits = String::new();
    for byte in text.bytes() {
        write!(digits, "{byte:02x}").unwrap();
    }
    digits
}

#[tokio::test]
async fn a_result_that_is_no_object_is_an_error_and_never_broken_json() {
    for server in ERAS {
        let scene = Scene::of(server, Way::Http).await;
        for era in ERAS {
            for way in [Way::Stdio, Way::Http] {
                let mut client = scene.client(era, way).await;
                for odd in [
                    "5", "\"x\"", "[1]", "true", "[]", "\"}\"", " 7 ", "null", "-1e5",
                ] {
                    let tried = [
                        (
                            "tools/call",
                            json!({ "name": "s__verbatim", "arguments": { "result": odd } }),
                        ),
                        (
                            "resources/read",
                            json!({ "uri": format!("s:verbatim/{}", hex(odd)) }),
                        ),
                        (
                            "prompts/get",
                            json!({ "name": "s__verbatim", "arguments": { "result": odd } }),
                        ),
                    ];
                    for (method, params) in tried {
                        // A client that gets broken JSON fails right here.
                        let answer = client.ask(method, params).await;
                        let is_told =
                            answer["error"].is_object() || answer["result"]["isError"] == true;
                        assert!(is_told, "{server:?} to {era:?}, {method} {odd}: {answer}");
                    }
                }
            }
        }
        scene.end().await;
    }
}

#[tokio::test]
async fn sec_32_instructions_that_may_not_be_said_are_not_said_at_a_servers_own_address() {
    let denied = json!({ "permissions": { "deny": ["mcp__s__ReadMcpInstructions"] } });
    let dropped = json!({ "instructions": false });
    for (settings, more, is_said) in [
        (json!({}), json!({}), true),
        (json!({}), dropped, false),
        (denied, json!({}), false),
    ] {
        let upstreams = vec![Upstream::new("s", Way::Http, full(Era::Legacy, "s"))];
        let scene = Scene::governed_with(upstreams, &settings, &more).await;
        for era in ERAS {
            for mut client in [
                scene.line_to("s", era, Way::Http),
                scene.line(era, Way::Http, "anna"),
            ] {
                let greeting = client.greet().await;
                let said = greeting["result"].get("instructions");
                assert_eq!(said.is_some(), is_said, "{settings} {more}: {greeting}");
            }
        }
        scene.end().await;
    }
}

#[tokio::test]
async fn an_address_below_a_servers_template_is_read_at_that_server() {
    let scene = Scene::over(vec![
        Upstream::new("s", Way::Http, full(Era::Legacy, "s")),
        Upstream::new("t", Way::Http, full(Era::Legacy, "t")),
    ])
    .await;
    let mut client = scene.client(Era::Legacy, Way::Stdio).await;
    let read = client
        .ask("resources/read", json!({ "uri": "s:grown/1" }))
        .await;
    let text = &read["result"]["contents"][0]["text"];
    assert_eq!(*text, Value::from("s:grown/1 of s"), "{read}");
    drop(client);
    scene.end().await;
}

#[tokio::test]
async fn a_skill_is_asked_of_the_server_that_lists_it_and_of_no_other() {
    let with = |name: &'static str, flaw| {
        let skills = ScriptedSkills {
            count: 1,
            page_size: 0,
            flaw: Some(flaw),
        };
        let script = Script {
            skills: Some(skills),
            ..full(Era::Modern, name)
        };
        Upstream::new(name, Way::Stdio, script)
    };
    // The first one answers for every folder, and lists one.
    let upstreams = vec![with("a", SkillFlaw::Dynamic), with("b", SkillFlaw::Twins)];
    let scene = Scene::over(upstreams).await;
    for era in ERAS {
        let mut client = scene.client_of(era, Way::Stdio, "anna").await;
        let of = |folder: &str, name: &str| json!({ "uri": format!("skill://{folder}/{name}/SKILL.md") });
        let own = client.ask("skills/get", of("twins", "skill-0")).await;
        let files = &own["result"]["skill"]["resources"];
        assert!(files.is_array(), "{era:?}: {own}");
        for (folder, name) in [("chaos", "skill-0"), ("chaos", "hidden")] {
            let unclear = client.ask("skills/get", of(folder, name)).await;
            assert_eq!(unclear["error"]["code"], -32602, "{era:?}: {unclear}");
        }
    }
    scene.end().await;
}
