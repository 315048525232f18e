//! The files of the repository that an approved entry runs.
//!
//! Owns finding and digesting them, so that an approval covers the script and not only its name.
//! What a program takes for code is bound whatever its name, other words where they name what can
//! be code. Files outside the repository are not bound, but links of the repository to them are.
//! What a program loads by itself is not known here; the documentation says so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use toolway_types::{Scope, limits};

use crate::Environment;
use crate::environment::path_key;
use crate::file::open;

mod manifest;
mod named_code;
mod programs;
mod shell;
mod variables;
mod words;

pub(crate) use manifest::InstalledPackages;
use manifest::ProjectManifest;
pub use named_code::UnboundCode;
use named_code::{NamedCode, PathUse};
use variables::{VariableValues, expanded};
use words::{MANIFEST, is_code_name};

/// How much of a file is digested. Of a longer file, its inode and change time are digested too.
const DIGESTED: u64 = limits::configuration::APPROVED_FILES;

/// How many manifests are followed from one to the next.
const DEEPEST: usize = 3;

/// Each file by its path, with its digest.
pub(crate) type FileDigests = BTreeMap<String, String>;

/// The repository's files that a server runs.
#[derive(Debug, Clone, Default)]
pub struct RepositoryFiles {
    /// Each by its path, with a digest of what is in it now. An approval covers them.
    pub bound: BTreeMap<String, String>,
    /// What an approval cannot cover.
    pub unbound: BTreeSet<UnboundCode>,
}

/// The directory that an entry belongs to, and its scope.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryPlace<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) scope: Scope,
}

/// The files of the repository that an entry runs, as they are now.
pub(crate) fn named(
    environment: &Environment,
    place: EntryPlace<'_>,
    definition: &Map<String, Value>,
    installed: &InstalledPackages,
) -> RepositoryFiles {
    let repository = environment.repository_of(place.directory);
    // As in `spec.rs`: only a project's entry starts beside its file, unless it says so.
    let private = environment.private_folder();
    let usual = match place.scope {
        Scope::Project => place.directory,
        _ => &private,
    };
    let mut found = RepositoryFiles::default();
    for entry in expanded(environment, place.directory, definition) {
        let scene = FileBinder {
            repository,
            values: entry.values,
            installed,
        };
        let mut known = entry.env.clone();
        known.insert("PWD".to_owned(), ".".to_owned());
        let root = environment.project_root().to_str();
        let home = environment.var("HOME");
        for (name, value) in [("HOME", home), ("TOOLWAY_PROJECT_DIR", root)] {
            known.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        }
        let reading = || NamedCode {
            known: known.clone(),
            ..NamedCode::default()
        };
        let mut process = reading();
        process.process(&entry.words);
        for (name, value) in &entry.env {
            process.variable(name, value);
        }
        let start = entry.start.as_deref().unwrap_or(usual);
        scene.bind(start, process, &mut found, 0);
        let mut helper = reading();
        helper.process(&entry.helper);
        scene.bind(usual, helper, &mut found, 0);
    }
    found
}

/// Whether a bound file is unchanged, although the entry does not name it from the current
/// directory.
pub(crate) fn is_as_it_was(file: &str, digest: &str) -> bool {
    let now = open(Path::new(file)).ok();
    let now = now.and_then(|(file, facts)| self::digest(file, &facts, PathUse::Run));
    now.is_some_and(|now| now == digest)
}

/// Programs that start the others: a package runner finds them among the commands of packages, too.
const STARTERS: [&str; 6] = ["bash", "env", "node", "python", "python3", "sh"];

struct FileBinder<'a> {
    repository: &'a Path,
    values: VariableValues,
    installed: &'a InstalledPackages,
}

