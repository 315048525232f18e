//! Many calls of several clients through a real gateway, while servers crash, lists change and
//! calls are cancelled: no answer may be lost, doubled or crossed, and nothing may pile up.
//!
//! Owns the run and its verdict. Which call comes when, and what a right answer is, is
//! `soak/traffic.rs`; clients are `soak/web.rs` and `soak/pipe.rs`, HTTP is `soak/exchange.rs`, the
//! gateway's process and what it uses `soak/gateway.rs`, what is done to a daemon `soak/daemon.rs`.

mod daemon;
mod exchange;
mod gateway;
mod pipe;
mod tally;
mod traffic;
mod web;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::{Script, TempHome};
use daemon::DaemonLevels;
use gateway::{GatewayLevels, GatewayProcess, GatewayUsage};
use tally::SoakTally;
use traffic::{FRAIL_SERVERS, STEADY, Traffic};

/// The clients: half over each era, six over HTTP and two over stdio, each of those with a gateway
/// of its own.
const WEB_CLIENTS: usize = 6;
const PIPE_CLIENTS: usize = 2;
/// Calls of one HTTP client at a time, each on a connection of its own.
const LANES: usize = 4;
/// Below so many calls, memory has no level yet.
const SETTLED: u64 = 100_000;

/// A soak that can be run.
#[derive(Debug, Clone)]
pub struct Soak {
    /// The program whose `serve` is tested.
    pub toolway: PathBuf,
    /// The scripted server.
    pub chaos: PathBuf,
    /// How many calls are made in all.
    pub calls: u64,
}

/// What must not happen, and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoakFault(String);

impl SoakFault {
    fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for SoakFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for SoakFault {}

impl From<std::io::Error> for SoakFault {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// What a soak saw.
#[derive(Debug, Clone)]
pub struct SoakReport {
    /// How long all calls took.
    pub elapsed: Duration,
    /// How often each outcome was had, by its name.
    pub outcomes: Vec<(&'static str, u64)>,
    /// What each gateway used.
    levels: Vec<GatewayLevels>,
    /// What the daemon used, and what was done to it.
    daemon: Option<DaemonLevels>,
}

impl SoakReport {
    /// The figures as they stand in a note.
    pub fn to_json(&self) -> Value {
        let outcomes: Map<String, Value> = self
            .outcomes
            .iter()
            .map(|(name, count)| ((*name).to_owned(), json!(count)))
            .collect();
        let moment = |usage: Option<GatewayUsage>| {
            usage.map(|usage| json!({ "KiB": usage.memory, "descriptors": usage.descriptors }))
        };
        let gateways: Vec<Value> = self
            .levels
            .iter()
            .map(|levels| {
                json!({
                    "idle": moment(levels.idle),
                    "warm": moment(levels.warm),
                    "end": moment(levels.end),
                })
            })
            .collect();
        let daemon = self.daemon.map(|daemon| {
            json!({
                "kills": daemon.kills, "takeovers": daemon.takeovers,
                "early": moment(daemon.early), "late": moment(daemon.late),
            })
        });
        json!({
            "seconds": self.elapsed.as_secs_f64(), "outcomes": outcomes, "gateways": gateways,
            "daemon": daemon,
        })
    }
}

impl Soak {
    /// Runs to the end, or to the first fault.
    pub fn run(&self) -> Result<SoakReport, SoakFault> {
        let home = TempHome::new();
        let config = home.write("servers.json", self.servers().to_string());
        let common = GatewayProcess::over_http(&home, &self.toolway, &config)?;
        let mut gateways = vec![&common];
        let pipes = (0..PIPE_CLIENTS)
            .map(|_| GatewayProcess::over_stdio(&home, &self.toolway, &config, "off"))
            .collect::<Result<Vec<_>, _>>()?;
        gateways.extend(&pipes);
        let traffic = Traffic::new(self.calls);
        let tally = SoakTally::default();
        let fault = Mutex::new(None);
        let guard = |outcome: Result<(), SoakFault>, who: String| {
            if let Err(SoakFault(what)) = outcome {
                traffic.stop();
                lock(&fault).get_or_insert(SoakFault(format!("{who}: {what}")));
            }
        };
        web::await_ready(&common)?;
        common.mark_idle()?;
        let begin = Instant::now();
        std::thread::scope(|scope| {
            let (guard, traffic, tally, common) = (&guard, &traffic, &tally, &common);
            for client in 0..WEB_CLIENTS {
                scope.spawn(move || {
                    let run = web::run(client, LANES, common, traffic, tally);
                    guard(run, format!("HTTP client {client}"));
                });
            }
            for (client, gateway) in (WEB_CLIENTS..).zip(&pipes) {
                scope.spawn(move || {
                    let run = pipe::run(client, gateway, traffic, tally);
                    guard(run, format!("stdio client {client}"));
                });
            }
            traffic.await_tenth();
            if self.calls >= SETTLED {
                let marked = gateways.iter().try_for_each(|gateway| gateway.mark_warm());
                guard(marked, "gateway".to_owned());
            }
        });
        let elapsed = begin.elapsed();
        if let Some(fault) = lock(&fault).take() {
            return Err(fault);
        }
        tally.settle(self.calls, 0)?;
        common.settle()?;
        let levels = gateways.iter().map(|gateway| gateway.levels()).collect();
        common.end()?;
        Ok(SoakReport {
            elapsed,
            outcomes: tally.outcomes(),
            levels,
            daemon: None,
        })
    }

