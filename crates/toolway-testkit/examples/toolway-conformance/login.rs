//! Logging in where a mock server wants it, by the host's own way: its loopback callback, its
//! registration, its limits.
//!
//! Owns what a user or an administrator would bring (a client, a key, an identity, all from the
//! suite's context), the browser that follows the mock's redirect, and which refusals a scenario is
//! about: it ends well only when the library refused for that very reason.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use toolway::Host;
use toolway::auth::{AuthOptions, ClientIdentities, LoginOptions, LoginProblem, WorkloadToken};
use toolway::toolway_auth::assertion::ClientKey;
use toolway::toolway_auth::authorize::AuthorizationResponseError;
use toolway::toolway_auth::callback::CallbackError;
use toolway::toolway_auth::discovery::DiscoveryError;
use toolway::toolway_auth::idp::{IdentityStore, IdpSettings, UserIdentity};
use toolway::toolway_auth::jwt::{JwtAlgorithm, SigningKey};
use toolway::toolway_auth::login::{
    DeviceCodePrompt, LoginFault, LoginMethod, LoginPage, LoginProgress, LoginUi,
};
use toolway::toolway_auth::registration::ClientDocument;
use toolway::toolway_auth::scopes::LoginAttemptError;
use toolway::toolway_auth::vault::{StorageChoice, Vault, VaultOptions};
use toolway::toolway_auth::voucher::workload::PlatformTokenSource;
use toolway::types::{ConnectionState, Secret};
use toolway_testkit::TempHome;
use toolway_testkit::browser::browse;

use crate::walk::Failure;

/// The metadata document that the suite knows.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// The part of `MCP_CONFORMANCE_CONTEXT` that a user or an administrator would have written down.
#[derive(Default, Deserialize)]
pub(crate) struct Credentials {
    client_id: Option<String>,
    client_secret: Option<String>,
    private_key_pem: Option<String>,
    signing_algorithm: Option<String>,
    idp_client_id: Option<String>,
    idp_id_token: Option<String>,
    idp_issuer: Option<String>,
    idp_token_endpoint: Option<String>,
    valid_jwt: Option<String>,
}

impl Credentials {
    /// The `oauth` settings of the entry.
    pub(crate) fn oauth(&self) -> Value {
        let mut oauth = json!({});
        if let Some(id) = &self.client_id {
            oauth["clientId"] = json!(id);
        }
        if self.idp_issuer.is_some() {
            oauth["xaa"] = json!(true);
        }
        oauth
    }

    /// What the host needs for logins, with a vault of its own.
    pub(crate) async fn auth(
        &self,
        scenario: &str,
        server: &str,
        home: &TempHome,
    ) -> Result<AuthOptions, Failure> {
        let vault = Vault::open(VaultOptions {
            storage: StorageChoice::File,
            ..VaultOptions::new(home.home().join("vault"))
        });
        self.identify(&vault).await?;
        Ok(AuthOptions {
            vault: Some(vault),
            document: document(scenario),
            client_identities: ClientIdentities {
                workloads: self.workload(server),
                secrets: self.secret(server),
                keys: self.key(server)?,
            },
            ..AuthOptions::default()
        })
    }

    fn key(&self, server: &str) -> Result<BTreeMap<String, Arc<ClientKey>>, Failure> {
        let Some(pem) = &self.private_key_pem else {
            return Ok(BTreeMap::new());
        };
        let algorithm = match self.signing_algorithm.as_deref() {
            Some("ES256") => Some(JwtAlgorithm::Es256),
            None => None,
            Some(_) => return Err(Failure::Variable("CONTEXT")),
        };
        let key = SigningKey::from_pem(&Secret::new(pem.as_str()), algorithm)
            .map_err(|_| Failure::Variable("CONTEXT"))?;
        let key = Arc::new(ClientKey { key, id: None });
        Ok(BTreeMap::from([(server.to_owned(), key)]))
    }

    fn secret(&self, server: &str) -> BTreeMap<String, Secret> {
        let secret = self.client_secret.as_deref().map(Secret::new);
        secret
            .map(|secret| (server.to_owned(), secret))
            .into_iter()
            .collect()
    }

    fn workload(&self, server: &str) -> BTreeMap<String, WorkloadToken> {
        let token = self.valid_jwt.as_deref().map(Secret::new);
        let workload = token.map(|token| WorkloadToken {
            source: Arc::new(PlatformTokenSource::Given(token)),
            audience: None,
        });
        workload
            .map(|workload| (server.to_owned(), workload))
            .into_iter()
            .collect()
    }

    /// What a user writes into their own settings about their organisation.
    pub(crate) fn settings(&self) -> Option<Value> {
        self.idp_issuer.as_ref().map(|issuer| {
            json!({
                "identityProvider": {
                    "issuer": issuer,
                    "clientId": self.idp_client_id,
                    "tokenEndpoint": self.idp_token_endpoint,
                }
            })
        })
    }

