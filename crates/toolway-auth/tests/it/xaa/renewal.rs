//! Renewing: the identity at its provider, and a login that is kept by the way it came about.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use serde_json::json;
use toolway_auth::clock::unix_now;
use toolway_auth::federated::{FederatedRenewal, log_in};
use toolway_auth::idp::{
    IdentityProvider, IdentityStore, IdpLoginMethod, IdpLogoutOutcome, IdpSettings, UserIdentity,
};
use toolway_auth::jwt::SigningKey;
use toolway_auth::login::{AccountChoice, LoginFault, LoginMethod, LoginRequest};
use toolway_auth::logins::{LoginGrant, Logins};
use toolway_auth::refresh::{RenewalContext, RenewedLogins};
use toolway_auth::vault::{StorageChoice, Vault, VaultOptions};
use toolway_auth::voucher::Voucher;
use toolway_auth::voucher::xaa::CrossAppRule;
use toolway_auth::web::WebClient;
use toolway_testkit::ScannedFolder;
use toolway_testkit::authority::{CANARY, Switch};
use toolway_testkit::marked;
use toolway_transport::client::HttpClient as Http;
use toolway_types::{OauthSpec, Secret};
use url::Url;

use super::{Person, Server, idp_with, provider, web};
use crate::site::Site;

/// A provider that renews an identity when it is asked to, and signs what a test says.
struct Renewing {
    site: Site,
    key: SigningKey,
}

impl Renewing {
    async fn new() -> Self {
        let pem = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let key = SigningKey::from_pem(&Secret::new(pem), None).unwrap();
        let site = Site::new().await;
        let at = |path: &str| site.url(path).to_string();
        site.put(
            "/.well-known/openid-configuration",
            &json!({ "issuer": site.origin(), "token_endpoint": at("/token"), "jwks_uri": at("/jwks") }),
        );
        site.put("/jwks", &json!({ "keys": [key.public_jwk()] }));
        Self { site, key }
    }

    fn settings(&self) -> IdpSettings {
        IdpSettings {
            issuer: self.site.origin(),
            client_id: "me".to_owned(),
            ..IdpSettings::default()
        }
    }

    fn answer(&self, subject: &str) {
        let now = unix_now();
        let claims = json!({
            "iss": self.settings().issuer, "aud": "me", "sub": subject, "iat": now, "exp": now + 600,
        });
        let token = self
            .key
            .sign(serde_json::Map::new(), claims.as_object().unwrap());
        self.site.put(
            "/token",
            &json!({
                "access_token": marked!("a-"), "refresh_token": marked!("second-"), "id_token": token.unwrap().expose(),
            }),
        );
    }

    /// A provider with an identity that has expired.
    async fn provider(&self) -> (IdentityProvider, Arc<IdentityStore>) {
        let store = Arc::new(IdentityStore::default());
        let expired = UserIdentity {
            id_token: Secret::new(marked!("old-")),
            expires_at: 1,
            subject: "person".to_owned(),
            refresh: Some(Secret::new(marked!("first-"))),
        };
        store.write(&self.settings(), &expired).await.unwrap();
        let web = WebClient::trusted(Http::default());
        (
            IdentityProvider::new(self.settings(), web, Arc::clone(&store)),
            store,
        )
    }
}

#[tokio::test]
async fn an_identity_is_renewed_without_the_person() {
    let renewing = Renewing::new().await;
    renewing.answer("person");
    let (provider, store) = renewing.provider().await;
    let asked = join_all((0..5).map(|_| provider.identity(IdpLoginMethod::StoredOnly))).await;
    for identity in asked {
        assert_eq!(identity.unwrap().subject, "person");
    }
    let kept = store.read(provider.settings()).await.unwrap().unwrap();
    assert_eq!(kept.refresh, Some(Secret::new(marked!("second-"))));
    assert!(kept.expires_at > unix_now() + 500);
    let mut posts = renewing.site.asked();
    posts.retain(|asked| asked.line == "POST /token");
    assert_eq!(posts.len(), 1, "one for all");
    assert!(posts[0].body.contains(marked!("refresh_token=first-")));
}

#[tokio::test]
async fn sec_45_a_renewal_cannot_make_somebody_else_of_the_person() {
    let renewing = Renewing::new().await;
    renewing.answer("somebody else");
    let (provider, store) = renewing.provider().await;
    let error = provider
        .identity(IdpLoginMethod::StoredOnly)
        .await
        .expect_err("refused");
    assert!(error.to_string().contains("another person"), "{error}");
    let kept = store.read(provider.settings()).await.unwrap().unwrap();
    assert_eq!(kept.subject, "person");
}

