//! Hooks: what a person's own programs say before a call.
//!
//! Owns finding the hooks that concern a call. This version does not run them: a call for which
//! a `PreToolUse` hook is configured is refused, because the hook might have said no. A
//! `PostToolUse` hook that is not run leaves a warning in the outcome.

use serde_json::{Map, Value};
use toolway_config::permission::{HookEvent, Hooks};
use toolway_types::Untrusted;

use super::validate::ValidCall;
use crate::call::{CallError, RefusedBy};
use crate::catalog::CatalogTool;

/// A call that the hooks let pass.
#[derive(Debug)]
pub struct HookedCall {
    call: ValidCall,
    warnings: Vec<String>,
}

impl HookedCall {
    /// The tool.
    pub fn tool(&self) -> &CatalogTool {
        self.call.tool()
    }

    /// The arguments.
    pub fn arguments(&self) -> &Map<String, Value> {
        self.call.arguments()
    }

    pub(super) fn tool_name(&self) -> Untrusted {
        self.call.tool_name()
    }

    /// What the caller should be told with the outcome.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// Lets the call pass where no hook has a say.
pub fn run(call: ValidCall, hooks: &Hooks) -> Result<HookedCall, CallError> {
    let tool = call.tool();
    let first = |event| hooks.matching_tool(event, &tool.key).into_iter().next();
    if let Some(hook) = first(HookEvent::PreToolUse) {
        return Err(CallError::Refused {
            server: tool.key.server.clone(),
            tool: call.tool_name(),
            by: RefusedBy::Hook {
                origin: hook.origin.clone(),
            },
        });
    }
    let mut warnings: Vec<String> = call.warning().map(str::to_owned).into_iter().collect();
    if let Some(hook) = first(HookEvent::PostToolUse) {
        warnings.push(format!(
            "the hook in {} was not run: this version runs none",
            hook.origin
        ));
    }
    Ok(HookedCall { call, warnings })
}
