//! Every grant works when it is asked for as the standards say, and not otherwise.

use std::time::Duration;

use serde_json::json;
use toolway_testkit::LeakCheck;
use toolway_testkit::authority::{
    Authority, AuthoritySettings, ConsentMode, DpopMode, KnownClient, RequestedParty, Switch,
    TestKey, holds_secret,
};
use toolway_testkit::browser::{TestBrowser, browse};

use super::{
    CALLBACK, answer, asked, authorize, call, encoded, form, get, login, post, public, redeem,
    refresh, settings, value,
};

const URN: &str = "urn:ietf:params:oauth";

#[tokio::test]
async fn a_code_is_exchanged_once_and_the_token_opens_the_resource() {
    let check = LeakCheck::begin();
    {
        let authority = Authority::start(settings());
        let back = authorize(&authority, &asked(&authority)).await.callback();
        assert_eq!(value(&back, "state"), Some("the-state"));
        assert_eq!(value(&back, "iss"), Some(authority.issuer()));
        let code = value(&back, "code").unwrap();
        let tokens = redeem(&authority, code).await;
        assert_eq!(tokens.status, 200, "{tokens:?}");
        let tokens = tokens.json();
        assert_eq!(tokens["token_type"], "Bearer");
        assert_eq!(tokens["expires_in"], 3600);
        assert_eq!(tokens["scope"], "openid read");
        for name in ["access_token", "refresh_token", "id_token"] {
            assert!(holds_secret(tokens[name].as_str().unwrap()), "{name}");
        }
        assert!(holds_secret(code));
        let access = tokens["access_token"].as_str().unwrap();
        let who = call(&authority, Some(access), "tools/call").await;
        assert!(who.body.contains("subject=person-1 client=app"), "{who:?}");
        assert_eq!(authority.valid_access_tokens(), [access]);

        // A code used twice takes back what it gave (RFC 6749 4.1.2).
        assert_eq!(
            redeem(&authority, code).await.json()["error"],
            "invalid_grant"
        );
        assert_eq!(authority.report().families_revoked, 1);
        assert!(!authority.is_valid(access));
        let report = authority.report();
        assert_eq!((report.authorizations, report.codes), (1, 1));
        assert_eq!(report.token_requests("authorization_code"), 2);
        assert_eq!(report.granted("authorization_code"), 1);
    }
    check.assert_clean().await;
}

#[tokio::test]
async fn pkce_resource_and_redirect_are_enforced() {
    let authority = Authority::start(settings());
    for (name, wrong, error) in [
        ("code_challenge", None, "invalid_request"),
        ("code_challenge_method", Some("plain"), "invalid_request"),
        ("resource", None, "invalid_target"),
        ("resource", Some("http://127.0.0.1:1/mcp"), "invalid_target"),
        ("response_type", Some("token"), "unsupported_response_type"),
    ] {
        let mut pairs = asked(&authority);
        pairs.retain(|(found, _)| found != name);
        if let Some(wrong) = wrong {
            pairs.push((name.to_owned(), wrong.to_owned()));
        }
        let back = authorize(&authority, &pairs).await.callback();
        assert_eq!(value(&back, "error"), Some(error), "{name}");
        assert_eq!(value(&back, "iss"), Some(authority.issuer()));
        assert_eq!(value(&back, "code"), None);
    }
    // Nothing goes to an address that is not the client's.
    for (name, wrong) in [
        ("client_id", "nobody"),
        ("redirect_uri", "https://example.com/"),
    ] {
        let mut pairs = asked(&authority);
        pairs.retain(|(found, _)| found != name);
        pairs.push((name.to_owned(), wrong.to_owned()));
        assert_eq!(authorize(&authority, &pairs).await.status, 400);
    }
    let back = authorize(&authority, &asked(&authority)).await.callback();
    let code = value(&back, "code").unwrap();
    let right = [
        ("grant_type", "authorization_code"),
        ("client_id", "app"),
        ("code", code),
        ("redirect_uri", CALLBACK),
        ("code_verifier", super::VERIFIER),
        ("resource", authority.resource()),
    ];
    let token = format!("{}/token", authority.issuer());
    for (name, error) in [
        ("code_verifier", "invalid_grant"),
        ("redirect_uri", "invalid_grant"),
        ("resource", "invalid_target"),
    ] {
        let mut pairs = right.to_vec();
        pairs.retain(|(found, _)| *found != name);
        assert_eq!(post(&token, &pairs).await.json()["error"], error, "{name}");
    }
    authority.advance(Duration::from_secs(61));
    assert_eq!(post(&token, &right).await.json()["error"], "invalid_grant");
}

