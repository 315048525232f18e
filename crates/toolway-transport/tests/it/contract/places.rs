//! The suite's server behind every transport.

use std::sync::{Arc, Mutex};

use http::HeaderMap;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio_tungstenite::tungstenite::handshake::server::Request;
use toolway_testkit::marked;
use toolway_transport::{ChannelLimits, OpenOptions, in_process};
use toolway_types::{RemoteKind, TransportSpec};

use super::behaviour::{Deed, Memory, SCRIPT};
use crate::authority::Authority;
use crate::peer::{Era, Peer, at, bytes, python, remote};
use crate::server::{self, Act, Census, Seen, Server, chunk, chunked};
use crate::socket::{self, Connection, open_door};

const MIB: usize = 1024 * 1024;

/// One cap for all.
pub(super) const CAP: usize = 4 * MIB;

fn limits() -> ChannelLimits {
    ChannelLimits {
        line: CAP,
        response: CAP,
        sse_event: CAP,
        websocket_message: CAP,
        ..ChannelLimits::default()
    }
}

/// A client, and how many connections its server has.
pub(super) struct Subject {
    pub(super) peer: Peer,
    pub(super) census: Census,
    /// Whether each request has an answer of its own, so that there is no connection to lose.
    pub(super) is_per_request: bool,
    /// Told when the client listens, where it has to begin to.
    pub(super) listening: Option<Arc<Notify>>,
}

impl Subject {
    async fn at(census: Census, spec: TransportSpec) -> Self {
        Self::of(census, Peer::open(spec, limits()).await)
    }

    fn of(census: Census, peer: Peer) -> Self {
        Self {
            peer,
            census,
            is_per_request: false,
            listening: None,
        }
    }

    fn modern(mut self) -> Self {
        self.peer.era = Era::Modern;
        self
    }
}

pub(super) async fn stdio() -> Subject {
    // A process is not counted: that it is gone has tests of its own.
    Subject::at(Census::new(), python(SCRIPT)).await
}

pub(super) async fn in_program() -> Subject {
    let (channel, mut end) = in_process::pair();
    let census = Census::new();
    let counted = census.count();
    tokio::spawn(async move {
        let _counted = counted;
        let memory = Memory::default();
        while let Some(message) = end.incoming.recv().await {
            let message: Value = serde_json::from_slice(&message).expect("JSON");
            for deed in memory.react(&message) {
                let Deed::Say(message) = deed else { return };
                if end.outgoing.send(bytes(&message)).await.is_err() {
                    return;
                }
            }
        }
    });
    Subject::of(census, Peer::new(channel))
}

/// How a server answers a POST.
#[derive(Clone, Copy)]
enum Form {
    Json,
    Stream,
}

pub(super) async fn http_json() -> Subject {
    http(Form::Json).await
}

pub(super) async fn http_stream() -> Subject {
    http(Form::Stream).await
}

pub(super) async fn modern_json() -> Subject {
    http(Form::Json).await.modern()
}

pub(super) async fn modern_stream() -> Subject {
    http(Form::Stream).await.modern()
}

async fn http(form: Form) -> Subject {
    let memory = Memory::default();
    let unasked = Mutex::new(None::<mpsc::UnboundedSender<Vec<u8>>>);
    let answered = Arc::new(Notify::new());
    let listening = Arc::new(Notify::new());
    let listens = Arc::clone(&listening);
    let server = Server::start(move |seen| match seen.method.as_str() {
        "GET" => {
            let (sender, pieces) = mpsc::unbounded_channel();
            *unasked.lock().expect("no panic") = Some(sender);
            listens.notify_one();
            vec![server::stream(": hello\n\n"), Act::Follow(pieces)]
        }
        "POST" if seen.json()["method"] == "ask" => {
            // Answered in the one POST, but not before the answer to its own question.
            let question = event(&json!({"jsonrpc": "2.0", "id": "s-1", "method": "ping"}));
            let answer =
                json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": {"answered": "s-1"}});
            let wait = Act::Wait(Arc::clone(&answered));
            match form {
                Form::Stream => {
                    let last = Act::Write(event(&answer).into_bytes());
                    vec![server::stream(&question), wait, last, Act::Close]
                }
                Form::Json => {
                    let unasked = unasked.lock().expect("no panic");
                    let sender = unasked.as_ref().expect("the client listens");
                    sender.send(question.into_bytes()).expect("it is open");
                    [vec![wait], server::json(&answer)]
                        .into_iter()
                        .flatten()
                        .collect()
                }
            }
        }
        "POST" if seen.json()["method"].is_null() => {
            answered.notify_one();
            server::accepted()
        }
        "POST" => post(&memory, seen, form),
        _ => server::reply("405 Method Not Allowed", &[], b""),
    })
    .await;
    let subject = Subject::at(server.census.clone(), remote(&server.url, &[])).await;
    Subject {
        is_per_request: true,
        listening: matches!(form, Form::Json).then_some(listening),
        ..subject
    }
}

