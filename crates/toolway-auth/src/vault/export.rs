//! Carrying a vault elsewhere: one text with everything in it, sealed or plain.
//!
//! Owns the format. A sealed one is opened by its passphrase and nothing else; the salt of the key
//! stands in its first line.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use toolway_types::Secret;

use super::file::{self, Sealer};
use super::{Vault, VaultError, VaultKey};

/// The first word of a sealed export.
const SEALED: &str = "toolway-export-1";

/// What the text is bound to.
const ABOUT: &str = "toolway export";

/// The most that is read back, in bytes.
pub const LONGEST: usize = 64 * 1024 * 1024;

#[derive(Serialize, Deserialize)]
struct ExportDocument {
    secrets: Vec<ExportedSecret>,
}

#[derive(Serialize, Deserialize)]
struct ExportedSecret {
    #[serde(flatten)]
    key: VaultKey,
    #[serde(with = "crate::secret")]
    secret: Secret,
}

/// Why an export cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The vault could not.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// It is sealed, and the passphrase is missing or another one.
    #[error("it is sealed with another passphrase, or damaged")]
    Passphrase,
    /// It is none of ours.
    #[error("it is no export of a vault")]
    NotOurs,
    /// The machine cannot seal.
    #[error("it could not be sealed: {0}")]
    Seal(io::Error),
}

impl Vault {
    /// Everything, sealed when there is a passphrase. Gives the number of secrets too.
    pub async fn export(
        &self,
        passphrase: Option<&Secret>,
    ) -> Result<(Secret, usize), ExportError> {
        let mut secrets = Vec::new();
        for listed in self.list().await? {
            if let Some(secret) = self.read(&listed.key).await? {
                let key = listed.key;
                secrets.push(ExportedSecret { key, secret });
            }
        }
        let count = secrets.len();
        let text = serde_json::to_string_pretty(&ExportDocument { secrets });
        let text = text.map_err(|error| ExportError::Seal(error.into()))?;
        let Some(passphrase) = passphrase else {
            return Ok((Secret::new(text + "\n"), count));
        };
        let salt = file::random().map_err(ExportError::Seal)?;
        let sealer = derive(passphrase.clone(), salt.clone()).await?;
        let body = file::close(&sealer, ABOUT, &text).map_err(ExportError::Seal)?;
        let text = format!("{SEALED} {salt}\n{}\n", STANDARD.encode(body));
        Ok((Secret::new(text), count))
    }

    /// Takes everything from an export, in place of what has the same key. Gives how many.
    pub async fn import(
        &self,
        text: &Secret,
        passphrase: Option<&Secret>,
    ) -> Result<usize, ExportError> {
        let text = text.expose();
        let content: ExportDocument = match text
            .split_once('\n')
            .map(|(head, body)| (head, body.trim()))
        {
            Some((head, body)) if head.starts_with(SEALED) => {
                let salt = head[SEALED.len()..].trim().to_owned();
                let passphrase = passphrase.ok_or(ExportError::Passphrase)?;
                let sealer = derive(passphrase.clone(), salt).await?;
                let bytes = STANDARD.decode(body).map_err(|_| ExportError::NotOurs)?;
                let open = file::open(&sealer, ABOUT, &bytes).ok_or(ExportError::Passphrase)?;
                serde_json::from_slice(&open).map_err(|_| ExportError::NotOurs)?
            }
            _ => serde_json::from_str(text).map_err(|_| ExportError::NotOurs)?,
        };
        for item in &content.secrets {
            self.write(&item.key, &item.secret).await?;
        }
        Ok(content.secrets.len())
    }
}

/// Takes a while, on purpose.
async fn derive(passphrase: Secret, salt: String) -> Result<Sealer, ExportError> {
    let work = move || file::derive(&passphrase, &salt);
    let derived = tokio::task::spawn_blocking(work).await;
    derived
        .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
        .map_err(ExportError::Seal)
}
