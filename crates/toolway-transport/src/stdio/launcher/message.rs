//! The messages between host, launcher and reapers.
//!
//! Owns the encodings. The host hands the launcher five descriptors (see [`PassedDescriptors`]) and
//! says what they are for with one [`ReaperKind`]; all the rest passes over the first of them, the
//! socket between host and reaper: a [`LaunchRequest`], later perhaps a [`STOP`], and the other way
//! [`LaunchReport`]s. When the host's end of it closes, the reaper kills everything.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use toolway_types::StdioSpec;

use crate::stdio::pack::{Packer, Unpacker};
use crate::stdio::shield::{ArmedShield, IdMapping};

/// Asks a reaper to stop its server by the stop sequence.
pub(super) const STOP: u8 = b'.';

/// The descriptors that are passed with a [`ReaperKind`], in this order: the socket first, because
/// it carries the error when the others do not arrive.
pub(super) struct PassedDescriptors {
    pub(super) socket: OwnedFd,
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    /// The working directory.
    pub(super) directory: OwnedFd,
}

/// How a reaper is forked.
pub(super) enum ReaperKind {
    /// Among the other processes.
    Plain,
    /// In namespaces of its own, the one of process ids among them.
    Namespaced(IdMapping),
}

impl ReaperKind {
    /// The longest map twice, and lengths.
    pub(super) const LONGEST: usize = 16 * 1024;

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut packer = Packer::default();
        match self {
            Self::Plain => packer.bytes(b"plain"),
            Self::Namespaced(mapping) => {
                packer.bytes(b"namespaced");
                mapping.pack(&mut packer);
            }
        }
        packer.finish()
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut unpacker = Unpacker::new(bytes);
        match unpacker.bytes()? {
            b"plain" => Some(Self::Plain),
            b"namespaced" => Some(Self::Namespaced(IdMapping::unpack(&mut unpacker)?)),
            _ => None,
        }
    }
}

/// The server to start.
pub(super) struct LaunchRequest {
    pub(super) program: OsString,
    /// Its `argv[0]`.
    pub(super) name: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
    /// What is taken from the mode of its files; nothing where that is the launcher's own.
    pub(super) umask: Option<u32>,
    pub(super) shield: Option<ArmedShield>,
}

impl LaunchRequest {
    /// The bytes a reaper reads, their length first. Fails where the system would.
    pub(super) fn encode(spec: &StdioSpec, shield: Option<&ArmedShield>) -> io::Result<Vec<u8>> {
        let mut packer = Packer::default();
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for (name, value) in spec.environment() {
            names.push(name.as_bytes());
            values.push(value.expose().as_bytes());
        }
        let args: Vec<&[u8]> = spec.args.iter().map(String::as_bytes).collect();
        let mut texts = names.iter().chain(&values).chain(&args);
        if spec.command.contains('\0') || texts.any(|text| text.contains(&0)) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "nul byte found in provided data",
            ));
        }
        packer.bytes(spec.file().as_bytes());
        packer.bytes(spec.command.as_bytes());
        packer.list(args);
        packer.list(names);
        packer.list(values);
        let umask = spec.umask.map(u32::to_le_bytes);
        packer.bytes(umask.as_ref().map_or(&[], |bytes| &bytes[..]));
        if let Some(shield) = shield {
            shield.pack(&mut packer);
        }
        let request = packer.finish();
        let mut bytes = Vec::with_capacity(size_of::<u64>() + request.len());
        bytes.extend_from_slice(&(request.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&request);
        Ok(bytes)
    }

    /// Waits for one. Fails when the host goes away first.
    pub(super) fn receive(socket: &mut impl Read) -> io::Result<Self> {
        let mut length = [0; size_of::<u64>()];
        socket.read_exact(&mut length)?;
        let mut bytes = Vec::new();
        let length = u64::from_le_bytes(length);
        socket.take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Self::decode(&bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let mut unpacker = Unpacker::new(bytes);
        let program = OsStr::from_bytes(unpacker.bytes()?).to_owned();
        let name = OsStr::from_bytes(unpacker.bytes()?).to_owned();
        let args = unpacker.list()?.into_iter().map(text).collect();
        let (names, values) = (unpacker.list()?, unpacker.list()?);
        let environment = names
            .into_iter()
            .zip(values)
            .map(|(name, value)| (text(name), text(value)))
            .collect();
        let umask = unpacker.bytes()?.try_into().ok().map(u32::from_le_bytes);
        Some(Self {
            program,
            name,
            args,
            environment,
            umask,
            shield: if unpacker.is_empty() {
                None
            } else {
                Some(ArmedShield::unpack(&mut unpacker)?)
            },
        })
    }
}

