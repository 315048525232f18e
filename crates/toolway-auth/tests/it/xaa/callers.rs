//! Callers that go away while the identity is renewed: what the provider gave is kept all the same.

use std::sync::Arc;

use toolway_auth::idp::{IdentityProvider, IdentityStore, IdpLoginMethod};
use toolway_auth::vault::{StorageChoice, Vault, VaultOptions};
use toolway_auth::web::WebClient;
use toolway_testkit::ScannedFolder;
use toolway_testkit::authority::{Authority, AuthoritySettings, RequestedParty};
use toolway_testkit::eventually;
use toolway_transport::client::HttpClient as Http;

use super::{Person, idp_settings, settings};

fn refreshes(idp: &Authority) -> usize {
    let seen = idp.seen_at(RequestedParty::Issuer, "/token");
    let grants = seen.iter().filter_map(|seen| seen.param("grant_type"));
    grants.filter(|grant| *grant == "refresh_token").count()
}

async fn is_sent(idp: &Authority) {
    eventually(|| match refreshes(idp) {
        0 => Err("nothing was sent".to_owned()),
        _ => Ok(()),
    })
    .await;
}

#[tokio::test]
async fn rel_15_an_identity_outlives_whoever_had_it_renewed() {
    let folder = ScannedFolder::new();
    let vault = Vault::open(VaultOptions {
        storage: StorageChoice::File,
        ..VaultOptions::new(folder.path())
    });
    let idp = Authority::start(AuthoritySettings {
        refresh_id_tokens: true,
        ..idp_settings(&[])
    });
    let store = Arc::new(IdentityStore::new(vault));
    let web = WebClient::trusted(Http::default());
    let provider = IdentityProvider::new(settings(&idp), web, Arc::clone(&store));
    let person = Person::default();
    let mut identity = provider
        .identity(IdpLoginMethod::Browser(&person))
        .await
        .unwrap();
    let first = identity.refresh.clone().expect("it rotates");
    identity.expires_at = 0;
    store.write(provider.settings(), &identity).await.unwrap();

    let held = idp.hold("/token");
    tokio::select! {
        outcome = provider.identity(IdpLoginMethod::StoredOnly) => panic!("{outcome:?}"),
        () = is_sent(&idp) => {}
    }
    drop(held);
    let renewed = provider.identity(IdpLoginMethod::StoredOnly).await.unwrap();
    assert_ne!(renewed.refresh, Some(first));
    let kept = store.read(provider.settings()).await.unwrap();
    assert_eq!(kept, Some(renewed));
    assert_eq!(refreshes(&idp), 1);
    assert_eq!(idp.report().families_revoked, 0);
}
