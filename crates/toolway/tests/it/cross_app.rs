//! Cross-app access through the host: an identity provider, servers whose authorization servers
//! trust it, and some that misbehave (SEC-45).

use std::time::Duration;

use serde_json::{Value, json};
use toolway::auth::{
    AuthOptions, Invitation, LoginHandle, LoginOptions, LoginProblem, NoFederatedLoginReason,
    StoredLogins,
};
use toolway::journal::Journal;
use toolway::{CallOptions, Consent, Host, HostOptions, HttpClientOptions};
use toolway_auth::idp::{IdentityStore, IdpSettings};
use toolway_auth::login::LoginMethod;
use toolway_auth::logins::LoginGrant;
use toolway_auth::vault::{StorageChoice, Vault, VaultKey, VaultOptions};
use toolway_testkit::authority::{
    Authority, AuthoritySettings, CANARY, KnownClient, RequestedParty, Switch,
    assert_no_secret_below, holds_secret,
};
use toolway_testkit::browser::browse;
use toolway_testkit::eventually;
use toolway_types::{ConnectionState, Secret};

use crate::support::*;

/// Who we are at the provider, and at every server.
const AT_PROVIDER: &str = "at-the-provider";
const AT_SERVER: &str = "at-the-server";

struct Scene {
    home: Home,
    idp: Authority,
    servers: Vec<(String, Authority)>,
}

impl Scene {
    async fn new(names: &[&str]) -> Self {
        Self::with(
            names,
            AuthoritySettings::identity_provider(),
            AuthoritySettings::default(),
        )
        .await
    }

    async fn with(names: &[&str], idp: AuthoritySettings, server: AuthoritySettings) -> Self {
        let secret = format!("{CANARY}-provider");
        let idp = Authority::start(AuthoritySettings {
            clients: vec![KnownClient {
                id: AT_PROVIDER.to_owned(),
                secret: Some(secret.clone()),
                ..KnownClient::default()
            }],
            assertion_client: Some(AT_SERVER.to_owned()),
            device_interval: 1,
            refresh_id_tokens: true,
            ..idp
        });
        let servers = names.iter().map(|name| {
            let settings = AuthoritySettings {
                trusted: vec![idp.issuer().to_owned()],
                clients: vec![KnownClient {
                    id: AT_SERVER.to_owned(),
                    ..KnownClient::default()
                }],
                ..server.clone()
            };
            ((*name).to_owned(), Authority::start(settings))
        });
        let servers = servers.collect();
        let scene = Self {
            home: Home::new(),
            idp,
            servers,
        };
        let (vault, key) = (scene.vault(), VaultKey::named("idp"));
        let kept = vault.write(&key, &Secret::new(secret)).await;
        kept.expect("a vault");
        scene.settings(&scene.provider());
        scene
    }

    fn provider(&self) -> Value {
        json!({ "identityProvider": {
            "issuer": self.idp.issuer(),
            "clientId": AT_PROVIDER,
            "clientSecret": "${keychain:idp}",
        } })
    }

    fn write(&self, path: &str, content: &Value) {
        let path = self.home.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, content.to_string()).expect("written");
    }

    fn settings(&self, content: &Value) {
        self.write("home/.config/toolway/settings.json", content);
    }

    fn policy(&self, content: &Value) {
        self.write("system/managed-settings.json", content);
    }

    fn vault(&self) -> Vault {
        Vault::open(VaultOptions {
            storage: StorageChoice::File,
            ..VaultOptions::new(self.home.path().join("vault"))
        })
    }

    fn entries(&self) -> Value {
        let entries = self.servers.iter().map(|(name, server)| {
            let mut entry = server.entry();
            entry["oauth"] = json!({ "clientId": AT_SERVER, "xaa": true });
            (name.clone(), entry)
        });
        Value::Object(entries.collect())
    }

    /// A host as one more process would have it: only files are shared.
    fn host_of(&self, entries: &Value, vars: &[(&str, &str)]) -> Host {
        let options = HostOptions {
            secrets: Some(self.vault()),
            auth: AuthOptions {
                vault: Some(self.vault()),
                memory: Some(self.home.path().join("needs-auth.json")),
                ..AuthOptions::default()
            },
            journal: Some(Journal::in_directory(self.home.path().join("logs"))),
            ..self.home.options()
        };
        Host::start(self.home.plan_with(entries, vars), options)
    }

    async fn host(&self) -> Host {
        let host = self.host_of(&self.entries(), &[("TOOLWAY_ENABLE_XAA", "1")]);
        host.settled().await;
        host
    }

    /// Has what the provider said of the person expire.
    async fn age_identity(&self, renewable: bool) {
        let store = IdentityStore::new(self.vault());
        let provider = IdpSettings {
            issuer: self.idp.issuer().to_owned(),
            client_id: AT_PROVIDER.to_owned(),
            ..IdpSettings::default()
        };
        let kept = store.read(&provider).await.expect("read");
        let mut identity = kept.expect("somebody is logged in");
        identity.expires_at = 0;
        identity.refresh = identity.refresh.filter(|_| renewable);
        store.write(&provider, &identity).await.expect("written");
    }

    fn server(&self, name: &str) -> &Authority {
        let mut servers = self.servers.iter();
        let found = servers.find(|(known, _)| known == name);
        &found.expect("a server").1
    }

    /// No login page of a server was opened, and nothing went to anybody else.
    fn assert_quiet(&self) {
        for (name, server) in &self.servers {
            let report = server.report();
            assert_eq!(report.authorizations, 0, "{name}");
            assert_eq!(report.attacker_requests, 0, "{name}");
        }
        assert_eq!(self.idp.report().attacker_requests, 0);
    }

    /// Nothing that was handed out stands in any file: the vault is sealed.
    fn assert_nothing_leaked(&self) {
        assert_no_secret_below(self.home.path());
    }
}