/// What is reported to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaunchReport {
    /// The reaper's process id, as the launcher sees it.
    Reaper(i32),
    /// The system refused namespaces, with this error: the reaper is a plain one.
    Plain(i32),
    /// The server runs, with this process id where it lives.
    Started(i32),
    /// It could not be started, with this error.
    Refused(i32),
    /// It ended, with this wait status.
    Exited(i32),
}

impl LaunchReport {
    pub(super) const LENGTH: usize = 5;

    pub(super) fn encode(self) -> [u8; Self::LENGTH] {
        let (kind, value) = match self {
            Self::Reaper(value) => (b'w', value),
            Self::Plain(value) => (b'p', value),
            Self::Started(value) => (b's', value),
            Self::Refused(value) => (b'r', value),
            Self::Exited(value) => (b'e', value),
        };
        let [a, b, c, d] = value.to_le_bytes();
        [kind, a, b, c, d]
    }

    pub(super) fn decode([kind, a, b, c, d]: [u8; Self::LENGTH]) -> Option<Self> {
        let value = i32::from_le_bytes([a, b, c, d]);
        Some(match kind {
            b'w' => Self::Reaper(value),
            b'p' => Self::Plain(value),
            b's' => Self::Started(value),
            b'r' => Self::Refused(value),
            b'e' => Self::Exited(value),
            _ => return None,
        })
    }
}

/// The number of an error, for a report.
pub(super) fn code(error: &io::Error) -> i32 {
    error
        .raw_os_error()
        .unwrap_or(rustix::io::Errno::IO.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_arrives_as_it_was_sent() {
        for report in [
            LaunchReport::Reaper(1),
            LaunchReport::Plain(-2),
            LaunchReport::Started(i32::MAX),
            LaunchReport::Refused(i32::MIN),
            LaunchReport::Exited(0x0900),
        ] {
            assert_eq!(LaunchReport::decode(report.encode()), Some(report));
        }
        assert_eq!(LaunchReport::decode([0; LaunchReport::LENGTH]), None);
    }

    #[test]
    fn a_request_cut_short_starts_nothing() {
        let spec = StdioSpec {
            command: "program".to_owned(),
            program: Some("/opt/program".into()),
            args: vec!["one".to_owned(), String::new()],
            inherited: std::sync::Arc::default(),
            env: [("NAME".to_owned(), toolway_types::Secret::new("välue"))].into(),
            cwd: toolway_types::WorkingDirectory::default(),
            shield: toolway_types::ShieldMode::Off,
            umask: Some(0o027),
        };
        let bytes = LaunchRequest::encode(&spec, None).expect("no NUL in it");
        let whole = LaunchRequest::receive(&mut &*bytes).expect("whole");
        assert_eq!(whole.program, "/opt/program");
        assert_eq!(whole.name, "program");
        assert_eq!(whole.args, ["one", ""]);
        assert_eq!(whole.environment, [("NAME".into(), "välue".into())]);
        assert_eq!(whole.umask, Some(0o027));
        assert!(whole.shield.is_none());
        for end in 0..bytes.len() {
            assert!(LaunchRequest::receive(&mut &bytes[..end]).is_err(), "{end}");
        }
        let nul = StdioSpec {
            args: vec!["a\0b".to_owned()],
            ..spec
        };
        assert!(LaunchRequest::encode(&nul, None).is_err());
    }
}
