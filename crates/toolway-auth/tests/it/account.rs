//! The account's token: what is sent, what follows a refusal, and when it is renewed.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use toolway_auth::account::{
    AccountLoginTarget, AccountSpec, ProviderAccount, ProviderAccountError, StoredAccount,
};
use toolway_auth::clock::unix_now;
use toolway_auth::login::LoginMethod;
use toolway_auth::logins::{Login, Logins};
use toolway_auth::refresh::LoginEnd;
use toolway_auth::vault::{SecretKind, StorageChoice, Vault, VaultOptions};
use toolway_auth::web::WebClient;
use toolway_testkit::ScannedFolder;
use toolway_testkit::authority::{
    Authority, AuthoritySettings, RequestedParty, Switch, holds_secret,
};
use toolway_testkit::eventually;
use toolway_transport::client::HttpClient;
use toolway_types::Secret;
use url::Url;

use crate::person::{Habit, Tester};

/// A provider, and a vault that every account here shares as processes do.
struct Scene {
    folder: ScannedFolder,
    authority: Authority,
}

impl Scene {
    /// There is a login.
    async fn new(settings: AuthoritySettings) -> Self {
        let scene = Self::without_login(settings);
        let person = Tester::new(Habit::Browses);
        scene
            .kept()
            .log_in(LoginMethod::Browser, &person)
            .await
            .unwrap();
        person.walked().await;
        scene
    }

    fn without_login(settings: AuthoritySettings) -> Self {
        Self {
            folder: ScannedFolder::new(),
            authority: Authority::start(settings),
        }
    }

    fn logins(&self) -> Logins {
        Logins::new(Vault::open(VaultOptions {
            storage: StorageChoice::File,
            ..VaultOptions::new(self.folder.path())
        }))
    }

    fn directory(&self) -> Url {
        self.authority.directory().parse().unwrap()
    }

    fn kept(&self) -> StoredAccount {
        let login = AccountLoginTarget {
            host: "provider.example".to_owned(),
            definition: "d".to_owned(),
            issuer: self.authority.issuer().to_owned(),
            metadata_url: None,
            directory: self.directory(),
            client_id: None,
            scopes: None,
            callback_port: None,
        };
        StoredAccount::new(login, self.logins(), web())
    }

    /// The account as one more process has it.
    fn account(&self) -> ProviderAccount {
        self.account_with("authorization", "Bearer")
    }

    fn account_with(&self, token_header: &str, token_prefix: &str) -> ProviderAccount {
        let spec = AccountSpec {
            host: "provider.example".to_owned(),
            directory: self.directory(),
            headers: vec![("x-client".to_owned(), Secret::new("toolway"))],
            token_header: token_header.to_owned(),
            token_prefix: token_prefix.to_owned(),
        };
        ProviderAccount::new(spec, web(), Arc::new(self.kept()))
    }

    async fn login(&self) -> Login {
        let logins = self.logins();
        let listed = logins.vault().list().await.unwrap();
        let mut keys = listed.into_iter().map(|listed| listed.key);
        let key = keys.find(|key| key.kind == SecretKind::Account).unwrap();
        logins.read(&key).await.unwrap().unwrap()
    }

    /// Has this clock think that the token is good for so long, of an hour.
    async fn has_left(&self, left: Duration) {
        let mut login = self.login().await;
        login.tokens.expires_at = Some(unix_now() + left.as_secs());
        login.tokens.received_at = unix_now() + left.as_secs() - 3600;
        self.logins().save(&login).await.unwrap();
    }

    /// How often the directory was asked for with a token; a login looks there without.
    fn asked(&self) -> usize {
        let seen = self.authority.seen_at(RequestedParty::Issuer, "/directory");
        let shown = seen.iter().filter_map(|seen| seen.header("authorization"));
        shown.count()
    }

    fn refreshes(&self) -> u64 {
        self.authority.report().token_requests("refresh_token")
    }
}

fn web() -> WebClient {
    WebClient::trusted(HttpClient::default())
}

fn token(headers: &HeaderMap) -> &str {
    let value = headers["authorization"].to_str().unwrap();
    value.strip_prefix("Bearer ").unwrap()
}

#[tokio::test]
async fn what_is_sent_is_the_token_and_what_the_settings_say() {
    let scene = Scene::new(AuthoritySettings::account_provider()).await;
    let account = scene.account();
    let sent = account.present().await.unwrap();
    assert!(scene.authority.is_valid(token(&sent)));
    assert_eq!(sent["x-client"], "toolway");
    assert!(sent.values().all(http::HeaderValue::is_sensitive));
    assert!(!holds_secret(&format!("{account:?} {sent:?}")));
    // Another header, and nothing before the token.
    let other = scene.account_with("x-token", "");
    let other_sent = other.present().await.unwrap();
    assert_eq!(other_sent["x-token"], token(&sent));
    assert!(!other_sent.contains_key("authorization"));
    // What was refused without any token is not about the token.
    assert_eq!(account.instead_of(&other_sent).await.unwrap(), None);
    assert_eq!(scene.refreshes(), 0);
    let renewed = other.instead_of(&other_sent).await.unwrap().unwrap();
    assert_ne!(renewed["x-token"], other_sent["x-token"]);
    assert_eq!(scene.refreshes(), 1);
}

