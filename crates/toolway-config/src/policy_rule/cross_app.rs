//! Which servers one policy file requires cross-app access for.

use toolway_types::Origin;
use toolway_types::url_rules::PatternReading;

use super::{PolicyRule, PolicyRuleList, PolicySubject};

/// The servers that one file requires cross-app access for.
#[derive(Debug, Clone)]
pub(crate) struct CrossAppRequirement {
    origin: Origin,
    /// Every server when absent.
    rules: Option<Vec<PolicyRule>>,
}

impl CrossAppRequirement {
    pub(crate) fn everybody(origin: Origin) -> Self {
        Self {
            origin,
            rules: None,
        }
    }

    pub(crate) fn of_list(list: PolicyRuleList) -> Self {
        Self {
            origin: list.origin,
            rules: Some(list.rules),
        }
    }

    /// Where it says so of a server.
    pub(crate) fn speaks_of(&self, subject: &PolicySubject<'_>) -> Option<&Origin> {
        match &self.rules {
            None => Some(&self.origin),
            // Read widely, like a denial.
            Some(rules) => rules
                .iter()
                .find(|rule| rule.matches(subject, PatternReading::Wide))
                .map(|rule| &rule.origin),
        }
    }
}
