//! Permission: may this call run.
//!
//! Owns turning a rule, a mode or a person's answer into a [`PermittedCall`], which has no other
//! constructor. The rules themselves are `toolway-config`'s; how a person is asked is the
//! front-end's. A tool's annotations count only where a person wrote a rule about them (SEC-34).

use serde_json::{Map, Value};
use toolway_config::permission::{Decision, Permissions, Subject};
use toolway_types::{Origin, Untrusted};

use super::hooks::{HookDecision, HookedCall};
use crate::call::{Answer, CallError, Consent, Prompter, Question, RefusedBy};
use crate::catalog::CatalogTool;

/// A call that may run. Only [`permit`] makes one:
///
/// ```compile_fail,E0451
/// use toolway::dispatch::{hooks::HookedCall, permission::{Grant, PermittedCall}};
///
/// fn forge(call: HookedCall) -> PermittedCall {
///     PermittedCall { call, grant: Grant::Typed }
/// }
/// ```
#[derive(Debug)]
pub struct PermittedCall {
    call: HookedCall,
    grant: Grant,
}

/// Who said yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// An allow rule.
    Rule {
        /// The rule as written.
        rule: String,
        /// Where it stands.
        origin: Origin,
    },
    /// A hook, where neither a rule nor another hook wanted a person asked.
    Hook {
        /// What it is called in messages.
        title: String,
        /// Where it stands.
        origin: Origin,
    },
    /// The mode, which allows everything.
    Mode,
    /// The person who typed the call.
    Typed,
    /// The person who was asked.
    Person,
    /// Nobody has to: it is a tool of the host's own that does no harm, and neither a rule nor a
    /// hook has anything against it.
    BuiltIn,
}

impl PermittedCall {
    /// The tool.
    pub fn tool(&self) -> &CatalogTool {
        self.call.tool()
    }

    /// The arguments.
    pub fn arguments(&self) -> &Map<String, Value> {
        self.call.arguments()
    }

    /// Who said yes.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    pub(super) fn tool_name(&self) -> Untrusted {
        self.call.tool_name()
    }

    pub(super) fn warnings(&self) -> &[String] {
        self.call.warnings()
    }

    pub(super) fn context(&self) -> &[String] {
        self.call.context()
    }
}

/// Decides whether the call may run, asking a person where that is called for: a deny rule, then
/// a hook's no, then whoever wants a person asked, then an allow rule or a hook's yes, then the
/// mode.
pub async fn permit(
    call: HookedCall,
    permissions: &Permissions,
    consent: Consent,
    prompter: Option<&dyn Prompter>,
) -> Result<PermittedCall, CallError> {
    let tool = call.tool();
    let subject = Subject::tool(&tool.key)
        .shown_as(&tool.name)
        .with_arguments(call.arguments())
        .with_hints(tool.hints);
    let verdict = call.verdict();
    let hook = |decision| verdict.filter(|verdict| verdict.decision == decision);
    let asks = hook(HookDecision::Ask);
    let decided = match permissions.decide(subject) {
        Decision::Deny { rule, origin } => Err(RefusedBy::Rule { rule, origin }),
        Decision::Unreadable { origin } => Err(RefusedBy::Unreadable { origin }),
        decision => match (
            hook(HookDecision::Deny),
            hook(HookDecision::Allow),
            decision,
        ) {
            (Some(denied), ..) => Err(denied.refusal()),
            (_, Some(allowed), Decision::Ask { rule: None }) => {
                let (title, origin) = allowed.cited();
                Ok(Grant::Hook { title, origin })
            }
            (_, _, Decision::Allow { rule }) if asks.is_none() => Ok(match rule {
                Some((rule, origin)) => Grant::Rule { rule, origin },
                None => Grant::Mode,
            }),
            (_, _, Decision::Ask { rule: None }) if asks.is_none() && is_free(tool) => {
                Ok(Grant::BuiltIn)
            }
            (_, _, decision) => {
                let rule = match decision {
                    Decision::Ask { rule } => rule,
                    // It is the hook that wants a person asked.
                    _ => None,
                };
                match (consent, prompter) {
                    (Consent::Typed, _) => Ok(Grant::Typed),
                    (Consent::Prompt, None) => Err(match (rule, asks) {
                        (None, Some(asks)) => {
                            asks.refusal_because("it wants a person asked, and there is none")
                        }
                        (rule, _) => RefusedBy::NobodyToAsk { rule },
                    }),
                    (Consent::Prompt, Some(prompter)) => {
                        let asks = asks.map(super::hooks::Verdict::shown);
                        ask(&call, prompter, rule.as_ref(), asks.as_deref()).await
                    }
                }
            }
        },
    };
    match decided {
        Ok(grant) => Ok(PermittedCall { call, grant }),
        Err(by) => Err(CallError::Refused {
            server: call.tool().key.server.clone(),
            tool: call.tool_name(),
            by,
        }),
    }
}

fn is_free(tool: &CatalogTool) -> bool {
    tool.own.as_ref().is_some_and(|answers| answers.free)
}

async fn ask(
    call: &HookedCall,
    prompter: &dyn Prompter,
    rule: Option<&(String, Origin)>,
    hook: Option<&str>,
) -> Result<Grant, RefusedBy> {
    let tool = call.tool();
    let question = Question {
        key: &tool.key,
        name: &tool.name,
        title: tool.title.as_deref(),
        arguments: call.arguments(),
        destructive: tool.hints.destructive,
        rule: rule.map(|(rule, origin)| (rule.as_str(), origin)),
        hook,
    };
    match prompter.ask(&question).await {
        Answer::Yes => Ok(Grant::Person),
        Answer::No => Err(RefusedBy::Person),
    }
}
