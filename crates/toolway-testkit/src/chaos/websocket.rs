//! The scripted server over WebSocket: one message per text frame, subprotocol `mcp`.
#![expect(
    clippy::result_large_err,
    reason = "the handshake's callback has this shape"
)]

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use tungstenite::handshake::server::{Request, Response};
use tungstenite::http::{HeaderValue, StatusCode};
use tungstenite::protocol::Role;
use tungstenite::{Bytes, Message, Utf8Bytes, WebSocket};

use super::http;
use super::outlet::{self, Outlet};
use super::server::{ChaosServer, MessageFlow, act};

/// Prints its URL as the first line, then serves until it is killed.
pub(super) fn serve(server: &Arc<ChaosServer>, port: u16) -> io::Result<ExitCode> {
    http::serve(server, port, ("ws", "/mcp"), converse)
}

/// One socket for the reader, which also answers pings, and for the writers. The lock keeps their
/// frames whole: on a blocking socket one write takes one frame.
#[derive(Clone)]
struct SharedSocket {
    server: Arc<ChaosServer>,
    stream: Arc<TcpStream>,
    turn: Arc<Mutex<()>>,
}

impl Read for SharedSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self.stream).read(buffer)
    }
}

impl Write for SharedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        outlet::write(&mut &*self.stream, bytes, &self.server.script())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct FrameOutlet(Mutex<WebSocket<SharedSocket>>);

impl Outlet for FrameOutlet {
    fn send(&self, message: &[u8]) -> io::Result<()> {
        let mut socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What is no text goes out as what it is not: the client must notice.
        let frame = match Utf8Bytes::try_from(Bytes::copy_from_slice(message)) {
            Ok(text) => Message::Text(text),
            Err(_) => Message::Binary(Bytes::copy_from_slice(message)),
        };
        socket.send(frame).map_err(io::Error::other)
    }
}

fn converse(server: &Arc<ChaosServer>, stream: &Arc<TcpStream>) -> io::Result<()> {
    let shared = SharedSocket {
        server: Arc::clone(server),
        stream: Arc::clone(stream),
        turn: Arc::default(),
    };
    let mut socket = tungstenite::accept_hdr(shared.clone(), |asked: &Request, answer| {
        greet(server, asked, answer)
    })
    .map_err(|_| io::Error::other("no handshake"))?;
    let key = format!("ws {}", server.fresh());
    let frames = FrameOutlet(Mutex::new(WebSocket::from_raw_socket(
        shared,
        Role::Server,
        None,
    )));
    let client = http::client(Arc::new(frames), &key);
    server.listen(&client);
    loop {
        match socket.read() {
            Ok(Message::Text(text)) => {
                server.memory().posts += 1;
                if let MessageFlow::Exit(code) = act(server, &text, &client) {
                    std::process::exit(i32::from(code));
                }
            }
            Ok(_) => {}
            Err(error) => return Err(io::Error::other(error)),
        }
    }
}

fn greet(
    server: &ChaosServer,
    asked: &Request,
    mut answer: Response,
) -> Result<Response, tungstenite::http::Response<Option<String>>> {
    if let Some(refusal) = http::refusal(server, None) {
        let mut refused = tungstenite::http::Response::new(Some("scripted".to_owned()));
        *refused.status_mut() = StatusCode::from_u16(refusal.status).unwrap_or_default();
        for (name, value) in refusal.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                refused.headers_mut().insert(name, value);
            }
        }
        return Err(refused);
    }
    let offers = asked.headers().get_all("sec-websocket-protocol").iter();
    let mut offers = offers.filter_map(|offer| offer.to_str().ok());
    if offers.any(|offer| offer.split(',').any(|word| word.trim() == "mcp")) {
        answer
            .headers_mut()
            .insert("sec-websocket-protocol", HeaderValue::from_static("mcp"));
    }
    Ok(answer)
}
