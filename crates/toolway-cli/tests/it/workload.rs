//! Machines that have an identity of their own: a server is called without anybody who logs in.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::authority::{
    Authority, AuthoritySettings, CANARY, KnownClient, RequestedParty, TestKey, holds_secret,
};
use toolway_testkit::marked;
use toolway_testkit::{CommandOutput, TempHome};

use crate::support::{command, servers};

const PLATFORM: &str = "https://platform.example";

struct Scene {
    home: TempHome,
    authority: Authority,
    key: TestKey,
}

impl Scene {
    fn new() -> Self {
        let key = TestKey::new();
        let authority = Authority::start(AuthoritySettings {
            platforms: BTreeMap::from([(PLATFORM.to_owned(), key.jwks())]),
            clients: vec![KnownClient {
                id: "runner".to_owned(),
                ..KnownClient::default()
            }],
            ..AuthoritySettings::default()
        });
        let home = TempHome::new();
        // The platform keeps its token there.
        home.may_hold_secrets(home.home().join("token"));
        Self {
            home,
            authority,
            key,
        }
    }

    fn entry(&self, workload: &Value) -> Value {
        let mut entry = self.authority.entry();
        entry["oauth"] = json!({ "clientId": "runner", "workload": workload });
        entry
    }

    fn settings(&self, workload: &Value) {
        self.home
            .write_settings(servers(&[("shop", self.entry(workload))]));
    }

    /// A token of the platform, one of several.
    fn token(&self, audience: &str, number: u32) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let ends = now + Duration::from_mins(10);
        self.key.sign(
            "JWT",
            &json!({ "iss": PLATFORM, "sub": "pod", "aud": audience, "number": number, "exp": ends.as_secs() }),
        )
    }

    fn call(&self, variables: &[(&str, &str)]) -> CommandOutput {
        self.run(&["call", "shop", "whoami"], variables)
    }

    fn run(&self, words: &[&str], variables: &[(&str, &str)]) -> CommandOutput {
        let mut command = command(&self.home, words);
        command.env("TOOLWAY_VAULT", "file");
        command.envs(variables.iter().copied());
        let output = self.home.run(&mut command);
        assert!(!holds_secret(&output.to_string()), "{output}");
        output
    }

    /// The tokens of the platform that the authorization server was shown.
    fn shown(&self) -> Vec<String> {
        let seen = self.authority.seen_at(RequestedParty::Issuer, "/token");
        let shown = seen.iter().filter_map(|seen| seen.param("assertion"));
        shown.map(str::to_owned).collect()
    }
}

#[test]
fn a_token_in_a_file_is_the_login_and_is_read_again_for_each_renewal() {
    let scene = Scene::new();
    let file = scene.home.home().join("token");
    scene.settings(&json!({ "tokenFile": "~/token" }));
    let mut tokens = Vec::new();
    for number in 0..2 {
        let token = scene.token(scene.authority.issuer(), number);
        fs::write(&file, format!("{token}\n")).unwrap();
        tokens.push(token);
        let output = scene.call(&[]).expect_code(0);
        assert!(output.stdout.contains("client=runner"), "{output}");
        scene.authority.expire_access_tokens();
    }
    assert_eq!(scene.shown(), tokens);
    // The file is gone: the message says so, and the next one that is there is used at once.
    fs::remove_file(&file).unwrap();
    let output = scene.call(&[]);
    assert_ne!(output.code, Some(0), "{output}");
    assert!(
        output.stderr.contains("the workload's token in `"),
        "{output}"
    );
    fs::write(&file, scene.token(scene.authority.issuer(), 3)).unwrap();
    scene.call(&[]).expect_code(0);
    assert_eq!(
        scene
            .authority
            .seen_at(RequestedParty::Issuer, "/authorize")
            .len(),
        0
    );
    assert_eq!(scene.authority.report().attacker_requests, 0);
}

#[test]
fn a_token_in_a_variable_or_from_a_command_is_the_login() {
    let scene = Scene::new();
    let token = scene.token(scene.authority.issuer(), 0);
    scene.settings(&json!({ "token": "${CI_TOKEN}" }));
    let output = scene.call(&[("CI_TOKEN", &token)]).expect_code(0);
    assert!(output.stdout.contains("client=runner"), "{output}");
    scene
        .run(&["logout", "shop"], &[("CI_TOKEN", &token)])
        .expect_code(0);
    fs::write(scene.home.home().join("token"), &token).unwrap();
    scene.settings(&json!({ "token": "${cmd:cat ~/token}" }));
    scene.call(&[]).expect_code(0);
    assert_eq!(scene.shown(), [token.clone(), token]);
}

