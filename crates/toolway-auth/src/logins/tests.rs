//! Which login belongs to a server, and what becomes of it.

use std::path::Path;

use toolway_testkit::ScannedFolder;
use toolway_testkit::authority::{Authority, AuthoritySettings};
use toolway_testkit::marked;
use toolway_types::Secret;
use url::Url;

use super::{DEFAULT_ACCOUNT, Login, LoginGrant, Logins, LoginsError};
use crate::clock::unix_now;
use crate::registration::{AuthMethod, ClientHistory, ClientSource, RegisteredClient};
use crate::token::{DpopKey, TokenKind, Tokens};
use crate::vault::{StorageChoice, Vault, VaultOptions};

pub(crate) fn logins(folder: &Path) -> Logins {
    Logins::new(Vault::open(VaultOptions {
        storage: StorageChoice::File,
        ..VaultOptions::new(folder)
    }))
}

/// A public client that the authority knows.
pub(crate) fn settings() -> AuthoritySettings {
    AuthoritySettings {
        clients: vec![toolway_testkit::authority::KnownClient {
            id: "client".to_owned(),
            ..Default::default()
        }],
        ..AuthoritySettings::default()
    }
}

/// A login at an authority, whose access token is due.
pub(crate) fn due(authority: &Authority, server: &str) -> Login {
    let tokens = authority.issue("client", "read offline_access");
    let now = unix_now();
    Login {
        server: server.to_owned(),
        definition: "d".to_owned(),
        account: DEFAULT_ACCOUNT.to_owned(),
        issuer: authority.issuer().to_owned(),
        resource: authority.resource().to_owned(),
        client: RegisteredClient {
            client_id: "client".to_owned(),
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
            refresh: tokens.refresh.map(Secret::new),
            id_token: None,
            expires_at: Some(now - 10),
            received_at: now - 3600,
            scopes: vec!["read".to_owned()],
        },
        requested: vec!["read".to_owned()],
        token_endpoint: Url::parse(&format!("{}/token", authority.issuer())).unwrap(),
        revocation_endpoint: None,
        how: LoginGrant::Code,
        dpop: None,
        logged_in_at: now - 3600,
        is_trusted: false,
        client_key: None,
    }
}

fn of_account(login: &Login, account: &str, logged_in_at: u64) -> Login {
    Login {
        account: account.to_owned(),
        logged_in_at,
        ..login.clone()
    }
}

#[tokio::test]
async fn a_server_has_the_login_of_its_definition_and_account() {
    let home = ScannedFolder::new();
    let authority = Authority::start(settings());
    let logins = logins(home.path());
    let login = Login {
        dpop: Some(DpopKey::generate().unwrap()),
        ..due(&authority, "a")
    };
    let find = async |account| {
        let found = logins.find("a", "d", account).await.unwrap();
        found.map(|login| login.account)
    };
    assert_eq!(find(None).await, None);
    logins.save(&of_account(&login, "work", 5)).await.unwrap();
    logins.save(&of_account(&login, "home", 7)).await.unwrap();
    assert_eq!(find(None).await.as_deref(), Some("home"), "the last one");
    assert_eq!(find(Some("work")).await.as_deref(), Some("work"));
    assert_eq!(find(Some("other")).await, None);
    logins
        .save(&of_account(&login, "default", 1))
        .await
        .unwrap();
    assert_eq!(find(None).await.as_deref(), Some("default"));
    assert_eq!(logins.find("a", "other", None).await.unwrap(), None);

    let found = logins.find("a", "d", Some("work")).await.unwrap().unwrap();
    assert_eq!(found, of_account(&login, "work", 5));
    let removed = logins.remove(&found.key()).await.unwrap();
    assert_eq!(removed, Some(found));
    assert_eq!(find(Some("work")).await, None);
}

#[tokio::test]
async fn a_login_elsewhere_takes_the_place_of_the_old_one() {
    let home = ScannedFolder::new();
    let (one, two) = (Authority::start(settings()), Authority::start(settings()));
    let logins = logins(home.path());
    logins.save(&due(&one, "a")).await.unwrap();
    logins.save(&due(&one, "b")).await.unwrap();
    logins.save(&due(&two, "a")).await.unwrap();
    let keys = logins.keys("a", "d", None).await.unwrap();
    assert_eq!(keys.len(), 1);
    assert_eq!(keys[0].issuer, two.issuer());
    assert_eq!(logins.keys("b", "d", None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_client_is_kept_for_its_issuer_and_no_other() {
    let home = ScannedFolder::new();
    let logins = logins(home.path());
    let client = RegisteredClient {
        client_id: "one".to_owned(),
        client_secret: Some(marked!("client-").into()),
        auth_method: AuthMethod::ClientSecretPost,
        source: ClientSource::Dynamic,
        secret_expires_at: None,
        redirect_uri: None,
        scopes: Vec::new(),
        other_method: None,
        history: ClientHistory::default(),
    };
    logins
        .save_client("https://a.example", &client)
        .await
        .unwrap();
    let kept = logins.client("https://a.example").await.unwrap();
    assert_eq!(kept.as_ref(), Some(&client));
    assert_eq!(logins.client("https://a.example/").await.unwrap(), None);
    logins
        .remove_client("https://a.example", "two")
        .await
        .unwrap();
    assert!(logins.client("https://a.example").await.unwrap().is_some());
    logins
        .remove_client("https://a.example", "one")
        .await
        .unwrap();
    assert_eq!(logins.client("https://a.example").await.unwrap(), None);
}

#[tokio::test]
async fn what_is_no_login_is_named_and_can_be_removed() {
    let home = ScannedFolder::new();
    let authority = Authority::start(settings());
    let logins = logins(home.path());
    let key = due(&authority, "a").key();
    logins
        .vault()
        .write(&key, &marked!("{\"", "\": 1}").into())
        .await
        .unwrap();
    let error = logins.read(&key).await.unwrap_err();
    assert!(matches!(error, LoginsError::Unreadable { .. }));
    assert_eq!(
        error.to_string(),
        "the login of `a` is not of a kind that this version understands; log in again"
    );
    assert_eq!(logins.remove(&key).await.unwrap(), None);
    assert_eq!(logins.read(&key).await.unwrap(), None);
}