#[tokio::test]
async fn a_refresh_token_is_good_once_and_its_reuse_takes_the_family() {
    let authority = Authority::start(settings());
    let first = login(&authority).await.json();
    let first = first["refresh_token"].as_str().unwrap();
    let second = refresh(&authority, first).await.json();
    let access = second["access_token"].as_str().unwrap();
    let second = second["refresh_token"].as_str().unwrap();
    assert_ne!(first, second);
    assert_eq!(authority.valid_refresh_tokens(), [second]);
    assert!(authority.is_valid(access));

    assert_eq!(
        refresh(&authority, first).await.json()["error"],
        "invalid_grant"
    );
    assert_eq!(authority.report().families_revoked, 1);
    assert!(!authority.is_valid(access) && !authority.is_valid(second));
    assert_eq!(
        refresh(&authority, second).await.json()["error"],
        "invalid_grant"
    );
    assert_eq!(authority.report().families_revoked, 1, "counted once");
    assert_eq!(authority.report().granted("refresh_token"), 1);
}

#[tokio::test]
async fn of_many_refreshes_at_once_one_is_first() {
    let authority = Authority::start(settings());
    let token = authority.issue("app", "read").refresh.unwrap();
    let answers = futures_util::future::join_all((0..8).map(|_| refresh(&authority, &token))).await;
    assert_eq!(
        answers.iter().filter(|answer| answer.status == 200).count(),
        1
    );
    assert_eq!(authority.report().families_revoked, 1);
}

#[tokio::test]
async fn requests_wait_while_they_are_held() {
    let authority = Authority::start(AuthoritySettings {
        token_delay_ms: 1,
        ..settings()
    });
    let token = authority.issue("app", "read").refresh.unwrap();
    let held = authority.hold("/token");
    let mut waiting = std::pin::pin!(refresh(&authority, &token));
    // It has arrived, and other requests pass it by.
    while authority
        .seen_at(RequestedParty::Issuer, "/token")
        .is_empty()
    {
        let url = format!("{}/jwks", authority.issuer());
        let keys = get(&url);
        tokio::select! {
            early = &mut waiting => assert_eq!(early.status, 0, "it was held"),
            keys = keys => assert_eq!(keys.status, 200),
        }
    }
    assert_eq!(authority.report().token_requests("refresh_token"), 0);
    drop(held);
    assert_eq!(waiting.await.status, 200);
}

#[tokio::test]
async fn within_its_grace_a_used_refresh_token_does_no_harm() {
    let authority = Authority::start(AuthoritySettings {
        grace_ms: 3_600_000,
        ..settings()
    });
    let token = authority.issue("app", "read").refresh.unwrap();
    assert_eq!(refresh(&authority, &token).await.status, 200);
    assert_eq!(refresh(&authority, &token).await.status, 200);
    assert_eq!(authority.report().families_revoked, 0);
    authority.advance(Duration::from_secs(3601));
    assert_eq!(refresh(&authority, &token).await.status, 400);
    assert_eq!(authority.report().families_revoked, 1);
}

#[tokio::test]
async fn tokens_end_with_their_time() {
    let authority = Authority::start(AuthoritySettings {
        access_ms: 2000,
        ..settings()
    });
    let tokens = login(&authority).await.json();
    assert_eq!(tokens["expires_in"], 2);
    let access = tokens["access_token"].as_str().unwrap();
    authority.advance(Duration::from_secs(2));
    let refused = call(&authority, Some(access), "tools/list").await;
    assert_eq!(refused.status, 401);
    assert!(refused.header("www-authenticate").contains("invalid_token"));
    authority.advance(Duration::from_hours(31 * 24));
    let refused = refresh(&authority, tokens["refresh_token"].as_str().unwrap()).await;
    assert_eq!(refused.json()["error"], "invalid_grant");
}

