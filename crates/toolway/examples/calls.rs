//! Times calls of one tool over a connection inside this program: bare, as the session sends
//! them, and through the whole pipeline, with and without the audit.
//!
//! `cargo run --release -p toolway --features measure --example calls -- [REPETITIONS] [CALLS]`: prints one JSON
//! object with the nanoseconds of every repetition. `cargo xtask bench calls` makes a table of it.
//! With `bare`, `pipeline` or `audited` as a third word it makes only these calls and times nothing: for a
//! profiler.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measurement: it prints, and ends when it cannot measure"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};
use toolway::config::{Environment, Flags, Plan, plan};
use toolway::route::{AnswerTimeout, RequestOptions, Route};
use toolway::types::ServerName;
use toolway::{
    Audit, CallOptions, Clock, ClockReading, Consent, Host, HostOptions, InProcessServer,
    ServerEnd, ToolRequest, ToolTarget,
};

/// How many tools the server offers.
const TOOLS: usize = 50;
/// Repetitions that are thrown away.
const WARM_UP: usize = 3;
const SERVER: &str = "bench";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut words = std::env::args().skip(1);
    let only = std::env::args().nth(3);
    let mut number = |default: usize| {
        let word = words.next();
        word.map_or(default, |word| word.parse().expect("a number"))
    };
    let (repetitions, calls) = (number(60), number(400));
    let home = tempfile::tempdir().expect("a temporary directory");
    let plain = start(home.path(), None).await;
    let audit = Audit::in_directory(home.path().join("audit"));
    let audited = start(home.path(), Some(audit)).await;
    let server = ServerName::new(SERVER).expect("a name");
    let snapshot = plain.snapshot();
    let route = snapshot
        .route_unpermitted(&server)
        .expect("a connected server");
    if let Some(only) = only {
        for _ in 0..repetitions {
            match only.as_str() {
                "bare" => bare(&*route, calls).await,
                "audited" => piped(&audited, calls).await,
                _ => piped(&plain, calls).await,
            }
        }
        return;
    }
    let mut times: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    // One after the other: an audit is still being written when its calls have returned, and would
    // slow whoever comes next.
    for (host, of_host, of_floor) in [
        (&plain, "pipeline", "bare"),
        (&audited, "audited", "bare beside audited"),
    ] {
        for repetition in 0..WARM_UP + repetitions {
            // Who goes first changes: whoever follows another finds its caches.
            for place in 0..2 {
                let begun = Instant::now();
                let name = if (place + repetition) % 2 == 0 {
                    bare(&*route, calls).await;
                    of_floor
                } else {
                    piped(host, calls).await;
                    of_host
                };
                let taken = begun.elapsed().as_nanos() / calls.max(1) as u128;
                if repetition >= WARM_UP {
                    let taken = u64::try_from(taken).unwrap_or(u64::MAX);
                    times.entry(name).or_default().push(taken);
                }
            }
        }
    }
    println!("{}", json!({ "calls": calls, "nanoseconds": times }));
    drop((route, snapshot));
    plain.shutdown().await;
    audited.shutdown().await;
}

/// What the session does by itself: the same bytes out, the same bytes back, unread.
async fn bare(route: &dyn Route, calls: usize) {
    for number in 0..calls {
        let params = Params {
            name: "tool_7",
            arguments: &arguments(number),
        };
        let params = to_raw_value(&params).expect("JSON");
        let timeout = route.timeout().unwrap_or(Duration::from_mins(1));
        let mut options = RequestOptions::unpermitted(timeout);
        options.idle = route.usual_idle();
        options.answer_timeout = AnswerTimeout::ByChannel;
        let answer = route.request("tools/call", params, options).await;
        assert!(answer.expect("an answer").get().contains("done"));
    }
}

/// What is sent, borrowed: to make a value of it would cost more than to send it.
#[derive(Serialize)]
struct Params<'a> {
    name: &'a str,
    arguments: &'a Map<String, Value>,
}

