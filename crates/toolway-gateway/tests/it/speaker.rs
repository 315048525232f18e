//! A client that writes every message itself, in the era that it was told.
//!
//! Owns ids, the handshake, and telling answers, questions and notices apart. What is right to hear
//! is each test's to say.
#![expect(
    clippy::needless_pass_by_value,
    reason = "tests hand values over where they write them"
)]

use std::collections::VecDeque;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::timeout;
use toolway_testkit::patience::PATIENCE;
use toolway_types::Era;

use crate::wire::Wire;

/// What a client can be asked, when it can be asked everything.
pub(crate) fn everything() -> Value {
    json!({
        "elicitation": { "form": {}, "url": {} },
        "sampling": {},
        "roots": { "listChanged": true },
        "extensions": { "io.modelcontextprotocol/tasks": {} },
    })
}

/// A client.
pub(crate) struct Speaker {
    pub(crate) era: Era,
    /// Who it is, where a test has several.
    pub(crate) label: String,
    pub(crate) capabilities: Value,
    /// What stands before the name of a tool.
    pub(crate) prefix: &'static str,
    /// Further members of `_meta`.
    pub(crate) meta: Value,
    wire: Wire,
    next: u64,
    unread: VecDeque<Heard>,
}

/// One message, as it came.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) text: String,
    id: Option<Value>,
    method: Option<String>,
}

