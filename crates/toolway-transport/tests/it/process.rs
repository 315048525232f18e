//! Servers as processes, direct children and below a launcher alike: what they are given, how they
//! end, and that nothing of them stays.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use serde_json::{Value, json};
use toolway_testkit::Canary;
use toolway_transport::stdio::launcher::Launcher;
use toolway_transport::{ChannelEvent, ChannelLimits, CloseReason, OpenError, OpenOptions};
use toolway_types::{Secret, StdioSpec, TransportSpec};

use crate::peer::{Peer, program, python, spec, within_patience};
use crate::stdio::lines;

/// How the servers of a test are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Direct,
    Kept,
}

impl Way {
    pub(crate) fn options(self) -> OpenOptions {
        OpenOptions {
            launcher: match self {
                Way::Direct => Launcher::none(),
                Way::Kept => Launcher::program(env!("CARGO_BIN_EXE_toolway-test-launcher").into()),
            },
            ..OpenOptions::default()
        }
    }

    pub(crate) async fn open(self, transport: TransportSpec) -> Peer {
        Peer::open_with(transport, &self.options()).await
    }
}

/// A process that carries a canary, and so does all it starts.
pub(crate) fn marked(spec: StdioSpec, canary: &Canary) -> TransportSpec {
    let mut spec = spec;
    spec.env
        .insert(canary.name().to_owned(), Secret::new(canary.value()));
    TransportSpec::Stdio(spec)
}

