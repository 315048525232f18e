//! The way of spans to the collector.
//!
//! Owns gathering, batches, further attempts and the end. Nothing here is waited for by a call: a
//! collector that is slow, down or answers nonsense costs spans, which are counted, and nothing
//! else.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use toolway_config::TraceSettings;
use toolway_transport::client::HttpClient;
use toolway_transport::collector::{BadCollectorHeader, Collector, HandedOver};
use toolway_types::limits;
use tracing::{debug, warn};

use super::otlp::BatchHead;
use super::{SpanCounters, SpanRecord, Tracer, TracerShared};
use crate::tasks::{self, Task};

/// How long after the first failed attempt the second comes; each further one takes twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// A tracer whose spans go to a collector, as long as this lives.
#[derive(Debug)]
pub struct SpanExport {
    tracer: Tracer,
    task: Task<()>,
    end: CancellationToken,
}

impl SpanExport {
    /// Begins. Must be called inside a runtime.
    pub fn start(settings: TraceSettings, client: HttpClient) -> Result<Self, BadCollectorHeader> {
        let TraceSettings {
            endpoint,
            headers,
            service,
            resource,
            sampling,
            timeout,
            delay,
        } = settings;
        let collector = Collector::new(client, endpoint, &headers, timeout)?;
        let (queue, spans) = mpsc::channel(limits::spans::WAITING);
        let tracer = Tracer(Arc::new(TracerShared {
            queue,
            full: Notify::new(),
            sampling,
            counts: SpanCounters::default(),
        }));
        let end = CancellationToken::new();
        let exporter = Exporter {
            spans,
            shared: Arc::clone(&tracer.0),
            collector,
            head: BatchHead::new(&service, &resource),
            delay,
            end: end.clone(),
            is_failing: false,
        };
        let task = tasks::spawn("spans", exporter.run());
        Ok(Self { tracer, task, end })
    }

    /// What makes the spans.
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Sends what is left, if that does not take long.
    pub async fn end(mut self) {
        self.end.cancel();
        if let Err(failure) = self.task.end_within(limits::spans::FLUSH).await {
            debug!("the last spans were not sent: {failure}");
        }
    }
}

struct Exporter {
    spans: mpsc::Receiver<Box<SpanRecord>>,
    shared: Arc<TracerShared>,
    collector: Collector,
    head: BatchHead,
    delay: Duration,
    end: CancellationToken,
    /// Whether the last batch was lost: that is said once.
    is_failing: bool,
}

impl Exporter {
    async fn run(mut self) {
        let mut batch = Vec::with_capacity(limits::spans::BATCH);
        loop {
            tokio::select! {
                biased;
                () = self.end.cancelled() => {}
                () = self.shared.full.notified() => {}
                () = tokio::time::sleep(self.delay) => {}
            }
            loop {
                while batch.len() < limits::spans::BATCH {
                    match self.spans.try_recv() {
                        Ok(span) => batch.push(span),
                        Err(_) => break,
                    }
                }
                if batch.is_empty() {
                    break;
                }
                let is_taken = self.hand_over(self.head.batch(&batch).into()).await;
                self.count(batch.len() as u64, is_taken);
                batch.clear();
            }
            if self.end.is_cancelled() {
                return;
            }
        }
    }

    /// Sends a batch, again where that may help. When the program ends there is one attempt.
    async fn hand_over(&self, batch: Bytes) -> bool {
        let mut pause = FIRST_PAUSE;
        for _ in 0..limits::spans::ATTEMPTS {
            let named = match self.collector.hand_over(batch.clone()).await {
                HandedOver::Taken => return true,
                HandedOver::Refused(status) => {
                    debug!("the collector refused a batch of spans: HTTP {status}");
                    return false;
                }
                HandedOver::Later(named) => named,
            };
            let wait = named.unwrap_or(pause).min(limits::spans::PAUSE);
            pause *= 2;
            tokio::select! {
                biased;
                () = self.end.cancelled() => return false,
                () = tokio::time::sleep(wait) => {}
            }
        }
        false
    }

    fn count(&mut self, spans: u64, is_taken: bool) {
        let counts = &self.shared.counts;
        if is_taken {
            counts.exported.fetch_add(spans, Ordering::Relaxed);
            self.is_failing = false;
            return;
        }
        let before = counts.dropped.fetch_add(spans, Ordering::Relaxed);
        if !std::mem::replace(&mut self.is_failing, true) {
            warn!(
                "the collector of spans does not take them; {} were dropped so far",
                before + spans
            );
        }
    }
}
