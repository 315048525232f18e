//! Callers of one daemon that must have nothing of each other: their variables, streams, projects,
//! accounts and approvals.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::fs::Mode;
use serde_json::{Value, json};
use toolway_testkit::{Canary, CommandOutput, TempHome};

use super::{attaching, home_with, outcome, reporting, run, scripted, start, status, until};
use crate::support::{program, servers};

/// What a process has in its environment.
fn environment(process: i64) -> String {
    let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap();
    String::from_utf8_lossy(&environment).into_owned()
}

fn process_of(output: CommandOutput) -> i64 {
    let answer = output.expect_code(0).json();
    answer["structuredContent"]["process"]
        .as_i64()
        .unwrap_or_else(|| panic!("{answer}"))
}

fn at(home: &TempHome, directory: &Path, words: &[&str]) -> Command {
    let mut command = attaching(home, words);
    command.current_dir(directory);
    command
}

#[test]
fn two_projects_have_their_own_servers_of_one_name() {
    let (home, canary) = (TempHome::new(), Canary::new());
    let call = ["call", "s", "report", "--json"];
    let project = |name: &str| {
        let folder = home.project().join(name);
        let mut entry = scripted(reporting(), &canary);
        entry["env"]["WHOSE"] = json!(name);
        entry["cwd"] = json!("${workspace}");
        home.write(format!("{name}/.mcp.json"), servers(&[("s", entry)]));
        std::fs::create_dir_all(folder.join(".git")).unwrap();
        folder
    };
    let (one, two) = (project("one"), project("two"));
    start(&home);
    // What one approved is not approved in the other.
    home.run(&mut at(&home, &one, &["approve", "s", "--yes"]))
        .expect_code(0);
    home.run(&mut at(&home, &two, &call)).expect_code(6);
    home.run(&mut at(&home, &one, &call)).expect_code(0);
    home.run(&mut at(&home, &two, &["approve", "s", "--yes"]))
        .expect_code(0);
    home.run(&mut at(&home, &two, &call)).expect_code(0);
    // A repository's server has process ids of its own, so it is looked for by its mark.
    let found = |name: &str| {
        let processes = canary.processes();
        let mut ids = processes.iter().map(|process| i64::from(process.pid));
        let mark = format!("WHOSE={name}\0");
        ids.find(|process| environment(*process).contains(&mark))
            .unwrap()
    };
    assert_eq!(canary.processes().len(), 2);
    for (name, folder) in [("one", &one), ("two", &two)] {
        let directory = std::fs::read_link(format!("/proc/{}/cwd", found(name))).unwrap();
        assert_eq!(&directory, folder);
    }
    let second = found("two");
    // A rule of one says nothing in the other.
    let deny = json!({ "permissions": { "deny": ["mcp__s__report"] } });
    home.write("one/.toolway/settings.local.json", deny.to_string());
    let refused = home.run(&mut at(&home, &one, &call)).to_string();
    assert!(refused.starts_with("exit: 6\n"), "{refused}");
    home.run(&mut at(&home, &two, &call)).expect_code(0);
    assert_eq!(found("two"), second);
    // A yes that is taken back counts at once.
    home.run(&mut at(&home, &two, &["reject", "s"]))
        .expect_code(0);
    home.run(&mut at(&home, &two, &call)).expect_code(6);
}

#[test]
fn sec_39_a_caller_s_variable_is_in_no_process_and_answer_of_another() {
    let (home, canary) = (TempHome::new(), Canary::new());
    let mut entry = scripted(reporting(), &canary);
    entry["env"]["TOKEN"] = json!("${TOKEN:-none}");
    let plain = scripted(reporting(), &canary);
    home.write_settings(servers(&[("keyed", entry), ("plain", plain)]));
    start(&home);
    let call = |token: &str, server: &str| {
        let mut command = attaching(&home, &["call", server, "report", "--json"]);
        home.run_showing_secrets(command.env("TOKEN", token))
    };
    let mine = process_of(call("token-of-mine", "keyed"));
    let yours = process_of(call("token-of-yours", "keyed"));
    assert_ne!(mine, yours);
    assert!(!environment(yours).contains("token-of-mine"));
    assert!(!environment(mine).contains("token-of-yours"));
    // A server that names no variable is shared, and has neither.
    let shared = process_of(call("token-of-mine", "plain"));
    assert_eq!(process_of(call("token-of-yours", "plain")), shared);
    assert!(!environment(shared).contains("token-of"));
    let daemon = status(&home)["pid"].as_i64().unwrap();
    assert!(!environment(daemon).contains("token-of"));
    let shown = status(&home).to_string() + &run(&home, &["daemon", "logs"]).to_string();
    assert!(!shown.contains("token-of"), "{shown}");
    // Another path finds other programs, so it is another process.
    let mut elsewhere = attaching(&home, &["call", "plain", "report", "--json"]);
    let mut variables = elsewhere.get_envs();
    let (_, path) = variables.find(|(name, _)| *name == "PATH").unwrap();
    let path = format!("{}:/nowhere", path.unwrap().to_str().unwrap());
    assert_ne!(process_of(home.run(elsewhere.env("PATH", path))), shared);
}

