//! Why there is no skill, or no file of one.
//!
//! Owns the closed list of reasons, with what was expected and what was found where something is
//! not what was listed. A request that came to nothing is a [`CallError`].

use std::fmt;

use toolway_types::{ServerName, ToolKey, Untrusted};

use super::{ListedSkill, MAX_FILES, MAX_SKILL_BYTES};
use crate::call::{CallError, CallFault, brief};

/// Why a skill was not listed, loaded or read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "a field that says what it is has no comment")]
pub enum SkillError {
    /// A request came to nothing. Where it names a tool, that is a URI or a method.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The server does not say that it has skills.
    #[error("server `{server}` offers no skills")]
    NotOffered { server: ServerName },
    /// The server has no such skill.
    #[error("server `{server}` has no skill `{}`", brief(.which))]
    Unknown {
        server: ServerName,
        /// What was asked for.
        which: Untrusted,
    },
    /// Several skills of the server share the name.
    #[error("server `{server}` has several skills `{}`: ask for one by its URI: {}", brief(.name), uris(.candidates))]
    Ambiguous {
        server: ServerName,
        name: Untrusted,
        /// Their URIs.
        candidates: Vec<Untrusted>,
    },
    /// The skill has no such file, by its list or because it is outside of its folder. None was
    /// asked for.
    #[error("the skill `{}` of server `{server}` has no file `{}`", brief(.skill), brief(.file))]
    NoSuchFile {
        server: ServerName,
        /// The URI of the skill.
        skill: Untrusted,
        /// The URI of the file.
        file: Untrusted,
    },
    /// The server lists no digests for the skill, so nothing of it could be verified.
    #[error("the skill `{}` of server `{server}` cannot be verified, because its server lists its files as `dynamic`: ask for a skill with digests", brief(.skill))]
    Unverifiable {
        server: ServerName,
        /// The URI of the skill.
        skill: Untrusted,
    },
    /// The skill has more files than we take; none was read.
    #[error("the skill `{}` of server `{server}` has {found} files, and {MAX_FILES} are allowed: its author has to make it smaller", brief(.skill))]
    TooManyFiles {
        server: ServerName,
        /// The URI of the skill.
        skill: Untrusted,
        /// How many it lists.
        found: usize,
    },
    /// The files of the skill have more bytes than we take; none was read.
    #[error("the skill `{}` of server `{server}` has {found} bytes, and {MAX_SKILL_BYTES} are allowed: its author has to make it smaller", brief(.skill))]
    TooLarge {
        server: ServerName,
        /// The URI of the skill.
        skill: Untrusted,
        /// How many its files have together, as listed.
        found: u64,
    },
    /// The answer to the read holds no such file.
    #[error("`{}` of server `{server}` cannot be read: {reason}", brief(.file))]
    Unreadable {
        server: ServerName,
        /// The URI of the file.
        file: Untrusted,
        /// What is wrong with the answer.
        reason: &'static str,
    },
    /// A file is not what was listed. Nothing of it is handed out.
    #[error("`{}` of server `{server}` is not what was listed: {check}. List its skills again, in case it has changed; if that does not help, its server is broken or has been tampered with", brief(.file))]
    Unverified {
        server: ServerName,
        /// The URI of the file.
        file: Untrusted,
        /// What does not match.
        check: FailedCheck,
    },
}

/// What is not as it was listed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FailedCheck {
    /// The number of bytes.
    #[error("its size is {found} bytes, and {expected} were listed")]
    Size {
        /// As listed.
        expected: u64,
        /// As read.
        found: u64,
    },
    /// The digest.
    #[error("its digest is `{found}`, and `{expected}` was listed")]
    Digest {
        /// As listed.
        expected: String,
        /// Of what was read.
        found: String,
    },
    /// A field of the head.
    #[error("its frontmatter has {} as `{}`, and {} was listed", listed(.found.as_ref()), brief(.field), listed(.expected.as_ref()))]
    Frontmatter {
        /// Which.
        field: Untrusted,
        /// As listed, in JSON.
        expected: Option<Untrusted>,
        /// As it stands in the file, in JSON.
        found: Option<Untrusted>,
    },
    /// The file has no head that could be compared.
    #[error("it has no usable frontmatter: {}", brief(.reason))]
    NoFrontmatter {
        /// What is wrong with it.
        reason: Untrusted,
    },
}

fn listed(value: Option<&Untrusted>) -> String {
    value.map_or_else(
        || "nothing".to_owned(),
        |value| format!("`{}`", brief(value)),
    )
}

impl SkillError {
    /// The server concerned, where one is known.
    pub fn server(&self) -> Option<&ServerName> {
        match self {
            Self::Call(error) => error.server(),
            Self::NotOffered { server }
            | Self::Unknown { server, .. }
            | Self::Ambiguous { server, .. }
            | Self::NoSuchFile { server, .. }
            | Self::Unverifiable { server, .. }
            | Self::TooManyFiles { server, .. }
            | Self::TooLarge { server, .. }
            | Self::Unreadable { server, .. }
            | Self::Unverified { server, .. } => Some(server),
        }
    }

    pub(super) fn unverified(skill: &ListedSkill, file: &str, check: FailedCheck) -> Self {
        Self::Unverified {
            server: skill.server().clone(),
            file: Untrusted::new(file),
            check,
        }
    }

    pub(super) fn unreadable(skill: &ListedSkill, file: &str, reason: &'static str) -> Self {
        Self::Unreadable {
            server: skill.server().clone(),
            file: Untrusted::new(file),
            reason,
        }
    }
}

/// An answer that is not the extension.
pub(super) fn malformed(server: &ServerName, what: &str, error: &dyn fmt::Display) -> SkillError {
    let wrong = Untrusted::new(format!("something else than was asked for: {error}"));
    SkillError::Call(CallError::Failed(
        ToolKey::new(server.clone(), what),
        CallFault::Malformed(wrong),
    ))
}

/// How many of the candidates are named.
const MAX_NAMED: usize = 5;

fn uris(all: &[Untrusted]) -> String {
    let named = all.iter().take(MAX_NAMED);
    let named: Vec<_> = named.map(|uri| format!("`{}`", brief(uri))).collect();
    match all.len().saturating_sub(MAX_NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
