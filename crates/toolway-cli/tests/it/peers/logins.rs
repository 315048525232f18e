//! Logins from beginning to end: oidc-provider gives them, and servers on the TypeScript SDK and on
//! FastMCP want them.
//!
//! The person at the browser is the testkit's; a real browser is in `logins/chromium.rs`. Other
//! authorization servers are in `logins/own_authority.rs` and `logins/providers.rs`.

mod chromium;
mod own_authority;
mod providers;
mod scene;

use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use serde_json::{Value, json};
use toolway_testkit::TestBrowser;
use toolway_testkit::browser::post;
use toolway_testkit::marked;
use toolway_testkit::peers::ProtectedKind;

use self::scene::Scene;
use crate::terminal::TerminalProgram;
use crate::visiting::Speaking;
use crate::watching::Running;

/// The word after `client=` in what `whoami` says.
fn client_of(said: &str) -> String {
    let words = said.split_whitespace();
    let mut clients = words.filter_map(|word| word.strip_prefix("client="));
    clients.next().unwrap().to_owned()
}

fn from_add_to_logout(which: ProtectedKind) {
    let scene = Scene::new(which, &json!({}));
    let listed = scene.run(&["list"]).expect_code(0);
    assert!(listed.stdout.contains("! needs-auth"), "{listed}");
    assert!(
        listed.to_string().contains("toolway login peer"),
        "{listed}"
    );
    assert_eq!(scene.state(), "needs-auth");
    scene.run(&["call", "peer", "whoami"]).expect_code(5);

    let (output, page) = scene.log_in(&["login", "peer"], "alice");
    assert_eq!(
        output.expect_code(0).stdout,
        "logged in to `peer` as `default`, renews itself\n"
    );
    assert!(page.body.contains("You are logged in"), "{page:?}");
    assert_eq!(scene.state(), "connected");
    let first = scene.whoami();
    assert!(first.starts_with("subject=alice client="), "{first}");
    let changed = scene.run(&["call", "peer", "change"]).expect_code(0);
    assert_eq!(changed.stdout, "changed\n");

    // Another person at another browser; the registration is kept.
    let (output, _) = scene.log_in(&["login", "peer"], "bob");
    output.expect_code(0);
    let second = scene.whoami();
    assert!(second.starts_with("subject=bob "), "{second}");
    assert_eq!(client_of(&second), client_of(&first));

    let kept = scene.kept("default");
    let out = scene.run(&["logout", "peer"]).expect_code(0);
    assert_eq!(
        (out.stdout.as_str(), out.stderr.as_str()),
        ("logged out of `peer` as `default`\n", "")
    );
    assert_eq!(scene.state(), "needs-auth");
    assert_eq!(refresh(&kept)["error"], "invalid_grant");

    // And once more, still without registering.
    let (output, _) = scene.log_in(&["login", "peer"], "carol");
    output.expect_code(0);
    assert_eq!(client_of(&scene.whoami()), client_of(&first));
}

#[test]
fn a_tool_of_the_typescript_sdk_that_needs_more_gets_it_in_the_middle_of_the_call() {
    let scene = Scene::new(ProtectedKind::TypeScriptSigned, &json!({}));
    let narrow = ["login", "peer", "--scopes", "openid offline_access read"];
    let (output, _) = scene.log_in(&narrow, "alice");
    output.expect_code(0);
    let said = scene.whoami();
    assert!(!said.contains("write"), "{said}");
    let headless = scene.run(&["call", "peer", "change"]).expect_code(5);
    assert!(
        headless
            .stderr
            .contains("toolway login peer --scopes write"),
        "{headless}"
    );
    scene.forget_opened();
    let mut terminal = TerminalProgram::take(&mut scene.command(&["call", "peer", "change"]));
    let asked = terminal.expect("Open the login page in your browser? [y/N] ");
    assert!(asked.contains("  wants: write\r\n"), "{asked}");
    terminal.type_line("y");
    let person = [("login", "alice"), ("password", "any")];
    let page = TestBrowser::new().log_in(&scene.opened(), &person);
    let page = page.expect("the browser comes back");
    assert!(page.body.contains("You are logged in"), "{page:?}");
    let left = terminal.leave();
    assert_eq!(left.code, Some(0), "{}", left.shown);
    assert_eq!(left.stdout, "changed\n");
    let said = scene.whoami();
    assert!(said.contains("read") && said.contains("write"), "{said}");
}

