//! A server that says again what was recorded.
//!
//! Owns which recorded answer a request gets, and what is said where there is none. Reads and writes
//! nothing itself: it is given lines, and gives lines.

use std::collections::{HashMap, VecDeque};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::exchange::{
    MessageParts, RecordedAnswer, RecordedExchange, Said, SaidKind, split_params,
};
use crate::line::MARK;
use crate::read::Recording;

/// The code of an error that says that something was not recorded.
const NOT_RECORDED: i64 = -32_004;
/// The code for methods that a server does not have.
const NO_METHOD: i64 = -32_601;
/// What is shown of parameters.
const SHOWN: usize = 200;
/// The member that says which stream a message of the modern era belongs to.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// How answers are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matching {
    /// By method and arguments, in any order. The same request again gets the next answer that was
    /// recorded for it, and the last one from then on.
    Arguments,
    /// In the order of the recording.
    Order,
}

/// What is to be done next.
#[derive(Debug, PartialEq, Eq)]
pub enum ReplayStep {
    /// Send this line to the client.
    Send(String),
    /// Tell the person: the client asked for something that was not recorded.
    Tell(String),
}

/// The replay of one server.
#[derive(Debug)]
pub struct Replay {
    exchanges: Vec<RecordedExchange>,
    matching: Matching,
    /// How often each was answered from.
    used: Vec<usize>,
    /// The next one in order.
    next: usize,
    /// Requests that came while a question was open.
    waiting: VecDeque<String>,
    /// What is left to do for the request that is being answered.
    current: Option<Current>,
    questions: u64,
}

/// A request that is being answered.
#[derive(Debug)]
struct Current {
    place: usize,
    id: String,
    progress: Option<Value>,
    /// How much of what the server said has been said.
    said: usize,
    is_answered: bool,
    /// The id of the question that the client is to answer.
    question: Option<String>,
}

impl Replay {
    /// Of a server of this name; nothing where the recording has none.
    pub fn new(mut recording: Recording, server: &str, matching: Matching) -> Option<Self> {
        let exchanges = recording.servers.remove(server)?;
        Some(Self {
            used: vec![0; exchanges.len()],
            exchanges,
            matching,
            next: 0,
            waiting: VecDeque::new(),
            current: None,
            questions: 0,
        })
    }

    /// A line of the client's, and what follows from it.
    pub fn hear(&mut self, line: &str) -> Vec<ReplayStep> {
        let mut steps = Vec::new();
        let line = line.trim();
        if line.is_empty() {
            return steps;
        }
        let Ok(envelope) = serde_json::from_str::<MessageParts>(line) else {
            let error = json!({ "code": -32_700, "message": "this is no message" });
            steps.push(ReplayStep::Send(answer(
                "null",
                "error",
                &error.to_string(),
            )));
            return steps;
        };
        match (&envelope.id, &envelope.method) {
            (Some(_), Some(_)) if self.current.is_some() => {
                self.waiting.push_back(line.to_owned());
            }
            (Some(id), Some(method)) => {
                self.request(id.get(), method, envelope.params.as_deref(), &mut steps);
            }
            (Some(id), None) => {
                let asked = self.current.as_mut();
                if let Some(current) = asked.filter(|it| it.question.as_deref() == Some(id.get())) {
                    current.question = None;
                }
            }
            // What a client says of itself changes nothing.
            (None, _) => {}
        }
        self.go_on(&mut steps);
        steps
    }

    /// Says what can be said, and takes the next request when one is answered.
    fn go_on(&mut self, steps: &mut Vec<ReplayStep>) {
        loop {
            self.say(steps);
            if self.current.is_some() {
                return;
            }
            let Some(line) = self.waiting.pop_front() else {
                return;
            };
            if let Ok(MessageParts {
                id: Some(id),
                method: Some(method),
                params,
                ..
            }) = serde_json::from_str(&line)
            {
                self.request(id.get(), &method, params.as_deref(), steps);
            }
        }
    }

