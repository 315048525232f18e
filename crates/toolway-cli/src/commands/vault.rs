//! `toolway vault`: what secrets there are, and putting one there, taking one away, carrying all.
//!
//! Owns the words and how a secret is typed. No command prints a secret; one that writes them to
//! a file in plain text must be told so. Where they are kept is `toolway_auth::vault`.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use toolway::rows::{secret_row, shown_time};
use toolway_auth::vault::export::{self, ExportError};
use toolway_auth::vault::{SecretKind, Vault, VaultBackend, VaultEntry, VaultKey};
use toolway_rows::{ExportedSecrets, ImportedSecrets, RemovedSecrets, SavedSecret, SecretListing};
use toolway_types::Secret;

use super::login::until_given_up;
use crate::connect::{StorageArgs, block_on, vault};
use crate::context::Context;
use crate::elicit;
use crate::exit::Exit;
use crate::report::{Outcome, Report, unwritable};

/// The longest secret that can be typed, in bytes.
const LONGEST: u64 = 64 * 1024;

/// Show, set, remove and export secrets and logins
///
/// Secrets lie in the keychain of the system, or where there is none that answers in an encrypted
/// file. `TOOLWAY_VAULT` chooses: `any` (the default), `keychain` or `file`. The file is sealed
/// with the passphrase in `TOOLWAY_VAULT_KEY`, and without one with a key that lies beside it,
/// which protects against copying the one file, not against someone who can read your home. With
/// `--insecure-storage` a secret is saved in plain text, unless the settings' `insecureStorage`
/// is `false`; `vault list` says where each lies.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway vault set github-token
  pass show github | toolway vault set github-token
  toolway vault list
  toolway vault remove github-token
  toolway vault remove --server github
  toolway vault export backup.sealed")]
pub(crate) struct VaultArgs {
    #[command(subcommand)]
    command: VaultCommand,
}