#[test]
fn the_typescript_sdk_from_add_to_logout() {
    from_add_to_logout(ProtectedKind::TypeScriptSigned);
}

#[test]
fn fastmcp_from_add_to_logout() {
    from_add_to_logout(ProtectedKind::FastMcp);
}

#[test]
fn an_issuer_with_a_path_is_found() {
    let scene = Scene::new(ProtectedKind::FastMcp, &json!({ "path": "/tenant" }));
    let (output, _) = scene.log_in(&["login", "peer"], "alice");
    output.expect_code(0);
    assert!(scene.whoami().starts_with("subject=alice "));
    let status = scene.run(&["auth", "status", "--json"]).json();
    assert_eq!(status["logins"][0]["issuer"], scene.provider.issuer());
}

#[test]
fn a_logout_ends_the_token_where_the_provider_is_asked_about_it() {
    let scene = Scene::new(ProtectedKind::TypeScriptOpaque, &json!({ "opaque": true }));
    let (output, _) = scene.log_in(&["login", "peer"], "alice");
    output.expect_code(0);
    // Somebody else has the token, too.
    let kept = scene.kept("default");
    let header = format!(
        "Authorization: Bearer {}",
        kept["tokens"]["access"].as_str().unwrap()
    );
    let url = scene.peer.url();
    scene
        .run(&["add", "copied", url, "-H", &header])
        .expect_code(0);
    let copied = scene.run(&["call", "copied", "whoami"]).expect_code(0);
    assert!(copied.stdout.starts_with("subject=alice "), "{copied}");
    scene.run(&["logout", "peer"]).expect_code(0);
    let refused = scene.run(&["call", "copied", "whoami"]);
    assert_ne!(refused.code, Some(0), "{refused}");
    assert!(!refused.stdout.contains("alice"), "{refused}");
}

fn an_expired_token_is_renewed(which: ProtectedKind) {
    let scene = Scene::new(which, &json!({ "accessSeconds": 5 }));
    let (output, _) = scene.log_in(&["login", "peer"], "alice");
    output.expect_code(0);
    let first = scene.kept("default");
    wait_until_expired(&first);
    assert!(scene.whoami().starts_with("subject=alice "));
    let second = scene.kept("default");
    assert_ne!(first["tokens"]["refresh"], second["tokens"]["refresh"]);
    assert_ne!(first["tokens"]["access"], second["tokens"]["access"]);
    // The provider would not take the old one again. It takes that for a theft, and ends what came
    // of it: a login that cannot be renewed says which command mends it.
    assert_eq!(refresh(&first)["error"], "invalid_grant");
    wait_until_expired(&scene.kept("default"));
    let ended = scene.run(&["call", "peer", "whoami"]).expect_code(5);
    assert!(ended.stderr.contains("toolway login peer"), "{ended}");
    assert_eq!(scene.state(), "needs-auth");
    let (output, _) = scene.log_in(&["login", "peer"], "alice");
    output.expect_code(0);
    assert!(scene.whoami().starts_with("subject=alice "));
}

fn wait_until_expired(login: &Value) {
    let end = login["tokens"]["expires_at"].as_u64().unwrap();
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(end + 1);
    if let Ok(left) = end.duration_since(SystemTime::now()) {
        std::thread::sleep(left);
    }
}

#[test]
fn an_expired_token_is_renewed_for_the_typescript_sdk() {
    an_expired_token_is_renewed(ProtectedKind::TypeScriptSigned);
}

#[test]
fn an_expired_token_is_renewed_for_fastmcp() {
    an_expired_token_is_renewed(ProtectedKind::FastMcp);
}

#[test]
fn a_code_typed_on_another_device() {
    let scene = Scene::new(ProtectedKind::FastMcp, &json!({}));
    let mut login = Speaking::start(scene.command(&["login", "peer", "--device"]));
    let said = login.wait_for("type the code");
    let word_after = |word: &str| {
        let mut words = said.split_whitespace().skip_while(|found| *found != word);
        words.nth(1).unwrap().to_owned()
    };
    let mut browser = TestBrowser::new();
    let page = browser.log_in(
        &word_after("open"),
        &[
            ("user_code", &word_after("code")),
            ("login", "alice"),
            ("password", "any"),
        ],
    );
    let page = page.unwrap();
    assert!(page.body.contains("Sign-in Success"), "{page:?}");
    let output = login.end().expect_code(0);
    assert_eq!(
        output.stdout,
        "logged in to `peer` as `default`, renews itself\n"
    );
    assert!(scene.whoami().starts_with("subject=alice "));
    // A browser may be used afterwards, and a device again.
    let (output, _) = scene.log_in(&["login", "peer"], "bob");
    output.expect_code(0);
    assert!(scene.whoami().starts_with("subject=bob "));
}

