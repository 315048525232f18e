//! A pair of the organisation's lists: what is allowed and what is denied.
//!
//! Owns: how the lists of several files combine (denials add up, permissions narrow, deny beats
//! allow) and the words that name the rule. Does not own: what a rule speaks of (`rule`), nor what
//! the pair is about.

use super::rule::{Rule, RuleList, Subject};
use super::url::Reading;

/// What every policy file says about one matter.
#[derive(Debug, Clone)]
pub(crate) struct Lists {
    /// The keys they stand under, for messages.
    allow_key: &'static str,
    deny_key: &'static str,
    allowed: Vec<RuleList>,
    denied: Vec<Rule>,
}

impl Lists {
    pub(crate) fn new(allow_key: &'static str, deny_key: &'static str) -> Self {
        Self {
            allow_key,
            deny_key,
            allowed: Vec::new(),
            denied: Vec::new(),
        }
    }

    /// Adds the lists of one file.
    pub(crate) fn add(&mut self, allowed: Option<&RuleList>, denied: Option<&RuleList>) {
        self.allowed.extend(allowed.cloned());
        let denied = denied.iter().flat_map(|list| list.rules.clone());
        self.denied.extend(denied);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.allowed.is_empty() && self.denied.is_empty()
    }

    /// The reason when a rule denies it.
    pub(crate) fn denies(&self, subject: &Subject<'_>) -> Result<(), String> {
        let found = self
            .denied
            .iter()
            .find(|rule| rule.matches(subject, Reading::Wide));
        match found {
            Some(Rule { text, origin, .. }) => Err(format!(
                "denied by `{text}` in `{}` ({origin})",
                self.deny_key
            )),
            None => Ok(()),
        }
    }

    /// The reason when a list does not have it.
    pub(crate) fn leaves_out(&self, subject: &Subject<'_>) -> Result<(), String> {
        match self.allowed.iter().find(|list| !allows(list, subject)) {
            Some(list) => Err(format!("not in `{}` ({})", self.allow_key, list.origin)),
            None => Ok(()),
        }
    }
}

fn allows(list: &RuleList, subject: &Subject<'_>) -> bool {
    // People choose names, so where the list knows URLs (or commands) at all, a remote server (or
    // a process) has to match one of those; its name is not enough.
    let precise = list.rules.iter().any(|rule| rule.is_about(&subject.target));
    list.rules.iter().any(|rule| {
        (!precise || rule.is_about(&subject.target)) && rule.matches(subject, Reading::Narrow)
    })
}
