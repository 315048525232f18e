//! The parties that vouch for a user or a machine because an entry names them in its `oauth`.
//!
//! Owns what each is called and what an entry says of it. Other code asks for that and does not
//! list them: see "Add a login grant" in `CONTRIBUTING.md`. The organisation is none of them: an
//! entry only switches it on ([`CrossApp`](crate::CrossApp)), and who it is stands in the settings.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{Secret, SecretReference};

/// Who vouches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VoucherKind {
    /// The platform that this program runs on: the machine has an identity of its own.
    Workload,
}

impl VoucherKind {
    /// Every kind. Where an entry names several, the first of them counts.
    pub const ALL: [Self; 1] = [Self::Workload];

    /// The word for it: its key in `oauth`, and the name of its grant.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Workload => "workload",
        }
    }
}

/// What an entry says of who vouches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VoucherSpec {
    /// The platform's token is the login.
    Workload {
        /// Where the token comes from.
        source: WorkloadSource,
        /// Its audience, when that is not the authorization server itself.
        audience: Option<String>,
    },
}

impl VoucherSpec {
    /// The secrets that are looked up each time it vouches.
    pub fn references(&self) -> &[SecretReference] {
        match self {
            Self::Workload { source, .. } => match source {
                WorkloadSource::Token { references, .. } => references,
                WorkloadSource::File(_) | WorkloadSource::GithubActions { .. } => &[],
            },
        }
    }
}

/// Where a platform's token comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkloadSource {
    /// A file that the platform keeps up to date.
    File(PathBuf),
    /// The token, once its references are in place.
    Token {
        /// The token, with a word for each reference.
        text: Secret,
        /// What is looked up, each time.
        references: Vec<SecretReference>,
    },
    /// GitHub Actions gives it to a job that asks.
    GithubActions {
        /// Where to ask.
        url: Url,
        /// What shows that the job asks.
        token: Secret,
    },
}