fn event(message: &Value) -> String {
    format!("data: {message}\n\n")
}

fn post(memory: &Memory, seen: &Seen, form: Form) -> Vec<Act> {
    let deeds = memory.react(&seen.json());
    if seen.json()["id"].is_null() {
        return server::accepted();
    }
    let mut said = Vec::new();
    for deed in &deeds {
        match deed {
            Deed::Say(message) => said.push(message),
            Deed::Quit => return vec![Act::Close],
            Deed::Leave => return vec![chunked(": bye\n\n"), Act::Write(chunk(b""))],
        }
    }
    match (form, &said[..]) {
        (_, []) => vec![Act::AwaitClose(Arc::default())],
        (Form::Json, [.., answer]) => server::json(answer),
        (Form::Stream, said) => {
            let events: String = said.iter().map(|message| event(message)).collect();
            vec![server::stream(&events), Act::Close]
        }
    }
}

pub(super) async fn sse() -> Subject {
    let server = sse_server().await;
    Subject::at(
        server.census.clone(),
        TransportSpec::Remote(RemoteKind::Sse, at(&server.url, &[])),
    )
    .await
}

pub(super) async fn sse_ide() -> Subject {
    let server = sse_server().await;
    let spec = TransportSpec::Remote(RemoteKind::SseIde, at(&server.url, &[]));
    Subject::at(server.census.clone(), spec).await
}

async fn sse_server() -> Server {
    let memory = Memory::default();
    let stream = Mutex::new(None::<mpsc::UnboundedSender<Vec<u8>>>);
    Server::start(move |seen| {
        let mut stream = stream.lock().expect("no panic");
        if seen.method == "GET" {
            let (sender, pieces) = mpsc::unbounded_channel();
            *stream = Some(sender);
            let endpoint = "event: endpoint\ndata: /messages?session=1\n\n";
            return vec![chunked(endpoint), Act::Follow(pieces)];
        }
        assert_eq!(seen.path, "/messages?session=1");
        for deed in memory.react(&seen.json()) {
            let piece = match deed {
                Deed::Say(message) => chunk(event(&message).as_bytes()),
                Deed::Leave => chunk(b""),
                Deed::Quit => {
                    *stream = None;
                    return vec![Act::Close];
                }
            };
            if let Some(stream) = &*stream {
                let _ = stream.send(piece);
            }
        }
        server::reply("202 Accepted", &[], b"Accepted")
    })
    .await
}

async fn serve(mut connection: Connection) {
    let memory = Memory::default();
    while let Some(message) = socket::receive(&mut connection).await {
        for deed in memory.react(&message) {
            match deed {
                Deed::Say(message) => socket::send(&mut connection, &message).await,
                Deed::Quit => return,
                Deed::Leave => {
                    let _ = connection.close(None).await;
                }
            }
        }
    }
    let _ = connection.close(None).await;
}

pub(super) async fn ws() -> Subject {
    let server = socket::listen(None, open_door, serve).await;
    Subject::at(
        server.census,
        TransportSpec::Remote(RemoteKind::Ws, at(&server.url, &[])),
    )
    .await
}

pub(super) async fn wss() -> Subject {
    let authority = Authority::new();
    let server = socket::listen(Some(authority.server(false)), open_door, serve).await;
    let options = OpenOptions {
        limits: limits(),
        ..authority.trusted()
    };
    let spec = TransportSpec::Remote(RemoteKind::Ws, at(&server.url, &[]));
    Subject::of(server.census, Peer::open_with(spec, &options).await)
}

const TOKEN: &str = "X-Claude-Code-Ide-Authorization";

fn editor(request: &Request, answer: &mut HeaderMap) {
    assert_eq!(request.headers()[TOKEN], marked!("lock-file token "));
    open_door(request, answer);
}

pub(super) async fn ws_ide() -> Subject {
    let server = socket::listen(None, editor, serve).await;
    let headers = [(TOKEN, marked!("lock-file token "))];
    Subject::at(
        server.census,
        TransportSpec::Remote(RemoteKind::WsIde, at(&server.url, &headers)),
    )
    .await
}
