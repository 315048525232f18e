//! Hooks: what a person's own programs, tools and functions say around a call.
//!
//! Owns the stage before a call and what its hooks' answers add up to: deny beats ask beats
//! allow, and a hook that fails might have said no, so it counts as one (REL-30). What the
//! verdict weighs against rules and people is decided in `permission.rs`.
//! Parts: `runner.rs` (running them), `input.rs` and `reply.rs` (the JSON on both sides),
//! `tool.rs` (a hook that is a tool), `library.rs` (one that is a function),
//! `library_classifier.rs` (such a function in mode `auto`), `after.rs` (the stage after a call),
//! `elicitation.rs` (around a server's question).

use std::ops::Deref;

use serde_json::{Map, Value};
use toolway_config::permission::names_of_tool;
use toolway_config::{HookEvent, Hooks};
use toolway_types::Origin;

use self::runner::{HookName, HookResult};
use super::Dispatch;
use super::validate::ValidCall;
use crate::audit::AuditEntry;
use crate::call::{CallError, CallFault, RefusedBy};

mod after;
mod elicitation;
mod input;
mod library;
mod library_classifier;
mod reply;
mod runner;
#[cfg(test)]
mod tests;
mod tool;

pub(super) use self::after::{AfterCall, looks_at_results};
pub use self::input::{HookCaller, HookInput};
pub use self::library::{HookFunction, LibraryHook};
pub use self::library_classifier::{
    Classification, ClassifierFunction, ClassifierInput, ClassifierRule, LibraryClassifier,
};
pub(super) use self::reply::one_line;
pub use self::reply::{HookDecision, HookReply};
pub use self::runner::HookRunner;
pub(crate) use self::runner::HookRunnerOwner;
pub(super) use self::runner::{HookResources, Printed, title};

/// A call that the hooks have seen, with what they say of it.
#[derive(Debug)]
pub struct HookedCall<'a> {
    call: ValidCall<'a>,
    /// Boxed, like all that few calls have: every stage moves the call on.
    said: Option<Box<HookRemarks>>,
}

/// What is to be said of a call, by hooks and others.
#[derive(Debug, Default)]
struct HookRemarks {
    warnings: Vec<String>,
    context: Vec<String>,
    verdict: Option<HookVerdict>,
    /// The hook whose arguments these are.
    rewritten_by: Option<HookName>,
}

/// What the hooks say of a call, taken together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HookVerdict {
    pub(super) decision: HookDecision,
    /// The hook that said it first.
    hook: HookName,
    reason: Option<String>,
}

impl HookVerdict {
    fn deny(hook: HookName, reason: String) -> Self {
        Self {
            decision: HookDecision::Deny,
            hook,
            reason: Some(reason),
        }
    }

    /// The hook, for a grant.
    pub(super) fn cited(&self) -> (String, Origin) {
        (self.hook.title.clone(), self.hook.origin.clone())
    }

    /// The hook and its reason, for a person.
    pub(super) fn shown(&self) -> String {
        match &self.reason {
            Some(reason) => format!("{}: {reason}", self.hook),
            None => self.hook.to_string(),
        }
    }

    /// As a refusal.
    pub(super) fn refusal(&self) -> RefusedBy {
        RefusedBy::Hook {
            title: self.hook.title.as_str().into(),
            origin: self.hook.origin.clone(),
            reason: self
                .reason
                .as_deref()
                .unwrap_or("it gives no reason")
                .into(),
        }
    }

    /// As a refusal, where it wants a person asked and there is none.
    pub(super) fn refusal_without_person(&self) -> RefusedBy {
        RefusedBy::NobodyForHook {
            title: self.hook.title.as_str().into(),
            origin: self.hook.origin.clone(),
            reason: self.reason.as_deref().map(Into::into),
        }
    }
}

impl<'a> Deref for HookedCall<'a> {
    type Target = ValidCall<'a>;

    fn deref(&self) -> &ValidCall<'a> {
        &self.call
    }
}

impl HookedCall<'_> {
    /// What the caller should be told with the outcome.
    pub fn warnings(&self) -> &[String] {
        self.said.as_ref().map_or(&[], |said| &said.warnings)
    }

    /// Tells the caller something with the outcome.
    pub(super) fn warn(&mut self, warning: String) {
        self.said().warnings.push(warning);
    }

    /// What hooks say to the reader of the result.
    pub(super) fn context(&self) -> &[String] {
        self.said.as_ref().map_or(&[], |said| &said.context)
    }

    /// What the hooks say; nothing when none has an opinion.
    pub(super) fn verdict(&self) -> Option<&HookVerdict> {
        self.said.as_ref()?.verdict.as_ref()
    }

    fn said(&mut self) -> &mut HookRemarks {
        self.said.get_or_insert_default()
    }
}

