//! The demo servers in both eras.

use clap::ValueEnum as _;
use serde_json::{Value, json};

use toolway_wire::Id;

use super::*;

fn ask(server: &DemoServer, method: &str, params: &Value) -> Value {
    let params = to_raw_value(params).unwrap();
    let answer = server.answer(method, Some(&params)).message(&Id::Number(1));
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["id"], 1);
    answer
}

fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

fn call(flavour: Flavour, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    ask(&DemoServer::new(flavour), "tools/call", &params)["result"].take()
}

#[test]
fn a_legacy_client_is_greeted_in_its_own_version_or_our_newest() {
    let server = DemoServer::new(Flavour::Desk);
    let greet = |version: &str| {
        ask(
            &server,
            "initialize",
            &json!({ "protocolVersion": version }),
        )
    };
    let greeting = greet("2025-03-26");
    assert_eq!(greeting["result"]["protocolVersion"], "2025-03-26");
    assert_eq!(
        greeting["result"]["serverInfo"]["name"],
        "toolway-demo-desk"
    );
    assert_eq!(
        greet("1999-01-01")["result"]["protocolVersion"],
        "2025-11-25"
    );
    assert_eq!(ask(&server, "ping", &json!({}))["result"], json!({}));
    let list = ask(&server, "tools/list", &json!({}));
    assert!(list["result"].get("resultType").is_none());
}

#[test]
fn a_modern_client_discovers_without_a_handshake() {
    let server = DemoServer::new(Flavour::Library);
    let result = ask(&server, "server/discover", &modern(json!({})))["result"].take();
    assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(result["resultType"], "complete");
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/serverInfo"]["title"],
        "Demo library"
    );
    for method in ["tools/list", "resources/list", "prompts/list"] {
        let result = ask(&server, method, &modern(json!({})))["result"].take();
        assert_eq!(result["cacheScope"], "public", "{method}");
        assert!(result["ttlMs"].is_u64(), "{method}");
    }
    assert_eq!(
        ask(&server, "ping", &modern(json!({})))["error"]["code"],
        -32601
    );
}

#[test]
fn modern_requests_are_checked_as_the_specification_says() {
    let server = DemoServer::new(Flavour::Desk);
    let code = |method: &str, params: &Value| ask(&server, method, params)["error"]["code"].take();
    assert_eq!(code("no/such", &modern(json!({}))), -32601);
    assert_eq!(code("server/discover", &json!({})), -32602);
    let mut bare = modern(json!({}));
    bare["_meta"]
        .as_object_mut()
        .unwrap()
        .shift_remove(meta_key::CLIENT_CAPABILITIES);
    assert_eq!(code("tools/list", &bare), -32602);
    let mut future = modern(json!({}));
    future["_meta"][meta_key::PROTOCOL_VERSION] = json!("2099-01-01");
    let error = ask(&server, "server/discover", &future)["error"].take();
    assert_eq!(error["code"], -32022);
    let data = json!({ "supported": ["2026-07-28"], "requested": "2099-01-01" });
    assert_eq!(error["data"], data);
    assert_eq!(code("tools/list", &json!([1])), -32602);
    assert_eq!(code("tools/list", &json!({ "cursor": "2" })), -32602);
}

#[test]
fn a_server_of_one_era_refuses_the_other() {
    let legacy = DemoServer::new(Flavour::Desk).speaking(Speaks::Legacy);
    assert_eq!(
        ask(&legacy, "server/discover", &modern(json!({})))["error"]["code"],
        -32601
    );
    assert!(ask(&legacy, "initialize", &json!({}))["result"].is_object());
    let only_modern = DemoServer::new(Flavour::Desk).speaking(Speaks::Modern);
    let error = ask(
        &only_modern,
        "initialize",
        &json!({ "protocolVersion": "2025-11-25" }),
    );
    assert_eq!(error["error"]["code"], -32022);
    assert_eq!(error["error"]["data"]["supported"], json!(["2026-07-28"]));
    assert_eq!(
        ask(&only_modern, "tools/list", &json!({}))["error"]["code"],
        -32602
    );
}

