//! Finding the secrets that a definition names: in the vault, in a file, by a command.
//!
//! Owns the lookup, which happens when a connection or a login is made and never before, and what
//! it may cost. No message holds a value, or what a command printed.
//! Does not own: who may name what (`toolway-config`).

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use toolway_transport::OpenOptions;
use toolway_transport::program::{self, Invocation, ProgramError, ProgramLimits, ProgramRun};
use toolway_types::text::spelled_out;
use toolway_types::{
    OauthSpec, ReferenceKind, Secret, SecretReference, ServerSpec, ShieldMode, WorkingDirectory,
};

use crate::vault::{Vault, VaultError, VaultKey};

/// How long a command may take.
const COMMAND_TIME: Duration = Duration::from_secs(10);

/// More than any server takes as a header or a variable.
const LONGEST: usize = 64 * 1024;

/// Why a secret is not there.
#[derive(Debug, thiserror::Error)]
#[error("`{place}`{} needs `{reference}`: {why}", InFile(.file.as_deref()))]
pub struct ReferenceError {
    /// The part of the definition that needs it.
    pub place: String,
    /// The file that the definition is in.
    pub file: Option<PathBuf>,
    /// The reference, as it is written.
    pub reference: String,
    /// Where it looks.
    pub kind: ReferenceKind,
    /// What is the matter.
    #[source]
    pub why: ReferenceFault,
}

/// Says in which file something stands. Its name may hold anything, a line end included.
struct InFile<'a>(Option<&'a Path>);

impl fmt::Display for InFile<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(file) => write!(formatter, " in {}", spelled_out(&file.to_string_lossy())),
            None => Ok(()),
        }
    }
}

/// What is the matter with a reference.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceFault {
    /// Nothing of this name is in the vault.
    #[error("the vault has no such secret; put it there with `toolway vault set {name}`")]
    NotInVault {
        /// The name.
        name: String,
    },
    /// The vault cannot give it.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The file cannot be read.
    #[error("the file cannot be read: {0}")]
    File(io::Error),
    /// The command did not come to an end of its own.
    #[error("the command failed: {0}")]
    Command(#[from] ProgramError),
    /// The command says that it failed.
    #[error("the command ended with {0}")]
    Status(std::process::ExitStatus),
    /// There is nothing.
    #[error("it is empty")]
    Empty,
    /// It cannot be a header or a variable.
    #[error("it is no single line of text of at most {LONGEST} bytes")]
    NotALine,
    /// It would lead to another place of the server.
    #[error("a name of dots only cannot stand in an address")]
    NotAName,
    /// Policy forbids the address that it makes; the words complete the sentence "it is …".
    #[error("with its value the address is {0}")]
    Denied(String),
    /// The host has nothing to look secrets up in.
    #[error("this program looks up no secrets")]
    Nowhere,
}

/// Looks secrets up.
#[derive(Clone)]
pub struct ReferenceResolver {
    /// Where named ones are.
    pub vault: Vault,
    /// What commands get of the host's own environment.
    pub inherited: Arc<BTreeMap<String, Secret>>,
    /// Where commands run.
    pub cwd: WorkingDirectory,
}

impl fmt::Debug for ReferenceResolver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ReferenceResolver")
            .field("vault", &self.vault)
            .finish_non_exhaustive()
    }
}

impl ReferenceResolver {
    /// A definition with all its secrets in place, and those secrets in every spelling that they
    /// are sent in. What only a login needs is not looked up.
    pub async fn resolve(
        &self,
        spec: &ServerSpec,
        options: &OpenOptions,
    ) -> Result<(ServerSpec, Vec<Secret>), ReferenceError> {
        let values = self.all(&spec.references, options).await?;
        let spelled = spec.references.iter().zip(&values);
        let spelled = spelled.flat_map(|(reference, value)| reference.spellings(value));
        let filled = spec.with_secrets(&values);
        match denied(spec, &filled) {
            Some(error) => Err(error),
            None => Ok((filled, spelled.collect())),
        }
    }

    /// The settings of a login with all their secrets in place.
    pub async fn resolve_login(
        &self,
        spec: &OauthSpec,
        options: &OpenOptions,
    ) -> Result<OauthSpec, ReferenceError> {
        let values = self.all(&spec.references, options).await?;
        Ok(spec.with_secrets(&values))
    }

