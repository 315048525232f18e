//! A call that needs more than the login reaches: with a person at the terminal, and without.

use std::fs;

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::Value;
use toolway_testkit::authority::{AuthoritySettings, RequestedParty, Switch, holds_secret};
use toolway_testkit::browser::browse;
use toolway_testkit::eventually_blocking;

use crate::login::Scene;
use crate::terminal::{Left, TerminalProgram};
use crate::watching::Running;

/// A server whose tool, resource and prompt take `write`, and a login that has `read`.
fn scene(settings: AuthoritySettings) -> Scene {
    let scene = Scene::new(AuthoritySettings {
        challenge_scopes: vec!["read".to_owned()],
        tool_scopes: [("post".to_owned(), vec!["write".to_owned()])].into(),
        offer_scopes: vec!["write".to_owned()],
        ..settings
    });
    scene.log_in(&["login", "shop"]).expect_code(0);
    scene.forget_page();
    scene
}

impl Scene {
    fn forget_page(&self) {
        let _ = fs::remove_file(self.home.home().join("page"));
    }

    /// Runs a command on a terminal; its question is shown, and answered with a yes, and the
    /// person goes to the page.
    fn agree(&self, words: &[&str]) -> (String, Left) {
        let mut terminal = TerminalProgram::take(&mut self.command(words));
        let asked = terminal.expect("Open the login page in your browser? [y/N] ");
        let page = self.home.home().join("page");
        assert!(!page.exists(), "nothing is opened before the yes");
        terminal.type_line("y");
        let url = eventually_blocking(|| fs::read_to_string(&page).map_err(|it| it.to_string()));
        browse(&url);
        let left = terminal.leave();
        assert!(!holds_secret(&left.shown), "{}", left.shown);
        (asked, left)
    }

    fn windows(&self) -> usize {
        self.authority
            .seen_at(RequestedParty::Issuer, "/authorize")
            .len()
    }
}