async fn piped(host: &Host, calls: usize) {
    let name = format!("mcp__{SERVER}__tool_7");
    for number in 0..calls {
        let request = ToolRequest::new(ToolTarget::Exposed(name.clone()), arguments(number));
        // A rule has to allow it: nobody could be asked.
        let options = CallOptions::new(Consent::Prompt);
        let outcome = host.call(request, options).await.expect("an answer");
        assert!(!outcome.is_error);
    }
}

fn arguments(number: usize) -> Map<String, Value> {
    let arguments = json!({ "path": "/tmp/notes.txt", "line": number, "deep": { "on": true } });
    arguments.as_object().cloned().expect("an object")
}

/// A clock that stands: nothing sleeps here, and the system's own is read in a way that programs
/// which count instructions do not bear.
struct Still;

impl Clock for Still {
    fn read(&self) -> ClockReading {
        ClockReading {
            boot: Duration::ZERO,
            awake: Duration::ZERO,
        }
    }
}

async fn start(home: &Path, audit: Option<Audit>) -> Host {
    let options = HostOptions {
        in_process: vec![(ServerName::new(SERVER).expect("a name"), server())],
        output_dir: home.join("output"),
        clock: Arc::new(Still),
        audit,
        ..HostOptions::default()
    };
    let host = Host::start(rules(home), options);
    host.settled().await;
    assert_eq!(host.snapshot().catalog.tools().count(), TOOLS);
    host
}

/// A handful of rules, of which the last one allows the call.
fn rules(home: &Path) -> Plan {
    let settings = home.join(".config/toolway/settings.json");
    std::fs::create_dir_all(settings.parent().expect("a folder")).expect("a folder");
    let text = json!({ "permissions": {
        "deny": ["mcp__prod__*", "mcp__bench__tool_9"],
        "ask": ["mcp__mail__*"],
        "allow": ["mcp__files__read", "mcp__git__*", "mcp__bench__*"],
    } });
    std::fs::write(settings, text.to_string()).expect("settings");
    let variables = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
    let environment =
        Environment::new(variables, home.to_owned()).with_system_dir(home.join("system"));
    plan(&environment, &Flags::default())
}

/// A server that answers at once, with next to no work of its own.
fn server() -> InProcessServer {
    Arc::new(|end| {
        Box::pin(async move {
            let ServerEnd {
                mut incoming,
                outgoing,
            } = end;
            while let Some(bytes) = incoming.recv().await {
                let message: Value = serde_json::from_slice(&bytes).expect("JSON");
                let Some(id) = message.get("id") else {
                    continue;
                };
                let result = match message["method"].as_str() {
                    Some("initialize") => json!({
                        "protocolVersion": "2025-11-25",
                        "capabilities": { "tools": {} },
                        "serverInfo": { "name": SERVER, "version": "1" },
                    }),
                    Some("tools/list") => json!({ "tools": tools() }),
                    Some("tools/call") => {
                        json!({ "content": [{ "type": "text", "text": "done" }] })
                    }
                    _ => {
                        let error = json!({ "code": -32601, "message": "no" });
                        let answer = json!({ "jsonrpc": "2.0", "id": id, "error": error });
                        let _ = outgoing.send(answer.to_string().into()).await;
                        continue;
                    }
                };
                let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
                if outgoing.send(answer.to_string().into()).await.is_err() {
                    return;
                }
            }
        })
    })
}

fn tools() -> Vec<Value> {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": { "type": "string", "minLength": 1 },
            "line": { "type": "integer", "minimum": 0 },
            "deep": { "type": "object", "properties": { "on": { "type": "boolean" } } },
        },
        "required": ["path"],
    });
    (0..TOOLS)
        .map(|number| {
            json!({ "name": format!("tool_{number}"), "description": "does it",
                "inputSchema": schema })
        })
        .collect()
}
