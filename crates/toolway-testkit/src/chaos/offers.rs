//! All that a server can have beside plain tools: resources that can be followed, templates, prompts,
//! completion, a log; and tools by which a test moves and inspects them.
//!
//! Owns these, and what they remember. What is addressed `shared:` every such server has; what is
//! addressed by its own name, only one.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::drama;
use super::server::{ChaosServer, MethodCall, MethodFault, MethodOutcome};
use super::tools::{text, tool};
use crate::Script;

/// What a server remembers of these.
#[derive(Debug, Default)]
pub(super) struct OffersMemory {
    /// How many items each list has on top.
    pub(super) grown: u64,
    /// What legacy clients follow.
    followed: BTreeSet<String>,
    /// What legacy clients want to hear of the log.
    level: Option<String>,
    /// Which pages were visited.
    visited: BTreeSet<String>,
    /// What clients told that is not the protocol's, with its parameters.
    told: Vec<(String, Value)>,
    /// What requests to follow resources said of their trace, in order.
    traces: Vec<Value>,
}

impl OffersMemory {
    /// Remembers what a request to follow resources says of its trace.
    pub(super) fn follow(&mut self, params: &Value) {
        let resources = &params["notifications"]["resourceSubscriptions"];
        if params["uri"].is_string() || resources.is_array() {
            self.traces.push(params["_meta"]["traceparent"].clone());
        }
    }

    /// Remembers a notification, unless the protocol has it.
    pub(super) fn tell(&mut self, method: &str, params: &Value) {
        if !method.starts_with("notifications/") {
            let mut params = params.clone();
            if let Some(members) = params.as_object_mut() {
                members.remove("_meta");
            }
            self.told.push((method.to_owned(), params));
        }
    }
}

/// Log levels, the most talkative first.
const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

const LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

/// What is declared for it.
pub(super) fn declare(capabilities: &mut Value) {
    capabilities["resources"] = json!({ "subscribe": true, "listChanged": true });
    capabilities["prompts"] = json!({ "listChanged": true });
    capabilities["completions"] = json!({});
    capabilities["logging"] = json!({});
    capabilities["tasks"] = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
}

/// The tools.
pub(super) fn tools() -> Vec<Value> {
    let string = json!({ "type": "string" });
    vec![
        tool("report", "What this server remembers", &json!({}), &[]),
        tool(
            "verbatim",
            "Answers with this very text as its result, or as its error",
            &json!({ "result": string, "error": string }),
            &[],
        ),
        tool("mirror", "Its arguments, as they came", &json!({}), &[]),
        tool(
            "log",
            "Logs this, because of the call or beside it",
            &json!({ "level": string, "data": {}, "beside": { "type": "boolean" } }),
            &["level", "data"],
        ),
        tool(
            "remark",
            "Says something that the protocol does not have, once or more often, of this size",
            &json!({ "method": string, "count": { "type": "integer", "minimum": 1 },
                "bytes": { "type": "integer", "minimum": 0 } }),
            &["method"],
        ),
        tool(
            "touch",
            "Says that a resource changed",
            &json!({ "uri": string }),
            &["uri"],
        ),
        tool("grow", "Has one more of everything", &json!({}), &[]),
        tool("login", "Wants a page visited first", &json!({}), &[]),
        tool(
            "visited",
            "Takes a page for visited, and says so",
            &json!({ "id": string }),
            &["id"],
        ),
    ]
}

