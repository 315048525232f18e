//! The control port of a listening server: a test changes its script, forgets its sessions, hangs up
//! on its clients, and asks what it saw.

use std::io::{self, BufReader};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

use serde_json::json;

use super::http::{self, ChaosResponse};
use super::server::ChaosServer;
use crate::Script;

/// Listens on a port of its own; its address.
pub(super) fn serve(server: &Arc<ChaosServer>) -> io::Result<String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?.to_string();
    let server = Arc::clone(server);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            drop(converse(&server, &stream));
        }
    });
    Ok(address)
}

fn converse(server: &ChaosServer, stream: &TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let Some(request) = http::read(&mut reader)? else {
        return Ok(());
    };
    let body = match request.path.as_str() {
        "/script" => {
            let script: Script = serde_json::from_str(&request.body).map_err(io::Error::other)?;
            server.become_like(script);
            json!({})
        }
        "/forget" => {
            server.memory().sessions.clear();
            json!({})
        }
        "/hang-up" => {
            let sockets = std::mem::take(&mut server.memory().sockets);
            for socket in sockets.iter().filter_map(std::sync::Weak::upgrade) {
                drop(socket.shutdown(Shutdown::Both));
            }
            json!({})
        }
        _ => {
            let memory = server.memory();
            json!({
                "greetings": memory.greetings,
                "answered": memory.answered,
                "calls": memory.calls,
                "posts": memory.posts,
                "trace": memory.trace,
                "placed": memory.placed,
                "strays": memory.strays,
                "connections": memory.connections,
                "sessions": memory.sessions.len(),
            })
        }
    };
    ChaosResponse::new(200, "application/json", body.to_string()).write(stream, &Script::default())
}
