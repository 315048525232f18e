//! The plan: every server that was ever mentioned, and what becomes of it.
//!
//! Owns: the shape of the answer; the numbers that limit a run are `plan/limits.rs`. The decisions
//! themselves are made in `load`, `merge` and `policy`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use toolway_types::{
    Author, Diagnosis, Origin, Scope, Secret, ServerName, ServerSpec, Severity, TransportKind,
    WorkingDirectory,
};

use crate::Environment;
use crate::account::Provider;
use crate::approval::Vouched;
use crate::curation::Curation;
use crate::ide::Editors;
use crate::identity::IdentitySettings;
use crate::load::{Flags, Place, load, read_policy};
use crate::managed::ManagedVariable;
use crate::merge::merge;
use crate::permission::{Hooks, Permissions};
use crate::policy::{Policy, admit};
use crate::raw::keys::nearest;
use crate::raw::settings::{Account, Identity, Named, Trust};
use crate::raw::{self, Settings, Source};
use crate::spec::Builder;

mod limits;

pub use limits::Limits;

/// What should connect, what should not, and why.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Everything ever mentioned, in order of name, then of precedence: the winner of a name
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
    pub limits: Limits,
    /// The variables that the organisation sets, and whether they count.
    pub managed_env: Vec<ManagedVariable>,
    /// Where hooks, and commands that print secrets, are started.
    pub command_directory: WorkingDirectory,
    /// What a child process gets of the host's own environment.
    pub inherited_env: Arc<BTreeMap<String, Secret>>,
    /// `TOOLWAY_MCP_NO_PREFIX`: tools of servers inside the embedding program are shown by their
    /// own names, without `mcp__<server>__`.
    pub no_prefix: bool,
    /// The organisation's lists, for what only turns up later.
    pub(crate) policy: Arc<Policy>,
    /// Where a person logs in for every server that takes cross-app access.
    pub identity: Option<Arc<IdentitySettings>>,
    /// Whose connectors there are.
    pub account: Option<Arc<Provider>>,
    /// Where connectors are switched off, although there may be an account.
    pub connectors_off: Option<Origin>,
    /// Where secrets in plain text are forbidden.
    pub insecure_storage_off: Option<Origin>,
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
                Verdict::Admitted(spec) => Some((server, spec.as_ref())),
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

/// One mention of one server. Its `Debug` names the keys of the entry, and no value in it.
#[derive(Clone)]
pub struct PlannedServer {
    /// Its name.
    pub name: ServerName,
    /// The scope it was configured in.
    pub scope: Scope,
    /// Who wrote it, which decides what it may do.
    pub author: Author,
    /// Whether a person typed it into the project's files, as opposed to having approved what they
    /// found there.
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
    /// What becomes of it.
    pub verdict: Verdict,
    /// What it took the place of.
    pub shadows: Vec<Shadow>,
    /// What is wrong with it.
    pub diagnoses: Vec<Diagnosis>,
    /// The names of the variables it reads.
    pub variables: Vec<String>,
    /// Those of them that have a value, or must have one, and that nobody allowed it to read.
    pub withheld: Vec<String>,
    /// What its entry changes about its tools.
    pub curation: Arc<Curation>,
}

/// Another mention, by its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shadow {
    /// The scope of the other one.
    pub scope: Scope,
    /// Where it stands.
    pub origin: Origin,
}

/// What becomes of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may connect.
    Admitted(Box<ServerSpec>),
    /// The organisation's policy, or a rule of ours, says no.
    Refused {
        /// Which rule, and where it stands.
        reason: String,
    },
    /// It comes from the project's folder and nobody approved it as it stands.
    PendingApproval {
        /// Why it waits.
        reason: String,
        /// A unified diff against what was approved, when something was.
        changed: Option<String>,
    },
    /// A person said no.
    Rejected {
        /// Where that was said.
        reason: String,
    },
    /// It is switched off.
    Disabled {
        /// Where that was said.
        reason: String,
    },
    /// Another one stands in its place.
    Shadowed {
        /// Which one.
        by: Shadow,
        /// `by precedence`, or of which name it is a duplicate.
        reason: String,
    },
    /// Its entry cannot be used.
    Invalid {
        /// The first error.
        reason: String,
    },
}

impl Verdict {
    /// The word shown to people and in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Admitted(_) => "admitted",
            Verdict::Refused { .. } => "refused",
            Verdict::PendingApproval { .. } => "pending-approval",
            Verdict::Rejected { .. } => "rejected",
            Verdict::Disabled { .. } => "disabled",
            Verdict::Shadowed { .. } => "shadowed",
            Verdict::Invalid { .. } => "invalid",
        }
    }

    /// Why it may not connect.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Verdict::Admitted(_) => None,
            Verdict::Refused { reason }
            | Verdict::PendingApproval { reason, .. }
            | Verdict::Rejected { reason }
            | Verdict::Disabled { reason }
            | Verdict::Shadowed { reason, .. }
            | Verdict::Invalid { reason } => Some(reason),
        }
    }
}