#[test]
fn every_flavour_offers_its_own_tools_with_schemas_and_hints() {
    let mut names = Vec::new();
    for flavour in Flavour::value_variants() {
        assert_eq!(Flavour::from_str(flavour.as_str(), false), Ok(*flavour));
        let list = ask(&DemoServer::new(*flavour), "tools/list", &json!({}));
        for tool in list["result"]["tools"].as_array().unwrap() {
            assert_eq!(tool["inputSchema"]["type"], "object");
            assert_eq!(tool["annotations"]["readOnlyHint"], true);
            names.push(tool["name"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(
        names,
        ["add", "now", "word_count", "echo", "palette", "fail"]
    );
}

#[test]
fn the_tools_do_what_they_say() {
    let result = call(Flavour::Desk, "add", &json!({ "a": 2, "b": 40 }));
    assert_eq!(result["content"][0]["text"], "42");
    assert_eq!(result["structuredContent"], json!({ "sum": 42 }));
    let result = call(Flavour::Desk, "add", &json!({ "a": i64::MAX, "b": 0.5 }));
    assert!(result["structuredContent"]["sum"].is_f64());
    let result = call(Flavour::Desk, "now", &json!({}));
    assert!(
        result["structuredContent"]["utc"]
            .as_str()
            .unwrap()
            .ends_with('Z')
    );
    let result = call(
        Flavour::Library,
        "word_count",
        &json!({ "text": "to be,\nor not" }),
    );
    assert_eq!(
        result["structuredContent"],
        json!({ "words": 4, "lines": 2, "characters": 13, "longest": "not" })
    );
    let result = call(
        Flavour::Library,
        "echo",
        &json!({ "text": "hi", "times": 2 }),
    );
    assert_eq!(result["content"].as_array().map(Vec::len), Some(2));
    let result = call(
        Flavour::Studio,
        "palette",
        &json!({ "colours": 3, "hue": 0 }),
    );
    assert_eq!(result["content"][0]["text"], "#dc4646 #46dc46 #4646dc");
    assert_eq!(result["content"][1]["mimeType"], "image/png");
    // The signature of a PNG, in base64.
    assert!(
        result["content"][1]["data"]
            .as_str()
            .unwrap()
            .starts_with("iVBORw0KGgo")
    );
}

#[test]
fn a_failing_tool_and_unfit_arguments_are_results_and_an_unknown_tool_is_not() {
    let result = call(Flavour::Studio, "fail", &json!({ "reason": "rain" }));
    assert_eq!(
        (&result["isError"], &result["content"][0]["text"]),
        (&json!(true), &json!("failed as asked: rain"))
    );
    let result = call(Flavour::Desk, "add", &json!({ "a": "2", "b": 3 }));
    assert_eq!(result["content"][0]["text"], "`a` must be a number");
    let result = call(
        Flavour::Library,
        "echo",
        &json!({ "text": "hi", "times": 11 }),
    );
    assert_eq!(result["isError"], true);
    let server = DemoServer::new(Flavour::Desk);
    let unknown = ask(&server, "tools/call", &json!({ "name": "palette" }));
    assert_eq!(unknown["error"]["code"], -32602);
}

#[test]
fn the_library_is_read_and_its_prompt_filled() {
    let server = DemoServer::new(Flavour::Library);
    let listed = ask(&server, "resources/list", &json!({}))["result"]["resources"].take();
    for resource in listed.as_array().unwrap() {
        let read = ask(
            &server,
            "resources/read",
            &json!({ "uri": resource["uri"] }),
        );
        let text = read["result"]["contents"][0]["text"].as_str().unwrap();
        assert_eq!(resource["size"], text.len());
    }
    let nowhere = json!({ "uri": "demo://library/none" });
    assert_eq!(
        ask(&server, "resources/read", &nowhere)["error"]["code"],
        -32002
    );
    assert_eq!(
        ask(&server, "resources/read", &modern(nowhere))["error"]["code"],
        -32602
    );
    let params = json!({ "name": "summarize", "arguments": { "text": "T", "style": "a child" } });
    let prompt = ask(&server, "prompts/get", &params)["result"].take();
    let text = prompt["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.ends_with("sentences for a child:\n\nT"), "{text}");
    let desk = DemoServer::new(Flavour::Desk);
    assert_eq!(
        ask(&desk, "resources/list", &json!({}))["error"]["code"],
        -32601
    );
}
