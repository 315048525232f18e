//! Several accounts at one server: `oauth.account` from `add` to `logout`, as a person sees it.

use insta::assert_snapshot;
use serde_json::json;
use toolway_testkit::authority::AuthoritySettings;

use crate::login::Scene;
use crate::support::servers;

/// A scene whose one server uses an account.
fn scene() -> Scene {
    let scene = Scene::new(AuthoritySettings::default());
    scene.home.write_settings(servers(&[]));
    let url = scene.authority.resource().to_owned();
    let words = ["add", "office", &url, "-s", "user", "--account", "my work"];
    scene.run(&words).expect_code(0);
    scene
}

#[test]
fn an_entry_that_names_an_account_uses_its_login_and_no_other() {
    let scene = scene();
    let home = scene.home.home().display().to_string();
    let run = |words: &[&str]| scene.shown(&scene.run(words)).replace(&home, "[HOME]");
    let log_in = |words: &[&str]| scene.shown(&scene.log_in(words));
    assert_snapshot!(run(&["tools", "office"]), @"
    exit: 5
    ----- stdout
    ----- stderr
    error: server `office` wants a login first
    hint: log in with `toolway login office --account 'my work'`
    ");
    assert_snapshot!(run(&["get", "office"]), @r#"
    exit: 0
    ----- stdout
    office
      scope      user
      source     [HOME]/.config/toolway/settings.json:3
      verdict    admitted
      login      `my work`: nobody is logged in
      type       http
      url        [RESOURCE]
      oauth      {"account":"my work"}
    ----- stderr
    hint: log in with `toolway login office --account 'my work'`
    "#);
    assert_snapshot!(run(&["list"]), @"
    exit: 0
    ----- stdout
    NAME    SCOPE  TYPE  STATE         TOOLS  DETAIL
    office  user   http  ! needs-auth  -      wants a login as `my work` first
    ----- stderr
    hint: log in to `office` with `toolway login office --account 'my work'`
    ");
    // Another account's login changes nothing for this entry.
    let output = log_in(&["login", "office", "--account", "home"]);
    assert_snapshot!(output, @"
    exit: 0
    ----- stdout
    logged in to `office` as `home`, renews itself
    ----- stderr
    opening a login page of 127.0.0.1 in your browser
    waiting for the browser to come back, for 5 minutes at most; if the page shows an error, press Ctrl-C and log in again
    `office` goes on as `my work`, which its entry names
    hint: to use this login, set `oauth.account` to `home`
    ");
    assert_snapshot!(run(&["tools", "office"]), @"
    exit: 5
    ----- stdout
    ----- stderr
    error: server `office` wants a login first
    hint: log in with `toolway login office --account 'my work'`
    ");
    let output = log_in(&["login", "office"]);
    assert_snapshot!(output, @"
    exit: 0
    ----- stdout
    logged in to `office` as `my work`, renews itself
    ----- stderr
    opening a login page of 127.0.0.1 in your browser
    waiting for the browser to come back, for 5 minutes at most; if the page shows an error, press Ctrl-C and log in again
    ");
    scene.run(&["tools", "office"]).expect_code(0);
    assert_snapshot!(run(&["get", "office"]), @r#"
    exit: 0
    ----- stdout
    office
      scope      user
      source     [HOME]/.config/toolway/settings.json:3
      verdict    admitted
      login      `my work` renews itself
      type       http
      url        [RESOURCE]
      oauth      {"account":"my work"}
    ----- stderr
    "#);
    assert_snapshot!(run(&["list"]), @"
    exit: 0
    ----- stdout
    NAME    SCOPE  TYPE  STATE        TOOLS  DETAIL
    office  user   http  ✔ connected  1      protocol 2026-07-28; login `my work` renews itself, `home` renews itself (not used)
    ----- stderr
    ");
    // How wide a column is depends on a port.
    let status = run(&["auth", "status"]);
    let lines = status.lines().map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.join(" ")
    });
    assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @"
    exit: 0
    ----- stdout
    SERVER ACCOUNT ISSUER LASTS KEPT IN USED
    office home [ISSUER] renews itself file-with-key no
    office my work [ISSUER] renews itself file-with-key yes
    ----- stderr
    ");
    let shown = scene.run(&["get", "office", "--json"]).json();
    assert_eq!(shown["account"], "my work");
    assert_eq!(shown["login"]["account"], "my work");
    let listed = scene.run(&["list", "--json"]).json();
    assert_eq!(listed["servers"][0]["account"], "my work");
    let logins = &listed["servers"][0]["logins"];
    assert_eq!(logins[0]["account"], "my work");
    assert_eq!(logins[0]["inUse"], true);
    assert_eq!(logins[1]["account"], "home");
    assert_eq!(logins[1]["inUse"], false);
    let logins = scene.run(&["auth", "status", "--json"]).json();
    let used = logins["logins"].as_array().unwrap().iter();
    assert_eq!(used.filter(|login| login["inUse"] == true).count(), 1);
    // Without an account named, every login of the server is given up.
    assert_snapshot!(run(&["logout", "office"]), @"
    exit: 0
    ----- stdout
    logged out of `office` as `home`
    logged out of `office` as `my work`
    ----- stderr
    ");
    assert_eq!(scene.authority.valid_refresh_tokens(), [""; 0]);
}

#[test]
fn an_account_is_a_word_and_belongs_to_a_server_reached_by_url() {
    let scene = Scene::new(AuthoritySettings::default());
    let run = |words: &[&str]| scene.shown(&scene.run(words));
    assert_snapshot!(run(&["add", "x", "--account", "work", "--", "cat"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: `--account` is only for a server reached by URL
    hint: leave `--account` out, or see `toolway add --help` for what `x` can take
    ");
    assert_snapshot!(run(&["add", "x", "https://a.example", "--account", " "]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: invalid value ' ' for '--account <NAME>': must not be empty
    hint: see `toolway add --help`
    ");
    let output = run(&["login", "shop", "--account", "wo\u{200B}rk"]);
    assert_snapshot!(output, @"
    exit: 2
    ----- stdout
    ----- stderr
    error: invalid value 'work' for '--account <NAME>': has an invisible character (U+200B)
    hint: see `toolway login --help`
    ");
    let oauth = json!({ "account": "work " });
    let entry = json!({ "type": "http", "url": "https://a.example", "oauth": oauth });
    scene.home.write_settings(servers(&[("shop", entry)]));
    let home = scene.home.home().display().to_string();
    let output = run(&["tools", "shop"]).replace(&home, "[HOME]");
    assert_snapshot!(output, @r#"
    exit: 3
    ----- stdout
    ----- stderr
    error: server `shop` cannot be used: `oauth.account` has white space at its edge
      at [HOME]/.config/toolway/settings.json:7
    hint: write your word for the account, e.g. `"account": "work"`
    "#);
}
