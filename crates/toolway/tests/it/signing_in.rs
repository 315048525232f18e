//! Logging in and out through the host, against an authorization server and what it protects.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolway::auth::{AuthOptions, Invitation, LoginOptions, LoginProblem};
use toolway::journal::Journal;
use toolway::{
    AttachOptions, Attached, CallOptions, Caller, CallerKind, Consent, Host, HostOptions,
    ToolRequest, ToolTarget,
};
use toolway_auth::login::LoginMethod;
use toolway_auth::vault::{StorageChoice, Vault, VaultOptions};
use toolway_testkit::authority::{
    Authority, AuthoritySettings, RequestedParty, Switch, assert_no_secret_below,
};
use toolway_testkit::browser::browse;
use toolway_types::ConnectionState;

use crate::support::*;

struct Scene {
    home: Home,
    authority: Authority,
}

impl Scene {
    fn new(settings: AuthoritySettings) -> Self {
        Self {
            home: Home::new(),
            authority: Authority::start(settings),
        }
    }

    /// A host as one more process would have it: only files are shared.
    fn host(&self) -> Host {
        let plan = self.home.plan(&json!({ "shop": self.authority.entry() }));
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
            journal: Some(Journal::in_directory(self.home.path().join("logs"))),
            ..self.home.options()
        };
        Host::start(plan, options)
    }

    async fn settled(&self) -> Host {
        let host = self.host();
        host.settled().await;
        host
    }

    /// Requests that the protected server got.
    fn probes(&self) -> usize {
        self.authority
            .seen_at(RequestedParty::Resource, "/mcp")
            .len()
    }

    /// Nothing that was handed out stands in any file outside the vault.
    fn assert_nothing_leaked(&self) {
        assert_no_secret_below(self.home.path());
    }
}

/// What a person does with a page, on a thread of its own: it waits for the callback.
async fn visit(invitation: Option<Invitation>) {
    let Some(Invitation::Page { url, .. }) = invitation else {
        panic!("{invitation:?}");
    };
    let visited = tokio::task::spawn_blocking(move || browse(url.as_str()));
    let pages = visited.await.expect("no panic");
    assert_eq!(pages.last().map(|page| page.status), Some(200));
}

async fn log_in(host: &Host, options: LoginOptions) {
    let mut login = host.login("shop", options).await.expect("begun");
    let invitation = login.invitation().await;
    visit(invitation).await;
    let outcome = login.outcome().await.expect("it is ours");
    let logged_in = outcome.expect("logged in");
    assert!(logged_in.renews);
}

async fn until_connected(host: &Host) {
    let mut snapshots = host.watch();
    let connected = snapshots.wait_for(|snapshot| {
        let state = snapshot.server("shop").map(|server| &server.state);
        matches!(state, Some(ConnectionState::Connected(_)))
    });
    let waited = tokio::time::timeout(Duration::from_mins(1), connected);
    drop(waited.await.expect("in time").expect("the host runs"));
}

fn needs_auth(host: &Host) -> bool {
    matches!(shown(host, "shop").state, ConnectionState::NeedsAuth { .. })
}

#[tokio::test]
async fn a_login_connects_the_server_here_and_in_every_other_process() {
    let scene = Scene::new(AuthoritySettings::default());
    let (one, other) = (scene.settled().await, scene.settled().await);
    assert!(needs_auth(&one) && needs_auth(&other));
    log_in(&one, LoginOptions::default()).await;
    until_connected(&one).await;
    until_connected(&other).await;
    let kept = one.logins().await.expect("logins");
    assert_eq!(kept.len(), 1);
    assert_eq!(
        (kept[0].server.as_str(), kept[0].account.as_str()),
        ("shop", "default")
    );
    assert_eq!(kept[0].issuer, scene.authority.issuer());
    one.shutdown().await;
    other.shutdown().await;
    // The next start needs no login.
    let next = scene.settled().await;
    facts(&next, "shop");
    next.shutdown().await;
    assert_eq!(scene.authority.report().attacker_requests, 0);
    scene.assert_nothing_leaked();
}

#[tokio::test]
async fn logging_out_gives_the_tokens_back_and_the_server_wants_a_login_again() {
    let scene = Scene::new(AuthoritySettings::default());
    let host = scene.settled().await;
    log_in(&host, LoginOptions::default()).await;
    until_connected(&host).await;
    assert!(!scene.authority.valid_refresh_tokens().is_empty());
    let out = host.logout("shop", None).await.expect("logged out");
    assert_eq!(out.len(), 1);
    assert!(out[0].can_revoke && out[0].not_revoked.is_none(), "{out:?}");
    assert_eq!(scene.authority.valid_refresh_tokens(), [""; 0]);
    host.ready("shop").await;
    assert!(needs_auth(&host));
    assert!(host.logout("shop", None).await.expect("asked").is_empty());
    host.shutdown().await;
}

#[tokio::test]
async fn a_start_does_not_ask_again_for_a_quarter_of_an_hour_and_reconnect_does() {
    let scene = Scene::new(AuthoritySettings::default());
    scene.settled().await.shutdown().await;
    let asked = scene.probes();
    assert!(asked > 0);
    let host = scene.settled().await;
    assert!(needs_auth(&host));
    assert_eq!(scene.probes(), asked, "a start asks nobody");
    host.reconnect("shop").await.expect("known");
    assert!(needs_auth(&host));
    assert!(scene.probes() > asked, "a person who asks is heard");
    host.shutdown().await;
}

async fn authenticate(host: &Attached) -> Value {
    let request = ToolRequest::new(
        ToolTarget::Exposed("mcp__shop__authenticate".to_owned()),
        serde_json::Map::new(),
    );
    let answer = host.call(request, CallOptions::new(Consent::Typed)).await;
    let answer = answer.expect("an answer");
    serde_json::from_str(answer.raw.get()).expect("JSON")
}

