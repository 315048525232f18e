//! Servers that are late: what is offered of them meanwhile, and what waits for them.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use toolway::config::NameForm;
use toolway_gateway::EndpointOptions;
use toolway_testkit::{ScannedFolder, Script, ScriptedServer};
use toolway_types::Era;

use crate::scene::{ERAS, Scene, Upstream, Way, full};
use crate::speaker::{Speaker, text_of};

/// A server that begins when a test says so, and is then what the test says.
struct Gate {
    folder: ScannedFolder,
    pipe: PathBuf,
}

impl Gate {
    fn new() -> Self {
        let folder = ScannedFolder::new();
        let pipe = folder.path().join("gate");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        Self { folder, pipe }
    }

    /// The server `s`, with other members of its entry.
    fn server(&self, also: &Value) -> Upstream {
        let mut upstream = Upstream::new("s", Way::Stdio, Script::default());
        let script = r#"IFS= read -r script < "$1"; exec "$0" --script "$script""#;
        upstream.also = json!({
            "command": "/bin/sh",
            "args": ["-c", script, ScriptedServer::program(), self.pipe],
        });
        for (key, value) in also.as_object().unwrap() {
            upstream.also[key] = value.clone();
        }
        upstream
    }

    /// Lets it begin. Blocks until it waits for that.
    fn open(&self, script: &Script) -> tokio::task::JoinHandle<()> {
        let line = format!("{}\n", serde_json::to_string(script).unwrap());
        let pipe = self.pipe.clone();
        tokio::task::spawn_blocking(move || std::fs::write(pipe, line).unwrap())
    }

    /// A run in which the server is there, so that it is remembered.
    async fn remember(&self, script: &Script, also: &Value) {
        let options = EndpointOptions::default();
        let scene = Scene::remembering(vec![self.server(also)], &options, self.folder.path());
        self.open(script).await.unwrap();
        scene.host.settled().await;
        scene.end().await;
    }

    fn scene(&self, options: &EndpointOptions) -> Scene {
        self.scene_of(&json!({}), options)
    }

    fn scene_of(&self, also: &Value, options: &EndpointOptions) -> Scene {
        let other = Upstream::new("quick", Way::Stdio, full(Era::Legacy, "quick"));
        let all = vec![self.server(also), other];
        Scene::remembering(all, options, self.folder.path())
    }
}

async fn names(client: &mut Speaker, list: &str) -> Vec<String> {
    let method = match list {
        "resourceTemplates" => "resources/templates/list".to_owned(),
        list => format!("{list}/list"),
    };
    let answer = client.ask(&method, json!({})).await;
    let items = answer["result"][list].as_array();
    let items = items.unwrap_or_else(|| panic!("{answer}"));
    let member = match list {
        "resources" => "uri",
        "resourceTemplates" => "uriTemplate",
        _ => "name",
    };
    let mut names: Vec<_> = (items.iter())
        .map(|it| it[member].as_str().unwrap().to_owned())
        .filter(|name| !name.starts_with("quick"))
        .collect();
    names.sort();
    names
}

async fn greeted(scene: &Scene, era: Era, way: Way) -> Speaker {
    let mut client = scene.line(era, way, "anna");
    client.capabilities = json!({});
    let greeting = client.greet().await;
    let declared = &greeting["result"]["capabilities"];
    for list in ["tools", "resources", "prompts"] {
        assert_eq!(declared[list]["listChanged"], true, "{greeting}");
    }
    client
}

