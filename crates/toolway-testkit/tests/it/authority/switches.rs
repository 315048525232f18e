//! Every switch can be seen on the wire.

use std::collections::BTreeSet;

use reqwest::Url;
use serde_json::{Value, json};
use toolway_testkit::authority::{Authority, AuthoritySettings, RequestedParty, Switch};

use super::{
    Answer, CALLBACK, answer, asked, authorize, call, client, form, get, login, post, redeem,
    refresh, refreshing, settings, value,
};

/// An authority that misbehaves in this way, and a client that looks closely.
struct Look {
    authority: Authority,
    switch: Switch,
}

impl Look {
    fn at(switch: Switch) -> Self {
        let authority = Authority::start(AuthoritySettings {
            switches: vec![switch],
            ..settings()
        });
        Self { authority, switch }
    }

    fn server_url(&self) -> String {
        format!(
            "{}/.well-known/oauth-authorization-server",
            self.authority.issuer()
        )
    }

    fn resource_url(&self) -> String {
        let origin = self.authority.resource().replace("/mcp", "");
        format!("{origin}/.well-known/oauth-protected-resource/mcp")
    }

    async fn server(&self) -> Value {
        get(&self.server_url()).await.json()
    }

    async fn resource(&self) -> Value {
        get(&self.resource_url()).await.json()
    }

    async fn named_server(&self) -> String {
        let named = self.resource().await["authorization_servers"][0].clone();
        named.as_str().unwrap().to_owned()
    }

    async fn back(&self) -> Vec<(String, String)> {
        authorize(&self.authority, &asked(&self.authority))
            .await
            .callback()
    }

    async fn tokens(&self) -> Value {
        login(&self.authority).await.json()
    }

    fn access(&self) -> String {
        self.authority.issue("app", "read").access
    }

    fn refresh_token(&self) -> String {
        self.authority.issue("app", "read").refresh.unwrap()
    }

    async fn called(&self, method: &str) -> Answer {
        call(&self.authority, Some(&self.access()), method).await
    }

    async fn registered(&self) -> Answer {
        let body = json!({ "redirect_uris": [CALLBACK], "application_type": "native",
            "token_endpoint_auth_method": "none" });
        let url = format!("{}/register", self.authority.issuer());
        answer(client().post(url).body(body.to_string())).await
    }

    async fn device(&self) -> Value {
        let url = format!("{}/device_authorization", self.authority.issuer());
        let resource = self.authority.resource();
        post(&url, &[("client_id", "app"), ("resource", resource)])
            .await
            .json()
    }

    /// The errors of so many polls; empty for a token.
    async fn polled(&self, times: usize) -> Vec<String> {
        let device = self.device().await;
        let token = format!("{}/token", self.authority.issuer());
        let mut errors = Vec::new();
        for _ in 0..times {
            let pairs = [
                ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
                ("client_id", "app"),
                ("device_code", device["device_code"].as_str().unwrap()),
            ];
            let answer = post(&token, &pairs).await.json();
            errors.push(answer["error"].as_str().unwrap_or_default().to_owned());
        }
        errors
    }

    /// The claims of the id token.
    async fn identity(&self) -> Value {
        use base64::Engine;
        let tokens = self.tokens().await;
        let text = tokens["id_token"].as_str().unwrap();
        let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let part = |number| {
            let bytes = engine.decode(text.split('.').nth(number).unwrap()).unwrap();
            serde_json::from_slice::<Value>(&bytes).unwrap()
        };
        let mut claims = part(1);
        claims["alg"] = part(0)["alg"].clone();
        claims
    }

    /// Seconds by which `Date` is off.
    async fn clock(&self) -> i64 {
        let answer = get(&self.server_url()).await;
        let date = httpdate::parse_http_date(answer.header("date")).unwrap();
        let seconds = |time: std::time::SystemTime| {
            let since = time.duration_since(std::time::UNIX_EPOCH).unwrap();
            i64::try_from(since.as_secs()).unwrap()
        };
        seconds(date) - seconds(std::time::SystemTime::now())
    }

    fn off(&self) -> &str {
        self.authority.attacker()
    }
}

/// A response whose body is read only in part.
async fn begun(url: &str) -> (Option<u64>, Vec<u8>) {
    let mut response = client().get(url).send().await.unwrap();
    let length = response.content_length();
    let mut start = Vec::new();
    while start.len() < 3 {
        start.extend_from_slice(&response.chunk().await.unwrap().unwrap());
    }
    (length, start)
}

