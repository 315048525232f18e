//! An authorization server that asks for a pause gets it from the whole process (REL-27).

use futures_util::future::join_all;

use toolway_testkit::ScannedFolder;

use super::*;

/// Says that it has no time for ten minutes.
fn busy() -> Authority {
    Authority::start(AuthoritySettings {
        switches: vec![Switch::TokenUnavailable],
        retry_after: 600,
        ..settings()
    })
}

/// Time passes only for what waits here.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn rel_27_it_is_asked_once_in_the_time_that_it_names() {
    let home = ScannedFolder::new();
    let authority = busy();
    let logins = logins(home.path());
    let login = due(&authority, "a");
    let key = login.key();
    logins.save(&login).await.unwrap();
    let at_once = join_all((0..5).map(|_| fresh(&logins, &key, None))).await;
    for outcome in at_once {
        let error = outcome.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the login of `a` cannot be renewed now: the authorization server is busy and wants \
             to be asked again in 600 s"
        );
    }
    assert_eq!(refreshes(&authority), 1);
    pass(Duration::from_mins(5)).await;
    // Also not for a caller whose token was refused.
    for refused in [None, Some(&login.tokens.access)] {
        let error = fresh(&logins, &key, refused).await.unwrap_err();
        let RefreshError::Unavailable { source, .. } = &error else {
            panic!("{error}");
        };
        let crate::token::TokenError::Busy {
            retry_after: Some(after),
        } = **source
        else {
            panic!("{error}");
        };
        assert!(after <= Duration::from_mins(5), "what is left: {after:?}");
    }
    assert_eq!(refreshes(&authority), 1);
    authority.turn_off(Switch::TokenUnavailable);
    pass(Duration::from_mins(6)).await;
    let renewed = fresh(&logins, &key, None).await.unwrap();
    assert!(authority.is_valid(renewed.tokens.access.expose()));
    assert_eq!(refreshes(&authority), 2);
    assert_eq!(authority.report().families_revoked, 0);
}

#[tokio::test]
async fn rel_27_a_token_that_still_works_is_used_meanwhile() {
    let home = ScannedFolder::new();
    let authority = busy();
    let logins = logins(home.path());
    let mut login = due(&authority, "a");
    let key = login.key();
    // It is due a minute before its end.
    login.tokens.expires_at = Some(unix_now() + 50);
    logins.save(&login).await.unwrap();
    for _ in 0..5 {
        assert_eq!(fresh(&logins, &key, None).await.unwrap(), login);
    }
    assert_eq!(refreshes(&authority), 1);
    // Not by a caller to whom it was refused.
    let refused = fresh(&logins, &key, Some(&login.tokens.access)).await;
    assert!(matches!(refused, Err(RefreshError::Unavailable { .. })));
    assert_eq!(refreshes(&authority), 1);
}

#[tokio::test]
async fn rel_27_a_new_login_does_not_wait_for_what_befell_the_old_one() {
    let home = ScannedFolder::new();
    let authority = busy();
    let logins = logins(home.path());
    let login = due(&authority, "a");
    let (key, other) = (login.key(), due(&authority, "b"));
    logins.save(&login).await.unwrap();
    logins.save(&other).await.unwrap();
    fresh(&logins, &key, None).await.unwrap_err();
    authority.turn_off(Switch::TokenUnavailable);
    // Another login, at the same authorization server, is another matter.
    fresh(&logins, &other.key(), None).await.unwrap();
    fresh(&logins, &key, None).await.unwrap_err();
    self::logins(home.path())
        .save(&due(&authority, "a"))
        .await
        .unwrap();
    fresh(&logins, &key, None).await.unwrap();
    assert_eq!(authority.report().families_revoked, 0);
}
