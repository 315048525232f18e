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

#[test]
fn help_groups_the_commands_by_what_people_want() {
    let home = TempHome::new();
    let short = toolway(&home, &["-h"]).expect_code(0).stdout;
    let commands = |help: &str| {
        let from = help.find("\nServers:").unwrap();
        help[from..help.find("\nOptions:").unwrap()].to_owned()
    };
    let long = toolway(&home, &["--help"]).expect_code(0).stdout;
    assert_eq!(commands(&short), commands(&long));
    assert_eq!(commands(&toolway(&home, &["help"]).stdout), commands(&long));
    assert_eq!(commands(&toolway(&home, &[]).stderr), commands(&long));
    assert_snapshot!(short, @"
    Every MCP server you use, in one program

    Usage: toolway [OPTIONS] <COMMAND>

    Servers:
      add              Add a server
      add-json         Add a server from its JSON entry
      import           Import servers from other clients
      list             List the configured servers and connect to them [alias: ls]
      get              Show one server's configuration [alias: show]
      remove           Remove a server [alias: rm]
      enable           Switch servers on, in this project or everywhere
      disable          Switch servers off, in this project or everywhere
      reconnect        Connect to servers anew, and forget what is remembered

    Calling:
      tools            List the tools of all servers or of one, or show one tool
      call             Call a tool
      resources        List the resources of all servers, or of one
      read             Read a resource
      prompts          List the prompts of all servers, or of one
      prompt           Render a prompt
      skills           List the skills of all servers, or of one
      skill            Show a skill's instructions
      generate         Write typed modules of servers' tools, for programs

    Permissions:
      permissions      Show permission rules, change them, or try them on a tool
      approve          Approve a server that came with the repository
      reject           Reject a server that came with the repository
      reset-approvals  Forget all approvals and rejections of this project
      policy           Show which variables the organisation sets, and confirm them

    Logins:
      login            Log in to a server
      logout           Log out of a server
      auth             See who is logged in where
      account          Log in to the provider of your connectors, or log out
      idp              Log in at your organisation's identity provider, or log out
      vault            Show, set, remove and export secrets and logins

    Looking:
      explain          Explain where a server comes from and what became of it
      doctor           Check the configuration and say how to mend it
      logs             Show what a server logged and what was said to it
      audit            Show which tools were called, and who allowed it
      state            Print everything that is known as one JSON document
      record           Keep what is said to servers and by them, to replay it later
      replay           Be a server on stdio that answers from a recording

    Serving:
      serve            Serve every configured server as one MCP server
      run              Run a program with the servers and tools of one agent
      endpoint         Talk MCP over stdio with the endpoint of `toolway run`
      control          Serve one program, which uses Toolway as a library
      status           Show the gateways that run, their clients and calls
      approvals        Answer the questions that wait for you in gateways
      tokens           Make, list and revoke the tokens of clients of `serve`
      daemon           Keep servers running between commands

    Setting up:
      connect          Connect a client to Toolway
      demo             See it work on three embedded servers
      completions      Print a shell's completion script
      man              Print a manual page
      help             Show the help of a command

    Options:
          --mcp-config <FILE|JSON>         Servers for this run only: a file, or JSON itself. Repeatable
          --mcp-server <NAME=COMMAND|URL>  One server for this run only. Repeatable
          --strict-mcp-config              Use only what `--mcp-config` and `--mcp-server` say
          --approve-project-servers        Let this run use the repository's servers although nobody
                                           approved them
          --ide                            Also connect to the editor that has this directory open, as
                                           the server `ide`
      -v, --verbose...                     Say more on stderr; twice for still more
          --no-daemon                      Start what is needed in this process, whether or not a daemon
                                           runs
      -h, --help                           Print help (see more with '--help')
      -V, --version                        Print version

    Exit codes:
      0  success
      1  unexpected error
      2  usage: the command line makes no sense
      3  configuration: a file is wrong, or no such server is configured
      4  connection: the server cannot be reached
      5  login: the server wants one first
      6  refused by policy, permission or a missing approval
      7  the tool answered an error
      8  timed out or cancelled
      130  ended by Ctrl-C (129 and 143: by SIGHUP and SIGTERM)
    ");
    let page = toolway(&home, &["man"]).expect_code(0).stdout;
    let heads: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with(".SS"))
        .collect();
    assert_snapshot!(heads.join("\n"), @r#"
    .SS "Servers"
    .SS "Calling"
    .SS "Permissions"
    .SS "Logins"
    .SS "Looking"
    .SS "Serving"
    .SS "Setting up"
    "#);
}