#[tokio::test]
async fn the_provider_hears_who_we_are_in_the_way_it_offers() {
    let renewing = Renewing::new().await;
    renewing.answer("person");
    let at = |path: &str| renewing.site.url(path).to_string();
    renewing.site.put(
        "/.well-known/openid-configuration",
        &json!({
            "issuer": renewing.site.origin(), "token_endpoint": at("/token"),
            "jwks_uri": at("/jwks"),
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }),
    );
    let (_, store) = renewing.provider().await;
    let settings = IdpSettings {
        client_secret: Some(Secret::new(marked!("s3cret-"))),
        ..renewing.settings()
    };
    let provider = IdentityProvider::new(settings, WebClient::trusted(Http::default()), store);
    provider.identity(IdpLoginMethod::StoredOnly).await.unwrap();
    let mut posts = renewing.site.asked();
    posts.retain(|asked| asked.line == "POST /token");
    assert!(posts[0].body.contains(marked!("client_secret=s3cret-")));
    assert!(!posts[0].headers.contains_key("authorization"));
}

/// A platform may log people in itself, and say where the provider gives tokens.
#[tokio::test]
async fn an_identity_that_was_handed_in_needs_no_metadata() {
    let idp = idp_with(&[]);
    let server = Server::trusting(&idp, &[]).await;
    let (first, store) = provider(&idp);
    let person = Person::default();
    server
        .tokens(&first, IdpLoginMethod::Browser(&person))
        .await;
    let kept = store.read(first.settings()).await.unwrap().unwrap();

    let given = UserIdentity::given(kept.id_token.clone()).unwrap();
    assert_eq!(given.subject, kept.subject);
    let settings = IdpSettings {
        token_endpoint: Some(Url::parse(&format!("{}/token", idp.issuer())).unwrap()),
        ..first.settings().clone()
    };
    let store = Arc::new(IdentityStore::default());
    store.write(&settings, &given).await.unwrap();
    let before = idp.report().metadata;
    let second = IdentityProvider::new(settings, WebClient::trusted(Http::default()), store);
    let tokens = server.tokens(&second, IdpLoginMethod::StoredOnly).await;
    assert!(server.authority.is_valid(tokens.access.expose()));
    assert_eq!(idp.report().metadata, before);
    assert!(UserIdentity::given(Secret::new(marked!("opaque-"))).is_none());
}

/// Everything together: found, logged in, kept, and renewed by the way it came about.
/// Where clients and their bindings are kept.
fn clients(folder: &ScannedFolder) -> Logins {
    Logins::new(Vault::open(VaultOptions {
        storage: StorageChoice::File,
        ..VaultOptions::new(folder.path().join("clients"))
    }))
}

#[tokio::test]
async fn a_login_by_the_organisation_is_kept_and_renewed() {
    let idp = idp_with(&[]);
    let server = Server::trusting(&idp, &[]).await;
    let (provider, _) = provider(&idp);
    let person = Person::default();
    let secret = Secret::new(format!("{CANARY}-server"));
    let url = Url::parse(server.authority.resource()).unwrap();
    let spec = OauthSpec {
        client_id: Some("at-the-server".to_owned()),
        scopes: Some(vec!["read".to_owned(), "offline_access".to_owned()]),
        ..OauthSpec::default()
    };
    let request = LoginRequest {
        server: "notes",
        definition: "digest",
        account: "",
        url: &url,
        challenge: None,
        spec: &spec,
        scopes: None,
        method: LoginMethod::Browser,
        account_choice: AccountChoice::default(),
        client_secret: Some(&secret),
        client_key: None,
        document: None,
        known_issuer: None,
        wants_dpop: false,
    };
    let voucher = Voucher::Organisation {
        provider: provider.clone(),
        rule: CrossAppRule::Only,
    };
    let kept = ScannedFolder::new();
    let clients = clients(&kept);
    let web = web();
    let outcome = log_in(
        &web,
        &clients,
        &request,
        &voucher,
        IdpLoginMethod::Browser(&person),
    )
    .await;
    let login = outcome.unwrap().unwrap();
    assert_eq!(login.how, LoginGrant::CrossApp);
    assert_eq!(login.requested, ["read"]);
    assert!(server.authority.is_valid(login.tokens.access.expose()));
    assert_eq!(server.authority.report().authorizations, 0);

    let folder = ScannedFolder::new();
    let vault = Vault::open(VaultOptions {
        storage: StorageChoice::File,
        ..VaultOptions::new(folder.path().join("vault"))
    });
    let logins = RenewedLogins::new(Logins::new(vault));
    logins.save(&login).await.unwrap();
    let renewal = FederatedRenewal {
        voucher: voucher.clone(),
        web: web.clone(),
        client_key: None,
    };
    let means = RenewalContext {
        web: web.clone(),
        client_key: None,
        renewer: Some(Arc::new(renewal)),
    };
    server.authority.expire_access_tokens();
    let old = login.tokens.access.clone();
    let fresh = logins
        .fresh(&login.key(), Some(&old), &means)
        .await
        .unwrap();
    assert_ne!(fresh.tokens.access, old);
    assert!(server.authority.is_valid(fresh.tokens.access.expose()));
    assert_eq!(person.windows.load(Ordering::SeqCst), 1);

    // Without the organisation there is no renewal; but the login is not thrown away for that.
    provider.logout().await.unwrap();
    let refused = fresh.tokens.access.clone();
    let error = logins.fresh(&login.key(), Some(&refused), &means).await;
    let error = error.expect_err("nobody vouches").to_string();
    assert!(error.contains("toolway idp login"), "{error}");
    assert!(logins.read(&login.key()).await.unwrap().is_some());

    // A server that moves to another authorization server does not get the secret (SEC-19).
    server.authority.turn_on(Switch::Migrated);
    let moved = log_in(
        &web,
        &clients,
        &request,
        &voucher,
        IdpLoginMethod::Browser(&person),
    )
    .await;
    let moved = moved.expect_err("not theirs");
    assert!(matches!(moved, LoginFault::Moved { .. }), "{moved}");
    assert!(server.authority.stolen().is_none());
}

