//! Permission: may this call run.
//!
//! Owns turning a rule, a mode or a person's answer into a [`PermittedCall`], which has no other
//! constructor, and what a changed definition leads to (SEC-33). The rules themselves are
//! `toolway-config`'s; how a person is asked is the front-end's; what becomes of the answers is
//! `answers.rs`. A tool's annotations count only where a person wrote a rule about them (SEC-34).

use std::ops::Deref;
use std::sync::Arc;

use serde_json::{Map, Value};
use toolway_config::permission::{
    CallSubject, CitedRule, Classifier, PermissionDecision, PermissionMode, PinPolicy,
};
use toolway_types::Origin;

use super::answers::AskReasons;
use super::hooks::{HookDecision, HookVerdict, HookedCall};
use super::{Dispatch, classifier};
use crate::audit::AuditEntry;
use crate::call::{
    CallError, CallFault, Consent, PermissionQuestion, PermittedBy, PermittingClassifier,
    PermittingHook, RefusedBy,
};
use crate::pins::{Against, PinState};

#[cfg(test)]
mod tests;

/// A call that may run. Only this module makes one:
///
/// ```compile_fail,E0451
/// use toolway::call::PermittedBy;
/// use toolway::dispatch::{hooks::HookedCall, permission::PermittedCall};
///
/// fn forge(call: HookedCall<'_>) -> PermittedCall<'_> {
///     PermittedCall { call, grant: PermittedBy::Typed }
/// }
/// ```
#[derive(Debug)]
pub struct PermittedCall<'a> {
    call: HookedCall<'a>,
    grant: PermittedBy,
}

impl<'a> Deref for PermittedCall<'a> {
    type Target = HookedCall<'a>;

    fn deref(&self) -> &HookedCall<'a> {
        &self.call
    }
}

impl PermittedCall<'_> {
    /// Who said yes.
    pub fn grant(&self) -> &PermittedBy {
        &self.grant
    }

    /// Tells the caller something with the outcome.
    pub(super) fn warn(&mut self, warning: String) {
        self.call.warn(warning);
    }
}

/// What rules and hooks say, before a user is asked.
enum RuleOpinion {
    Granted(PermittedBy),
    /// The rule that wants it; none when the mode or a hook does.
    Ask(Option<Arc<CitedRule>>),
}

/// Decides whether the call may run, asking a user where needed: a deny rule, then a hook's
/// refusal, then a rule, hook or changed definition that wants a user asked, then an allow rule or
/// a hook's permission, then the mode. Whatever may run is pinned as it is.
pub(crate) async fn permit<'a>(
    mut call: HookedCall<'a>,
    dispatch: &Dispatch<'_>,
    consent: Consent,
    entry: &mut AuditEntry,
) -> Result<PermittedCall<'a>, CallError> {
    match decide(&mut call, dispatch, consent, entry).await {
        Ok(grant) => Ok(PermittedCall { call, grant }),
        Err(by) => Err(call.failed(CallFault::Refused(by))),
    }
}

/// What is rare here is boxed: a call that a rule allows must not carry the room for it along.
async fn decide(
    call: &mut HookedCall<'_>,
    dispatch: &Dispatch<'_>,
    consent: Consent,
    entry: &mut AuditEntry,
) -> Result<PermittedBy, RefusedBy> {
    let opinion = opinion(call, dispatch)?;
    let pins = dispatch.approvals.pins();
    let policy = dispatch.permissions.pins();
    let server = dispatch.routes.definition(&call.tool().key.server);
    let standing = match policy {
        PinPolicy::Off => PinState::Same,
        _ if !call.tool().is_pinned() => PinState::Same,
        // It says what its tools are, and is asked about them.
        _ if dispatch.permissions.is_of_program(&call.tool().key.server) => PinState::Same,
        PinPolicy::Ask | PinPolicy::Warn => {
            let tool = call.tool();
            // A call that a person types relies on no rule that could have meant another tool.
            let shown = tool.shown_for_pin().filter(|_| consent != Consent::Typed);
            let (place, definition) = (tool.place(server), tool.definition());
            match pins.check(&place, definition, shown) {
                PinState::Changed(_)
                    if dispatch.approvals.has_accepted(&place, definition.digest()) =>
                {
                    PinState::Same
                }
                standing => standing,
            }
        }
    };
    let mut change = None;
    if let PinState::Changed(difference) = &standing {
        entry.changed(difference);
        if policy == PinPolicy::Ask {
            change = Some(difference);
            if consent == Consent::Reviewed {
                // What was reviewed need not be what is there by now.
                call.warn(format!(
                    "`{}` of server `{}` is accepted as it is defined now: {}",
                    call.tool().shown,
                    call.tool().key.server,
                    difference.all.join(" | ")
                ));
            }
        } else {
            let tool = format!(
                "`{}` of server `{}`",
                call.tool().shown,
                call.tool().key.server
            );
            let stands = match difference.against {
                Against::Permitted => {
                    format!("{tool} is no longer defined as it was when it was first permitted")
                }
                Against::Nothing => {
                    format!("nobody can tell whether {tool} changed since it was permitted")
                }
                Against::Namesake => format!("{tool} has the name of another"),
            };
            call.warn(format!("{stands}: {}", difference.lines.join(" | ")));
        }
    }
    let grant = match (opinion, change) {
        (RuleOpinion::Granted(grant), None) => grant,
        (RuleOpinion::Granted(grant), Some(_)) if consent == Consent::Reviewed => grant,
        (RuleOpinion::Granted(_), Some(_)) => {
            let asking = AskReasons {
                // The rule allows it again once the change is accepted.
                allowed: true,
                ..AskReasons::new(server.map(AsRef::as_ref), None, change)
            };
            Box::pin(consult(call, dispatch, consent, asking, entry)).await?
        }
        (RuleOpinion::Ask(rule), change) => {
            let rule = rule.as_deref().map(owned);
            let asking = AskReasons {
                brought: dispatch
                    .permissions
                    .repository_server(&call.tool().key.server),
                ..AskReasons::new(server.map(AsRef::as_ref), rule, change)
            };
            Box::pin(consult(call, dispatch, consent, asking, entry)).await?
        }
    };
    if standing != PinState::Same {
        entry.asked(call.arguments(), call.raw_arguments());
        let tool = call.tool();
        let place = tool.place(server).into_owned();
        let shown = tool.shown_for_pin();
        // What an agent or a client says yes to must not be what a rule of the user allows then.
        let by_owner = dispatch.asks_owner && matches!(grant, PermittedBy::Person);
        let is_alone = change.is_some()
            && !by_owner
            && dispatch
                .approvals
                .accept_alone(&place, tool.definition().digest());
        if !is_alone {
            let pinned = pins.pin(place, tool.pin_label(), tool.definition(), shown);
            Box::pin(pinned).await;
        }
    }
    Ok(grant)
}

