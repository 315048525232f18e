//! A table with a column for each way something was reached, and a row for each revision.

use std::collections::BTreeMap;

use super::outcome::Outcome;
use super::suite::EXTENSION;

/// How many of how many passed, and how many failed as was expected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Cell {
    passed: usize,
    expected_failures: usize,
    total: usize,
}

/// One case, as far as the table shows it.
pub(super) struct Entry<'a> {
    pub(super) column: &'static str,
    pub(super) revision: &'a str,
    pub(super) scenario: &'a str,
    pub(super) outcome: &'a Outcome,
}

impl Entry<'_> {
    /// Extensions are told apart by what their scenarios begin with.
    fn row(&self) -> &str {
        if self.revision != EXTENSION {
            self.revision
        } else if self.scenario.starts_with("sep-2640") {
            "skills"
        } else {
            "tasks"
        }
    }
}

/// Prints the table and its sum.
pub(super) fn print<'a>(
    what: &str,
    columns: &[&str],
    entries: impl IntoIterator<Item = Entry<'a>>,
) {
    println!();
    for line in lines(what, columns, entries) {
        println!("{line}");
    }
    println!();
}

fn lines<'a>(
    what: &str,
    columns: &[&str],
    entries: impl IntoIterator<Item = Entry<'a>>,
) -> Vec<String> {
    let mut rows: BTreeMap<String, BTreeMap<&str, Cell>> = BTreeMap::new();
    for entry in entries {
        let row = rows.entry(entry.row().to_owned()).or_default();
        let cell = row.entry(entry.column).or_default();
        cell.total += 1;
        match entry.outcome {
            // It did pass; that somebody wrote otherwise is reported beside the table.
            Outcome::Passed | Outcome::UnexpectedPass { .. } => cell.passed += 1,
            Outcome::ExpectedFailure => cell.expected_failures += 1,
            Outcome::Failed(_) => {}
        }
    }
    let mut lines = vec![line("", columns.iter().map(|&column| column.to_owned()))];
    for (name, row) in &rows {
        let cells = columns.iter().map(|column| {
            row.get(column).map_or_else(
                || "-".to_owned(),
                |cell| format!("{}/{}", cell.passed, cell.total),
            )
        });
        lines.push(line(name, cells));
    }
    let sum = |count: fn(&Cell) -> usize| -> usize {
        rows.values().flat_map(BTreeMap::values).map(count).sum()
    };
    let (passed, expected, total) = (
        sum(|cell| cell.passed),
        sum(|cell| cell.expected_failures),
        sum(|cell| cell.total),
    );
    lines.push(format!(
        "conformance, {what}: {passed} of {total} cases passed, {expected} failed as expected, {} \
         otherwise",
        total - passed - expected
    ));
    lines
}

fn line(name: &str, cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.map(|cell| format!("{cell:>15}")).collect();
    format!("{name:<12}{}", cells.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_revisions_and_extensions_and_everything_adds_up() {
        let failed = Outcome::Failed(Vec::new());
        let entries = [
            ("direct", "2025-11-25", "ping", &Outcome::Passed),
            (
                "direct",
                EXTENSION,
                "tasks-lifecycle",
                &Outcome::ExpectedFailure,
            ),
            (
                "direct",
                EXTENSION,
                "sep-2640-skills-manifest",
                &Outcome::Passed,
            ),
            ("http", "2025-11-25", "ping", &failed),
        ];
        let entries = entries.map(|(column, revision, scenario, outcome)| Entry {
            column,
            revision,
            scenario,
            outcome,
        });
        assert_eq!(
            lines("server side", &["direct", "http"], entries),
            [
                "                     direct           http",
                "2025-11-25              1/1            0/1",
                "skills                  1/1              -",
                "tasks                   0/1              -",
                "conformance, server side: 2 of 4 cases passed, 1 failed as expected, 1 otherwise",
            ]
        );
    }
}
