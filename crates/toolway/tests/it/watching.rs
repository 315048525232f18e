//! A host that follows its files while they change, and what it writes down.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolway::journal::{JournalLineKind, read_last};
use toolway::watch::request_reconnect;
use toolway::{ConfigWatch, Host, HostOptions, Journal, ServerSnapshot, Watched};
use toolway_config::{Environment, Flags, Planner};
use toolway_types::ConnectionState;

use crate::support::*;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.py");

/// A test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

fn entry(mark: &str) -> Value {
    json!({ "command": "python3", "args": [SCRIPT], "env": { "MARK": mark } })
}

/// A home with a settings file that a host follows.
struct Stage {
    home: Home,
    planner: Arc<Planner>,
}

impl Stage {
    fn new(servers: &Value) -> Self {
        let home = Home::new();
        let root = home.path().canonicalize().expect("a home");
        let work = root.join("home/work");
        std::fs::create_dir_all(&work).expect("a working directory");
        let vars = BTreeMap::from([
            ("HOME".to_owned(), root.join("home").display().to_string()),
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ]);
        let environment = Environment::new(vars, work).with_system_dir(root.join("system"));
        let planner = Arc::new(Planner::new(environment, Flags::default()));
        let stage = Self { home, planner };
        stage.configure(servers);
        stage
    }

    fn settings(&self) -> PathBuf {
        let folder = self.home.path().join("home/.config/toolway");
        std::fs::create_dir_all(&folder).expect("a config home");
        folder.join("settings.json")
    }

    fn configure(&self, servers: &Value) {
        self.write(&json!({ "mcpServers": servers }).to_string());
    }

    fn write(&self, text: &str) {
        std::fs::write(self.settings(), text).expect("settings can be written");
    }

    fn reconnects(&self) -> PathBuf {
        self.home.path().join("state/reconnect")
    }

    fn start(&self) -> (Host, ConfigWatch) {
        let planner = Arc::clone(&self.planner);
        let watch = ConfigWatch::start(Watched {
            paths: Arc::new(move || planner.watched_paths()),
            reconnects: Some(self.reconnects()),
        });
        let planner = Arc::clone(&self.planner);
        let options = HostOptions {
            replan: Some(Arc::new(move || planner.plan())),
            journal: Some(Journal::in_directory(self.home.path().join("logs"))),
            ..self.home.options()
        };
        (Host::start(self.planner.plan(), options), watch)
    }
}

/// Waits until the servers are these, all connected.
async fn connected(host: &Host, servers: &[&str]) {
    let mut snapshots = host.watch();
    let there = snapshots.wait_for(|snapshot| {
        let names: Vec<&str> = snapshot.servers.iter().map(|it| it.name.as_str()).collect();
        let connected = |state: &ConnectionState| matches!(state, ConnectionState::Connected(_));
        names == servers && snapshot.servers.iter().all(|it| connected(&it.state))
    });
    let there = tokio::time::timeout(PATIENCE, there).await;
    assert!(there.is_ok(), "{:?}", host.snapshot());
}

#[tokio::test]
async fn servers_follow_the_file_and_stay_while_it_is_broken() {
    let stage = Stage::new(&json!({ "one": entry("a") }));
    let (host, watch) = stage.start();
    let story = async {
        connected(&host, &["one"]).await;
        stage.configure(&json!({ "one": entry("a"), "two": entry("b") }));
        connected(&host, &["one", "two"]).await;
        // Broken, then mended with another change: what was there in between is still there.
        stage.write("{\"mcpServers\": {");
        stage.configure(&json!({ "two": entry("b") }));
        connected(&host, &["two"]).await;
        assert!(echo(&host, "two", "still").await.is_ok());
    };
    tokio::select! {
        () = story => {}
        () = watch.follow(&host) => panic!("watching never ends by itself"),
    }
    host.shutdown().await;
}

#[tokio::test]
async fn somebody_else_can_have_a_server_connected_anew() {
    let stage = Stage::new(&json!({ "one": entry("a"), "two": entry("b") }));
    let (host, watch) = stage.start();
    let story = async {
        connected(&host, &["one", "two"]).await;
        let mut snapshots = host.watch();
        snapshots.mark_unchanged();
        request_reconnect(&stage.reconnects(), &name("stranger")).expect("a stamp");
        request_reconnect(&stage.reconnects(), &name("one")).expect("a stamp");
        let pending = snapshots.wait_for(|snapshot| {
            let pending = |server: &str| {
                snapshot
                    .server(server)
                    .is_some_and(ServerSnapshot::is_pending)
            };
            assert!(!pending("two"), "nobody asked for that");
            pending("one")
        });
        assert!(tokio::time::timeout(PATIENCE, pending).await.is_ok());
        connected(&host, &["one", "two"]).await;
    };
    tokio::select! {
        () = story => {}
        () = watch.follow(&host) => panic!("watching never ends by itself"),
    }
    host.shutdown().await;
}

