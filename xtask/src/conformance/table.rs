//! The table: per suite, revision and mode, how many cases ended in which way.

use std::collections::BTreeMap;

use super::case::{Case, Mode};
use super::outcome::Outcome;

/// One line of the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    suite: &'static str,
    revision: String,
    mode: Mode,
    passed: usize,
    expected_failures: usize,
    failed: usize,
}

impl Row {
    fn total(&self) -> usize {
        self.passed + self.expected_failures + self.failed
    }

    /// One row per suite, revision and mode.
    pub(super) fn sum_up(outcomes: &[(Case<'_>, Outcome)]) -> Vec<Self> {
        let mut rows: BTreeMap<_, Self> = BTreeMap::new();
        for (case, outcome) in outcomes {
            let key = (case.suite.kind.version, case.revision.clone(), case.mode);
            let row = rows.entry(key).or_insert_with_key(|key| Self {
                suite: key.0,
                revision: key.1.clone(),
                mode: key.2,
                passed: 0,
                expected_failures: 0,
                failed: 0,
            });
            match outcome {
                // It did pass; that somebody wrote otherwise is reported beside the table.
                Outcome::Passed | Outcome::UnexpectedPass { .. } => row.passed += 1,
                Outcome::ExpectedFailure => row.expected_failures += 1,
                Outcome::Failed(_) => row.failed += 1,
            }
        }
        rows.into_values().collect()
    }
}

pub(super) fn print(rows: &[Row]) {
    println!(
        "\n{:<16}{:<12}{:<8}{:>7}{:>19}{:>8}{:>7}",
        "suite", "revision", "mode", "passed", "expected failures", "failed", "total"
    );
    for row in rows {
        println!("{}", line(row));
    }
    let sum = |count: fn(&Row) -> usize| rows.iter().map(count).sum::<usize>();
    println!(
        "conformance, client side: {} of {} cases passed, {} failed as expected, {} otherwise\n",
        sum(|row| row.passed),
        sum(Row::total),
        sum(|row| row.expected_failures),
        sum(|row| row.failed)
    );
}

fn line(row: &Row) -> String {
    format!(
        "{:<16}{:<12}{:<8}{:>7}{:>19}{:>8}{:>7}",
        row.suite,
        row.revision,
        row.mode,
        row.passed,
        row.expected_failures,
        row.failed,
        row.total()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_lines_up_and_adds_up() {
        let row = Row {
            suite: "0.2.0-alpha.12",
            revision: "2026-07-28".to_owned(),
            mode: Mode::Auto,
            passed: 8,
            expected_failures: 24,
            failed: 1,
        };
        assert_eq!(
            line(&row),
            "0.2.0-alpha.12  2026-07-28  auto          8                 24       1     33"
        );
    }
}
