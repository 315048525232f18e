//! HTTP for the authority: listening, answering well or badly, and a small client.
//!
//! Owns sockets and threads. Reads requests as the scripted server does; what is answered is
//! `route.rs`.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::record::{RecordedRequest, RequestedParty};
use super::state::AuthorityState;
use super::{Switch, form, route};
use crate::chaos::http::{self, ChaosRequest};

const YEAR: u64 = 365 * 24 * 60 * 60;

/// How much a body of "64 MiB" has.
const GIGANTIC: usize = 64 << 20;

/// How a body is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReplyBody {
    /// As it should be.
    Whole(Vec<u8>),
    /// This, then blanks up to 64 MiB.
    Gigantic(Vec<u8>),
    /// A byte now and then, forever.
    Trickle,
    /// Nothing at all: the connection is cut instead of an answer.
    Lost,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AuthorityReply {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: ReplyBody,
}

impl AuthorityReply {
    pub(super) fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            content_type,
            headers: Vec::new(),
            body: ReplyBody::Whole(body.into()),
        }
    }

    pub(super) fn json(status: u16, value: &Value) -> Self {
        Self::new(status, "application/json", value.to_string())
            .with("cache-control", "no-store".to_owned())
    }

    pub(super) fn html(status: u16, page: &str) -> Self {
        Self::new(status, "text/html; charset=utf-8", page)
    }

    pub(super) fn empty(status: u16) -> Self {
        Self::new(status, "text/plain", "")
    }

    pub(super) fn redirect(status: u16, to: &str) -> Self {
        Self::empty(status).with("location", to.to_owned())
    }

    /// A page as a network's login shows it.
    pub(super) fn portal() -> Self {
        Self::html(
            200,
            "<!doctype html><title>Welcome</title><p>Please sign in to the network.",
        )
    }

    pub(super) fn gigantic() -> Self {
        Self {
            body: ReplyBody::Gigantic(b"{".to_vec()),
            ..Self::new(200, "application/json", "")
        }
    }

    pub(super) fn trickle() -> Self {
        Self {
            body: ReplyBody::Trickle,
            ..Self::new(200, "application/json", "")
        }
    }

    pub(super) fn lost() -> Self {
        Self {
            body: ReplyBody::Lost,
            ..Self::empty(200)
        }
    }

    pub(super) fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The body when it is plain JSON.
    pub(super) fn value(&self) -> Value {
        match &self.body {
            ReplyBody::Whole(bytes) => serde_json::from_slice(bytes).unwrap_or_default(),
            _ => Value::Null,
        }
    }
}

/// The sockets that may still live, so that the end of the authority ends them.
#[derive(Default)]
pub(super) struct OpenSockets(Mutex<Vec<Weak<TcpStream>>>);

impl OpenSockets {
    fn add(&self, socket: &Arc<TcpStream>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|socket| socket.strong_count() > 0);
        all.push(Arc::downgrade(socket));
    }

    pub(super) fn close(&self) {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for socket in all.iter().filter_map(Weak::upgrade) {
            drop(socket.shutdown(Shutdown::Both));
        }
    }
}

/// A connection, plain or not.
trait AuthorityStream: Read + Write + Send {}

impl<T: Read + Write + Send> AuthorityStream for T {}

/// A socket that others can close.
struct ClosableSocket(Arc<TcpStream>);

impl Read for ClosableSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buffer)
    }
}

impl Write for ClosableSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self.0).flush()
    }
}

/// Serves until the state is stopped; then every connection has ended too.
pub(super) fn listen(
    state: &Arc<AuthorityState>,
    listener: TcpListener,
    party: RequestedParty,
) -> JoinHandle<()> {
    let state = Arc::clone(state);
    std::thread::spawn(move || {
        let mut threads: Vec<JoinHandle<()>> = Vec::new();
        for stream in listener.incoming() {
            if state.stopped() {
                break;
            }
            let Ok(stream) = stream else { continue };
            let stream = Arc::new(stream);
            state.sockets.add(&stream);
            threads.retain(|thread| !thread.is_finished());
            let state = Arc::clone(&state);
            // A client that goes away ends only its own thread.
            threads.push(std::thread::spawn(move || {
                drop(converse(&state, &stream, party));
                drop(stream.shutdown(Shutdown::Both));
            }));
        }
        drop(listener);
        state.sockets.close();
        for thread in threads {
            drop(thread.join());
        }
    })
}