/// What a person does with a page, on a thread of its own: it waits for the callback.
async fn visit(login: &mut LoginHandle) {
    let invitation = login.invitation().await;
    let Some(Invitation::Page { url, .. }) = invitation else {
        panic!("{invitation:?}");
    };
    let visited = tokio::task::spawn_blocking(move || browse(url.as_str()));
    let pages = visited.await.expect("no panic");
    assert_eq!(pages.last().map(|page| page.status), Some(200));
}

/// Logs in at a server in a browser.
async fn log_in(host: &Host, server: &str) {
    let login = host.login(server, LoginOptions::default()).await;
    let mut login = login.expect("begun");
    visit(&mut login).await;
    let outcome = login.outcome().await.expect("it is ours");
    assert!(outcome.expect("logged in").renews);
}

/// A login that needs nobody, or fails.
async fn attempt(host: &Host, server: &str, way: LoginMethod) -> Result<(), LoginProblem> {
    let options = LoginOptions {
        way,
        ..LoginOptions::default()
    };
    let mut login = host.login(server, options).await.expect("begun");
    let invitation = login.invitation().await;
    assert_eq!(invitation, None);
    login.outcome().await.expect("it is ours").map(drop)
}

async fn until_connected(host: &Host, server: &str) {
    let mut snapshots = host.watch();
    let connected = snapshots.wait_for(|snapshot| {
        let state = snapshot.server(server).map(|server| &server.state);
        matches!(state, Some(ConnectionState::Connected(_)))
    });
    let waited = tokio::time::timeout(Duration::from_mins(1), connected);
    drop(waited.await.expect("in time").expect("the host runs"));
}

/// Whom the server takes us for.
async fn who(host: &Host) -> String {
    let request = request("shop", "whoami", "");
    let answer = host.call(request, CallOptions::new(Consent::Typed)).await;
    text_of(&answer.unwrap_or_else(|error| panic!("{error}: {:?}", host.login_advice("shop"))))
}

fn needs_auth(host: &Host, server: &str) -> bool {
    matches!(shown(host, server).state, ConnectionState::NeedsAuth { .. })
}

fn advice(host: &Host, server: &str) -> String {
    let advice = host.login_advice(server).expect("advice");
    assert!(!holds_secret(&advice), "{advice}");
    advice
}

