//! Renewing against an authorization server that uses every refresh token once.

mod callers;
mod hold_off;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use toolway_testkit::ScannedFolder;
use toolway_testkit::authority::{Authority, AuthoritySettings, Switch, holds_secret};
use toolway_types::Secret;

use super::{LoginEnd, RefreshError, RenewalContext, RenewedLogins};
use crate::clock::unix_now;
use crate::logins::tests::{self, due, settings};
use crate::logins::{Login, LoginGrant};
use crate::registration::{AuthMethod, ClientSource};
use crate::vault::VaultKey;
use crate::web::WebClient;

fn web() -> WebClient {
    WebClient::trusted(toolway_transport::client::HttpClient::default())
}

fn logins(folder: &Path) -> RenewedLogins {
    RenewedLogins::new(tests::logins(folder))
}

async fn fresh(
    logins: &RenewedLogins,
    key: &VaultKey,
    refused: Option<&Secret>,
) -> Result<Login, RefreshError> {
    logins.fresh(key, refused, &means()).await
}

fn means() -> RenewalContext {
    RenewalContext {
        web: web(),
        client_key: None,
        renewer: None,
    }
}

fn ended(outcome: Result<Login, RefreshError>) -> LoginEnd {
    match outcome.unwrap_err() {
        error @ RefreshError::NeedsLogin { .. } => {
            assert!(!holds_secret(&error.to_string()), "{error}");
            let RefreshError::NeedsLogin { why, .. } = error else {
                unreachable!();
            };
            why
        }
        error => panic!("{error}"),
    }
}

fn refreshes(authority: &Authority) -> u64 {
    authority.report().token_requests("refresh_token")
}

#[tokio::test]
async fn a_token_is_renewed_when_it_is_due_or_refused_and_not_before() {
    let home = ScannedFolder::new();
    let authority = Authority::start(settings());
    let logins = logins(home.path());
    let login = due(&authority, "a");
    let key = login.key();
    assert_eq!(
        ended(fresh(&logins, &key, None).await),
        LoginEnd::NotLoggedIn
    );
    logins.save(&login).await.unwrap();

    let first = fresh(&logins, &key, None).await.unwrap();
    assert!(authority.is_valid(first.tokens.access.expose()));
    let same = fresh(&logins, &key, None).await.unwrap();
    assert_eq!(same, first);
    assert_eq!(refreshes(&authority), 1);

    // A refusal that is about an older token changes nothing.
    let old = fresh(&logins, &key, Some(&login.tokens.access))
        .await
        .unwrap();
    assert_eq!(old, first);
    let second = fresh(&logins, &key, Some(&first.tokens.access))
        .await
        .unwrap();
    assert_ne!(second.tokens.access, first.tokens.access);
    assert_eq!(refreshes(&authority), 2);
    assert_eq!(authority.report().families_revoked, 0);
    // Another process has it from the vault.
    let other = self::logins(home.path());
    assert_eq!(other.read(&key).await.unwrap(), Some(second));
}

#[tokio::test(flavor = "multi_thread")]
async fn rel_14_tasks_and_vaults_renew_once() {
    let home = ScannedFolder::new();
    let authority = Authority::start(settings());
    let login = due(&authority, "a");
    let key = Arc::new(login.key());
    logins(home.path()).save(&login).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        // Each vault is another process to the kernel's locks.
        let logins = logins(home.path());
        for _ in 0..8 {
            let (logins, key) = (logins.clone(), Arc::clone(&key));
            tasks.spawn(async move { fresh(&logins, &key, None).await.unwrap().tokens.access });
        }
    }
    let got = tasks.join_all().await;
    assert!(got.iter().all(|token| *token == got[0]));
    assert_eq!(refreshes(&authority), 1);
    assert_eq!(authority.report().families_revoked, 0);
}

#[tokio::test]
async fn rel_14_a_refused_grant_is_looked_at_again_before_it_ends_anything() {
    let home = ScannedFolder::new();
    let authority = Authority::start(settings());
    let logins = logins(home.path());
    let stale = due(&authority, "a");
    let key = stale.key();
    logins.save(&stale).await.unwrap();
    // Another program has spent the token and saves its successor without taking a turn, just
    // when this one is about to be refused.
    let winner = fresh(&logins, &key, None).await.unwrap();
    let late = logins.renew(stale, None, &means()).await;
    assert_eq!(late.unwrap().tokens, winner.tokens);
    assert_eq!(logins.read(&key).await.unwrap(), Some(winner));
}

#[tokio::test]
async fn a_login_that_was_revoked_ends_and_no_other_does() {
    let home = ScannedFolder::new();
    let (one, two) = (Authority::start(settings()), Authority::start(settings()));
    let logins = logins(home.path());
    let (gone, other) = (due(&one, "gone"), due(&two, "other"));
    logins.save(&gone).await.unwrap();
    logins.save(&other).await.unwrap();
    one.revoke_everything();
    let error = fresh(&logins, &gone.key(), None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`gone` needs a login: the authorization server has ended the login; run `toolway login gone`"
    );
    assert_eq!(
        ended(fresh(&logins, &gone.key(), None).await),
        LoginEnd::NotLoggedIn
    );
    fresh(&logins, &other.key(), None).await.unwrap();
}