const LINK_LOCAL: &str = "http://169.254.169.254/latest/meta-data";

async fn metadata(look: &Look) {
    let (switch, issuer) = (look.switch, look.authority.issuer().to_owned());
    let port = issuer.rsplit(':').next().unwrap();
    match switch {
        Switch::IssuerOther => assert_eq!(look.server().await["issuer"], look.off()),
        Switch::IssuerTrailingSlash => {
            assert_eq!(look.server().await["issuer"], format!("{issuer}/"));
        }
        Switch::IssuerCase | Switch::IssuerPort | Switch::IssuerPercent => {
            let named = look.server().await["issuer"].as_str().unwrap().to_owned();
            assert_ne!(named, issuer);
            // What makes it a trap: a URL type takes both for the same.
            assert_eq!(Url::parse(&named).unwrap(), Url::parse(&issuer).unwrap());
        }
        Switch::IssuerMissing => assert!(look.server().await.get("issuer").is_none()),
        Switch::PkceUnsaid => {
            let found = look.server().await;
            assert!(found.get("code_challenge_methods_supported").is_none());
        }
        Switch::PkcePlain => {
            let found = look.server().await;
            assert_eq!(found["code_challenge_methods_supported"], json!(["plain"]));
        }
        Switch::MetadataRedirectPrivate => {
            for url in [look.server_url(), look.resource_url()] {
                let moved = get(&url).await;
                assert_eq!((moved.status, moved.header("location")), (302, LINK_LOCAL));
            }
        }
        Switch::MetadataRedirectOther => {
            let moved = get(&look.server_url()).await;
            assert!(moved.header("location").starts_with(look.off()));
            // The other origin has what a client must not take.
            let other = get(moved.header("location")).await.json();
            assert_eq!(other["issuer"], look.off());
        }
        Switch::MetadataRedirectEndless => {
            let following = reqwest::Client::builder().no_proxy().build().unwrap();
            let error = following.get(look.server_url()).send().await.unwrap_err();
            assert!(error.is_redirect(), "{error}");
        }
        Switch::MetadataGigantic => {
            assert_eq!(begun(&look.server_url()).await.0, Some(64 << 20));
        }
        Switch::MetadataTrickle => {
            let (length, start) = begun(&look.server_url()).await;
            assert_eq!((length, &start[..3]), (None, b"{  ".as_slice()));
        }
        Switch::MetadataNested => {
            assert_eq!(get(&look.server_url()).await.body, "[".repeat(200_000));
        }
        Switch::MetadataHtml => {
            let page = get(&look.resource_url()).await;
            assert_eq!(page.status, 200);
            assert!(page.header("content-type").starts_with("text/html"));
        }
        Switch::MetadataBroken => {
            let broken = get(&look.server_url()).await.body;
            assert!(serde_json::from_str::<Value>(&broken).is_err());
        }
        Switch::ResourceOther => {
            let named = look.resource().await["resource"].clone();
            assert_eq!(named, format!("{}/mcp", look.off()));
        }
        Switch::ResourceMissing => assert!(look.resource().await.get("resource").is_none()),
        Switch::NoServers => {
            assert_eq!(look.resource().await["authorization_servers"], json!([]));
        }
        Switch::NoResourceMetadata => assert_eq!(get(&look.resource_url()).await.status, 404),
        Switch::ResourceNamesProvider => {
            assert_eq!(look.resource().await["identity_provider"], look.off());
        }
        Switch::ServerLinkLocal => {
            assert_eq!(look.named_server().await, "http://169.254.169.254");
        }
        Switch::ServerMappedLinkLocal => {
            assert_eq!(look.named_server().await, "http://[::ffff:169.254.169.254]");
        }
        Switch::ServerHex | Switch::ServerDecimal | Switch::ServerLocalhostDot => {
            let named = look.named_server().await;
            let host = match switch {
                Switch::ServerHex => "0x7f.1",
                Switch::ServerDecimal => "2130706433",
                _ => "localhost.",
            };
            let attacker = look.off().rsplit(':').next().unwrap();
            assert_eq!(named, format!("http://{host}:{attacker}"));
        }
        Switch::Migrated => {
            assert_eq!(look.named_server().await, look.off());
            // Tokens of before are of another server now.
            assert_eq!(look.called("tools/list").await.status, 401);
        }
        Switch::MixUp => {
            assert_eq!(look.named_server().await, look.off());
            let url = format!("{}/.well-known/oauth-authorization-server", look.off());
            let found = get(&url).await.json();
            assert_eq!(found["issuer"], look.off());
            assert_eq!(
                found["authorization_endpoint"],
                format!("{issuer}/authorize")
            );
            assert_eq!(found["token_endpoint"], format!("{}/token", look.off()));
            assert_eq!(value(&look.back().await, "iss"), Some(issuer.as_str()));
        }
        Switch::RegistrationNone => {
            let found = look.server().await;
            assert!(found.get("registration_endpoint").is_none());
            assert!(found.get("client_id_metadata_document_supported").is_none());
            assert_eq!(look.registered().await.status, 404);
        }
        _ => {
            let name = format!("{switch:?}");
            let endpoint = if name.starts_with("Token") {
                "token_endpoint"
            } else {
                "authorization_endpoint"
            };
            let found = look.server().await[endpoint].as_str().unwrap().to_owned();
            let honest = format!("http://127.0.0.1:{port}/authorize");
            let expected = match switch {
                Switch::EndpointJavascript => found.starts_with("javascript:"),
                Switch::EndpointData => found.starts_with("data:"),
                Switch::EndpointFile => found.starts_with("file:"),
                Switch::EndpointPlain | Switch::TokenEndpointPlain => {
                    found.starts_with("http://login.example.com/")
                }
                Switch::EndpointDash => found.starts_with('-'),
                Switch::EndpointShell => found.starts_with(&honest) && found.contains("$(id)"),
                Switch::EndpointControl => found.contains('\u{1b}') && found.contains("\r\n"),
                Switch::EndpointHuge => found.len() > 64 << 10,
                Switch::TokenEndpointLinkLocal => found == LINK_LOCAL,
                Switch::TokenEndpointOther => found == format!("{}/token", look.off()),
                _ => false,
            };
            assert!(expected, "{switch:?}: {found}");
        }
    }
}

