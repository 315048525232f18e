//! Encryption: the certificate of this server, read from its files and again when they change.
//!
//! Owns the files and the settings of rustls. Where the files lie is the options'.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::options::TlsFiles;
use crate::error::TlsError;

/// The certificate in use.
pub(super) struct ServerTls {
    files: TlsFiles,
    current: Mutex<LoadedTls>,
}

struct LoadedTls {
    config: Arc<ServerConfig>,
    /// When the files were last changed, as far as is known.
    changed: [Option<SystemTime>; 2],
}

impl ServerTls {
    /// Reads the files.
    pub(super) fn read(files: TlsFiles) -> Result<Self, TlsError> {
        let current = load(&files)?;
        Ok(Self {
            files,
            current: Mutex::new(current),
        })
    }

    /// Reads the files again. What was in use stays in use where they cannot be used.
    pub(super) fn reload(&self) -> Result<(), TlsError> {
        let fresh = load(&self.files)?;
        *self.current() = fresh;
        Ok(())
    }

    /// The same, if they changed.
    pub(super) fn follow(&self) {
        let changed = changed(&self.files);
        if self.current().changed == changed {
            return;
        }
        match self.reload() {
            Ok(()) => tracing::info!("the certificate was read again"),
            Err(error) => {
                // Said once: the next look compares with these times.
                self.current().changed = changed;
                tracing::warn!(%error, "the certificate in use stays");
            }
        }
    }

    /// Whoever greets a new connection.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.current().config))
    }

    fn current(&self) -> std::sync::MutexGuard<'_, LoadedTls> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn changed(files: &TlsFiles) -> [Option<SystemTime>; 2] {
    [&files.certificate, &files.key].map(|path| std::fs::metadata(path).ok()?.modified().ok())
}

fn load(files: &TlsFiles) -> Result<LoadedTls, TlsError> {
    // Before reading: what changes meanwhile is read again.
    let changed = changed(files);
    let unreadable = |path: &Path, why: &dyn std::error::Error| TlsError::Unreadable {
        path: path.display().to_string(),
        why: why.to_string(),
    };
    let read = |path: &Path| -> Result<Vec<u8>, TlsError> {
        let found = toolway_files::plain_file::open(path).map_err(|why| unreadable(path, &why))?;
        let (file, facts) =
            found.ok_or_else(|| unreadable(path, &io::Error::other("it is no regular file")))?;
        let bytes = toolway_files::plain_file::read_at_most(file, &facts, MAX_FILE);
        let bytes = bytes.map_err(|why| unreadable(path, &why))?;
        bytes.ok_or_else(|| unreadable(path, &io::Error::other("it is too large")))
    };
    let certificates = CertificateDer::pem_slice_iter(&read(&files.certificate)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|why| unreadable(&files.certificate, &why))?;
    if certificates.is_empty() {
        return Err(TlsError::NoCertificate {
            path: files.certificate.display().to_string(),
        });
    }
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?)
        .map_err(|why| unreadable(&files.key, &why))?;
    let unusable = |why: rustls::Error| TlsError::Unusable {
        certificate: files.certificate.display().to_string(),
        key: files.key.display().to_string(),
        why: why.to_string(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(LoadedTls {
        config: Arc::new(config),
        changed,
    })
}

/// The largest file that is read.
const MAX_FILE: u64 = 1024 * 1024;
