//! The verdict on one server.
//!
//! Owns the order of the checks: nothing of a project's definition is expanded before the user
//! approved it. What the lists say is `policy`'s; the state of the approval comes from `merge`.

use std::fmt::Write as _;
use std::sync::Arc;

use toolway_types::name::as_word;
use toolway_types::{Author, Diagnosis, Scope, ServerSpec, ShieldMode, TransportSpec};

use crate::account::directory::stands_for;
use crate::approval::{ApprovalBasis, ApprovalState};
use crate::curation::Curation;
use crate::environment::inherited::InheritedVariables;
use crate::expansion::{self, ServerVariables};
use crate::itself::starts_toolway;
use crate::json::EntryMembers as _;
use crate::keys::listed;
use crate::merge::{DecisionContext, ServerCandidate, switched_off};
use crate::plan::{PlannedServer, ServerVerdict};
use crate::policy::{Policy, cross_app};
use crate::policy_rule::{PolicySubject, PolicyTarget};
use crate::source::TextSource;
use crate::spec::SpecBuilder;

/// A warning when an entry asks for a weaker shield than it gets.
fn weakened(candidate: &ServerCandidate, spec: &ServerSpec) -> Option<Diagnosis> {
    let TransportSpec::Stdio(stdio) = &spec.transport else {
        return None;
    };
    let raw = &candidate.raw;
    let asked = ShieldMode::parse(raw.definition.member("shield")?.as_str()?)?;
    (asked < stdio.shield).then(|| {
        let line = raw.lines.line_of(&raw.definition, "shield");
        Diagnosis::warning(format!(
            "`\"shield\": \"{}\"` does not count: an entry cannot ask for less than `{}` here",
            asked.as_str(),
            stdio.shield.as_str()
        ))
        .of(&raw.name)
        .at(TextSource::of(&raw.origin).origin(line))
        .hint("take the key out; `TOOLWAY_SHIELD` is yours to set")
    })
}

/// Why a definition cannot be connected to.
enum Objection {
    Policy(String),
    Faults(Vec<Diagnosis>),
}

pub(super) struct Judge<'a> {
    pub(super) basis: &'a DecisionContext,
    pub(super) policy: &'a Policy,
    pub(super) blocked: Option<&'a Diagnosis>,
    pub(super) inherited: &'a InheritedVariables,
    pub(super) inherited_with_network: &'a InheritedVariables,
}

