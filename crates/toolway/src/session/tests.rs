//! The session against a peer that follows a script, with the channel in the test's own hands.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolway_transport::{
    Channel, ChannelCommand, ChannelEvent, CloseReason, FirstLook, OutgoingMessage, RequestTag,
    SendFailure,
};
use toolway_types::{ProtocolMode, ServerName};

use super::*;
use crate::call::{ProgressSink, ServerLogs};
use crate::client_handler::Root;
use crate::tasks::{self, Task};

mod asking;
mod client_handler;
mod deadlines;
mod inbound;
mod legacy_task;
mod lists;
mod passing;
mod probe;
mod remembered;
mod requests;
mod rounds;
mod subscription;
mod task;
mod tolerance;
mod url_elicitation;
mod words;

const LIMIT: Duration = Duration::from_secs(30);

/// The far end of a channel.
struct Peer {
    commands: mpsc::Receiver<ChannelCommand>,
    events: mpsc::Sender<ChannelEvent>,
}

/// A message that the peer received.
struct Received {
    body: Value,
    tag: Option<RequestTag>,
    headers: Vec<(http::HeaderName, http::HeaderValue)>,
}

impl Received {
    fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self
            .headers
            .iter()
            .find(|(header, _)| header.as_str() == name)?;
        value.to_str().ok()
    }
}

impl Peer {
    async fn command(&mut self) -> ChannelCommand {
        self.commands
            .recv()
            .await
            .expect("the session is still there")
    }

    /// The next message, skipping orders to the transport.
    async fn next(&mut self) -> Received {
        loop {
            if let ChannelCommand::Send(OutgoingMessage {
                bytes,
                tag,
                headers,
                ..
            }) = self.command().await
            {
                let body = serde_json::from_slice(&bytes).expect("we send JSON");
                return Received { body, tag, headers };
            }
        }
    }

    /// The next message, which has this method.
    async fn expect(&mut self, method: &str) -> Received {
        let received = self.next().await;
        assert_eq!(received.method(), method, "got {}", received.body);
        received
    }

    async fn text(&self, text: impl Into<Bytes>) {
        self.events
            .send(ChannelEvent::message(text))
            .await
            .expect("the session listens");
    }

    async fn say(&self, message: Value) {
        self.text(message.to_string()).await;
    }

    async fn answer(&self, request: &Received, result: Value) {
        self.say(json!({ "jsonrpc": "2.0", "id": request.body["id"], "result": result }))
            .await;
    }

    async fn refuse(&self, request: &Received, code: i64, data: Value) {
        let error = json!({ "code": code, "message": "no", "data": data });
        self.say(json!({ "jsonrpc": "2.0", "id": request.body["id"], "error": error }))
            .await;
    }

    async fn fail(&self, request: &Received, failure: SendFailure) {
        let tag = request.tag.expect("requests are tagged");
        self.events
            .send(ChannelEvent::Failed { tag, failure })
            .await
            .expect("the session listens");
    }

    async fn close(&self, reason: CloseReason) {
        self.events
            .send(ChannelEvent::Closed(reason))
            .await
            .expect("the session listens");
    }

    /// Answers a legacy handshake, whose first message is `initialize`.
    async fn greet_legacy(&mut self, version: &str) {
        let request = self.expect("initialize").await;
        self.answer(&request, initialize_result(version)).await;
        self.expect("notifications/initialized").await;
    }
}

fn initialize_result(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "scripted", "version": "1" },
        "instructions": "be kind",
    })
}

fn discover_result(versions: &[&str]) -> Value {
    discover_result_with(versions, &json!({}))
}

fn discover_result_with(versions: &[&str], extensions: &Value) -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": versions,
        "capabilities": { "tools": {}, "extensions": extensions },
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "scripted", "version": "1" } },
    })
}

/// A fresh session over a channel whose other end is returned.
fn open() -> (Correlator, Task<()>, Peer) {
    open_with(client_side(), None)
}

fn open_with(
    client_side: ClientSide,
    tap: Option<Arc<dyn ChannelTap>>,
) -> (Correlator, Task<()>, Peer) {
    let (commands, commands_receiver) = mpsc::channel(64);
    let (events_sender, events) = mpsc::channel(64);
    let channel = Channel {
        commands,
        events,
        first_look: FirstLook::default(),
        driver: Box::pin(std::future::ready(())),
        log: None,
    };
    let (correlator, pump) = super::open(channel, client_side, tap);
    let pump = tasks::spawn("pump", pump.run());
    (
        correlator,
        pump,
        Peer {
            commands: commands_receiver,
            events: events_sender,
        },
    )
}

/// A program that has one root and no client handler.
fn client_side() -> ClientSide {
    let root = Root::directory(Path::new("/work/project")).expect("an absolute path");
    ClientSide {
        logs: ServerLogs::default(),
        stated: None,
        server: ServerName::new("scripted").expect("a name"),
        caller: None,
        client_handler: None,
        hooks: Arc::default(),
        has_fixed_roots: false,
        roots: watch::channel(Arc::from([root])).1,
        remarks: Arc::default(),
        habits: Arc::default(),
    }
}

fn greeting(mode: ProtocolMode, delivery: MessageDelivery) -> Greeting {
    let client = Arc::new(ClientInfo::new("tests", "0"));
    Greeting {
        client,
        delivery,
        mode,
        remembered: None,
        again: false,
        timeout: LIMIT,
    }
}

/// A settled legacy session.
async fn legacy() -> (Session, Task<()>, Peer) {
    settled(ProtocolMode::Legacy, MessageDelivery::Stream).await
}

/// A settled session of the given kind.
async fn settled(mode: ProtocolMode, delivery: MessageDelivery) -> (Session, Task<()>, Peer) {
    settled_with(mode, delivery, client_side()).await
}

/// The same with a program of the test's own.
async fn settled_with(
    mode: ProtocolMode,
    delivery: MessageDelivery,
    client_side: ClientSide,
) -> (Session, Task<()>, Peer) {
    let (correlator, pump, mut peer) = open_with(client_side, None);
    let greeting = greeting(mode, delivery);
    let script = async {
        if mode == ProtocolMode::Modern {
            let probe = peer.expect("server/discover").await;
            peer.answer(&probe, discover_result(&["2026-07-28"])).await;
        } else {
            peer.greet_legacy("2025-11-25").await;
        }
    };
    let (session, ()) = tokio::join!(greet(&correlator, &greeting), script);
    (session.expect("the handshake succeeds"), pump, peer)
}

fn params(value: &Value) -> Box<RawValue> {
    to_raw_value(value).expect("JSON")
}

impl Session {
    /// As [`Session::request`], with parameters of its own.
    async fn request_owned(
        &self,
        method: &str,
        params: Box<RawValue>,
        options: RequestOptions<'_>,
    ) -> RequestResult {
        self.request(method, &params, &options).await
    }
}

fn empty() -> Box<RawValue> {
    params(&json!({}))
}
