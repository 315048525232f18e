//! `toolway account` and the connectors it brings, against a provider on this machine.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::authority::{Authority, AuthoritySettings, holds_secret};
use toolway_testkit::browser::browse;
use toolway_testkit::{CommandOutput, TempHome, marked};

use crate::support::command;

/// A home whose settings name this provider, and a server of its own.
fn home_at(authority: &Authority) -> TempHome {
    let home = TempHome::new();
    let twin = json!({ "type": "http", "url": authority.connector("calendar"),
        "headers": { "Authorization": marked!("Bearer ") } });
    let settings = json!({
        "account": { "url": authority.issuer() },
        "mcpServers": { "my-calendar": twin },
    });
    home.write_settings(settings.to_string());
    home
}

fn account(home: &TempHome, words: &[&str]) -> Command {
    let mut command = command(home, words);
    command
        .env("TOOLWAY_VAULT", "file")
        .env("BROWSER", "/bin/false");
    command
}

fn run(home: &TempHome, words: &[&str]) -> CommandOutput {
    home.run(&mut account(home, words))
}

/// Logs in: the person opens the page that is printed, because no browser could be.
fn log_in(home: &TempHome) -> String {
    let mut child = account(home, &["account", "login"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    loop {
        let mut line = String::new();
        assert!(
            stderr.read_line(&mut line).unwrap() > 0,
            "no page was shown: {said}"
        );
        let page = line.trim();
        if page.starts_with("http://") && page.contains("response_type=code") {
            browse(page);
            break;
        }
        said.push_str(&line);
    }
    stderr.read_to_string(&mut said).unwrap();
    let mut stdout = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut stdout)
        .unwrap();
    let status = child.wait().unwrap();
    assert!(status.success(), "{said}");
    stdout + &said
}

fn listed(home: &TempHome) -> (Vec<Value>, String) {
    let output = run(home, &["list", "--json"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let mut listing: Value = serde_json::from_str(&output.stdout).unwrap();
    let Value::Array(servers) = listing["servers"].take() else {
        panic!("{}", output.stdout);
    };
    (servers, output.stderr)
}

fn row<'a>(rows: &'a [Value], name: &str) -> &'a Value {
    let found = rows.iter().find(|row| row["name"] == name);
    found.unwrap_or_else(|| panic!("no `{name}` in {rows:?}"))
}

#[test]
fn a_login_brings_connectors_and_a_logout_takes_them_away() {
    let authority = Authority::start(AuthoritySettings::account_provider());
    let home = home_at(&authority);
    let before = run(&home, &["account", "status"]);
    assert!(
        before.stdout.contains("nobody is logged in"),
        "{}",
        before.stdout
    );
    assert!(
        before.stderr.contains("toolway account login"),
        "{}",
        before.stderr
    );

    let mut all = log_in(&home);
    assert!(all.contains("logged in at 127.0.0.1"), "{all}");
    assert!(all.contains("connectors: notes, calendar"), "{all}");

    let status = run(&home, &["account", "status", "--json"]);
    let shown: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(shown["loggedIn"], true);
    assert_eq!(shown["issuer"], authority.issuer());
    assert_eq!(shown["renews"], true);
    assert_eq!(shown["storage"], "file-with-key");
    assert_eq!(shown["connectors"]["known"], 2);

    let (rows, said) = listed(&home);
    let notes = row(&rows, "notes");
    assert_eq!(notes["scope"], "connector");
    assert_eq!(notes["transport"], "connector");
    assert_eq!(notes["state"], "connected", "{rows:?} {said}");
    let calendar = row(&rows, "calendar");
    assert_eq!(calendar["state"], "disabled");
    let why = calendar["reason"].as_str().unwrap();
    assert!(why.contains("duplicate of `my-calendar`"), "{why}");

    let called = run(&home, &["call", "notes", "whoami"]);
    assert_eq!(called.code, Some(0), "{}", called.stderr);
    assert!(called.stdout.contains("subject="), "{}", called.stdout);

    for word in ["login", "logout"] {
        let output = run(&home, &[word, "notes"]);
        assert_eq!(output.code, Some(2), "{output}");
        let hint = format!("hint: run `toolway account {word}`\n");
        assert!(output.stderr.ends_with(&hint), "{output}");
    }

    let explained = run(&home, &["explain", "notes"]);
    assert!(
        explained.stdout.contains("connectors of 127.0.0.1"),
        "{}",
        explained.stdout
    );

    let out = run(&home, &["account", "logout"]);
    assert!(
        out.stdout.contains("logged out at 127.0.0.1"),
        "{}",
        out.stderr
    );
    assert_eq!(authority.valid_refresh_tokens(), [""; 0]);
    let (rows, after) = listed(&home);
    assert!(
        rows.iter().all(|row| row["scope"] != "connector"),
        "{rows:?}"
    );
    let again = run(&home, &["account", "logout"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);

    for output in [&before, &status, &called, &explained, &out, &again] {
        all.push_str(&output.stdout);
        all.push_str(&output.stderr);
    }
    assert!(!holds_secret(&(all + &said + &after)));
    home.assert_no_secrets();
    assert_eq!(authority.report().attacker_requests, 0);
}

#[test]
fn rel_14_processes_that_call_at_once_renew_the_token_once() {
    let authority = Authority::start(AuthoritySettings::account_provider());
    let home = home_at(&authority);
    log_in(&home);
    authority.expire_access_tokens();
    let begin = || {
        let mut command = account(&home, &["call", "notes", "whoami"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let children: Vec<_> = (0..3).map(|_| begin()).collect();
    for child in children {
        let output = marked::output_of(child);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
    let report = authority.report();
    assert_eq!(report.token_requests("refresh_token"), 1);
    assert_eq!(report.families_revoked, 0);
}

#[test]
fn a_provider_that_is_gone_leaves_the_connectors_with_a_word_about_their_age() {
    let authority = Authority::start(AuthoritySettings::account_provider());
    let home = home_at(&authority);
    log_in(&home);
    drop(authority);
    let (rows, said) = listed(&home);
    assert_eq!(row(&rows, "notes")["scope"], "connector");
    assert!(
        said.contains("the list of connectors is not fresh"),
        "{said}"
    );
    assert!(said.contains("they are shown as of 2"), "{said}");
}

#[test]
fn without_an_account_it_is_said_how_to_name_one() {
    let home = TempHome::new();
    let output = run(&home, &["account", "login"]);
    assert_eq!(output.code, Some(3));
    assert!(
        output.stderr.contains("no account is configured"),
        "{}",
        output.stderr
    );
    assert!(
        output.stderr.contains("\"account\": {\"url\""),
        "{}",
        output.stderr
    );
    // A mistake is shown with its place.
    home.write_settings("{\n  \"account\": {\n    \"url\": \"http://connect.example.com\"\n  }\n}");
    let output = run(&home, &["account", "status"]);
    assert_eq!(output.code, Some(3));
    assert!(
        output.stderr.contains("settings.json:3"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_connector_whose_login_ended_names_the_account_s_login() {
    let authority = Authority::start(AuthoritySettings::account_provider());
    let home = home_at(&authority);
    log_in(&home);
    authority.revoke_everything();
    assert_snapshot!(run(&home, &["tools", "notes"]), @"
    exit: 5
    ----- stdout
    ----- stderr
    error: server `notes` wants a login first
    hint: log in to your account with `toolway account login`
    ");
    assert_snapshot!(run(&home, &["list"]), @"
    exit: 0
    ----- stdout
    NAME         SCOPE      TYPE       STATE         TOOLS  DETAIL
    calendar     connector  connector  ⊘ disabled    -      shadowed duplicate of `my-calendar`: [HOME]/.config/toolway/settings.json:1 (user scope)
    my-calendar  user       http       ✘ failed      -      the server refuses the `Authorization` header of its entry ([HOME]/.config/toolway/settings.json:1)
    notes        connector  connector  ! needs-auth  -      wants a login first
    ----- stderr
    connectors: nobody is logged in at 127.0.0.1; run `toolway account login`
    hint: log in to your account with `toolway account login`
    hint: `my-calendar`: change it in its entry (`toolway get my-calendar` says where); without it, the server can be logged in to
    ");
}