#[tokio::test]
async fn rel_08_what_is_remembered_of_a_server_is_offered_while_it_is_on_its_way() {
    for era in ERAS {
        let gate = Gate::new();
        let script = full(era, "s");
        gate.remember(&script, &json!({})).await;
        let scene = gate.scene(&EndpointOptions::default());
        let mut client = greeted(&scene, Era::Legacy, Way::Stdio).await;
        let mut remembered = Vec::new();
        for list in ["tools", "prompts", "resources", "resourceTemplates"] {
            remembered.push(names(&mut client, list).await);
        }
        assert!(
            remembered[0].contains(&"s__echo".to_owned()),
            "{remembered:?}"
        );
        assert_eq!(remembered[1], ["s__elicit", "s__greet", "s__verbatim"]);
        assert!(
            remembered[2].contains(&"s:own".to_owned()),
            "{remembered:?}"
        );
        assert!(
            remembered[3].contains(&"s:page/{number}".to_owned()),
            "{remembered:?}"
        );
        // It may not be kept for longer than until the server is there.
        let mut modern = greeted(&scene, Era::Modern, Way::Http).await;
        let list = modern.ask("tools/list", json!({})).await;
        assert_eq!(list["result"]["ttlMs"], 0, "{list}");
        assert_eq!(list["result"]["cacheScope"], "private", "{list}");
        // What names it waits for it.
        let call = client.begin_call("echo", json!({ "text": "late" }));
        let prompt = client.begin("prompts/get", json!({ "name": "s__greet" }));
        let read = client.begin("resources/read", json!({ "uri": "s:own" }));
        gate.open(&script).await.unwrap();
        assert_eq!(text_of(&client.answer(call).await), "late");
        let prompt = client.answer(prompt).await;
        assert!(prompt["result"]["messages"].is_array(), "{prompt}");
        let read = client.answer(read).await;
        assert_eq!(
            read["result"]["contents"][0]["text"], "s:own of s",
            "{read}"
        );
        // The same as before: nobody is told of a change.
        for (list, before) in ["tools", "prompts", "resources"].iter().zip(&remembered) {
            assert_eq!(names(&mut client, list).await, *before);
        }
        let heard = client.left().await;
        assert!(
            !heard
                .iter()
                .any(|it| it.to_string().contains("list_changed")),
            "{heard:?}"
        );
        drop((client, modern));
        scene.end().await;
    }
}

#[tokio::test]
async fn rel_08_a_client_hears_when_a_server_offers_something_else_than_is_remembered() {
    let gate = Gate::new();
    let before = Script {
        fillers: 2,
        ..full(Era::Legacy, "s")
    };
    gate.remember(&before, &json!({})).await;
    let scene = gate.scene(&EndpointOptions::default());
    let mut client = greeted(&scene, Era::Legacy, Way::Stdio).await;
    assert!(
        names(&mut client, "tools")
            .await
            .contains(&"s__filler_1".to_owned())
    );
    let gone = client.begin_call("filler_1", json!({}));
    gate.open(&full(Era::Legacy, "s")).await.unwrap();
    client.notice("notifications/tools/list_changed").await;
    assert!(
        !names(&mut client, "tools")
            .await
            .contains(&"s__filler_1".to_owned())
    );
    // What is not there any more is not called.
    let gone = client.answer(gone).await;
    assert_eq!(gone["error"]["code"], -32602, "{gone}");
    drop(client);
    scene.end().await;
}

#[tokio::test]
async fn rel_08_what_another_definition_offered_is_not_remembered() {
    let gate = Gate::new();
    let script = full(Era::Legacy, "s");
    gate.remember(&script, &json!({})).await;
    let changed = json!({ "env": { "OTHER": "1" } });
    let scene = gate.scene_of(&changed, &EndpointOptions::default());
    let mut client = greeted(&scene, Era::Legacy, Way::Stdio).await;
    assert_eq!(names(&mut client, "tools").await, Vec::<String>::new());
    gate.open(&script).await.unwrap();
    client.notice("notifications/tools/list_changed").await;
    assert!(
        names(&mut client, "tools")
            .await
            .contains(&"s__echo".to_owned())
    );
    drop(client);
    scene.end().await;
}

#[tokio::test]
async fn rel_08_what_is_remembered_is_curated_as_what_is_there() {
    let gate = Gate::new();
    let script = full(Era::Legacy, "s");
    // What an entry says about its tools is no part of what is remembered.
    gate.remember(&script, &json!({})).await;
    let curated = json!({ "excludeTools": ["echo"] });
    let scene = gate.scene_of(&curated, &EndpointOptions::default());
    let mut client = greeted(&scene, Era::Legacy, Way::Stdio).await;
    let remembered = names(&mut client, "tools").await;
    assert!(
        remembered.contains(&"s__mirror".to_owned()),
        "{remembered:?}"
    );
    assert!(
        !remembered.contains(&"s__echo".to_owned()),
        "{remembered:?}"
    );
    gate.open(&script).await.unwrap();
    scene.host.settled().await;
    assert_eq!(names(&mut client, "tools").await, remembered);
    drop(client);
    scene.end().await;
}

