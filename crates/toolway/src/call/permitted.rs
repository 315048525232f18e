//! Who permitted a call.

use std::sync::Arc;

use toolway_config::permission::CitedRule;
use toolway_types::Origin;

/// Who said yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermittedBy {
    /// An allow rule.
    Rule(Arc<CitedRule>),
    /// A hook, where neither a rule nor another hook wanted a person asked.
    Hook(Box<PermittingHook>),
    /// The classifier, in mode `auto`.
    Classifier(Box<PermittingClassifier>),
    /// The mode, which allows everything.
    Mode,
    /// The person who typed the call.
    Typed,
    /// The caller, a host that asks its own person; no rule here speaks of the call.
    Caller,
    /// The person who was asked.
    Person,
    /// The person who was asked before, and whose answer holds as long as the host runs.
    Session,
    /// No permission is needed: it is a tool of the host's own that does no harm, and neither a
    /// rule nor a hook refuses it.
    BuiltIn,
}

/// A hook that said yes. Apart, because few calls have one and every grant is moved along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermittingHook {
    /// What it is called in messages.
    pub title: String,
    /// Where it stands.
    pub origin: Origin,
}

/// A classifier that said yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermittingClassifier {
    /// What it is called in messages.
    pub title: String,
    /// Where it stands.
    pub origin: Origin,
}
