//! The floor of a one-shot call: start, spawn a server, shake hands, call once, end.
//!
//! `floor call` does that with itself as the server, `floor serve` is that server. It is the least
//! that any host can do: no configuration, no JSON beyond the few lines here, one thread. And the floor
//! of a call that finds everything running: `floor ask SOCKET` starts, asks `floor listen SOCKET` once
//! and ends. It depends on nothing, so that `rustc` builds it in a second wherever it is measured.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, ExitCode, Stdio};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"floor","version":"0"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}"#;

const SERVER: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"floor","version":"0"}}"#;
const TOOLS: &str = r#"{"tools":[{"name":"echo","description":"Says hello","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}"#;
const ANSWER: &str = r#"{"content":[{"type":"text","text":"hello"}]}"#;

fn main() -> ExitCode {
    let done = match std::env::args().nth(1).as_deref() {
        Some("serve") => serve(),
        Some("call") => call(),
        Some("listen") => listen(),
        Some("ask") => ask(),
        _ => return ExitCode::from(2),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn call() -> io::Result<()> {
    let mut server = Command::new(std::env::current_exe()?)
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (Some(mut to), Some(from)) = (server.stdin.take(), server.stdout.take()) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let mut from = BufReader::new(from);
    let mut answer = String::new();
    to.write_all(format!("{INITIALIZE}\n").as_bytes())?;
    from.read_line(&mut answer)?;
    to.write_all(format!("{INITIALIZED}\n{CALL}\n").as_bytes())?;
    answer.clear();
    from.read_line(&mut answer)?;
    if !answer.contains(ANSWER) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    io::stdout().write_all(answer.as_bytes())?;
    drop(to);
    server.wait()?;
    Ok(())
}

/// Answers everybody who comes with one line.
fn listen() -> io::Result<()> {
    let socket = std::env::args().nth(2).ok_or(io::ErrorKind::InvalidInput)?;
    let listener = UnixListener::bind(socket)?;
    for stream in listener.incoming() {
        let mut stream = BufReader::new(stream?);
        let mut question = String::new();
        stream.read_line(&mut question)?;
        // Who hangs up early is not waited for.
        let _ = stream.get_mut().write_all(format!("{ANSWER}\n").as_bytes());
    }
    Ok(())
}

fn ask() -> io::Result<()> {
    let socket = std::env::args().nth(2).ok_or(io::ErrorKind::InvalidInput)?;
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(format!("{CALL}\n").as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    io::stdout().write_all(answer.as_bytes())
}

fn serve() -> io::Result<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        // A message without an id wants no answer.
        let Some(id) = after(&line, r#""id":"#) else {
            continue;
        };
        let id = id.split([',', '}']).next().unwrap_or("null");
        let method = after(&line, r#""method":""#).and_then(|rest| rest.split('"').next());
        let answer = match method {
            Some("initialize") => SERVER,
            Some("tools/list") => TOOLS,
            Some("tools/call") => ANSWER,
            Some("ping") => "{}",
            _ => {
                let error = r#"{"code":-32601,"message":"method not found"}"#;
                writeln!(output, r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)?;
                continue;
            }
        };
        writeln!(output, r#"{{"jsonrpc":"2.0","id":{id},"result":{answer}}}"#)?;
    }
    Ok(())
}

fn after<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    line.find(mark).map(|place| &line[place + mark.len()..])
}
