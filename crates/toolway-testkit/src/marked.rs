//! Secrets that tests make, and the search for them in everything that a test leaves (SEC-47).
//!
//! Owns the mark that stands in each of them, the forms in which it is looked for, and looking: in
//! text, in files, in a whole folder. The callers say where it must not be found:
//! [`crate::TempHome`] looks at what a program printed and wrote, the scripted server at what it
//! was started with, and the test runner at its own log.
//!
//! A finding names a place, never the secret.

use std::fmt;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Output};
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// Stands in every secret of a test. Letters and digits alone, so that no escaping changes it.
pub const MARK: &str = "canary7Kq2Zt9wXo";

/// The name of a secret in the environment of every program that a test starts, and that no
/// program may hand on.
pub const DEVELOPERS: &str = "SECRET_OF_THE_DEVELOPER";

/// The most that is read of one file.
const MAX_FILE: u64 = 256 << 20;

/// A constant secret: `marked!("ghp_")`, or one in the midst of a text: `marked!("key=", "&more")`.
#[macro_export]
macro_rules! marked {
    ($start:literal $(, $end:literal)?) => {
        concat!($start, "canary7Kq2Zt9wXo" $(, $end)?)
    };
}

/// What [`DEVELOPERS`] is set to.
pub const DEVELOPERS_SECRET: &str = marked!("developers-");

/// Every form of the mark that is looked for: as it is, in either case of hexadecimal digits, and
/// in base64 wherever in a group of three bytes it begins.
pub fn forms() -> &'static [String] {
    static FORMS: OnceLock<Vec<String>> = OnceLock::new();
    FORMS.get_or_init(|| {
        let bytes = MARK.as_bytes();
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        let digits = digits.collect::<Vec<_>>().concat();
        let mut forms = vec![MARK.to_owned(), digits.to_uppercase(), digits];
        for begin in 0..3 {
            // Whole groups only: those at the edges depend on what stands next to the mark.
            let skipped = (3 - begin) % 3;
            let whole = (bytes.len() - skipped) / 3 * 3;
            let whole = &bytes[skipped..skipped + whole];
            forms.extend([STANDARD.encode(whole), URL_SAFE.encode(whole)]);
        }
        forms.sort();
        forms.dedup();
        forms
    })
}

/// Where a secret of a test begins in these bytes, if there is one.
pub fn find(bytes: &[u8]) -> Option<usize> {
    static FINDERS: OnceLock<Vec<memchr::memmem::Finder<'static>>> = OnceLock::new();
    let finders = FINDERS.get_or_init(|| {
        let finders = forms().iter();
        finders
            .map(|form| memchr::memmem::Finder::new(form.as_str()))
            .collect()
    });
    finders.iter().filter_map(|finder| finder.find(bytes)).min()
}

/// Panics, naming the place and not the secret, when a secret of a test stands in these bytes.
pub fn assert_none(place: &str, bytes: &[u8]) {
    if let Some(offset) = find(bytes) {
        panic!("a secret stands in {place}, at byte {offset}");
    }
}

/// What a program printed, once it has ended. Panics when a secret of a test stands in it.
pub fn output_of(child: Child) -> Output {
    let output = child.wait_with_output().expect("the output can be read");
    assert_none("the program's stdout", &output.stdout);
    assert_none("the program's stderr", &output.stderr);
    output
}

/// A file that holds a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeakedSecret {
    /// Which file.
    pub path: PathBuf,
    /// Where in it.
    pub offset: usize,
    /// Whether the file may hold secrets, but others than its owner may read it.
    pub is_open: bool,
}

impl fmt::Display for LeakedSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, offset) = (self.path.display(), self.offset);
        if self.is_open {
            write!(
                formatter,
                "`{path}` may hold secrets, but others may read it"
            )
        } else {
            write!(formatter, "a secret stands in `{path}`, at byte {offset}")
        }
    }
}

/// What may be said about a file in which a secret stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretAllowance {
    /// It must not.
    None,
    /// It may, as long as only its owner can read it.
    Private,
    /// A test wrote it.
    Input,
}