/// What rules and hooks make of the call.
fn opinion(call: &HookedCall<'_>, dispatch: &Dispatch<'_>) -> Result<RuleOpinion, RefusedBy> {
    let tool = call.tool();
    let subject = subject(call);
    let verdict = call.verdict();
    let hook = |decision| verdict.filter(|verdict| verdict.decision == decision);
    let decision = match dispatch.permissions.decide(subject) {
        PermissionDecision::Deny { rule } => {
            let (rule, origin) = owned(&rule);
            return Err(RefusedBy::Rule { rule, origin });
        }
        PermissionDecision::Unreadable { origin } => return Err(RefusedBy::Unreadable { origin }),
        decision => decision,
    };
    if let Some(denied) = hook(HookDecision::Deny) {
        return Err(denied.refusal());
    }
    let asks = hook(HookDecision::Ask).is_some();
    Ok(match (decision, hook(HookDecision::Allow)) {
        (PermissionDecision::Ask { rule: None }, Some(allowed)) => {
            let (title, origin) = allowed.cited();
            RuleOpinion::Granted(PermittedBy::Hook(Box::new(PermittingHook {
                title,
                origin,
            })))
        }
        (PermissionDecision::Allow { rule }, _) if !asks => RuleOpinion::Granted(match rule {
            Some(rule) => PermittedBy::Rule(rule),
            None => PermittedBy::Mode,
        }),
        (PermissionDecision::Ask { rule: None }, None) if !asks && tool.is_free() => {
            RuleOpinion::Granted(PermittedBy::BuiltIn)
        }
        (PermissionDecision::Ask { rule }, _) => RuleOpinion::Ask(rule),
        // It is the hook that wants a person asked.
        _ => RuleOpinion::Ask(None),
    })
}

/// The call, as rules look at it.
fn subject<'c>(call: &'c HookedCall<'_>) -> CallSubject<'c> {
    call.tool().subject().with_arguments(call.arguments())
}

fn owned(cited: &CitedRule) -> (String, Origin) {
    (cited.rule.clone(), cited.origin.clone())
}

