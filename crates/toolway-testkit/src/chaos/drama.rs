//! Tools whose answer is more than one message, late, wrong or doubled: the faults of a protocol
//! rather than of a process.
//!
//! Owns these tools. Plain tools are `tools.rs`, what becomes of tasks is `tasks.rs`.

use std::time::Duration;

use serde_json::{Value, json};

use super::outlet::ChaosClient;
use super::server::{ChaosServer, MethodCall, MethodFault, MethodOutcome, answer};
use super::tasks;
use super::tools::{text, tool};

/// A request's name in the memory.
pub(super) fn key(client: &ChaosClient, id: &Value) -> String {
    format!("{}\n{id}", client.key)
}

/// Whether a message may keep its thread for long.
pub(super) fn takes_time(message: &Value) -> bool {
    match (
        message["method"].as_str(),
        message["params"]["name"].as_str(),
    ) {
        (Some("tools/call"), Some(name)) => matches!(
            name,
            "slow" | "late" | "progress" | "elicit" | "sample" | "roots" | "storm"
        ),
        (Some("prompts/get"), Some(name)) => name == "elicit",
        _ => false,
    }
}

/// Whether an answer needs a stream: it is more than one message, or not only an answer.
pub(super) fn needs_stream(message: &Value) -> bool {
    let legacy = message["params"]["_meta"][super::server::VERSION_KEY].is_null();
    match message["method"].as_str() {
        Some("subscriptions/listen") => true,
        Some("tools/call") => match message["params"]["name"].as_str() {
            Some("progress" | "twice" | "mistyped" | "log" | "remark") => true,
            Some("elicit" | "sample" | "roots") => legacy,
            _ => false,
        },
        Some("prompts/get") => legacy && message["params"]["name"] == "elicit",
        _ => false,
    }
}

/// What is offered.
pub(super) fn all() -> Vec<Value> {
    let none = json!({});
    let progress = json!({ "ms": { "type": "integer", "minimum": 0 },
        "count": { "type": "integer", "minimum": 0 } });
    let mistyped = json!({ "as": { "type": "string",
        "enum": ["string", "float", "unknown", "null", "both"] } });
    let storm = json!({ "count": { "type": "integer", "minimum": 0 } });
    let rounds = json!({ "rounds": { "type": "integer", "minimum": 0 } });
    let task = json!({ "polls": { "type": "integer", "minimum": 0 },
        "ms": { "type": "integer", "minimum": 0 } });
    let answer = json!({ "result": { "type": "object" } });
    vec![
        tool("late", "Answers once it is cancelled", &none, &[]),
        tool(
            "progress",
            "Tells its progress, count times or for ever",
            &progress,
            &[],
        ),
        tool("twice", "Answers twice", &none, &[]),
        tool(
            "mistyped",
            "Answers with another id first",
            &mistyped,
            &["as"],
        ),
        tool("mangled", "Answers what is no UTF-8", &none, &[]),
        tool(
            "storm",
            "Says that its tools changed, so many times",
            &storm,
            &["count"],
        ),
        tool(
            "offer",
            "Offers so many fillers from now on, and says that its tools changed",
            &json!({ "fillers": { "type": "integer", "minimum": 0 } }),
            &["fillers"],
        ),
        tool(
            "elicit",
            "Asks a person for a word, or what it is told to ask",
            &json!({ "rounds": { "type": "integer", "minimum": 0 },
                "request": { "type": "object" }, "raw": { "type": "string" } }),
            &[],
        ),
        tool("sample", "Asks a model for a word", &rounds, &[]),
        tool("roots", "Asks for the roots", &rounds, &[]),
        tasks::tool(&task),
        tool(
            "picture",
            "A word, and an image of that many times three bytes",
            &json!({ "triples": { "type": "integer", "minimum": 1 } }),
            &["triples"],
        ),
        tool("answer", "Answers exactly this", &answer, &["result"]),
    ]
}

/// Plays the tool, when it is one of these.
pub(super) fn call(
    server: &ChaosServer,
    asked: &MethodCall<'_>,
) -> Result<Option<MethodOutcome>, MethodFault> {
    let arguments = &asked.params["arguments"];
    let number = |name: &str, default: u64| arguments[name].as_u64().unwrap_or(default);
    Ok(Some(
        match asked.params["name"].as_str().unwrap_or_default() {
            "late" => {
                let key = key(asked.client, asked.id);
                server.wait_for(|memory| memory.cancelled.remove(&key).then_some(()));
                MethodOutcome::Result(text("too late"))
            }
            "progress" => progress(server, asked, number("count", 0), number("ms", 1)),
            "twice" => {
                for word in ["first", "second"] {
                    asked.client.say(&answer(asked, "tools/call", text(word)));
                }
                MethodOutcome::Said
            }
            "picture" => {
                let triples = usize::try_from(number("triples", 1)).unwrap_or(1);
                // Four letters of base64 are three bytes.
                let data = "iVBO".repeat(triples);
                MethodOutcome::Result(json!({ "content": [
                    { "type": "text", "text": "a picture" },
                    { "type": "image", "mimeType": "image/png", "data": data },
                ] }))
            }
            "mistyped" => mistyped(asked, arguments["as"].as_str().unwrap_or_default()),
            "mangled" => {
                let whole = answer(asked, "tools/call", text("@")).to_string();
                let mut bytes = whole.into_bytes();
                if let Some(place) = bytes.iter().position(|byte| *byte == b'@') {
                    bytes.splice(place..=place, [0xff, 0xfe, 0xc0, 0x80]);
                }
                drop(asked.client.outlet.send(&bytes));
                MethodOutcome::Said
            }
            "storm" => {
                for _ in 0..number("count", 1) {
                    server.announce("notifications/tools/list_changed");
                }
                MethodOutcome::Result(text("calm again"))
            }
            "offer" => {
                let mut script = (*server.script()).clone();
                script.fillers = usize::try_from(number("fillers", 0)).unwrap_or(0);
                server.become_like(script);
                server.announce("notifications/tools/list_changed");
                MethodOutcome::Result(text("offered"))
            }
            "elicit" => {
                let word = json!({
                    "mode": "form",
                    "message": "a word, please",
                    "requestedSchema": { "type": "object",
                        "properties": { "word": { "type": "string" } }, "required": ["word"] },
                });
                let raw = arguments.get("raw").map(|_| Value::from(RAW));
                let request = arguments.get("request").or(raw.as_ref()).unwrap_or(&word);
                ask(server, asked, "elicitation/create", request)
            }
            "sample" => ask(
                server,
                asked,
                "sampling/createMessage",
                &json!({
                    "messages": [{ "role": "user", "content": { "type": "text", "text": "a word" } }],
                    "maxTokens": 8,
                }),
            ),
            "roots" => ask(server, asked, "roots/list", &json!({})),
            "task" => tasks::start(server, asked, number("polls", 1), number("ms", 1)),
            "answer" => MethodOutcome::Result(arguments["result"].clone()),
            _ => return Ok(None),
        },
    ))
}

