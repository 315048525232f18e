//! Rules about documents people write by hand: decisions and the changelog.
//!
//! Owns nothing about generated documents; `cargo xtask docs` checks those.

use super::{Finding, Tree};

const DECISIONS: &str = "docs/decisions/";
const CHANGELOG: &str = "CHANGELOG.md";

/// A number is how people refer to a decision, so each is used once and none is missing.
pub(super) fn decisions_are_numbered_without_gaps(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut expected = 1;
    for (path, _) in tree.iter() {
        let Some(file) = path
            .strip_prefix(DECISIONS)
            .filter(|file| *file != "README.md")
        else {
            continue;
        };
        match number(file) {
            Some(number) if number == expected => expected += 1,
            Some(number) => {
                let message = format!("has number {number:04} where {expected:04} comes next");
                findings.push(Finding::error(path, None, message));
                expected = number + 1;
            }
            None => {
                let message = "must be called `NNNN-what-was-decided.md`";
                findings.push(Finding::error(path, None, message));
            }
        }
    }
    findings
}

fn number(file: &str) -> Option<u32> {
    let (number, title) = file.strip_suffix(".md")?.split_once('-')?;
    let has_form = number.len() == 4 && !title.is_empty();
    if has_form { number.parse().ok() } else { None }
}

pub(super) fn the_changelog_has_an_unreleased_section(tree: &Tree) -> Vec<Finding> {
    let message = match tree.get(CHANGELOG) {
        None => "is missing",
        Some(text) if text.lines().any(is_unreleased) => return Vec::new(),
        Some(_) => "has no `## [Unreleased]` section",
    };
    vec![Finding::error(CHANGELOG, None, message)]
}

fn is_unreleased(line: &str) -> bool {
    let heading = line
        .strip_prefix("## ")
        .map(|rest| rest.trim().trim_matches(['[', ']']));
    heading.is_some_and(|title| title.eq_ignore_ascii_case("unreleased"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decisions(names: [&str; 2]) -> Vec<String> {
        let paths = names.map(|name| format!("{DECISIONS}{name}"));
        let tree = Tree::of([(paths[0].as_str(), ""), (paths[1].as_str(), "")]);
        decisions_are_numbered_without_gaps(&tree)
            .into_iter()
            .map(|finding| finding.message)
            .collect()
    }

    #[test]
    fn decisions_in_order_are_fine() {
        assert_eq!(decisions(["0001-own-wire.md", "0002-approval.md"]), [""; 0]);
        assert_eq!(decisions(["0001-own-wire.md", "README.md"]), [""; 0]);
    }

    #[test]
    fn a_gap_a_repetition_and_a_wrong_name_fail() {
        assert_eq!(
            decisions(["0001-own-wire.md", "0003-approval.md"]),
            ["has number 0003 where 0002 comes next"]
        );
        assert_eq!(
            decisions(["0001-a.md", "0001-b.md"]),
            ["has number 0001 where 0002 comes next"]
        );
        assert_eq!(decisions(["0001-a.md", "approval.md"]).len(), 1);
    }

    #[test]
    fn a_changelog_without_unreleased_fails() {
        let of = |text| the_changelog_has_an_unreleased_section(&Tree::of([(CHANGELOG, text)]));
        assert_eq!(of("# Changelog\n\n## [Unreleased]\n- x\n"), []);
        assert_eq!(of("# Changelog\n\n## 0.1.0\nUnreleased things\n").len(), 1);
        assert_eq!(
            the_changelog_has_an_unreleased_section(&Tree::of([])).len(),
            1
        );
    }
}