    /// A text with the values of its references.
    pub async fn fill(
        &self,
        text: &Secret,
        references: &[SecretReference],
        options: &OpenOptions,
    ) -> Result<Secret, ReferenceError> {
        let values = self.all(references, options).await?;
        Ok(text.with_secrets(references, &values))
    }

    async fn all(
        &self,
        references: &[SecretReference],
        options: &OpenOptions,
    ) -> Result<Vec<Secret>, ReferenceError> {
        let mut values = Vec::new();
        for reference in references {
            values.push(self.find(reference, options).await?);
        }
        Ok(values)
    }

    /// The value of one reference.
    pub async fn find(
        &self,
        reference: &SecretReference,
        options: &OpenOptions,
    ) -> Result<Secret, ReferenceError> {
        let value = self.look_up(reference, options).await;
        value.map_err(|why| reference_error(reference, why))
    }

    async fn look_up(
        &self,
        reference: &SecretReference,
        options: &OpenOptions,
    ) -> Result<Secret, ReferenceFault> {
        let target = &reference.target;
        let value = match reference.kind {
            ReferenceKind::Keychain => {
                let found = self.vault.read(&VaultKey::named(target)).await?;
                found.ok_or_else(|| ReferenceFault::NotInVault {
                    name: target.clone(),
                })?
            }
            ReferenceKind::File => read_file(target.into()).await?,
            ReferenceKind::Command => self.run(target, options).await?,
        };
        let line = value.expose().trim_end_matches(['\r', '\n']);
        if line.is_empty() {
            return Err(ReferenceFault::Empty);
        }
        if line.len() > LONGEST || line.contains(['\0', '\r', '\n']) {
            return Err(ReferenceFault::NotALine);
        }
        if reference.is_in_address() && line.bytes().all(|byte| byte == b'.') {
            return Err(ReferenceFault::NotAName);
        }
        Ok(Secret::new(line))
    }

    async fn run(&self, line: &str, options: &OpenOptions) -> Result<Secret, ReferenceFault> {
        let program = ProgramRun {
            invocation: Invocation::Line(line.to_owned()),
            stdin: Vec::new(),
            inherited: Arc::clone(&self.inherited),
            env: BTreeMap::new(),
            cwd: self.cwd.clone(),
            // The user's own words, in the user's own file.
            shield: ShieldMode::Off,
            limits: ProgramLimits {
                time: COMMAND_TIME,
                stdout: LONGEST + 2,
                stderr: 0,
            },
        };
        let finished = program::run(program, options).await?;
        if !finished.status.success() {
            return Err(ReferenceFault::Status(finished.status));
        }
        text(finished.stdout)
    }
}

/// The error of a host that has nothing to look secrets up in.
pub fn no_resolver_error(reference: &SecretReference) -> ReferenceError {
    reference_error(reference, ReferenceFault::Nowhere)
}

fn reference_error(reference: &SecretReference, why: ReferenceFault) -> ReferenceError {
    ReferenceError {
        place: reference.place.clone(),
        file: reference.file.clone(),
        reference: reference.to_string(),
        kind: reference.kind,
        why,
    }
}

/// Why policy forbids a definition with its secrets: it was asked before they were known, and a
/// value can hold a path.
fn denied(spec: &ServerSpec, filled: &ServerSpec) -> Option<ReferenceError> {
    let mut references = spec.references.iter();
    let reference = references.find(|reference| reference.is_in_address())?;
    let remote = filled.transport.remote()?;
    let why = remote.rules.admits(&remote.url).err()?;
    Some(reference_error(
        reference,
        ReferenceFault::Denied(why.to_owned()),
    ))
}

async fn read_file(path: PathBuf) -> Result<Secret, ReferenceFault> {
    let read = tokio::task::spawn_blocking(move || {
        let mut options = std::fs::OpenOptions::new();
        // A pipe must not make us wait for its writer.
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = options.read(true).custom_flags(nonblocking).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no plain file"));
        }
        let mut bytes = Vec::new();
        file.take(LONGEST as u64 + 3).read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    let read = read
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
    text(read.map_err(ReferenceFault::File)?)
}

fn text(bytes: Vec<u8>) -> Result<Secret, ReferenceFault> {
    let text = String::from_utf8(bytes).map_err(|_| ReferenceFault::NotALine)?;
    Ok(Secret::new(text))
}
