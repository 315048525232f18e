//! The figures of the gateways as two tables: Toolway beside its floor and its targets, and
//! everybody beside each other.
//!
//! Owns the targets and which figure is shown where.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::super::paired::{Spread, middle, spread};
use super::candidates::{FLOOR, MODERN_FLOOR, MODERN_TOOLWAY, TOOLWAY};

/// What is wanted of a figure.
#[derive(Clone, Copy)]
enum Target {
    /// At most so many times the floor.
    AtMost(f64),
    /// At least so many times the floor.
    AtLeast(f64),
    /// At most so much, whatever the floor.
    Below(f64),
    /// Shown, and not judged.
    None,
}

/// One figure of Toolway: what it is, its name in the samples, its unit, what is wanted.
const FIGURES: &[(&str, &str, &str, Target)] = &[
    ("a call, one CPU, p50", "one p50", "µs", Target::AtMost(1.5)),
    ("a call, two CPUs, p50", "two p50", "µs", Target::None),
    ("calls/s, 1 in flight", "two rate 1", "", Target::None),
    (
        "calls/s, 16 in flight",
        "two rate 16",
        "",
        Target::AtLeast(0.7),
    ),
    (
        "calls/s, 64 in flight",
        "two rate 64",
        "",
        Target::AtLeast(0.7),
    ),
    (
        "CPU of a call, one CPU",
        "one cpu 1",
        "µs",
        Target::AtMost(1.5),
    ),
    (
        "CPU of a call, 16 in flight",
        "two cpu 16",
        "µs",
        Target::None,
    ),
    ("a result of 10 MB", "big ms", "ms", Target::AtMost(1.5)),
    (
        "a list of 2,000 tools, CPU",
        "list cpu ms",
        "ms",
        Target::Below(1.0),
    ),
    ("idle memory, 1 server", "idle 1", "MB", Target::Below(12.0)),
    (
        "idle memory, 20 servers",
        "idle 20",
        "MB",
        Target::Below(14.0),
    ),
    (
        "idle memory, 100 servers",
        "idle 100",
        "MB",
        Target::Below(20.0),
    ),
    (
        "the same with 1 server, without pages of the program's file",
        "idle 1, own",
        "MB",
        Target::None,
    ),
    (
        "the same with 100 servers",
        "idle 100, own",
        "MB",
        Target::None,
    ),
    (
        "with 100 servers and helper processes, PSS",
        "idle 100, helpers too",
        "MB",
        Target::None,
    ),
    (
        "all of 100 servers listed after",
        "ready 100",
        "ms",
        Target::None,
    ),
    ("an idle session", "session KB", "KB", Target::Below(20.0)),
];

/// A figure of Toolway beside another of its own: what, the two names, the unit, what is wanted.
const OWN: &[(&str, &str, &str, &str, Target)] = &[
    (
        "memory after 10 MB, beside before",
        "memory after big",
        "memory before big",
        "MB",
        Target::AtMost(1.25),
    ),
    (
        "a call through 2,000 tools, beside 10",
        "p50 2000 tools",
        "p50 10 tools",
        "µs",
        Target::AtMost(1.1),
    ),
    (
        "a call through 20,000 tools, beside 10",
        "p50 20000 tools",
        "p50 10 tools",
        "µs",
        Target::AtMost(1.1),
    ),
    (
        "its CPU through 20,000 tools, beside 10",
        "cpu 20000 tools",
        "cpu 10 tools",
        "µs",
        Target::AtMost(1.1),
    ),
    (
        "p99 beside clients that never read, beside alone",
        "p99 beside clients that never read",
        "p99 before clients that never read",
        "µs",
        Target::AtMost(2.0),
    ),
    (
        "p99 beside a slow client, beside alone",
        "p99 beside a slow client",
        "p99 before a slow client",
        "µs",
        Target::AtMost(2.0),
    ),
    (
        "p99 beside 10,000 junk connections, beside alone",
        "p99 beside junk connections",
        "p99 before junk connections",
        "µs",
        Target::AtMost(2.0),
    ),
    (
        "p99 beside reloads and list changes, beside alone",
        "p99 beside reloads",
        "p99 before reloads",
        "µs",
        Target::AtMost(2.0),
    ),
    (
        "a call beside the idle sessions",
        "p50 beside sessions",
        "two p50",
        "µs",
        Target::None,
    ),
];