#[test]
fn a_token_for_somebody_else_stays_here_and_the_message_says_what_to_do() {
    let scene = Scene::new();
    let file = scene.home.home().join("token");
    fs::write(&file, scene.token("https://other.example", 0)).unwrap();
    scene.settings(&json!({ "tokenFile": file }));
    let output = scene.call(&[]);
    let said = output
        .to_string()
        .replace(scene.authority.issuer(), "[ISSUER]");
    assert_snapshot!(said, @"
    exit: 5
    ----- stdout
    ----- stderr
    error: server `shop` wants a login first
    hint: cannot log in to `shop`: the workload's token is not for [ISSUER] and was not sent there: give it that audience
    ");
    assert_eq!(scene.shown(), [""; 0]);
}

/// Where GitHub Actions gives out tokens: to whom shows the right word, for whom is asked for.
fn github(scene: &Scene, requests: usize) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!(
        "http://{}/token?api-version=2.0",
        listener.local_addr().unwrap()
    );
    let token = scene.token(scene.authority.issuer(), 7);
    let serve = move || {
        let mut seen = Vec::new();
        for _ in 0..requests {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head: Vec<String> = lines
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let is_job = head
                .iter()
                .any(|line| line.eq_ignore_ascii_case(&format!("authorization: Bearer {CANARY}")));
            let body = json!({ "count": 1, "value": token }).to_string();
            let status = if is_job { "200 OK" } else { "401 Unauthorized" };
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            )
            .unwrap();
            seen.push(head[0].clone());
        }
        seen
    };
    (url, std::thread::spawn(serve))
}

#[test]
fn a_job_of_github_actions_asks_for_its_token() {
    let scene = Scene::new();
    scene.settings(&json!({ "githubActions": true }));
    let (url, server) = github(&scene, 2);
    let wrong = [
        ("ACTIONS_ID_TOKEN_REQUEST_URL", url.as_str()),
        ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", marked!("wrong-")),
    ];
    let output = scene.call(&wrong);
    assert!(
        output
            .stderr
            .contains("give the job `permissions: id-token: write`"),
        "{output}"
    );
    let right = [wrong[0], ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", CANARY)];
    scene.call(&right).expect_code(0);
    let issuer = scene
        .authority
        .issuer()
        .replace(':', "%3A")
        .replace('/', "%2F");
    let asked = format!("GET /token?api-version=2.0&audience={issuer} HTTP/1.1");
    assert_eq!(server.join().unwrap(), [asked.clone(), asked]);
    assert_eq!(scene.shown().len(), 1);
}

#[test]
fn an_entry_is_added_by_flags_and_not_to_a_repository() {
    let scene = Scene::new();
    let url = scene.authority.resource().to_owned();
    let file = scene.home.home().join("token");
    let token = scene.token(scene.authority.issuer(), 0);
    fs::write(&file, &token).unwrap();
    let file = file.to_str().unwrap();
    let words = [
        "add",
        "shop",
        &url,
        "--client-id",
        "runner",
        "--workload-token-file",
        file,
        "--scope",
    ];
    let with = |scope| words.iter().copied().chain([scope]).collect::<Vec<_>>();
    let output = scene.run(&with("project"), &[]).expect_code(2);
    assert!(
        output
            .stderr
            .contains("a project's file cannot say where this machine's identity is"),
        "{output}"
    );
    let output = scene.run(&with("user"), &[]).expect_code(0);
    assert!(!output.stderr.contains("warning"), "{output}");
    scene.call(&[]).expect_code(0);
    assert_eq!(scene.shown(), [token]);
}

/// Client credentials without a person: the secret is named by the entry, nothing is typed.
#[test]
fn a_client_whose_secret_the_entry_names_logs_itself_in() {
    let secret = format!("{CANARY}-robot");
    let authority = Authority::start(AuthoritySettings {
        clients: vec![KnownClient {
            id: "robot".to_owned(),
            secret: Some(secret.clone()),
            ..KnownClient::default()
        }],
        ..AuthoritySettings::default()
    });
    let scene = Scene {
        authority,
        ..Scene::new()
    };
    let mut entry = scene.authority.entry();
    entry["oauth"] = json!({ "clientId": "robot", "clientSecret": "${ROBOT}" });
    scene.home.write_settings(servers(&[("shop", entry)]));
    let robot = [("ROBOT", secret.as_str())];
    let words = ["login", "shop", "--client-credentials"];
    scene.run(&words, &robot).expect_code(0);
    let output = scene.call(&robot).expect_code(0);
    assert!(output.stdout.contains("client=robot"), "{output}");
    scene.authority.expire_access_tokens();
    scene.call(&robot).expect_code(0);
    assert_eq!(scene.authority.report().granted("client_credentials"), 2);
}
