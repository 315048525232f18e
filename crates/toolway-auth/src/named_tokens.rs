//! Named tokens: what clients show to the gateway where no issuer makes tokens for it.
//!
//! Owns making, listing, revoking and checking them. A token is random, given out once, and written
//! down nowhere: only its digest is kept, with its name, its profile and its end. The file is
//! `named_tokens/file.rs`. Does not own HTTP, nor what a profile is.
//!
//! Invariants: a check sees what any process changed before it. A file that is not this user's alone,
//! or that cannot be understood, opens nothing. How long a check takes says nothing of any token.

pub mod file;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use sha2::{Digest as _, Sha256};
use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};
use toolway_types::{Secret, nearest};

use crate::clock::unix_now;
use crate::named_tokens::file::{FileStamp, KeptToken, TokenFile};
use crate::random;
pub use file::TokenFileFault;

/// What every named token begins with, so that it is known for one where it does not belong.
pub const PREFIX: &str = "tw_";

/// How many random bytes a token has.
const RANDOM_BYTES: usize = 32;

/// The longest text that is looked at. Ours are shorter.
const LONGEST: usize = 256;

/// The longest name of a token.
const LONGEST_NAME: usize = 64;

/// How many tokens there can be: all of them are looked at in every check.
pub const MOST: usize = 256;

/// What is known of a token, which is never the token itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedToken {
    /// What the owner calls it.
    pub name: String,
    /// The profile that it is bound to. Where there is no such profile, it opens nothing.
    pub profile: Option<String>,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// From when on it opens nothing, in seconds since 1970; never when absent.
    pub expires: Option<u64>,
    /// Tells it from another one that had its name before, and nothing of the token.
    pub mark: String,
}

/// What tells a token from another of its name, by its digest.
fn mark_of(digest: &[u8; 32]) -> String {
    let mut mark = Sha256::new();
    mark.update(b"toolway-token-mark");
    mark.update(digest);
    hex::encode(&mark.finalize()[..8])
}

