//! The plan: every configured server, and its verdict.
//!
//! Owns: the shape of the result; the limits of a run are `plan/limits.rs`. The decisions are made
//! in `load`, `merge` and `admission`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};
use toolway_types::{
    Author, Diagnosis, Origin, Scope, Secret, ServerName, ServerSpec, TransportKind,
    WorkingDirectory, nearest,
};

use crate::account::AccountProvider;
use crate::curation::Curation;
use crate::identity::IdentitySettings;
use crate::managed::ManagedVariable;
use crate::permission::{Hooks, Permissions};
use crate::policy::Policy;
use crate::profile::{NoProfile, Profile};
use crate::redaction::KeysOnly;

mod limits;
mod profiles;

pub use limits::RunLimits;

/// What should connect, what should not, and why.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Every entry of every server, in order of name, then of precedence: the winner of a name
    /// comes first.
    pub servers: Vec<PlannedServer>,
    /// Findings about files, flags and the environment. Those about one server stand with it;
    /// [`Plan::all_diagnoses`] gives both.
    pub diagnoses: Vec<Diagnosis>,
    /// Which calls may run.
    pub permissions: Permissions,
    /// What runs around calls.
    pub hooks: Hooks,
    /// Why nothing may connect: the policy cannot be read, understood or trusted.
    pub blocked: Option<Diagnosis>,
    /// The numbers that limit a run.
    pub limits: RunLimits,
    /// The variables that the organisation sets, and whether they count.
    pub managed_env: Vec<ManagedVariable>,
    /// Where hooks, and commands that print secrets, are started.
    pub command_directory: WorkingDirectory,
    /// What a child process gets of the host's own environment.
    pub inherited_env: Arc<BTreeMap<String, Secret>>,
    /// `TOOLWAY_MCP_NO_PREFIX`: tools of servers inside the embedding program are shown by their
    /// own names, without `mcp__<server>__`.
    pub no_prefix: bool,
    /// The organisation's lists, for addresses and servers that are only known later.
    pub(crate) policy: Arc<Policy>,
    /// The identity provider for every server that takes cross-app access.
    pub identity: Option<Arc<IdentitySettings>>,
    /// The provider of the account's connectors.
    pub account: Option<Arc<AccountProvider>>,
    /// Where connectors are switched off, although there may be an account.
    pub connectors_off: Option<Origin>,
    /// Where secrets in plain text are forbidden.
    pub insecure_storage_off: Option<Origin>,
    /// What clients of the gateway see, by name; those that can be used.
    pub profiles: BTreeMap<String, Arc<Profile>>,
    /// The first thing that is wrong with each of the others.
    pub faulty_profiles: BTreeMap<String, Diagnosis>,
}

impl Plan {
    /// The entry that counts for a name.
    pub fn winner(&self, name: &str) -> Option<&PlannedServer> {
        let first = self
            .servers
            .partition_point(|server| server.name.as_str() < name);
        self.servers
            .get(first)
            .filter(|server| server.name.as_str() == name)
    }

    /// The servers that may connect.
    pub fn admitted(&self) -> impl Iterator<Item = (&PlannedServer, &ServerSpec)> {
        self.servers
            .iter()
            .filter_map(|server| match &server.verdict {
                ServerVerdict::Admitted(spec) => Some((server, spec.as_ref())),
                _ => None,
            })
    }

    /// What the policy changes about a server of the embedding program that no file mentions.
    pub fn curation_of_object(&self, name: &ServerName) -> Curation {
        self.policy.curation_of_object(name.as_str())
    }

    /// A configured name that was probably meant.
    pub fn suggest(&self, name: &str) -> Option<String> {
        nearest(name, self.servers.iter().map(|server| server.name.as_str())).map(str::to_owned)
    }

    /// Every finding, those about single servers included.
    pub fn all_diagnoses(&self) -> impl Iterator<Item = &Diagnosis> {
        self.diagnoses
            .iter()
            .chain(self.servers.iter().flat_map(|server| &server.diagnoses))
    }
}

