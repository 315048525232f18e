//! Every grant against an authorization server that enforces its rules, and breaks them on
//! command.

use std::sync::Arc;

use serde_json::json;
use toolway_auth::assertion::ClientKey;
use toolway_auth::authorize::{
    AuthorizationOptions, AuthorizationResponseError, PendingAuthorization,
};
use toolway_auth::callback::{Callback, CallbackAddress, CallbackError};
use toolway_auth::clock::unix_now;
use toolway_auth::device::{DeviceError, DeviceLogin};
use toolway_auth::discovery::{DiscoveredServer, DiscoveryOptions, discover};
use toolway_auth::jwt::SigningKey;
use toolway_auth::token::{
    ClientAuth, DpopKey, OauthClient, TokenError, TokenGrant, TokenKind, TokenRequest, Tokens,
};
use toolway_auth::web::{NetworkReach, WebClient};
use toolway_testkit::authority::{
    Authority, AuthoritySettings, CANARY, DpopMode, KnownClient, RequestedParty, Switch,
    holds_secret,
};
use toolway_testkit::browser::browse;
use toolway_transport::client::HttpClient as Http;
use toolway_types::Secret;
use url::Url;

/// A server that was found, and who we are to it.
struct Login {
    authority: Authority,
    found: DiscoveredServer,
    client: OauthClient,
    scopes: Vec<String>,
    dpop: Option<DpopKey>,
}

fn public() -> KnownClient {
    KnownClient {
        id: "toolway".to_owned(),
        ..KnownClient::default()
    }
}

fn with(switches: &[Switch]) -> AuthoritySettings {
    AuthoritySettings {
        clients: vec![public()],
        device_interval: 1,
        ..AuthoritySettings::with(switches)
    }
}

impl Login {
    async fn new(settings: AuthoritySettings) -> Self {
        let authority = Authority::start(settings);
        let web = WebClient::new(Http::default(), NetworkReach::Loopback);
        let url = Url::parse(authority.resource()).unwrap();
        let found = discover(&web, &url, None, &DiscoveryOptions::default()).await;
        Self {
            found: found.unwrap(),
            authority,
            client: OauthClient::public("toolway"),
            scopes: vec!["read".to_owned()],
            dpop: None,
        }
    }

    fn request(&self) -> TokenRequest<'_> {
        TokenRequest {
            endpoint: self.found.server.token_endpoint.as_ref().unwrap(),
            issuer: &self.found.server.issuer,
            client: &self.client,
            resource: Some(&self.found.resource),
            scopes: &self.scopes,
            dpop: self.dpop.as_ref(),
        }
    }

    async fn send(&self, grant: &TokenGrant<'_>) -> Result<Tokens, TokenError> {
        self.request().send(&self.found.web, grant).await
    }

    /// The whole login, as a user sees it: the page they end at.
    async fn by_browser(&self) -> (Result<Result<Tokens, TokenError>, CallbackError>, String) {
        let server = &self.found.server;
        let callback = Callback::bind("the-server", CallbackAddress::Free)
            .await
            .unwrap();
        let attempt = PendingAuthorization::new(&AuthorizationOptions {
            issuer: &server.issuer,
            endpoint: server.authorization_endpoint.as_ref().unwrap(),
            challenge_methods: server.challenge_methods.as_deref(),
            promises_issuer: server.promises_issuer,
            client_id: &self.client.id,
            redirect_uri: callback.redirect_uri(),
            resource: Some(&self.found.resource),
            scopes: &self.scopes,
            extra: &[],
        })
        .unwrap();
        let page = attempt.url().as_str().to_owned();
        let browser = std::thread::spawn(move || browse(&page));
        let spend = async |code| self.send(&TokenGrant::code(&code)).await;
        let ended = callback.finish(&attempt, spend).await;
        let pages = browser.join().unwrap();
        (
            ended,
            pages
                .last()
                .map(|page| page.body.clone())
                .unwrap_or_default(),
        )
    }

    fn spent(&self) -> u64 {
        self.authority.report().token_requests("authorization_code")
    }
}