#[derive(serde::Deserialize)]
struct HeardEnvelope<'a> {
    id: Option<Value>,
    method: Option<String>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Heard {
    fn read(text: String) -> Self {
        let envelope: HeardEnvelope<'_> =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: `{text}`"));
        let (id, method) = (envelope.id, envelope.method);
        Self { text, id, method }
    }

    /// The result or the error, as it came.
    pub(crate) fn payload(&self) -> (&'static str, &str) {
        let envelope: HeardEnvelope<'_> = serde_json::from_str(&self.text).unwrap();
        match (envelope.result, envelope.error) {
            (Some(result), None) => ("result", result.get()),
            (None, Some(error)) => ("error", error.get()),
            _ => panic!("neither result nor error: {}", self.text),
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }
}

impl Speaker {
    pub(crate) fn new(era: Era, wire: Wire, label: &str) -> Self {
        Self {
            era,
            label: label.to_owned(),
            capabilities: everything(),
            prefix: "",
            meta: json!({}),
            wire,
            next: 0,
            unread: VecDeque::new(),
        }
    }

    /// Ends its session, or closes its pipe.
    pub(crate) async fn leave(self) {
        self.wire.leave().await;
    }

    pub(crate) fn is_over_http(&self) -> bool {
        self.wire.has_streams
    }

    /// Shakes hands, where its era does.
    pub(crate) async fn greet(&mut self) -> Value {
        if self.era == Era::Modern {
            return self.ask("server/discover", json!({})).await;
        }
        let greeting = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": self.capabilities,
            "clientInfo": { "name": "speaker", "version": "1" },
        });
        let answer = self.ask("initialize", greeting).await;
        self.tell("notifications/initialized", None);
        answer
    }

    pub(crate) fn tell(&self, method: &str, params: Option<Value>) {
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        if let Some(params) = params {
            message["params"] = params;
        }
        self.wire.send(message.to_string());
    }

    fn own_meta(&self) -> Value {
        let mut meta = self.meta.clone();
        if self.era == Era::Modern {
            meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        meta
    }

    /// Sends a request; its id.
    pub(crate) fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        self.begin_as(self.next, method, params)
    }

    /// The same under an id of the test's own.
    pub(crate) fn begin_as(&self, id: u64, method: &str, mut params: Value) -> u64 {
        let mut meta = self.own_meta();
        if let Some(own) = params.get("_meta").and_then(Value::as_object) {
            for (name, value) in own {
                meta[name] = value.clone();
            }
        }
        if meta != json!({}) {
            params["_meta"] = meta;
        }
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.wire.send(message.to_string());
        id
    }

    /// The same with parameters as text, which are an object with at least one member.
    pub(crate) fn begin_text(&mut self, method: &str, params: &str) -> u64 {
        self.next += 1;
        let members = params.strip_prefix('{').unwrap();
        let meta = self.own_meta();
        let meta = if meta == json!({}) {
            String::new()
        } else {
            format!(r#""_meta":{meta},"#)
        };
        self.wire.send(format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":{{{meta}{members}}}"#,
            self.next
        ));
        self.next
    }

    /// Calls a tool; the id of the request.
    pub(crate) fn begin_call(&mut self, tool: &str, arguments: Value) -> u64 {
        let name = format!("{}{tool}", self.prefix);
        self.begin(
            "tools/call",
            json!({ "name": name, "arguments": arguments }),
        )
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id).await
    }

    /// Calls a tool and waits for the whole answer.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin_call(tool, arguments);
        self.answer(id).await
    }

    /// The text that a tool answers with.
    pub(crate) async fn text(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.call(tool, arguments).await;
        text_of(&answer)
    }

    /// What the server behind `prefix` remembers.
    pub(crate) async fn report(&mut self) -> Value {
        let answer = self.call("report", json!({})).await;
        answer["result"]["structuredContent"].clone()
    }

    /// Waits until the server remembers it.
    pub(crate) async fn reports(&mut self, member: &str, expected: &Value) {
        let end = std::time::Instant::now() + PATIENCE;
        loop {
            let report = self.report().await;
            if report[member] == *expected {
                return;
            }
            assert!(
                std::time::Instant::now() < end,
                "{}: `{member}` is not {expected}: {report}",
                self.label
            );
        }
    }

    async fn next(&mut self) -> Heard {
        let next = timeout(PATIENCE, self.wire.next()).await;
        match next.map_err(|_| "nothing comes") {
            Ok(Some(text)) => Heard::read(text),
            Ok(None) => panic!("{}: hung up; unread: {:?}", self.label, self.unread),
            Err(why) => panic!("{}: {why}; unread: {:?}", self.label, self.unread),
        }
    }

    async fn find(&mut self, is_it: impl Fn(&Heard) -> bool) -> Heard {
        if let Some(place) = self.unread.iter().position(&is_it) {
            return self.unread.remove(place).unwrap();
        }
        loop {
            let heard = self.next().await;
            if is_it(&heard) {
                return heard;
            }
            self.unread.push_back(heard);
        }
    }

    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        self.heard(id).await.json()
    }

    /// The answer as it came.
    pub(crate) async fn heard(&mut self, id: u64) -> Heard {
        self.find(|heard| heard.method.is_none() && heard.id == Some(json!(id)))
            .await
    }

    /// The next request to this client.
    pub(crate) async fn question(&mut self) -> Value {
        let asked = self.find(|heard| heard.method.is_some() && heard.id.is_some());
        asked.await.json()
    }

    /// The next request to this client, as it came.
    pub(crate) async fn question_text(&mut self) -> String {
        let asked = self.find(|heard| heard.method.is_some() && heard.id.is_some());
        asked.await.text
    }

    /// The next request of this method to this client.
    pub(crate) async fn question_of(&mut self, method: &str) -> Value {
        let asked =
            self.find(|heard| heard.id.is_some() && heard.method.as_deref() == Some(method));
        asked.await.json()
    }

    /// Answers a request to this client.
    pub(crate) fn reply(&self, question: &Value, result: &Value) {
        let message = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
        self.wire.send(message.to_string());
    }

    /// The next notification of this method.
    pub(crate) async fn notice(&mut self, method: &str) -> Value {
        let told = self.find(|heard| heard.id.is_none() && heard.method.as_deref() == Some(method));
        told.await.json()
    }

    /// Does not want a request answered any more.
    pub(crate) fn cancel(&self, id: u64) {
        if self.era == Era::Modern && self.wire.has_streams {
            self.wire.hang_up(json!(id));
        } else {
            self.tell("notifications/cancelled", Some(json!({ "requestId": id })));
        }
    }

    /// What was heard and not looked at; all that was said before this is there.
    pub(crate) async fn left(&mut self) -> Vec<Value> {
        self.text("echo", json!({ "text": "" })).await;
        self.unread.drain(..).map(|heard| heard.json()).collect()
    }

    /// Sends a request again with answers to what it was answered with.
    pub(crate) fn retry(
        &mut self,
        tool: &str,
        arguments: Value,
        asked: &Value,
        answer: &Value,
    ) -> u64 {
        let requests = asked["result"]["inputRequests"].as_object().unwrap();
        let responses: serde_json::Map<String, Value> = requests
            .keys()
            .map(|key| (key.clone(), answer.clone()))
            .collect();
        let mut params = json!({
            "name": format!("{}{tool}", self.prefix),
            "arguments": arguments,
            "inputResponses": responses,
        });
        if let Some(state) = asked["result"].get("requestState") {
            params["requestState"] = state.clone();
        }
        self.begin("tools/call", params)
    }
}

/// The text of an answer's first block.
pub(crate) fn text_of(answer: &Value) -> String {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text: {answer}"))
        .to_owned()
}

/// The only question of an `input_required`.
pub(crate) fn only_input(answer: &Value) -> &Value {
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    let requests = answer["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(requests.len(), 1, "{answer}");
    requests.values().next().unwrap()
}