/// Waits until no process carries the canary.
pub(crate) async fn until_none(canary: &Canary) {
    within_patience(async {
        while !canary.processes().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Whether a process is gone, or waits only for its parent to notice.
pub(crate) fn is_gone(pid: &Value) -> bool {
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

/// A server that starts, besides itself, the processes its arguments name, says how many there are,
/// and serves until its stdin ends; any request ends it. The others ignore every request to end. A
/// hopper never stays the same process.
const FAMILY: &str = r#"
import os, sys, json, signal, time
ready, told = os.pipe()
def stay():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
    for fd in (0, 1, 2): os.close(fd)
    os.write(told, b"!")
    while True: time.sleep(1000)
for kind in sys.argv[1:]:
    if os.fork() == 0:
        if kind == "child": stay()
        if kind == "group": os.setpgid(0, 0); stay()
        if kind == "session": os.setsid(); stay()
        if kind == "daemon":
            os.setsid()
            if os.fork() == 0: stay()
            os._exit(0)
        if kind == "orphan":
            if os.fork() == 0: stay()
            os._exit(0)
        if kind == "hopper":
            os.write(told, b"!")
            while True:
                if os.fork(): os._exit(0)
                os.setsid()
for _ in sys.argv[1:]: os.read(ready, 1)
print(json.dumps({"jsonrpc": "2.0", "method": "up", "params": [os.getpid(), os.getppid()]}), flush=True)
sys.stdin.readline() and sys.exit(7)
"#;

const EVERYBODY: [&str; 6] = ["child", "group", "session", "daemon", "orphan", "daemon"];

pub(crate) fn family(members: &[&str]) -> StdioSpec {
    let mut args = vec!["-I", "-S", "-c", FAMILY];
    args.extend(members);
    program("python3", &args)
}

async fn rel_01_whoever_leaves_is_gone_after_an_orderly_end(way: Way) {
    let canary = Canary::new();
    let mut peer = way.open(marked(family(&EVERYBODY), &canary)).await;
    assert_eq!(peer.message().await["method"], "up");
    assert_eq!(canary.processes().len(), 7);
    let started = Instant::now();
    peer.end().await;
    let took = started.elapsed();
    canary.assert_gone();
    assert!(took < Duration::from_millis(1500), "{took:?}");
}

async fn rel_01_whoever_leaves_is_gone_when_their_leader_ends(way: Way) {
    let canary = Canary::new();
    let mut peer = way.open(marked(family(&EVERYBODY), &canary)).await;
    peer.message().await;
    peer.request(1, "quit", json!({})).await;
    let reason = peer.closed().await;
    assert!(
        matches!(&reason, CloseReason::Exited { status, .. } if status == "exit status: 7"),
        "{reason:?}"
    );
    within_patience(peer.driver).await.expect("no panic");
    canary.assert_gone();
}

async fn rel_01_whoever_leaves_is_gone_when_the_driver_is_dropped(way: Way) {
    let canary = Canary::new();
    let mut peer = way.open(marked(family(&EVERYBODY), &canary)).await;
    peer.message().await;
    peer.driver.abort();
    until_none(&canary).await;
}

async fn rel_01_a_shell_that_waits_for_its_server_ends_with_it(way: Way) {
    let canary = Canary::new();
    // A server in the background has no stdin of its own unless it is given one.
    let script = "exec 3<&0; trap '' INT TERM; cat <&3 & wait";
    let mut peer = way
        .open(marked(program("sh", &["-c", script]), &canary))
        .await;
    peer.request(1, "echo", json!({})).await;
    assert_eq!(peer.message().await["id"], 1);
    assert_eq!(canary.processes().len(), 2);
    peer.end().await;
    canary.assert_gone();
}

async fn rel_01_a_server_is_ended_while_it_still_starts(way: Way) {
    let canary = Canary::new();
    let mut peer = way.open(marked(program("sleep", &["1000"]), &canary)).await;
    peer.request(1, "initialize", json!({})).await;
    let started = Instant::now();
    peer.end().await;
    let took = started.elapsed();
    canary.assert_gone();
    assert!(took < Duration::from_secs(1), "{took:?}");
}

async fn a_signal_that_ended_a_server_is_named(way: Way) {
    let mut peer = way
        .open(TransportSpec::Stdio(program("sh", &["-c", "kill -9 $$"])))
        .await;
    let reason = peer.closed().await;
    assert!(
        matches!(&reason, CloseReason::Exited { status, .. } if status == "signal: 9 (SIGKILL)"),
        "{reason:?}"
    );
}

/// The C library keeps 32 and 33 for itself.
const RESERVED: u64 = 0b11 << 31;

#[tokio::test]
async fn a_kept_server_starts_with_default_signals() {
    let show = TransportSpec::Stdio(program("cat", &["/proc/self/status"]));
    let channel = toolway_transport::open(&spec(show), &Way::Kept.options())
        .await
        .expect("it opens");
    let log = channel.log.clone().expect("a process logs");
    let mut peer = Peer::new(channel);
    peer.closed().await;
    for name in ["SigBlk", "SigIgn"] {
        let shown = log.lines().into_iter().find_map(|line| {
            let line = line.as_received().strip_prefix("[stdout] ")?.to_owned();
            line.strip_prefix(name)?
                .strip_prefix(":\t")
                .map(str::to_owned)
        });
        let mask = u64::from_str_radix(&shown.expect("a line"), 16).expect("a mask");
        assert_eq!(mask & !RESERVED, 0, "{name} {mask:x}");
    }
}

async fn rel_06_a_flood_on_stderr_does_not_block_the_answer(way: Way) {
    let script = r#"
import sys
for _ in range(100): sys.stderr.buffer.write((b"x" * 1023 + b"\n") * 1024)
sys.stderr.write("the last line\n")
sys.stdin.readline()
print('{"jsonrpc":"2.0","id":1,"result":{}}')
"#;
    let mut peer = way.open(python(script)).await;
    peer.request(1, "ping", json!({})).await;
    assert_eq!(peer.message().await["id"], 1);
    let stderr = lines(peer.closed().await);
    assert_eq!(stderr.last().map(String::as_str), Some("the last line"));
}

async fn rel_07_a_server_that_never_reads_is_given_up_and_others_are_not_held(way: Way) {
    let limits = ChannelLimits {
        write_stall: Duration::from_millis(300),
        ..ChannelLimits::default()
    };
    let deaf = TransportSpec::Stdio(program("sleep", &["1000"]));
    let mut deaf = Peer::open_with(
        deaf,
        &OpenOptions {
            limits,
            ..way.options()
        },
    )
    .await;
    let mut other = way.open(TransportSpec::Stdio(program("cat", &[]))).await;
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

async fn rel_07_the_end_does_not_wait_for_a_server_that_never_reads(way: Way) {
    let mut deaf = way
        .open(TransportSpec::Stdio(program("sleep", &["1000"])))
        .await;
    deaf.request(1, "tools/call", json!("x".repeat(4 * 1024 * 1024)))
        .await;
    let started = Instant::now();
    let last = deaf.end().await;
    assert!(
        matches!(&last[..], [ChannelEvent::Closed(CloseReason::Asked)]),
        "{last:?}"
    );
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
}

async fn sec_39_the_child_has_exactly_the_environment_it_was_given(way: Way) {
    let own = std::fs::read("/proc/self/environ").expect("our environment");
    let canary = b"CARGO_MANIFEST_DIR=";
    assert!(
        own.windows(canary.len()).any(|window| window == canary),
        "no canary to look for"
    );
    let show = TransportSpec::Stdio(program("cat", &["/proc/self/environ"]));
    let mut peer = way.open(show).await;
    let shown = lines(peer.closed().await).remove(0);
    let shown: Vec<&str> = shown
        .trim_start_matches("[stdout] ")
        .split_terminator('\0')
        // Without a launcher, the mark by which those who leave are found.
        .filter(|entry| way == Way::Kept || !entry.starts_with("TOOLWAY_SERVER_MARK="))
        .collect();
    assert_eq!(shown, [format!("PATH={}", crate::peer::path())]);
}

async fn sec_41_the_child_has_only_its_three_pipes(way: Way) {
    // As if the parent process had left descriptor 9 (or the next free one) open.
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
    let mut peer = way.open(python(script)).await;
    assert_eq!(peer.message().await["params"], json!([0, 1, 2]));
}

async fn a_server_that_ends_with_its_input_ends_before_it_is_killed(way: Way) {
    let stubborn = program("sh", &["-c", "trap '' INT TERM; cat"]);
    let mut peer = way.open(TransportSpec::Stdio(stubborn)).await;
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

async fn rel_01_a_server_that_ignores_every_request_to_end_is_killed_with_its_children(way: Way) {
    let script = r#"
import os, signal, json, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child: print(json.dumps({"jsonrpc": "2.0", "method": "up", "params": [os.getpid(), child]}))
while True: time.sleep(1000)
"#;
    let mut peer = way.open(python(script)).await;
    let pids = peer.message().await["params"].clone();
    let started = Instant::now();
    let last = peer.end().await;
    let took = started.elapsed();
    assert!(
        matches!(&last[..], [ChannelEvent::Closed(CloseReason::Asked)]),
        "{last:?}"
    );
    assert!(
        took > Duration::from_millis(590),
        "it was given its time: {took:?}"
    );
    assert!(is_gone(&pids[0]) && is_gone(&pids[1]));
}

async fn rel_01_children_left_behind_are_killed_when_their_leader_ends(way: Way) {
    let script = r#"
import os, json, time
child = os.fork()
if child: print(json.dumps({"jsonrpc": "2.0", "method": "up", "params": child}))
else: time.sleep(1000)
"#;
    let mut peer = way.open(python(script)).await;
    let child = peer.message().await["params"].clone();
    assert!(matches!(peer.closed().await, CloseReason::Exited { .. }));
    within_patience(peer.driver).await.expect("no panic");
    assert!(is_gone(&child));
}

async fn rel_01_dropping_the_driver_kills_the_whole_group(way: Way) {
    let script = r#"
import os, json, time
child = os.fork()
if child: print(json.dumps({"jsonrpc": "2.0", "method": "up", "params": [os.getpid(), child]}))
time.sleep(1000)
"#;
    let mut peer = way.open(python(script)).await;
    let pids = peer.message().await["params"].clone();
    peer.driver.abort();
    until_gone(&pids[0]).await;
    until_gone(&pids[1]).await;
}

async fn a_server_that_closes_its_output_but_stays_is_ended(way: Way) {
    let script = r#"
import os, sys, json, time
print(json.dumps({"jsonrpc": "2.0", "method": "up", "params": os.getpid()}))
sys.stderr.write("bye\n"); sys.stderr.flush()
os.close(1); time.sleep(1000)
"#;
    let mut peer = way.open(python(script)).await;
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

async fn a_server_that_dies_is_reported_with_its_last_words(way: Way) {
    let script = "import sys; sys.stderr.write('no config\\n'); sys.exit(2)";
    let mut peer = way.open(python(script)).await;
    peer.request(1, "initialize", json!({})).await;
    match peer.closed().await {
        CloseReason::Exited { status, stderr } => {
            assert_eq!(status, "exit status: 2");
            assert_eq!(stderr[0].as_received(), "no config");
        }
        other => panic!("{other:?}"),
    }
}

async fn what_cannot_be_started_says_why(way: Way) {
    let options = way.options();
    let missing = program("no-such-program-here", &[]);
    let error = toolway_transport::open(&spec(TransportSpec::Stdio(missing)), &options).await;
    assert!(
        matches!(error, Err(OpenError::Spawn { command, .. }) if command == "no-such-program-here")
    );
    let mut elsewhere = program("cat", &[]);
    elsewhere.cwd = PathBuf::from("/no/such/directory").into();
    let error = toolway_transport::open(&spec(TransportSpec::Stdio(elsewhere)), &options).await;
    assert!(
        matches!(error, Err(OpenError::Directory(path)) if path.ends_with("no/such/directory"))
    );
}

async fn the_working_directory_is_the_one_that_was_asked_for(way: Way) {
    let directory = tempfile::tempdir().expect("a directory");
    let real = directory.path().canonicalize().expect("it exists");
    let mut spec = program(
        "sh",
        &[
            "-c",
            r#"printf '{"jsonrpc":"2.0","method":"%s"}\n' "$(pwd -P)""#,
        ],
    );
    spec.cwd = real.clone().into();
    let mut peer = way.open(TransportSpec::Stdio(spec)).await;
    assert_eq!(peer.message().await["method"].as_str(), real.to_str());
}

macro_rules! both_ways {
    ($($case:ident),* $(,)?) => {
        mod direct { $(#[tokio::test] async fn $case() { super::$case(super::Way::Direct).await; })* }
        mod kept { $(#[tokio::test] async fn $case() { super::$case(super::Way::Kept).await; })* }
    };
}

both_ways!(
    rel_01_whoever_leaves_is_gone_after_an_orderly_end,
    rel_01_whoever_leaves_is_gone_when_their_leader_ends,
    rel_01_whoever_leaves_is_gone_when_the_driver_is_dropped,
    rel_01_a_shell_that_waits_for_its_server_ends_with_it,
    rel_01_a_server_is_ended_while_it_still_starts,
    a_signal_that_ended_a_server_is_named,
    rel_06_a_flood_on_stderr_does_not_block_the_answer,
    rel_07_a_server_that_never_reads_is_given_up_and_others_are_not_held,
    rel_07_the_end_does_not_wait_for_a_server_that_never_reads,
    sec_39_the_child_has_exactly_the_environment_it_was_given,
    sec_41_the_child_has_only_its_three_pipes,
    a_server_that_ends_with_its_input_ends_before_it_is_killed,
    rel_01_a_server_that_ignores_every_request_to_end_is_killed_with_its_children,
    rel_01_children_left_behind_are_killed_when_their_leader_ends,
    rel_01_dropping_the_driver_kills_the_whole_group,
    a_server_that_closes_its_output_but_stays_is_ended,
    a_server_that_dies_is_reported_with_its_last_words,
    what_cannot_be_started_says_why,
    the_working_directory_is_the_one_that_was_asked_for,
);