async fn authorization(look: &Look) {
    let issuer = look.authority.issuer();
    let back = look.back().await;
    let has = |name: &str| value(&back, name);
    match look.switch {
        Switch::IssUnsaid => {
            let found = look.server().await;
            assert!(
                found
                    .get("authorization_response_iss_parameter_supported")
                    .is_none()
            );
            assert_eq!(has("iss"), None);
            // The third row of the table: unsaid, but there, and wrong.
            look.authority.turn_on(Switch::IssWrong);
            assert_eq!(value(&look.back().await, "iss"), Some(look.off()));
        }
        Switch::IssMissing => {
            let found = look.server().await;
            assert_eq!(
                found["authorization_response_iss_parameter_supported"],
                true
            );
            assert_eq!(has("iss"), None);
        }
        Switch::IssWrong => {
            assert_eq!(has("iss"), Some(look.off()));
            assert!(has("code").is_some());
        }
        Switch::ErrorIssWrong => {
            assert_eq!(has("iss"), Some(look.off()));
            assert_eq!(has("error"), Some("access_denied"));
        }
        Switch::AuthorizationDenied => {
            assert_eq!((has("error"), has("code")), (Some("access_denied"), None));
            assert_eq!(has("iss"), Some(issuer));
        }
        Switch::StateWrong => assert_eq!(has("state"), Some("another-state")),
        Switch::StateMissing => assert_eq!(has("state"), None),
        Switch::CodeMissing => assert_eq!((has("code"), has("error")), (None, None)),
        Switch::CallbackOpenRedirect => {
            assert_eq!(has("next"), Some(look.off()));
            assert!(has("message").unwrap().contains("<script>"));
            assert!(has("code").is_some());
        }
        _ => {
            assert_eq!(look.switch, Switch::ErrorEscapes);
            let code = has("code").unwrap();
            redeem(&look.authority, code).await;
            let refused = redeem(&look.authority, code).await.json();
            assert!(
                refused["error_description"]
                    .as_str()
                    .unwrap()
                    .contains('\u{1b}')
            );
        }
    }
}

