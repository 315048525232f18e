//! Setting up a shield in a child, between `fork` and `exec`.
//!
//! Owns the namespaces and mounts. Everything that allocates happens before the fork; in the child
//! there are only system calls, because another thread may have held any lock when it was forked.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, mkdir, openat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MoveMountFlags, OpenTreeFlags, mount, move_mount, open_tree};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    DumpableBehavior, WaitOptions, chdir, dumpable_behavior, getegid, geteuid,
    set_dumpable_behavior, waitpid,
};

use super::hidden::{HiddenDirectory, c_path};
use super::layout::MountLayout;
use crate::error::{ShieldError, ShieldStep};

mod packing;
mod probe;

pub(in super::super) use probe::run_if_requested;
pub(super) use probe::{ProbeProcess, probe};

/// The longest map the kernel takes in one write.
const LONGEST_MAP: usize = 4095;

/// The user and group ids inside: always the same as outside.
#[derive(Debug, Clone)]
pub(in super::super) struct IdMapping(Arc<IdMaps>);

#[derive(Debug)]
struct IdMaps {
    users: Vec<u8>,
    groups: Vec<u8>,
    reach: MappedIds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MappedIds {
    /// All ids, which only a privileged process outside the namespace may write.
    All,
    /// The current user and group alone, which needs no privilege.
    Own,
}

impl IdMapping {
    fn all_ids() -> Option<Self> {
        let map = |path| -> Option<Vec<u8>> {
            let outside = std::fs::read_to_string(path).ok()?;
            let line = |line: &str| {
                let mut fields = line.split_whitespace();
                let (first, _, count) = (fields.next()?, fields.next()?, fields.next()?);
                Some(format!("{first} {first} {count}\n"))
            };
            let text = outside.lines().map(line).collect::<Option<String>>()?;
            (text.len() <= LONGEST_MAP).then(|| text.into_bytes())
        };
        Some(Self(Arc::new(IdMaps {
            users: map("/proc/self/uid_map")?,
            groups: map("/proc/self/gid_map")?,
            reach: MappedIds::All,
        })))
    }

    fn own_ids() -> Self {
        let map = |id: u32| format!("{id} {id} 1\n").into_bytes();
        Self(Arc::new(IdMaps {
            users: map(geteuid().as_raw()),
            groups: map(getegid().as_raw()),
            reach: MappedIds::Own,
        }))
    }
}

/// A prepared shield, to be set up by one child.
pub(in super::super) struct ArmedShield {
    mapping: IdMapping,
    held: Vec<CString>,
    read_only: Vec<CString>,
    hidden: Vec<HiddenDirectory>,
    directory: CString,
}

impl ArmedShield {
    /// For a child that starts in `directory`, or where this process is.
    pub(super) fn new(mapping: IdMapping, layout: MountLayout, directory: Option<&Path>) -> Self {
        let directory = match directory {
            Some(directory) => directory.canonicalize(),
            None => std::env::current_dir(),
        };
        // It is entered by its path, always and last: a directory that was opened or entered
        // before the mounts were made leads around them, and so does all that is reached from it.
        // One that has no path any more is nothing to start in either.
        let directory = directory.ok().and_then(c_path);
        Self {
            mapping,
            held: layout.held,
            read_only: layout.read_only,
            hidden: layout.hidden,
            directory: directory.unwrap_or_else(|| c"/".to_owned()),
        }
    }

    /// Whether a child of this process that raises it would lie open meanwhile, although this
    /// process, of which it is a copy, is closed to others.
    pub(in super::super) fn lays_open(&self) -> bool {
        let is_open = matches!(dumpable_behavior(), Ok(DumpableBehavior::Dumpable));
        self.mapping.0.reach == MappedIds::Own && !is_open
    }

    /// Makes the child raise it before it runs its program. The child is a copy of this process:
    /// see [`lays_open`](Self::lays_open).
    pub(in super::super) fn guard(self, command: &mut Command) {
        self.install(command, Self::raise);
    }

    /// Makes the child raise what is left of it, where its parent has done the first half with
    /// [`protect`](Self::protect).
    pub(in super::super) fn guard_inside(self, command: &mut Command) {
        self.install(command, |armed| armed.lock(own_proc()?.as_fd()));
    }

