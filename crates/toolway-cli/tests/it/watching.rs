//! `list --watch` and `reconnect`: servers that are killed, files that change, signals.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use toolway_testkit::{Canary, Script, ScriptedServer, TempHome, marked, shell_code};

use crate::support::{command, home_with, servers, toolway};

/// A test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program that runs until it is told to end, read line by line.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    seen: String,
}

impl Running {
    pub(crate) fn start(home: &TempHome, words: &[&str]) -> Self {
        Self::of(&mut command(home, words))
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            lines,
            seen: String::new(),
        }
    }

    /// Reads on until a line holds this, and gives that line.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        loop {
            let line = self
                .lines
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("no `{text}` in:\n{}", self.seen));
            self.seen.push_str(&line);
            self.seen.push('\n');
            if line.contains(text) {
                return line;
            }
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end; gives the exit code and everything that was printed.
    pub(crate) fn end(mut self) -> (Option<i32>, String, String) {
        let status = self.child.wait().unwrap();
        let rest: String = self.lines.iter().map(|line| line + "\n").collect();
        let mut stderr = String::new();
        let mut stream = self.child.stderr.take().unwrap();
        stream.read_to_string(&mut stderr).unwrap();
        (
            shell_code(status),
            std::mem::take(&mut self.seen) + &rest,
            stderr,
        )
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already unless the test failed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Waits until no process carries the mark: what was killed takes a moment to go.
fn wait_until_gone(canary: &Canary) {
    let begun = Instant::now();
    while !canary.processes().is_empty() && begun.elapsed() < Duration::from_secs(5) {
        std::thread::yield_now();
    }
    canary.assert_gone();
}

fn wait_until_there(canary: &Canary) -> u32 {
    let begun = Instant::now();
    loop {
        // The launcher and what it forks carry no mark; the last one is the server itself.
        if let Some(process) = canary.processes().last() {
            return process.pid;
        }
        assert!(begun.elapsed() < PATIENCE, "no server was started");
        std::thread::yield_now();
    }
}

fn marked(canary: &Canary, script: Script) -> Value {
    ScriptedServer::new(script).entry_with_env([(canary.name(), canary.value())])
}

/// Lines without their times.
fn without_times(text: &str) -> String {
    let mut shown = String::new();
    for line in text.lines() {
        shown.extend(["[TIME]", &line[24..], "\n"]);
    }
    shown
}

#[test]
fn every_change_is_a_line_and_being_told_to_end_is_success() {
    let home = TempHome::new();
    let canary = Canary::new();
    let chaos = marked(&canary, Script::default());
    home.write_settings(servers(&[("chaos", chaos.clone())]));
    let mut watch = Running::start(&home, &["list", "--watch"]);
    watch.wait_for("connected");
    let pid = wait_until_there(&canary);
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    watch.wait_for("pending");
    watch.wait_for("connected");
    home.write_settings("{\n  \"mcpServers\": {");
    home.write_settings(servers(&[
        ("other", ScriptedServer::new(Script::default()).entry()),
        ("typo", json!({ "comand": "true" })),
    ]));
    watch.wait_for("other: connected");
    watch.signal(Signal::INT);
    let (code, stdout, stderr) = watch.end();
    wait_until_gone(&canary);
    let shown = format!(
        "exit: {code:?}\n----- stdout\n{}----- stderr\n{}",
        without_times(&stdout),
        home.normalise(&stderr)
    );
    assert_snapshot!(shown, @"
    exit: Some(130)
    ----- stdout
    [TIME] chaos: pending
    [TIME] chaos: connected (8 tools)
    [TIME] chaos: pending (the server process ended (signal: 9 (SIGKILL)))
    [TIME] chaos: connected (8 tools)
    [TIME] configuration changed: started other; stopped chaos
    [TIME] other: pending
    [TIME] typo: failed (neither `command` nor `url` is given)
    [TIME] other: connected (8 tools)
    ----- stderr
    error: [HOME]/.config/toolway/settings.json:10: server `typo`: neither `command` nor `url` is given
    hint: rename `comand` to `command`
    ");
}

#[test]
fn json_lines_have_their_documented_shape() {
    let home = home_with(Script::default());
    let mut watch = Running::start(&home, &["list", "--watch", "--json"]);
    let line = watch.wait_for("\"connected\"");
    let event: Value = serde_json::from_str(&line).unwrap();
    let keys: Vec<&String> = event.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "time",
            "event",
            "server",
            "state",
            "attempt",
            "error",
            "reason",
            "protocolVersion",
            "tools",
            "resources",
            "prompts"
        ]
    );
    assert_eq!(event["event"], "state");
    assert_eq!(event["tools"], 8);
    home.write_settings(servers(&[]));
    let line = watch.wait_for("reload");
    let mut event: Value = serde_json::from_str(&line).unwrap();
    event["time"] = json!("then");
    assert_eq!(
        event,
        json!({ "time": "then", "event": "reload", "started": [], "stopped": ["chaos"], "replaced": [] })
    );
    watch.signal(Signal::TERM);
    assert_eq!(watch.end().0, Some(0));
}

