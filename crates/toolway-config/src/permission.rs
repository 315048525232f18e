//! Permission: may this call run? Rules and mode, read from settings and asked per call.
//!
//! Owns the `permissions` object of a settings file (`allow`, `ask`, `deny`, `defaultMode`,
//! `disableBypass`, `pins`, `classifier`), the union of these over all scopes, and the decision.
//! Does not own: asking the user, running hooks, or the pseudo-tool `authenticate`, which dispatch
//! lets through before it comes here.
//!
//! Invariants: deny beats ask beats allow, whatever the scope. No scope can take away a rule of
//! another, so adding rules never removes a deny. What cannot be decided is never allowed.

mod classifier;
mod confinement;
mod glob;
mod hooks;
mod matching;
mod misses;
mod mode;
mod predicate;
mod read;
mod repository_server;
mod rule;
mod rule_set;
mod spelling;
mod subject;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;
use toolway_types::{Diagnosis, Origin, Scope, ServerName, ToolKey};

pub use classifier::Classifier;
pub use confinement::{BadToolPattern, Boundaries, Confinement, ToolPatterns};
pub use hooks::{
    BadMatcher, DEFAULT_HOOK_TIMEOUT, Hook, HookAction, HookEvent, HookLocation, Hooks, Matcher,
    names_of_server, names_of_tool,
};
pub use misses::{RuleMiss, miss};
pub use mode::{PermissionMode, PinPolicy};
pub use predicate::ToolHints;
pub use repository_server::UnheededRule;

pub use matching::rule_for_tool;
use predicate::{PredicateResult, RuleStance};
use rule::PermissionRule;
pub use rule::rule_for_server;
use rule_set::{MatchingRules, RuleSet};
pub use rule_set::{RepositoryServer, ToolSpellings};
pub use spelling::UnsureName;
pub use subject::CallSubject;

/// What the rules say about one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionDecision {
    /// It must not run.
    Deny {
        /// The rule that says so.
        rule: Arc<CitedRule>,
    },
    /// It must not run: a settings file cannot be read, and a deny rule may stand in it.
    Unreadable {
        /// Where it cannot be read.
        origin: Origin,
    },
    /// The user must be asked.
    Ask {
        /// The rule that says so; none when the mode does.
        rule: Option<Arc<CitedRule>>,
    },
    /// It may run.
    Allow {
        /// The rule that says so; none when the mode does.
        rule: Option<Arc<CitedRule>>,
    },
}

/// A rule as it is cited. Shared, because every call that a rule allows carries it along.
#[derive(Debug, PartialEq, Eq)]
pub struct CitedRule {
    /// The rule as written.
    pub rule: String,
    /// Where it stands.
    pub origin: Origin,
}

/// A list of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PermissionList {
    /// What must not run.
    Deny,
    /// What the user is asked about.
    Ask,
    /// What may run.
    Allow,
}

impl PermissionList {
    /// All of them, the strictest first.
    pub const ALL: [PermissionList; 3] = [
        PermissionList::Deny,
        PermissionList::Ask,
        PermissionList::Allow,
    ];

    /// The key in a settings file.
    pub fn as_str(self) -> &'static str {
        match self {
            PermissionList::Deny => "deny",
            PermissionList::Ask => "ask",
            PermissionList::Allow => "allow",
        }
    }

    fn stance(self) -> RuleStance {
        match self {
            PermissionList::Allow => RuleStance::Permit,
            PermissionList::Ask | PermissionList::Deny => RuleStance::Restrict,
        }
    }

    /// Whether a rule can stand in this list; else what is wrong with it, and what to write.
    pub fn check(self, rule: &str) -> Result<(), (String, &'static str)> {
        match PermissionRule::parse(rule, self.stance(), &Origin::Program, Scope::User) {
            Ok(_) => Ok(()),
            Err(broken) => Err((broken.reason, broken.hint)),
        }
    }
}

/// The permission settings of one file, or of all of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Permissions {
    /// Shared with caches of which rules match a tool.
    rules: Arc<RuleSet>,
    mode: Option<(Scope, PermissionMode)>,
    pins: Option<(Scope, PinPolicy)>,
    classifier: Option<Box<Classifier>>,
    bypass_forbidden: Option<Origin>,
    unreadable: Option<Origin>,
    faults: Vec<Diagnosis>,
    /// What a caller is kept to.
    boundaries: Boundaries,
}

impl Permissions {
    /// No rules, default mode.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The rules of a settings file that cannot be read: whatever they forbid, so nothing runs.
    pub fn unreadable(file: Origin) -> Self {
        Self {
            unreadable: Some(file),
            ..Self::default()
        }
    }

    /// Reads the value of `permissions` in a settings file. `source` is where the key stands.
    ///
    /// The object is ignored with a warning in a file that comes with a repository, a plugin or a
    /// connector (SEC-03).
    ///
    /// A broken deny or ask rule fails to the safe side. When its name can be read, it holds for
    /// everything it could mean (its name without the predicate). When not, it is diagnosed and
    /// holds for nothing, except in managed settings, where it holds for everything (SEC-14).
    pub fn parse(value: &Value, source: &Origin, scope: Scope) -> (Permissions, Vec<Diagnosis>) {
        if !speaks_for_the_user(scope) {
            return (
                Permissions::empty(),
                vec![not_here("permissions", source, scope)],
            );
        }
        read::permissions(value, source, scope)
    }

