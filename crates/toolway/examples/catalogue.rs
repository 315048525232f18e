//! Times what a change of one server costs: alone with its ten tools, and beside a hundred servers
//! with fifty tools each.
//!
//! `cargo run --release -p toolway --example catalogue -- [REPETITIONS] [CHANGES]`: prints one JSON
//! object with the nanoseconds of every repetition. `cargo xtask bench catalogue` makes a table of
//! it.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measurement: it prints, and ends when it cannot measure"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use toolway::config::{Environment, Flags, Plan, plan};
use toolway::types::{ConnectionState, ServerName};
use toolway::{
    CallOptions, Clock, ClockReading, Consent, Host, HostOptions, InProcessServer, ServerEnd,
    ToolRequest, ToolTarget,
};

/// How many servers stand beside the one that changes, and how many tools each of them has.
const OTHERS: usize = 100;
const TOOLS_OF_OTHERS: usize = 50;
/// How many the one that changes has.
const TOOLS: usize = 10;
/// Repetitions that are thrown away.
const WARM_UP: usize = 3;
const CHANGING: &str = "changing";

#[tokio::main(flavor = "current_thread")]
#[expect(
    clippy::disallowed_methods,
    reason = "the runtime looks at its own future last, which would add the work of others"
)]
async fn main() {
    let mut words = std::env::args().skip(1);
    let mut number = |default: usize| {
        let word = words.next();
        word.map_or(default, |word| word.parse().expect("a number"))
    };
    let (repetitions, changes) = (number(60), number(50));
    let measuring = tokio::spawn(measure(repetitions, changes));
    measuring.await.expect("all was measured");
}

async fn measure(repetitions: usize, changes: usize) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let alone = start(home.path(), 0).await;
    let among = start(home.path(), OTHERS).await;
    let mut times: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for repetition in 0..WARM_UP + repetitions {
        let mut keep = |name, taken: Duration| {
            if repetition >= WARM_UP {
                let taken = u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX);
                times.entry(name).or_default().push(taken);
            }
        };
        // Who goes first changes: whoever follows another finds its caches.
        for place in 0..2 {
            if (place + repetition) % 2 == 0 {
                let taken = change(&alone, changes).await;
                keep("change alone", taken.published);
                keep("reconnect alone", taken.connected);
            } else {
                let taken = change(&among, changes).await;
                keep("change among many", taken.published);
                keep("reconnect among many", taken.connected);
            }
        }
        let mut calls = (Duration::ZERO, Duration::ZERO);
        for _ in 0..changes {
            // The same work lies before both calls, so that both find the same caches; only the
            // first one's is done by a host whose catalogue the call does not use.
            reconnect(&alone).await;
            calls.0 += call(&among).await;
            reconnect(&among).await;
            calls.1 += call(&among).await;
        }
        keep("call before", calls.0);
        keep("call after", calls.1);
    }
    println!("{}", json!({ "changes": changes, "nanoseconds": times }));
    alone.shutdown().await;
    among.shutdown().await;
}

/// What these changes took.
#[derive(Default)]
struct Taken {
    /// Until the first snapshot that shows it.
    published: Duration,
    /// Until the server was connected again.
    connected: Duration,
}

/// Has the server connected anew so many times.
async fn change(host: &Host, times: usize) -> Taken {
    let mut taken = Taken::default();
    for _ in 0..times {
        let mut snapshots = host.watch();
        snapshots.mark_unchanged();
        let begun = Instant::now();
        let published = async {
            snapshots.changed().await.expect("a snapshot");
            begun.elapsed()
        };
        let (state, published) = tokio::join!(host.reconnect(CHANGING), published);
        assert!(matches!(state, Ok(ConnectionState::Connected(_))));
        taken.published += published;
        taken.connected += begun.elapsed();
    }
    taken
}

async fn reconnect(host: &Host) {
    let state = host.reconnect(CHANGING).await;
    assert!(matches!(state, Ok(ConnectionState::Connected(_))));
}

/// Calls a tool of a server that has not changed.
async fn call(host: &Host) -> Duration {
    let arguments = json!({ "path": "/tmp/notes.txt", "line": 7, "deep": { "on": true } });
    let request = ToolRequest::new(
        ToolTarget::Exposed("mcp__other50__tool_7".to_owned()),
        arguments.as_object().cloned().unwrap_or_else(Map::new),
    );
    let begun = Instant::now();
    // A rule has to allow it: nobody could be asked.
    let outcome = host.call(request, CallOptions::new(Consent::Prompt)).await;
    assert!(!outcome.expect("an answer").is_error);
    begun.elapsed()
}

/// A clock that stands: nothing sleeps here.
struct Still;

impl Clock for Still {
    fn read(&self) -> ClockReading {
        ClockReading {
            boot: Duration::ZERO,
            awake: Duration::ZERO,
        }
    }
}

async fn start(home: &Path, others: usize) -> Host {
    let name = |text: &str| ServerName::new(text).expect("a name");
    let others: Vec<ServerName> = (0..others).map(|it| name(&format!("other{it}"))).collect();
    let mut in_process = vec![(name(CHANGING), server(TOOLS))];
    in_process.extend(
        others
            .iter()
            .map(|it| (it.clone(), server(TOOLS_OF_OTHERS))),
    );
    let options = HostOptions {
        in_process,
        output_dir: home.join("output"),
        clock: Arc::new(Still),
        ..HostOptions::default()
    };
    let host = Host::start(rules(home), options);
    host.settled().await;
    let catalog = Arc::clone(&host.snapshot().catalog);
    assert_eq!(catalog.tools_of(&name(CHANGING)).len(), TOOLS);
    for other in &others {
        assert_eq!(catalog.tools_of(other).len(), TOOLS_OF_OTHERS);
    }
    host
}

fn rules(home: &Path) -> Plan {
    let settings = home.join(".config/toolway/settings.json");
    std::fs::create_dir_all(settings.parent().expect("a folder")).expect("a folder");
    let text = json!({ "permissions": { "allow": ["mcp__other50__*"] } });
    std::fs::write(settings, text.to_string()).expect("settings");
    let variables = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
    let environment =
        Environment::new(variables, home.to_owned()).with_system_dir(home.join("system"));
    plan(&environment, &Flags::default())
}

/// A server that answers at once, with next to no work of its own.
fn server(tools: usize) -> InProcessServer {
    let listed = json!({ "tools": (0..tools).map(tool).collect::<Vec<_>>() });
    Arc::new(move |end| {
        let listed = listed.clone();
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
                        "serverInfo": { "name": "bench", "version": "1" },
                        "instructions": "Read before you write.",
                    }),
                    Some("tools/list") => listed.clone(),
                    Some("tools/call") => {
                        json!({ "content": [{ "type": "text", "text": "done" }] })
                    }
                    _ => Value::Null,
                };
                let answer = if result.is_null() {
                    let error = json!({ "code": -32601, "message": "no" });
                    json!({ "jsonrpc": "2.0", "id": id, "error": error })
                } else {
                    json!({ "jsonrpc": "2.0", "id": id, "result": result })
                };
                if outgoing.send(answer.to_string().into()).await.is_err() {
                    return;
                }
            }
        })
    })
}

fn tool(number: usize) -> Value {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": { "type": "string", "minLength": 1 },
            "line": { "type": "integer", "minimum": 0 },
            "deep": { "type": "object", "properties": { "on": { "type": "boolean" } } },
        },
        "required": ["path"],
    });
    json!({ "name": format!("tool_{number}"), "description": "does it", "inputSchema": schema })
}
