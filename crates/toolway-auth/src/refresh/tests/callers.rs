//! Callers that go away while a renewal is on its way: the answer is kept all the same.

use std::pin::pin;

use toolway_testkit::ScannedFolder;
use toolway_testkit::authority::RequestedParty;
use toolway_testkit::eventually;

use super::*;

/// Waits until a refresh is with the authority, which holds it.
async fn is_sent(authority: &Authority) {
    eventually(
        || match authority.seen_at(RequestedParty::Issuer, "/token").len() {
            0 => Err("nothing was sent".to_owned()),
            _ => Ok(()),
        },
    )
    .await;
}

/// What every one of these is about: one refresh, and all callers get its outcome.
async fn assert_kept(authority: &Authority, logins: &RenewedLogins, key: &VaultKey) {
    let renewed = fresh(logins, key, None).await.unwrap();
    assert!(authority.is_valid(renewed.tokens.access.expose()));
    let other = self::logins(logins.vault().folder());
    assert_eq!(other.read(key).await.unwrap(), Some(renewed));
    assert_eq!(refreshes(authority), 1);
    assert_eq!(authority.report().families_revoked, 0);
}

#[tokio::test]
async fn rel_15_a_caller_that_goes_away_takes_no_answer_with_it() {
    let home = ScannedFolder::new();
    let authority = Authority::start(settings());
    let logins = logins(home.path());
    let login = due(&authority, "a");
    let key = login.key();
    logins.save(&login).await.unwrap();
    let held = authority.hold("/token");
    tokio::select! {
        outcome = fresh(&logins, &key, None) => panic!("{outcome:?}"),
        () = is_sent(&authority) => {}
    }
    drop(held);
    assert_kept(&authority, &logins, &key).await;
}

#[tokio::test]
async fn rel_15_whoever_shares_a_renewal_has_it_also_when_the_first_one_goes() {
    let home = ScannedFolder::new();
    let authority = Authority::start(settings());
    let logins = logins(home.path());
    let login = due(&authority, "a");
    let key = login.key();
    logins.save(&login).await.unwrap();
    let held = authority.hold("/token");
    let mut second = pin!(fresh(&logins, &key, Some(&login.tokens.access)));
    tokio::select! {
        biased;
        outcome = fresh(&logins, &key, None) => panic!("{outcome:?}"),
        outcome = &mut second => panic!("{outcome:?}"),
        () = is_sent(&authority) => {}
    }
    drop(held);
    let second = second.await.unwrap();
    assert!(authority.is_valid(second.tokens.access.expose()));
    assert_kept(&authority, &logins, &key).await;
}

#[tokio::test]
async fn rel_15_whoever_is_about_to_end_can_wait_until_all_is_saved() {
    let home = ScannedFolder::new();
    let authority = Authority::start(settings());
    let logins = logins(home.path());
    let login = due(&authority, "a");
    let key = login.key();
    logins.save(&login).await.unwrap();
    let held = authority.hold("/token");
    tokio::select! {
        outcome = fresh(&logins, &key, None) => panic!("{outcome:?}"),
        () = is_sent(&authority) => {}
    }
    let answering = async { drop(held) };
    tokio::join!(logins.settle(Duration::from_mins(1)), answering);
    let other = self::logins(home.path());
    let kept = other.read(&key).await.unwrap().unwrap();
    assert!(authority.is_valid(kept.tokens.access.expose()));
    assert_eq!(refreshes(&authority), 1);
}

#[tokio::test]
async fn a_renewal_that_brings_what_was_refused_to_a_caller_is_not_the_end_for_them() {
    let home = ScannedFolder::new();
    let authority = Authority::start(settings());
    let logins = logins(home.path());
    let login = due(&authority, "a");
    let key = login.key();
    logins.save(&login).await.unwrap();
    // One waits for its turn while another process renews.
    let turn = logins.vault().lock(&key).await.unwrap();
    let mut first = pin!(fresh(&logins, &key, None));
    let waits = eventually(|| {
        let waits = logins.is_under_way(&key).then_some(());
        waits.ok_or_else(|| "nobody waits".to_owned())
    });
    tokio::select! {
        outcome = &mut first => panic!("{outcome:?}"),
        () = waits => {}
    }
    let elsewhere = self::logins(home.path());
    let winner = elsewhere.renew(login, None, &means()).await.unwrap();
    // To another the server has already refused what came of that.
    let second = fresh(&logins, &key, Some(&winner.tokens.access));
    let (first, second, ()) = tokio::join!(first, second, async { drop(turn) });
    assert_eq!(first.unwrap(), winner);
    let second = second.unwrap();
    assert_ne!(second.tokens.access, winner.tokens.access);
    assert!(authority.is_valid(second.tokens.access.expose()));
    assert_eq!(refreshes(&authority), 2);
    assert_eq!(authority.report().families_revoked, 0);
}
