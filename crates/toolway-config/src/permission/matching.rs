//! Whether a rule is about a call, and which rules name its tool.
//!
//! Owns matching rules with a call's tool and arguments. Which tools name a rule is found out once
//! for each tool, because a name is matched in every spelling. What those rules decide is
//! `permission.rs`.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use toolway_types::{ToolKey, text};

use super::glob::Glob;
use super::predicate::{PredicateResult, RuleStance};
use super::rule::{PermissionRule, RuleIdentity, could_be_cut, permitting};
use super::rule_set::{MatchingRules, RuleSet, SpelledTool, ToolSpellings};
use super::spelling::{PREFIX, ToolNames};
use super::subject::{CallSubject, SubjectTool};

impl PermissionRule {
    /// Whether, as a restricting rule, it speaks of a tool with these spellings.
    pub(super) fn restricts(&self, subject: &CallSubject<'_>, names: &ToolNames) -> bool {
        names
            .whole
            .iter()
            .any(|name| self.whole.iter().any(|glob| glob.matches(name)))
            || names.server.iter().any(|name| match &self.server {
                Some(glob) => glob.matches(name),
                None => self.whole.iter().any(|glob| glob.matches(name)),
            })
            // Folding joins a letter and its mark where the pattern has them apart, so what is
            // named to the letter counts as well. An exposed name has neither.
            || (!matches!(self.identity, RuleIdentity::Exposed(_)) && self.permits(subject))
            || self.could_mean_unsure(subject, names)
    }

    /// Whether, as a permitting rule, it names this tool and can mean no other.
    pub(super) fn permits(&self, subject: &CallSubject<'_>) -> bool {
        self.names(subject)
            || matches!(subject.target, SubjectTool::Tool(key) if self.means(key, subject.alone))
    }

    /// Whether it names exactly this tool.
    fn names(&self, subject: &CallSubject<'_>) -> bool {
        match (&self.identity, subject.target) {
            (RuleIdentity::Everything, _) => true,
            (RuleIdentity::Bare(glob), SubjectTool::Builtin(name)) => glob.matches(name),
            (RuleIdentity::Bare(glob), SubjectTool::Tool(_)) => {
                subject.shown_as.is_some_and(|name| glob.matches(name))
            }
            (RuleIdentity::Exposed(_) | RuleIdentity::Given { .. }, SubjectTool::Builtin(_)) => {
                false
            }
            (RuleIdentity::Exposed(name), SubjectTool::Tool(key)) => *name == subject.apart(key),
            // The exposed name of a server with a long name is cut before the border.
            (RuleIdentity::Given { tool: None, .. }, SubjectTool::Tool(key))
                if could_be_cut(&self.name) && self.name == subject.apart(key) =>
            {
                true
            }
            (RuleIdentity::Given { server, tool }, SubjectTool::Tool(key)) => {
                server.matches(key.server.as_str())
                    && tool.as_ref().is_none_or(|glob| {
                        glob.matches(&key.tool)
                            && (glob.is_literal() || !key.tool.contains(text::is_hidden))
                    })
            }
        }
    }

    /// Whether its predicates hold for this call.
    pub(super) fn holds(&self, subject: &CallSubject<'_>, stance: RuleStance) -> PredicateResult {
        let mut all = PredicateResult::Yes;
        for predicate in &self.predicates {
            match predicate.holds(subject.arguments, subject.hints, stance) {
                PredicateResult::No => return PredicateResult::No,
                PredicateResult::Unknown => all = PredicateResult::Unknown,
                PredicateResult::Yes => {}
            }
        }
        all
    }

    /// Whether, as a restricting rule, it can mean a tool of which only a spelling is known.
    fn could_mean_unsure(&self, subject: &CallSubject<'_>, names: &ToolNames) -> bool {
        let (SubjectTool::Tool(key), Some(unsure)) = (subject.target, subject.unsure) else {
            return false;
        };
        self.could_mean(key, subject.shown_as.unwrap_or_default(), names, unsure)
    }
}

