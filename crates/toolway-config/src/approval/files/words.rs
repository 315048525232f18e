//! What a word may mean as a file.
//!
//! Owns the spellings of a path inside a word, the files that programs take where they are given a
//! path or the name of a module, and which files can be code by their names. A guess that names no
//! file costs nothing.

use std::path::{Path, PathBuf};

use url::Url;

/// Endings of files that programs run.
const CODE: &[&str] = &[
    "awk", "bash", "bat", "cjs", "class", "clj", "cljs", "cmd", "coffee", "cr", "cs", "csx", "cts",
    "dart", "dll", "dylib", "egg", "ex", "exe", "exs", "fish", "fs", "fsx", "go", "gradle",
    "groovy", "hs", "jar", "java", "jl", "js", "jsx", "kt", "kts", "lua", "mjs", "mk", "ml", "mts",
    "nim", "node", "nu", "php", "pl", "pm", "ps1", "psm1", "py", "pyc", "pyw", "pyz", "r", "rake",
    "rb", "rkt", "rs", "sc", "scala", "scm", "sh", "so", "swift", "tcl", "ts", "tsx", "wasm",
    "wat", "whl", "zig", "zip", "zsh",
];

/// What programs look for in a directory that they are to run.
const IN_A_DIRECTORY: [&str; 11] = [
    "__main__.py",
    "__init__.py",
    "index.js",
    "index.mjs",
    "index.cjs",
    "index.ts",
    "main.py",
    "main.go",
    "pyproject.toml",
    "setup.py",
    MANIFEST,
];

/// What a package says about itself.
pub(super) const MANIFEST: &str = "package.json";

/// Endings that programs add to a name.
const ADDED: [&str; 10] = [
    "js", "mjs", "cjs", "ts", "py", "pm", "rb", "lua", "class", "node",
];

/// Every path that a word may hold: itself, the value of a flag, parts of a list or a mount, the
/// file of a `file:` address, the module of a name with `::`.
pub(super) fn spellings(word: &str) -> Vec<String> {
    let mut all = vec![word.to_owned()];
    if let Some((_, value)) = word.split_once('=') {
        all.push(value.to_owned());
    }
    if word.starts_with('-') && !word.starts_with("--") {
        all.extend(word.get(2..).map(str::to_owned));
    }
    for whole in all.clone() {
        if let Some(at) = whole.find("file:") {
            all.extend(local_file(&whole[at..]));
        }
        if whole.contains("::") {
            all.push(whole.replace("::", "/"));
        }
        let parts = whole.split([':', ',', ';', '=', '@', '#', '?']);
        all.extend(parts.map(str::to_owned));
    }
    all.retain(|spelling| !spelling.is_empty());
    all.sort_unstable();
    all.dedup();
    all
}

fn local_file(address: &str) -> Option<String> {
    let relative = || address.strip_prefix("file:").map(str::to_owned);
    if !address.starts_with("file:/") {
        return relative();
    }
    let path = Url::parse(address).ok()?.to_file_path().ok()?;
    path.to_str().map(str::to_owned)
}

/// The module that a word names, if it looks like one: `pkg.server`, `pkg.server:app`.
pub(super) fn module_name(word: &str) -> Option<&str> {
    let (module, _) = word.split_once(':').unwrap_or((word, ""));
    let is_name = |part: &str| {
        let mut letters = part.chars();
        letters
            .next()
            .is_some_and(|c| c.is_alphabetic() || c == '_')
            && letters.all(|c| c.is_alphanumeric() || c == '_')
    };
    module.split('.').all(is_name).then_some(module)
}

/// The files that a program may read where it is given a path that does not exist as it is
/// written.
pub(super) fn with_endings(path: &Path) -> impl Iterator<Item = PathBuf> {
    ADDED.into_iter().map(|ending| with_ending(path, ending))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

/// The files that make a directory a program.
pub(super) fn in_directory(path: &Path) -> impl Iterator<Item = PathBuf> {
    IN_A_DIRECTORY.into_iter().map(|name| path.join(name))
}

/// The files of a module that is looked for in a directory, its packages included.
pub(super) fn module(start: &Path, module: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folder = start.to_owned();
    for part in module.split('.').filter(|part| !part.is_empty()) {
        folder.push(part);
        files.push(with_ending(&folder, "py"));
        files.push(with_ending(&folder, "class"));
        files.push(folder.join("__init__.py"));
        files.push(folder.join("__main__.py"));
    }
    files
}

/// Whether a file is code by its name.
pub(super) fn is_code_name(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let is_manifest = path.file_name().is_some_and(|name| name == MANIFEST);
    is_manifest || ending.is_some_and(|ending| CODE.contains(&ending.to_ascii_lowercase().as_str()))
}
