//! Child processes that misbehave.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use serde_json::{Value, json};
use toolway_transport::{CloseReason, Event, Limits, OpenError, OpenOptions};
use toolway_types::TransportSpec;
use toolway_wire::Id;

use crate::peer::{Peer, program, python, spec, within_patience};

fn lines(reason: CloseReason) -> Vec<String> {
    let (CloseReason::Exited { stderr, .. } | CloseReason::EndOfStream { stderr }) = reason else {
        panic!("{reason:?}");
    };
    stderr
        .iter()
        .map(|line| line.as_received().to_owned())
        .collect()
}

/// Whether a process is gone, or waits only for its parent to notice.
fn is_gone(pid: &Value) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_none_or(|(_, rest)| rest.starts_with('Z'))
}

async fn until_gone(pid: &Value) {
    within_patience(async {
        while !is_gone(pid) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn rel_05_noise_on_stdout_goes_to_the_log_and_the_connection_stays() {
    let script = r#"
import sys
out = sys.stdout.buffer
ok = lambda n: b'{"jsonrpc":"2.0","id":%d,"result":{}}' % n
out.write(b"Server v1.0 ready\n\x1b[32mgreen\x1b[0m log\n")
out.write(b"\xef\xbb\xbf" + ok(1) + b"\n")
out.write(ok(2) + b"\r\n")
out.write(b"\x00\x00" + ok(3) + b"\x00\n")
out.write(b"loading... " + ok(4) + b"\n")
out.write(b"\xff\xfe broken\n" + b'{"jsonrpc":"2.0","id":5,"result":"\xff"}\n')
out.write(b"\n\n" + b'{"level":"info","msg":"x"}\n')
out.write(b'{"jsonrpc":"2.0","id":6,"res\n')
out.write(ok(7))
"#;
    let mut peer = Peer::open(python(script), Limits::default()).await;
    let mut ids = Vec::new();
    let reason = loop {
        match peer.event().await {
            Event::Message(bytes) => {
                let message: Value = serde_json::from_slice(&bytes).expect("JSON");
                ids.push(message["id"].as_u64().expect("a number"));
            }
            Event::Closed(reason) => break reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ids, [1, 2, 3, 5, 7]);
    assert_eq!(
        lines(reason),
        [
            "[stdout] Server v1.0 ready",
            "[stdout] \u{1b}[32mgreen\u{1b}[0m log",
            r#"[stdout] loading... {"jsonrpc":"2.0","id":4,"result":{}}"#,
            "[stdout] \u{FFFD}\u{FFFD} broken",
            r#"[stdout] {"level":"info","msg":"x"}"#,
            r#"[stdout] {"jsonrpc":"2.0","id":6,"res"#,
        ]
    );
}

#[tokio::test]
async fn rel_06_a_flood_on_stderr_does_not_block_the_answer() {
    let script = r#"
import sys
for _ in range(100): sys.stderr.buffer.write((b"x" * 1023 + b"\n") * 1024)
sys.stderr.write("the last line\n")
sys.stdin.readline()
print('{"jsonrpc":"2.0","id":1,"result":{}}')
"#;
    let mut peer = Peer::open(python(script), Limits::default()).await;
    peer.request(1, "ping", json!({})).await;
    assert_eq!(peer.message().await["id"], 1);
    let stderr = lines(peer.closed().await);
    assert_eq!(stderr.last().map(String::as_str), Some("the last line"));
}

#[tokio::test]
async fn rel_07_a_server_that_never_reads_is_given_up_and_others_are_not_held() {
    let limits = Limits {
        write_stall: Duration::from_millis(300),
        ..Limits::default()
    };
    let deaf = TransportSpec::Stdio(program("sleep", &["1000"]));
    let mut deaf = Peer::open(deaf, limits).await;
    let mut other = Peer::open(TransportSpec::Stdio(program("cat", &[])), Limits::default()).await;
    deaf.request(1, "tools/call", json!("x".repeat(64 * 1024 * 1024)))
        .await;
    other.request(2, "echo", json!({})).await;
    assert_eq!(other.message().await["id"], 2);
    let reason = deaf.closed().await;
    assert!(
        matches!(&reason, CloseReason::Broken(why) if why.contains("has not read")),
        "{reason:?}"
    );
    within_patience(deaf.driver).await.expect("no panic");
}

#[tokio::test]
async fn rel_07_the_end_does_not_wait_for_a_server_that_never_reads() {
    let mut deaf = Peer::open(
        TransportSpec::Stdio(program("sleep", &["1000"])),
        Limits::default(),
    )
    .await;
    deaf.request(1, "tools/call", json!("x".repeat(4 * 1024 * 1024)))
        .await;
    let started = Instant::now();
    let last = deaf.end().await;
    assert!(
        matches!(&last[..], [Event::Closed(CloseReason::Asked)]),
        "{last:?}"
    );
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn rel_11_a_line_over_the_cap_fails_its_call_at_once() {
    let script = r#"
import sys
out = sys.stdout.buffer
piece = b"x" * (1 << 20)
def line(head, count, tail):
    out.write(head)
    for _ in range(count): out.write(piece)
    out.write(tail)
line(b'{"jsonrpc":"2.0","id":1,"result":"', 17, b'"}\n')
line(b'{"jsonrpc":"2.0","result":{"t":"', 1024, b'"},"id":2}\n')
line(b'{"jsonrpc":"2.0","id":3,"result":"', 15, b'"}\n')
sys.stdin.read()
"#;
    let mut peer = Peer::open(python(script), Limits::default()).await;
    for id in [1, 2] {
        match peer.event().await {
            Event::Oversized { id_hint, limit } => {
                assert_eq!((id_hint, limit), (Some(Id::Number(id)), 16 * 1024 * 1024));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(peer.message().await["id"], 3);
    peer.end().await;
}

#[tokio::test]
async fn sec_39_the_child_has_exactly_the_environment_it_was_given() {
    let own = std::fs::read("/proc/self/environ").expect("our environment");
    let canary = b"CARGO_MANIFEST_DIR=";
    assert!(
        own.windows(canary.len()).any(|window| window == canary),
        "no canary to look for"
    );
    let show = TransportSpec::Stdio(program("cat", &["/proc/self/environ"]));
    let mut peer = Peer::open(show, Limits::default()).await;
    assert_eq!(
        lines(peer.closed().await),
        [format!("[stdout] PATH={}", crate::peer::path())]
    );
}

#[tokio::test]
async fn sec_41_the_child_has_only_its_three_pipes() {
    // As if whoever started us had left descriptor 9 (or the next free one) open.
    let file = std::fs::File::open("/dev/null").expect("a file");
    let inherited = fcntl_dupfd_cloexec(&file, 9).expect("a descriptor");
    fcntl_setfd(&inherited, FdFlags::empty()).expect("it is ours");
    let script = r#"
import os, json
mine = os.open("/proc/self/fd", os.O_RDONLY)
fds = sorted(int(n) for n in os.listdir(mine) if int(n) != mine)
own = {fd: os.path.realpath("/proc/self/fd/%d" % fd) for fd in fds if os.path.exists("/proc/self/fd/%d" % fd)}
print(json.dumps({"jsonrpc": "2.0", "method": "fds", "params": sorted(own)}))
"#;
    let mut peer = Peer::open(python(script), Limits::default()).await;
    assert_eq!(peer.message().await["params"], json!([0, 1, 2]));
}

#[tokio::test]
async fn a_server_that_ends_with_its_input_ends_before_it_is_killed() {
    let stubborn = program("sh", &["-c", "trap '' INT TERM; cat"]);
    let mut peer = Peer::open(TransportSpec::Stdio(stubborn), Limits::default()).await;
    peer.request(1, "echo", json!({})).await;
    peer.message().await;
    let started = Instant::now();
    peer.end().await;
    assert!(
        started.elapsed() < Duration::from_millis(590),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn rel_01_a_server_that_ignores_every_request_to_end_is_killed_with_its_children() {
    let script = r#"
import os, signal, json, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child: print(json.dumps({"jsonrpc": "2.0", "method": "up", "params": [os.getpid(), child]}))
while True: time.sleep(1000)
"#;
    let mut peer = Peer::open(python(script), Limits::default()).await;
    let pids = peer.message().await["params"].clone();
    let started = Instant::now();
    let last = peer.end().await;
    let took = started.elapsed();
    assert!(
        matches!(&last[..], [Event::Closed(CloseReason::Asked)]),
        "{last:?}"
    );
    assert!(
        took > Duration::from_millis(590),
        "it was given its time: {took:?}"
    );
    assert!(is_gone(&pids[0]) && is_gone(&pids[1]));
}

#[tokio::test]
async fn rel_01_children_left_behind_are_killed_when_their_leader_ends() {
    let script = r#"
import os, json, time
child = os.fork()
if child: print(json.dumps({"jsonrpc": "2.0", "method": "up", "params": child}))
else: time.sleep(1000)
"#;
    let mut peer = Peer::open(python(script), Limits::default()).await;
    let child = peer.message().await["params"].clone();
    assert!(matches!(peer.closed().await, CloseReason::Exited { .. }));
    within_patience(peer.driver).await.expect("no panic");
    assert!(is_gone(&child));
}

#[tokio::test]
async fn rel_01_dropping_the_driver_kills_the_whole_group() {
    let script = r#"
import os, json, time
child = os.fork()
if child: print(json.dumps({"jsonrpc": "2.0", "method": "up", "params": [os.getpid(), child]}))
time.sleep(1000)
"#;
    let mut peer = Peer::open(python(script), Limits::default()).await;
    let pids = peer.message().await["params"].clone();
    peer.driver.abort();
    until_gone(&pids[0]).await;
    until_gone(&pids[1]).await;
}

#[tokio::test]
async fn a_server_that_closes_its_output_but_stays_is_ended() {
    let script = r#"
import os, sys, json, time
print(json.dumps({"jsonrpc": "2.0", "method": "up", "params": os.getpid()}))
sys.stderr.write("bye\n"); sys.stderr.flush()
os.close(1); time.sleep(1000)
"#;
    let mut peer = Peer::open(python(script), Limits::default()).await;
    let pid = peer.message().await["params"].clone();
    let reason = peer.closed().await;
    assert!(
        matches!(reason, CloseReason::EndOfStream { .. }),
        "{reason:?}"
    );
    assert_eq!(lines(reason), ["bye"]);
    within_patience(peer.driver).await.expect("no panic");
    assert!(is_gone(&pid));
}

#[tokio::test]
async fn a_server_that_dies_is_reported_with_its_last_words() {
    let script = "import sys; sys.stderr.write('no config\\n'); sys.exit(2)";
    let mut peer = Peer::open(python(script), Limits::default()).await;
    peer.request(1, "initialize", json!({})).await;
    match peer.closed().await {
        CloseReason::Exited { status, stderr } => {
            assert_eq!(status, "exit status: 2");
            assert_eq!(stderr[0].as_received(), "no config");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let options = OpenOptions::default();
    let missing = program("no-such-program-here", &[]);
    let error = toolway_transport::open(&spec(TransportSpec::Stdio(missing)), &options).await;
    assert!(
        matches!(error, Err(OpenError::Spawn { command, .. }) if command == "no-such-program-here")
    );
    let mut elsewhere = program("cat", &[]);
    elsewhere.cwd = Some(PathBuf::from("/no/such/directory"));
    let error = toolway_transport::open(&spec(TransportSpec::Stdio(elsewhere)), &options).await;
    assert!(
        matches!(error, Err(OpenError::Directory(path)) if path.ends_with("no/such/directory"))
    );
}

#[tokio::test]
async fn the_working_directory_is_the_one_that_was_asked_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let real = directory.path().canonicalize().expect("it exists");
    let mut spec = program(
        "sh",
        &[
            "-c",
            r#"printf '{"jsonrpc":"2.0","method":"%s"}\n' "$(pwd -P)""#,
        ],
    );
    spec.cwd = Some(real.clone());
    let mut peer = Peer::open(TransportSpec::Stdio(spec), Limits::default()).await;
    assert_eq!(peer.message().await["method"].as_str(), real.to_str());
}
