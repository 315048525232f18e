//! The command of `toolway add` without `--` before it.
//!
//! Owns putting the dashes in where nothing else can be meant: `toolway add name npx -y pkg` has a
//! flag that Toolway does not know behind a command. With one that it does know beside it, that is
//! ambiguous and refused with both spellings. Everything else is left to the parser.

use std::ffi::OsString;

use clap::{Arg, Args as _, CommandFactory as _};
use toolway_types::name::shell_word;
use toolway_types::nearest;

use super::Cli;
use crate::commands::add::AddArgs;
use crate::report::Report;
use crate::typed::{is_url, shown_line};

/// The words of the program with `--` before the command of `add`, where that can be meant alone.
pub(crate) fn with_dashes(words: Vec<OsString>) -> Result<Vec<OsString>, Report> {
    let read: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
    let place = match read {
        Some(read) if read.contains(&"add") => place_of_dashes(&read)?,
        // The parser says what is wrong with a word that is no text.
        _ => None,
    };
    let mut words = words;
    if let Some(place) = place {
        words.insert(place, "--".into());
    }
    Ok(words)
}

/// A word, as the parser would take it.
enum TypedWord {
    /// Neither a flag nor the value of one.
    Plain,
    /// A flag of Toolway, perhaps with its value in the next word.
    Own { takes_next: bool },
    /// A flag that Toolway does not have.
    Foreign,
}

fn place_of_dashes(words: &[&str]) -> Result<Option<usize>, Report> {
    let cli = Cli::command();
    let add = AddArgs::augment_args(clap::Command::new("add"));
    let known: Vec<&Arg> = add.get_arguments().chain(cli.get_arguments()).collect();
    // The program, `add`, the name and the command.
    let mut plain = Vec::new();
    let mut at = 0;
    while plain.len() < 4 {
        let Some(word) = words.get(at) else {
            return Ok(None);
        };
        match read(word, &known) {
            TypedWord::Plain => plain.push(at),
            TypedWord::Own { takes_next } => at += usize::from(takes_next),
            TypedWord::Foreign => return Ok(None),
        }
        at += 1;
    }
    let place = plain[3];
    if words[plain[1]] != "add" || is_url(words[place]) || words.contains(&"--") {
        return Ok(None);
    }
    // Behind the command: what is Toolway's, with its values, and what cannot be.
    let mut own: Vec<&str> = Vec::new();
    let mut rest: Vec<&str> = Vec::new();
    let mut has_foreign = false;
    while let Some(word) = words.get(at) {
        match read(word, &known) {
            TypedWord::Plain => rest.push(word),
            TypedWord::Own { takes_next } => {
                own.push(word);
                if takes_next && let Some(value) = words.get(at + 1) {
                    own.push(value);
                    at += 1;
                }
            }
            TypedWord::Foreign if is_slip(word, &known) => return Ok(None),
            TypedWord::Foreign => {
                has_foreign = true;
                rest.push(word);
            }
        }
        at += 1;
    }
    match own.first() {
        _ if !has_foreign => Ok(None),
        None => Ok(Some(place)),
        Some(flag) => {
            let (before, behind) = (&words[1..place], &words[place..]);
            let theirs = [before, &["--"], behind].concat();
            let ours = [before, &own, &["--", words[place]], &rest].concat();
            let flag = flag.split('=').next().unwrap_or(flag);
            let message = format!(
                "it is not clear whether `{flag}` is meant for Toolway or for `{}`",
                shell_word(words[place])
            );
            Err(Report::usage(message).hint(format!(
                "for Toolway: `toolway {}`; for the command: `toolway {}`",
                shown_line(&ours),
                shown_line(&theirs)
            )))
        }
    }
}

fn read(word: &str, known: &[&Arg]) -> TypedWord {
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let found = known.iter().find(|arg| arg.get_long() == Some(name));
        return match found {
            Some(arg) => TypedWord::Own {
                takes_next: value.is_none() && arg.get_action().takes_values(),
            },
            None if matches!(name, "" | "help" | "version") => TypedWord::Own { takes_next: false },
            None => TypedWord::Foreign,
        };
    }
    let Some(shorts) = word.strip_prefix('-').filter(|shorts| !shorts.is_empty()) else {
        return TypedWord::Plain;
    };
    for (at, short) in shorts.char_indices() {
        match known.iter().find(|arg| arg.get_short() == Some(short)) {
            Some(arg) if arg.get_action().takes_values() => {
                return TypedWord::Own {
                    takes_next: at + short.len_utf8() == shorts.len(),
                };
            }
            Some(_) => {}
            None if matches!(short, 'h' | 'V') => {}
            None => return TypedWord::Foreign,
        }
    }
    TypedWord::Own { takes_next: false }
}

/// Whether a flag is nearly one of Toolway's: then the parser says which.
fn is_slip(word: &str, known: &[&Arg]) -> bool {
    let Some(long) = word.strip_prefix("--") else {
        return false;
    };
    let name = long.split('=').next().unwrap_or(long);
    let longs = known.iter().filter_map(|arg| arg.get_long());
    name.len() > 3 && nearest(name, longs).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dashed(line: &str) -> Result<String, String> {
        let words = line.split(' ').map(OsString::from).collect();
        match with_dashes(words) {
            Ok(words) => Ok(words.join(" ".as_ref()).into_string().unwrap()),
            Err(report) => Err(report.render()),
        }
    }

    #[test]
    fn a_command_takes_flags_that_toolway_does_not_have() {
        for (typed, meant) in [
            ("toolway add a npx -y pkg", "toolway add a -- npx -y pkg"),
            (
                "toolway -v add a -s user npx --yes pkg",
                "toolway -v add a -s user -- npx --yes pkg",
            ),
            (
                "toolway add -e A=b a uvx x --port=1 -",
                "toolway add -e A=b a -- uvx x --port=1 -",
            ),
        ] {
            assert_eq!(dashed(typed).as_deref(), Ok(meant));
        }
    }

    #[test]
    fn what_is_clear_already_or_wrong_is_left_alone() {
        for typed in [
            "toolway add a npx pkg -s user",
            "toolway add a -- npx -y pkg",
            "toolway add a https://x.example/mcp --account work --bogus",
            "toolway add --bogus a npx",
            "toolway add a npx pkg --scpoe user",
            "toolway call add a npx -y",
            "toolway list",
            "toolway add",
        ] {
            assert_eq!(dashed(typed).as_deref(), Ok(typed));
        }
    }

    #[test]
    fn a_flag_that_either_could_take_is_asked_about() {
        let said = dashed("toolway add gh docker run -i -e A=b image").unwrap_err();
        assert_eq!(
            said,
            "error: it is not clear whether `-e` is meant for Toolway or for `docker`\n\
             hint: for Toolway: `toolway add gh -e A=b -- docker run -i image`; \
             for the command: `toolway add gh -- docker run -i -e A=b image`\n"
        );
    }
}
