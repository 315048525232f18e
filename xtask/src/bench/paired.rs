//! Takes times that can be compared on a busy machine: repetitions outside, candidates inside,
//! so that every candidate of a repetition meets the same weather; then medians of the ratios
//! within the repetitions.
//!
//! Owns timing and statistics. What is run, and against which floor, is the suite's business.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Repetitions thrown away while caches and clocks warm up.
const WARM_UP: usize = 5;

/// One thing to run.
pub(super) struct Candidate {
    pub(super) name: String,
    pub(super) command: Command,
}

/// The times of one candidate, one for each repetition.
pub(super) struct Times {
    pub(super) name: String,
    pub(super) times: Vec<Duration>,
}

/// Ratios of one candidate to its floor.
#[derive(Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) low: f64,
    pub(super) median: f64,
    pub(super) high: f64,
}

/// Runs all candidates `repetitions` times. Who goes first rotates: whoever follows the slowest
/// finds the caches colder.
pub(super) fn measure(mut candidates: Vec<Candidate>, repetitions: usize) -> Result<Vec<Times>> {
    let mut all: Vec<Times> = candidates
        .iter()
        .map(|candidate| Times {
            name: candidate.name.clone(),
            times: Vec::new(),
        })
        .collect();
    let count = candidates.len();
    for repetition in 0..WARM_UP + repetitions {
        for place in 0..count {
            let index = (place + repetition) % count;
            let taken = time(&mut candidates[index])?;
            if repetition >= WARM_UP {
                all[index].times.push(taken);
            }
        }
    }
    Ok(all)
}

fn time(candidate: &mut Candidate) -> Result<Duration> {
    candidate
        .command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let begin = Instant::now();
    let status = candidate
        .command
        .status()
        .with_context(|| format!("`{}` cannot be run", candidate.name))?;
    let taken = begin.elapsed();
    // The time of a failure is not the time of the work.
    if !status.success() {
        bail!(
            "`{}` failed while it was measured: {status}",
            candidate.name
        );
    }
    Ok(taken)
}

/// The middle time.
pub(super) fn median(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// The ratio in each repetition: its median, with the tenth and ninetieth percentile.
pub(super) fn ratios(of: &[Duration], floor: &[Duration]) -> Spread {
    let pairs = of.iter().zip(floor);
    let ratio = |(of, floor): (&Duration, &Duration)| {
        of.as_secs_f64() / floor.as_secs_f64().max(f64::MIN_POSITIVE)
    };
    spread(pairs.map(ratio).collect())
}

/// The median of ratios, with the tenth and ninetieth percentile.
pub(super) fn spread(mut ratios: Vec<f64>) -> Spread {
    ratios.sort_unstable_by(f64::total_cmp);
    let at = |tenths: usize| {
        ratios
            .get((ratios.len() * tenths / 10).min(ratios.len().saturating_sub(1)))
            .copied()
    };
    let [low, median, high] = [1, 5, 9].map(|tenths| at(tenths).unwrap_or(f64::NAN));
    Spread { low, median, high }
}

/// The middle of figures that are no times.
pub(super) fn middle(figures: &[f64]) -> f64 {
    spread(figures.to_vec()).median
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds<const N: usize>(numbers: [u64; N]) -> Vec<Duration> {
        numbers.map(Duration::from_millis).to_vec()
    }

    #[test]
    fn ratios_are_taken_within_each_repetition() {
        // The machine slowed down threefold halfway: each pair still says two.
        let spread = ratios(&milliseconds([2, 2, 6, 6]), &milliseconds([1, 1, 3, 3]));
        assert_eq!(
            spread,
            Spread {
                low: 2.0,
                median: 2.0,
                high: 2.0
            }
        );
    }

    #[test]
    fn one_bad_repetition_does_not_move_the_median() {
        let spread = ratios(
            &milliseconds([2, 2, 900, 2, 2]),
            &milliseconds([1, 1, 1, 1, 1]),
        );
        assert!((spread.median - 2.0).abs() < f64::EPSILON);
        assert_eq!(median(&milliseconds([5, 1, 900])), Duration::from_millis(5));
    }

    #[test]
    fn every_candidate_is_timed_in_every_repetition() {
        let candidate = |name: &str| Candidate {
            name: name.to_owned(),
            command: Command::new("true"),
        };
        let all = measure(vec![candidate("a"), candidate("b")], 3).unwrap();
        assert!(all.iter().all(|times| times.times.len() == 3));
    }

    #[test]
    fn a_candidate_that_fails_stops_the_measuring() {
        let failing = Candidate {
            name: "x".to_owned(),
            command: Command::new("false"),
        };
        assert!(measure(vec![failing], 1).is_err());
    }
}
