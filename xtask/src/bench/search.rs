//! How well tools are found, and what a pool of two thousand tools costs, each beside the least
//! that does the same work.
//!
//! Owns the comparisons and their targets. The measuring is done inside the library, by the
//! example `toolway-bench`.

use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::paired;
use super::report::{Report, Row};
use crate::workspace::{Profile, Workspace};

/// (candidate, floor, most it may cost in floors)
const COMPARISONS: &[(&str, &str, f64)] = &[
    ("build the catalogue", "read the lists", 3.0),
    ("list the pool", "look at every name", 3.0),
    (
        "resolve a name, 1000 times",
        "look a name up in a map, 1000 times",
        3.0,
    ),
    (
        "search for the first time",
        "look for each word in every text",
        100.0,
    ),
    ("search", "look for each word in every text", 3.0),
];

pub(super) fn measure(
    workspace: &Workspace,
    profile: Profile,
    repetitions: usize,
) -> Result<Report> {
    let program = workspace.build_measured("toolway-testkit", "toolway-bench", profile)?;
    println!("\nmeasuring: {repetitions} repetitions");
    let output = Command::new(program)
        .arg(repetitions.to_string())
        .output()
        .context("`toolway-bench` cannot be run")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`toolway-bench` failed: {}", said.trim());
    }
    let mut facts: Value =
        serde_json::from_slice(&output.stdout).context("`toolway-bench` printed no JSON")?;
    let times = facts["times"].take();
    let mut rows = Vec::new();
    for &(name, floor, target) in COMPARISONS {
        let (of, beside) = (times_of(&times, name)?, times_of(&times, floor)?);
        rows.push(Row {
            name: name.to_owned(),
            floor: floor.to_owned(),
            time: paired::median(&of),
            floor_time: paired::median(&beside),
            ratio: paired::ratios(&of, &beside),
            target,
        });
    }
    if let Some(facts) = facts.as_object_mut() {
        facts.remove("times");
    }
    Ok(Report {
        title: format!("A pool of {} tools, and finding them", facts["pool"]),
        repetitions,
        rows,
        notes: notes(&facts),
        facts,
    })
}

fn times_of(times: &Value, name: &str) -> Result<Vec<Duration>> {
    let all = times.as_array().map_or(&[][..], Vec::as_slice);
    let found = all.iter().find(|times| times["name"] == name);
    let taken = found.and_then(|times| times["nanoseconds"].as_array());
    let taken = taken.with_context(|| format!("`{name}` was not measured"))?;
    Ok(taken
        .iter()
        .filter_map(Value::as_u64)
        .map(Duration::from_nanos)
        .collect())
}

fn notes(facts: &Value) -> String {
    let mut text = String::new();
    if facts["optimised"] == json!(false) {
        text.push_str("The build was not optimised: the times above mean little.\n\n");
    }
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "## Ranking\n\nLabelled queries over {} tools of real servers (`bench/data`). Misses were \
         looked at for every other query only; of the rest, totals were seen while weights changed \
         (`bench/README.md`).\n\n\
         | queries | number | recall@5 | a right tool among 5 | MRR |\n|---|---|---|---|---|\n",
        facts["tools"]
    );
    for (name, key) in [
        ("all", "ranking"),
        ("looked at", "tuned"),
        ("held out", "heldOut"),
    ] {
        let figures = &facts[key];
        let number = |key: &str| figures[key].as_f64().unwrap_or(f64::NAN);
        let _ = writeln!(
            text,
            "| {name} | {} | {:.3} | {:.3} | {:.3} |",
            figures["queries"],
            number("recallAt5"),
            number("hitsAt5"),
            number("mrr"),
        );
    }
    text.push_str("\nWithout a right tool among the first five, and what came instead:\n\n");
    for missed in facts["ranking"]["missed"].as_array().into_iter().flatten() {
        let _ = writeln!(text, "- {}", missed.as_str().unwrap_or_default());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranking_stands_below_the_times_with_what_was_missed() {
        let figures = json!({
            "queries": 2, "recallAt5": 0.75, "hitsAt5": 0.5, "mrr": 0.25, "missed": ["it: that"],
        });
        let facts = json!({
            "optimised": false, "tools": 9,
            "ranking": figures, "tuned": figures, "heldOut": figures,
        });
        let text = notes(&facts);
        assert!(text.starts_with("The build was not optimised"), "{text}");
        assert!(
            text.contains("| held out | 2 | 0.750 | 0.500 | 0.250 |"),
            "{text}"
        );
        assert!(text.ends_with("- it: that\n"), "{text}");
    }

    #[test]
    fn a_candidate_that_was_not_measured_is_named() {
        let times = json!([{ "name": "a", "nanoseconds": [1, 2] }]);
        assert_eq!(times_of(&times, "a").unwrap().len(), 2);
        let missing = times_of(&times, "b").unwrap_err();
        assert_eq!(missing.to_string(), "`b` was not measured");
    }
}
