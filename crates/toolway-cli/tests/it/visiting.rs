//! A person with a browser: the pages that `toolway` opens, and what is typed while it waits.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use toolway_testkit::{CommandOutput, TempHome, marked, shell_code};

use crate::support::command;

/// How long a page is waited for. Far above any honest wait.
const PATIENCE: Duration = Duration::from_mins(1);

/// Leaves the address where the test finds it.
const BROWSER: &str = "#!/bin/sh\n\
    printf '%s' \"$1\" > \"$HOME/page.tmp\" && mv \"$HOME/page.tmp\" \"$HOME/page\"\n";

/// `toolway` with these words, whose logins lie in a file and whose pages somebody opens.
pub(crate) fn with_browser(home: &TempHome, words: &[&str]) -> Command {
    let browser = home.home().join("browser");
    if !browser.exists() {
        home.write(&browser, BROWSER);
        fs::set_permissions(&browser, Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = command(home, words);
    command.env("TOOLWAY_VAULT", "file").env("BROWSER", browser);
    command
}

/// The page that a command opens, once it does.
pub(crate) fn opened(home: &TempHome) -> String {
    let page = home.home().join("page");
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Ok(url) = fs::read_to_string(&page) {
            return url;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("no page was opened");
}

/// Runs a command that opens a page; somebody goes there.
pub(crate) fn visit<T: Send>(
    home: &TempHome,
    command: &mut Command,
    person: impl FnOnce(&str) -> T + Send,
) -> (CommandOutput, T) {
    let page = home.home().join("page");
    let _ = fs::remove_file(&page);
    std::thread::scope(|scope| {
        let visit = scope.spawn(|| person(&opened(home)));
        let output = home.run(command);
        // A command that fails before it opens a page says why; the visitor does not know.
        assert!(page.exists(), "no page was opened: {output}");
        (output, visit.join().unwrap())
    })
}

/// A command that says something on stderr, and is answered on stdin.
pub(crate) struct Speaking {
    child: Child,
    stderr: BufReader<ChildStderr>,
    seen: String,
}

impl Speaking {
    pub(crate) fn start(mut command: Command) -> Self {
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
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
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

    pub(crate) fn type_line(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Whether it has not ended yet.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end.
    pub(crate) fn end(mut self) -> CommandOutput {
        for line in self.stderr.lines() {
            self.seen.push_str(&line.unwrap());
            self.seen.push('\n');
        }
        let output = marked::output_of(self.child);
        marked::assert_none("the program's stderr", self.seen.as_bytes());
        CommandOutput {
            code: shell_code(output.status),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: self.seen,
        }
    }
}
