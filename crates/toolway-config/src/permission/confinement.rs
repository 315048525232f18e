//! What a caller has at all: the tools that are shown to it.
//!
//! Owns patterns of tools in the syntax of rules, and keeping a caller to them, or to what only
//! reads. It narrows and nothing else: what is outside is denied before any rule is looked at, and
//! what is inside is judged by the rules as ever. A pattern is read as a rule that permits, so that
//! it lets in no tool that is merely spelled alike. Does not own who is kept to what (`profile.rs`).

use std::sync::Arc;

use toolway_types::{Origin, Scope, ServerName, ToolKey};

use super::predicate::RuleStance;
use super::rule::PermissionRule;
use super::rule_set::ToolSpellings;
use super::subject::{CallSubject, SubjectTool};
use super::{CitedRule, Permissions};

/// Tools by patterns in the syntax of rules, such as `mcp__github__*`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolPatterns(Vec<PermissionRule>);

/// Why a text is no pattern of tools.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct BadToolPattern {
    /// What is wrong with it.
    pub reason: String,
    /// What to write.
    pub hint: &'static str,
}

impl ToolPatterns {
    /// Adds a pattern, which stands there.
    pub fn add(&mut self, pattern: &str, source: &Origin) -> Result<(), BadToolPattern> {
        let rule = PermissionRule::parse(pattern, RuleStance::Permit, source, Scope::User);
        let rule = rule.map_err(|broken| BadToolPattern {
            reason: broken.reason,
            hint: "write `mcp__server`, `mcp__server__*` or `mcp__server__tool`",
        })?;
        if !rule.predicates.is_empty() {
            return Err(BadToolPattern {
                reason: "a pattern names tools, and says nothing of how they are called".to_owned(),
                hint: "write conditions as rules that deny: `\"permissions\": {\"deny\": […]}`",
            });
        }
        self.0.push(rule);
        Ok(())
    }

    /// Adds a pattern that takes away: it means every tool that it could mean. One that cannot be read
    /// is kept as all that it could have meant, beside the error.
    pub fn add_widely(&mut self, pattern: &str, source: &Origin) -> Result<(), BadToolPattern> {
        // As in managed settings: what cannot be read at all could have been anything.
        let scope = Scope::Managed;
        let rule = PermissionRule::parse(pattern, RuleStance::Restrict, source, scope);
        let (rule, outcome) = match rule {
            Ok(mut rule) if !rule.predicates.is_empty() => {
                rule.predicates.clear();
                let bad = BadToolPattern {
                    reason: "a pattern names tools, and says nothing of how they are called"
                        .to_owned(),
                    hint: "write conditions as rules in `permissions` of your settings",
                };
                (Some(rule), Err(bad))
            }
            Ok(rule) => (Some(rule), Ok(())),
            Err(broken) => {
                let bad = BadToolPattern {
                    reason: broken.reason.clone(),
                    hint: "write `mcp__server`, `mcp__server__*` or `mcp__server__tool`",
                };
                (broken.fallback(pattern, source, scope), Err(bad))
            }
        };
        self.0.extend(rule);
        outcome
    }

    /// Whether one of them lets this tool in.
    pub fn include(&self, key: &ToolKey) -> bool {
        self.have(&CallSubject::tool(key))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The patterns as written, and where each stands.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Origin)> {
        let cited = self.0.iter().map(PermissionRule::cited);
        cited.map(|cited| (cited.rule.as_str(), &cited.origin))
    }

    fn have(&self, subject: &CallSubject<'_>) -> bool {
        self.0.iter().any(|rule| rule.permits(subject))
    }

    /// The one that takes this away.
    fn taking(&self, subject: &CallSubject<'_>) -> Option<&PermissionRule> {
        if self.0.is_empty() {
            return None;
        }
        let made;
        let spellings = if let Some(kept) = subject.spellings {
            kept
        } else {
            made = ToolSpellings::of(subject);
            &made
        };
        let mut rules = self.0.iter();
        rules.find(|rule| rule.restricts(subject, &spellings.names))
    }
}

/// What a caller is kept to.
#[derive(Debug, Clone, PartialEq)]
pub struct Confinement {
    /// The only tools there are, and what servers offer beside tools under the names that rules
    /// have for it; everything when absent. The host's own tools stay.
    pub tools: Option<ToolPatterns>,
    /// Tools, and what servers offer beside tools, that are not there; read widely, as rules that deny.
    pub without: ToolPatterns,
    /// Whether only those are there that say of themselves that they only read. What is read of a
    /// server without a tool (resources, prompts) is.
    pub read_only: bool,
    /// Where this is said.
    pub origin: Origin,
}

/// Everything that a caller is kept to, ready to be held against tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Boundaries(Vec<Arc<Boundary>>);

#[derive(Debug, PartialEq)]
struct Boundary {
    tools: Option<(ToolPatterns, Arc<CitedRule>)>,
    without: ToolPatterns,
    read_only: Option<Arc<CitedRule>>,
}

impl Boundaries {
    /// Whether nothing is kept out.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this tool is there at all.
    pub fn have<'a>(&self, subject: impl Into<CallSubject<'a>>) -> bool {
        self.refusing(&subject.into()).is_none()
    }

    /// Who keeps a call out, whatever the rules say of it.
    pub(super) fn refusing(&self, subject: &CallSubject<'_>) -> Option<&Arc<CitedRule>> {
        self.0
            .iter()
            .find_map(|boundary| boundary.refusing(subject))
    }

    pub(super) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }
}

impl Boundary {
    fn refusing(&self, subject: &CallSubject<'_>) -> Option<&Arc<CitedRule>> {
        let is_servers = match subject.target {
            SubjectTool::Tool(key) => !key.server.is_built_in(),
            SubjectTool::Builtin(_) => false,
        };
        if let Some((patterns, cited)) = &self.tools
            && is_servers
            && !patterns.have(subject)
        {
            return Some(cited);
        }
        if is_servers && let Some(rule) = self.without.taking(subject) {
            return Some(rule.cited());
        }
        let reads = subject.hints.and_then(|hints| hints.read_only);
        // What nothing is known of may write.
        self.read_only.as_ref().filter(|_| reads != Some(true))
    }
}

impl Permissions {
    /// The same for a caller that is kept to this. `servers` are those that it sees: a pattern may
    /// be spelled as models see it where it can mean only one of them.
    #[must_use]
    pub fn confined(mut self, to: Confinement, servers: &[&ServerName]) -> Permissions {
        let cited = |rule: &str| {
            Arc::new(CitedRule {
                rule: rule.to_owned(),
                origin: to.origin.clone(),
            })
        };
        let tools = to.tools.map(|mut patterns| {
            // A repository's server must not make it unclear what was meant.
            let is_own = |server: &&&ServerName| self.repository_server(server).is_none();
            let own: Vec<_> = servers.iter().filter(is_own).copied().collect();
            for rule in &mut patterns.0 {
                rule.aim(&own);
            }
            (patterns, cited("tools"))
        });
        let read_only = to.read_only.then(|| cited("readOnly"));
        let boundary = Boundary {
            tools,
            without: to.without,
            read_only,
        };
        self.boundaries.0.push(Arc::new(boundary));
        self
    }

    /// What a caller that is judged by these is kept to.
    pub fn boundaries(&self) -> &Boundaries {
        &self.boundaries
    }
}
