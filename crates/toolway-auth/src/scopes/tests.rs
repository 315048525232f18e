//! The choice of scopes, and the end of choosing.

use super::*;

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn resource(scopes: &str) -> ResourceMetadata {
    ResourceMetadata {
        resource: "https://mcp.example.com".to_owned(),
        authorization_servers: Vec::new(),
        scopes: words(scopes),
        name: None,
        requires_dpop: false,
        dpop_algorithms: Vec::new(),
    }
}

fn server(scopes: &str, grants: Option<&str>) -> ServerMetadata {
    ServerMetadata {
        scopes: words(scopes),
        grant_types: grants.map(words),
        ..ServerMetadata::default()
    }
}

#[test]
fn the_strongest_source_is_taken_alone() {
    let (configured, challenged, offered) = (words("c"), words("a b"), resource("r s"));
    let all = ScopeSources {
        configured: Some(&configured),
        challenged: &challenged,
        resource: Some(&offered),
        server: None,
    };
    assert_eq!(initial(&all), ["c"]);
    let challenged = ScopeSources {
        configured: None,
        ..all
    };
    assert_eq!(initial(&challenged), ["a", "b"]);
    let offered = ScopeSources {
        challenged: &[],
        ..challenged
    };
    assert_eq!(initial(&offered), ["r", "s"]);
    let nothing = ScopeSources {
        resource: None,
        ..offered
    };
    assert_eq!(initial(&nothing), [""; 0]);
    let none = Vec::new();
    let written = ScopeSources {
        configured: Some(&none),
        ..all
    };
    assert_eq!(initial(&written), [""; 0]);
}

#[test]
fn offline_access_is_asked_for_where_it_is_offered() {
    let challenged = words("a");
    let ask = |server: &ServerMetadata| {
        initial(&ScopeSources {
            challenged: &challenged,
            server: Some(server),
            ..ScopeSources::default()
        })
    };
    assert_eq!(ask(&server("x y", None)), ["a"]);
    assert_eq!(
        ask(&server("offline_access", None)),
        ["a", "offline_access"]
    );
    let refreshing = server("offline_access", Some("refresh_token"));
    assert_eq!(ask(&refreshing), ["a", "offline_access"]);
    assert_eq!(
        ask(&server("offline_access", Some("authorization_code"))),
        ["a"]
    );
}

/// Servers give scopes of their own choice to those who ask for none.
#[test]
fn offline_access_is_not_asked_for_alone_unless_somebody_wants_just_that() {
    let server = server("offline_access", Some("refresh_token"));
    let (offline, none) = (words("offline_access"), Vec::new());
    let from = ScopeSources {
        server: Some(&server),
        ..ScopeSources::default()
    };
    assert_eq!(initial(&from), [""; 0]);
    let empty = ScopeSources {
        configured: Some(&none),
        ..from
    };
    assert_eq!(initial(&empty), [""; 0]);
    for wanted in [
        ScopeSources {
            configured: Some(&offline),
            ..from
        },
        ScopeSources {
            challenged: &offline,
            ..from
        },
    ] {
        assert_eq!(initial(&wanted), ["offline_access"]);
    }
}

#[test]
fn endless_scopes_are_cut_short() {
    let many: Vec<String> = (0..10_000)
        .map(|number| format!("scope:{number}"))
        .collect();
    let sources = ScopeSources {
        challenged: &many,
        ..ScopeSources::default()
    };
    assert_eq!(initial(&sources), many[..MAX_SCOPES]);
    let long: Vec<String> = (0..90).map(|number| format!("{number:0200}")).collect();
    let sources = ScopeSources {
        challenged: &long,
        ..ScopeSources::default()
    };
    assert!(initial(&sources).join(" ").len() <= MAX_BYTES);
    let odd = vec![
        "a b".to_owned(),
        "\"".to_owned(),
        String::new(),
        "ok".to_owned(),
    ];
    let sources = ScopeSources {
        challenged: &odd,
        ..ScopeSources::default()
    };
    assert_eq!(initial(&sources), ["ok"]);
}

#[tokio::test(start_paused = true)]
async fn rel_26_a_step_up_asks_for_everything_and_only_twice() {
    let attempts = LoginAttempts::default();
    let basic = words("basic");
    let first = attempts.step_up("a", &basic, &words("write")).unwrap();
    assert_eq!(first, ["basic", "write"]);
    // The same again would open the same window again, in whatever order it is written.
    let again = attempts.step_up("a", &words("write"), &basic);
    assert_eq!(again, Err(LoginAttemptError::NothingNew));
    assert_eq!(
        attempts.step_up("a", &first, &words("write")),
        Err(LoginAttemptError::NothingNew)
    );
    let second = attempts.step_up("a", &first, &words("s1")).unwrap();
    assert_eq!(second, ["basic", "write", "s1"]);
    let third = attempts.step_up("a", &second, &words("s2"));
    assert_eq!(third, Err(LoginAttemptError::TooOften));
    // Another server is another matter.
    assert!(attempts.step_up("b", &basic, &words("write")).is_ok());
    // One that helped counts no more, and time heals.
    attempts.helped("a");
    assert!(attempts.step_up("a", &second, &words("s2")).is_ok());
    assert!(attempts.step_up("a", &second, &words("s3")).is_ok());
    assert!(attempts.step_up("a", &second, &words("s4")).is_err());
    tokio::time::advance(WINDOW).await;
    assert!(attempts.step_up("a", &second, &words("s4")).is_ok());
}

#[test]
fn rel_26_a_server_has_one_window() {
    let attempts = LoginAttempts::default();
    let window = attempts.open("a").unwrap();
    assert_eq!(attempts.open("a").err(), Some(LoginAttemptError::UnderWay));
    assert!(attempts.open("b").is_ok());
    drop(window);
    assert!(attempts.open("a").is_ok());
}
