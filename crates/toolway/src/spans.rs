//! Spans: what was asked of whom in which trace, and how long it took, for a collector.
//!
//! Owns making spans, which of them are kept, and the queue of those that have ended. How they are
//! written is [`otlp`], how they get to the collector [`export`]. A span never holds arguments,
//! results, addresses or messages of errors. Without a tracer nothing of this runs, and what a
//! request says of its trace is passed on as it is.

mod export;
mod otlp;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, mpsc};
use toolway_config::{SampledShare, TraceSampling};
use toolway_types::limits;
use toolway_types::text::{clean_line, cut};
use toolway_wire::{TraceContext, TraceParent};

pub use export::SpanExport;

/// Makes spans. Clones are the same.
#[derive(Clone)]
pub struct Tracer(Arc<TracerShared>);

struct TracerShared {
    queue: mpsc::Sender<Box<SpanRecord>>,
    /// A batch is full.
    full: Notify,
    sampling: TraceSampling,
    counts: SpanCounters,
}

#[derive(Default)]
struct SpanCounters {
    exported: AtomicU64,
    dropped: AtomicU64,
}

/// How many spans went where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpanCounts {
    /// The collector took them.
    pub exported: u64,
    /// There was no room, or the collector did not take them.
    pub dropped: u64,
}

/// On which side of a request a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanSide {
    /// Somebody asks us.
    Server,
    /// We ask somebody.
    Client,
}

/// A value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanValue {
    /// A text.
    Text(Cow<'static, str>),
    /// A number.
    Number(i64),
}

impl From<&'static str> for SpanValue {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for SpanValue {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

/// A span as it is handed to the collector.
#[derive(Debug)]
struct SpanRecord {
    own: TraceParent,
    parent: Option<TraceParent>,
    /// Whether the parent is another program's.
    is_remote: bool,
    link: Option<TraceParent>,
    state: Option<Box<str>>,
    side: SpanSide,
    method: Cow<'static, str>,
    /// What is called or asked for, by a name of which there are few.
    target: Option<String>,
    begun: Duration,
    took: Duration,
    attributes: Vec<(&'static str, SpanValue)>,
    failed: bool,
}

/// What a request says of the trace that it is part of, and who makes spans of it.
#[derive(Debug, Clone, Default)]
pub struct CallTrace {
    context: TraceContext,
    tracer: Option<Tracer>,
}

impl CallTrace {
    /// Says this and nothing else of a trace to servers.
    pub fn passing(context: TraceContext) -> Self {
        Self {
            context,
            tracer: None,
        }
    }

    /// What is said.
    pub fn context(&self) -> &TraceContext {
        &self.context
    }

    /// Begins the span of asking a server, where spans of this trace are kept.
    pub(crate) fn ask(&self, method: &str) -> Option<RequestSpan> {
        let tracer = self.tracer.as_ref()?;
        let parent = self.context.parent()?;
        let mut span = tracer.span(&self.context, parent.trace, parent.flags);
        if let Some(record) = &mut span.record {
            record.is_remote = false;
            record.side = SpanSide::Client;
        }
        span.name(method.to_owned().into());
        Some(span)
    }
}

/// A span under way. Dropping it ends it, as cancelled where nothing else was said.
#[must_use = "dropping it ends it"]
pub struct RequestSpan {
    /// There until it ends.
    record: Option<Box<SpanRecord>>,
    /// What is said to those who are asked meanwhile.
    context: TraceContext,
    since: Instant,
    tracer: Tracer,
    is_over: bool,
}

impl Tracer {
    /// Begins the span of a request that came in. Where it is not kept there is none, but the trace
    /// goes on: what servers are told is given in any case.
    pub fn answer(
        &self,
        context: TraceContext,
        link: Option<TraceParent>,
        method: &'static str,
    ) -> (Option<RequestSpan>, CallTrace) {
        let parent = context.parent();
        let trace = parent.map_or_else(random, |parent| parent.trace);
        if !is_kept(self.0.sampling, parent, trace) {
            let context = match parent {
                // Whoever began it hears of no span of ours, so what follows is theirs.
                Some(_) => context,
                None => context.within(TraceParent {
                    trace,
                    span: random(),
                    flags: 0,
                }),
            };
            return (None, CallTrace::passing(context));
        }
        let flags = parent.map_or(0, |parent| parent.flags) | TraceParent::SAMPLED;
        let mut span = self.span(&context, trace, flags);
        if let Some(record) = &mut span.record {
            record.link = link;
        }
        span.name(method.into());
        let trace = CallTrace {
            context: span.context.clone(),
            tracer: Some(self.clone()),
        };
        (Some(span), trace)
    }