#[tokio::test]
async fn a_person_decides_on_a_page() {
    let authority = Authority::start(AuthoritySettings {
        consent: ConsentMode::Page,
        ..settings()
    });
    let page = authorize(&authority, &asked(&authority)).await;
    assert_eq!(page.status, 200);
    assert!(page.body.contains("name=\"decision\" value=\"allow\""));
    let pairs = asked(&authority);
    let pairs: Vec<(&str, &str)> = pairs
        .iter()
        .map(|(n, v)| (n.as_str(), v.as_str()))
        .collect();
    let url = format!("{}/authorize?{}", authority.issuer(), encoded(&pairs));
    for (decision, answer) in [("allow", "code"), ("deny", "error")] {
        let mut browser = TestBrowser::new();
        assert!(browser.open(&url).is_some());
        // Nothing listens at the callback, so the browser stops before it.
        assert!(browser.submit(&[("decision", decision)]).is_none());
        let back = reqwest::Url::parse(browser.url()).unwrap();
        let has = |name: &str| back.query_pairs().any(|(found, _)| found == name);
        assert!(
            browser.url().starts_with(CALLBACK) && has(answer) && has("iss"),
            "{decision}"
        );
        assert_eq!(
            back.query_pairs()
                .find(|(name, _)| name == "state")
                .unwrap()
                .1,
            "the-state"
        );
    }
}

