//! What is asked of a gateway, and what counts as the right answer.
//!
//! Owns the bytes of requests in both eras, and the checks. Nothing wrong is ever timed: a call that
//! is answered with another id, another text or an error ends the run.

use std::io::Write as _;
use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail};
use memchr::memmem;

use super::answer::IncomingAnswer;
use super::plan::Era;
use crate::envelope::member;

const MODERN_META: &str = concat!(
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}"#
);

/// Where requests go, and how they are put.
#[derive(Clone)]
pub struct Target {
    pub address: SocketAddr,
    pub path: String,
    pub era: Era,
    pub session: Option<String>,
    /// What stands before the names of tools.
    pub prefix: String,
}

/// What a request asks for.
#[derive(Clone, Copy)]
pub enum Ask<'a> {
    Echo,
    Big(usize),
    List(Option<&'a str>),
    Initialize,
    Initialized,
}

impl Target {
    /// Writes one request.
    pub fn put(&self, to: &mut Vec<u8>, id: u64, ask: Ask<'_>) {
        let meta = match self.era {
            Era::Legacy => String::new(),
            Era::Modern => format!(",{MODERN_META}"),
        };
        let prefix = &self.prefix;
        let (method, name, params) = match ask {
            Ask::Echo => (
                "tools/call",
                Some("echo"),
                format!(r#"{{"name":"{prefix}echo","arguments":{{"text":"call-{id}"}}{meta}}}"#),
            ),
            Ask::Big(bytes) => (
                "tools/call",
                Some("big"),
                format!(r#"{{"name":"{prefix}big","arguments":{{"bytes":{bytes}}}{meta}}}"#),
            ),
            Ask::List(cursor) => {
                let cursor = cursor.map(|cursor| format!(r#""cursor":"{cursor}""#));
                let parts = [cursor, Some(meta.trim_start_matches(',').to_owned())];
                let parts: Vec<String> = parts
                    .into_iter()
                    .flatten()
                    .filter(|part| !part.is_empty())
                    .collect();
                ("tools/list", None, format!("{{{}}}", parts.join(",")))
            }
            Ask::Initialize => (
                "initialize",
                None,
                concat!(
                    r#"{"protocolVersion":"2025-11-25","capabilities":{},"#,
                    r#""clientInfo":{"name":"load","version":"1"}}"#
                )
                .to_owned(),
            ),
            Ask::Initialized => ("notifications/initialized", None, "{}".to_owned()),
        };
        let id = match ask {
            Ask::Initialized => String::new(),
            _ => format!(r#""id":{id},"#),
        };
        let body = format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{params}}}"#);
        // Writing to memory cannot fail.
        let _ = write!(
            to,
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n",
            self.path, self.address
        );
        match self.era {
            Era::Modern => {
                let _ = write!(
                    to,
                    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n"
                );
                if let Some(name) = name {
                    let _ = write!(to, "Mcp-Name: {prefix}{name}\r\n");
                }
            }
            Era::Legacy if !matches!(ask, Ask::Initialize) => {
                let _ = write!(to, "MCP-Protocol-Version: 2025-11-25\r\n");
                if let Some(session) = &self.session {
                    let _ = write!(to, "Mcp-Session-Id: {session}\r\n");
                }
            }
            Era::Legacy => {}
        }
        let _ = write!(to, "Content-Length: {}\r\n\r\n{body}", body.len());
    }
}

/// The result of this id, or what is wrong with the answer.
pub fn result(answer: &IncomingAnswer, id: u64) -> Result<&[u8]> {
    let message = answer.message();
    let shown = || String::from_utf8_lossy(&message[..message.len().min(300)]).into_owned();
    if answer.status() != 200 {
        bail!("status {} came back: {}", answer.status(), shown());
    }
    let found = member(message, b"id").map(|range| &message[range]);
    if found != Some(id.to_string().as_bytes()) {
        bail!("the answer to {id} has another id: {}", shown());
    }
    let result = member(message, b"result").map(|range| &message[range]);
    result.with_context(|| format!("the answer to {id} is no result: {}", shown()))
}

/// Whether a call was answered with what it carried.
pub fn check_echo(answer: &IncomingAnswer, id: u64) -> Result<()> {
    let result = result(answer, id)?;
    let wanted = format!(r#""call-{id}""#);
    if memmem::find(result, wanted.as_bytes()).is_none() {
        let shown = String::from_utf8_lossy(&result[..result.len().min(300)]);
        bail!("the answer to {id} has another text: {shown}");
    }
    Ok(())
}

/// Whether a big result came whole.
pub fn check_big(answer: &IncomingAnswer, id: u64, bytes: usize) -> Result<()> {
    let result = result(answer, id)?;
    let text = memmem::find(result, b"xxxx").unwrap_or_default();
    let text = &result[text..];
    let length = text
        .iter()
        .position(|byte| *byte != b'x')
        .unwrap_or(text.len());
    if length != bytes {
        bail!("a text of {bytes} bytes came back with {length}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(body: &str) -> IncomingAnswer {
        let mut answer = IncomingAnswer::default();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        answer.input.extend_from_slice((head + body).as_bytes());
        assert!(answer.is_whole().unwrap());
        answer
    }

    #[test]
    fn another_id_another_text_and_an_error_are_no_answer() {
        let right = r#"{"jsonrpc":"2.0","result":{"content":[{"text":"call-12"}]},"id":12}"#;
        check_echo(&answered(right), 12).unwrap();
        assert!(check_echo(&answered(right), 1).is_err());
        assert!(check_echo(&answered(&right.replace("call-12", "call-1")), 12).is_err());
        assert!(check_echo(&answered(&right.replace("result", "error")), 12).is_err());
    }

    #[test]
    fn requests_of_both_eras_are_json() {
        for era in [Era::Legacy, Era::Modern] {
            let target = Target {
                address: ([127, 0, 0, 1], 80).into(),
                path: "/mcp".to_owned(),
                era,
                session: None,
                prefix: "bench__".to_owned(),
            };
            for ask in [
                Ask::Echo,
                Ask::Big(9),
                Ask::List(None),
                Ask::List(Some("c")),
                Ask::Initialize,
            ] {
                let mut bytes = Vec::new();
                target.put(&mut bytes, 7, ask);
                let text = String::from_utf8(bytes).unwrap();
                let (_, body) = text.split_once("\r\n\r\n").unwrap();
                let value: serde_json::Value = serde_json::from_str(body).unwrap();
                assert_eq!(value["id"], 7);
            }
        }
    }
}