    /// How many spans went where so far.
    pub fn counts(&self) -> SpanCounts {
        let counts = &self.0.counts;
        SpanCounts {
            exported: counts.exported.load(Ordering::Relaxed),
            dropped: counts.dropped.load(Ordering::Relaxed),
        }
    }

    fn span(&self, context: &TraceContext, trace: [u8; 16], flags: u8) -> RequestSpan {
        let own = TraceParent {
            trace,
            span: random(),
            flags,
        };
        let begun = SystemTime::now().duration_since(UNIX_EPOCH);
        RequestSpan {
            record: Some(Box::new(SpanRecord {
                own,
                parent: context.parent(),
                is_remote: true,
                link: None,
                state: context.state().map(Box::from),
                side: SpanSide::Server,
                method: "".into(),
                target: None,
                begun: begun.unwrap_or_default(),
                took: Duration::ZERO,
                attributes: Vec::with_capacity(8),
                failed: false,
            })),
            context: context.within(own),
            since: Instant::now(),
            tracer: self.clone(),
            is_over: false,
        }
    }

    /// Queues a span that has ended; without room it is dropped and counted.
    fn ended(&self, record: Box<SpanRecord>) {
        let shared = &self.0;
        if shared.queue.try_send(record).is_err() {
            shared.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
        let waiting = shared.queue.max_capacity() - shared.queue.capacity();
        if waiting >= limits::spans::BATCH {
            shared.full.notify_one();
        }
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Tracer")
            .field(&self.counts())
            .finish()
    }
}

impl RequestSpan {
    /// What is said of the trace to those who are asked meanwhile.
    pub fn context(&self) -> &TraceContext {
        &self.context
    }

    /// Says what is called or asked for, under the attribute that its kind has.
    pub fn target(&mut self, attribute: &'static str, name: &str) {
        let name = cleaned(name);
        if let Some(record) = &mut self.record {
            record.target = Some(name.clone());
        }
        self.set(attribute, name);
    }

    /// Says something more.
    pub fn set(&mut self, attribute: &'static str, value: impl Into<SpanValue>) {
        if let Some(record) = &mut self.record {
            record.attributes.push((attribute, value.into()));
        }
    }

    /// It ended well.
    pub fn succeeded(mut self) {
        self.is_over = true;
    }

    /// It ended in an error of this type.
    pub fn failed(mut self, kind: impl Into<SpanValue>) {
        self.fail(kind.into());
    }

    /// It ended in an error of the protocol.
    pub fn refused(mut self, code: i64) {
        self.set("rpc.response.status_code", code.to_string());
        self.fail(code.to_string().into());
    }

    fn fail(&mut self, kind: SpanValue) {
        self.set("error.type", kind);
        if let Some(record) = &mut self.record {
            record.failed = true;
        }
        self.is_over = true;
    }

    fn name(&mut self, method: Cow<'static, str>) {
        if method == "tools/call" {
            self.set("gen_ai.operation.name", "execute_tool");
        }
        if let Some(record) = &mut self.record {
            record.method.clone_from(&method);
        }
        self.set("mcp.method.name", SpanValue::Text(method));
    }
}

impl Drop for RequestSpan {
    fn drop(&mut self) {
        if !self.is_over {
            self.fail("cancelled".into());
        }
        if let Some(mut record) = self.record.take() {
            record.took = self.since.elapsed();
            self.tracer.ended(record);
        }
    }
}

/// Whether spans of a trace are kept.
fn is_kept(sampling: TraceSampling, parent: Option<TraceParent>, trace: [u8; 16]) -> bool {
    if let (true, Some(parent)) = (sampling.by_parent, parent) {
        return parent.is_sampled();
    }
    match sampling.share {
        SampledShare::All => true,
        SampledShare::None => false,
        SampledShare::Part(part) => {
            // The last eight bytes, as other programs choose, so that all keep the same traces.
            let place = (u128::from_be_bytes(trace) & u128::from(u64::MAX)) >> 1;
            #[expect(
                clippy::cast_precision_loss,
                reason = "a share of all traces needs no exact bound"
            )]
            let place = place as f64;
            place < part * 2_f64.powi(63)
        }
    }
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without randomness all spans would be one; a number that is not zero is valid at least.
    if getrandom::fill(&mut bytes).is_err() || bytes == [0; N] {
        bytes = [1; N];
    }
    bytes
}

/// A name as it can stand in a span: one line, and not long.
fn cleaned(name: &str) -> String {
    cut(&clean_line(name), limits::spans::NAME).into_owned()
}
