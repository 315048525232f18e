//! Taking the figures: repetitions outside, gateways inside, the one that goes first rotating.
//!
//! Owns the order and the extent of everything that is measured, and the names of figures. What they
//! mean beside each other is judged by whoever reads them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};

use super::batch::{Batch, Extent, Line, middle, one_by_one, side_by_side};
use super::neighbours::Neighbour;
use super::place::Place;
use super::plan::{Behind, GatewayPlan, Plan};
use super::process::{Processors, settle};
use super::request::{Ask, check_big};

const BIG: usize = 10_000_000;
const LONG_LIST: usize = 2_000;
/// How many tools are in the catalogues that calls go through.
const CATALOGUES: [usize; 3] = [10, 2_000, 20_000];
/// After so long without a request a gateway idles: some give memory back only then.
const UNTIL_IDLE: Duration = Duration::from_secs(12);

/// How many servers are behind a gateway that idles.
const CROWDS: [usize; 3] = [1, 20, 100];
/// One gateway may take so long over one kind of figure: slow ones are measured less often.
const BUDGET: Duration = Duration::from_secs(8);

const ALONE: Extent = Extent {
    calls: 1_500,
    time: Duration::from_millis(150),
};
const CROWDED: Extent = Extent {
    calls: 4_000,
    time: Duration::from_millis(200),
};

/// All samples of all gateways: by figure, by gateway, one for each repetition.
#[derive(Default)]
pub struct Figures {
    samples: BTreeMap<String, BTreeMap<String, Vec<f64>>>,
    /// Gateways that failed, and how.
    left_out: BTreeMap<String, String>,
}

impl Figures {
    fn add(&mut self, figure: &str, gateway: &str, sample: f64) {
        let of_figure = self.samples.entry(figure.to_owned()).or_default();
        of_figure
            .entry(gateway.to_owned())
            .or_default()
            .push(sample);
    }

    #[must_use]
    pub fn into_value(self) -> Value {
        let left_out: Map<String, Value> = self
            .left_out
            .into_iter()
            .map(|(name, reason)| (name, json!(reason)))
            .collect();
        json!({ "samples": self.samples, "leftOut": left_out })
    }
}

/// Measures everything.
pub fn take(plan: &Plan) -> Result<Figures> {
    let mut figures = Figures::default();
    for (processors, word) in [(Processors::One, "one"), (Processors::Two, "two")] {
        settle(processors)?;
        eprintln!("calls, {word} CPU{}", if word == "one" { "" } else { "s" });
        let mut places = start_all(plan, &mut figures, |_| Some(Behind::ONE))?;
        rounds(
            plan,
            plan.repetitions,
            &mut places,
            &mut figures,
            |place, name, figures| {
                let (batch, spent) = with_time(place, || one_by_one(&place.target, ALONE))?;
                figures.add(&format!("{word} p50"), name, microseconds(batch.median));
                figures.add(&format!("{word} cpu 1"), name, each(spent, batch.calls));
                figures.add(&format!("{word} rate 1"), name, batch.rate());
                for width in [16, 64] {
                    let crowd = || side_by_side(&place.target, width, CROWDED);
                    let (batch, spent) = with_time(place, crowd)?;
                    figures.add(&format!("{word} rate {width}"), name, batch.rate());
                    figures.add(
                        &format!("{word} cpu {width}"),
                        name,
                        each(spent, batch.calls),
                    );
                }
                Ok(())
            },
        )?;
        if processors == Processors::Two {
            eprintln!("a result of 10 MB");
            big_results(plan, &mut places, &mut figures)?;
        }
    }
    eprintln!("a list of {LONG_LIST} tools");
    settle(Processors::One)?;
    let mut places = start_all(plan, &mut figures, |gateway| {
        Some(Behind::tools(LONG_LIST, gateway))
    })?;
    rounds(
        plan,
        plan.repetitions,
        &mut places,
        &mut figures,
        |place, name, figures| {
            let ((count, taken), spent) = with_time(place, || place.list())?;
            if count != LONG_LIST {
                bail!("{count} of {LONG_LIST} tools are listed");
            }
            figures.add("list ms", name, milliseconds(taken));
            figures.add("list cpu ms", name, milliseconds(spent));
            Ok(())
        },
    )?;
    drop(places);
    eprintln!("calls through large catalogues");
    growth(plan, &mut figures)?;
    settle(Processors::Two)?;
    eprintln!("calls beside others");
    beside_others(plan, &mut figures)?;
    eprintln!("idle memory");
    crowds(plan, &mut figures)?;
    eprintln!("{} idle sessions", plan.sessions);
    sessions(plan, &mut figures)?;
    Ok(figures)
}

