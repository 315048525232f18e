//! Shows a suite's figures as a table and keeps them in `bench/results`.
//!
//! Owns the two formats. A target is shown beside its figure; nothing here fails because of it.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::paired::Spread;
use crate::workspace::Workspace;

/// The figures of one suite.
pub(super) struct Report {
    pub(super) title: String,
    pub(super) repetitions: usize,
    /// Times beside their floors; none where the notes have tables of their own.
    pub(super) rows: Vec<Row>,
    /// What is no time beside a floor, as it stands below the table.
    pub(super) notes: String,
    /// The same for programs; null when there is none.
    pub(super) facts: Value,
}

/// One candidate beside its floor.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) floor: String,
    pub(super) time: Duration,
    pub(super) floor_time: Duration,
    pub(super) ratio: Spread,
    pub(super) target: f64,
}

/// Prints the table and writes `bench/results/<name>.md` and `.json`.
pub(super) fn publish(workspace: &Workspace, name: &str, report: &Report) -> Result<()> {
    let machine = Machine::look(workspace);
    let text = table(report, &machine);
    println!("\n{text}");
    let folder = workspace.path("bench/results");
    fs::create_dir_all(&folder).context("cannot create `bench/results`")?;
    let json = serde_json::to_string_pretty(&as_json(report, &machine))
        .context("the results do not fit into JSON")?;
    for (extension, content) in [("md", text), ("json", json + "\n")] {
        let file = format!("{name}.{extension}");
        fs::write(folder.join(&file), content)
            .with_context(|| format!("cannot write `bench/results/{file}`"))?;
        println!("wrote bench/results/{file}");
    }
    Ok(())
}

/// What a reader needs to place the figures.
struct Machine {
    cores: usize,
    revision: String,
}

impl Machine {
    fn look(workspace: &Workspace) -> Self {
        let revision = Command::new("git")
            .args(["describe", "--always", "--dirty"])
            .current_dir(workspace.root())
            .output()
            .ok()
            .filter(|output| output.status.success())
            .map_or_else(
                || "unknown".to_owned(),
                |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            );
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { cores, revision }
    }
}

/// The table of a report.
pub(super) fn markdown(workspace: &Workspace, report: &Report) -> String {
    table(report, &Machine::look(workspace))
}

fn table(report: &Report, machine: &Machine) -> String {
    let mut text = format!(
        "# {}\n\nRevision {}, {} cores, {} repetitions in one run. Times are medians; the ratio \
         is the median of the ratios within each repetition (10th to 90th percentile).\n",
        report.title, machine.revision, machine.cores, report.repetitions
    );
    if !report.rows.is_empty() {
        text.push_str(
            "\n| what | ms | floor | ms | ratio | target | met |\n|---|---|---|---|---|---|---|\n",
        );
    }
    for row in &report.rows {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {:.3} | {} | {:.3} | {:.2} ({:.2}–{:.2}) | ≤ {} | {} |",
            row.name,
            milliseconds(row.time),
            row.floor,
            milliseconds(row.floor_time),
            row.ratio.median,
            row.ratio.low,
            row.ratio.high,
            row.target,
            if row.is_met() { "yes" } else { "no" },
        );
    }
    if !report.notes.is_empty() {
        let _ = write!(text, "\n{}", report.notes);
    }
    text
}

fn as_json(report: &Report, machine: &Machine) -> Value {
    let rows: Vec<Value> = report
        .rows
        .iter()
        .map(|row| {
            json!({
                "name": row.name,
                "floor": row.floor,
                "medianMs": milliseconds(row.time),
                "floorMedianMs": milliseconds(row.floor_time),
                "ratio": {
                    "p10": row.ratio.low,
                    "median": row.ratio.median,
                    "p90": row.ratio.high,
                },
                "target": row.target,
                "met": row.is_met(),
            })
        })
        .collect();
    json!({
        "title": report.title,
        "revision": machine.revision,
        "cores": machine.cores,
        "repetitions": report.repetitions,
        "rows": rows,
        "facts": report.facts,
    })
}

impl Row {
    fn is_met(&self) -> bool {
        self.ratio.median <= self.target
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(median: f64) -> Report {
        Report {
            title: "Test".to_owned(),
            repetitions: 3,
            rows: vec![Row {
                name: "it".to_owned(),
                floor: "floor".to_owned(),
                time: Duration::from_micros(4_500),
                floor_time: Duration::from_millis(1),
                ratio: Spread {
                    low: 4.0,
                    median,
                    high: 6.0,
                },
                target: 5.0,
            }],
            notes: String::new(),
            facts: Value::Null,
        }
    }

    fn machine() -> Machine {
        Machine {
            cores: 2,
            revision: "abc".to_owned(),
        }
    }

    #[test]
    fn the_table_shows_figure_floor_ratio_and_target() {
        let text = table(&report(4.5), &machine());
        assert!(
            text.ends_with("| it | 4.500 | floor | 1.000 | 4.50 (4.00–6.00) | ≤ 5 | yes |\n"),
            "{text}"
        );
    }

    #[test]
    fn a_missed_target_is_shown_as_missed() {
        assert!(table(&report(5.5), &machine()).ends_with("| no |\n"));
        assert_eq!(as_json(&report(5.5), &machine())["rows"][0]["met"], false);
    }
}