#[tokio::test]
async fn rel_15_a_lost_answer_is_asked_for_once_more() {
    let home = ScannedFolder::new();
    let authority = Authority::start(AuthoritySettings {
        grace_ms: 60_000,
        switches: vec![Switch::RefreshLostOnce],
        ..settings()
    });
    let logins = logins(home.path());
    let login = due(&authority, "a");
    logins.save(&login).await.unwrap();
    let renewed = fresh(&logins, &login.key(), None).await.unwrap();
    assert!(authority.is_valid(renewed.tokens.access.expose()));
    assert_eq!(refreshes(&authority), 2);
    assert_eq!(authority.report().families_revoked, 0);
    let next = fresh(&logins, &login.key(), Some(&renewed.tokens.access)).await;
    assert!(authority.is_valid(next.unwrap().tokens.access.expose()));
}

#[tokio::test]
async fn rel_15_without_grace_the_person_is_asked_and_told_why() {
    let home = ScannedFolder::new();
    let authority = Authority::start(AuthoritySettings {
        switches: vec![Switch::RefreshLostOnce],
        ..settings()
    });
    let well = Authority::start(settings());
    let logins = logins(home.path());
    let (login, other) = (due(&authority, "a"), due(&well, "b"));
    logins.save(&login).await.unwrap();
    logins.save(&other).await.unwrap();
    assert_eq!(
        ended(fresh(&logins, &login.key(), None).await),
        LoginEnd::Lost
    );
    assert_eq!(refreshes(&authority), 2);
    fresh(&logins, &other.key(), None).await.unwrap();
}

#[tokio::test]
async fn rel_15_answers_that_never_come_end_the_attempt_and_keep_the_login() {
    let home = ScannedFolder::new();
    let authority = Authority::start(AuthoritySettings {
        grace_ms: 60_000,
        switches: vec![Switch::RefreshLost],
        ..settings()
    });
    let logins = logins(home.path());
    let login = due(&authority, "a");
    let key = login.key();
    logins.save(&login).await.unwrap();
    assert_eq!(ended(fresh(&logins, &key, None).await), LoginEnd::Lost);
    assert_eq!(refreshes(&authority), 2, "once more, not for ever");
    assert_eq!(logins.read(&key).await.unwrap(), Some(login));
    // When the network is well again within the grace, so is the login.
    authority.turn_off(Switch::RefreshLost);
    let renewed = fresh(&logins, &key, None).await.unwrap();
    assert!(authority.is_valid(renewed.tokens.access.expose()));
}

#[tokio::test]
async fn rel_15_a_process_that_died_over_a_renewal_leaves_a_note() {
    let home = ScannedFolder::new();
    let authority = Authority::start(settings());
    let logins = logins(home.path());
    let login = due(&authority, "a");
    let key = login.key();
    logins.save(&login).await.unwrap();
    // What a killed process leaves: its note, and a token that the server has rotated.
    super::RefreshIntent::of(&logins, &login).note();
    let web = web();
    let client = super::client(&login, &means());
    let spent = super::request(&login, &client, &[]);
    let token = login.tokens.refresh.as_ref().unwrap();
    spent
        .send(&web, &super::TokenGrant::refresh(token))
        .await
        .unwrap();
    assert_eq!(ended(fresh(&logins, &key, None).await), LoginEnd::Lost);
    assert_eq!(
        refreshes(&authority),
        2,
        "the second time was the repetition"
    );
}

#[tokio::test]
async fn an_authority_that_is_away_ends_nothing() {
    let home = ScannedFolder::new();
    let authority = Authority::start(settings());
    let logins = logins(home.path());
    let mut login = due(&authority, "a");
    let key = login.key();
    logins.save(&login).await.unwrap();
    drop(authority);
    let error = fresh(&logins, &key, None).await.unwrap_err();
    assert!(
        matches!(&error, RefreshError::Unavailable { server, .. } if server == "a"),
        "{error}"
    );
    // One that has a few seconds left is used.
    login.tokens.expires_at = Some(unix_now() + 30);
    logins.save(&login).await.unwrap();
    assert_eq!(fresh(&logins, &key, None).await.unwrap(), login);
    assert_eq!(logins.read(&key).await.unwrap(), Some(login));
}