async fn token(look: &Look) {
    let token_url = format!("{}/token", look.authority.issuer());
    match look.switch {
        Switch::ExpiryMissing => assert!(look.tokens().await.get("expires_in").is_none()),
        Switch::ExpiryZero => assert_eq!(look.tokens().await["expires_in"], 0),
        Switch::ExpiryNegative => assert_eq!(look.tokens().await["expires_in"], -1),
        Switch::ExpiryString => assert_eq!(look.tokens().await["expires_in"], "3600"),
        Switch::ExpiryHuge => assert_eq!(look.tokens().await["expires_in"], u64::MAX),
        Switch::TypeMissing => assert!(look.tokens().await.get("token_type").is_none()),
        Switch::TypeMac => assert_eq!(look.tokens().await["token_type"], "mac"),
        Switch::AccessMissing => assert!(look.tokens().await.get("access_token").is_none()),
        Switch::DuplicateKeys => {
            let body = login(&look.authority).await.body;
            for name in ["access_token", "refresh_token", "expires_in"] {
                assert_eq!(body.matches(&format!("\"{name}\":")).count(), 2, "{body}");
            }
        }
        Switch::TokenHtml => {
            let page = login(&look.authority).await;
            assert_eq!(page.status, 200);
            assert!(page.body.starts_with("<!doctype html>"));
        }
        Switch::TokenGigantic => {
            let response = form(&token_url, &[]).send().await.unwrap();
            assert_eq!(response.content_length(), Some(64 << 20));
        }
        Switch::TokenBusyOnce => {
            let busy = post(&token_url, &[]).await;
            assert_eq!((busy.status, busy.header("retry-after")), (429, "1"));
            assert_eq!(login(&look.authority).await.status, 200);
        }
        Switch::TokenUnavailable => {
            for _ in 0..2 {
                let busy = post(&token_url, &[]).await;
                assert_eq!((busy.status, busy.header("retry-after")), (503, "2"));
            }
        }
        Switch::TokenRedirect => {
            let moved = login(&look.authority).await;
            assert_eq!(moved.status, 307);
            assert_eq!(moved.header("location"), format!("{}/token", look.off()));
            // Who follows has lost the code, and the authority knows.
            assert_eq!(look.authority.stolen(), None);
            let code = look.back().await;
            let code = value(&code, "code").unwrap();
            post(moved.header("location"), &[("code", code)]).await;
            assert_eq!(look.authority.stolen().unwrap().path, "/token");
        }
        Switch::RefreshKept => {
            let kept = look.refresh_token();
            for _ in 0..2 {
                let fresh = refresh(&look.authority, &kept).await.json();
                assert!(fresh["access_token"].is_string());
                assert!(fresh.get("refresh_token").is_none());
            }
        }
        Switch::RefreshLostOnce | Switch::RefreshLost => {
            let used = look.refresh_token();
            let pairs = refreshing(&look.authority, &used);
            assert!(form(&token_url, &pairs).send().await.is_err(), "no answer");
            // It rotated nevertheless.
            let [next] = look.authority.valid_refresh_tokens().try_into().unwrap();
            assert_ne!(next, used);
            let pairs = refreshing(&look.authority, &next);
            let again = form(&token_url, &pairs).send().await;
            assert_eq!(again.is_ok(), look.switch == Switch::RefreshLostOnce);
        }
        Switch::InvalidGrantOnce => {
            let kept = look.refresh_token();
            let refused = refresh(&look.authority, &kept).await.json();
            assert_eq!(refused["error"], "invalid_grant");
            assert_eq!(refresh(&look.authority, &kept).await.status, 200);
        }
        Switch::RevocationFails | Switch::RevocationNone => {
            let url = format!("{}/revoke", look.authority.issuer());
            let status = post(&url, &[("client_id", "app"), ("token", "x")])
                .await
                .status;
            let said = look.server().await.get("revocation_endpoint").is_some();
            let fails = look.switch == Switch::RevocationFails;
            assert_eq!(
                (status, said),
                if fails { (503, true) } else { (404, false) }
            );
        }
        Switch::IdTokenUnsigned => assert_eq!(look.identity().await["alg"], "none"),
        Switch::IdTokenIssuer => assert_eq!(look.identity().await["iss"], look.off()),
        Switch::IdTokenAudience => assert_eq!(look.identity().await["aud"], "somebody-else"),
        Switch::IdTokenNonce => assert_eq!(look.identity().await["nonce"], "another"),
        _ => {
            assert_eq!(look.switch, Switch::IdTokenExpired);
            let claims = look.identity().await;
            assert!(claims["exp"].as_u64() < claims["iat"].as_u64());
        }
    }
}

