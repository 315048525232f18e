//! How a candidate is written into a line, so that it is one word there and nothing else.
//!
//! Owns what is never offered, and the spelling for bash, which puts in what it is given as it is.
//! Zsh and fish quote by themselves, for the quote that is open; see
//! `docs/decisions/0018-what-a-shell-is-offered.md`.

use toolway_types::text::is_hidden;

use super::quoting::{Dialect, Quote, Words};

/// What shells act on inside double quotes too, or still after one round of unquoting. There is no
/// spelling of these that is safe wherever a line may be pasted, edited or expanded.
const NEVER: [char; 4] = ['$', '`', '\\', '!'];

/// What ends a command or begins another one, where no quote is open.
const CONTROL: &str = ";&|<>()";

/// Whether a candidate may stand on a command line at all. What a server calls something must not
/// become a flag of ours, a home directory or the path of a program either.
pub(super) fn is_offered(candidate: &str) -> bool {
    !candidate.starts_with(['-', '~', '='])
        && !candidate.contains(|c| is_hidden(c) || NEVER.contains(&c))
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

/// Bash closes an open quote behind a candidate by itself. It also takes it away when it inserts
/// all candidates at once. So what ends a command stands outside the quote, behind a backslash,
/// and the quote is opened again: without the first one, both are quoted. Every beginning of a
/// spelling is as safe as the whole, since bash inserts what several candidates have in common.
fn spelled(text: &str, quote: Quote) -> String {
    if text.is_empty() && quote == Quote::Bare {
        return "''".to_owned();
    }
    let mut spelled = String::new();
    for c in text.chars() {
        match quote {
            Quote::Bare if is_plain(c) => spelled.push(c),
            Quote::Bare => spelled.extend(['\\', c]),
            Quote::Double if CONTROL.contains(c) => spelled.extend(['"', '\\', c, '"']),
            Quote::Double if c == '"' => spelled.push_str("\\\""),
            Quote::Single if CONTROL.contains(c) => spelled.extend(['\'', '\\', c, '\'']),
            Quote::Single if c == '\'' => spelled.push_str(r"'\''"),
            Quote::Double | Quote::Single => spelled.push(c),
        }
    }
    // Bash takes a quote at the end for the closing one, and adds none.
    match quote {
        Quote::Double if spelled.ends_with('"') => spelled.push('"'),
        Quote::Single if spelled.ends_with('\'') => spelled.push('\''),
        _ => {}
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
        ] {
            assert!(!is_offered(bad), "{bad:?}");
        }
        for good in ["", "x", "rio de janeiro", "it's 5\"", "a;b", "x=~", "50%"] {
            assert!(is_offered(good), "{good:?}");
        }
    }

    #[test]
    fn sec_49_a_candidate_is_spelled_for_the_quote_that_is_open() {
        for (line, replaced, expected) in [
            ("t a=x", "x", r#"x\ \"y\"\;\'z\'"#),
            ("t a=\"x", "x", r#"x \"y\""\;"'z'"#),
            ("t a='x", "x", r#"x "y"'\;''\''z'\'''"#),
            ("t \"a=x", "a=x", r#"a=x \"y\""\;"'z'"#),
            ("t a=x\\", "x\\", r#"x\ \"y\"\;\'z\'"#),
        ] {
            let given = for_bash("a=x \"y\";'z'", line, replaced);
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
            value in "[a-z \"';&|<>()*?{}~#-]{0,12}",
            believed in quote(),
            real in quote(),
        ) {
            prop_assume!(is_offered(&value));
            let open = |quote| match quote {
                Quote::Bare => "",
                Quote::Double => "\"",
                Quote::Single => "'",
            };
            let spelled = spelled(&value, believed);
            let close = if spelled.ends_with(open(believed)) { "" } else { open(believed) };
            let line = format!("t {}{spelled}{close}", open(believed));
            let words = Words::read(&line, Dialect::Posix);
            prop_assert_eq!(words.last.as_deref(), Some(value.as_str()));
            prop_assert_eq!(words.quote, Quote::Bare);
            // A word is known as long as nothing in it ends it.
            let wrong = format!("{}{}", open(real), spelled.replace(' ', "_"));
            prop_assert!(Words::read(&wrong, Dialect::Posix).last.is_some(), "{}", wrong);
        }
    }
}
