//! HTTP by hand, so that it can be spoken wrongly: listening, reading requests, answering them.
//!
//! Owns what `streamable.rs` and `sse.rs` share. One thread per connection, one request at a time
//! on each.

use std::io::{self, BufRead, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::outlet::{self, Outlet};
use super::server::ChaosServer;
use super::{control, outlet::ChaosClient};
use crate::Script;

/// What one connection is served by.
type ServeConnection = fn(&Arc<ChaosServer>, &Arc<TcpStream>) -> io::Result<()>;

/// Listens, prints the URL and the control address as the first two lines, and serves until it is
/// killed.
pub(super) fn serve(
    server: &Arc<ChaosServer>,
    port: u16,
    shape: (&str, &str),
    converse: ServeConnection,
) -> io::Result<ExitCode> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let control = control::serve(server)?;
    let (scheme, path) = shape;
    let mut stdout = io::stdout();
    writeln!(stdout, "{scheme}://{}{path}", listener.local_addr()?)?;
    writeln!(stdout, "{control}")?;
    for stream in listener.incoming() {
        let stream = Arc::new(stream?);
        stream.set_nodelay(true)?;
        {
            let mut memory = server.memory();
            memory.connections += 1;
            memory.sockets.retain(|socket| socket.strong_count() > 0);
            memory.sockets.push(Arc::downgrade(&stream));
        }
        let server = Arc::clone(server);
        // A client that goes away ends only its own thread.
        std::thread::spawn(move || drop(converse(&server, &stream)));
    }
    Ok(ExitCode::SUCCESS)
}

/// One request.
pub(crate) struct ChaosRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl ChaosRequest {
    /// The body as a message; `null` when it is none.
    pub(super) fn message(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// The headers whose names begin so, as they came.
    pub(super) fn headers_of(&self, beginning: &str) -> Vec<(String, String)> {
        let is_one = |name: &str| {
            let start = name.get(..beginning.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(beginning))
        };
        let all = self.headers.iter().filter(|(name, _)| is_one(name));
        all.cloned().collect()
    }

    /// The headers that are of a trace.
    pub(super) fn trace(&self) -> serde_json::Map<String, serde_json::Value> {
        let names = ["traceparent", "tracestate", "baggage"].into_iter();
        let found = names.filter_map(|name| Some((name.to_owned(), self.header(name)?.into())));
        found.collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// The first line and the headers of a message.
pub(crate) struct MessageHead {
    pub(crate) first: String,
    pub(crate) headers: Vec<(String, String)>,
}

/// The head of the next message; none when there is no more.
pub(crate) fn read_head(reader: &mut impl BufRead) -> io::Result<Option<MessageHead>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
    }
    Ok(Some(MessageHead { first, headers }))
}

/// The next request; none when the client has no more.
pub(crate) fn read(reader: &mut impl BufRead) -> io::Result<Option<ChaosRequest>> {
    let Some(MessageHead { first, headers }) = read_head(reader)? else {
        return Ok(None);
    };
    let mut words = first.split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().to_owned();
    let mut request = ChaosRequest {
        method,
        path,
        headers,
        body: String::new(),
    };
    let length = match request.header("content-length") {
        Some(length) => length.parse().map_err(io::Error::other)?,
        None => 0,
    };
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    request.body = String::from_utf8_lossy(&body).into_owned();
    Ok(Some(request))
}

/// Waits until the client goes away.
pub(super) fn wait_for_end(reader: &mut impl Read) -> io::Result<()> {
    io::copy(reader, &mut io::sink()).map(drop)
}

/// A whole answer, before it is written.
pub(super) struct ChaosResponse {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
    /// The connection ends after so many bytes of the body.
    pub(super) cut: Option<usize>,
}

impl ChaosResponse {
    pub(super) fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            content_type,
            headers: Vec::new(),
            body: body.into(),
            cut: None,
        }
    }

    /// With no body.
    pub(super) fn empty(status: u16) -> Self {
        Self::new(status, "text/plain", "")
    }

    pub(super) fn write(&self, stream: &TcpStream, script: &Script) -> io::Result<()> {
        let head = head(self.status, self.content_type, &self.headers);
        let mut bytes = format!("{head}content-length: {}\r\n\r\n", self.body.len()).into_bytes();
        let kept = self.cut.unwrap_or(usize::MAX).min(self.body.len());
        bytes.extend_from_slice(&self.body[..kept]);
        let mut stream = stream;
        outlet::write(&mut stream, &bytes, script)?;
        if kept < self.body.len() {
            stream.shutdown(Shutdown::Both)?;
        }
        Ok(())
    }
}

fn head(status: u16, content_type: &str, headers: &[(&str, String)]) -> String {
    let mut head = format!("HTTP/1.1 {status} Scripted\r\ncontent-type: {content_type}\r\n");
    for (name, value) in headers {
        for part in [name, ": ", value, "\r\n"] {
            head.push_str(part);
        }
    }
    head
}