fn converse(
    state: &Arc<AuthorityState>,
    stream: &Arc<TcpStream>,
    party: RequestedParty,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = ClosableSocket(Arc::clone(stream));
    let wire: Box<dyn AuthorityStream> = match &state.tls {
        None => Box::new(socket),
        Some(config) => {
            let connection = rustls::ServerConnection::new(Arc::clone(config));
            Box::new(rustls::StreamOwned::new(
                connection.map_err(io::Error::other)?,
                socket,
            ))
        }
    };
    let mut reader = BufReader::new(wire);
    while let Some(request) = http::read(&mut reader)? {
        let seen = seen(party, request);
        state.record(&seen);
        state.wait_until_released(&seen.path);
        let reply = route::answer(state, &seen);
        if !write(state, reader.get_mut(), &reply)? {
            return Ok(());
        }
    }
    Ok(())
}

fn seen(party: RequestedParty, request: ChaosRequest) -> RecordedRequest {
    let (path, query) = match request.path.split_once('?') {
        Some((path, query)) => (path.to_owned(), query.to_owned()),
        None => (request.path.clone(), String::new()),
    };
    let form = request
        .header("content-type")
        .filter(|kind| kind.starts_with("application/x-www-form-urlencoded"))
        .map(|_| form::parse(&request.body))
        .unwrap_or_default();
    RecordedRequest {
        party,
        method: request.method,
        path,
        query: form::parse(&query),
        headers: request.headers,
        form,
        body: request.body,
    }
}

/// Writes the answer; whether the connection can be used again.
fn write(state: &AuthorityState, wire: &mut dyn Write, reply: &AuthorityReply) -> io::Result<bool> {
    if reply.body == ReplyBody::Lost {
        return Ok(false);
    }
    let mut head = Vec::new();
    let (status, kind) = (reply.status, reply.content_type);
    write!(
        head,
        "HTTP/1.1 {status} Scripted\r\ncontent-type: {kind}\r\n"
    )?;
    if let Some(date) = date(state) {
        write!(head, "date: {date}\r\n")?;
    }
    for (name, value) in &reply.headers {
        write!(head, "{name}: {value}\r\n")?;
    }
    match &reply.body {
        ReplyBody::Lost => {}
        ReplyBody::Whole(body) => {
            write!(head, "content-length: {}\r\n\r\n", body.len())?;
            head.extend_from_slice(body);
            wire.write_all(&head)?;
        }
        ReplyBody::Gigantic(start) => {
            write!(head, "content-length: {GIGANTIC}\r\n\r\n")?;
            head.extend_from_slice(start);
            wire.write_all(&head)?;
            let blanks = vec![b' '; 64 << 10];
            let mut left = GIGANTIC - start.len();
            while left > 0 {
                let piece = left.min(blanks.len());
                wire.write_all(&blanks[..piece])?;
                left -= piece;
            }
        }
        ReplyBody::Trickle => {
            write!(head, "transfer-encoding: chunked\r\n\r\n1\r\n{{\r\n")?;
            wire.write_all(&head)?;
            wire.flush()?;
            while !state.pause(Duration::from_millis(100)) {
                wire.write_all(b"1\r\n \r\n")?;
                wire.flush()?;
            }
            return Ok(false);
        }
    }
    wire.flush()?;
    Ok(true)
}

/// What the clock on the wall says, as far as it says anything.
fn date(state: &AuthorityState) -> Option<String> {
    let now = SystemTime::now();
    let shifted = if state.on(Switch::DateMissing) {
        return None;
    } else if state.on(Switch::DateAheadHour) {
        now + Duration::from_hours(1)
    } else if state.on(Switch::DateBehindHour) {
        now - Duration::from_hours(1)
    } else if state.on(Switch::DateAheadYear) {
        now + Duration::from_secs(YEAR)
    } else if state.on(Switch::DateBehindYear) {
        now - Duration::from_secs(YEAR)
    } else {
        now
    };
    Some(httpdate::fmt_http_date(shifted))
}
