//! Arguments that stand in headers too: what a client says there, and what a server is told.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use toolway_testkit::Script;
use toolway_types::Era;

use crate::scene::{Scene, Upstream, Way, full};
use crate::speaker::text_of;

const REGION: &str = "mcp-param-region";

async fn scene() -> Scene {
    let script = Script {
        places: true,
        ..full(Era::Modern, "s")
    };
    Scene::over(vec![Upstream::new("s", Way::Http, script)]).await
}

/// What the server was told in headers by the last call.
fn placed(scene: &Scene) -> Value {
    let listening = scene.upstreams[0].listening.as_ref().unwrap();
    listening.stats()["placed"].clone()
}

fn wrapped(text: &str) -> String {
    format!("=?base64?{}?=", BASE64_STANDARD.encode(text))
}

async fn call(scene: &Scene, headers: &[(&'static str, &str)], region: &str) -> Value {
    let mut client = scene.line_with(Era::Modern, headers);
    client.call("place", json!({ "region": region })).await
}

#[tokio::test]
async fn sec_28_an_argument_goes_into_a_header_as_text_and_as_nothing_else() {
    let scene = scene().await;
    for region in [
        "eu-west",
        "../../admin",
        "a b",
        "Zürich",
        "x\r\nmcp-session-id: other",
        "\u{0}",
        " padded ",
        "",
        "=?base64?c3RvbGVu?=",
    ] {
        let sent = wrapped(region);
        let answer = call(&scene, &[(REGION, &sent)], region).await;
        assert_eq!(text_of(&answer), region, "{answer}");
        let told = placed(&scene);
        let told = told.as_array().unwrap();
        assert_eq!(told.len(), 1, "{region:?}: {told:?}");
        let value = told[0][1].as_str().unwrap();
        let is_plain = ["eu-west", "../../admin", "a b", ""].contains(&region);
        let expected = if is_plain { region.to_owned() } else { sent };
        assert_eq!(value, expected, "{region:?}");
    }
    scene.end().await;
}

#[tokio::test]
async fn sec_28_headers_that_say_something_else_than_the_arguments_go_nowhere() {
    let scene = scene().await;
    let before = placed(&scene);
    let twice = [(REGION, "eu"), ("Mcp-Param-REGION", "eu")];
    let injected = [(REGION, "eu\r\nMCP-Param-Region: us")];
    let broken = [(REGION, "=?base64?%%?=")];
    for headers in [
        &[] as &[(&'static str, &str)],
        &[(REGION, "us")],
        &[(REGION, "EU")],
        &[(REGION, "")],
        &twice,
        &injected,
        &broken,
    ] {
        let answer = call(&scene, headers, "eu").await;
        assert_eq!(answer["error"]["code"], -32020, "{headers:?}: {answer}");
    }
    assert_eq!(placed(&scene), before);
    // Its name in other letters is the same header.
    let answer = call(&scene, &[("MCP-PARAM-REGION", "eu")], "eu").await;
    assert_eq!(text_of(&answer), "eu", "{answer}");
    scene.end().await;
}
