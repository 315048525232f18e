//! Everything in a command line that can name code.
//!
//! Owns the one reading of words that serves every program: each word as a path in every spelling,
//! the words inside it where it is a shell line or code, and what the programs of the table take
//! and look for. Which of them are files is decided by the caller.

use std::collections::{BTreeMap, BTreeSet};

use super::programs::{self, KnownProgram, ProgramTakes, SUBCOMMANDS, program, stands_alone};
use super::words::{is_code_name, module_name, spellings};
use super::{manifest, shell};
use crate::command_line::{KEYWORDS, decides_what_runs, hides_program, is_assignment, is_wrapper};

/// How deep lines inside of words are read.
const DEEPEST: usize = 4;

/// What a Python process runs by itself where its modules lie.
const UNASKED: [&str; 2] = ["sitecustomize.py", "usercustomize.py"];

/// How a path is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathUse {
    /// Not known; data, unless it looks like code.
    Unknown,
    /// It is read as code if it is a file.
    File,
    /// It is run, be it a file or a directory.
    Run,
}

/// Something that runs and that no digest can cover.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnboundCode {
    /// The part of the entry that it is about, as it is written.
    pub what: String,
    /// Why, as the rest of a sentence about it.
    pub why: &'static str,
}

/// What the words of a program name.
#[derive(Debug, Default)]
pub(super) struct NamedCode {
    /// Values of variables that a shell will know.
    pub(super) known: BTreeMap<String, String>,
    pub(super) paths: BTreeMap<String, PathUse>,
    /// Names that are looked for as they are, in every directory that is named.
    pub(super) searched: BTreeSet<String>,
    pub(super) modules: BTreeSet<String>,
    /// Directories in which programs are told to work.
    pub(super) places: BTreeSet<String>,
    /// Files that programs look for where they work.
    pub(super) looks_for: BTreeSet<&'static str>,
    /// Names that are looked up in manifests.
    pub(super) tasks: BTreeSet<String>,
    /// Names that are looked up among installed packages.
    pub(super) packages: BTreeSet<String>,
    /// Directories that containers get to see, each with the word that says so.
    pub(super) mounts: BTreeSet<(String, String)>,
    pub(super) unbound: BTreeSet<UnboundCode>,
}

impl NamedCode {
    /// The words of a process: a program and its arguments.
    pub(super) fn process(&mut self, words: &[String]) {
        self.command(words, 0);
    }

    /// A line that a shell reads.
    pub(super) fn line(&mut self, line: &str) {
        self.shell_line(line);
        self.word(line, PathUse::Run);
        self.text(line, 0);
    }

    /// A variable may hold paths, or flags with paths.
    pub(super) fn variable(&mut self, name: &str, value: &str) {
        let usage = if decides_what_runs(name) {
            PathUse::File
        } else {
            PathUse::Unknown
        };
        for part in value.split(|c: char| c.is_whitespace() || ":;,=".contains(c)) {
            self.word(part, usage);
        }
        self.path(value, usage);
        if name == "PYTHONPATH" {
            self.searched.extend(UNASKED.map(str::to_owned));
        }
    }

    fn command(&mut self, words: &[String], depth: usize) {
        let is_before = |word: &String| is_assignment(word) || KEYWORDS.contains(&word.as_str());
        let head = words.iter().position(|word| !is_before(word)).unwrap_or(0);
        let mut chain = NextProgram::Ended;
        for (at, word) in words.iter().enumerate() {
            let rest = &words[at + 1..];
            if at == head && !word.contains('/') && word != "." {
                // It is looked for in `PATH`, which the entry may have set.
                self.searched.insert(word.clone());
            } else {
                self.word(word, PathUse::Unknown);
            }
            self.module_flag(word, rest.first());
            self.text(word, depth);
            if at != head && chain == NextProgram::Ended {
                continue;
            }
            let found = match word.as_str() {
                "." if at == head => program("source"),
                word => program(word),
            };
            if let Some(program) = found {
                self.program(word, program, rest);
                chain = if !program.takes(ProgramTakes::Program) {
                    NextProgram::Ended
                } else if is_wrapper(word) {
                    NextProgram::Wrapper
                } else {
                    NextProgram::Runner
                };
            } else if is_wrapper(word) {
                chain = NextProgram::Wrapper;
            } else if chain == NextProgram::Runner && ends_flags(&words[..at], word) {
                chain = NextProgram::Ended;
            }
        }
    }

