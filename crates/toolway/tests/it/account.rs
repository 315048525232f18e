//! An account and its connectors, against a provider that is real enough: a login, a directory, a
//! proxy, tokens that end; and providers that are slow, gone or hostile.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use futures_util::future::BoxFuture;
use futures_util::stream;
use serde_json::{Value, json};
use toolway::account::{self, Connectors, ConnectorsOf, DirectoryState, refresh};
use toolway::toolway_auth::account::{ProviderAccountError, StoredAccount};
use toolway::toolway_auth::clock::unix_now;
use toolway::toolway_auth::login::{
    DeviceCodePrompt, LoginMethod, LoginPage, LoginProgress, LoginUi,
};
use toolway::toolway_auth::logins::Logins;
use toolway::toolway_auth::vault::{StorageChoice, Vault, VaultOptions};
use toolway::{
    CallError, CallOptions, Consent, Host, HostOptions, ToolOutcome, ToolRequest, ToolTarget,
};
use toolway_config::account::directory::copy_file;
use toolway_config::{Environment, Flags, Plan, Planner};
use toolway_testkit::authority::{
    Authority, AuthoritySettings, ConnectorAccount, RequestedParty, Switch, holds_secret,
};
use toolway_testkit::browser::browse;
use toolway_testkit::eventually;
use toolway_transport::client::HttpClient;
use toolway_types::{ConnectionState, ToolKey};

use crate::support::{Home, name, shown};

/// A person whose browser goes wherever it is sent.
#[derive(Default)]
struct Walker {
    said: Mutex<Vec<String>>,
}

impl LoginUi for Walker {
    fn open<'a>(&'a self, page: LoginPage<'a>) -> BoxFuture<'a, Result<(), String>> {
        let address = page.url.to_string();
        tokio::task::spawn_blocking(move || browse(&address));
        Box::pin(async { Ok(()) })
    }

    fn show(&self, _page: LoginPage<'_>) {}

    fn pasted(&self) -> BoxFuture<'_, String> {
        Box::pin(std::future::pending())
    }

    fn device(&self, _device: DeviceCodePrompt<'_>) {}

    fn say(&self, progress: LoginProgress) {
        self.said
            .lock()
            .expect("said")
            .push(format!("{progress:?}"));
    }
}

/// A home whose settings name an account.
pub(crate) struct Stage {
    pub(crate) home: Home,
    environment: Environment,
}

impl Stage {
    pub(crate) fn new(account: &Value, servers: &Value) -> Self {
        let home = Home::new();
        let work = home.path().join("work");
        std::fs::create_dir_all(&work).expect("a working directory");
        let own = home.path().join("own");
        std::fs::create_dir_all(&own).expect("a config home");
        let vars = BTreeMap::from([
            ("HOME".to_owned(), home.path().display().to_string()),
            ("TOOLWAY_HOME".to_owned(), own.display().to_string()),
        ]);
        let environment = Environment::new(vars, work).with_system_dir(home.path().join("system"));
        let stage = Self { home, environment };
        stage.settings(&json!({ "account": account, "mcpServers": servers }));
        stage
    }

    pub(crate) fn settings(&self, settings: &Value) {
        let file = self.home.path().join("own/settings.json");
        std::fs::write(file, settings.to_string()).expect("settings");
    }

    pub(crate) fn at(authority: &Authority) -> Self {
        Self::new(&json!({ "url": authority.issuer() }), &json!({}))
    }

    pub(crate) fn plan(&self) -> Plan {
        toolway_config::plan(&self.environment, &Flags::default())
    }

    fn copy(&self) -> PathBuf {
        copy_file(&self.environment)
    }

    /// As another process would open it.
    fn logins(&self) -> Logins {
        Logins::new(Vault::open(VaultOptions {
            storage: StorageChoice::File,
            ..VaultOptions::new(self.home.path().join("vault"))
        }))
    }

    fn kept(&self) -> StoredAccount {
        let provider = self.plan().account.expect("an account");
        account::kept(&provider, self.logins(), HttpClient::default())
    }

