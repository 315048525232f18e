//! Keeps a server from writing Toolway's own files (SEC-07, SEC-42, SEC-54): what it wrote there
//! would be believed or run at the next start; and from seeing those that no server needs.
//!
//! Owns what is protected, whether this machine can do it, and what is said when it cannot. Which
//! mounts that takes is [`layout`], making them [`namespace`]; why it is done this way and what it
//! does not stop is `docs/decisions/0006-servers-behind-a-shield.md`.

#[cfg(target_os = "linux")]
mod hidden;
#[cfg(target_os = "linux")]
mod layout;
#[cfg(target_os = "linux")]
mod namespace;

use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::OnceLock;

use toolway_types::ShieldMode;

use crate::error::ShieldError;

#[cfg(target_os = "linux")]
use layout::{AbsentDirectory, MountLayout};
#[cfg(target_os = "linux")]
use namespace::ProbeProcess;
#[cfg(target_os = "linux")]
pub(super) use namespace::{ArmedShield, IdMapping, refusal_behind, run_if_requested};

/// A directory, or a file, that no server may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedPath {
    /// Where it lies.
    pub path: PathBuf,
    /// How far that goes.
    pub protection: Protection,
}

/// How far the protection of a directory goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// One user's directory: made for them alone when it is absent, so that a server cannot make
    /// it, and held where it is, so that a server cannot put another in its place.
    Private,
    /// As a private one, and an empty directory is seen in its place. What is
    /// [private](Self::Private) below it is seen in it.
    Hidden,
    /// The configured path of a directory: links on it are held in place, so that a server cannot
    /// redirect them. Its target has an entry of its own.
    Links,
    /// A file or a folder in a [private](Self::Private) directory that is believed wherever a link
    /// leads from there: that place is read-only while it exists, and held, with all that leads
    /// to it. The same for whatever lies directly in such a folder.
    Believed,
    /// Read-only while it exists: neither made nor held, because what lies there is not trusted
    /// without approval anyway.
    Existing,
}

/// Whether servers are kept from writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShieldState {
    /// They are.
    On {
        /// The directories they cannot write.
        protected: Vec<PathBuf>,
        /// The directories they cannot look into either.
        hidden: Vec<PathBuf>,
        /// What should be among these and cannot be. Servers that insist do not start then.
        gaps: Vec<ShieldError>,
    },
    /// They are not: there is nothing to protect.
    Unwanted,
    /// They are not: it cannot be done here.
    Unavailable(ShieldError),
}

/// What servers are kept from writing; how strictly, each server's definition says. Cloning it is
/// cheap.
#[derive(Debug, Clone, Default)]
pub struct Shield(Arc<ShieldInner>);

#[derive(Debug, Default)]
struct ShieldInner {
    protected: Vec<ProtectedPath>,
    /// Settled by trying it, once.
    #[cfg(target_os = "linux")]
    ability: OnceLock<Result<IdMapping, ShieldError>>,
}

impl Shield {
    /// A shield that protects these paths.
    pub fn new(protected: Vec<ProtectedPath>) -> Self {
        Self(Arc::new(ShieldInner {
            protected,
            #[cfg(target_os = "linux")]
            ability: OnceLock::new(),
        }))
    }

    fn protects_anything(&self) -> bool {
        !self.0.protected.is_empty()
    }
}

#[cfg(target_os = "linux")]
impl Shield {
    /// Whether servers that want it, and are kept so, would be shielded now. Tries it with a child
    /// that runs no program, of this process or of the launcher's [program](super::launcher); makes
    /// no directory.
    pub fn state(&self, launcher: Option<&Path>) -> ShieldState {
        if !self.protects_anything() {
            return ShieldState::Unwanted;
        }
        let (layout, gaps) = MountLayout::of(&self.0.protected, AbsentDirectory::StandIn);
        if let Err(error) = self.ability(&layout, launcher) {
            return ShieldState::Unavailable(error.clone());
        }
        let (mut protected, hidden) = layout::named(&self.0.protected);
        protected.extend(layout.led_to);
        ShieldState::On {
            protected,
            hidden,
            gaps,
        }
    }

    /// What a child that starts in `directory` has to do before it runs its program; nothing when
    /// it goes without a shield.
    pub(super) fn arm(
        &self,
        mode: ShieldMode,
        directory: Option<&Path>,
        launcher: Option<&Path>,
    ) -> Result<Option<ArmedShield>, ShieldError> {
        if mode == ShieldMode::Off || !self.protects_anything() {
            return Ok(None);
        }
        let required = mode == ShieldMode::Required;
        let (layout, gaps) = MountLayout::of(&self.0.protected, AbsentDirectory::Make);
        for gap in gaps {
            if required {
                return Err(gap);
            }
            tracing::warn!(%gap, "the shield has a gap");
        }
        match self.ability(&layout, launcher) {
            Ok(mapping) => Ok(Some(ArmedShield::new(mapping.clone(), layout, directory))),
            Err(error) if required => Err(error.clone()),
            Err(error) => {
                tracing::warn!(%error, "servers start without the shield");
                Ok(None)
            }
        }
    }

    fn ability(
        &self,
        layout: &MountLayout,
        launcher: Option<&Path>,
    ) -> Result<&IdMapping, &ShieldError> {
        let prober = launcher.map_or(ProbeProcess::Itself, ProbeProcess::Program);
        self.0
            .ability
            .get_or_init(|| namespace::probe(layout, prober))
            .as_ref()
    }
}

/// Never exists on other systems.
#[cfg(not(target_os = "linux"))]
pub(super) enum ArmedShield {}

#[cfg(not(target_os = "linux"))]
impl ArmedShield {
    pub(super) fn guard(self, _: &mut std::process::Command) {
        match self {}
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn refusal_behind(_: &std::io::Error) -> Option<ShieldError> {
    None
}

#[cfg(not(target_os = "linux"))]
impl Shield {
    /// Whether servers started now would be shielded.
    pub fn state(&self, _: Option<&Path>) -> ShieldState {
        if self.protects_anything() {
            ShieldState::Unavailable(ShieldError::Platform)
        } else {
            ShieldState::Unwanted
        }
    }

    pub(super) fn arm(
        &self,
        mode: ShieldMode,
        _: Option<&Path>,
        _: Option<&Path>,
    ) -> Result<Option<ArmedShield>, ShieldError> {
        match mode {
            ShieldMode::Required if self.protects_anything() => Err(ShieldError::Platform),
            _ => Ok(None),
        }
    }
}
