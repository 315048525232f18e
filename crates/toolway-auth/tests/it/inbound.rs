//! Tokens that clients show to us, most of them with ill intent, against an issuer on
//! loopback.

mod hostile;

use std::time::Duration;

use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde_json::{Value, json};
use toolway_auth::clock::unix_now;
use toolway_auth::inbound::{
    AccessClaimError, InboundAuthorizer, InboundError, InboundFault, InboundOptions,
    InboundRefusal, Principal,
};
use toolway_auth::jwt::{JwtAlgorithm, VerifyError};
use toolway_auth::web::{NetworkReach, WebClient};
use toolway_auth::{AuthNeed, BearerError, challenge};
use toolway_testkit::authority::{TestKey, holds_secret};
use toolway_transport::client::HttpClient;
use url::Url;

use crate::site::Site;

const OURS: &str = "https://gateway.example/mcp";
const METADATA: &str = "/.well-known/oauth-authorization-server";

/// An accepted issuer, a check that accepts it, and another issuer that is not accepted.
struct Stage {
    issuer: Site,
    attacker: Site,
    key: TestKey,
    inbound: InboundAuthorizer,
}

impl Stage {
    async fn new() -> Self {
        Self::with(|_| ()).await
    }

    async fn with(change: impl FnOnce(&mut InboundOptions)) -> Self {
        let (issuer, attacker) = (Site::new().await, Site::new().await);
        let key = TestKey::new();
        issuer.put(
            METADATA,
            &json!({ "issuer": issuer.origin(), "jwks_uri": issuer.url("/keys") }),
        );
        issuer.put("/keys", &key.jwks());
        let mut options = InboundOptions::new(Url::parse(OURS).unwrap(), [issuer.origin()]);
        change(&mut options);
        let inbound =
            InboundAuthorizer::new(options, WebClient::trusted(HttpClient::default())).unwrap();
        Self {
            issuer,
            attacker,
            key,
            inbound,
        }
    }

    /// Good claims, but for these.
    fn claims(&self, changes: &Value) -> Value {
        let now = unix_now();
        let mut claims = json!({
            "iss": self.issuer.origin(), "aud": OURS, "sub": "person", "client_id": "editor",
            "scope": "read write", "iat": now, "exp": now + 600,
        });
        for (name, value) in changes.as_object().unwrap() {
            if value.is_null() {
                claims.as_object_mut().unwrap().remove(name);
            } else {
                claims[name] = value.clone();
            }
        }
        claims
    }

    /// A token with good claims, but for these.
    fn token(&self, changes: &Value) -> String {
        self.key.sign("at+jwt", &self.claims(changes))
    }

    /// A token with good claims under another header.
    fn headed(&self, header: &Value) -> String {
        self.key.sign_with(header, &self.claims(&json!({})))
    }

    async fn check(&self, token: &str) -> Result<Principal, InboundRefusal> {
        self.inbound.check(&shown("Bearer", token), None).await
    }

    async fn refused(&self, token: &str) -> InboundFault {
        let refusal = self.check(token).await.unwrap_err();
        assert!(
            !holds_secret(&format!("{refusal} {refusal:?}")),
            "{refusal}"
        );
        refusal.why()
    }

    fn fetches(&self) -> usize {
        let lines = self.issuer.lines();
        lines.iter().filter(|line| *line == "GET /keys").count()
    }
}

fn shown(scheme: &str, token: &str) -> HeaderMap {
    let value = HeaderValue::from_str(&format!("{scheme} {token}")).unwrap();
    HeaderMap::from_iter([(AUTHORIZATION, value)])
}

/// The clock of everything here goes on by this much, without waiting.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

fn challenge_of(refusal: &InboundRefusal) -> AuthNeed {
    let value = refusal.challenge().unwrap();
    challenge::need(refusal.status().as_u16(), value.to_str().ok()).unwrap()
}

#[tokio::test]
async fn a_good_token_says_who_asks_and_is_not_given_back() {
    let stage = Stage::new().await;
    let token = stage.token(&json!({}));
    let principal = stage.check(&token).await.unwrap();
    assert_eq!(principal.issuer, stage.issuer.origin());
    assert_eq!(principal.subject, "person");
    assert_eq!(principal.client_id.as_deref(), Some("editor"));
    assert_eq!(principal.scopes, ["read", "write"]);
    let shown = format!("{principal:?} {:?}", stage.inbound);
    assert!(!holds_secret(&shown), "{shown}");
    for part in token.split('.') {
        assert!(!shown.contains(part), "{shown}");
    }
    // The same token is the same session's, another one of the same user is not.
    let again = stage.check(&token).await.unwrap();
    assert_eq!(again.fingerprint, principal.fingerprint);
    let other = stage
        .check(&stage.token(&json!({ "jti": "2" })))
        .await
        .unwrap();
    assert_ne!(other.fingerprint, principal.fingerprint);
    assert_eq!(stage.fetches(), 1, "keys are kept");
}