    pub(crate) async fn log_in(&self) {
        let person = Walker::default();
        let logged_in = self.kept().log_in(LoginMethod::Browser, &person).await;
        logged_in.unwrap_or_else(|error| panic!("{error}: {:?}", person.said));
    }

    fn connectors(&self) -> Connectors {
        let provider = self.plan().account.expect("an account");
        Connectors::kept(provider, self.logins(), HttpClient::default(), self.copy())
    }

    fn connectors_of(&self) -> ConnectorsOf {
        let (logins, copy) = (self.logins(), self.copy());
        Arc::new(move |plan| {
            let provider = plan.account.clone()?;
            let (logins, copy) = (logins.clone(), copy.clone());
            Some(Connectors::kept(
                provider,
                logins,
                HttpClient::default(),
                copy,
            ))
        })
    }

    pub(crate) fn host(&self) -> Host {
        let planner = Planner::new(self.environment.clone(), Flags::default());
        let plan = planner.plan();
        Host::start(
            plan,
            HostOptions {
                connectors: Some(self.connectors_of()),
                replan: Some(Arc::new(move || planner.plan())),
                ..self.home.options()
            },
        )
    }
}

pub(crate) async fn connected(host: &Host, server: &str) {
    let mut snapshots = host.watch();
    let is_there = |snapshot: &Arc<toolway::HostSnapshot>| {
        let server = snapshot.server(server);
        server.is_some_and(|server| matches!(server.state, ConnectionState::Connected(_)))
    };
    let there = tokio::time::timeout(Duration::from_mins(1), snapshots.wait_for(is_there)).await;
    assert!(there.is_ok(), "{:?}", host.snapshot().servers);
}

pub(crate) async fn settled(host: &Host) -> DirectoryState {
    let mut directory = host.directory().expect("an account");
    let known = directory.wait_for(|state| *state != DirectoryState::Asking);
    known.await.expect("the host runs").clone()
}

pub(crate) async fn whoami(host: &Host, server: &str) -> Result<ToolOutcome, CallError> {
    let request = ToolRequest::new(
        ToolTarget::Key(ToolKey::new(name(server), "whoami")),
        serde_json::Map::new(),
    );
    host.call(request, CallOptions::new(Consent::Typed)).await
}

pub(crate) fn fresh() -> DirectoryState {
    DirectoryState::Fresh {
        left_out: Vec::new(),
    }
}

#[tokio::test]
async fn a_login_brings_connectors_that_can_be_called() {
    let authority = Authority::start(AuthoritySettings::account_provider());
    let stage = Stage::at(&authority);
    stage.log_in().await;
    let host = stage.host();
    assert_eq!(settled(&host).await, fresh());
    for server in ["notes", "calendar"] {
        connected(&host, server).await;
    }
    let outcome = whoami(&host, "notes").await.expect("an answer");
    assert!(
        outcome.raw.to_string().contains("subject="),
        "{}",
        outcome.raw
    );
    // The next start has them from the copy, before anybody is asked.
    assert!(stage.plan().winner("notes").is_some());
    let copy = std::fs::read_to_string(stage.copy()).expect("a copy");
    assert!(!holds_secret(&copy));
    let status = stage
        .kept()
        .status()
        .await
        .expect("a vault")
        .expect("a login");
    assert_eq!(status.issuer, authority.issuer());
    assert!(status.renews);
    assert!(!holds_secret(&format!(
        "{:?} {status:?}",
        stage.connectors()
    )));
    host.shutdown().await;
    assert_eq!(authority.report().attacker_requests, 0);
}

#[tokio::test]
async fn a_login_elsewhere_reaches_a_host_that_runs_and_so_does_a_logout() {
    let authority = Authority::start(AuthoritySettings::account_provider());
    let stage = Stage::at(&authority);
    let host = stage.host();
    let DirectoryState::LoggedOut { why } = settled(&host).await else {
        panic!("nobody is logged in");
    };
    assert!(why.contains("toolway account login"), "{why}");
    stage.log_in().await;
    connected(&host, "notes").await;
    account::forget(&stage.copy()).expect("no copy");
    let out = stage
        .kept()
        .log_out()
        .await
        .expect("a vault")
        .expect("a login");
    assert!(out.not_revoked.is_none(), "{:?}", out.not_revoked);
    assert!(authority.report().revocations > 0);
    assert_eq!(authority.valid_access_tokens(), [""; 0]);
    let mut snapshots = host.watch();
    let gone = snapshots.wait_for(|snapshot| snapshot.server("notes").is_none());
    let gone = tokio::time::timeout(Duration::from_mins(1), gone).await;
    assert!(gone.is_ok(), "{:?}", host.snapshot().servers);
    assert!(stage.kept().log_out().await.expect("a vault").is_none());
    host.shutdown().await;
}

#[tokio::test]
async fn a_login_elsewhere_reaches_connectors_whose_token_was_refused() {
    let authority = Authority::start(AuthoritySettings {
        refresh_tokens: false,
        ..AuthoritySettings::account_provider()
    });
    let stage = Stage::at(&authority);
    stage.log_in().await;
    let host = stage.host();
    connected(&host, "notes").await;
    assert_eq!(settled(&host).await, fresh());
    // The login stays in the vault: nothing that could end it was tried.
    authority.revoke_everything();
    whoami(&host, "notes").await.expect_err("refused");
    let mut snapshots = host.watch();
    let waits = snapshots.wait_for(|snapshot| {
        let shown = snapshot.server("notes").map(|server| &server.state);
        matches!(shown, Some(ConnectionState::NeedsAuth { .. }))
    });
    drop(waits.await.expect("the host runs"));
    let asked = authority
        .seen_at(RequestedParty::Issuer, "/directory")
        .len();
    stage.log_in().await;
    connected(&host, "notes").await;
    whoami(&host, "notes").await.expect("an answer");
    let asked_again = authority
        .seen_at(RequestedParty::Issuer, "/directory")
        .len();
    // The login looks there for where to log in; who is logged in did not change.
    assert_eq!(asked_again, asked + 1);
    host.shutdown().await;
}

#[tokio::test]
async fn rel_14_two_processes_renew_an_ended_token_once() {
    let authority = Authority::start(AuthoritySettings::account_provider());
    let stage = Stage::at(&authority);
    stage.log_in().await;
    let (one, two) = (stage.host(), stage.host());
    connected(&one, "notes").await;
    connected(&two, "notes").await;
    authority.expire_access_tokens();
    let (first, second) = tokio::join!(whoami(&one, "notes"), whoami(&two, "notes"));
    first.expect("an answer");
    second.expect("an answer");
    let report = authority.report();
    assert_eq!(report.token_requests("refresh_token"), 1);
    assert_eq!(report.families_revoked, 0);
    one.shutdown().await;
    two.shutdown().await;
}

#[tokio::test]
async fn a_refused_token_that_somebody_renewed_is_not_renewed_again() {
    let authority = Authority::start(AuthoritySettings::account_provider());
    let stage = Stage::at(&authority);
    stage.log_in().await;
    let (one, two) = (stage.connectors().account, stage.connectors().account);
    let sent = one.present().await.expect("a token");
    authority.expire_access_tokens();
    let renewed = two.instead_of(&sent).await.expect("a token");
    let renewed = renewed.expect("another one");
    assert_eq!(authority.report().token_requests("refresh_token"), 1);
    assert_eq!(one.instead_of(&sent).await.expect("a token"), Some(renewed));
    assert_eq!(authority.report().token_requests("refresh_token"), 1);
    // A connector that refuses every token is not asked for ever.
    authority.turn_on(Switch::Storm);
    let refused = one.directory().await;
    assert!(
        matches!(refused, Err(ProviderAccountError::Refused { .. })),
        "{refused:?}"
    );
    assert_eq!(authority.report().token_requests("refresh_token"), 2);
}

/// Waits until a refresh is with the authority, which holds it.
async fn is_sent(authority: &Authority) {
    eventually(|| {
        let seen = authority.seen_at(RequestedParty::Issuer, "/token");
        let mut grants = seen.iter().filter_map(|seen| seen.param("grant_type"));
        let is_there = grants.any(|grant| grant == "refresh_token");
        is_there
            .then_some(())
            .ok_or_else(|| "nothing was sent".to_owned())
    })
    .await;
}

#[tokio::test]
async fn rel_15_the_accounts_renewal_outlives_whoever_waited_for_it() {
    let authority = Authority::start(AuthoritySettings::account_provider());
    let stage = Stage::at(&authority);
    stage.log_in().await;
    let connectors = stage.connectors();
    authority.expire_access_tokens();
    let held = authority.hold("/token");
    tokio::select! {
        refreshed = refresh(&connectors) => panic!("{refreshed:?}"),
        () = is_sent(&authority) => {}
    }
    drop(held);
    assert_eq!(refresh(&connectors).await.state, fresh());
    assert_eq!(authority.report().token_requests("refresh_token"), 1);
    assert_eq!(authority.report().families_revoked, 0);
}

#[tokio::test]
async fn rel_15_a_host_that_ends_keeps_the_accounts_renewal() {
    let authority = Authority::start(AuthoritySettings::account_provider());
    let stage = Stage::at(&authority);
    stage.log_in().await;
    let host = stage.host();
    connected(&host, "notes").await;
    authority.expire_access_tokens();
    let held = authority.hold("/token");
    tokio::select! {
        outcome = whoami(&host, "notes") => panic!("{:?}", outcome.map(|it| it.raw)),
        () = is_sent(&authority) => {}
    }
    tokio::join!(host.shutdown(), async { drop(held) });
    let next = stage.connectors().account;
    let sent = next.present().await.expect("a token");
    let sent = sent["authorization"].to_str().expect("text");
    let token = sent.strip_prefix("Bearer ").expect("a bearer");
    assert!(authority.is_valid(token));
    assert_eq!(authority.report().token_requests("refresh_token"), 1);
    assert_eq!(authority.report().families_revoked, 0);
}

#[tokio::test]
async fn a_provider_that_is_gone_leaves_the_kept_list_and_a_notice() {
    let authority = Authority::start(AuthoritySettings::account_provider());
    let stage = Stage::at(&authority);
    stage.log_in().await;
    let fetched = refresh(&stage.connectors()).await;
    assert_eq!((fetched.state, fetched.changed), (fresh(), true));
    assert!(!refresh(&stage.connectors()).await.changed);
    drop(authority);
    let host = stage.host();
    let DirectoryState::Kept { why, fetched_at } = settled(&host).await else {
        panic!("nobody can have answered");
    };
    assert!(why.contains("127.0.0.1"), "{why}");
    assert!(fetched_at.is_some());
    assert!(!holds_secret(&why));
    assert!(host.snapshot().server("notes").is_some());
    host.shutdown().await;
}

/// A provider whose directory is answered by this function; the rest is the authority's.
async fn directory_of<F>(authority: &Authority, answer: F) -> (Stage, String)
where
    F: Fn(HeaderMap) -> Response + Clone + Send + Sync + 'static,
{
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let answer = move |headers: HeaderMap| async move { answer(headers) };
    let router = Router::new().route("/directory", get(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let account = json!({
        "url": authority.issuer(),
        "connectors": { "directoryUrl": format!("{address}/directory") },
    });
    // What is not known by the provider may be asked for all the same.
    (Stage::new(&account, &json!({})), address)
}

/// Puts a login into the vault that nobody had to walk for.
async fn issued(authority: &Authority, stage: &Stage) {
    use toolway::toolway_auth::logins::{ACCOUNT_SERVER, Login, LoginGrant};
    use toolway::toolway_auth::registration::{
        AuthMethod, ClientHistory, ClientSource, RegisteredClient,
    };
    use toolway::toolway_auth::token::{TokenKind, Tokens};
    use toolway_types::Secret;

    let provider = stage.plan().account.expect("an account");
    let tokens = authority.issue("toolway", "connectors");
    let login = Login {
        server: ACCOUNT_SERVER.to_owned(),
        definition: provider.digest(),
        account: provider.host().to_owned(),
        issuer: provider.issuer.clone(),
        resource: provider.directory_url.to_string(),
        client: RegisteredClient {
            client_id: "toolway".to_owned(),
            client_secret: None,
            auth_method: AuthMethod::None,
            source: ClientSource::Configured,
            secret_expires_at: None,
            redirect_uri: None,
            scopes: Vec::new(),
            other_method: None,
            history: ClientHistory::default(),
        },
        tokens: Tokens {
            access: Secret::new(tokens.access),
            kind: TokenKind::Bearer,
            refresh: None,
            id_token: None,
            expires_at: None,
            received_at: unix_now(),
            scopes: Vec::new(),
        },
        requested: Vec::new(),
        token_endpoint: format!("{}/token", authority.issuer())
            .parse()
            .expect("a URL"),
        revocation_endpoint: None,
        how: LoginGrant::Code,
        dpop: None,
        logged_in_at: unix_now(),
        is_trusted: true,
        client_key: None,
    };
    stage.logins().save(&login).await.expect("a vault");
}

#[tokio::test]
async fn a_slow_provider_delays_nobody() {
    let authority = Authority::start(AuthoritySettings::account_provider());
    let body = || Body::from_stream(stream::pending::<Result<&'static str, std::io::Error>>());
    let (stage, _) = directory_of(&authority, move |_| Response::new(body())).await;
    issued(&authority, &stage).await;
    let host = stage.host();
    // Nothing of the start waits for the directory.
    host.settled().await;
    let DirectoryState::Kept { why, fetched_at } = settled(&host).await else {
        panic!("it never answers");
    };
    assert!(why.contains("did not answer within 5 s"), "{why}");
    assert_eq!(fetched_at, None);
    host.shutdown().await;
}

#[tokio::test]
async fn hostile_directories_are_bounded_and_lead_nowhere() {
    let authority = Authority::start(AuthoritySettings::account_provider());
    let attacker = authority.attacker().to_owned();
    // A hundred megabytes, without saying so beforehand.
    let flood = |_: HeaderMap| {
        let chunks = (0..100).map(|_| Ok::<_, std::io::Error>("x".repeat(1024 * 1024)));
        Body::from_stream(stream::iter(chunks)).into_response()
    };
    let (stage, _) = directory_of(&authority, flood).await;
    issued(&authority, &stage).await;
    let DirectoryState::Kept { why, .. } = refresh(&stage.connectors()).await.state else {
        panic!("that is no directory");
    };
    assert!(why.contains("larger than"), "{why}");
    // Another origin: the token does not go there.
    let elsewhere = format!("{attacker}/directory");
    let redirect = move |_: HeaderMap| Redirect::temporary(&elsewhere).into_response();
    let (stage, _) = directory_of(&authority, redirect).await;
    issued(&authority, &stage).await;
    let DirectoryState::Kept { why, .. } = refresh(&stage.connectors()).await.state else {
        panic!("that is no directory");
    };
    assert!(why.contains("redirects elsewhere"), "{why}");
    // Ten thousand of them, with names, addresses and keys of all kinds.
    let evil = attacker.clone();
    let many = move |headers: HeaderMap| {
        if !headers.contains_key("authorization") {
            return StatusCode::UNAUTHORIZED.into_response();
        }
        let mut list = vec![
            json!({"id": "notes", "name": "\u{1b}[2Jnotes\u{202e}", "url": format!("{evil}/mcp"),
                "headers": {"X-Evil": "1"}, "headersHelper": "touch /tmp/evil", "command": "sh"}),
            json!({"id": "../../steal", "name": "up", "url": "file:///etc/passwd"}),
            json!({"id": "..", "name": "out"}),
        ];
        list.extend((0..10_000).map(|n| json!({"id": format!("c{n}"), "name": format!("c{n}")})));
        json!({ "connectors": list }).to_string().into_response()
    };
    let (stage, _) = directory_of(&authority, many).await;
    issued(&authority, &stage).await;
    let DirectoryState::Fresh { left_out } = refresh(&stage.connectors()).await.state else {
        panic!("what is good of it is taken");
    };
    assert!(
        left_out.iter().any(|what| what.contains("10003")),
        "{left_out:?}"
    );
    let plan = stage.plan();
    assert!(plan.servers.len() <= 256);
    assert!(plan.winner("2Jnotes").is_some());
    let ours = format!("{}/proxy/", authority.issuer());
    for server in &plan.servers {
        let url = server.definition["url"].as_str().expect("an address");
        assert!(url.starts_with(&ours), "{url}");
        let keys: Vec<&str> = server.definition.keys().map(String::as_str).collect();
        assert!(
            keys.iter()
                .all(|key| ["type", "url", "standsFor"].contains(key)),
            "{keys:?}"
        );
    }
    let host = stage.host();
    connected(&host, "2Jnotes").await;
    host.shutdown().await;
    assert_eq!(authority.report().attacker_requests, 0);
}

#[tokio::test]
async fn the_token_goes_to_the_proxy_alone() {
    let authority = Authority::start(AuthoritySettings::account_provider());
    let elsewhere = format!("{}/proxy/notes/mcp", authority.attacker());
    let beside = format!("{}/directory", authority.issuer());
    let stage = Stage::new(
        &json!({ "url": authority.issuer() }),
        &json!({
            "evil": { "type": "connector", "url": elsewhere },
            "beside": { "type": "claudeai-proxy", "url": beside },
            "mine": { "type": "claudeai-proxy", "url": authority.connector("calendar") },
        }),
    );
    stage.log_in().await;
    let host = stage.host();
    host.settled().await;
    settled(&host).await;
    connected(&host, "mine").await;
    assert!(!matches!(
        shown(&host, "evil").state,
        ConnectionState::Connected(_)
    ));
    assert!(!matches!(
        shown(&host, "beside").state,
        ConnectionState::Connected(_)
    ));
    host.shutdown().await;
    assert!(authority.stolen().is_none(), "{:?}", authority.stolen());
    let asked = authority.seen();
    let with_token = |path: &str| {
        asked
            .iter()
            .filter(|seen| seen.path.ends_with(path) && seen.method == "POST")
            .any(|seen| seen.header("authorization").is_some())
    };
    assert!(with_token("/proxy/calendar/mcp"));
    assert!(!with_token("/directory"));
}

#[tokio::test]
async fn another_issuer_than_the_configured_one_gets_nobody_logged_in() {
    for switch in [Switch::IssuerOther, Switch::IssuerTrailingSlash] {
        let authority = Authority::start(AuthoritySettings {
            switches: vec![switch],
            ..AuthoritySettings::account_provider()
        });
        let stage = Stage::at(&authority);
        let refused = stage
            .kept()
            .log_in(LoginMethod::Browser, &Walker::default())
            .await;
        let error = refused.expect_err("somebody else's metadata").to_string();
        assert!(error.contains("account.issuer"), "{error}");
        assert_eq!(authority.report().authorizations, 0);
        assert_eq!(stage.kept().status().await.expect("a vault"), None);
    }
}

#[tokio::test]
async fn a_connector_the_account_lost_goes_with_the_next_answer() {
    let authority = Authority::start(AuthoritySettings {
        account: Some(ConnectorAccount {
            connectors: vec!["__team___notes".to_owned()],
            ..ConnectorAccount::default()
        }),
        ..AuthoritySettings::account_provider()
    });
    let stage = Stage::at(&authority);
    stage.log_in().await;
    let provider = stage.plan().account.expect("an account");
    let old = json!({ "connectors": [{ "id": "gone", "name": "gone" }] });
    let old =
        toolway_config::ConnectorDirectory::read(&provider, old.as_object().expect("an object"));
    let copy = old.expect("a directory").to_copy(&provider);
    std::fs::create_dir_all(stage.copy().parent().expect("a folder")).expect("a folder");
    std::fs::write(stage.copy(), copy).expect("a copy");
    let host = stage.host();
    assert!(host.snapshot().server("gone").is_some());
    connected(&host, "team_notes").await;
    assert!(host.snapshot().server("gone").is_none());
    host.shutdown().await;
}
