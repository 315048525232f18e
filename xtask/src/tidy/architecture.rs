//! ARCHITECTURE.md is only a map while it is true: every path it names exists, and it is short.
//!
//! Owns the reading of paths out of Markdown. Method names (`tools/call`), media types and
//! files of a user's home (`settings.json`) look a little like paths and are left alone.

use std::collections::BTreeSet;

use super::{Finding, Tree};

const MAP: &str = "ARCHITECTURE.md";
const MOST_LINES: usize = 250;

/// First parts that can only mean this repository; such a path must exist exactly as written.
const OURS: &[&str] = &[
    "crates", "docs", "xtask", "bench", "fuzz", ".ci", ".config", ".cargo",
];
/// Endings that only files of this repository have; a short form such as `session.rs` will do.
const SOURCE: &[&str] = &[".rs", ".md", ".toml", ".py"];

pub(super) fn named_paths_exist(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.get(MAP) else {
        return vec![Finding::error(MAP, None, "is missing")];
    };
    let known = files_and_folders(tree);
    let mut findings = Vec::new();
    let mut in_block = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
            continue;
        }
        // A block is a drawing or a listing: only what is certainly a path counts there.
        let words: Vec<&str> = if in_block {
            line.split_whitespace()
                .filter(|word| starts_in_ours(word))
                .collect()
        } else {
            line.split('`').skip(1).step_by(2).collect()
        };
        for path in words
            .into_iter()
            .flat_map(expand)
            .filter_map(|word| as_path(&word))
        {
            if !exists(&path, &known) {
                let message = format!("names `{path}`, which does not exist");
                findings.push(Finding::error(MAP, index + 1, message));
            }
        }
    }
    findings
}

pub(super) fn it_stays_short(tree: &Tree) -> Vec<Finding> {
    let lines = tree.get(MAP).map_or(0, |text| text.lines().count());
    if lines > MOST_LINES {
        vec![Finding::error(
            MAP,
            None,
            format!("has {lines} lines, at most {MOST_LINES} fit"),
        )]
    } else {
        Vec::new()
    }
}

fn files_and_folders(tree: &Tree) -> BTreeSet<&str> {
    let mut known = BTreeSet::new();
    for (path, _) in tree.iter() {
        known.insert(path);
        known.extend(path.match_indices('/').map(|(end, _)| &path[..end]));
    }
    known
}

fn starts_in_ours(word: &str) -> bool {
    word.split_once('/')
        .is_some_and(|(first, _)| OURS.contains(&first))
}

/// The word as a path of this repository, or `None` if it is something else.
fn as_path(word: &str) -> Option<String> {
    let word = word
        .split(':')
        .next()?
        .trim_end_matches(['/', ',', '.', ')']);
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || "._-/".contains(character);
    let rooted = word.starts_with('/') || word.starts_with("../");
    if word.is_empty() || rooted || !word.chars().all(is_plain) {
        return None;
    }
    let is_source = SOURCE.iter().any(|ending| {
        word.strip_suffix(ending)
            .is_some_and(|stem| !stem.is_empty())
    });
    (is_source || starts_in_ours(word)).then(|| word.to_owned())
}

/// `session/{legacy,modern}.rs` names two files.
fn expand(word: &str) -> Vec<String> {
    let parts = word.split_once('{').and_then(|(before, rest)| {
        rest.split_once('}')
            .map(|(inside, after)| (before, inside, after))
    });
    match parts {
        Some((before, inside, after)) => inside
            .split(',')
            .flat_map(|choice| expand(&format!("{before}{}{after}", choice.trim())))
            .collect(),
        None => vec![word.to_owned()],
    }
}

fn exists(path: &str, known: &BTreeSet<&str>) -> bool {
    known.contains(path)
        || (!starts_in_ours(path)
            && known.iter().any(|file| {
                file.strip_suffix(path)
                    .is_some_and(|before| before.ends_with('/'))
            }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(map: &str) -> Vec<String> {
        let tree = Tree::of([
            (MAP, map),
            ("Cargo.toml", ""),
            ("crates/toolway/src/session.rs", ""),
            ("crates/toolway/src/session/legacy.rs", ""),
            ("docs/config.schema.json", ""),
        ]);
        named_paths_exist(&tree)
            .into_iter()
            .map(|finding| format!("{}: {}", finding.line.unwrap_or_default(), finding.message))
            .collect()
    }

    #[test]
    fn paths_that_exist_are_fine_whole_or_short() {
        let map = "`crates/toolway/src/session.rs`, `session.rs`, `session/legacy.rs`,\n\
                   `crates/toolway/`, `docs/config.schema.json`, `Cargo.toml`\n";
        assert_eq!(findings(map), [""; 0]);
    }

    #[test]
    fn a_missing_path_fails_with_its_line() {
        let map = "# Map\n\nSee `crates/toolway/src/gone.rs`.\n";
        assert_eq!(
            findings(map),
            ["3: names `crates/toolway/src/gone.rs`, which does not exist"]
        );
    }

    #[test]
    fn a_missing_folder_short_name_or_generated_file_fails() {
        assert_eq!(findings("`crates/gone/`").len(), 1);
        assert_eq!(findings("`gone.rs`").len(), 1);
        assert_eq!(findings("`docs/gone.json`").len(), 1);
    }

    #[test]
    fn a_whole_path_is_not_taken_for_the_end_of_another() {
        assert_eq!(findings("`docs/session.rs`").len(), 1);
    }

    #[test]
    fn every_choice_between_braces_must_exist() {
        assert_eq!(
            findings("`session/{legacy,modern}.rs`"),
            ["1: names `session/modern.rs`, which does not exist"]
        );
    }

    #[test]
    fn paths_in_a_block_are_checked_when_they_are_certainly_ours() {
        let map = "```text\ncrates/toolway/src/gone.rs  a/b  other.rs\n```\n";
        assert_eq!(
            findings(map),
            ["2: names `crates/toolway/src/gone.rs`, which does not exist"]
        );
    }

    #[test]
    fn methods_media_types_and_files_of_a_home_are_no_paths() {
        let map = "`tools/call` `text/event-stream` `settings.json` `/etc/toolway` `.mcp.json` \
                   `import/<client>.rs` `Vec<u8>` `~/.config/toolway` `cargo xtask test`\n";
        assert_eq!(findings(map), [""; 0]);
    }

    #[test]
    fn a_repository_without_the_map_fails() {
        let findings = named_paths_exist(&Tree::of([("README.md", "")]));
        assert_eq!(findings, [Finding::error(MAP, None, "is missing")]);
    }

    #[test]
    fn a_long_map_fails() {
        let [fits, long] = [250, 251].map(|count| "line\n".repeat(count));
        assert_eq!(it_stays_short(&Tree::of([(MAP, fits.as_str())])), []);
        assert_eq!(it_stays_short(&Tree::of([(MAP, long.as_str())])).len(), 1);
    }
}
