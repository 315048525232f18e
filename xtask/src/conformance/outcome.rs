//! How one case ended, held against what is recorded, and saying what nobody expected.

use std::path::Path;

use anyhow::{Result, bail};

pub(super) enum Outcome {
    Passed,
    ExpectedFailure,
    Failed(Vec<String>),
    /// It passed, and this line of the file says it does not.
    UnexpectedPass {
        line: usize,
    },
}

impl Outcome {
    /// Of a verdict, and the line of the file that expects a failure.
    pub(super) fn of(verdict: Result<(), Vec<String>>, line: Option<usize>) -> Self {
        match (verdict, line) {
            (Ok(()), None) => Self::Passed,
            (Ok(()), Some(line)) => Self::UnexpectedPass { line },
            (Err(_), Some(_)) => Self::ExpectedFailure,
            (Err(reasons), None) => Self::Failed(reasons),
        }
    }
}

/// Says what was not expected; that is what fails the run.
pub(super) fn report<'a>(
    outcomes: impl IntoIterator<Item = (String, &'a Outcome)>,
    failures: &str,
    results: &Path,
) -> Result<()> {
    let mut unexpected = 0;
    let mut total = 0;
    for (id, outcome) in outcomes {
        total += 1;
        match outcome {
            Outcome::Passed | Outcome::ExpectedFailure => continue,
            Outcome::Failed(reasons) => {
                println!("failed: {id}");
                for reason in reasons {
                    println!("    {reason}");
                }
            }
            Outcome::UnexpectedPass { line } => println!(
                "passed, though a failure is expected: {id}\n    take it out of line {line} of \
                 {failures}"
            ),
        }
        unexpected += 1;
    }
    if unexpected > 0 {
        bail!(
            "{unexpected} of {total} cases did not end as recorded; what was seen lies in `{}`",
            results.display()
        );
    }
    Ok(())
}