#[tokio::test]
async fn a_code_becomes_tokens_and_those_are_refreshed() {
    let login = Login::new(with(&[])).await;
    let (ended, page) = login.by_browser().await;
    let tokens = ended.unwrap().unwrap();
    assert!(page.contains("You are logged in"), "{page}");
    assert!(!holds_secret(&page));
    assert!(login.authority.is_valid(tokens.access.expose()));
    assert!(!tokens.is_due(unix_now()));
    let refresh = tokens.refresh.clone().unwrap();
    let next = login
        .send(&TokenGrant::refresh(&refresh))
        .await
        .unwrap()
        .succeeding(&tokens);
    assert_ne!(next.refresh, tokens.refresh);
    assert!(login.authority.is_valid(next.access.expose()));
    // Used twice: the server takes everything back, and says why.
    let error = login
        .send(&TokenGrant::refresh(&refresh))
        .await
        .expect_err("used before");
    assert!(error.is_refusal("invalid_grant"), "{error}");
}

#[tokio::test]
async fn sec_18_a_code_of_another_server_is_never_spent() {
    for (switch, foreign) in [
        (Switch::IssMissing, true),
        (Switch::IssWrong, true),
        (Switch::ErrorIssWrong, true),
        (Switch::AuthorizationDenied, false),
        (Switch::CodeMissing, false),
    ] {
        let login = Login::new(with(&[switch])).await;
        let (ended, page) = login.by_browser().await;
        let error = ended.expect_err("no code");
        let CallbackError::Answer(answer) = &error else {
            panic!("{switch:?}: {error}");
        };
        let ignored = matches!(
            answer,
            AuthorizationResponseError::IssuerMissing { .. }
                | AuthorizationResponseError::IssuerMismatch { .. }
        );
        assert_eq!(ignored, foreign, "{switch:?}: {error}");
        assert!(!holds_secret(&format!("{error} {error:?} {page}")));
        assert_eq!(login.spent(), 0, "{switch:?}");
        assert_eq!(login.authority.report().attacker_requests, 0);
    }
    // Not promised, and said: it is right here, so all is well.
    let login = Login::new(with(&[Switch::IssUnsaid])).await;
    assert!(login.by_browser().await.0.unwrap().is_ok());
}

#[tokio::test]
async fn rel_16_an_odd_expiry_is_neither_a_loop_nor_an_overflow() {
    for switch in [
        Switch::ExpiryMissing,
        Switch::ExpiryZero,
        Switch::ExpiryNegative,
        Switch::ExpiryString,
        Switch::ExpiryHuge,
        Switch::TypeMissing,
        Switch::DateAheadHour,
        Switch::DateBehindHour,
        Switch::DateAheadYear,
        Switch::DateBehindYear,
        Switch::DateMissing,
    ] {
        for signed_access in [false, true] {
            let settings = AuthoritySettings {
                signed_access,
                ..with(&[switch])
            };
            let login = Login::new(settings).await;
            let (ended, _) = login.by_browser().await;
            let tokens = ended.unwrap().unwrap();
            let now = unix_now();
            assert!(!tokens.is_due(now), "{switch:?} {signed_access}");
            let unsaid = matches!(
                switch,
                Switch::ExpiryMissing | Switch::ExpiryZero | Switch::ExpiryNegative
            );
            if unsaid && !signed_access {
                assert_eq!(tokens.expires_at, None, "{switch:?}");
            } else if switch != Switch::ExpiryHuge {
                // By itself or by the answer, it is good for an hour.
                let left = tokens.expires_at.unwrap() - now;
                assert!((3000..=3600).contains(&left), "{switch:?}: {left}");
            }
        }
    }
}

