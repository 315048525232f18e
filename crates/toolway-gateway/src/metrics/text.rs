//! The page that Prometheus and its kind read: its text format, version 0.0.4.
//!
//! Owns the names of the metrics, which others build on: one that stands here keeps its name, its
//! unit and its labels. Counts nothing.

use std::fmt::{Display, Write as _};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};

use toolway::{HostSnapshot, QuestionCounts, SpanCounts};
use toolway_rows::CallEnd;
use toolway_types::ConnectionState;

use super::{BOUNDS, BUCKETS, GatewayGauges, Metrics, ServerMetrics};

impl Metrics {
    /// The page, with what holds now, and what became of spans where some are made.
    pub fn render(
        &self,
        snapshot: &HostSnapshot,
        gauges: GatewayGauges,
        spans: Option<SpanCounts>,
    ) -> String {
        let mut page = MetricsPage::default();
        self.write_calls(&mut page);
        write_gauges(&mut page, snapshot, gauges);
        self.write_counts(&mut page, snapshot, gauges.ended_questions);
        if let Some(spans) = spans {
            let help = "Spans by whether the collector took them.";
            page.family("toolway_spans_total", "counter", help);
            page.sample("", &[("outcome", "exported")], spans.exported);
            page.sample("", &[("outcome", "dropped")], spans.dropped);
        }
        page.text
    }

    fn write_calls(&self, page: &mut MetricsPage) {
        let servers: Vec<(Arc<str>, ServerReading)> = {
            let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
            let read = |server: &Arc<ServerMetrics>| ServerReading::of(server);
            servers
                .iter()
                .map(|(name, server)| (Arc::clone(name), read(server)))
                .collect()
        };
        page.family(
            "toolway_calls_total",
            "counter",
            "Calls of tools, and other requests that a server answers, by how they ended.",
        );
        for (name, server) in &servers {
            for (end, buckets) in CallEnd::ALL.iter().zip(&server.ended) {
                let labels = [("server", &**name), ("outcome", end.as_str())];
                page.sample("", &labels, buckets.iter().sum::<u64>());
            }
        }
        page.family(
            "toolway_calls_in_flight",
            "gauge",
            "Calls and other requests under way.",
        );
        for (name, server) in &servers {
            page.sample("", &[("server", name)], server.in_flight);
        }
        let help = "How long calls and other requests took, however they ended.";
        page.family("toolway_call_duration_seconds", "histogram", help);
        for (name, server) in &servers {
            let mut count = 0;
            for bucket in 0..BUCKETS {
                count += server.ended.iter().map(|ended| ended[bucket]).sum::<u64>();
                let bound = BOUNDS
                    .get(bucket)
                    .map_or_else(|| "+Inf".to_owned(), |bound| seconds(*bound));
                page.sample("_bucket", &[("server", name), ("le", &bound)], count);
            }
            page.sample("_sum", &[("server", name)], seconds(server.microseconds));
            page.sample("_count", &[("server", name)], count);
        }
    }

    fn write_counts(
        &self,
        page: &mut MetricsPage,
        snapshot: &HostSnapshot,
        questions: QuestionCounts,
    ) {
        let help = "Questions to clients or to the owner by how they ended.";
        page.family("toolway_questions_total", "counter", help);
        for (outcome, count) in [
            ("answered", questions.answered),
            ("expired", questions.expired),
            ("withdrawn", questions.withdrawn),
        ] {
            page.sample("", &[("outcome", outcome)], count);
        }
        let help = "Changes of lists that clients were told of.";
        page.family("toolway_list_changes_total", "counter", help);
        page.counters(
            "list",
            ["tools", "resources", "prompts"],
            &self.list_changes,
        );
        let help = "Bugs that ended a connection to a server.";
        page.family("toolway_connection_panics_total", "counter", help);
        page.sample("", &[], snapshot.panics);
    }
}

fn write_gauges(page: &mut MetricsPage, snapshot: &HostSnapshot, gauges: GatewayGauges) {
    page.family("toolway_build_info", "gauge", "Which version runs.");
    page.sample("", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    page.family("toolway_clients", "gauge", "Clients that are known now.");
    page.sample("", &[], gauges.clients);
    page.family(
        "toolway_sessions",
        "gauge",
        "Open conversations by protocol era.",
    );
    page.sample("", &[("era", "legacy")], gauges.legacy_sessions);
    page.sample("", &[("era", "modern")], gauges.modern_sessions);
    page.family(
        "toolway_servers",
        "gauge",
        "Servers by the state of their connection.",
    );
    for state in ["pending", "connected", "needs-auth", "failed", "disabled"] {
        let is_in = |of: &ConnectionState| of.as_str() == state;
        let count = snapshot
            .servers
            .iter()
            .filter(|server| is_in(&server.state))
            .count();
        page.sample("", &[("state", state)], count);
    }
    let help = "Calls that wait for their client to bring answers.";
    page.family("toolway_parked_calls", "gauge", help);
    page.sample("", &[], gauges.parked_calls);
    page.family(
        "toolway_open_questions",
        "gauge",
        "Questions that nobody has answered yet.",
    );
    page.sample("", &[], gauges.open_questions);
}

/// A server's counters, read once, so that the lines of its page agree with each other.
struct ServerReading {
    ended: Vec<[u64; BUCKETS]>,
    microseconds: u64,
    in_flight: u64,
}

impl ServerReading {
    fn of(server: &ServerMetrics) -> Self {
        let load = |buckets: &[AtomicU64; BUCKETS]| buckets.each_ref().map(|one| one.load(Relaxed));
        let ended: Vec<_> = server.ended.iter().map(load).collect();
        let total = ended.iter().flatten().sum();
        Self {
            microseconds: server.microseconds.load(Relaxed),
            // Read last: a call that began and ended meanwhile is not missing.
            in_flight: server.begun.load(Relaxed).saturating_sub(total),
            ended,
        }
    }
}

/// Microseconds as a decimal number of seconds.
fn seconds(microseconds: u64) -> String {
    let (whole, part) = (microseconds / 1_000_000, microseconds % 1_000_000);
    let text = format!("{whole}.{part:06}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[derive(Default)]
struct MetricsPage {
    text: String,
    /// The family whose samples are being written.
    family: &'static str,
}

impl MetricsPage {
    fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.family = name;
        // Writing to a text does not fail.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(self.family);
        self.text.push_str(suffix);
        for (place, (name, text)) in labels.iter().enumerate() {
            self.text.push(if place == 0 { '{' } else { ',' });
            self.text.push_str(name);
            self.text.push_str("=\"");
            for c in text.chars() {
                match c {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    c => self.text.push(c),
                }
            }
            self.text.push('"');
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }

    fn counters<const N: usize>(
        &mut self,
        label: &str,
        words: [&str; N],
        counters: &[AtomicU64; N],
    ) {
        for (word, counter) in words.into_iter().zip(counters) {
            self.sample("", &[(label, word)], counter.load(Relaxed));
        }
    }
}
