//! The programs that an entry causes to run, as the lists are asked about them.
//!
//! Owns which those are (the server itself, its headers helper, the commands that print its
//! secrets), where the system would find each of them, and what of the entry changes what they
//! do. Does not own: what a rule says about them (`policy_rule`).

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use serde_json::{Map, Value};
use toolway_types::{
    ReferenceKind, Secret, SecretReference, ServerSpec, StdioSpec, TransportSpec, VoucherSpec,
};

use crate::Environment;
use crate::command_line::{
    PossibleCommands, SHELL, ShellLine, decides_what_runs, is_wrapper, split_command,
};

/// A program and how it is started.
#[derive(Debug, Clone, Default)]
pub(crate) struct StartedProgram {
    /// Its name and its arguments.
    pub(crate) words: Vec<String>,
    /// Where it lies, when it can be found.
    pub(crate) found: Option<ProgramLocation>,
    /// The line that a shell gets, where one is involved.
    pub(crate) line: Option<ShellLine>,
    /// What the entry sets of the variables that decide what code runs.
    pub(crate) steering: Vec<String>,
    /// The working directory that the entry names.
    pub(crate) directory: Option<PathBuf>,
}

/// Where a program lies.
#[derive(Debug, Clone)]
pub(crate) struct ProgramLocation {
    /// Links followed.
    pub(crate) real: PathBuf,
    /// Whether it depends on the working directory.
    pub(crate) is_relative: bool,
}

/// A program that runs beside the server.
#[derive(Debug)]
pub(crate) struct HelperProgram {
    /// What to call it: "its `headersHelper` runs `x`".
    pub(crate) about: String,
    pub(crate) started: StartedProgram,
}

/// Where programs are looked for.
pub(crate) struct ProgramSearch<'a> {
    pub(crate) environment: &'a Environment,
}

impl ProgramSearch<'_> {
    /// A process. `entry` is what it was made of, where that is the entry's own command.
    pub(crate) fn process(stdio: &StdioSpec, entry: Option<&Map<String, Value>>) -> StartedProgram {
        let words = std::iter::once(&stdio.command).chain(&stdio.args).cloned();
        let path = stdio.variable("PATH").map(Secret::expose);
        let is_news = |name: &&String| {
            decides_what_runs(name) && stdio.env.get(*name) != stdio.inherited.get(*name)
        };
        StartedProgram {
            found: Self::find(&stdio.command, stdio.cwd.path(), path),
            words: words.collect(),
            line: None,
            steering: stdio.env.keys().filter(is_news).cloned().collect(),
            directory: entry
                .filter(|entry| entry.contains_key("cwd"))
                .map(|_| stdio.cwd.path().to_owned()),
        }
    }

    /// Every program that runs beside a server.
    pub(crate) fn beside(&self, spec: &ServerSpec) -> Vec<HelperProgram> {
        let remote = spec.transport.remote();
        let mut all = Vec::new();
        if let Some(helper) = remote.and_then(|remote| remote.headers_helper.as_ref()) {
            // As written: a variable in it may hold a secret.
            let words = split_command(&helper.command).unwrap_or_default();
            let name = words.first().map(String::as_str).unwrap_or_default();
            all.push(HelperProgram {
                about: format!("its `headersHelper` runs `{name}`"),
                started: Self::process(&helper.process, None),
            });
        }
        let oauth = remote.and_then(|remote| remote.oauth.as_ref());
        let voucher = oauth.and_then(|oauth| oauth.voucher.as_ref());
        let references = spec
            .references
            .iter()
            .chain(oauth.into_iter().flat_map(|oauth| &oauth.references))
            .chain(voucher.map_or(&[][..], VoucherSpec::references));
        let inherited = match &spec.transport {
            TransportSpec::Stdio(stdio) => Some(stdio),
            _ => remote
                .and_then(|remote| remote.headers_helper.as_ref())
                .map(|helper| &helper.process),
        };
        let path = inherited.and_then(|stdio| stdio.inherited.get("PATH"));
        let path = path.map(Secret::expose).or(self.environment.var("PATH"));
        let commands = references.filter(|reference| reference.kind == ReferenceKind::Command);
        all.extend(commands.map(|reference| self.printer(reference, path)));
        all
    }

    /// The command that prints a secret. A shell reads it.
    fn printer(&self, reference: &SecretReference, path: Option<&str>) -> HelperProgram {
        let read = ShellLine::read(&reference.target);
        let first = read.words.as_ref().and_then(|words| words.first());
        let directory = self.environment.command_directory();
        let name = first.map_or(SHELL, String::as_str);
        HelperProgram {
            about: format!("its `{}` runs `{name}` (`{reference}`)", reference.place),
            started: StartedProgram {
                found: first.and_then(|first| Self::find(first, directory.path(), path)),
                words: [SHELL, "-c", &reference.target].map(str::to_owned).to_vec(),
                line: Some(read),
                ..StartedProgram::default()
            },
        }
    }

    /// Where the system would find a program: it passes over what it cannot execute and takes
    /// relative directories from the child's own.
    fn find(command: &str, base: &Path, path: Option<&str>) -> Option<ProgramLocation> {
        let found = |candidate: PathBuf, written: &Path| {
            Some(ProgramLocation {
                real: candidate.canonicalize().ok()?,
                is_relative: written.is_relative(),
            })
        };
        if command.contains('/') {
            return found(base.join(command), Path::new(command));
        }
        let candidates: Vec<_> = std::env::split_paths(path.unwrap_or("/bin:/usr/bin"))
            .map(|directory| (base.join(&directory).join(command), directory))
            .filter(|(candidate, _)| candidate.is_file())
            .collect();
        // What cannot be executed now may be by the time it is started.
        let runs = candidates
            .iter()
            .find(|(candidate, _)| access(candidate, Access::EXEC_OK).is_ok());
        let (candidate, directory) = runs.or(candidates.first())?;
        found(candidate.clone(), directory)
    }
}