struct Running {
    name: String,
    is_optional: bool,
    place: Place,
    spent: Duration,
}

/// Starts every gateway that has something to do here.
fn start_all(
    plan: &Plan,
    figures: &mut Figures,
    behind: impl Fn(&GatewayPlan) -> Option<Behind>,
) -> Result<Vec<Running>> {
    let mut running = Vec::new();
    for gateway in &plan.gateways {
        let Some(behind) = behind(gateway) else {
            continue;
        };
        if figures.left_out.contains_key(&gateway.name) {
            continue;
        }
        match Place::start(gateway, &plan.server, behind) {
            Ok(place) => running.push(Running {
                name: gateway.name.clone(),
                is_optional: gateway.is_optional,
                place,
                spent: Duration::ZERO,
            }),
            Err(error) => leave_out(figures, &gateway.name, gateway.is_optional, error)?,
        }
    }
    Ok(running)
}

fn leave_out(
    figures: &mut Figures,
    name: &str,
    is_optional: bool,
    error: anyhow::Error,
) -> Result<()> {
    if !is_optional {
        return Err(error.context(format!("`{name}` failed while it was measured")));
    }
    eprintln!("without `{name}`: {error:#}");
    figures
        .left_out
        .insert(name.to_owned(), format!("{error:#}"));
    Ok(())
}

/// Repetitions outside, gateways inside; the first repetition warms up and does not count.
fn rounds(
    plan: &Plan,
    repetitions: usize,
    places: &mut Vec<Running>,
    figures: &mut Figures,
    mut measure: impl FnMut(&Place, &str, &mut Figures) -> Result<()>,
) -> Result<()> {
    for repetition in 0..=repetitions {
        let mut failed = Vec::new();
        let count = places.len();
        for turn in 0..count {
            let index = (turn + repetition) % count;
            let running = &mut places[index];
            if running.spent > BUDGET * u32::try_from(plan.repetitions / 20 + 1)? {
                continue;
            }
            let begin = Instant::now();
            let outcome = if repetition == 0 {
                measure(&running.place, &running.name, &mut Figures::default())
            } else {
                measure(&running.place, &running.name, figures)
            };
            running.spent += begin.elapsed();
            if let Err(error) = outcome {
                leave_out(figures, &running.name, running.is_optional, error)?;
                failed.push(index);
            }
        }
        failed.sort_unstable();
        for index in failed.into_iter().rev() {
            drop(places.remove(index));
        }
    }
    for running in places {
        running.spent = Duration::ZERO;
    }
    Ok(())
}

/// What something gave, and the processor time that the gateway spent on it.
fn with_time<T>(place: &Place, act: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    let before = place.processes.time()?;
    let value = act()?;
    Ok((value, place.processes.time()?.saturating_sub(before)))
}

/// Times of the result, and the memory before, at most and after.
fn big_results(plan: &Plan, places: &mut Vec<Running>, figures: &mut Figures) -> Result<()> {
    for running in &*places {
        let memory = running.place.processes.memory()?;
        figures.add("memory before big", &running.name, megabytes(memory));
    }
    let repetitions = plan.repetitions.min(20);
    rounds(
        plan,
        repetitions,
        places,
        figures,
        |place, name, figures| {
            let mut line = Line::open(&place.target)?;
            let (taken, spent) = with_time(place, || line.ask(&place.target, 3, Ask::Big(BIG)))?;
            check_big(&line.answer, 3, BIG)?;
            figures.add("big ms", name, milliseconds(taken));
            figures.add("big cpu ms", name, milliseconds(spent));
            Ok(())
        },
    )?;
    for running in &*places {
        // A few calls let a gateway notice that the big one is over.
        one_by_one(
            &running.place.target,
            Extent {
                calls: 200,
                time: BUDGET,
            },
        )?;
    }
    std::thread::sleep(Duration::from_secs(3));
    for running in &*places {
        let processes = &running.place.processes;
        figures.add(
            "memory after big",
            &running.name,
            megabytes(processes.memory()?),
        );
        figures.add("memory peak", &running.name, megabytes(processes.peak()?));
    }
    Ok(())
}