impl FileBinder<'_> {
    /// Binds what the words of a process that starts in a directory name.
    fn bind(&self, start: &Path, reading: NamedCode, found: &mut RepositoryFiles, depth: usize) {
        let places = reading.places.iter().map(|place| start.join(place));
        let places: BTreeSet<PathBuf> = places.chain([start.to_owned()]).collect();
        // Programs are given directories, and find the rest in them.
        let named = reading.paths.keys().map(|path| start.join(path));
        let named = named.filter(|path| self.may_look_at(path) && path.is_dir());
        let bases: BTreeSet<PathBuf> = places.iter().cloned().chain(named).collect();
        for base in &bases {
            for (path, usage) in &reading.paths {
                self.bind_path(&base.join(path), *usage, &mut found.bound);
            }
            let modules = reading.modules.iter();
            let files = |module: &String| {
                let folders = [base.clone(), base.join("src")];
                folders.map(|folder| words::module(&folder, module))
            };
            for file in modules.flat_map(files).flatten() {
                self.bind_file(&file, PathUse::Unknown, &mut found.bound);
            }
            for name in &reading.searched {
                self.bind_file(&base.join(name), PathUse::Unknown, &mut found.bound);
            }
        }
        for place in &places {
            // Programs search upwards from their real directory, or from the one they were given.
            let real = Some(place).filter(|place| self.may_look_at(place));
            let real = real.and_then(|place| place.canonicalize().ok());
            let starts: BTreeSet<PathBuf> = [Some(straight(place)), real]
                .into_iter()
                .flatten()
                .collect();
            let above: BTreeSet<&Path> = starts
                .iter()
                .flat_map(|start| start.ancestors())
                .filter(|folder| folder.starts_with(self.repository))
                .collect();
            for folder in above {
                self.bind_place(folder, &reading, found, depth);
            }
        }
        for (what, from) in reading.mounts {
            if straight(&start.join(from)).starts_with(self.repository) {
                let why = "gives a container files of the repository";
                found.unbound.insert(UnboundCode { what, why });
            }
        }
        found.unbound.extend(reading.unbound);
    }

    /// Binds what a path may lead to.
    fn bind_path(&self, path: &Path, usage: PathUse, bound: &mut FileDigests) {
        if !self.may_look_at(path) {
            return;
        }
        if path.is_dir() {
            if usage == PathUse::Run {
                for file in words::in_directory(path) {
                    self.bind_file(&file, usage, bound);
                }
                self.bind_package(path, bound);
            }
        } else if path.exists() {
            self.bind_file(path, usage, bound);
        } else {
            for file in words::with_endings(path) {
                self.bind_file(&file, usage, bound);
            }
        }
    }

    /// Binds what programs look for by themselves where they work.
    fn bind_place(
        &self,
        folder: &Path,
        reading: &NamedCode,
        found: &mut RepositoryFiles,
        depth: usize,
    ) {
        let (packages, tasks) = (&reading.packages, &reading.tasks);
        let mut lines = Vec::new();
        for name in &reading.looks_for {
            let file = folder.join(name);
            self.bind_file(&file, PathUse::File, &mut found.bound);
            let manifest = Some(&file).filter(|_| !tasks.is_empty());
            let manifest = manifest.and_then(|file| ProjectManifest::read(file));
            lines.extend(manifest.iter().flat_map(|it| it.lines(tasks)));
        }
        if !(packages.is_empty() && tasks.is_empty())
            && let Some(manifest) = ProjectManifest::read(&folder.join(MANIFEST))
            && manifest.concerns(packages, tasks)
        {
            if !manifest.is_read() {
                let (what, why) = (MANIFEST.to_owned(), "cannot be read, nor can what it runs");
                found.unbound.insert(UnboundCode { what, why });
            }
            self.bind_file(&folder.join(MANIFEST), PathUse::File, &mut found.bound);
            self.bind_package(folder, &mut found.bound);
            lines.extend(manifest.lines(tasks));
        }
        if !packages.is_empty() {
            let modules = folder.join("node_modules");
            let mut commands = packages.clone();
            let installed = self.installed.below(&modules, packages).unwrap_or_else(|| {
                let what = packages.iter().next().cloned().unwrap_or_default();
                let why = "is looked for among too many packages";
                found.unbound.insert(UnboundCode { what, why });
                Vec::new()
            });
            for file in installed {
                self.bind_file(&file, PathUse::File, &mut found.bound);
                if let Some(folder) = file.parent() {
                    self.bind_package(folder, &mut found.bound);
                }
                let manifest = ProjectManifest::read(&file);
                commands.extend(manifest.iter().flat_map(|it| it.commands().cloned()));
            }
            commands.extend(STARTERS.map(str::to_owned));
            self.bind_commands(folder, &commands, found);
        }
        if !lines.is_empty() {
            let heads = lines.iter().flat_map(|line| line.split_whitespace());
            let heads = heads.map(|word| word.trim_matches(['\'', '"', ';', '&', '|', '(', ')']));
            let is_name = |word: &&str| !word.starts_with('-') && !word.contains(['/', '=']);
            let heads = heads.filter(is_name).chain(STARTERS);
            let heads: BTreeSet<String> = heads.map(str::to_owned).collect();
            self.bind_commands(folder, &heads, found);
        }
        if depth >= DEEPEST
            && let Some(line) = lines.first()
        {
            let (what, why) = (line.clone(), "stands too deep in the scripts of a manifest");
            found.unbound.insert(UnboundCode { what, why });
        }
        for line in lines.iter().filter(|_| depth < DEEPEST) {
            let mut inner = NamedCode {
                known: reading.known.clone(),
                ..NamedCode::default()
            };
            inner.line(line);
            self.bind(folder, inner, found, depth + 1);
        }
    }

    /// Binds the commands of these names in `node_modules/.bin`, which package runners search
    /// first.
    fn bind_commands(&self, folder: &Path, names: &BTreeSet<String>, found: &mut RepositoryFiles) {
        let commands = folder.join("node_modules/.bin");
        for name in names {
            self.bind_file(&commands.join(name), PathUse::File, &mut found.bound);
        }
    }

    /// Binds the files that the manifest in a folder names as what is run.
    fn bind_package(&self, folder: &Path, bound: &mut FileDigests) {
        let manifest = ProjectManifest::read(&folder.join(MANIFEST));
        for file in manifest.iter().flat_map(|it| it.files(folder)) {
            if file.is_file() {
                self.bind_file(&file, PathUse::File, bound);
            } else {
                let inside = words::in_directory(&file);
                for file in words::with_endings(&file).chain(inside) {
                    self.bind_file(&file, PathUse::File, bound);
                }
            }
        }
    }

    /// Binds one file of the repository that can be code, and the target of a link.
    fn bind_file(&self, path: &Path, usage: PathUse, bound: &mut FileDigests) {
        if !self.may_look_at(path) {
            return;
        }
        let Ok(real) = path.canonicalize() else {
            return;
        };
        let inside = real.starts_with(self.repository);
        if !inside {
            // The link is the repository's, what it leads to is not.
            let is_link = self.holds_link(path);
            if is_link && real.is_file() {
                bound.insert(path_key(path), format!("leads to {}", path_key(&real)));
            }
            return;
        }
        // The same file under another spelling costs nothing more.
        if bound.contains_key(&path_key(&real)) {
            return;
        }
        let Ok((file, facts)) = open(&real) else {
            return;
        };
        let is_code = is_code_name(path) || is_code_name(&real);
        let usage = if is_code { PathUse::File } else { usage };
        if let Some(digest) = digest(file, &facts, usage) {
            bound.insert(path_key(&real), digest);
        }
    }

    /// A path with a secret in it must not be looked up where others could see it.
    fn may_look_at(&self, path: &Path) -> bool {
        self.values == VariableValues::Harmless || straight(path).starts_with(self.repository)
    }

    /// Whether a path leads through a link that lies in the repository.
    fn holds_link(&self, path: &Path) -> bool {
        path.ancestors().any(|step| {
            let folder = step.parent().and_then(|folder| folder.canonicalize().ok());
            folder.is_some_and(|folder| folder.starts_with(self.repository)) && step.is_symlink()
        })
    }
}

/// A path without `.` and `..`, by its text.
fn straight(path: &Path) -> PathBuf {
    let mut straight = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                straight.pop();
            }
            other => straight.push(other),
        }
    }
    straight
}

/// The digest of a file that is code, or can be; nothing for any other.
fn digest(mut file: File, facts: &Metadata, usage: PathUse) -> Option<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut left = DIGESTED;
    let mut can_be_code = usage != PathUse::Unknown || facts.mode() & 0o111 != 0;
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