    /// Reads the rules of a profile, which only narrow: deny and ask. `path` is what the object is
    /// called, `place` tells where a key of it stands.
    pub(crate) fn parse_narrowing(
        value: &Value,
        path: &str,
        place: &dyn Fn(Option<&str>) -> Origin,
        scope: Scope,
    ) -> (Permissions, Vec<Diagnosis>) {
        read::narrowing(value, path, place, scope)
    }

    /// The union of all layers, in any order: every rule counts, the mode, the pin policy and the
    /// classifier of the highest scope that has one, and a ban on bypass from anywhere.
    pub fn merged(layers: impl IntoIterator<Item = Permissions>) -> Permissions {
        let mut all = Permissions::empty();
        let mut rules = RuleSet::default();
        for layer in layers {
            let of_layer = Arc::unwrap_or_clone(layer.rules);
            rules.deny.extend(of_layer.deny);
            rules.ask.extend(of_layer.ask);
            rules.allow.extend(of_layer.allow);
            rules.repository_servers.extend(of_layer.repository_servers);
            rules.brought.extend(of_layer.brought);
            if layer.mode.map(|(scope, _)| scope) >= all.mode.map(|(scope, _)| scope) {
                all.mode = layer.mode;
            }
            if layer.pins.map(|(scope, _)| scope) >= all.pins.map(|(scope, _)| scope) {
                all.pins = layer.pins;
            }
            let scope = |one: &Option<Box<Classifier>>| one.as_ref().map(|one| one.scope);
            if scope(&layer.classifier) >= scope(&all.classifier) {
                all.classifier = layer.classifier;
            }
            all.bypass_forbidden = all.bypass_forbidden.or(layer.bypass_forbidden);
            all.unreadable = all.unreadable.or(layer.unreadable);
            all.faults.extend(layer.faults);
            all.boundaries.extend(layer.boundaries);
        }
        // The highest scope is named first when several rules say the same: the user can change
        // their own rule, but not the managed one behind it.
        for list in [&mut rules.deny, &mut rules.ask, &mut rules.allow] {
            list.sort_by_key(|rule| std::cmp::Reverse(rule.scope));
        }
        all.rules = Arc::new(rules);
        all
    }

    /// Only what restricts: deny, ask and the ban on bypass. For a file that is not trusted to
    /// permit anything. What a program says of servers that it brought itself is its own to say.
    #[must_use]
    pub fn narrowing_only(self) -> Permissions {
        let mut rules = Arc::unwrap_or_clone(self.rules);
        let brought = &rules.brought;
        rules.allow.retain(|rule| {
            let given = rule.given_for();
            given.is_some_and(|server| brought.contains_key(server))
        });
        Permissions {
            rules: Arc::new(rules),
            mode: None,
            pins: self.pins.filter(|(_, policy)| *policy == PinPolicy::Ask),
            classifier: None,
            ..self
        }
    }

    /// The mode in force: bypass counts as default where it is forbidden.
    pub fn mode(&self) -> PermissionMode {
        match self.mode {
            Some((_, PermissionMode::Bypass)) if self.bypass_forbidden.is_some() => {
                PermissionMode::Default
            }
            Some((_, mode)) => mode,
            None => PermissionMode::Default,
        }
    }

    /// What a changed definition leads to.
    pub fn pins(&self) -> PinPolicy {
        self.pins.map_or(PinPolicy::default(), |(_, policy)| policy)
    }

    /// What decides in mode `auto`, where one is configured.
    pub fn classifier(&self) -> Option<&Classifier> {
        self.classifier.as_deref()
    }

    /// A warning when mode `auto` is set without a classifier: then it is `default`.
    pub fn idle_auto(&self) -> Option<Diagnosis> {
        let is_idle = self.mode() == PermissionMode::Auto && self.classifier.is_none();
        is_idle.then(|| {
            Diagnosis::warning(
                "mode `auto` has no classifier to decide, so you are asked as in mode `default`",
            )
            .hint("name one as `permissions.classifier` in your settings")
        })
    }

