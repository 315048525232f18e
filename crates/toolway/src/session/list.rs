//! All pages of a list.
//!
//! Owns following cursors to the end, and knowing when a server never ends. One bad item, or a
//! list that goes wrong on its fifth page, costs only itself: what was read stays.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use toolway_types::Untrusted;
use toolway_wire::view::{ItemFault, Page, ViewError};

use super::{RequestOptions, Session, freshness, raw};
use crate::error::RequestError;

/// A server with more pages than this is broken, or wants to keep us busy.
pub(crate) const MAX_PAGES: usize = 100;

/// What a list held, and what was wrong with it.
#[derive(Debug, Clone)]
pub(crate) struct Listing<T> {
    /// Every usable item, in the server's order.
    pub items: Vec<T>,
    /// One line for each thing that was skipped.
    pub warnings: Vec<String>,
    /// The items among those that have a name.
    pub faults: Vec<ItemFault>,
    /// Whether the list could not be read at all.
    pub failed: bool,
    /// For how long it is fresh, where the server says so: as long as its shortest-lived page.
    pub ttl: Option<Duration>,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            warnings: Vec::new(),
            faults: Vec::new(),
            failed: false,
            ttl: None,
        }
    }
}

/// Fetches every page of a list.
pub(crate) async fn fetch<T>(
    session: &Session,
    method: &'static str,
    read: fn(&RawValue) -> Result<Page<T>, ViewError>,
    timeout: Duration,
) -> Result<Listing<T>, RequestError> {
    let mut listing = Listing::default();
    let mut seen = HashSet::new();
    let mut params = raw("{}");
    let mut ttl_ms: Option<u64> = None;
    for _ in 0..MAX_PAGES {
        let result = session
            .ask(method, &params, RequestOptions::within(timeout))
            .await?;
        let page = read(&result).map_err(|error| RequestError::Malformed(error.to_string()))?;
        listing.items.extend(page.items);
        ttl_ms = match (ttl_ms, page.ttl_ms) {
            (Some(so_far), Some(this)) => Some(so_far.min(this)),
            (so_far, this) => so_far.or(this),
        };
        listing.ttl = freshness::lifetime(ttl_ms);
        listing
            .warnings
            .extend(page.faults.iter().map(|fault| describe(method, fault)));
        let named = page.faults.into_iter().filter(|it| it.name.is_some());
        listing.faults.extend(named);
        // An empty cursor is a cursor like any other; only its absence ends the list.
        let Some(cursor) = page.next_cursor else {
            return Ok(listing);
        };
        params = to_raw_value(&json!({ "cursor": cursor }))
            .map_err(|error| RequestError::Malformed(error.to_string()))?;
        if seen.contains(&cursor) {
            let cursor = Untrusted::new(cursor);
            listing.warnings.push(format!(
                "`{method}`: the server sent the cursor `{cursor}` twice; the list ends there"
            ));
            return Ok(listing);
        }
        seen.insert(cursor);
    }
    listing.warnings.push(format!(
        "`{method}`: more than {MAX_PAGES} pages; the rest is left out"
    ));
    Ok(listing)
}

/// One item that was left out, for people.
pub(crate) fn describe(method: &str, fault: &ItemFault) -> String {
    let reason = Untrusted::new(fault.reason.as_str());
    match &fault.name {
        Some(name) => {
            format!(
                "`{method}`: `{}` left out: {reason}",
                Untrusted::new(name.as_str())
            )
        }
        None => format!("`{method}`: item {} left out: {reason}", fault.index + 1),
    }
}