#[tokio::test]
async fn sec_45_one_window_serves_three_servers_in_every_process() {
    let scene = Scene::new(&["one", "two", "three"]).await;
    let (here, there) = (scene.host().await, scene.host().await);
    for (name, _) in &scene.servers {
        for host in [&here, &there] {
            assert!(needs_auth(host, name));
            assert!(advice(host, name).contains("`toolway idp login`"));
        }
    }
    log_in(&here, "two").await;
    for (name, server) in &scene.servers {
        until_connected(&here, name).await;
        until_connected(&there, name).await;
        assert_eq!(here.login_advice(name), None);
        let tools = here.snapshot();
        let prefix = format!("mcp__{name}__");
        assert!(
            tools
                .catalog
                .tools()
                .any(|tool| tool.name.starts_with(&prefix))
        );
        // The provider was asked for an assertion for this issuer and this server.
        let exchanges = scene.idp.seen_at(RequestedParty::Issuer, "/token");
        assert!(exchanges.iter().any(|seen| {
            seen.param("audience") == Some(server.issuer())
                && seen.param("resource") == Some(server.resource())
        }));
        // The assertion is shown to its audience, and what it is made from to nobody.
        for seen in server.seen() {
            let is_shown = seen.param("assertion").is_some();
            assert!(!is_shown || seen.party == RequestedParty::Issuer);
            assert!(seen.param("subject_token").is_none());
        }
    }
    assert_eq!(scene.idp.report().authorizations, 1);
    let current_user = here
        .organisation()
        .expect("configured")
        .current_user()
        .await;
    assert!(current_user.expect("read").is_some_and(|who| who.is_of_use));
    let kept = here.logins().await.expect("logins");
    assert_eq!(kept.len(), 3);
    assert!(
        kept.iter()
            .all(|login| login.how == LoginGrant::CrossApp && login.renews)
    );
    here.shutdown().await;
    there.shutdown().await;

    // The next start needs nobody.
    let next = scene.host().await;
    for (name, _) in &scene.servers {
        facts(&next, name);
    }
    next.shutdown().await;
    assert_eq!(scene.idp.report().authorizations, 1);
    scene.assert_quiet();
    scene.assert_nothing_leaked();
}

#[tokio::test]
async fn a_token_that_expires_is_renewed_without_anybody() {
    let scene = Scene::new(&["shop"]).await;
    let host = scene.host().await;
    log_in(&host, "shop").await;
    until_connected(&host, "shop").await;
    let server = scene.server("shop");
    let before = server.report().granted("jwt-bearer");
    server.expire_access_tokens();
    assert!(who(&host).await.contains("subject=person-1"));
    assert_eq!(server.report().granted("jwt-bearer"), before + 1);
    // What the provider said of the person is over as well.
    scene.age_identity(true).await;
    server.expire_access_tokens();
    assert!(who(&host).await.contains("subject=person-1"));
    assert_eq!(server.report().granted("jwt-bearer"), before + 2);
    assert_eq!(scene.idp.report().authorizations, 1);
    host.shutdown().await;
    scene.assert_quiet();
    scene.assert_nothing_leaked();
}

#[tokio::test]
async fn rel_15_a_host_that_ends_keeps_what_the_provider_is_about_to_say() {
    let scene = Scene::new(&["shop"]).await;
    let host = scene.host().await;
    log_in(&host, "shop").await;
    until_connected(&host, "shop").await;
    scene.age_identity(true).await;
    scene.server("shop").expire_access_tokens();
    let held = scene.idp.hold("/token");
    let is_sent = eventually(|| {
        let seen = scene.idp.seen_at(RequestedParty::Issuer, "/token");
        let mut grants = seen.iter().filter_map(|seen| seen.param("grant_type"));
        let is_there = grants.any(|grant| grant == "refresh_token");
        is_there
            .then_some(())
            .ok_or_else(|| "nothing was sent".to_owned())
    });
    tokio::select! {
        who = who(&host) => panic!("{who}"),
        () = is_sent => {}
    }
    tokio::join!(host.shutdown(), async { drop(held) });
    let next = scene.host().await;
    assert!(who(&next).await.contains("subject=person-1"));
    let report = scene.idp.report();
    assert_eq!(report.token_requests("refresh_token"), 1);
    assert_eq!(report.families_revoked, 0);
    assert_eq!(report.authorizations, 1);
    next.shutdown().await;
}

#[tokio::test]
async fn without_the_person_the_server_waits_and_says_what_for() {
    let scene = Scene::new(&["shop"]).await;
    let host = scene.host().await;
    log_in(&host, "shop").await;
    until_connected(&host, "shop").await;
    scene.age_identity(false).await;
    scene.server("shop").expire_access_tokens();
    let state = host.reconnect("shop").await.expect("known");
    assert!(
        matches!(state, ConnectionState::NeedsAuth { .. }),
        "{state:?}"
    );
    assert!(advice(&host, "shop").contains("`toolway idp login`"));
    log_in(&host, "shop").await;
    until_connected(&host, "shop").await;
    assert_eq!(scene.idp.report().authorizations, 2);
    host.shutdown().await;
    scene.assert_quiet();
}

