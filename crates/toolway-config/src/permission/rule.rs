//! One permission rule: its syntax, and which tools it names.
//!
//! Owns: `ToolName`, `mcp__server`, `mcp__server__*`, `mcp__server__tool`, `*` anywhere, names as
//! the server gave them or normalised, and an optional predicate in parentheses.
//!
//! A rule is read in one of two ways (SEC-31). A rule that restricts (deny, ask) matches every
//! spelling of a tool, in any case, and both readings of an unclear border: `mcp__a__b__c` is
//! tool `b__c` of `a` and tool `c` of `a__b`, and `mcp__a__b` is also all of server `a__b`; so is
//! the bare name of a server. A rule that permits names one identity: the name that tells a tool
//! from all others, or the names exactly as the server and the configuration give them, split at
//! the first `__`. A spelling in which a character was replaced permits only while it can mean one
//! thing: one configured server, and of its tools one. What a rule would permit it restricts as
//! well: the wide reading includes the narrow one.

mod other_spelling;
mod unsure;

use std::sync::Arc;

use serde_json::Value;
use toolway_types::text::{self, fold};
use toolway_types::{Origin, Scope, ServerName, name};

use self::other_spelling::MeantName;
use super::CitedRule;
use super::glob::Glob;
use super::predicate::{RulePredicate, RuleStance};
use super::spelling::PREFIX;
use crate::json::kind_of;

/// A rule, ready to match.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PermissionRule {
    cited: Arc<CitedRule>,
    pub(super) scope: Scope,
    /// The name part, cleaned.
    pub(super) name: String,
    /// The name part folded, against whole spellings.
    pub(super) whole: Vec<Glob>,
    /// The part behind `mcp__`, folded, against spellings of the server.
    pub(super) server: Option<Glob>,
    /// The same name read as one identity.
    pub(super) identity: RuleIdentity,
    pub(super) predicates: Vec<RulePredicate>,
    /// The server it was given for, and counts for only.
    given: Option<ServerName>,
    /// The only configured server that it can mean, and what of it.
    meant: Option<MeantName>,
}

/// What a permitting rule names.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RuleIdentity {
    /// `*`
    Everything,
    /// A name without `mcp__`: one of the host's own tools, or one the catalogue shows so.
    Bare(Glob),
    /// A name that can be an exposed one is read as nothing else.
    Exposed(String),
    /// Names as given by configuration and server.
    Given { server: Glob, tool: Option<Glob> },
}

/// Why a rule cannot be read.
#[derive(Debug)]
pub(super) struct BrokenRule {
    pub(super) reason: String,
    pub(super) hint: &'static str,
    fallback: RuleFallback,
}

/// What is kept of a broken deny or ask rule.
///
/// When the name can be read, the rule restricts everything it could mean: the name without its
/// predicate. When not, it could mean anything, and restricts everything (SEC-14).
#[derive(Debug)]
pub(super) enum RuleFallback {
    /// The rule without the part that cannot be read.
    Name(String),
    /// Nothing could be read.
    Unknown,
    /// Nothing is there; in managed settings that counts as unknown.
    Nothing,
}

const SYNTAX: &str = "write `mcp__server`, `mcp__server__*`, `mcp__server__tool`, or \
                      `mcp__server__tool(argument:pattern)`";

impl BrokenRule {
    fn new(reason: impl Into<String>, fallback: RuleFallback) -> Self {
        Self {
            reason: reason.into(),
            hint: SYNTAX,
            fallback,
        }
    }

    pub(super) fn not_text(kind: &str) -> Self {
        Self::new(format!("it is {kind}, not a string"), RuleFallback::Unknown)
    }

    pub(super) fn not_a_list(value: &Value) -> Self {
        let fallback = match value {
            Value::Null => RuleFallback::Nothing,
            _ => RuleFallback::Unknown,
        };
        let kind = kind_of(value);
        Self {
            hint: "write an array of rules: `[\"mcp__server__tool\"]`",
            ..Self::new(format!("rules are an array, not {kind}"), fallback)
        }
    }

