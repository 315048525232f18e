//! `toolway list --cached`: how much servers offered before, and how long ago they were asked.
//!
//! Owns filling rows with it. None of them is connected: their states stay as the plan has them.

use toolway_config::{Plan, ServerVerdict};

use super::Listed;
use crate::connect::memory::{ago, refresh_old};
use crate::context::Context;

/// Adds what is kept to the rows of servers that may connect.
pub(super) fn fill(context: &Context, rows: &mut [Listed], plan: &Plan) {
    let recalled = context.setup.recall(plan);
    for (listed, planned) in rows.iter_mut().zip(&plan.servers) {
        if !matches!(planned.verdict, ServerVerdict::Admitted(_)) {
            continue;
        }
        let Some(known) = recalled.known.get(&planned.name) else {
            listed.note = Some("nothing is kept of it yet".to_owned());
            continue;
        };
        let row = &mut listed.row;
        row.seconds_ago = Some(known.age.as_secs());
        listed.note = Some(format!("as of {}", ago(known.age)));
        let shown = recalled.snapshot.server(planned.name.as_str());
        if let Some(counts) = shown.and_then(|shown| shown.counts) {
            row.tools = known.lists.tools.then_some(counts.tools);
            row.resources = known.lists.resources.then_some(counts.resources);
            row.prompts = known.lists.prompts.then_some(counts.prompts);
        }
    }
    refresh_old(context, &recalled);
}
