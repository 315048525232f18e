//! What passed between a client and what serves it, as far as the next one has to know.
//!
//! Owns which requests are under way, how the client introduced itself, and what it follows. Knows
//! messages by their envelope; what else is in them is nobody's affair here.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolway_wire::era::method;
use toolway_wire::error;

/// The requests that a client is introduced with again begin with this in their ids.
const OWN_IDS: &str = "toolway-relay-";

const PROGRESS: &str = "notifications/progress";

/// What is known of one client.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// What the client asked and has no answer to, by id, as it was sent.
    asked: BTreeMap<String, Asked>,
    /// Its handshake: what it said, and whether it said that it took note of the answer.
    greeting: Option<ClientGreeting>,
    /// The level of logs that it wants.
    log_level: Option<Vec<u8>>,
    /// The resources that it follows, with the request that began it.
    followed: BTreeMap<String, Vec<u8>>,
    /// The ids of requests that the client was sent by what serves it now, and their own.
    questions: BTreeMap<String, Value>,
    /// How many have served it before.
    generation: u32,
    counter: u64,
    /// Requests of ours, whose answers the client does not wait for.
    own: BTreeSet<String>,
}

#[derive(Debug)]
struct Asked {
    method: String,
    line: Vec<u8>,
    /// What it is about, where that is followed or not any more once it is answered.
    resource: Option<String>,
}

#[derive(Debug, Clone)]
struct ClientGreeting {
    line: Vec<u8>,
    is_answered: bool,
    is_acknowledged: bool,
    /// The lists that were said to change.
    lists: Vec<&'static str>,
}

/// A message as far as it is read.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct OfResource {
    uri: String,
}

#[derive(Deserialize)]
struct OfRequest<'a> {
    #[serde(borrow, rename = "requestId")]
    request_id: &'a RawValue,
}

#[derive(Deserialize)]
struct OfGreeting {
    #[serde(default)]
    capabilities: Value,
}

impl Ledger {
    /// Whether nothing is under way that has an end.
    pub(super) fn is_idle(&self) -> bool {
        self.asked
            .values()
            .all(|asked| asked.method == method::SUBSCRIPTIONS_LISTEN)
    }

