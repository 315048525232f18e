//! The floor of a one-shot call: start, spawn the server, greet it, call one tool, end.
//!
//! `one_shot serve` is a server that adds a few microseconds, `one_shot call` the least client of
//! it. Nothing but the standard library and no JSON parser: whatever a real client does more is
//! what the benchmark shows.

use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _, stdin, stdout};
use std::process::{Command, Stdio};

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("serve") => serve(),
        Some("call") => call(),
        _ => Err("usage: one_shot serve | call".into()),
    }
}

/// Answers line by line until stdin ends.
fn serve() -> Result<(), Box<dyn Error>> {
    let mut out = stdout().lock();
    for line in stdin().lock().lines() {
        let line = line?;
        let Some(id) = id(&line) else {
            continue;
        };
        let result = if line.contains(r#""method":"tools/call""#) {
            r#"{"content":[{"type":"text","text":"pong"}]}"#
        } else if line.contains(r#""method":"tools/list""#) {
            r#"{"tools":[{"name":"ping","inputSchema":{"type":"object"}}]}"#
        } else if line.contains(r#""method":"initialize""#) {
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"floor","version":"1"}}"#
        } else {
            let error = r#"{"code":-32601,"message":"method not found"}"#;
            writeln!(out, r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)?;
            continue;
        };
        writeln!(out, r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)?;
    }
    Ok(())
}

/// The id of a request, as it was written.
fn id(line: &str) -> Option<&str> {
    let behind = line.split_once(r#""id":"#)?.1;
    behind.split([',', '}']).next()
}

fn call() -> Result<(), Box<dyn Error>> {
    let mut server = Command::new(std::env::current_exe()?)
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = server.stdin.take().ok_or("no stdin")?;
    let mut output = BufReader::new(server.stdout.take().ok_or("no stdout")?);
    let mut line = String::new();
    writeln!(
        input,
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"floor","version":"1"}}}}}}"#
    )?;
    output.read_line(&mut line)?;
    writeln!(
        input,
        r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#
    )?;
    writeln!(
        input,
        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"ping","arguments":{{}}}}}}"#
    )?;
    line.clear();
    output.read_line(&mut line)?;
    let text = line.split(r#""text":""#).nth(1).ok_or("no answer")?;
    println!("{}", text.split('"').next().unwrap_or_default());
    drop(input);
    server.wait()?;
    Ok(())
}