/// Runs the hooks before a call. What they say is carried on; arguments that they wrote are
/// checked like any others.
pub(crate) async fn run<'a>(
    call: ValidCall<'a>,
    dispatch: &Dispatch<'_>,
    entry: &mut AuditEntry,
) -> HookedCall<'a> {
    let mut hooked = HookedCall { call, said: None };
    if let Some(warning) = hooked.call.warning().map(str::to_owned) {
        hooked.warn(warning);
    }
    if any(dispatch.hooks, dispatch.runner) {
        // Boxed: a call without hooks must not carry the room for them along.
        Box::pin(hooked.ask(dispatch, entry)).await;
    }
    hooked
}

/// Whether there are hooks at all.
fn any(hooks: &Hooks, runner: &HookRunner) -> bool {
    !(hooks.is_empty() && runner.is_empty())
}

impl HookedCall<'_> {
    /// Runs the hooks that are concerned.
    async fn ask(&mut self, dispatch: &Dispatch<'_>, entry: &mut AuditEntry) {
        let event = HookEvent::PreToolUse;
        let tool = self.call.tool();
        let names = names_of_tool(&tool.key, &tool.name);
        let concerned = dispatch.runner.concerned(dispatch.hooks, event, &names);
        if concerned.is_empty() {
            return;
        }
        entry.asked(self.call.arguments(), self.call.raw_arguments());
        let input = HookInput::call(
            event,
            tool,
            self.call.arguments().clone(),
            &dispatch.caller.caller,
        );
        let means = dispatch.means();
        let heard = dispatch.runner.run(concerned, event, input, means).await;
        self.take(heard);
        let rewritten_by = self
            .said
            .as_ref()
            .and_then(|said| said.rewritten_by.as_ref());
        if let Some(hook) = rewritten_by {
            entry.rewritten(hook.acting());
        }
    }

    /// Takes other arguments if they fit, and has the hooks look at those; says why not otherwise.
    pub(super) async fn rejudge(
        &mut self,
        arguments: Map<String, Value>,
        dispatch: &Dispatch<'_>,
        entry: &mut AuditEntry,
    ) -> Result<(), String> {
        let taken = self.call.rewrite(arguments);
        taken.map_err(|error| reply::one_line(&unfit(&error)))?;
        if let Some(said) = &mut self.said {
            // It was said of other arguments.
            said.verdict = None;
        }
        if any(dispatch.hooks, dispatch.runner) {
            self.ask(dispatch, entry).await;
        }
        Ok(())
    }

    fn take(&mut self, heard: Vec<HookResult>) {
        let mut rewritten: Option<(HookName, Map<String, Value>)> = None;
        for HookResult { hook, said } in heard {
            let said = match said {
                Ok(said) => said,
                Err(failure) => {
                    self.judge(HookVerdict::deny(hook, failure));
                    continue;
                }
            };
            self.said().context.extend(said.context());
            if let Some(message) = &said.system_message {
                self.warn(format!("{hook} says: {}", reply::one_line(message)));
            }
            if let Some(decision) = said.decision {
                self.judge(HookVerdict {
                    decision,
                    hook: hook.clone(),
                    reason: said.why(),
                });
            }
            if let Some(arguments) = said.updated_input {
                if let Some((other, _)) = &rewritten {
                    self.warn(format!(
                        "{other} rewrote the arguments, and so did {hook}: the latter's were sent"
                    ));
                }
                rewritten = Some((hook, arguments));
            }
        }
        let denied = |verdict: &HookVerdict| verdict.decision == HookDecision::Deny;
        if let Some((hook, arguments)) = rewritten
            && !self.verdict().is_some_and(denied)
        {
            let Err(error) = self.call.rewrite(arguments) else {
                self.said().rewritten_by = Some(hook);
                return;
            };
            let reason = format!(
                "the arguments it wrote do not fit the tool: {}",
                unfit(&error)
            );
            self.judge(HookVerdict::deny(hook, reply::one_line(&reason)));
        }
    }

    /// The strictest counts, and of equals the first.
    fn judge(&mut self, verdict: HookVerdict) {
        let known = self.verdict().map(|known| known.decision);
        if known.is_none_or(|known| known < verdict.decision) {
            self.said().verdict = Some(verdict);
        }
    }
}

/// What is wrong with arguments, on one line.
fn unfit(error: &CallError) -> String {
    match error {
        CallError::Failed(_, CallFault::Invalid(problems)) => problems
            .iter()
            .map(|problem| format!("`{}`: {}", problem.path, problem.message))
            .collect::<Vec<_>>()
            .join("; "),
        other => other.to_string(),
    }
}

impl<'a> Dispatch<'a> {
    fn means(&'a self) -> HookResources<'a> {
        HookResources {
            place: self.hooks.place(),
            calls: Some(self),
        }
    }
}
