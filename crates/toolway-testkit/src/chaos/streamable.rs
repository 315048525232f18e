//! The scripted server over Streamable HTTP; the era is the body's.
//!
//! Owns sessions, the answer to a POST, and the streams that a GET opens or resumes.

use std::io::{self, BufReader};
use std::net::TcpStream;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::Value;

use super::drama;
use super::http::{self, ChaosRequest, ChaosResponse, EventStreamAnswer, SingleAnswer};
use super::server::{ChaosServer, MessageFlow, VERSION_KEY};

const SESSION: &str = "mcp-session-id";

/// Prints its URL as the first line, then serves until it is killed.
pub(super) fn serve(server: &Arc<ChaosServer>, port: u16) -> io::Result<ExitCode> {
    http::serve(server, port, ("http", "/mcp"), converse)
}

fn converse(server: &Arc<ChaosServer>, stream: &Arc<TcpStream>) -> io::Result<()> {
    let mut reader = BufReader::new(&**stream);
    while let Some(request) = http::read(&mut reader)? {
        let stays = match request.method.as_str() {
            "POST" => post(server, stream, &request)?,
            "GET" => get(server, stream, &request)?,
            "DELETE" => {
                let known = session(&request)
                    .is_some_and(|session| server.memory().sessions.remove(session).is_some());
                let status = if known { 200 } else { 405 };
                ChaosResponse::empty(status).write(stream, &server.script())?;
                false
            }
            _ => {
                ChaosResponse::empty(405).write(stream, &server.script())?;
                false
            }
        };
        if stays {
            // Open and unanswered; only this thread waits.
            return http::wait_for_end(&mut reader);
        }
    }
    Ok(())
}

fn session(request: &ChaosRequest) -> Option<&str> {
    request.header(SESSION)
}

/// Whether the connection is to be held.
fn post(
    server: &Arc<ChaosServer>,
    stream: &Arc<TcpStream>,
    request: &ChaosRequest,
) -> io::Result<bool> {
    let script = server.script();
    let message = request.message();
    let method = message["method"].as_str();
    server.memory().posts += 1;
    if method == Some("tools/call") {
        let mut memory = server.memory();
        memory.trace = request.trace();
        memory.placed = request.headers_of("mcp-param-");
    }
    if let Some(refusal) = http::refusal(server, method) {
        return refusal.write(stream, &script).map(|()| false);
    }
    let legacy = message["params"]["_meta"][VERSION_KEY].is_null();
    let mut headers = Vec::new();
    if script.sessions && legacy {
        if method == Some("initialize") {
            let name = format!("session-{}", server.fresh());
            server.memory().sessions.insert(name.clone(), 0);
            headers.push((SESSION, name));
        } else if let Some(refusal) = stranger(server, session(request), &message) {
            return refusal.write(stream, &script).map(|()| false);
        }
    }
    let key = session(request).unwrap_or("http");
    let is_request = method.is_some() && message.get("id").is_some();
    if !is_request && !message.is_null() {
        server.handle(
            &request.body,
            &http::client(Arc::new(SingleAnswer::default()), key),
        );
        return ChaosResponse::empty(202)
            .write(stream, &script)
            .map(|()| false);
    }
    let cut = cut(server, method);
    if script.event_stream || drama::needs_stream(&message) {
        let mut events = EventStreamAnswer::new(server, stream, headers, cut);
        if script.resumable && legacy {
            let name = format!("stream{}", server.fresh());
            // The event that lets a client come back before anything was said.
            let primer = format!("id: {name}.0\nretry: 10\ndata:\n\n");
            events = events.resumable(name);
            drop(events.write(primer.as_bytes()));
        }
        let events = Arc::new(events);
        return match server.handle(&request.body, &http::client(Arc::clone(&events) as _, key)) {
            MessageFlow::Done => events.end().map(|()| false),
            MessageFlow::Open => Ok(true),
            MessageFlow::Exit(code) => std::process::exit(i32::from(code)),
        };
    }
    let once = Arc::new(SingleAnswer::default());
    match server.handle(&request.body, &http::client(Arc::clone(&once) as _, key)) {
        MessageFlow::Done => {
            let body = once.take().unwrap_or_default();
            let mut response = ChaosResponse::new(status(&body, legacy), "application/json", body);
            response.headers = headers;
            response.cut = cut;
            response.write(stream, &script).map(|()| false)
        }
        MessageFlow::Open => Ok(true),
        MessageFlow::Exit(code) => std::process::exit(i32::from(code)),
    }
}

