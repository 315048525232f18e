//! A race for refresh tokens: many processes, several servers, tokens that live for two seconds.
//!
//! Owns the servers, the vault they are logged in from, what a racing process does and what came
//! of it. Who starts the processes is `rel_14.rs` for a short race and the example `refresh_race`
//! for a long one.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue};
use serde_json::json;
use tokio::task::JoinSet;
use toolway_auth::clock::unix_now;
use toolway_auth::logins::{Login, LoginGrant, Logins};
use toolway_auth::refresh::{RefreshError, RenewalContext, RenewedLogins};
use toolway_auth::registration::{AuthMethod, ClientHistory, ClientSource, RegisteredClient};
use toolway_auth::token::{TokenKind, Tokens};
use toolway_auth::vault::{SecretKind, StorageChoice, Vault, VaultKey, VaultOptions};
use toolway_auth::web::WebClient;
use toolway_testkit::ScannedFolder;
use toolway_testkit::authority::{Authority, AuthoritySettings, KnownClient};
use toolway_testkit::marked::{self, SecretAllowance};
use toolway_types::Secret;
use url::Url;

/// How long a token is good, in milliseconds.
const LIFE: u64 = 2000;

/// How often a process uses each server.
const PACE: Duration = Duration::from_millis(900);

/// How long a process that is in a hurry waits for a token: often not long enough to have it
/// renewed.
const HURRY: Duration = Duration::from_millis(3);

/// How long a process that ends waits until what it renews is saved.
const SETTLED_WITHIN: Duration = Duration::from_secs(30);

/// What came of a race.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Families of tokens that a server revoked because one of them was used twice.
    pub(crate) families_revoked: u64,
    /// Renewals that the servers granted, server by server.
    pub(crate) renewals: Vec<u64>,
    /// What each process said at its end.
    pub(crate) processes: Vec<Said>,
}

/// What one process saw.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    /// Requests that a server answered.
    pub(crate) answered: u64,
    /// Requests that it refused because their token had just expired.
    pub(crate) refused: u64,
    /// Times that it did not wait for a token, whatever became of the renewal.
    pub(crate) hurried: u64,
    /// Times that a user would have had to log in.
    pub(crate) logged_out: u64,
    /// Anything else that went wrong.
    pub(crate) failed: u64,
}

/// The servers, and a vault with a login at each.
pub(crate) struct Race {
    authorities: Vec<Authority>,
    folder: ScannedFolder,
}

impl Race {
    pub(crate) async fn prepare(servers: usize) -> Self {
        let folder = ScannedFolder::new();
        let logins = logins(folder.path());
        let mut authorities = Vec::new();
        for server in 0..servers {
            let authority = Authority::start(AuthoritySettings {
                access_ms: LIFE,
                clients: vec![KnownClient {
                    id: "client".to_owned(),
                    ..KnownClient::default()
                }],
                ..AuthoritySettings::default()
            });
            let login = login(&authority, server);
            logins.save(&login).await.expect("a login is saved");
            authorities.push(authority);
        }
        Self {
            authorities,
            folder,
        }
    }

    /// Lets processes race: `start` makes the command of one, which is to call [`run`] with the
    /// folder, and to print what it returns.
    pub(crate) fn run(self, processes: usize, start: impl Fn(&Path) -> Command) -> Outcome {
        let started: Vec<Child> = (0..processes)
            .map(|_| {
                let mut command = start(self.folder.path());
                command.stdin(Stdio::null()).stdout(Stdio::piped());
                command.spawn().expect("a process starts")
            })
            .collect();
        let ended = started.into_iter().map(|child| {
            let output = marked::output_of(child);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            Said::read(&text).unwrap_or_else(|| panic!("{}: {text}", output.status))
        });
        let processes = ended.collect();
        marked::assert_clean(self.folder.path(), &|_| SecretAllowance::None);
        let reports: Vec<_> = self.authorities.iter().map(Authority::report).collect();
        Outcome {
            families_revoked: reports.iter().map(|report| report.families_revoked).sum(),
            renewals: reports
                .iter()
                .map(|report| report.token_requests("refresh_token"))
                .collect(),
            processes,
        }
    }
}

impl Said {
    /// One line, to be found among whatever else is printed.
    pub(crate) fn line(&self) -> String {
        let Self {
            answered,
            refused,
            hurried,
            logged_out,
            failed,
        } = self;
        format!("RACED {answered} {refused} {hurried} {logged_out} {failed}")
    }

