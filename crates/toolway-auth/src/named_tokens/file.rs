//! The file of named tokens.
//!
//! Owns its format, how it is read and changed, and how it is noticed that another process changed
//! it. It holds digests only. Every change is made under a lock and replaces the file as a whole, so
//! a file that is looked at again is another one on the disk.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::CWD;
use serde::{Deserialize, Serialize};
use toolway_files::{private_file, state_file};

use super::{NamedToken, NamedTokenError, mark_of};

/// No file of ours is longer.
const LONGEST: u64 = 1024 * 1024;

/// How long is waited for another process that writes.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// Why no token of a file is taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenFileFault {
    /// It is not this user's alone.
    #[error("`{}` may be read by others, so that no token in it is taken", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be read, or must not be: it may be another user's, or no file at all.
    #[error("`{}` cannot be read, so that no token in it is taken: {why}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// It cannot be understood.
    #[error("`{}` is no file of tokens, so that none is taken: {why}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

impl TokenFileFault {
    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Open { path } | Self::Unreadable { path, .. } | Self::Malformed { path, .. } => {
                path
            }
        }
    }
}

/// How a file looks from outside: another look is another content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileStamp {
    Absent,
    /// The system does not say.
    Unknown,
    There {
        place: (u64, u64),
        size: u64,
        written: (i64, i64),
        /// Also when owner or mode changed.
        changed: (i64, i64),
    },
}

impl FileStamp {
    pub(super) fn of(path: &Path) -> Self {
        match path.symlink_metadata() {
            Ok(found) => Self::There {
                place: (found.dev(), found.ino()),
                size: found.size(),
                written: (found.mtime(), found.mtime_nsec()),
                changed: (found.ctime(), found.ctime_nsec()),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::Absent,
            Err(_) => Self::Unknown,
        }
    }
}

/// A token as the file has it.
#[derive(Debug, Clone)]
pub(super) struct KeptToken {
    /// SHA-256 of the token.
    pub(super) digest: [u8; 32],
    pub(super) token: NamedToken,
}

/// What a file holds.
pub(super) struct TokenFile {
    pub(super) tokens: Vec<KeptToken>,
    /// The file that this was read from.
    pub(super) file: Option<File>,
}

/// A key that is not known may say that less is allowed, so a file with one is not understood.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFile {
    tokens: Vec<WrittenToken>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenToken {
    name: String,
    /// SHA-256 of the token, in hexadecimal digits.
    digest: String,
    profile: Option<String>,
    created: u64,
    expires: Option<u64>,
}

impl TokenFile {
    /// What stands in the file; nothing while it is absent.
    pub(super) fn read(path: &Path) -> Result<Self, TokenFileFault> {
        let unreadable = |error: io::Error| TokenFileFault::Unreadable {
            path: path.to_owned(),
            why: error.to_string(),
        };
        let mut file = match private_file::open_own(CWD, path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    tokens: Vec::new(),
                    file: None,
                });
            }
            Err(error) => return Err(unreadable(error)),
        };
        let mode = file.metadata().map_err(unreadable)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(TokenFileFault::Open {
                path: path.to_owned(),
            });
        }
        let mut text = String::new();
        let read = (&mut file).take(LONGEST).read_to_string(&mut text);
        read.map_err(unreadable)?;
        let malformed = |why: String| TokenFileFault::Malformed {
            path: path.to_owned(),
            why,
        };
        let written: WrittenFile =
            serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        let mut tokens = Vec::with_capacity(written.tokens.len());
        for token in written.tokens {
            let mut digest = [0; 32];
            hex::decode_to_slice(&token.digest, &mut digest).map_err(|_| {
                malformed(format!(
                    "the digest of `{}` is none",
                    token.name.escape_debug()
                ))
            })?;
            let token = NamedToken {
                name: token.name,
                profile: token.profile,
                created: token.created,
                expires: token.expires,
                mark: mark_of(&digest),
            };
            tokens.push(KeptToken { digest, token });
        }
        let file = Some(file);
        Ok(Self { tokens, file })
    }

    /// Changes what stands there, as it is when nobody else writes. A file that cannot be used stays
    /// as it is.
    pub(super) fn change<T>(
        path: &Path,
        change: impl FnOnce(&mut Vec<KeptToken>) -> Result<T, NamedTokenError>,
    ) -> Result<T, NamedTokenError> {
        let mut outcome = None;
        let replaced = state_file::replace_within(path, LOCK_PATIENCE, || {
            let changed = Self::read(path)
                .map_err(NamedTokenError::from)
                .and_then(|read| {
                    let mut tokens = read.tokens;
                    let made = change(&mut tokens)?;
                    Ok((made, tokens))
                });
            match changed {
                Ok((made, tokens)) => {
                    outcome = Some(Ok(made));
                    Ok(Some(written(tokens)?))
                }
                Err(error) => {
                    outcome = Some(Err(error));
                    Ok(None)
                }
            }
        });
        let unwritten = |error| NamedTokenError::Write {
            path: path.to_owned(),
            error,
        };
        match (replaced, outcome) {
            (Ok(()), Some(outcome)) => outcome,
            (Err(error), _) => Err(unwritten(error)),
            (Ok(()), None) => Err(unwritten(io::ErrorKind::Other.into())),
        }
    }
}

fn written(tokens: Vec<KeptToken>) -> io::Result<String> {
    let tokens = tokens.into_iter().map(|kept| WrittenToken {
        name: kept.token.name,
        digest: hex::encode(kept.digest),
        profile: kept.token.profile,
        created: kept.token.created,
        expires: kept.token.expires,
    });
    let file = WrittenFile {
        tokens: tokens.collect(),
    };
    Ok(serde_json::to_string_pretty(&file)? + "\n")
}