#[tokio::test]
async fn client_credentials_come_in_three_ways() {
    let key = TestKey::new();
    let secret = toolway_testkit::authority::CANARY;
    let authority = Authority::start(AuthoritySettings {
        clients: vec![
            public(),
            KnownClient {
                id: "robot".to_owned(),
                secret: Some(secret.to_owned()),
                ..KnownClient::default()
            },
            KnownClient {
                id: "signer".to_owned(),
                jwks: Some(key.jwks()),
                method: Some("private_key_jwt".to_owned()),
                ..KnownClient::default()
            },
        ],
        ..AuthoritySettings::default()
    });
    let token = format!("{}/token", authority.issuer());
    let grant = [
        ("grant_type", "client_credentials"),
        ("resource", authority.resource()),
        ("scope", "read unknown"),
    ];
    let with = |more: &[(&'static str, String)]| {
        let mut pairs: Vec<(&str, &str)> = grant.to_vec();
        pairs.extend(more.iter().map(|(name, value)| (*name, value.as_str())));
        form(&token, &pairs)
    };
    let basic = answer(with(&[]).basic_auth("robot", Some(secret))).await;
    assert_eq!(basic.json()["scope"], "read");
    assert!(basic.json().get("refresh_token").is_none());
    let id = ("client_id", "robot".to_owned());
    let posted = with(&[id.clone(), ("client_secret", secret.to_owned())]);
    assert_eq!(answer(posted).await.status, 200);
    let wrong = answer(with(&[id, ("client_secret", "no".to_owned())])).await;
    assert_eq!(
        (wrong.status, &wrong.json()["error"]),
        (401, &json!("invalid_client"))
    );
    let nobody = answer(with(&[("client_id", "app".to_owned())])).await;
    assert_eq!(nobody.json()["error"], "unauthorized_client");

    let assertion = |aud: &str, exp: u64, key: &TestKey| {
        let claims = json!({ "iss": "signer", "sub": "signer", "aud": aud, "exp": exp,
            "jti": exp.to_string() });
        with(&[
            (
                "client_assertion_type",
                format!("{URN}:client-assertion-type:jwt-bearer"),
            ),
            ("client_assertion", key.sign("JWT", &claims)),
        ])
    };
    let far = 4_000_000_000;
    let issuer = authority.issuer();
    assert_eq!(answer(assertion(issuer, far, &key)).await.status, 200);
    for (what, request) in [
        ("used before", assertion(issuer, far, &key)),
        (
            "other audience",
            assertion("https://example.com", far + 1, &key),
        ),
        ("expired", assertion(issuer, 1, &key)),
        ("other key", assertion(issuer, far + 2, &TestKey::new())),
    ] {
        assert_eq!(answer(request).await.status, 401, "{what}");
    }
}

#[tokio::test]
async fn a_device_waits_for_a_person() {
    let authority = Authority::start(AuthoritySettings {
        device_polls: None,
        device_strict: true,
        ..settings()
    });
    let begin = || async {
        let url = format!("{}/device_authorization", authority.issuer());
        post(
            &url,
            &[("client_id", "app"), ("resource", authority.resource())],
        )
        .await
        .json()
    };
    let poll = |device: serde_json::Value| {
        let token = format!("{}/token", authority.issuer());
        async move {
            post(
                &token,
                &[
                    ("grant_type", &format!("{URN}:grant-type:device_code")),
                    ("client_id", "app"),
                    ("device_code", device["device_code"].as_str().unwrap()),
                ],
            )
            .await
            .json()
        }
    };
    let device = begin().await;
    assert_eq!(
        (&device["interval"], &device["expires_in"]),
        (&json!(5), &json!(600))
    );
    assert_eq!(poll(device.clone()).await["error"], "authorization_pending");
    assert_eq!(poll(device.clone()).await["error"], "slow_down");
    authority.advance(Duration::from_secs(5));
    assert_eq!(
        poll(device.clone()).await["error"],
        "slow_down",
        "five seconds more"
    );
    authority.advance(Duration::from_mins(1));
    // The page works as a user uses it.
    let page = device["verification_uri_complete"].as_str().unwrap();
    assert!(
        get(page)
            .await
            .body
            .contains(device["user_code"].as_str().unwrap())
    );
    assert_eq!(get(&format!("{page}&decision=allow")).await.status, 200);
    assert!(poll(device.clone()).await["access_token"].is_string());
    assert_eq!(poll(device).await["error"], "invalid_grant", "only once");

    let device = begin().await;
    assert!(authority.decide_device(device["user_code"].as_str().unwrap(), false));
    assert_eq!(poll(device).await["error"], "access_denied");
    let device = begin().await;
    authority.advance(Duration::from_secs(601));
    assert_eq!(poll(device).await["error"], "expired_token");
    assert_eq!(authority.report().devices, 3);
}

#[tokio::test]
async fn an_id_token_becomes_an_assertion_becomes_a_token() {
    let provider = Authority::start(AuthoritySettings {
        clients: vec![public()],
        assertion_client: Some("app-there".to_owned()),
        ..AuthoritySettings::identity_provider()
    });
    let authority = Authority::start(AuthoritySettings {
        clients: vec![KnownClient {
            id: "app-there".to_owned(),
            ..KnownClient::default()
        }],
        trusted: vec![provider.issuer().to_owned()],
        ..AuthoritySettings::default()
    });
    let mut pairs = asked(&provider);
    pairs.retain(|(name, _)| name != "resource");
    let back = authorize(&provider, &pairs).await.callback();
    let token = format!("{}/token", provider.issuer());
    let tokens = post(
        &token,
        &[
            ("grant_type", "authorization_code"),
            ("client_id", "app"),
            ("code", value(&back, "code").unwrap()),
            ("redirect_uri", CALLBACK),
            ("code_verifier", super::VERIFIER),
        ],
    )
    .await
    .json();
    let jag = |audience: &'static str, authority: &Authority| {
        let audience = if audience.is_empty() {
            authority.issuer().to_owned()
        } else {
            audience.to_owned()
        };
        let request = form(
            &token,
            &[
                ("grant_type", &format!("{URN}:grant-type:token-exchange")),
                ("client_id", "app"),
                ("requested_token_type", &format!("{URN}:token-type:id-jag")),
                ("audience", &audience),
                ("resource", authority.resource()),
                ("scope", "read"),
                ("subject_token", tokens["id_token"].as_str().unwrap()),
                ("subject_token_type", &format!("{URN}:token-type:id_token")),
            ],
        );
        async move { answer(request).await.json() }
    };
    let made = jag("", &authority).await;
    assert_eq!(
        made["issued_token_type"],
        format!("{URN}:token-type:id-jag")
    );
    assert_eq!(made["token_type"], "N_A");
    let take = |made: &serde_json::Value| {
        let request = form(
            &format!("{}/token", authority.issuer()),
            &[
                ("grant_type", &format!("{URN}:grant-type:jwt-bearer")),
                ("client_id", "app-there"),
                ("assertion", made["access_token"].as_str().unwrap()),
            ],
        );
        async move { answer(request).await.json() }
    };
    let tokens = take(&made).await;
    let access = tokens["access_token"].as_str().unwrap();
    let who = call(&authority, Some(access), "tools/call").await;
    assert!(
        who.body
            .contains("subject=person-1 client=app-there scope=read")
    );
    assert_eq!(take(&made).await["error"], "invalid_grant", "used before");
    let elsewhere = jag("https://example.com", &authority).await;
    assert_eq!(
        take(&elsewhere).await["error"],
        "invalid_grant",
        "other audience"
    );
    provider.set(&[Switch::ExchangeType]);
    let other = jag("", &authority).await;
    assert_eq!(
        other["issued_token_type"],
        format!("{URN}:token-type:access_token")
    );
    provider.set(&[Switch::ExchangeAudience]);
    let other = jag("", &authority).await;
    assert_eq!(take(&other).await["error"], "invalid_grant");
}

