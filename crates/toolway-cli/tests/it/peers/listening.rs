//! Peers that listen: started on a port, killed, started again on the same one.

use std::io::{BufRead as _, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use toolway_testkit::peers;

/// Which server, and how it is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    /// `server-everything` over Streamable HTTP.
    EverythingHttp,
    /// `server-everything` over HTTP+SSE.
    EverythingSse,
    /// FastMCP 4.
    FastMcp,
    /// Version 1 of the official Python SDK, over `http`, `sse` or `ws`.
    PythonSdk1(&'static str),
    /// Version 2 of the official Python SDK.
    PythonSdk2,
    /// Version 2 of the official TypeScript SDK, serving `both` eras or the `modern` one alone.
    TypeScriptSdk2(&'static str),
}

impl Peer {
    /// The `type` of its entry.
    fn transport(self) -> &'static str {
        match self {
            Peer::EverythingSse => "sse",
            Peer::PythonSdk1(transport) => transport,
            _ => "http",
        }
    }

    fn command(self, port: u16) -> Command {
        let script = |name: &str| peers::workspace().join("tests/peers").join(name);
        let node = || Command::new("node");
        let everything = |mode: &str| {
            let package = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
            let mut command = node();
            command.arg(peers::dir().join(package)).arg(mode);
            command.env("PORT", port.to_string());
            command
        };
        let python = |folder: &str, name: &str| {
            let mut command = Command::new(peers::dir().join(folder).join("bin/python"));
            command.arg(script(name));
            command
        };
        let mut command = match self {
            Peer::EverythingHttp => return everything("streamableHttp"),
            Peer::EverythingSse => return everything("sse"),
            Peer::FastMcp => python("venv", "fastmcp_server.py"),
            Peer::PythonSdk1(transport) => {
                let mut command = python("venv-sdk1", "sdk1_server.py");
                command.arg(transport);
                command
            }
            Peer::PythonSdk2 => python("venv", "sdk2_server.py"),
            Peer::TypeScriptSdk2(eras) => {
                let mut command = node();
                command
                    .arg(script("typescript_server.mjs"))
                    .arg(peers::dir())
                    .arg(eras);
                command
            }
        };
        command.arg(port.to_string());
        command
    }

    /// Starts it on a port of the system's choosing.
    pub(super) fn start(self) -> Listening {
        // `server-everything` does not say which port it got, so it is told one that was free a
        // moment ago.
        let port = match self {
            Peer::EverythingHttp | Peer::EverythingSse => free_port(),
            _ => 0,
        };
        Listening::start(self, port)
    }
}

/// A server that listens; ended with its test.
pub(super) struct Listening {
    peer: Peer,
    child: Child,
    pub(super) url: String,
}

impl Listening {
    fn start(peer: Peer, port: u16) -> Self {
        let mut child = peer
            .command(port)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let stderr = child.stderr.take().unwrap();
        // Owns the child from here on: a panic below must end it too.
        let mut listening = Self {
            peer,
            child,
            url: String::new(),
        };
        listening.url = match peer {
            Peer::EverythingHttp => {
                drain(stdout);
                wait_for(stderr, "listening on port");
                format!("http://127.0.0.1:{port}/mcp")
            }
            Peer::EverythingSse => {
                drain(stdout);
                wait_for(stderr, "running on port");
                format!("http://127.0.0.1:{port}/sse")
            }
            _ => {
                drain(stderr);
                let line = wait_for(stdout, "listening on ");
                line.trim().trim_start_matches("listening on ").to_owned()
            }
        };
        listening
    }

    /// Its entry in a configuration file.
    pub(super) fn entry(&self) -> Value {
        json!({ "type": self.peer.transport(), "url": self.url })
    }

    /// Ends it at once, whatever it is doing.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The same server in a new process at the same address.
    pub(super) fn start_again(&mut self) {
        self.kill();
        let port = url::port(&self.url);
        *self = Self::start(self.peer, port);
    }

    /// Its process, as the server itself calls it.
    pub(super) fn process(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.kill();
    }
}

mod url {
    /// Of `scheme://host:port/path`.
    pub(super) fn port(url: &str) -> u16 {
        let (_, rest) = url.rsplit_once(':').unwrap();
        let port = rest.split('/').next().unwrap();
        port.parse().unwrap()
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Reads lines until one holds the words that say "I listen", and returns it. What follows is
/// drained, so that the server never waits for a reader.
fn wait_for(stream: impl Read + Send + 'static, words: &str) -> String {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let line = lines
        .find(|line| line.contains(words))
        .unwrap_or_else(|| panic!("it ended before it said `{words}`"));
    std::thread::spawn(move || lines.for_each(drop));
    line
}

fn drain(mut stream: impl Read + Send + 'static) {
    std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
}
