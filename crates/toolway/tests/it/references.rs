//! Secrets that an entry names, through the host: the server gets them, and nobody else sees them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Value, json};
use toolway::auth::{AuthOptions, LoginOptions, LoginProblem};
use toolway::journal::Journal;
use toolway::{Host, HostOptions};
use toolway_auth::login::LoginMethod;
use toolway_auth::vault::{StorageChoice, Vault, VaultKey, VaultOptions};
use toolway_config::{Flags, Plan};
use toolway_testkit::authority::{
    Authority, AuthoritySettings, KnownClient, RequestedParty, holds_secret,
};
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_types::{ConnectionState, Secret};

use crate::helper::walk;
use crate::http::{Server, document, reply};
use crate::support::*;

/// With characters that an address spells otherwise.
const CANARY: &str = marked!("", "/5b:d0 41e");
const ESCAPED: &str = marked!("", "%2F5b:d0%2041e");

struct Scene {
    home: Home,
}

impl Scene {
    async fn new(secrets: &[(&str, &str)]) -> Self {
        let scene = Self { home: Home::new() };
        for (name, value) in secrets {
            let (key, value) = (VaultKey::named(*name), Secret::new(*value));
            scene.vault().write(&key, &value).await.expect("kept");
        }
        scene
    }

    fn vault(&self) -> Vault {
        Vault::open(VaultOptions {
            storage: StorageChoice::File,
            ..VaultOptions::new(self.home.path().join("vault"))
        })
    }

    /// What a person's own settings say.
    fn plan(&self, servers: &Value) -> Plan {
        let file = self.home.path().join("home/.config/toolway/settings.json");
        fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        fs::write(file, json!({ "mcpServers": servers }).to_string()).expect("written");
        self.home.plan_of(&Flags::default(), &[])
    }

    async fn host(&self, servers: &Value) -> Host {
        let options = HostOptions {
            secrets: Some(self.vault()),
            auth: AuthOptions {
                vault: Some(self.vault()),
                ..AuthOptions::default()
            },
            journal: Some(Journal::in_directory(self.home.path().join("logs"))),
            ..self.home.options()
        };
        let host = Host::start(self.plan(servers), options);
        host.settled().await;
        host
    }

    /// Everything that was written to files, the vault's list included.
    fn written(&self) -> String {
        let files = walk(self.home.path()).into_iter();
        let text = files.map(|path| fs::read(path).unwrap_or_default());
        text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .collect()
    }
}

/// Says back everything that it can about the request.
fn talkative(message: &Value, headers: &HeaderMap) -> Response {
    let asked = headers["x-asked-for"].to_str().expect("text");
    if message["method"] == "tools/call" {
        let text = format!("asked for {asked}, {CANARY}");
        let content = json!([{ "type": "text", "text": text }]);
        return reply(message, Reply::Result(json!({ "content": content })));
    }
    reply(message, legacy(message))
}

#[tokio::test]
async fn a_secret_in_the_address_reaches_the_server_and_no_log() {
    let scene = Scene::new(&[("key", CANARY)]).await;
    let server = Server::start(talkative).await;
    let url = server
        .url
        .replace("/mcp", "/x/${keychain:key}/mcp?k=${keychain:key}");
    let host = scene
        .host(&json!({ "web": { "type": "http", "url": url, "protocol": "legacy" } }))
        .await;
    facts(&host, "web");
    let query = ESCAPED.replace(':', "%3A");
    assert!(server.saw(&format!("/x/{ESCAPED}/mcp?k={query}")));
    let told = echo(&host, "web", "x").await.expect("a result");
    assert!(text_of(&told).contains("asked for"), "{told:?}");
    assert!(!format!("{:?}", host.snapshot()).contains(MARK));
    // What an address holds is the login.
    let problem = host.login("web", LoginOptions::default()).await;
    assert!(
        matches!(problem, Err(LoginProblem::Written(_))),
        "{problem:?}"
    );
    host.shutdown().await;
    let written = scene.written();
    assert!(
        written.contains("[redacted]"),
        "the journal tells of the call"
    );
    for spelling in [CANARY, ESCAPED, query.as_str()] {
        assert!(!written.contains(spelling), "{spelling}");
    }
}