fn progress(server: &ChaosServer, asked: &MethodCall<'_>, count: u64, ms: u64) -> MethodOutcome {
    let key = key(asked.client, asked.id);
    let token = &asked.params["_meta"]["progressToken"];
    for step in 1.. {
        let told = json!({ "jsonrpc": "2.0", "method": "notifications/progress",
            "params": { "progressToken": token, "progress": step } });
        let sent = asked.client.outlet.send(told.to_string().as_bytes());
        if sent.is_err() {
            // Over HTTP, a modern client cancels by going away.
            server.memory().cancellations += 1;
            return MethodOutcome::Said;
        }
        if server.memory().cancelled.remove(&key) {
            return MethodOutcome::Said;
        }
        if step == count {
            break;
        }
        std::thread::sleep(Duration::from_millis(ms));
    }
    MethodOutcome::Result(text("done"))
}

/// An answer with a wrong id; the right one follows where the wrong one could not be taken for it.
fn mistyped(asked: &MethodCall<'_>, kind: &str) -> MethodOutcome {
    let mut wrong = answer(asked, "tools/call", text("mistyped"));
    let as_float = asked.id.as_u64().and_then(|id| u32::try_from(id).ok());
    wrong["id"] = match kind {
        "string" => json!(asked.id.to_string()),
        "float" => json!(f64::from(as_float.unwrap_or_default())),
        "unknown" => json!(4_000_000_000_u64),
        "null" => Value::Null,
        _ => asked.id.clone(),
    };
    if kind == "both" {
        wrong["error"] = json!({ "code": -32603, "message": "and an error" });
    }
    asked.client.say(&wrong);
    match kind {
        "unknown" | "null" => MethodOutcome::Result(text("well typed")),
        _ => MethodOutcome::Said,
    }
}

/// Asks the client something in the way of its era, `rounds` times in the modern one.
pub(super) fn ask(
    server: &ChaosServer,
    asked: &MethodCall<'_>,
    method: &str,
    params: &Value,
) -> MethodOutcome {
    if asked.modern {
        return input_required(asked, method, params);
    }
    let id = format!("chaos-{}", server.fresh());
    let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    say_raw(asked, &request);
    let reply = server.wait_for(|memory| memory.replies.remove(&id));
    let said = reply.get("result").or(reply.get("error")).cloned();
    MethodOutcome::Result(text(&said.unwrap_or_default().to_string()))
}

/// Stateless, as the era wants it: the round stands in the state that the client echoes. The
/// state is awkward on purpose, for it must come back byte for byte.
fn input_required(asked: &MethodCall<'_>, method: &str, params: &Value) -> MethodOutcome {
    const AWKWARD: &str = " \"\\\u{e9}\u{1f600}\u{2028}=round=";
    let rounds = asked.params["arguments"]["rounds"].as_u64().unwrap_or(1);
    let done = match asked.params["requestState"].as_str() {
        None => 0,
        Some(state) => match state.strip_prefix(AWKWARD).map(str::parse::<u64>) {
            Some(Ok(round)) if asked.params["inputResponses"]["q"].is_object() => round,
            _ => {
                let mut refused = text("the state came back changed, or the answer is missing");
                refused["isError"] = json!(true);
                return MethodOutcome::Result(refused);
            }
        },
    };
    if done >= rounds {
        let said = &asked.params["inputResponses"]["q"];
        return MethodOutcome::Result(text(&said.to_string()));
    }
    let result = json!({
        "resultType": "input_required",
        "inputRequests": { "q": { "method": method, "params": params } },
        "requestState": format!("{AWKWARD}{}", done + 1),
    });
    say_raw(asked, &answer(asked, "tools/call", result));
    MethodOutcome::Said
}

/// What stands in the place of parameters that are given as text.
const RAW: &str = "as it was told";

/// Says something, with the text that it was told in its place.
fn say_raw(asked: &MethodCall<'_>, message: &Value) {
    let mut message = message.to_string();
    if let Some(raw) = asked.params["arguments"]["raw"].as_str() {
        message = message.replace(&format!("\"{RAW}\""), raw);
    }
    drop(asked.client.outlet.send(message.as_bytes()));
}