/// Every file below this folder in which a secret stands without leave. Links are not followed,
/// and what cannot be read is not there.
pub fn scan(folder: &Path, leave: &dyn Fn(&Path) -> SecretAllowance) -> Vec<LeakedSecret> {
    let mut findings = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            // A name is as readable as what it names.
            let named = find(entry.file_name().as_encoded_bytes());
            if kind.is_dir() {
                folders.push(path.clone());
            }
            let found = named.or_else(|| kind.is_file().then(|| look(&path)).flatten());
            if let Some(offset) = found {
                findings.extend(judge(path, offset, leave));
            }
        }
    }
    findings.sort_by(|one, other| one.path.cmp(&other.path));
    findings
}

fn look(path: &Path) -> Option<usize> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    find(&bytes)
}

fn judge(
    path: PathBuf,
    offset: usize,
    leave: &dyn Fn(&Path) -> SecretAllowance,
) -> Option<LeakedSecret> {
    let is_open = match leave(&path) {
        SecretAllowance::None => false,
        SecretAllowance::Input => return None,
        SecretAllowance::Private => {
            let mode = path.metadata().map_or(0, |data| data.permissions().mode());
            if mode & 0o777 == mode & 0o700 {
                return None;
            }
            true
        }
    };
    Some(LeakedSecret {
        path,
        offset,
        is_open,
    })
}

/// Panics with every file below this folder in which a secret stands without leave.
pub fn assert_clean(folder: &Path, leave: &dyn Fn(&Path) -> SecretAllowance) {
    let findings = scan(folder, leave);
    let said: Vec<String> = findings.iter().map(LeakedSecret::to_string).collect();
    assert!(findings.is_empty(), "{}", said.join("\n"));
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    /// A token that only this test makes.
    const TOKEN: &str = marked!("token-");

    #[test]
    fn a_secret_is_found_however_it_is_written() {
        let hex = |text: &str| {
            let digits = text.bytes().map(|byte| format!("{byte:02x}"));
            digits.collect::<Vec<_>>().concat()
        };
        assert!(TOKEN.ends_with(MARK), "the macro and the constant agree");
        for before in ["", "a", "ab", "abc", "{\"canary\":\""] {
            let secret = format!("{before}{MARK}-rest");
            for written in [
                secret.clone(),
                hex(&secret),
                hex(&secret).to_uppercase(),
                STANDARD.encode(&secret),
                URL_SAFE.encode(&secret),
                format!("{secret:?}"),
                serde_json::json!({ "a": [secret] }).to_string(),
            ] {
                let text = format!("some line: {written} and more");
                assert!(find(text.as_bytes()).is_some(), "{before:?}: {written}");
            }
        }
        assert_eq!(find(b"canary canary7 7Kq2Zt9wXo Y2FuYXJ5"), None);
    }

    #[test]
    fn the_runner_looks_for_the_same() {
        let runner = include_str!("../../../xtask/src/test/secrets.rs");
        for form in forms() {
            assert!(runner.contains(&format!("\"{form}\"")), "{form}");
        }
    }

    #[test]
    fn every_planted_file_is_found_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String, mode| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        };
        let log = write("logs/deep/a.log", format!("one\ntwo {TOKEN}"), 0o600);
        let named = write(TOKEN, String::new(), 0o600);
        let input = write("settings.json", TOKEN.to_owned(), 0o644);
        let vault = write("vault/private", TOKEN.to_owned(), 0o600);
        let open = write("vault/open", STANDARD.encode(TOKEN), 0o640);
        write("harmless", "canary".to_owned(), 0o644);
        std::os::unix::fs::symlink(&input, folder.path().join("link")).unwrap();
        let leave = |path: &Path| {
            if path == input {
                SecretAllowance::Input
            } else if path == vault || path == open {
                SecretAllowance::Private
            } else {
                SecretAllowance::None
            }
        };
        let found = scan(folder.path(), &leave);
        let paths: Vec<&PathBuf> = found.iter().map(|finding| &finding.path).collect();
        assert_eq!(paths, [&log, &named, &open]);
        assert_eq!((found[0].offset, found[2].is_open), (14, true));
        // No message holds the secret but in a name that has it.
        assert!(find(found[0].to_string().as_bytes()).is_none());
        assert!(find(found[2].to_string().as_bytes()).is_none());
    }

    #[test]
    #[should_panic(expected = "a secret stands in the log, at byte 14")]
    fn a_planted_secret_fails_the_check() {
        assert_none("the log", format!("one\ntwo {TOKEN}").as_bytes());
    }
}