/// One entry of one server. Its `Debug` names the keys of the entry, and no value in it.
#[derive(Clone)]
pub struct PlannedServer {
    /// Its name.
    pub name: ServerName,
    /// The scope it was configured in.
    pub scope: Scope,
    /// Who wrote it, which decides what it may do.
    pub author: Author,
    /// Whether the user typed it into the project's files, as opposed to having approved it there.
    pub is_typed: bool,
    /// Where it stands.
    pub origin: Origin,
    /// How it is reached, as far as its entry says.
    pub transport: Option<TransportKind>,
    /// The entry as written, with no variable expanded.
    pub definition: Map<String, Value>,
    /// What an approval of it is bound to: SHA-256, in hexadecimal digits. None in scopes that
    /// need no approval.
    pub digest: Option<String>,
    /// Its verdict.
    pub verdict: ServerVerdict,
    /// The entries that it shadows.
    pub shadows: Vec<ShadowedEntry>,
    /// What is wrong with it.
    pub diagnoses: Vec<Diagnosis>,
    /// The names of the variables it reads.
    pub variables: Vec<String>,
    /// Those of them that have a value, or must have one, and that it is not allowed to read.
    pub withheld: Vec<String>,
    /// What its entry changes about its tools.
    pub curation: Arc<Curation>,
}

impl PlannedServer {
    /// The account that its entry names.
    pub fn account(&self) -> Option<&str> {
        let ServerVerdict::Admitted(spec) = &self.verdict else {
            return None;
        };
        let remote = spec.transport.open_to_logins()?;
        remote.oauth.as_ref()?.account.as_deref()
    }
}

impl fmt::Debug for PlannedServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PlannedServer")
            .field("name", &self.name)
            .field("scope", &self.scope)
            .field("author", &self.author)
            .field("is_typed", &self.is_typed)
            .field("origin", &self.origin)
            .field("transport", &self.transport)
            .field("definition", &KeysOnly(&self.definition))
            .field("digest", &self.digest)
            .field("verdict", &self.verdict)
            .field("shadows", &self.shadows)
            .field("diagnoses", &self.diagnoses)
            .field("variables", &self.variables)
            .field("withheld", &self.withheld)
            .field("curation", &self.curation)
            .finish()
    }
}

/// Another entry of the same server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowedEntry {
    /// The scope of the other one.
    pub scope: Scope,
    /// Where it stands.
    pub origin: Origin,
}

/// Whether a server may connect, and why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerVerdict {
    /// It may connect.
    Admitted(Box<ServerSpec>),
    /// The organisation's policy, or a rule of ours, says no.
    Refused {
        /// Which rule, and where it stands.
        reason: String,
    },
    /// It comes from the project's folder and is not approved as it is.
    PendingApproval {
        /// Why it waits.
        reason: String,
        /// A unified diff against what was approved, when something was.
        changed: Option<String>,
    },
    /// The user rejected it.
    Rejected {
        /// Where that was said.
        reason: String,
    },
    /// It is switched off.
    Disabled {
        /// Where that was said.
        reason: String,
    },
    /// Another entry is used instead.
    Shadowed {
        /// Which one.
        by: ShadowedEntry,
        /// `by precedence`, or of which name it is a duplicate.
        reason: String,
    },
    /// Its entry cannot be used.
    Invalid {
        /// The first error.
        reason: String,
    },
}

impl ServerVerdict {
    /// The word shown to people and in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            ServerVerdict::Admitted(_) => "admitted",
            ServerVerdict::Refused { .. } => "refused",
            ServerVerdict::PendingApproval { .. } => "pending-approval",
            ServerVerdict::Rejected { .. } => "rejected",
            ServerVerdict::Disabled { .. } => "disabled",
            ServerVerdict::Shadowed { .. } => "shadowed",
            ServerVerdict::Invalid { .. } => "invalid",
        }
    }

    /// Why it may not connect.
    pub fn reason(&self) -> Option<&str> {
        match self {
            ServerVerdict::Admitted(_) => None,
            ServerVerdict::Refused { reason }
            | ServerVerdict::PendingApproval { reason, .. }
            | ServerVerdict::Rejected { reason }
            | ServerVerdict::Disabled { reason }
            | ServerVerdict::Shadowed { reason, .. }
            | ServerVerdict::Invalid { reason } => Some(reason),
        }
    }
}