/// What the script has instead of an answer, if it has.
pub(super) fn refusal(server: &ChaosServer, method: Option<&str>) -> Option<ChaosResponse> {
    let script = server.script();
    let meant = script.http_status_for.is_empty()
        || method.is_some_and(|method| script.http_status_for.iter().any(|meant| meant == method));
    if let (Some(status), true) = (script.http_status, meant) {
        let mut memory = server.memory();
        if script.http_status_times == 0 || memory.refused < script.http_status_times {
            memory.refused += 1;
            let mut response = ChaosResponse::new(status, "text/plain", "scripted");
            if status == 401 {
                response
                    .headers
                    .push(("www-authenticate", "Bearer".to_owned()));
            }
            if let Some(after) = &script.retry_after {
                response.headers.push(("retry-after", after.clone()));
            }
            return Some(response);
        }
    }
    let page = "<!doctype html><title>Welcome</title><p>Please sign in to the network.";
    script
        .html
        .then(|| ChaosResponse::new(200, "text/html; charset=utf-8", page))
}

/// An answer as a stream of events, chunk by chunk. Begins with its first event.
pub(super) struct EventStreamAnswer {
    server: Arc<ChaosServer>,
    stream: Arc<TcpStream>,
    headers: Vec<(&'static str, String)>,
    /// The log that this stream can be resumed from.
    log: Option<String>,
    cut: Option<usize>,
    progress: Mutex<StreamProgress>,
}

#[derive(Default)]
struct StreamProgress {
    begun: bool,
    over: bool,
    written: usize,
}

impl EventStreamAnswer {
    pub(super) fn new(
        server: &Arc<ChaosServer>,
        stream: &Arc<TcpStream>,
        headers: Vec<(&'static str, String)>,
        cut: Option<usize>,
    ) -> Self {
        Self {
            server: Arc::clone(server),
            stream: Arc::clone(stream),
            headers,
            log: None,
            cut,
            progress: Mutex::default(),
        }
    }

    /// Gives every event an id under this name, and keeps it.
    pub(super) fn resumable(mut self, name: String) -> Self {
        self.server
            .memory()
            .streams
            .entry(name.clone())
            .or_default();
        self.log = Some(name);
        self
    }

    /// Writes one event as it is.
    pub(super) fn write(&self, event: &[u8]) -> io::Result<()> {
        let mut progress = self.progress();
        if progress.over {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut bytes = Vec::new();
        if !progress.begun {
            progress.begun = true;
            let head = head(200, "text/event-stream", &self.headers);
            bytes.extend_from_slice(head.as_bytes());
            bytes.extend_from_slice(
                b"cache-control: no-store\r\ntransfer-encoding: chunked\r\n\r\n",
            );
        }
        let room = self.cut.unwrap_or(usize::MAX) - progress.written;
        let kept = &event[..room.min(event.len())];
        if !kept.is_empty() {
            bytes.extend_from_slice(format!("{:x}\r\n", kept.len()).as_bytes());
            bytes.extend_from_slice(kept);
            bytes.extend_from_slice(b"\r\n");
        }
        progress.written += kept.len();
        let mut stream = &*self.stream;
        let written = outlet::write(&mut stream, &bytes, &self.server.script());
        if kept.len() < event.len() {
            progress.over = true;
            return stream.shutdown(Shutdown::Both);
        }
        written
    }

    /// Ends the stream as it should be ended; the connection can be used again.
    pub(super) fn end(&self) -> io::Result<()> {
        if let Some(name) = &self.log {
            if let Some(log) = self.server.memory().streams.get_mut(name) {
                log.over = true;
            }
            self.server.changed.notify_all();
        }
        let mut progress = self.progress();
        if progress.over {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        progress.over = true;
        (&*self.stream).write_all(b"0\r\n\r\n")
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, StreamProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lines of one event.
pub(super) fn event(id: Option<(&str, usize)>, message: &[u8]) -> Vec<u8> {
    let mut event = Vec::new();
    if let Some((name, number)) = id {
        event.extend_from_slice(format!("id: {name}.{number}\n").as_bytes());
    }
    event.extend_from_slice(b"event: message\ndata: ");
    event.extend_from_slice(message);
    event.extend_from_slice(b"\n\n");
    event
}

impl Outlet for EventStreamAnswer {
    fn send(&self, message: &[u8]) -> io::Result<()> {
        let Some(name) = &self.log else {
            return self.write(&event(None, message));
        };
        let number = {
            let mut memory = self.server.memory();
            let log = memory.streams.entry(name.clone()).or_default();
            log.events.push(message.to_vec());
            log.events.len()
        };
        self.server.changed.notify_all();
        // A resumed stream gets it, even if this connection is gone.
        drop(self.write(&event(Some((name, number)), message)));
        Ok(())
    }
}

/// Keeps the one message that is the answer.
#[derive(Default)]
pub(super) struct SingleAnswer(Mutex<Option<Vec<u8>>>);

impl SingleAnswer {
    pub(super) fn take(&self) -> Option<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Outlet for SingleAnswer {
    fn send(&self, message: &[u8]) -> io::Result<()> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert_with(|| message.to_vec());
        Ok(())
    }
}

/// A client of this name behind this outlet.
pub(super) fn client(outlet: Arc<dyn Outlet>, key: &str) -> ChaosClient {
    ChaosClient {
        outlet,
        key: key.to_owned(),
    }
}
