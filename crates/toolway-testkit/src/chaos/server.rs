//! From one message to its answers, in both eras, with the script's faults applied.
//!
//! Owns the server's memory, shared by all connections: what was asked, who listens, which sessions live.

use std::collections::{HashMap, HashSet};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::{Value, json};

use super::outlet::ChaosClient;
use super::{bulk, drama, offers, skills, tasks, tools};
use crate::{Script, SpokenEras};

const MODERN: &str = "2026-07-28";
const LATEST_LEGACY: &str = "2025-11-25";
pub(super) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageFlow {
    /// Nothing more is to come for it.
    Done,
    /// It is a request, and it stays without an answer for now or forever.
    Open,
    /// The process ends.
    Exit(u8),
}

/// What a method does.
pub(super) enum MethodOutcome {
    /// Answers this result.
    Result(Value),
    /// Has said all it had to say.
    Said,
    /// Never answers.
    Never,
    /// Ends the process.
    Exit(u8),
}

/// An error on its way out: code and message.
#[derive(Debug)]
pub(super) struct MethodFault(pub(super) i64, pub(super) String);

/// One request, taken apart.
pub(super) struct MethodCall<'a> {
    pub(super) id: &'a Value,
    /// The whole message, as it came.
    pub(super) text: &'a str,
    pub(super) params: &'a Value,
    pub(super) modern: bool,
    pub(super) client: &'a ChaosClient,
}

/// The server's memory between messages.
#[derive(Default)]
pub(super) struct ChaosMemory {
    pub(super) answered: u32,
    pub(super) initialized: bool,
    pub(super) greetings: u64,
    pub(super) calls: u64,
    pub(super) refused: u32,
    pub(super) cuts: u32,
    pub(super) posts: u64,
    pub(super) trace: serde_json::Map<String, Value>,
    /// The headers of the last call that say what its arguments say.
    pub(super) placed: Vec<(String, String)>,
    /// Requests to places that it does not have.
    pub(super) strays: u64,
    pub(super) connections: u64,
    /// What was asked about skills, in order.
    pub(super) skills: Vec<String>,
    next: u64,
    /// Requests that were cancelled, by client and id.
    pub(super) cancelled: HashSet<String>,
    /// Answers of clients to requests of ours, by id.
    pub(super) replies: HashMap<String, Value>,
    /// Clients that hear what a legacy server says unasked.
    listeners: Vec<ChaosClient>,
    /// Modern subscriptions: who, under which id, and for what.
    subscriptions: Vec<(ChaosClient, Value, Value)>,
    /// How often each task was asked for.
    pub(super) tasks: HashMap<String, tasks::ScriptedTask>,
    /// How many requests each session has had.
    pub(super) sessions: HashMap<String, u32>,
    /// What was said on streams that can be resumed, by their names.
    pub(super) streams: HashMap<String, StreamLog>,
    /// Every connection that may still live.
    pub(super) sockets: Vec<Weak<TcpStream>>,
    /// How often a client did not want an answer any more.
    pub(super) cancellations: u64,
    pub(super) offers: offers::OffersMemory,
}

/// What was said on a stream.
#[derive(Default)]
pub(super) struct StreamLog {
    pub(super) events: Vec<Vec<u8>>,
    pub(super) over: bool,
}

/// A scripted server.
pub(super) struct ChaosServer {
    script: Mutex<Arc<Script>>,
    memory: Mutex<ChaosMemory>,
    /// Something in the memory changed that a thread may wait for.
    pub(super) changed: Condvar,
}

/// Handles a line. What may take long goes on in a thread of its own, so that later messages,
/// a cancellation among them, are read meanwhile.
pub(super) fn act(server: &Arc<ChaosServer>, text: &str, client: &ChaosClient) -> MessageFlow {
    let message = serde_json::from_str(text).unwrap_or(Value::Null);
    if !drama::takes_time(&message) {
        return server.handle(text, client);
    }
    let (server, client, text) = (Arc::clone(server), client.clone(), text.to_owned());
    std::thread::spawn(move || {
        if let MessageFlow::Exit(code) = server.handle(&text, &client) {
            std::process::exit(i32::from(code));
        }
    });
    MessageFlow::Open
}

