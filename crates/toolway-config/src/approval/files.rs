//! The files of the repository that an approved entry runs.
//!
//! Owns finding them in an entry and digesting them, so that an approval covers the script and not
//! only its name: `node tools/build.js` is as harmless as `tools/build.js` is. Files outside the
//! repository are not the repository's to change. What a program loads beside them is not known
//! here; the documentation says so.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::Environment;
use crate::env::{Piece, pieces};
use crate::environment::projects;
use crate::load::read::open;
use crate::load::split_command;

/// How much of a file is digested; of a longer one also how long it is.
const DIGESTED: u64 = 32 * 1024 * 1024;

/// The most words of an entry that are looked at.
const MOST_WORDS: usize = 256;

/// Each file by its path from the repository's root, with its digest.
pub(crate) type Files = BTreeMap<String, String>;

/// The files of the repository that an entry in `directory` names, as they are now.
pub(crate) fn named(
    environment: &Environment,
    directory: &Path,
    definition: &Map<String, Value>,
) -> Files {
    let repository = projects(directory, environment.home())
        .last()
        .unwrap_or(directory)
        .to_path_buf();
    let here = Here {
        environment,
        directory,
    };
    let start = definition
        .get("cwd")
        .and_then(Value::as_str)
        .map(|cwd| here.path(directory, cwd));
    let start = start.unwrap_or_else(|| directory.to_path_buf());
    let mut found = Files::new();
    for path in candidates(definition)
        .iter()
        .map(|word| here.path(&start, word))
    {
        // Links are followed: what counts is which content runs, and whose it is.
        let Ok(real) = path.canonicalize() else {
            continue;
        };
        if let Ok(name) = real.strip_prefix(&repository)
            && let Some(digest) = digest(&real)
        {
            found.insert(name.to_string_lossy().into_owned(), digest);
        }
    }
    found
}

/// What words of an entry may mean as paths.
fn candidates(definition: &Map<String, Value>) -> Vec<String> {
    let text = |key: &str| definition.get(key).and_then(Value::as_str);
    let mut words: Vec<String> = Vec::new();
    // A program without a slash is looked for in `PATH`, and is none of the repository's.
    words.extend(
        text("command")
            .filter(|it| it.contains('/'))
            .map(str::to_owned),
    );
    let args = definition.get("args").and_then(Value::as_array);
    let args: Vec<&str> = args
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let helper = text("headersHelper").and_then(|line| split_command(line).ok());
    let helper = helper.unwrap_or_default();
    let rest = args
        .iter()
        .copied()
        .chain(helper.iter().map(String::as_str));
    let mut before = "";
    for word in rest.take(MOST_WORDS) {
        if before == "-m" {
            let module = word.replace('.', "/");
            words.extend(["", "/__main__", "/__init__"].map(|part| format!("{module}{part}.py")));
        }
        words.push(word.to_owned());
        if let Some((_, value)) = word.split_once('=') {
            words.push(value.to_owned());
        }
        before = word;
    }
    words
}

struct Here<'a> {
    environment: &'a Environment,
    directory: &'a Path,
}

impl Here<'_> {
    /// The path that a word means. Only variables that say where the project is are replaced;
    /// nothing else of an entry is expanded for this.
    fn path(&self, start: &Path, word: &str) -> PathBuf {
        let root = || self.environment.project_root().to_string_lossy();
        let mut expanded = String::new();
        for piece in pieces(word) {
            match piece {
                Piece::Text(text) => expanded.push_str(text),
                Piece::Variable {
                    name: "TOOLWAY_PROJECT_DIR" | "CLAUDE_PROJECT_DIR",
                    ..
                } => expanded.push_str(&root()),
                Piece::Variable {
                    name: "workspace", ..
                } => expanded.push_str(&self.environment.cwd().to_string_lossy()),
                Piece::Variable { .. } | Piece::Reference { .. } => {
                    return self.directory.to_path_buf();
                }
            }
        }
        start.join(expanded)
    }
}

/// The digest of a regular file; nothing for anything else.
fn digest(path: &Path) -> Option<String> {
    let (file, facts) = open(path).ok()?;
    digest_of(file, facts.len()).ok()
}

fn digest_of(file: File, length: u64) -> std::io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut file = file.take(DIGESTED);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
    }
    if length > DIGESTED {
        hasher.update(length.to_le_bytes());
    }
    Ok(hex::encode(hasher.finalize()))
}
