//! REL-01, REL-02, REL-20, SEC-39, SEC-41 by the real program: what it starts, what it leaves.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};
use toolway_testkit::marked::MARK;
use toolway_testkit::{Canary, Script, ScriptedServer, TempHome, shell_code};

use crate::support::{command, program, servers};

/// Nothing that is waited for takes longer.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server that starts, before itself, one that leaves its session and one that leaves its
/// parents too; both ignore every request to end.
const FAMILY: &str = r#"
stay='trap "" INT TERM HUP; while :; do sleep 1000; done'
setsid sh -c "$stay" </dev/null >/dev/null 2>&1 &
(setsid sh -c "$stay" </dev/null >/dev/null 2>&1 &)
exec "$@"
"#;

/// The two that left, with what they sleep in, and the server.
const MEMBERS: usize = 5;

/// The entry of a server with such a family, whose processes carry the canary.
fn family(canary: &Canary) -> Value {
    let server = ScriptedServer::new(Script {
        tampers: true,
        ignores_end_of_input: true,
        ..Script::default()
    });
    let program = ScriptedServer::program().to_str().unwrap();
    let mut args: Vec<String> = ["-c", FAMILY, "sh", program].map(str::to_owned).into();
    args.extend(server.args());
    json!({ "command": "sh", "args": args, "env": { canary.name(): canary.value() } })
}

fn until(what: &str, condition: impl Fn() -> bool) -> Duration {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::yield_now();
    }
    started.elapsed()
}

/// A host in the middle of a call.
struct Host {
    process: Child,
    canary: Canary,
    _home: TempHome,
}