#[tokio::test]
async fn answers_that_are_none_are_not_taken() {
    for switch in [
        Switch::TypeMac,
        Switch::AccessMissing,
        Switch::DuplicateKeys,
        Switch::TokenHtml,
        Switch::TokenGigantic,
        Switch::TokenRedirect,
        Switch::TokenUnavailable,
        Switch::TokenBusyOnce,
        Switch::ErrorEscapes,
    ] {
        let login = Login::new(with(&[switch])).await;
        let (ended, page) = login.by_browser().await;
        let outcome = ended.unwrap();
        if switch == Switch::ErrorEscapes {
            // It spoils only what is refused.
            let refused = login
                .send(&TokenGrant::refresh(&Secret::new(format!(
                    "{CANARY}-nonsense"
                ))))
                .await;
            let error = refused.expect_err("refused").to_string();
            assert!(!error.contains('\u{1b}'), "{error:?}");
            continue;
        }
        let error = outcome.expect_err("no tokens");
        assert!(
            page.contains("The login did not work"),
            "{switch:?}: {page}"
        );
        assert!(
            !holds_secret(&format!("{error} {error:?} {page}")),
            "{switch:?}"
        );
        let busy = matches!(switch, Switch::TokenUnavailable | Switch::TokenBusyOnce);
        assert_eq!(
            matches!(
                error,
                TokenError::Busy {
                    retry_after: Some(_)
                }
            ),
            busy,
            "{error}"
        );
        assert_eq!(login.spent(), 1, "{switch:?}: a code is sent once");
        assert_eq!(login.authority.report().attacker_requests, 0, "{switch:?}");
    }
}

#[tokio::test]
async fn a_refresh_whose_answer_is_lost_says_so() {
    let login = Login::new(with(&[Switch::RefreshLostOnce])).await;
    let tokens = login.authority.issue("toolway", "read");
    let refresh = Secret::new(tokens.refresh.clone().unwrap_or_default());
    let error = login
        .send(&TokenGrant::refresh(&refresh))
        .await
        .expect_err("lost");
    assert!(matches!(error, TokenError::Lost), "{error:?}");
    assert_eq!(login.authority.report().token_requests("refresh_token"), 1);
}

