//! What is about a terminal in the set-up of a host: what is wrong with it is said, once each.
//!
//! Owns the flag for secrets in plain text and what is said when that is refused. What a host is
//! made of is `toolway::setup`'s.

use clap::Args;
use toolway::auth::StoredLogins;
use toolway::launcher::Launcher;
use toolway::{HostOptions, PlainTextRefused};
use toolway_auth::vault::Vault;
use toolway_types::ServerName;

use crate::context::Context;
use crate::report::Report;

/// The flag of commands that save secrets.
#[derive(Debug, Args)]
pub(crate) struct StorageArgs {
    /// Save in plain text, in a file that whoever can read your home can read too
    #[arg(long)]
    pub(crate) insecure_storage: bool,
}

/// The options every host of this program starts with.
pub(crate) fn host_options(context: &Context) -> HostOptions {
    let (options, findings) = context.setup.host_options();
    context.say_once(findings);
    HostOptions {
        launcher: Launcher::same_program(),
        recorder: context.recorder().cloned(),
        ..options
    }
}

/// Where secrets are kept.
pub(crate) fn vault(context: &Context) -> Vault {
    context.say_once(context.setup.vault_finding());
    context.setup.vault()
}

/// The logins to servers.
pub(crate) fn logins(context: &Context) -> StoredLogins {
    context.say_once(context.setup.vault_finding());
    context.setup.logins()
}

/// Has running processes connect to a server anew.
pub(crate) fn reconnect_elsewhere(context: &Context, server: &str) {
    if let Ok(name) = ServerName::new(server) {
        context.say_findings(&context.setup.reconnect_elsewhere(&name));
    }
}

impl From<PlainTextRefused> for Report {
    fn from(refused: PlainTextRefused) -> Self {
        match refused {
            PlainTextRefused::Forbidden(origin) => Report::refused(format!(
                "`--insecure-storage` is forbidden by `insecureStorage` ({origin})"
            ))
            .hint("leave the flag out: secrets go to the keychain or an encrypted file"),
            PlainTextRefused::Blocked(blocked) => Report::from(*blocked),
            PlainTextRefused::KeychainOnly => Report::usage(
                "`--insecure-storage` contradicts `TOOLWAY_VAULT`, which is `keychain`",
            )
            .hint("leave out one of them"),
        }
    }
}