impl Host {
    fn in_a_call(shield: &str) -> Self {
        let home = TempHome::new();
        let canary = Canary::new();
        home.write_settings(servers(&[("family", family(&canary))]));
        let mark = home.project().join("called");
        let script = format!("touch '{}'; sleep 1000", mark.display());
        let argv = json!({ "argv": ["sh", "-c", script] });
        let arguments = argv.to_string();
        let process = command(&home, &["call", "family", "run", "--args", &arguments])
            .env("TOOLWAY_SHIELD", shield)
            .stdin(Stdio::null())
            .stdout(File::create(home.project().join("output")).unwrap())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        until("the call", || mark.exists());
        until("the family", || canary.processes().len() >= MEMBERS + 2);
        Self {
            process,
            canary,
            _home: home,
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    fn launcher(&self) -> Pid {
        let own = self.process.id().to_string();
        let is_launcher = |path: &Path| {
            let stat = std::fs::read_to_string(path.join("stat")).unwrap_or_default();
            let Some((name, rest)) = stat.rsplit_once(") ") else {
                return false;
            };
            name.ends_with("(tw-launcher") && rest.split(' ').nth(1) == Some(&*own)
        };
        std::fs::read_dir("/proc")
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| is_launcher(path))
            .and_then(|path| Pid::from_raw(path.file_name()?.to_str()?.parse().ok()?))
            .unwrap()
    }

    /// Everything is gone within five seconds.
    fn assert_cleared(mut self) {
        let took = until("the end of the family", || {
            self.canary.processes().is_empty()
        });
        assert!(took < Duration::from_secs(5), "{took:?}");
        let _ = self.process.kill();
        self.process.wait().unwrap();
    }
}

#[test]
fn rel_01_nobody_who_left_stays_behind_after_a_call() {
    for shield in ["off", "best-effort"] {
        let home = TempHome::new();
        let canary = Canary::new();
        home.write_settings(servers(&[("family", family(&canary))]));
        let mut call = command(&home, &["call", "family", "echo", "text=x"]);
        home.run(call.env("TOOLWAY_SHIELD", shield)).expect_code(0);
        canary.assert_gone();
    }
}

#[test]
fn rel_02_a_host_killed_in_the_middle_of_a_call_leaves_nothing() {
    for shield in ["off", "best-effort"] {
        let host = Host::in_a_call(shield);
        kill_process(host.pid(), Signal::KILL).unwrap();
        host.assert_cleared();
    }
}

#[test]
fn rel_02_a_launcher_that_is_killed_leaves_nothing() {
    for shield in ["off", "best-effort"] {
        let host = Host::in_a_call(shield);
        kill_process(host.launcher(), Signal::KILL).unwrap();
        host.assert_cleared();
    }
}

#[test]
fn rel_02_host_and_launcher_killed_together_leave_nothing() {
    for shield in ["off", "best-effort"] {
        let host = Host::in_a_call(shield);
        let launcher = host.launcher();
        kill_process(host.pid(), Signal::KILL).unwrap();
        kill_process(launcher, Signal::KILL).unwrap();
        host.assert_cleared();
    }
}

#[test]
fn rel_02_a_closed_terminal_leaves_nothing() {
    let host = Host::in_a_call("off");
    kill_process(host.pid(), Signal::HUP).unwrap();
    host.assert_cleared();
}

#[test]
fn rel_32_what_is_typed_at_the_terminal_is_for_the_host_alone() {
    // The terminal signals the whole group of the host: servers and launcher are not in it, so that
    // the host can end them in an orderly way.
    let mut host = Host::in_a_call("off");
    let launcher = host.launcher();
    let group = |pid: Pid| rustix::process::getpgid(Some(pid)).unwrap();
    assert_eq!(group(launcher), launcher);
    for member in host.canary.processes() {
        let member = Pid::from_raw(member.pid.try_into().unwrap()).unwrap();
        assert_ne!(group(member), group(host.pid()));
        assert_ne!(group(member), launcher);
    }
    kill_process_group(host.pid(), Signal::INT).unwrap();
    let status = host.process.wait().unwrap();
    assert_eq!(shell_code(status), Some(130));
    host.canary.assert_gone();
}

#[test]
fn sec_39_and_sec_41_hold_below_the_launcher() {
    for shield in ["off", "best-effort"] {
        let home = TempHome::new();
        let entry = ScriptedServer::new(Script::default()).entry_with_env([("DECLARED", "yes")]);
        home.write_settings(servers(&[("chaos", entry)]));
        // As if whoever started us had left a descriptor open: the shell does.
        let mut call = home.command("sh");
        call.args(["-c", "exec 9</dev/null; exec \"$@\"", "sh", program()])
            .args(["call", "chaos", "inspect"])
            .env("SECRET_OF_THE_PARENT", MARK)
            .env("TOOLWAY_SHIELD", shield);
        let output = home.run(&mut call).expect_code(0);
        let facts: Value = serde_json::from_str(&output.stdout).expect("JSON");
        assert_eq!(facts["fds"], json!([0, 1, 2]), "{facts}");
        let names: Vec<&String> = facts["env"].as_object().unwrap().keys().collect();
        assert!(names.iter().any(|name| *name == "DECLARED"), "{names:?}");
        let allowed = [
            "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "TMPDIR", "TZ", "DECLARED",
        ];
        assert!(
            names
                .iter()
                .all(|name| allowed.contains(&name.as_str()) || name.starts_with("LC_")),
            "{names:?}"
        );
    }
}

#[test]
fn sec_39_the_launcher_keeps_nothing_of_the_host_it_was_forked_from() {
    let host = Host::in_a_call("off");
    let launcher = format!("/proc/{}", host.launcher());
    let read = |name: &str| std::fs::read(Path::new(&launcher).join(name)).unwrap();
    assert_eq!(read("cmdline"), b"tw-launcher\0");
    if !rustix::process::geteuid().is_root() {
        skipped("the launcher cannot be looked into");
        return;
    }
    assert!(read("environ").iter().all(|byte| *byte == 0));
    for open in std::fs::read_dir(format!("{launcher}/fd")).unwrap() {
        let target = std::fs::read_link(open.unwrap().path()).unwrap();
        let target = target.to_str().unwrap();
        let own = ["/dev/null", "socket:", "pipe:", "anon_inode:[signalfd]"];
        assert!(own.iter().any(|it| target.starts_with(it)), "{target}");
    }
    kill_process(host.pid(), Signal::INT).unwrap();
    host.assert_cleared();
}

/// More servers than there is room for.
const CROWD: usize = 30;

fn crowd() -> TempHome {
    let home = TempHome::new();
    let names: Vec<String> = (0..CROWD).map(|number| format!("s{number:02}")).collect();
    let entry = ScriptedServer::new(Script::default()).entry();
    let entries: Vec<(&str, Value)> = names.iter().map(|it| (&**it, entry.clone())).collect();
    home.write_settings(servers(&entries));
    home
}

/// Some are connected, and all others say why they are not.
fn assert_some_live(home: &TempHome, limited: &mut Command, why: &str) {
    let output = home.run(limited.arg(program()).args(["list", "--json"]));
    let listed = output.json();
    let states = listed["servers"].as_array().unwrap().iter();
    let states: Vec<String> = states.map(Value::to_string).collect();
    let count = |text: &str| states.iter().filter(|it| it.contains(text)).count();
    let (connected, refused) = (count("\"connected\""), count(why));
    assert!(connected > 0 && refused > 0, "{output}");
    assert_eq!(connected + refused, CROWD, "{output}");
}

#[test]
fn rel_20_where_there_is_no_room_for_processes_some_servers_fail_clearly_and_others_live() {
    /// A user that owns nothing on this machine, and whose processes no other test counts.
    const CROWDED: &str = "61235";
    if !rustix::process::geteuid().is_root() {
        skipped("the limit counts every process of the user, who is not alone here");
        return;
    }
    let home = crowd();
    let given = Command::new("chown")
        .args(["-R", &format!("{CROWDED}:{CROWDED}")])
        .arg(home.home().parent().unwrap())
        .status();
    assert!(given.unwrap().success());
    let mut limited = home.command("setpriv");
    limited.args(["--reuid", CROWDED, "--regid", CROWDED, "--clear-groups"]);
    limited.args(["prlimit", "--nproc=30"]);
    assert_some_live(&home, &mut limited, "Resource temporarily unavailable");
}

#[test]
fn rel_20_where_there_is_no_room_for_descriptors_some_servers_fail_clearly_and_others_live() {
    let home = crowd();
    let mut limited = home.command("prlimit");
    limited.arg("--nofile=64");
    assert_some_live(&home, &mut limited, "Too many open files");
}

#[expect(
    clippy::print_stderr,
    reason = "whoever reads the log must see what was not tested"
)]
fn skipped(reason: &str) {
    eprintln!("skipped: {reason}");
}

