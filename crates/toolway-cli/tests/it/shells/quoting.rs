//! Candidates in real shells: each is one word wherever it is put, and nothing is run by it.
//!
//! A line is typed, completed and run; what `toolway` was run with is compared with the value.

use std::collections::BTreeSet;

use serde_json::json;
use toolway_testkit::TempHome;

use super::session::{Session, Shell};
use crate::support::{command, servers};

/// What can be spelled, by how it begins.
const SPELLED: [&str; 6] = [
    "aa rio de janeiro",
    "ab 50% at 5:00,x",
    "ac touch canary",
    "ad~x/../y@z+1",
    "ae é中 x",
    "ag=b:c",
];

/// What no spelling makes safe everywhere.
const NEVER: [&str; 16] = [
    "ca;touch canary;",
    "cb\";touch canary;\"",
    "cc';touch canary;'",
    "cd & touch canary",
    "ce|touch canary",
    "cf>canary",
    "cg<(touch canary)",
    "ch*?[x]{a,b}#^",
    "ci x --accept-change",
    "ba$(touch canary)",
    "bb`touch canary`",
    "bc${IFS}x",
    "bd\\;touch canary;\\",
    "be!x",
    "bf\ntouch canary\n",
    "bg\u{1b}[31m;touch canary",
];

/// How a word can stand at the cursor: what comes before it, what stands before its value, and
/// what ends it when it is not completed.
const STATES: [(&str, &str, &str, &str); 5] = [
    ("", "", "", ""),
    ("", "\"", "", "\""),
    ("", "'", "", "'"),
    ("\"", "", "", "\""),
    ("", "", "\\", "_"),
];

fn hostile_home() -> TempHome {
    home_of(&[&SPELLED[..], &NEVER[..]].concat())
}

fn home_of(values: &[&str]) -> TempHome {
    let home = TempHome::new();
    let file = home.write(home.home().join("values.json"), json!(values).to_string());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/values_server.py");
    let entry = json!({ "command": "python3", "args": ["-S", "-u", script, file] });
    let off = json!({ "command": "true", "disabled": true });
    let mut entries = vec![("values", entry)];
    entries.extend(values.iter().map(|name| (*name, off.clone())));
    home.write_settings(servers(&entries));
    home
}

fn assert_untouched(home: &TempHome, line: &str) {
    assert!(!home.project().join("canary").exists(), "{line}");
}

fn whole_words_in(shell: Shell) {
    if !shell.is_there() {
        return;
    }
    let home = hostile_home();
    let mut session = Session::start(&home, shell);
    for (before, open, behind, close) in STATES {
        for value in SPELLED {
            let line = format!(
                "toolway call values t {before}a={open}{}{behind}\t",
                &value[..2]
            );
            let given = session.run(&line);
            assert_untouched(&home, &line);
            assert_eq!(
                given,
                ["call", "values", "t", &format!("a={value}")],
                "{line}"
            );
        }
        for value in NEVER {
            let start = &value[..2];
            let line = format!("toolway call values t {before}a={open}{start}{behind}\t{close}");
            let given = session.run(&line);
            assert_untouched(&home, &line);
            let end = if behind.is_empty() { "" } else { close };
            assert_eq!(
                given,
                ["call", "values", "t", &format!("a={start}{end}")],
                "{line}"
            );
        }
    }
    // Behind the argument's name, neither a flag nor a home directory.
    for (start, value) in [("dash=", "dash=-x"), ("tilde=", "tilde=~root")] {
        for open in ["", "\"", "'"] {
            let given = session.run(&format!("toolway call values t {start}{open}\t"));
            assert_eq!(given, ["call", "values", "t", value], "{open}");
        }
    }
    session.end();
}

/// Names of files are a repository's, and every option that takes a value completes them.
#[test]
fn sec_49_bash_quotes_the_names_of_files() {
    if !Shell::Bash.is_there() {
        return;
    }
    let home = home_of(&[]);
    let name = "cfg$(touch${IFS}canary);x.json";
    home.write(name, "{}");
    let mut session = Session::start(&home, Shell::Bash);
    for option in ["list --mcp-config", "list --mcp-server", "login x --issuer"] {
        let line = format!("toolway {option} cfg\t");
        let given = session.run(&line);
        assert_untouched(&home, &line);
        assert_eq!(given.last().map(String::as_str), Some(name), "{line}");
    }
    session.end();
}

