//! SEC-15: another process of the same user cannot look into the command line while it runs.
//!
//! The one that tries is a server without a shield, which runs with all the person's rights.

use serde_json::{Value, json};

use toolway_testkit::{Script, ScriptedServer, marked};

use crate::support::servers;
use crate::user_home::{Person, UserHome, skipped};

/// Looks for the host above it and tries to look into it: prints each attempt and its outcome.
const LOOK: &str = r#"
import ctypes, json, os
def status(pid, key):
    for line in open(f"/proc/{pid}/status"):
        name, value = line.split(":", 1)
        if name == key: return value.strip()
host = os.getpid()
while status(host, "Name") != "toolway": host = int(status(host, "PPid"))
libc = ctypes.CDLL(None, use_errno=True)
def attempt(work, *args):
    try:
        work(*args)
        return "done"
    except OSError as error: return os.strerror(error.errno)
def call(function, *args):
    if function(*args) < 0:
        raise OSError(ctypes.get_errno(), "")
def read(name): open(f"/proc/{host}/{name}", "rb").read(1)
class Piece(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
here = ctypes.create_string_buffer(8)
mine, theirs = Piece(ctypes.addressof(here), 8), Piece(ctypes.addressof(here), 8)
print(json.dumps({
    "environ": attempt(read, "environ"),
    "mem": attempt(lambda: open(f"/proc/{host}/mem", "r+b")),
    "maps": attempt(read, "maps"),
    "fd": attempt(os.listdir, f"/proc/{host}/fd"),
    "cwd": attempt(os.readlink, f"/proc/{host}/cwd"),
    "readv": attempt(call, libc.process_vm_readv, host, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0),
    "seize": attempt(call, libc.ptrace, 0x4206, host, None, None),
}))
"#;

/// Desks of people who are not root: root may look into everything.
fn ordinary_desks() -> Vec<UserHome> {
    let mut users = UserHome::all();
    users.retain(|user| user.person == Person::Ordinary || !rustix::process::geteuid().is_root());
    if users.is_empty() {
        skipped("there is no ordinary user here");
    }
    users
}

#[test]
fn sec_15_no_process_of_the_same_user_looks_into_the_host() {
    for user in ordinary_desks() {
        let argv = json!({ "argv": ["/usr/bin/python3", "-I", "-S", "-c", LOOK] });
        let mut command = user.command(&[]);
        command.args(crate::user_home::call("run", &argv));
        let output = user.home.run(command.env("TOOLWAY_SHIELD", "off"));
        let said = output.expect_code(0).stdout;
        let found: Value = serde_json::from_str(said.lines().next().unwrap()).expect(&said);
        let (no_entry, not_allowed) = ("Permission denied", "Operation not permitted");
        assert_eq!(
            found,
            json!({
                "environ": no_entry, "mem": no_entry, "maps": no_entry, "fd": no_entry,
                "cwd": no_entry, "readv": not_allowed, "seize": not_allowed,
            }),
        );
    }
}

#[test]
fn sec_15_a_host_that_is_closed_raises_shields_and_nobody_leaves_a_core_file() {
    for user in ordinary_desks() {
        let path = user.home.config_home().join("settings.json");
        let script = format!("ulimit -c; echo x > '{}'", path.display());
        let words = crate::user_home::call("run", &json!({ "argv": ["sh", "-c", script] }));
        let mut command = user.prefixed("sh");
        command
            .args(["-c", "ulimit -c unlimited 2>/dev/null; exec \"$@\"", "sh"])
            .arg(crate::support::program())
            .args(words)
            .env("TOOLWAY_SHIELD", "required");
        let said = user.home.run(&mut command).expect_code(0).stdout;
        assert!(said.starts_with("0\n"), "{said}");
        assert!(said.contains("Read-only file system"), "{said}");
    }
}

/// Runs a program again and again, and each time tries to catch a child of it that lets itself be
/// traced, and to find a secret in its memory. Prints how often it ran, and how often it found it.
const RACE: &str = r#"
import ctypes, errno, json, os, subprocess, sys
runs, needle, command = int(sys.argv[1]), open(sys.argv[2], "rb").read(), sys.argv[3:]
SEIZE, INTERRUPT, DETACH, ANY_KIND = 0x4206, 0x4207, 17, 0x40000000
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
def children(host):
    try:
        for thread in os.listdir(f"/proc/{host}/task"):
            for child in open(f"/proc/{host}/task/{thread}/children").read().split(): yield int(child)
    except OSError: pass
def holds(pid):
    found = False
    try:
        memory = open(f"/proc/{pid}/mem", "rb", 0)
        for line in open(f"/proc/{pid}/maps"):
            span, rights = line.split()[:2]
            start, end = (int(it, 16) for it in span.split("-"))
            if rights.startswith("rw") and end - start < 1 << 26:
                try:
                    memory.seek(start)
                    found |= needle in memory.read(end - start)
                except (OSError, ValueError, OverflowError): pass
    except OSError: pass
    return found
def is_launcher(pid):
    try: return open(f"/proc/{pid}/comm").read() == "tw-launcher\n"
    except OSError: return True
def catch(pid):
    for attempt in range(100_000):
        if attempt % 500 == 0 and is_launcher(pid): return False
        if ptrace(SEIZE, pid, None, None) == 0: return True
        if ctypes.get_errno() == errno.ESRCH: return False
    return False
found, ended = 0, []
for _ in range(runs):
    host, seen = subprocess.Popen(command, stdout=subprocess.DEVNULL), set()
    while host.poll() is None:
        for child in children(host.pid):
            if child in seen: continue
            seen.add(child)
            if catch(child):
                ptrace(INTERRUPT, child, None, None)
                try: os.waitpid(child, ANY_KIND)
                except OSError: pass
                found += holds(child)
                ptrace(DETACH, child, None, None)
    ended.append(host.returncode)
print(json.dumps({"ended": ended, "found": found}))
"#;

#[test]
fn sec_15_no_copy_of_the_host_lies_open_while_a_shield_is_tried_and_raised() {
    const RUNS: usize = 16;
    for user in ordinary_desks() {
        let token = user.home.home().join("token");
        user.home.write(&token, concat!(marked!("race-"), "5eed"));
        let mut server = ScriptedServer::new(Script::default()).entry();
        server["env"] = json!({ "KEY": format!("${{cmd:cat '{}'}}", token.display()) });
        server["shield"] = json!("required");
        user.home.write_settings(servers(&[("chaos", server)]));
        user.give();
        let mut race = user.prefixed("/usr/bin/python3");
        race.args(["-I", "-S", "-c", RACE, &RUNS.to_string()])
            .arg(&token)
            .arg(crate::support::program())
            .args(["call", "chaos", "echo", "text=hi"]);
        let said = user.home.run(&mut race).expect_code(0).json();
        assert_eq!(said, json!({ "ended": vec![0; RUNS], "found": 0 }));
    }
}

#[test]
fn whoever_starts_it_under_a_tracer_sees_what_it_does() {
    for user in ordinary_desks() {
        if !std::path::Path::new("/usr/bin/strace").exists() {
            skipped("strace is not installed");
            return;
        }
        let log = user.home.home().join("strace.log");
        let mut command = user.prefixed("/usr/bin/strace");
        command.arg("-o").arg(&log).args(["-e", "trace=openat"]);
        command.arg(crate::support::program()).arg("doctor");
        user.home.run(&mut command).expect_code(0);
        let log = std::fs::read_to_string(log).unwrap();
        assert!(log.contains("settings.json"), "{log}");
    }
}
