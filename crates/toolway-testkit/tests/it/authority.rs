//! The authority, asked by a plain client that knows nothing of it.

mod clients;
mod grants;
mod program;
mod resource;
mod switches;

use reqwest::Url;
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use toolway_testkit::authority::{Authority, AuthoritySettings, KnownClient};

pub(crate) const CALLBACK: &str = "http://127.0.0.1:9/callback";
pub(crate) const VERIFIER: &str = "a-verifier-of-at-least-forty-three-characters-0123";

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.body);
        assert!(parsed.is_ok(), "{self:?}");
        parsed.unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The pairs of the address that it redirects to.
    fn callback(&self) -> Vec<(String, String)> {
        assert_eq!(self.status, 302, "{self:?}");
        let url = Url::parse(self.header("location")).unwrap();
        url.query_pairs().into_owned().collect()
    }
}

pub(crate) fn client() -> reqwest::Client {
    // Fails when another test was first, which is as good.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder()
        .redirect(Policy::none())
        .no_proxy()
        // Reading the system's certificates would take longer than the rest of a test.
        .tls_certs_only([])
        .build()
        .unwrap()
}

pub(crate) async fn answer(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    Answer {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        body: response.text().await.unwrap(),
    }
}

pub(crate) async fn get(url: &str) -> Answer {
    answer(client().get(url)).await
}

pub(crate) fn encoded(pairs: &[(&str, &str)]) -> String {
    let mut url = Url::parse("http://x").unwrap();
    url.query_pairs_mut().extend_pairs(pairs);
    url.query().unwrap_or_default().to_owned()
}

fn form(url: &str, pairs: &[(&str, &str)]) -> reqwest::RequestBuilder {
    client()
        .post(url)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(encoded(pairs))
}

pub(crate) async fn post(url: &str, pairs: &[(&str, &str)]) -> Answer {
    answer(form(url, pairs)).await
}

/// S256 of the verifier.
pub(crate) fn challenge() -> String {
    use base64::Engine;
    use sha2::Digest;
    let digest = sha2::Sha256::digest(VERIFIER.as_bytes());
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(digest)
}

/// A public client that may redirect to loopback.
fn public() -> KnownClient {
    KnownClient {
        id: "app".to_owned(),
        ..KnownClient::default()
    }
}

fn settings() -> AuthoritySettings {
    AuthoritySettings {
        clients: vec![public()],
        ..AuthoritySettings::default()
    }
}

/// The pairs of an honest request for a code.
fn asked(authority: &Authority) -> Vec<(String, String)> {
    [
        ("response_type", "code"),
        ("client_id", "app"),
        ("redirect_uri", CALLBACK),
        ("state", "the-state"),
        ("code_challenge", &challenge()),
        ("code_challenge_method", "S256"),
        ("scope", "openid read"),
        ("nonce", "the-nonce"),
        ("resource", authority.resource()),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

async fn authorize(authority: &Authority, pairs: &[(String, String)]) -> Answer {
    let pairs: Vec<(&str, &str)> = pairs
        .iter()
        .map(|(n, v)| (n.as_str(), v.as_str()))
        .collect();
    get(&format!(
        "{}/authorize?{}",
        authority.issuer(),
        encoded(&pairs)
    ))
    .await
}

fn value<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut found = pairs.iter().filter(|(found, _)| found == name);
    found.next().map(|(_, value)| value.as_str())
}

async fn redeem(authority: &Authority, code: &str) -> Answer {
    let token = format!("{}/token", authority.issuer());
    post(
        &token,
        &[
            ("grant_type", "authorization_code"),
            ("client_id", "app"),
            ("code", code),
            ("redirect_uri", CALLBACK),
            ("code_verifier", VERIFIER),
            ("resource", authority.resource()),
        ],
    )
    .await
}

/// The whole way to tokens.
async fn login(authority: &Authority) -> Answer {
    let back = authorize(authority, &asked(authority)).await.callback();
    redeem(authority, value(&back, "code").unwrap()).await
}

async fn refresh(authority: &Authority, token: &str) -> Answer {
    post(
        &format!("{}/token", authority.issuer()),
        &refreshing(authority, token),
    )
    .await
}

fn refreshing<'a>(authority: &'a Authority, token: &'a str) -> [(&'a str, &'a str); 4] {
    [
        ("grant_type", "refresh_token"),
        ("client_id", "app"),
        ("refresh_token", token),
        ("resource", authority.resource()),
    ]
}

/// Calls a method at the resource, in the modern era.
async fn call(authority: &Authority, token: Option<&str>, method: &str) -> Answer {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": {
        "name": "whoami", "arguments": {},
        "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } } });
    let mut request = client().post(authority.resource()).body(body.to_string());
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    answer(request).await
}
