//! The unfinished command line: its words, and which of them are no options.
//!
//! Owns telling options and their values from the words that mean something to a server, by the
//! same definition that the command line itself is read with. Quotes are `quoting.rs`.

use clap::{Arg, Command};

use super::quoting::{Dialect, Words};

/// A line as far as it concerns servers.
pub(super) struct Line {
    /// The command, by the name it is known by.
    pub(super) command: String,
    /// The words behind it that are finished, without options and their values.
    pub(super) before: Vec<String>,
    /// The word at the cursor.
    pub(super) word: String,
}

impl Line {
    /// Reads it. None where the cursor is at an option or its value, at the command itself, behind
    /// `--`, or at what only the shell can expand.
    pub(super) fn read(line: &str, dialect: Dialect, mut cli: Command) -> Option<Self> {
        let words = Words::read(line, dialect);
        let word = words.last?;
        // The first is the program's own name.
        let mut words = words.finished.into_iter().skip(1);
        // Flags that every command takes are known to each only after this.
        cli.build();
        let mut command: Option<&Command> = None;
        let mut before = Vec::new();
        while let Some(passed) = words.next() {
            if passed == "--" {
                return None;
            }
            if passed.len() > 1 && passed.starts_with('-') {
                if takes_next(command.unwrap_or(&cli), &passed) {
                    // At the cursor is its value, unless that is finished too.
                    words.next()?;
                }
                continue;
            }
            match command {
                Some(_) => before.push(passed),
                None => command = Some(cli.find_subcommand(&passed)?),
            }
        }
        if word.starts_with('-') {
            return None;
        }
        Some(Self {
            command: command?.get_name().to_owned(),
            before,
            word,
        })
    }
}

/// Whether an option's value is the word behind it.
fn takes_next(command: &Command, option: &str) -> bool {
    let takes = |arg: &Arg| {
        let has_value = arg.get_num_args().is_some_and(|count| count.takes_values());
        has_value && !arg.is_require_equals_set()
    };
    if let Some(name) = option.strip_prefix("--") {
        let named = |arg: &&Arg| {
            arg.get_long() == Some(name)
                || arg
                    .get_all_aliases()
                    .is_some_and(|aliases| aliases.contains(&name))
        };
        return !name.contains('=') && command.get_arguments().find(named).is_some_and(takes);
    }
    // Several letters may be several flags; the first that takes a value has the rest as its own.
    let letters: Vec<char> = option.chars().skip(1).collect();
    for (index, letter) in letters.iter().enumerate() {
        let named = |arg: &&Arg| arg.get_short() == Some(*letter);
        if command.get_arguments().find(named).is_some_and(takes) {
            return index + 1 == letters.len();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Cli;

    fn read(line: &str) -> Option<(String, Vec<String>, String)> {
        Line::read(line, Dialect::Posix, Cli::command())
            .map(|line| (line.command, line.before, line.word))
    }

    #[test]
    fn options_and_their_values_are_no_words_for_servers() {
        for (line, command, before, word) in [
            ("toolway call f sm", "call", &["f"][..], "sm"),
            ("toolway call --bounded f sm", "call", &["f"], "sm"),
            ("toolway call --select .a f sm", "call", &["f"], "sm"),
            ("toolway call --select=.a f sm", "call", &["f"], "sm"),
            ("toolway -v --mcp-server x=y call f ", "call", &["f"], ""),
            ("toolway call --mcp-server x=y -vv f ", "call", &["f"], ""),
            ("toolway read -o out x://y ", "read", &["x://y"], ""),
            ("toolway read -fo out x://y ", "read", &["x://y"], ""),
            ("toolway read -oout x://y ", "read", &["x://y"], ""),
            ("toolway prompt --json f ", "prompt", &["f"], ""),
            ("toolway call f t --args - a", "call", &["f", "t"], "a"),
        ] {
            let before = before.iter().map(|&word| word.to_owned()).collect();
            let expected = (command.to_owned(), before, word.to_owned());
            assert_eq!(read(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn what_is_no_servers_business_is_not_read() {
        for line in [
            "",
            "toolway",
            "toolway ca",
            "toolway nonsense x",
            "toolway call --bou",
            "toolway call --select ",
            "toolway read -o ",
            "toolway tools -- npx ",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
