//! A provider, a server that wants its tokens, a home that has it configured, and a person.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use toolway_testkit::browser::Page;
use toolway_testkit::peers::{OidcProvider, Protected, ProtectedPeer};
use toolway_testkit::{Browser, CommandOutput, TempHome, marked};

use crate::support::command;

/// How long a page is waited for. Far above any honest wait.
const PATIENCE: Duration = Duration::from_mins(1);

/// Leaves the address where the test finds it.
const BROWSER: &str = "#!/bin/sh\n\
    printf '%s' \"$1\" > \"$HOME/page.tmp\" && mv \"$HOME/page.tmp\" \"$HOME/page\"\n";

pub(super) struct Scene {
    pub(super) home: TempHome,
    pub(super) provider: OidcProvider,
    pub(super) peer: ProtectedPeer,
}

impl Scene {
    /// With the options of `tests/peers/oidc_provider.mjs`. The server is called `peer`.
    pub(super) fn new(which: Protected, options: &Value) -> Self {
        let provider = OidcProvider::start(options);
        let peer = ProtectedPeer::start(which, provider.issuer());
        let home = TempHome::new();
        let path = home.write(home.home().join("browser"), BROWSER);
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        let scene = Self {
            home,
            provider,
            peer,
        };
        scene.run(&["add", "peer", scene.peer.url()]).expect_code(0);
        scene
    }

    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = command(&self.home, words);
        command
            .env("TOOLWAY_VAULT", "file")
            .env("BROWSER", self.home.home().join("browser"));
        command
    }

    pub(super) fn run(&self, words: &[&str]) -> CommandOutput {
        self.home.run(&mut self.command(words))
    }

    /// The page that a command opens, once it does.
    pub(super) fn opened(&self) -> String {
        let page = self.home.home().join("page");
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Ok(url) = fs::read_to_string(&page) {
                return url;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("no page was opened");
    }

    /// The next page is the one that is opened from now on.
    pub(super) fn forget_opened(&self) {
        let _ = fs::remove_file(self.home.home().join("page"));
    }

    /// Runs a command that opens a page; somebody goes there.
    pub(super) fn visit<T: Send>(
        &self,
        words: &[&str],
        person: impl FnOnce(&str) -> T + Send,
    ) -> (CommandOutput, T) {
        let page = self.home.home().join("page");
        self.forget_opened();
        std::thread::scope(|scope| {
            let visit = scope.spawn(|| person(&self.opened()));
            let output = self.run(words);
            // A command that fails before it opens a page says why; the visitor does not know.
            assert!(page.exists(), "no page was opened: {output}");
            (output, visit.join().unwrap())
        })
    }

    /// The same with somebody who logs in there and consents; the last page, too.
    pub(super) fn log_in(&self, words: &[&str], who: &str) -> (CommandOutput, Page) {
        let (output, page) = self.visit(words, |url| {
            Browser::new().log_in(url, &[("login", who), ("password", "any")])
        });
        let page = page.unwrap_or_else(|| panic!("the browser got nowhere: {output}"));
        (output, page)
    }

    /// The server's state in `list --json`.
    pub(super) fn state(&self) -> String {
        let output = self.run(&["list", "--json"]).expect_code(0);
        let servers = output.json()["servers"].clone();
        let mut servers = servers.as_array().unwrap().iter();
        let peer = servers.find(|server| server["name"] == "peer").unwrap();
        peer["state"].as_str().unwrap().to_owned()
    }

    pub(super) fn whoami(&self) -> String {
        self.run(&["call", "peer", "whoami"]).expect_code(0).stdout
    }

    /// The login of this account, as the vault has it.
    pub(super) fn kept(&self, account: &str) -> Value {
        let file = self.home.home().join("export.json");
        let name = file.display().to_string();
        self.run(&["vault", "export", &name, "--show-secrets"])
            .expect_code(0);
        let content: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        fs::remove_file(file).unwrap();
        let mut secrets = content["secrets"].as_array().unwrap().iter();
        let login = secrets
            .find(|item| item["kind"] == "login" && item["account"] == account)
            .unwrap();
        serde_json::from_str(login["secret"].as_str().unwrap()).unwrap()
    }
}

/// A command that says something on stderr, and is answered on stdin.
pub(super) struct Speaking {
    child: Child,
    stderr: BufReader<ChildStderr>,
    seen: String,
}

impl Speaking {
    pub(super) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self {
            child,
            stderr,
            seen: String::new(),
        }
    }

    /// Reads on until a line holds this, and gives that line.
    pub(super) fn wait_for(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            self.stderr.read_line(&mut line).unwrap();
            assert!(!line.is_empty(), "no `{text}` in:\n{}", self.seen);
            self.seen.push_str(&line);
            if line.contains(text) {
                return line;
            }
        }
    }

    pub(super) fn type_line(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end.
    pub(super) fn end(mut self) -> CommandOutput {
        for line in self.stderr.lines() {
            self.seen.push_str(&line.unwrap());
            self.seen.push('\n');
        }
        let output = marked::output_of(self.child);
        CommandOutput {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: self.seen,
        }
    }
}
