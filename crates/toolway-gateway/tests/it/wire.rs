//! Messages over every way that a client has: a pipe, a process of its own, HTTP by hand.
//!
//! Owns bytes alone: what a test sends is on the wire as it is, and what comes is handed over as it
//! came. No client library stands in between that could hide something.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::io::{AsyncRead, AsyncWrite, duplex, split};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use toolway_gateway::stdio::serve_on;
use toolway_gateway::{Peer, Service};

/// What a client does.
enum ClientAct {
    Send(String),
    /// Closes the stream of this request: how a modern client cancels over HTTP.
    HangUp(Value),
    /// Ends its session, or closes its pipe.
    Leave,
}

/// One client's line. Dropping it hangs up.
pub(crate) struct Wire {
    acts: mpsc::UnboundedSender<ClientAct>,
    heard: mpsc::UnboundedReceiver<String>,
    /// Whether each request has a stream of its own.
    pub(crate) has_streams: bool,
    _tasks: JoinSet<()>,
}

impl Wire {
    pub(crate) fn send(&self, message: impl Into<String>) {
        // Whoever is gone hears nothing.
        drop(self.acts.send(ClientAct::Send(message.into())));
    }

    pub(crate) fn hang_up(&self, id: Value) {
        drop(self.acts.send(ClientAct::HangUp(id)));
    }

    /// Ends in an orderly way, and waits until the other side has heard of it.
    pub(crate) async fn leave(mut self) {
        drop(self.acts.send(ClientAct::Leave));
        while self.next().await.is_some() {}
    }

    /// The next message; none when the other side has hung up.
    pub(crate) async fn next(&mut self) -> Option<String> {
        self.heard.recv().await
    }

