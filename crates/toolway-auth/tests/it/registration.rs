//! Who we are to an authorization server: what is asked, what is kept, what is refused.

use serde_json::{Value, json};
use toolway_auth::metadata::ServerMetadata;
use toolway_auth::registration::{
    AuthMethod, ClientDocument, ClientHistory, ClientRequest, ClientSource, RegisteredClient,
    RegistrationError, register,
};
use toolway_auth::web::{NetworkReach, WebClient};
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_transport::client::HttpClient;
use toolway_types::Secret;
use url::Url;

use crate::site::Site;

const REDIRECT: &str = "http://127.0.0.1:7777/path";
const NOW: u64 = 1_000_000;

fn web() -> WebClient {
    WebClient::new(HttpClient::default(), NetworkReach::Loopback)
}

fn server(site: &Site) -> ServerMetadata {
    ServerMetadata {
        issuer: site.origin(),
        registration_endpoint: Some(site.url("/register")),
        ..ServerMetadata::default()
    }
}

fn wanted<'a>() -> ClientRequest<'a> {
    ClientRequest {
        redirect_uri: Some(REDIRECT),
        grants: &["authorization_code", "refresh_token"],
        now: NOW,
        ..ClientRequest::default()
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

async fn given(site: &Site, answer: &Value) -> Result<RegisteredClient, RegistrationError> {
    site.put("/register", answer);
    register(&web(), &server(site), &wanted()).await
}

#[tokio::test]
async fn a_registration_says_what_we_are() {
    let site = Site::new().await;
    site.put("/register", &json!({"client_id": "abc"}));
    let scopes = words("a b");
    let wanted = ClientRequest {
        scopes: &scopes,
        ..wanted()
    };
    let client = register(&web(), &server(&site), &wanted).await.unwrap();
    assert_eq!(
        client,
        RegisteredClient {
            client_id: "abc".to_owned(),
            client_secret: None,
            auth_method: AuthMethod::None,
            source: ClientSource::Dynamic,
            secret_expires_at: None,
            redirect_uri: Some(REDIRECT.to_owned()),
            scopes: words("a b"),
            other_method: None,
            history: ClientHistory {
                is_untried: true,
                ..ClientHistory::default()
            },
        }
    );
    let asked = site.asked().pop().unwrap();
    assert_eq!(asked.line, "POST /register");
    assert_eq!(
        asked.json(),
        json!({
            "client_name": "Toolway",
            "software_id": "toolway",
            "software_version": env!("CARGO_PKG_VERSION"),
            "application_type": "native",
            "grant_types": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_method": "none",
            "redirect_uris": [REDIRECT],
            "response_types": ["code"],
            "scope": "a b",
        })
    );
}

/// RFC 7591 has a code in a browser for what is left out; a device has no such place to name.
#[tokio::test]
async fn a_client_without_a_browser_says_that_it_comes_back_nowhere() {
    let site = Site::new().await;
    site.put("/register", &json!({"client_id": "abc"}));
    let wanted = ClientRequest {
        redirect_uri: None,
        grants: &[
            "refresh_token",
            "urn:ietf:params:oauth:grant-type:device_code",
        ],
        ..wanted()
    };
    register(&web(), &server(&site), &wanted).await.unwrap();
    let asked = site.asked().pop().unwrap().json();
    assert_eq!(asked["redirect_uris"], json!([]));
    assert_eq!(asked["response_types"], json!([]));
}

#[tokio::test]
async fn the_way_to_authenticate_is_one_that_the_server_offers() {
    let site = Site::new().await;
    for (offered, asked) in [
        (
            "client_secret_basic client_secret_post",
            "client_secret_post",
        ),
        ("client_secret_post", "client_secret_post"),
        ("client_secret_basic none", "none"),
        ("private_key_jwt tls_client_auth", "none"),
    ] {
        let server = ServerMetadata {
            token_auth_methods: Some(words(offered)),
            ..server(&site)
        };
        site.put(
            "/register",
            &json!({"client_id": "a", "client_secret": marked!("s-")}),
        );
        let client = register(&web(), &server, &wanted()).await.unwrap();
        let request = site.asked().pop().unwrap().json();
        assert_eq!(request["token_endpoint_auth_method"], asked, "{offered}");
        // A secret that came unasked is used in the way that is the default.
        let expected = match asked {
            "client_secret_post" => AuthMethod::ClientSecretPost,
            _ => AuthMethod::ClientSecretBasic,
        };
        assert_eq!(client.auth_method, expected, "{offered}");
        let other = match offered {
            "client_secret_basic client_secret_post" => Some(AuthMethod::ClientSecretBasic),
            _ => None,
        };
        assert_eq!(client.other_method, other, "{offered}");
    }
}

#[tokio::test]
async fn what_the_server_answers_counts() {
    let site = Site::new().await;
    let client = given(
        &site,
        &json!({
            "client_id": "a",
            "client_secret": MARK,
            "client_secret_expires_at": NOW + 3600,
            "token_endpoint_auth_method": "client_secret_post",
        }),
    )
    .await
    .unwrap();
    assert_eq!(client.auth_method, AuthMethod::ClientSecretPost);
    assert_eq!(client.secret_expires_at, Some(NOW + 3600));
    assert!(!format!("{client:?}").contains(MARK));
    let ageless =
        json!({"client_id": "a", "client_secret": marked!("s-"), "client_secret_expires_at": 0});
    assert_eq!(
        given(&site, &ageless).await.unwrap().secret_expires_at,
        None
    );
    let public = json!({
        "client_id": "a", "client_secret": null, "token_endpoint_auth_method": "none",
    });
    assert_eq!(
        given(&site, &public).await.unwrap().auth_method,
        AuthMethod::None
    );
}

#[tokio::test]
async fn an_answer_that_is_not_usable_is_named() {
    let site = Site::new().await;
    for (answer, field) in [
        (json!({}), "client_id"),
        (json!({"client_id": ""}), "client_id"),
        (json!({"client_id": 7}), "client_id"),
        (json!({"client_id": "a\r\nb"}), "client_id"),
        (json!({"client_id": "a".repeat(100_000)}), "client_id"),
        (
            json!({"client_id": "a", "token_endpoint_auth_method": "tls_client_auth"}),
            "token_endpoint_auth_method",
        ),
        (
            json!({"client_id": "a", "token_endpoint_auth_method": "client_secret_basic"}),
            "client_secret",
        ),
    ] {
        let refused = given(&site, &answer).await.unwrap_err();
        assert!(
            matches!(&refused, RegistrationError::Malformed { field: named, .. } if *named == field),
            "{refused:?}"
        );
        assert!(refused.to_string().contains(&site.origin()));
    }
}

#[tokio::test]
async fn a_refusal_says_who_and_why_and_nothing_that_steers_a_terminal() {
    let site = Site::new().await;
    let refusal = json!({
        "error": "invalid_redirect_uri", "error_description": "no \u{1b}[2Jloopback\n allowed",
    });
    site.answer("/register", 400, &[], &refusal.to_string());
    let refused = register(&web(), &server(&site), &wanted())
        .await
        .unwrap_err()
        .to_string();
    let expected = format!(
        "the authorization server {} refused to register this program (HTTP 400): no",
        site.origin()
    );
    assert!(refused.starts_with(&expected), "{refused}");
    assert!(!refused.contains('\u{1b}') && !refused.contains('\n'));
    site.answer("/register", 403, &[], "<html>");
    let refused = register(&web(), &server(&site), &wanted()).await;
    assert!(
        matches!(
            refused,
            Err(RegistrationError::Refused {
                status: 403,
                why: None,
                ..
            })
        ),
        "{refused:?}"
    );
}

#[tokio::test]
async fn without_registration_the_person_is_told_what_to_do() {
    let site = Site::new().await;
    let closed = ServerMetadata {
        registration_endpoint: None,
        ..server(&site)
    };
    // An endpoint that was not announced may be missing.
    let assumed = ServerMetadata {
        is_assumed: true,
        ..server(&site)
    };
    for server in [closed, assumed] {
        let refused = register(&web(), &server, &wanted()).await.unwrap_err();
        assert!(
            matches!(refused, RegistrationError::Unsupported { .. }),
            "{refused:?}"
        );
        assert!(refused.to_string().contains("`oauth.clientId`"));
    }
}

#[tokio::test]
async fn a_configured_client_comes_before_a_document_and_both_before_a_registration() {
    let site = Site::new().await;
    let secret = Secret::new(MARK);
    let document = ClientDocument {
        url: Url::parse("https://toolway.example/client.json").unwrap(),
        redirect_uri: "http://localhost/callback".to_owned(),
    };
    let server = ServerMetadata {
        takes_documents: true,
        token_auth_methods: Some(words("client_secret_post")),
        ..server(&site)
    };
    let everything = ClientRequest {
        client_id: Some("mine"),
        client_secret: Some(&secret),
        document: Some(&document),
        ..wanted()
    };
    let client = register(&web(), &server, &everything).await.unwrap();
    assert_eq!(client.client_id, "mine");
    assert_eq!(client.source, ClientSource::Configured);
    assert_eq!(client.auth_method, AuthMethod::ClientSecretPost);
    let documented = ClientRequest {
        document: Some(&document),
        ..wanted()
    };
    let client = register(&web(), &server, &documented).await.unwrap();
    assert_eq!(client.client_id, "https://toolway.example/client.json");
    assert_eq!(client.source, ClientSource::Document);
    assert_eq!(site.lines(), [""; 0]);
    let deaf = ServerMetadata {
        takes_documents: false,
        ..server
    };
    site.put(
        "/register",
        &json!({"client_id": "new", "client_secret": marked!("s-")}),
    );
    let client = register(&web(), &deaf, &documented).await.unwrap();
    assert_eq!(client.source, ClientSource::Dynamic);
}

#[tokio::test]
async fn a_registration_is_kept_and_repeated_only_when_it_must_be() {
    let site = Site::new().await;
    let secret = json!({
        "client_id": "kept", "client_secret": marked!("s-"), "client_secret_expires_at": NOW + 3600,
    });
    let kept = given(&site, &secret).await.unwrap();
    assert_eq!(site.lines().len(), 1);
    let again = ClientRequest {
        kept: Some(&kept),
        ..wanted()
    };
    let client = register(&web(), &server(&site), &again).await.unwrap();
    assert_eq!(client, kept);
    assert_eq!(site.lines().len(), 1);
    site.put("/register", &json!({"client_id": "new"}));
    let expired = ClientRequest {
        now: NOW + 3600,
        ..again.clone()
    };
    let elsewhere = ClientRequest {
        redirect_uri: Some("http://127.0.0.1:8888/path"),
        ..again.clone()
    };
    // A configured client that was taken out of the configuration is not used any more.
    let configured = RegisteredClient {
        source: ClientSource::Configured,
        ..kept.clone()
    };
    let withdrawn = ClientRequest {
        kept: Some(&configured),
        ..again.clone()
    };
    let wider = words("more");
    let wider = ClientRequest {
        scopes: &wider,
        ..again.clone()
    };
    let suspect = RegisteredClient {
        history: ClientHistory {
            is_unanswered: true,
            ..ClientHistory::default()
        },
        ..kept.clone()
    };
    let unanswered = ClientRequest {
        kept: Some(&suspect),
        ..again.clone()
    };
    for wanted in [expired, elsewhere, withdrawn, wider, unanswered] {
        let client = register(&web(), &server(&site), &wanted).await.unwrap();
        assert_eq!(client.client_id, "new");
    }
    assert_eq!(site.lines().len(), 6);
}

#[test]
fn a_client_survives_the_vault() {
    let client = RegisteredClient {
        client_id: "a".to_owned(),
        client_secret: Some(Secret::new(marked!("s-"))),
        auth_method: AuthMethod::PrivateKeyJwt,
        source: ClientSource::Dynamic,
        secret_expires_at: Some(7),
        redirect_uri: None,
        scopes: Vec::new(),
        other_method: None,
        history: ClientHistory::default(),
    };
    let text = serde_json::to_string(&client).unwrap();
    assert_eq!(
        serde_json::from_str::<RegisteredClient>(&text).unwrap(),
        client
    );
    let method: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(method["auth_method"], "private_key_jwt");
    // One that was kept before these were known has worked, and has one way.
    let old = r#"{"client_id": "a", "auth_method": "client_secret_basic", "source": "dynamic"}"#;
    let old: RegisteredClient = serde_json::from_str(old).unwrap();
    assert_eq!(
        (old.other_method, old.history),
        (None, ClientHistory::default())
    );
}