#[tokio::test]
async fn what_issuers_write_differently_and_mean_alike_is_taken() {
    let stage = Stage::new().await;
    let now = unix_now();
    for changes in [
        json!({ "aud": ["https://other.example", OURS] }),
        json!({ "aud": "HTTPS://Gateway.EXAMPLE:443/mcp" }),
        json!({ "exp": now - 5 }),
        json!({ "nbf": now + 30 }),
        json!({ "exp": 1.5e12 }),
        json!({ "scope": null, "scp": ["read"] }),
        json!({ "client_id": null, "azp": "editor" }),
    ] {
        let checked = stage.check(&stage.token(&changes)).await;
        assert!(checked.is_ok(), "{changes}: {checked:?}");
    }
    let kid = stage.key.jwk()["kid"].clone();
    for header in [
        json!({ "alg": "ES256", "kid": kid, "typ": "JWT" }),
        json!({ "alg": "ES256", "kid": kid, "typ": "application/AT+jwt" }),
        json!({ "alg": "ES256", "kid": kid }),
        json!({ "alg": "ES256", "typ": "at+jwt" }),
    ] {
        let checked = stage.check(&stage.headed(&header)).await;
        assert!(checked.is_ok(), "{header}: {checked:?}");
    }
    let token = stage.token(&json!({}));
    for scheme in ["bearer", "BEARER", "Bearer  "] {
        let checked = stage
            .inbound
            .check(&shown(scheme, &token), Some("a=b"))
            .await;
        assert!(checked.is_ok(), "{scheme}: {checked:?}");
    }
}

#[tokio::test]
async fn a_token_must_be_the_only_one_and_in_the_header() {
    let stage = Stage::new().await;
    let token = stage.token(&json!({}));
    let mut twice = shown("Bearer", &token);
    twice.append(AUTHORIZATION, twice[AUTHORIZATION].clone());
    let good = shown("Bearer", &token);
    let long = shown("Bearer", &"a".repeat(1 << 20));
    let joined = shown("Bearer", &format!("{token}, Bearer {token}"));
    let bytes = HeaderMap::from_iter([(
        AUTHORIZATION,
        HeaderValue::from_bytes(b"Bearer \xff\xfe").unwrap(),
    )]);
    let inside = format!("access_token={token}");
    let hidden = "x=1&acc%65ss_token=";
    let malformed = InboundFault::Signature(VerifyError::Malformed);
    for (what, headers, query, why, status) in [
        ("none", HeaderMap::new(), None, InboundFault::NoToken, 401),
        (
            "basic",
            shown("Basic", "dTpw"),
            None,
            InboundFault::NoToken,
            401,
        ),
        ("bare", shown("", &token), None, InboundFault::NoToken, 401),
        (
            "proof",
            shown("DPoP", &token),
            None,
            InboundFault::Claims(AccessClaimError::Bound),
            401,
        ),
        ("twice", twice, None, InboundFault::Several, 400),
        ("joined", joined, None, InboundFault::Several, 400),
        ("long", long, None, InboundFault::TooLong, 401),
        ("bytes", bytes, None, malformed, 401),
        (
            "address",
            HeaderMap::new(),
            Some(&*inside),
            InboundFault::InAddress,
            400,
        ),
        (
            "both",
            good.clone(),
            Some(&*inside),
            InboundFault::InAddress,
            400,
        ),
        (
            "hidden",
            good.clone(),
            Some(hidden),
            InboundFault::InAddress,
            400,
        ),
    ] {
        let refusal = stage.inbound.check(&headers, query).await.unwrap_err();
        assert_eq!(refusal.why(), why, "{what}");
        assert_eq!(refusal.status().as_u16(), status, "{what}");
        assert!(!holds_secret(&format!("{refusal:?}")), "{what}");
    }
    assert!(
        stage.issuer.lines().is_empty(),
        "nothing of this is worth a question"
    );
    assert!(stage.inbound.check(&good, None).await.is_ok());
}

