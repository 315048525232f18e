//! Ctrl-C where a person is waited for: it says what was given up, and leaves the terminal as it
//! was.

use std::io::Read as _;
use std::process::Stdio;

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, tcgetattr};
use serde_json::json;
use toolway_testkit::authority::{Authority, AuthoritySettings, KnownClient};
use toolway_testkit::{TempHome, shell_code};

use crate::support::{servers, shown_on, terminal};
use crate::visiting::{Speaking, opened, with_browser};

#[test]
fn rel_32_a_login_is_given_up_and_nothing_else_is_said() {
    let authority = Authority::start(AuthoritySettings::default());
    let home = TempHome::new();
    home.write_settings(servers(&[("shop", authority.entry())]));
    let mut login = Speaking::start(with_browser(&home, &["login", "shop"]));
    opened(&home);
    login.wait_for("waiting for the browser");
    login.signal(Signal::INT);
    assert_snapshot!(login.end(), @"
    exit: 130
    ----- stdout
    ----- stderr
    opening a login page of 127.0.0.1 in your browser
    waiting for the browser to come back, for 5 minutes at most; if the page shows an error, press Ctrl-C and log in again
    error: the login to `shop` was given up
    ");
    assert_eq!(authority.report().token_requests("authorization_code"), 0);
}

#[test]
fn rel_32_logins_at_providers_are_given_up_the_same_way() {
    let idp = Authority::start(AuthoritySettings {
        clients: vec![KnownClient {
            id: "toolway".to_owned(),
            ..KnownClient::default()
        }],
        ..AuthoritySettings::identity_provider()
    });
    let account = Authority::start(AuthoritySettings::account_provider());
    let home = TempHome::new();
    let settings = json!({
        "identityProvider": { "issuer": idp.issuer(), "clientId": "toolway" },
        "account": { "url": account.issuer() },
    });
    home.write_settings(settings.to_string());
    for (which, place) in [("idp", idp.issuer()), ("account", "127.0.0.1")] {
        let _ = std::fs::remove_file(home.home().join("page"));
        let login = Speaking::start(with_browser(&home, &[which, "login"]));
        opened(&home);
        login.signal(Signal::INT);
        let output = login.end().expect_code(130);
        let last = output.stderr.lines().last();
        let expected = format!("error: the login at {place} was given up");
        assert_eq!(last, Some(expected.as_str()), "{output}");
    }
}

#[test]
fn a_secret_that_is_being_typed_is_given_up_and_the_terminal_shows_again_what_is_typed() {
    let home = TempHome::new();
    let (ours, theirs) = terminal();
    let shows = || {
        tcgetattr(&theirs)
            .unwrap()
            .local_modes
            .contains(LocalModes::ECHO)
    };
    assert!(shows());
    let mut command = with_browser(&home, &["vault", "set", "token"]);
    command
        .env("NO_COLOR", "1")
        .stdin(theirs.try_clone().unwrap())
        .stderr(theirs.try_clone().unwrap())
        .stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    // Only the child may hold the terminal in the end: reading ends with it then.
    drop(command);
    let mut asked = String::new();
    while !asked.ends_with(": ") {
        let mut byte = [0];
        (&ours).read_exact(&mut byte).unwrap();
        asked.push(char::from(byte[0]));
    }
    assert!(!shows());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(shell_code(child.wait().unwrap()), Some(130));
    assert!(shows());
    drop(theirs);
    assert_eq!(asked, "Secret `token`: ");
    assert_eq!(shown_on(ours), "\r\nerror: saving `token` was given up\r\n");
}
