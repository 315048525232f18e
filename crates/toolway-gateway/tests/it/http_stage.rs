//! A service whose every word a test decides, and a client that shows every byte.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use toolway_gateway::{
    Answer, AnswerFuture, Conversation, IncomingRequest, NoConversation, Outlet, Peer, Service,
};
use toolway_wire::{Id, RawJson, RpcError};

/// Answers as its requests say.
#[derive(Default)]
pub(crate) struct Stage {
    /// Every client that stays, with what is said to it unasked.
    pub(crate) clients: Mutex<Vec<(Peer, Outlet)>>,
    /// Requests that began, by method.
    pub(crate) begun: Mutex<Vec<String>>,
    /// Requests that were dropped before their end.
    pub(crate) dropped: Mutex<Vec<Id>>,
    /// Conversations that ended.
    pub(crate) ended: Mutex<usize>,
    /// Notifications that came.
    pub(crate) heard: Mutex<Vec<String>>,
    /// Lets requests called `wait` go on.
    pub(crate) gate: Notify,
    asked: Mutex<HashMap<Id, oneshot::Sender<Value>>>,
}

impl Stage {
    pub(crate) fn begun(&self) -> usize {
        self.begun.lock().unwrap().len()
    }

    pub(crate) fn dropped(&self) -> usize {
        self.dropped.lock().unwrap().len()
    }

    pub(crate) fn ended(&self) -> usize {
        *self.ended.lock().unwrap()
    }

    pub(crate) fn outlet(&self, client: usize) -> Outlet {
        self.clients.lock().unwrap()[client].1.clone()
    }

    /// Says something to a client unasked.
    pub(crate) fn tell(&self, client: usize, number: u64) {
        self.outlet(client).notify(news(number));
    }
}

/// A notification with a number.
pub(crate) fn news(number: u64) -> Bytes {
    let message = json!({ "jsonrpc": "2.0", "method": "news", "params": { "n": number } });
    message.to_string().into()
}

struct Staged {
    stage: Arc<Stage>,
    peer: Peer,
}

impl Drop for Staged {
    fn drop(&mut self) {
        *self.stage.ended.lock().unwrap() += 1;
    }
}

/// The stage as something to serve.
pub(crate) struct OnStage(pub(crate) Arc<Stage>);

impl OnStage {
    fn conversation(&self, peer: &Peer) -> Result<Arc<dyn Conversation>, NoConversation> {
        match &peer.endpoint {
            toolway_gateway::Endpoint::Server(name) if &**name == "missing" => {
                Err(NoConversation::NoEndpoint)
            }
            toolway_gateway::Endpoint::Server(name) if &**name == "crowded" => {
                Err(NoConversation::Crowded)
            }
            _ => Ok(Arc::new(Staged {
                stage: Arc::clone(&self.0),
                peer: peer.clone(),
            })),
        }
    }
}

impl Service for OnStage {
    fn open(&self, peer: &Peer, unasked: Outlet) -> Result<Arc<dyn Conversation>, NoConversation> {
        let conversation = self.conversation(peer)?;
        self.0.clients.lock().unwrap().push((peer.clone(), unasked));
        Ok(conversation)
    }

    fn visit(&self, peer: &Peer) -> Result<Arc<dyn Conversation>, NoConversation> {
        self.conversation(peer)
    }
}

/// Notes a request that does not come to its end.
struct NoteDrop {
    stage: Arc<Stage>,
    id: Option<Id>,
}

impl Drop for NoteDrop {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.stage.dropped.lock().unwrap().push(id);
        }
    }
}

impl Conversation for Staged {
    fn request(self: Arc<Self>, request: IncomingRequest, outlet: Outlet) -> AnswerFuture {
        let stage = Arc::clone(&self.stage);
        stage.begun.lock().unwrap().push(request.method.clone());
        let noted = NoteDrop {
            stage: Arc::clone(&stage),
            id: Some(request.id.clone()),
        };
        Box::pin(async move {
            let mut noted = noted;
            let params = request.params.clone().unwrap_or_default();
            let value: Value = serde_json::from_str(params.get()).unwrap();
            let number = |name: &str| value[name].as_u64().unwrap_or_default();
            for n in 0..number("say") {
                outlet.notify(news(n));
            }
            let result = match &*request.method {
                "initialize" => json!({ "protocolVersion": "2025-11-25" }),
                "wait" => {
                    stage.gate.notified().await;
                    for n in 0..number("later") {
                        outlet.notify(news(100 + n));
                    }
                    json!({ "waited": true })
                }
                "hang" => std::future::pending().await,
                "ask" => {
                    let (answered, answer) = oneshot::channel();
                    let id = Id::Text("ours".to_owned());
                    stage.asked.lock().unwrap().insert(id, answered);
                    let question =
                        json!({ "jsonrpc": "2.0", "id": "ours", "method": "roots/list" });
                    match outlet.ask(question.to_string().into()) {
                        Ok(()) => answer.await.unwrap(),
                        Err(busy) => json!({ "busy": busy.to_string() }),
                    }
                }
                "big" => json!({ "fill": "x".repeat(usize::try_from(number("size")).unwrap()) }),
                "whoami" => json!({
                    "principal": &*self.peer.principal,
                    "shown": &*self.peer.shown,
                    "endpoint": format!("{:?}", self.peer.endpoint),
                    "profile": self.peer.profile.as_deref(),
                }),
                "headers" => {
                    let headers = request.headers.as_ref().unwrap();
                    json!(
                        headers
                            .keys()
                            .map(http::HeaderName::as_str)
                            .collect::<Vec<_>>()
                    )
                }
                "panic" => panic!("as asked"),
                _ => {
                    noted.id = None;
                    return RpcError::new(-32601, "no such method").into();
                }
            };
            noted.id = None;
            Answer::result(RawJson::read(&result.to_string().into()).unwrap())
        })
    }

