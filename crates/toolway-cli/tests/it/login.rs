//! `login`, `logout`, `auth status`: the whole way against an authorization server, and what
//! nobody ever sees of it.

use std::fs;
use std::process::Command;

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::json;
use toolway_testkit::authority::{
    Authority, AuthoritySettings, KnownClient, RequestedParty, Switch, TestKey,
    assert_no_secret_below, holds_secret,
};
use toolway_testkit::browser::{browse, fetch};
use toolway_testkit::marked;
use toolway_testkit::{CommandOutput, TempHome, eventually_blocking};

use crate::support::{servers, toolway};
use crate::visiting::{Speaking, visit, with_browser};

pub(crate) struct Scene {
    pub(crate) home: TempHome,
    pub(crate) authority: Authority,
}

impl Scene {
    pub(crate) fn new(settings: AuthoritySettings) -> Self {
        let home = TempHome::new();
        let authority = Authority::start(settings);
        home.write_settings(servers(&[("shop", authority.entry())]));
        Self { home, authority }
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        with_browser(&self.home, words)
    }

    pub(crate) fn run(&self, words: &[&str]) -> CommandOutput {
        self.home.run(&mut self.command(words))
    }

    /// Runs a command that opens a page, and does what a person would.
    pub(crate) fn log_in(&self, words: &[&str]) -> CommandOutput {
        visit(&self.home, &mut self.command(words), browse).0
    }

    pub(crate) fn shown(&self, output: &CommandOutput) -> String {
        let text = output.to_string();
        assert!(!holds_secret(&text), "{text}");
        let text = text.replace(self.authority.issuer(), "[ISSUER]");
        text.replace(self.authority.resource(), "[RESOURCE]")
    }

    /// No secret in any file, those of the vault included: they are sealed.
    pub(crate) fn assert_nothing_leaked(&self) {
        assert_no_secret_below(self.home.home());
    }
}

/// The secret of the client `bot`.
pub(crate) const BOT_SECRET: &str = marked!("s-");

/// The login of a program as that client.
pub(crate) const AS_BOT: [&str; 5] = [
    "login",
    "shop",
    "--client-credentials",
    "--client-id",
    "bot",
];

/// Where the client `bot` is known.
pub(crate) fn with_bot(client: KnownClient) -> AuthoritySettings {
    AuthoritySettings {
        clients: vec![KnownClient {
            id: "bot".to_owned(),
            secret: Some(BOT_SECRET.to_owned()),
            ..client
        }],
        ..AuthoritySettings::default()
    }
}

