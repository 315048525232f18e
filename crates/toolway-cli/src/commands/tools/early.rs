//! Tools of servers that answered, while others are still waited for.
//!
//! Owns which rows were printed before all servers were there. Only on a terminal: what programs read
//! has one order.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;
use toolway::{Catalog, CatalogTool};
use toolway_tui::NoticeFeed;
use toolway_types::ServerName;

use super::{ToolsArgs, cells, say_deferred};
use crate::connect::{self, CommandHost};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::Outcome;

/// Who answers within this is shown together with all others.
const TOGETHER: Duration = Duration::from_secs(2);

const HEAD: [&str; 2] = ["NAME", "DESCRIPTION"];

/// The rows that were printed early.
pub(super) struct Early {
    is_wanted: bool,
    told: BTreeSet<ServerName>,
}

impl Early {
    pub(super) fn new(context: &Context, args: &ToolsArgs) -> Self {
        let is_plain = !args.json
            && !args.all
            && !args.long
            && args.tool.is_none()
            && !args.instructions
            && args.search.is_none()
            && args.format.is_none();
        Self {
            is_wanted: is_plain && context.output.stdout_is_terminal(),
            told: BTreeSet::new(),
        }
    }

    /// Waits for all servers, and prints the tools of those that were there soon enough.
    pub(super) async fn while_settling(&mut self, context: &Context, host: &CommandHost<'_>) {
        if !self.is_wanted {
            return connect::settle(context, host).await;
        }
        let begun = Instant::now();
        let news = NoticeFeed {
            of: &mut |snapshot| {
                let is_time = begun.elapsed() >= TOGETHER;
                is_time
                    .then(|| self.rows(context, &snapshot.catalog))
                    .flatten()
            },
            to: &mut context.output.streams().output_writer(),
        };
        connect::settle_telling(context, host, Some(news)).await;
    }

    /// The rows of servers that none was printed of yet.
    fn rows(&mut self, context: &Context, catalog: &Catalog) -> Option<String> {
        let is_new = |tool: &&CatalogTool| !self.told.contains(&tool.key.server);
        let new: Vec<&CatalogTool> = catalog.tools().filter(is_new).collect();
        if new.is_empty() {
            return None;
        }
        let text = context
            .output
            .table_text(&HEAD, new.iter().copied().map(cells(catalog)));
        let is_first = self.told.is_empty();
        let servers: Vec<ServerName> = new.iter().map(|tool| tool.key.server.clone()).collect();
        self.told.extend(servers);
        match text.split_once('\n') {
            Some((_, rows)) if !is_first => Some(rows.to_owned()),
            _ => Some(text),
        }
    }

    /// Whether any row was printed.
    pub(super) fn has_told(&self) -> bool {
        !self.told.is_empty()
    }

    /// Prints the rows that are left.
    pub(super) fn show_rest(&mut self, context: &Context, catalog: &Catalog) -> Outcome {
        if let Some(rows) = self.rows(context, catalog) {
            context.output.verbatim(&rows)?;
        }
        say_deferred(context, catalog);
        Ok(Exit::Success)
    }
}
