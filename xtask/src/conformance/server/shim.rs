//! A proxy between the suite and a merged view, which gives one server its own names back: the suite
//! has them built in.
//!
//! Owns the connections. What is written anew in a message is `shim/names.rs`; of the heads it is
//! `Mcp-Name`, where it says what the body says (what differs on purpose has to stay so), and our own
//! address in `Host` and `Origin`, which must be the gateway's, while any other passes untouched.
//! Streams pass event by event. One request in a connection: plain threads are enough.

mod names;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};
use serde_json::Value;

pub(super) use self::names::Names;
use self::names::Passed;
use super::http::{self, Head};

/// A running shim; it takes no connection any more once it is dropped.
pub(super) struct Shim {
    authority: String,
    path: String,
    is_over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Shim {
    /// Stands before the view at that address.
    pub(super) fn start(view: &str, names: Names) -> Result<Self> {
        let (gateway, path) = http::split(view)?;
        let listener = TcpListener::bind("127.0.0.1:0").context("the shim cannot listen")?;
        let authority = listener.local_addr()?.to_string();
        let is_over = Arc::new(AtomicBool::new(false));
        let route = Arc::new(Route {
            authority: authority.clone(),
            gateway: gateway.to_owned(),
            names,
        });
        let accepting = thread::spawn({
            let is_over = Arc::clone(&is_over);
            move || {
                while let Ok((client, _)) = listener.accept() {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let route = Arc::clone(&route);
                    // A client that goes away in the middle is its own business.
                    thread::spawn(move || drop(route.pass(client)));
                }
            }
        });
        Ok(Self {
            authority,
            path: path.to_owned(),
            is_over,
            accepting: Some(accepting),
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}{}", self.authority, self.path)
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // The listener looks up only when somebody knocks.
        drop(TcpStream::connect(&self.authority));
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
    }
}

struct Route {
    authority: String,
    gateway: String,
    names: Names,
}

impl Route {
    /// One request and its answer.
    fn pass(&self, mut client: TcpStream) -> Result<()> {
        let mut from_client = BufReader::new(client.try_clone()?);
        let mut head = Head::read(&mut from_client)?.context("nothing was asked")?;
        let mut body = Vec::new();
        head.body(&mut from_client).read_to_end(&mut body)?;
        let mut passed = None;
        if let Ok(mut message) = serde_json::from_slice::<Value>(&body)
            && message.is_object()
        {
            let request = self.names.request(&mut message);
            rename(&mut head, &request);
            passed = Some(request);
            body = serde_json::to_vec(&message)?;
        }
        let passed = passed.unwrap_or_else(|| self.names.request(&mut Value::Null));
        self.readdress(&mut head);
        head.set("Connection", "close");
        head.remove("Transfer-Encoding");
        if !body.is_empty() || head.value("Content-Length").is_some() {
            head.set("Content-Length", &body.len().to_string());
        }

        let mut gateway = TcpStream::connect(&self.gateway)?;
        head.write(&mut gateway)?;
        gateway.write_all(&body)?;
        // When the client goes, the gateway has to notice, though nothing is written any more.
        let watched = gateway.try_clone()?;
        thread::spawn(move || {
            while from_client.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
            drop(watched.shutdown(Shutdown::Both));
        });
        let outcome = self.answer(gateway, &mut client, &passed);
        drop(client.shutdown(Shutdown::Both));
        outcome
    }

    fn answer(&self, gateway: TcpStream, client: &mut TcpStream, passed: &Passed) -> Result<()> {
        let mut from_gateway = BufReader::new(gateway);
        let mut head = Head::read(&mut from_gateway)?.context("nothing was answered")?;
        let kind = head.value("content-type").unwrap_or_default().to_owned();
        let mut answer = head.clone();
        answer.set("Connection", "close");
        answer.remove("Transfer-Encoding");
        if kind.starts_with("text/event-stream") {
            answer.write(client)?;
            return self.events(head.body(&mut from_gateway), client, passed);
        }
        let mut body = Vec::new();
        head.body(&mut from_gateway).read_to_end(&mut body)?;
        if let Ok(mut message) = serde_json::from_slice::<Value>(&body) {
            self.names.answer(&mut message, passed);
            body = serde_json::to_vec(&message)?;
        }
        head = answer;
        head.set("Content-Length", &body.len().to_string());
        head.write(client)?;
        client.write_all(&body)?;
        Ok(())
    }

    /// Line by line, because an event has to be there when it was sent and not when the next comes.
    fn events(&self, body: impl Read, client: &mut TcpStream, passed: &Passed) -> Result<()> {
        let mut lines = BufReader::new(body);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 {
            let data = line.strip_prefix(b"data:").unwrap_or_default();
            if let Ok(mut message) = serde_json::from_slice::<Value>(data) {
                self.names.answer(&mut message, passed);
                line = format!("data: {message}\n").into_bytes();
            }
            client.write_all(&line)?;
            line.clear();
        }
        Ok(())
    }

    fn readdress(&self, head: &mut Head) {
        for (name, scheme) in [("Host", ""), ("Origin", "http://")] {
            if head.value(name) == Some(&format!("{scheme}{}", self.authority)) {
                head.set(name, &format!("{scheme}{}", self.gateway));
            }
        }
    }
}

/// Gives `Mcp-Name` the view's name, where it had the body's. The blanks around it stay: the suite
/// sends some on purpose.
fn rename(head: &mut Head, request: &Passed) {
    let Some((before, after)) = &request.header else {
        return;
    };
    for (name, value) in &mut head.headers {
        if name.eq_ignore_ascii_case("mcp-name") && value.trim() == before {
            *value = value.replacen(before.as_str(), after, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names() -> Names {
        Names {
            prefix: "fixture__".into(),
            others: "decoy__".into(),
            ..Names::default()
        }
    }

    /// A view that says what it was asked, and answers with what it is given.
    fn view(answer: &'static str) -> (String, JoinHandle<(Head, String)>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let asked = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let head = Head::read(&mut reader).unwrap().unwrap();
            let mut body = String::new();
            head.body(&mut reader).read_to_string(&mut body).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            (head, body)
        });
        (url, asked)
    }

    fn post(url: &str, headers: &str, body: &str) -> (Head, String) {
        let (authority, path) = http::split(url).unwrap();
        let mut stream = TcpStream::connect(authority).unwrap();
        let length = body.len();
        let host = if headers.contains("Host:") {
            String::new()
        } else {
            format!("Host: {authority}\r\n")
        };
        write!(
            stream,
            "POST {path} HTTP/1.1\r\n{host}{headers}Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        let head = Head::read(&mut reader).unwrap().unwrap();
        let mut text = String::new();
        head.body(&mut reader).read_to_string(&mut text).unwrap();
        (head, text)
    }

    #[test]
    fn a_call_passes_under_the_name_of_the_view_and_blanks_in_its_header_stay() {
        let (url, asked) = view(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n\
             b\r\n{\"result\":1\r\n1\r\n}\r\n0\r\n\r\n",
        );
        let shim = Shim::start(&url, names()).unwrap();
        let call = json!({"id": 1, "method": "tools/call", "params": {"name": "add"}}).to_string();
        let (head, text) = post(&shim.url(), "Mcp-Name:   add  \r\n", &call);
        assert!(head.start.contains("200"));
        assert_eq!(text, r#"{"result":1}"#);
        let (head, body) = asked.join().unwrap();
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["params"]["name"], "fixture__add");
        let name = head.headers.iter().find(|(name, _)| name == "Mcp-Name");
        assert_eq!(name.unwrap().1, "   fixture__add  ");
        assert_eq!(
            head.value("host"),
            url.strip_prefix("http://").unwrap().strip_suffix("/mcp")
        );
    }

    #[test]
    fn a_header_that_differs_and_a_foreign_host_stay_as_they_are() {
        let (url, asked) = view("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
        let shim = Shim::start(&url, names()).unwrap();
        let call = json!({"id": 1, "method": "tools/call", "params": {"name": "add"}}).to_string();
        let headers = "Host: evil.example\r\nOrigin: http://evil.example\r\nMcp-Name: other\r\n";
        let (head, text) = post(&shim.url(), headers, &call);
        assert!(head.start.contains("403"));
        assert_eq!(text, "no");
        let (head, _) = asked.join().unwrap();
        assert_eq!(head.value("host"), Some("evil.example"));
        assert_eq!(head.value("origin"), Some("http://evil.example"));
        assert_eq!(head.value("mcp-name"), Some("other"));
    }

    #[test]
    fn events_of_a_stream_are_mapped_one_by_one() {
        let (url, asked) = view(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: 1\nretry: 5\ndata:\n\n\
             event: message\ndata: {\"id\":1,\"result\":{\"tools\":[{\"name\":\"fixture__add\"}]}}\n\n",
        );
        let shim = Shim::start(&url, names()).unwrap();
        let (_, text) = post(&shim.url(), "", r#"{"id":1,"method":"tools/list"}"#);
        assert_eq!(
            text,
            "id: 1\nretry: 5\ndata:\n\nevent: message\ndata: \
             {\"id\":1,\"result\":{\"tools\":[{\"name\":\"add\"}]}}\n\n"
        );
        asked.join().unwrap();
    }
}