#[test]
fn each_caller_s_stdin_goes_to_its_own_call() {
    let (home, _canary) = home_with(reporting());
    start(&home);
    let begin = |words: &[&str]| -> Child {
        let mut command = attaching(&home, words);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    // Both are open at once, and the second one is written first.
    let mut first = begin(&["call", "s", "mirror", "-"]);
    let mut second = begin(&["call", "s", "mirror", "-"]);
    until("both run", || {
        status(&home)["runs"].as_array().unwrap().len() == 2
    });
    for (caller, text) in [(&mut second, "of the second"), (&mut first, "of the first")] {
        let line = json!({ "text": text }).to_string();
        caller
            .stdin
            .take()
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
    }
    let (first, second) = (outcome(first), outcome(second));
    assert!(
        first.contains("of the first") && !first.contains("of the second"),
        "{first}"
    );
    assert!(
        second.contains("of the second") && !second.contains("of the first"),
        "{second}"
    );
}

#[test]
fn files_of_the_caller_s_own_process_are_never_the_daemon_s() {
    let (home, _canary) = home_with(reporting());
    start(&home);
    for place in [
        "/dev/stdin",
        "/dev/fd/0",
        "/proc/self/fd/0",
        "/proc/thread-self/fd/0",
    ] {
        let argument = format!("text=@{place}");
        let mut call = attaching(&home, &["call", "s", "mirror", &argument]);
        let said = home
            .run_with_input(&mut call, "from my own pipe")
            .to_string();
        assert!(said.contains("from my own pipe"), "{place}: {said}");
    }
    let mut call = attaching(&home, &["call", "s", "mirror", "text=@fd/0"]);
    let said = home
        .run_with_input(call.current_dir("/proc/self"), "by its folder")
        .to_string();
    assert!(said.contains("by its folder"), "{said}");
    // A shell's `<(…)` is a file of that process too.
    let script = format!("'{}' call s mirror text=@<(echo from a shell)", program());
    let mut shell = home.command("bash");
    let said = home.run(shell.args(["-c", &script]).env("TOOLWAY_DAEMON", "attach"));
    assert!(said.to_string().contains("from a shell"), "{said}");
}

#[test]
fn a_server_makes_files_as_whoever_wants_it_would() {
    let (home, canary) = (TempHome::new(), Canary::new());
    let script = toolway_testkit::Script {
        tampers: true,
        ..reporting()
    };
    home.write_settings(servers(&[("s", scripted(script, &canary))]));
    start(&home);
    for (umask, mode) in [("022", 0o644), ("077", 0o600), ("002", 0o664)] {
        let path = home.project().join(format!("made-{umask}"));
        let line = format!(
            "umask {umask}; exec '{}' call s write path='{}' text=x",
            program(),
            path.display()
        );
        let mut shell = home.command("sh");
        let said = home.run(shell.args(["-c", &line]).env("TOOLWAY_DAEMON", "attach"));
        said.expect_code(0);
        let made = path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(made, mode, "{umask}");
    }
    assert_eq!(canary.processes().len(), 3, "one for each");
}

#[test]
fn what_is_read_to_a_file_is_made_as_the_caller_would() {
    let (home, _canary) = home_with(reporting());
    start(&home);
    run(&home, &["tools"]).expect_code(0);
    let own = rustix::process::umask(Mode::from_raw_mode(0o022));
    rustix::process::umask(own);
    for (umask, mode) in [("022", 0o644), ("077", 0o600), ("007", 0o660)] {
        let line = format!(
            "umask {umask}; exec '{}' read shared:one s --output made-{umask}.txt",
            program()
        );
        let mut shell = home.command("sh");
        let said = home.run(shell.args(["-c", &line]).env("TOOLWAY_DAEMON", "attach"));
        said.expect_code(0);
        let made = home
            .project()
            .join(format!("made-{umask}.txt"))
            .metadata()
            .unwrap();
        assert_eq!(made.permissions().mode() & 0o777, mode, "{umask}");
    }
}

#[test]
fn what_the_organisation_sets_counts_in_the_daemon() {
    let (home, canary) = (TempHome::new(), Canary::new());
    let mut entry = scripted(reporting(), &canary);
    entry["env"]["TEAM"] = json!("${TEAM:-nobody}");
    home.write_settings(servers(&[("s", entry)]));
    let managed = |team: &str| {
        let text = json!({ "env": { "TEAM": team } }).to_string();
        home.write(home.system().join("managed-settings.json"), text);
        run(&home, &["policy", "confirm", "--yes"]).expect_code(0);
    };
    managed("blue");
    start(&home);
    let call = ["call", "s", "report", "--json"];
    let process = process_of(run(&home, &call));
    assert!(environment(process).contains("TEAM=blue\0"));
    managed("green");
    let process = process_of(run(&home, &call));
    assert!(environment(process).contains("TEAM=green\0"));
}

#[test]
fn a_server_that_an_organisation_forbids_ends_with_that_word() {
    let (home, _canary) = home_with(reporting());
    start(&home);
    run(&home, &["call", "s", "report"]).expect_code(0);
    let denied: Value = json!({ "deniedMcpServers": [{ "serverName": "s" }] });
    home.write(
        home.system().join("managed-settings.json"),
        denied.to_string(),
    );
    let alone = home.run(&mut attaching(
        &home,
        &["--no-daemon", "call", "s", "report"],
    ));
    let with = run(&home, &["call", "s", "report"]);
    assert_eq!(with.to_string(), alone.to_string());
    assert!(!with.to_string().starts_with("exit: 0\n"), "{with}");
}
