//! How runs end: nothing of theirs stays, whoever is killed.

use super::*;

/// A home whose agent has a server of its own and one that is shared.
struct Place {
    home: TempHome,
    shared: Canary,
    own: Canary,
}

impl Place {
    fn new() -> Self {
        let (home, shared, own) = (TempHome::new(), Canary::new(), Canary::new());
        home.write_settings(servers(&[("shared", offering(&shared))]));
        let mine = serde_json::to_string(&offering(&own)).unwrap();
        let text = format!(
            "mcpServers:\n  - shared\n  - mine: {mine}\nrequiredMcpServers: [mine, shared]\n"
        );
        write_agent(&home, "w", &text);
        Self { home, shared, own }
    }

    fn start(&self, daemon: &str) -> Running {
        let mut command = command(&self.home, &["run", "--agent", "w"]);
        Running::of(command.env("TOOLWAY_DAEMON", daemon))
    }

    fn daemon(&self, words: &[&str]) -> CommandOutput {
        self.home
            .run(command(&self.home, words).env("TOOLWAY_DAEMON", "attach"))
    }

    fn daemons_process(&self) -> Pid {
        let status = self.daemon(&["daemon", "status", "--json"]).json();
        let process = status["pid"].as_i64().unwrap_or_else(|| panic!("{status}"));
        Pid::from_raw(i32::try_from(process).unwrap()).unwrap()
    }

    /// Nothing of the run is left.
    fn is_clean(&self, folder: &Path) {
        until("its servers and files are gone", || {
            self.own.processes().is_empty() && !folder.exists()
        });
    }
}

#[test]
fn an_agents_servers_and_files_end_with_its_program() {
    let place = Place::new();
    let running = place.start("off");
    let folder = running.folder().to_owned();
    running.client().answering("mine");
    assert_eq!(running.end(), 0);
    // Not a moment later.
    place.own.assert_gone();
    place.shared.assert_gone();
    assert!(!folder.exists());
}

#[test]
fn a_program_that_is_killed_ends_its_run() {
    let place = Place::new();
    let mut running = place.start("off");
    let folder = running.folder().to_owned();
    kill_process(running.program, Signal::KILL).unwrap();
    let status = running.child.wait().unwrap();
    assert_eq!(toolway_testkit::shell_code(status), Some(137));
    place.own.assert_gone();
    assert!(!folder.exists());
}

#[test]
fn a_run_that_is_killed_leaves_nothing_with_and_without_a_daemon() {
    let place = Place::new();
    let running = place.start("off");
    let folder = running.folder().to_owned();
    kill_process(running.process(), Signal::KILL).unwrap();
    place.is_clean(&folder);
    until("the shared server ends with it", || {
        place.shared.processes().is_empty()
    });
    let running = place.start("auto");
    let folder = running.folder().to_owned();
    kill_process(running.process(), Signal::KILL).unwrap();
    place.is_clean(&folder);
    assert_eq!(
        place.shared.processes().len(),
        1,
        "the daemon keeps what is shared"
    );
    place.daemon(&["daemon", "stop"]).expect_code(0);
    place.shared.assert_gone();
}

#[test]
fn what_is_shared_is_the_daemons_and_what_is_the_agents_ends_with_it() {
    let place = Place::new();
    place.daemon(&["daemon", "start"]).expect_code(0);
    let (one, two) = (place.start("attach"), place.start("attach"));
    let (mut ada, mut bob) = (one.client(), two.client());
    assert_eq!(ada.answering("shared"), bob.answering("shared"));
    assert_ne!(ada.answering("mine"), bob.answering("mine"));
    assert_eq!(place.shared.processes().len(), 1);
    assert_eq!(place.own.processes().len(), 2);
    one.end();
    assert_eq!(place.own.processes().len(), 1, "and not kept by the daemon");
    bob.answering("mine");
    two.end();
    place.own.assert_gone();
    assert_eq!(place.shared.processes().len(), 1);
    place.daemon(&["daemon", "stop"]).expect_code(0);
}

#[test]
fn rel_29_an_endpoint_is_served_again_when_the_daemon_is_killed() {
    let place = Place::new();
    let running = place.start("auto");
    let mut bridged = Bridged::start(&place.home, &running.socket);
    let before = bridged.client_answers("mine");
    kill_process(place.daemons_process(), Signal::KILL).unwrap();
    until("what the agent had of its own is gone", || {
        let left = place.own.processes();
        left.iter().all(|process| u64::from(process.pid) != before)
    });
    // The bridge introduces its client again.
    let after = bridged.client_answers("mine");
    assert_ne!(after, before);
    let folder = running.folder().to_owned();
    drop(bridged);
    assert_eq!(running.end(), 0);
    place.is_clean(&folder);
    let _ = place.daemon(&["daemon", "stop"]);
}

#[test]
fn an_endpoint_goes_on_when_the_daemon_is_stopped() {
    let place = Place::new();
    let running = place.start("auto");
    running.client().answering("mine");
    place.daemon(&["daemon", "stop"]).expect_code(0);
    eventually_blocking(|| match UnixStream::connect(&running.socket) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    });
    assert!(running.client().answering("mine") > 0);
    let folder = running.folder().to_owned();
    running.end();
    place.is_clean(&folder);
    let _ = place.daemon(&["daemon", "stop"]);
}

#[test]
fn what_was_killed_all_at_once_is_taken_away_by_the_next_run() {
    let place = Place::new();
    let running = place.start("auto");
    let folder = running.folder().to_owned();
    let daemon = place.daemons_process();
    kill_process(running.process(), Signal::STOP).unwrap();
    kill_process(daemon, Signal::KILL).unwrap();
    kill_process(running.process(), Signal::KILL).unwrap();
    until("its servers are gone", || place.own.processes().is_empty());
    assert!(folder.exists());
    run(&place.home, &["--servers", "shared", "--", "true"]).expect_code(0);
    assert!(!folder.exists());
}

/// A client that starts `toolway endpoint`.
struct Bridged {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Bridged {
    fn start(home: &TempHome, socket: &Path) -> Self {
        let mut child = command(home, &["endpoint", socket.to_str().unwrap()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut bridged = Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            last: 0,
        };
        let greeting = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "tests", "version": "1" } });
        bridged.ask("initialize", &greeting);
        bridged
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let message =
            json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        self.input
            .write_all(format!("{message}\n").as_bytes())
            .unwrap();
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"));
            if said["id"] == self.last && said.get("method").is_none() {
                return said;
            }
        }
    }

    fn client_answers(&mut self, server: &str) -> u64 {
        let tool = format!("{server}__report");
        let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": {} }));
        let process = &answer["result"]["structuredContent"]["process"];
        process.as_u64().unwrap_or_else(|| panic!("{answer}"))
    }
}

impl Drop for Bridged {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
