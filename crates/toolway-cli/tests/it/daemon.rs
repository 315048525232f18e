//! The daemon: what commands do in it, and what becomes of them when it ends.
//!
//! That commands print the same with it and without it is `daemon/same.rs`, clients over stdio
//! `daemon/relayed.rs`, what a hostile or broken place does `daemon/places.rs`, what goes wrong around
//! it `daemon/faults.rs`. What callers must not have of each other is `daemon/apart.rs`, how the system
//! starts it `daemon/packaged.rs`.

mod apart;
mod faults;
mod packaged;
mod places;
mod relayed;
mod same;

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use toolway_testkit::{
    Canary, CommandOutput, Script, ScriptedServer, TempHome, eventually_blocking,
};

use crate::support::{command, program, servers};

/// A command that attaches where a daemon runs.
fn attaching(home: &TempHome, words: &[&str]) -> Command {
    let mut command = command(home, words);
    command.env("TOOLWAY_DAEMON", "attach");
    command
}

fn run(home: &TempHome, words: &[&str]) -> CommandOutput {
    home.run(&mut attaching(home, words))
}

/// What the daemon says of itself; null where none runs.
fn status(home: &TempHome) -> Value {
    run(home, &["daemon", "status", "--json"]).json()
}

fn process(home: &TempHome) -> Pid {
    let status = status(home);
    let process = status["pid"].as_i64().unwrap_or_else(|| panic!("{status}"));
    Pid::from_raw(i32::try_from(process).unwrap()).unwrap()
}

fn start(home: &TempHome) -> Pid {
    run(home, &["daemon", "start"]).expect_code(0);
    process(home)
}

fn scripted(script: Script, canary: &Canary) -> Value {
    let mut entry = ScriptedServer::new(script).entry();
    entry["env"] = json!({ canary.name(): canary.value() });
    entry
}

fn reporting() -> Script {
    Script {
        offers: true,
        ..Script::default()
    }
}

/// A home with one server called `s`, whose processes carry the canary.
fn home_with(script: Script) -> (TempHome, Canary) {
    let (home, canary) = (TempHome::new(), Canary::new());
    home.write_settings(servers(&[("s", scripted(script, &canary))]));
    (home, canary)
}

/// The process that answers a call of `s`.
fn answering(home: &TempHome) -> i64 {
    let words = ["call", "s", "report", "--json"];
    let answer = run(home, &words).expect_code(0).json();
    let process = answer["structuredContent"]["process"].as_i64();
    process.unwrap_or_else(|| panic!("{answer}"))
}

