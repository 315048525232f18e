//! The figures of the gateways as tables: Toolway beside its floors and its targets, and everybody
//! beside each other.
//!
//! Owns how they are laid out. Which figures there are, and what is wanted of them, is `wanted.rs`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::super::paired::{Spread, middle, spread};
use super::candidates::{FLOOR, MODERN_FLOOR, MODERN_TOOLWAY, STEPWISE_FLOOR, TOOLWAY};
use super::wanted::{COLUMNS, FIGURES, OWN, STEPWISE, Target};

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

    /// The same beside the floor of one message at a time.
    fn judged_stepwise(&self) -> Vec<Judged> {
        let mut rows = Vec::new();
        for (toolway, era) in [(TOOLWAY, ""), (MODERN_TOOLWAY, ", 2026-07-28")] {
            for &(what, figure, unit, target) in STEPWISE {
                let both = (self.of(figure, toolway), self.of(figure, STEPWISE_FLOOR));
                if let (Some(of), Some(beside)) = both {
                    rows.push(judged(
                        format!("{what}{era}"),
                        of,
                        Some(beside),
                        unit,
                        target,
                    ));
                }
            }
        }
        rows
    }

    pub(super) fn markdown(&self, sessions: usize) -> String {
        let mut text = table_of(
            "## Toolway beside its floor\n\nWith rules, pins, audit and metrics on. Client and \
             server speak 2025-11-25 where nothing else is said. CPU is that of the gateway's \
             own processes. The floor takes several calls along in one system call where several \
             are there.",
            &self.judged(),
        );
        text += &table_of(
            "## Toolway beside the floor of one message at a time\n\nSix system calls for each call, \
             however many are in flight: the floor as the targets define it.",
            &self.judged_stepwise(),
        );
        self.everybody(sessions, &mut text);
        text
    }

    fn everybody(&self, sessions: usize, text: &mut String) {
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
        let of_rows =
            |rows: Vec<Judged>| -> Vec<Value> { rows.iter().map(Judged::facts).collect() };
        json!({
            "sessions": sessions, "judged": of_rows(self.judged()),
            "judgedStepwise": of_rows(self.judged_stepwise()),
            "medians": medians, "leftOut": self.left_out,
        })
    }
}

/// One table of judged rows below its words; nothing without any.
fn table_of(words: &str, rows: &[Judged]) -> String {
    let mut text = String::new();
    if rows.is_empty() {
        return text;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{words}\n\n| what | toolway | floor | ratio | target | met |\n|---|---|---|---|---|---|"
    );
    for row in rows {
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
    text.push('\n');
    text
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
    fn facts(&self) -> Value {
        json!({
            "what": self.what, "unit": self.unit, "median": self.value, "floor": self.beside,
            "ratio": self.ratio.as_ref().map(|ratio| json!({
                "p10": ratio.low, "median": ratio.median, "p90": ratio.high,
            })),
            "target": self.wanted(), "met": self.is_met(),
        })
    }

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
                "two rate 16": {
                    "floor": [1000.0], "floor, one by one": [500.0], "toolway": [600.0],
                },
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
            "| calls/s, 16 in flight | 600 | 500 | 1.20 (1.20–1.20) | ≥ 0.7 × | yes |",
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