#[test]
fn a_program_logs_in_as_itself() {
    for which in [ProtectedKind::TypeScriptSigned, ProtectedKind::FastMcp] {
        let scene = Scene::new(which, &json!({}));
        let words = [
            "login",
            "peer",
            "--client-credentials",
            "--client-id",
            "robot",
        ];
        let mut command = scene.command(&words);
        let output = scene
            .home
            .run(command.env("MCP_CLIENT_SECRET", marked!("wrong-")));
        let refused = output.expect_code(5);
        assert!(refused.stderr.contains("invalid_client"), "{refused}");
        let mut command = scene.command(&words);
        let output = scene
            .home
            .run(command.env("MCP_CLIENT_SECRET", marked!("robot-")));
        output.expect_code(0);
        let said = scene.whoami();
        assert_eq!(client_of(&said), "robot", "{said}");
    }
}

#[test]
fn the_address_where_a_browser_elsewhere_ended_is_pasted() {
    let scene = Scene::new(ProtectedKind::TypeScriptSigned, &json!({}));
    let mut login = Speaking::start(scene.command(&["login", "peer", "--no-browser"]));
    let page = login.wait_for("http://").trim().to_owned();
    let back = url::Url::parse(&page).unwrap();
    let back = back.query_pairs().find(|(name, _)| name == "redirect_uri");
    let mut browser = TestBrowser::elsewhere(&back.unwrap().1);
    let nothing = browser.log_in(&page, &[("login", "alice"), ("password", "any")]);
    assert_eq!(nothing, None, "the callback is on another machine");
    login.type_line("that is not an address");
    login.wait_for("that cannot be used");
    login.type_line(browser.url());
    let output = login.end().expect_code(0);
    assert_eq!(
        output.stdout,
        "logged in to `peer` as `default`, renews itself\n"
    );
    assert!(scene.whoami().starts_with("subject=alice "));
}

#[test]
fn two_accounts_at_one_server() {
    let scene = Scene::new(ProtectedKind::TypeScriptSigned, &json!({}));
    let (output, _) = scene.log_in(&["login", "peer"], "alice");
    output.expect_code(0);
    let (output, _) = scene.log_in(&["login", "peer", "--account", "work"], "bob");
    let output = output.expect_code(0);
    assert!(output.stdout.contains("as `work`"), "{output}");
    let status = scene.run(&["auth", "status", "--json"]).json();
    let mut accounts: Vec<&str> = status["logins"]
        .as_array()
        .unwrap()
        .iter()
        .map(|login| login["account"].as_str().unwrap())
        .collect();
    accounts.sort_unstable();
    assert_eq!(accounts, ["default", "work"]);
    assert!(scene.whoami().starts_with("subject=alice "));
    let (default, work) = (scene.kept("default"), scene.kept("work"));
    assert_eq!(default["client"]["client_id"], work["client"]["client_id"]);
    scene
        .run(&["logout", "peer", "--account", "default"])
        .expect_code(0);
    assert!(scene.whoami().starts_with("subject=bob "));
    // The other one's grant is its own.
    assert_eq!(refresh(&default)["error"], "invalid_grant");
    scene.run(&["logout", "peer"]).expect_code(0);
    assert_eq!(scene.state(), "needs-auth");
}

#[test]
fn a_login_in_one_process_reaches_one_that_runs_and_so_does_a_logout() {
    for which in [ProtectedKind::TypeScriptSigned, ProtectedKind::FastMcp] {
        let scene = Scene::new(which, &json!({}));
        let mut watch = Running::of(&mut scene.command(&["list", "--watch"]));
        watch.wait_for("peer: needs");
        let (output, _) = scene.log_in(&["login", "peer"], "alice");
        output.expect_code(0);
        watch.wait_for("peer: connected");
        scene.run(&["logout", "peer"]).expect_code(0);
        watch.wait_for("peer: needs");
        watch.signal(Signal::INT);
        let (code, _, stderr) = watch.end();
        assert_eq!((code, stderr.as_str()), (Some(130), ""));
    }
}