    /// A client of the gateway over a pipe.
    pub(crate) fn pipe(service: Arc<dyn Service>, peer: Peer) -> Self {
        let (ours, theirs) = duplex(64 * 1024);
        let (input, output) = split(theirs);
        let (reader, writer) = split(ours);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            serve_on(service, &peer, input, output).await.unwrap();
        });
        Self::lines(tasks, reader, writer)
    }

    /// A client of a server that it starts itself.
    pub(crate) fn process(program: &Path, args: &[String]) -> Self {
        let mut child = tokio::process::Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (reader, writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            child.wait().await.unwrap();
        });
        Self::lines(tasks, reader, writer)
    }

    fn lines(
        mut tasks: JoinSet<()>,
        reader: impl AsyncRead + Send + Unpin + 'static,
        mut writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        let (acts, mut acted) = mpsc::unbounded_channel();
        let (hearing, heard) = mpsc::unbounded_channel();
        tasks.spawn(async move {
            while let Some(act) = acted.recv().await {
                match act {
                    ClientAct::Send(message) => {
                        let line = format!("{message}\n");
                        if writer.write_all(line.as_bytes()).await.is_err() {
                            return;
                        }
                        drop(writer.flush().await);
                    }
                    ClientAct::HangUp(_) => {}
                    ClientAct::Leave => {
                        drop(writer.shutdown().await);
                        return;
                    }
                }
            }
        });
        tasks.spawn(async move {
            let mut lines = BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if hearing.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            acts,
            heard,
            has_streams: false,
            _tasks: tasks,
        }
    }

    /// A client of whatever listens at this URL, with this token.
    pub(crate) fn http(url: &str, token: Option<&str>) -> Self {
        Self::http_with(url, token, &[])
    }

    /// The same with headers of its own on every request.
    pub(crate) fn http_with(url: &str, token: Option<&str>, own: &[(&'static str, &str)]) -> Self {
        let rest = url.strip_prefix("http://").unwrap();
        let (address, path) = rest.split_once('/').unwrap();
        let (acts, acted) = mpsc::unbounded_channel();
        let (hearing, heard) = mpsc::unbounded_channel();
        let talk = HttpTalk {
            address: address.to_owned(),
            path: format!("/{path}"),
            token: token.map(str::to_owned),
            own: own
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
            session: None,
            hearing,
            streams: JoinSet::new(),
            open: HashMap::new(),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(talk.run(acted));
        Self {
            acts,
            heard,
            has_streams: true,
            _tasks: tasks,
        }
    }
}

/// One client's requests over HTTP.
struct HttpTalk {
    address: String,
    path: String,
    token: Option<String>,
    own: Vec<(&'static str, String)>,
    session: Option<String>,
    hearing: mpsc::UnboundedSender<String>,
    streams: JoinSet<()>,
    /// The streams of requests, by their ids.
    open: HashMap<String, AbortHandle>,
}

impl HttpTalk {
    async fn run(mut self, mut acted: mpsc::UnboundedReceiver<ClientAct>) {
        while let Some(act) = acted.recv().await {
            match act {
                ClientAct::Send(message) => self.post(message).await,
                ClientAct::HangUp(id) => {
                    if let Some(stream) = self.open.remove(&id.to_string()) {
                        stream.abort();
                    }
                }
                ClientAct::Leave => {
                    let request = format!("{}\r\n", self.head("DELETE", &[]));
                    let mut answer = HttpAnswerReader::ask(&self.address, request.as_bytes()).await;
                    answer.read_head().await;
                    assert_eq!(answer.status, 204);
                    return;
                }
            }
        }
    }

    fn head(&self, verb: &str, headers: &[(&str, String)]) -> String {
        let mut head = format!(
            "{verb} {} HTTP/1.1\r\nhost: {}\r\naccept: application/json, text/event-stream\r\n\
             connection: close\r\n",
            self.path, self.address
        );
        let session = self.session.iter().map(|id| ("mcp-session-id", id.clone()));
        let token = self.token.iter();
        let token = token.map(|token| ("authorization", format!("Bearer {token}")));
        let own = self.own.iter().chain(headers).cloned();
        for (name, value) in session.chain(token).chain(own) {
            for part in [name, ": ", &value, "\r\n"] {
                head.push_str(part);
            }
        }
        head
    }

    /// Posts a message, and has its answer read; what needs no answer is waited for.
    async fn post(&mut self, message: String) {
        let head: MessageHead = serde_json::from_str(&message).unwrap();
        let method = head.method.unwrap_or_default();
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("content-length", message.len().to_string()),
        ];
        let params = head.params.unwrap_or_default();
        let modern = params.meta.unwrap_or_default().version;
        match modern {
            Some(version) => {
                headers.push(("mcp-protocol-version", version));
                headers.push(("mcp-method", method.clone()));
                let named = match method.as_str() {
                    "tools/call" | "prompts/get" => params.name,
                    "resources/read" => params.uri,
                    _ if method.starts_with("tasks/") => params.task,
                    _ => None,
                };
                if let Some(name) = named {
                    headers.push(("mcp-name", header_value(&name)));
                }
            }
            None if method != "initialize" => {
                headers.push(("mcp-protocol-version", "2025-11-25".to_owned()));
            }
            None => {}
        }
        let head_text = self.head("POST", &headers);
        let request = format!("{head_text}\r\n{message}");
        let mut answer = HttpAnswerReader::ask(&self.address, request.as_bytes()).await;
        let hearing = self.hearing.clone();
        match (head.id, method.as_str()) {
            (Some(_), "initialize") => {
                answer.read_head().await;
                self.session = answer.header("mcp-session-id").map(str::to_owned);
                answer.read(&hearing).await;
            }
            (Some(id), _) => {
                let reading = self.streams.spawn(async move {
                    answer.read_head().await;
                    answer.read(&hearing).await;
                });
                self.open.insert(id.to_string(), reading);
            }
            (None, method) => {
                answer.read_head().await;
                assert_eq!(answer.status, 202, "{message}");
                if method == "notifications/initialized" && self.session.is_some() {
                    self.listen().await;
                }
            }
        }
    }

    /// Opens the stream of what is said unasked.
    async fn listen(&mut self) {
        let head = self.head("GET", &[("mcp-protocol-version", "2025-11-25".to_owned())]);
        let request = format!("{head}\r\n");
        let mut answer = HttpAnswerReader::ask(&self.address, request.as_bytes()).await;
        answer.read_head().await;
        let hearing = self.hearing.clone();
        self.streams
            .spawn(async move { answer.read(&hearing).await });
    }
}

/// What of a message the headers repeat.
#[derive(serde::Deserialize)]
struct MessageHead {
    id: Option<Value>,
    method: Option<String>,
    params: Option<HeadParams>,
}

#[derive(serde::Deserialize, Default)]
struct HeadParams {
    #[serde(rename = "_meta")]
    meta: Option<HeadMeta>,
    name: Option<String>,
    uri: Option<String>,
    #[serde(rename = "taskId")]
    task: Option<String>,
}

#[derive(serde::Deserialize, Default)]
struct HeadMeta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<String>,
}

fn header_value(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (b'!'..=b'~').contains(&byte));
    if is_plain {
        text.to_owned()
    } else {
        format!("=?base64?{}?=", STANDARD.encode(text))
    }
}

/// One answer over HTTP, read as it comes.
struct HttpAnswerReader {
    stream: BufReader<TcpStream>,
    status: u16,
    headers: Vec<(String, String)>,
}

impl HttpAnswerReader {
    async fn ask(address: &str, request: &[u8]) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request).await.unwrap();
        Self {
            stream: BufReader::new(stream),
            status: 0,
            headers: Vec::new(),
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line).await.ok()?;
        (read > 0).then(|| line.trim_end().to_owned())
    }

    async fn read_head(&mut self) {
        let first = self.line().await.unwrap_or_default();
        let status = first.split(' ').nth(1).and_then(|it| it.parse().ok());
        self.status = status.unwrap_or_default();
        while let Some(line) = self.line().await.filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').unwrap();
            self.headers
                .push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// Hands every message over as it comes.
    async fn read(mut self, hearing: &mpsc::UnboundedSender<String>) {
        let is_stream = self.header("content-type") == Some("text/event-stream");
        let is_chunked = self.header("transfer-encoding") == Some("chunked");
        let length = self.header("content-length").map(|it| it.parse().unwrap());
        let mut events = EventReader {
            hearing,
            is_stream,
            buffer: Vec::new(),
        };
        if is_chunked {
            while let Some(chunk) = chunk(&mut self.stream).await {
                events.take(&chunk);
            }
        } else {
            let mut body = vec![0; length.unwrap_or(0)];
            if self.stream.read_exact(&mut body).await.is_ok() {
                events.take(&body);
            }
        }
        events.end();
    }
}

