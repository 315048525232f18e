//! A server before a host, as the gateway is one: whom it lets in, and what of their request
//! reaches the servers behind it (SEC-46).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use toolway::journal::Journal;
use toolway::toolway_auth::inbound::{InboundAuthorizer, InboundOptions};
use toolway::toolway_auth::web::WebClient;
use toolway::{CallOptions, Consent, Host, HostOptions};
use toolway_testkit::authority::{
    Authority, AuthoritySettings, CANARY, KnownClient, RecordedRequest, RequestedParty,
    holds_secret,
};
use toolway_transport::client::HttpClient;
use url::Url;

use crate::support::*;

/// The organisation's issuer, the server at the back with an issuer of its own, and what stands
/// between clients and that server.
struct Scene {
    home: Home,
    company: Authority,
    shop: Authority,
    /// What the host has for the shop, and nobody else.
    own: String,
    url: Url,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Scene {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let url = Url::parse(&format!("http://{address}/mcp")).expect("an address");
        let shop = Authority::start(AuthoritySettings::default());
        let company = Authority::start(AuthoritySettings {
            signed_access: true,
            resources: vec![url.to_string(), shop.resource().to_owned()],
            clients: vec![KnownClient {
                id: "editor".to_owned(),
                secret: Some(client_secret()),
                ..KnownClient::default()
            }],
            ..AuthoritySettings::default()
        });
        let home = Home::new();
        let own = shop.issue("gateway", "read").access;
        let mut entry = shop.entry();
        entry["headers"] = json!({ "Authorization": format!("Bearer {own}") });
        let options = HostOptions {
            journal: Some(Journal::in_directory(home.path().join("logs"))),
            ..home.options()
        };
        let host = Host::start(home.plan(&json!({ "shop": entry })), options);
        host.settled().await;
        let options = InboundOptions {
            scopes: vec!["read".to_owned()],
            ..InboundOptions::new(url.clone(), [company.issuer().to_owned()])
        };
        let inbound = InboundAuthorizer::new(options, WebClient::trusted(HttpClient::default()))
            .expect("a check");
        let app = axum::Router::new()
            .fallback(serve)
            .with_state(Arc::new((inbound, host)));
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Self {
            home,
            company,
            shop,
            own,
            url,
            task,
        }
    }

    /// A token of the company's issuer for this resource.
    async fn token(&self, resource: &str, scope: &str) -> String {
        let endpoint = format!("{}/token", self.company.issuer());
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", "editor"),
            ("client_secret", &client_secret()),
            ("resource", resource),
            ("scope", scope),
        ];
        let endpoint = Url::parse(&endpoint).expect("an address");
        let web = WebClient::trusted(HttpClient::default());
        let reply = web.post_form(&endpoint, &form, HeaderMap::new()).await;
        let answer = reply.and_then(|reply| reply.object()).expect("an answer");
        answer["access_token"].as_str().expect("a token").to_owned()
    }

    /// What a client gets: the status, the challenge and the text.
    async fn ask(&self, tokens: &[&str]) -> (u16, String, String) {
        let client = HttpClient::default().for_url(&self.url).expect("a client");
        let mut request = client.post(self.url.clone());
        for token in tokens {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let answer = request.send().await.expect("an answer");
        let status = answer.status().as_u16();
        let challenge = answer.headers().get("www-authenticate").cloned();
        let challenge = challenge.map(|value| value.to_str().expect("text").to_owned());
        let text = answer.text().await.expect("text");
        (status, challenge.unwrap_or_default(), text)
    }

    fn behind(&self) -> Vec<RecordedRequest> {
        self.shop.seen_at(RequestedParty::Resource, "")
    }
}

fn client_secret() -> String {
    format!("editor-{CANARY}")
}

/// What a gateway does, at its smallest.
async fn serve(State(at): State<Arc<(InboundAuthorizer, Host)>>, request: Request) -> Response {
    let (inbound, host) = &*at;
    if request.uri().path() == inbound.document_path() {
        return inbound.document().to_string().into_response();
    }
    let principal = match inbound
        .check(request.headers(), request.uri().query())
        .await
    {
        Ok(principal) => principal,
        Err(refusal) => {
            let mut answer = (refusal.status(), refusal.to_string()).into_response();
            if let Some(challenge) = refusal.challenge() {
                answer.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            }
            if let Some(seconds) = refusal.retry_after() {
                answer.headers_mut().insert(RETRY_AFTER, seconds.into());
            }
            return answer;
        }
    };
    let call = crate::support::request("shop", "whoami", &principal.subject);
    match host.call(call, CallOptions::new(Consent::Typed)).await {
        Ok(outcome) => text_of(&outcome).into_response(),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

#[tokio::test]
async fn sec_46_a_token_for_another_server_is_refused_and_no_inbound_token_goes_further() {
    let scene = Scene::new().await;
    let connected = scene.behind().len();
    assert!(connected > 0, "the host is connected");
    let other = scene.token(scene.shop.resource(), "read").await;
    let good = scene.token(scene.url.as_str(), "read").await;
    let little = scene.token(scene.url.as_str(), "write").await;
    let metadata = scene.url.join("/.well-known/oauth-protected-resource/mcp");
    let metadata = metadata.expect("an address");

    // The token is good for the server behind, from an issuer that we accept; and not for us.
    let (status, challenge, text) = scene.ask(&[&other]).await;
    assert_eq!(status, 401, "{text}");
    assert!(
        challenge.starts_with(&format!(
            "Bearer resource_metadata=\"{metadata}\", error=\"invalid_token\""
        )),
        "{challenge}"
    );
    let (status, challenge, text) = scene.ask(&[&little]).await;
    assert_eq!(status, 403, "{text}");
    assert!(
        challenge.contains("error=\"insufficient_scope\""),
        "{challenge}"
    );
    assert!(challenge.contains("scope=\"read\""), "{challenge}");
    // The credentials of the server behind are none here, nor are two tokens one good one.
    assert_eq!(scene.ask(&[&scene.own]).await.0, 401);
    assert_eq!(scene.ask(&[&good, &other]).await.0, 400);
    assert_eq!(scene.ask(&[]).await.0, 401);
    assert_eq!(scene.behind().len(), connected, "nothing went further");

    let (status, _, text) = scene.ask(&[&good]).await;
    assert_eq!(status, 200, "{text}");
    assert_eq!(text, "subject=person-1 client=gateway scope=read");
    let behind = scene.behind();
    assert!(behind.len() > connected, "the call went further");
    let own = format!("Bearer {}", scene.own);
    for seen in &behind {
        let shown: Vec<&str> = seen
            .headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("authorization"))
            .map(|(_, value)| value.as_str())
            .collect();
        assert_eq!(shown, [own.as_str()]);
        let rest = seen.text().replace(&scene.own, "");
        assert!(!holds_secret(&rest), "{}", seen.path);
        for part in [&good, &other, &little]
            .iter()
            .flat_map(|token| token.split('.'))
        {
            assert!(!rest.contains(part), "{}", seen.path);
        }
    }

    let document = fetched(&metadata).await;
    assert_eq!(document["resource"], scene.url.as_str());
    assert_eq!(
        document["authorization_servers"],
        json!([scene.company.issuer()])
    );
    // Nor was any of it logged or written down: dropping the home looks.
    assert!(scene.home.path().join("logs").is_dir());
}

async fn fetched(url: &Url) -> Value {
    let reply = WebClient::trusted(HttpClient::default()).get(url).await;
    Value::Object(reply.and_then(|reply| reply.object()).expect("a document"))
}