    fn read(text: &str) -> Option<Self> {
        let (_, said) = text.split_once("RACED ")?;
        let mut numbers = said.split_whitespace().map_while(|word| word.parse().ok());
        Some(Self {
            answered: numbers.next()?,
            refused: numbers.next()?,
            hurried: numbers.next()?,
            logged_out: numbers.next()?,
            failed: numbers.next()?,
        })
    }
}

/// What one process does: uses every server in its own pace until the time is over.
pub(crate) async fn run(folder: &Path, time: Duration) -> Said {
    let end = Instant::now() + time;
    let logins = logins(folder);
    let listed = logins.vault().list().await.expect("the vault is read");
    let mut tasks = JoinSet::new();
    for key in listed.into_iter().map(|listed| listed.key) {
        if key.kind == SecretKind::Login {
            let logins = logins.clone();
            tasks.spawn(async move { use_server(&logins, &key, end).await });
        }
    }
    let mut sum = Said::default();
    for said in tasks.join_all().await {
        sum.answered += said.answered;
        sum.refused += said.refused;
        sum.hurried += said.hurried;
        sum.logged_out += said.logged_out;
        sum.failed += said.failed;
    }
    logins.settle(SETTLED_WITHIN).await;
    sum
}

async fn use_server(logins: &RenewedLogins, key: &VaultKey, end: Instant) -> Said {
    let web = WebClient::trusted(toolway_transport::client::HttpClient::default());
    let means = RenewalContext {
        web: web.clone(),
        client_key: None,
        renewer: None,
    };
    let server = Url::parse(&key.resource).expect("a resource has an address");
    let mut said = Said::default();
    let mut refused: Option<Secret> = None;
    let mut tries = 0_u64;
    while Instant::now() < end {
        tries += 1;
        let fresh = logins.fresh(key, refused.as_ref(), &means);
        let patience = if tries.is_multiple_of(3) {
            HURRY
        } else {
            Duration::MAX
        };
        let Ok(fresh) = tokio::time::timeout(patience, fresh).await else {
            said.hurried += 1;
            continue;
        };
        let login = match fresh {
            Ok(login) => login,
            Err(RefreshError::NeedsLogin { .. }) => {
                said.logged_out += 1;
                return said;
            }
            Err(_) => {
                said.failed += 1;
                continue;
            }
        };
        let access = login.tokens.access;
        match ask(&web, &server, &access).await {
            Some(401) => {
                said.refused += 1;
                refused = Some(access);
                continue;
            }
            Some(200..300) => said.answered += 1,
            _ => said.failed += 1,
        }
        refused = None;
        tokio::time::sleep(PACE).await;
    }
    said
}

async fn ask(web: &WebClient, server: &Url, access: &Secret) -> Option<u16> {
    let mut headers = HeaderMap::new();
    let value = HeaderValue::try_from(format!("Bearer {}", access.expose())).ok()?;
    headers.insert(http::header::AUTHORIZATION, value);
    let accept = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(http::header::ACCEPT, accept);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let reply = web.post_json(server, &body, headers).await.ok()?;
    Some(reply.status)
}

fn logins(folder: &Path) -> RenewedLogins {
    RenewedLogins::new(Logins::new(Vault::open(VaultOptions {
        storage: StorageChoice::File,
        ..VaultOptions::new(folder)
    })))
}

fn login(authority: &Authority, server: usize) -> Login {
    let tokens = authority.issue("client", "read offline_access");
    let endpoint = format!("{}/token", authority.issuer());
    Login {
        server: format!("server-{server}"),
        definition: "d".to_owned(),
        account: "default".to_owned(),
        issuer: authority.issuer().to_owned(),
        resource: authority.resource().to_owned(),
        client: RegisteredClient {
            client_id: "client".to_owned(),
            client_secret: None,
            auth_method: AuthMethod::None,
            source: ClientSource::Configured,
            secret_expires_at: None,
            redirect_uri: None,
            scopes: Vec::new(),
            other_method: None,
            history: ClientHistory::default(),
        },
        tokens: Tokens {
            access: Secret::new(tokens.access),
            kind: TokenKind::Bearer,
            refresh: tokens.refresh.map(Secret::new),
            id_token: None,
            expires_at: Some(unix_now() + LIFE / 1000),
            received_at: unix_now(),
            scopes: vec!["read".to_owned()],
        },
        requested: vec!["read".to_owned()],
        token_endpoint: Url::parse(&endpoint).expect("an endpoint has an address"),
        revocation_endpoint: None,
        how: LoginGrant::Code,
        dpop: None,
        logged_in_at: unix_now(),
        is_trusted: false,
        client_key: None,
    }
}