    fn notified(self: Arc<Self>, method: &str, _params: Option<RawJson>) {
        self.stage.heard.lock().unwrap().push(method.to_owned());
    }

    fn answered(&self, id: Id, outcome: Result<RawJson, RpcError>) {
        let waiting = self.stage.asked.lock().unwrap().remove(&id);
        if let (Some(waiting), Ok(result)) = (waiting, outcome) {
            drop(waiting.send(serde_json::from_str(result.get()).unwrap()));
        }
    }
}

/// Waits until something holds that other tasks bring about.
pub(crate) async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::task::yield_now().await;
    }
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) data: String,
    pub(crate) retry: Option<u64>,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }
}

/// A connection that is read piece by piece.
pub(crate) struct RawConnection {
    stream: TcpStream,
    bytes: Vec<u8>,
    text: String,
    has_ended: bool,
    /// Comments that came.
    pub(crate) comments: usize,
    pub(crate) head: String,
    pub(crate) status: u16,
}

impl RawConnection {
    /// Sends a request and reads the head of its answer.
    pub(crate) async fn open(address: SocketAddr, raw: &str) -> Self {
        let mut connection = Self::sent(address, raw).await;
        connection.read_head().await;
        connection
    }

    /// Sends a request.
    pub(crate) async fn sent(address: SocketAddr, raw: &str) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(raw.as_bytes()).await.unwrap();
        Self {
            stream,
            bytes: Vec::new(),
            text: String::new(),
            has_ended: false,
            comments: 0,
            head: String::new(),
            status: 0,
        }
    }

    pub(crate) async fn read_head(&mut self) {
        let end = loop {
            if let Some(end) = self.bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            assert!(self.read().await > 0, "no head: {:?}", self.bytes);
        };
        let head: Vec<u8> = self.bytes.drain(..end + 4).collect();
        self.head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        self.status = self.head.split(' ').nth(1).unwrap().parse().unwrap();
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    async fn read(&mut self) -> usize {
        self.bytes.reserve(64 * 1024);
        self.stream.read_buf(&mut self.bytes).await.unwrap_or(0)
    }

    /// The next event; nothing at the end.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        loop {
            while let Some((text, rest)) = self.text.split_once("\n\n") {
                let (text, rest) = (text.to_owned(), rest.to_owned());
                self.text = rest;
                if text.starts_with(':') {
                    self.comments += 1;
                    continue;
                }
                return Some(event(&text));
            }
            if self.has_ended {
                return None;
            }
            if !self.take_chunk() && self.read().await == 0 {
                self.has_ended = true;
            }
        }
    }

    /// Takes one chunk off the bytes, if it is whole.
    fn take_chunk(&mut self) -> bool {
        let Some(line) = self.bytes.windows(2).position(|two| two == b"\r\n") else {
            return false;
        };
        let size = std::str::from_utf8(&self.bytes[..line]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if self.bytes.len() < line + 2 + size + 2 {
            return false;
        }
        let chunk: Vec<u8> = self.bytes.drain(..line + 2 + size + 2).collect();
        let data = &chunk[line + 2..line + 2 + size];
        self.text.push_str(std::str::from_utf8(data).unwrap());
        self.has_ended = size == 0;
        true
    }

    /// All events up to the end.
    pub(crate) async fn events(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            events.push(event);
        }
        events
    }

    /// The rest, up to the end of the connection.
    pub(crate) async fn body(&mut self) -> String {
        while self.read().await > 0 {}
        String::from_utf8(std::mem::take(&mut self.bytes)).unwrap()
    }
}

fn event(text: &str) -> Event {
    let mut event = Event::default();
    for line in text.lines() {
        let (name, value) = line
            .split_once(": ")
            .unwrap_or((line.trim_end_matches(':'), ""));
        match name {
            "id" => value.clone_into(&mut event.id),
            "event" => value.clone_into(&mut event.kind),
            "data" => value.clone_into(&mut event.data),
            "retry" => event.retry = Some(value.parse().unwrap()),
            other => panic!("unknown field `{other}` in `{text}`"),
        }
    }
    event
}

/// Any request.
pub(crate) fn raw(
    line: &str,
    address: SocketAddr,
    headers: &[(&str, &str)],
    body: Option<&str>,
) -> String {
    let mut text = format!("{line} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        write!(text, "{name}: {value}\r\n").unwrap();
    }
    if let Some(body) = body {
        let length = body.len();
        write!(
            text,
            "content-type: application/json\r\ncontent-length: {length}\r\n"
        )
        .unwrap();
    }
    text.push_str("\r\n");
    text.push_str(body.unwrap_or_default());
    text
}

/// The version and method of a modern request, and its parameters.
pub(crate) fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

pub(crate) const MODERN: (&str, &str) = ("mcp-protocol-version", "2026-07-28");
pub(crate) const LEGACY: (&str, &str) = ("mcp-protocol-version", "2025-11-25");

/// Begins a session and gives its id.
pub(crate) async fn initialize(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
) -> String {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let body = crate::request(0, "initialize", &params);
    let line = format!("POST {path}");
    let mut answer = RawConnection::open(address, &raw(&line, address, headers, Some(&body))).await;
    assert_eq!(answer.status, 200, "{}", answer.head);
    let id = answer.header("mcp-session-id").unwrap().to_owned();
    assert!(answer.body().await.contains("2025-11-25"));
    id
}