#[tokio::test]
async fn rel_08_lists_wait_for_as_long_as_they_are_told_to() {
    for era in ERAS {
        let gate = Gate::new();
        let options = EndpointOptions {
            wait: Some(Duration::from_mins(1)),
            ..EndpointOptions::default()
        };
        let scene = gate.scene(&options);
        // The greeting does not wait for it.
        let mut client = greeted(&scene, era, Way::Http).await;
        let list = client.begin("tools/list", json!({}));
        gate.open(&full(Era::Legacy, "s")).await.unwrap();
        let list = client.answer(list).await;
        assert!(list.to_string().contains("\"s__echo\""), "{list}");
        drop(client);
        scene.end().await;
    }
}

/// Asks for something of a server that nothing is known of, and lets it come.
async fn waits(gate: &Gate, options: &EndpointOptions, era: Era, asked: (&str, Value)) -> Value {
    let scene = gate.scene(options);
    let mut client = greeted(&scene, era, Way::Stdio).await;
    let id = client.begin(asked.0, asked.1);
    gate.open(&full(Era::Legacy, "s")).await.unwrap();
    let answer = client.answer(id).await;
    drop(client);
    scene.end().await;
    drop(std::fs::remove_dir_all(gate.folder.path().join("memory")));
    answer
}

#[tokio::test]
async fn rel_08_prompts_resources_and_completion_wait_for_their_server_as_calls_do() {
    let gate = Gate::new();
    let options = EndpointOptions::default();
    for era in ERAS {
        let asked = ("prompts/get", json!({ "name": "s__greet" }));
        let prompt = waits(&gate, &options, era, asked).await;
        assert!(prompt["result"]["messages"].is_array(), "{prompt}");
        for (uri, text) in [
            ("s:own", "s:own of s"),
            ("toolway:s:shared:one", "shared:one of s"),
        ] {
            let asked = ("resources/read", json!({ "uri": uri }));
            let read = waits(&gate, &options, era, asked).await;
            assert_eq!(read["result"]["contents"][0]["text"], text, "{read}");
            assert_eq!(read["result"]["contents"][0]["uri"], uri, "{read}");
        }
        for reference in [
            json!({ "type": "ref/prompt", "name": "s__greet" }),
            json!({ "type": "ref/resource", "uri": "s:page/{number}" }),
        ] {
            let argument = json!({ "name": "who", "value": "a" });
            let asked = json!({ "ref": reference, "argument": argument });
            let found = waits(&gate, &options, era, ("completion/complete", asked)).await;
            assert!(
                found["result"]["completion"]["values"].is_array(),
                "{found}"
            );
        }
    }
    let asked = ("resources/subscribe", json!({ "uri": "s:own" }));
    let followed = waits(&gate, &options, Era::Legacy, asked).await;
    assert!(followed["result"].is_object(), "{followed}");
}

#[tokio::test]
async fn rel_08_a_name_that_does_not_say_its_server_waits_for_all() {
    let gate = Gate::new();
    let options = EndpointOptions {
        names: NameForm::Own,
        ..EndpointOptions::default()
    };
    let script = json!({ "name": "filler_7", "arguments": {} });
    let scene = gate.scene(&options);
    let mut client = greeted(&scene, Era::Legacy, Way::Stdio).await;
    let call = client.begin("tools/call", script);
    let with_fillers = Script {
        fillers: 8,
        ..full(Era::Legacy, "s")
    };
    gate.open(&with_fillers).await.unwrap();
    let call = client.answer(call).await;
    assert!(call["result"]["content"].is_array(), "{call}");
    drop(client);
    scene.end().await;
}

#[tokio::test]
async fn rel_08_a_prompt_of_a_server_that_does_not_come_is_answered_with_what_is_wrong() {
    let broken = json!({ "command": "/nonexistent/program", "args": [] });
    let gate = Gate::new();
    let scene = gate.scene_of(&broken, &EndpointOptions::default());
    scene.host.settled().await;
    let mut client = greeted(&scene, Era::Legacy, Way::Stdio).await;
    let answer = client
        .ask("prompts/get", json!({ "name": "s__greet" }))
        .await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("`s`") && message.contains("/nonexistent/program"),
        "{message}"
    );
    drop(client);
    scene.end().await;
}