/// Two servers whose clients have one name: the secret of each goes to its own authorization
/// server, whatever the other one's is (SEC-19).
#[tokio::test]
async fn sec_19_a_secret_belongs_to_one_server_and_its_issuer() {
    let idp = idp_with(&[]);
    let first = Server::trusting(&idp, &[]).await;
    let second = Server::trusting(&idp, &[]).await;
    let (provider, _) = provider(&idp);
    let person = Person::default();
    let secret = Secret::new(format!("{CANARY}-server"));
    let kept = ScannedFolder::new();
    let clients = clients(&kept);
    let web = web();
    let log_in = async |server: &Server, metadata: Option<&str>| {
        let spec = OauthSpec {
            client_id: Some("at-the-server".to_owned()),
            auth_server_metadata_url: metadata.map(|url| url.parse().unwrap()),
            ..OauthSpec::default()
        };
        let url = Url::parse(server.authority.resource()).unwrap();
        let request = LoginRequest {
            server: "notes",
            definition: "digest",
            account: "",
            url: &url,
            challenge: None,
            spec: &spec,
            scopes: None,
            method: LoginMethod::Browser,
            account_choice: AccountChoice::default(),
            client_secret: Some(&secret),
            client_key: None,
            document: None,
            known_issuer: None,
            wants_dpop: false,
        };
        let voucher = Voucher::Organisation {
            provider: provider.clone(),
            rule: CrossAppRule::Only,
        };
        let method = IdpLoginMethod::Browser(&person);
        log_in(&web, &clients, &request, &voucher, method).await
    };
    log_in(&first, None).await.expect("logged in").expect("in");
    // Another server may have a client of the same name, at another issuer.
    log_in(&second, None).await.expect("logged in").expect("in");
    // The first moves to an attacker: its binding still counts, although another client of the same
    // name was bound since, as configured.
    let metadata = format!(
        "{}/.well-known/oauth-authorization-server",
        second.authority.issuer()
    );
    let named = log_in(&second, Some(&metadata)).await;
    named.expect("logged in").expect("in");
    first.authority.turn_on(Switch::Migrated);
    let moved = log_in(&first, None).await.expect_err("not theirs");
    assert!(matches!(moved, LoginFault::Moved { .. }), "{moved}");
    assert!(first.authority.stolen().is_none());
}

#[tokio::test]
async fn a_person_who_leaves_is_forgotten_at_the_provider_too() {
    let person = Person::default();
    for (switch, expected) in [
        (None, "Revoked"),
        (Some(Switch::RevocationNone), "NotOffered"),
        (Some(Switch::RevocationFails), "Failed"),
    ] {
        let idp = idp_with(switch.as_slice());
        let (provider, _) = provider(&idp);
        let identity = provider
            .identity(IdpLoginMethod::Browser(&person))
            .await
            .unwrap();
        let refresh = identity.refresh.expect("it renews itself");
        assert!(idp.is_valid(refresh.expose()));
        let given = provider.logout().await.unwrap();
        let given = format!("{given:?}");
        assert!(given.starts_with(expected), "{given}");
        assert!(!given.contains(refresh.expose()), "{given}");
        // In any case there is no login here.
        assert!(provider.stored().await.unwrap().is_none());
        assert_eq!(idp.is_valid(refresh.expose()), expected != "Revoked");
        let again = provider.logout().await.unwrap();
        assert!(matches!(again, IdpLogoutOutcome::Nothing), "{again:?}");
    }
}

#[tokio::test]
async fn a_provider_that_does_not_answer_keeps_nobody() {
    let idp = idp_with(&[]);
    let (provider, _) = provider(&idp);
    let person = Person::default();
    provider
        .identity(IdpLoginMethod::Browser(&person))
        .await
        .unwrap();
    let _held = idp.hold("/revoke");
    // From here on nothing is waited for but the answer that does not come.
    tokio::time::pause();
    let given = provider.logout().await.unwrap();
    assert!(matches!(given, IdpLogoutOutcome::Failed(_)), "{given:?}");
    assert!(provider.stored().await.unwrap().is_none());
}