impl ChaosServer {
    pub(super) fn new(script: Script) -> Self {
        Self {
            script: Mutex::new(Arc::new(script)),
            memory: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    pub(super) fn script(&self) -> Arc<Script> {
        Arc::clone(&self.script.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on it behaves like this.
    pub(super) fn become_like(&self, script: Script) {
        *self.script.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(script);
        let mut memory = self.memory();
        memory.answered = 0;
        memory.refused = 0;
        memory.cuts = 0;
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, ChaosMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the memory holds it.
    pub(super) fn wait_for<T>(&self, mut look: impl FnMut(&mut ChaosMemory) -> Option<T>) -> T {
        let mut memory = self.memory();
        loop {
            if let Some(found) = look(&mut memory) {
                return found;
            }
            memory = self
                .changed
                .wait(memory)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A number that was not used before.
    pub(super) fn fresh(&self) -> u64 {
        let mut memory = self.memory();
        memory.next += 1;
        memory.next
    }

    /// This client hears what is said unasked.
    pub(super) fn listen(&self, client: &ChaosClient) {
        self.memory().listeners.push(client.clone());
    }

    /// Notifies every listener, in the way of each era.
    pub(super) fn announce(&self, method: &str) {
        self.tell(method, &json!({}), |_| true);
    }

    /// The same with parameters, and of the modern ones only to those who want to hear of it.
    pub(super) fn tell(&self, method: &str, params: &Value, is_wanted: impl Fn(&Value) -> bool) {
        let listeners = {
            let memory = self.memory();
            if memory.initialized {
                memory.listeners.clone()
            } else {
                Vec::new()
            }
        };
        let mut plain = json!({ "jsonrpc": "2.0", "method": method });
        if *params != json!({}) {
            plain["params"] = params.clone();
        }
        let plain = plain.to_string();
        let gone: Vec<String> = listeners
            .iter()
            .filter(|listener| listener.outlet.send(plain.as_bytes()).is_err())
            .map(|listener| listener.key.clone())
            .collect();
        self.tell_modern(method, params, is_wanted);
        let mut memory = self.memory();
        memory
            .listeners
            .retain(|listener| !gone.contains(&listener.key));
    }

    /// Notifies those modern clients who want to hear of it.
    pub(super) fn tell_modern(
        &self,
        method: &str,
        params: &Value,
        is_wanted: impl Fn(&Value) -> bool,
    ) {
        let subscriptions = self.memory().subscriptions.clone();
        for (client, id, _) in subscriptions.iter().filter(|(.., it)| is_wanted(it)) {
            let mut params = params.clone();
            params["_meta"] = json!({ SUBSCRIPTION_KEY: id });
            client.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
        }
    }

    /// Answers one message; returns when all is said.
    pub(super) fn handle(&self, text: &str, client: &ChaosClient) -> MessageFlow {
        let message: Value = serde_json::from_str(text).unwrap_or_default();
        if message.is_null() {
            let fault = MethodFault(-32700, "parse error".to_owned());
            client.say(&error(&Value::Null, &fault));
            return MessageFlow::Done;
        }
        let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else {
            self.hear(&message, client);
            return MessageFlow::Done;
        };
        if let Some(code) = self.exit_now(method) {
            return MessageFlow::Exit(code);
        }
        let script = self.script();
        if script.silent.iter().any(|silent| silent == method) {
            return MessageFlow::Open;
        }
        self.memory().answered += 1;
        let asked = MethodCall {
            id,
            text,
            params: &message["params"],
            modern: message["params"]["_meta"][VERSION_KEY].is_string(),
            client,
        };
        let outcome = if script.failing.iter().any(|failing| failing == method) {
            Err(MethodFault(-32603, format!("`{method}` fails by script")))
        } else {
            self.result(&script, method, &asked)
        };
        match outcome {
            Ok(MethodOutcome::Result(result)) => client.say(&answer(&asked, method, result)),
            Ok(MethodOutcome::Said) => {}
            Ok(MethodOutcome::Never) => return MessageFlow::Open,
            Ok(MethodOutcome::Exit(code)) => return MessageFlow::Exit(code),
            Err(fault) => client.say(&error(id, &fault)),
        }
        if script.restless && method == "tools/list" {
            self.announce("notifications/tools/list_changed");
        }
        MessageFlow::Done
    }

    /// Takes a notification, or an answer to a request of ours.
    fn hear(&self, message: &Value, client: &ChaosClient) {
        let mut memory = self.memory();
        match message["method"].as_str() {
            Some("notifications/cancelled") => {
                let id = &message["params"]["requestId"];
                memory
                    .subscriptions
                    .retain(|(_, subscribed, _)| subscribed != id);
                memory.cancelled.insert(drama::key(client, id));
                memory.cancellations += 1;
            }
            Some(method) => {
                memory.offers.tell(method, &message["params"]);
            }
            None => {
                if let Some(id) = message["id"].as_str() {
                    memory.replies.insert(id.to_owned(), message.clone());
                }
            }
        }
        drop(memory);
        self.changed.notify_all();
    }

    fn exit_now(&self, method: &str) -> Option<u8> {
        let script = self.script();
        let memory = self.memory();
        let code = match (script.exit_on_probe, script.exit) {
            (Some(code), _) if !memory.initialized && method != "initialize" => code,
            (_, Some(planned)) if memory.answered >= planned.after => planned.code,
            _ => return None,
        };
        Some(u8::try_from(code).unwrap_or(1))
    }

    fn result(
        &self,
        script: &Script,
        method: &str,
        asked: &MethodCall<'_>,
    ) -> Result<MethodOutcome, MethodFault> {
        let (speaks, modern, params) = (script.speaks, asked.modern, asked.params);
        let unknown = || MethodFault(-32601, format!("method not found: {method}"));
        match method {
            "initialize" if speaks == SpokenEras::Modern => Err(MethodFault(
                -32022,
                format!("this server speaks only {MODERN}"),
            )),
            "initialize" => {
                let mut memory = self.memory();
                memory.initialized = true;
                memory.greetings += 1;
                drop(memory);
                Ok(MethodOutcome::Result(greeting(script, params)))
            }
            _ if modern && speaks == SpokenEras::Legacy => Err(unknown()),
            _ if !modern && speaks == SpokenEras::Modern => Err(MethodFault(
                -32602,
                format!("`_meta` has no `{VERSION_KEY}`"),
            )),
            _ if modern && params["_meta"][VERSION_KEY] != MODERN => Err(MethodFault(
                -32022,
                "unsupported protocol version".to_owned(),
            )),
            "server/discover" if modern => {
                self.memory().greetings += 1;
                Ok(MethodOutcome::Result(discovery(script)))
            }
            "subscriptions/listen" if modern => Ok(self.subscribe(script, asked)),
            "ping" if !modern => Ok(MethodOutcome::Result(json!({}))),
            _ if let Some(size) = script.bulk
                && let Some(page) = bulk::page(size, method, params) =>
            {
                page.map(MethodOutcome::Result)
            }
            "tools/list" => {
                let grown = self.memory().offers.grown;
                tools::list(script, grown, params).map(MethodOutcome::Result)
            }
            "tools/call" => {
                let calls = {
                    let mut memory = self.memory();
                    memory.calls += 1;
                    memory.calls
                };
                if script.skills.is_some() && params["name"] == skills::ASKED {
                    let asked = self.memory().skills.join("\n");
                    return Ok(MethodOutcome::Result(tools::text(&asked)));
                }
                if let Some(outcome) = drama::call(self, asked)? {
                    return Ok(outcome);
                }
                if script.offers
                    && let Some(outcome) = offers::call(self, asked)?
                {
                    return Ok(outcome);
                }
                tools::call(script, params, calls)
            }
            _ if script.offers
                && let Some(answer) = offers::answer(self, script, method, asked) =>
            {
                answer
            }
            _ if let Some(offered) = script.skills
                && let Some(answer) = skills::answer(offered, method, params) =>
            {
                self.memory().skills.push(skills::request(method, params));
                answer.map(MethodOutcome::Result)
            }
            _ if method.starts_with("tasks/") && (modern || script.offers) => {
                tasks::step(self, method, asked)
            }
            _ => Err(unknown()),
        }
    }

    /// Acknowledges at once; the request stays open as long as the subscription.
    fn subscribe(&self, script: &Script, asked: &MethodCall<'_>) -> MethodOutcome {
        let wanted = &asked.params["notifications"];
        let honoured = if script.offers {
            wanted.clone()
        } else {
            json!({ "toolsListChanged": wanted["toolsListChanged"] == true })
        };
        let acknowledged = json!({
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": { "_meta": { SUBSCRIPTION_KEY: asked.id }, "notifications": honoured },
        });
        asked.client.say(&acknowledged);
        let mut memory = self.memory();
        memory.offers.follow(asked.params);
        let subscription = (asked.client.clone(), asked.id.clone(), honoured);
        memory.subscriptions.push(subscription);
        MethodOutcome::Never
    }
}

fn greeting(script: &Script, params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str().unwrap_or(LATEST_LEGACY);
    let known = ["2024-11-05", "2025-03-26", "2025-06-18", LATEST_LEGACY];
    let version = if known.contains(&asked) {
        asked
    } else {
        LATEST_LEGACY
    };
    json!({
        "protocolVersion": version,
        "capabilities": capabilities(script),
        "serverInfo": info(script),
        "instructions": tools::prose(script, "Does what its script says."),
    })
}

fn discovery(script: &Script) -> Value {
    let mut capabilities = capabilities(script);
    if let Some(capabilities) = capabilities.as_object_mut() {
        // Those of the other era are no extension.
        capabilities.remove("tasks");
    }
    if script.drama {
        capabilities["extensions"]["io.modelcontextprotocol/tasks"] = json!({});
    }
    json!({
        "supportedVersions": [MODERN],
        "capabilities": capabilities,
        "instructions": tools::prose(script, "Does what its script says."),
        "_meta": { "io.modelcontextprotocol/serverInfo": info(script) },
    })
}

fn capabilities(script: &Script) -> Value {
    let mut capabilities = json!({ "tools": tools_capability(script) });
    if script.bulk.is_some() {
        capabilities["resources"] = json!({});
        capabilities["prompts"] = json!({});
    }
    if script.skills.is_some() {
        capabilities["resources"] = json!({});
        capabilities["extensions"] = json!({ "io.modelcontextprotocol/skills": {} });
    }
    if script.offers {
        offers::declare(&mut capabilities);
    }
    capabilities
}

/// A client may hold a stream open for changes; only a server that changes asks it to.
fn tools_capability(script: &Script) -> Value {
    if script.drama || script.restless || script.offers {
        json!({ "listChanged": true })
    } else {
        json!({})
    }
}

fn info(script: &Script) -> Value {
    let name = if script.name.is_empty() {
        "chaos"
    } else {
        &script.name
    };
    json!({ "name": tools::prose(script, name), "version": "1.0.0" })
}

/// A whole answer, with what every modern result carries.
pub(super) fn answer(asked: &MethodCall<'_>, method: &str, mut result: Value) -> Value {
    if asked.modern {
        if result.get("resultType").is_none() {
            result["resultType"] = json!("complete");
        }
        if method != "tools/call" && !method.starts_with("tasks/") {
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
        }
    }
    json!({ "jsonrpc": "2.0", "id": asked.id, "result": result })
}

fn error(id: &Value, MethodFault(code, message): &MethodFault) -> Value {
    let mut error = json!({ "code": code, "message": message });
    if *code == -32022 {
        error["data"] = json!({ "supported": [MODERN] });
    }
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

#[cfg(test)]
mod tests;
