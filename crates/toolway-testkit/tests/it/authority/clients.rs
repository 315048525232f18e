//! How a client becomes known: by registration, by its document, and where metadata stands.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use serde_json::{Value, json};
use toolway_testkit::authority::{
    Authority, AuthoritySettings, ResourceMetadataPlace, ServerMetadataPlace, Switch, holds_secret,
};

use super::{
    Answer, CALLBACK, VERIFIER, answer, asked, authorize, call, client, encoded, get, post, value,
};

async fn register(authority: &Authority, body: &Value) -> Answer {
    register_at(authority.issuer(), body).await
}

async fn register_at(issuer: &str, body: &Value) -> Answer {
    answer(
        client()
            .post(format!("{issuer}/register"))
            .body(body.to_string()),
    )
    .await
}

/// The whole way to a token, at the server whose endpoints these are.
async fn login_at(authority: &Authority, authorize: &str, issuer: &str, id: &str) -> Answer {
    let mut pairs = asked(authority);
    pairs.retain(|(name, _)| name != "client_id");
    pairs.push(("client_id".to_owned(), id.to_owned()));
    let query: Vec<(&str, &str)> = pairs
        .iter()
        .map(|(n, v)| (n.as_str(), v.as_str()))
        .collect();
    let back = get(&format!("{authorize}/authorize?{}", encoded(&query)))
        .await
        .callback();
    assert_eq!(value(&back, "iss"), Some(authorize));
    let pairs = [
        ("grant_type", "authorization_code"),
        ("client_id", id),
        ("code", value(&back, "code").unwrap()),
        ("redirect_uri", CALLBACK),
        ("code_verifier", VERIFIER),
        ("resource", authority.resource()),
    ];
    post(&format!("{issuer}/token"), &pairs).await
}

#[tokio::test]
async fn after_a_migration_the_new_server_works_and_knows_nobody() {
    let authority = Authority::start(AuthoritySettings::default());
    let body = json!({ "redirect_uris": [CALLBACK], "application_type": "native",
        "token_endpoint_auth_method": "none" });
    let old = register(&authority, &body).await.json()["client_id"].clone();
    let tokens = login_at(
        &authority,
        authority.issuer(),
        authority.issuer(),
        old.as_str().unwrap(),
    );
    let before = tokens.await.json()["access_token"].clone();
    assert_eq!(
        call(&authority, before.as_str(), "tools/list").await.status,
        200
    );
    authority.turn_on(Switch::Migrated);
    assert_eq!(
        call(&authority, before.as_str(), "tools/list").await.status,
        401
    );
    let there = authority.attacker();
    let new = register_at(there, &body).await.json()["client_id"].clone();
    let tokens = login_at(&authority, there, there, new.as_str().unwrap())
        .await
        .json();
    let after = tokens["access_token"].as_str();
    assert_eq!(call(&authority, after, "tools/list").await.status, 200);
    let query = format!("client_id={}", old.as_str().unwrap());
    assert_eq!(
        get(&format!("{there}/authorize?{query}")).await.status,
        400,
        "unknown there"
    );
}

#[tokio::test]
async fn a_mix_up_gets_the_code_of_a_client_that_does_not_compare() {
    let authority = Authority::start(AuthoritySettings::with(&[Switch::MixUp]));
    let there = authority.attacker();
    let body = json!({ "redirect_uris": [CALLBACK], "application_type": "native",
        "token_endpoint_auth_method": "none" });
    let id = register_at(there, &body).await.json()["client_id"].clone();
    assert_eq!(authority.stolen(), None);
    login_at(&authority, authority.issuer(), there, id.as_str().unwrap()).await;
    assert_eq!(authority.stolen().unwrap().path, "/token");
}

#[tokio::test]
async fn a_native_client_registers() {
    let authority = Authority::start(AuthoritySettings::default());
    let mut body = json!({ "client_name": "test", "redirect_uris": [CALLBACK],
        "application_type": "native", "token_endpoint_auth_method": "none" });
    let made = register(&authority, &body).await;
    assert_eq!(made.status, 201);
    assert!(made.json()["client_id"].is_string());
    assert!(made.json().get("client_secret").is_none());
    body["token_endpoint_auth_method"] = json!("client_secret_post");
    let made = register(&authority, &body).await.json();
    assert!(holds_secret(made["client_secret"].as_str().unwrap()));
    assert_eq!(made["client_secret_expires_at"], 0);
    // Without its type a client is a web client, which has no plain loopback.
    body.as_object_mut().unwrap().remove("application_type");
    assert_eq!(
        register(&authority, &body).await.json()["error"],
        "invalid_redirect_uri"
    );
    body["redirect_uris"] = json!([]);
    assert_eq!(register(&authority, &body).await.status, 400);
    assert_eq!(authority.report().registrations, 2);

    // Its port is free, its path is not.
    let mut pairs = asked(&authority);
    pairs.retain(|(name, _)| name != "client_id" && name != "redirect_uri");
    pairs.push((
        "client_id".to_owned(),
        made["client_id"].as_str().unwrap().to_owned(),
    ));
    for (uri, status) in [
        ("http://127.0.0.1:40000/callback", 302),
        ("http://127.0.0.1:40000/elsewhere", 400),
        ("http://localhost:40000/callback", 400),
    ] {
        let mut pairs = pairs.clone();
        pairs.push(("redirect_uri".to_owned(), uri.to_owned()));
        assert_eq!(authorize(&authority, &pairs).await.status, status, "{uri}");
    }
}

