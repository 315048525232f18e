//! The authority as a program of its own: arguments, and the control port by which tests of other
//! processes ask and change it.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Authority, AuthoritySettings, Switch};
use crate::chaos::http;

/// Runs with these arguments: `[--settings JSON]`. Prints one line of JSON that says where
/// everything is, and serves until its stdin ends.
pub fn run(args: impl Iterator<Item = String>) -> ExitCode {
    let args: Vec<String> = args.collect();
    let settings = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Ok(AuthoritySettings::default()),
        ["--settings", text] => serde_json::from_str(text).map_err(|error| error.to_string()),
        _ => Err("usage: toolway-authority [--settings JSON]".to_owned()),
    };
    let served = match settings {
        Ok(settings) => serve(settings).map_err(|error| error.to_string()),
        Err(problem) => Err(problem),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            drop(writeln!(io::stderr(), "toolway-authority: {problem}"));
            ExitCode::from(2)
        }
    }
}

fn serve(settings: AuthoritySettings) -> io::Result<()> {
    let authority = Arc::new(Authority::start(settings));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let places = json!({
        "issuer": authority.issuer(),
        "resource": authority.resource(),
        "attacker": authority.attacker(),
        "control": listener.local_addr()?.to_string(),
        "certificate": authority.certificate(),
    });
    writeln!(io::stdout(), "{places}")?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let authority = Arc::clone(&authority);
            std::thread::spawn(move || drop(converse(&authority, &stream)));
        }
    });
    // The test holds the other end, so this never outlives it.
    io::copy(&mut io::stdin(), &mut io::sink()).map(drop)
}

fn converse(authority: &Authority, mut stream: &TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let Some(request) = http::read(&mut reader)? else {
        return Ok(());
    };
    let (status, answer) = match act(authority, &request.path, &request.body) {
        Some(answer) => (200, answer),
        None => (400, json!({ "error": "cannot read that" })),
    };
    let body = answer.to_string();
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} Scripted\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    )
}

fn act(authority: &Authority, path: &str, body: &str) -> Option<Value> {
    let asked: Value = serde_json::from_str(body).unwrap_or_default();
    Some(match path {
        "/switches" => {
            let switches: Vec<Switch> = serde_json::from_value(asked).ok()?;
            authority.set(&switches);
            json!({})
        }
        "/advance" => {
            authority.advance(Duration::from_millis(asked.as_u64()?));
            json!({})
        }
        "/expire" => {
            authority.expire_access_tokens();
            json!({})
        }
        "/issue" => {
            let tokens = authority.issue(asked["client"].as_str()?, asked["scope"].as_str()?);
            json!({ "access": tokens.access, "refresh": tokens.refresh })
        }
        "/decide" => {
            let code = asked["user_code"].as_str()?;
            json!(authority.decide_device(code, asked["allow"].as_bool()?))
        }
        "/tokens" => json!({ "access": authority.valid_access_tokens(),
            "refresh": authority.valid_refresh_tokens() }),
        "/seen" => serde_json::to_value(authority.seen()).ok()?,
        "/report" => serde_json::to_value(authority.report()).ok()?,
        _ => return None,
    })
}

/// Asks the control port of a program.
pub(crate) fn ask(control: &str, path: &str, body: &Value) -> Value {
    let mut stream = TcpStream::connect(control).expect("the control port is open");
    let body = body.to_string();
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .expect("the control port listens");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .expect("the control port answers");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    assert!(head.contains(" 200 "), "the control port refused: {answer}");
    serde_json::from_str(body).expect("the control port answers JSON")
}
