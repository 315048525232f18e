//! How long a call may take: in all, without a sign of life, and until an answer begins.
//!
//! Owns which of the limits holds that a call, a server's entry and the environment name. Does not
//! own keeping them: the route does, and the transport.
//!
//! One rule decides: who is nearest to the call. A call is nearer than an entry, an entry nearer
//! than the environment, and that nearer than what is usual. Who gives a call longer than is usual
//! for silence or for the beginning of an answer, gives it as long for those too; but a limit on
//! them that was written in the same place, or nearer, was meant.

use std::time::Duration;

use toolway_transport::AnswerTimeout;

use crate::call::CallOptions;
use crate::route::{GeneralLimits, PassedOn, RequestOptions, Route};

/// The conditions under which something is asked of a server.
pub(super) fn options(
    options: &CallOptions,
    route: &dyn Route,
    general: GeneralLimits,
) -> RequestOptions<'static> {
    let timeout = options.timeout.or_else(|| route.timeout());
    RequestOptions {
        idle: idle(options, route, general),
        answer_timeout: answer_timeout(options, route, general),
        progress: options.progress.clone(),
        pool: options.pool.clone(),
        passed_on: PassedOn::of(options.continuations),
        ..RequestOptions::within(timeout.unwrap_or_else(|| general.whole()))
    }
}

/// How long a call may go without a sign of life.
fn idle(options: &CallOptions, route: &dyn Route, general: GeneralLimits) -> Option<Duration> {
    let nearer = options.timeout.or_else(|| route.timeout());
    options
        .idle_timeout
        .or_else(|| {
            let (usual, whole) = match general.idle {
                Some(idle) => (idle, nearer),
                None => (route.usual_idle()?, nearer.or(general.timeout)),
            };
            Some(if usual.is_zero() {
                usual
            } else {
                usual.max(whole.unwrap_or_default())
            })
        })
        .filter(|idle| !idle.is_zero())
}

/// How long the answer to an HTTP request may take to begin: as long as its channel allows, unless
/// a nearer limit says how long the call may take.
fn answer_timeout(
    options: &CallOptions,
    route: &dyn Route,
    general: GeneralLimits,
) -> AnswerTimeout {
    let ranks = [
        (options.timeout, None),
        (route.timeout(), route.request_timeout()),
        (general.timeout, general.request),
    ];
    for (whole, request) in ranks {
        match (whole, request) {
            (_, Some(_)) => return AnswerTimeout::ByChannel,
            (Some(_), None) => return AnswerTimeout::BySender,
            (None, None) => {}
        }
    }
    AnswerTimeout::ByChannel
}
