//! Cross-app access against an identity provider and authorization servers that enforce their
//! rules, and break them on command (SEC-45).

mod callers;
mod renewal;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use futures_util::future::{BoxFuture, join_all};
use toolway_auth::discovery::{DiscoveredServer, DiscoveryOptions, discover};
use toolway_auth::idp::{
    IdentityProvider, IdentityStore, IdpError, IdpLoginMethod, IdpSettings, UserIdentity,
};
use toolway_auth::login::{DeviceCodePrompt, LoginPage, LoginUi};
use toolway_auth::token::{ClientAuth, OauthClient, Tokens};
use toolway_auth::vault::{StorageChoice, Vault, VaultOptions};
use toolway_auth::voucher::xaa::{CrossAppRule, TokenTarget, XaaError, obtain};
use toolway_auth::web::{NetworkReach, WebClient};
use toolway_testkit::ScannedFolder;
use toolway_testkit::authority::{
    Authority, AuthoritySettings, CANARY, KnownClient, RequestedParty, Switch, holds_secret,
};
use toolway_testkit::browser::browse;
use toolway_transport::client::HttpClient as Http;
use toolway_types::Secret;
use url::Url;

/// A user who does what the login page asks.
#[derive(Default)]
struct Person {
    windows: AtomicUsize,
    codes: AtomicUsize,
    browsers: Mutex<Vec<JoinHandle<()>>>,
}

impl LoginUi for Person {
    fn open<'a>(&'a self, page: LoginPage<'a>) -> BoxFuture<'a, Result<(), String>> {
        self.windows.fetch_add(1, Ordering::SeqCst);
        let page = page.url.to_string();
        let browser = std::thread::spawn(move || drop(browse(&page)));
        self.browsers.lock().unwrap().push(browser);
        Box::pin(async { Ok(()) })
    }

    fn device(&self, _: DeviceCodePrompt<'_>) {
        self.codes.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        for browser in self.browsers.get_mut().unwrap().drain(..) {
            let _ = browser.join();
        }
    }
}

fn web() -> WebClient {
    WebClient::new(Http::default(), NetworkReach::Loopback)
}

fn idp_with(switches: &[Switch]) -> Authority {
    Authority::start(idp_settings(switches))
}

fn idp_settings(switches: &[Switch]) -> AuthoritySettings {
    AuthoritySettings {
        switches: switches.to_vec(),
        clients: vec![KnownClient {
            id: "at-the-provider".to_owned(),
            secret: Some(format!("{CANARY}-provider")),
            ..KnownClient::default()
        }],
        assertion_client: Some("at-the-server".to_owned()),
        device_interval: 1,
        ..AuthoritySettings::identity_provider()
    }
}

fn settings(idp: &Authority) -> IdpSettings {
    IdpSettings {
        issuer: idp.issuer().to_owned(),
        client_id: "at-the-provider".to_owned(),
        client_secret: Some(Secret::new(format!("{CANARY}-provider"))),
        ..IdpSettings::default()
    }
}

fn provider(idp: &Authority) -> (IdentityProvider, Arc<IdentityStore>) {
    let store = Arc::new(IdentityStore::default());
    let web = WebClient::trusted(Http::default());
    (
        IdentityProvider::new(settings(idp), web, Arc::clone(&store)),
        store,
    )
}

/// A server with its authorization server, found the way every server's is.
struct Server {
    authority: Authority,
    client: OauthClient,
    found: DiscoveredServer,
    scopes: Vec<String>,
}

impl Server {
    async fn trusting(idp: &Authority, switches: &[Switch]) -> Self {
        let secret = format!("{CANARY}-server");
        let authority = Authority::start(AuthoritySettings {
            switches: switches.to_vec(),
            trusted: vec![idp.issuer().to_owned()],
            clients: vec![KnownClient {
                id: "at-the-server".to_owned(),
                secret: Some(secret.clone()),
                ..KnownClient::default()
            }],
            ..AuthoritySettings::default()
        });
        let url = Url::parse(authority.resource()).unwrap();
        let found = discover(&web(), &url, None, &DiscoveryOptions::default()).await;
        Self {
            client: OauthClient::new("at-the-server", ClientAuth::Basic(Secret::new(secret))),
            authority,
            found: found.unwrap(),
            scopes: vec!["read".to_owned()],
        }
    }

    async fn ask(
        &self,
        provider: &IdentityProvider,
        way: IdpLoginMethod<'_>,
        rule: CrossAppRule,
    ) -> Result<Option<Tokens>, XaaError> {
        let target = TokenTarget {
            server: &self.found.server,
            resource: &self.found.resource,
            client: &self.client,
            scopes: &self.scopes,
            dpop: None,
        };
        obtain(provider, way, &self.found.web, &target, rule).await
    }