    fn say(&mut self, steps: &mut Vec<ReplayStep>) {
        let Some(mut current) = self.current.take() else {
            return;
        };
        let exchange = &self.exchanges[current.place];
        while current.question.is_none() {
            let next = exchange.said.get(current.said);
            match next {
                Some(said) if said.is_before_answer || current.is_answered => {
                    current.said += 1;
                    if said.kind == SaidKind::Request {
                        self.questions += 1;
                        let id = format!("\"replay-{}\"", self.questions);
                        steps.push(ReplayStep::Send(with_id(said, &id)));
                        current.question = Some(id);
                    } else if let Some(line) = told(said, exchange, &current) {
                        steps.push(ReplayStep::Send(line));
                    }
                }
                _ if current.is_answered => return,
                _ => {
                    current.is_answered = true;
                    match &exchange.answer {
                        Some(RecordedAnswer::Result(result)) => {
                            let result = renamed(result.get(), exchange, &current);
                            steps.push(ReplayStep::Send(answer(&current.id, "result", &result)));
                        }
                        Some(RecordedAnswer::Error(error)) => {
                            steps.push(ReplayStep::Send(answer(&current.id, "error", error.get())));
                        }
                        // A stream stays open for as long as it is wanted.
                        None if exchange.method == "subscriptions/listen" => {}
                        None => {
                            let message = "the recording ends before this was answered";
                            steps.push(ReplayStep::Tell(message.to_owned()));
                            let error = json!({ "code": NOT_RECORDED, "message": message, "data": { "reason": "not-answered" } });
                            let line = answer(&current.id, "error", &error.to_string());
                            steps.push(ReplayStep::Send(line));
                        }
                    }
                }
            }
        }
        self.current = Some(current);
    }

    fn request(
        &mut self,
        id: &str,
        method: &str,
        params: Option<&RawValue>,
        steps: &mut Vec<ReplayStep>,
    ) {
        let (params, progress) = split_params(params);
        if let Some(place) = self.find(method, &params) {
            self.used[place] += 1;
            if is_ordered(method) {
                self.next = place + 1;
            }
            self.current = Some(Current {
                place,
                id: id.to_owned(),
                progress,
                said: 0,
                is_answered: false,
                question: None,
            });
            return;
        }
        if let Some(result) = self.without_recording(method, &params) {
            steps.push(ReplayStep::Send(answer(id, "result", &result)));
            return;
        }
        let (error, told) = self.missing(method, &params);
        if let Some(told) = told {
            steps.push(ReplayStep::Tell(told));
        }
        steps.push(ReplayStep::Send(answer(id, "error", &error.to_string())));
    }

    /// The recorded request that this one is.
    fn find(&self, method: &str, params: &Value) -> Option<usize> {
        if self.matching == Matching::Order && is_ordered(method) {
            let next = self.next_in_order()?;
            let one = &self.exchanges[next];
            return (one.method == method && is_same(&one.params, params)).then_some(next);
        }
        // Every client says something else of itself.
        let is_greeting = matches!(method, "initialize" | "server/discover");
        let fits = |one: &RecordedExchange| {
            one.method == method && (is_greeting || is_same(&one.params, params))
        };
        let places = || (0..self.exchanges.len()).filter(|place| fits(&self.exchanges[*place]));
        let fresh = places().find(|place| self.used[*place] == 0);
        // One without an answer is no better than one that was used.
        let fresh = fresh.filter(|place| self.exchanges[*place].answer.is_some());
        fresh
            .or_else(|| places().rfind(|place| self.exchanges[*place].answer.is_some()))
            .or_else(|| places().next())
    }

    fn next_in_order(&self) -> Option<usize> {
        (self.next..self.exchanges.len()).find(|place| is_ordered(&self.exchanges[*place].method))
    }