#[test]
fn a_file_that_is_broken_is_said_once_and_its_servers_stay() {
    let home = home_with(Script::default());
    let good = home.read(home.config_home().join("settings.json"));
    let mut watch = Running::start(&home, &["list", "--watch"]);
    watch.wait_for("connected");
    home.write_settings(&good[..good.len() / 2]);
    // Another file's change proves that the broken one was looked at.
    home.write(
        ".mcp.json",
        servers(&[("repo", json!({ "command": "true" }))]),
    );
    watch.wait_for("repo: disabled");
    home.write_settings(&good);
    home.write(".mcp.json", servers(&[]));
    watch.wait_for("stopped repo");
    watch.signal(Signal::INT);
    let (code, stdout, stderr) = watch.end();
    assert_eq!(code, Some(130));
    assert_eq!(stdout.matches("chaos: ").count(), 2, "{stdout}");
    assert_eq!(stderr.matches("error: ").count(), 1, "{stderr}");
    assert!(stderr.contains("its servers stay as they were"), "{stderr}");
}

#[test]
fn reconnect_connects_here_and_in_running_processes() {
    let home = TempHome::new();
    let canary = Canary::new();
    home.write_settings(servers(&[
        ("chaos", marked(&canary, Script::default())),
        ("nope", json!({ "command": "/nonexistent/server" })),
        ("off", json!({ "command": "true", "disabled": true })),
    ]));
    let mut watch = Running::start(&home, &["list", "--watch"]);
    watch.wait_for("chaos: connected");
    let before = wait_until_there(&canary);
    assert_snapshot!(toolway(&home, &["reconnect", "chaos"]), @"
    exit: 0
    ----- stdout
    NAME   SCOPE  TYPE   STATE        TOOLS  DETAIL
    chaos  user   stdio  ✔ connected  8      protocol 2026-07-28
    ----- stderr
    ");
    watch.wait_for("chaos: pending");
    watch.wait_for("chaos: connected");
    assert_ne!(wait_until_there(&canary), before);
    watch.signal(Signal::INT);
    assert_eq!(watch.end().0, Some(130));
    wait_until_gone(&canary);

    assert_snapshot!(toolway(&home, &["reconnect", "--all"]), @"
    exit: 4
    ----- stdout
    NAME   SCOPE  TYPE   STATE        TOOLS  DETAIL
    chaos  user   stdio  ✔ connected  8      protocol 2026-07-28
    nope   user   stdio  ✘ failed     -      cannot start `/nonexistent/server`: no such program, or its interpreter is missing
    ----- stderr
    error: server `nope` failed: cannot start `/nonexistent/server`: no such program, or its interpreter is missing
    hint: check the program with `toolway get nope` and `toolway doctor`
    ");
    assert_snapshot!(toolway(&home, &["reconnect", "chao"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no server named `chao` is configured
    hint: did you mean `chaos`?
    ");
    assert_snapshot!(toolway(&home, &["reconnect", "off"]), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: server `off` cannot be used: its entry says `"disabled": true` ([HOME]/.config/toolway/settings.json:16)
    hint: switch it on with `toolway enable off`
    "#);
    assert_snapshot!(toolway(&home, &["reconnect"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: the following required arguments were not provided:
      <SERVER>...

    Usage: toolway reconnect <SERVER>...
    hint: see `toolway reconnect --help`
    ");
    assert_snapshot!(toolway(&TempHome::new(), &["reconnect", "--all"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no server is configured
    hint: add one with `toolway add <name> <command or url>`
    ");
}

#[test]
fn watching_needs_connections() {
    assert_snapshot!(toolway(&TempHome::new(), &["list", "--watch", "--no-connect"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: the argument '--watch' cannot be used with '--no-connect'

    Usage: toolway list --watch
    hint: see `toolway list --help`
    ");
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let home = TempHome::new();
    let canary = Canary::new();
    home.write_settings(servers(&[("chaos", marked(&canary, Script::default()))]));
    let mut child = command(&home, &["list", "--watch"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let output = marked::output_of(child);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    wait_until_gone(&canary);
}

#[test]
fn rel_32_every_signal_ends_watching_and_calls_and_leaves_nothing() {
    for (signal, watched, cut) in [
        // A Ctrl-C is a person's, whose loop is to stop; others end what has no end of its own.
        (Signal::INT, 130, 130),
        (Signal::TERM, 0, 143),
        (Signal::HUP, 0, 129),
    ] {
        let home = TempHome::new();
        let canary = Canary::new();
        let stubborn = Script {
            ignores_end_of_input: true,
            grandchild: true,
            ..Script::default()
        };
        home.write_settings(servers(&[("chaos", marked(&canary, stubborn))]));
        let mut watch = Running::start(&home, &["list", "--watch"]);
        watch.wait_for("connected");
        watch.signal(signal);
        let (code, _, stderr) = watch.end();
        assert_eq!((code, stderr.as_str()), (Some(watched), ""), "{signal:?}");
        wait_until_gone(&canary);

        let call = Running::start(&home, &["call", "chaos", "hang"]);
        wait_until_there(&canary);
        call.signal(signal);
        let (code, _, stderr) = call.end();
        assert_eq!(code, Some(cut), "{signal:?}");
        assert_eq!(
            stderr,
            "error: interrupted\nhint: every server that was started has been stopped\n"
        );
        wait_until_gone(&canary);
    }
}

#[test]
fn rel_32_a_second_signal_ends_it_at_once_and_still_leaves_nothing() {
    let home = TempHome::new();
    let canary = Canary::new();
    // It takes the whole time an orderly end allows.
    let ready = home.home().join("ready");
    let script = format!(
        "trap '' INT TERM HUP; : > '{}'; while :; do read -r _ < /dev/zero; done",
        ready.display()
    );
    let deaf = json!({
        "command": "sh",
        "args": ["-c", script],
        "env": { canary.name(): canary.value() },
    });
    home.write_settings(servers(&[("deaf", deaf)]));
    let mut watch = Running::start(&home, &["list", "--watch"]);
    watch.wait_for("pending");
    let begun = Instant::now();
    while !ready.exists() {
        assert!(begun.elapsed() < PATIENCE, "the server does not start");
        std::thread::yield_now();
    }
    // Both are there when it wakes, however busy this machine is.
    watch.signal(Signal::STOP);
    watch.signal(Signal::INT);
    watch.signal(Signal::TERM);
    watch.signal(Signal::CONT);
    let (code, _, stderr) = watch.end();
    assert_eq!(code, Some(143), "{stderr}");
    assert!(stderr.contains("has been killed"), "{stderr}");
    wait_until_gone(&canary);
}

#[test]
fn rel_32_a_signal_at_any_moment_leaves_nothing() {
    let home = TempHome::new();
    for moment in 0..40 {
        let canary = Canary::new();
        home.write_settings(servers(&[("chaos", marked(&canary, Script::default()))]));
        let signal = [Signal::INT, Signal::TERM, Signal::HUP][moment % 3];
        let call = Running::start(&home, &["call", "chaos", "slow", "ms=50"]);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(4) * u32::try_from(moment).unwrap() {
            std::hint::spin_loop();
        }
        call.signal(signal);
        // Before it listens, a signal ends it as any program; later it says so; or it was done.
        let (code, _, stderr) = call.end();
        match code {
            // An orderly end: whatever was being started when the signal came is gone by now.
            Some(0) => canary.assert_gone(),
            Some(129 | 130 | 143) if stderr.contains("interrupted") => canary.assert_gone(),
            Some(129 | 130 | 143) => wait_until_gone(&canary),
            other => panic!("exit code {other:?}"),
        }
    }
}

#[test]
fn rel_34_what_a_killed_process_left_behind_is_in_nobodys_way() {
    let home = TempHome::new();
    let canary = Canary::new();
    home.write_settings(servers(&[("chaos", marked(&canary, Script::default()))]));
    for _ in 0..3 {
        let mut watch = Running::start(&home, &["list", "--watch"]);
        watch.wait_for("connected");
        watch.signal(Signal::KILL);
        assert_eq!(watch.end().0, Some(137));
        wait_until_gone(&canary);
    }
    // Stamps, locks and half-written files of nobody.
    let state = home.config_home().join("state");
    home.write(state.join("reconnect/chaos"), "{\"server\":");
    home.write(state.join("reconnect/.0123456789abcdef"), "");
    toolway(&home, &["reconnect", "chaos"]).expect_code(0);
    toolway(&home, &["logs", "chaos", "-n", "1"]).expect_code(0);
    let mut watch = Running::start(&home, &["list", "--watch"]);
    watch.wait_for("connected");
    watch.signal(Signal::INT);
    let (code, stdout, _) = watch.end();
    assert_eq!(code, Some(130));
    assert_eq!(stdout.matches("pending").count(), 1, "{stdout}");
}