/// The next piece of a body; none at its end, or when it is cut.
async fn chunk(stream: &mut (impl AsyncBufRead + Unpin)) -> Option<Vec<u8>> {
    let mut size = String::new();
    stream.read_line(&mut size).await.ok()?;
    let size = usize::from_str_radix(size.trim(), 16).ok()?;
    let mut piece = vec![0; size + 2];
    stream.read_exact(&mut piece).await.ok()?;
    piece.truncate(size);
    (size > 0).then_some(piece)
}

/// Messages out of a body.
struct EventReader<'a> {
    hearing: &'a mpsc::UnboundedSender<String>,
    is_stream: bool,
    buffer: Vec<u8>,
}

impl EventReader<'_> {
    fn take(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        if !self.is_stream {
            return;
        }
        while let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
            let event: Vec<u8> = self.buffer.drain(..end + 2).collect();
            let event = String::from_utf8(event).unwrap();
            let data = event.lines().filter_map(|line| line.strip_prefix("data:"));
            let data: Vec<&str> = data.map(|it| it.strip_prefix(' ').unwrap_or(it)).collect();
            let data = data.join("\n");
            if !data.is_empty() {
                drop(self.hearing.send(data));
            }
        }
    }

    fn end(self) {
        if !self.is_stream && !self.buffer.is_empty() {
            let body = String::from_utf8(self.buffer).unwrap();
            drop(self.hearing.send(body));
        }
    }
}