#[tokio::test]
async fn sec_45_where_policy_says_so_no_login_page_is_opened() {
    let untaken = AuthoritySettings {
        assertions: false,
        ..AuthoritySettings::default()
    };
    let scene = Scene::with(&["shop"], AuthoritySettings::identity_provider(), untaken).await;
    scene.policy(&json!({ "requireCrossAppAccess": true }));
    let host = scene.host().await;
    assert!(needs_auth(&host, "shop"));
    for way in [
        LoginMethod::Browser,
        LoginMethod::Device,
        LoginMethod::ClientCredentials,
    ] {
        let problem = attempt(&host, "shop", way).await.expect_err("refused");
        let text = problem.to_string();
        assert!(text.contains("managed-settings.json:1"), "{text}");
        assert!(text.contains("requireCrossAppAccess"), "{text}");
    }
    host.shutdown().await;
    scene.assert_quiet();
    assert_eq!(scene.server("shop").report().devices, 0);

    // Without a provider there is no way at all, and no other one either.
    scene.settings(&json!({}));
    let host = scene.host().await;
    let problem = attempt(&host, "shop", LoginMethod::Browser)
        .await
        .expect_err("refused");
    assert!(
        matches!(&problem, LoginProblem::NoFederatedLogin(why) if matches!(why.fault, NoFederatedLoginReason::NoProvider)),
        "{problem:?}"
    );
    assert!(problem.to_string().contains("managed-settings.json:1"));
    host.shutdown().await;
    scene.assert_quiet();
}

#[tokio::test]
async fn sec_45_a_login_from_before_the_policy_does_not_count() {
    let scene = Scene::new(&["shop"]).await;
    let plain = json!({ "shop": scene.server("shop").entry() });
    let before = scene.host_of(&plain, &[]);
    before.settled().await;
    log_in(&before, "shop").await;
    until_connected(&before, "shop").await;
    before.shutdown().await;
    let server = scene.server("shop");
    assert_eq!(server.report().authorizations, 1);

    scene.policy(&json!({ "requireCrossAppAccess": [{ "serverName": "shop" }] }));
    let mut entry = server.entry();
    entry["oauth"] = json!({ "clientId": AT_SERVER });
    // No switch is needed: a variable is no way around the policy.
    let after = scene.host_of(&json!({ "shop": entry }), &[("TOOLWAY_ENABLE_XAA", "0")]);
    after.settled().await;
    assert!(needs_auth(&after, "shop"));
    log_in(&after, "shop").await;
    until_connected(&after, "shop").await;
    after.shutdown().await;
    assert_eq!(server.report().authorizations, 1);
    assert_eq!(server.report().granted("jwt-bearer"), 1);
}

#[tokio::test]
async fn what_a_server_wants_beyond_the_first_login_is_asked_of_the_organisation() {
    let wide = AuthoritySettings {
        call_scopes: vec!["write".to_owned()],
        ..AuthoritySettings::default()
    };
    let scene = Scene::with(&["shop"], AuthoritySettings::identity_provider(), wide).await;
    let mut entries = scene.entries();
    entries["shop"]["oauth"]["scopes"] = json!(["read"]);
    let host = scene.host_of(&entries, &[("TOOLWAY_ENABLE_XAA", "1")]);
    host.settled().await;
    log_in(&host, "shop").await;
    until_connected(&host, "shop").await;
    assert!(who(&host).await.contains("scope=read write"));
    assert_eq!(scene.server("shop").report().granted("jwt-bearer"), 2);
    assert_eq!(scene.idp.report().authorizations, 1);
    host.shutdown().await;
    scene.assert_quiet();
}

#[tokio::test]
async fn the_secret_of_a_servers_client_is_given_once() {
    let secret = Secret::new(format!("{CANARY}-server"));
    let mut scene = Scene::new(&["shop"]).await;
    scene.servers[0].1 = Authority::start(AuthoritySettings {
        trusted: vec![scene.idp.issuer().to_owned()],
        clients: vec![KnownClient {
            id: AT_SERVER.to_owned(),
            secret: Some(secret.expose().to_owned()),
            ..KnownClient::default()
        }],
        ..AuthoritySettings::default()
    });
    let host = scene.host().await;
    let options = LoginOptions {
        client_secret: Some(secret),
        ..LoginOptions::default()
    };
    let mut login = host.login("shop", options).await.expect("begun");
    visit(&mut login).await;
    let outcome = login.outcome().await.expect("it is ours");
    outcome.expect("logged in");
    until_connected(&host, "shop").await;
    let before = scene.server("shop").report().granted("jwt-bearer");
    host.logout("shop", None).await.expect("logged out");
    host.reconnect("shop").await.expect("known");
    facts(&host, "shop");
    assert!(scene.server("shop").report().granted("jwt-bearer") > before);
    assert_eq!(scene.idp.report().authorizations, 1);
    host.shutdown().await;
    scene.assert_quiet();
    scene.assert_nothing_leaked();
}