    /// The rule that a deny or ask list keeps in place of the broken one.
    pub(super) fn fallback(
        &self,
        text: &str,
        source: &Origin,
        scope: Scope,
    ) -> Option<PermissionRule> {
        let name = match (&self.fallback, scope) {
            (RuleFallback::Name(name), _) => name.clone(),
            (RuleFallback::Unknown, _)
            | (RuleFallback::Nothing, Scope::Managed | Scope::Enterprise) => "*".to_owned(),
            (RuleFallback::Nothing, _) => return None,
        };
        let mut rule = PermissionRule::named(text, name, Vec::new(), source, scope).ok()?;
        // What stood in parentheses may have been part of a tool's own name.
        rule.whole.push(Glob::new(&fold(&text::clean_line(text))));
        Some(rule)
    }
}

impl PermissionRule {
    pub(super) fn parse(
        written: &str,
        stance: RuleStance,
        source: &Origin,
        scope: Scope,
    ) -> Result<PermissionRule, BrokenRule> {
        let cleaned = text::clean_line(written);
        let (name, inside) = split_predicate(&cleaned)?;
        if written.trim() != cleaned {
            let fallback = readable(name);
            return Err(BrokenRule::new("it has invisible characters", fallback));
        }
        let predicates = match inside {
            None => Vec::new(),
            Some(inside) => RulePredicate::parse_all(inside)
                .map_err(|reason| BrokenRule::new(reason, readable(name)))?,
        };
        let rule = Self::named(written, name.to_owned(), predicates, source, scope)?;
        if stance == RuleStance::Permit {
            rule.believes_one_server()?;
        }
        Ok(rule)
    }

    fn named(
        written: &str,
        name: String,
        predicates: Vec<RulePredicate>,
        source: &Origin,
        scope: Scope,
    ) -> Result<PermissionRule, BrokenRule> {
        let identity = RuleIdentity::of(&name)?;
        let folded = fold(&name);
        Ok(PermissionRule {
            cited: Arc::new(CitedRule {
                rule: text::clean_line(written).into_owned(),
                origin: source.clone(),
            }),
            scope,
            whole: vec![Glob::new(&folded)],
            server: folded.strip_prefix(PREFIX).map(Glob::new),
            name,
            identity,
            predicates,
            given: None,
            meant: None,
        })
    }

    /// An allow rule that was given for one server, as it is defined.
    pub(super) fn given(
        written: &str,
        kept: &Origin,
        server: &ServerName,
    ) -> Result<PermissionRule, BrokenRule> {
        let rule = Self::parse(written, RuleStance::Permit, kept, Scope::Project)?;
        Ok(PermissionRule {
            given: Some(server.clone()),
            ..rule
        })
    }

    /// The server it was given for.
    pub(super) fn given_for(&self) -> Option<&ServerName> {
        self.given.as_ref()
    }

    /// Whether it names no server: it is about all servers, or about the host's own tools.
    pub(super) fn names_no_server(&self) -> bool {
        match &self.identity {
            RuleIdentity::Everything => true,
            // Any other can have a server's name in it: `*github__list`.
            RuleIdentity::Bare(glob) => glob.is_everything(),
            RuleIdentity::Given { server, .. } => server.is_everything(),
            RuleIdentity::Exposed(_) => false,
        }
    }

    /// Whether it can speak of a tool of this server.
    pub(super) fn names_server(&self, server: &ServerName) -> bool {
        match &self.identity {
            RuleIdentity::Everything => true,
            RuleIdentity::Bare(_) => false,
            RuleIdentity::Given { server: glob, .. } => {
                glob.matches(server.as_str()) || glob.matches(&server.normalized())
            }
            RuleIdentity::Exposed(name) => {
                name.starts_with(&format!("{PREFIX}{}__", name::normalize(server.as_str())))
            }
        }
    }

    /// SEC-34: annotations are claims. A rule may believe those of a server that it names in full,
    /// but not those of any server.
    fn believes_one_server(&self) -> Result<(), BrokenRule> {
        let one_server = match &self.identity {
            RuleIdentity::Exposed(_) => true,
            RuleIdentity::Given { server, .. } => server.is_literal(),
            RuleIdentity::Everything | RuleIdentity::Bare(_) => false,
        };
        if one_server || !self.predicates.iter().any(RulePredicate::is_about_hints) {
            return Ok(());
        }
        Err(BrokenRule {
            reason: "an annotation is only a server's claim, and no server is named".to_owned(),
            hint: "name the server whose annotations you believe: `mcp__server__*(@readOnly)`",
            fallback: RuleFallback::Unknown,
        })
    }