    /// What every server answers, or a server of the other era.
    fn without_recording(&self, method: &str, params: &Value) -> Option<String> {
        match method {
            "ping" | "logging/setLevel" => Some("{}".to_owned()),
            "initialize" => {
                // A server of the modern era said the same in other words.
                let found = self
                    .exchanges
                    .iter()
                    .find(|it| it.method == "server/discover")?;
                let Some(RecordedAnswer::Result(result)) = &found.answer else {
                    return None;
                };
                let said: Value = serde_json::from_str(result.get()).ok()?;
                let info = said
                    .get("serverInfo")
                    .or_else(|| said.pointer("/_meta/io.modelcontextprotocol~1serverInfo"))
                    .cloned()
                    .unwrap_or_else(|| json!({ "name": "replay", "version": "0" }));
                let version = params.get("protocolVersion").cloned();
                let greeting = json!({
                    "protocolVersion": version.unwrap_or_else(|| json!("2025-11-25")),
                    "capabilities": said.get("capabilities").cloned().unwrap_or_else(|| json!({})),
                    "serverInfo": info,
                    "instructions": said.get("instructions").cloned().unwrap_or_else(|| json!("")),
                });
                Some(greeting.to_string())
            }
            _ => None,
        }
    }

    /// That something was not recorded, and what comes nearest.
    fn missing(&self, method: &str, params: &Value) -> (Value, Option<String>) {
        let same: Vec<&RecordedExchange> = self
            .exchanges
            .iter()
            .filter(|it| it.method == method)
            .collect();
        if matches!(method, "server/discover" | "initialize")
            || (same.is_empty() && !is_ordered(method))
        {
            // Clients ask this to find out whether it is there.
            let message = format!("`{method}` is not in the recording");
            return (json!({ "code": NO_METHOD, "message": message }), None);
        }
        let asked = spelled(method, params);
        let (words, nearest) = if self.matching == Matching::Order {
            match self.next_in_order() {
                Some(place) => ("next in the recording is", Some(&self.exchanges[place])),
                None => ("the recording is over", None),
            }
        } else {
            let nearest = same.iter().max_by_key(|one| likeness(&one.params, params));
            ("the nearest that was recorded is", nearest.copied())
        };
        let message = match nearest {
            Some(one) => {
                let near = spelled(&one.method, &one.params);
                format!("not recorded: {asked}; {words} {near}")
            }
            None if self.matching == Matching::Order => format!("not recorded: {asked}; {words}"),
            None => format!("not recorded: {asked}; nothing of that kind was"),
        };
        let nearest = nearest.map(|one| json!({ "method": one.method, "params": one.params }));
        let error = json!({
            "code": NOT_RECORDED,
            "message": message,
            "data": { "reason": "not-recorded", "nearest": nearest },
        });
        (error, Some(message))
    }
}

/// Whether a request has a place in the order of a recording. Greetings and lists come when a client
/// wants them.
fn is_ordered(method: &str) -> bool {
    !matches!(
        method,
        "initialize" | "server/discover" | "ping" | "logging/setLevel" | "subscriptions/listen"
    ) && !method.ends_with("/list")
        && !method.ends_with("/subscribe")
        && !method.ends_with("/unsubscribe")
}

/// Whether two values are one, where a secret that was taken out is any text.
fn is_same(recorded: &Value, asked: &Value) -> bool {
    match (recorded, asked) {
        (Value::String(recorded), _) if recorded == MARK => true,
        (Value::String(recorded), Value::String(asked)) => {
            recorded == asked || (recorded.contains(MARK) && fits_around(recorded, asked))
        }
        (Value::Array(recorded), Value::Array(asked)) => {
            recorded.len() == asked.len()
                && recorded
                    .iter()
                    .zip(asked)
                    .all(|(one, other)| is_same(one, other))
        }
        (Value::Object(recorded), Value::Object(asked)) => {
            recorded.len() == asked.len()
                && recorded
                    .iter()
                    .all(|(name, one)| asked.get(name).is_some_and(|other| is_same(one, other)))
        }
        (Value::Number(recorded), Value::Number(asked)) => {
            recorded == asked || recorded.as_f64() == asked.as_f64()
        }
        (recorded, asked) => recorded == asked,
    }
}