    #[expect(
        unsafe_code,
        reason = "only the child itself can enter a namespace, and only before it runs its program"
    )]
    fn install(
        self,
        command: &mut Command,
        raise: impl Fn(&Self) -> Result<(), StepFault> + Send + Sync + 'static,
    ) {
        let raise = move || raise(&self).map_err(StepFault::encode);
        // SAFETY: what runs in the child is system calls on memory that was made ready before the
        // fork. It takes no lock, allocates and frees nothing, and cannot panic.
        unsafe { command.pre_exec(raise) };
    }

    fn raise(&self) -> Result<(), StepFault> {
        let own_proc = own_proc()?;
        self.enter(own_proc.as_fd(), NamespaceLevel::First)?;
        self.mount()?;
        self.lock(own_proc.as_fd())
    }

    /// The mounts, for a process that has entered its namespace already.
    pub(in super::super) fn protect(&self) -> io::Result<()> {
        self.mount().map_err(StepFault::encode)
    }

    fn mount(&self) -> Result<(), StepFault> {
        for path in &self.held {
            hold(path).map_err(at(ShieldStep::Hold))?;
        }
        for path in &self.read_only {
            hold(path).map_err(at(ShieldStep::ReadOnly))?;
            raw::make_read_only(path).map_err(at(ShieldStep::ReadOnly))?;
        }
        for hidden in &self.hidden {
            hide(hidden).map_err(at(ShieldStep::Hide))?;
        }
        Ok(())
    }

    /// Mounts that came from a namespace of other owners are locked: whatever the server may do
    /// in the second, it cannot undo what was done in the first.
    fn lock(&self, own_proc: BorrowedFd<'_>) -> Result<(), StepFault> {
        self.enter(own_proc, NamespaceLevel::Second)?;
        chdir(self.directory.as_c_str()).map_err(at(ShieldStep::Enter))
    }

    /// Enters a new user and mount namespace.
    fn enter(&self, own_proc: BorrowedFd<'_>, depth: NamespaceLevel) -> Result<(), StepFault> {
        let maps = &*self.mapping.0;
        match maps.reach {
            MappedIds::Own => {
                raw::unshare().map_err(at(ShieldStep::Namespace))?;
                while_dumpable(|| match depth {
                    NamespaceLevel::First => maps.write_own(own_proc),
                    NamespaceLevel::Second => maps.write(own_proc),
                })
                .map_err(at(ShieldStep::Users))
            }
            MappedIds::All => {
                let (reader, writer) =
                    pipe_with(PipeFlags::CLOEXEC).map_err(at(ShieldStep::Users))?;
                let Some(outside) = raw::fork().map_err(at(ShieldStep::Users))? else {
                    drop(writer);
                    maps.write_for(own_proc, &reader);
                };
                drop(reader);
                let entered = raw::unshare().map_err(at(ShieldStep::Namespace));
                if entered.is_ok() {
                    let _ = rustix::io::write(&writer, b"!");
                }
                drop(writer);
                // Its exit code is the error of writing the maps.
                let code = loop {
                    match waitpid(Some(outside), WaitOptions::empty()) {
                        Err(Errno::INTR) => {}
                        Ok(Some((_, status))) => break status.exit_status().unwrap_or(1),
                        Ok(None) | Err(_) => break 1,
                    }
                };
                entered?;
                match code {
                    0 => Ok(()),
                    code => Err(StepFault(ShieldStep::Users, Errno::from_raw_os_error(code))),
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamespaceLevel {
    First,
    Second,
}

/// Mounts a directory, a file or a link on itself, with all that is mounted below it.
fn hold(path: &CStr) -> rustix::io::Result<()> {
    // Not through a link: it is the link that must stay.
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    put(&open_tree(CWD, path, flags)?, path)
}

/// Hides a directory from this process and its children.
fn hide(hidden: &HiddenDirectory) -> rustix::io::Result<()> {
    let path = hidden.path.as_c_str();
    // The way to what the empty directory is about to cover.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let covered = openat(CWD, path, flags, Mode::empty())?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount(c"tmpfs", path, c"tmpfs", flags, c"mode=0700")?;
    for seen in &hidden.seen {
        for folder in &seen.folders {
            match mkdir(folder.as_c_str(), Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        let tree = open_tree(&covered, seen.relative.as_c_str(), flags)?;
        put(&tree, &seen.place)?;
    }
    raw::make_read_only(path)
}

/// Mounts what was cloned.
fn put(tree: &OwnedFd, place: &CStr) -> rustix::io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(tree, c"", CWD, place, flags)
}

/// Makes this process dumpable for a moment, because otherwise its `/proc` files belong to root.
/// Never in a copy of a closed host, see [`ArmedShield::lays_open`]: another process could read its
/// secrets in that moment.
fn while_dumpable(work: impl FnOnce() -> rustix::io::Result<()>) -> rustix::io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    let done = work();
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    done
}

/// The `/proc` directory of this process.
fn own_proc() -> Result<OwnedFd, StepFault> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, c"/proc/self", flags, Mode::empty()).map_err(at(ShieldStep::Users))
}

impl IdMaps {
    /// Writes the maps of this process, in a namespace whose parent still allows `setgroups`.
    fn write_own(&self, process: BorrowedFd<'_>) -> rustix::io::Result<()> {
        write(process, c"setgroups", b"deny")?;
        self.write(process)
    }

    fn write(&self, process: BorrowedFd<'_>) -> rustix::io::Result<()> {
        write(process, c"gid_map", &self.groups)?;
        write(process, c"uid_map", &self.users)
    }

    /// Writes from outside, once the process has entered its namespace.
    fn write_for(&self, process: BorrowedFd<'_>, entered: &OwnedFd) -> ! {
        let code = match rustix::io::read(entered, &mut [0_u8; 1]) {
            Ok(1) => self.write(process).map_or_else(Errno::raw_os_error, |()| 0),
            // It failed to enter, and reports that itself.
            _ => 0,
        };
        raw::exit_with(code)
    }
}

fn write(process: BorrowedFd<'_>, name: &CStr, text: &[u8]) -> rustix::io::Result<()> {
    let file = openat(
        process,
        name,
        OFlags::WRONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    rustix::io::write(&file, text).map(|_| ())
}

/// A step the system refused. All that reaches the parent is one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StepFault(ShieldStep, Errno);

fn at(step: ShieldStep) -> impl Fn(Errno) -> StepFault {
    move |errno| StepFault(step, errno)
}

/// Above every number the system uses.
const MARK: i32 = 1 << 24;
const STEPS: [ShieldStep; 6] = [
    ShieldStep::Namespace,
    ShieldStep::Users,
    ShieldStep::Hold,
    ShieldStep::ReadOnly,
    ShieldStep::Hide,
    ShieldStep::Enter,
];

impl StepFault {
    fn encode(self) -> io::Error {
        let step = self.0 as i32;
        io::Error::from_raw_os_error(MARK | step << 16 | self.1.raw_os_error())
    }
}

/// The failure behind the error of a spawn, when it was the shield that failed.
pub(in super::super) fn refusal_behind(error: &io::Error) -> Option<ShieldError> {
    let code = error.raw_os_error().filter(|code| code & MARK != 0)?;
    let step = usize::try_from((code ^ MARK) >> 16).ok()?;
    Some(ShieldError::Refused {
        step: *STEPS.get(step)?,
        errno: Errno::from_raw_os_error(code & 0xFFFF),
    })
}

/// The calls that have no safe form.
mod raw {
    #![expect(
        unsafe_code,
        reason = "system calls that no library offers in a form without allocation"
    )]

    use std::ffi::CStr;

    use rustix::io::Errno;
    use rustix::process::Pid;
    use rustix::thread::{UnshareFlags, unshare_unsafe};

    /// Enters a new user namespace and a mount namespace that belongs to it.
    pub(super) fn unshare() -> rustix::io::Result<()> {
        // SAFETY: the table of descriptors stays shared.
        unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS) }
    }

    /// Makes a mount and all below it read-only; their other properties stay.
    pub(super) fn make_read_only(path: &CStr) -> rustix::io::Result<()> {
        /// `struct mount_attr`.
        #[repr(C)]
        struct Attributes {
            set: u64,
            clear: u64,
            propagation: u64,
            user_namespace: u64,
        }
        const READ_ONLY: u64 = 1;
        let attributes = Attributes {
            set: READ_ONLY,
            clear: 0,
            propagation: 0,
            user_namespace: 0,
        };
        // SAFETY: the path and the attributes outlive the call, which writes to neither.
        let done = unsafe {
            libc::syscall(
                libc::SYS_mount_setattr,
                libc::AT_FDCWD,
                path.as_ptr(),
                libc::AT_RECURSIVE,
                &raw const attributes,
                size_of::<Attributes>(),
            )
        };
        if done == 0 { Ok(()) } else { Err(last_error()) }
    }

    /// Forks without what the C library does around it, which is not safe after another fork.
    /// Nothing in the child.
    pub(super) fn fork() -> rustix::io::Result<Option<Pid>> {
        // SAFETY: the child has a copy of this memory and only makes system calls until it exits.
        let pid = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
        match i32::try_from(pid) {
            Ok(pid) if pid >= 0 => Ok(Pid::from_raw(pid)),
            _ => Err(last_error()),
        }
    }

    pub(super) fn exit_with(code: i32) -> ! {
        // SAFETY: it runs nothing of this program any more.
        unsafe { libc::_exit(code) }
    }

    fn last_error() -> Errno {
        Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
    }
}
