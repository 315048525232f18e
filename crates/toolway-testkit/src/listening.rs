//! A scripted server that listens: over HTTP, HTTP+SSE or WebSocket.
//!
//! Owns the process, its port across restarts, and the control port by which a test changes it while
//! it runs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{Script, ScriptedServer};

/// How it is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListeningTransport {
    /// Streamable HTTP.
    Http,
    /// Legacy HTTP+SSE.
    Sse,
    /// WebSocket.
    WebSocket,
}

/// A scripted server that listens; killed when dropped.
#[derive(Debug)]
pub struct ListeningServer {
    server: ScriptedServer,
    way: ListeningTransport,
    url: String,
    control: String,
    child: Option<Child>,
}

impl ListeningServer {
    /// Starts it on a free loopback port.
    pub fn start(server: ScriptedServer, way: ListeningTransport) -> Self {
        let mut listening = Self {
            server,
            way,
            url: String::new(),
            control: String::new(),
            child: None,
        };
        listening.launch("0");
        listening
    }

    /// Its endpoint.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where it listens: host and port.
    pub fn address(&self) -> &str {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        rest.split('/').next().unwrap_or_default()
    }

    /// The entry of this server in a configuration file.
    pub fn entry(&self) -> Value {
        self.entry_at(&self.url)
    }

    /// The entry of this server where something stands before it, such as a proxy.
    pub fn entry_at(&self, url: &str) -> Value {
        let kind = match self.way {
            ListeningTransport::Http => "http",
            ListeningTransport::Sse => "sse",
            ListeningTransport::WebSocket => "ws",
        };
        json!({ "type": kind, "url": url })
    }

    /// The id of its process. Panics while it is stopped.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the server runs").id()
    }

    /// Kills it (SIGKILL). Its port stays free for [`ListeningServer::resume`].
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by its script.
            drop(child.kill());
            drop(child.wait());
        }
    }

    /// Starts it again on its port; sessions and streams of before are unknown to it.
    pub fn resume(&mut self) {
        let port = self.address().rsplit(':').next().unwrap_or("0").to_owned();
        self.launch(&port);
    }

    /// Kills it and starts it again on its port.
    pub fn restart(&mut self) {
        self.stop();
        self.resume();
    }

    /// Stops the process (SIGSTOP): the sockets stay open and unanswered.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on (SIGCONT).
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("the server runs");
        kill_process(Pid::from_child(child), signal).expect("the process is there");
    }

    /// From now on it behaves like this, restarts included.
    pub fn become_like(&mut self, script: Script) {
        let text = serde_json::to_string(&script).expect("a script is plain data");
        self.server = ScriptedServer::new(script);
        self.ask("/script", &text);
    }

    /// Forgets every session: the next request of each gets 404.
    pub fn forget_sessions(&self) {
        self.ask("/forget", "");
    }

    /// Closes every connection, streams too; new ones are welcome.
    pub fn hang_up(&self) {
        self.ask("/hang-up", "");
    }

    /// What it saw: `greetings`, `answered`, `calls`, `posts`, `strays`, `connections`, `sessions`,
    /// `trace`, the headers of the last call that are of a trace, and `placed`, those that say what
    /// its arguments say.
    pub fn stats(&self) -> Value {
        self.ask("/stats", "")
    }

    fn ask(&self, path: &str, body: &str) -> Value {
        let mut stream = TcpStream::connect(&self.control).expect("the control port is open");
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
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body)
            .unwrap_or_else(|error| panic!("the control port answered `{answer}`: {error}"))
    }

    fn launch(&mut self, port: &str) {
        let flag = match self.way {
            ListeningTransport::Http => "--http",
            ListeningTransport::Sse => "--sse",
            ListeningTransport::WebSocket => "--ws",
        };
        let mut child = Command::new(ScriptedServer::program())
            .args(self.server.args())
            .args([flag, port])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the scripted server starts");
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut lines = BufReader::new(stdout).lines();
        let mut line = || match lines.next() {
            Some(Ok(line)) => line,
            end => panic!("the scripted server did not say where it listens: {end:?}"),
        };
        let banner = self.server.script().banner.is_some();
        if banner {
            line();
        }
        self.url = line();
        self.control = line();
        assert!(
            self.url.contains("://"),
            "the scripted server printed `{}`",
            self.url
        );
        self.child = Some(child);
    }
}

impl Drop for ListeningServer {
    fn drop(&mut self) {
        self.stop();
    }
}