/// Reads `TOOLWAY_MCP_NO_PREFIX`, or what the other host calls it; ours wins.
pub(crate) fn no_prefix(environment: &Environment, diagnoses: &mut Vec<Diagnosis>) -> bool {
    let set = ["TOOLWAY_MCP_NO_PREFIX", "CLAUDE_AGENT_SDK_MCP_NO_PREFIX"]
        .into_iter()
        .find_map(|name| Some((name, environment.var(name)?.trim())))
        .filter(|(_, word)| !word.is_empty());
    let Some((name, word)) = set else {
        return false;
    };
    match word.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => true,
        "0" | "false" | "no" | "off" => false,
        _ => {
            let message = format!("`{name}` is neither `1` nor `0`; names keep their prefix");
            diagnoses.push(Diagnosis::warning(message).hint("set it to `1`, or unset it"));
            false
        }
    }
}

/// Reads everything and decides everything.
pub fn plan(environment: &Environment, flags: &Flags) -> Plan {
    admit(merge(load(environment, flags)))
}

/// A server that a person typed on the command line: checked, expanded and held against the
/// policy. It needs no approval, for typing it was one.
pub fn adhoc(
    environment: &Environment,
    plan: &Plan,
    name: &str,
    definition: Map<String, Value>,
) -> Result<ServerSpec, Diagnosis> {
    if let Some(blocked) = &plan.blocked {
        return Err(blocked.clone());
    }
    let policy = read_policy(environment)?;
    let file = raw::single(name.to_owned(), definition, &Source::Program);
    let Some(server) = file.servers.into_iter().next() else {
        return Err(Diagnosis::error(format!("`{name}` cannot name a server")));
    };
    let first_error = |found: Vec<Diagnosis>| {
        found
            .into_iter()
            .find(|diagnosis| diagnosis.severity == Severity::Error)
    };
    let Some(kind) = server.kind.filter(|_| server.fault().is_none()) else {
        let fault = first_error(server.diagnoses);
        return Err(fault.unwrap_or_else(|| Diagnosis::error("has no transport")));
    };
    let place = Place {
        directory: environment.cwd().to_path_buf(),
        ..Place::default()
    };
    let mut spec = Builder {
        name: &server.name,
        kind,
        definition: &server.definition,
        spot: &server.spot,
        source: Source::Program,
        place: &place,
        environment,
        inherited: &plan.inherited_env,
        editors: &Editors::look(environment),
        scope: Scope::Dynamic,
        author: Author::Invocation,
        vouched: Vouched::Seen,
    }
    .build()
    .map_err(|faults| {
        first_error(faults).unwrap_or_else(|| Diagnosis::error("cannot be connected to"))
    })?;
    policy
        .clear(environment, &mut spec, &server.definition, Scope::Dynamic)
        .map_err(|reason| Diagnosis::error(reason).of(&server.name))?;
    policy.require_cross_app(&mut spec);
    Ok(spec)
}

/// The variables that managed settings set.
pub(crate) fn managed_env(settings: &[(Scope, Settings)]) -> Vec<(Named, Value)> {
    settings
        .iter()
        .flat_map(|(_, settings)| settings.env.clone())
        .collect()
}

/// Whose connectors there are, by the file of the highest precedence that says so; and the first
/// file that switches them off.
pub(crate) fn account_settings(
    settings: &[(Scope, &Settings)],
) -> (Option<Arc<Provider>>, Option<Origin>) {
    let account = settings
        .iter()
        .filter_map(|(scope, settings)| Some((*scope, settings.account.as_ref()?)))
        .max_by_key(|(scope, _)| *scope);
    let account = match account {
        Some((_, Account::At(provider))) => Some(Arc::clone(provider)),
        Some((_, Account::Faulty)) | None => None,
    };
    let off = settings
        .iter()
        .find_map(|(_, settings)| settings.connectors_off.clone());
    (account, off)
}

/// The identity provider, by the file of the highest precedence that names one.
pub(crate) fn identity_settings(settings: &[(Scope, Settings)]) -> Option<Arc<IdentitySettings>> {
    let identity = settings
        .iter()
        .filter_map(|(scope, settings)| Some((*scope, settings.identity.as_ref()?)))
        .max_by_key(|(scope, _)| *scope);
    match identity {
        Some((_, Identity::At(settings))) => Some(Arc::clone(settings)),
        Some((_, Identity::Faulty)) | None => None,
    }
}

/// What every file says about calls. A file that nobody vouched for can only narrow.
pub(crate) fn call_settings(
    settings: &[(Scope, Settings)],
    diagnoses: &mut Vec<Diagnosis>,
) -> (Permissions, Hooks) {
    let (mut permissions, mut hooks) = (Vec::new(), Vec::new());
    for (scope, settings) in settings {
        if let Some(origin) = &settings.unreadable {
            permissions.push(Permissions::unreadable(origin.clone()));
        }
        if let Some(placed) = &settings.permissions {
            let (parsed, found) = Permissions::parse(&placed.value, &placed.origin, *scope);
            diagnoses.extend(found);
            permissions.push(match settings.trust {
                Trust::Full => parsed,
                Trust::Narrowing => parsed.narrowing_only(),
            });
        }
        if let Some(placed) = &settings.hooks {
            let (parsed, found) = Hooks::parse(&placed.value, &placed.origin, *scope);
            diagnoses.extend(found);
            hooks.push(parsed);
        }
    }
    (Permissions::merged(permissions), Hooks::merged(hooks))
}
