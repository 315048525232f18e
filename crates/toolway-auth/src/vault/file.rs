//! Secrets in files of our own: one file for each, sealed.
//!
//! Owns the files, the key that seals them and what to do with a damaged one. Inside a file stands
//! the key it belongs to, so that two files cannot be swapped and the list can be made again. The
//! sealing key is random and lies next to the files, unless a passphrase was handed in: that
//! protects against copying one file, not against reading the folder.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use argon2::Argon2;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key as SealKey, XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use toolway_files::private_file::open_directory;
use toolway_files::state_file::{self, now};
use toolway_types::Secret;

use super::{LONGEST, VaultBackend, VaultError, VaultKey, io_error};

/// The first word of a sealed file, and of one that is not.
const SEALED: &str = "toolway-sealed-1";
const PLAIN: &str = "toolway-plain-1";

/// No file of ours is longer: the secret as a JSON string, where a byte may become six, sealed, in
/// base64, and the key next to it.
const LONGEST_FILE: u64 = (LONGEST * 9) as u64;

/// How long is waited for another process that writes the same file.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// The length of a nonce.
const NONCE: usize = 24;

/// The files, and what seals them.
pub(super) struct SealedFiles {
    folder: PathBuf,
    secrets: PathBuf,
    passphrase: Option<Secret>,
    insecure: bool,
    /// The key that the passphrase leads to, which takes a while to find.
    derived: OnceLock<Sealer>,
}

/// What stands in a file, once it is open.
#[derive(Serialize, Deserialize)]
pub(super) struct SealedRecord {
    pub(super) key: VaultKey,
    pub(super) saved_at: u64,
    secret: String,
}

#[derive(Clone)]
pub(super) struct Sealer {
    key: SealKey,
    /// Tells two keys apart without telling the key.
    mark: String,
}

impl Sealer {
    fn new(key: [u8; 32]) -> Self {
        let mark = hex::encode(&Sha256::digest([b"mark".as_slice(), &key].concat())[..4]);
        Self {
            key: key.into(),
            mark,
        }
    }
}

impl SealedFiles {
    pub(super) fn new(folder: &Path, passphrase: Option<Secret>, insecure: bool) -> Self {
        Self {
            folder: folder.to_owned(),
            secrets: folder.join("secrets"),
            passphrase,
            insecure,
            derived: OnceLock::new(),
        }
    }

    /// What is written from now on.
    pub(super) fn backend(&self) -> VaultBackend {
        match &self.passphrase {
            _ if self.insecure => VaultBackend::PlainFile,
            Some(_) => VaultBackend::FileWithPassphrase,
            None => VaultBackend::FileWithKey,
        }
    }

    fn path(&self, id: &str) -> PathBuf {
        self.secrets.join(id)
    }

    /// Whether there is a file.
    pub(super) fn holds(&self, id: &str) -> bool {
        self.path(id).symlink_metadata().is_ok()
    }

    /// Removes a file, if there is one.
    pub(super) fn forget(&self, id: &str) -> bool {
        std::fs::remove_file(self.path(id)).is_ok()
    }

    /// Writes a file, whole and to the disk.
    pub(super) fn write(
        &self,
        key: &VaultKey,
        secret: &Secret,
    ) -> Result<VaultBackend, VaultError> {
        for folder in [&self.folder, &self.secrets] {
            open_directory(folder).map_err(io_error(folder))?;
        }
        let record = SealedRecord {
            key: key.clone(),
            saved_at: now(),
            secret: secret.expose().to_owned(),
        };
        let path = self.path(&key.id());
        let text = serde_json::to_string(&record)
            .map_err(io::Error::from)
            .map_err(io_error(&path))?;
        let text = match self.backend() {
            VaultBackend::PlainFile => format!("{PLAIN}\n{text}\n"),
            VaultBackend::FileWithPassphrase => {
                let sealer = self.by_passphrase(key)?;
                seal("passphrase", &sealer, key, &text).map_err(io_error(&path))?
            }
            VaultBackend::FileWithKey | VaultBackend::Keychain => {
                let sealer = self.by_key_file(key, true)?;
                seal("key", &sealer, key, &text).map_err(io_error(&path))?
            }
        };
        state_file::replace_within(&path, LOCK_TIMEOUT, || Ok(Some(text)))
            .map_err(io_error(&path))?;
        Ok(self.backend())
    }