#[tokio::test]
async fn a_refusal_tells_a_client_what_to_do() {
    let stage = Stage::with(|options| {
        options.scopes = vec!["read".to_owned()];
        options.offered = vec!["read".to_owned(), "call".to_owned()];
        options.name = Some("The gateway".to_owned());
    })
    .await;
    let place = "https://gateway.example/.well-known/oauth-protected-resource/mcp";
    assert_eq!(
        stage.inbound.document_path(),
        "/.well-known/oauth-protected-resource/mcp"
    );
    assert_eq!(
        stage.inbound.document(),
        json!({
            "resource": OURS, "authorization_servers": [stage.issuer.origin()],
            "bearer_methods_supported": ["header"], "scopes_supported": ["read", "call"],
            "resource_name": "The gateway",
        })
    );

    let nothing = stage
        .inbound
        .check(&HeaderMap::new(), None)
        .await
        .unwrap_err();
    let AuthNeed::Login(Some(asked)) = challenge_of(&nothing) else {
        panic!("{nothing:?}")
    };
    assert_eq!(asked.resource_metadata, Some(Url::parse(place).unwrap()));
    assert_eq!((asked.error, asked.scopes), (None, vec!["read".to_owned()]));

    let bad = stage.check("bad").await.unwrap_err();
    assert_eq!(
        bad.challenge().unwrap(),
        format!(
            "Bearer resource_metadata=\"{place}\", error=\"invalid_token\", \
             error_description=\"the token is not taken: it is no signed JSON web token\", \
             scope=\"read\""
        )
    );
    let AuthNeed::Login(Some(asked)) = challenge_of(&bad) else {
        panic!("{bad:?}")
    };
    assert_eq!(asked.error, Some(BearerError::InvalidToken));

    let little = stage.token(&json!({ "scope": "write" }));
    let little = stage.check(&little).await.unwrap_err();
    assert_eq!(
        (little.why(), little.status().as_u16()),
        (InboundFault::Scopes, 403)
    );
    // A token may be enough for one route and not for another.
    let principal = stage.check(&stage.token(&json!({}))).await.unwrap();
    let rooms = ["read".to_owned(), "call".to_owned()];
    let more = stage.inbound.demand(&principal, &rooms).unwrap_err();
    let AuthNeed::Scopes(asked) = challenge_of(&more) else {
        panic!("{more:?}")
    };
    assert_eq!(asked.error, Some(BearerError::InsufficientScope));
    assert_eq!(asked.scopes, rooms);
    assert_eq!(asked.resource_metadata, Some(Url::parse(place).unwrap()));
}

#[tokio::test]
async fn a_new_key_is_found_and_a_made_up_one_asks_once_a_minute() {
    let stage = Stage::new().await;
    let old = stage.token(&json!({}));
    assert!(stage.check(&old).await.is_ok());
    let new = TestKey::new();
    let token = new.sign("at+jwt", &stage.claims(&json!({})));
    let keys = json!({ "keys": [stage.key.jwk(), new.jwk()] });
    stage.issuer.put("/keys", &keys);
    // So soon after a look there is no other.
    assert_eq!(
        stage.refused(&token).await,
        InboundFault::Signature(VerifyError::UnknownKey)
    );
    assert_eq!(stage.fetches(), 1);
    pass(Duration::from_secs(61)).await;
    assert!(stage.check(&token).await.is_ok());
    assert!(stage.check(&old).await.is_ok());
    assert_eq!(stage.fetches(), 2);

    pass(Duration::from_secs(61)).await;
    let made_up = TestKey::new();
    let strangers = futures_util::future::join_all((0..50).map(|_| async {
        let token = made_up.sign("at+jwt", &stage.claims(&json!({})));
        stage.refused(&token).await
    }));
    for why in strangers.await {
        assert_eq!(why, InboundFault::Signature(VerifyError::UnknownKey));
    }
    assert_eq!(stage.fetches(), 3, "one question for all of them");

    // A key that is taken back is gone within the hour.
    stage.issuer.put("/keys", &new.jwks());
    pass(Duration::from_hours(1)).await;
    assert_eq!(
        stage.refused(&old).await,
        InboundFault::Signature(VerifyError::UnknownKey)
    );
    assert!(stage.check(&token).await.is_ok());
}