#[tokio::test]
async fn where_nobody_takes_assertions_the_ordinary_login_follows() {
    let untaken = AuthoritySettings {
        assertions: false,
        ..AuthoritySettings::default()
    };
    let scene = Scene::with(&["shop"], AuthoritySettings::identity_provider(), untaken).await;
    let host = scene.host().await;
    log_in(&host, "shop").await;
    until_connected(&host, "shop").await;
    assert_eq!(scene.server("shop").report().authorizations, 1);
    assert_eq!(scene.idp.report().authorizations, 0);
    host.shutdown().await;
}

#[tokio::test]
async fn sec_45_a_server_that_names_its_own_provider_is_not_listened_to() {
    let naming = AuthoritySettings::with(&[Switch::ResourceNamesProvider]);
    let scene = Scene::with(&["shop"], AuthoritySettings::identity_provider(), naming).await;
    let host = scene.host().await;
    log_in(&host, "shop").await;
    until_connected(&host, "shop").await;
    assert_eq!(scene.idp.report().granted("token-exchange"), 1);
    host.shutdown().await;
    scene.assert_quiet();
}

#[tokio::test]
async fn sec_45_an_assertion_for_somebody_else_is_not_sent() {
    for switch in [Switch::ExchangeAudience, Switch::ExchangeType] {
        let scene = Scene::new(&["shop"]).await;
        scene.idp.turn_on(switch);
        let host = scene.host().await;
        let login = host.login("shop", LoginOptions::default()).await;
        let mut login = login.expect("begun");
        visit(&mut login).await;
        let outcome = login.outcome().await.expect("it is ours");
        let problem = outcome.expect_err("refused");
        let text = format!("{problem} {problem:?}");
        assert!(!holds_secret(&text), "{text}");
        let state = host.reconnect("shop").await.expect("known");
        assert!(
            matches!(state, ConnectionState::NeedsAuth { .. }),
            "{state:?}"
        );
        advice(&host, "shop");
        let server = scene.server("shop");
        assert_eq!(
            server.report().token_requests("jwt-bearer"),
            0,
            "{switch:?}"
        );
        host.shutdown().await;
        scene.assert_quiet();
        scene.assert_nothing_leaked();
    }
}

#[tokio::test]
async fn another_identity_provider_takes_over_in_a_host_that_runs() {
    let scene = Scene::new(&["shop"]).await;
    let first = scene.host().await;
    log_in(&first, "shop").await;
    until_connected(&first, "shop").await;
    first.shutdown().await;
    // Somebody is logged in at the provider, and nobody at the server.
    let book = StoredLogins::new(scene.vault(), HttpClientOptions::default());
    assert_eq!(
        book.log_out(Some("shop"), None).await.expect("out").len(),
        1
    );
    let plan = |settings: &Value| {
        scene.settings(settings);
        let entries = scene.entries();
        scene
            .home
            .plan_with(&entries, &[("TOOLWAY_ENABLE_XAA", "1")])
    };
    let other = Authority::start(AuthoritySettings::identity_provider());
    let elsewhere = json!({ "identityProvider": { "issuer": other.issuer(), "clientId": "x" } });
    scene.settings(&elsewhere);
    let host = scene.host().await;
    assert!(needs_auth(&host, "shop"));
    assert!(advice(&host, "shop").contains(other.issuer()));

    let changes = host.apply(plan(&scene.provider())).await;
    assert_eq!(changes.replaced, [name("shop")]);
    until_connected(&host, "shop").await;
    let organisation = host.organisation().expect("configured");
    assert_eq!(organisation.settings().issuer, scene.idp.issuer());
    who(&host).await;

    let changes = host.apply(plan(&scene.provider())).await;
    assert!(changes.is_empty(), "{changes:?}");

    // Without one, what was granted is used up, and nobody gives more.
    let changes = host.apply(plan(&json!({}))).await;
    assert_eq!(changes.replaced, [name("shop")]);
    assert!(host.organisation().is_none());
    until_connected(&host, "shop").await;
    scene.server("shop").revoke_everything();
    host.reconnect("shop").await.expect("known");
    assert!(needs_auth(&host, "shop"));
    assert!(advice(&host, "shop").contains("no identity provider is configured"));
    host.shutdown().await;
    assert_eq!(other.report().authorizations, 0);
    scene.assert_quiet();
}