/// Plays the tool, when it is one of these.
pub(super) fn call(
    server: &ChaosServer,
    asked: &MethodCall<'_>,
) -> Result<Option<MethodOutcome>, MethodFault> {
    let arguments = &asked.params["arguments"];
    let said = |name: &str| arguments[name].as_str().unwrap_or_default();
    Ok(Some(
        match asked.params["name"].as_str().unwrap_or_default() {
            "report" => {
                let memory = server.memory();
                let mut result = text("");
                result["structuredContent"] = json!({
                    "cancellations": memory.cancellations,
                    "followed": memory.offers.followed,
                    "level": memory.offers.level,
                    "calls": memory.calls,
                    "told": memory.offers.told,
                    "traces": memory.offers.traces,
                    "process": std::process::id(),
                });
                MethodOutcome::Result(result)
            }
            "verbatim" => {
                let (member, json) = match arguments["error"].as_str() {
                    Some(error) => ("error", error),
                    None => ("result", said("result")),
                };
                verbatim(asked, member, json)
            }
            "mirror" => MethodOutcome::Result(mirror(asked)?),
            "log" if arguments["beside"] == true => {
                let params = json!({ "level": said("level"), "data": arguments["data"] });
                server.tell("notifications/message", &params, |_| false);
                MethodOutcome::Result(text("logged"))
            }
            "log" => {
                log(server, asked, said("level"), &arguments["data"]);
                MethodOutcome::Result(text("logged"))
            }
            "remark" => {
                let params = |number: u64| match arguments["bytes"].as_u64() {
                    // Eight of them are the member itself.
                    Some(bytes) => {
                        let pad = usize::try_from(bytes.saturating_sub(8)).unwrap_or_default();
                        json!({ "p": "x".repeat(pad) })
                    }
                    None => json!({ "n": number, "own": { "x": [] } }),
                };
                for number in 1..=arguments["count"].as_u64().unwrap_or(1) {
                    asked
                        .client
                        .say(&json!({ "jsonrpc": "2.0", "method": said("method"),
                        "params": params(number) }));
                }
                MethodOutcome::Result(text("remarked"))
            }
            "touch" => {
                touch(server, said("uri"));
                MethodOutcome::Result(text("touched"))
            }
            "grow" => {
                server.memory().offers.grown += 1;
                for (list, word) in [
                    ("tools", "toolsListChanged"),
                    ("resources", "resourcesListChanged"),
                    ("prompts", "promptsListChanged"),
                ] {
                    let method = format!("notifications/{list}/list_changed");
                    server.tell(&method, &json!({}), |wanted| wanted[word] == true);
                }
                MethodOutcome::Result(text("grown"))
            }
            "login" => login(server, asked),
            "visited" => {
                let id = said("id");
                server.memory().offers.visited.insert(id.to_owned());
                let about = json!({ "elicitationId": id });
                server.tell("notifications/elicitation/complete", &about, |_| false);
                MethodOutcome::Result(text("visited"))
            }
            _ => return Ok(None),
        },
    ))
}

/// Answers without a serialiser in between.
fn verbatim(asked: &MethodCall<'_>, member: &str, json: &str) -> MethodOutcome {
    let message = format!(r#"{{"jsonrpc":"2.0","id":{},"{member}":{json}}}"#, asked.id);
    drop(asked.client.outlet.send(message.as_bytes()));
    MethodOutcome::Said
}

#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(borrow)]
    params: RawParams<'a>,
}

#[derive(Deserialize)]
struct RawParams<'a> {
    #[serde(borrow)]
    arguments: &'a RawValue,
}

/// The bytes of the arguments, and of `_meta` what is not the protocol's own.
fn mirror(asked: &MethodCall<'_>) -> Result<Value, MethodFault> {
    let raw: RawMessage<'_> = serde_json::from_str(asked.text)
        .map_err(|error| MethodFault(-32602, format!("no arguments: {error}")))?;
    let mut result = text(raw.params.arguments.get());
    if let Some(meta) = asked.params["_meta"].as_object() {
        let mut meta = meta.clone();
        meta.retain(|key, _| {
            !key.starts_with("io.modelcontextprotocol/") && key != "progressToken"
        });
        result["_meta"] = meta.into();
    }
    Ok(result)
}

/// Logs on the stream of the request, if the level is wanted.
fn log(server: &ChaosServer, asked: &MethodCall<'_>, level: &str, data: &Value) {
    let wanted = if asked.modern {
        asked.params["_meta"][LEVEL_KEY].as_str().map(str::to_owned)
    } else {
        server.memory().offers.level.clone()
    };
    let place = |level: &str| LEVELS.iter().position(|known| *known == level);
    let is_wanted = wanted.is_some_and(|wanted| place(level) >= place(&wanted));
    if is_wanted {
        let params = json!({ "level": level, "logger": "chaos", "data": data });
        asked
            .client
            .say(&json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params }));
    }
}

/// Tells those who follow a resource that it changed.
fn touch(server: &ChaosServer, uri: &str) {
    let followed = server.memory().offers.followed.contains(uri);
    let about = json!({ "uri": uri });
    let names = |wanted: &Value| {
        let uris = wanted["resourceSubscriptions"].as_array();
        uris.is_some_and(|uris| uris.iter().any(|it| it == uri))
    };
    if followed {
        server.tell("notifications/resources/updated", &about, names);
    } else {
        server.tell_modern("notifications/resources/updated", &about, names);
    }
}

/// A page has to be visited first: an error in the legacy era, a round in the modern one.
fn login(server: &ChaosServer, asked: &MethodCall<'_>) -> MethodOutcome {
    const PAGE: &str = "login-page";
    let mut page = json!({ "mode": "url", "message": "log in, please",
        "url": "https://login.example/chaos" });
    if asked.modern {
        return drama::ask(server, asked, "elicitation/create", &page);
    }
    if server.memory().offers.visited.contains(PAGE) {
        return MethodOutcome::Result(text("logged in"));
    }
    page["elicitationId"] = PAGE.into();
    let error = json!({ "code": -32042, "message": "a page has to be visited",
        "data": { "elicitations": [page] } });
    verbatim(asked, "error", &error.to_string())
}

