//! The authority in a process of its own.

use std::process::{Command, Stdio};
use std::time::Duration;

use toolway_testkit::authority::{AuthorityProcess, AuthoritySettings, KnownClient, Switch};

use super::post;

#[tokio::test]
async fn it_is_asked_and_changed_through_its_back_door() {
    let authority = AuthorityProcess::start(&AuthoritySettings {
        clients: vec![KnownClient {
            id: "app".to_owned(),
            ..KnownClient::default()
        }],
        switches: vec![Switch::TokenUnavailable],
        ..AuthoritySettings::default()
    });
    let tokens = authority.issue("app", "read");
    let refresh = tokens.refresh.unwrap();
    let ask = || async {
        let pairs = [
            ("grant_type", "refresh_token"),
            ("client_id", "app"),
            ("refresh_token", refresh.as_str()),
            ("resource", authority.resource()),
        ];
        post(&format!("{}/token", authority.issuer()), &pairs)
            .await
            .status
    };
    assert_eq!(ask().await, 503);
    authority.set(&[]);
    assert_eq!(
        authority.valid_tokens(),
        (vec![tokens.access], vec![refresh.clone()])
    );
    assert_eq!(ask().await, 200);
    assert_eq!(ask().await, 400, "used before");
    let report = authority.report();
    assert_eq!(report.token_requests("refresh_token"), 3);
    assert_eq!(report.families_revoked, 1);
    assert_eq!(authority.seen().len(), 3);
    authority.issue("app", "read");
    authority.advance(Duration::from_hours(1));
    assert_eq!(authority.valid_tokens().0, [""; 0]);
    authority.issue("app", "read");
    authority.expire_access_tokens();
    assert_eq!(authority.valid_tokens().0, [""; 0]);
    assert!(!authority.decide_device("NOBODY", true));
}

#[test]
fn what_it_cannot_read_it_refuses() {
    let output = Command::new(AuthorityProcess::program())
        .args(["--settings", "{\"consent\":\"maybe\"}"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("unknown variant `maybe`"));
    assert!(
        serde_json::from_str::<AuthoritySettings>("{\"acess_ms\":1}").is_err(),
        "a misspelt name"
    );
}
