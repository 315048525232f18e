//! Who refused a call.
//!
//! Owns the closed list, and how each is worded behind "was refused".

use std::fmt;
use std::sync::Arc;

use toolway_config::{CitedRule, RepositoryServer};
use toolway_types::Origin;

use crate::pins::{Against, Difference};

/// Who refused a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusedBy {
    /// A deny rule.
    Rule {
        /// The rule as written.
        rule: String,
        /// Where it stands.
        origin: Origin,
    },
    /// A settings file cannot be read, and a deny rule may stand in it.
    Unreadable {
        /// Where it cannot be read.
        origin: Origin,
    },
    /// A hook, by its word or by failing: it might have said no.
    Hook {
        /// Where it stands.
        origin: Origin,
        /// What to call it: the program, the tool or the function.
        title: Box<str>,
        /// Why, in its own words, or what went wrong with it; clean, on one line.
        reason: Box<str>,
    },
    /// A hook wants a person asked, and there is none.
    NobodyForHook {
        /// Where it stands.
        origin: Origin,
        /// What to call it: the program, the tool or the function.
        title: Box<str>,
        /// Why, in its own words; clean, on one line.
        reason: Option<Box<str>>,
    },
    /// The classifier, in mode `auto`.
    Classifier {
        /// Where it stands.
        origin: Origin,
        /// What to call it: the program, the tool or the function.
        title: Box<str>,
        /// Why, in its own words; clean, on one line.
        reason: Option<Box<str>>,
    },
    /// The classifier wants a person asked, or failed, and there is none.
    NobodyForClassifier {
        /// Where it stands.
        origin: Origin,
        /// What to call it: the program, the tool or the function.
        title: Box<str>,
        /// Whether it failed.
        failed: bool,
        /// Why, in its own words, or what went wrong with it; clean, on one line.
        reason: Option<Box<str>>,
    },
    /// The person who was asked.
    Person {
        /// Why, where they said; clean, on one line.
        reason: Option<String>,
    },
    /// A person was asked, and nobody answered.
    NobodyAnswered,
    /// A person said yes, and by then its caller had the server no more.
    Withdrawn,
    /// The tool is not defined any more as it was when it was permitted, or that is unknown, and no
    /// user has seen the change.
    Changed {
        /// What changed, or why that is unknown.
        difference: Difference,
    },
    /// A person had to be asked, and there is none.
    NobodyToAsk {
        /// The rule that wants a person asked, and where it stands; none when the mode does.
        rule: Option<(String, Origin)>,
    },
    /// A person had to be asked, and there is none: a repository brought the server, and nothing
    /// was allowed of it as it is defined.
    NobodyForBrought {
        /// The server.
        server: Arc<RepositoryServer>,
        /// A rule that allows this of another server of its name.
        rule: Option<Arc<CitedRule>>,
    },
}

impl fmt::Display for RefusedBy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RefusedBy::Rule { rule, origin } => {
                write!(formatter, "by the rule `{rule}` in {origin}")
            }
            RefusedBy::Unreadable { origin } => write!(
                formatter,
                "because {origin} cannot be read, and a deny rule may stand in it"
            ),
            RefusedBy::Hook {
                origin,
                title,
                reason,
            } => write!(formatter, "by the hook `{title}` in {origin}: {reason}"),
            RefusedBy::NobodyForHook {
                origin,
                title,
                reason,
            } => {
                let hook = format_args!("the hook `{title}` in {origin}");
                let why = why(reason.as_deref());
                write!(
                    formatter,
                    "because {hook} wants a person asked and there is none{why}"
                )
            }
            RefusedBy::Classifier {
                origin,
                title,
                reason,
            } => {
                let why = why(reason.as_deref());
                write!(formatter, "by the classifier `{title}` in {origin}{why}")
            }
            RefusedBy::NobodyForClassifier {
                origin,
                title,
                failed,
                reason,
            } => {
                let did = if *failed {
                    "failed"
                } else {
                    "wants a person asked"
                };
                let who = format_args!("the classifier `{title}` in {origin}");
                let why = why(reason.as_deref());
                write!(
                    formatter,
                    "because {who} {did} and there is nobody to ask{why}"
                )
            }
            RefusedBy::Person { reason } => {
                write!(formatter, "by the person asked{}", why(reason.as_deref()))
            }
            RefusedBy::NobodyAnswered => {
                formatter.write_str("because nobody answered the question whether it may run")
            }
            RefusedBy::Withdrawn => formatter.write_str(
                "because its server was taken away from here before the question was answered",
            ),
            RefusedBy::Changed { difference } => formatter.write_str(match difference.against {
                Against::Permitted => "because its definition changed since it was permitted",
                Against::Nothing => {
                    "because nobody can tell whether it changed since it was permitted"
                }
                Against::Namesake => "because another tool was permitted under its name",
            }),
            RefusedBy::NobodyToAsk { rule: None }
            | RefusedBy::NobodyForBrought { rule: None, .. } => {
                formatter.write_str("because a person must be asked and there is none")
            }
            RefusedBy::NobodyToAsk {
                rule: Some((rule, origin)),
            } => write!(
                formatter,
                "because the rule `{rule}` in {origin} wants a person asked and there is none"
            ),
            RefusedBy::NobodyForBrought {
                server,
                rule: Some(cited),
            } => write!(
                formatter,
                "because a person must be asked and there is none: `{}` here comes from {}, and \
                 the rule `{}` in {} was given for another server of that name",
                server.server, server.origin, cited.rule, cited.origin
            ),
        }
    }
}

fn why(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(": {reason}"))
}
