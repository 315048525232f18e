//! A child that writes down what it was started with (SEC-39, SEC-47).
//!
//! Owns the line for a shell that does so, reading it again, and the arguments of a whole family of
//! processes. The callers say what may be seen where. Finding secrets is `marked.rs`.
//!
//! The kernel's own account is copied: what the shell adds to its environment is not in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::leakcheck::{LiveProcess, command_line, process_ids};
use crate::marked;
use crate::patience::eventually_blocking;

/// Where children write.
#[derive(Debug)]
pub struct StartWitness {
    folder: PathBuf,
}

/// What one child was started with.
#[derive(Debug)]
pub struct StartRecord {
    /// Its arguments, the program's name first.
    pub words: Vec<String>,
    /// Its environment.
    pub environment: BTreeMap<String, String>,
}

impl StartWitness {
    /// Children write into this folder, which is made.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        fs::create_dir_all(&folder).expect("a folder can be made");
        Self { folder }
    }

    /// Where that is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A line for `/bin/sh`, which writes down how this shell was started, under this name.
    pub fn line(&self, name: &str) -> String {
        let path = self.folder.join(name);
        let path = path.display();
        // The environment is written last, in one step: when it is there, all is there.
        format!(
            "cat /proc/$$/cmdline > '{path}.words'; cat /proc/$$/environ > '{path}.new'; \
             mv '{path}.new' '{path}.environment'"
        )
    }

    /// The same, and the shell then waits for [`StartWitness::let_go`], or for the folder's end.
    pub fn held_line(&self, name: &str) -> String {
        let folder = self.folder.display();
        let line = self.line(name);
        format!(
            "{line}; while [ -d '{folder}' ] && [ ! -e '{folder}/{name}.go' ]; do sleep 0.02; done"
        )
    }

    /// The process that waits under this name goes on.
    pub fn let_go(&self, name: &str) {
        fs::write(self.folder.join(format!("{name}.go")), "").expect("a file can be written");
    }

    /// What was written under this name, once it was.
    pub fn account(&self, name: &str) -> StartRecord {
        let read = |kind: &str| fs::read(self.folder.join(format!("{name}.{kind}")));
        let environment = eventually_blocking(|| {
            read("environment").map_err(|error| format!("`{name}` wrote nothing: {error}"))
        });
        let words = read("words").expect("it was written before");
        let pairs = pieces(&environment).into_iter();
        StartRecord {
            words: pieces(&words),
            environment: pairs
                .map(|pair| match pair.split_once('=') {
                    Some((name, value)) => (name.to_owned(), value.to_owned()),
                    None => (pair, String::new()),
                })
                .collect(),
        }
    }
}

fn pieces(bytes: &[u8]) -> Vec<String> {
    let pieces = bytes.split(|byte| *byte == 0).filter(|it| !it.is_empty());
    pieces
        .map(|piece| String::from_utf8_lossy(piece).into_owned())
        .collect()
}

impl StartRecord {
    /// The names of its variables, sorted.
    pub fn names(&self) -> Vec<&str> {
        self.environment.keys().map(String::as_str).collect()
    }

    /// The names of the variables that hold a secret of a test.
    pub fn secrets(&self) -> Vec<&str> {
        let holds = |value: &String| marked::find(value.as_bytes()).is_some();
        let held = self.environment.iter().filter(|(_, value)| holds(value));
        held.map(|(name, _)| name.as_str()).collect()
    }

    /// Panics when a secret of a test stands in its arguments.
    pub fn assert_plain_words(&self) {
        marked::assert_none("the arguments", self.words.join("\0").as_bytes());
    }
}

/// A process and all that it and its children started, as far as they are still below it.
pub fn family(pid: u32) -> Vec<LiveProcess> {
    let parents: BTreeMap<u32, u32> = process_ids()
        .filter_map(|pid| Some((pid, parent(pid)?)))
        .collect();
    let is_below = |mut one: u32| loop {
        if one == pid {
            return true;
        }
        match parents.get(&one) {
            Some(parent) => one = *parent,
            None => return false,
        }
    };
    let members = parents.keys().copied().filter(|one| is_below(*one));
    members
        .map(|pid| LiveProcess {
            pid,
            command: command_line(pid),
        })
        .collect()
}

fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::ScannedFolder;

    #[test]
    fn a_child_tells_what_it_was_started_with_and_nothing_of_its_own() {
        let folder = ScannedFolder::new();
        folder.may_hold_secrets("seen");
        let witness = StartWitness::in_folder(folder.path().join("seen"));
        let line = format!("OWN=1; export OWN; {}", witness.line("one"));
        let given = [("A", "b=c"), ("KEY", marked::MARK)];
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &line, "word"]).env_clear().envs(given);
        assert!(shell.status().unwrap().success());
        let account = witness.account("one");
        assert_eq!(account.words[0], "/bin/sh");
        assert_eq!(account.words[3], "word");
        assert_eq!(account.names(), ["A", "KEY"]);
        assert_eq!(account.environment["A"], "b=c");
        assert_eq!(account.secrets(), ["KEY"]);
        account.assert_plain_words();
    }

    #[test]
    fn a_family_is_seen_with_its_arguments_while_one_is_held() {
        let folder = ScannedFolder::new();
        let witness = StartWitness::in_folder(folder.path());
        let line = format!(
            "sh -c \"$1\" {}; true",
            marked::MARK // Planted: everybody can read it there.
        );
        let mut shell = Command::new("/bin/sh");
        let inner = witness.held_line("inner");
        let mut child = shell.args(["-c", &line, "x", &inner]).spawn().unwrap();
        let account = witness.account("inner");
        let words = account.words.join(" ");
        assert!(marked::find(words.as_bytes()).is_some(), "it is there");
        folder.may_hold_secrets("inner.words");
        let commands: Vec<String> = family(child.id())
            .into_iter()
            .map(|process| process.command)
            .collect();
        assert!(commands.len() >= 2, "{}", commands.len());
        assert!(commands.iter().any(|command| command.contains("while [")));
        assert!(family(std::process::id()).len() > commands.len());
        witness.let_go("inner");
        assert!(child.wait().unwrap().success());
    }
}
