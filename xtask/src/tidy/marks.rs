//! Secrets that tests make carry the mark by which they are found again (SEC-47).
//!
//! Owns what looks like one without it: words that people write for a secret, and tokens behind
//! `Bearer`. It reads files of tests alone, line by line, and does not know a secret that looks
//! like any other word; whoever writes one marks it. The mark is the testkit's.

use super::{Finding, Tree};

/// Split so that the rule does not find itself.
const WORDS: &[&str] = &[
    concat!("hun", "ter2"),
    concat!("s3c", "ret"),
    concat!("sword", "fish"),
    concat!("pass", "w0rd"),
    concat!("gh", "p_"),
    concat!("can", "ary-"),
    concat!("-can", "ary\""),
];

pub(super) fn secrets_of_tests_are_marked(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_extension("rs").filter(|(path, _)| is_test(path)) {
        let mut before = "";
        for (index, line) in text.lines().enumerate() {
            let code = line.trim_start();
            let is_marked = |line: &str| line.contains("marked!(") || line.contains("MARK");
            let is_fine = code.starts_with("//") || is_marked(code) || is_marked(before);
            if let Some(found) = secret(code).filter(|_| !is_fine) {
                let message = format!(
                    "`{found}` looks like a secret: give it the mark, `marked!(\"{found}\")`, or \
                     write something else"
                );
                findings.push(Finding::error(path, index + 1, message));
            }
            before = code;
        }
    }
    findings
}

fn is_test(path: &str) -> bool {
    path.starts_with("crates/") && (path.contains("/tests/") || path.ends_with("/tests.rs"))
}

/// What looks like a secret in this line.
fn secret(line: &str) -> Option<&str> {
    let word = WORDS.iter().find(|word| line.contains(**word));
    word.map(|word| word.trim_end_matches('"'))
        .or_else(|| bearer(line))
}

/// A literal that ends with `Bearer` and one word.
fn bearer(line: &str) -> Option<&str> {
    line.match_indices("Bearer ").find_map(|(start, scheme)| {
        let rest = &line[start + scheme.len()..];
        let is_token = |letter: char| letter.is_ascii_alphanumeric() || "._~+/-".contains(letter);
        let end = rest.find(|letter| !is_token(letter))?;
        let is_whole = end > 0 && rest[end..].starts_with('"');
        is_whole.then(|| &line[start..start + scheme.len() + end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let findings = secrets_of_tests_are_marked(&Tree::of([(path, text)]));
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_secret_without_the_mark_is_found_in_tests_alone() {
        let planted = format!("let a = 1;\nlet token = \"{}\";\n", WORDS[0]);
        let said = found("crates/a/tests/it/b.rs", &planted);
        assert_eq!(said.len(), 1);
        assert!(
            said[0].starts_with("error: crates/a/tests/it/b.rs:2: "),
            "{said:?}"
        );
        assert_eq!(found("crates/a/src/b/tests.rs", &planted).len(), 1);
        for other in [
            "crates/a/src/b.rs",
            "docs/tests/a.md",
            "xtask/src/tests/a.rs",
        ] {
            assert!(found(other, &planted).is_empty(), "{other}");
        }
        for word in WORDS {
            let planted = format!("f(\"x{word}\")");
            assert_eq!(found("crates/a/tests/it/b.rs", &planted).len(), 1, "{word}");
        }
    }

    #[test]
    fn a_token_behind_its_scheme_is_one_and_a_challenge_is_not() {
        let path = "crates/a/tests/it/b.rs";
        let planted = concat!("let a = \"Bearer", " abc.def-1\";");
        assert_eq!(found(path, planted).len(), 1);
        for fine in [
            "let a = \"Bearer realm=x\";",
            "let a = \"Bearer \";",
            "let a = format!(\"Bearer {token}\");",
            "let a = \"neither Bearer nor DPoP\";",
        ] {
            assert!(found(path, fine).is_empty(), "{fine}");
        }
    }

    #[test]
    fn the_mark_and_comments_are_fine() {
        let word = WORDS[0];
        for fine in [
            format!("let a = marked!(\"{word}-\");"),
            format!("let a = marked!(\n    \"{word}-\",\n);"),
            format!("let a = format!(\"{word}-{{MARK}}\");"),
            format!("    // As in {word}."),
        ] {
            assert!(found("crates/a/tests/it/b.rs", &fine).is_empty(), "{fine}");
        }
    }
}