#[tokio::test]
async fn an_issuer_that_is_away_makes_no_token_bad() {
    let stage = Stage::new().await;
    stage.issuer.answer("/keys", 503, &[], "later");
    let token = stage.token(&json!({}));
    for _ in 0..3 {
        let refusal = stage.check(&token).await.unwrap_err();
        assert_eq!(refusal.status().as_u16(), 503);
        assert_eq!(
            (refusal.challenge(), refusal.retry_after()),
            (None, Some(10))
        );
    }
    assert_eq!(stage.fetches(), 1, "it is left alone for a while");
    stage.issuer.put("/keys", &stage.key.jwks());
    pass(Duration::from_secs(11)).await;
    assert!(stage.check(&token).await.is_ok());

    // Away again when the keys are due: they still do, for as long again and no longer.
    stage.issuer.answer("/keys", 503, &[], "later");
    pass(Duration::from_mins(61)).await;
    assert!(stage.check(&token).await.is_ok());
    pass(Duration::from_mins(61)).await;
    assert_eq!(
        stage.refused(&token).await,
        InboundFault::NoKeys { seconds: 10 }
    );
}

#[tokio::test]
async fn sec_46_metadata_that_names_another_issuer_gives_no_keys() {
    let stage = Stage::new().await;
    stage.issuer.put(
        METADATA,
        &json!({ "issuer": stage.attacker.origin(), "jwks_uri": stage.attacker.url("/keys") }),
    );
    stage.attacker.put("/keys", &stage.key.jwks());
    let why = stage.refused(&stage.token(&json!({}))).await;
    assert_eq!(why, InboundFault::NoKeys { seconds: 10 });
    assert!(stage.attacker.lines().is_empty());
}

#[tokio::test]
async fn each_issuer_signs_for_itself_alone() {
    let other = Site::new().await;
    let key = TestKey::new();
    other.put(
        METADATA,
        &json!({ "issuer": other.origin(), "jwks_uri": other.url("/keys") }),
    );
    other.put("/keys", &key.jwks());
    let second = other.origin();
    let stage = Stage::with(|options| options.issuers.push(second)).await;
    let theirs = stage.claims(&json!({ "iss": other.origin() }));
    let principal = stage.check(&key.sign("at+jwt", &theirs)).await.unwrap();
    assert_eq!(principal.issuer, other.origin());
    let forged = key.sign("at+jwt", &stage.claims(&json!({})));
    let why = stage.refused(&forged).await;
    assert_eq!(why, InboundFault::Signature(VerifyError::UnknownKey));
}

#[tokio::test]
async fn only_allowed_algorithms_are_believed_and_asked_for() {
    let stage = Stage::with(|options| options.algorithms = vec![JwtAlgorithm::Rs256]).await;
    let why = stage.refused(&stage.token(&json!({}))).await;
    assert_eq!(why, InboundFault::Signature(VerifyError::Algorithm));
    assert!(stage.issuer.lines().is_empty());
}

#[test]
fn a_check_that_could_keep_nothing_out_is_not_set_up() {
    let url = |text: &str| Url::parse(text).unwrap();
    let issuer = || ["https://issuer.example".to_owned()];
    let inbound = |options| {
        let web = WebClient::new(HttpClient::default(), NetworkReach::Public);
        InboundAuthorizer::new(options, web)
            .map(|_| ())
            .unwrap_err()
    };
    for resource in [
        "https://a.example/?x",
        "https://a.example/#x",
        "https://u@a.example",
        "data:x",
    ] {
        let error = inbound(InboundOptions::new(url(resource), issuer()));
        assert!(matches!(error, InboundError::Resource { .. }), "{error}");
    }
    for name in [
        "",
        "issuer",
        "http://issuer.example",
        "https://issuer.example?x",
    ] {
        let error = inbound(InboundOptions::new(url(OURS), [name.to_owned()]));
        assert!(
            matches!(error, InboundError::Issuer { .. }),
            "{name}: {error}"
        );
    }
    assert_eq!(
        inbound(InboundOptions::new(url(OURS), [])),
        InboundError::NoIssuers
    );
    let options = InboundOptions {
        algorithms: Vec::new(),
        ..InboundOptions::new(url(OURS), issuer())
    };
    assert_eq!(inbound(options), InboundError::NoAlgorithms);
    let options = InboundOptions {
        scopes: vec!["a\"b".to_owned()],
        ..InboundOptions::new(url(OURS), issuer())
    };
    assert!(matches!(inbound(options), InboundError::Scope(_)));
}
