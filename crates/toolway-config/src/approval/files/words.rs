//! What the words of an entry may mean as files.
//!
//! Owns the guesses: a word itself, what follows `=` in it, the words inside it where it is a line
//! for a shell, modules behind `-m`, the files that programs look for in a directory or behind a
//! name without its ending. A guess that names no file costs nothing.

use std::path::{Path, PathBuf};

/// Endings of files that programs run.
const CODE: [&str; 32] = [
    "bash", "bat", "cjs", "clj", "cmd", "coffee", "cts", "dll", "dylib", "exe", "fish", "jar",
    "js", "jsx", "lua", "mjs", "mts", "node", "php", "pl", "pm", "ps1", "py", "pyc", "pyz", "rb",
    "sh", "so", "ts", "tsx", "wasm", "zsh",
];

/// What programs look for in a directory that they are given.
const IN_A_DIRECTORY: [&str; 8] = [
    "__main__.py",
    "__init__.py",
    "index.js",
    "index.mjs",
    "index.cjs",
    "index.ts",
    "main.py",
    "package.json",
];

/// Endings that programs add to a name.
const ADDED: [&str; 6] = ["js", "mjs", "cjs", "ts", "py", "json"];

/// What a Python process runs by itself where its modules lie.
const UNASKED: [&str; 2] = ["sitecustomize.py", "usercustomize.py"];

/// The words of one program, by what they may mean.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Paths, as they are written.
    paths: Vec<String>,
    /// Names that are looked for where the program starts, and in directories that it is given.
    names: Vec<String>,
    modules: Vec<String>,
    searched: Vec<String>,
    awaits_module: bool,
}

impl Words {
    pub(super) fn command(&mut self, word: &str) {
        // Without a slash it is looked for in `PATH`, which the entry may have set.
        if word.contains('/') || word.contains("${") {
            self.argument(word);
        } else {
            self.searched.push(word.to_owned());
        }
    }

    pub(super) fn argument(&mut self, word: &str) {
        if std::mem::take(&mut self.awaits_module) {
            self.modules.push(word.to_owned());
        }
        self.module_flag(word);
        self.name(word);
        if let Some((_, value)) = word.split_once('=') {
            self.name(value);
        }
        // A line for a shell, or code for an interpreter.
        let parts = word.split(|c: char| c.is_whitespace() || "'\"`()[]{};&|<>,\\=".contains(c));
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        if parts.len() > 1 {
            let mut awaits = false;
            for part in parts {
                if std::mem::replace(&mut awaits, part == "-m") {
                    self.modules.push(part.to_owned());
                }
                self.name(part);
            }
        }
    }

    /// A variable may hold paths, or flags with paths.
    pub(super) fn variable(&mut self, name: &str, value: &str) {
        for part in value.split(|c: char| c.is_whitespace() || ":;,=".contains(c)) {
            self.name(part);
        }
        if name == "PYTHONPATH" {
            self.searched.extend(UNASKED.map(str::to_owned));
        }
    }

    /// `-m`, alone or in a row of short flags, with its module behind it or in the same word.
    fn module_flag(&mut self, word: &str) {
        let Some(flags) = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
            return;
        };
        if let Some((before, module)) = flags.split_once('m')
            && before.chars().all(|c| c.is_ascii_alphabetic())
        {
            if module.is_empty() {
                self.awaits_module = true;
            } else {
                self.modules.push(module.to_owned());
            }
        }
    }

    fn name(&mut self, word: &str) {
        if !word.is_empty() {
            self.paths.push(word.to_owned());
            self.names.push(word.to_owned());
        }
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    pub(super) fn modules(&self) -> impl Iterator<Item = &str> {
        self.modules.iter().map(String::as_str)
    }

    pub(super) fn searched(&self) -> impl Iterator<Item = &str> {
        self.searched.iter().map(String::as_str)
    }
}

/// The files that a program may read where it is given a path: itself, with an ending added, or
/// those in it.
pub(super) fn readings(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        return IN_A_DIRECTORY.map(|name| path.join(name)).to_vec();
    }
    if path.exists() {
        return vec![path.to_owned()];
    }
    let with = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(".");
        name.push(ending);
        PathBuf::from(name)
    };
    ADDED.map(with).to_vec()
}

/// The files of a Python module that is looked for in a directory, its packages included.
pub(super) fn module(start: &Path, module: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folder = start.to_owned();
    for part in module.split('.').filter(|part| !part.is_empty()) {
        let mut file = folder.join(part).into_os_string();
        file.push(".py");
        files.push(PathBuf::from(file));
        folder.push(part);
        files.push(folder.join("__init__.py"));
        files.push(folder.join("__main__.py"));
    }
    files
}

/// Whether a file is code by its name.
pub(super) fn is_code_name(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let is_manifest = path.file_name().is_some_and(|name| name == "package.json");
    is_manifest || ending.is_some_and(|ending| CODE.contains(&ending.to_ascii_lowercase().as_str()))
}