#[test]
fn what_starts_no_server_starts_no_launcher() {
    if !Path::new("/usr/bin/strace").exists() {
        skipped("strace is not installed");
        return;
    }
    let home = crate::support::home_with(Script::default());
    for words in [
        &["--version"][..],
        &["--help"],
        &["get", "chaos"],
        &["list", "--no-connect"],
    ] {
        let log = home.home().join("strace");
        let mut strace = home.command("/usr/bin/strace");
        strace.args(["-f", "-e", "trace=execve", "-o"]).arg(&log);
        strace.arg(program()).args(words);
        home.run(&mut strace).expect_code(0);
        let text = home.read(&log);
        assert_eq!(text.matches("execve(").count(), 1, "{words:?}: {text}");
    }
}

#[test]
fn no_server_waits_until_the_program_is_executed_twice() {
    if !Path::new("/usr/bin/strace").exists() {
        skipped("strace is not installed");
        return;
    }
    let home = crate::support::home_with(Script::default());
    let log = home.home().join("strace");
    let mut strace = home.command("/usr/bin/strace");
    strace.args(["-f", "-e", "trace=execve", "-o"]).arg(&log);
    strace
        .arg(program())
        .args(["call", "chaos", "echo", "text=x"]);
    home.run(&mut strace).expect_code(0);
    let text = home.read(&log);
    assert!(!text.contains("/proc/self/exe"), "{text}");
    assert_eq!(
        text.matches(&format!("execve(\"{}\"", program())).count(),
        1,
        "{text}"
    );
}

#[test]
fn the_first_word_alone_makes_no_launcher() {
    let home = TempHome::new();
    let mut command = home.command(program());
    command
        .arg0("tw-launcher")
        .arg("--version")
        .stdin(Stdio::null());
    let output = home.run(&mut command).expect_code(0);
    assert!(output.stdout.starts_with("toolway "), "{output}");
}