/// The columns of the second table.
const COLUMNS: &[(&str, &str)] = &[
    ("one CPU: p50 µs", "one p50"),
    ("two CPUs: p50 µs", "two p50"),
    ("calls/s c=1", "two rate 1"),
    ("c=16", "two rate 16"),
    ("c=64", "two rate 64"),
    ("one CPU: c=16", "one rate 16"),
    ("CPU µs/call", "one cpu 1"),
    ("c=16", "two cpu 16"),
    ("10 MB ms", "big ms"),
    ("list of 2,000: CPU ms", "list cpu ms"),
    ("MB idle", "idle 1"),
    ("after 10 MB", "memory after big"),
    ("most", "memory peak"),
    ("KB a session", "session KB"),
];

/// All samples: by figure, by gateway.
pub(super) struct Samples {
    samples: BTreeMap<String, BTreeMap<String, Vec<f64>>>,
    left_out: BTreeMap<String, String>,
}

/// A line of the first table.
struct Judged {
    what: String,
    value: f64,
    beside: Option<f64>,
    ratio: Option<Spread>,
    unit: &'static str,
    target: Target,
}

impl Samples {
    pub(super) fn read(figures: &Value) -> Self {
        let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
        let numbers = |value: &Value| -> Vec<f64> {
            let all = value.as_array().into_iter().flatten();
            all.filter_map(Value::as_f64).collect()
        };
        let samples = members(&figures["samples"])
            .into_iter()
            .map(|(figure, of)| {
                let of = members(&of).into_iter();
                (
                    figure,
                    of.map(|(name, all)| (name, numbers(&all))).collect(),
                )
            });
        let left_out = members(&figures["leftOut"])
            .into_iter()
            .map(|(name, reason)| (name, reason.as_str().unwrap_or_default().to_owned()));
        Self {
            samples: samples.collect(),
            left_out: left_out.collect(),
        }
    }

    fn of(&self, figure: &str, gateway: &str) -> Option<&[f64]> {
        self.samples.get(figure)?.get(gateway).map(Vec::as_slice)
    }

    fn judged(&self) -> Vec<Judged> {
        let mut rows = Vec::new();
        for (toolway, floor, era) in [
            (TOOLWAY, FLOOR, ""),
            (MODERN_TOOLWAY, MODERN_FLOOR, ", 2026-07-28"),
        ] {
            for &(what, figure, unit, target) in FIGURES {
                let Some(of) = self.of(figure, toolway) else {
                    continue;
                };
                let beside = self.of(figure, floor);
                rows.push(judged(format!("{what}{era}"), of, beside, unit, target));
            }
        }
        for &(what, figure, own, unit, target) in OWN {
            if let (Some(of), Some(beside)) = (self.of(figure, TOOLWAY), self.of(own, TOOLWAY)) {
                rows.push(judged(what.to_owned(), of, Some(beside), unit, target));
            }
        }
        rows
    }

    pub(super) fn markdown(&self, sessions: usize) -> String {
        let rows = self.judged();
        let mut text = String::new();
        if !rows.is_empty() {
            text.push_str(
                "## Toolway beside its floor\n\nWith rules, pins, audit and metrics on. Client and \
                 server speak 2025-11-25 where nothing else is said. CPU is that of the gateway's \
                 own processes.\n\n\
                 | what | toolway | floor | ratio | target | met |\n|---|---|---|---|---|---|\n",
            );
        }
        for row in &rows {
            let beside = row
                .beside
                .map_or("–".to_owned(), |beside| shown(beside, row.unit));
            let ratio = row.ratio.as_ref().map_or("–".to_owned(), |ratio| {
                format!("{:.2} ({:.2}–{:.2})", ratio.median, ratio.low, ratio.high)
            });
            let met = match row.is_met() {
                Some(true) => "yes",
                Some(false) => "no",
                None => "",
            };
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "| {} | {} | {beside} | {ratio} | {} | {met} |",
                row.what,
                shown(row.value, row.unit),
                row.wanted(),
            );
        }
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = write!(
            text,
            "## Everybody\n\nOne stdio server behind each; medians. {sessions} idle sessions where \
             they are counted.\n\n| gateway |"
        );
        for (title, _) in COLUMNS {
            let _ = write!(text, " {title} |");
        }
        let _ = writeln!(text, "\n|---|{}", "---|".repeat(COLUMNS.len()));
        for name in self.names() {
            let _ = write!(text, "| {name} |");
            for (_, figure) in COLUMNS {
                let cell = self.of(figure, name).map(|all| shown(middle(all), ""));
                let _ = write!(text, " {} |", cell.unwrap_or_else(|| "–".to_owned()));
            }
            text.push('\n');
        }
        if !self.left_out.is_empty() {
            text.push_str("\nLeft out:\n\n");
            for (name, reason) in &self.left_out {
                let reason = reason.lines().next().unwrap_or_default();
                let _ = writeln!(text, "- {name}: {reason}");
            }
        }
        text
    }

    /// Everybody who was measured, the fastest first.
    fn names(&self) -> Vec<&str> {
        let Some(of) = self.samples.get("one p50") else {
            return Vec::new();
        };
        let mut names: Vec<(&str, f64)> = of
            .iter()
            .map(|(name, all)| (name.as_str(), middle(all)))
            .collect();
        names.sort_by(|one, other| one.1.total_cmp(&other.1));
        names.into_iter().map(|(name, _)| name).collect()
    }

    /// The same for programs.
    pub(super) fn facts(&self, sessions: usize) -> Value {
        let medians: Map<String, Value> = self
            .samples
            .iter()
            .map(|(figure, of)| {
                let of: Map<String, Value> = of
                    .iter()
                    .map(|(name, all)| (name.clone(), json!(middle(all))))
                    .collect();
                (figure.clone(), Value::Object(of))
            })
            .collect();
        let judged: Vec<Value> = self
            .judged()
            .iter()
            .map(|row| {
                json!({
                    "what": row.what, "unit": row.unit, "median": row.value, "floor": row.beside,
                    "ratio": row.ratio.as_ref().map(|ratio| json!({
                        "p10": ratio.low, "median": ratio.median, "p90": ratio.high,
                    })),
                    "target": row.wanted(), "met": row.is_met(),
                })
            })
            .collect();
        json!({
            "sessions": sessions, "judged": judged, "medians": medians, "leftOut": self.left_out,
        })
    }
}