impl NamedToken {
    /// Whether it is over at this time, in seconds since 1970.
    pub fn is_over(&self, now: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// Why a token cannot be made or revoked.
#[derive(Debug, thiserror::Error)]
pub enum NamedTokenError {
    /// It cannot be called that.
    #[error("`{}` cannot name a token", .0.escape_debug())]
    Name(String),
    /// There is one of that name, perhaps an expired one.
    #[error("there is a token called `{0}` already")]
    Taken(String),
    /// There is none.
    #[error("no token is called `{}`", .name.escape_debug())]
    Unknown {
        /// What was asked for.
        name: String,
        /// The one that was probably meant.
        meant: Option<String>,
    },
    /// There are as many as there can be.
    #[error("there are {MOST} tokens already, and no more are kept")]
    Full,
    /// The file cannot be used as it is.
    #[error(transparent)]
    File(#[from] TokenFileFault),
    /// The file cannot be written.
    #[error("`{}` cannot be written: {error}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// There is nothing to make one of.
    #[error(transparent)]
    Random(#[from] random::NoRandom),
}

/// What tells the time, in seconds since 1970.
type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The named tokens of one file, which other processes may change at any time.
pub struct NamedTokens {
    path: PathBuf,
    clock: Clock,
    known: RwLock<Arc<KnownTokens>>,
}

/// What stood in the file when it looked like this.
struct KnownTokens {
    stamp: FileStamp,
    content: Result<TokenTable, TokenFileFault>,
    /// Held, so that no later file can look like it: its place on the disk is not given away.
    _file: Option<std::fs::File>,
}

#[derive(Default)]
struct TokenTable {
    digests: Vec<TokenDigest>,
    /// In the same order.
    tokens: Vec<Arc<NamedToken>>,
}

impl NamedTokens {
    /// The tokens in this file. There are none while it is absent.
    pub fn open(path: impl Into<PathBuf>) -> Self {
        Self::with_clock(path, unix_now)
    }

    /// The same by another clock, in seconds since 1970.
    pub fn with_clock(
        path: impl Into<PathBuf>,
        clock: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self {
            path: path.into(),
            clock: Arc::new(clock),
            known: RwLock::new(Arc::new(KnownTokens {
                stamp: FileStamp::Absent,
                content: Ok(TokenTable::default()),
                _file: None,
            })),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whose token this is, if it is one that is good now.
    pub fn check(&self, presented: &str) -> Option<Arc<NamedToken>> {
        if presented.len() > LONGEST || !presented.starts_with(PREFIX) {
            return None;
        }
        let presented = TokenDigest::of(presented);
        let known = self.known();
        let table = known.content.as_ref().ok()?;
        let token = table.find(presented)?;
        (!token.is_over((self.clock)())).then(|| Arc::clone(token))
    }

    /// Whether a token that was taken before is still good: neither revoked nor over, nor another one of
    /// its name by now.
    pub fn is_good(&self, token: &NamedToken) -> bool {
        let known = self.known();
        let Ok(table) = &known.content else {
            return false;
        };
        !token.is_over((self.clock)()) && table.tokens.iter().any(|known| **known == *token)
    }

    /// Why no token is taken at all, where that is so.
    pub fn fault(&self) -> Option<TokenFileFault> {
        self.known().content.as_ref().err().cloned()
    }

    /// All of them, by name, the expired ones too.
    pub fn list(&self) -> Result<Vec<Arc<NamedToken>>, TokenFileFault> {
        let known = self.known();
        let table = known.content.as_ref().map_err(Clone::clone)?;
        let mut tokens = table.tokens.clone();
        tokens.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(tokens)
    }

    /// Makes a token of this name. What is given is the token itself, which nobody can get again.
    pub fn add(
        &self,
        name: &str,
        profile: Option<&str>,
        expires: Option<u64>,
    ) -> Result<Secret, NamedTokenError> {
        if !is_name(name) {
            return Err(NamedTokenError::Name(name.to_owned()));
        }
        let text = format!("{PREFIX}{}", random::word(RANDOM_BYTES)?);
        let digest = Sha256::digest(&text).into();
        let kept = KeptToken {
            digest,
            token: NamedToken {
                name: name.to_owned(),
                profile: profile.map(str::to_owned),
                created: (self.clock)(),
                expires,
                mark: mark_of(&digest),
            },
        };
        TokenFile::change(&self.path, |tokens| {
            if tokens.iter().any(|other| other.token.name == name) {
                return Err(NamedTokenError::Taken(name.to_owned()));
            }
            if tokens.len() >= MOST {
                return Err(NamedTokenError::Full);
            }
            tokens.push(kept);
            Ok(())
        })?;
        Ok(Secret::new(text))
    }

    /// Ends a token, in every process that checks it. Gives what it was.
    pub fn revoke(&self, name: &str) -> Result<NamedToken, NamedTokenError> {
        TokenFile::change(&self.path, |tokens| {
            let place = tokens.iter().position(|kept| kept.token.name == name);
            let Some(place) = place else {
                let names = tokens.iter().map(|kept| kept.token.name.as_str());
                return Err(NamedTokenError::Unknown {
                    name: name.to_owned(),
                    meant: nearest(name, names).map(str::to_owned),
                });
            };
            Ok(tokens.remove(place).token)
        })
    }

    /// What stands in the file now. Looking costs one question to the system while it is the same.
    fn known(&self) -> Arc<KnownTokens> {
        let stamp = FileStamp::of(&self.path);
        {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            if known.stamp == stamp {
                return Arc::clone(&known);
            }
        }
        let known = Arc::new(KnownTokens::read(&self.path, stamp));
        let mut held = self.known.write().unwrap_or_else(PoisonError::into_inner);
        *held = Arc::clone(&known);
        known
    }
}

impl fmt::Debug for NamedTokens {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("NamedTokens")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl KnownTokens {
    /// `stamp` is how the file looked before: when it changes while it is read, the next check sees
    /// another one.
    fn read(path: &Path, stamp: FileStamp) -> Self {
        let (content, file) = match TokenFile::read(path) {
            Ok(read) => (Ok(TokenTable::of(read.tokens)), read.file),
            Err(fault) => (Err(fault), None),
        };
        if let Err(fault) = &content {
            tracing::warn!(%fault, "no named token is taken");
        }
        Self {
            stamp,
            content,
            _file: file,
        }
    }
}

impl TokenTable {
    fn of(kept: Vec<KeptToken>) -> Self {
        let mut table = Self::default();
        for KeptToken { digest, token } in kept {
            table.digests.push(TokenDigest::from_bytes(digest));
            table.tokens.push(Arc::new(token));
        }
        table
    }

    /// The token with this digest. Every one is looked at, and none differently from another.
    fn find(&self, presented: TokenDigest) -> Option<&Arc<NamedToken>> {
        let mut found = u32::MAX;
        for (place, digest) in (0_u32..).zip(&self.digests) {
            let differs = (0..4).fold(0, |differs, part| {
                differs | (digest.0[part] ^ presented.0[part])
            });
            found.conditional_assign(&place, differs.ct_eq(&0));
        }
        self.tokens.get(usize::try_from(found).ok()?)
    }
}

/// The SHA-256 of a token, in parts that are compared at once.
#[derive(Clone, Copy)]
struct TokenDigest([u64; 4]);

impl TokenDigest {
    fn of(token: &str) -> Self {
        Self::from_bytes(Sha256::digest(token).into())
    }

    fn from_bytes(bytes: [u8; 32]) -> Self {
        let mut parts = [0; 4];
        for (part, bytes) in parts.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *part = u64::from_ne_bytes(*bytes);
        }
        Self(parts)
    }
}

/// Whether a token can be called that: the name stands in the audit and on command lines.
fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=LONGEST_NAME).contains(&name.len())
        && name.chars().all(is_plain)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}
