//! Reads how many tests ran from the closing lines of `cargo test` and nextest.
//!
//! Owns the parsing only. It would rather say nothing than something untrue: no closing line, a
//! run cut short, or a count that contradicts the exit code gives `None`.

use std::fmt;
use std::ops::Add;

use crate::command::Transcript;

/// How many tests ended in which way.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Add for Count {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

/// The tests of one run of either runner.
pub(crate) fn of(transcript: &Transcript) -> Option<Count> {
    consistent(count_lines(&transcript.lines)?, transcript.status.success())
}

/// A runner that failed without a failed test (it did not compile, say) has counted too little.
fn consistent(count: Count, succeeded: bool) -> Option<Count> {
    (succeeded == (count.failed == 0)).then_some(count)
}

fn count_lines(lines: &[String]) -> Option<Count> {
    if let Some(summary) = lines.iter().rev().find_map(|line| nextest_summary(line)) {
        return nextest(summary);
    }
    let mut results = lines
        .iter()
        .filter_map(|line| line.strip_prefix("test result: "))
        .peekable();
    results.peek()?;
    results.try_fold(Count::default(), |sum, result| Some(sum + libtest(result)?))
}

/// `     Summary [   0.520s] 12 tests run: …` → what follows the bracket.
fn nextest_summary(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("Summary [")?;
    rest.split_once("] ").map(|(_, rest)| rest)
}

/// `12 tests run: 10 passed (1 slow), 1 failed, 1 timed out, 3 skipped`
fn nextest(summary: &str) -> Option<Count> {
    let (run, outcomes) = summary.split_once(" run: ")?;
    // `8/12 tests run` is a run that was cut short.
    run.split(' ').next()?.parse::<u64>().ok()?;
    let mut count = Count::default();
    for part in outcomes.split(", ") {
        let (number, outcome) = part.trim().split_once(' ')?;
        let number: u64 = number.parse().ok()?;
        match outcome.split(" (").next()? {
            "passed" => count.passed += number,
            "skipped" => count.skipped += number,
            // `failed`, `timed out`, `exec failed`, and whatever nextest calls the next one.
            _ => count.failed += number,
        }
    }
    Some(count)
}

/// `ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`
fn libtest(result: &str) -> Option<Count> {
    let (_, counts) = result.split_once(". ")?;
    let mut count = Count::default();
    for part in counts.split("; ") {
        let Some((number, outcome)) = part.split_once(' ') else {
            continue;
        };
        let Ok(number) = number.parse::<u64>() else {
            continue;
        };
        match outcome {
            "passed" => count.passed += number,
            "failed" => count.failed += number,
            "ignored" | "filtered out" => count.skipped += number,
            _ => {}
        }
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(text: &str) -> Option<Count> {
        count_lines(&text.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn nextest_closing_lines_are_counted() {
        let text =
            "   PASS x\n     Summary [   0.520s] 12 tests run: 12 passed (1 slow), 3 skipped";
        let count = counted(text).unwrap();
        assert_eq!(
            count,
            Count {
                passed: 12,
                failed: 0,
                skipped: 3
            }
        );
        assert_eq!(count.to_string(), "12 passed, 0 failed, 3 skipped");
    }

    #[test]
    fn a_test_that_timed_out_or_could_not_start_has_failed() {
        let text = "  Summary [ 1s] 5 tests run: 2 passed, 1 failed, 1 timed out, 1 exec failed";
        assert_eq!(
            counted(text),
            Some(Count {
                passed: 2,
                failed: 3,
                skipped: 0
            })
        );
    }

    #[test]
    fn a_run_cut_short_is_not_counted() {
        assert_eq!(
            counted("  Summary [ 1s] 8/12 tests run: 8 passed, 4 skipped"),
            None
        );
    }

    #[test]
    fn the_results_of_all_binaries_of_cargo_test_add_up() {
        let text = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; \
                    finished in 0.00s\nother\ntest result: FAILED. 1 passed; 2 failed; 0 ignored; \
                    0 measured; 4 filtered out; finished in 0.01s";
        let count = counted(text).unwrap();
        assert_eq!(
            count,
            Count {
                passed: 4,
                failed: 2,
                skipped: 5
            }
        );
    }

    #[test]
    fn no_closing_line_means_no_count() {
        assert_eq!(counted("error: could not compile `toolway`"), None);
    }

    #[test]
    fn a_count_that_contradicts_the_exit_code_is_withheld() {
        let clean = Count {
            passed: 3,
            failed: 0,
            skipped: 0,
        };
        assert_eq!(
            consistent(clean, false),
            None,
            "it failed for another reason"
        );
        assert_eq!(consistent(clean, true), Some(clean));
        assert_eq!(consistent(Count { failed: 1, ..clean }, true), None);
    }
}
