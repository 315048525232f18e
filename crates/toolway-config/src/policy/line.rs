//! Command lines for a shell, as far as one can see what they run.
//!
//! Owns telling a line of plain words from one that only a shell understands, and the commands
//! that stand in the latter. No shell is run, and what a line computes is not known: that counts
//! against it.

use crate::load::split_command;

/// The shell that reads them.
pub(super) const SHELL: &str = "/bin/sh";

/// What only a shell understands.
const SPECIAL: &[char] = &[
    '|', '&', ';', '<', '>', '(', ')', '$', '`', '*', '?', '[', ']', '{', '}', '!', '#',
];

/// What ends one command and may begin another.
const BETWEEN: &[char] = &['|', '&', ';', '(', ')', '`', '{', '}', '\n', '\r'];

/// Programs whose arguments are a command.
const WRAPPERS: [&str; 32] = [
    "ash",
    "bash",
    "busybox",
    "chroot",
    "chrt",
    "command",
    "dash",
    "doas",
    "env",
    "eval",
    "exec",
    "fish",
    "flatpak-spawn",
    "ionice",
    "ksh",
    "nice",
    "nohup",
    "nsenter",
    "runuser",
    "setarch",
    "setpriv",
    "setsid",
    "sh",
    "stdbuf",
    "su",
    "sudo",
    "taskset",
    "time",
    "timeout",
    "unshare",
    "xargs",
    "zsh",
];

/// A line, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its words, where they are all there is to it.
    pub(super) words: Option<Vec<String>>,
    /// All that may be a command in it, its words without their quotes.
    pub(super) commands: Vec<Vec<String>>,
    /// Whether the name of a program in it is computed.
    pub(super) hides: bool,
}

impl Line {
    pub(super) fn read(line: &str) -> Self {
        let odd =
            |c: char| SPECIAL.contains(&c) || (c != ' ' && (c.is_whitespace() || c.is_control()));
        let words = split_command(line)
            .ok()
            .filter(|words| !line.contains(odd) && words.first().is_some_and(|w| !w.contains('=')));
        let mut read = Self {
            words,
            ..Self::default()
        };
        for part in line.split(BETWEEN) {
            let words: Vec<String> = part
                .split_whitespace()
                .map(|word| word.replace(['\'', '"', '\\'], ""))
                .skip_while(|word| is_assignment(word))
                .collect();
            let Some(first) = words.first() else { continue };
            read.hides |= first.contains(['$', '*', '?', '[', '~']);
            read.commands.extend(with_wrapped(&words));
        }
        read
    }
}

/// A command, and those that it runs when it is a wrapper.
pub(super) fn with_wrapped(words: &[String]) -> Vec<Vec<String>> {
    let mut all = vec![words.to_vec()];
    let is_wrapper = words.first().is_some_and(|first| {
        let name = first.rsplit('/').next().unwrap_or_default();
        WRAPPERS.contains(&name)
    });
    if is_wrapper {
        all.extend((1..words.len()).map(|at| words[at..].to_vec()));
    }
    all
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(line: &str, command: &[&str]) -> bool {
        let read = Line::read(line);
        read.commands.iter().any(|words| words == command)
    }

    #[test]
    fn a_line_is_plain_when_it_needs_no_shell() {
        let words = |line: &str| Line::read(line).words;
        assert_eq!(
            words("op read 'op://a/b c' --x=1").unwrap(),
            ["op", "read", "op://a/b c", "--x=1"]
        );
        for line in [
            "op read $X",
            "a; b",
            "a | b",
            "a && b",
            "a `b`",
            "X=1 a",
            "a > b",
            "a *",
            "a\nb",
            "a 'b",
            "",
            "a\u{a0}b",
        ] {
            assert_eq!(words(line), None, "{line:?}");
        }
    }

    #[test]
    fn sec_53_what_a_line_runs_is_seen_behind_separators_quotes_and_wrappers() {
        for line in [
            "evil x",
            "'ev'il \"x\"",
            "e\\vil x",
            "true; evil x",
            "true|evil x",
            "true &&evil x",
            "echo $(evil x)",
            "echo `evil x`",
            "A=1 B= evil x",
            "nice evil x",
            "/usr/bin/env A=1 evil x",
            "sh -c 'evil x'",
            "{ evil x; }",
            "true\nevil x",
        ] {
            assert!(runs(line, &["evil", "x"]), "{line:?}");
        }
        assert!(!runs("pass show evil x", &["evil", "x"]));
        for line in ["$X y", "true; $(echo evil)", "~/x", "/bin/ev*"] {
            assert!(Line::read(line).hides, "{line:?}");
        }
        assert!(!Line::read("op read \"$ITEM\"").hides);
    }
}
