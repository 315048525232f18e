//! Several accounts at one server: which login an entry's requests carry, and changing that while
//! the host runs.

use std::time::Duration;

use serde_json::{Value, json};
use toolway::auth::{AuthOptions, Invitation, LoggedIn, LoginOptions, LoginProblem};
use toolway::{
    AttachOptions, Attached, CallOptions, Caller, CallerKind, ConnectionPool, Consent, Host,
    HostOptions, ToolRequest, ToolTarget, ViewSpec,
};
use toolway_auth::vault::{StorageChoice, Vault, VaultOptions};
use toolway_config::{Plan, Profile};
use toolway_testkit::authority::{Authority, AuthoritySettings, RequestedParty};
use toolway_testkit::browser::browse;
use toolway_types::{ConnectionState, ToolKey};

use crate::support::*;

struct Scene {
    home: Home,
    authority: Authority,
}

impl Scene {
    fn new() -> Self {
        Self {
            home: Home::new(),
            authority: Authority::start(AuthoritySettings::default()),
        }
    }

    /// An entry that uses this account, and says on every request which entry it is.
    fn entry(&self, name: &str, account: Option<&str>) -> Value {
        let mut entry = self.authority.entry();
        entry["headers"] = json!({ "X-Entry": name });
        if let Some(account) = account {
            entry["oauth"] = json!({ "account": account });
        }
        entry
    }

    /// The plan with the one server `shop`.
    fn shop(&self, account: Option<&str>) -> Plan {
        let entry = self.entry("shop", account);
        self.home.plan(&json!({ "shop": entry }))
    }

    async fn host(&self, plan: Plan) -> Host {
        self.host_in(plan, ConnectionPool::default()).await
    }

    async fn host_in(&self, plan: Plan, connections: ConnectionPool) -> Host {
        let vault = Vault::open(VaultOptions {
            storage: StorageChoice::File,
            ..VaultOptions::new(self.home.path().join("vault"))
        });
        let options = HostOptions {
            auth: AuthOptions {
                vault: Some(vault),
                memory: Some(self.home.path().join("needs-auth.json")),
                ..AuthOptions::default()
            },
            connections,
            ..self.home.options()
        };
        let host = Host::start(plan, options);
        host.settled().await;
        host
    }

    /// Logs in, and gives the token that this brought.
    async fn log_in(&self, host: &Host, server: &str, account: Option<&str>) -> (LoggedIn, String) {
        let before = self.authority.valid_access_tokens();
        let options = LoginOptions {
            account: account.map(str::to_owned),
            ..LoginOptions::default()
        };
        let mut login = host.login(server, options).await.expect("begun");
        let Some(Invitation::Page { url, .. }) = login.invitation().await else {
            panic!("no page");
        };
        let visited = tokio::task::spawn_blocking(move || browse(url.as_str()));
        visited.await.expect("no panic");
        let logged_in = login.outcome().await.expect("ours").expect("logged in");
        let mut after = self.authority.valid_access_tokens();
        after.retain(|token| !before.contains(token));
        let [token] = &after[..] else {
            panic!("one login brings one token");
        };
        (logged_in, token.clone())
    }