#[tokio::test]
async fn a_refused_request_is_sent_once_more_and_not_for_ever() {
    let scene = Scene::new(AuthoritySettings::account_provider()).await;
    let account = scene.account();
    scene.authority.expire_access_tokens();
    assert!(
        account
            .directory()
            .await
            .unwrap()
            .contains_key("connectors")
    );
    assert_eq!((scene.asked(), scene.refreshes()), (2, 1));
    assert!(account.directory().await.is_ok());
    assert_eq!((scene.asked(), scene.refreshes()), (3, 1));

    scene.authority.turn_on(Switch::Storm);
    let error = account.directory().await.unwrap_err();
    assert!(
        matches!(error, ProviderAccountError::Refused { .. }),
        "{error}"
    );
    assert!(error.wants_login());
    assert_eq!((scene.asked(), scene.refreshes()), (5, 2));
    assert_eq!(scene.authority.report().families_revoked, 0);
}

#[tokio::test]
async fn a_refused_token_is_compared_with_the_one_that_is_there_by_now() {
    let scene = Scene::new(AuthoritySettings::account_provider()).await;
    let (here, there) = (scene.account(), scene.account());
    let sent = here.present().await.unwrap();
    scene.authority.expire_access_tokens();
    assert!(there.directory().await.is_ok());
    assert_eq!(scene.refreshes(), 1);
    let instead = here.instead_of(&sent).await.unwrap().unwrap();
    assert_eq!(instead, there.present().await.unwrap());
    assert_eq!(scene.refreshes(), 1, "somebody else had renewed it");
    // The same refusal, told late, changes nothing.
    assert_eq!(here.instead_of(&sent).await.unwrap(), Some(instead));
    assert_eq!(scene.refreshes(), 1);
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends() {
    let scene = Scene::new(AuthoritySettings::account_provider()).await;
    scene.has_left(Duration::from_mins(10)).await;
    let before = scene.account().present().await.unwrap();
    assert_eq!(scene.refreshes(), 0);
    scene.has_left(Duration::from_secs(30)).await;
    let account = scene.account();
    let sent = account.present().await.unwrap();
    assert_ne!(token(&sent), token(&before));
    assert_eq!(account.present().await.unwrap(), sent);
    assert!(account.directory().await.is_ok());
    assert_eq!((scene.asked(), scene.refreshes()), (1, 1));
}

#[tokio::test]
async fn rel_15_a_lost_answer_is_asked_for_once_more_or_ends_the_login() {
    let scene = Scene::new(AuthoritySettings {
        grace_ms: 60_000,
        ..AuthoritySettings::account_provider()
    })
    .await;
    scene.authority.turn_on(Switch::RefreshLostOnce);
    scene.authority.expire_access_tokens();
    assert!(scene.account().directory().await.is_ok());
    assert_eq!(scene.refreshes(), 2);
    assert_eq!(scene.authority.report().families_revoked, 0);

    let scene = Scene::new(AuthoritySettings::account_provider()).await;
    scene.authority.turn_on(Switch::RefreshLostOnce);
    scene.authority.expire_access_tokens();
    let error = scene.account().directory().await.unwrap_err();
    let is_lost = matches!(
        &error,
        ProviderAccountError::Ended {
            why: LoginEnd::Lost,
            ..
        }
    );
    assert!(is_lost && error.wants_login(), "{error}");
    assert!(!holds_secret(&error.to_string()));
    let error = scene.account().present().await.unwrap_err();
    assert!(
        matches!(error, ProviderAccountError::LoggedOut { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn rel_15_a_renewal_outlives_whoever_wanted_the_directory() {
    let scene = Scene::new(AuthoritySettings::account_provider()).await;
    let account = scene.account();
    scene.authority.expire_access_tokens();
    let before = scene
        .authority
        .seen_at(RequestedParty::Issuer, "/token")
        .len();
    let held = scene.authority.hold("/token");
    let is_sent = eventually(|| {
        let sent = scene
            .authority
            .seen_at(RequestedParty::Issuer, "/token")
            .len();
        (sent > before)
            .then_some(())
            .ok_or_else(|| "nothing was sent".to_owned())
    });
    tokio::select! {
        outcome = account.directory() => panic!("{outcome:?}"),
        () = is_sent => {}
    }
    drop(held);
    account.settle(Duration::from_mins(1)).await;
    let kept = scene.login().await;
    assert!(scene.authority.is_valid(kept.tokens.access.expose()));
    assert_eq!(
        token(&account.present().await.unwrap()),
        kept.tokens.access.expose()
    );
    assert_eq!(scene.refreshes(), 1);
    assert_eq!(scene.authority.report().families_revoked, 0);
}

#[tokio::test]
async fn rel_27_a_provider_that_is_busy_is_asked_once_for_all_connectors() {
    let scene = Scene::new(AuthoritySettings {
        retry_after: 600,
        ..AuthoritySettings::account_provider()
    })
    .await;
    let account = scene.account();
    let sent = account.present().await.unwrap();
    scene.authority.expire_access_tokens();
    scene.authority.turn_on(Switch::TokenUnavailable);
    for _ in 0..5 {
        let error = account.instead_of(&sent).await.unwrap_err();
        assert!(
            matches!(error, ProviderAccountError::Unavailable(_)),
            "{error}"
        );
        assert!(!error.wants_login());
    }
    assert_eq!(scene.refreshes(), 1);
    scene.authority.turn_off(Switch::TokenUnavailable);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(601)).await;
    tokio::time::resume();
    assert!(account.instead_of(&sent).await.unwrap().is_some());
    assert_eq!(scene.refreshes(), 2);
}

#[tokio::test]
async fn without_a_login_nobody_is_asked() {
    let scene = Scene::without_login(AuthoritySettings::account_provider());
    let error = scene.account().directory().await.unwrap_err();
    assert!(
        matches!(error, ProviderAccountError::LoggedOut { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("toolway account login"));
    assert_eq!(scene.asked(), 0);
}
