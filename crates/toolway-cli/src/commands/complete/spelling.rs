//! How a candidate is written into a line, so that it is one word there and nothing else.
//!
//! Owns what is never offered, and the spelling for bash, which puts in what it is given as it is.
//! Zsh and fish quote by themselves, for the quote that is open; see
//! `docs/decisions/0018-what-a-shell-is-offered.md`.

use toolway_config::Environment;
use toolway_types::text::is_hidden;

use super::quoting::{Dialect, Quote, Words};

/// What shells act on: inside double quotes, or where a line is unquoted once more (`eval`,
/// `watch`, `ssh`). There is no spelling of these that is safe wherever a line may end up.
const NEVER: &str = "$`\\!;&|<>()\"'#*?[]{}^";

/// Which letters the shell and this program take for the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Charset {
    Utf8,
    /// Or unknown: the second byte of a letter may be a `;` or a `\`.
    Other,
}

impl Charset {
    /// By the variables that name the language.
    pub(super) fn of(environment: &Environment) -> Self {
        let named = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find_map(|name| environment.var(name).filter(|value| !value.is_empty()));
        let charset = named.and_then(|named| named.split_once('.')).map(|it| it.1);
        let charset = charset.and_then(|charset| charset.split('@').next());
        match charset.map(str::to_ascii_lowercase).as_deref() {
            Some("utf-8" | "utf8") => Self::Utf8,
            _ => Self::Other,
        }
    }
}

/// Whether a candidate may stand on a command line. A server's name for something must not become a
/// flag, a home directory, a program or a file that is read, also where the line is unquoted twice.
pub(super) fn is_offered(candidate: &str, charset: Charset) -> bool {
    !candidate.contains(|c| is_hidden(c) || NEVER.contains(c))
        && !candidate.contains("=@")
        && !candidate
            .split(char::is_whitespace)
            .any(|word| word.starts_with(['-', '~', '=']))
        && (charset == Charset::Utf8 || candidate.is_ascii())
}

/// What bash is to put in the place of `replaced`, with which the line ends.
pub(super) fn for_bash(candidate: &str, line: &str, replaced: &str) -> Option<String> {
    let kept = Words::read(line.strip_suffix(replaced)?, Dialect::Posix);
    if kept.is_escaped {
        return None;
    }
    let rest = candidate.strip_prefix(kept.last?.as_str())?;
    Some(spelled(rest, kept.quote))
}

/// Bash closes an open quote by itself, and drops it when it inserts all candidates at once. Every
/// prefix of a spelling is as safe as the whole: bash inserts what candidates have in common.
fn spelled(text: &str, quote: Quote) -> String {
    if text.is_empty() && quote == Quote::Bare {
        return "''".to_owned();
    }
    let mut spelled = String::new();
    for c in text.chars() {
        match quote {
            Quote::Bare if is_plain(c) => spelled.push(c),
            Quote::Bare => spelled.extend(['\\', c]),
            Quote::Double | Quote::Single => spelled.push(c),
        }
    }
    spelled
}

fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "_-.:@/+%,=".contains(c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sec_49_what_no_spelling_makes_safe_is_not_offered() {
        for bad in [
            "x$(touch canary)",
            "x`touch canary`",
            "x${IFS}",
            "x\\",
            "x!x",
            "x\ny",
            "x\ty",
            "x\u{1b}[31m",
            "x\u{202e}y",
            "-x",
            "~root",
            "=ls",
            "x;y",
            "x|y",
            "x(y)",
            "it's",
            "x\"",
            "x{a,b}",
            "x*",
            "x --yes",
            "x ~root",
            "x\u{3000}-y",
            "a=@/etc/passwd",
        ] {
            assert!(!is_offered(bad, Charset::Utf8), "{bad:?}");
        }
        for good in ["", "x", "rio de janeiro", "são", "x=~", "50%", "a-b", "@x"] {
            assert!(is_offered(good, Charset::Utf8), "{good:?}");
        }
        assert!(!is_offered("são", Charset::Other));
    }

    #[test]
    fn sec_49_a_candidate_is_spelled_for_the_quote_that_is_open() {
        for (line, replaced, expected) in [
            ("t a=x", "x", r"x\ y\~z"),
            ("t a=\"x", "x", "x y~z"),
            ("t a='x", "x", "x y~z"),
            ("t \"a=x", "a=x", "a=x y~z"),
            ("t a=x\\", "x\\", r"x\ y\~z"),
        ] {
            let given = for_bash("a=x y~z", line, replaced);
            assert_eq!(given.as_deref(), Some(expected), "{line}");
        }
        for (line, replaced) in [
            ("t a=$x", "x"),
            ("t a=$'x", "x"),
            ("t a=x", "y"),
            ("t a=\\x", "x"),
        ] {
            assert_eq!(for_bash("a=xy", line, replaced), None, "{line}");
        }
    }

    fn quote() -> impl Strategy<Value = Quote> {
        prop::sample::select(vec![Quote::Bare, Quote::Double, Quote::Single])
    }

    proptest! {
        /// Whatever bash takes to be open, and whatever is: nothing ends the command.
        #[test]
        fn sec_49_a_spelling_says_the_value_and_ends_no_command_in_any_quote(
            value in "[a-z ~=:@%,é-]{0,12}",
            believed in quote(),
            real in quote(),
        ) {
            prop_assume!(is_offered(&value, Charset::Utf8));
            let open = |quote| match quote {
                Quote::Bare => "",
                Quote::Double => "\"",
                Quote::Single => "'",
            };
            let spelled = spelled(&value, believed);
            let line = format!("t {0}{spelled}{0}", open(believed));
            let words = Words::read(&line, Dialect::Posix);
            prop_assert_eq!(words.last.as_deref(), Some(value.as_str()));
            prop_assert_eq!(words.quote, Quote::Bare);
            // A word is known as long as nothing in it ends it.
            let wrong = format!("{}{}", open(real), spelled.replace(' ', "_"));
            prop_assert!(Words::read(&wrong, Dialect::Posix).last.is_some(), "{}", wrong);
        }
    }
}
