//! Pages that a server wants visited before it answers (error −32042), opened by a person who
//! agrees: the call is sent again, and goes through.
//!
//! `server-everything` never says that a page is dealt with, so what it asks for is tried after
//! the time that a client waits for that word. A server of ours on the TypeScript SDK says so when
//! its page is opened.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use toolway::types::{ServerName, ToolKey};
use toolway::{
    CallError, CallOptions, ClientHandler, ClientOffers, Consent, Elicitation, ElicitationAnswer,
    Host, HostOptions, RpcError, ToolRequest, ToolTarget,
};
use toolway_testkit::{TempHome, peers};
use url::Url;

use super::embedded::host_with;
use super::{home_with, node};
use crate::support::command;
use crate::terminal::{Left, TerminalProgram};

fn pages() -> Value {
    let script = peers::workspace().join("tests/peers/pages_server.mjs");
    let words = [script, peers::dir()].map(|path| path.display().to_string());
    json!({ "command": "node", "args": words, "protocol": "legacy" })
}

/// A browser that writes down what it is given and opens it, as a person's would.
fn browser(home: &TempHome) -> PathBuf {
    let program = home.write(
        home.home().join("browser"),
        "#!/bin/sh\nprintf '%s|%s\\n' \"$#\" \"$1\" >> \"$HOME/opened\"\n\
         exec node -e 'fetch(process.argv[1])' \"$1\"\n",
    );
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

/// A person who says yes to every page that they are asked to visit.
fn agree(home: &TempHome, wanted: u32, asked: u32) -> Left {
    let mut command = command(home, &["call", "peer", "visit", &format!("pages={wanted}")]);
    let mut terminal = TerminalProgram::take(command.env("BROWSER", browser(home)));
    for page in 1..=asked {
        terminal.expect(&format!("  | Page {page} of {wanted}."));
        terminal.expect("  page: http://127.0.0.1:");
        terminal.expect("Open it in your browser? [y/N] ");
        terminal.type_line("y");
    }
    terminal.leave()
}

fn opened(home: &TempHome) -> Vec<String> {
    let record = std::fs::read_to_string(home.home().join("opened")).unwrap();
    record.lines().map(ToOwned::to_owned).collect()
}

#[test]
fn a_call_goes_through_after_the_page_that_a_person_agreed_to() {
    let home = home_with("peer", pages());
    let left = agree(&home, 1, 1);
    assert_eq!(left.code, Some(0), "{}", left.shown);
    assert_eq!(left.stdout, "visited 1 of 1\n");
    let opened = opened(&home);
    assert!(
        matches!(&opened[..], [page] if page.starts_with("1|http://127.0.0.1:")),
        "{opened:?}"
    );
}

#[test]
fn three_pages_are_visited_for_one_call_and_no_fourth() {
    let home = home_with("peer", pages());
    let left = agree(&home, 3, 3);
    assert_eq!(left.stdout, "visited 3 of 3\n", "{}", left.shown);
    assert_eq!(opened(&home).len(), 3);

    let home = home_with("peer", pages());
    let left = agree(&home, 4, 3);
    assert_eq!(left.code, Some(7), "{}", left.shown);
    assert!(left.shown.contains("-32042"), "{}", left.shown);
    assert_eq!(opened(&home).len(), 3);
}

/// Says yes to every page, and visits those that lie on this machine.
#[derive(Default)]
struct Visitor {
    asked: Mutex<Vec<Url>>,
    news: Notify,
}

impl ClientHandler for Visitor {
    fn offers(&self) -> ClientOffers {
        ClientOffers {
            url: true,
            ..ClientOffers::default()
        }
    }

    fn elicit<'a>(
        &'a self,
        _server: &'a ServerName,
        request: Elicitation,
    ) -> BoxFuture<'a, ElicitationAnswer> {
        let Elicitation::Url { url, .. } = request else {
            panic!("only pages are offered");
        };
        async move {
            if url.scheme() == "http" {
                visit(&url).await;
            }
            self.asked.lock().unwrap().push(url);
            self.news.notify_one();
            ElicitationAnswer::Accept(None)
        }
        .boxed()
    }

    fn sample<'a>(
        &'a self,
        _server: &'a ServerName,
        _request: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, RpcError>> {
        unreachable!("not offered")
    }
}

async fn visit(page: &Url) {
    let address = page.socket_addrs(|| None).unwrap()[0];
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n",
        page.path()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

async fn text_of(host: &Host, tool: &str, arguments: Value) -> Result<String, CallError> {
    host.settled().await;
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object")
    };
    let request = ToolRequest::new(
        ToolTarget::Key(ToolKey::new(ServerName::new("peer").unwrap(), tool)),
        arguments,
    );
    let outcome = host.call(request, CallOptions::new(Consent::Typed)).await?;
    let result: Map<String, Value> = serde_json::from_str(outcome.raw.get()).unwrap();
    Ok(result["content"][0]["text"].as_str().unwrap().to_owned())
}

fn visiting(home: &TempHome) -> (Arc<Visitor>, Host) {
    let visitor = Arc::new(Visitor::default());
    let options = HostOptions {
        client_handler: Some(Arc::clone(&visitor) as Arc<dyn ClientHandler>),
        ..HostOptions::default()
    };
    (visitor, host_with(home, options))
}

#[tokio::test]
async fn pages_through_the_library() {
    let home = home_with("peer", pages());
    let (visitor, host) = visiting(&home);
    let text = text_of(&host, "visit", json!({ "pages": 3 })).await;
    assert_eq!(text.unwrap(), "visited 3 of 3");
    assert_eq!(visitor.asked.lock().unwrap().len(), 3);
    // Four more than there were: three are visited, and the fourth is the caller's.
    let error = text_of(&host, "visit", json!({ "pages": 7 })).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("-32042"), "{error}");
    assert_eq!(visitor.asked.lock().unwrap().len(), 6);
    host.shutdown().await;
}

#[tokio::test]
async fn everything_says_no_word_about_its_page_and_answers_after_the_wait_for_it() {
    let home = home_with("peer", node("server-everything", &["stdio"]));
    let (visitor, host) = visiting(&home);
    let arguments = json!({ "url": "https://example.com/then", "errorPath": true });
    let call = text_of(&host, "trigger-url-elicitation", arguments);
    let waiting = async {
        visitor.news.notified().await;
        // The minute that the server's word is waited for. Should the wait begin later than
        // this, another one passes; what else there is to wait for takes much longer.
        while visitor.asked.lock().unwrap().len() < 2 {
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(61)).await;
            tokio::time::resume();
            let again = visitor.news.notified();
            tokio::time::timeout(Duration::from_secs(5), again)
                .await
                .ok();
        }
    };
    let (text, ()) = tokio::join!(call, waiting);
    let text = text.unwrap();
    assert!(
        text.contains("User completed the URL elicitation flow"),
        "{text}"
    );
    let asked = visitor.asked.lock().unwrap().clone();
    let asked: Vec<&str> = asked.iter().map(Url::as_str).collect();
    // Its own page by the error, then, in the call that was sent again, the one it was told of.
    assert_eq!(
        asked,
        [
            "https://modelcontextprotocol.io/",
            "https://example.com/then"
        ]
    );
    host.shutdown().await;
}
