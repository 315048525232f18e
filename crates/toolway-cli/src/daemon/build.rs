//! Which build of the program this is, and what its process sees of the machine.
//!
//! Owns comparing two builds: of two with one version, the one whose file is newer.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// What the program is run from, on Linux whatever became of its name since.
const OWN_FILE: &str = "/proc/self/exe";

/// What tells processes that see different parts of the machine.
const NAMESPACES: [&str; 4] = ["mnt", "user", "pid", "net"];

/// A build of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Build {
    version: String,
    /// When its file was written, and which file that is.
    written: (i64, i64),
    file: (u64, u64),
}

/// What one build is to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    Same,
    Older,
    Newer,
}

impl Build {
    /// The build of this process.
    pub(crate) fn own() -> Self {
        let own = std::fs::metadata(OWN_FILE).or_else(|_| std::fs::metadata(own_path()));
        let (written, file) = own.map_or(((0, 0), (0, 0)), |own| {
            ((own.mtime(), own.mtime_nsec()), (own.dev(), own.ino()))
        });
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            written,
            file,
        }
    }

    /// As it is said.
    pub(crate) fn said(&self) -> String {
        let ((seconds, nanos), (device, inode)) = (self.written, self.file);
        format!("{} {seconds} {nanos} {device} {inode}", self.version)
    }

    /// What this build is to one that was said.
    pub(crate) fn beside(&self, said: &str) -> Age {
        if self.said() == said {
            return Age::Same;
        }
        let mut parts = said.split(' ');
        let version = parts.next().unwrap_or_default();
        let mut number = || parts.next().and_then(|part| part.parse::<i64>().ok());
        let written = (number().unwrap_or_default(), number().unwrap_or_default());
        let (own, other) = (numbers(&self.version), numbers(version));
        if (own, self.written) < (other, written) {
            Age::Older
        } else {
            Age::Newer
        }
    }
}

/// What a process sees of the machine, as the kernel names it; empty where it does not.
pub(crate) fn namespaces() -> String {
    let links = NAMESPACES.map(|kind| {
        let link = std::fs::read_link(format!("/proc/self/ns/{kind}"));
        link.unwrap_or_default().to_string_lossy().into_owned()
    });
    links.join(" ")
}

fn own_path() -> PathBuf {
    std::env::current_exe().unwrap_or_default()
}

/// A version's numbers; what stands behind them does not count.
fn numbers(version: &str) -> Vec<u64> {
    let plain = version.split(['-', '+']).next().unwrap_or_default();
    plain
        .split('.')
        .map(|part| part.parse().unwrap_or_default())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(version: &str, written: i64) -> Build {
        Build {
            version: version.to_owned(),
            written: (written, 0),
            file: (1, 2),
        }
    }

    #[test]
    fn of_two_builds_the_one_with_the_higher_version_or_the_newer_file_is_newer() {
        let own = build("0.9.0", 100);
        assert_eq!(own.beside(&own.said()), Age::Same);
        for (version, written, age) in [
            ("0.10.0", 1, Age::Older),
            ("0.9.0", 101, Age::Older),
            ("0.9.0", 99, Age::Newer),
            ("0.8.9", 500, Age::Newer),
            ("1.0.0-rc.1", 0, Age::Older),
        ] {
            let other = build(version, written);
            assert_eq!(own.beside(&other.said()), age, "{version} {written}");
        }
    }
}
