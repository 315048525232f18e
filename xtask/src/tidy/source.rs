//! Rules about source files: they say what they own, stay short, and leave nothing undone.
//!
//! Owns no rule that rustc, clippy or rustfmt can check.

use super::{Finding, Tree};

const WANTED_LINES: usize = 500;
const MOST_LINES: usize = 600;

/// Split so that the rule does not find itself.
const UNDONE: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("db", "g!"),
    concat!("to", "do!"),
];

pub(super) fn files_open_with_their_purpose(tree: &Tree) -> Vec<Finding> {
    tree.with_extension("rs")
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|(path, _)| {
            Finding::error(
                path,
                1,
                "must open with `//!` saying what it owns and what it does not",
            )
        })
        .collect()
}

pub(super) fn files_stay_short(tree: &Tree) -> Vec<Finding> {
    tree.with_extension("rs")
        .filter(|(path, _)| !is_test(path))
        .filter_map(|(path, text)| {
            let lines = text.lines().count();
            let message = format!("has {lines} lines; split it by noun before {WANTED_LINES}");
            if lines > MOST_LINES {
                Some(Finding::error(path, None, message))
            } else if lines > WANTED_LINES {
                Some(Finding::warning(path, None, message))
            } else {
                None
            }
        })
        .collect()
}

fn is_test(path: &str) -> bool {
    path.split('/')
        .any(|part| part == "tests" || part == "tests.rs")
}

pub(super) fn nothing_is_left_undone(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for extension in ["rs", "py", "toml"] {
        for (path, text) in tree.with_extension(extension) {
            for (index, line) in text.lines().enumerate() {
                if let Some(mark) = UNDONE.iter().find(|mark| has_word(line, mark)) {
                    let message = format!("`{mark}` is left: do it, or open an issue");
                    findings.push(Finding::error(path, index + 1, message));
                }
            }
        }
    }
    findings
}

/// Whether `word` stands in the line on its own, not inside a longer identifier.
fn has_word(line: &str, word: &str) -> bool {
    let inside = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        !before.is_some_and(inside) && (word.ends_with('!') || !after.is_some_and(inside))
    })
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;

    #[test]
    fn a_file_that_does_not_say_what_it_owns_fails() {
        let tree = Tree::of([
            ("a.rs", "//! Owns a.\n"),
            ("b.rs", "use x;\n"),
            ("c.rs", ""),
        ]);
        let findings = files_open_with_their_purpose(&tree);
        let paths: Vec<_> = findings
            .iter()
            .map(|finding| finding.path.as_str())
            .collect();
        assert_eq!(paths, ["b.rs", "c.rs"]);
    }

    #[test]
    fn a_long_file_is_warned_about_and_a_longer_one_fails() {
        let lines = |count| "//\n".repeat(count);
        let [short, long, longest] = [lines(500), lines(501), lines(601)];
        let tree = Tree::of([
            ("a.rs", short.as_str()),
            ("b.rs", long.as_str()),
            ("c.rs", longest.as_str()),
            ("c/tests.rs", longest.as_str()),
            ("tests/it/d.rs", longest.as_str()),
        ]);
        let found: Vec<_> = files_stay_short(&tree)
            .into_iter()
            .map(|finding| (finding.path, finding.severity))
            .collect();
        let expected = [
            ("b.rs".to_owned(), Severity::Warning),
            ("c.rs".to_owned(), Severity::Error),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_left_undone_fails_with_its_line() {
        let text = format!(
            "//! x\n// {}: later\nlet a = {}(b);\n",
            UNDONE[0], UNDONE[2]
        );
        let lines: Vec<_> = nothing_is_left_undone(&Tree::of([("a.rs", text.as_str())]))
            .into_iter()
            .map(|finding| finding.line)
            .collect();
        assert_eq!(lines, [Some(2), Some(3)]);
    }

    #[test]
    fn a_longer_word_is_not_a_mark() {
        let text = format!("let {}S = 1; my_{}(x)", UNDONE[0], UNDONE[2]);
        assert_eq!(
            nothing_is_left_undone(&Tree::of([("a.rs", text.as_str())])),
            []
        );
    }
}
