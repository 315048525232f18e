//! The connection that a request came over, as its route sees it.
//!
//! Owns nothing but what a route needs of it: the address that was reached, and keeping the
//! connection's place while a stream is open.

use std::net::IpAddr;
use std::sync::Arc;

use super::counters::Counter as _;
use super::front::Front;
use super::lazy_timer::LazyTimer;
use super::quota::{Counted, Permit};
use super::slots::ConnectionSlot;
use crate::error::RequestRefusal;

/// Which address of the server was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    /// The one for clients.
    Clients,
    /// The one for metrics.
    Metrics,
}

/// A connection.
pub(super) struct Visitor {
    pub(super) door: Door,
    /// The address of this machine that was reached.
    pub(super) here: Option<IpAddr>,
    pub(super) slot: Arc<ConnectionSlot>,
    /// How long a request may take before its answer begins; there is one at a time.
    pub(super) patience: LazyTimer,
}

impl Visitor {
    /// What a stream of this principal holds while it is open, or why there is none.
    pub(super) fn stream(
        &self,
        front: &Front,
        principal: &Arc<str>,
    ) -> Result<Box<dyn Send>, RequestRefusal> {
        let permit: Permit = front.permit(principal, Counted::Stream)?;
        front.counters.streams.up();
        Ok(Box::new((permit, self.slot.work())))
    }
}