#[test]
fn a_call_on_a_terminal_asks_shows_the_page_and_goes_on_when_it_is_granted() {
    let scene = scene(AuthoritySettings::default());
    let (asked, left) = scene.agree(&["call", "shop", "post"]);
    let asked = asked.replace('\r', "");
    let asked = &asked[asked.find("your login").unwrap()..];
    let mut lines = asked.lines();
    let shown: Vec<&str> = lines
        .by_ref()
        .take_while(|line| !line.starts_with("  page:"))
        .collect();
    assert_snapshot!(shown.join("\n"), @"
    your login to server `shop` does not reach far enough for this:
      has: read offline_access
      wants: write
    ");
    let page = asked
        .lines()
        .find(|line| line.starts_with("  page: http://127.0.0.1:"));
    assert!(page.is_some_and(|page| page.contains("write")), "{asked}");
    let host = lines.next().unwrap();
    assert!(host.starts_with("  host: 127.0.0.1:"), "{host}");
    assert_eq!(left.code, Some(0), "{}", left.shown);
    assert!(left.stdout.contains("write"), "{}", left.stdout);
    assert!(left.shown.contains("waiting until you are done there"));
    // The next run has it.
    scene.run(&["call", "shop", "post"]).expect_code(0);
    assert_eq!(scene.windows(), 2);
    scene.assert_nothing_leaked();
}

#[test]
fn the_result_is_json_where_that_is_wanted_and_nothing_else_is_on_stdout() {
    let scene = scene(AuthoritySettings::default());
    let (_, left) = scene.agree(&["call", "shop", "post", "--json"]);
    assert_eq!(left.code, Some(0), "{}", left.shown);
    let result: Value = serde_json::from_str(&left.stdout).unwrap();
    assert!(result.to_string().contains("write"), "{result}");
}

#[test]
fn resources_and_prompts_ask_too() {
    for words in [
        &["read", "who://ami", "shop"][..],
        &["prompt", "shop", "who"],
    ] {
        let scene = scene(AuthoritySettings::default());
        let headless = scene.run(words).expect_code(5);
        assert!(
            headless
                .stderr
                .contains("hint: log in with `toolway login shop --scopes write`"),
            "{headless}"
        );
        let (_, left) = scene.agree(words);
        assert_eq!(left.code, Some(0), "{}", left.shown);
        assert!(left.stdout.contains("write"), "{}", left.stdout);
    }
}

#[test]
fn a_no_is_an_error_with_the_command_for_later() {
    let scene = scene(AuthoritySettings::default());
    let mut terminal = TerminalProgram::take(&mut scene.command(&["call", "shop", "post"]));
    terminal.expect("[y/N] ");
    terminal.type_line("");
    terminal.expect("declined\r\n");
    let said = terminal.expect("--scopes write`");
    assert_snapshot!(said.replace('\r', ""), @"
    error: server `shop` wants a login that reaches `write` first
      nobody agreed to one just now
    hint: log in with `toolway login shop --scopes write`
    ");
    let left = terminal.leave();
    assert_eq!(left.code, Some(5), "{}", left.shown);
    assert_eq!(left.stdout, "");
    assert_eq!(scene.windows(), 1);
}

#[test]
fn a_server_that_refuses_still_is_an_error_that_says_so() {
    let scene = scene(AuthoritySettings {
        scopes: vec!["read".to_owned(), "offline_access".to_owned()],
        ..AuthoritySettings::default()
    });
    let (_, left) = scene.agree(&["call", "shop", "post"]);
    assert_eq!(left.code, Some(5), "{}", left.shown);
    let shown = left.shown.replace('\r', "");
    assert_snapshot!(&shown[shown.find("error:").unwrap()..], @"
    error: server `shop` needs a login that reaches `write`: one was asked for and granted, and the server refuses still
    hint: the account may not have that right: ask whoever runs the server, or log in as somebody else with `toolway login shop`
    ");
    assert_eq!(scene.authority.report().forbidden, 2);
}

#[test]
fn without_a_terminal_nobody_is_asked_and_the_error_names_the_command() {
    let scene = scene(AuthoritySettings::default());
    let plain = scene.shown(&scene.run(&["call", "shop", "post"]));
    assert_snapshot!(plain, @"
    exit: 5
    ----- stdout
    ----- stderr
    error: server `shop` wants a login that reaches `write` first
    hint: log in with `toolway login shop --scopes write`
    ");
    let json = scene.shown(&scene.run(&["call", "shop", "post", "--json"]));
    assert_snapshot!(json, @r#"
    exit: 5
    ----- stdout
    ----- stderr
    {"exit":5,"error":"server `shop` wants a login that reaches `write` first","details":[],"hint":"log in with `toolway login shop --scopes write`"}
    "#);
    assert_eq!(scene.windows(), 1);
}

#[test]
fn a_server_that_does_not_say_which_scopes_it_wants_sends_nobody_round_a_login() {
    let scene = scene(AuthoritySettings {
        names_scopes: false,
        ..AuthoritySettings::default()
    });
    assert_snapshot!(scene.shown(&scene.run(&["call", "shop", "post"])), @"
    exit: 5
    ----- stdout
    ----- stderr
    error: server `shop` wants a login that reaches further, and did not say which scopes
    hint: ask whoever runs it which scopes it takes, then log in with `toolway login shop --scopes <scopes>`
    ");
    let mut terminal = TerminalProgram::take(&mut scene.command(&["call", "shop", "post"]));
    terminal.expect("did not say which scopes");
    let left = terminal.leave();
    assert_eq!(left.code, Some(5), "{}", left.shown);
    assert_eq!(scene.windows(), 1);
}

#[test]
fn a_connection_refused_for_scopes_that_nobody_names_is_told_with_the_login_that_can_help() {
    let scene = scene(AuthoritySettings {
        names_scopes: false,
        ..AuthoritySettings::default()
    });
    scene.authority.turn_on(Switch::ScopeNever);
    assert_snapshot!(scene.shown(&scene.run(&["list"])), @"
    exit: 0
    ----- stdout
    NAME  SCOPE  TYPE  STATE         TOOLS  DETAIL
    shop  user   http  ! needs-auth  -      wants a login that reaches further, and did not say which scopes; login `default` renews itself
    ----- stderr
    hint: log in to `shop` with `toolway login shop --scopes <scopes>`; ask whoever runs it which scopes it takes
    ");
    let row = &scene.run(&["list", "--json"]).json()["servers"][0];
    assert_eq!(
        row["error"],
        "wants a login that reaches further, and did not say which scopes"
    );
    assert_eq!(row["login"], "toolway login shop --scopes <scopes>");
    let same = "error: server `shop` wants a login that reaches further, and did not say which \
                scopes\nhint: ask whoever runs it which scopes it takes, then log in with \
                `toolway login shop --scopes <scopes>`\n";
    for words in [
        &["tools", "shop"][..],
        &["call", "shop", "post"],
        &["login", "shop"],
    ] {
        assert_eq!(scene.run(words).expect_code(5).stderr, same, "{words:?}");
    }
    // What each change is told as, and what moves on a terminal.
    let mut watch = Running::of(&mut scene.command(&["list", "--watch"]));
    watch.wait_for("shop: needs-auth (wants a login that reaches further");
    watch.signal(Signal::TERM);
    assert_eq!(watch.end().0, Some(0));
    let terminal = TerminalProgram::small_with_stdout(&mut scene.command(&["list", "--watch"]));
    eventually_blocking(|| match terminal.rows().first() {
        Some(row) if row.ends_with("wants a login that reaches further") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    terminal.end();
    assert_eq!(scene.windows(), 1);
}
