//! A person at work, as the current user or an ordinary one, with a server that tampers.
//!
//! Owns who runs the command line and where that person's homes of ours lie. What a server must
//! not be able to do is said by `shield.rs`, `state_shield.rs` and `inspection.rs`.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, lchown};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use toolway_testkit::{CommandOutput, Script, ScriptedServer, TempHome};

use crate::support::program;

/// A user that owns nothing on this machine.
pub(crate) const ORDINARY: u32 = 61_234;

/// Who runs the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Person {
    Current,
    Ordinary,
}

/// Where the person's homes of ours lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Homes {
    /// Where `TOOLWAY_HOME` says: the state below the configuration.
    Together,
    /// Where they lie when no variable says anything.
    Standard,
    /// Where the XDG variables say.
    Elsewhere,
    /// Behind links that lie where they lie when no variable says anything.
    Linked,
}

/// A home and whoever works in it.
pub(crate) struct UserHome {
    pub(crate) home: TempHome,
    pub(crate) person: Person,
    homes: Homes,
}

/// The words that call a tool of a server that tampers, which needs no settings.
pub(crate) fn call(tool: &str, arguments: &Value) -> Vec<String> {
    let server = ScriptedServer::new(Script {
        tampers: true,
        ..Script::default()
    });
    let program = ScriptedServer::program().to_str().unwrap();
    let mut words: Vec<String> = [
        "call",
        tool,
        "--args",
        &arguments.to_string(),
        "--",
        program,
    ]
    .map(str::to_owned)
    .into();
    words.extend(server.args());
    words
}

#[expect(
    clippy::print_stderr,
    reason = "whoever reads the log must see what was not tested"
)]
pub(crate) fn skipped(reason: &str) {
    eprintln!("skipped: {reason}");
}

impl UserHome {
    /// One user for each person the tests can be; none where the kernel refuses namespaces.
    pub(crate) fn all() -> Vec<UserHome> {
        Self::all_with(Homes::Together)
    }

    /// The same with homes of ours that lie elsewhere.
    pub(crate) fn all_with(homes: Homes) -> Vec<UserHome> {
        let mut people = vec![Person::Current];
        if rustix::process::geteuid().is_root() {
            people.push(Person::Ordinary);
        }
        people
            .into_iter()
            .map(|person| UserHome {
                home: TempHome::new(),
                person,
                homes,
            })
            .inspect(UserHome::link)
            .filter(|user| user.can_run() && user.can_shield())
            .collect()
    }

    /// Lays the links that lead to homes of ours.
    fn link(&self) {
        if self.homes == Homes::Linked {
            let home = self.home.home();
            let config = home.join("data/config");
            std::fs::create_dir_all(&config).unwrap();
            std::fs::set_permissions(&config, Permissions::from_mode(0o700)).unwrap();
            // One is absolute; the other is not, and nothing is yet where it leads.
            for (link, target) in [
                (".config/toolway", config.as_path()),
                (".local/state", Path::new("../data/state")),
            ] {
                let link = home.join(link);
                std::fs::create_dir_all(link.parent().unwrap()).unwrap();
                std::os::unix::fs::symlink(target, link).unwrap();
            }
        }
    }

    /// Makes a directory of the person's, also where a link leads to nothing yet.
    pub(crate) fn make(&self, path: &Path) {
        if self.homes == Homes::Linked {
            std::fs::create_dir_all(self.home.home().join("data/state")).unwrap();
        }
        std::fs::create_dir_all(path).unwrap();
    }

    /// Where the person's settings lie, as the person names it.
    pub(crate) fn config_home(&self) -> PathBuf {
        match self.homes {
            Homes::Together | Homes::Standard | Homes::Linked => self.home.config_home(),
            Homes::Elsewhere => self.home.home().join("elsewhere/config/toolway"),
        }
    }

    /// Where Toolway keeps what it has to remember, as the person names it.
    pub(crate) fn state_home(&self) -> PathBuf {
        match self.homes {
            Homes::Together => self.home.config_home().join("state"),
            Homes::Standard | Homes::Linked => self.home.home().join(".local/state/toolway"),
            Homes::Elsewhere => self.home.home().join("elsewhere/state/toolway"),
        }
    }