    /// Takes note of what the client says, and gives what goes on; nothing where it answers what nobody
    /// waits for any more.
    pub(super) fn take(&mut self, line: Vec<u8>) -> Option<Vec<u8>> {
        let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(&line) else {
            // Whoever serves it says what is wrong with it.
            return Some(line);
        };
        match (envelope.method.as_deref(), envelope.id) {
            (Some(name), Some(id)) => {
                let params = envelope.params.map_or("null", RawValue::get);
                let of_resource = matches!(
                    name,
                    method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE
                );
                let resource = of_resource.then(|| serde_json::from_str::<OfResource>(params).ok());
                let asked = Asked {
                    method: name.to_owned(),
                    // A call is never asked again.
                    line: if name == method::TOOLS_CALL {
                        Vec::new()
                    } else {
                        line.clone()
                    },
                    resource: resource.flatten().map(|of| of.uri),
                };
                if name == method::INITIALIZE {
                    self.greeting = Some(ClientGreeting {
                        line: line.clone(),
                        is_answered: false,
                        is_acknowledged: false,
                        lists: Vec::new(),
                    });
                }
                self.asked.insert(id.get().to_owned(), asked);
                Some(line)
            }
            (Some(method::INITIALIZED), None) => {
                if let Some(greeting) = &mut self.greeting {
                    greeting.is_acknowledged = true;
                }
                Some(line)
            }
            (Some(method::CANCELLED), None) => {
                let params = envelope.params.map_or("null", RawValue::get);
                // What is taken back has no answer.
                if let Ok(of) = serde_json::from_str::<OfRequest<'_>>(params) {
                    self.asked.remove(of.request_id.get());
                }
                Some(line)
            }
            (None, Some(id)) => match self.questions.remove(id.get()) {
                Some(own) if self.generation > 0 => Some(with_id(&line, &own)),
                Some(_) => Some(line),
                // Asked by one who is gone.
                None => None,
            },
            (Some(_) | None, None) => Some(line),
        }
    }

    /// Takes note of what is said to the client, and gives what goes on, perhaps under another id;
    /// nothing where it answers what the client did not ask.
    pub(super) fn give(&mut self, line: Vec<u8>) -> Option<Vec<u8>> {
        let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(&line) else {
            return Some(line);
        };
        match (&envelope.method, envelope.id) {
            (Some(_), Some(id)) => {
                let own: Value = serde_json::from_str(id.get()).unwrap_or_default();
                if self.generation == 0 {
                    self.questions.insert(id.get().to_owned(), own);
                    return Some(line);
                }
                // The one before may have used the same.
                self.counter += 1;
                let fresh = json!(format!("{OWN_IDS}{}-{}", self.generation, self.counter));
                self.questions.insert(fresh.to_string(), own);
                Some(with_id(&line, &fresh))
            }
            (Some(_), None) => Some(line),
            (None, id) => {
                let id = id.map_or("null", RawValue::get);
                if self.own.remove(id) {
                    return None;
                }
                let result = envelope.result.map(RawValue::get);
                self.note_answer(id, result.map(str::to_owned).as_deref());
                Some(line)
            }
        }
    }

    /// Takes note of an answer; without a result it is an error.
    fn note_answer(&mut self, id: &str, result: Option<&str>) {
        let Some(asked) = self.asked.remove(id) else {
            return;
        };
        match (asked.method.as_str(), result) {
            (method::INITIALIZE, Some(result)) => {
                let of = serde_json::from_str::<OfGreeting>(result);
                let capabilities = of.map(|of| of.capabilities).unwrap_or_default();
                let changes = |list: &&str| capabilities[*list]["listChanged"] == true;
                let lists = ["tools", "resources", "prompts"]
                    .into_iter()
                    .filter(changes);
                if let Some(greeting) = &mut self.greeting {
                    greeting.is_answered = true;
                    greeting.lists = lists.collect();
                }
            }
            (method::INITIALIZE, None) => self.greeting = None,
            (method::LOGGING_SET_LEVEL, Some(_)) => self.log_level = Some(asked.line),
            (method::RESOURCES_SUBSCRIBE, Some(_)) => {
                if let Some(uri) = asked.resource {
                    self.followed.insert(uri, asked.line);
                }
            }
            (method::RESOURCES_UNSUBSCRIBE, _) => {
                if let Some(uri) = asked.resource {
                    self.followed.remove(&uri);
                }
            }
            _ => {}
        }
    }

    /// The answers to what must not be asked twice: a call may have been carried out.
    pub(super) fn answers_in_doubt(&mut self) -> Vec<Vec<u8>> {
        let calls = self
            .asked
            .extract_if(.., |_, asked| asked.method == method::TOOLS_CALL);
        let answer = |(id, _): (String, Asked)| {
            let id: Value = serde_json::from_str(&id).unwrap_or_default();
            let words = "the daemon ended before the call did: whether it was carried out is not \
                         known, so it was not sent again";
            line(&json!({
                "jsonrpc": "2.0",
                "id": id,
                "error": {
                    "code": error::INTERNAL_ERROR,
                    "message": words,
                    "data": { "reason": "in-doubt" },
                },
            }))
        };
        calls.map(answer).collect()
    }

    /// What the next one has to be told: who the client is, what it follows, and what it still waits
    /// for. And what the client has to look at again, as it is told by one that it did not change to.
    pub(super) fn introduction(&mut self) -> Vec<Vec<u8>> {
        self.generation += 1;
        self.questions.clear();
        self.own.clear();
        let mut lines = Vec::new();
        if let Some(greeting) = self.greeting.clone().filter(|it| it.is_answered) {
            lines.push(self.again(&greeting.line));
            if greeting.is_acknowledged {
                let noted = json!({ "jsonrpc": "2.0", "method": method::INITIALIZED });
                lines.push(line(&noted));
            }
        }
        let follows: Vec<_> = self
            .log_level
            .iter()
            .chain(self.followed.values())
            .cloned()
            .collect();
        lines.extend(follows.iter().map(|follow| self.again(follow)));
        // As they were asked: the client waits under its own ids.
        lines.extend(self.asked.values().map(|asked| asked.line.clone()));
        lines
    }

    /// What tells the client that lists may be others now.
    pub(super) fn changed_lists(&self) -> Vec<Vec<u8>> {
        let greeting = self.greeting.iter();
        let lists = greeting.flat_map(|greeting| greeting.lists.iter());
        let changed = |list: &&'static str| {
            let name = format!("notifications/{list}/list_changed");
            line(&json!({ "jsonrpc": "2.0", "method": name }))
        };
        lists.map(changed).collect()
    }

    /// The same request under an id of ours.
    fn again(&mut self, request: &[u8]) -> Vec<u8> {
        self.counter += 1;
        let id = json!(format!("{OWN_IDS}{}-{}", self.generation, self.counter));
        self.own.insert(id.to_string());
        with_id(request, &id)
    }
}

/// Whether a message begins something, rather than going on with what is under way.
pub(super) fn begins_something(line: &[u8]) -> bool {
    let envelope = serde_json::from_slice::<Envelope<'_>>(line);
    envelope.is_ok_and(|it| {
        it.method
            .is_some_and(|method| method != method::CANCELLED && method != PROGRESS)
    })
}

/// The same message under another id. Nothing else in it changes.
fn with_id(message: &[u8], id: &Value) -> Vec<u8> {
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(message) else {
        return message.to_vec();
    };
    let Some(old) = envelope.id else {
        return message.to_vec();
    };
    // The value is a slice of the message.
    let begin = old.get().as_ptr() as usize - message.as_ptr() as usize;
    let end = begin + old.get().len();
    let mut changed = Vec::with_capacity(message.len() + 32);
    changed.extend_from_slice(&message[..begin]);
    changed.extend_from_slice(id.to_string().as_bytes());
    changed.extend_from_slice(&message[end..]);
    changed
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}