#[tokio::test]
async fn sec_44_the_callback_shows_and_follows_nothing() {
    for switch in [
        Switch::CallbackOpenRedirect,
        Switch::StateWrong,
        Switch::StateMissing,
    ] {
        let login = Login::new(with(&[switch])).await;
        if switch == Switch::CallbackOpenRedirect {
            let (ended, page) = login.by_browser().await;
            assert!(ended.unwrap().is_ok());
            assert!(!page.contains("<script") && !page.contains(login.authority.attacker()));
            assert_eq!(login.authority.report().attacker_requests, 0);
            continue;
        }
        // The login goes on waiting; here it is given up.
        let waiting = login.by_browser();
        let given_up = async {
            while login.authority.report().codes == 0 {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        };
        tokio::select! {
            (ended, _) = waiting => panic!("{switch:?}: {ended:?}"),
            () = given_up => {}
        }
        assert_eq!(login.spent(), 0, "{switch:?}");
    }
}

#[tokio::test]
async fn client_credentials_in_every_way() {
    let (key, _) = generated();
    let jwks = json!({ "keys": [key.public_jwk()] });
    let secret = Secret::new(format!("{CANARY}-secret"));
    let known = |id: &str, method: &str| KnownClient {
        id: id.to_owned(),
        method: Some(method.to_owned()),
        ..KnownClient::default()
    };
    let settings = AuthoritySettings {
        clients: vec![
            KnownClient {
                secret: Some(secret.expose().to_owned()),
                ..known("basic", "client_secret_basic")
            },
            KnownClient {
                secret: Some(secret.expose().to_owned()),
                ..known("post", "client_secret_post")
            },
            KnownClient {
                jwks: Some(jwks),
                ..known("key", "private_key_jwt")
            },
        ],
        ..AuthoritySettings::default()
    };
    let mut login = Login::new(settings).await;
    let key = Arc::new(ClientKey { key, id: None });
    for (id, proof) in [
        ("basic", ClientAuth::Basic(secret.clone())),
        ("post", ClientAuth::Post(secret.clone())),
        ("key", ClientAuth::Key(key)),
    ] {
        login.client = OauthClient::new(id, proof);
        let tokens = login.send(&TokenGrant::client_credentials()).await;
        let tokens = tokens.unwrap_or_else(|error| panic!("{id}: {error}"));
        assert!(login.authority.is_valid(tokens.access.expose()), "{id}");
    }
    let wrong = Secret::new(format!("{CANARY}-wrong"));
    login.client = OauthClient::new("basic", ClientAuth::Basic(wrong));
    let error = login
        .send(&TokenGrant::client_credentials())
        .await
        .expect_err("wrong");
    assert!(error.is_refusal("invalid_client"), "{error}");
    assert!(!holds_secret(&format!(
        "{error} {error:?} {:?}",
        login.client
    )));
}

/// A key as a user would have it: in PEM.
fn generated() -> (SigningKey, Secret) {
    let pem = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let pem = Secret::new(pem);
    (SigningKey::from_pem(&pem, None).unwrap(), pem)
}

#[tokio::test]
async fn a_device_logs_in() {
    let login = Login::new(with(&[])).await;
    let endpoint = login
        .found
        .server
        .device_authorization_endpoint
        .clone()
        .unwrap();
    let request = login.request();
    let device = DeviceLogin::begin(&login.found.web, &endpoint, &request)
        .await
        .unwrap();
    assert!(!holds_secret(&format!("{device:?}")));
    let tokens = device.wait(&login.found.web, &request).await.unwrap();
    assert!(login.authority.is_valid(tokens.access.expose()));
}

#[tokio::test]
async fn a_device_that_is_refused_is_told_so() {
    for switch in [
        Switch::DeviceDenied,
        Switch::DeviceExpired,
        Switch::DeviceJavascript,
    ] {
        let login = Login::new(with(&[switch])).await;
        let endpoint = login
            .found
            .server
            .device_authorization_endpoint
            .clone()
            .unwrap();
        let request = login.request();
        let begun = DeviceLogin::begin(&login.found.web, &endpoint, &request).await;
        let error = match begun {
            Ok(device) => device.wait(&login.found.web, &request).await.map(drop),
            Err(error) => Err(error),
        };
        let error = error.expect_err("refused");
        let fits = match switch {
            Switch::DeviceDenied => matches!(error, DeviceError::Declined),
            Switch::DeviceExpired => matches!(error, DeviceError::Expired),
            _ => matches!(error, DeviceError::Malformed(_)),
        };
        assert!(fits, "{switch:?}: {error}");
    }
}

#[tokio::test]
async fn tokens_are_bound_to_a_key() {
    for dpop in [
        DpopMode::Accepted,
        DpopMode::Required,
        DpopMode::RequiredWithNonce,
    ] {
        let mut login = Login::new(AuthoritySettings { dpop, ..with(&[]) }).await;
        login.dpop = Some(DpopKey::generate().unwrap());
        let (ended, _) = login.by_browser().await;
        let tokens = ended.unwrap().unwrap();
        assert_eq!(tokens.kind, TokenKind::Dpop, "{dpop:?}");
        let refresh = tokens.refresh.clone().unwrap();
        let next = login.send(&TokenGrant::refresh(&refresh)).await.unwrap();
        assert_eq!(next.kind, TokenKind::Dpop);
        assert_eq!(login.authority.report().families_revoked, 0, "{dpop:?}");
        for seen in login.authority.seen_at(RequestedParty::Issuer, "/token") {
            assert!(seen.header("dpop").is_some());
        }
    }
    let mut login = Login::new(AuthoritySettings {
        dpop: DpopMode::RequiredWithNonce,
        ..with(&[Switch::DpopNonceLoop])
    })
    .await;
    login.dpop = Some(DpopKey::generate().unwrap());
    let (ended, _) = login.by_browser().await;
    let error = ended.unwrap().expect_err("no end of it");
    assert!(error.is_refusal("use_dpop_nonce"), "{error}");
    assert!(login.spent() <= 2);
}