    /// Reads a file; nothing when there is none.
    pub(super) fn read(&self, key: &VaultKey) -> Result<Option<Secret>, VaultError> {
        let path = self.path(&key.id());
        let text = match state_file::read(&path, LONGEST_FILE) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            // Not even text.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(self.put_aside(key));
            }
            Err(error) => return Err(io_error(&path)(error)),
        };
        match self.open(key, &text)? {
            Some(record) if record.key == *key => Ok(Some(Secret::new(record.secret))),
            _ => Err(self.put_aside(key)),
        }
    }

    /// Opens what stands in a file; nothing when it is damaged.
    fn open(&self, key: &VaultKey, text: &str) -> Result<Option<SealedRecord>, VaultError> {
        let Some((head, body)) = text.split_once('\n') else {
            return Ok(None);
        };
        if head == PLAIN {
            return Ok(serde_json::from_str(body).ok());
        }
        let mut words = head.split(' ');
        let (Some(SEALED), Some(with), Some(mark), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Ok(None);
        };
        let sealer = match with {
            "passphrase" => {
                let sealer = self.by_passphrase(key)?;
                if sealer.mark != mark {
                    return Err(passphrase(key, true));
                }
                sealer
            }
            "key" => {
                let sealer = self.by_key_file(key, false)?;
                if sealer.mark != mark {
                    return Err(self.wrong_key(key));
                }
                sealer
            }
            _ => return Ok(None),
        };
        Ok(unseal(&sealer, &key.id(), body))
    }

    /// Moves a damaged file out of the way, where it stays.
    fn put_aside(&self, key: &VaultKey) -> VaultError {
        let path = self.path(&key.id());
        match put_aside(&path) {
            Ok(aside) => VaultError::Corrupt {
                what: key.to_string(),
                path,
                aside,
            },
            Err(error) => io_error(&path)(error),
        }
    }

    /// Every file that can be opened, to make the list again.
    pub(super) fn all(&self) -> Vec<(SealedRecord, VaultBackend)> {
        let Ok(folder) = std::fs::read_dir(&self.secrets) else {
            return Vec::new();
        };
        let named = folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        named
            .filter(|name| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .filter_map(|name| {
                let text = state_file::read(&self.path(&name), LONGEST_FILE).ok()?;
                let (head, body) = text.split_once('\n')?;
                let nobody = VaultKey::named(String::new());
                let (record, backend) = if head == PLAIN {
                    (serde_json::from_str(body).ok()?, VaultBackend::PlainFile)
                } else if head.starts_with(&format!("{SEALED} passphrase ")) {
                    let sealer = self.by_passphrase(&nobody).ok()?;
                    (
                        unseal(&sealer, &name, body)?,
                        VaultBackend::FileWithPassphrase,
                    )
                } else {
                    let sealer = self.by_key_file(&nobody, false).ok()?;
                    (unseal(&sealer, &name, body)?, VaultBackend::FileWithKey)
                };
                (record.key.id() == name).then_some((record, backend))
            })
            .collect()
    }

    fn key_path(&self) -> PathBuf {
        self.folder.join("key")
    }

    fn wrong_key(&self, key: &VaultKey) -> VaultError {
        VaultError::WrongKey {
            what: key.to_string(),
            path: self.key_path(),
        }
    }

    /// The random key, made when it is absent and something is to be sealed.
    fn by_key_file(&self, about: &VaultKey, make: bool) -> Result<Sealer, VaultError> {
        let path = self.key_path();
        let text = read_or_make(&path, make).map_err(io_error(&path))?;
        text.and_then(|text| {
            let bytes = hex::decode(text.trim()).ok()?;
            Some(Sealer::new(bytes.try_into().ok()?))
        })
        .ok_or_else(|| self.wrong_key(about))
    }

    /// The key that the passphrase leads to.
    fn by_passphrase(&self, about: &VaultKey) -> Result<Sealer, VaultError> {
        let Some(given) = &self.passphrase else {
            return Err(passphrase(about, false));
        };
        if let Some(known) = self.derived.get() {
            return Ok(known.clone());
        }
        let path = self.folder.join("salt");
        open_directory(&self.folder).map_err(io_error(&self.folder))?;
        let salt = read_or_make(&path, true).map_err(io_error(&path))?;
        let sealer = derive(given, salt.unwrap_or_default().trim()).map_err(io_error(&path))?;
        Ok(self.derived.get_or_init(|| sealer).clone())
    }
}

