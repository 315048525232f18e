//! Fuzz target: the files of results (SEC-37, SEC-38).
//!
//! Owns the promises of saving: whatever a server says about type, name and place, a file lies
//! directly in the private directory, is private itself, and its name is the digest of its bytes
//! with an extension from the closed list. What lies in the way, a link among it, is never
//! followed or overwritten. The list is written down here once more, on purpose.
#![no_main]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use toolway::dispatch::result::fuzzing::deliver;
use toolway::{BoundedResult, SavedFile, Treatment};

/// How files may end.
const EXTENSIONS: [&str; 28] = [
    "png", "jpg", "gif", "webp", "avif", "bmp", "tiff", "wav", "mp3", "ogg", "flac", "aac", "m4a",
    "weba", "mp4", "webm", "pdf", "json", "jsonl", "zip", "gz", "xml", "txt", "csv", "md", "xlsx",
    "docx", "bin",
];
/// So few that most texts are saved.
const MAX_TOKENS: usize = 8;
/// What a link in the way leads to.
const CANARY: &[u8] = b"not yours";

thread_local! {
    static OUTER: TempDir = tempfile::tempdir().expect("a temporary directory");
}

// One byte of choices, then parts separated by 0xFF, which no text has. Four make a block: its
// kind, media type, name or URI, and content.
fuzz_target!(|data: &[u8]| {
    let Some((choices, data)) = data.split_first() else {
        return;
    };
    let parts: Vec<&[u8]> = data.split(|byte| *byte == 0xFF).collect();
    let blocks: Vec<Value> = parts.chunks(4).map(block).collect();
    let mut result = json!({ "content": blocks });
    if choices & 1 != 0 {
        let last = parts.last().copied().unwrap_or_default();
        result["structuredContent"] = serde_json::from_slice(last).unwrap_or(Value::Null);
    }
    OUTER.with(|outer| check(outer.path(), &result, *choices, &parts));
});

fn block(parts: &[&[u8]]) -> Value {
    let part = |index: usize| parts.get(index).copied().unwrap_or_default();
    let text = |index: usize| String::from_utf8_lossy(part(index)).into_owned();
    let (mime_type, name) = (text(1), text(2));
    let kind = part(0).first().copied().unwrap_or_default();
    // Mostly true base64: what is broken is never saved.
    let data = match kind & 0x80 {
        0 => STANDARD.encode(part(3)),
        _ => text(3),
    };
    match kind % 7 {
        0 => json!({ "type": "image", "mimeType": mime_type, "data": data, "name": name }),
        1 => json!({ "type": "audio", "mimeType": mime_type, "data": data, "name": name }),
        2 => json!({
            "type": "resource",
            "resource": { "uri": name, "mimeType": mime_type, "blob": data, "name": name },
        }),
        3 => json!({
            "type": "resource",
            "resource": { "uri": name, "mimeType": mime_type, "text": text(3) },
        }),
        4 => {
            json!({ "type": "resource_link", "uri": text(3), "mimeType": mime_type, "name": name })
        }
        5 => json!({ "type": mime_type, name: text(3) }),
        _ => json!({ "type": "text", "text": text(3) }),
    }
}

fn check(outer: &Path, result: &Value, choices: u8, parts: &[&[u8]]) {
    let (directory, canary) = (outer.join("results"), outer.join("canary"));
    fs::write(&canary, CANARY).expect("the canary is ours");
    let traps = if choices & 2 == 0 {
        Vec::new()
    } else {
        plant(&directory, &canary, choices, parts)
    };
    let Some((saved, bounded, warnings)) = deliver(&result.to_string(), MAX_TOKENS, &directory)
    else {
        clear(&directory);
        return;
    };
    for warning in &warnings {
        assert!(!warning.is_empty());
    }
    for file in saved.iter().chain(files_of(&bounded)) {
        check_file(&directory, file);
    }
    check_directory(&directory, &traps);
    // Beside the directory nothing appeared, and behind the link nothing changed.
    let beside = fs::read_dir(outer).expect("the outer directory").count();
    assert_eq!(beside, 1 + usize::from(directory.exists()));
    assert_eq!(fs::read(&canary).expect("the canary is there"), CANARY);
    // The same result again is the same files.
    if let Some((again, ..)) = deliver(&result.to_string(), MAX_TOKENS, &directory) {
        assert_eq!(again, saved);
    }
    clear(&directory);
}

fn files_of(bounded: &BoundedResult) -> &[SavedFile] {
    match &bounded.treatment {
        Treatment::Saved { files } => files,
        Treatment::Cut { file, .. } => file.as_slice(),
        Treatment::Passed => &[],
    }
}

fn check_file(directory: &Path, file: &SavedFile) {
    assert_eq!(file.path.parent(), Some(directory));
    let metadata = fs::symlink_metadata(&file.path).expect("what was saved is there");
    assert!(metadata.is_file());
    assert_eq!(metadata.len(), file.bytes);
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o600);
    assert_eq!(metadata.nlink(), 1);
    let bytes = fs::read(&file.path).expect("what was saved can be read");
    let name = file.path.file_name().and_then(|name| name.to_str());
    let name = name.expect("a name of ours is text");
    let digest = hex::encode(Sha256::digest(&bytes));
    let rest = name.strip_prefix(&digest).expect("a name is its digest");
    let (attempt, extension) = rest.split_once('.').expect("a name has an extension");
    assert!(matches!(attempt, "" | "-2" | "-3"), "{name}");
    assert!(EXTENSIONS.contains(&extension), "{name}");
}

/// Nothing but our files and the traps is in the directory.
fn check_directory(directory: &Path, traps: &[String]) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries {
        let name = entry.expect("an entry").file_name();
        let name = name.to_str().expect("a name of ours is text");
        let (stem, extension) = name.split_once('.').expect("a name has an extension");
        let stem = stem.split_once('-').map_or(stem, |(digest, _)| digest);
        let digits = stem.len() == 64 && stem.bytes().all(|byte| byte.is_ascii_hexdigit());
        let known = digits && EXTENSIONS.contains(&extension);
        assert!(known || traps.iter().any(|trap| trap == name), "{name}");
    }
}

/// Puts something under the very names that will be wanted.
fn plant(directory: &Path, canary: &Path, choices: u8, parts: &[&[u8]]) -> Vec<String> {
    fs::create_dir(directory).expect("the directory is absent");
    let private = fs::Permissions::from_mode(0o700);
    fs::set_permissions(directory, private).expect("the directory is ours");
    let mut traps = Vec::new();
    for content in parts.iter().skip(3).step_by(4).take(4) {
        for extension in ["bin", "png", "txt", "json"] {
            let name = format!("{}.{extension}", hex::encode(Sha256::digest(content)));
            let path = directory.join(&name);
            let planted = match choices >> 2 & 3 {
                0 => symlink(canary, &path),
                1 => fs::create_dir(&path),
                2 => fs::hard_link(canary, &path),
                _ => fs::write(&path, b"torn"),
            };
            // Two blocks of the same bytes want the same name.
            if planted.is_ok() {
                traps.push(name);
            }
        }
    }
    traps
}

fn clear(directory: &Path) {
    if directory.exists() {
        fs::remove_dir_all(directory).expect("the directory is ours");
    }
}