#[test]
fn a_login_that_is_broken_off_leaves_nothing_listening_and_no_login() {
    let scene = Scene::new(ProtectedKind::FastMcp, &json!({}));
    let mut login = Speaking::start(scene.command(&["login", "peer", "--no-browser"]));
    let page = login.wait_for("http://").trim().to_owned();
    let back = url::Url::parse(&page).unwrap();
    let back = back.query_pairs().find(|(name, _)| name == "redirect_uri");
    let back = back.unwrap().1.into_owned();
    assert!(toolway_testkit::browser::fetch(&back).is_some(), "{back}");
    login.signal(Signal::INT);
    let output = login.end();
    assert_eq!(output.code, Some(130), "{output}");
    assert_eq!(toolway_testkit::browser::fetch(&back), None);
    assert_eq!(scene.state(), "needs-auth");
    // The page is still open in the browser: it ends where nobody listens, and nothing happens.
    let late = TestBrowser::new().log_in(&page, &[("login", "alice"), ("password", "any")]);
    assert_eq!(late, None);
    assert_eq!(scene.state(), "needs-auth");
}

/// What a person does who says no.
#[test]
fn declining_says_so_on_both_sides() {
    let scene = Scene::new(ProtectedKind::TypeScriptSigned, &json!({}));
    let (output, page) = scene.visit(&["login", "peer"], |url| {
        let mut browser = TestBrowser::new();
        let page = browser.open(url).unwrap();
        let (before, _) = page.body.split_once("\">[ Cancel ]</a>").unwrap();
        let cancel = before.rsplit('"').next().unwrap();
        browser.open(cancel).unwrap()
    });
    assert!(page.body.contains("You declined the login"), "{page:?}");
    let output = output.expect_code(5);
    assert!(output.stderr.contains("declined"), "{output}");
    assert_eq!(scene.state(), "needs-auth");
}

#[test]
fn what_is_wrong_with_the_server_is_said_in_place_of_the_login() {
    let scene = Scene::new(ProtectedKind::FastMcp, &json!({}));
    let typo = scene.run(&["login", "pear"]).expect_code(3);
    assert!(typo.stderr.contains("did you mean `peer`?"), "{typo}");

    let nowhere = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/mcp", listener.local_addr().unwrap())
    };
    scene.run(&["add", "down", &nowhere]).expect_code(0);
    let down = scene.run(&["login", "down"]).expect_code(4);
    assert!(down.stderr.contains("server `down` failed"), "{down}");
    assert!(down.stderr.contains("Connection refused"), "{down}");
    assert!(!down.stderr.contains("--no-browser"), "{down}");

    let wrong = scene.peer.url().replace("/mcp", "/nope");
    scene.run(&["add", "wrong", &wrong]).expect_code(0);
    let wrong = scene.run(&["login", "wrong"]).expect_code(4);
    assert!(wrong.stderr.contains("HTTP 404"), "{wrong}");
    assert!(!wrong.stderr.contains("--no-browser"), "{wrong}");
}

#[test]
fn a_person_at_a_terminal_is_told_what_is_waited_for() {
    let scene = Scene::new(ProtectedKind::TypeScriptSigned, &json!({}));
    let mut terminal = TerminalProgram::take(&mut scene.command(&["login"]));
    terminal.expect("opening a login page of 127.0.0.1 in your browser");
    terminal.expect("waiting for the browser to come back");
    TestBrowser::new().log_in(&scene.opened(), &[("login", "alice"), ("password", "any")]);
    let left = terminal.leave();
    assert_eq!(left.code, Some(0), "{}", left.shown);
    assert_eq!(
        left.stdout,
        "logged in to `peer` as `default`, renews itself\n"
    );
}

/// What the provider says to a refresh token.
fn refresh(login: &Value) -> Value {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let answer = post(
        &word(&login["token_endpoint"]),
        &[
            ("grant_type", "refresh_token"),
            ("client_id", &word(&login["client"]["client_id"])),
            ("refresh_token", &word(&login["tokens"]["refresh"])),
        ],
    );
    serde_json::from_str(&answer.unwrap().body).unwrap()
}
