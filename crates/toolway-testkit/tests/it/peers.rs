//! The real peers that want a login, walked through by a plain client and a user at a browser.

use serde_json::{Value, json};
use toolway_testkit::TestBrowser;
use toolway_testkit::peers::{ProtectedKind, ProtectedPeer, ProviderKind, ProviderPeer};

use crate::authority::{Answer, CALLBACK, VERIFIER, answer, challenge, client, encoded, get, post};

struct Login<'a> {
    issuer: &'a str,
    resource: &'a str,
    client: String,
}

impl<'a> Login<'a> {
    async fn register(provider: &'a ProviderPeer, peer: &'a ProtectedPeer) -> Self {
        let body = json!({ "redirect_uris": [CALLBACK], "application_type": "native",
            "token_endpoint_auth_method": "none", "response_types": ["code"],
            "grant_types": ["authorization_code", "refresh_token"] });
        let request = client()
            .post(format!("{}/reg", provider.issuer()))
            .header("content-type", "application/json")
            .body(body.to_string());
        let made = answer(request).await;
        assert_eq!(made.status, 201, "{made:?}");
        Self {
            issuer: provider.issuer(),
            resource: peer.url(),
            client: made.json()["client_id"].as_str().unwrap().to_owned(),
        }
    }

    async fn tokens(&self, scope: &str) -> Value {
        let query = encoded(&[
            ("response_type", "code"),
            ("client_id", &self.client),
            ("redirect_uri", CALLBACK),
            ("state", "the-state"),
            ("code_challenge", &challenge()),
            ("code_challenge_method", "S256"),
            ("scope", scope),
            ("resource", self.resource),
        ]);
        let url = format!("{}/auth?{query}", self.issuer);
        // A browser blocks until its page is there.
        let back = tokio::task::spawn_blocking(move || {
            let mut browser = TestBrowser::new();
            let page = browser.log_in(&url, &[("login", "alice"), ("password", "any")]);
            assert_eq!(page, None, "nobody listens at the callback");
            browser.url().to_owned()
        });
        let back = reqwest::Url::parse(&back.await.unwrap()).unwrap();
        assert!(back.as_str().starts_with(CALLBACK), "{back}");
        let value = |name: &str| {
            let mut pairs = back.query_pairs();
            pairs
                .find(|(found, _)| found == name)
                .unwrap()
                .1
                .into_owned()
        };
        assert_eq!(
            (value("state").as_str(), value("iss").as_str()),
            ("the-state", self.issuer)
        );
        let code = value("code");
        let pairs = [
            ("grant_type", "authorization_code"),
            ("client_id", &self.client),
            ("code", &code),
            ("redirect_uri", CALLBACK),
            ("code_verifier", VERIFIER),
            ("resource", self.resource),
        ];
        post(&format!("{}/token", self.issuer), &pairs).await.json()
    }

    async fn refresh(&self, token: &Value) -> Answer {
        let pairs = [
            ("grant_type", "refresh_token"),
            ("client_id", &self.client),
            ("refresh_token", token.as_str().unwrap()),
            ("resource", self.resource),
        ];
        post(&format!("{}/token", self.issuer), &pairs).await
    }

    async fn call(&self, token: Option<&Value>, tool: &str) -> Answer {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": tool, "arguments": {}, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" } } } });
        let mut request = client()
            .post(self.resource)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool)
            .body(body.to_string());
        if let Some(token) = token {
            request = request.header(
                "authorization",
                format!("Bearer {}", token.as_str().unwrap()),
            );
        }
        answer(request).await
    }
}

async fn a_login_works(which: ProtectedKind) {
    let opaque = which == ProtectedKind::TypeScriptOpaque;
    let options = json!({ "path": "/tenant", "opaque": opaque });
    let provider = ProviderPeer::start(ProviderKind::Oidc, &options);
    let peer = ProtectedPeer::start(which, provider.issuer());
    let login = Login::register(&provider, &peer).await;

    let refused = login.call(None, "whoami").await;
    assert_eq!(refused.status, 401);
    let challenge = refused.header("www-authenticate");
    let (_, rest) = challenge.split_once("resource_metadata=\"").unwrap();
    let metadata = get(rest.split('"').next().unwrap()).await.json();
    assert_eq!(metadata["resource"], peer.url());
    assert_eq!(
        metadata["authorization_servers"],
        json!([provider.issuer()])
    );

    let tokens = login.tokens("openid read").await;
    let who = login.call(Some(&tokens["access_token"]), "whoami").await;
    let expected = format!("subject=alice client={} scope=openid read", login.client);
    assert!(who.body.contains(&expected), "{who:?}");
    let less = login.call(Some(&tokens["access_token"]), "change").await;
    if which == ProtectedKind::FastMcp {
        assert!(less.body.contains("Unknown tool"), "{less:?}");
    } else {
        assert_eq!(less.status, 403);
        assert!(less.header("www-authenticate").contains("scope=\"write\""));
    }

    // A refresh token is good once; using it twice ends the grant.
    let fresh = login.refresh(&tokens["refresh_token"]).await.json();
    assert_ne!(fresh["refresh_token"], tokens["refresh_token"]);
    for used in [&tokens, &fresh] {
        let refused = login.refresh(&used["refresh_token"]).await;
        assert_eq!(refused.json()["error"], "invalid_grant");
    }
    let more = login.tokens("openid read write").await;
    let changed = login.call(Some(&more["access_token"]), "change").await;
    assert!(changed.body.contains("changed"), "{changed:?}");
}

#[tokio::test]
async fn a_login_opens_the_typescript_server() {
    a_login_works(ProtectedKind::TypeScriptSigned).await;
}

#[tokio::test]
async fn a_login_opens_the_typescript_server_that_asks_its_provider() {
    a_login_works(ProtectedKind::TypeScriptOpaque).await;
}

#[tokio::test]
async fn a_login_opens_the_fastmcp_server() {
    a_login_works(ProtectedKind::FastMcp).await;
}

#[tokio::test]
async fn a_device_logs_in_at_the_provider() {
    let provider = ProviderPeer::start(ProviderKind::Oidc, &json!({}));
    let issuer = provider.issuer().to_owned();
    let asked = [("client_id", "public"), ("scope", "openid read")];
    let device = post(&format!("{issuer}/device/auth"), &asked).await.json();
    let poll = || async {
        let pairs = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
            ("client_id", "public"),
            ("device_code", device["device_code"].as_str().unwrap()),
        ];
        post(&format!("{issuer}/token"), &pairs).await.json()
    };
    assert_eq!(poll().await["error"], "authorization_pending");
    let url = device["verification_uri_complete"]
        .as_str()
        .unwrap()
        .to_owned();
    let page = tokio::task::spawn_blocking(move || {
        TestBrowser::new().log_in(&url, &[("login", "alice"), ("password", "any")])
    });
    let page = page.await.unwrap().unwrap();
    assert!(page.body.contains("Sign-in Success"), "{page:?}");
    assert!(poll().await["access_token"].is_string());
}