#[derive(Debug, Subcommand)]
enum VaultCommand {
    /// Show what is there, without any secret
    List(ListArgs),
    /// Put a secret there for `${keychain:NAME}`, from stdin or typed without being shown
    Set(SetArgs),
    /// Take a secret away, or what is there for a server or an authorization server
    Remove(RemoveArgs),
    /// Write everything to a new file, sealed with a passphrase from stdin or typed
    Export(ExportArgs),
    /// Take everything from a file that `export` wrote
    Import(ImportArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct SetArgs {
    /// The name, as in `${keychain:NAME}`
    #[arg(value_parser = name)]
    name: String,

    #[command(flatten)]
    storage: StorageArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct RemoveArgs {
    /// The name of the secret
    #[arg(required_unless_present_any = ["server", "issuer"])]
    name: Option<String>,

    /// Everything that is there for this server, instead
    #[arg(long, value_name = "SERVER", conflicts_with = "name")]
    server: Option<String>,

    /// Everything that this authorization server gave, instead: logins and clients
    #[arg(long, value_name = "URL", conflicts_with_all = ["name", "server"])]
    issuer: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ExportArgs {
    /// The file, which must not exist yet
    file: PathBuf,

    /// Write the secrets in plain text. Whoever reads the file has them
    #[arg(long)]
    show_secrets: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ImportArgs {
    /// The file
    file: PathBuf,

    #[command(flatten)]
    storage: StorageArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl VaultArgs {
    /// Whether what is saved is to lie there in plain text.
    pub(crate) fn insecure_storage(&self) -> bool {
        match &self.command {
            VaultCommand::Set(args) => args.storage.insecure_storage,
            VaultCommand::Import(args) => args.storage.insecure_storage,
            _ => false,
        }
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &VaultArgs) -> Outcome {
    let vault = vault(context);
    match &args.command {
        VaultCommand::List(args) => list(context, &vault, args),
        VaultCommand::Set(args) => set(context, &vault, args),
        VaultCommand::Remove(args) => remove(context, &vault, args),
        VaultCommand::Export(args) => write_export(context, &vault, args),
        VaultCommand::Import(args) => read_export(context, &vault, args),
    }
}

fn name(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || text.len() > 256 || text.contains(['{', '}']) {
        return Err("a name has 1 to 256 characters, and no braces".to_owned());
    }
    if text.chars().any(char::is_control) {
        return Err("a name is one line of text".to_owned());
    }
    Ok(text.to_owned())
}

fn list(context: &Context, vault: &Vault, args: &ListArgs) -> Outcome {
    let listed = block_on(async { Ok(vault.list().await?) })?;
    if args.json {
        let secrets = listed.iter().map(secret_row).collect();
        return context.json(&SecretListing { secrets });
    }
    if listed.is_empty() {
        context.say("the vault is empty");
        return Ok(Exit::Success);
    }
    let head = ["KIND", "NAME", "ACCOUNT", "ISSUER", "SAVED", "WHERE"];
    context.output.table(&head, listed.iter().map(row))?;
    let plain = listed
        .iter()
        .filter(|listed| listed.backend == VaultBackend::PlainFile)
        .count();
    if plain > 0 {
        context.say(format!(
            "note: {plain} of {} in {}",
            listed.len(),
            VaultBackend::PlainFile.protects()
        ));
    }
    Ok(Exit::Success)
}

fn row(listed: &VaultEntry) -> Vec<String> {
    let key = &listed.key;
    let (name, account) = match key.kind {
        SecretKind::Named => (key.account.as_str(), ""),
        _ => (key.server.as_str(), key.account.as_str()),
    };
    let or_dash = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
    vec![
        key.kind.as_str().to_owned(),
        or_dash(name),
        or_dash(account),
        or_dash(&key.issuer),
        shown_time(listed.saved_at),
        listed.backend.as_str().to_owned(),
    ]
}

fn set(context: &Context, vault: &Vault, args: &SetArgs) -> Outcome {
    let what = format!("saving `{}`", args.name);
    let secret = ask(context, &what, &format!("Secret `{}`: ", args.name))?;
    let key = VaultKey::named(&args.name);
    let backend = block_on(async {
        vault.write(&key, &secret).await?;
        let listed = vault.list().await?;
        let found = listed.iter().find(|listed| listed.key == key);
        let backend = found.map_or(VaultBackend::Keychain, |listed| listed.backend);
        if !context.setup.keeps_in_plain_text()
            && backend != VaultBackend::Keychain
            && let Some(trouble) = vault.keychain_trouble().await
        {
            context.say(format!("note: {trouble}"));
        }
        Ok(backend)
    })?;
    if args.json {
        context.output.json(&SavedSecret {
            name: args.name.clone(),
            kept_in: backend.as_str().into(),
        })?;
    } else {
        context.say(format!(
            "saved `{}` in {}\nhint: use it as `${{keychain:{}}}` in `env` or `headers` of a server",
            args.name,
            backend.protects(),
            args.name
        ));
    }
    Ok(Exit::Success)
}

fn remove(context: &Context, vault: &Vault, args: &RemoveArgs) -> Outcome {
    let is_wanted = |key: &VaultKey| match (&args.name, &args.server, &args.issuer) {
        (Some(name), ..) => key.kind == SecretKind::Named && key.account == *name,
        (_, Some(server), _) => key.kind != SecretKind::Named && key.server == *server,
        (.., Some(issuer)) => key.kind != SecretKind::Named && key.issuer == *issuer,
        (None, None, None) => false,
    };
    let removed = block_on(async {
        let mut removed = Vec::new();
        for listed in vault.list().await? {
            if is_wanted(&listed.key) {
                vault.remove(&listed.key).await?;
                removed.push(listed.key);
            }
        }
        Ok(removed)
    })?;
    if removed.is_empty() {
        let what = match (&args.name, args.server.as_ref().or(args.issuer.as_ref())) {
            (Some(name), _) => format!("the vault has no secret `{name}`"),
            (None, whose) => {
                let whose = whose.map_or("", String::as_str);
                format!("the vault has nothing for `{whose}`")
            }
        };
        return Err(Report::configuration(what).hint("see what there is with `toolway vault list`"));
    }
    if args.json {
        let removed = removed.len();
        return context.json(&RemovedSecrets { removed });
    }
    for key in &removed {
        context.say(format!("removed {key}"));
    }
    Ok(Exit::Success)
}

fn write_export(context: &Context, vault: &Vault, args: &ExportArgs) -> Outcome {
    let passphrase = if args.show_secrets {
        None
    } else {
        Some(ask(context, "the export", "Passphrase for the file: ")?)
    };
    let written = block_on(async {
        let written = vault.export(passphrase.as_ref()).await;
        written.map_err(|error| unusable(&args.file, error))
    });
    let (text, count) = written?;
    create(&args.file, text.expose()).map_err(|error| {
        let message = format!("`{}` cannot be written: {error}", args.file.display());
        let hint = match error.kind() {
            io::ErrorKind::AlreadyExists => "name a file that does not exist yet".to_owned(),
            io::ErrorKind::NotFound => "name a file in a directory that exists".to_owned(),
            why => unwritable(&args.file, why),
        };
        Report::configuration(message).hint(hint)
    })?;
    if args.json {
        return context.json(&ExportedSecrets {
            file: args.file.display().to_string(),
            secrets: count,
            sealed: passphrase.is_some(),
        });
    }
    let how = if passphrase.is_some() {
        "sealed with the passphrase"
    } else {
        "in plain text: whoever reads the file has them"
    };
    let plural = if count == 1 { "" } else { "s" };
    context.say(format!(
        "wrote {count} secret{plural} to `{}`, {how}",
        args.file.display()
    ));
    Ok(Exit::Success)
}

/// A new file that only the user can read. One that is there stays.
fn create(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all());
    written.inspect_err(|_| {
        // Half an export is none.
        let _ = std::fs::remove_file(path);
    })
}

fn read_export(context: &Context, vault: &Vault, args: &ImportArgs) -> Outcome {
    let unreadable = |error: io::Error| {
        let message = format!("`{}` cannot be read: {error}", args.file.display());
        Report::configuration(message).hint("name a file that `toolway vault export` wrote")
    };
    let file = std::fs::File::open(&args.file).map_err(unreadable)?;
    let mut text = String::new();
    file.take(export::LONGEST as u64)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    let passphrase = if text.starts_with('{') {
        None
    } else {
        Some(ask(context, "the import", "Passphrase of the file: ")?)
    };
    let text = Secret::new(text);
    let count = block_on(async {
        let taken = vault.import(&text, passphrase.as_ref()).await;
        taken.map_err(|error| unusable(&args.file, error))
    })?;
    if args.json {
        context.output.json(&ImportedSecrets { imported: count })?;
    } else {
        let plural = if count == 1 { "" } else { "s" };
        context.say(format!("took {count} secret{plural}"));
    }
    Ok(Exit::Success)
}

/// Why a file could not be made or taken.
fn unusable(file: &Path, error: ExportError) -> Report {
    let file = file.display();
    match error {
        ExportError::Vault(error) => Report::from(error),
        ExportError::Passphrase => Report::configuration(format!(
            "`{file}` is sealed with another passphrase, or damaged"
        ))
        .hint("try again with the passphrase that it was exported with"),
        ExportError::NotOurs => Report::configuration(format!("`{file}` is no export of a vault"))
            .hint("name a file that `toolway vault export` wrote"),
        ExportError::Seal(error) => Report::from(error),
    }
}

/// A secret from stdin, or typed without being shown.
fn ask(context: &Context, what: &str, question: &str) -> Result<Secret, Report> {
    let text = if context.output.stdin_is_terminal() {
        let asking = elicit::hidden_line(&context.output, question);
        block_on(until_given_up(context, what, asking))?.unwrap_or_default()
    } else {
        let mut text = String::new();
        let read = context
            .output
            .streams()
            .reader()
            .take(LONGEST + 2)
            .read_to_string(&mut text);
        read.map_err(|error| Report::usage(format!("stdin cannot be read: {error}")))?;
        text
    };
    let line = text.trim_end_matches(['\r', '\n']);
    if line.is_empty() {
        return Err(Report::usage("nothing was given")
            .hint("type it, or pipe it in: `pass show x | toolway vault set x`"));
    }
    if line.len() as u64 > LONGEST || line.contains(['\r', '\n', '\0']) {
        let message = format!("it must be one line of at most {LONGEST} bytes");
        return Err(Report::usage(message));
    }
    Ok(Secret::new(line))
}
