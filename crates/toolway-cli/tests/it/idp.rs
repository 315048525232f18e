//! `idp login`, `logout`, `status` and servers with cross-app access at the command line: one
//! window for all of them, and what nobody ever sees of it.

use std::process::Command;

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::authority::{
    Authority, AuthoritySettings, CANARY, KnownClient, assert_no_secret_below, holds_secret,
};
use toolway_testkit::browser::{browse, fetch};
use toolway_testkit::{CommandOutput, TempHome};

use crate::visiting::{Speaking, visit, with_browser};

struct Scene {
    home: TempHome,
    idp: Authority,
    servers: Vec<(&'static str, Authority)>,
}

impl Scene {
    fn new(names: &[&'static str]) -> Self {
        let secret = format!("{CANARY}-provider");
        let idp = Authority::start(AuthoritySettings {
            clients: vec![KnownClient {
                id: "at-the-provider".to_owned(),
                secret: Some(secret.clone()),
                ..KnownClient::default()
            }],
            assertion_client: Some("at-the-server".to_owned()),
            device_interval: 1,
            ..AuthoritySettings::identity_provider()
        });
        let server = || {
            Authority::start(AuthoritySettings {
                trusted: vec![idp.issuer().to_owned()],
                clients: vec![KnownClient {
                    id: "at-the-server".to_owned(),
                    ..KnownClient::default()
                }],
                ..AuthoritySettings::default()
            })
        };
        let servers = names.iter().map(|name| (*name, server())).collect();
        let home = TempHome::new();
        let scene = Self { home, idp, servers };
        scene.settings(&json!({}));
        scene.type_in(&["vault", "set", "idp"], &secret);
        scene
    }

    /// Settings with the provider, the servers, and these.
    fn settings(&self, more: &Value) {
        let entries = self.servers.iter().map(|(name, server)| {
            let mut entry = server.entry();
            entry["oauth"] = json!({ "clientId": "at-the-server", "xaa": true });
            ((*name).to_owned(), entry)
        });
        let mut settings = json!({
            "mcpServers": Value::Object(entries.collect()),
            "identityProvider": {
                "issuer": self.idp.issuer(),
                "clientId": "at-the-provider",
                "clientSecret": "${keychain:idp}",
            },
        });
        for (key, value) in more.as_object().unwrap() {
            settings[key] = value.clone();
        }
        self.home.write_settings(settings.to_string());
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = with_browser(&self.home, words);
        command.env("TOOLWAY_ENABLE_XAA", "1");
        command
    }

    fn run(&self, words: &[&str]) -> CommandOutput {
        self.home.run(&mut self.command(words))
    }

    fn type_in(&self, words: &[&str], text: &str) {
        let mut command = self.command(words);
        let output = self.home.run_with_input(&mut command, &format!("{text}\n"));
        output.expect_code(0);
    }

    /// Runs a command that opens a page, and does what a person would.
    fn log_in(&self, words: &[&str]) -> CommandOutput {
        visit(&self.home, &mut self.command(words), browse).0
    }

    fn shown(&self, output: &CommandOutput) -> String {
        let text = output.to_string();
        assert!(!holds_secret(&text), "{text}");
        let mut text = text.replace(self.idp.issuer(), "[IDP]");
        for (_, server) in &self.servers {
            text = text.replace(server.issuer(), "[ISSUER]");
        }
        let home = self.home.home().display().to_string();
        text.replace(&home, "[HOME]")
    }

    /// No secret in any file, those of the vault included: they are sealed.
    fn assert_nothing_leaked(&self) {
        assert_no_secret_below(self.home.home());
    }
}

#[test]
fn sec_45_one_login_serves_three_servers_and_shows_no_secret() {
    let scene = Scene::new(&["one", "two", "three"]);
    assert_snapshot!(scene.shown(&scene.run(&["tools", "one"])), @"
    exit: 5
    ----- stdout
    ----- stderr
    error: server `one` wants a login first
    hint: cannot log in to `one`: nobody is logged in at the identity provider [IDP]: run `toolway idp login`
    ");
    assert_snapshot!(scene.shown(&scene.run(&["idp", "status"])), @"
    exit: 0
    ----- stdout
    issuer    [IDP]
    client    at-the-provider
    settings  [HOME]/.config/toolway/settings.json:1
    login     nobody is logged in
    kept in   file-with-key
    servers   one, three, two
    ----- stderr
    hint: log in with `toolway idp login`
    ");
    let output = scene.log_in(&["idp", "login", "-v"]).expect_code(0);
    assert!(!holds_secret(&output.to_string()), "{output}");
    assert!(output.stdout.starts_with("logged in at http"), "{output}");
    assert!(
        output.stdout.ends_with("as `person-1`, renews itself\n"),
        "{output}"
    );
    let listed = scene.shown(&scene.run(&["list"]).expect_code(0));
    assert_eq!(listed.matches("✔ connected").count(), 3, "{listed}");
    let tools = scene.shown(&scene.run(&["tools"]).expect_code(0));
    for name in ["one", "two", "three"] {
        assert!(tools.contains(&format!("mcp__{name}__whoami")), "{tools}");
    }
    let status = scene.run(&["idp", "status", "--json"]).json();
    assert_eq!(status["loggedIn"], true);
    assert_eq!(status["subject"], "person-1");
    assert_eq!(status["renews"], true);
    assert_eq!(
        status["servers"][0],
        json!({ "name": "one", "requiredBy": null })
    );
    let logins = scene.run(&["auth", "status", "--json"]).json();
    assert_eq!(logins["logins"].as_array().unwrap().len(), 3);
    assert_eq!(logins["logins"][0]["how"], "cross-app");
    assert_eq!(logins["logins"][0]["renews"], true);
    for words in [
        &["auth", "status"][..],
        &["call", "one", "whoami"],
        &["logs", "one", "--protocol", "--json"],
        &["audit", "--json"],
        &["get", "one"],
        &["doctor", "--json"],
        &["vault", "list", "--json"],
        &["idp", "status"],
    ] {
        scene.shown(&scene.run(words));
    }
    assert_eq!(scene.idp.report().authorizations, 1);
    for (name, server) in &scene.servers {
        assert_eq!(server.report().authorizations, 0, "{name}");
        assert_eq!(server.report().attacker_requests, 0, "{name}");
    }
    let out = scene.shown(&scene.run(&["idp", "logout"]).expect_code(0));
    assert_eq!(out.matches("logged out of").count(), 3, "{out}");
    assert!(
        out.contains("logged out at [IDP], and the login is revoked there\n"),
        "{out}"
    );
    assert_eq!(scene.idp.valid_refresh_tokens(), [""; 0]);
    for (name, server) in &scene.servers {
        assert_eq!(server.valid_access_tokens(), [""; 0], "{name}");
        scene.run(&["tools", name]).expect_code(5);
    }
    assert_snapshot!(scene.shown(&scene.run(&["idp", "logout"])), @"
    exit: 0
    ----- stdout
    ----- stderr
    nobody is logged in at [IDP]
    ");
    scene.assert_nothing_leaked();
}

#[test]
fn a_login_to_one_server_is_the_login_for_all() {
    let scene = Scene::new(&["one", "two"]);
    let output = scene.log_in(&["login", "one"]).expect_code(0);
    assert_eq!(
        output.stdout,
        "logged in to `one` as `default`, renews itself\n"
    );
    scene.run(&["tools", "two"]).expect_code(0);
    // Whoever is known is not asked again.
    let output = scene.run(&["login", "two"]).expect_code(0);
    assert_eq!(
        output.stdout,
        "logged in to `two` as `default`, renews itself\n"
    );
    let output = scene.run(&["logout", "two"]).expect_code(0);
    assert!(output.stderr.contains("`toolway idp logout`"), "{output}");
    scene.run(&["tools", "two"]).expect_code(0);
    assert_eq!(scene.idp.report().authorizations, 1);
}

#[test]
fn on_another_device_and_by_pasting_it_works_the_same() {
    let scene = Scene::new(&["one"]);
    let output = scene.run(&["idp", "login", "--device"]).expect_code(0);
    assert!(output.stderr.contains("type the code"), "{output}");
    scene.run(&["tools", "one"]).expect_code(0);

    let mut login = Speaking::start(scene.command(&["idp", "login", "--no-browser"]));
    let page = login.wait_for("  http");
    let ended = fetch(page.trim()).unwrap().location.expect("sent back");
    login.type_line("http://localhost/callback?code=x&state=wrong");
    login.type_line(&ended);
    let output = login.end().expect_code(0);
    assert!(output.stderr.contains("that cannot be used"), "{output}");
    assert!(!holds_secret(&output.to_string()), "{output}");
    assert_eq!(scene.idp.report().authorizations, 1);
}

#[test]
fn what_is_not_configured_and_what_policy_forbids_is_said() {
    let scene = Scene::new(&["one"]);
    scene.home.write_settings("{}");
    assert_snapshot!(scene.shown(&scene.run(&["idp", "login"])), @r#"
    exit: 3
    ----- stdout
    ----- stderr
    error: no identity provider is configured
    hint: add it to your settings: `"identityProvider": {"issuer": "https://login.example.com", "clientId": "…"}`
    "#);
    scene.settings(&json!({ "identityProvider": { "issuer": "http://login.example" } }));
    assert_snapshot!(scene.shown(&scene.run(&["idp", "status"])), @r#"
    exit: 3
    ----- stdout
    ----- stderr
    error: [HOME]/.config/toolway/settings.json:1: `identityProvider.issuer` must begin with `https://`; `http://` only leads to this machine
    hint: write e.g. `"https://login.example.com"`
    error: [HOME]/.config/toolway/settings.json:1: `identityProvider` lacks `clientId`
    hint: mend it at that place, then check with `toolway doctor`
    error: no identity provider is configured
    hint: add it to your settings: `"identityProvider": {"issuer": "https://login.example.com", "clientId": "…"}`
    "#);
    scene.home.write(
        scene.home.system().join("managed-settings.json"),
        r#"{"requireCrossAppAccess": true}"#,
    );
    let output = scene.run(&["login", "one"]).expect_code(5);
    assert!(output.stderr.contains("managed-settings.json"), "{output}");
    assert!(output.stderr.contains("no identity provider"), "{output}");
    assert_eq!(scene.servers[0].1.report().authorizations, 0);
}
