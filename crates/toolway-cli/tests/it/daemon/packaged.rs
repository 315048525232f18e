//! The files with which the system starts the daemon.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use toolway_testkit::TempHome;

use super::places::socket;
use super::{home_with, reporting, run, start, status, until};
use crate::support::program;

fn packaging(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packaging")
        .join(file)
}

fn read(file: &str) -> String {
    std::fs::read_to_string(packaging(file)).unwrap()
}

/// Whether this machine has the program.
fn has(program: &str) -> bool {
    let mut asked = Command::new(program);
    asked
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    asked.status().is_ok_and(|status| status.success())
}

fn line<'a>(unit: &'a str, key: &str) -> &'a str {
    let found = unit
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {key} in {unit}"))
}

#[test]
fn the_units_lead_to_the_socket_that_commands_look_for() {
    // As a person has it who sets no variable.
    let home = TempHome::new();
    let daemon = |words: &[&str]| {
        let mut command = home.command(program());
        command.args(words).env_remove("TOOLWAY_HOME");
        home.run(&mut command)
    };
    daemon(&["daemon", "start"]).expect_code(0);
    let listens = line(&read("systemd/toolway.socket"), "ListenStream").to_owned();
    let host = rustix::system::uname()
        .nodename()
        .to_str()
        .unwrap()
        .to_owned();
    let place = listens
        .replace("%h", home.home().to_str().unwrap())
        .replace("%H", &host);
    let found = Path::new(&place).exists();
    daemon(&["daemon", "stop"]).expect_code(0);
    assert!(found, "no socket at {place}");
    assert_eq!(line(&read("systemd/toolway.socket"), "SocketMode"), "0600");
    assert_eq!(
        line(&read("systemd/toolway.socket"), "DirectoryMode"),
        "0700"
    );
    assert_eq!(
        line(&read("systemd/toolway.service"), "StandardInput"),
        "socket"
    );
}

#[test]
fn systemd_finds_no_fault_in_the_units() {
    if !has("systemd-analyze") {
        return;
    }
    let home = TempHome::new();
    let service = read("systemd/toolway.service");
    let started = line(&service, "ExecStart").split(' ').next().unwrap();
    // Where cargo puts it, which is not where it is tested.
    let service = service.replace(started, program());
    let folder = home.project();
    home.write("toolway.service", service);
    home.write("toolway.socket", read("systemd/toolway.socket"));
    let mut verify = home.command("systemd-analyze");
    verify
        .args(["--user", "--recursive-errors=no", "--man=no", "verify"])
        .arg(folder.join("toolway.socket"))
        .arg(folder.join("toolway.service"))
        .env("XDG_RUNTIME_DIR", folder);
    let said = home.run(&mut verify).to_string();
    assert!(said.starts_with("exit: 0\n"), "{said}");
    assert!(!said.contains("toolway."), "{said}");
}

#[test]
fn the_first_command_starts_a_daemon_through_the_system_s_socket() {
    if !has("systemd-socket-activate") {
        return;
    }
    let (home, canary) = home_with(reporting());
    start(&home);
    let place = socket(&home);
    run(&home, &["daemon", "stop"]).expect_code(0);
    let service = read("systemd/toolway.service");
    let words = line(&service, "ExecStart")
        .split_once(' ')
        .unwrap()
        .1
        .to_owned();
    // The service's input is the socket: that is what `StandardInput=socket` makes of descriptor 3.
    let script = format!("exec '{}' {words} <&3", program());
    let mut activate = home.command("systemd-socket-activate");
    activate.arg("-l").arg(&place);
    for name in ["HOME", "PATH", "TOOLWAY_HOME", "TOOLWAY_TEST_SYSTEM_DIR"] {
        activate.arg("-E").arg(name);
    }
    activate.args(["sh", "-c", &script]).stderr(Stdio::null());
    let mut activated = activate.spawn().unwrap();
    until("the system listens", || place.exists());
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o600)).unwrap();
    canary.assert_gone();
    run(&home, &["call", "s", "report"]).expect_code(0);
    assert_eq!(canary.processes().len(), 1, "{}", status(&home));
    // What systemd runs is this very process: it became the daemon.
    assert_eq!(
        status(&home)["pid"].as_u64(),
        Some(u64::from(activated.id()))
    );
    run(&home, &["daemon", "stop"]).expect_code(0);
    assert!(activated.wait().unwrap().success());
    canary.assert_gone();
    assert!(place.exists(), "the socket is the system's");
}

#[test]
fn the_property_list_starts_the_daemon_in_the_foreground() {
    let list = read("launchd/dev.toolway.daemon.plist");
    let words: Vec<&str> = list
        .split("<string>")
        .skip(1)
        .filter_map(|rest| rest.split("</string>").next())
        .collect();
    assert!(
        words.ends_with(&[
            "/usr/local/bin/toolway",
            "daemon",
            "start",
            "--foreground",
            "Background"
        ]),
        "{words:?}"
    );
}
