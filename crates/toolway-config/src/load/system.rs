//! The two files of the system directory: the organisation's settings.
//!
//! Owns: that they are trusted only when no other user could have written them, and that one which
//! cannot be read, trusted or understood blocks everything instead of being skipped (SEC-14).

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use toolway_types::{Diagnosis, Scope};

use super::Loader;
use crate::Environment;
use crate::approval::ApprovalsFile;
use crate::environment::SystemDirectory;
use crate::error::{Distrust, FileReadError};
use crate::file::{MAX_BYTES, open, text_of};
use crate::managed::confirmed;
use crate::raw::{self, FileSettings, RawFile};
use crate::source::{FileKind, TextSource};

const FILES: [(&str, FileKind, Scope); 2] = [
    ("managed-settings.json", FileKind::Managed, Scope::Managed),
    ("managed-mcp.json", FileKind::Enterprise, Scope::Enterprise),
];

/// The files of the organisation.
pub(crate) fn system_files(directory: &Path) -> impl Iterator<Item = PathBuf> {
    FILES.iter().map(|(name, ..)| directory.join(name))
}

impl Loader<'_> {
    pub(super) fn system(&mut self) {
        let system = self.environment.system();
        for (name, kind, scope) in FILES {
            let path = system.path.join(name);
            match read_file(system, &path, kind) {
                Ok(None) => {}
                Ok(Some(mut file)) => {
                    if let Some(fault) = file.settings.policy_fault.take() {
                        self.block(fault);
                    }
                    let place = self.place_at_cwd(path.to_string_lossy());
                    self.add(scope, 0, place, file);
                }
                Err(fault) => self.block(fault),
            }
        }
    }

    fn block(&mut self, fault: Diagnosis) {
        let fault = blocked(fault);
        self.diagnoses.push(fault.clone());
        self.blocked.get_or_insert(fault);
    }
}

/// The settings of each file of the organisation, or why one of them cannot be used.
pub(crate) fn system_settings(
    environment: &Environment,
) -> Result<Vec<(Scope, TextSource, FileSettings)>, Diagnosis> {
    let system = environment.system();
    let mut all = Vec::new();
    for (name, kind, scope) in FILES {
        let path = system.path.join(name);
        if let Some(mut file) = read_file(system, &path, kind).map_err(blocked)? {
            if let Some(fault) = file.settings.policy_fault.take() {
                return Err(blocked(fault));
            }
            all.push((scope, TextSource::file(path), file.settings));
        }
    }
    Ok(all)
}

/// The environment with the variables that the organisation sets and the user confirmed: what a
/// program that starts hosts begins with.
pub fn with_managed_variables(environment: Environment) -> Environment {
    let system = environment.system();
    // What cannot be read or trusted is reported by the plan, and sets nothing.
    let files = FILES.iter().filter_map(|(name, kind, _)| {
        let file = read_file(system, &system.path.join(name), *kind);
        file.ok().flatten()
    });
    let written: Vec<_> = files.flat_map(|file| file.settings.env).collect();
    if written.is_empty() {
        return environment;
    }
    let approvals = ApprovalsFile::read(&environment).0;
    confirmed(&environment, &written, &approvals)
}

fn blocked(mut fault: Diagnosis) -> Diagnosis {
    let file = fault
        .origin
        .as_ref()
        .map(toolway_types::Origin::path)
        .unwrap_or_default();
    fault.message = format!(
        "nothing may connect, because the policy in `{file}` is unusable: {}",
        fault.message
    );
    fault.hint = Some(format!(
        "ask the administrator of this machine to mend `{file}`"
    ));
    fault
}

fn read_file(
    system: &SystemDirectory,
    path: &Path,
    kind: FileKind,
) -> Result<Option<RawFile>, Diagnosis> {
    let source = TextSource::file(path);
    let text = match trusted_text(system, path) {
        Ok(text) => text,
        // A broken link is not an absent file: a policy was meant to be there.
        Err(FileReadError::Io(error))
            if error.kind() == ErrorKind::NotFound && path.symlink_metadata().is_err() =>
        {
            return Ok(None);
        }
        Err(error) => {
            return Err(Diagnosis::error(format!("it {error}")).at(source.origin(error.line())));
        }
    };
    raw::read(&text, &source, kind).map(Some)
}

fn trusted_text(system: &SystemDirectory, path: &Path) -> Result<String, FileReadError> {
    // Checked on the opened file itself, so that it cannot be swapped in between.
    let (file, facts) = open(path)?;
    vet(facts.uid(), facts.mode(), system.owner).map_err(FileReadError::Untrusted)?;
    // Behind a link lies another directory, whose owner could put another file there.
    let real = path.canonicalize()?;
    for directory in [Some(system.path.as_path()), real.parent()]
        .into_iter()
        .flatten()
    {
        let directory = directory.metadata()?;
        vet(directory.uid(), directory.mode(), system.owner)
            .map_err(|why| FileReadError::Untrusted(Distrust::Directory(Box::new(why))))?;
    }
    text_of(file, &facts, MAX_BYTES)
}

/// Whether only the expected owner (or root) can have written something.
fn vet(owner: u32, mode: u32, expected: u32) -> Result<(), Distrust> {
    if owner != 0 && owner != expected {
        return Err(Distrust::Owner { owner, expected });
    }
    if mode & 0o022 != 0 {
        return Err(Distrust::Writable {
            mode: mode & 0o7777,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_14_only_the_owner_of_the_machine_is_believed() {
        assert_eq!(vet(0, 0o100_644, 0), Ok(()));
        assert_eq!(vet(0, 0o100_644, 1000), Ok(()));
        assert_eq!(vet(1000, 0o100_644, 1000), Ok(()));
        assert_eq!(
            vet(1000, 0o100_600, 0),
            Err(Distrust::Owner {
                owner: 1000,
                expected: 0
            })
        );
        assert_eq!(
            vet(0, 0o100_664, 0),
            Err(Distrust::Writable { mode: 0o664 })
        );
        assert_eq!(
            vet(0, 0o100_602, 0),
            Err(Distrust::Writable { mode: 0o602 })
        );
    }
}