/// A blank would make a second word of it where a line is read twice, and a second word of `read`
/// is a server.
#[test]
fn sec_49_no_address_with_a_blank_is_offered() {
    let home = home_of(&["docs://a http://127.0.0.1:9/mcp", "docs://b"]);
    let line = "toolway read docs://";
    let given = crate::support::toolway(&home, &["__complete", "bash", line, "//"]);
    assert_eq!(given.stdout, "//b\n");
}

#[test]
fn sec_49_bash_runs_nothing_that_a_candidate_says_and_gets_it_whole() {
    whole_words_in(Shell::Bash);
}

#[test]
fn sec_49_zsh_runs_nothing_that_a_candidate_says_and_gets_it_whole() {
    whole_words_in(Shell::Zsh);
}

#[test]
fn sec_49_fish_runs_nothing_that_a_candidate_says_and_gets_it_whole() {
    whole_words_in(Shell::Fish);
}

/// The names of tools, prompts, resources and servers, and what servers complete.
fn names_in(shell: Shell) {
    if !shell.is_there() {
        return;
    }
    let home = hostile_home();
    let mut session = Session::start(&home, shell);
    for words in [
        "call values",
        "prompt values",
        "prompt values p",
        "read",
        "explain",
    ] {
        let key = if words.ends_with('p') { "a=" } else { "" };
        for (open, close) in [("", ""), ("\"", "\""), ("'", "'")] {
            // Addresses have no blanks.
            let spelled = match words {
                "read" => [SPELLED[5], SPELLED[3]],
                _ => [SPELLED[0], SPELLED[3]],
            };
            for value in spelled {
                let line = format!("toolway {words} {key}{open}{}\t", &value[..2]);
                let given = session.run(&line);
                assert_untouched(&home, &line);
                assert_eq!(given.last(), Some(&format!("{key}{value}")), "{line}");
            }
            for value in [NEVER[0], NEVER[9]] {
                let line = format!("toolway {words} {key}{open}{}\t{close}", &value[..2]);
                let given = session.run(&line);
                assert_untouched(&home, &line);
                assert_eq!(
                    given.last(),
                    Some(&format!("{key}{}", &value[..2])),
                    "{line}"
                );
            }
        }
    }
    session.end();
}

#[test]
fn sec_49_names_of_servers_tools_prompts_and_resources_are_words_in_bash() {
    names_in(Shell::Bash);
}

#[test]
fn sec_49_names_of_servers_tools_prompts_and_resources_are_words_in_zsh() {
    names_in(Shell::Zsh);
}

#[test]
fn sec_49_names_of_servers_tools_prompts_and_resources_are_words_in_fish() {
    names_in(Shell::Fish);
}

/// A person who goes through everything that begins alike, one after the other.
fn menu_in(shell: Shell) {
    if !shell.is_there() {
        return;
    }
    let home = hostile_home();
    let mut session = Session::start(&home, shell);
    for (open, close) in [("", ""), ("\"", "\""), ("'", "'")] {
        let mut reached = BTreeSet::new();
        for number in 1..=SPELLED.len() {
            // Bash lists at a tab and goes round at another key; the others list first, and then
            // go round at a tab.
            let (key, times) = match shell {
                Shell::Bash => ("\u{f}", number),
                Shell::Zsh | Shell::Fish => ("\t", number + 1),
            };
            let mut line = format!("toolway call values t a={open}a{}", key.repeat(times));
            if shell == Shell::Fish {
                // Takes the candidate; the next one runs the line.
                line.push('\r');
            }
            let given = session.run(&line);
            assert_untouched(&home, &line);
            let value = given.last().unwrap().strip_prefix("a=").unwrap();
            // Zsh needs one more where it first takes the quote away.
            assert!(value == "a" || SPELLED.contains(&value), "{given:?}");
            reached.insert(value.to_owned());
        }
        assert!(reached.len() >= SPELLED.len() - 1, "{reached:?}");
        let line = format!("toolway call values t a={open}b\t\t{close}");
        assert_eq!(session.run(&line).last().unwrap(), "a=b", "{line}");
        assert_untouched(&home, &line);
    }
    session.end();
}