    /// The user is logged in at their organisation already.
    async fn identify(&self, vault: &Vault) -> Result<(), Failure> {
        let (Some(issuer), Some(client_id), Some(id_token)) =
            (&self.idp_issuer, &self.idp_client_id, &self.idp_id_token)
        else {
            return Ok(());
        };
        let settings = IdpSettings {
            issuer: issuer.clone(),
            client_id: client_id.clone(),
            ..IdpSettings::default()
        };
        let unreadable = Failure::Variable("CONTEXT");
        let identity = UserIdentity::given(Secret::new(id_token.as_str())).ok_or(unreadable)?;
        let identities = IdentityStore::new(vault.clone());
        let written = identities.write(&settings, &identity).await;
        written.map_err(|_| Failure::Variable("CONTEXT"))
    }

    /// Logs in and connects, as `toolway login` does.
    pub(crate) async fn log_in(
        &self,
        scenario: &str,
        host: &Host,
        server: &str,
    ) -> Result<(), Failure> {
        let handle = host.login(server, options(scenario)).await?;
        handle.outcome().await.ok_or(LoginProblem::Ended)??;
        host.reconnect(server).await.map_err(LoginProblem::from)?;
        Ok(())
    }

    /// Logs in until the server is content. The host says when it is enough.
    pub(crate) async fn connect(
        &self,
        scenario: &str,
        host: &Host,
        server: &str,
    ) -> Result<(), Failure> {
        loop {
            let picture = host.snapshot();
            match picture.server(server).map(|server| &server.state) {
                Some(ConnectionState::NeedsAuth { .. }) => {
                    self.log_in(scenario, host, server).await?;
                }
                Some(ConnectionState::Connected { .. }) => return Ok(()),
                state => return Err(Failure::NotConnected(format!("{state:?}"))),
            }
        }
    }
}

/// How a user would log in, or a program.
fn options(scenario: &str) -> LoginOptions {
    LoginOptions {
        way: if scenario.starts_with("auth/client-credentials-") {
            LoginMethod::ClientCredentials
        } else {
            LoginMethod::Browser
        },
        person: Some(Arc::new(Somebody)),
        ..LoginOptions::default()
    }
}

/// Our metadata document. It cannot be fetched, so where the suite looks at our grant types, it has
/// to be told by a registration.
fn document(scenario: &str) -> Option<ClientDocument> {
    let url = DOCUMENT.parse().ok()?;
    (scenario != "auth/offline-access-scope").then(|| ClientDocument {
        url,
        redirect_uri: "http://localhost/callback".to_owned(),
    })
}

/// Whether a scenario is about a refusal, and this is the one.
pub(crate) fn is_meant(scenario: &str, failure: &Failure) -> bool {
    let Failure::Login(problem) = failure else {
        return false;
    };
    match (scenario, problem.as_ref()) {
        ("auth/scope-retry-limit", LoginProblem::Spent { why, .. }) => {
            matches!(
                why,
                LoginAttemptError::NothingNew | LoginAttemptError::TooOften
            )
        }
        (scenario, LoginProblem::Failed(error)) => is_about(scenario, &error.fault),
        _ => false,
    }
}

/// Whether that is what is wrong with the answer or the metadata of a scenario.
fn is_about(scenario: &str, fault: &LoginFault) -> bool {
    use AuthorizationResponseError::{IssuerMismatch, IssuerMissing};
    matches!(
        (scenario, fault),
        (
            "auth/resource-mismatch",
            LoginFault::Discovery(DiscoveryError::OtherResource { .. }),
        ) | (
            "auth/metadata-issuer-mismatch",
            LoginFault::Discovery(DiscoveryError::IssuerMismatch { .. }),
        ) | (
            "auth/iss-supported-missing",
            LoginFault::Callback(CallbackError::Answer(IssuerMissing { .. })),
        ) | (
            "auth/iss-wrong-issuer" | "auth/iss-unexpected" | "auth/iss-normalized",
            LoginFault::Callback(CallbackError::Answer(IssuerMismatch { .. })),
        )
    )
}

/// Whether a scenario is about a refusal.
pub(crate) fn must_refuse(scenario: &str) -> bool {
    [
        "auth/scope-retry-limit",
        "auth/resource-mismatch",
        "auth/metadata-issuer-mismatch",
        "auth/iss-supported-missing",
        "auth/iss-wrong-issuer",
        "auth/iss-unexpected",
        "auth/iss-normalized",
    ]
    .contains(&scenario)
}

/// A user with a browser, who agrees to everything.
struct Somebody;

impl LoginUi for Somebody {
    fn open<'a>(&'a self, page: LoginPage<'a>) -> BoxFuture<'a, Result<(), String>> {
        let url = page.url.to_string();
        // The mock sends the browser to the callback, which answers only while the login waits.
        thread::spawn(move || browse(&url));
        std::future::ready(Ok(())).boxed()
    }

    fn show(&self, _page: LoginPage<'_>) {}

    fn pasted(&self) -> BoxFuture<'_, String> {
        std::future::pending().boxed()
    }

    fn device(&self, _device: DeviceCodePrompt<'_>) {}

    fn say(&self, _progress: LoginProgress) {}
}
