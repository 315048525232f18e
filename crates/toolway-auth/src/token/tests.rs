//! Token requests against a real endpoint on loopback that notes what it was sent.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_transport::client::HttpClient as Http;
use toolway_types::Secret;
use url::Url;

use super::{
    ClientAuth, DpopKey, OauthClient, TokenError, TokenExchange, TokenGrant, TokenKind,
    TokenRequest, Tokens,
};
use crate::assertion::ClientKey;
use crate::authorize::AuthorizationCode;
use crate::jwt::{SigningKey, peek};
use crate::web::{NetworkReach, WebClient, WebError};

/// What an endpoint answers.
#[derive(Clone)]
pub(crate) struct Scripted {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Scripted {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: vec![("content-type", "application/json".to_owned())],
            body: body.to_string(),
        }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) headers: HeaderMap,
    pub(crate) form: HashMap<String, String>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// An endpoint that answers one thing after the other; the last one stays.
pub(crate) struct Endpoint {
    pub(crate) url: Url,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Endpoint {
    pub(crate) async fn new(answers: impl IntoIterator<Item = Scripted>) -> Self {
        let answers: Arc<Mutex<VecDeque<Scripted>>> =
            Arc::new(Mutex::new(answers.into_iter().collect()));
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let notes = Arc::clone(&seen);
        let answer = move |_: Method, headers: HeaderMap, body: Bytes| {
            let form = url::form_urlencoded::parse(&body).into_owned().collect();
            notes.lock().expect("whole").push(Seen { headers, form });
            let mut answers = answers.lock().expect("whole");
            let next = match answers.len() {
                1 => answers[0].clone(),
                _ => answers.pop_front().expect("an answer"),
            };
            async move {
                let mut response = Response::builder().status(next.status);
                for (name, value) in next.headers {
                    response = response.header(name, value);
                }
                response.body(next.body).expect("an answer")
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("bound");
        let routes = Router::new().fallback(answer);
        #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self {
            url: Url::parse(&format!("http://{address}/token")).expect("a URL"),
            seen,
        }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("whole").clone()
    }
}

pub(crate) fn web() -> WebClient {
    WebClient::new(Http::default(), NetworkReach::Loopback)
}

const ISSUER: &str = "https://as.example";
const RESOURCE: &str = "https://mcp.example/mcp";

fn good() -> Scripted {
    Scripted::json(
        200,
        &json!({ "access_token": marked!("a-"), "token_type": "Bearer", "expires_in": 60 }),
    )
}

fn refusing(code: &str) -> Scripted {
    Scripted::json(400, &json!({ "error": code }))
}

struct Asking {
    client: OauthClient,
    dpop: Option<DpopKey>,
}

impl Asking {
    fn by(client: OauthClient) -> Self {
        Self { client, dpop: None }
    }

    async fn send(
        &self,
        endpoint: &Endpoint,
        grant: &TokenGrant<'_>,
    ) -> Result<Tokens, TokenError> {
        let request = TokenRequest {
            endpoint: &endpoint.url,
            issuer: ISSUER,
            client: &self.client,
            resource: Some(RESOURCE),
            scopes: &["one".to_owned(), "two".to_owned()],
            dpop: self.dpop.as_ref(),
        };
        request.send(&web(), grant).await
    }
}

fn code() -> AuthorizationCode {
    AuthorizationCode {
        code: Secret::new(marked!("code-")),
        verifier: Secret::new(marked!("verifier-")),
        redirect_uri: "http://127.0.0.1:1/x".to_owned(),
    }
}

#[tokio::test]
async fn every_grant_says_what_its_rfc_asks() {
    let endpoint = Endpoint::new([good(), good(), good(), good(), good()]).await;
    let asking = Asking::by(OauthClient::public("me"));
    let code = code();
    let secret = Secret::new(MARK);
    for grant in [
        &TokenGrant::code(&code),
        &TokenGrant::refresh(&secret),
        &TokenGrant::client_credentials(),
        &TokenGrant::device(&secret),
        &TokenGrant::jwt_bearer(&secret),
    ] {
        let tokens = asking.send(&endpoint, grant).await.expect("tokens");
        assert_eq!(tokens.scopes, ["one", "two"]);
    }
    let seen = endpoint.seen();
    let said = |n: usize| {
        let mut pairs: Vec<String> = seen[n]
            .form
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        pairs.sort();
        pairs.join(" ")
    };
    assert_eq!(
        said(0),
        format!(
            "client_id=me code=code-{MARK} code_verifier=verifier-{MARK} grant_type=authorization_code redirect_uri=http://127.0.0.1:1/x resource=https://mcp.example/mcp"
        )
    );
    assert_eq!(
        said(1),
        marked!(
            "client_id=me grant_type=refresh_token refresh_token=",
            " resource=https://mcp.example/mcp"
        )
    );
    assert_eq!(
        said(2),
        "client_id=me grant_type=client_credentials resource=https://mcp.example/mcp scope=one two"
    );
    assert_eq!(
        said(3),
        marked!(
            "client_id=me device_code=",
            " grant_type=urn:ietf:params:oauth:grant-type:device_code resource=https://mcp.example/mcp"
        )
    );
    assert_eq!(
        said(4),
        marked!(
            "assertion=",
            " client_id=me grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer resource=https://mcp.example/mcp scope=one two"
        )
    );
    assert!(
        seen.iter()
            .all(|seen| seen.header("authorization").is_none())
    );
}

#[tokio::test]
async fn an_exchange_must_give_what_was_asked_for() {
    let jag = "urn:ietf:params:oauth:token-type:id-jag";
    let answer = |kind: &str| {
        Scripted::json(
            200,
            &json!({ "access_token": marked!("jag-"), "issued_token_type": kind, "token_type": "N_A" }),
        )
    };
    let bare = Scripted::json(
        200,
        &json!({ "access_token": marked!("jag-"), "token_type": "N_A" }),
    );
    let endpoint = Endpoint::new([answer(jag), answer("urn:x"), bare.clone(), bare]).await;
    let asking = Asking::by(OauthClient::public("me"));
    let subject = Secret::new(marked!("id-"));
    let exchange = TokenGrant::exchange(TokenExchange {
        subject: &subject,
        subject_type: "urn:ietf:params:oauth:token-type:id_token",
        requested_type: jag,
        audience: ISSUER,
    });
    assert_eq!(
        asking
            .send(&endpoint, &exchange)
            .await
            .expect("a JAG")
            .access
            .expose(),
        marked!("jag-")
    );
    assert_eq!(endpoint.seen()[0].form["audience"], ISSUER);
    assert_eq!(endpoint.seen()[0].form["requested_token_type"], jag);
    for _ in 0..2 {
        let error = asking
            .send(&endpoint, &exchange)
            .await
            .expect_err("another type");
        assert!(matches!(error, TokenError::Malformed(_)), "{error}");
    }
    // Outside of an exchange that is no token to present.
    let error = asking
        .send(&endpoint, &TokenGrant::client_credentials())
        .await
        .expect_err("N_A");
    assert!(matches!(error, TokenError::Malformed(_)), "{error}");
}

#[tokio::test]
async fn a_client_proves_itself_in_the_way_it_has() {
    let endpoint = Endpoint::new([good()]).await;
    let (key, _) = SigningKey::generate().expect("made");
    let key = Arc::new(ClientKey { key, id: None });
    let secret = Secret::new(marked!("s:e c/r+e&t"));
    for proof in [
        ClientAuth::Basic(secret.clone()),
        ClientAuth::Post(secret.clone()),
        ClientAuth::Key(key),
    ] {
        let client = OauthClient::new("me & co", proof);
        let sent = Asking::by(client)
            .send(&endpoint, &TokenGrant::client_credentials())
            .await;
        sent.expect("tokens");
    }
    let seen = endpoint.seen();
    let basic = seen[0]
        .header("authorization")
        .and_then(|value| value.strip_prefix("Basic "));
    let basic = STANDARD.decode(basic.expect("basic")).expect("base64");
    assert_eq!(basic, marked!("me+%26+co:s%3Ae+c%2Fr%2Be%26t").as_bytes());
    assert!(!seen[0].form.contains_key("client_secret"));
    assert_eq!(seen[1].form["client_secret"], secret.expose());
    assert_eq!(seen[1].form["client_id"], "me & co");
    assert!(seen[1].header("authorization").is_none());
    let claims = peek(&seen[2].form["client_assertion"]).expect("an assertion");
    assert_eq!(
        (&claims["iss"], &claims["aud"]),
        (&json!("me & co"), &json!(ISSUER))
    );
    assert_eq!(
        seen[2].form["client_assertion_type"],
        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    );
}

#[tokio::test]
async fn a_failure_says_whether_the_server_acted() {
    let plain = |status: u16, body: &str| Scripted {
        status,
        headers: vec![],
        body: body.to_owned(),
    };
    let cases = [
        (refusing("invalid_grant"), "refused: invalid_grant"),
        (
            Scripted::json(200, &json!({ "error": "invalid_grant" })),
            "refused: invalid_grant",
        ),
        (
            Scripted::json(
                401,
                &json!({ "error": "invalid_client", "error_description": "who\u{1b}[0m?" }),
            ),
            "refused: invalid_client (who?)",
        ),
        (plain(403, "go away"), "refused: http_403"),
        (plain(404, ""), "refused: http_404"),
        (
            plain(429, "").with("retry-after", "7"),
            "busy and wants to be asked again in 7 s",
        ),
        (
            plain(503, "").with("retry-after", "999999"),
            "busy and wants to be asked again in 3600 s",
        ),
        (
            Scripted::json(400, &json!({ "error": "temporarily_unavailable" })),
            "busy",
        ),
        (plain(500, ""), "failed (HTTP 500)"),
        (plain(502, "<html>"), "answer was lost"),
        (plain(504, ""), "answer was lost"),
        (
            plain(200, "<html>Log in to the hotel</html>"),
            "it is a web page",
        ),
        (plain(200, "{}"), "cannot be used: it has no `access_token`"),
        (
            Scripted::json(
                200,
                &json!({ "access_token": marked!("a-"), "token_type": "DPoP" }),
            ),
            "bound to a key that was never shown",
        ),
    ];
    for (answer, said) in cases {
        let status = answer.status;
        let endpoint = Endpoint::new([answer]).await;
        let asking = Asking::by(OauthClient::public("me"));
        let error = asking
            .send(&endpoint, &TokenGrant::client_credentials())
            .await
            .expect_err(said);
        assert!(error.to_string().contains(said), "{status}: {error}");
        assert_eq!(endpoint.seen().len(), 1, "asked once");
    }
    // Old servers answer with a form.
    let form = plain(200, marked!("access_token=gho_", "&token_type=bearer"))
        .with("content-type", "application/x-www-form-urlencoded");
    let endpoint = Endpoint::new([form]).await;
    let asking = Asking::by(OauthClient::public("me"));
    let tokens = asking
        .send(&endpoint, &TokenGrant::client_credentials())
        .await
        .expect("tokens");
    assert_eq!(tokens.access.expose(), marked!("gho_"));
}

#[tokio::test]
async fn an_answer_that_never_comes_is_lost_and_a_server_that_is_not_there_is_not() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("bound");
    let url = Url::parse(&format!("http://{address}/token")).expect("a URL");
    let client = OauthClient::public("me");
    let request = TokenRequest {
        endpoint: &url,
        issuer: ISSUER,
        client: &client,
        resource: None,
        scopes: &[],
        dpop: None,
    };
    let web = web();
    let dropped = async {
        let (mut stream, _) = listener.accept().await.expect("accepted");
        let mut buffer = [0; 4096];
        let read = tokio::io::AsyncReadExt::read(&mut stream, &mut buffer).await;
        assert!(read.expect("a request") > 0);
    };
    let grant = TokenGrant::client_credentials();
    let (answer, ()) = tokio::join!(request.send(&web, &grant), dropped);
    assert!(matches!(answer, Err(TokenError::Lost)), "{answer:?}");
    drop(listener);
    let answer = request.send(&web, &TokenGrant::client_credentials()).await;
    assert!(
        matches!(answer, Err(TokenError::Web(WebError::Unreachable { .. }))),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_nonce_is_put_into_the_proof_once() {
    let bound = Scripted::json(
        200,
        &json!({ "access_token": marked!("a-"), "token_type": "DPoP" }),
    );
    let demand = refusing("use_dpop_nonce").with("dpop-nonce", "n1");
    let endpoint = Endpoint::new([demand, bound.with("dpop-nonce", "n2")]).await;
    let mut asking = Asking::by(OauthClient::public("me"));
    asking.dpop = Some(DpopKey::generate().expect("made"));
    let tokens = asking
        .send(&endpoint, &TokenGrant::client_credentials())
        .await
        .expect("tokens");
    assert_eq!(tokens.kind, TokenKind::Dpop);
    asking
        .send(&endpoint, &TokenGrant::client_credentials())
        .await
        .expect("tokens");
    let proofs: Vec<_> = endpoint
        .seen()
        .iter()
        .map(|seen| peek(seen.header("dpop").expect("a proof")).expect("a token"))
        .collect();
    let nonces: Vec<_> = proofs
        .iter()
        .map(|proof| proof.get("nonce").cloned())
        .collect();
    assert_eq!(nonces, [None, Some(json!("n1")), Some(json!("n2"))]);
    assert_eq!(proofs[0]["htu"], endpoint.url.as_str());
    assert_eq!(proofs[0]["htm"], "POST");

    // Again and again, with a new one each time or none: it is not asked forever.
    for headers in [vec![("dpop-nonce", "x".to_owned())], vec![]] {
        let mut demand = refusing("use_dpop_nonce");
        demand.headers.extend(headers);
        let endpoint = Endpoint::new([demand]).await;
        asking.dpop = Some(DpopKey::generate().expect("made"));
        let error = asking
            .send(&endpoint, &TokenGrant::client_credentials())
            .await
            .expect_err("no end");
        assert!(error.is_refusal("use_dpop_nonce"));
        assert!(endpoint.seen().len() <= 2);
    }
}

#[tokio::test]
async fn sec_47_what_was_sent_does_not_come_back_in_an_error() {
    let echo = Scripted::json(
        400,
        &json!({
            "error": marked!("refresh-"),
            "error_description": format!(
                "bad token refresh-{MARK} of secret-{MARK} in {}, code code-{MARK} with \
                 verifier-{MARK}",
                STANDARD.encode(format!("me:secret-{MARK}"))
            ),
        }),
    );
    let endpoint = Endpoint::new([echo]).await;
    let secret = Secret::new(marked!("secret-"));
    let code = AuthorizationCode {
        code: Secret::new(marked!("code-")),
        verifier: Secret::new(marked!("verifier-")),
        redirect_uri: String::new(),
    };
    let token = Secret::new(marked!("refresh-"));
    let mut shown = String::new();
    for proof in [ClientAuth::Basic(secret.clone()), ClientAuth::Post(secret)] {
        let asking = Asking::by(OauthClient::new("me", proof));
        for grant in [&TokenGrant::refresh(&token), &TokenGrant::code(&code)] {
            let error = asking.send(&endpoint, grant).await.expect_err("refused");
            shown = format!("{shown}{:?} {grant:?}\n", asking.client);
            // The server knows only what this request sent; the rest is its own invention.
            let said = format!("{error} {error:?}");
            match grant.kind {
                "refresh_token" => assert!(!said.contains(marked!("refresh-")), "{said}"),
                _ => assert!(
                    !said.contains(marked!("code-")) && !said.contains(marked!("verifier-"))
                ),
            }
            assert!(!said.contains(marked!("secret-")), "{said}");
            if matches!(asking.client.proof, ClientAuth::Basic(_)) {
                let sent = STANDARD.encode(format!("me:secret-{MARK}"));
                assert!(!said.contains(&sent), "{said}");
            }
        }
    }
    assert!(!shown.contains(MARK), "{shown}");
    let tokens = Tokens {
        access: Secret::new(marked!("access-")),
        kind: TokenKind::Bearer,
        refresh: Some(token),
        id_token: Some(Secret::new(marked!("id-"))),
        expires_at: None,
        received_at: 0,
        scopes: vec![],
    };
    assert!(!format!("{tokens:?} {tokens:#?}").contains(MARK));
}