#[tokio::test]
async fn what_goes_wrong_names_server_field_and_file_and_no_secret() {
    let scene = Scene::new(&[("key", CANARY)]).await;
    let server = Server::start(|_, _| document(404, &json!({}))).await;
    let url = server.url.replace("/mcp", "/${keychain:key}/mcp");
    let servers = json!({
        "refusing": { "type": "http", "url": url },
        "gone": { "type": "http", "url": "http://127.0.0.1:1/${keychain:key}" },
        "missing": { "type": "http", "url": "http://127.0.0.1:1/${keychain:absent}" },
    });
    let host = scene.host(&servers).await;
    for name in ["refusing", "gone"] {
        let message = failure(&host, name).message;
        assert!(!message.contains(MARK), "{message}");
    }
    let settings = scene.home.path().join("home/.config/toolway/settings.json");
    assert_eq!(
        failure(&host, "missing").message,
        format!(
            "`url` in {} needs `${{keychain:absent}}`: the vault has no such secret; put it there \
             with `toolway vault set absent`",
            settings.display()
        )
    );
    host.shutdown().await;
    assert!(!scene.written().contains(MARK));
}

#[tokio::test]
async fn a_helper_gets_the_secrets_of_env() {
    let scene = Scene::new(&[("key", MARK)]).await;
    let server = Server::start(|message, headers| match headers.get("x-key") {
        Some(key) if key == MARK => reply(message, legacy(message)),
        _ => document(403, &json!({})),
    })
    .await;
    let helper = scene.home.path().join("helper");
    fs::write(
        &helper,
        "#!/bin/sh\nprintf '{\"X-Key\": \"%s\"}' \"$KEY\"\n",
    )
    .expect("a file");
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).expect("rights");
    let entry = json!({
        "type": "http", "url": server.url, "protocol": "legacy",
        "headersHelper": helper, "env": { "KEY": "${keychain:key}" },
    });
    let host = scene.host(&json!({ "web": entry })).await;
    facts(&host, "web");
    host.shutdown().await;
    assert!(!scene.written().contains(MARK));
}

#[tokio::test]
async fn a_client_whose_id_and_secret_are_named_logs_itself_in() {
    let secret = format!("{}-client", toolway_testkit::authority::CANARY);
    let scene = Scene::new(&[("id", "robot"), ("secret", &secret)]).await;
    let authority = Authority::start(AuthoritySettings {
        clients: vec![KnownClient {
            id: "robot".to_owned(),
            secret: Some(secret),
            ..KnownClient::default()
        }],
        ..AuthoritySettings::default()
    });
    let mut entry = authority.entry();
    entry["oauth"] = json!({ "clientId": "${keychain:id}", "clientSecret": "${keychain:secret}" });
    let host = scene.host(&json!({ "shop": entry })).await;
    let options = LoginOptions {
        way: LoginMethod::ClientCredentials,
        ..LoginOptions::default()
    };
    let login = host.login("shop", options).await.expect("begun");
    login.outcome().await.expect("ours").expect("in");
    let state = host.reconnect("shop").await.expect("known");
    assert!(matches!(state, ConnectionState::Connected(_)), "{state:?}");
    assert_eq!(authority.report().granted("client_credentials"), 1);
    assert!(authority.seen_at(RequestedParty::Issuer, "/token").len() == 1);
    host.shutdown().await;
    assert!(!holds_secret(&scene.written()));

    // A secret that is missing concerns the login only.
    entry["oauth"] = json!({ "clientId": "robot", "clientSecret": "${keychain:absent}" });
    let scene = Scene::new(&[]).await;
    let host = scene.host(&json!({ "shop": entry })).await;
    let login = host.login("shop", LoginOptions::default()).await;
    let outcome = login.expect("begun").outcome().await.expect("ours");
    let problem = outcome.expect_err("nothing there").to_string();
    assert!(
        problem.starts_with("cannot log in to `shop`: `oauth.clientSecret` in /"),
        "{problem}"
    );
    assert!(problem.contains("needs `${keychain:absent}`"), "{problem}");
    host.shutdown().await;
}