    /// The rules that name the tool of a call, whether or not they hold for it, with their lists.
    pub fn concerning<'r>(
        &'r self,
        subject: &CallSubject<'_>,
    ) -> Vec<(&'static str, &'r Arc<CitedRule>)> {
        let concerned = MatchingRules::by(&self.rules, subject);
        let deny = concerned
            .deny(&self.rules)
            .map(|rule| ("deny", rule.cited()));
        let ask = concerned.ask(&self.rules).map(|rule| ("ask", rule.cited()));
        let allow = concerned
            .allow(&self.rules)
            .map(|rule| ("allow", rule.cited()));
        deny.chain(ask).chain(allow).collect()
    }

    /// What may have been meant to restrict and cannot be read. To be shown with every call.
    pub fn faults(&self) -> &[Diagnosis] {
        &self.faults
    }

    /// The rules, and the matchers of hooks, that may not mean what they say: they name no
    /// configured server (as rules for another project do), are read in another form than written,
    /// or allow less than they could mean. Slips are faults already. `is_own` tells which names
    /// without a server can be a tool's.
    pub fn remarks(
        &self,
        hooks: &Hooks,
        servers: &[&ServerName],
        is_own: &dyn Fn(&str) -> bool,
    ) -> Vec<Diagnosis> {
        misses::missed(self, hooks, servers, is_own).remarks
    }

    /// Tells the rules which servers are configured: an allow rule in another spelling than the
    /// server's own counts where it can mean only this one. Returns those that nearly name one of
    /// them, also kept as faults.
    pub(crate) fn aim(&mut self, hooks: &Hooks, servers: &[&ServerName]) -> Vec<Diagnosis> {
        let rules = Arc::make_mut(&mut self.rules);
        let own = rules.own(servers);
        for rule in &mut rules.allow {
            rule.aim(&own);
        }
        let slips = misses::missed(self, hooks, servers, &|_| true).slips;
        self.faults.extend(slips.iter().cloned());
        slips
    }

    /// Where bypass is forbidden, when it is.
    pub fn bypass_forbidden_by(&self) -> Option<&Origin> {
        self.bypass_forbidden.as_ref()
    }

    /// Every rule, the strictest lists first, as written: its list, its text, its scope and where
    /// it stands.
    pub fn rules(&self) -> impl Iterator<Item = (PermissionList, &str, Scope, &Origin)> {
        let of = |list| match list {
            PermissionList::Deny => &self.rules.deny,
            PermissionList::Ask => &self.rules.ask,
            PermissionList::Allow => &self.rules.allow,
        };
        PermissionList::ALL.into_iter().flat_map(move |list| {
            let rules = of(list);
            rules.iter().map(move |rule| {
                let cited = rule.cited();
                (list, cited.rule.as_str(), rule.scope, &cited.origin)
            })
        })
    }

    /// Whether no rule stands here and no mode is set.
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    /// Decides by name alone; a rule about arguments or annotations then counts as undecided.
    pub fn decide_tool(&self, key: &ToolKey) -> PermissionDecision {
        self.decide(CallSubject::tool(key))
    }

    /// Decides a call: takes a [`CallSubject`], or a `&ToolKey` when nothing but the name is known.
    ///
    /// A deny rule whose predicate cannot be decided makes the call ask; an allow rule in the
    /// same place does not match.
    pub fn decide<'a>(&self, subject: impl Into<CallSubject<'a>>) -> PermissionDecision {
        if let Some(origin) = &self.unreadable {
            return PermissionDecision::Unreadable {
                origin: origin.clone(),
            };
        }
        let subject = subject.into();
        if let Some(rule) = self.boundaries.refusing(&subject) {
            let rule = Arc::clone(rule);
            return PermissionDecision::Deny { rule };
        }
        let concerned = MatchingRules::by(&self.rules, &subject);
        let mut ask = None;
        for rule in concerned.deny(&self.rules) {
            match rule.holds(&subject, RuleStance::Restrict) {
                PredicateResult::Yes => {
                    let rule = Arc::clone(rule.cited());
                    return PermissionDecision::Deny { rule };
                }
                PredicateResult::Unknown => ask = ask.or(Some(rule)),
                PredicateResult::No => {}
            }
        }
        ask = ask.or_else(|| {
            let mut rules = concerned.ask(&self.rules);
            rules.find(|rule| rule.holds(&subject, RuleStance::Restrict) != PredicateResult::No)
        });
        if let Some(rule) = ask {
            return PermissionDecision::Ask {
                rule: Some(Arc::clone(rule.cited())),
            };
        }
        let allow = concerned
            .allow(&self.rules)
            .find(|rule| rule.holds(&subject, RuleStance::Permit) == PredicateResult::Yes);
        match (allow, self.mode()) {
            (Some(rule), _) => PermissionDecision::Allow {
                rule: Some(Arc::clone(rule.cited())),
            },
            (None, PermissionMode::Bypass) => PermissionDecision::Allow { rule: None },
            (None, PermissionMode::Default | PermissionMode::Auto) => {
                PermissionDecision::Ask { rule: None }
            }
        }
    }
}

/// Whether settings of this scope were written by the user or their organisation, and not by the
/// author of a repository or a plugin.
fn speaks_for_the_user(scope: Scope) -> bool {
    match scope {
        Scope::Connector | Scope::Plugin | Scope::Project => false,
        Scope::User | Scope::Local | Scope::Dynamic | Scope::Managed | Scope::Enterprise => true,
    }
}

/// Whether settings of this scope are an organisation's: what cannot be read there forbids.
fn is_policy(scope: Scope) -> bool {
    matches!(scope, Scope::Managed | Scope::Enterprise)
}

fn not_here(key: &str, source: &Origin, scope: Scope) -> Diagnosis {
    Diagnosis::warning(format!("`{key}` is ignored in {scope} scope"))
        .at(source.clone())
        .hint(format!("move `{key}` to the user's `settings.json`"))
}
