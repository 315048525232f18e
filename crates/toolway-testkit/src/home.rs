//! A temporary home: no test may read or write the developer's own.
//!
//! Owns the directories and the environment a program under test is started with, and looking for
//! secrets in what it printed (`marked.rs`). Looking in what it left is `folder.rs`, what it
//! printed is `output.rs`.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::marked;
use crate::{CommandOutput, ScannedFolder};

/// A home, a project inside it and a system directory, gone when dropped.
///
/// What a program prints must hold no secret of a test, and no file here may when this is dropped,
/// but for those that the test wrote with [`TempHome::write`] or gave leave to.
#[derive(Debug)]
pub struct TempHome {
    root: ScannedFolder,
    home: PathBuf,
    project: PathBuf,
    system: PathBuf,
}

impl Default for TempHome {
    fn default() -> Self {
        Self::new()
    }
}

impl TempHome {
    /// Makes empty directories.
    pub fn new() -> Self {
        let root = ScannedFolder::new();
        let home = root.path().join("home");
        let project = home.join("project");
        let system = root.path().join("system");
        for directory in [&project, &system] {
            fs::create_dir_all(directory).expect("a directory below the temporary one can be made");
        }
        Self {
            root,
            home,
            project,
            system,
        }
    }

    /// `$HOME`.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// `$TOOLWAY_HOME`: where `settings.json` and `approvals.json` lie.
    pub fn config_home(&self) -> PathBuf {
        self.home.join(".config/toolway")
    }

    /// The working directory of the programs that [`TempHome::command`] makes; below the home.
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// What stands for `/etc/toolway`.
    pub fn system(&self) -> &Path {
        &self.system
    }

    /// Writes a file, making its directories. A relative path is below the project.
    pub fn write(&self, path: impl AsRef<Path>, text: impl AsRef<str>) -> PathBuf {
        self.root.write(self.project.join(path), text.as_ref())
    }

    /// Secrets may stand in this file, or below this folder: a server of the test writes them
    /// there. A relative path is below the project.
    pub fn may_hold_secrets(&self, path: impl AsRef<Path>) {
        self.root.may_hold_secrets(self.project.join(path));
    }

    /// Secrets may stand in this file, or below this folder, if only its owner can read it: the
    /// test asked the program for that. A relative path is below the project.
    pub fn may_keep_secrets(&self, path: impl AsRef<Path>) {
        self.root.may_keep_secrets(self.project.join(path));
    }

    /// Panics with every file in which a secret stands without leave.
    pub fn assert_no_secrets(&self) {
        self.root.assert_no_secrets();
    }

    /// Writes the user's `settings.json`.
    pub fn write_settings(&self, text: impl AsRef<str>) -> PathBuf {
        self.write(self.config_home().join("settings.json"), text)
    }

    /// Reads a file as text. A relative path is below the project.
    pub fn read(&self, path: impl AsRef<Path>) -> String {
        let path = self.project.join(path);
        fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("cannot read `{}`: {error}", path.display()))
    }

    /// A program with nothing of this process's environment but `PATH`, in the project directory,
    /// without input.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("DBUS_SESSION_BUS_ADDRESS", self.bus())
            .env("HOME", &self.home)
            .env("LANG", "C.UTF-8")
            .env("PATH", path_variable())
            // Common variables that no program may hand on.
            .env(marked::DEVELOPERS, marked::DEVELOPERS_SECRET)
            .env("TOOLWAY_DAEMON", daemon_use())
            .env("TOOLWAY_HOME", self.config_home())
            .env("TOOLWAY_TEST_SYSTEM_DIR", &self.system)
            .env("USER", "tester")
            .current_dir(&self.project)
            .stdin(Stdio::null());
        command
    }

    /// Where programs look for a session bus: nothing is there. Without it they would find the
    /// developer's own, and the keychain behind it.
    fn bus(&self) -> String {
        format!("unix:path={}/no-bus", self.home.display())
    }

    /// Runs a program to its end. Panics when it prints a secret of a test.
    pub fn run(&self, command: &mut Command) -> CommandOutput {
        let output = command
            .output()
            .unwrap_or_else(|error| panic!("cannot start: {error}"));
        self.checked(&output)
    }

    /// The same for a program that the test has reason to let show its secrets.
    pub fn run_showing_secrets(&self, command: &mut Command) -> CommandOutput {
        let output = command
            .output()
            .unwrap_or_else(|error| panic!("cannot start: {error}"));
        self.normalised(&output)
    }

    /// Runs a program to its end with this text on its stdin. Panics when it prints a secret of a
    /// test.
    pub fn run_with_input(&self, command: &mut Command, input: &str) -> CommandOutput {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start: {error}"));
        let mut stdin = child.stdin.take().expect("stdin is piped");
        let output = std::thread::scope(|scope| {
            // Beside the reading: a program that answers while it reads must not block on us.
            // One that ends without reading is no fault of the test.
            scope.spawn(move || drop(stdin.write_all(input.as_bytes())));
            marked::output_of(child)
        });
        self.normalised(&output)
    }

    /// Replaces this home's paths by `[PROJECT]`, `[HOME]` and `[SYSTEM]`.
    pub fn normalise(&self, text: &str) -> String {
        // The project lies below the home, so it goes first.
        [
            (&self.project, "[PROJECT]"),
            (&self.home, "[HOME]"),
            (&self.system, "[SYSTEM]"),
        ]
        .into_iter()
        .fold(text.to_owned(), |text, (path, word)| {
            text.replace(&path.display().to_string(), word)
        })
    }

    fn checked(&self, output: &std::process::Output) -> CommandOutput {
        marked::assert_none("the program's stdout", &output.stdout);
        marked::assert_none("the program's stderr", &output.stderr);
        self.normalised(output)
    }

    fn normalised(&self, output: &std::process::Output) -> CommandOutput {
        CommandOutput {
            stdout: self.normalise(&String::from_utf8_lossy(&output.stdout)),
            stderr: self.normalise(&String::from_utf8_lossy(&output.stderr)),
            code: crate::shell_code(output.status),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests look programs up where the test runner does; the product does not come here"
)]
fn path_variable() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// Whether programs under test use a daemon: none, unless the whole run is to be with one.
#[expect(
    clippy::disallowed_methods,
    reason = "who runs the tests says in which of both ways; the product does not come here"
)]
fn daemon_use() -> std::ffi::OsString {
    std::env::var_os("TOOLWAY_TESTED_DAEMON").unwrap_or_else(|| "off".into())
}

