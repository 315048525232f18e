//! The vault from outside: durability and locking.

mod child;
mod files;
mod keychain;
#[expect(
    clippy::unused_self,
    clippy::unused_async,
    clippy::used_underscore_binding,
    reason = "the macro of the bus wants methods of this shape, whatever they need"
)]
mod secret_service;
mod turns;

use std::path::Path;

use super::{SecretKind, StorageChoice, Vault, VaultKey, VaultOptions};

/// A vault that does not look for a keychain.
fn file_vault(folder: &Path) -> Vault {
    Vault::open(VaultOptions {
        storage: StorageChoice::File,
        ..VaultOptions::new(folder)
    })
}

fn login(server: &str) -> VaultKey {
    VaultKey {
        kind: SecretKind::Login,
        server: server.to_owned(),
        definition: "0123".to_owned(),
        issuer: "https://issuer.example".to_owned(),
        resource: "https://mcp.example/".to_owned(),
        account: "default".to_owned(),
    }
}