fn passphrase(about: &VaultKey, given: bool) -> VaultError {
    VaultError::Passphrase {
        what: about.to_string(),
        given,
    }
}

/// Reads thirty-two random bytes in hexadecimal digits, made once.
fn read_or_make(path: &Path, make: bool) -> io::Result<Option<String>> {
    let read = || match state_file::read(path, 1024) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    if let Some(text) = read()? {
        return Ok(Some(text));
    }
    if !make {
        return Ok(None);
    }
    state_file::replace_within(path, LOCK_TIMEOUT, || {
        // Another process may have been faster.
        if read()?.is_some() {
            return Ok(None);
        }
        Ok(Some(random()? + "\n"))
    })?;
    read()
}

/// Thirty-two random bytes in hexadecimal digits.
pub(super) fn random() -> io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(hex::encode(bytes))
}

/// The key that a passphrase leads to.
pub(super) fn derive(passphrase: &Secret, salt: &str) -> io::Result<Sealer> {
    let mut key = [0; 32];
    let passphrase = passphrase.expose().as_bytes();
    Argon2::default()
        .hash_password_into(passphrase, salt.as_bytes(), &mut key)
        .map_err(|error| io::Error::other(error.to_string()))?;
    Ok(Sealer::new(key))
}

fn seal(with: &str, sealer: &Sealer, key: &VaultKey, text: &str) -> io::Result<String> {
    let body = STANDARD.encode(close(sealer, &key.id(), text)?);
    Ok(format!("{SEALED} {with} {}\n{body}\n", sealer.mark))
}

fn unseal(sealer: &Sealer, id: &str, body: &str) -> Option<SealedRecord> {
    let bytes = STANDARD.decode(body.trim_end()).ok()?;
    serde_json::from_slice(&open(sealer, id, &bytes)?).ok()
}

/// A text that only the key opens, and only as being about the same thing.
pub(super) fn close(sealer: &Sealer, about: &str, text: &str) -> io::Result<Vec<u8>> {
    let mut nonce = [0; NONCE];
    getrandom::fill(&mut nonce).map_err(io::Error::other)?;
    let payload = Payload {
        msg: text.as_bytes(),
        aad: about.as_bytes(),
    };
    let closed = XChaCha20Poly1305::new(&sealer.key)
        .encrypt(&XNonce::from(nonce), payload)
        .map_err(|_| io::Error::other("it could not be sealed"))?;
    Ok([nonce.as_slice(), &closed].concat())
}

/// What [`close`] closed.
pub(super) fn open(sealer: &Sealer, about: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let (nonce, closed) = bytes.split_first_chunk::<NONCE>()?;
    let payload = Payload {
        msg: closed,
        aad: about.as_bytes(),
    };
    XChaCha20Poly1305::new(&sealer.key)
        .decrypt(&XNonce::from(*nonce), payload)
        .ok()
}

/// Renames a file to a name that is free.
pub(super) fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default();
    for number in 0..1000 {
        let mut free = name.as_bytes().to_vec();
        free.extend(format!(".broken-{}", now() + number).bytes());
        let aside = path.with_file_name(std::ffi::OsStr::from_bytes(&free));
        if aside.symlink_metadata().is_err() {
            std::fs::rename(path, &aside)?;
            return Ok(aside);
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