    /// What a program of the table makes of the words behind it.
    fn program(&mut self, name: &str, program: &KnownProgram, rest: &[String]) {
        self.looks_for.extend(program.looks_for);
        if let Some(why) = program.hidden {
            self.cannot_bind(name, why);
        }
        self.flags(program, rest);
        let words = || rest.iter().filter(|word| !word.starts_with('-'));
        if rest.iter().any(|word| word.starts_with("--run")) {
            self.tasks
                .extend(rest.iter().flat_map(|word| spellings(word)));
        }
        for takes in program.takes {
            match takes {
                ProgramTakes::Script => self.script(program, rest),
                ProgramTakes::Line => {
                    let at = rest.iter().position(|word| program.has_code_behind(word));
                    if let Some(line) = at.and_then(|at| rest.get(at + 1)) {
                        self.shell_line(line);
                    }
                }
                ProgramTakes::Tasks => {
                    self.tasks.extend(words().cloned());
                    if words().any(|word| word == "start") {
                        self.looks_for.insert("server.js");
                    }
                }
                ProgramTakes::Packages => self.packages(rest),
                ProgramTakes::Mounts => self.mounts(rest),
                ProgramTakes::Code(_) | ProgramTakes::Program => {}
            }
        }
    }

    /// The flags of a program that name places and files.
    fn flags(&mut self, program: &KnownProgram, rest: &[String]) {
        let mut is_value = false;
        for (at, word) in rest.iter().enumerate() {
            if std::mem::take(&mut is_value) {
                continue;
            }
            let next = rest.get(at + 1);
            if !word.starts_with('-') {
                if program.ends_at_a_word() && !SUBCOMMANDS.contains(&word.as_str()) {
                    return;
                }
                continue;
            }
            if let Some(place) = programs::place(word, next) {
                self.places.insert(place.to_owned());
                self.path(place, PathUse::Run);
                is_value = !word.ends_with(place);
            }
            if let Some(file) = programs::file(word, next) {
                self.path(file, PathUse::File);
            }
        }
    }

    /// The packages that a runner is told of: in the values of its flags, and by the first word that
    /// is none. What follows is for the package.
    fn packages(&mut self, rest: &[String]) {
        for (at, word) in rest.iter().enumerate() {
            let value = word.split_once('=').map_or("", |(_, value)| value);
            let package = if word.starts_with('-') { value } else { word };
            // Paths are handled as paths.
            if !package.starts_with(['.', '/']) {
                let names = manifest::package_names(package).into_iter();
                self.packages.extend(names.map(str::to_owned));
            }
            if ends_flags(&rest[..at], word) {
                return;
            }
        }
    }

    /// The script of an interpreter: the first word that is no flag. Where a flag may have a value
    /// behind it, both words are taken for it.
    fn script(&mut self, program: &KnownProgram, rest: &[String]) {
        let mut is_after_flag = false;
        for word in rest {
            if program.has_code_behind(word) {
                if !program.takes(ProgramTakes::Line) {
                    // The code itself may stand in the same word.
                    let whole = word.split('=').next().unwrap_or_default();
                    let short: String = word.chars().take(2).collect();
                    let flag = if word.starts_with("--") {
                        whole
                    } else {
                        &short
                    };
                    self.cannot_bind(flag, "is code, which may load more than it names");
                }
                return;
            }
            if word.starts_with('-') && word.len() > 1 {
                is_after_flag = !stands_alone(word);
                let glued = word.split_once('=').map(|(_, value)| value);
                let glued = glued.or_else(|| word.get(2..).filter(|_| !word.starts_with("--")));
                self.word(glued.unwrap_or_default(), PathUse::File);
                continue;
            }
            self.word(word, PathUse::Run);
            let is_subcommand = SUBCOMMANDS.contains(&word.as_str());
            if !is_subcommand && (!is_after_flag || is_code_name(word.as_ref())) {
                return;
            }
            is_after_flag = false;
        }
    }

    /// Directories that a container gets to see under other names.
    fn mounts(&mut self, rest: &[String]) {
        let mut mounts = Vec::new();
        for word in rest {
            let value = |keys: [&str; 2]| {
                let mut parts = word.split([',', ' ']);
                parts.find_map(|part| {
                    let (key, value) = part.rsplit_once('=').unwrap_or_default();
                    let is_it = keys
                        .iter()
                        .any(|it| key == *it || key.ends_with(&format!("={it}")));
                    is_it.then(|| value.to_owned())
                })
            };
            let (from, to) = (value(["source", "src"]), value(["target", "dst"]));
            if let (Some(from), Some(to)) = (from, to) {
                self.mounts.insert((word.clone(), from.clone()));
                mounts.push((from, to));
                continue;
            }
            let value = word.rsplit('=').next().unwrap_or_default();
            let mut parts = value.strip_prefix("-v").unwrap_or(value).split(':');
            if let (Some(from), Some(to)) = (parts.next(), parts.next())
                && to.starts_with('/')
                && from.contains(['/', '.'])
                && !from.contains("//")
                && !to.starts_with("//")
            {
                self.mounts.insert((word.clone(), from.to_owned()));
                mounts.push((from.to_owned(), to.to_owned()));
            }
        }
        for (from, to) in &mounts {
            for below in rest
                .iter()
                .filter_map(|word| word.strip_prefix(to.as_str()))
            {
                self.path(
                    &format!("{from}/{}", below.trim_start_matches('/')),
                    PathUse::Run,
                );
            }
        }
    }