#[tokio::test]
async fn without_a_refresh_token_it_depends_on_how_the_login_came_about() {
    let home = ScannedFolder::new();
    let mut settings = settings();
    settings.clients[0].secret = Some("secret".to_owned());
    let authority = Authority::start(settings);
    let logins = logins(home.path());
    let mut login = due(&authority, "a");
    login.tokens.refresh = None;
    let key = login.key();
    logins.save(&login).await.unwrap();
    assert_eq!(ended(fresh(&logins, &key, None).await), LoginEnd::Expired);
    login.tokens.expires_at = None;
    logins.save(&login).await.unwrap();
    assert_eq!(fresh(&logins, &key, None).await.unwrap(), login);
    let refused = login.tokens.access.clone();
    assert_eq!(
        ended(fresh(&logins, &key, Some(&refused)).await),
        LoginEnd::Refused
    );

    login.how = LoginGrant::ClientCredentials;
    login.client.client_secret = Some("secret".into());
    login.client.auth_method = AuthMethod::ClientSecretBasic;
    logins.save(&login).await.unwrap();
    let renewed = fresh(&logins, &key, Some(&refused)).await.unwrap();
    assert!(authority.is_valid(renewed.tokens.access.expose()));
}

#[tokio::test]
async fn a_client_that_is_gone_is_registered_anew_next_time() {
    let home = ScannedFolder::new();
    let authority = Authority::start(AuthoritySettings::default());
    let logins = logins(home.path());
    let mut login = due(&authority, "a");
    login.client.source = ClientSource::Dynamic;
    logins.save(&login).await.unwrap();
    logins
        .save_client(&login.issuer, &login.client)
        .await
        .unwrap();
    assert_eq!(
        ended(fresh(&logins, &login.key(), None).await),
        LoginEnd::ClientGone
    );
    assert_eq!(logins.client(&login.issuer).await.unwrap(), None);
}

#[tokio::test]
async fn what_cannot_be_saved_is_kept_in_memory_and_saved_later() {
    let home = ScannedFolder::new();
    let authority = Authority::start(settings());
    let logins = logins(home.path());
    let login = due(&authority, "a");
    let key = login.key();
    logins.save(&login).await.unwrap();
    // A folder stands where the new file would be written, so that writing fails and reading not.
    let way = home
        .path()
        .join("secrets")
        .join(format!("{}.new", key.id()));
    std::fs::create_dir(&way).unwrap();
    let renewed = fresh(&logins, &key, None).await.unwrap();
    assert_eq!(fresh(&logins, &key, None).await.unwrap(), renewed);
    assert_eq!(refreshes(&authority), 1, "the spent one is not sent again");
    std::fs::remove_dir(&way).unwrap();
    assert_eq!(logins.read(&key).await.unwrap(), Some(renewed.clone()));
    let other = self::logins(home.path());
    assert_eq!(other.read(&key).await.unwrap(), Some(renewed));
}

/// REL-16: whatever is said about time, a login is renewed now and then and not forever.
#[tokio::test]
async fn rel_16_wrong_clocks_and_odd_expiries_lead_to_no_loop_and_no_logout() {
    let switches = [
        Switch::DateAheadHour,
        Switch::DateBehindHour,
        Switch::DateAheadYear,
        Switch::DateBehindYear,
        Switch::DateMissing,
        Switch::ExpiryMissing,
        Switch::ExpiryZero,
        Switch::ExpiryNegative,
        Switch::ExpiryString,
        Switch::ExpiryHuge,
    ];
    for switch in switches {
        let home = ScannedFolder::new();
        let authority = Authority::start(AuthoritySettings {
            switches: vec![switch],
            ..settings()
        });
        let logins = logins(home.path());
        let login = due(&authority, "a");
        logins.save(&login).await.unwrap();
        for _ in 0..5 {
            let now = fresh(&logins, &login.key(), None).await.unwrap();
            assert!(authority.is_valid(now.tokens.access.expose()), "{switch:?}");
        }
        assert_eq!(refreshes(&authority), 1, "{switch:?}");
    }
}

#[tokio::test]
async fn rel_16_a_clock_that_jumps_costs_one_renewal() {
    let hour = Duration::from_hours(1).as_secs();
    let year = 365 * 24 * hour;
    // What this clock's time was when the tokens came, seen from now.
    let shifts = [
        ("an hour ago", unix_now() - hour, true),
        ("a year ago", unix_now() - year, true),
        ("in an hour", unix_now() + hour, true),
        ("in a year", unix_now() + year, true),
        ("just now", unix_now(), false),
    ];
    for (when, received_at, is_renewed) in shifts {
        let home = ScannedFolder::new();
        let authority = Authority::start(settings());
        let logins = logins(home.path());
        let mut login = due(&authority, "a");
        login.tokens.received_at = received_at;
        login.tokens.expires_at = Some(received_at + hour);
        logins.save(&login).await.unwrap();
        for _ in 0..3 {
            fresh(&logins, &login.key(), None).await.unwrap();
        }
        assert_eq!(refreshes(&authority), u64::from(is_renewed), "{when}");
        assert_eq!(authority.report().families_revoked, 0, "{when}");
    }
}
