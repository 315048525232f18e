//! Finding out what the system allows by doing it, in a child that runs no program.
//!
//! Owns which process does it: the child can be read for a moment, so it is not a copy of this one
//! but one of the launcher's program, which has no secrets (SEC-15). It answers with one number.

use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{SocketType, sockopt};
use rustix::process::{DumpableBehavior, geteuid, set_dumpable_behavior};

use super::super::layout::MountLayout;
use super::{ArmedShield, IdMapping, raw, refusal_behind};
use crate::error::{ShieldError, ShieldStep};
use crate::stdio::descriptors;
use crate::stdio::pack::{Packer, Unpacker};

/// The first word of a process that tries a shield.
const MARK: &str = "tw-probe";

/// How long it may take.
const ANSWER: Duration = Duration::from_secs(10);

/// The process that tries a shield.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum ProbeProcess<'a> {
    /// A process of this program, which calls `run_if_requested` first of all.
    Program(&'a Path),
    /// A copy of this process.
    Itself,
}

/// Who the users behind a shield can be here, if there can be one.
pub(in super::super) fn probe(
    layout: &MountLayout,
    prober: ProbeProcess<'_>,
) -> Result<IdMapping, ShieldError> {
    let all_ids = geteuid()
        .is_root()
        .then(IdMapping::all_ids)
        .flatten()
        .filter(|mapping| attempt(mapping, layout, prober).is_ok());
    if let Some(mapping) = all_ids {
        return Ok(mapping);
    }
    let mapping = IdMapping::own_ids();
    attempt(&mapping, layout, prober).map(|()| mapping)
}

fn attempt(
    mapping: &IdMapping,
    layout: &MountLayout,
    prober: ProbeProcess<'_>,
) -> Result<(), ShieldError> {
    let armed = ArmedShield {
        mapping: mapping.clone(),
        held: layout.held.clone(),
        read_only: layout.read_only.clone(),
        hidden: layout.hidden.clone(),
        directory: c"/".to_owned(),
    };
    let tried = match prober {
        ProbeProcess::Program(program) => ask(program, &armed),
        ProbeProcess::Itself if armed.lays_open() => return Err(ShieldError::Closed),
        ProbeProcess::Itself => raise_in_child(armed),
    };
    tried.map_err(|error| {
        refusal_behind(&error).unwrap_or(ShieldError::Refused {
            step: ShieldStep::Namespace,
            errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
        })
    })
}

/// Raises it in a child of this process, which ends at once.
fn raise_in_child(armed: ArmedShield) -> io::Result<()> {
    // Never executed: the child ends before it gets there.
    let mut command = Command::new("/");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    armed.install(&mut command, |armed| {
        armed.raise()?;
        raw::exit_with(0)
    });
    if command.status()?.success() {
        Ok(())
    } else {
        // A filter of system calls may kill instead of refusing.
        Err(Errno::PERM.into())
    }
}

/// Has it raised by a process that has nothing of this one.
fn ask(program: &Path, armed: &ArmedShield) -> io::Result<()> {
    descriptors::close_on_exec_all()?;
    let (mut ours, theirs) = UnixStream::pair()?;
    let process = Command::new(program)
        .arg0(MARK)
        .env_clear()
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Signals from the terminal must not reach it.
        .process_group(0)
        .spawn()?;
    let _process = KillOnDrop(process);
    let mut packer = Packer::default();
    armed.pack(&mut packer);
    ours.set_read_timeout(Some(ANSWER))?;
    ours.set_write_timeout(Some(ANSWER))?;
    let mut answer = [0; 4];
    ours.write_all(&packer.finish())
        .and_then(|()| ours.shutdown(std::net::Shutdown::Write))
        .and_then(|()| ours.read_exact(&mut answer))
        // It was killed, by a filter of system calls perhaps.
        .map_err(|_| Errno::PERM)?;
    match i32::from_le_bytes(answer) {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Kills and reaps a process on drop.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Tries a shield and never returns, where this process was started to do that.
pub(in crate::stdio) fn run_if_requested() {
    let first = std::env::args_os().next();
    let stdin = rustix::stdio::stdin();
    if first.is_none_or(|first| first != MARK)
        || sockopt::socket_type(stdin) != Ok(SocketType::STREAM)
    {
        return;
    }
    if let Ok(line) = rustix::io::fcntl_dupfd_cloexec(stdin, 3) {
        answer(UnixStream::from(line));
    }
    raw::exit_with(0)
}

/// On failure there is no answer, which the host notices.
fn answer(mut line: UnixStream) {
    // A tracer could make it answer anything.
    if set_dumpable_behavior(DumpableBehavior::NotDumpable).is_err() {
        return;
    }
    let _ = rustix::thread::set_name(c"tw-probe");
    let mut bytes = Vec::new();
    if line.read_to_end(&mut bytes).is_err() {
        return;
    }
    let Some(armed) = ArmedShield::unpack(&mut Unpacker::new(&bytes)) else {
        return;
    };
    let code = match raise_in_child(armed) {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()),
    };
    let _ = line.write_all(&code.to_le_bytes());
}