impl Drop for TempHome {
    /// A daemon that was started here ends with its home.
    fn drop(&mut self) {
        let folder = self.config_home().join("state/daemon");
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        let locks = files.filter(|file| file.path().extension().is_some_and(|it| it == "lock"));
        for lock in locks {
            let process = fs::read_to_string(lock.path()).unwrap_or_default();
            let process = process.trim().parse().ok().and_then(Pid::from_raw);
            let lock = fs::File::open(lock.path());
            let (Some(process), Ok(lock)) = (process, lock) else {
                continue;
            };
            if lock.try_lock().is_err() {
                // It may end at this very moment.
                let _ = kill_process(process, Signal::TERM);
                // Held until its servers are gone.
                let _ = lock.lock();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_sees_the_temporary_home_and_nothing_else() {
        let home = TempHome::new();
        let env = ["-u", "PATH", "-u", marked::DEVELOPERS];
        let output = home.run(home.command("env").args(env));
        let mut lines: Vec<&str> = output.stdout.lines().collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                "DBUS_SESSION_BUS_ADDRESS=unix:path=[HOME]/no-bus",
                "HOME=[HOME]",
                "LANG=C.UTF-8",
                "TOOLWAY_DAEMON=off",
                "TOOLWAY_HOME=[HOME]/.config/toolway",
                "TOOLWAY_TEST_SYSTEM_DIR=[SYSTEM]",
                "USER=tester",
            ]
        );
        assert_eq!(output.code, Some(0));
    }

    #[test]
    fn a_command_runs_in_the_project_and_reads_its_input() {
        let home = TempHome::new();
        home.write("notes.txt", "one\n");
        let output = home.run_with_input(home.command("cat").args(["notes.txt", "-"]), "two\n");
        assert_eq!(output.stdout, "one\ntwo\n");
        assert_eq!(home.run(&mut home.command("pwd")).stdout, "[PROJECT]\n");
    }

    #[test]
    #[should_panic(expected = "a secret stands in the program's stdout, at byte 24")]
    fn a_program_that_prints_its_environment_is_found_out() {
        let home = TempHome::new();
        let print = "echo \"SECRET_OF_THE_DEVELOPER=$SECRET_OF_THE_DEVELOPER\"";
        // The mark is not what the value begins with.
        let trimmed = print.replace("$SECRET_OF_THE_DEVELOPER", "${SECRET_OF_THE_DEVELOPER#*-}");
        home.run(home.command("sh").args(["-c", &trimmed]));
    }

    #[test]
    #[should_panic(expected = "a secret stands in")]
    fn a_program_that_writes_its_environment_down_is_found_out() {
        let home = TempHome::new();
        home.run(
            home.command("sh")
                .args(["-c", "env | base64 -w0 > somewhere"]),
        );
    }

    #[test]
    fn inputs_and_private_files_may_hold_secrets() {
        let home = TempHome::new();
        home.write("settings.json", marked::MARK);
        home.may_keep_secrets("kept");
        home.may_hold_secrets("seen");
        home.run(
            home.command("sh")
                .args(["-c", "mkdir seen; env > seen/it; umask 077; env > kept"]),
        );
        home.assert_no_secrets();
        home.run(home.command("chmod").args(["644", "kept"]));
        let checked = std::panic::catch_unwind(|| home.assert_no_secrets());
        home.may_hold_secrets("kept");
        let said = checked.unwrap_err();
        let said = said.downcast_ref::<String>().unwrap();
        assert!(said.contains("others may read it"), "{said}");
    }
}
