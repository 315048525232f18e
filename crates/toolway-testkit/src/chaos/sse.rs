//! The scripted server over legacy HTTP+SSE (2024-11-05): one long GET, and a POST per message.

use std::collections::HashMap;
use std::io::{self, BufReader};
use std::net::TcpStream;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use super::http::{self, ChaosRequest, ChaosResponse, EventStreamAnswer};
use super::outlet::ChaosClient;
use super::server::{ChaosServer, MessageFlow, act};

/// The open streams, by the session in their endpoint.
static STREAMS: Mutex<Option<HashMap<String, ChaosClient>>> = Mutex::new(None);

/// Prints its URL as the first line, then serves until it is killed.
pub(super) fn serve(server: &Arc<ChaosServer>, port: u16) -> io::Result<ExitCode> {
    http::serve(server, port, ("http", "/sse"), converse)
}

fn converse(server: &Arc<ChaosServer>, stream: &Arc<TcpStream>) -> io::Result<()> {
    let mut reader = BufReader::new(&**stream);
    while let Some(request) = http::read(&mut reader)? {
        let script = server.script();
        match (request.method.as_str(), request.path.split('?').next()) {
            // The second does not tell what it is.
            ("GET", Some("/sse" | "/old")) => {
                if let Some(refusal) = http::refusal(server, None) {
                    refusal.write(stream, &script)?;
                    continue;
                }
                let key = open(server, stream)?;
                let ended = http::wait_for_end(&mut reader);
                streams(|streams| streams.remove(&key));
                return ended;
            }
            ("POST", Some("/message")) => post(server, stream, &request)?,
            _ => {
                server.memory().strays += 1;
                ChaosResponse::empty(404).write(stream, &script)?;
            }
        }
    }
    Ok(())
}

fn streams<T>(use_them: impl FnOnce(&mut HashMap<String, ChaosClient>) -> T) -> T {
    let mut streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
    use_them(streams.get_or_insert_default())
}

fn open(server: &Arc<ChaosServer>, stream: &Arc<TcpStream>) -> io::Result<String> {
    let key = server.fresh().to_string();
    let events = Arc::new(EventStreamAnswer::new(server, stream, Vec::new(), None));
    let client = http::client(Arc::clone(&events) as _, &key);
    // Known before it is told where to post.
    streams(|streams| streams.insert(key.clone(), client.clone()));
    let endpoint = format!("event: endpoint\ndata: /message?session={key}\n\n");
    events.write(endpoint.as_bytes())?;
    server.listen(&client);
    Ok(key)
}

fn post(
    server: &Arc<ChaosServer>,
    stream: &Arc<TcpStream>,
    request: &ChaosRequest,
) -> io::Result<()> {
    let script = server.script();
    let message = request.message();
    server.memory().posts += 1;
    if let Some(refusal) = http::refusal(server, message["method"].as_str()) {
        return refusal.write(stream, &script);
    }
    let session = request.path.split_once("session=").map(|(_, key)| key);
    let Some(client) = session.and_then(|key| streams(|streams| streams.get(key).cloned())) else {
        return ChaosResponse::empty(404).write(stream, &script);
    };
    ChaosResponse::new(202, "text/plain", "Accepted").write(stream, &script)?;
    match act(server, &request.body, &client) {
        MessageFlow::Exit(code) => std::process::exit(i32::from(code)),
        MessageFlow::Done | MessageFlow::Open => Ok(()),
    }
}
