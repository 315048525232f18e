//! What may go wrong around a daemon that runs: callers that come at once or die, clients of its
//! socket that misbehave, another build that takes over under load, a disk without room.

use std::fs::File;
use std::io::{IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use insta::assert_snapshot;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use toolway_testkit::{Script, TempHome, eventually_blocking};

use super::places::socket;
use super::{
    answering, attaching, home_with, outcome, process, reporting, run, spawned, start, status,
    until,
};
use crate::support::program;

/// What a process has open, by what it is: which of them it is does not count.
fn open_files(process: Pid) -> Vec<String> {
    let folder = format!("/proc/{}/fd", process.as_raw_nonzero());
    let files = std::fs::read_dir(folder).unwrap().flatten();
    let mut files: Vec<String> = files
        .filter_map(|file| std::fs::read_link(file.path()).ok())
        .map(|file| file.to_string_lossy().into_owned())
        // Audit and logs are opened with the first call, some time after it.
        .filter(|file| !file.contains("/state/"))
        .map(|file| file.split(":[").next().unwrap_or_default().to_owned())
        .collect();
    files.sort();
    files
}

/// Waits until it has no more open than before.
fn until_closed(process: Pid, before: &[String]) {
    eventually_blocking(|| {
        let now = open_files(process);
        if now.len() <= before.len() {
            Ok(())
        } else {
            Err(format!("open before: {before:?}\nopen now: {now:?}"))
        }
    });
}

fn open(home: &TempHome) -> UnixStream {
    UnixStream::connect(socket(home)).unwrap()
}

/// What is sent to have a command run, as this program itself would.
fn request(home: &TempHome, words: &[&str], build: &str) -> Vec<u8> {
    let namespaces = ["mnt", "user", "pid", "net"].map(|kind| {
        let link = std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
        link.to_str().unwrap().to_owned()
    });
    let params = json!({
        "words": words,
        "directory": home.project(),
        "environment": {
            "HOME": home.home(),
            "PATH": "/usr/bin:/bin",
            "TOOLWAY_HOME": home.config_home(),
            "TOOLWAY_TEST_SYSTEM_DIR": home.system(),
        },
        "build": build,
        "namespaces": namespaces.join(" "),
        "umask": 0o022,
    });
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": "toolway/run", "params": params });
    format!("{message}\n").into_bytes()
}

/// As a program says which build it is: its version, and when and as which file it was written.
fn build() -> String {
    use std::os::unix::fs::MetadataExt as _;
    let file = Path::new(program()).metadata().unwrap();
    let (version, seconds, nanos) = (env!("CARGO_PKG_VERSION"), file.mtime(), file.mtime_nsec());
    format!("{version} {seconds} {nanos} {} {}", file.dev(), file.ino())
}

fn send_with(stream: &UnixStream, bytes: &[u8], files: &[&File]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
    assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
    let sent = sendmsg(
        stream,
        &[IoSlice::new(bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    );
    assert_eq!(sent.unwrap(), bytes.len());
}

fn heard(mut stream: UnixStream) -> String {
    let mut said = String::new();
    // One that is cut off may be hung up on before all of it was read.
    let _ = stream.read_to_string(&mut said);
    said.trim_end().to_owned()
}

#[test]
fn twenty_commands_that_all_want_a_daemon_get_one_and_each_its_answer() {
    let (home, canary) = home_with(reporting());
    let calling: Vec<Child> = (0..20)
        .map(|number| {
            let argument = format!("number={number}");
            let mut command = attaching(&home, &["call", "s", "mirror", &argument]);
            command.env("TOOLWAY_DAEMON", "auto");
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for (number, caller) in calling.into_iter().enumerate() {
        let said = outcome(caller);
        assert!(said.starts_with("exit: 0\n"), "{number}: {said}");
        assert!(said.contains(&number.to_string()), "{number}: {said}");
    }
    let shown = status(&home);
    assert_eq!(shown["servers"], json!([{ "server": "s", "users": 0 }]));
    assert_eq!(canary.processes().len(), 1, "{shown}");
}

/// A process that does nothing until this is dropped.
struct Stopped(Pid);

impl Stopped {
    fn new(process: Pid) -> Self {
        kill_process(process, Signal::STOP).unwrap();
        Self(process)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // It may have been ended meanwhile.
        let _ = kill_process(self.0, Signal::CONT);
    }
}

#[test]
fn a_daemon_that_does_not_answer_is_done_without_and_does_not_act_later() {
    let (home, canary) = home_with(reporting());
    let daemon = start(&home);
    let stopped = Stopped::new(daemon);
    // Not to a pipe: its other end lies in the daemon's queue until that reads it.
    let mut alone = attaching(&home, &["call", "s", "mirror", "a=1"]);
    let said = home.project().join("said");
    alone.stdout(File::create(&said).unwrap());
    assert!(alone.status().unwrap().success());
    assert_eq!(home.read(&said), "{\"a\":1}\n");
    canary.assert_gone();
    let shown = run(&home, &["daemon", "status"]).to_string();
    let lock = socket(&home).with_extension("lock");
    let lock = home.normalise(&lock.display().to_string());
    assert_snapshot!(shown.replace(&lock, "LOCK"), @"
    exit: 8
    ----- stdout
    ----- stderr
    error: the daemon does not answer
    hint: end its process, `kill -9 $(cat LOCK)`, or do without: `TOOLWAY_DAEMON=off`
    ");
    drop(stopped);
    until("it answers again", || status(&home)["runs"] == json!([]));
    assert_eq!(
        status(&home)["servers"],
        json!([]),
        "it ran what nobody waited for"
    );
    canary.assert_gone();
}

#[test]
fn clients_of_the_socket_that_misbehave_leave_nothing_behind() {
    let (home, _canary) = home_with(reporting());
    let daemon = start(&home);
    let null = File::open("/dev/null").unwrap();
    let folder = File::open(home.project()).unwrap();
    let call = request(&home, &["call", "s", "mirror", "a=1"], &build());
    // One that behaves: its variables are others than a test's, and so is its server.
    let behaved = open(&home);
    send_with(&behaved, &call, &[&null, &null, &null]);
    assert!(heard(behaved).contains("\"result\""));
    answering(&home);
    let before = open_files(daemon);
    let refused = |stream: UnixStream| {
        let said: Value = serde_json::from_str(&heard(stream)).unwrap();
        said["error"]["data"]["reason"].as_str().unwrap().to_owned()
    };

    // A build that is none, and one of another version.
    for (said, reason) in [
        ("garbage", "newer"),
        ("0.0.1 1 1 1 1", "newer"),
        ("", "newer"),
    ] {
        let stream = open(&home);
        send_with(
            &stream,
            &request(&home, &["tools"], said),
            &[&null, &null, &null],
        );
        assert_eq!(refused(stream), reason, "{said}");
    }
    // Too few descriptors.
    for files in [&[][..], &[&null][..], &[&null, &null][..]] {
        let stream = open(&home);
        if files.is_empty() {
            (&stream).write_all(&call).unwrap();
        } else {
            send_with(&stream, &call, files);
        }
        assert_eq!(refused(stream), "not-here");
    }
    // Too many, at once and bit by bit.
    let stream = open(&home);
    send_with(&stream, &call, &[&null; 4]);
    assert_eq!(heard(stream), "");
    let stream = open(&home);
    for byte in call.chunks(1).take(200) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files = [null.as_fd(), null.as_fd(), null.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
        // It may have hung up by now.
        let _ = sendmsg(
            &stream,
            &[IoSlice::new(byte)],
            &mut control,
            SendFlags::NOSIGNAL,
        );
    }
    assert_eq!(heard(stream), "");
    // Descriptors that nothing can be read from or written to.
    let stream = open(&home);
    send_with(&stream, &call, &[&folder, &folder, &folder]);
    let said = heard(stream);
    assert!(said.contains("toolway/run/begun"), "{said}");
    // Half a message, and a whole one from somebody who is gone.
    let half = open(&home);
    send_with(&half, &call[..call.len() / 2], &[&null, &null, &null]);
    drop(half);
    let gone = open(&home);
    send_with(&gone, &call, &[&null, &null, &null]);
    drop(gone);
    // Something without an end, once the command runs.
    let talkative = open(&home);
    let quiet = request(&home, &["read", "shared:one", "s", "--follow"], &build());
    send_with(&talkative, &quiet, &[&null, &null, &null]);
    let endless = vec![b'x'; 64 * 1024];
    let mut talking = &talkative;
    while talking.write_all(&endless).is_ok() {}
    drop(talkative);

    until("no command is left", || status(&home)["runs"] == json!([]));
    until_closed(daemon, &before);
    answering(&home);
    assert_eq!(process(&home), daemon);
}

#[test]
fn a_client_of_the_socket_that_never_reads_holds_up_nobody() {
    let (home, _canary) = home_with(reporting());
    start(&home);
    let null = File::open("/dev/null").unwrap();
    let call = request(&home, &["tools"], &build());
    let silent: Vec<UnixStream> = (0..40)
        .map(|_| {
            let stream = open(&home);
            send_with(&stream, &call, &[&null, &null, &null]);
            stream
        })
        .collect();
    answering(&home);
    drop(silent);
    until("no command is left", || status(&home)["runs"] == json!([]));
    run(&home, &["daemon", "stop"]).expect_code(0);
}

/// The same program as a newer build.
fn newer(home: &TempHome, name: &str) -> PathBuf {
    let copy = home.home().join(name);
    std::fs::copy(program(), &copy).unwrap();
    let mut touched = File::options().append(true).open(&copy).unwrap();
    touched.write_all(b"\n").unwrap();
    copy
}

#[test]
fn rel_31_under_load_a_newer_build_takes_over_without_a_lost_answer() {
    let (home, canary) = home_with(Script {
        drama: true,
        ..reporting()
    });
    let old = start(&home);
    let newer = newer(&home, "toolway-newer");
    let begin = |number: usize| {
        let text = format!("text=call {number}.");
        let words = ["call", "s", "slow", "ms:=300", &text];
        let mut command = attaching(&home, &words);
        if number % 4 == 3 {
            command = home.command(&newer);
            command.args(words).env("TOOLWAY_DAEMON", "attach");
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let callers: Vec<Child> = (0..32).map(begin).collect();
    for (number, caller) in callers.into_iter().enumerate() {
        let said = outcome(caller);
        assert!(said.starts_with("exit: 0\n"), "{number}: {said}");
    }
    let new = process(&home);
    assert_ne!(new, old);
    until("the old one is gone with its servers", || {
        canary.processes().len() <= 1
    });
    until("the old one is gone", || {
        !Path::new(&format!("/proc/{}", old.as_raw_nonzero())).exists()
    });
}

#[test]
fn callers_that_are_killed_while_they_hold_calls_leave_none() {
    let (home, canary) = home_with(Script {
        silent: vec!["tools/call".to_owned()],
        ..reporting()
    });
    let daemon = start(&home);
    run(&home, &["tools"]).expect_code(0);
    let before = open_files(daemon);
    let mut callers: Vec<Child> = (0..20)
        .map(|_| spawned(&home, &["call", "s", "report"]))
        .collect();
    until("all of them run", || {
        status(&home)["runs"].as_array().unwrap().len() == 20
    });
    for caller in &mut callers {
        caller.kill().unwrap();
        caller.wait().unwrap();
    }
    drop(callers);
    until("none is left", || status(&home)["runs"] == json!([]));
    until_closed(daemon, &before);
    assert_eq!(canary.processes().len(), 1, "the server stays");
}

#[test]
fn a_resource_is_followed_on_when_its_daemon_ends() {
    let (home, _canary) = home_with(reporting());
    let daemon = start(&home);
    let mut following = spawned(&home, &["read", "shared:one", "s", "--follow"]);
    until("it runs", || status(&home)["runs"][0]["command"] == "read");
    let mut first = [0; 1];
    following
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    // It is not waited for.
    run(&home, &["daemon", "stop"]).expect_code(0);
    until("the daemon is gone", || {
        !Path::new(&format!("/proc/{}", daemon.as_raw_nonzero())).exists()
    });
    assert!(
        following.try_wait().unwrap().is_none(),
        "it goes on by itself"
    );
    let id = Pid::from_raw(i32::try_from(following.id()).unwrap()).unwrap();
    kill_process(id, Signal::TERM).unwrap();
    let said = outcome(following);
    assert!(said.starts_with("exit: 0\n"), "{said}");
}

/// Runs a script in a place where the state folder is a disk of its own, of so many KiB.
fn on_a_small_disk(home: &TempHome, kib: u32, script: &str) -> Option<String> {
    let state = home.config_home().join("state");
    std::fs::create_dir_all(&state).unwrap();
    let script = format!(
        "mount -t tmpfs -o size={kib}k none '{}' || exit 99\n{script}",
        state.display()
    );
    let mut command = home.command("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .env("TOOLWAY", program())
        .env("STATE", &state)
        .env("TOOLWAY_DAEMON", "attach");
    let output = home.run(&mut command);
    let text = output.to_string();
    // Where the system gives no such place, there is nothing to test it in.
    (!text.starts_with("exit: 99\n") && !text.contains("unshare failed")).then_some(text)
}

#[test]
fn rel_19_on_a_full_disk_a_daemon_goes_on_and_can_be_started() {
    let (home, canary) = home_with(reporting());
    let script = r#"
        "$TOOLWAY" daemon start >"$HOME/started" 2>&1; echo "start: $?"
        "$TOOLWAY" call s mirror a=1 >"$HOME/before" 2>&1; echo "call: $?"
        dd if=/dev/zero of="$STATE/filler" bs=1k 2>"$HOME/dd"; echo "full: $?"
        "$TOOLWAY" call s mirror a=2 >"$HOME/full" 2>&1; echo "call: $?"
        "$TOOLWAY" daemon status --json >"$HOME/status"; echo "status: $?"
        "$TOOLWAY" daemon stop 2>/dev/null; echo "stop: $?"
        "$TOOLWAY" daemon start >"$HOME/again" 2>&1; echo "start: $?"
        "$TOOLWAY" call s mirror a=3 >"$HOME/last" 2>&1; echo "call: $?"
        "$TOOLWAY" daemon stop 2>/dev/null; echo "stop: $?"
    "#;
    let Some(said) = on_a_small_disk(&home, 512, script) else {
        return;
    };
    let file = |name: &str| home.read(home.home().join(name));
    assert_snapshot!(said, @"
    exit: 0
    ----- stdout
    start: 0
    call: 0
    full: 1
    call: 0
    status: 0
    stop: 0
    start: 0
    call: 0
    stop: 0
    ----- stderr
    ");
    assert!(file("full").contains("{\"a\":2}"), "{}", file("full"));
    assert!(file("last").contains("{\"a\":3}"), "{}", file("last"));
    assert!(file("status").contains("\"pid\""), "{}", file("status"));
    canary.assert_gone();
}
