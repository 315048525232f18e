//! What the tests share: plans from real configuration, servers that follow a script, and a home in
//! which no secret may be left, nor in anything that was logged meanwhile.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use toolway::{
    CallError, CallOptions, Consent, Host, HostOptions, InProcessServer, ServerSnapshot,
    ToolOutcome, ToolRequest, ToolTarget,
};
use toolway_config::{Environment, Flags, Plan};
use toolway_testkit::{ScannedFolder, marked};
use toolway_transport::in_process::ServerEnd;
use toolway_types::{ConnectionState, Failure, ServerFacts, ServerName, ToolKey};

use crate::overheard;

/// A home of its own for one test. When it is dropped, no secret of a test may stand in a file
/// there, but for those that were given leave, nor in a line of any log so far.
pub(crate) struct Home {
    folder: ScannedFolder,
}

impl Drop for Home {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            overheard::assert_no_secrets();
        }
    }
}

impl Home {
    pub(crate) fn new() -> Self {
        overheard::listen();
        Self {
            folder: ScannedFolder::new(),
        }
    }

    /// Secrets may stand in this file or below this folder.
    pub(crate) fn may_hold_secrets(&self, path: impl AsRef<Path>) {
        self.folder.may_hold_secrets(path);
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The plan for these servers, with more variables in the environment.
    pub(crate) fn plan_with(&self, servers: &Value, vars: &[(&str, &str)]) -> Plan {
        let config = json!({ "mcpServers": servers }).to_string();
        let flags = Flags {
            mcp_config: vec![config],
            ..Flags::default()
        };
        self.plan_of(&flags, vars)
    }

    /// The plan of whatever the settings hold, with these flags and variables.
    pub(crate) fn plan_of(&self, flags: &Flags, vars: &[(&str, &str)]) -> Plan {
        let home = self.path().join("home");
        let work = home.join("work");
        std::fs::create_dir_all(&work).expect("a working directory");
        let mut environment = BTreeMap::from([
            ("HOME".to_owned(), home.display().to_string()),
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            // No server may get it, and nothing may say it.
            (
                marked::DEVELOPERS.to_owned(),
                marked::DEVELOPERS_SECRET.to_owned(),
            ),
        ]);
        environment.extend(
            vars.iter()
                .map(|(name, value)| ((*name).into(), (*value).into())),
        );
        let environment =
            Environment::new(environment, work).with_system_dir(self.path().join("system"));
        toolway_config::plan(&environment, flags)
    }

    pub(crate) fn plan(&self, servers: &Value) -> Plan {
        self.plan_with(servers, &[])
    }

    pub(crate) fn options(&self) -> HostOptions {
        HostOptions {
            output_dir: self.path().join("output"),
            ..HostOptions::default()
        }
    }

    /// A host of these in-process servers alone.
    pub(crate) fn host<const N: usize>(&self, servers: [(&str, InProcessServer); N]) -> Host {
        self.host_of(
            servers
                .into_iter()
                .map(|(name, server)| (name.to_owned(), server)),
        )
    }

    pub(crate) fn host_of(
        &self,
        servers: impl IntoIterator<Item = (String, InProcessServer)>,
    ) -> Host {
        let in_process = servers
            .into_iter()
            .map(|(server, object)| (name(&server), object))
            .collect();
        Host::start(
            self.plan(&json!({})),
            HostOptions {
                in_process,
                ..self.options()
            },
        )
    }
}

pub(crate) fn name(text: &str) -> ServerName {
    ServerName::new(text).expect("a name")
}

/// The answer of a scripted server to one request.
pub(crate) enum Reply {
    Result(Value),
    Error(i64),
    Silence,
    Gone,
}

/// A server that answers each message by this function, which is also told of notifications.
pub(crate) fn scripted<F>(script: F) -> InProcessServer
where
    F: Fn(&Value, &Speaker) -> Reply + Send + Sync + 'static,
{
    let script = Arc::new(script);
    Arc::new(move |end| {
        let script = Arc::clone(&script);
        Box::pin(async move {
            let ServerEnd {
                mut incoming,
                outgoing,
            } = end;
            let speaker = Speaker(outgoing);
            while let Some(bytes) = incoming.recv().await {
                let message: Value = serde_json::from_slice(&bytes).expect("the host sends JSON");
                let id = &message["id"];
                match script(&message, &speaker) {
                    Reply::Result(result) => {
                        speaker.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
                    }
                    Reply::Error(code) => {
                        let error = json!({ "code": code, "message": "no" });
                        speaker.say(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
                    }
                    Reply::Silence => {}
                    Reply::Gone => return,
                }
            }
        })
    })
}

/// The server's voice.
#[derive(Clone)]
pub(crate) struct Speaker(tokio::sync::mpsc::Sender<Bytes>);

impl Speaker {
    pub(crate) fn say(&self, message: &Value) {
        self.0
            .try_send(message.to_string().into())
            .expect("the host reads");
    }
}

/// The answers of a plain legacy server with the tools `echo` and `mute`; a base for scripts.
pub(crate) fn legacy(message: &Value) -> Reply {
    match message["method"].as_str() {
        Some("initialize") => Reply::Result(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": { "listChanged": true } },
            "serverInfo": { "name": "legacy", "version": "1" },
        })),
        Some("tools/list") => Reply::Result(json!({ "tools": [tool("echo"), tool("mute")] })),
        Some("tools/call") => call(message),
        Some(method) if method.starts_with("notifications/") => Reply::Silence,
        _ => Reply::Error(-32601),
    }
}