/// Whether a text is a recorded one with something in the place of each secret.
fn fits_around(recorded: &str, asked: &str) -> bool {
    let mut rest = asked;
    let mut parts = recorded.split(MARK);
    let Some(first) = parts.next() else {
        return false;
    };
    let Some(behind) = rest.strip_prefix(first) else {
        return false;
    };
    rest = behind;
    let mut last = "";
    for part in parts {
        last = part;
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty() || last.is_empty() || asked.ends_with(last)
}

/// How much of what was recorded is asked for.
fn likeness(recorded: &Value, asked: &Value) -> usize {
    match (recorded, asked) {
        (Value::Object(recorded), Value::Object(asked)) => recorded
            .iter()
            .filter_map(|(name, one)| {
                let weight = if name == "name" || name == "uri" {
                    8
                } else {
                    1
                };
                let other = asked.get(name)?;
                Some(1 + weight * likeness(one, other))
            })
            .sum(),
        (one, other) => usize::from(is_same(one, other)) * 2,
    }
}

/// A request as a person reads it.
fn spelled(method: &str, params: &Value) -> String {
    let named = params
        .get("name")
        .or_else(|| params.get("uri"))
        .and_then(Value::as_str);
    let arguments = params
        .get("arguments")
        .cloned()
        .unwrap_or_else(|| json!({}));
    let shown = match named {
        Some(name) if params.get("name").is_some() => {
            format!("`{method}` of `{}` with {arguments}", name.escape_debug())
        }
        Some(uri) => format!("`{method}` of `{}`", uri.escape_debug()),
        None => format!("`{method}` with {params}"),
    };
    if shown.chars().count() <= SHOWN {
        return shown;
    }
    shown.chars().take(SHOWN).collect::<String>() + "…"
}

fn answer(id: &str, member: &str, value: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{member}\":{value}}}")
}

/// A question under an id of ours.
fn with_id(said: &Said, id: &str) -> String {
    let mut members: HashMap<String, Box<RawValue>> =
        serde_json::from_str(said.message.get()).unwrap_or_default();
    let mut take = |name: &str| members.remove(name);
    let method = take("method").map_or_else(|| "\"\"".to_owned(), |it| it.get().to_owned());
    let params = take("params").map_or_else(|| "{}".to_owned(), |it| it.get().to_owned());
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method},\"params\":{params}}}")
}

/// A notification for whoever asks now.
fn told(said: &Said, exchange: &RecordedExchange, current: &Current) -> Option<String> {
    if said.kind == SaidKind::Progress {
        let token = current.progress.as_ref()?;
        let mut message: Value = serde_json::from_str(said.message.get()).ok()?;
        message["params"]["progressToken"] = token.clone();
        return Some(message.to_string());
    }
    Some(renamed(said.message.get(), exchange, current))
}

/// The same text, where it names the stream of a request by the request's new id.
fn renamed(text: &str, exchange: &RecordedExchange, current: &Current) -> String {
    if exchange.method != "subscriptions/listen" || !text.contains(SUBSCRIPTION) {
        return text.to_owned();
    }
    let Ok(mut value) = serde_json::from_str::<Value>(text) else {
        return text.to_owned();
    };
    let id: Value = serde_json::from_str(&current.id).unwrap_or_default();
    for place in ["/params/_meta", "/_meta"] {
        if let Some(meta) = value.pointer_mut(place).and_then(Value::as_object_mut)
            && meta.contains_key(SUBSCRIPTION)
        {
            meta.insert(SUBSCRIPTION.to_owned(), id.clone());
        }
    }
    value.to_string()
}
