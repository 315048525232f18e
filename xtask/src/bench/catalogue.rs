//! What a change of one server costs: beside a hundred others and alone, and whether the others'
//! calls feel it.
//!
//! Owns the targets and the reading of the figures. They are taken by an example of the library
//! (`crates/toolway/examples/catalogue.rs`), because this crate depends on none of the product.

use anyhow::Result;
use serde_json::Value;

use super::report::{Report, Row};
use super::{example, paired};
use crate::workspace::{Profile, Workspace};

/// How many changes make one time: a single one is too short to be timed.
const CHANGES: usize = 50;

/// (what, its floor, its name in the figures, that of its floor, most it may cost in floors)
const COMPARISONS: &[(&str, &str, &str, &str, f64)] = &[
    (
        "state change among 100 × 50 tools",
        "the only server, 10 tools",
        "change among many",
        "change alone",
        2.0,
    ),
    (
        "reconnect among 100 × 50 tools",
        "the only server, 10 tools",
        "reconnect among many",
        "reconnect alone",
        2.0,
    ),
    (
        "another server's first call after it",
        "its call before",
        "call after",
        "call before",
        1.15,
    ),
];

pub(super) fn measure(
    workspace: &Workspace,
    profile: Profile,
    repetitions: usize,
) -> Result<Report> {
    let binary = workspace.build_measured("toolway", "catalogue", profile)?;
    println!("\nmeasuring: 3 pairs, {repetitions} repetitions of {CHANGES} changes");
    let words = [repetitions.to_string(), CHANGES.to_string()];
    report(&example::figures(&binary, &words)?, repetitions)
}

fn report(figures: &Value, repetitions: usize) -> Result<Report> {
    let mut rows = Vec::new();
    for &(name, floor, of, of_floor, target) in COMPARISONS {
        let of = example::times(figures, of, repetitions)?;
        let of_floor = example::times(figures, of_floor, repetitions)?;
        rows.push(Row {
            name: name.to_owned(),
            floor: floor.to_owned(),
            time: paired::median(&of),
            floor_time: paired::median(&of_floor),
            ratio: paired::ratios(&of, &of_floor),
            target,
        });
    }
    Ok(Report {
        title: format!("What a change of one server costs (times of {CHANGES} changes)"),
        repetitions,
        rows,
        notes: String::new(),
        facts: Value::Null,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_change_stands_beside_its_floor() {
        let figures = json!({ "nanoseconds": {
            "change alone": [10, 20], "change among many": [15, 30],
            "reconnect alone": [100, 100], "reconnect among many": [100, 100],
            "call before": [8, 4], "call after": [8, 4],
        } });
        let report = report(&figures, 2).unwrap();
        let ratios: Vec<f64> = report.rows.iter().map(|row| row.ratio.median).collect();
        assert!((ratios[0] - 1.5).abs() < 1e-9, "{ratios:?}");
        assert!(ratios[1..].iter().all(|ratio| (ratio - 1.0).abs() < 1e-9));
    }

    #[test]
    fn missing_figures_stop_the_suite() {
        for figures in [
            json!({}),
            json!({ "nanoseconds": { "change alone": [1, 2] } }),
        ] {
            assert!(report(&figures, 2).is_err(), "{figures}");
        }
    }
}
