//! The files of the repository that an approved entry runs.
//!
//! Owns finding them in an entry and digesting them, so that an approval covers the script and not
//! only its name: `node tools/build.js` is as harmless as `tools/build.js` is. What can be code is
//! bound (by its name, its first bytes or its permission to run); data that a server writes is not.
//! Files outside the repository are not the repository's to change, but where its links lead is.
//! What a program loads beside what it is told of is not known here; the documentation says so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::Environment;
use crate::env::{Piece, WORKSPACE, is_harmless, pieces};
use crate::environment::path_key;
use crate::load::read::open;
use crate::load::split_command;

mod words;

use words::{Words, is_code_name};

/// How much of a file is digested; of a longer one also which file it is and when it last changed.
const DIGESTED: u64 = 32 * 1024 * 1024;

/// Each file by its path, with its digest.
pub(crate) type Files = BTreeMap<String, String>;

/// The files of the repository that an entry in `directory` names and that can be code, as they
/// are now.
pub(crate) fn named(
    environment: &Environment,
    directory: &Path,
    definition: &Map<String, Value>,
) -> Files {
    let scene = Scene {
        environment,
        repository: environment.repository_of(directory),
    };
    let mut found = Files::new();
    let text = |key: &str| definition.get(key).and_then(Value::as_str);
    let start = text("cwd").and_then(|cwd| scene.expand(cwd));
    let start = start.map_or_else(|| directory.to_owned(), |cwd| directory.join(cwd));
    let args = definition.get("args").and_then(Value::as_array);
    let args = args.into_iter().flatten().filter_map(Value::as_str);
    let mut words = Words::default();
    words.command(text("command").unwrap_or_default());
    args.for_each(|word| words.argument(word));
    for (name, value) in definition
        .get("env")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        words.variable(name, value.as_str().unwrap_or_default());
    }
    scene.bind(&start, &words, &mut found);
    // A helper starts beside the file that names it.
    if let Some(helper) = text("headersHelper").and_then(|line| split_command(line).ok()) {
        let mut words = Words::default();
        let mut helper = helper.iter();
        words.command(helper.next().map_or("", String::as_str));
        helper.for_each(|word| words.argument(word));
        scene.bind(directory, &words, &mut found);
    }
    found
}

struct Scene<'a> {
    environment: &'a Environment,
    repository: &'a Path,
}

impl Scene<'_> {
    fn bind(&self, start: &Path, words: &Words, found: &mut Files) {
        let paths: BTreeSet<PathBuf> = words
            .paths()
            .filter_map(|word| Some(start.join(self.expand(word)?)))
            .collect();
        // Programs are told to work in a directory, and find the rest there.
        let mut starts = vec![start.to_owned()];
        starts.extend(paths.iter().filter(|path| path.is_dir()).cloned());
        let mut all = paths;
        for start in &starts {
            for word in words.names().filter_map(|word| self.expand(word)) {
                all.extend(words::readings(&start.join(word)));
            }
            all.extend(
                words
                    .modules()
                    .flat_map(|module| words::module(start, module)),
            );
            all.extend(words.searched().map(|name| start.join(name)));
        }
        for path in all.iter().flat_map(|path| words::readings(path)) {
            self.bind_file(&path, found);
        }
    }

    /// Binds one file, if it is the repository's and can be code; and where a link leads that is.
    fn bind_file(&self, path: &Path, found: &mut Files) {
        let Ok(real) = path.canonicalize() else {
            return;
        };
        let inside = real.starts_with(self.repository);
        if !inside {
            // The link is the repository's, what it leads to is not.
            let is_link = self.holds_link(path);
            if is_link && real.is_file() {
                found.insert(path_key(path), format!("leads to {}", path_key(&real)));
            }
            return;
        }
        let Ok((file, facts)) = open(&real) else {
            return;
        };
        if let Some(digest) = digest(file, &facts, is_code_name(path) || is_code_name(&real)) {
            found.insert(path_key(&real), digest);
        }
    }

    /// Whether a path leads through a link that lies in the repository.
    fn holds_link(&self, path: &Path) -> bool {
        path.ancestors().any(|step| {
            let folder = step.parent().and_then(|folder| folder.canonicalize().ok());
            folder.is_some_and(|folder| folder.starts_with(self.repository)) && step.is_symlink()
        })
    }

    /// A word as the entry's process will get it, as far as that is the same everywhere: only
    /// harmless variables are replaced, and `${workspace}` is another directory each time.
    fn expand(&self, word: &str) -> Option<String> {
        let root = || self.environment.project_root().to_str();
        let mut expanded = String::new();
        for piece in pieces(word) {
            match piece {
                Piece::Text(text) => expanded.push_str(text),
                Piece::Variable {
                    name: "TOOLWAY_PROJECT_DIR" | "CLAUDE_PROJECT_DIR",
                    ..
                } => expanded.push_str(root()?),
                Piece::Variable { name, .. } if name == WORKSPACE || !is_harmless(name) => {
                    return None;
                }
                Piece::Variable { name, default } => {
                    let value = self.environment.var(name).filter(|value| !value.is_empty());
                    expanded.push_str(value.or(default)?);
                }
                Piece::Reference { .. } => return None,
            }
        }
        Some(expanded)
    }
}

/// The digest of a file that can be code; nothing for any other.
fn digest(mut file: File, facts: &Metadata, is_named_so: bool) -> Option<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut left = DIGESTED;
    let mut can_be_code = is_named_so || facts.mode() & 0o111 != 0;
    while left > 0 {
        let read = file.read(&mut buffer).ok()?;
        if read == 0 {
            break;
        }
        can_be_code |= left == DIGESTED && buffer.starts_with(b"#!");
        if !can_be_code {
            return None;
        }
        hasher.update(&buffer[..read]);
        left = left.saturating_sub(read as u64);
    }
    if facts.len() > DIGESTED {
        let identity = (facts.len(), facts.ino(), facts.ctime(), facts.ctime_nsec());
        hasher.update(format!("{identity:?}"));
    }
    can_be_code.then(|| hex::encode(hasher.finalize()))
}