/// Answers what is asked beside tools; nothing where it is not known.
pub(super) fn answer(
    server: &ChaosServer,
    script: &Script,
    method: &str,
    asked: &MethodCall<'_>,
) -> Option<Result<MethodOutcome, MethodFault>> {
    let said = |name: &str| asked.params[name].as_str().unwrap_or_default();
    let name = if script.name.is_empty() {
        "chaos"
    } else {
        &script.name
    };
    let grown = || server.memory().offers.grown;
    let result = match method {
        "resources/list" => {
            let mut all = vec![
                json!({ "uri": "shared:one", "name": "one" }),
                json!({ "uri": format!("{name}:own"), "name": "own" }),
            ];
            let more = (0..grown())
                .map(|number| json!({ "uri": format!("{name}:grown/{number}"), "name": "grown" }));
            all.extend(more);
            json!({ "resources": all })
        }
        "resources/templates/list" => json!({ "resourceTemplates": [
            { "uriTemplate": "shared:page/{number}", "name": "page" },
            { "uriTemplate": format!("{name}:page/{{number}}"), "name": "own page" },
            { "uriTemplate": format!("{name}:verbatim/{{hex}}"), "name": "verbatim" },
        ] }),
        "resources/read" => return Some(read(asked, name, said("uri"))),
        "prompts/list" => {
            let word = |name: &str| json!([{ "name": name, "required": true }]);
            let mut all = vec![
                json!({ "name": "greet", "arguments": word("who") }),
                json!({ "name": "verbatim", "arguments": word("result") }),
                json!({ "name": "elicit" }),
            ];
            all.extend((0..grown()).map(|number| json!({ "name": format!("grown_{number}") })));
            json!({ "prompts": all })
        }
        "prompts/get" => return Some(prompt(server, asked, name, said("name"))),
        "completion/complete" => {
            let about = &asked.params["ref"];
            let of = about["name"].as_str().or(about["uri"].as_str());
            let given = asked.params["argument"]["value"].as_str();
            json!({ "completion": { "values": [name, of, given], "total": 3, "hasMore": false } })
        }
        "resources/subscribe" if !asked.modern => {
            let uri = said("uri").to_owned();
            let offers = &mut server.memory().offers;
            offers.follow(asked.params);
            offers.followed.insert(uri);
            json!({})
        }
        "resources/unsubscribe" if !asked.modern => {
            server.memory().offers.followed.remove(said("uri"));
            json!({})
        }
        "logging/setLevel" if !asked.modern => {
            server.memory().offers.level = Some(said("level").to_owned());
            json!({})
        }
        _ => return None,
    };
    Some(Ok(MethodOutcome::Result(result)))
}

fn read(asked: &MethodCall<'_>, name: &str, uri: &str) -> Result<MethodOutcome, MethodFault> {
    let own = uri.strip_prefix(name).and_then(|it| it.strip_prefix(':'));
    if let Some(hex) = own.and_then(|it| it.strip_prefix("verbatim/")) {
        return Ok(verbatim(asked, "result", &from_hex(hex)));
    }
    let is_known = match own {
        Some(rest) => rest == "own" || rest.starts_with("page/") || rest.starts_with("grown/"),
        None => uri == "shared:one" || uri.starts_with("shared:page/"),
    };
    if !is_known {
        let code = if asked.modern { -32602 } else { -32002 };
        return Err(MethodFault(code, format!("no resource `{uri}`")));
    }
    Ok(MethodOutcome::Result(json!({ "contents": [
        { "uri": uri, "mimeType": "text/plain", "text": format!("{uri} of {name}") },
    ] })))
}

fn from_hex(hex: &str) -> String {
    let digits = hex.as_bytes().chunks(2);
    let bytes = digits.filter_map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
}

fn prompt(
    server: &ChaosServer,
    asked: &MethodCall<'_>,
    name: &str,
    prompt: &str,
) -> Result<MethodOutcome, MethodFault> {
    let arguments = &asked.params["arguments"];
    let said = |name: &str| arguments[name].as_str().unwrap_or_default();
    let message = |text: String| {
        let content = json!({ "type": "text", "text": text });
        json!({ "messages": [{ "role": "user", "content": content }] })
    };
    match prompt {
        "greet" => {
            let greeting = format!("{name} greets {}", said("who"));
            Ok(MethodOutcome::Result(message(greeting)))
        }
        "verbatim" => Ok(verbatim(asked, "result", said("result"))),
        "elicit" => {
            let form = json!({ "mode": "form", "message": "a word, please",
                "requestedSchema": { "type": "object",
                    "properties": { "word": { "type": "string" } }, "required": ["word"] } });
            Ok(
                match drama::ask(server, asked, "elicitation/create", &form) {
                    MethodOutcome::Result(result) if result["content"].is_array() => {
                        let said = result["content"][0]["text"].as_str().unwrap_or_default();
                        MethodOutcome::Result(message(said.to_owned()))
                    }
                    other => other,
                },
            )
        }
        _ => Err(MethodFault(-32602, format!("no prompt `{prompt}`"))),
    }
}
