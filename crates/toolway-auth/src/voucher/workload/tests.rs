//! A platform's token from a file, a program or a value, and where it is sent.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_transport::OpenOptions;
use toolway_transport::program::{Invocation, ProgramLimits, ProgramRun};
use toolway_types::{Secret, ShieldMode};

use super::{PlatformTokenSource, WorkloadError, obtain};
use crate::clock::unix_now;
use crate::jwt::SigningKey;
use crate::metadata::ServerMetadata;
use crate::token::tests::{Endpoint, Scripted, web};
use crate::token::{OauthClient, Tokens};
use crate::voucher::xaa::TokenTarget;

const ISSUER: &str = "https://as.example";

fn token(claims: &Value) -> Secret {
    let (key, _) = SigningKey::generate().expect("made");
    let claims = claims.as_object().expect("an object");
    key.sign(serde_json::Map::new(), claims).expect("signed")
}

fn good() -> Secret {
    token(&json!({ "sub": marked!("pod-"), "aud": ISSUER, "exp": unix_now() + 600 }))
}

async fn ask(
    endpoint: &Endpoint,
    source: &PlatformTokenSource,
    audience: Option<&str>,
) -> Result<Tokens, WorkloadError> {
    let server = ServerMetadata {
        issuer: ISSUER.to_owned(),
        token_endpoint: Some(endpoint.url.clone()),
        ..ServerMetadata::default()
    };
    let target = TokenTarget {
        server: &server,
        resource: "https://mcp.example/mcp",
        client: &OauthClient::public("me"),
        scopes: &[],
        dpop: None,
    };
    obtain(&web(), &target, source, audience).await
}

async fn endpoint() -> Endpoint {
    let answer =
        json!({ "access_token": marked!("a-"), "refresh_token": marked!("r-"), "expires_in": 60 });
    Endpoint::new([Scripted::json(200, &answer)]).await
}

#[tokio::test]
async fn a_file_is_read_each_time() {
    let endpoint = endpoint().await;
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let source = PlatformTokenSource::File(file.path().to_owned());
    let mut sent = Vec::new();
    for _ in 0..2 {
        let token = good();
        file.as_file_mut().set_len(0).expect("emptied");
        std::fs::write(file.path(), format!("{}\n", token.expose())).expect("written");
        let tokens = ask(&endpoint, &source, None).await.expect("tokens");
        assert_eq!(tokens.refresh, None, "the platform is asked each time");
        sent.push(token.expose().to_owned());
    }
    let seen = endpoint.seen();
    for (seen, sent) in seen.iter().zip(&sent) {
        assert_eq!(&seen.form["assertion"], sent);
        assert_eq!(
            seen.form["grant_type"],
            "urn:ietf:params:oauth:grant-type:jwt-bearer"
        );
        assert_eq!(seen.form["resource"], "https://mcp.example/mcp");
    }
    file.write_all(&vec![b'x'; 70 * 1024]).expect("written");
    let error = ask(&endpoint, &source, None).await.expect_err("too large");
    assert!(matches!(error, WorkloadError::File { .. }), "{error}");
    let gone = PlatformTokenSource::File("/nonexistent/token".into());
    let error = ask(&endpoint, &gone, None)
        .await
        .expect_err("nothing there");
    assert!(error.to_string().contains("/nonexistent/token"));
    assert_eq!(endpoint.seen().len(), 2);
}

#[tokio::test]
async fn a_program_prints_it() {
    let endpoint = endpoint().await;
    let printing = |line: String| {
        PlatformTokenSource::Program(Box::new(move || {
            let program = ProgramRun {
                invocation: Invocation::Line(line.clone()),
                stdin: Vec::new(),
                inherited: Arc::default(),
                env: BTreeMap::new(),
                cwd: toolway_types::WorkingDirectory::default(),
                shield: ShieldMode::Off,
                limits: ProgramLimits {
                    time: Duration::from_mins(1),
                    stdout: 64 * 1024,
                    stderr: 1024,
                },
            };
            (program, OpenOptions::default())
        }))
    };
    let token = good();
    let source = printing(format!("echo {}", token.expose()));
    ask(&endpoint, &source, None).await.expect("tokens");
    assert_eq!(endpoint.seen()[0].form["assertion"], token.expose());
    let failing = printing(format!("echo {}; exit 3", token.expose()));
    let error = ask(&endpoint, &failing, None).await.expect_err("failed");
    assert!(matches!(error, WorkloadError::Status(_)), "{error}");
    assert!(!format!("{error} {error:?} {failing:?}").contains(token.expose()));
    assert_eq!(endpoint.seen().len(), 1);
}

#[tokio::test]
async fn a_token_for_somebody_else_is_not_sent() {
    let endpoint = endpoint().await;
    let later = unix_now() + 600;
    let cases = [
        json!({ "aud": "https://other.example", "exp": later }),
        json!({ "aud": "https://as.example/", "exp": later }),
        json!({ "aud": [], "exp": later }),
        json!({ "exp": later }),
    ];
    for claims in cases {
        let source = PlatformTokenSource::Given(token(&claims));
        let error = ask(&endpoint, &source, None).await.expect_err("refused");
        assert!(matches!(error, WorkloadError::Audience { .. }), "{claims}");
    }
    let old = PlatformTokenSource::Given(token(&json!({ "aud": ISSUER, "exp": unix_now() - 1 })));
    let error = ask(&endpoint, &old, None).await.expect_err("expired");
    assert!(matches!(error, WorkloadError::Expired));
    let none = PlatformTokenSource::Given(Secret::new(MARK));
    let error = ask(&endpoint, &none, None).await.expect_err("no token");
    assert!(!format!("{error} {error:?} {none:?}").contains(MARK));
    assert!(endpoint.seen().is_empty());
    for (audience, expected) in [
        (json!(endpoint.url.as_str()), None),
        (json!(["x", ISSUER]), None),
        (json!("api://exchange"), Some("api://exchange")),
    ] {
        let source = PlatformTokenSource::Given(token(&json!({ "aud": audience, "exp": later })));
        ask(&endpoint, &source, expected).await.expect("tokens");
    }
}

#[tokio::test]
async fn a_refusal_is_the_end() {
    let refusal = Scripted::json(400, &json!({ "error": "invalid_grant" }));
    let endpoint = Endpoint::new([refusal]).await;
    let error = ask(&endpoint, &PlatformTokenSource::Given(good()), None)
        .await
        .expect_err("refused");
    assert!(matches!(&error, WorkloadError::Token(error) if error.is_refusal("invalid_grant")));
    assert_eq!(endpoint.seen().len(), 1);
}
