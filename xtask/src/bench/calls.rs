//! What the pipeline adds to a call: validation, rules and reading the result, beside the bare
//! call of the session over the same connection, in the same run.
//!
//! Owns the targets and the reading of the figures. They are taken by an example of the library
//! (`crates/toolway/examples/calls.rs`), because this crate depends on none of the product.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::report::{Report, Row};
use super::{example, paired};
use crate::workspace::{Profile, Workspace};

/// How many calls make one time: a single one is too short to be timed.
const CALLS: usize = 400;

const FLOOR: &str = "session call";

/// (what, its name in the figures, that of its floor, most it may cost in floors)
const COMPARISONS: &[(&str, &str, &str, f64)] = &[
    ("pipeline call, no audit", "pipeline", "bare", 1.15),
    (
        "pipeline call, audit on",
        "audited",
        "bare beside audited",
        1.25,
    ),
];

pub(super) fn measure(
    workspace: &Workspace,
    profile: Profile,
    repetitions: usize,
) -> Result<Report> {
    let binary = workspace.build_measured("toolway", "calls", profile)?;
    println!("\nmeasuring: 2 pairs, {repetitions} repetitions of {CALLS} calls");
    let words = [repetitions.to_string(), CALLS.to_string()];
    report(&example::figures(&binary, &words)?, repetitions)
}

fn report(figures: &Value, repetitions: usize) -> Result<Report> {
    let mut rows = Vec::new();
    for &(name, key, floor, target) in COMPARISONS {
        let of = times(figures, key, repetitions)?;
        let floor = times(figures, floor, repetitions)?;
        rows.push(Row {
            name: name.to_owned(),
            floor: FLOOR.to_owned(),
            time: paired::median(&of),
            floor_time: paired::median(&floor),
            ratio: paired::ratios(&of, &floor),
            target,
        });
    }
    Ok(Report {
        title: format!("What the pipeline adds to a call (times of {CALLS} calls)"),
        repetitions,
        rows,
        notes: String::new(),
        facts: Value::Null,
    })
}

/// The times of one candidate: each is that of all calls of a repetition, since one alone would
/// not show in a table of milliseconds.
fn times(figures: &Value, name: &str, repetitions: usize) -> Result<Vec<Duration>> {
    let calls = u32::try_from(CALLS)?;
    let times = example::times(figures, name, repetitions)?;
    Ok(times.into_iter().map(|time| time * calls).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_figures_become_rows_beside_the_bare_call() {
        let figures = json!({ "nanoseconds": {
            "bare": [10_000, 20_000], "pipeline": [11_000, 22_000],
            "bare beside audited": [20_000, 10_000], "audited": [24_000, 12_000],
        } });
        let report = report(&figures, 2).unwrap();
        let ratios: Vec<f64> = report.rows.iter().map(|row| row.ratio.median).collect();
        assert!((ratios[0] - 1.1).abs() < 1e-9 && (ratios[1] - 1.2).abs() < 1e-9);
        assert_eq!(report.rows[0].floor_time, Duration::from_millis(8));
    }

    #[test]
    fn missing_figures_stop_the_suite() {
        for figures in [
            json!({}),
            json!({ "nanoseconds": { "bare": [1], "pipeline": [1] } }),
            json!({ "nanoseconds": { "bare": [1, "x"], "pipeline": [1, 2] } }),
            json!({ "nanoseconds": { "bare": [1, 2], "pipeline": [1, 2], "audited": [1, 2] } }),
        ] {
            assert!(report(&figures, 2).is_err(), "{figures}");
        }
    }
}