    /// A line that only a shell understands may run what is not written in it.
    fn shell_line(&mut self, line: &str) {
        let line = &self.replaced(line);
        let is_worked_out = |word: &String| {
            word.contains(['$', '*', '?', '[', '`'])
                && (word.contains('/') || spellings(word).iter().any(|it| is_nearly_code(it)))
        };
        let parts = shell::parts(line);
        let mut words = parts.commands.iter().flatten().chain(&parts.inputs);
        if hides_program(line) || words.any(is_worked_out) {
            self.cannot_bind(line, "is worked out by a shell when it starts");
        }
    }

    /// A word that may be a line for a shell, or code for an interpreter.
    fn text(&mut self, word: &str, depth: usize) {
        let is_special = |c: char| c.is_whitespace() || "'\"`()[]{};&|<>,\\=$".contains(c);
        if depth >= DEEPEST || !word.contains(is_special) {
            return;
        }
        let word = &self.replaced(word);
        let parts = shell::parts(word);
        for command in parts.commands {
            if command.len() > 1 || command.first() != Some(word) {
                self.command(&command, depth + 1);
            }
        }
        for input in parts.inputs {
            self.word(&input, PathUse::Run);
        }
        let parts = word.split(|c: char| c.is_whitespace() || "'\"`()[]{};&|<>,\\=".contains(c));
        let parts: Vec<String> = parts
            .filter(|it| !it.is_empty())
            .map(str::to_owned)
            .collect();
        if parts.len() < 2 && parts.first() == Some(word) {
            return;
        }
        for (at, part) in parts.iter().enumerate() {
            self.module_flag(part, parts.get(at + 1));
            self.word(part, PathUse::Unknown);
            self.modules.extend(module_name(part).map(str::to_owned));
        }
    }

    fn word(&mut self, word: &str, usage: PathUse) {
        let mut word = self.replaced(word);
        if let (Some(below), Some(home)) = (word.strip_prefix("~/"), self.known.get("HOME")) {
            word = format!("{home}/{below}");
        }
        let word = &word;
        for spelling in spellings(word) {
            self.path(&spelling, usage);
        }
        if word.contains(['.', ':']) {
            self.modules.extend(module_name(word).map(str::to_owned));
        }
    }

    fn path(&mut self, path: &str, usage: PathUse) {
        if !path.is_empty() {
            let known = self.paths.entry(path.to_owned()).or_insert(usage);
            *known = usage.max(*known);
        }
    }

    /// `-m`, alone or in a row of short flags, with its module behind it or in the same word.
    fn module_flag(&mut self, word: &str, next: Option<&String>) {
        let Some(flags) = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
            return;
        };
        if let Some((before, module)) = flags.split_once('m')
            && before.chars().all(|c| c.is_ascii_alphabetic())
        {
            let named = Some(module).filter(|module| !module.is_empty());
            let named = named.or(next.map(String::as_str));
            self.modules.extend(named.map(str::to_owned));
        }
    }

    /// A text with the variables that a shell will know in their place.
    fn replaced(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if !text.contains('$') {
            return text;
        }
        for (name, value) in &self.known {
            text = text.replace(&format!("${{{name}}}"), value);
            let plain = format!("${name}");
            let mut from = 0;
            while let Some(at) = text[from..].find(&plain).map(|at| at + from) {
                let end = at + plain.len();
                let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '_';
                if text[end..].starts_with(goes_on) {
                    from = end;
                } else {
                    text.replace_range(at..end, value);
                    from = at + value.len();
                }
            }
        }
        text
    }

    fn cannot_bind(&mut self, what: &str, why: &'static str) {
        let what = what.to_owned();
        self.unbound.insert(UnboundCode { what, why });
    }
}

/// Whether the next word of a command may be a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextProgram {
    /// A wrapper stands before it: any may.
    Wrapper,
    /// A runner does: the first that is no flag of the runner's may.
    Runner,
    Ended,
}

/// Whether a word behind others is one of which a runner no longer reads flags.
fn ends_flags(before: &[String], word: &str) -> bool {
    let is_value = before
        .last()
        .is_some_and(|flag| flag.starts_with('-') && !stands_alone(flag));
    !word.starts_with('-') && !is_value && !SUBCOMMANDS.contains(&word)
}

/// Whether a word with something to be worked out in it ends as code does.
fn is_nearly_code(word: &str) -> bool {
    let ending = word.rsplit_once('.').map_or("", |(_, ending)| ending);
    is_code_name(word.as_ref()) || ending.contains(['?', '*', '['])
}