impl Judge<'_> {
    pub(super) fn plan(&self, mut candidate: ServerCandidate) -> PlannedServer {
        let mut found = Vec::new();
        let withheld = self.withheld(&candidate);
        let verdict = self.verdict(&candidate, &withheld, &mut found);
        candidate.raw.diagnoses.append(&mut found);
        if let ServerVerdict::Admitted(spec) = &verdict {
            let ignored = cross_app::ignored(&candidate.raw, spec);
            candidate.raw.diagnoses.extend(ignored);
            candidate.raw.diagnoses.extend(weakened(&candidate, spec));
        }
        let raw = &candidate.raw;
        let mut curation =
            Curation::read(&raw.definition, &raw.lines, &TextSource::of(&raw.origin));
        if let ServerVerdict::Admitted(spec) = &verdict
            && let Err(reason) =
                self.policy
                    .check_instructions(&self.basis.environment, spec, &raw.definition)
        {
            curation.instructions_dropped = Some(reason);
        }
        PlannedServer {
            curation: Arc::new(curation),
            name: candidate.raw.name,
            scope: candidate.scope,
            author: candidate.author,
            is_typed: candidate.approval.vouched() == ApprovalBasis::Typed,
            origin: candidate.raw.origin,
            transport: candidate.raw.kind,
            definition: candidate.raw.definition,
            digest: candidate.digest,
            verdict,
            shadows: candidate.shadows,
            diagnoses: candidate.raw.diagnoses,
            variables: candidate.variables,
            withheld,
        }
    }

    /// What may not be connected to may not be reached through a provider's proxy either.
    fn denies_behind_proxy(&self, candidate: &ServerCandidate) -> Result<(), String> {
        let Some(url) = stands_for(candidate.scope, &candidate.raw.definition) else {
            return Ok(());
        };
        let subject = PolicySubject {
            name: candidate.raw.name.as_str(),
            target: PolicyTarget::Remote(&url),
        };
        let denied = self.policy.servers.denies(&subject);
        denied.map_err(|refusal| refusal.to_string())
    }

    fn verdict(
        &self,
        candidate: &ServerCandidate,
        withheld: &[String],
        found: &mut Vec<Diagnosis>,
    ) -> ServerVerdict {
        let refused = |reason: String| ServerVerdict::Refused { reason };
        if let Some(blocked) = self.blocked {
            return refused(blocked.message.clone());
        }
        if let Some(lost) = &candidate.lost {
            return ServerVerdict::Shadowed {
                by: lost.to.clone(),
                reason: lost.reason.clone(),
            };
        }
        if let Some(fault) = candidate.raw.fault() {
            return ServerVerdict::Invalid {
                reason: fault.message.clone(),
            };
        }
        if candidate.author == Author::Stranger {
            return refused(format!(
                "its file belongs to another user of this machine ({})",
                candidate.raw.origin
            ));
        }
        let name = PolicySubject {
            name: candidate.raw.name.as_str(),
            target: PolicyTarget::Nothing,
        };
        if let Err(reason) = self
            .policy
            .servers
            .denies(&name)
            .map_err(|refusal| refusal.to_string())
            .and_then(|()| self.policy.excludes(candidate.scope))
            .and_then(|()| self.denies_behind_proxy(candidate))
        {
            return refused(reason);
        }
        // Without variables the definition is final as written, so policy can be checked before
        // approval. A file that it names is not read before approval.
        let mut early = None;
        let reads_file = candidate
            .raw
            .definition
            .member("sessionTokenFile")
            .is_some();
        if candidate.variables.is_empty() && !reads_file {
            match self.checked(candidate) {
                Ok(spec) => early = Some(spec),
                Err(Objection::Policy(reason)) => return refused(reason),
                Err(Objection::Faults(_)) => {}
            }
        }
        if let Some(reason) = switched_off(self.basis, candidate) {
            return ServerVerdict::Disabled { reason };
        }
        if candidate.scope == Scope::Project
            && candidate.raw.definition.member("env").is_none()
            && starts_toolway(&candidate.raw.definition)
        {
            // Other clients read this file too; another Toolway would need another home.
            let reason = "it is Toolway itself, for other clients that read this file";
            return refused(reason.to_owned());
        }
        match candidate.approval.clone() {
            ApprovalState::Approved { .. } => {}
            ApprovalState::Rejected { reason } => return ServerVerdict::Rejected { reason },
            ApprovalState::Pending { reason, changed } => {
                return ServerVerdict::PendingApproval { reason, changed };
            }
        }
        if !withheld.is_empty() {
            let diagnosis = self.unreadable(candidate, withheld);
            let reason = diagnosis.message.clone();
            found.push(diagnosis);
            return refused(reason);
        }
        match early.map_or_else(|| self.checked(candidate), Ok) {
            Ok(spec) => ServerVerdict::Admitted(Box::new(spec)),
            Err(Objection::Policy(reason)) => refused(reason),
            Err(Objection::Faults(faults)) => {
                let reason = faults.first().map(|fault| fault.message.clone());
                found.extend(faults);
                ServerVerdict::Invalid {
                    reason: reason.unwrap_or_default(),
                }
            }
        }
    }

    /// The definition, expanded and held against the policy.
    fn checked(&self, candidate: &ServerCandidate) -> Result<ServerSpec, Objection> {
        let mut spec = self.build(candidate).map_err(Objection::Faults)?;
        let (environment, entry) = (&self.basis.environment, &candidate.raw.definition);
        self.policy
            .clear(environment, &mut spec, entry, candidate.scope)
            .map_err(Objection::Policy)?;
        self.policy.require_cross_app(&mut spec);
        Ok(spec)
    }

    /// The variables that a project's server reads now and is not allowed to read (SEC-40).
    fn withheld(&self, candidate: &ServerCandidate) -> Vec<String> {
        if candidate.author.reads_any_variable() || candidate.variables.is_empty() {
            return Vec::new();
        }
        let read = expansion::read_now(&candidate.raw.definition, &self.variables());
        self.not_allowed(candidate, &read)
    }

    /// Those among these variables that a server is not allowed to read.
    fn not_allowed(&self, candidate: &ServerCandidate, names: &[String]) -> Vec<String> {
        let mut allowed = match &candidate.approval {
            ApprovalState::Approved { allow_env, .. } => allow_env.clone(),
            ApprovalState::Rejected { .. } | ApprovalState::Pending { .. } => Vec::new(),
        };
        let settings = self.basis.settings.iter();
        let general = settings.flat_map(|(_, settings)| &settings.project_variables);
        allowed.extend(general.map(|named| named.name.clone()));
        let others = expansion::not_allowed(names, &allowed).into_iter();
        others.map(str::to_owned).collect()
    }

    fn variables(&self) -> ServerVariables<'_> {
        ServerVariables {
            environment: &self.basis.environment,
            plugin_root: None,
        }
    }

    /// Names everything that is missing at once, so that following the hint is enough.
    fn unreadable(&self, candidate: &ServerCandidate, withheld: &[String]) -> Diagnosis {
        let (server, variables) = (&candidate.raw.name, self.variables());
        let mut message = format!(
            "a project's file may not read {} from your environment without your word",
            listed(withheld)
        );
        let all = self.not_allowed(candidate, &candidate.variables);
        let mut hint = format!(
            "run `toolway approve {} --allow-env {}`",
            as_word(server.as_str()),
            all.join(" --allow-env ")
        );
        // Approval of the whole repository has its own way to allow variables.
        if candidate.approval.vouched() == ApprovalBasis::Unseen
            && let Some(settings) = self.basis.environment.settings_file(Scope::User)
        {
            let _ = write!(
                hint,
                ", or allow it to every repository that you trust unseen, in `{}`: \
                 `\"projectVariables\": [\"{}\"]` (`[\"*\"]` allows all)",
                settings.display(),
                all.join("\", \"")
            );
        }
        let mut unset = expansion::read_now(&candidate.raw.definition, &variables);
        unset.retain(|name| variables.lookup(name).is_none());
        if !unset.is_empty() {
            let are = if unset.len() == 1 { "is" } else { "are" };
            let _ = write!(message, "; {} {are} not set", listed(&unset));
            let _ = write!(hint, ", and set {}", listed(&unset));
        }
        Diagnosis::error(message)
            .of(server)
            .at(candidate.raw.origin.clone())
            .hint(hint)
    }

    fn build(&self, candidate: &ServerCandidate) -> Result<ServerSpec, Vec<Diagnosis>> {
        let raw = &candidate.raw;
        let Some(kind) = raw.kind else {
            return Err(vec![
                Diagnosis::error("its transport is unknown").of(&raw.name),
            ]);
        };
        let inherited = if candidate.author.has_the_persons_network() {
            self.inherited_with_network
        } else {
            self.inherited
        };
        SpecBuilder {
            name: &raw.name,
            kind,
            definition: &raw.definition,
            url: raw.url.as_ref(),
            lines: &raw.lines,
            source: TextSource::of(&raw.origin),
            place: &candidate.place,
            environment: &self.basis.environment,
            inherited: &inherited.in_project,
            inherited_by_all: &inherited.in_none,
            editors: &self.basis.editors,
            scope: candidate.scope,
            author: candidate.author,
            vouched: candidate.approval.vouched(),
        }
        .build()
    }
}