/// The answers of a plain modern server.
pub(crate) fn modern(message: &Value) -> Reply {
    if message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] != "2026-07-28" {
        return match message["method"].as_str() {
            Some(method) if method.starts_with("notifications/") => Reply::Silence,
            _ => Reply::Error(-32602),
        };
    }
    match message["method"].as_str() {
        Some("server/discover") => Reply::Result(json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} },
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "modern", "version": "2" } },
        })),
        Some("tools/list") => Reply::Result(json!({
            "resultType": "complete", "tools": [tool("echo")], "ttlMs": 0, "cacheScope": "private",
        })),
        Some("tools/call") => call(message),
        _ => Reply::Error(-32601),
    }
}

fn call(message: &Value) -> Reply {
    match message["params"]["name"].as_str() {
        Some("echo") => {
            let text = message["params"]["arguments"]["text"]
                .as_str()
                .unwrap_or("nothing");
            Reply::Result(json!({ "content": [{ "type": "text", "text": text }] }))
        }
        Some("mute") => Reply::Silence,
        _ => Reply::Error(-32602),
    }
}

pub(crate) fn tool(name: &str) -> Value {
    json!({
        "name": name,
        "description": format!("the tool {name}"),
        "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } },
    })
}

pub(crate) fn legacy_server() -> InProcessServer {
    scripted(|message, _| legacy(message))
}

pub(crate) fn modern_server() -> InProcessServer {
    scripted(|message, _| modern(message))
}

/// Reads everything and never answers.
pub(crate) fn hung_server() -> InProcessServer {
    scripted(|_, _| Reply::Silence)
}

pub(crate) fn request(server: &str, tool: &str, text: &str) -> ToolRequest {
    let arguments = Map::from_iter([("text".to_owned(), Value::from(text))]);
    ToolRequest::new(ToolTarget::Key(ToolKey::new(name(server), tool)), arguments)
}

pub(crate) async fn echo(host: &Host, server: &str, text: &str) -> Result<ToolOutcome, CallError> {
    host.call(
        request(server, "echo", text),
        CallOptions::new(Consent::Typed),
    )
    .await
}

/// The text of an answer's first block.
pub(crate) fn text_of(outcome: &ToolOutcome) -> String {
    let raw: Value = serde_json::from_str(outcome.raw.get()).expect("JSON");
    raw["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

pub(crate) fn shown(host: &Host, server: &str) -> ServerSnapshot {
    host.snapshot()
        .server(server)
        .expect("a known server")
        .clone()
}

pub(crate) fn facts(host: &Host, server: &str) -> ServerFacts {
    match shown(host, server).state {
        ConnectionState::Connected(facts) => *facts,
        state => panic!("`{server}` is {state:?}"),
    }
}

pub(crate) fn failure(host: &Host, server: &str) -> Failure {
    match shown(host, server).state {
        ConnectionState::Failed(failure) => failure,
        state => panic!("`{server}` is {state:?}"),
    }
}
