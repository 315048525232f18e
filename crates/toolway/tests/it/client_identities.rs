//! Logins that reach further than the one before, and logins that show what no person types: a
//! key, or the word of the platform.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::json;
use toolway::auth::{
    AuthOptions, ClientIdentities, Invitation, LoggedIn, LoginOptions, LoginProblem, WorkloadToken,
};
use toolway::{CallError, CallOptions, Consent, Host, HostOptions, ToolRequest, ToolTarget};
use toolway_auth::assertion::ClientKey;
use toolway_auth::idp::{self, IdentityProvider, IdentityStore, IdpSettings};
use toolway_auth::jwt::SigningKey;
use toolway_auth::login::{LoginMethod, LoginPage, LoginUi};
use toolway_auth::scopes::LoginAttemptError;
use toolway_auth::vault::{StorageChoice, Vault, VaultOptions};
use toolway_auth::voucher::workload::PlatformTokenSource;
use toolway_auth::web::WebClient;
use toolway_testkit::authority::{Authority, AuthoritySettings, KnownClient, RequestedParty};
use toolway_testkit::browser::browse;
use toolway_types::{ConnectionState, Secret};

use crate::support::*;

/// A host with one server, `shop`, whose `oauth` settings these are.
async fn host(
    home: &Home,
    authority: &Authority,
    oauth: serde_json::Value,
    client_identities: ClientIdentities,
) -> Host {
    let mut entry = authority.entry();
    entry["oauth"] = oauth;
    let vault = Vault::open(VaultOptions {
        storage: StorageChoice::File,
        ..VaultOptions::new(home.path().join("vault"))
    });
    let options = HostOptions {
        auth: AuthOptions {
            vault: Some(vault),
            client_identities,
            ..AuthOptions::default()
        },
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({ "shop": entry })), options);
    host.settled().await;
    host
}

/// Logs in; a page that is to be opened is opened. How many there were comes with it.
async fn log_in(host: &Host, options: LoginOptions) -> (usize, Result<LoggedIn, LoginProblem>) {
    let mut login = host.login("shop", options).await.expect("begun");
    let invitation = login.invitation().await;
    let pages = usize::from(invitation.is_some());
    if let Some(Invitation::Page { url, .. }) = invitation {
        let visited = tokio::task::spawn_blocking(move || browse(url.as_str()));
        visited.await.expect("no panic");
    }
    (pages, login.outcome().await.expect("it is ours"))
}

async fn connect(host: &Host) {
    let state = host.reconnect("shop").await.expect("known");
    assert!(matches!(state, ConnectionState::Connected(_)), "{state:?}");
}

async fn whoami(host: &Host) -> Result<String, CallError> {
    let request = ToolRequest::new(
        ToolTarget::Exposed("mcp__shop__whoami".to_owned()),
        serde_json::Map::new(),
    );
    let answer = host.call(request, CallOptions::new(Consent::Typed)).await?;
    Ok(answer.raw.get().to_owned())
}

