//! A channel as tests use it: its driver runs, messages are JSON values.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use toolway_transport::{
    AnswerTimeout, Channel, ChannelCommand, ChannelEvent, ChannelLimits, CloseReason, OpenOptions,
    OutgoingMessage, RequestTag, SendFailure,
};
use toolway_types::{
    ProtocolMode, RemoteKind, RemoteSpec, Secret, ServerName, ServerSpec, ShieldMode, StdioSpec,
    TransportSpec, WorkingDirectory,
};

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Peer {
    pub(crate) commands: Option<mpsc::Sender<ChannelCommand>>,
    pub(crate) events: mpsc::Receiver<ChannelEvent>,
    pub(crate) driver: JoinHandle<()>,
    /// What it speaks, which HTTP cares about.
    pub(crate) era: Era,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

pub(crate) async fn within_patience<F: Future>(future: F) -> F::Output {
    timeout(PATIENCE, future)
        .await
        .expect("the test must not hang")
}

impl Peer {
    pub(crate) fn new(channel: Channel) -> Self {
        let driver = tokio::spawn(channel.driver);
        Self {
            commands: Some(channel.commands),
            events: channel.events,
            driver,
            era: Era::Legacy,
        }
    }

    pub(crate) async fn open(transport: TransportSpec, limits: ChannelLimits) -> Self {
        let options = OpenOptions {
            limits,
            ..OpenOptions::default()
        };
        Self::open_with(transport, &options).await
    }

    pub(crate) async fn open_with(transport: TransportSpec, options: &OpenOptions) -> Self {
        Self::new(
            toolway_transport::open(&spec(transport), options)
                .await
                .expect("it opens"),
        )
    }

    pub(crate) async fn command(&self, command: ChannelCommand) {
        let commands = self.commands.as_ref().expect("not ended");
        within_patience(commands.send(command))
            .await
            .expect("the driver runs");
    }

    pub(crate) async fn send(&self, outgoing: OutgoingMessage) {
        self.command(ChannelCommand::Send(outgoing)).await;
    }

    pub(crate) async fn request(&self, id: u64, method: &str, params: impl Into<Value>) {
        self.send(self.speaking(request(id, method, params), method))
            .await;
    }

    fn speaking(&self, mut outgoing: OutgoingMessage, method: &str) -> OutgoingMessage {
        if self.era == Era::Modern {
            let name = http::HeaderName::from_static("mcp-method");
            let value = http::HeaderValue::from_str(method).expect("ASCII");
            outgoing.headers.push((name, value));
        }
        outgoing
    }

    /// Answers a request of the server.
    pub(crate) async fn answer(&self, id: &Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "result": {}});
        self.send(OutgoingMessage {
            bytes: bytes(&message),
            tag: None,
            headers: Vec::new(),
            answer_timeout: AnswerTimeout::default(),
        })
        .await;
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let outgoing = OutgoingMessage {
            bytes: bytes(&message),
            tag: None,
            headers: Vec::new(),
            answer_timeout: AnswerTimeout::default(),
        };
        self.send(self.speaking(outgoing, method)).await;
    }

    pub(crate) async fn event(&mut self) -> ChannelEvent {
        within_patience(self.events.recv()).await.expect("an event")
    }

    pub(crate) async fn message(&mut self) -> Value {
        match self.event().await {
            ChannelEvent::Message { bytes, .. } => serde_json::from_slice(&bytes).expect("JSON"),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn failure(&mut self) -> (RequestTag, SendFailure) {
        match self.event().await {
            ChannelEvent::Failed { tag, failure } => (tag, failure),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn closed(&mut self) -> CloseReason {
        match self.event().await {
            ChannelEvent::Closed(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    /// Asks for the end and waits for it; gives what was still said.
    pub(crate) async fn end(&mut self) -> Vec<ChannelEvent> {
        self.commands = None;
        let mut last = Vec::new();
        while let Some(event) = within_patience(self.events.recv()).await {
            last.push(event);
        }
        within_patience(&mut self.driver).await.expect("no panic");
        last
    }
}

pub(crate) fn bytes(value: &Value) -> Bytes {
    serde_json::to_vec(value).expect("JSON").into()
}

pub(crate) fn request(id: u64, method: &str, params: impl Into<Value>) -> OutgoingMessage {
    let params = params.into();
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    OutgoingMessage {
        bytes: bytes(&message),
        tag: Some(RequestTag(id)),
        headers: Vec::new(),
        answer_timeout: AnswerTimeout::default(),
    }
}

pub(crate) fn spec(transport: TransportSpec) -> ServerSpec {
    ServerSpec {
        name: ServerName::new("test").expect("a name"),
        transport,
        timeout: None,
        request_timeout: None,
        protocol: ProtocolMode::Auto,
        share: toolway_types::ServerShare::User,
        roots: Vec::new(),
        references: Vec::new(),
    }
}

pub(crate) fn remote(url: &str, headers: &[(&str, &str)]) -> TransportSpec {
    TransportSpec::Remote(RemoteKind::Http, at(url, headers))
}

pub(crate) fn at(url: &str, headers: &[(&str, &str)]) -> RemoteSpec {
    RemoteSpec {
        rules: std::sync::Arc::default(),
        url: url.parse().expect("a URL"),
        headers: headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Secret::new(*value)))
            .collect(),
        headers_helper: None,
        oauth: None,
    }
}

/// Where programs are found: the system's first, so that wrappers of a user's shell stay out.
pub(crate) fn path() -> String {
    format!(
        "/usr/local/bin:/usr/bin:/bin:{}",
        std::env::var("PATH").unwrap_or_default()
    )
}

pub(crate) fn program(command: &str, args: &[&str]) -> StdioSpec {
    StdioSpec {
        program: None,
        command: command.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        inherited: Arc::default(),
        env: BTreeMap::from([("PATH".to_owned(), Secret::new(path()))]),
        cwd: WorkingDirectory::default(),
        shield: ShieldMode::Off,
        umask: None,
    }
}

/// A Python program without start-up files.
pub(crate) fn python(script: &str) -> TransportSpec {
    TransportSpec::Stdio(program("python3", &["-I", "-S", "-u", "-c", script]))
}
