//! What is measured inside the library: how well tools are found, and what a large pool costs.
//!
//! `toolway-bench REPETITIONS` prints one JSON object with the figures of the ranking and, for
//! each candidate and each floor, the time of every repetition in nanoseconds. Owns the
//! candidates; what the figures mean is in `bench/README.md`, how they are shown is `xtask`'s.
#![expect(clippy::print_stdout, reason = "the figures are what it is run for")]

#[path = "../../../../bench/ranking.rs"]
mod ranking;

use std::collections::HashMap;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use toolway::catalog::ServerOffer;
use toolway::types::ServerName;
use toolway::{Catalog, ToolTarget, view};

/// How many tools the pool has.
const POOL: usize = 2_000;
/// Repetitions thrown away while caches warm up.
const WARM_UP: usize = 2;
/// What takes less than a clock can tell is done so often.
const OFTEN: usize = 1_000;
/// What is searched for.
const QUERY: &str = "open an issue in a repository";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [repetitions] = &words[..] else {
        return ExitCode::from(2);
    };
    let Ok(repetitions) = repetitions.parse() else {
        return ExitCode::from(2);
    };
    let catalog = ranking::catalog();
    let figures = |counts: fn(usize) -> bool| {
        let figures = ranking::judge(&catalog, counts);
        json!({
            "queries": figures.queries,
            "recallAt5": figures.recall,
            "hitsAt5": figures.hits,
            "mrr": figures.reciprocal_rank,
            "missed": figures.missed,
        })
    };
    let Some(times) = Pool::make().map(|pool| pool.measure(repetitions)) else {
        return ExitCode::FAILURE;
    };
    let report = json!({
        "optimised": !cfg!(debug_assertions),
        "tools": catalog.tools().count(),
        "ranking": figures(|_| true),
        "tuned": figures(|number| number % 2 == 0),
        "heldOut": figures(|number| number % 2 == 1),
        "pool": POOL,
        "times": times,
    });
    println!("{report}");
    ExitCode::SUCCESS
}

/// Two thousand tools: those of the real servers, and again under other servers' names.
struct Pool {
    lists: Vec<(ServerName, Box<RawValue>)>,
}

impl Pool {
    fn make() -> Option<Self> {
        let mut lists = Vec::new();
        let mut left = POOL;
        for round in 1.. {
            for (server, mut list) in ranking::lists() {
                let tools = list["tools"].as_array_mut()?;
                tools.truncate(left);
                left -= tools.len();
                let name = ServerName::new(format!("{server}-{round}")).ok()?;
                lists.push((name, to_raw_value(&list).ok()?));
                if left == 0 {
                    return Some(Self { lists });
                }
            }
        }
        None
    }

    fn read(&self) -> Vec<ServerOffer> {
        self.lists
            .iter()
            .filter_map(|(name, list)| {
                let mut offer = ServerOffer::new(name.clone());
                offer.tools = view::tools(list).ok()?.items;
                Some(offer)
            })
            .collect()
    }

    /// Every candidate and floor in every repetition, so that all meet the same weather.
    fn measure(&self, repetitions: usize) -> Value {
        let mut times: Vec<(&str, Vec<u64>)> = Vec::new();
        let mut note = |name: &'static str, took: u64| match times
            .iter_mut()
            .find(|(known, _)| *known == name)
        {
            Some((_, all)) => all.push(took),
            None => times.push((name, vec![took])),
        };
        for repetition in 0..WARM_UP + repetitions {
            let mut note = |name: &'static str, took: u64| {
                if repetition >= WARM_UP {
                    note(name, took);
                }
            };
            let (offers, took) = timed(|| self.read());
            note("read the lists", took);
            let (catalog, took) = timed(|| Catalog::build(1, offers));
            note("build the catalogue", took);

            let (_, took) = timed(|| catalog.tools().map(|tool| tool.name.len()).sum::<usize>());
            note("look at every name", took);
            let (_, took) = timed(|| catalog.default_pool().count());
            note("list the pool", took);

            let names: HashMap<&str, usize> = catalog
                .tools()
                .enumerate()
                .map(|(place, tool)| (tool.name.as_str(), place))
                .collect();
            let last = catalog.tools().last().map(|tool| tool.name.clone());
            let name = last.unwrap_or_default();
            let ((), took) = timed(|| {
                for _ in 0..OFTEN {
                    black_box(names.get(black_box(name.as_str())));
                }
            });
            note("look a name up in a map, 1000 times", took);
            let target = ToolTarget::Exposed(name.clone());
            let ((), took) = timed(|| {
                for _ in 0..OFTEN {
                    let _ = black_box(catalog.find(black_box(&target)));
                }
            });
            note("resolve a name, 1000 times", took);

            let (_, took) = timed(|| scan(&catalog));
            note("look for each word in every text", took);
            let (_, took) = timed(|| catalog.search(QUERY, 5).tools.len());
            note("search for the first time", took);
            let (_, took) = timed(|| catalog.search(QUERY, 5).tools.len());
            note("search", took);
        }
        times
            .into_iter()
            .map(|(name, all)| json!({ "name": name, "nanoseconds": all }))
            .collect()
    }
}

/// The least that finds anything: every word in every name and description.
fn scan(catalog: &Catalog) -> usize {
    let words: Vec<&str> = QUERY.split(' ').collect();
    let has = |text: &str| words.iter().filter(|word| text.contains(**word)).count();
    let found = catalog
        .tools()
        .map(|tool| has(&tool.name) + has(&tool.description));
    found.max().unwrap_or_default()
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let begin = Instant::now();
    let done = black_box(work());
    let took = begin.elapsed();
    (done, u64::try_from(took.as_nanos()).unwrap_or(u64::MAX))
}
