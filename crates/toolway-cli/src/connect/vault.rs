//! Where this program keeps secrets: what variables and settings say of the vault.
//!
//! Owns that a run opens it once. What is in it is the affair of `toolway_auth::vault`.

use std::path::PathBuf;

use clap::Args;
use toolway_auth::vault::{StorageChoice, Vault, VaultOptions};
use toolway_types::Secret;

use crate::context::Context;
use crate::report::Report;

/// The flag of commands that save secrets.
#[derive(Debug, Args)]
pub(crate) struct StorageArgs {
    /// Save in plain text, in a file that whoever can read your home can read too
    #[arg(long)]
    pub(crate) insecure_storage: bool,
}

/// Where secrets are kept. Opened on first use and once: all of a run ask the same vault.
pub(crate) fn vault(context: &Context) -> Vault {
    context.vault.get_or_init(|| open(context)).clone()
}

/// Where the files of the vault lie: beside the settings, and no shielded server looks into it.
pub(super) fn folder(context: &Context) -> PathBuf {
    context.environment.config_home().join("vault")
}

fn open(context: &Context) -> Vault {
    let environment = &context.environment;
    let passphrase = environment.var("TOOLWAY_VAULT_KEY");
    let storage = match environment.var("TOOLWAY_VAULT") {
        None | Some("" | "any") => StorageChoice::Any,
        Some("keychain") => StorageChoice::Keychain,
        Some("file") => StorageChoice::File,
        Some(other) => {
            context.warn(format!(
                "`TOOLWAY_VAULT` is `{other}`, which is none of any, keychain and file"
            ));
            StorageChoice::Any
        }
    };
    Vault::open(VaultOptions {
        storage,
        passphrase: passphrase.filter(|it| !it.is_empty()).map(Secret::from),
        insecure: context.insecure_storage,
        ..VaultOptions::new(folder(context))
    })
}

/// Whether secrets may be saved in plain text, as this run was told to.
pub(crate) fn require_insecure_storage(context: &Context) -> Result<(), Report> {
    let plan = context.plan();
    if let Some(origin) = &plan.insecure_storage_off {
        let message = format!("`--insecure-storage` is forbidden by `insecureStorage` ({origin})");
        return Err(Report::refused(message)
            .hint("leave the flag out: secrets go to the keychain or an encrypted file"));
    }
    if let Some(blocked) = &plan.blocked {
        // What it forbids is not known.
        return Err(Report::from(blocked.clone()));
    }
    if context.environment.var("TOOLWAY_VAULT") == Some("keychain") {
        let message = "`--insecure-storage` contradicts `TOOLWAY_VAULT`, which is `keychain`";
        return Err(Report::usage(message).hint("leave out one of them"));
    }
    Ok(())
}