    /// The same with eight clients over stdio whose servers a daemon keeps, which is killed again and
    /// again, and replaced by a newer build at last.
    pub fn run_through_daemon(&self) -> Result<SoakReport, SoakFault> {
        let home = TempHome::new();
        let config = home.write("servers.json", self.servers().to_string());
        let newer = daemon::newer(&home, &self.toolway)?;
        let clients = WEB_CLIENTS + PIPE_CLIENTS;
        let pipes = (0..clients)
            .map(|_| GatewayProcess::over_stdio(&home, &self.toolway, &config, "auto"))
            .collect::<Result<Vec<_>, _>>()?;
        let traffic = Traffic::new(self.calls);
        let tally = SoakTally::default();
        let fault = Mutex::new(None);
        let levels = Mutex::new(DaemonLevels::default());
        let guard = |outcome: Result<(), SoakFault>, who: String| {
            if let Err(SoakFault(what)) = outcome {
                traffic.stop();
                lock(&fault).get_or_insert(SoakFault(format!("{who}: {what}")));
            }
        };
        let begin = Instant::now();
        std::thread::scope(|scope| {
            let (guard, traffic, tally) = (&guard, &traffic, &tally);
            for (client, gateway) in pipes.iter().enumerate() {
                scope.spawn(move || {
                    let run = pipe::run(client, gateway, traffic, tally);
                    guard(run, format!("client {client}"));
                });
            }
            let seen = daemon::torment(&home, &newer, traffic, self.calls);
            guard(seen.map(|seen| *lock(&levels) = seen), "daemon".to_owned());
        });
        let elapsed = begin.elapsed();
        if let Some(fault) = lock(&fault).take() {
            return Err(fault);
        }
        // Each end of a daemon can leave in doubt what was in flight then.
        let in_flight = u64::try_from(clients * pipe::WINDOW).unwrap_or_default();
        tally.settle(self.calls, (daemon::kills(self.calls) + 1) * in_flight)?;
        Ok(SoakReport {
            elapsed,
            outcomes: tally.outcomes(),
            levels: Vec::new(),
            daemon: Some(*lock(&levels)),
        })
    }

    /// One steady server, whose list changes, and some that crash.
    fn servers(&self) -> Value {
        let entry = |script: &Script| {
            let script = serde_json::to_string(script).expect("a script is plain data");
            json!({ "command": self.chaos, "args": ["--script", script] })
        };
        let steady = Script {
            drama: true,
            ..Script::default()
        };
        let mut servers = Map::new();
        servers.insert(STEADY.to_owned(), entry(&steady));
        for number in 0..FRAIL_SERVERS {
            servers.insert(traffic::frail(number), entry(&Script::default()));
        }
        json!({ "mcpServers": servers })
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
