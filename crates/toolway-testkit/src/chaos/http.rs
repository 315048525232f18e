//! The scripted server over Streamable HTTP, written by hand so that it can answer wrongly.
//!
//! One thread per connection, one request at a time on each; the era is the body's.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::answer::{Answer, Server};

/// Prints its URL as the first line, then serves until it is killed.
pub(super) fn serve(server: Server, port: u16) -> io::Result<ExitCode> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    writeln!(io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    let server = Arc::new(Mutex::new(server));
    for stream in listener.incoming() {
        let server = Arc::clone(&server);
        let stream = stream?;
        // A client that goes away ends only its own thread.
        std::thread::spawn(move || drop(converse(&server, &stream)));
    }
    Ok(ExitCode::SUCCESS)
}

struct Request {
    method: String,
    body: String,
}

fn converse(server: &Mutex<Server>, stream: &TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader)? {
        let mut server = server.lock().unwrap_or_else(PoisonError::into_inner);
        let forced = server.script().http_status;
        let reply = match (forced, request.method.as_str()) {
            (Some(status), _) => response(status, "text/plain", "scripted"),
            (None, "POST") => match server.answer(&request.body) {
                Answer::Exit(code) => std::process::exit(i32::from(code)),
                Answer::Nothing if is_request(&request.body) => {
                    // Hold the connection open and unanswered; only this thread waits.
                    drop(server);
                    return wait_for_end(&mut reader);
                }
                Answer::Nothing => response(202, "text/plain", ""),
                Answer::Message { id: _, body } if server.script().event_stream => {
                    let event = format!("event: message\ndata: {body}\n\n");
                    response(200, "text/event-stream", &event)
                }
                Answer::Message { id: _, body } => response(
                    status(&body, &request.body),
                    "application/json",
                    &body.to_string(),
                ),
            },
            (None, _) => response(405, "text/plain", ""),
        };
        drop(server);
        let mut stream = stream;
        stream.write_all(reply.as_bytes())?;
    }
    Ok(())
}

/// Modern servers say some errors in the status too.
fn status(answer: &Value, request: &str) -> u16 {
    let modern = request.contains("io.modelcontextprotocol/protocolVersion");
    match answer["error"]["code"].as_i64() {
        Some(-32601) if modern => 404,
        Some(-32700 | -32022) => 400,
        Some(-32602) if modern => 400,
        _ => 200,
    }
}

fn is_request(body: &str) -> bool {
    serde_json::from_str::<Value>(body).is_ok_and(|body| body.get("id").is_some())
}

fn wait_for_end(reader: &mut impl Read) -> io::Result<()> {
    io::copy(reader, &mut io::sink()).map(drop)
}

fn read(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let method = first.split(' ').next().unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Request {
        method,
        body: String::from_utf8_lossy(&body).into_owned(),
    }))
}

fn response(status: u16, content_type: &str, body: &str) -> String {
    let challenge = if status == 401 {
        "www-authenticate: Bearer\r\n"
    } else {
        ""
    };
    format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: {content_type}\r\n{challenge}\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}