    async fn tokens(&self, provider: &IdentityProvider, way: IdpLoginMethod<'_>) -> Tokens {
        match self.ask(provider, way, CrossAppRule::Only).await {
            Ok(Some(tokens)) => tokens,
            other => panic!("no tokens: {other:?}"),
        }
    }

    fn bearers(&self) -> u64 {
        self.authority.report().token_requests("jwt-bearer")
    }
}

/// The error behind those that all waiting callers got.
fn cause(error: &XaaError) -> &IdpError {
    match error {
        XaaError::Identity(IdpError::Together(error)) => error,
        XaaError::Identity(error) => error,
        other => panic!("another error: {other}"),
    }
}

#[tokio::test]
async fn sec_45_one_login_serves_every_server() {
    let idp = idp_with(&[]);
    let mut servers = Vec::new();
    for _ in 0..4 {
        servers.push(Server::trusting(&idp, &[]).await);
    }
    let (provider, store) = provider(&idp);
    let person = Person::default();
    let way = IdpLoginMethod::Browser(&person);
    let tokens = join_all(servers.iter().map(|server| server.tokens(&provider, way))).await;
    assert_eq!(person.windows.load(Ordering::SeqCst), 1);
    assert_eq!(idp.report().authorizations, 1);

    let identity = store.read(provider.settings()).await.unwrap().unwrap();
    for (server, tokens) in servers.iter().zip(&tokens) {
        assert!(server.authority.is_valid(tokens.access.expose()));
        assert_eq!(tokens.refresh, None);
        // The provider was asked for an assertion for this issuer and this server.
        let exchanges = idp.seen_at(RequestedParty::Issuer, "/token");
        assert!(exchanges.iter().any(|seen| {
            seen.param("audience") == Some(server.authority.issuer())
                && seen.param("resource") == Some(server.authority.resource())
        }));
        // The id token stays between us and the provider; the assertion is seen by its audience.
        for seen in server.authority.seen() {
            assert!(!seen.text().contains(identity.id_token.expose()));
            let shown = seen.param("assertion").is_some();
            assert!(
                !shown || (seen.party == RequestedParty::Issuer && seen.path.ends_with("/token"))
            );
        }
        assert_eq!(server.authority.report().attacker_requests, 0);
    }

    // Renewing repeats the same steps, without the user.
    for server in &servers {
        let again = server.tokens(&provider, IdpLoginMethod::StoredOnly).await;
        assert!(server.authority.is_valid(again.access.expose()));
        assert_eq!(server.bearers(), 2);
    }
    assert_eq!(idp.report().authorizations, 1);
}

#[tokio::test]
async fn sec_45_a_server_cannot_name_its_own_provider() {
    let idp = idp_with(&[]);
    let server = Server::trusting(&idp, &[Switch::ResourceNamesProvider]).await;
    let (provider, _) = provider(&idp);
    let person = Person::default();
    let tokens = server
        .tokens(&provider, IdpLoginMethod::Browser(&person))
        .await;
    assert!(server.authority.is_valid(tokens.access.expose()));
    assert_eq!(server.authority.report().attacker_requests, 0);
    assert_eq!(idp.report().granted("token-exchange"), 1);
}

#[tokio::test]
async fn sec_45_an_assertion_for_somebody_else_is_not_sent() {
    for switch in [Switch::ExchangeAudience, Switch::ExchangeType] {
        let idp = idp_with(&[switch]);
        let server = Server::trusting(&idp, &[]).await;
        let (provider, _) = provider(&idp);
        let person = Person::default();
        for rule in [CrossAppRule::Only, CrossAppRule::Preferred] {
            let asked = server
                .ask(&provider, IdpLoginMethod::Browser(&person), rule)
                .await;
            let error = asked.expect_err("refused");
            assert!(!holds_secret(&format!("{error} {error:?}")), "{error:?}");
        }
        assert_eq!(server.bearers(), 0, "{switch:?}");
        assert_eq!(idp.report().attacker_requests, 0);
    }
}

