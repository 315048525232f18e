//! Connects one server again and again and prints what this process uses meanwhile.
//!
//! `cargo run -p toolway --example reconnects -- [TIMES]`: a thousand times over each transport
//! unless told otherwise. Flat columns are the point; REL-03 tests a smaller number.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measurement: it prints, and ends when it cannot measure"
)]

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};
use toolway::{Host, HostOptions};
use toolway_config::{Environment, Flags};
use toolway_testkit::{Canary, Script, ScriptedServer, Usage, eventually};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let times = std::env::args()
        .nth(1)
        .map_or(1000, |times| times.parse().expect("how many times"));
    let server = ScriptedServer::new(Script::default());
    let canary = Canary::new();
    let stdio = server.entry_with_env([(canary.name(), canary.value())]);
    measure("stdio", stdio, times, &canary).await;
    for (way, listening) in [
        ("http", server.serve_http()),
        ("sse", server.serve_sse()),
        ("ws", server.serve_ws()),
    ] {
        measure(way, listening.entry(), times, &canary).await;
    }
}

async fn measure(way: &str, entry: Value, times: usize, canary: &Canary) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let vars = BTreeMap::from([
        ("HOME".to_owned(), home.path().display().to_string()),
        ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
    ]);
    let environment =
        Environment::new(vars, home.path().to_owned()).with_system_dir(home.path().join("system"));
    let config = json!({ "mcpServers": { "again": entry } }).to_string();
    let flags = Flags {
        mcp_config: vec![config],
        ..Flags::default()
    };
    let plan = toolway_config::plan(&environment, &flags);
    let host = Host::start(plan, HostOptions::default());
    host.settled().await;
    println!("{way}: reconnects, seconds, KiB resident, descriptors, children, marked processes");
    let started = Instant::now();
    for time in 0..=times {
        let state = host.reconnect("again").await.expect("a known server");
        assert_eq!(state.as_str(), "connected", "{state:?}");
        if time % (times / 10).max(1) == 0 {
            let usage = Usage::take();
            println!(
                "{time:>6} {:>8.1} {:>8} {:>4} {:>4} {:>4}",
                started.elapsed().as_secs_f64(),
                usage.resident,
                usage.descriptors,
                usage.children,
                canary.processes().len(),
            );
        }
    }
    host.shutdown().await;
    eventually(|| match canary.processes() {
        left if left.is_empty() => Ok(()),
        left => Err(format!("left behind: {left:?}")),
    })
    .await;
    let usage = Usage::take();
    println!(
        "  after {:>8.1} {:>8} {:>4} {:>4}    0",
        started.elapsed().as_secs_f64(),
        usage.resident,
        usage.descriptors,
        usage.children
    );
}