#[tokio::test]
async fn rel_31_a_file_toggled_a_hundred_times_a_second_fails_no_call() {
    let stage = Stage::new(&json!({ "steady": entry("a"), "moving": entry("0") }));
    let (host, watch) = stage.start();
    let done = AtomicBool::new(false);
    let toggle = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(10));
        for round in 0..300_u32 {
            ticks.tick().await;
            let mut servers =
                json!({ "steady": entry("a"), "moving": entry(&(round % 2).to_string()) });
            if round % 3 == 0 {
                servers["passing"] = entry("c");
            }
            stage.configure(&servers);
        }
        stage.configure(&json!({ "steady": entry("a"), "moving": entry("last") }));
        done.store(true, Ordering::Relaxed);
    };
    let calls = |server: &'static str| {
        let (host, done) = (&host, &done);
        async move {
            let mut count = 0_u32;
            while !done.load(Ordering::Relaxed) {
                let text = format!("{server} {count}");
                let outcome = echo(host, server, &text).await;
                assert_eq!(text_of(&outcome.expect("an answer")), text);
                count += 1;
            }
            count
        }
    };
    let logs = stage.home.path().join("logs");
    let times_connected = |server: &str| {
        let read = read_last(&logs, &(&name(server)).into(), usize::MAX, |kind| {
            kind == JournalLineKind::Note
        });
        let Some((lines, _)) = read.expect("a readable log") else {
            return 0;
        };
        let texts = lines.iter().map(|line| &line.text);
        texts
            .filter(|text| text.contains("connected") && !text.contains("not connected"))
            .count()
    };
    let story = async {
        connected(&host, &["moving", "steady"]).await;
        let (steady, moving, ()) = tokio::join!(calls("steady"), calls("moving"), toggle);
        assert!(steady > 100 && moving > 10, "{steady} and {moving} calls");
        // A busy machine may be behind; in the end it has noticed.
        while times_connected("moving") < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        connected(&host, &["moving", "steady"]).await;
    };
    tokio::select! {
        () = story => {}
        () = watch.follow(&host) => panic!("watching never ends by itself"),
    }
    host.shutdown().await;
    assert_eq!(times_connected("steady"), 1, "it was never touched");
}

/// What the trace costs, as a ratio in one run; run by hand with `--run-ignored`.
#[tokio::test]
#[ignore = "a measurement, not a test"]
async fn measure_what_the_trace_of_messages_costs() {
    let home = Home::new();
    let host = |journal: Option<Journal>| {
        let options = HostOptions {
            in_process: vec![(name("one"), legacy_server())],
            journal,
            ..home.options()
        };
        Host::start(home.plan(&json!({})), options)
    };
    let directory = |part: &str| home.path().join(part);
    let variants = [
        ("nothing", None),
        (
            "notes",
            Some(Journal::in_directory(directory("notes")).without_messages()),
        ),
        (
            "messages",
            Some(Journal::in_directory(directory("messages"))),
        ),
    ];
    for round in 0..3 {
        for (label, journal) in &variants {
            let host = host(journal.clone());
            host.settled().await;
            let (begun, busy) = (Instant::now(), processor_time());
            for _ in 0..2000 {
                assert!(echo(&host, "one", "hello").await.is_ok());
            }
            let (passed, busy) = (
                begun.elapsed() / 2000,
                processor_time().saturating_sub(busy) / 2000,
            );
            eprintln!("{round} {label}: {passed:?} a call, {busy:?} of processor time");
            host.shutdown().await;
        }
    }
}

/// What all threads of this process have used. Waiting costs nothing here, so it tells more than
/// a clock on a machine that others use as well.
fn processor_time() -> Duration {
    let nanos = std::fs::read_dir("/proc/self/task")
        .expect("threads")
        .filter_map(|task| {
            let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        })
        .sum();
    Duration::from_nanos(nanos)
}
