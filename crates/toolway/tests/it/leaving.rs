//! Logging out where a login was allowed to go further than its server: what could be reached to
//! log in can be reached to log out, and nothing else can.

use toolway::auth::StoredLogins;
use toolway_auth::clock::unix_now;
use toolway_auth::logins::{Login, LoginGrant, Logins};
use toolway_auth::registration::{AuthMethod, ClientHistory, ClientSource, RegisteredClient};
use toolway_auth::token::{TokenKind, Tokens};
use toolway_auth::vault::{StorageChoice, Vault, VaultOptions};
use toolway_testkit::authority::{Authority, AuthoritySettings, KnownClient};
use toolway_transport::client::HttpClientOptions;
use toolway_types::Secret;

use crate::support::*;

/// A login at an authorization server of this network, for a server that is not in it.
fn login(authority: &Authority, is_trusted: bool) -> Login {
    let tokens = authority.issue("me", "read");
    let at = |path: &str| {
        format!("{}{path}", authority.issuer())
            .parse()
            .expect("an address")
    };
    Login {
        server: "shop".to_owned(),
        definition: "digest".to_owned(),
        account: "default".to_owned(),
        issuer: authority.issuer().to_owned(),
        resource: "https://192.0.2.1/mcp".to_owned(),
        client: RegisteredClient {
            client_id: "me".to_owned(),
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
            expires_at: None,
            received_at: unix_now(),
            scopes: Vec::new(),
        },
        requested: Vec::new(),
        token_endpoint: at("/token"),
        revocation_endpoint: Some(at("/revoke")),
        how: LoginGrant::Code,
        dpop: None,
        logged_in_at: unix_now(),
        client_key: None,
        is_trusted,
    }
}

#[tokio::test]
async fn a_login_ends_where_the_person_allowed_it_to_begin() {
    for is_trusted in [true, false] {
        let authority = Authority::start(AuthoritySettings {
            clients: vec![KnownClient {
                id: "me".to_owned(),
                ..KnownClient::default()
            }],
            ..AuthoritySettings::default()
        });
        let home = Home::new();
        let vault = Vault::open(VaultOptions {
            storage: StorageChoice::File,
            ..VaultOptions::new(home.path().join("vault"))
        });
        let login = login(&authority, is_trusted);
        let saved = Logins::new(vault.clone()).save(&login).await;
        saved.expect("saved");
        let book = StoredLogins::new(vault, HttpClientOptions::default());
        let out = book.log_out(Some("shop"), None).await.expect("logged out");
        assert_eq!(out[0].not_revoked.is_none(), is_trusted, "{out:?}");
        let asked = authority.report().revocations > 0;
        assert_eq!(asked, is_trusted, "nobody else sends us into this network");
        assert_eq!(
            authority.is_valid(login.tokens.access.expose()),
            !is_trusted
        );
    }
}