    pub(super) fn cited(&self) -> &Arc<CitedRule> {
        &self.cited
    }

    /// What it is about, for a message.
    pub(super) fn reach(&self) -> String {
        if self.name == "*" {
            "every server".to_owned()
        } else {
            format!("`{}`", self.name)
        }
    }
}

impl RuleIdentity {
    fn of(rule: &str) -> Result<RuleIdentity, BrokenRule> {
        let broken = |reason: &str, fallback| Err(BrokenRule::new(reason, fallback));
        if rule.is_empty() {
            return broken("it is empty", RuleFallback::Unknown);
        }
        if rule.chars().all(|c| c == '*') {
            return Ok(RuleIdentity::Everything);
        }
        let Some(rest) = rule.strip_prefix(PREFIX) else {
            return Ok(RuleIdentity::Bare(Glob::new(rule)));
        };
        match rest.split_once("__") {
            _ if rest.is_empty() => broken("it names no server", RuleFallback::Unknown),
            None => Ok(RuleIdentity::Given {
                server: Glob::new(rest),
                tool: None,
            }),
            // A server whose name has no plain character at its start.
            Some(("", _)) if could_be_exposed(rule) && name::ends_like_suffix(rule) => {
                Ok(RuleIdentity::Exposed(rule.to_owned()))
            }
            Some(("", _)) => broken("it names no server", RuleFallback::Unknown),
            Some((server, "")) => broken(
                "it names no tool",
                RuleFallback::Name(format!("{PREFIX}{server}")),
            ),
            Some(_) if could_be_exposed(rule) => Ok(RuleIdentity::Exposed(rule.to_owned())),
            Some((server, tool)) => Ok(RuleIdentity::Given {
                server: Glob::new(server),
                tool: Some(Glob::new(tool)),
            }),
        }
    }
}

/// The allow rule that names every tool of this server and of no other; none where its name
/// cannot be written so: `mcp__a__b` is tool `b` of `a`.
pub fn rule_for_server(server: &ServerName) -> Option<String> {
    let text = format!("{PREFIX}{server}");
    let rule = permitting(&text)?;
    let whole_server = RuleIdentity::Given {
        server: Glob::new(server.as_str()),
        tool: None,
    };
    (rule.identity == whole_server && !server.as_str().contains('*')).then_some(text)
}

/// A rule as it will be read back, if it has no predicate.
pub(super) fn permitting(text: &str) -> Option<PermissionRule> {
    let rule =
        PermissionRule::parse(text, RuleStance::Permit, &Origin::Program, Scope::User).ok()?;
    (rule.name == text && rule.predicates.is_empty()).then_some(rule)
}

fn could_be_exposed(rule: &str) -> bool {
    rule.len() <= name::MAX_EXPOSED_LEN && name::normalize(rule) == rule
}

pub(super) fn could_be_cut(rule: &str) -> bool {
    rule.len() == name::MAX_EXPOSED_LEN && could_be_exposed(rule) && name::ends_like_suffix(rule)
}

/// The name, and what stands in parentheses behind it.
fn split_predicate(rule: &str) -> Result<(&str, Option<&str>), BrokenRule> {
    match rule.split_once('(') {
        None if rule.ends_with(')') => {
            let name = rule.trim_end_matches(')').trim_end();
            Err(BrokenRule::new("a `)` has no `(`", readable(name)))
        }
        None => Ok((rule, None)),
        Some((name, rest)) => match rest.strip_suffix(')') {
            Some(inside) => Ok((name.trim_end(), Some(inside))),
            None => Err(BrokenRule::new(
                "a `(` is not closed",
                readable(name.trim_end()),
            )),
        },
    }
}

fn readable(name: &str) -> RuleFallback {
    match RuleIdentity::of(name) {
        // What could mean everything names no server that we could read.
        Ok(RuleIdentity::Everything) => RuleFallback::Unknown,
        Ok(_) => RuleFallback::Name(name.to_owned()),
        Err(broken) => broken.fallback,
    }
}