async fn resource(look: &Look) {
    let bare = call(&look.authority, None, "tools/list").await;
    let header = bare.header("www-authenticate").to_owned();
    match look.switch {
        Switch::ChallengeLinkLocal => assert!(header.contains(LINK_LOCAL), "{header}"),
        Switch::ChallengeOther => {
            let other = format!("resource_metadata=\"{}/", look.off());
            assert!(header.contains(&other), "{header}");
        }
        Switch::ChallengeMissing => assert_eq!((bare.status, header.as_str()), (401, "")),
        Switch::Storm => assert_eq!(look.called("tools/list").await.status, 401),
        Switch::ForbiddenBare => {
            let refused = look.called("tools/list").await;
            assert_eq!(
                (refused.status, refused.header("www-authenticate")),
                (403, "")
            );
        }
        Switch::ScopeNever | Switch::ScopeGrowing => {
            let first = look.called("tools/list").await;
            let second = look.called("tools/list").await;
            assert_eq!((first.status, second.status), (403, 403));
            let (first, second) = (
                first.header("www-authenticate"),
                second.header("www-authenticate"),
            );
            if look.switch == Switch::ScopeNever {
                assert!(first.contains("scope=\"never\""), "{first}");
            } else {
                assert!(first.contains("scope=\"step-1\""), "{first}");
                assert!(second.contains("scope=\"step-1 step-2\""), "{second}");
            }
        }
        _ => {
            let status = match look.switch {
                Switch::McpRedirect307 => 307,
                Switch::McpRedirect302 => 302,
                other => unreachable!("{other:?}"),
            };
            let moved = look.called("tools/list").await;
            assert_eq!(moved.status, status);
            assert_eq!(moved.header("location"), format!("{}/mcp", look.off()));
        }
    }
}

async fn registration(look: &Look) {
    let made = look.registered().await;
    match look.switch {
        Switch::RegistrationRefused => assert_eq!(made.status, 403),
        Switch::RegistrationNoId => {
            assert_eq!(made.status, 201);
            assert!(made.json().get("client_id").is_none());
        }
        _ => {
            assert_eq!(look.switch, Switch::RegistrationExpires);
            let made = made.json();
            assert!(made["client_secret_expires_at"].as_u64().unwrap() > 0);
            look.authority.advance(std::time::Duration::from_secs(2));
            let url = format!("{}/token", look.authority.issuer());
            let pairs = [
                ("grant_type", "client_credentials"),
                ("client_id", made["client_id"].as_str().unwrap()),
                ("client_secret", made["client_secret"].as_str().unwrap()),
            ];
            let refused = post(&url, &pairs).await.json();
            assert_eq!(refused["error"], "invalid_client");
            assert_eq!(
                refused["error_description"],
                "the client secret has expired"
            );
        }
    }
}

async fn device(look: &Look) {
    let pending = "authorization_pending";
    match look.switch {
        Switch::DeviceNever => assert_eq!(look.polled(4).await, [pending; 4]),
        Switch::DeviceIntervalZero => assert_eq!(look.device().await["interval"], 0),
        Switch::DeviceIntervalHuge => {
            assert!(look.device().await["interval"].as_u64().unwrap() > 30_000_000);
        }
        Switch::DeviceSlowDownOnce => {
            assert_eq!(look.polled(3).await, ["slow_down", pending, ""]);
        }
        Switch::DeviceDenied => assert_eq!(look.polled(1).await, ["access_denied"]),
        Switch::DeviceExpired => assert_eq!(look.polled(1).await, ["expired_token"]),
        _ => {
            assert_eq!(look.switch, Switch::DeviceJavascript);
            let address = look.device().await["verification_uri"].clone();
            assert_eq!(address, "javascript:alert(1)");
        }
    }
}

async fn clock(look: &Look) {
    const YEAR: i64 = 365 * 24 * 3600;
    let expected = match look.switch {
        Switch::DateAheadHour => 3600,
        Switch::DateBehindHour => -3600,
        Switch::DateAheadYear => YEAR,
        Switch::DateBehindYear => -YEAR,
        _ => {
            assert_eq!(look.switch, Switch::DateMissing);
            assert_eq!(get(&look.server_url()).await.header("date"), "");
            return;
        }
    };
    // Half an hour is more than any test takes and less than any of these.
    assert!((look.clock().await - expected).abs() < 1800);
}