    /// What an entry's requests carried, each thing once and in order.
    fn carried(&self, entry: &str) -> Vec<String> {
        let seen = self.authority.seen_at(RequestedParty::Resource, "/mcp");
        let of_entry = seen
            .iter()
            .filter(|seen| seen.header("x-entry") == Some(entry));
        let mut carried: Vec<String> = of_entry
            .filter_map(|seen| seen.header("authorization"))
            .map(|value| value.trim_start_matches("Bearer ").to_owned())
            .collect();
        carried.dedup();
        carried
    }
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

async fn whoami(host: &Host, server: &str) {
    let request = ToolRequest::new(
        ToolTarget::Key(ToolKey::new(name(server), "whoami")),
        serde_json::Map::new(),
    );
    let answer = host.call(request, CallOptions::new(Consent::Typed)).await;
    answer.expect("an answer");
}

fn needs_auth(host: &Host) -> bool {
    matches!(shown(host, "shop").state, ConnectionState::NeedsAuth { .. })
}

#[tokio::test]
async fn two_entries_at_one_server_each_carry_the_token_of_their_own_account() {
    let scene = Scene::new();
    let plan = scene.home.plan(&json!({
        "mine": scene.entry("mine", Some("home")),
        "office": scene.entry("office", Some("work")),
    }));
    let host = scene.host(plan).await;
    // Nobody says which account: it is the entry's.
    let (logged_in, mine) = scene.log_in(&host, "mine", None).await;
    assert_eq!(logged_in.account, "home");
    until_connected(&host, "mine").await;
    let state = &shown(&host, "office").state;
    assert!(
        matches!(state, ConnectionState::NeedsAuth { .. }),
        "another entry's login is not used: {state:?}"
    );
    let (logged_in, office) = scene.log_in(&host, "office", None).await;
    assert_eq!(logged_in.account, "work");
    until_connected(&host, "office").await;
    assert_ne!(mine, office);
    for server in ["mine", "office", "mine"] {
        whoami(&host, server).await;
    }
    assert_eq!(scene.carried("mine"), [mine]);
    assert_eq!(scene.carried("office"), [office]);
    host.shutdown().await;
}

#[tokio::test]
async fn an_entry_that_changes_its_account_reconnects_with_the_other_login() {
    let scene = Scene::new();
    let host = scene.host(scene.shop(None)).await;
    let (_, default) = scene.log_in(&host, "shop", None).await;
    until_connected(&host, "shop").await;
    let (_, work) = scene.log_in(&host, "shop", Some("work")).await;
    whoami(&host, "shop").await;
    assert_eq!(scene.carried("shop"), [default.as_str()]);

    // The login is found although the entry is another: it is the same server.
    let changes = host.apply(scene.shop(Some("work"))).await;
    assert_eq!(changes.replaced, [name("shop")]);
    until_connected(&host, "shop").await;
    whoami(&host, "shop").await;
    assert_eq!(scene.carried("shop"), [default.as_str(), work.as_str()]);

    let changes = host.apply(scene.shop(Some("work"))).await;
    assert!(changes.is_empty(), "{changes:?}");
    host.apply(scene.shop(None)).await;
    until_connected(&host, "shop").await;
    whoami(&host, "shop").await;
    let all = [default.as_str(), work.as_str(), default.as_str()];
    assert_eq!(scene.carried("shop"), all);
    host.shutdown().await;
}

#[tokio::test]
async fn an_account_without_a_login_needs_one_whoever_else_is_logged_in() {
    let scene = Scene::new();
    let host = scene.host(scene.shop(None)).await;
    let (_, default) = scene.log_in(&host, "shop", None).await;
    until_connected(&host, "shop").await;
    host.apply(scene.shop(Some("my work"))).await;
    host.settled().await;
    assert!(needs_auth(&host));

    // The tool logs in to the entry's account, and says how a person does.
    let request = ToolRequest::new(
        ToolTarget::Exposed("mcp__shop__authenticate".to_owned()),
        serde_json::Map::new(),
    );
    let answer = host.call(request, CallOptions::new(Consent::Typed)).await;
    let answer: Value = serde_json::from_str(answer.expect("an answer").raw.get()).expect("JSON");
    let text = answer["content"][0]["text"].as_str().expect("text");
    let by_hand = "`toolway login shop --account 'my work' --no-browser`";
    assert!(text.contains(by_hand), "{text}");
    let page = text
        .split_whitespace()
        .find(|word| word.starts_with("http") && word.contains("code_challenge"))
        .expect("a page")
        .to_owned();
    let visited = tokio::task::spawn_blocking(move || browse(&page));
    visited.await.expect("no panic");
    until_connected(&host, "shop").await;
    let mut accounts: Vec<String> = host
        .logins()
        .await
        .expect("logins")
        .into_iter()
        .map(|login| login.account)
        .collect();
    accounts.sort();
    assert_eq!(accounts, ["default", "my work"]);
    whoami(&host, "shop").await;
    let carried = scene.carried("shop");
    assert_eq!(carried.len(), 2, "the default login was never tried again");
    assert_eq!(carried[0], default);

    // Without an account named, all of the server's logins go.
    let out = host.logout("shop", None).await.expect("logged out");
    assert_eq!(out.len(), 2);
    host.shutdown().await;
}

#[tokio::test]
async fn a_login_to_another_account_does_not_join_the_one_under_way() {
    let scene = Scene::new();
    let host = scene.host(scene.shop(None)).await;
    let begin = |account: &str| {
        let options = LoginOptions {
            account: Some(account.to_owned()),
            ..LoginOptions::default()
        };
        host.login("shop", options)
    };
    let mut first = begin("home").await.expect("begun");
    let page = first.invitation().await.expect("a page");
    let mut joined = begin("home").await.expect("joined");
    assert_eq!(joined.invitation().await.expect("a page"), page);
    let mut other = begin("work").await.expect("begun");
    assert_ne!(other.invitation().await.expect("a page"), page);
    let outcome = first.outcome().await.expect("ours");
    assert!(matches!(outcome, Err(LoginProblem::Ended)), "{outcome:?}");
    host.shutdown().await;
}

#[tokio::test]
async fn two_profiles_with_two_accounts_have_two_connections_and_each_its_own_login() {
    let scene = Scene::new();
    let plan = scene.shop(None);
    let pool = ConnectionPool::default();
    let host = scene.host_in(plan, pool.clone()).await;
    let (_, default) = scene.log_in(&host, "shop", None).await;
    until_connected(&host, "shop").await;
    let mut callers = Vec::new();
    for account in ["home", "work", "work"] {
        let profile = Profile {
            accounts: [(name("shop"), account.to_owned())].into(),
            ..Profile::default()
        };
        let view = host.view(ViewSpec::of_profile(&profile)).await;
        view.settled().await;
        let options = AttachOptions {
            view: Some(view),
            ..AttachOptions::default()
        };
        callers.push(host.attach(Caller::new(CallerKind::Client, account), options));
    }
    assert_eq!(pool.len(), 3, "the owner's, and one for each account");
    let state = |caller: &Attached| caller.snapshot().server("shop").unwrap().state.clone();
    for caller in &callers {
        // The owner's login is not theirs.
        let state = state(caller);
        assert!(
            matches!(state, ConnectionState::NeedsAuth { .. }),
            "{state:?}"
        );
    }
    // Whoever waits for a login is connected as soon as the owner made it.
    let (_, home) = scene.log_in(&host, "shop", Some("home")).await;
    until_seen(&callers[0]).await;
    assert!(matches!(
        state(&callers[1]),
        ConnectionState::NeedsAuth { .. }
    ));
    let (_, work) = scene.log_in(&host, "shop", Some("work")).await;
    until_seen(&callers[1]).await;
    until_seen(&callers[2]).await;
    let shown = async |caller: &Attached| {
        let key = ToolKey::new(name("shop"), "whoami");
        let request = ToolRequest::new(ToolTarget::Key(key), serde_json::Map::new());
        let answer = caller.call(request, CallOptions::new(Consent::Delegated));
        answer.await.expect("an answer");
        scene.carried("shop").pop().expect("it carried a token")
    };
    for _ in 0..2 {
        assert_eq!(shown(&callers[0]).await, home);
        assert_eq!(shown(&callers[1]).await, work);
        assert_eq!(shown(&callers[2]).await, work);
        assert_eq!(shown(&host).await, default);
    }
    assert_eq!(pool.len(), 3);
    host.shutdown().await;
}

async fn until_seen(caller: &Attached) {
    let mut snapshots = caller.watch();
    let connected = snapshots.wait_for(|snapshot| {
        let state = snapshot.server("shop").map(|server| &server.state);
        matches!(state, Some(ConnectionState::Connected(_)))
    });
    let waited = tokio::time::timeout(Duration::from_mins(1), connected);
    drop(waited.await.expect("in time").expect("the host runs"));
}
