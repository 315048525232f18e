//! Encodes a shield for another process, and sets up the half that needs no child.
//!
//! Owns the bytes of an [`ArmedShield`] and of its [`IdMapping`] on their way to the launcher, and
//! writing a mapping for a process that was born in its namespaces.

use std::ffi::{CString, OsStr};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::Pid;

use super::{ArmedShield, HiddenDirectory, IdMapping, IdMaps, MappedIds, while_dumpable};
use crate::stdio::pack::{Packer, Unpacker};

impl IdMapping {
    pub(in crate::stdio) fn pack(&self, into: &mut Packer) {
        let maps = &*self.0;
        into.bytes(match maps.reach {
            MappedIds::All => b"everybody",
            MappedIds::Own => b"oneself",
        });
        into.bytes(&maps.users);
        into.bytes(&maps.groups);
    }

    pub(in crate::stdio) fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        let reach = match from.bytes()? {
            b"everybody" => MappedIds::All,
            b"oneself" => MappedIds::Own,
            _ => return None,
        };
        Some(Self(Arc::new(IdMaps {
            users: from.bytes()?.to_vec(),
            groups: from.bytes()?.to_vec(),
            reach,
        })))
    }

    /// Whether a process outside the namespace has to write it.
    pub(in crate::stdio) fn needs_parent(&self) -> bool {
        self.0.reach == MappedIds::All
    }

    /// Writes it for a child that was born in its namespace.
    pub(in crate::stdio) fn write_for_child(&self, child: Pid) -> rustix::io::Result<()> {
        let path = format!("/proc/{child}");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let process = openat(CWD, path, flags, Mode::empty())?;
        self.0.write(process.as_fd())
    }

    /// Writes it for this process, which was born in its namespace.
    pub(in crate::stdio) fn write_for_self(&self) -> rustix::io::Result<()> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let process = openat(CWD, c"/proc/self", flags, Mode::empty())?;
        while_dumpable(|| self.0.write_own(process.as_fd()))
    }
}

impl ArmedShield {
    pub(in crate::stdio) fn mapping(&self) -> &IdMapping {
        &self.mapping
    }

    pub(in crate::stdio) fn pack(&self, into: &mut Packer) {
        self.mapping.pack(into);
        into.list(self.held.iter().map(|path| path.to_bytes()));
        into.list(self.read_only.iter().map(|path| path.to_bytes()));
        into.list(self.hidden.iter().map(|hidden| hidden.path.to_bytes()));
        for hidden in &self.hidden {
            into.list(hidden.seen.iter().map(|seen| seen.relative.to_bytes()));
        }
        into.bytes(self.directory.to_bytes());
    }

    pub(in crate::stdio) fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        fn paths(from: &mut Unpacker<'_>) -> Option<Vec<CString>> {
            from.list()?
                .into_iter()
                .map(|path| CString::new(path).ok())
                .collect()
        }
        fn hidden(from: &mut Unpacker<'_>) -> Option<Vec<HiddenDirectory>> {
            let path = |bytes| Path::new(OsStr::from_bytes(bytes));
            from.list()?
                .into_iter()
                .map(|hidden| {
                    HiddenDirectory::new(path(hidden), from.list()?.into_iter().map(path))
                })
                .collect()
        }
        Some(Self {
            mapping: IdMapping::unpack(from)?,
            held: paths(from)?,
            read_only: paths(from)?,
            hidden: hidden(from)?,
            directory: CString::new(from.bytes()?).ok()?,
        })
    }
}
