//! Device logins: what is shown, the pace, and the end.

use std::time::Duration;

use serde_json::{Value, json};
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_types::Untrusted;
use url::Url;

use super::{DeviceError, DeviceLogin, next_pace};
use crate::token::tests::{Endpoint, Scripted, web};
use crate::token::{OauthClient, TokenError, TokenRequest};

fn begun(changes: &Value) -> Value {
    let mut answer = json!({
        "device_code": marked!("device-"), "user_code": "ABCD-EFGH",
        "verification_uri": "https://as.example/device",
        "verification_uri_complete": "https://as.example/device?user_code=ABCD-EFGH",
        "expires_in": 900, "interval": 5,
    });
    for (name, value) in changes.as_object().expect("an object") {
        answer[name] = value.clone();
    }
    answer
}

fn read(changes: &Value) -> Result<DeviceLogin, DeviceError> {
    DeviceLogin::read(begun(changes).as_object().expect("an object"))
}

fn refused(code: &str) -> Scripted {
    Scripted::json(400, &json!({ "error": code }))
}

async fn run(answers: Vec<Scripted>) -> (Result<String, DeviceError>, usize) {
    let start = Scripted::json(200, &begun(&json!({ "interval": 1 })));
    let endpoint = Endpoint::new(std::iter::once(start).chain(answers)).await;
    let client = OauthClient::public("me");
    let request = TokenRequest {
        endpoint: &endpoint.url,
        issuer: "https://as.example",
        client: &client,
        resource: Some("https://mcp.example/mcp"),
        scopes: &["read".to_owned()],
        dpop: None,
    };
    let web = web();
    let login = DeviceLogin::begin(&web, &endpoint.url, &request)
        .await
        .expect("begun");
    let first = &endpoint.seen()[0].form;
    assert_eq!(first["client_id"], "me");
    assert_eq!(first["scope"], "read");
    assert_eq!(first["resource"], "https://mcp.example/mcp");
    let answer = login.wait(&web, &request).await;
    let answer = answer.map(|tokens| tokens.access.expose().to_owned());
    (answer, endpoint.seen().len() - 1)
}

#[tokio::test]
async fn it_asks_until_the_person_is_done() {
    let good = Scripted::json(200, &json!({ "access_token": marked!("a-") }));
    let (answer, asked) = run(vec![refused("authorization_pending"), good]).await;
    assert_eq!(answer.expect("tokens"), marked!("a-"));
    assert_eq!(asked, 2);
}

#[tokio::test]
async fn it_stops_when_the_answer_is_no() {
    let (answer, asked) = run(vec![refused("access_denied")]).await;
    assert!(matches!(answer, Err(DeviceError::Declined)) && asked == 1);
    let (answer, asked) = run(vec![refused("expired_token")]).await;
    assert!(matches!(answer, Err(DeviceError::Expired)) && asked == 1);
    let (answer, asked) = run(vec![refused("invalid_client")]).await;
    assert!(matches!(answer, Err(DeviceError::Token(_))) && asked == 1);
}

#[tokio::test]
async fn a_server_that_will_not_begin_says_why() {
    let endpoint = Endpoint::new([refused("unauthorized_client")]).await;
    let client = OauthClient::public("me");
    let request = TokenRequest {
        endpoint: &endpoint.url,
        issuer: "https://as.example",
        client: &client,
        resource: None,
        scopes: &[],
        dpop: None,
    };
    let error = DeviceLogin::begin(&web(), &endpoint.url, &request).await;
    let error = error.expect_err("refused");
    assert!(error.to_string().contains("unauthorized_client"), "{error}");
}

#[test]
fn the_pace_is_the_servers_within_reason() {
    let second = Duration::from_secs;
    for (interval, pace) in [
        (json!(5), 5),
        (json!("7"), 7),
        (json!(0), 5),
        (json!(-1), 5),
        (json!(null), 5),
        (json!(31_536_000), 60),
    ] {
        let login = read(&json!({ "interval": interval })).expect("good");
        assert_eq!(login.pace, second(pace), "{interval}");
    }
    for (life, seconds) in [
        (json!(900), 900),
        (json!(null), 600),
        (json!(1_000_000_000), 1800),
        (json!(1), 1),
    ] {
        assert_eq!(
            read(&json!({ "expires_in": life })).expect("good").life(),
            second(seconds)
        );
    }
    let refused = |code: &str| TokenError::Refused {
        code: code.to_owned(),
        description: Untrusted::default(),
    };
    let busy = |seconds| TokenError::Busy {
        retry_after: Some(second(seconds)),
    };
    let pace = |error| next_pace(second(5), error).expect("goes on");
    assert_eq!(pace(refused("authorization_pending")), second(5));
    assert_eq!(pace(refused("slow_down")), second(10));
    assert_eq!(pace(TokenError::Lost), second(10));
    assert_eq!(pace(busy(20)), second(20));
    assert_eq!(pace(busy(1)), second(5));
    assert_eq!(pace(busy(9_999)), second(60));
    assert!(next_pace(second(5), refused("server_error")).is_err());
}

#[test]
fn nobody_is_sent_to_an_address_that_is_none() {
    for bad in [
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "http://as.example/device",
        "https://user:pass@as.example/",
        "https://as.example/\u{202e}x",
        "https://as.example/ x",
        "-flag",
        "",
    ] {
        let error = read(&json!({ "verification_uri": bad })).expect_err(bad);
        assert!(matches!(error, DeviceError::Malformed(_)), "{bad}");
    }
    let elsewhere =
        read(&json!({ "verification_uri_complete": "https://evil.example/?user_code=x" }));
    assert_eq!(elsewhere.expect("good").complete(), None);
    let local = read(&json!({ "verification_uri": "http://127.0.0.1:8080/d" })).expect("good");
    assert_eq!(
        local.verification_uri(),
        &Url::parse("http://127.0.0.1:8080/d").expect("a URL")
    );
    for code in [
        json!(""),
        json!(null),
        json!("A\u{200b}B"),
        json!("x".repeat(65)),
        json!("a\nb"),
    ] {
        assert!(read(&json!({ "user_code": code })).is_err(), "{code}");
    }
    assert!(read(&json!({ "device_code": "" })).is_err());
}

#[test]
fn sec_47_a_device_login_shows_no_code() {
    let login = read(&json!({})).expect("good");
    let shown = format!("{login:?}");
    assert!(!shown.contains(MARK) && !shown.contains("ABCD"), "{shown}");
}
