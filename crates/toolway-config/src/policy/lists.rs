//! A pair of the organisation's lists: what is allowed and what is denied.
//!
//! Owns: how the lists of several files combine (denials add up, permissions narrow, deny beats
//! allow) and the words that name the rule. Does not own: what a rule speaks of (`policy_rule`), nor what
//! the pair is about.

use toolway_types::url_rules::PatternReading;
use toolway_types::{UrlList, UrlRules};

use crate::policy_rule::{PolicyRule, PolicyRuleList, PolicySubject};

/// What every policy file says about one subject.
#[derive(Debug, Clone)]
pub(crate) struct PolicyLists {
    /// The keys they stand under, for messages.
    allow_key: &'static str,
    deny_key: &'static str,
    allowed: Vec<PolicyRuleList>,
    denied: Vec<PolicyRule>,
}

/// Why the lists refuse something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PolicyRefusal {
    /// What it is: "denied by …", "not in …".
    #[error("{0}")]
    Is(String),
    /// A rule would allow its command, but not what the entry sets beside it.
    #[error("{0}")]
    But(String),
}

impl PolicyRefusal {
    /// The same of a program that runs beside the server: "its `headersHelper` runs `x`".
    pub(crate) fn of_program(self, about: &str) -> Self {
        Self::Is(match self {
            Self::Is(what) => format!("{about}, which is {what}"),
            Self::But(why) => format!("{about}: {why}"),
        })
    }
}

impl PolicyLists {
    pub(crate) fn new(allow_key: &'static str, deny_key: &'static str) -> Self {
        Self {
            allow_key,
            deny_key,
            allowed: Vec::new(),
            denied: Vec::new(),
        }
    }

    /// Adds the lists of one file.
    pub(crate) fn add(
        &mut self,
        allowed: Option<&PolicyRuleList>,
        denied: Option<&PolicyRuleList>,
    ) {
        self.allowed.extend(allowed.cloned());
        let denied = denied.iter().flat_map(|list| list.rules.clone());
        self.denied.extend(denied);
    }

    /// Whether any rule is about a command.
    pub(crate) fn speak_of_commands(&self) -> bool {
        let mut rules = self.allow_rules().chain(&self.denied);
        rules.any(|rule| rule.command().is_some())
    }

    /// Every rule that allows something.
    pub(crate) fn allow_rules(&self) -> impl Iterator<Item = &PolicyRule> {
        self.allowed.iter().flat_map(|list| &list.rules)
    }

    /// The reason when a rule denies it.
    pub(crate) fn denies(&self, subject: &PolicySubject<'_>) -> Result<(), PolicyRefusal> {
        self.denied_when(|rule| rule.matches(subject, PatternReading::Wide))
    }

    /// The reason when a rule about commands denies one that runs beside a server.
    pub(crate) fn denies_program(&self, subject: &PolicySubject<'_>) -> Result<(), PolicyRefusal> {
        self.denied_when(|rule| {
            rule.is_about(&subject.target) && rule.matches(subject, PatternReading::Wide)
        })
    }

    fn denied_when(&self, speaks: impl Fn(&PolicyRule) -> bool) -> Result<(), PolicyRefusal> {
        match self.denied.iter().find(|rule| speaks(rule)) {
            Some(rule) => Err(PolicyRefusal::Is(self.denied_by(rule))),
            None => Ok(()),
        }
    }

    /// The reason when a list does not have it.
    pub(crate) fn leaves_out(&self, subject: &PolicySubject<'_>) -> Result<(), PolicyRefusal> {
        self.allowed
            .iter()
            .try_for_each(|list| self.allows(list, subject))
    }

    /// The reason when a list that knows commands does not have one that runs beside a server.
    pub(crate) fn leaves_out_program(
        &self,
        subject: &PolicySubject<'_>,
    ) -> Result<(), PolicyRefusal> {
        self.allowed
            .iter()
            .filter(|list| list.rules.iter().any(|rule| rule.is_about(&subject.target)))
            .try_for_each(|list| self.allows(list, subject))
    }

    /// What the lists say about addresses that show later. A list without any says nothing.
    pub(crate) fn denied_urls(&self) -> UrlRules {
        let denied = self.denied.iter().filter_map(|rule| {
            Some(UrlList {
                patterns: vec![rule.url()?.clone()],
                reason: self.denied_by(rule),
            })
        });
        UrlRules {
            denied: denied.collect(),
            allowed: Vec::new(),
        }
    }

    /// The same, with what is allowed.
    pub(crate) fn urls(&self) -> UrlRules {
        let allowed = self.allowed.iter().filter_map(|list| {
            let patterns: Vec<_> = list
                .rules
                .iter()
                .filter_map(PolicyRule::url)
                .cloned()
                .collect();
            (!patterns.is_empty()).then(|| UrlList {
                patterns,
                reason: self.not_in(list),
            })
        });
        UrlRules {
            allowed: allowed.collect(),
            ..self.denied_urls()
        }
    }

    fn denied_by(&self, rule: &PolicyRule) -> String {
        let PolicyRule { text, origin, .. } = rule;
        format!("denied by `{text}` in `{}` ({origin})", self.deny_key)
    }

    fn not_in(&self, list: &PolicyRuleList) -> String {
        format!("not in `{}` ({})", self.allow_key, list.origin)
    }

    fn allows(
        &self,
        list: &PolicyRuleList,
        subject: &PolicySubject<'_>,
    ) -> Result<(), PolicyRefusal> {
        // People choose names, so where the list knows URLs (or commands) at all, a remote server
        // (or a process) has to match one of those; its name is not enough.
        let precise = list.rules.iter().any(|rule| rule.is_about(&subject.target));
        let mut objection = None;
        for rule in &list.rules {
            if (precise && !rule.is_about(&subject.target))
                || !rule.matches(subject, PatternReading::Narrow)
            {
                continue;
            }
            let Some(why) = rule.objects(subject) else {
                return Ok(());
            };
            objection.get_or_insert_with(|| {
                let PolicyRule { text, origin, .. } = rule;
                let key = self.allow_key;
                PolicyRefusal::But(format!(
                    "`{text}` in `{key}` ({origin}) would allow it, but {why}"
                ))
            });
        }
        Err(objection.unwrap_or_else(|| PolicyRefusal::Is(self.not_in(list))))
    }
}
