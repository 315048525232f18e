//! A login against the testkit's authority, with everything that can be asked about it afterwards.

use std::sync::Arc;

use toolway_auth::challenge::{AuthNeed, need};
use toolway_auth::login::{
    AccountChoice, LoginContext, LoginError, LoginMethod, LoginRequest, obtain,
};
use toolway_auth::logins::{Login, Logins};
use toolway_auth::registration::ClientDocument;
use toolway_auth::scopes::LoginAttempts;
use toolway_auth::vault::{StorageChoice, Vault, VaultOptions};
use toolway_auth::web::{NetworkReach, WebClient};
use toolway_testkit::ScannedFolder;
use toolway_testkit::authority::{Authority, AuthoritySettings};
use toolway_transport::client::HttpClient;
use toolway_types::{OauthSpec, Secret};
use url::Url;

use crate::person::{Habit, Tester};

/// The server, as the user calls it.
pub(crate) const NAME: &str = "notes";

pub(crate) struct Case {
    pub(crate) authority: Authority,
    pub(crate) person: Tester,
    pub(crate) logins: Logins,
    pub(crate) _folder: ScannedFolder,
    pub(crate) attempts: LoginAttempts,
    pub(crate) spec: OauthSpec,
    pub(crate) way: LoginMethod,
    pub(crate) secret: Option<Secret>,
    pub(crate) document: Option<ClientDocument>,
    pub(crate) wants_dpop: bool,
}

impl Case {
    pub(crate) fn new(settings: AuthoritySettings) -> Self {
        let folder = ScannedFolder::new();
        let vault = Vault::open(VaultOptions {
            storage: StorageChoice::File,
            ..VaultOptions::new(folder.path().join("vault"))
        });
        Self {
            authority: Authority::start(settings),
            person: Tester::new(Habit::Browses),
            logins: Logins::new(vault),
            _folder: folder,
            attempts: LoginAttempts::default(),
            spec: OauthSpec::default(),
            way: LoginMethod::Browser,
            secret: None,
            document: None,
            wants_dpop: false,
        }
    }

    pub(crate) fn url(&self) -> Url {
        Url::parse(self.authority.resource()).unwrap()
    }

    pub(crate) async fn web(&self) -> WebClient {
        WebClient::new(HttpClient::default(), NetworkReach::of(&self.url()).await)
    }

    /// What the server says to a request with this token.
    pub(crate) async fn refusal(&self, token: Option<&Secret>) -> (u16, Option<AuthNeed>) {
        let client = HttpClient::default().for_url(&self.url()).unwrap();
        let mut request = client
            .post(self.url())
            .body(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami"}}"#);
        if let Some(token) = token {
            request = request.bearer_auth(token.expose());
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let header = answer.headers().get("www-authenticate");
        let header = header.and_then(|value| value.to_str().ok());
        (status, need(status, header))
    }

    pub(crate) async fn log_in(&self) -> Result<Login, LoginError> {
        self.log_in_for(None).await
    }

    pub(crate) async fn log_in_for(&self, scopes: Option<&[String]>) -> Result<Login, LoginError> {
        let challenge = match self.refusal(None).await.1 {
            Some(AuthNeed::Login(challenge)) => challenge,
            _ => None,
        };
        let url = self.url();
        let web = self.web().await;
        let request = LoginRequest {
            server: NAME,
            definition: "digest",
            account: "default",
            url: &url,
            challenge: challenge.as_ref(),
            spec: &self.spec,
            scopes,
            method: self.way,
            account_choice: AccountChoice::default(),
            client_secret: self.secret.as_ref(),
            client_key: None,
            document: self.document.as_ref(),
            known_issuer: None,
            wants_dpop: self.wants_dpop,
        };
        let context = LoginContext {
            web: &web,
            logins: &self.logins,
            attempts: &self.attempts,
            ui: &self.person,
        };
        obtain(context, &request).await
    }
}

/// A login is a task like any other.
#[expect(dead_code, reason = "that it compiles is the test")]
fn a_login_can_be_spawned(case: Arc<Case>) {
    fn is_send(_: impl Send) {}
    is_send(async move { case.log_in().await.is_ok() });
}
