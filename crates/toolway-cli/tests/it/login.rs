//! `login`, `logout`, `auth status`: the whole way against an authorization server, and what
//! nobody ever sees of it.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use toolway_testkit::authority::{
    Authority, KnownClient, Party, Settings, SigningKey, holds_secret,
};
use toolway_testkit::browser::browse;
use toolway_testkit::{CommandOutput, TempHome, eventually_blocking, marked};

use crate::support::{command, servers, toolway};

pub(crate) struct Scene {
    pub(crate) home: TempHome,
    pub(crate) authority: Authority,
}

impl Scene {
    pub(crate) fn new(settings: Settings) -> Self {
        let home = TempHome::new();
        let authority = Authority::start(settings);
        home.write_settings(servers(&[("shop", authority.entry())]));
        // A browser that leaves the address where the test finds it.
        let path = home.write(
            home.home().join("browser"),
            "#!/bin/sh\nprintf '%s' \"$1\" > \"$HOME/page.tmp\" && mv \"$HOME/page.tmp\" \"$HOME/page\"\n",
        );
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        Self { home, authority }
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = command(&self.home, words);
        command
            .env("TOOLWAY_VAULT", "file")
            .env("BROWSER", self.home.home().join("browser"));
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> CommandOutput {
        self.home.run(&mut self.command(words))
    }

    /// Runs a command that opens a page, and does what a person would.
    pub(crate) fn log_in(&self, words: &[&str]) -> CommandOutput {
        let page = self.home.home().join("page");
        let _ = fs::remove_file(&page);
        let waiting = page.clone();
        let person = std::thread::spawn(move || {
            for _ in 0..6000 {
                if let Ok(url) = fs::read_to_string(&waiting) {
                    return browse(&url);
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            panic!("no page was opened");
        });
        let output = self.run(words);
        person.join().unwrap();
        output
    }

    pub(crate) fn shown(&self, output: &CommandOutput) -> String {
        let text = output.to_string();
        assert!(!holds_secret(&text), "{text}");
        let text = text.replace(self.authority.issuer(), "[ISSUER]");
        text.replace(self.authority.resource(), "[RESOURCE]")
    }

    /// No secret in any file, those of the vault included: they are sealed.
    pub(crate) fn assert_nothing_leaked(&self) {
        let mut places = vec![self.home.home().to_path_buf()];
        while let Some(place) = places.pop() {
            for entry in fs::read_dir(place).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    places.push(path);
                } else {
                    let text = fs::read(&path).unwrap_or_default();
                    assert!(
                        !holds_secret(&String::from_utf8_lossy(&text)),
                        "{}",
                        path.display()
                    );
                }
            }
        }
    }
}

#[test]
fn sec_47_a_login_from_its_beginning_to_its_end_shows_no_secret() {
    let scene = Scene::new(Settings::default());
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
    hint: log in with `toolway login shop`
    ");
    assert_eq!(scene.authority.report().attacker_requests, 0);
}

#[test]
fn the_address_where_the_browser_ended_can_be_pasted() {
    let scene = Scene::new(Settings::default());
    let mut command = scene.command(&["login", "--no-browser"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut page = None;
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    for line in lines.by_ref().map_while(Result::ok) {
        if line.trim().starts_with("http") {
            page = Some(line.trim().to_owned());
            break;
        }
    }
    let steps = toolway_testkit::browser::fetch(&page.expect("a page")).unwrap();
    let ended = steps.location.expect("sent back");
    writeln!(child.stdin.take().unwrap(), "{ended}").unwrap();
    let output = marked::output_of(child);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, "logged in to `shop` as `default`, renews itself\n");
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(!holds_secret(&rest.join("\n")), "{rest:?}");
}

#[test]
fn a_program_logs_in_as_itself_with_a_secret_that_is_no_argument() {
    let scene = Scene::new(Settings {
        clients: vec![KnownClient {
            id: "bot".to_owned(),
            secret: Some(format!("s-{}", toolway_testkit::authority::CANARY)),
            ..KnownClient::default()
        }],
        ..Settings::default()
    });
    let words = [
        "login",
        "shop",
        "--client-credentials",
        "--client-id",
        "bot",
    ];
    let output = scene.run(&words).expect_code(5);
    assert!(
        output.stderr.contains("`oauth.clientId` and its secret"),
        "{output}"
    );
    let mut command = scene.command(&words);
    command.env(
        "MCP_CLIENT_SECRET",
        format!("s-{}", toolway_testkit::authority::CANARY),
    );
    let output = scene.home.run(&mut command).expect_code(0);
    assert!(!holds_secret(&output.to_string()), "{output}");
    scene.run(&["tools", "shop"]).expect_code(0);
    scene.assert_nothing_leaked();
}

#[test]
fn what_cannot_be_logged_in_to_says_so() {
    let scene = Scene::new(Settings::default());
    scene.home.write_settings(servers(&[
        ("local", json!({ "command": "cat" })),
        ("written", json!({
            "type": "http", "url": scene.authority.resource(), "headers": { "Authorization": "Bearer x" }
        })),
    ]));
    assert_snapshot!(scene.shown(&scene.run(&["login", "written"])), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: server `written` has an `Authorization` header in its entry, which is its login: take it out to log in
    hint: see its entry with `toolway get written`
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
    let scene = Scene::new(Settings::default());
    scene.log_in(&["login", "shop"]).expect_code(0);
    scene.authority.expire_access_tokens();
    let refreshes = || {
        let seen = scene.authority.seen_at(Party::Issuer, "/token");
        let grants = seen.iter().filter_map(|seen| seen.param("grant_type"));
        grants.filter(|grant| *grant == "refresh_token").count()
    };
    let held = scene.authority.hold("/token");
    let call = scene
        .command(&["call", "shop", "echo", "text=hi"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually_blocking(|| match refreshes() {
        0 => Err("nothing was sent".to_owned()),
        _ => Ok(()),
    });
    kill_process(Pid::from_child(&call), Signal::INT).unwrap();
    drop(held);
    let output = call.wait_with_output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    // The next run has what the authorization server gave.
    scene.run(&["tools", "shop"]).expect_code(0);
    assert_eq!(refreshes(), 1);
    assert_eq!(scene.authority.report().families_revoked, 0);
}

#[test]
fn a_login_lies_in_plain_text_only_when_it_is_asked_for() {
    let scene = Scene::new(Settings::default());
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
    let scene = Scene::new(Settings {
        device_polls: None,
        device_interval: 1,
        ..Settings::default()
    });
    let mut command = scene.command(&["login", "shop", "--device"]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.next().expect("a line").unwrap();
    let (page, rest) = line
        .strip_prefix("on any device, open ")
        .and_then(|rest| rest.split_once(" and type the code "))
        .expect(&line);
    assert!(page.starts_with(scene.authority.issuer()), "{line}");
    let (code, rest) = rest.split_once(' ').expect(&line);
    assert_eq!(rest, "(good for 10 minutes)");
    assert!(scene.authority.decide_device(code, true), "{line}");
    let output = marked::output_of(child);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, "logged in to `shop` as `default`, renews itself\n");
    assert!(output.status.success());
    scene.run(&["tools", "shop"]).expect_code(0);
    scene.assert_nothing_leaked();
}

#[test]
fn a_program_logs_in_as_itself_with_a_key_and_renews_by_it() {
    let key = SigningKey::new();
    let scene = Scene::new(Settings {
        clients: vec![KnownClient {
            id: "bot".to_owned(),
            method: Some("private_key_jwt".to_owned()),
            jwks: Some(key.jwks()),
            ..KnownClient::default()
        }],
        ..Settings::default()
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