fn spawned(home: &TempHome, words: &[&str]) -> Child {
    let mut command = attaching(home, words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn until(what: &str, condition: impl Fn() -> bool) {
    eventually_blocking(|| {
        if condition() {
            Ok(())
        } else {
            Err(format!("not yet: {what}"))
        }
    });
}

fn outcome(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "exit: {}\n{}{}",
        toolway_testkit::shell_code(output.status).unwrap(),
        words(&output.stdout),
        words(&output.stderr)
    )
}

#[test]
fn a_server_is_started_once_for_all_commands() {
    let (home, canary) = home_with(reporting());
    start(&home);
    let first = answering(&home);
    assert_eq!(answering(&home), first);
    run(&home, &["tools"]).expect_code(0);
    assert_eq!(canary.processes().len(), 1);
    let shown = status(&home);
    assert_eq!(shown["servers"], json!([{ "server": "s", "users": 0 }]));
    assert_eq!(shown["runs"], json!([]));
    assert_ne!(
        home.run(&mut attaching(
            &home,
            &["--no-daemon", "call", "s", "report", "--json"]
        ))
        .json()["structuredContent"]["process"],
        first,
        "without it, a command starts its own"
    );
    run(&home, &["daemon", "stop"]).expect_code(0);
    canary.assert_gone();
}

#[test]
fn it_is_started_stopped_and_asked_in_words() {
    let home = TempHome::new();
    assert_snapshot!(run(&home, &["daemon", "status"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    no daemon is running
    hint: start one with `toolway daemon start`
    ");
    assert_snapshot!(run(&home, &["daemon", "stop"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    no daemon is running
    hint: start one with `toolway daemon start`
    ");
    assert_snapshot!(run(&home, &["daemon", "logs"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no daemon was ever started here
    hint: start one with `toolway daemon start`
    ");
    let process = start(&home).as_raw_nonzero().to_string();
    let shown = |words: &[&str]| run(&home, words).to_string().replace(&process, "PROCESS");
    assert_snapshot!(shown(&["daemon", "start"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    the daemon runs already (process PROCESS)
    ");
    let foreground = run(&home, &["daemon", "start", "--foreground"]);
    assert_snapshot!(foreground, @"
    exit: 1
    ----- stdout
    ----- stderr
    error: a daemon is running already
    hint: see what it does with `toolway daemon status`
    ");
    assert_snapshot!(shown(&["daemon", "stop"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    the daemon has ended
    ");
    assert_eq!(status(&home), Value::Null);
}

#[test]
fn a_word_that_says_nothing_of_the_daemon_is_refused() {
    let home = TempHome::new();
    let mut command = command(&home, &["tools"]);
    assert_snapshot!(home.run(command.env("TOOLWAY_DAEMON", "yes")), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `TOOLWAY_DAEMON` is `yes`, which is none of off, attach and auto
    hint: unset `TOOLWAY_DAEMON`, or give it one of these values
    ");
}

#[test]
fn of_many_that_are_started_at_once_one_stays() {
    let home = TempHome::new();
    let starting: Vec<Child> = (0..8)
        .map(|_| spawned(&home, &["daemon", "start"]))
        .collect();
    for child in starting {
        let said = outcome(child);
        assert!(said.starts_with("exit: 0\n"), "{said}");
    }
    let process = process(&home).as_raw_nonzero().to_string();
    let again = run(&home, &["daemon", "start"]).to_string();
    assert!(again.contains(&process), "{again}");
}

#[test]
fn two_hundred_callers_at_once_each_have_their_own_answer() {
    let (home, canary) = home_with(reporting());
    start(&home);
    let callers: Vec<(usize, Child)> = (0..200)
        .map(|number| {
            let argument = format!("number={number}");
            (
                number,
                spawned(&home, &["call", "s", "mirror", &argument, "--json"]),
            )
        })
        .collect();
    for (number, caller) in callers {
        let said = outcome(caller);
        let answer: Value = serde_json::from_str(said.trim_start_matches("exit: 0\n"))
            .unwrap_or_else(|error| panic!("{error}: {said}"));
        assert!(
            answer.to_string().contains(&format!("{number}")),
            "{answer}"
        );
    }
    assert_eq!(canary.processes().len(), 1);
    assert_eq!(status(&home)["runs"], json!([]));
}

#[test]
fn rel_29_a_call_whose_daemon_is_killed_is_said_to_be_in_doubt() {
    let (home, canary) = home_with(Script {
        silent: vec!["tools/call".to_owned()],
        ..reporting()
    });
    let daemon = start(&home);
    let caller = spawned(&home, &["call", "s", "report"]);
    until("it calls", || !canary.processes().is_empty());
    kill_process(daemon, Signal::KILL).unwrap();
    assert_snapshot!(outcome(caller), @"
    exit: 4
    error: the daemon ended before `call` did: whether it was carried out is not known
    hint: see what was sent with `toolway audit`; it is not sent again by itself
    ");
    until("its servers are gone", || canary.processes().is_empty());
    // Nothing of it is in the way of the next one.
    assert_snapshot!(run(&home, &["daemon", "status"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    no daemon is running
    hint: start one with `toolway daemon start`
    ");
    assert_ne!(start(&home), daemon);
}

#[test]
fn it_stops_after_the_calls_that_run_or_ends_them_if_told() {
    let (home, canary) = home_with(Script {
        silent: vec!["tools/call".to_owned()],
        ..reporting()
    });
    start(&home);
    let caller = spawned(&home, &["call", "s", "report", "--timeout", "3"]);
    until("it runs", || status(&home)["runs"][0]["command"] == "call");
    run(&home, &["daemon", "stop"]).expect_code(0);
    let said = outcome(caller);
    assert!(
        said.starts_with("exit: 8\n"),
        "it went on to its own end: {said}"
    );
    canary.assert_gone();

    start(&home);
    let caller = spawned(&home, &["call", "s", "report"]);
    until("it runs", || status(&home)["runs"][0]["command"] == "call");
    run(&home, &["daemon", "stop", "--now"]).expect_code(0);
    assert!(!outcome(caller).starts_with("exit: 0\n"));
    canary.assert_gone();
}

#[test]
fn a_caller_that_is_killed_leaves_no_call() {
    let (home, canary) = home_with(Script {
        silent: vec!["tools/call".to_owned()],
        ..reporting()
    });
    start(&home);
    run(&home, &["tools"]).expect_code(0);
    let mut caller = spawned(&home, &["call", "s", "report"]);
    until("it runs", || status(&home)["runs"][0]["command"] == "call");
    caller.kill().unwrap();
    caller.wait().unwrap();
    until("it is gone", || status(&home)["runs"] == json!([]));
    assert_eq!(canary.processes().len(), 1, "the server stays");
}

#[test]
fn a_ctrl_c_ends_a_call_and_leaves_its_server() {
    let (home, _canary) = home_with(Script {
        silent: vec!["tools/call".to_owned()],
        ..reporting()
    });
    start(&home);
    let caller = spawned(&home, &["call", "s", "report"]);
    until("it runs", || status(&home)["runs"][0]["command"] == "call");
    let id = Pid::from_raw(i32::try_from(caller.id()).unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    assert_snapshot!(outcome(caller), @"
    exit: 130
    error: interrupted
    hint: servers stay with the daemon: `toolway daemon status`
    ");
}

#[test]
fn what_is_configured_takes_effect_at_once() {
    let (home, canary) = home_with(reporting());
    start(&home);
    let first = answering(&home);
    let mut changed = scripted(reporting(), &canary);
    changed["env"]["CHANGED"] = json!("1");
    home.write_settings(servers(&[("s", changed)]));
    assert_ne!(
        answering(&home),
        first,
        "another definition is another process"
    );
    until("the old one is gone", || canary.processes().len() == 1);
    home.write_settings(servers(&[]));
    assert_snapshot!(run(&home, &["call", "s", "report"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no server named `s` is configured
    hint: add one with `toolway add <name> <command or url>`
    ");
}

#[test]
fn sec_05_a_repository_s_server_waits_for_its_approval_in_the_daemon_too() {
    let (home, canary) = (TempHome::new(), Canary::new());
    home.write(
        ".mcp.json",
        servers(&[("s", scripted(reporting(), &canary))]),
    );
    start(&home);
    run(&home, &["call", "s", "report"]).expect_code(6);
    run(&home, &["list"]).expect_code(0);
    canary.assert_gone();
}

#[test]
fn projects_with_one_name_and_other_variables_have_servers_of_their_own() {
    let (home, canary) = (TempHome::new(), Canary::new());
    let mut entry = scripted(reporting(), &canary);
    entry["env"]["WHOSE"] = json!("${WHOSE:-nobody}");
    home.write_settings(servers(&[("s", entry)]));
    start(&home);
    let process_for = |whose: &str, directory: &str| {
        let directory = home.project().join(directory);
        std::fs::create_dir_all(&directory).unwrap();
        let mut call = attaching(&home, &["call", "s", "report", "--json"]);
        call.current_dir(directory).env("WHOSE", whose);
        let answer = home.run(&mut call).expect_code(0).json();
        answer["structuredContent"]["process"].as_i64().unwrap()
    };
    let (mine, yours) = (process_for("me", "a"), process_for("you", "a"));
    assert_ne!(mine, yours, "another variable is another definition");
    assert_eq!(process_for("me", "a"), mine);
    assert_eq!(process_for("me", "b"), mine, "it is shared by projects");
    let variable = |process: i64| {
        let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap();
        let environment = String::from_utf8_lossy(&environment).into_owned();
        let mut variables = environment.split('\0');
        variables
            .find_map(|it| it.strip_prefix("WHOSE="))
            .map(str::to_owned)
    };
    assert_eq!(variable(mine).as_deref(), Some("me"));
    assert_eq!(variable(yours).as_deref(), Some("you"));
}

#[test]
fn sec_39_no_variable_of_whoever_started_it_reaches_another_s_server() {
    let (home, _canary) = home_with(reporting());
    let mut starting = attaching(&home, &["daemon", "start"]);
    home.run(starting.env("STARTERS_OWN", "1").env("LC_ALL", "C"))
        .expect_code(0);
    let daemon = process(&home).as_raw_nonzero();
    let of = |process: i64| {
        let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).into_owned()
    };
    assert!(!of(i64::from(daemon.get())).contains("STARTERS_OWN"));
    let server = of(answering(&home));
    assert!(server.contains("HOME="), "{server}");
    assert!(!server.contains("LC_ALL=C"), "{server}");
    assert!(!server.contains("STARTERS_OWN"), "{server}");
}

#[test]
fn what_is_read_from_stdin_and_files_is_the_caller_s() {
    let (home, _canary) = home_with(reporting());
    home.write("deep/value.txt", "from a file");
    start(&home);
    let mut by_file = attaching(&home, &["call", "s", "mirror", "text=@value.txt"]);
    by_file.current_dir(home.project().join("deep"));
    let said = home.run(&mut by_file).expect_code(0).to_string();
    assert!(said.contains("from a file"), "{said}");
    let mut by_pipe = attaching(&home, &["call", "s", "mirror", "-"]);
    let said = home.run_with_input(&mut by_pipe, "{\"text\": \"from a pipe\"}");
    assert!(said.to_string().contains("from a pipe"), "{said}");
}

#[test]
fn a_caller_whose_output_nobody_reads_holds_up_nobody() {
    let (home, _canary) = home_with(reporting());
    start(&home);
    let long = "x".repeat(300_000);
    home.write("long.txt", &long);
    // More than a pipe holds, and nobody reads it.
    let mut stuck = spawned(&home, &["call", "s", "mirror", "text=@long.txt"]);
    until("it runs", || status(&home)["runs"][0]["command"] == "call");
    answering(&home);
    stuck.kill().unwrap();
    stuck.wait().unwrap();
    until("it is gone", || status(&home)["runs"] == json!([]));
    // A reader that comes late has all of it.
    let mut late = spawned(&home, &["call", "s", "mirror", "text=@long.txt"]);
    until("it runs", || status(&home)["runs"][0]["command"] == "call");
    let mut text = String::new();
    late.stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert!(text.contains(&long));
    assert!(late.wait().unwrap().success());
}

#[test]
fn a_newer_build_takes_over() {
    let (home, canary) = home_with(reporting());
    let old = start(&home);
    let first = answering(&home);
    let copy = home.home().join("toolway-newer");
    std::fs::copy(program(), &copy).unwrap();
    // Written now, so it is the newer one.
    let mut touched = std::fs::File::options().append(true).open(&copy).unwrap();
    touched.write_all(b"\n").unwrap();
    drop(touched);
    let with_newer = |words: &[&str]| {
        let mut command = home.command(&copy);
        home.run(command.args(words).env("TOOLWAY_DAEMON", "attach"))
    };
    let answer = with_newer(&["call", "s", "report", "--json"])
        .expect_code(0)
        .json();
    assert_ne!(answer["structuredContent"]["process"], first);
    let new = process(&home);
    assert_ne!(new, old);
    until("the old one is gone with its servers", || {
        canary.processes().len() == 1
    });
    // The older program does without the newer daemon, and leaves it alone.
    assert_ne!(
        answering(&home),
        answer["structuredContent"]["process"].as_i64().unwrap()
    );
    assert_eq!(process(&home), new);
}
