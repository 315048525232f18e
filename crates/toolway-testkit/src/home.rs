//! A temporary home: no test may read or write the developer's own.
//!
//! Owns the directories and the environment a program under test is started with. What the
//! program printed is `output.rs`.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::CommandOutput;

/// A home, a project inside it and a system directory, gone when dropped.
#[derive(Debug)]
pub struct TempHome {
    // Held for its drop.
    _root: TempDir,
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
        let root = tempfile::Builder::new()
            .prefix("toolway-test-")
            .tempdir()
            .expect("a temporary directory can be made");
        // The product resolves symbolic links, so the paths to compare with must be resolved too.
        let real = root
            .path()
            .canonicalize()
            .expect("the temporary directory exists");
        let home = real.join("home");
        let project = home.join("project");
        let system = real.join("system");
        for directory in [&project, &system] {
            fs::create_dir_all(directory).expect("a directory below the temporary one can be made");
        }
        Self {
            _root: root,
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
        let path = self.project.join(path);
        let directory = path.parent().expect("a file has a directory");
        fs::create_dir_all(directory).expect("the file's directory can be made");
        fs::write(&path, text.as_ref()).expect("the file can be written");
        path
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

    /// Runs a program to its end.
    pub fn run(&self, command: &mut Command) -> CommandOutput {
        let output = command
            .output()
            .unwrap_or_else(|error| panic!("cannot start: {error}"));
        self.normalised(&output)
    }

    /// Runs a program to its end with this text on its stdin.
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
            child.wait_with_output().expect("the output can be read")
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

    fn normalised(&self, output: &std::process::Output) -> CommandOutput {
        CommandOutput {
            stdout: self.normalise(&String::from_utf8_lossy(&output.stdout)),
            stderr: self.normalise(&String::from_utf8_lossy(&output.stderr)),
            code: output.status.code(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_sees_the_temporary_home_and_nothing_else() {
        let home = TempHome::new();
        let output = home.run(home.command("env").arg("-u").arg("PATH"));
        let mut lines: Vec<&str> = output.stdout.lines().collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                "DBUS_SESSION_BUS_ADDRESS=unix:path=[HOME]/no-bus",
                "HOME=[HOME]",
                "LANG=C.UTF-8",
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
}