    fn can_run(&self) -> bool {
        self.give();
        let works = self
            .command(&[])
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success());
        if !works {
            skipped(&format!("{:?} cannot run `{}`", self.person, program()));
        }
        works
    }

    /// Whether servers are shielded here. Where they are not although the kernel would allow it,
    /// that is a failure, not a reason to skip.
    pub(crate) fn can_shield(&self) -> bool {
        let shield = self.toolway(&["doctor", "--json"]).json()["shield"].clone();
        if shield["on"] == true {
            return true;
        }
        let kernel = self
            .prefixed("unshare")
            .args(["--user", "--map-current-user", "--mount"])
            .args(["unshare", "--user", "--map-current-user", "--mount", "true"])
            .output();
        assert!(
            !kernel.is_ok_and(|output| output.status.success()),
            "the kernel allows namespaces and the shield is off: {shield}"
        );
        skipped(&format!(
            "this kernel refuses namespaces to {:?}: {shield}",
            self.person
        ));
        false
    }

    /// Hands everything below the home's root to its person.
    pub(crate) fn give(&self) {
        if self.person == Person::Ordinary {
            let root = self.home.home().parent().unwrap();
            let mut queue = vec![root.to_path_buf()];
            while let Some(path) = queue.pop() {
                lchown(&path, Some(ORDINARY), Some(ORDINARY)).unwrap();
                if path.is_dir() && !path.is_symlink() {
                    queue.extend(
                        std::fs::read_dir(&path)
                            .unwrap()
                            .map(|it| it.unwrap().path()),
                    );
                }
            }
        }
    }

    /// A program as this person.
    pub(crate) fn prefixed(&self, program: &str) -> Command {
        let mut command = match self.person {
            Person::Current => self.home.command(program),
            Person::Ordinary => {
                let mut command = self.home.command("setpriv");
                command
                    .args(["--reuid", &ORDINARY.to_string()])
                    .args(["--regid", &ORDINARY.to_string()])
                    .args(["--clear-groups", program]);
                command
            }
        };
        command.env("TOOLWAY_SHIELD", "best-effort");
        match self.homes {
            Homes::Together => {}
            Homes::Standard | Homes::Linked => {
                command.env_remove("TOOLWAY_HOME");
            }
            Homes::Elsewhere => {
                let elsewhere = self.home.home().join("elsewhere");
                command
                    .env_remove("TOOLWAY_HOME")
                    .env("XDG_CONFIG_HOME", elsewhere.join("config"))
                    .env("XDG_STATE_HOME", elsewhere.join("state"));
            }
        }
        command
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.prefixed(program());
        command.args(words);
        command
    }

    pub(crate) fn toolway(&self, words: &[&str]) -> CommandOutput {
        self.home.run(&mut self.command(words))
    }

    /// What the server's tool answers.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> String {
        let mut command = self.command(&[]);
        command.args(call(tool, arguments));
        let output = self.home.run(&mut command).expect_code(0);
        output.stdout.trim_end().to_owned()
    }

    pub(crate) fn write(&self, path: &Path) -> String {
        self.call("write", &json!({ "path": path, "text": "{}" }))
    }

    /// What a shell inside the server says. `$CONFIG` is the config home, `$STATE` the other.
    pub(crate) fn shell(&self, script: &str) -> String {
        let script = format!(
            "export CONFIG='{}' STATE='{}'\n{script}",
            self.config_home().display(),
            self.state_home().display(),
        );
        self.call("run", &json!({ "argv": ["sh", "-c", script] }))
    }

    pub(crate) fn assert_refused(&self, path: &Path) {
        let before = std::fs::read(path).ok();
        let answer = self.write(path);
        let refusals = ["errno 30", "errno 13"].contains(&answer.as_str());
        assert!(
            refusals && std::fs::read(path).ok() == before,
            "{:?} wrote `{}`: {answer}",
            self.person,
            path.display()
        );
    }
}