/// Where each switch shows. `None`: a test in `grants.rs` needs more for it.
fn family(switch: Switch) -> Option<&'static str> {
    let name = format!("{switch:?}");
    let starts = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    Some(match switch {
        Switch::ExchangeType | Switch::ExchangeAudience | Switch::DpopNonceLoop => return None,
        Switch::RegistrationNone | Switch::Migrated | Switch::MixUp => "metadata",
        Switch::ChallengeLinkLocal
        | Switch::ChallengeOther
        | Switch::ChallengeMissing
        | Switch::Storm
        | Switch::ForbiddenBare => "resource",
        Switch::ErrorEscapes
        | Switch::CodeMissing
        | Switch::IssUnsaid
        | Switch::IssMissing
        | Switch::IssWrong
        | Switch::ErrorIssWrong => "authorization",
        _ if starts(&["State", "Authorization", "Callback"]) => "authorization",
        _ if starts(&["Scope", "McpRedirect"]) => "resource",
        _ if starts(&["Registration"]) => "registration",
        _ if starts(&["Device"]) => "device",
        _ if starts(&["Date"]) => "clock",
        _ if starts(&["TokenEndpoint"]) => "metadata",
        _ if starts(&["Expiry", "Type", "Access", "Duplicate", "Token", "Refresh"]) => "token",
        _ if starts(&["InvalidGrant", "Revocation", "IdToken"]) => "token",
        _ => "metadata",
    })
}

async fn each(wanted: &str) {
    let mut looked = 0;
    for switch in Switch::ALL {
        if family(*switch) != Some(wanted) {
            continue;
        }
        let look = Look::at(*switch);
        match wanted {
            "metadata" => metadata(&look).await,
            "authorization" => authorization(&look).await,
            "token" => token(&look).await,
            "resource" => resource(&look).await,
            "registration" => registration(&look).await,
            "device" => device(&look).await,
            _ => clock(&look).await,
        }
        looked += 1;
    }
    assert!(looked > 2, "{wanted}: {looked}");
}

#[tokio::test]
async fn metadata_is_spoiled() {
    each("metadata").await;
}

#[tokio::test]
async fn authorizations_are_spoiled() {
    each("authorization").await;
}

#[tokio::test]
async fn token_answers_are_spoiled() {
    each("token").await;
}

#[tokio::test]
async fn the_resource_is_spoiled() {
    each("resource").await;
}

#[tokio::test]
async fn registrations_are_spoiled() {
    each("registration").await;
}

#[tokio::test]
async fn devices_are_spoiled() {
    each("device").await;
}

#[tokio::test]
async fn clocks_are_spoiled() {
    each("clock").await;
}

#[tokio::test]
async fn switches_combine_and_change_while_it_runs() {
    let look = Look::at(Switch::ExpiryMissing);
    look.authority.turn_on(Switch::TypeMac);
    let tokens = look.tokens().await;
    assert_eq!(tokens["token_type"], "mac");
    assert!(tokens.get("expires_in").is_none());
    look.authority.turn_off(Switch::ExpiryMissing);
    assert_eq!(look.tokens().await["expires_in"], 3600);
    look.authority.set(&[]);
    assert_eq!(look.tokens().await["token_type"], "Bearer");
    // What happens once happens again when it is set again.
    for _ in 0..2 {
        look.authority.set(&[Switch::TokenBusyOnce]);
        assert_eq!(login(&look.authority).await.status, 429);
        assert_eq!(login(&look.authority).await.status, 200);
    }
    assert_eq!(
        look.authority
            .seen_at(RequestedParty::Issuer, "/token")
            .len(),
        7
    );
}

#[test]
fn there_are_many_and_each_names_its_clause() {
    let names: BTreeSet<String> = Switch::ALL
        .iter()
        .map(|switch| serde_json::to_string(switch).unwrap())
        .collect();
    assert_eq!(names.len(), Switch::ALL.len());
    assert!(names.len() >= 45, "{}", names.len());
    assert!(Switch::ALL.iter().all(|switch| switch.clause().len() > 7));
}