#[test]
fn sec_49_going_through_candidates_runs_none_of_them_in_bash() {
    menu_in(Shell::Bash);
}

#[test]
fn sec_49_going_through_candidates_runs_none_of_them_in_zsh() {
    menu_in(Shell::Zsh);
}

#[test]
fn sec_49_going_through_candidates_runs_none_of_them_in_fish() {
    menu_in(Shell::Fish);
}

/// Commands that unquote what follows them once more.
fn unquoted_again_in(shell: Shell) {
    if !shell.is_there() {
        return;
    }
    let home = hostile_home();
    let mut session = Session::start(&home, shell);
    for value in [&SPELLED[..], &NEVER[..]].concat() {
        let start = &value[..2];
        // `watch` would not come back: what stands on its line is what `eval` runs.
        let shown = session.shown(&format!("watch toolway call values t a={start}\t"));
        if NEVER.contains(&value) {
            assert!(shown.trim_end().ends_with(start), "{shown}");
        }
        session.forget_line();
        let line = format!("eval toolway call values t a={start}\t");
        let given = session.run(&line);
        assert_untouched(&home, &line);
        // A value with blanks is several words there, and no more than that.
        assert_eq!(given[..3], ["call", "values", "t"], "{line}");
        let is_word = |word: &String| !word.starts_with('-');
        assert!(given[3..].iter().all(is_word), "{given:?}");
    }
    session.end();
}

#[test]
fn sec_49_a_candidate_that_is_unquoted_once_more_runs_nothing_in_bash() {
    unquoted_again_in(Shell::Bash);
}

#[test]
fn sec_49_a_candidate_that_is_unquoted_once_more_runs_nothing_in_zsh() {
    unquoted_again_in(Shell::Zsh);
}

#[test]
fn sec_49_a_candidate_that_is_unquoted_once_more_runs_nothing_in_fish() {
    unquoted_again_in(Shell::Fish);
}

#[test]
fn sec_49_a_tab_runs_no_program_of_a_repository() {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        if !shell.is_there() {
            continue;
        }
        let home = hostile_home();
        let theirs = home.write("toolway", "#!/bin/sh\ntouch canary\n");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(theirs, mode).unwrap();
        let mut session = Session::start(&home, shell);
        let shown = session.shown("./toolway call values t a=ag\t");
        assert_untouched(&home, &shown);
        assert_eq!(
            shown.trim_end(),
            "./toolway call values t a=ag=b:c",
            "{shell:?}"
        );
        session.end();
    }
}

#[test]
fn sec_49_other_letters_are_offered_only_where_the_locale_is_known_to_have_them() {
    let home = hostile_home();
    for (locale, offered) in [
        ("C.UTF-8", "a=ae é中 x\n"),
        ("en_US.utf8", "a=ae é中 x\n"),
        ("zh_CN.GBK", ""),
        ("ja_JP", ""),
        ("C", ""),
    ] {
        let line = "toolway call values t a=ae";
        let mut command = command(&home, &["__complete", "zsh", line]);
        let output = home.run(command.env("LC_ALL", locale)).expect_code(0);
        assert_eq!(output.stdout, offered, "{locale}");
    }
}

#[test]
fn sec_49_all_candidates_at_once_lose_their_quote_in_bash_and_run_nothing() {
    if !Shell::Bash.is_there() {
        return;
    }
    let home = home_of(&["aa touch canary", "ab touch canary x"]);
    let mut session = Session::start(&home, Shell::Bash);
    for open in ["", "\"", "'"] {
        let line = format!("toolway call values t a={open}a\u{1b}*");
        let given = session.run(&line);
        assert!(given.concat().contains("canary"), "{given:?}");
        assert_untouched(&home, &line);
    }
    session.end();
}