#[tokio::test]
async fn the_pseudo_tool_answers_with_the_page_and_is_replaced_by_the_real_tools() {
    let scene = Scene::new(AuthoritySettings::default());
    let host = scene.settled().await;
    let answer = authenticate(&host).await;
    let text = answer["content"][0]["text"]
        .as_str()
        .expect("text")
        .to_owned();
    let url = text
        .split_whitespace()
        .find(|word| word.starts_with("http") && word.contains("code_challenge"));
    let url = url.expect("a page").to_owned();
    // Whoever asks meanwhile is sent to the same page: one window for a server (REL-26).
    let again = authenticate(&host).await;
    assert!(
        again["content"][0]["text"]
            .as_str()
            .expect("text")
            .contains(&url)
    );
    // One that acts for somebody else gets no page: whose login it is is the owner's to say.
    let stranger = Caller {
        principal: "somebody else".into(),
        ..Caller::new(CallerKind::Client, "client")
    };
    let stranger = host.attach(stranger, AttachOptions::default());
    let told = authenticate(&stranger).await.to_string();
    assert!(!told.contains("code_challenge"), "{told}");
    assert!(told.contains("toolway login shop"), "{told}");
    tokio::task::spawn_blocking(move || browse(&url))
        .await
        .expect("no panic");
    until_connected(&host).await;
    let snapshot = host.snapshot();
    let has = |name: &str| {
        snapshot
            .catalog
            .built_in()
            .iter()
            .any(|tool| *tool.name == *name)
    };
    assert!(!has("mcp__shop__authenticate"));
    assert!(
        snapshot
            .catalog
            .tools()
            .any(|tool| tool.name.starts_with("mcp__shop__"))
    );
    host.shutdown().await;
}

#[tokio::test]
async fn an_expired_token_is_renewed_while_the_connection_stands() {
    let scene = Scene::new(AuthoritySettings::default());
    let host = scene.settled().await;
    log_in(&host, LoginOptions::default()).await;
    until_connected(&host).await;
    scene.authority.expire_access_tokens();
    let tools = host.reconnect("shop").await.expect("known");
    assert!(matches!(tools, ConnectionState::Connected(_)), "{tools:?}");
    let report = scene.authority.report();
    assert_eq!(report.token_requests("refresh_token"), 1);
    assert_eq!(report.families_revoked, 0);
    host.shutdown().await;
}

#[tokio::test]
async fn a_program_without_a_client_cannot_log_in_as_itself_and_is_told_what_is_missing() {
    let scene = Scene::new(AuthoritySettings::default());
    let host = scene.settled().await;
    let options = LoginOptions {
        way: LoginMethod::ClientCredentials,
        ..LoginOptions::default()
    };
    let mut login = host.login("shop", options).await.expect("begun");
    assert_eq!(login.invitation().await, None);
    let outcome = login.outcome().await.expect("it is ours");
    let problem = outcome.expect_err("no credentials");
    assert!(matches!(problem, LoginProblem::Failed(_)), "{problem:?}");
    assert!(problem.to_string().contains("oauth.clientId"), "{problem}");
    assert!(needs_auth(&host));
    host.shutdown().await;
}

#[tokio::test]
async fn two_accounts_are_kept_apart_and_the_default_one_is_used() {
    let scene = Scene::new(AuthoritySettings::default());
    let host = scene.settled().await;
    log_in(&host, LoginOptions::default()).await;
    until_connected(&host).await;
    let work = LoginOptions {
        account: Some("work".to_owned()),
        ..LoginOptions::default()
    };
    log_in(&host, work).await;
    let mut accounts: Vec<String> = host
        .logins()
        .await
        .expect("logins")
        .into_iter()
        .map(|login| login.account)
        .collect();
    accounts.sort();
    assert_eq!(accounts, ["default", "work"]);
    let out = host.logout("shop", Some("work")).await.expect("logged out");
    assert_eq!(out.len(), 1);
    host.ready("shop").await;
    facts(&host, "shop");
    host.shutdown().await;
}

#[tokio::test]
async fn a_host_that_ends_gives_up_the_login_under_way() {
    let scene = Scene::new(AuthoritySettings::default());
    let host = Arc::new(scene.settled().await);
    let mut login = host
        .login("shop", LoginOptions::default())
        .await
        .expect("begun");
    assert!(login.invitation().await.is_some());
    let host = Arc::into_inner(host).expect("ours");
    host.shutdown().await;
    let outcome = login.outcome().await.expect("it is ours");
    assert!(matches!(outcome, Err(LoginProblem::Ended)), "{outcome:?}");
}

#[tokio::test]
async fn rel_26_a_server_that_is_never_content_opens_one_window_for_each_scope_and_then_none() {
    let scene = Scene::new(AuthoritySettings::default());
    let host = scene.settled().await;
    log_in(&host, LoginOptions::default()).await;
    until_connected(&host).await;
    scene.authority.turn_on(Switch::ScopeNever);
    let mut windows = 0;
    let problem = loop {
        host.reconnect("shop").await.expect("known");
        assert!(needs_auth(&host));
        let mut login = match host.login("shop", LoginOptions::default()).await {
            Ok(login) => login,
            Err(problem) => break problem,
        };
        let Some(invitation) = login.invitation().await else {
            break login.outcome().await.expect("ours").expect_err("refused");
        };
        windows += 1;
        assert!(windows <= 5, "a person is not asked for ever");
        visit(Some(invitation)).await;
        let outcome = login.outcome().await.expect("ours");
        outcome.expect("logged in");
    };
    assert!(matches!(problem, LoginProblem::Spent { .. }), "{problem:?}");
    host.shutdown().await;
}
