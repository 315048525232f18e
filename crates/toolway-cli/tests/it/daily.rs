//! What a person meets in a day's work: slow tools, servers that are down, typing errors.

use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use toolway_testkit::{Script, TempHome};

use crate::support::{command, home_with};

/// Runs `toolway` with stderr on a terminal; gives what the terminal got, escapes and all.
fn on_a_terminal(home: &TempHome, words: &[&str]) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = File::options()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let mut child = command(home, words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(theirs)
        .spawn()
        .unwrap();
    // The command kept a copy of the terminal until it was dropped: now only the child has one,
    // and reading ends with it.
    let mut shown = Vec::new();
    let ended = File::from(ours).read_to_end(&mut shown);
    assert!(
        ended
            .as_ref()
            .is_err_and(|error| error.raw_os_error() == Some(5))
            || ended.is_ok(),
        "{ended:?}"
    );
    child.wait().unwrap();
    String::from_utf8(shown).unwrap()
}

#[test]
fn a_call_that_takes_long_says_on_a_terminal_what_it_waits_for() {
    let home = home_with(Script::default());
    let shown = on_a_terminal(&home, &["call", "chaos", "hang", "--timeout", "2"]);
    // Between the words the cursor is moved; what a screen makes of it is `toolway-tui`'s test.
    for word in ["waiting", "`hang`", "`chaos`", "Ctrl-C cancels"] {
        assert!(shown.contains(word), "no {word} in {shown:?}");
    }
    assert!(
        shown.ends_with(
            "error:\u{1b}[0m `hang` of server `chaos` did not answer within 2s\r\n\
             \u{1b}[1;36mhint:\u{1b}[0m give it longer with `--timeout <seconds>`\r\n"
        ),
        "{shown:?}"
    );
}