/// Finds a person's yes: typed, said before, or asked for now.
async fn consult(
    call: &mut HookedCall<'_>,
    dispatch: &Dispatch<'_>,
    consent: Consent,
    asking: AskReasons<'_>,
    entry: &mut AuditEntry,
) -> Result<PermittedBy, RefusedBy> {
    let asking = AskReasons {
        of_owner: dispatch.asks_owner,
        apart: (dispatch.permissions).is_apart(&call.tool().key.server),
        ..asking
    };
    let hook = call
        .verdict()
        .filter(|verdict| verdict.decision == HookDecision::Ask)
        .cloned();
    let unseen = match consent {
        Consent::Reviewed => None,
        _ => asking.change,
    };
    let auto = dispatch.permissions.mode() == PermissionMode::Auto;
    // Neither the user who typed the call nor the caller's knows what a hook has against it or
    // that the tool changed.
    if hook.is_none() && unseen.is_none() {
        let is_open = asking.is_of_mode() && !(auto && has_policy_classifier(dispatch));
        let may_bypass = dispatch.permissions.bypass_forbidden_by().is_none();
        match consent {
            Consent::Typed | Consent::Reviewed => return Ok(PermittedBy::Typed),
            Consent::Delegated if is_open => return Ok(PermittedBy::Caller),
            Consent::Bypass if is_open && may_bypass => return Ok(PermittedBy::Mode),
            Consent::Delegated | Consent::Bypass | Consent::Prompt => {}
        }
    }
    if hook.is_none() && unseen.is_none() && dispatch.approvals.covers(call.tool(), &asking) {
        return Ok(PermittedBy::Session);
    }
    entry.asked(call.arguments(), call.raw_arguments());
    let is_open = hook.is_none() && asking.is_of_mode();
    let classified = if is_open && auto {
        classify(call, dispatch, entry).await?
    } else {
        None
    };
    let classified = match classified {
        Some(ClassifierDecision::Granted(grant)) => return Ok(grant),
        Some(ClassifierDecision::Asks(opinion)) => Some(opinion),
        None => None,
    };
    let unheeded = match (&asking.rule, asking.allowed) {
        (None, false) => dispatch.permissions.unheeded(subject(call)),
        _ => None,
    };
    let Some(prompter) = dispatch.prompter else {
        if let Some(opinion) = classified {
            return Err(opinion.refusal_without_person());
        }
        return Err(match (unseen, &asking.rule, &hook) {
            (Some(difference), ..) => RefusedBy::Changed {
                difference: difference.clone(),
            },
            (None, None, Some(asks)) => asks.refusal_without_person(),
            (None, rule, _) => match asking.brought {
                Some(server) if rule.is_none() => RefusedBy::NobodyForBrought {
                    server: Arc::clone(server),
                    rule: unheeded.map(|unheeded| unheeded.rule),
                },
                _ => RefusedBy::NobodyToAsk { rule: rule.clone() },
            },
        });
    };
    let asks = hook.as_ref().map(HookVerdict::shown);
    let advice = classified
        .as_ref()
        .map(classifier::ClassifierOpinion::shown);
    let tool = call.tool();
    let question = PermissionQuestion {
        key: &tool.key,
        name: &tool.name,
        title: tool.title.as_deref(),
        arguments: call.arguments(),
        destructive: tool.hints.destructive,
        rule: asking
            .rule
            .as_ref()
            .map(|(rule, origin)| (rule.as_str(), origin)),
        unheeded: unheeded.as_ref(),
        hook: asks.as_deref(),
        classifier: advice.as_deref(),
        change: asking.change,
        lasting: dispatch.approvals.lasting(tool, &asking, hook.is_some()),
    };
    let said = dispatch
        .approvals
        .ask(prompter, tool, &question, &asking)
        .await;
    if let Some(warning) = said.warning {
        call.warn(warning);
    }
    if let (Ok(_), Some(arguments)) = (&said.grant, said.rewritten) {
        Box::pin(rejudge(call, dispatch, arguments, entry)).await?;
    }
    let newest = dispatch.newest.filter(|_| said.grant.is_ok());
    match newest.and_then(|newest| newest.refuses(subject(call), &call.tool().key.server)) {
        Some(refused) => Err(refused),
        None => said.grant,
    }
}

/// Gives the call the arguments that came with a yes, if nothing refuses those.
async fn rejudge(
    call: &mut HookedCall<'_>,
    dispatch: &Dispatch<'_>,
    arguments: Map<String, Value>,
    entry: &mut AuditEntry,
) -> Result<(), RefusedBy> {
    let unfit = |why| {
        let why = format!("the arguments that came with the yes do not fit the tool: {why}");
        RefusedBy::Person { reason: Some(why) }
    };
    call.rejudge(arguments, dispatch, entry)
        .await
        .map_err(unfit)?;
    // Whoever wants a person asked has one.
    opinion(call, dispatch).map(drop)
}

/// Whether it is an organisation that names who decides in mode `auto`.
fn has_policy_classifier(dispatch: &Dispatch<'_>) -> bool {
    let classifier = dispatch.permissions.classifier();
    classifier.is_some_and(Classifier::is_policy)
}

/// What came of asking the classifier.
enum ClassifierDecision {
    Granted(PermittedBy),
    /// A person is to be asked.
    Asks(classifier::ClassifierOpinion),
}

/// Asks the classifier of mode `auto`; `None` where there is none.
async fn classify(
    call: &mut HookedCall<'_>,
    dispatch: &Dispatch<'_>,
    entry: &mut AuditEntry,
) -> Result<Option<ClassifierDecision>, RefusedBy> {
    let asked = classifier::ask(call, subject(call), dispatch);
    let Some(opinion) = Box::pin(asked).await else {
        return Ok(None);
    };
    entry.classified(opinion.noted());
    if let Some(failure) = opinion.failure() {
        call.warn(failure);
    }
    match opinion.verdict() {
        classifier::ClassifierVerdict::Allow => {
            let (title, origin) = opinion.granting();
            let grant = PermittingClassifier { title, origin };
            Ok(Some(ClassifierDecision::Granted(PermittedBy::Classifier(
                Box::new(grant),
            ))))
        }
        classifier::ClassifierVerdict::Deny => Err(opinion.refusal()),
        classifier::ClassifierVerdict::Ask => Ok(Some(ClassifierDecision::Asks(opinion))),
    }
}
