//! The gateway's own token: the one that whoever can read its file may show.
//!
//! Owns making it once, however many processes start at a time, and checking what is shown. The file
//! is this user's alone, 0600; a user may put a token of their own there. Tokens for others, by name,
//! are `named_tokens.rs`.

use std::fmt;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::CWD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use toolway_files::{private_file, state_file};
use toolway_types::Secret;

use crate::random::{self, NoRandom};

/// What a token that is made here begins with.
pub const PREFIX: &str = "twg_";

/// How many random bytes it has.
const RANDOM_BYTES: usize = 32;

/// The shortest token that is taken from a file: 128 bits in base64.
const SHORTEST: usize = 22;

/// The longest.
const LONGEST: usize = 1024;

/// How long is waited for another process that makes one.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum GatewayTokenError {
    /// Its file may be read by others.
    #[error("`{}` may be read by others, so that its token is not used", .0.display())]
    Open(PathBuf),
    /// Its file holds something else.
    #[error(
        "`{}` holds no token: one line of {SHORTEST} to {LONGEST} letters, digits and signs",
        .0.display()
    )]
    Malformed(PathBuf),
    /// Its file cannot be read or written, or is another user's.
    #[error("`{}` cannot be used: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is nothing to make one of.
    #[error(transparent)]
    Random(#[from] NoRandom),
}

/// A token that opens the whole gateway.
#[derive(Clone)]
pub struct GatewayToken {
    token: Secret,
    digest: [u8; 32],
}

impl GatewayToken {
    /// The token in this file, which is made when it is absent.
    pub fn load_or_create(path: &Path) -> Result<Self, GatewayTokenError> {
        if let Some(token) = Self::load(path)? {
            return Ok(token);
        }
        let fresh = format!("{PREFIX}{}\n", random::word(RANDOM_BYTES)?);
        let made = state_file::replace_within(path, LOCK_PATIENCE, || {
            // Another process may have been faster.
            Ok((!path.try_exists()?).then_some(fresh))
        });
        made.map_err(|error| unusable(path, error))?;
        match Self::load(path)? {
            Some(token) => Ok(token),
            None => Err(unusable(path, io::ErrorKind::NotFound.into())),
        }
    }

    /// The token in this file, if it is there.
    pub fn load(path: &Path) -> Result<Option<Self>, GatewayTokenError> {
        let file = match private_file::open_own(CWD, path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(path, error)),
        };
        let metadata = file.metadata().map_err(|error| unusable(path, error))?;
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(GatewayTokenError::Open(path.to_owned()));
        }
        let mut text = String::new();
        let read = file.take(2 * LONGEST as u64).read_to_string(&mut text);
        read.map_err(|error| unusable(path, error))?;
        let token = text.trim();
        let is_token = (SHORTEST..=LONGEST).contains(&token.len())
            && token.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_token {
            return Err(GatewayTokenError::Malformed(path.to_owned()));
        }
        Ok(Some(Self {
            digest: Sha256::digest(token).into(),
            token: Secret::new(token),
        }))
    }

    /// The token itself, for whoever connects on behalf of this user.
    pub fn token(&self) -> &Secret {
        &self.token
    }

    /// Whether this is it. How long that takes depends on what is shown, and not on the token.
    pub fn check(&self, presented: &str) -> bool {
        if presented.len() > LONGEST {
            return false;
        }
        let presented: [u8; 32] = Sha256::digest(presented).into();
        presented.ct_eq(&self.digest).into()
    }
}

impl fmt::Debug for GatewayToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("GatewayToken")
    }
}

fn unusable(path: &Path, error: io::Error) -> GatewayTokenError {
    GatewayTokenError::File {
        path: path.to_owned(),
        error,
    }
}
