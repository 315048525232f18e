//! Real servers that really break, over every transport. After each test: no process, no
//! descriptor and no zombie is left, and every request had exactly one outcome.

mod limits;
mod mix;
mod reconnects;
mod remote;
mod scale;
mod sudden;

use std::time::Duration;

use serde_json::{Map, Value, json};
use toolway::{
    CallError, CallFault, CallOptions, Consent, Host, RetryFirst, ToolOutcome, ToolRequest,
    ToolTarget,
};
use toolway_testkit::{
    LeakCheck, ListeningServer, ListeningTransport, RequestLedger, Script, ScriptedServer,
    eventually,
};
use toolway_types::{ConnectionState, ToolKey};

use crate::support::{Home, echo, name, shown, text_of};

/// A server and how it is reached.
enum Peer {
    /// A process that the host starts.
    Stdio(ScriptedServer),
    /// One that listens.
    Listening(ListeningServer),
}

impl Peer {
    fn stdio(script: Script) -> Self {
        Peer::Stdio(ScriptedServer::new(script))
    }

    fn listening(script: Script, way: ListeningTransport) -> Self {
        Peer::Listening(ListeningServer::start(ScriptedServer::new(script), way))
    }

    fn entry(&self, check: &LeakCheck) -> Value {
        match self {
            Peer::Stdio(server) => server.entry_with_env([check.env()]),
            Peer::Listening(server) => server.entry(),
        }
    }

    /// Ends the server with SIGKILL, and lets one that listens come back.
    fn kill(&mut self, check: &LeakCheck) {
        match self {
            Peer::Stdio(_) => kill_marked(check),
            Peer::Listening(server) => server.restart(),
        }
    }
}

/// Every way to reach a server in turn.
fn peers(script: &Script) -> Vec<(&'static str, Peer)> {
    vec![
        ("stdio", Peer::stdio(script.clone())),
        (
            "http",
            Peer::listening(script.clone(), ListeningTransport::Http),
        ),
        (
            "sse",
            Peer::listening(script.clone(), ListeningTransport::Sse),
        ),
        (
            "ws",
            Peer::listening(script.clone(), ListeningTransport::WebSocket),
        ),
    ]
}

/// SIGKILL to every process of this check.
fn kill_marked(check: &LeakCheck) {
    for process in check.canary().processes() {
        signal(process.pid, rustix::process::Signal::KILL);
    }
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).expect("a process id");
    // It may be gone already.
    let _ = rustix::process::kill_process(pid, signal);
}

/// A host of these servers that also tries first connections again.
fn host(home: &Home, servers: &Value) -> Host {
    host_with(home, servers, &[])
}

fn host_with(home: &Home, servers: &Value, vars: &[(&str, &str)]) -> Host {
    let options = toolway::HostOptions {
        retry_first: RetryFirst::Backoff,
        ..home.options()
    };
    Host::start(home.plan_with(servers, vars), options)
}

/// The script of a server that can be told apart, and knows every tool.
fn script(name: &str) -> Script {
    Script {
        name: name.to_owned(),
        drama: true,
        ..Script::default()
    }
}

fn ask(server: &str, tool: &str, arguments: &Value) -> ToolRequest {
    let arguments = arguments.as_object().cloned().unwrap_or_else(Map::new);
    ToolRequest::new(ToolTarget::Key(ToolKey::new(name(server), tool)), arguments)
}

async fn call(
    host: &Host,
    server: &str,
    tool: &str,
    arguments: Value,
) -> Result<ToolOutcome, CallError> {
    let options = CallOptions::new(Consent::Typed);
    host.call(ask(server, tool, &arguments), options).await
}

/// The same, for so long at most.
async fn call_within(
    host: &Host,
    limit: Duration,
    server: &str,
    tool: &str,
    arguments: Value,
) -> Result<ToolOutcome, CallError> {
    let options = CallOptions {
        timeout: Some(limit),
        ..CallOptions::new(Consent::Typed)
    };
    host.call(ask(server, tool, &arguments), options).await
}

/// A word for how a call ended.
fn word(outcome: &Result<ToolOutcome, CallError>) -> &'static str {
    match outcome {
        Ok(_) => "answered",
        Err(CallError::Failed(_, CallFault::Transport { .. })) => "transport",
        Err(CallError::Failed(_, CallFault::TimedOut { .. })) => "timed out",
        Err(CallError::Failed(_, CallFault::Cancelled)) => "cancelled",
        Err(CallError::Unavailable { .. }) => "unavailable",
        Err(CallError::Failed(_, CallFault::Protocol { .. })) => "protocol",
        Err(CallError::Failed(_, CallFault::Malformed(_))) => "malformed",
        Err(CallError::Unknown { .. }) => "unknown",
        Err(_) => "other",
    }
}

/// Waits until the server is connected, by itself.
async fn connected(host: &Host, server: &str) {
    let mut snapshots = host.watch();
    let connected = snapshots.wait_for(|snapshot| {
        snapshot
            .server(server)
            .is_some_and(|server| matches!(server.state, ConnectionState::Connected(_)))
    });
    tokio::time::timeout(Duration::from_secs(20), connected)
        .await
        .unwrap_or_else(|_| {
            panic!(
                "`{server}` did not come back: {:?}",
                shown(host, server).state
            )
        })
        .expect("the host runs");
}

/// The server answers with what was said.
async fn echoes(host: &Host, server: &str) {
    let answer = echo(host, server, "hällo").await;
    assert_eq!(text_of(&answer.expect("an answer")), "hällo", "{server}");
}

/// The server answers again. Calls that were on their way when it broke are not sent twice, so a
/// few may fail first.
async fn recovers(host: &Host, server: &str) {
    let limit = Duration::from_secs(10);
    for _ in 0..5 {
        let outcome = call_within(host, limit, server, "echo", json!({ "text": "again" })).await;
        match outcome {
            Ok(answer) => return assert_eq!(text_of(&answer), "again"),
            Err(CallError::Failed(_, CallFault::Transport { .. } | CallFault::Cancelled)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!(
        "`{server}` does not come back: {:?}",
        shown(host, server).state
    );
}

/// How many calls the server has seen, by its own count.
async fn counted(host: &Host, server: &str) -> u64 {
    let answer = call(host, server, "count", json!({})).await;
    text_of(&answer.expect("an answer"))
        .parse()
        .expect("a number")
}
