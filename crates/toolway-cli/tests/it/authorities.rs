//! Authorization servers that are as odd as real ones: how clients authenticate there, what they
//! forget, what they do not say.

use std::fs;

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::json;
use toolway_testkit::TempHome;
use toolway_testkit::authority::{
    Authority, AuthoritySettings, CANARY, KnownClient, RequestedParty, Switch, holds_secret,
};
use toolway_testkit::browser::{browse, fetch};

use crate::login::{AS_BOT, BOT_SECRET, Scene, with_bot};
use crate::support::servers;
use crate::terminal::TerminalProgram;
use crate::visiting::{Speaking, opened, visit};

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

impl Scene {
    /// How often a token was asked for.
    fn token_requests(&self) -> usize {
        self.authority
            .seen_at(RequestedParty::Issuer, "/token")
            .len()
    }

    fn registrations(&self) -> u64 {
        self.authority.report().registrations
    }

    /// A login that is refused because it could be stolen; gives what helps.
    fn without_pkce(&self) -> String {
        let output = self.run(&["login", "shop"]).expect_code(5);
        let said = self.shown(&output);
        let (before, hint) = said.split_at(said.find("hint: ").unwrap());
        insta::allow_duplicates!(assert_snapshot!(before, @"
        exit: 5
        ----- stdout
        ----- stderr
        error: cannot log in to `shop`: the authorization server [ISSUER] does not offer PKCE with S256 (`code_challenge_methods_supported`), so a login there could be stolen; its operator must switch it on
        "));
        hint.to_owned()
    }

    /// Begins a login; the person goes to the page, whatever it shows, and then gives up.
    fn give_up(&self) {
        let _ = fs::remove_file(self.home.home().join("page"));
        let mut login = Speaking::start(self.command(&["login", "shop"]));
        login.wait_for("waiting for the browser");
        fetch(&opened(&self.home));
        login.signal(Signal::INT);
        self.shown(&login.end().expect_code(130));
    }
}

#[test]
fn a_client_that_must_stand_in_the_form_logs_in_renews_and_logs_out() {
    let scene = Scene::new(AuthoritySettings {
        client_in_form: true,
        auth_methods: words("client_secret_basic client_secret_post"),
        ..AuthoritySettings::default()
    });
    scene.log_in(&["login", "shop"]).expect_code(0);
    scene.authority.expire_access_tokens();
    scene.run(&["call", "shop", "whoami"]).expect_code(0);
    assert_eq!(scene.token_requests(), 2);
    assert_snapshot!(scene.shown(&scene.run(&["logout", "shop"])), @"
    exit: 0
    ----- stdout
    logged out of `shop` as `default`
    ----- stderr
    ");
    assert_eq!(scene.authority.valid_refresh_tokens(), [""; 0]);
}

#[test]
fn a_way_to_authenticate_that_is_not_recognised_gives_way_to_the_other_and_that_is_remembered() {
    let scene = Scene::new(with_bot(KnownClient {
        method: Some("client_secret_basic".to_owned()),
        ..KnownClient::default()
    }));
    let mut login = scene.command(&["login", "shop", "--client-id", "bot"]);
    login.env("MCP_CLIENT_SECRET", BOT_SECRET);
    visit(&scene.home, &mut login, browse).0.expect_code(0);
    assert_eq!(scene.token_requests(), 2, "the form, and then the header");
    scene.authority.expire_access_tokens();
    scene.run(&["call", "shop", "whoami"]).expect_code(0);
    assert_eq!(scene.token_requests(), 3, "the header at once");
    let out = scene.run(&["logout", "shop"]).expect_code(0);
    assert_eq!(out.stderr, "");
    assert_eq!(scene.authority.report().revocations, 2);
}

#[test]
fn a_client_without_a_secret_logs_out_where_one_is_asked_for() {
    let scene = Scene::new(AuthoritySettings {
        secret_in_revocation: true,
        ..AuthoritySettings::default()
    });
    scene.log_in(&["login", "shop"]).expect_code(0);
    assert_snapshot!(scene.shown(&scene.run(&["logout", "shop"])), @"
    exit: 0
    ----- stdout
    logged out of `shop` as `default`
    ----- stderr
    ");
    assert_eq!(scene.authority.valid_refresh_tokens(), [""; 0]);
    let asked = scene.authority.report().revocations;
    assert_eq!(
        asked, 3,
        "once without, and then each token with an empty one"
    );
}

#[test]
fn a_server_that_registers_for_one_kind_of_login_is_asked_for_one() {
    let scene = Scene::new(AuthoritySettings {
        one_grant: true,
        ..AuthoritySettings::default()
    });
    scene.log_in(&["login", "shop"]).expect_code(0);
    scene.run(&["call", "shop", "whoami"]).expect_code(0);
    assert_eq!(scene.registrations(), 1);
}

#[test]
fn a_login_that_fails_registers_no_further_client() {
    let scene = Scene::new(AuthoritySettings {
        client_in_form: true,
        auth_methods: words("client_secret_basic"),
        ..AuthoritySettings::default()
    });
    assert_snapshot!(scene.shown(&scene.log_in(&["login", "shop"])), @"
    exit: 5
    ----- stdout
    ----- stderr
    opening a login page of 127.0.0.1 in your browser
    waiting for the browser to come back, for 5 minutes at most; if the page shows an error, press Ctrl-C and log in again
    error: cannot log in to `shop`: the authorization server refused: unauthorized_client (Missing client_id)
    hint: it does not take this program as a client: ask whoever runs it, or name a client of your own with `toolway login shop --client-id <id>`
    ");
    for _ in 0..2 {
        scene.log_in(&["login", "shop"]).expect_code(5);
    }
    assert_eq!(scene.registrations(), 1);
}

#[test]
fn a_registration_that_a_server_forgot_is_made_anew_after_a_login_without_an_answer() {
    let scene = Scene::new(AuthoritySettings::default());
    scene.log_in(&["login", "shop"]).expect_code(0);
    scene.authority.forget_clients();
    scene.give_up();
    assert_eq!(scene.registrations(), 1);
    assert_snapshot!(scene.shown(&scene.log_in(&["login", "shop"])), @"
    exit: 0
    ----- stdout
    logged in to `shop` as `default`, renews itself
    ----- stderr
    the last login there had no answer: registering this program anew
    opening a login page of 127.0.0.1 in your browser
    waiting for the browser to come back, for 5 minutes at most; if the page shows an error, press Ctrl-C and log in again
    ");
    assert_eq!(scene.registrations(), 2);
    // What was answered is believed in.
    scene.log_in(&["login", "shop"]).expect_code(0);
    assert_eq!(scene.registrations(), 2);
}

#[test]
fn giving_up_a_first_login_leaves_one_registration_for_the_next() {
    let scene = Scene::new(AuthoritySettings::default());
    scene.give_up();
    scene.log_in(&["login", "shop"]).expect_code(0);
    assert_eq!(scene.registrations(), 1);
}

#[test]
fn offline_access_alone_takes_no_default_scopes_away() {
    let scene = Scene::new(AuthoritySettings {
        scopes: words("offline_access"),
        ..AuthoritySettings::default()
    });
    scene.log_in(&["login", "shop"]).expect_code(0);
    let asked = scene
        .authority
        .seen_at(RequestedParty::Issuer, "/authorize");
    assert_eq!(asked.last().unwrap().param("scope"), None);
    assert_eq!(asked.last().unwrap().param("prompt"), None);
}

#[test]
fn an_account_with_a_name_is_asked_for_whoever_logged_in_last() {
    let scene = Scene::new(AuthoritySettings::default());
    let prompt = || {
        let asked = scene
            .authority
            .seen_at(RequestedParty::Issuer, "/authorize");
        let prompt = asked.last().unwrap().param("prompt");
        prompt.unwrap_or_default().to_owned()
    };
    scene.log_in(&["login", "shop"]).expect_code(0);
    assert_eq!(prompt(), "consent");
    scene
        .log_in(&["login", "shop", "--account", "work"])
        .expect_code(0);
    assert_eq!(prompt(), "login consent");
    let mut entry = scene.authority.entry();
    entry["oauth"] = json!({ "account": "home" });
    scene.home.write_settings(servers(&[("shop", entry)]));
    scene.log_in(&["login", "shop"]).expect_code(0);
    assert_eq!(prompt(), "login consent");
}

#[test]
fn a_fault_that_stays_is_not_to_be_tried_again() {
    let scene = Scene::new(AuthoritySettings::with(&[Switch::PkcePlain]));
    assert_snapshot!(scene.without_pkce(), @"hint: ask whoever runs it: no other way to log in is safe there");
    let scene = Scene::new(with_bot(KnownClient::default()));
    let mut command = scene.command(&AS_BOT);
    command.env("MCP_CLIENT_SECRET", format!("wrong-{CANARY}"));
    assert_snapshot!(scene.shown(&scene.home.run(&mut command)), @"
    exit: 5
    ----- stdout
    ----- stderr
    error: cannot log in to `shop`: the authorization server refused: invalid_client (wrong client secret)
    hint: check the client: its id (`--client-id`, or `oauth.clientId` in the entry) and its secret (`MCP_CLIENT_SECRET`, or `oauth.clientSecret`)
    ");
}

#[test]
fn an_authorization_server_that_does_not_announce_pkce_needs_a_persons_word() {
    let scene = Scene::new(AuthoritySettings::with(&[Switch::PkceUnsaid]));
    assert_snapshot!(scene.without_pkce(), @"hint: ask whoever runs it; if they say that it checks PKCE and only does not announce it, set `oauth.allowUnannouncedPkce` to `true` in the entry: `toolway get shop`");
    let mut entry = scene.authority.entry();
    entry["oauth"] = json!({ "allowUnannouncedPkce": true });
    scene
        .home
        .write_settings(servers(&[("shop", entry.clone())]));
    assert_snapshot!(scene.shown(&scene.log_in(&["login", "shop"])), @"
    exit: 0
    ----- stdout
    logged in to `shop` as `default`, renews itself
    ----- stderr
    warning: [ISSUER] does not announce PKCE: whether a stolen login could be used there is not known (`oauth.allowUnannouncedPkce`)
    opening a login page of 127.0.0.1 in your browser
    waiting for the browser to come back, for 5 minutes at most; if the page shows an error, press Ctrl-C and log in again
    ");
    let asked = scene
        .authority
        .seen_at(RequestedParty::Issuer, "/authorize");
    assert_eq!(
        asked.last().unwrap().param("code_challenge_method"),
        Some("S256")
    );
    // A method that is announced, and is not S256, stays refused.
    scene.authority.set(&[Switch::PkcePlain]);
    scene.run(&["login", "shop"]).expect_code(5);
    // And no repository says so.
    scene.home.write_settings("{}");
    let project = scene.home.project().join(".mcp.json");
    scene.home.write(project, servers(&[("shop", entry)]));
    let words = ["list", "--no-connect", "--approve-project-servers"];
    let listed = scene.run(&words).to_string();
    assert!(
        listed.contains("`oauth.allowUnannouncedPkce` may not be used here"),
        "{listed}"
    );
}

#[test]
fn an_address_longer_than_a_terminals_line_is_pasted_whole() {
    let scene = Scene::new(AuthoritySettings {
        code_padding: 9000,
        ..AuthoritySettings::default()
    });
    let mut terminal =
        TerminalProgram::take(&mut scene.command(&["login", "shop", "--no-browser"]));
    let shown = terminal.expect("and press Enter:");
    let page = shown.lines().find(|line| line.starts_with("  http"));
    let page = page.unwrap().trim();
    let ended = fetch(page).unwrap().location.expect("sent back");
    assert!(ended.len() > 9000);
    terminal.type_line(&ended);
    let left = terminal.leave();
    assert_eq!(left.code, Some(0), "{}", left.shown);
    assert!(
        !holds_secret(&left.shown),
        "it is not echoed where echo is off"
    );
}

#[test]
fn what_is_typed_is_shown_and_can_be_mended_and_the_terminal_is_as_it_was() {
    let scene = Scene::new(AuthoritySettings::default());
    let mut terminal =
        TerminalProgram::echoing(&mut scene.command(&["login", "shop", "--no-browser"]));
    terminal.expect("and press Enter:");
    terminal.type_keys("hallo\u{7f}\u{7f}\u{7f}\u{7f}ello\u{15}nothing\n");
    let shown = terminal.expect("that cannot be used");
    assert!(shown.contains("hallo"), "{shown:?}");
    assert!(shown.contains("nothing"), "{shown:?}");
    terminal.interrupt();
    assert!(terminal.is_as_it_was());
    let left = terminal.leave();
    assert_eq!(left.code, Some(130), "{}", left.shown);
}

#[test]
fn every_server_that_wants_a_login_has_its_command_in_the_list() {
    let authority = Authority::start(AuthoritySettings::default());
    let home = TempHome::new();
    let entry = |account: Option<&str>| {
        let mut entry = authority.entry();
        if let Some(account) = account {
            entry["oauth"] = json!({ "account": account });
        }
        entry
    };
    home.write_settings(servers(&[
        ("a", entry(None)),
        ("b", entry(Some("work"))),
        ("c", entry(None)),
        ("d e", entry(None)),
        ("f", json!({ "command": "no-such-program" })),
    ]));
    let run = |words: &[&str]| home.run(&mut crate::visiting::with_browser(&home, words));
    let listed = run(&["list", "--json"]).json();
    let rows = listed["servers"].as_array().unwrap().iter();
    let commands: Vec<_> = rows.map(|server| server["login"].clone()).collect();
    assert_eq!(
        commands,
        [
            json!("toolway login a"),
            json!("toolway login b --account work"),
            json!("toolway login c"),
            json!("toolway login 'd e'"),
            json!(null),
        ]
    );
    let told = run(&["list"]).stderr;
    for command in commands.iter().filter_map(|command| command.as_str()) {
        assert!(told.contains(&format!("`{command}`")), "{told}");
    }
}
