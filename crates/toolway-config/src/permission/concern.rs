//! Which rules speak of a tool, whatever it is called with.
//!
//! Owns the three lists of rules, and finding out once for each tool which of them name it: every
//! call is held against every rule, and a name is matched in every spelling. What the found ones
//! say of a call, with its arguments, is decided in `permission.rs`.

use std::borrow::Cow;
use std::sync::Arc;

use super::Subject;
use super::brought::BroughtServers;
use super::rule::Rule;
use super::spelling::Spellings;

/// All rules, each list in the order in which they count.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Rules {
    pub(super) deny: Vec<Rule>,
    pub(super) ask: Vec<Rule>,
    pub(super) allow: Vec<Rule>,
    /// The servers for which not every allow rule of their name counts.
    pub(super) brought: BroughtServers,
}

/// The rules that speak of one tool, by their places in the lists.
#[derive(Debug, Clone)]
pub(super) struct Concerned {
    /// Whose places these are. Held, so that no other rules can stand at the same address.
    rules: Arc<Rules>,
    deny: Vec<usize>,
    ask: Vec<usize>,
    allow: Vec<usize>,
}

impl Concerned {
    /// Those that speak of the subject's tool, by heart where its spellings are kept.
    pub(super) fn by<'a>(rules: &Arc<Rules>, subject: &Subject<'a>) -> Cow<'a, Self> {
        let Some(spellings) = subject.spellings else {
            return Cow::Owned(Self::find(rules, subject));
        };
        let known = spellings
            .concerned
            .get_or_init(|| Self::find(rules, subject));
        if Arc::ptr_eq(&known.rules, rules) {
            Cow::Borrowed(known)
        } else {
            // The catalogue outlived a change of the rules; the next one learns them.
            Cow::Owned(Self::find(rules, subject))
        }
    }

    fn find(rules: &Arc<Rules>, subject: &Subject<'_>) -> Self {
        let places = |list: &[Rule], names: &dyn Fn(&Rule) -> bool| {
            let named = list.iter().enumerate().filter(|(_, rule)| names(rule));
            named.map(|(place, _)| place).collect::<Vec<_>>()
        };
        let (mut deny, mut ask) = (Vec::new(), Vec::new());
        if !(rules.deny.is_empty() && rules.ask.is_empty()) {
            let made;
            let spellings = if let Some(kept) = subject.spellings {
                kept
            } else {
                made = Spellings::of(subject);
                &made
            };
            let restricts = |rule: &Rule| rule.restricts(subject, spellings);
            deny = places(&rules.deny, &restricts);
            ask = places(&rules.ask, &restricts);
        }
        Self {
            deny,
            ask,
            allow: places(&rules.allow, &|rule| {
                rule.permits(subject) && rules.counts(rule, subject)
            }),
            rules: Arc::clone(rules),
        }
    }

    pub(super) fn deny<'r>(&self, rules: &'r Rules) -> impl Iterator<Item = &'r Rule> {
        self.deny.iter().filter_map(|place| rules.deny.get(*place))
    }

    pub(super) fn ask<'r>(&self, rules: &'r Rules) -> impl Iterator<Item = &'r Rule> {
        self.ask.iter().filter_map(|place| rules.ask.get(*place))
    }

    pub(super) fn allow<'r>(&self, rules: &'r Rules) -> impl Iterator<Item = &'r Rule> {
        self.allow
            .iter()
            .filter_map(|place| rules.allow.get(*place))
    }
}
