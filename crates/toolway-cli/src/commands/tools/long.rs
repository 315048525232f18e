//! `toolway tools --long`: the list with what each tool takes.

use std::io;

use toolway::catalog::LeftOutTool;
use toolway::rows::tool_row;
use toolway::{Catalog, CatalogTool};
use toolway_rows::ToolRow;

use super::one::signature_of;
use super::{ToolsArgs, said_first};
use crate::context::Context;

/// The row of a list, with what the tool takes where that is wanted.
pub(super) fn listed<'a>(
    args: &ToolsArgs,
    catalog: &'a Catalog,
) -> impl Fn(&'a CatalogTool) -> ToolRow<'a> {
    let long = args.long;
    move |tool| ToolRow {
        signature: long.then(|| signature_of(tool)),
        ..tool_row(catalog, tool)
    }
}

/// The list with what each tool takes: two rows for each.
pub(super) fn show_long<'a>(
    context: &Context,
    catalog: &Catalog,
    tools: impl IntoIterator<Item = &'a CatalogTool>,
    left_out: impl IntoIterator<Item = &'a LeftOutTool>,
) -> io::Result<()> {
    let offered = tools.into_iter().flat_map(|tool| {
        [
            signature_of(tool),
            format!("  {}", said_first(catalog, tool)),
        ]
    });
    let others = left_out.into_iter().flat_map(|tool| {
        let reason = format!("  (not offered) {}", tool.reason);
        [tool.key.exposed(), reason]
    });
    let rows = offered.chain(others).filter(|row| !row.trim().is_empty());
    context.output.rows(rows)
}