#[test]
fn sec_47_a_login_from_its_beginning_to_its_end_shows_no_secret() {
    let scene = Scene::new(AuthoritySettings::default());
    assert_snapshot!(scene.shown(&scene.run(&["tools", "shop"])), @"
    exit: 5
    ----- stdout
    ----- stderr
    error: server `shop` wants a login first
    hint: log in with `toolway login shop`
    ");
    let output = scene.log_in(&["login", "shop", "-v"]).expect_code(0);
    assert!(!holds_secret(&output.to_string()), "{output}");
    assert_eq!(
        output.stdout,
        "logged in to `shop` as `default`, renews itself\n"
    );
    assert!(
        output.stderr.contains("opening a login page of 127.0.0.1"),
        "{output}"
    );
    let listed = scene.shown(&scene.run(&["list"]).expect_code(0));
    assert!(listed.contains("✔ connected"), "{listed}");
    assert!(listed.contains("login `default` renews itself"), "{listed}");
    let json = scene.run(&["list", "--json"]).json();
    let login = &json["servers"][0]["logins"][0];
    assert_eq!(login["account"], "default");
    assert_eq!(login["renews"], true);
    assert_eq!(login["keptIn"], "file-with-key");
    assert!(
        login["expiresAt"].as_str().unwrap().ends_with('Z'),
        "{login}"
    );
    let status = scene.shown(&scene.run(&["auth", "status"]));
    assert!(status.contains("shop    default  [ISSUER]"), "{status}");
    assert!(status.contains("renews itself  file-with-key"), "{status}");
    for words in [
        &["call", "shop", "echo", "text=hi"][..],
        &["logs", "shop"],
        &["logs", "shop", "--protocol", "--json"],
        &["audit", "--json"],
        &["get", "shop"],
        &["doctor", "--json"],
        &["auth", "status", "--json"],
    ] {
        scene.shown(&scene.run(words));
    }
    scene.assert_nothing_leaked();
    assert!(!scene.authority.valid_refresh_tokens().is_empty());
    assert_snapshot!(scene.shown(&scene.run(&["logout", "shop"])), @"
    exit: 0
    ----- stdout
    logged out of `shop` as `default`
    ----- stderr
    ");
    assert_eq!(scene.authority.valid_refresh_tokens(), [""; 0]);
    scene.run(&["tools", "shop"]).expect_code(5);
    assert_snapshot!(scene.shown(&scene.run(&["logout", "shop"])), @"
    exit: 0
    ----- stdout
    ----- stderr
    nobody is logged in to `shop`
    hint: see who is logged in where with `toolway auth status`
    ");
    assert_eq!(scene.authority.report().attacker_requests, 0);
}

#[test]
fn the_address_where_the_browser_ended_can_be_pasted() {
    let scene = Scene::new(AuthoritySettings::default());
    let mut login = Speaking::start(scene.command(&["login", "--no-browser"]));
    let page = login.wait_for("  http");
    let ended = fetch(page.trim()).unwrap().location.expect("sent back");
    // What comes of each line is said before the next one is typed.
    for (line, said) in [
        ("", "nothing was pasted"),
        ("hello", "not the whole address"),
        (
            "http://127.0.0.1:1/?code=x&state=y",
            "does not belong to this login",
        ),
    ] {
        login.type_line(line);
        let answer = login.wait_for("that cannot be used");
        assert!(answer.contains(said), "{answer}");
    }
    login.type_line(&ended);
    let output = login.end().expect_code(0);
    assert_eq!(
        output.stdout,
        "logged in to `shop` as `default`, renews itself\n"
    );
    assert!(!holds_secret(&output.to_string()), "{output}");
}

#[test]
fn a_program_logs_in_as_itself_with_a_secret_that_is_no_argument() {
    let scene = Scene::new(with_bot(KnownClient::default()));
    let output = scene.run(&AS_BOT).expect_code(5);
    assert!(
        output.stderr.contains("`oauth.clientId` and its secret"),
        "{output}"
    );
    let mut command = scene.command(&AS_BOT);
    let output = scene.home.run(command.env("MCP_CLIENT_SECRET", BOT_SECRET));
    let output = output.expect_code(0);
    assert!(!holds_secret(&output.to_string()), "{output}");
    scene.run(&["tools", "shop"]).expect_code(0);
    scene.assert_nothing_leaked();
}

#[test]
fn what_cannot_be_logged_in_to_says_so() {
    let scene = Scene::new(AuthoritySettings::default());
    scene.home.write_settings(servers(&[
        ("local", json!({ "command": "cat" })),
        ("written", json!({
            "type": "http", "url": scene.authority.resource(), "headers": { "Authorization": marked!("Bearer ") }
        })),
    ]));
    assert_snapshot!(scene.shown(&scene.run(&["login", "written"])), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: server `written` has an `Authorization` header or a secret in the path of its `url`, which is its login: take it out to log in
    hint: see its entry with `toolway get written`
    ");
    assert_snapshot!(scene.shown(&scene.run(&["login", "local"])), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: server `local` takes no login: only servers of type http, sse and ws do
    hint: see its entry with `toolway get local`
    ");
    assert_snapshot!(scene.shown(&scene.run(&["logout", "local"])), @"
    exit: 0
    ----- stdout
    ----- stderr
    nobody is logged in to `local`
    hint: see who is logged in where with `toolway auth status`
    ");
    assert_snapshot!(scene.shown(&scene.run(&["login", "writen"])), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no server named `writen` is configured
    hint: did you mean `written`?
    ");
    assert_snapshot!(scene.shown(&scene.run(&["login", "nobody"])), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no server named `nobody` is configured
    hint: see what is configured with `toolway list --no-connect`
    ");
    assert_snapshot!(scene.shown(&scene.run(&["auth", "status"])), @"
    exit: 0
    ----- stdout
    ----- stderr
    nobody is logged in anywhere
    hint: log in with `toolway login <server>`
    ");
    assert_snapshot!(scene.shown(&scene.run(&["logout", "--all"])), @"
    exit: 0
    ----- stdout
    ----- stderr
    nobody is logged in anywhere
    ");
    let bare = toolway(&scene.home, &["logout"]).expect_code(2);
    assert!(
        bare.stderr.contains("--all") || bare.stderr.contains("SERVER"),
        "{bare}"
    );
}

#[test]
fn rel_15_ctrl_c_during_a_call_does_not_lose_the_login_that_is_being_renewed() {
    let scene = Scene::new(AuthoritySettings::default());
    scene.log_in(&["login", "shop"]).expect_code(0);
    scene.authority.expire_access_tokens();
    let refreshes = || {
        let seen = scene.authority.seen_at(RequestedParty::Issuer, "/token");
        let grants = seen.iter().filter_map(|seen| seen.param("grant_type"));
        grants.filter(|grant| *grant == "refresh_token").count()
    };
    let held = scene.authority.hold("/token");
    let call = Speaking::start(scene.command(&["call", "shop", "echo", "text=hi"]));
    eventually_blocking(|| match refreshes() {
        0 => Err("nothing was sent".to_owned()),
        _ => Ok(()),
    });
    call.signal(Signal::INT);
    drop(held);
    let output = call.end();
    assert_ne!(output.code, Some(0), "{output}");
    // The next run has what the authorization server gave.
    scene.run(&["tools", "shop"]).expect_code(0);
    assert_eq!(refreshes(), 1);
    assert_eq!(scene.authority.report().families_revoked, 0);
}

#[test]
fn a_login_lies_in_plain_text_only_when_it_is_asked_for() {
    let scene = Scene::new(AuthoritySettings::default());
    let words = ["login", "shop", "--insecure-storage"];
    scene.log_in(&words).expect_code(0);
    let status = scene.shown(&scene.run(&["auth", "status"]));
    assert!(status.contains("plain-file"), "{status}");
    // Whoever renews it without being told so seals it.
    scene.authority.expire_access_tokens();
    scene.run(&["tools", "shop"]).expect_code(0);
    let status = scene.shown(&scene.run(&["auth", "status"]));
    assert!(status.contains("file-with-key"), "{status}");
    let listed = scene.run(&["vault", "list", "--json"]).json();
    let mut places: Vec<_> = (listed["secrets"].as_array().unwrap().iter())
        .map(|secret| {
            (
                secret["kind"].as_str().unwrap(),
                secret["where"].as_str().unwrap(),
            )
        })
        .collect();
    places.sort_unstable();
    assert_eq!(
        places,
        [("client", "plain-file"), ("login", "file-with-key")]
    );
}

#[test]
fn a_code_is_shown_and_typed_on_another_device() {
    let scene = Scene::new(AuthoritySettings {
        device_polls: None,
        device_interval: 1,
        ..AuthoritySettings::default()
    });
    let mut login = Speaking::start(scene.command(&["login", "shop", "--device"]));
    let line = login.wait_for("on any device");
    let line = line.trim_end();
    let (page, rest) = line
        .strip_prefix("on any device, open ")
        .and_then(|rest| rest.split_once(" and type the code "))
        .expect(line);
    assert!(page.starts_with(scene.authority.issuer()), "{line}");
    let (code, rest) = rest.split_once(' ').expect(line);
    assert_eq!(rest, "(good for 10 minutes)");
    assert!(scene.authority.decide_device(code, true), "{line}");
    let output = login.end().expect_code(0);
    assert_eq!(
        output.stdout,
        "logged in to `shop` as `default`, renews itself\n"
    );
    scene.run(&["tools", "shop"]).expect_code(0);
    scene.assert_nothing_leaked();
}

#[test]
fn a_program_logs_in_as_itself_with_a_key_and_renews_by_it() {
    let key = TestKey::new();
    let scene = Scene::new(AuthoritySettings {
        clients: vec![KnownClient {
            id: "bot".to_owned(),
            method: Some("private_key_jwt".to_owned()),
            jwks: Some(key.jwks()),
            ..KnownClient::default()
        }],
        ..AuthoritySettings::default()
    });
    let file = scene
        .home
        .write(scene.home.home().join("bot.pem"), key.pem());
    let file = file.display().to_string();
    let words = |file| {
        let words = [
            "login",
            "shop",
            "--client-credentials",
            "--client-id",
            "bot",
        ];
        [&words[..], &["--key", file]].concat()
    };
    let output = scene.run(&words(&file)).expect_code(0);
    assert_eq!(
        output.stdout,
        "logged in to `shop` as `default`, renews itself\n"
    );
    // Whoever renews it has no file: the key is kept with the login, sealed.
    fs::remove_file(&file).unwrap();
    scene.authority.expire_access_tokens();
    scene.run(&["tools", "shop"]).expect_code(0);
    assert_eq!(
        scene
            .authority
            .report()
            .token_requests("client_credentials"),
        2
    );
    let gone = scene.shown(&scene.run(&words("bot.pem")));
    assert!(
        gone.contains("exit: 3") && gone.contains("`bot.pem` cannot be used"),
        "{gone}"
    );
    scene.home.write("bot.pem", "no key");
    let none = scene.shown(&scene.run(&words("bot.pem")));
    assert!(none.contains("no private key found"), "{none}");
    scene
        .run(&["login", "shop", "--key", "bot.pem"])
        .expect_code(2);
}

#[test]
fn a_server_that_wants_a_login_after_the_login_is_not_logged_in_to_in_circles() {
    let scene = Scene::new(AuthoritySettings::with(&[Switch::Storm]));
    assert_snapshot!(scene.shown(&scene.log_in(&["login", "shop"])), @"
    exit: 5
    ----- stdout
    logged in to `shop` as `default`, renews itself
    ----- stderr
    opening a login page of 127.0.0.1 in your browser
    waiting for the browser to come back, for 5 minutes at most; if the page shows an error, press Ctrl-C and log in again
    error: server `shop` does not take the login that it was just given
    hint: see what it answered with `toolway logs shop --protocol`; it may want other scopes: `toolway login shop --scopes …`
    ");
}

#[test]
fn where_no_code_can_be_typed_the_other_ways_are_named() {
    // Before there was metadata, there were three endpoints by convention and no other.
    let scene = Scene::new(AuthoritySettings {
        places: Vec::new(),
        resource_places: Vec::new(),
        ..AuthoritySettings::with(&[Switch::NoResourceMetadata])
    });
    let shown = scene.shown(&scene.run(&["login", "shop", "--device"]));
    let server = scene.authority.resource().trim_end_matches("/mcp");
    assert_snapshot!(shown.replace(server, "[SERVER]"), @"
    exit: 5
    ----- stdout
    ----- stderr
    error: cannot log in to `shop`: the authorization server [SERVER] has no `device_authorization_endpoint`, so it cannot be done in this way
    hint: log in with a browser: `toolway login shop`, or `--no-browser`
    ");
}

#[test]
fn an_authorization_server_that_is_down_costs_no_login_and_is_named() {
    let scene = Scene::new(AuthoritySettings::default());
    scene.log_in(&["login", "shop"]).expect_code(0);
    scene.authority.expire_access_tokens();
    scene.authority.turn_on(Switch::TokenUnavailable);
    assert_snapshot!(scene.shown(&scene.run(&["call", "shop", "whoami"])), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: server `shop` failed: the login of `shop` cannot be renewed now: the authorization server is busy and wants to be asked again in 2 s
    hint: the login is kept: try again in a while, or log in anew with `toolway login shop`
    ");
    assert_snapshot!(scene.shown(&scene.run(&["list"])), @"
    exit: 0
    ----- stdout
    NAME  SCOPE  TYPE  STATE     TOOLS  DETAIL
    shop  user   http  ✘ failed  -      the login of `shop` cannot be renewed now: the authorization server is busy and wants to be asked again in 2 s; login `default` renews itself
    ----- stderr
    hint: `shop`: the login is kept: try again in a while, or log in anew with `toolway login shop`
    ");
    scene.authority.turn_off(Switch::TokenUnavailable);
    scene.run(&["call", "shop", "whoami"]).expect_code(0);
}

#[test]
fn with_nothing_configured_there_is_nothing_to_log_in_to() {
    let scene = Scene::new(AuthoritySettings::default());
    scene.home.write_settings("{}");
    assert_snapshot!(scene.shown(&scene.run(&["login"])), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: no server is configured
    hint: add one with `toolway add <name> <url>`
    ");
}

#[test]
fn an_expired_login_names_the_command_that_makes_a_new_one() {
    let scene = Scene::new(AuthoritySettings {
        refresh_tokens: false,
        access_ms: 1000,
        ..AuthoritySettings::default()
    });
    // It may be over before the server was connected to.
    scene.log_in(&["login", "shop", "--account", "my work"]);
    let status = eventually_blocking(|| {
        let status = scene.run(&["auth", "status"]).expect_code(0);
        if status.stdout.contains("expired at 20") {
            Ok(status)
        } else {
            Err(status.to_string())
        }
    });
    assert_snapshot!(status.stderr, @"hint: log in anew with `toolway login shop --account 'my work'`");
}