#[tokio::test]
async fn sec_45_an_id_token_that_is_not_right_is_not_used() {
    for switch in [
        Switch::IdTokenUnsigned,
        Switch::IdTokenIssuer,
        Switch::IdTokenAudience,
        Switch::IdTokenNonce,
        Switch::IdTokenExpired,
    ] {
        let idp = idp_with(&[switch]);
        let server = Server::trusting(&idp, &[]).await;
        let (provider, store) = provider(&idp);
        let person = Person::default();
        let asked = server
            .ask(
                &provider,
                IdpLoginMethod::Browser(&person),
                CrossAppRule::Only,
            )
            .await;
        let error = asked.expect_err("refused");
        assert!(
            matches!(cause(&error), IdpError::Claims { .. }),
            "{switch:?}: {error}"
        );
        assert!(!holds_secret(&format!("{error} {error:?}")));
        assert_eq!(idp.report().token_requests("token-exchange"), 0);
        assert_eq!(server.bearers(), 0);
        assert!(store.read(provider.settings()).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn sec_45_where_policy_says_so_there_is_no_other_way() {
    let idp = idp_with(&[]);
    let mut server = Server::trusting(&idp, &[]).await;
    let (provider, _) = provider(&idp);
    let person = Person::default();
    let way = IdpLoginMethod::Browser(&person);
    // It does not take assertions.
    server.found.server.grant_types = Some(vec!["authorization_code".to_owned()]);
    let only = server.ask(&provider, way, CrossAppRule::Only).await;
    assert!(matches!(only, Err(XaaError::NotOffered { .. })), "{only:?}");
    let preferred = server.ask(&provider, way, CrossAppRule::Preferred).await;
    assert!(matches!(preferred, Ok(None)));
    // Its identity was not checked.
    server.found.server.grant_types = None;
    server.found.server.is_assumed = true;
    let only = server.ask(&provider, way, CrossAppRule::Only).await;
    assert!(
        matches!(only, Err(XaaError::NotValidated { .. })),
        "{only:?}"
    );
    let preferred = server.ask(&provider, way, CrossAppRule::Preferred).await;
    assert!(matches!(preferred, Ok(None)));
    assert_eq!(person.windows.load(Ordering::SeqCst), 0);
    assert_eq!(server.authority.report().authorizations, 0);
    // It takes them, and refuses this one: that is an answer, and no reason for another login.
    server.found.server.is_assumed = false;
    server.client.id = "somebody-else".to_owned();
    for rule in [CrossAppRule::Only, CrossAppRule::Preferred] {
        server.ask(&provider, way, rule).await.expect_err("refused");
    }
    assert_eq!(server.authority.report().authorizations, 0);
}

#[tokio::test]
async fn a_login_that_is_declined_is_declined_for_all() {
    let idp = idp_with(&[Switch::AuthorizationDenied]);
    let server = Server::trusting(&idp, &[]).await;
    let (provider, _) = provider(&idp);
    let person = Person::default();
    let way = IdpLoginMethod::Browser(&person);
    let asked = join_all((0..5).map(|_| server.ask(&provider, way, CrossAppRule::Only))).await;
    for asked in asked {
        let error = asked.expect_err("declined");
        assert!(matches!(cause(&error), IdpError::Callback(_)), "{error}");
    }
    assert_eq!(person.windows.load(Ordering::SeqCst), 1);
    // A later start is a new one.
    idp.turn_off(Switch::AuthorizationDenied);
    server.tokens(&provider, way).await;
    assert_eq!(person.windows.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn on_another_device_it_works_the_same() {
    let idp = idp_with(&[]);
    let server = Server::trusting(&idp, &[]).await;
    let (provider, _) = provider(&idp);
    let person = Person::default();
    let tokens = server
        .tokens(&provider, IdpLoginMethod::Device(&person))
        .await;
    assert!(server.authority.is_valid(tokens.access.expose()));
    assert_eq!(person.codes.load(Ordering::SeqCst), 1);
    assert_eq!(person.windows.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_identity_that_the_provider_refuses_is_asked_for_anew_once() {
    let idp = idp_with(&[]);
    let server = Server::trusting(&idp, &[]).await;
    let (provider, store) = provider(&idp);
    let person = Person::default();
    server
        .tokens(&provider, IdpLoginMethod::Browser(&person))
        .await;
    let kept = store.read(provider.settings()).await.unwrap().unwrap();
    let stale = UserIdentity {
        id_token: Secret::new("bm8.bm8.bm8"),
        ..kept
    };
    store.write(provider.settings(), &stale).await.unwrap();
    let asked = server
        .ask(&provider, IdpLoginMethod::StoredOnly, CrossAppRule::Only)
        .await;
    let error = asked.expect_err("nobody to ask");
    assert!(
        matches!(cause(&error), IdpError::NeedsLogin { .. }),
        "{error}"
    );
    store.write(provider.settings(), &stale).await.unwrap();
    server
        .tokens(&provider, IdpLoginMethod::Browser(&person))
        .await;
    assert_eq!(person.windows.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn nobody_is_asked_when_nobody_may_be() {
    let idp = idp_with(&[]);
    let server = Server::trusting(&idp, &[]).await;
    let (provider, _) = provider(&idp);
    let asked = server
        .ask(&provider, IdpLoginMethod::StoredOnly, CrossAppRule::Only)
        .await;
    let error = asked.expect_err("nobody is logged in");
    assert!(error.to_string().contains("toolway idp login"), "{error}");
    assert!(idp.seen().is_empty());
}

#[tokio::test]
async fn the_clock_of_the_provider_may_be_wrong() {
    for switch in [
        Switch::DateAheadHour,
        Switch::DateBehindHour,
        Switch::DateAheadYear,
        Switch::DateBehindYear,
        Switch::DateMissing,
    ] {
        let idp = idp_with(&[switch]);
        let server = Server::trusting(&idp, &[switch]).await;
        let (provider, _) = provider(&idp);
        let person = Person::default();
        server
            .tokens(&provider, IdpLoginMethod::Browser(&person))
            .await;
        server
            .tokens(&provider, IdpLoginMethod::Browser(&person))
            .await;
        assert_eq!(person.windows.load(Ordering::SeqCst), 1, "{switch:?}");
    }
}

#[tokio::test]
async fn the_vault_carries_an_identity_to_other_processes() {
    let idp = idp_with(&[]);
    let server = Server::trusting(&idp, &[]).await;
    let folder = ScannedFolder::new();
    let process = || {
        let vault = Vault::open(VaultOptions {
            storage: StorageChoice::File,
            ..VaultOptions::new(folder.path().join("vault"))
        });
        let store = Arc::new(IdentityStore::new(vault));
        IdentityProvider::new(settings(&idp), WebClient::trusted(Http::default()), store)
    };
    let (one, other) = (process(), process());
    let person = Person::default();
    let way = IdpLoginMethod::Browser(&person);
    // Both at once: the second finds what the first got.
    tokio::join!(server.tokens(&one, way), server.tokens(&other, way));
    assert_eq!(person.windows.load(Ordering::SeqCst), 1);
    let third = process();
    server.tokens(&third, IdpLoginMethod::StoredOnly).await;

    one.logout().await.unwrap();
    assert!(process().kept().await.unwrap().is_none());
    // The others hear of it.
    while other.kept().await.unwrap().is_some() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    // Nothing readable is left in the folder.
    server.tokens(&one, way).await;
    for entry in std::fs::read_dir(folder.path().join("vault")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            assert!(!holds_secret(&text), "{}", path.display());
        }
    }
}

#[tokio::test]
async fn the_metadata_must_be_the_providers_own() {
    for switch in [
        Switch::IssuerOther,
        Switch::IssuerTrailingSlash,
        Switch::MetadataHtml,
    ] {
        let idp = idp_with(&[switch]);
        let (provider, _) = provider(&idp);
        let person = Person::default();
        let error = provider
            .identity(IdpLoginMethod::Browser(&person))
            .await
            .expect_err("refused");
        assert_eq!(
            person.windows.load(Ordering::SeqCst),
            0,
            "{switch:?}: {error}"
        );
        assert_eq!(idp.report().attacker_requests, 0);
    }
}

#[tokio::test]
async fn sec_47_nothing_about_a_person_is_shown() {
    let idp = idp_with(&[]);
    let server = Server::trusting(&idp, &[]).await;
    let (provider, store) = provider(&idp);
    let person = Person::default();
    let tokens = server
        .tokens(&provider, IdpLoginMethod::Browser(&person))
        .await;
    let identity = store.read(provider.settings()).await.unwrap().unwrap();
    let shown = format!(
        "{tokens:?} {identity:#?} {provider:?} {store:?} {:?} {:?}",
        server.client, server.found
    );
    assert!(!holds_secret(&shown), "{shown}");
    assert!(!shown.contains(identity.id_token.expose()));
}

/// What is handed to tasks of a runtime with several threads must be able to move between them.
#[test]
fn a_login_can_run_on_any_thread() {
    fn moves<T: Send>(_: &T) {}
    fn check(
        provider: &IdentityProvider,
        way: IdpLoginMethod<'_>,
        web: &WebClient,
        target: &TokenTarget<'_>,
    ) {
        moves(&provider.identity(way));
        moves(&obtain(provider, way, web, target, CrossAppRule::Only));
    }
    let _ = check;
}