fn judged(
    what: String,
    of: &[f64],
    beside: Option<&[f64]>,
    unit: &'static str,
    target: Target,
) -> Judged {
    let ratio = beside.map(|beside| {
        spread(
            of.iter()
                .zip(beside)
                .map(|(of, beside)| of / beside)
                .collect(),
        )
    });
    Judged {
        what,
        value: middle(of),
        beside: beside.map(middle),
        ratio,
        unit,
        target,
    }
}

impl Judged {
    fn wanted(&self) -> String {
        match self.target {
            Target::AtMost(times) => format!("≤ {times} ×"),
            Target::AtLeast(times) => format!("≥ {times} ×"),
            Target::Below(most) => format!("≤ {most} {}", self.unit),
            Target::None => String::new(),
        }
    }

    fn is_met(&self) -> Option<bool> {
        let ratio = self.ratio.as_ref().map(|ratio| ratio.median);
        match self.target {
            Target::AtMost(times) => ratio.map(|ratio| ratio <= times),
            Target::AtLeast(times) => ratio.map(|ratio| ratio >= times),
            Target::Below(most) => Some(self.value <= most),
            Target::None => None,
        }
    }
}

/// Three digits say enough.
fn shown(value: f64, unit: &str) -> String {
    let number = if value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    };
    if unit.is_empty() {
        number
    } else {
        format!("{number} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Samples {
        Samples::read(&json!({
            "samples": {
                "one p50": { "floor": [20.0, 40.0, 20.0], "toolway": [28.0, 56.0, 28.0], "x": [9] },
                "two rate 16": { "floor": [1000.0], "toolway": [600.0] },
                "idle 1": { "floor": [2.0], "toolway": [11.5] },
            },
            "leftOut": { "y": "it is not there\nand more" },
        }))
    }

    #[test]
    fn figures_stand_beside_the_floor_of_their_repetition_and_their_target() {
        let text = samples().markdown(10);
        for line in [
            "| a call, one CPU, p50 | 28.0 µs | 20.0 µs | 1.40 (1.40–1.40) | ≤ 1.5 × | yes |",
            "| calls/s, 16 in flight | 600 | 1000 | 0.60 (0.60–0.60) | ≥ 0.7 × | no |",
            "| idle memory, 1 server | 11.5 MB | 2.00 MB | 5.75 (5.75–5.75) | ≤ 12 MB | yes |",
            "- y: it is not there",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn everybody_is_listed_from_the_fastest_and_what_was_not_measured_is_left_open() {
        let samples = samples();
        assert_eq!(samples.names(), ["x", "floor", "toolway"]);
        assert!(samples.markdown(10).contains("| x | 9.00 | – | – |"));
        assert_eq!(samples.facts(10)["judged"][0]["met"], true);
    }
}
