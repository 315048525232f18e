//! The launcher itself: what happens when it, a reaper or their socket to the host goes away, and
//! what it costs to have it for long.

use std::task::Poll;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use serde_json::{Value, json};
use toolway_testkit::{Canary, Census};
use toolway_transport::stdio::launcher::Launcher;
use toolway_transport::{
    ChannelEvent, CloseReason, OpenError, OpenOptions, ProtectedPath, Protection, Shield,
    ShieldState,
};
use toolway_types::{ShieldMode, StdioSpec, TransportSpec};

use crate::peer::{Peer, program, spec, within_patience};
use crate::process::{Way, family, is_gone, marked, until_none};

fn pid(number: impl TryInto<i32>) -> Pid {
    number
        .try_into()
        .ok()
        .and_then(Pid::from_raw)
        .expect("a process id")
}

fn launcher_of(options: &OpenOptions) -> Pid {
    pid(options.launcher.process_id().expect("it runs"))
}

async fn until(condition: impl Fn() -> bool) {
    within_patience(async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

async fn echo(peer: &mut Peer) {
    peer.request(1, "echo", json!({})).await;
    assert_eq!(peer.message().await["id"], 1);
}

fn cat() -> TransportSpec {
    TransportSpec::Stdio(program("cat", &[]))
}

#[tokio::test]
async fn rel_02_killing_the_launcher_kills_every_tree_and_the_next_start_has_another() {
    let before = Census::take();
    let options = Way::Kept.options();
    let canary = Canary::new();
    let mut peers = Vec::new();
    for _ in 0..3 {
        let members = ["child", "session", "daemon", "hopper"];
        let mut peer = Peer::open_with(marked(family(&members), &canary), &options).await;
        peer.message().await;
        peers.push(peer);
    }
    let killed = launcher_of(&options);
    kill_process(killed, Signal::KILL).expect("it is ours");
    for mut peer in peers {
        let reason = peer.closed().await;
        assert!(
            matches!(
                reason,
                CloseReason::Exited { .. }
                    | CloseReason::Broken(_)
                    | CloseReason::EndOfStream { .. }
            ),
            "{reason:?}"
        );
        within_patience(peer.driver).await.expect("no panic");
    }
    until_none(&canary).await;
    let mut peer = Peer::open_with(cat(), &options).await;
    echo(&mut peer).await;
    assert_ne!(launcher_of(&options), killed);
    peer.end().await;
    drop(options);
    until(|| Census::take().children == before.children).await;
}

#[tokio::test]
async fn rel_02_killing_a_reaper_kills_its_tree_and_nobody_elses() {
    let options = Way::Kept.options();
    let (canary, other) = (Canary::new(), Canary::new());
    let members = ["child", "session", "daemon", "orphan", "hopper"];
    let mut peer = Peer::open_with(marked(family(&members), &canary), &options).await;
    let mut bystander = Peer::open_with(marked(family(&["daemon"]), &other), &options).await;
    let up = peer.message().await;
    bystander.message().await;
    let reaper = up["params"][1].as_i64().expect("a number");
    kill_process(pid(reaper), Signal::KILL).expect("it is ours");
    let reason = peer.closed().await;
    assert!(
        matches!(&reason, CloseReason::Broken(why) if why.contains("was killed")),
        "{reason:?}"
    );
    until_none(&canary).await;
    assert_eq!(other.processes().len(), 2);
    assert_eq!(bystander.end().await.len(), 1);
    other.assert_gone();
}

#[tokio::test]
async fn a_reaper_that_somebody_stopped_does_not_save_its_server() {
    let options = Way::Kept.options();
    let canary = Canary::new();
    let mut peer = Peer::open_with(marked(family(&["daemon"]), &canary), &options).await;
    let up = peer.message().await;
    let reaper = up["params"][1].as_i64().expect("a number");
    kill_process(pid(reaper), Signal::STOP).expect("it is ours");
    peer.end().await;
    until_none(&canary).await;
}

#[tokio::test]
async fn a_launcher_hears_no_signal_and_has_no_secrets() {
    let options = Way::Kept.options();
    let mut peer = Peer::open_with(cat(), &options).await;
    let launcher = launcher_of(&options);
    for signal in [
        Signal::INT,
        Signal::TERM,
        Signal::HUP,
        Signal::QUIT,
        Signal::PIPE,
        Signal::USR1,
    ] {
        kill_process(launcher, signal).expect("it is ours");
    }
    let mut second = Peer::open_with(cat(), &options).await;
    echo(&mut peer).await;
    echo(&mut second).await;
    assert_eq!(launcher_of(&options), launcher);
    let read = |name: &str| std::fs::read(format!("/proc/{launcher}/{name}")).unwrap_or_default();
    assert_eq!(read("comm"), b"tw-launcher\n");
    assert_eq!(read("cmdline"), b"tw-launcher\0");
    assert_eq!(read("environ"), b"");
    peer.end().await;
    second.end().await;
}

#[tokio::test]
async fn a_launcher_ends_with_its_last_user() {
    let before = Census::take();
    let options = Way::Kept.options();
    assert_eq!(
        options.launcher.process_id(),
        None,
        "not before it is needed"
    );
    let mut peer = Peer::open_with(cat(), &options).await;
    echo(&mut peer).await;
    let launcher = options.launcher.process_id();
    drop(options);
    echo(&mut peer).await;
    peer.end().await;
    until(|| is_gone(&json!(launcher))).await;
    until(|| Census::take().children == before.children).await;
}

#[tokio::test]
async fn a_start_nobody_waits_for_leaves_nothing() {
    let options = Way::Kept.options();
    let mut first = Peer::open_with(cat(), &options).await;
    let canary = Canary::new();
    let server = spec(marked(program("sleep", &["1000"]), &canary));
    for _ in 0..20 {
        let mut open = Box::pin(toolway_transport::open(&server, &options));
        // Once: the request is on its way, the answer is not here.
        let polled = std::future::poll_fn(|context| Poll::Ready(open.as_mut().poll(context)));
        assert!(polled.await.is_pending());
        drop(open);
    }
    // Requests are answered in turn.
    let mut last = Peer::open_with(cat(), &options).await;
    echo(&mut last).await;
    until_none(&canary).await;
    echo(&mut first).await;
}

#[tokio::test]
async fn rel_20_a_launcher_without_room_for_descriptors_says_so_and_others_live() {
    let options = Way::Kept.options();
    let mut peer = Peer::open_with(cat(), &options).await;
    echo(&mut peer).await;
    let launcher = launcher_of(&options);
    let room = getrlimit(Resource::Nofile);
    // It has its standard streams, the host's socket, the signals and the two ends of its liveness
    // pipe.
    for few in 7..12 {
        let limit = Rlimit {
            current: Some(few),
            maximum: room.maximum,
        };
        prlimit(Some(launcher), Resource::Nofile, limit).expect("it is ours");
        let opened = toolway_transport::open(&spec(cat()), &options).await;
        let error = opened.err().expect("there is no room");
        assert!(matches!(error, OpenError::Spawn { .. }), "{error}");
        assert_eq!(
            error.to_string(),
            "cannot start `cat`: Too many open files (os error 24)",
            "{few}"
        );
        echo(&mut peer).await;
    }
    prlimit(Some(launcher), Resource::Nofile, room).expect("it is ours");
    let mut second = Peer::open_with(cat(), &options).await;
    echo(&mut second).await;
    assert_eq!(launcher_of(&options), launcher);
}

#[tokio::test]
async fn without_a_launcher_that_works_servers_are_direct_children() {
    for broken in ["/no/such/program", "/bin/true", "/bin/cat", "/bin/sh"] {
        let options = OpenOptions {
            launcher: Launcher::program(broken.into()),
            ..OpenOptions::default()
        };
        let canary = Canary::new();
        let mut peer = Peer::open_with(marked(family(&["daemon"]), &canary), &options).await;
        let up = peer.message().await;
        assert_eq!(up["params"][1], json!(std::process::id()), "{broken}");
        peer.end().await;
        canary.assert_gone();
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_a_launcher_is_not_started_as_one() {
    let launcher = Launcher::same_program();
    let options = OpenOptions {
        launcher: launcher.clone(),
        ..OpenOptions::default()
    };
    let mut peer = Peer::open_with(cat(), &options).await;
    echo(&mut peer).await;
    assert_eq!(launcher.process_id(), None);
}

#[tokio::test]
async fn rel_32_a_launcher_that_was_lent_ends_with_its_owner_who_waits_for_that() {
    let owned = Way::Kept.options();
    let lent = OpenOptions {
        launcher: owned.launcher.lent(),
        ..OpenOptions::default()
    };
    let mut peer = Peer::open_with(cat(), &lent).await;
    echo(&mut peer).await;
    peer.end().await;
    let launcher = launcher_of(&lent);
    owned.launcher.end().await;
    assert!(
        is_gone(&json!(launcher.as_raw_nonzero().get())),
        "somebody who only borrowed it kept it"
    );
    assert_eq!(lent.launcher.process_id(), None);
    let refused = toolway_transport::open(&spec(cat()), &lent).await;
    assert!(matches!(refused, Err(OpenError::Spawn { .. })));
}

/// The sum of the private memory of a process, in KiB.
fn private_memory(process: Pid) -> u64 {
    std::fs::read_to_string(format!("/proc/{process}/smaps_rollup"))
        .expect("it runs")
        .lines()
        .filter(|line| line.starts_with("Private_"))
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .sum()
}

fn descriptors_of(process: Pid) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd"))
        .expect("it runs")
        .count()
}

fn children_of(process: Pid) -> String {
    std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default()
}

#[tokio::test]
async fn rel_03_a_thousand_starts_and_ends_leave_everything_as_it_was() {
    let options = Way::Kept.options();
    let mut first = Peer::open_with(cat(), &options).await;
    echo(&mut first).await;
    let launcher = launcher_of(&options);
    let cycles = |count: usize| {
        let options = &options;
        async move {
            for _ in 0..count {
                let mut peer = Peer::open_with(cat(), options).await;
                echo(&mut peer).await;
                let last = peer.end().await;
                assert!(matches!(
                    last[..],
                    [ChannelEvent::Closed(CloseReason::Asked)]
                ));
            }
        }
    };
    let only_child = children_of(launcher);
    let alone = || children_of(launcher) == only_child;
    // What the first ones cost once is paid.
    cycles(300).await;
    until(alone).await;
    let before = (
        Census::take(),
        descriptors_of(launcher),
        private_memory(launcher),
    );
    cycles(1000).await;
    until(alone).await;
    Census::take().assert_no_more_than(&before.0);
    assert_eq!(descriptors_of(launcher), before.1);
    let memory = private_memory(launcher);
    // An eighth of a kilobyte kept of each start would show; single pages come and go.
    assert!(memory <= before.2 + 128, "{} KiB, then {memory}", before.2);
}

/// A server behind a shield before a directory of its own, where this system allows shields.
#[expect(
    clippy::print_stderr,
    reason = "whoever reads the log must see what was not tested"
)]
fn shielded(mut spec: StdioSpec) -> Option<(tempfile::TempDir, OpenOptions, StdioSpec)> {
    let directory = tempfile::tempdir().expect("a directory");
    let shield = Shield::new(vec![ProtectedPath {
        path: directory.path().to_owned(),
        protection: Protection::Private,
    }]);
    if let ShieldState::Unavailable(why) =
        shield.state(Way::Kept.options().launcher.file().as_deref())
    {
        eprintln!("skipped: {why}");
        return None;
    }
    spec.shield = ShieldMode::Required;
    let options = OpenOptions {
        shield,
        ..Way::Kept.options()
    };
    Some((directory, options, spec))
}

#[tokio::test]
async fn behind_the_shield_a_server_sees_and_reaches_only_its_own_processes() {
    let script = r#"
import os, sys, json, signal, errno
def attempt(work, *args):
    try: work(*args); return "done"
    except OSError as error: return errno.errorcode[error.errno]
try: os.kill(1, signal.SIGKILL)
except OSError: pass
seen = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
print(json.dumps({"jsonrpc": "2.0", "method": "up", "params": {
    "own": os.getpid(), "parent": os.getppid(), "seen": seen,
    "host": attempt(os.kill, int(sys.argv[1]), 0),
    "memory": attempt(open, "/proc/1/mem", "r+b"),
    "environment": attempt(open, "/proc/1/environ"),
    "protected": attempt(open, sys.argv[2] + "/file", "w"),
}}), flush=True)
sys.stdin.read()
"#;
    let Some((directory, options, mut spec)) =
        shielded(program("python3", &["-I", "-S", "-c", script]))
    else {
        return;
    };
    spec.args.push(std::process::id().to_string());
    spec.args.push(directory.path().display().to_string());
    let mut peer = Peer::open_with(TransportSpec::Stdio(spec), &options).await;
    let up = peer.message().await["params"].clone();
    let own = up["own"].as_u64().expect("a number");
    assert!(own < 10, "{up}");
    assert_eq!(up["parent"], 1, "{up}");
    assert_eq!(up["seen"], json!([1, own]), "{up}");
    assert_eq!(up["host"], "ESRCH", "{up}");
    assert_eq!(up["memory"], "EACCES", "{up}");
    assert_eq!(up["environment"], "EACCES", "{up}");
    assert_eq!(up["protected"], "EROFS", "{up}");
    // The attempt on its reaper was for nothing.
    assert!(matches!(
        peer.end().await[..],
        [ChannelEvent::Closed(CloseReason::Asked)]
    ));
}

#[tokio::test]
async fn rel_01_behind_the_shield_nobody_escapes_however_fast() {
    let members = ["child", "session", "daemon", "orphan", "hopper", "hopper"];
    for ending in ["asked", "leader", "driver", "reaper", "launcher"] {
        let canary = Canary::new();
        let Some((_directory, options, spec)) = shielded(family(&members)) else {
            return;
        };
        let mut peer = Peer::open_with(marked(spec, &canary), &options).await;
        let up: Value = peer.message().await;
        assert_eq!(up["params"][1], 1, "{up}");
        let started = Instant::now();
        match ending {
            "asked" => drop(peer.end().await),
            "leader" => {
                peer.request(1, "quit", json!({})).await;
                assert!(matches!(peer.closed().await, CloseReason::Exited { .. }));
            }
            "driver" => peer.driver.abort(),
            "launcher" => kill_process(launcher_of(&options), Signal::KILL).expect("it is ours"),
            _ => {
                let reaper = children_of(launcher_of(&options));
                let reaper: i32 = reaper.trim().parse().expect("one reaper");
                kill_process(pid(reaper), Signal::KILL).expect("it is ours");
            }
        }
        until_none(&canary).await;
        let took = started.elapsed();
        assert!(took < Duration::from_secs(3), "{ending}: {took:?}");
    }
}
