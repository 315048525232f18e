//! All pages of a list.
//!
//! Owns following cursors to the end, and knowing when a server never ends: a list has so many
//! pages, bytes and items at most (SEC-51), and all lists of a host so many bytes together. One bad
//! item, or a list that goes wrong on its fifth page, costs only itself: what was read stays.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use serde_json::value::to_raw_value;
use toolway_types::{Budget, BudgetExceeded, BytePool, PoolShare, Untrusted, limits};
use toolway_wire::view::{self, CacheScope, ItemFault, ListView};

use super::{Session, freshness, raw};
use crate::error::RequestError;
use crate::listing::FetchedList;
use crate::route::RequestOptions;

/// A server with more pages than this is broken, or wants to keep us busy.
pub(crate) const MAX_PAGES: usize = limits::offers::PAGES;

/// What the lists of all servers of a host may hold together, beyond what each list has for sure.
pub(crate) const ALL_LISTS: usize = 128 << 20;

/// What a list may hold however much the others do: most never need more.
const FOR_SURE: usize = 256 << 10;

/// How many of a list's bad items are told of one by one.
const MAX_TOLD: usize = 100;

/// How much of a name is told.
const MAX_NAME: usize = 256;

/// How much of a cursor is told.
const MAX_CURSOR: usize = 100;

/// Fetches every page of a list, as far as there is room for it.
pub(crate) async fn fetch<T>(
    session: &Session,
    method: &'static str,
    view: &ListView<T>,
    timeout: Duration,
    all_lists: &BytePool,
) -> Result<FetchedList<T>, RequestError> {
    let mut listing = FetchedList::default();
    let mut items = Vec::new();
    let mut room = ListBudget::new(all_lists);
    let mut seen = HashSet::new();
    let mut params = raw("{}");
    let mut ttl_ms: Option<u64> = None;
    let mut pages = 0;
    let ended = loop {
        if pages == MAX_PAGES {
            break Some(format!(
                "`{method}`: more than {MAX_PAGES} pages; the rest is left out"
            ));
        }
        pages += 1;
        let result = session
            .request(method, &params, &RequestOptions::within(timeout))
            .await?;
        let page = view
            .page(&result, &mut room.own)
            .map_err(|error| RequestError::Malformed(error.to_string()))?;
        drop(result);
        if room.share_out().is_err() {
            break Some(room.all_spent(method, items.len()));
        }
        items.extend(page.items);
        ttl_ms = match (ttl_ms, page.ttl_ms) {
            (Some(so_far), Some(this)) => Some(so_far.min(this)),
            (so_far, this) => so_far.or(this),
        };
        listing.ttl = freshness::lifetime(ttl_ms);
        listing.is_public =
            page.cache_scope == Some(CacheScope::Public) && (pages == 1 || listing.is_public);
        tell(&mut listing.warnings, method, &page.faults);
        let named = page.faults.into_iter().filter(|it| it.name.is_some());
        listing.faults.extend(named);
        // An empty cursor is a cursor like any other; only its absence ends the list.
        let (spent, cursor) = match (page.spent, page.next_cursor) {
            (None, None) => break None,
            (spent, cursor) => (spent, cursor.unwrap_or_default()),
        };
        if let Some(spent) = spent.or_else(|| room.own.take_bytes(cursor.len()).err()) {
            break Some(ended(method, spent, items.len()));
        }
        params = to_raw_value(&json!({ "cursor": cursor }))
            .map_err(|error| RequestError::Malformed(error.to_string()))?;
        if seen.contains(&cursor) {
            let cursor = Untrusted::new(cursor);
            let cursor = cursor.cut(MAX_CURSOR);
            break Some(format!(
                "`{method}`: the server sent the cursor `{cursor}` twice; the list ends there"
            ));
        }
        seen.insert(cursor);
    };
    listing.warnings.extend(ended);
    Ok(room.close(listing, items))
}

/// The room for one list: its own budget, and its part of the bytes that all lists share.
struct ListBudget {
    own: Budget,
    share: PoolShare,
    shared: usize,
}

impl ListBudget {
    fn new(all_lists: &BytePool) -> Self {
        Self {
            own: view::LIST,
            share: all_lists.share(),
            shared: all_lists.size(),
        }
    }

    /// Takes what the list has by now from what all share.
    fn share_out(&mut self) -> Result<(), BudgetExceeded> {
        let held = view::LIST.bytes - self.own.bytes;
        let wanted = held.saturating_sub(FOR_SURE);
        self.share.grow(wanted - self.share.bytes())
    }

    /// What is said of a list that ended because all of them together hold too much.
    fn all_spent(&self, method: &str, kept: usize) -> String {
        let limit = self.shared >> 20;
        format!(
            "`{method}`: the lists of all servers have more than {limit} MiB; what follows the \
             first {kept} items is left out"
        )
    }

    /// What the list holds of what all share is given back with it.
    fn close<T>(self, listing: FetchedList<T>, items: Vec<T>) -> FetchedList<T> {
        FetchedList {
            items: Arc::new(items),
            share: (self.share.bytes() > 0).then(|| Arc::new(self.share)),
            ..listing
        }
    }
}

/// What is said of a list that ended because it holds too much.
pub(crate) fn ended(method: &str, spent: BudgetExceeded, kept: usize) -> String {
    let limit = match spent {
        BudgetExceeded::Bytes => format!("{} MiB", view::LIST.bytes >> 20),
        BudgetExceeded::Items => format!("{} items", view::LIST.items),
    };
    format!(
        "`{method}`: the list has more than {limit}; what follows the first {kept} items is left \
         out"
    )
}

/// Tells of bad items: the first of them one by one, the others by their number.
pub(crate) fn tell(warnings: &mut Vec<String>, method: &str, faults: &[ItemFault]) {
    let left = MAX_TOLD.saturating_sub(warnings.len());
    let one_by_one = faults.iter().take(left);
    warnings.extend(one_by_one.map(|fault| describe(method, fault)));
    if let Some(more) = faults.len().checked_sub(left).filter(|more| *more > 0) {
        warnings.push(format!("`{method}`: {more} more items of a page left out"));
    }
}

/// One item that was left out, for people.
fn describe(method: &str, fault: &ItemFault) -> String {
    let reason = Untrusted::new(fault.reason.as_str());
    match &fault.name {
        Some(name) => {
            let name = Untrusted::new(name.as_str());
            format!("`{method}`: `{}` left out: {reason}", name.cut(MAX_NAME))
        }
        None => format!("`{method}`: item {} left out: {reason}", fault.index + 1),
    }
}