/// What a request without a living session gets.
fn stranger(server: &ChaosServer, session: Option<&str>, message: &Value) -> Option<ChaosResponse> {
    let limit = server.script().session_requests;
    let mut memory = server.memory();
    let Some(session) = session else {
        return Some(ChaosResponse::new(400, "text/plain", "no session"));
    };
    if let Some(used) = memory.sessions.get_mut(session) {
        *used += u32::from(message.get("id").is_some());
        if limit == 0 || *used <= limit {
            return None;
        }
        memory.sessions.remove(session);
    }
    let body = serde_json::json!({ "jsonrpc": "2.0", "id": message["id"],
        "error": { "code": -32001, "message": "session not found" } });
    Some(ChaosResponse::new(
        404,
        "application/json",
        body.to_string(),
    ))
}

/// Where this answer is cut off.
fn cut(server: &ChaosServer, method: Option<&str>) -> Option<usize> {
    let script = server.script();
    let meant = match script.cut_for.as_slice() {
        [] => method == Some("tools/call"),
        methods => methods.iter().any(|meant| method == Some(meant)),
    };
    let place = script.cut_call_at.filter(|_| meant)?;
    let mut memory = server.memory();
    if script.cut_times > 0 && memory.cuts >= script.cut_times {
        return None;
    }
    memory.cuts += 1;
    Some(place)
}

/// Modern servers say some errors in the status too.
fn status(answer: &[u8], legacy: bool) -> u16 {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    match answer["error"]["code"].as_i64() {
        Some(-32601) if !legacy => 404,
        Some(-32700 | -32022) => 400,
        Some(-32602) if !legacy => 400,
        _ => 200,
    }
}

/// Opens the stream for what is said unasked, or goes on with a stream that broke.
fn get(
    server: &Arc<ChaosServer>,
    stream: &Arc<TcpStream>,
    request: &ChaosRequest,
) -> io::Result<bool> {
    let script = server.script();
    if script.sessions
        && !session(request).is_some_and(|known| server.memory().sessions.contains_key(known))
    {
        return ChaosResponse::empty(404)
            .write(stream, &script)
            .map(|()| false);
    }
    let events = EventStreamAnswer::new(server, stream, Vec::new(), None);
    if let Some(last) = request.header("last-event-id").filter(|_| script.resumable) {
        return resume(server, &events, last).map(|()| false);
    }
    if !script.get_stream {
        return ChaosResponse::empty(405)
            .write(stream, &script)
            .map(|()| false);
    }
    events.write(b": open\n\n")?;
    let key = format!("get {}", server.fresh());
    server.listen(&http::client(Arc::new(events), &key));
    Ok(true)
}

/// Says what followed this event, until the stream it belongs to is over.
fn resume(server: &Arc<ChaosServer>, events: &EventStreamAnswer, last: &str) -> io::Result<()> {
    let (name, number) = last.rsplit_once('.').unwrap_or((last, ""));
    let mut seen: usize = number.parse().unwrap_or(0);
    events.write(b": again\n\n")?;
    loop {
        let next = server.wait_for(|memory| match memory.streams.get(name) {
            Some(log) if log.events.len() > seen => Some(Some(log.events[seen].clone())),
            Some(log) if !log.over => None,
            _ => Some(None),
        });
        let Some(message) = next else {
            return events.end();
        };
        seen += 1;
        events.write(&http::event(Some((name, seen)), &message))?;
    }
}