/// Calls through catalogues of different sizes, side by side.
fn growth(plan: &Plan, figures: &mut Figures) -> Result<()> {
    for gateway in plan.gateways.iter().filter(|gateway| gateway.grows) {
        let mut places = Vec::new();
        for count in CATALOGUES {
            let place = Place::start(gateway, &plan.server, Behind::tools(count, gateway))?;
            figures.add(
                &format!("ready {count} tools ms"),
                &gateway.name,
                milliseconds(place.ready),
            );
            places.push(Running {
                name: count.to_string(),
                is_optional: false,
                place,
                spent: Duration::ZERO,
            });
        }
        rounds(
            plan,
            plan.repetitions,
            &mut places,
            figures,
            |place, count, figures| {
                let (batch, spent) = with_time(place, || one_by_one(&place.target, ALONE))?;
                figures.add(
                    &format!("p50 {count} tools"),
                    &gateway.name,
                    microseconds(batch.median),
                );
                figures.add(
                    &format!("cpu {count} tools"),
                    &gateway.name,
                    each(spent, batch.calls),
                );
                Ok(())
            },
        )?;
    }
    Ok(())
}

/// The slowest calls beside others, and alone just before.
fn beside_others(plan: &Plan, figures: &mut Figures) -> Result<()> {
    for gateway in plan.gateways.iter().filter(|gateway| gateway.grows) {
        let place = Place::start(gateway, &plan.server, Behind::ONE)?;
        one_by_one(&place.target, ALONE)?;
        for _ in 0..plan.repetitions.min(20) {
            for neighbour in Neighbour::ALL {
                let (alone, beside) = neighbour.measure(&place)?;
                let what = neighbour.name();
                let (name, alone, beside) =
                    (&gateway.name, microseconds(alone), microseconds(beside));
                figures.add(&format!("p99 before {what}"), name, alone);
                figures.add(&format!("p99 beside {what}"), name, beside);
            }
        }
    }
    Ok(())
}

/// Memory of gateways that do nothing, with more and more servers behind.
fn crowds(plan: &Plan, figures: &mut Figures) -> Result<()> {
    for servers in CROWDS {
        let places = start_all(plan, figures, |gateway| {
            let fits = servers == 1 || gateway.takes_many;
            fits.then_some(Behind { servers, tools: 10 })
        })?;
        std::thread::sleep(UNTIL_IDLE);
        for running in &places {
            let memory = running.place.processes.memory()?;
            figures.add(&format!("idle {servers}"), &running.name, megabytes(memory));
            let own = megabytes(running.place.processes.own_memory()?);
            figures.add(&format!("idle {servers}, own"), &running.name, own);
            // Helpers may hide from everybody but root.
            if let Ok(all) = running.place.processes.memory_of_all() {
                let all = megabytes(all);
                figures.add(&format!("idle {servers}, helpers too"), &running.name, all);
            }
            let ready = milliseconds(running.place.ready);
            figures.add(&format!("ready {servers}"), &running.name, ready);
        }
    }
    Ok(())
}

/// What a session costs that nobody uses.
fn sessions(plan: &Plan, figures: &mut Figures) -> Result<()> {
    let keeps = |gateway: &GatewayPlan| gateway.keeps_sessions.then_some(Behind::ONE);
    for running in start_all(plan, figures, keeps)? {
        let place = &running.place;
        one_by_one(&place.target, ALONE)?;
        let before = place.processes.memory()?;
        // Its own is one of them: a gateway may take as many of one client, and no more.
        let opened = plan.sessions.saturating_sub(1);
        let outcome = open_sessions(place, opened);
        if let Err(error) = outcome {
            leave_out(figures, &running.name, running.is_optional, error)?;
            continue;
        }
        std::thread::sleep(Duration::from_secs(1));
        let grown = place.processes.memory()?.saturating_sub(before);
        #[expect(clippy::cast_precision_loss, reason = "memory is far below the limit")]
        let each = grown as f64 / opened.max(1) as f64;
        figures.add("session KB", &running.name, each);
        // They are alive, and calls go on as before.
        let batch: Batch = one_by_one(&place.target, ALONE)?;
        figures.add(
            "p50 beside sessions",
            &running.name,
            microseconds(batch.median),
        );
    }
    Ok(())
}

fn open_sessions(place: &Place, count: usize) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    let mut times = Vec::new();
    let mut line = Line::open(&place.target)?;
    for number in 0..count {
        let begin = Instant::now();
        let Some(session) = place.open_session_on(&mut line)? else {
            bail!("it has no sessions");
        };
        if !seen.insert(session) {
            bail!("session {number} is another's");
        }
        times.push(begin.elapsed());
    }
    middle(&mut times);
    Ok(())
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Microseconds for each call.
fn each(time: Duration, calls: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "calls of a batch are few")]
    let calls = calls as f64;
    microseconds(time) / calls
}

/// From KiB, as memory is sold.
fn megabytes(kib: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "memory is far below the limit")]
    let kib = kib as f64;
    kib * 1024.0 / 1e6
}
