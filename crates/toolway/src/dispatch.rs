//! One call, top to bottom. Read this file first.
//!
//! Owns the order of the stages. Each stage is a plain function in its own module and consumes
//! the type that the stage before it made, so none can be left out:
//!
//! ```text
//! ToolRequest ─resolve→ ResolvedCall ─validate→ ValidCall ─hooks→ HookedCall
//!             ─permission→ PermittedCall ─send→ RawResult ─result→ ToolOutcome
//! ```
//!
//! Does not own connections: it asks [`Routes`] for one. A call runs in its caller's task;
//! dropping the future cancels it, wherever it stands.

use std::mem;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use toolway_config::ResultText;
use toolway_config::permission::{CallSubject, Hooks, Permissions};
use toolway_types::{BytePool, ServerName};

use crate::audit::{Audit, AuditEntry};
use crate::call::{
    CallError, CallOptions, CallerSide, Prompter, RefusedBy, ResultDelivery, ToolOutcome,
    ToolRequest, ToolTarget,
};
use crate::catalog::Catalog;
use crate::route::{GeneralLimits, Routes};

pub mod answers;
mod classifier;
pub mod hooks;
pub(crate) mod offered;
pub mod permission;
pub mod resolve;
pub mod result;
pub mod send;
pub mod validate;

#[cfg(test)]
mod tests;

/// The rules of this very moment. A call goes by those that held when it began; but a person may take
/// long to answer, and a yes is none any more where a rule says no by then.
pub trait NewestRules: Send + Sync {
    /// Who refuses this of a server now.
    fn refuses(&self, subject: CallSubject<'_>, server: &ServerName) -> Option<RefusedBy>;
}

/// Everything a call needs from the host, borrowed for the time of one call.
#[derive(Clone)]
pub struct Dispatch<'a> {
    /// Who asks.
    pub caller: &'a Arc<CallerSide>,
    /// What is on offer. A call stays with this revision to its end.
    pub catalog: &'a Arc<Catalog>,
    /// The rules and the mode.
    pub permissions: &'a Permissions,
    /// The configured hooks.
    pub hooks: &'a Hooks,
    /// Who runs them, and the hooks of the embedding program.
    pub runner: &'a hooks::HookRunner,
    /// The open connections.
    pub routes: &'a dyn Routes,
    /// What people answered before, and how tools were defined then.
    pub approvals: &'a answers::PersonAnswers,
    /// Who asks a person, where someone can.
    pub prompter: Option<&'a dyn Prompter>,
    /// What rules say by the time that a person has answered, where they can change meanwhile.
    pub newest: Option<&'a dyn NewestRules>,
    /// Whether that person is the owner of the host, in the place of a caller that cannot be asked.
    pub asks_owner: bool,
    /// The limits where neither the call nor the server's entry says.
    pub limits: GeneralLimits,
    /// The private directory for files of results.
    pub output_dir: &'a Path,
    /// The memory that pictures are decoded in.
    pub picture_memory: &'a BytePool,
    /// Where calls are written down.
    pub audit: Option<&'a Audit>,
    /// The most tokens of a result that a model gets.
    pub max_output_tokens: usize,
    /// What becomes of hidden characters in the text of a result that a model gets.
    pub result_text: ResultText,
}

impl Dispatch<'_> {
    /// Carries one call from the request to the outcome, and writes it down.
    pub async fn call(
        &self,
        mut request: ToolRequest,
        options: CallOptions,
    ) -> Result<ToolOutcome, CallError> {
        let mut entry = AuditEntry::begin(self.audit, &request, self.caller);
        let outcome = self.run(&mut request, &options, &mut entry).await;
        entry.finish(&outcome).await;
        outcome
    }

    /// The one way by which something inside a call, such as a tool that calls tools, a hook or a
    /// gateway, calls a tool. It runs through all stages as a call of that very tool: rules, pins,
    /// hooks and the audit see it and its arguments, not what it came through, so a detour gets
    /// around no rule. Boxed, because it is part of another call.
    pub fn forward(
        &self,
        request: ToolRequest,
        options: CallOptions,
    ) -> BoxFuture<'_, Result<ToolOutcome, CallError>> {
        Box::pin(self.call(request, options))
    }

    /// Runs one call; its line in the audit is the caller's to finish. Takes the arguments out of
    /// the request.
    pub(crate) async fn run(
        &self,
        request: &mut ToolRequest,
        options: &CallOptions,
        entry: &mut AuditEntry,
    ) -> Result<ToolOutcome, CallError> {
        let mut arguments = resolve::CallArguments::of(
            mem::take(&mut request.arguments),
            mem::take(&mut request.carried),
        );
        let outcome = self
            .run_stages(&request.target, &mut arguments, options, entry)
            .await;
        if outcome.is_err() {
            entry.asked(arguments.members(), arguments.raw());
        }
        outcome
    }

    /// The stages, one after the other.
    async fn run_stages(
        &self,
        target: &ToolTarget,
        arguments: &mut resolve::CallArguments,
        options: &CallOptions,
        entry: &mut AuditEntry,
    ) -> Result<ToolOutcome, CallError> {
        let aimed;
        let mut call = resolve::resolve(self.catalog, target, arguments)
            .map_err(|error| self.or_unavailable(error))?;
        if call.tool().is_built_in()
            && let Some(tool) = self.aimed(&call)?
        {
            aimed = tool;
            call = call.judged_as(&aimed);
        }
        entry.resolved(call.tool());
        let call = validate::validate(call)?;
        let call = hooks::run(call, self, entry).await;
        let call = permission::permit(call, self, options.consent, entry).await?;
        entry.granted(call.grant());
        let mut after = hooks::AfterCall::of(&call, self);
        let mut answer = send::send(call, self, options, entry).await;
        let received = answer.as_ref().ok();
        let received = received.filter(|_| options.delivery != ResultDelivery::Raw);
        let unfit = received.and_then(|it| validate::structured(it.tool(), it.result()));
        if let Some(after) = &mut after {
            // Boxed: a call without hooks must not carry the room for them along.
            Box::pin(after.look(answer.as_mut().map(send::RawResult::result_mut))).await;
        }
        let place = result::ResultSettings {
            output_dir: self.output_dir,
            max_tokens: self.max_output_tokens,
            text: self.result_text,
            picture_memory: self.picture_memory,
        };
        let mut outcome = result::finish(answer?, options, place).await;
        if let Some(after) = after {
            if let Some(hook) = after.replaced_by() {
                entry.replaced(hook);
            }
            outcome = Box::pin(after.conclude(outcome)).await;
        }
        if let (Ok(outcome), Some(unfit)) = (&mut outcome, unfit) {
            outcome.warnings.push(unfit);
        }
        outcome
    }

    /// A tool can be unknown because its server is not connected; then that is the news.
    fn or_unavailable(&self, error: CallError) -> CallError {
        let CallError::Unknown {
            target: ToolTarget::Key(key),
            ..
        } = &error
        else {
            return error;
        };
        match self.routes.route(&key.server) {
            Err(why @ (CallError::Unavailable { .. } | CallError::NeedsAuth { .. })) => why,
            _ => error,
        }
    }
}
