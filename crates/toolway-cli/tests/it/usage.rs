//! A command line that makes no sense: one message, one hint, exit code 2.

use std::os::unix::ffi::OsStrExt as _;

use insta::assert_snapshot;
use toolway_testkit::TempHome;
use toolway_testkit::marked;

use crate::support::{command, toolway};

#[test]
fn a_slip_in_the_scheme_is_not_taken_for_a_command() {
    let home = TempHome::new();
    assert_snapshot!(toolway(&home, &["add", "docs", marked!("htps://u:", "@mcp.example.com/mcp")]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `htps:/…` is not an address that Toolway can reach
    hint: did you mean `https://mcp.example.com…`?
    ");
    for words in [
        &["call", "https:/mcp.example.com/mcp", "x"][..],
        &["tools", "file:///tmp/x"],
    ] {
        toolway(&home, words).expect_code(2);
    }
    // A drive is no scheme.
    toolway(&home, &["add", "there", "C:/server.exe", "--force"]).expect_code(0);
}

#[test]
fn a_wrong_command_line_gets_one_message_and_one_hint() {
    let home = TempHome::new();
    assert_snapshot!(toolway(&home, &["lits"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: unrecognized subcommand 'lits'

    Usage: toolway [OPTIONS] <COMMAND>
    hint: did you mean `toolway list`?
    ");
    assert_snapshot!(toolway(&home, &["add", "--bogus", "x", "npx"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: unexpected argument '--bogus' found

    Usage: toolway add [OPTIONS] <NAME> <COMMAND|URL>...
    hint: flags of a server's own command go behind `--`: `toolway add <name> -- <command> <flags>`
    ");
    assert_snapshot!(toolway(&home, &["call", "x", "y", "--message", "hi"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: unexpected argument '--message' found

    Usage: toolway call <SERVER> [TOOL] [KEY=VALUE]... [-- <COMMAND>...]
    hint: a tool's arguments are written `key=value`: `toolway call <server> <tool> key=value`
    ");
    assert_snapshot!(toolway(&home, &["list", "--jsno"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: unexpected argument '--jsno' found

    Usage: toolway list --json
    hint: did you mean `--json`?
    ");
    assert_snapshot!(toolway(&home, &["add", "x", "y", "-s", "usr"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: invalid value 'usr' for '--scope <SCOPE>'
      [possible values: local, user, project]
    hint: did you mean `user`?
    ");
    assert_snapshot!(toolway(&home, &["approve"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: the following required arguments were not provided:
      <NAME>

    Usage: toolway approve <NAME>
    hint: see `toolway approve --help`
    ");
    let bare = toolway(&home, &[]).expect_code(2);
    assert!(!bare.stderr.contains("hint:"), "{bare}");
    assert_eq!(
        toolway(&home, &["help", "add"]).expect_code(0).stdout,
        toolway(&home, &["add", "--help"]).expect_code(0).stdout
    );
}

#[test]
fn a_word_that_is_no_text_gets_one_message_and_no_panic() {
    let home = TempHome::new();
    let mut list = command(&home, &["list"]);
    list.arg(std::ffi::OsStr::from_bytes(b"\xff"));
    assert_snapshot!(home.run(&mut list), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: unexpected argument '\u{fffd}' found

    Usage: toolway list [OPTIONS]
    hint: see `toolway list --help`
    ");
}

#[test]
fn a_word_that_is_no_text_is_named_and_never_a_panic() {
    let home = TempHome::new();
    let run = |words: &[&[u8]]| {
        let mut command = command(&home, &[]);
        command.args(words.iter().map(|word| std::ffi::OsStr::from_bytes(word)));
        home.run(&mut command)
    };
    assert_snapshot!(run(&[b"get", b"a\xff"]), @r"
    exit: 2
    ----- stdout
    ----- stderr
    error: the argument 'a\xff' is not valid UTF-8

    Usage: toolway get [OPTIONS] <NAME>
    hint: see `toolway get --help`
    ");
    for words in [
        &[&b"\xff"[..]][..],
        &[b"add", b"x", b"\xff"],
        &[b"add", b"x", b"npx", b"-\xff"],
        &[b"add", b"x", b"y", b"--scope=\xff"],
        &[b"call", b"x", b"y", b"a=\xff"],
        &[b"--mcp-config", b"\xff", b"get", b"x"],
        &[b"vault", b"\xff"],
        &[b"--\xff"],
    ] {
        run(words).expect_code(2);
    }
}