impl StartedProgram {
    /// Everything that may have a command in it that runs because of it; and whether one is
    /// hidden.
    pub(crate) fn may_run(&self) -> (Vec<PossibleCommands>, bool) {
        let mut parts = vec![PossibleCommands::command(self.words.clone())];
        let mut hides = false;
        // What it is started as, where that is known. A link gives a shell another name.
        let words = match &self.line {
            Some(line) => {
                parts.extend(line.parts.iter().cloned());
                hides |= line.hides;
                line.words.as_ref()
            }
            None => Some(&self.words),
        };
        let Some(words) = words else {
            return (parts, hides);
        };
        let real = self
            .found
            .as_ref()
            .map(|found| found.real.to_string_lossy());
        let mut names = words
            .first()
            .map(String::as_str)
            .into_iter()
            .chain(real.as_deref());
        if !names.any(is_wrapper) {
            parts.push(PossibleCommands::command(words.clone()));
            return (parts, hides);
        }
        parts.push(PossibleCommands::anywhere(words.clone()));
        // Each of its words may be a line for a shell as well.
        for line in words.iter().skip(1).map(|word| ShellLine::read(word)) {
            hides |= line.hides;
            parts.extend(line.parts);
        }
        (parts, hides)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use serde_json::json;
    use toolway_types::Origin;
    use toolway_types::url_rules::PatternReading;

    use super::super::{PolicyRule, PolicySubject, PolicyTarget};
    use super::*;

    fn is_denied(rule: &[&str], started: &StartedProgram) -> bool {
        let rule = json!({ "serverCommand": rule });
        let rule = PolicyRule::parse(&rule, Origin::Program, PatternReading::Wide).unwrap();
        let target = PolicyTarget::Command(started);
        rule.matches(&PolicySubject { name: "x", target }, PatternReading::Wide)
    }

    fn process(words: &[&str]) -> StartedProgram {
        let real = Path::new(words[0]).canonicalize().ok();
        StartedProgram {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            found: real.map(|real| ProgramLocation {
                real,
                is_relative: false,
            }),
            ..StartedProgram::default()
        }
    }

    #[test]
    fn sec_53_a_denied_command_runs_behind_no_wrapper() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("harmless");
        symlink("/bin/sh", &link).unwrap();
        let link = link.to_str().unwrap();
        for words in [
            &["touch", "F"][..],
            &["bash", "-c", "if touch F; then :; fi"],
            &["bash", "-c", "{touch,F}"],
            &["bash", "-c", "! touch F"],
            &["sh", "-c", "\"$0\" F", "touch"],
            &["sh", "-c", "touch"],
            &["env", "-S", "touch\\_F"],
            &["env", "-Stouch F"],
            &["env", "-iStouch F"],
            &["env", "--split-string=touch F"],
            &["env", "A=1", "touch", "F"],
            &[link, "-c", "touch F"],
            &["/lib64/ld-linux-x86-64.so.2", "/usr/bin/touch", "F"],
            &["ld.so", "--argv0", "x", "/usr/bin/touch", "F"],
            &["find", ".", "-exec", "touch", "F", ";"],
        ] {
            assert!(is_denied(&["touch", "**"], &process(words)), "{words:?}");
        }
        for words in [
            &["node", "server.js", "touch", "F"][..],
            &["bash", "-c", "cd /x && node server.js \"$PORT\""],
            &["env", "A=1", "node", "touch.js"],
        ] {
            assert!(!is_denied(&["touch", "**"], &process(words)), "{words:?}");
        }
    }

    #[test]
    fn sec_53_a_denied_program_is_known_behind_a_link_and_quoted_words() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("harmless");
        let target = directory.path().join("touch");
        std::fs::write(&target, "").unwrap();
        symlink(&target, &link).unwrap();
        let command = format!("{} 'a b'", link.display());
        let started = StartedProgram {
            line: Some(ShellLine::read(&command)),
            ..process(&[link.to_str().unwrap()])
        };
        assert!(is_denied(&["touch", "**"], &started));
    }

    #[test]
    fn a_line_of_many_words_costs_little() {
        let words = "a -b ".repeat(20_000);
        assert!(!is_denied(
            &["touch", "**"],
            &process(&["sh", "-c", &words])
        ));
    }
}