#[tokio::test]
async fn revocation_ends_a_family_without_counting_it_as_fallen() {
    let authority = Authority::start(settings());
    let tokens = login(&authority).await.json();
    let revoke = format!("{}/revoke", authority.issuer());
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let gone = post(&revoke, &[("client_id", "app"), ("token", refresh)]).await;
    assert_eq!(gone.status, 200);
    assert!(authority.valid_access_tokens().is_empty());
    assert!(authority.valid_refresh_tokens().is_empty());
    let report = authority.report();
    assert_eq!((report.revocations, report.families_revoked), (1, 0));
}

#[tokio::test]
async fn possession_is_proven_with_a_nonce() {
    let key = TestKey::new();
    let authority = Authority::start(AuthoritySettings {
        dpop: DpopMode::RequiredWithNonce,
        ..settings()
    });
    let number = std::cell::Cell::new(0);
    let proof = |method: &str, url: &str, nonce: &str, token: Option<&str>| {
        number.set(number.get() + 1);
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let mut claims = json!({ "htm": method, "htu": url, "iat": now,
            "jti": number.get().to_string(), "nonce": nonce });
        if let Some(token) = token {
            use base64::Engine;
            use sha2::Digest;
            let hash = sha2::Sha256::digest(token.as_bytes());
            let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
            claims["ath"] = json!(engine.encode(hash));
        }
        let header = json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": key.jwk() });
        key.sign_with(&header, &claims)
    };
    let back = authorize(&authority, &asked(&authority)).await.callback();
    let token = format!("{}/token", authority.issuer());
    let pairs = [
        ("grant_type", "authorization_code"),
        ("client_id", "app"),
        ("code", value(&back, "code").unwrap()),
        ("redirect_uri", CALLBACK),
        ("code_verifier", super::VERIFIER),
        ("resource", authority.resource()),
    ];
    let bare = post(&token, &pairs).await;
    assert_eq!(bare.json()["error"], "invalid_dpop_proof");
    let first = form(&token, &pairs).header("dpop", proof("POST", &token, "", None));
    let first = answer(first).await;
    assert_eq!(first.json()["error"], "use_dpop_nonce");
    let nonce = first.header("dpop-nonce").to_owned();
    let second = form(&token, &pairs).header("dpop", proof("POST", &token, &nonce, None));
    let tokens = answer(second).await.json();
    assert_eq!(tokens["token_type"], "DPoP", "{tokens}");
    let access = tokens["access_token"].as_str().unwrap();
    assert_eq!(
        call(&authority, Some(access), "tools/list").await.status,
        401,
        "not as a bearer"
    );
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    let list = |nonce: &str| {
        super::client()
            .post(authority.resource())
            .header("authorization", format!("DPoP {access}"))
            .header(
                "dpop",
                proof("POST", authority.resource(), nonce, Some(access)),
            )
            .body(body.to_string())
    };
    assert_eq!(answer(list(&nonce)).await.status, 200);
    authority.turn_on(Switch::DpopNonceLoop);
    let again = answer(list(&nonce)).await;
    assert_eq!(again.status, 401);
    assert!(again.header("www-authenticate").contains("use_dpop_nonce"));
    assert!(!again.header("dpop-nonce").is_empty());
}

#[tokio::test]
async fn a_person_can_be_played_without_any_client() {
    let authority = Authority::start(settings());
    // Nothing listens at the callback: the visit ends there.
    let pairs = asked(&authority);
    let pairs: Vec<(&str, &str)> = pairs
        .iter()
        .map(|(n, v)| (n.as_str(), v.as_str()))
        .collect();
    let url = format!("{}/authorize?{}", authority.issuer(), encoded(&pairs));
    let pages = browse(&url);
    assert_eq!(pages.len(), 1);
    assert!(pages[0].location.as_ref().unwrap().starts_with(CALLBACK));
}