/// Calls, and is told that the login does not reach that far.
async fn falls_short(host: &Host, wanted: &str) {
    let error = whoami(host).await.expect_err("it needs more");
    let CallError::NeedsAuth { scopes, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(scopes, &[wanted]);
}

#[tokio::test]
async fn a_login_after_a_call_that_needs_more_asks_for_all_of_it_and_the_connection_stands() {
    let (home, authority) = (
        Home::new(),
        Authority::start(AuthoritySettings {
            challenge_scopes: vec!["read".to_owned()],
            call_scopes: vec!["write".to_owned()],
            ..AuthoritySettings::default()
        }),
    );
    let host = host(&home, &authority, json!({}), ClientIdentities::default()).await;
    log_in(&host, LoginOptions::default()).await.1.expect("in");
    connect(&host).await;
    falls_short(&host, "write").await;
    facts(&host, "shop");
    log_in(&host, LoginOptions::default()).await.1.expect("in");
    let answer = whoami(&host).await.expect("it reaches now");
    assert!(answer.contains("read"), "{answer}");
    assert!(answer.contains("write"), "{answer}");
    let asked = authority.seen_at(RequestedParty::Issuer, "/authorize");
    assert_eq!(asked.len(), 2);
    let scopes: Vec<&str> = asked[1]
        .param("scope")
        .unwrap_or_default()
        .split(' ')
        .collect();
    assert!(
        scopes.contains(&"read") && scopes.contains(&"write"),
        "{scopes:?}"
    );
    host.shutdown().await;
}

#[tokio::test]
async fn rel_26_a_call_that_no_login_helps_opens_one_window_and_then_none() {
    let (home, authority) = (
        Home::new(),
        Authority::start(AuthoritySettings {
            challenge_scopes: vec!["read".to_owned()],
            call_scopes: vec!["nobody-gets-this".to_owned()],
            ..AuthoritySettings::default()
        }),
    );
    let host = host(&home, &authority, json!({}), ClientIdentities::default()).await;
    log_in(&host, LoginOptions::default()).await.1.expect("in");
    connect(&host).await;
    falls_short(&host, "nobody-gets-this").await;
    let (pages, outcome) = log_in(&host, LoginOptions::default()).await;
    outcome.expect("in");
    assert_eq!(pages, 1);
    falls_short(&host, "nobody-gets-this").await;
    let (pages, outcome) = log_in(&host, LoginOptions::default()).await;
    assert_eq!(pages, 0);
    let problem = outcome.expect_err("it would not help");
    let LoginProblem::Spent { why, .. } = &problem else {
        panic!("{problem:?}");
    };
    assert_eq!(*why, LoginAttemptError::NothingNew);
    // A person who wants to log in anew, as somebody else perhaps, still can.
    let (pages, outcome) = log_in(&host, LoginOptions::default()).await;
    outcome.expect("in");
    assert_eq!(pages, 1);
    host.shutdown().await;
}

#[tokio::test]
async fn a_client_with_a_key_logs_itself_in_and_renews_by_it() {
    let pem = rcgen::KeyPair::generate().expect("a key").serialize_pem();
    let key = SigningKey::from_pem(&Secret::new(pem), None).expect("read");
    let (home, authority) = (
        Home::new(),
        Authority::start(AuthoritySettings {
            clients: vec![KnownClient {
                id: "robot".to_owned(),
                method: Some("private_key_jwt".to_owned()),
                jwks: Some(json!({ "keys": [key.public_jwk()] })),
                ..KnownClient::default()
            }],
            ..AuthoritySettings::default()
        }),
    );
    let key = Arc::new(ClientKey { key, id: None });
    let client_identities = ClientIdentities {
        keys: BTreeMap::from([("shop".to_owned(), key)]),
        ..ClientIdentities::default()
    };
    let host = host(
        &home,
        &authority,
        json!({ "clientId": "robot" }),
        client_identities,
    )
    .await;
    let options = LoginOptions {
        way: LoginMethod::ClientCredentials,
        ..LoginOptions::default()
    };
    let (pages, outcome) = log_in(&host, options).await;
    outcome.expect("in");
    assert_eq!(pages, 0);
    connect(&host).await;
    authority.expire_access_tokens();
    let answer = whoami(&host).await.expect("renewed");
    assert!(answer.contains("client=robot"), "{answer}");
    assert_eq!(authority.report().granted("client_credentials"), 2);
    host.shutdown().await;
}

/// A person at the platform's own login page.
struct Visitor;

impl LoginUi for Visitor {
    fn open<'a>(&'a self, page: LoginPage<'a>) -> BoxFuture<'a, Result<(), String>> {
        let page = page.url.to_string();
        // The page leads back to a callback that answers only while the login waits.
        std::thread::spawn(move || browse(&page));
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn a_platform_vouches_and_nobody_is_asked() {
    let platform = Authority::start(AuthoritySettings {
        clients: vec![KnownClient {
            id: "at-the-platform".to_owned(),
            ..KnownClient::default()
        }],
        assertion_client: Some("workload".to_owned()),
        ..AuthoritySettings::identity_provider()
    });
    let (home, authority) = (
        Home::new(),
        Authority::start(AuthoritySettings {
            trusted: vec![platform.issuer().to_owned()],
            clients: vec![KnownClient {
                id: "workload".to_owned(),
                ..KnownClient::default()
            }],
            ..AuthoritySettings::default()
        }),
    );
    let settings = IdpSettings {
        issuer: platform.issuer().to_owned(),
        client_id: "at-the-platform".to_owned(),
        ..IdpSettings::default()
    };
    let web = WebClient::trusted(toolway_transport::client::HttpClient::default());
    let provider = IdentityProvider::new(settings, web, Arc::new(IdentityStore::default()));
    let identity = provider
        .identity(idp::IdpLoginMethod::Browser(&Visitor))
        .await;
    let identity = identity.expect("somebody");
    let token = provider
        .assertion(&identity, authority.issuer(), authority.resource(), &[])
        .await
        .expect("a token");
    let workload = WorkloadToken {
        source: Arc::new(PlatformTokenSource::Given(token)),
        audience: None,
    };
    let client_identities = ClientIdentities {
        workloads: BTreeMap::from([("shop".to_owned(), workload)]),
        ..ClientIdentities::default()
    };
    let host = host(
        &home,
        &authority,
        json!({ "clientId": "workload" }),
        client_identities,
    )
    .await;
    facts(&host, "shop");
    let answer = whoami(&host).await.expect("connected by itself");
    assert!(answer.contains("client=workload"), "{answer}");
    assert_eq!(
        authority
            .seen_at(RequestedParty::Issuer, "/authorize")
            .len(),
        0
    );
    assert_eq!(authority.report().attacker_requests, 0);
    host.shutdown().await;
}