/// The allow rule that names this tool, and never another: as its server and its entry spell it
/// where that can be read back, otherwise by the name that tells it from all others. None where
/// neither can be written.
pub fn rule_for_tool(key: &ToolKey) -> Option<String> {
    let given = format!("{PREFIX}{}__{}", key.server, key.tool);
    let names = |text: &String| {
        let rule = permitting(text)?;
        let is_one = match &rule.identity {
            RuleIdentity::Exposed(_) => true,
            RuleIdentity::Given { server, tool } => {
                server.literal().is_some() && tool.as_ref().is_some_and(Glob::is_literal)
            }
            RuleIdentity::Everything | RuleIdentity::Bare(_) => false,
        };
        (is_one && rule.names(&CallSubject::tool(key))).then_some(())
    };
    [given, key.exposed_apart()]
        .into_iter()
        .find(|text| names(text).is_some())
}

impl MatchingRules {
    /// Those that name the subject's tool, from the cache where there is one.
    pub(super) fn by<'a>(rules: &Arc<RuleSet>, subject: &CallSubject<'a>) -> Cow<'a, Self> {
        let Some(spellings) = subject.spellings else {
            return Cow::Owned(Self::find(rules, subject));
        };
        let known = spellings
            .concerned
            .get_or_init(|| Self::find(rules, subject));
        if Arc::ptr_eq(&known.rules, rules) {
            Cow::Borrowed(known)
        } else {
            // The cache was made for other rules.
            Cow::Owned(Self::find(rules, subject))
        }
    }

    fn find(rules: &Arc<RuleSet>, subject: &CallSubject<'_>) -> Self {
        let places = |list: &[PermissionRule], names: &dyn Fn(&PermissionRule) -> bool| {
            let named = list.iter().enumerate().filter(|(_, rule)| names(rule));
            named.map(|(place, _)| place).collect::<Vec<_>>()
        };
        let (mut deny, mut ask) = (Vec::new(), Vec::new());
        if !(rules.deny.is_empty() && rules.ask.is_empty()) {
            let made;
            let spellings = if let Some(kept) = subject.spellings {
                kept
            } else {
                made = ToolSpellings::of(subject);
                &made
            };
            let restricts = |rule: &PermissionRule| rule.restricts(subject, &spellings.names);
            deny = places(&rules.deny, &restricts);
            ask = places(&rules.ask, &restricts);
        }
        Self {
            deny,
            ask,
            allow: places(&rules.allow, &|rule| {
                rule.permits(subject) && rules.counts(rule, subject.server())
            }),
            rules: Arc::clone(rules),
        }
    }
}

impl ToolSpellings {
    /// Of a server's tool that the catalogue shows under this name.
    pub fn of_tool(key: &ToolKey, shown_as: &str) -> Self {
        Self::of(&CallSubject::tool(key).shown_as(shown_as))
    }

    /// Of a tool whose plain spelling no other tool that is known has.
    #[must_use]
    pub fn spelled_alone(self) -> Self {
        Self {
            alone: true,
            ..self
        }
    }

    pub(super) fn of(subject: &CallSubject<'_>) -> Self {
        let (mut names, tool) = match subject.target {
            SubjectTool::Builtin(name) => (
                ToolNames::of_builtin(name),
                SpelledTool::Builtin(name.to_owned()),
            ),
            SubjectTool::Tool(key) => {
                let apart = key.exposed_apart();
                let names = ToolNames::of_key(key, &apart);
                let key = key.clone();
                (names, SpelledTool::Server { key, apart })
            }
        };
        if let Some(shown) = subject.shown_as {
            names.add_shown(shown);
        }
        Self {
            names,
            alone: subject.alone || matches!(tool, SpelledTool::Builtin(_)),
            tool,
            shown_as: subject.shown_as.map(str::to_owned),
            concerned: OnceLock::new(),
        }
    }

    /// A call of this tool, with nothing known about it yet.
    pub fn subject(&self) -> CallSubject<'_> {
        let target = match &self.tool {
            SpelledTool::Server { key, .. } => SubjectTool::Tool(key),
            SpelledTool::Builtin(name) => SubjectTool::Builtin(name),
        };
        CallSubject {
            shown_as: self.shown_as.as_deref(),
            alone: self.alone,
            spellings: Some(self),
            ..CallSubject::of(target)
        }
    }
}