#[tokio::test]
async fn a_client_is_known_by_its_document() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/client.json", listener.local_addr().unwrap());
    let document = json!({ "client_id": url, "redirect_uris": [CALLBACK] }).to_string();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The whole request: closing with some of it unread would reset the connection.
        let mut lines = BufReader::new(&stream).lines().map(Result::unwrap);
        let line = lines.next().unwrap();
        assert!(lines.any(|line| line.is_empty()));
        let length = document.len();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{document}"
        )
        .unwrap();
        line
    });
    let far = "https://client.example.com/client.json";
    let authority = Authority::start(AuthoritySettings {
        known_documents: [
            (
                far.to_owned(),
                json!({ "client_id": far, "redirect_uris": [CALLBACK] }),
            ),
            (
                "https://liar.example.com/".to_owned(),
                json!({ "client_id": far }),
            ),
        ]
        .into(),
        ..AuthoritySettings::default()
    });
    let ask = |id: &str| {
        let mut pairs = asked(&authority);
        pairs.retain(|(name, _)| name != "client_id");
        pairs.push(("client_id".to_owned(), id.to_owned()));
        let authority = &authority;
        async move { authorize(authority, &pairs).await }
    };
    assert!(value(&ask(&url).await.callback(), "code").is_some());
    assert!(server.join().unwrap().starts_with("GET /client.json "));
    assert!(value(&ask(far).await.callback(), "code").is_some());
    for nobody in ["https://liar.example.com/", "https://other.example.com/"] {
        assert_eq!(ask(nobody).await.status, 400, "{nobody}");
    }
    assert_eq!(authority.report().documents, 3);
}

#[tokio::test]
async fn metadata_stands_at_every_standard_place() {
    let settings = || AuthoritySettings {
        issuer_path: "/tenant".to_owned(),
        ..AuthoritySettings::default()
    };
    let places = [
        (
            ServerMetadataPlace::Oauth,
            "/.well-known/oauth-authorization-server/tenant",
        ),
        (
            ServerMetadataPlace::OpenidInserted,
            "/.well-known/openid-configuration/tenant",
        ),
        (
            ServerMetadataPlace::OpenidAppended,
            "/tenant/.well-known/openid-configuration",
        ),
    ];
    let authority = Authority::start(settings());
    let origin = |authority: &Authority| authority.issuer().replace("/tenant", "");
    for (_, path) in places {
        let found = get(&format!("{}{path}", origin(&authority))).await.json();
        assert_eq!(found["issuer"], authority.issuer(), "{path}");
        for name in [
            "authorization_endpoint",
            "token_endpoint",
            "registration_endpoint",
        ] {
            assert!(
                found[name]
                    .as_str()
                    .unwrap()
                    .starts_with(authority.issuer())
            );
        }
        assert_eq!(found["code_challenge_methods_supported"], json!(["S256"]));
    }
    let keys = get(&format!("{}/jwks", authority.issuer())).await.json();
    assert_eq!(keys, authority.jwks());
    for (only, _) in places {
        let authority = Authority::start(AuthoritySettings {
            places: vec![only],
            ..settings()
        });
        for (place, path) in places {
            let expected = if place == only { 200 } else { 404 };
            let found = get(&format!("{}{path}", origin(&authority))).await;
            assert_eq!(found.status, expected, "{only:?} {path}");
        }
    }
    assert_eq!(authority.report().metadata, 3);
}

#[tokio::test]
async fn the_resource_says_where_its_server_is() {
    let places = [ResourceMetadataPlace::Path, ResourceMetadataPlace::Root];
    for only in places {
        let authority = Authority::start(AuthoritySettings {
            resource_places: vec![only],
            ..AuthoritySettings::default()
        });
        let challenge = call(&authority, None, "tools/list").await;
        assert_eq!(challenge.status, 401);
        assert_eq!(challenge.header("www-authenticate"), "Bearer");
        let origin = authority.resource().replace("/mcp", "");
        for place in places {
            let (path, resource) = match place {
                ResourceMetadataPlace::Path => ("/mcp", authority.resource()),
                _ => ("", origin.as_str()),
            };
            let url = format!("{origin}/.well-known/oauth-protected-resource{path}");
            let found = get(&url).await;
            if place == only {
                assert_eq!(found.json()["resource"], resource);
                assert_eq!(
                    found.json()["authorization_servers"],
                    json!([authority.issuer()])
                );
            } else {
                assert_eq!(found.status, 404);
            }
        }
    }
}

#[tokio::test]
async fn it_speaks_tls_with_its_own_certificate() {
    let authority = Authority::start(AuthoritySettings {
        tls: true,
        ..AuthoritySettings::default()
    });
    assert!(authority.issuer().starts_with("https://127.0.0.1:"));
    let url = format!(
        "{}/.well-known/oauth-authorization-server",
        authority.issuer()
    );
    assert!(
        client().get(&url).send().await.is_err(),
        "nobody trusts it yet"
    );
    let pem = authority.certificate().unwrap().as_bytes();
    let trusting = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([reqwest::Certificate::from_pem(pem).unwrap()])
        .build()
        .unwrap();
    let found = answer(trusting.get(&url)).await.json();
    assert_eq!(found["issuer"], authority.issuer());
}
