//! Clients over stdio: many calls in flight on one pair of pipes, answers in any order.
//!
//! Owns the calls that wait for an answer. An answer that nobody waits for is doubled or crossed.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use super::SoakFault;
use super::exchange::PATIENCE;
use super::gateway::GatewayProcess;
use super::tally::{SoakOutcome, SoakTally};
use super::traffic::{FRAIL_SERVERS, STEADY, SoakCall, SoakKind, Traffic, frail};
use super::web::{modern_meta, request};

/// How many calls of a client are in flight at a time.
pub(super) const WINDOW: usize = 16;
/// The ids of what comes before the calls.
const FIRST: u64 = 1_000_000_000;

#[derive(Default)]
struct Waiting {
    calls: HashMap<u64, (SoakCall, Instant)>,
    /// Calls that were cancelled: one answer each may still come.
    cancelled: HashMap<u64, SoakCall>,
    /// Answers to what is asked before the calls.
    greetings: HashMap<u64, Value>,
    settled: HashSet<u64>,
    over: Option<Result<(), SoakFault>>,
}

struct PipeClient<'a> {
    number: usize,
    modern: bool,
    tally: &'a SoakTally,
    to: Mutex<Option<ChildStdin>>,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

/// One client until there are no more calls. Every other one is modern.
pub(super) fn run(
    number: usize,
    gateway: &GatewayProcess,
    traffic: &Traffic,
    tally: &SoakTally,
) -> Result<(), SoakFault> {
    let Some((to, from)) = super::lock(&gateway.pipes).take() else {
        return Err(SoakFault::new("the gateway has no pipes"));
    };
    let client = PipeClient {
        number,
        modern: number % 2 == 1,
        tally,
        to: Mutex::new(Some(to)),
        waiting: Mutex::default(),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| client.read(from));
        let worked = client.greet().and_then(|()| {
            gateway.mark_idle()?;
            client.work(traffic)?;
            gateway.settle()
        });
        // The end of its input is the end of the gateway, and that of what is read.
        drop(super::lock(&client.to).take());
        let read = reader.join();
        let read = read.unwrap_or_else(|_| Err(SoakFault::new("a client panicked")));
        // What went wrong first is in what was read.
        read.and(worked)
    })
}

impl PipeClient<'_> {
    fn send(&self, mut message: Value) -> Result<(), SoakFault> {
        if self.modern {
            message["params"]["_meta"] = modern_meta();
        }
        let mut line = message.to_string();
        line.push('\n');
        match &mut *super::lock(&self.to) {
            Some(to) => to.write_all(line.as_bytes())?,
            None => return Err(SoakFault::new("the client has ended")),
        }
        Ok(())
    }

    fn work(&self, traffic: &Traffic) -> Result<(), SoakFault> {
        let mut id = 0;
        loop {
            self.await_room(WINDOW)?;
            let Some(call) = traffic.next() else { break };
            id += 1;
            let (method, params) = call.request(self.number, id);
            let is_cancelled = matches!(call.kind, SoakKind::Cancelled { .. });
            {
                let mut waiting = super::lock(&self.waiting);
                if is_cancelled {
                    waiting.cancelled.insert(id, call);
                } else {
                    waiting.calls.insert(id, (call, Instant::now()));
                }
            }
            self.send(request(id, method, &params))?;
            if is_cancelled {
                self.send(
                    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                    "params": { "requestId": id } }),
                )?;
            }
        }
        self.await_room(1)?;
        let waiting = super::lock(&self.waiting);
        // Whatever was cancelled and not answered by now never will be.
        for _ in &waiting.cancelled {
            self.tally.enter(SoakOutcome::CancelledSilent);
        }
        Ok(())
    }

    /// Shakes hands, and waits until all servers are there.
    fn greet(&self) -> Result<(), SoakFault> {
        let mut id = FIRST;
        if !self.modern {
            let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "soak", "version": "1" } });
            self.send(request(id, "initialize", &params))?;
            self.await_greeting(id)?;
            self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        }
        let begin = Instant::now();
        loop {
            id += 1;
            self.send(request(id, "tools/list", &json!({})))?;
            let list = self.await_greeting(id)?["result"]["tools"].to_string();
            let mut servers = (0..FRAIL_SERVERS).map(frail).chain([STEADY.to_owned()]);
            if servers.all(|server| list.contains(&format!("\"{server}__echo\""))) {
                return Ok(());
            }
            if begin.elapsed() > PATIENCE {
                return Err(SoakFault::new(format!("not all servers are there: {list}")));
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    fn await_greeting(&self, id: u64) -> Result<Value, SoakFault> {
        self.wait(
            |waiting| waiting.greetings.remove(&id),
            || format!("no answer to id {id}"),
        )
    }

    /// Waits until fewer calls than this are in flight.
    fn await_room(&self, most: usize) -> Result<(), SoakFault> {
        let has_room = |waiting: &mut Waiting| (waiting.calls.len() < most).then_some(());
        self.wait(has_room, || "answers are lost".to_owned())
    }

    fn wait<T>(
        &self,
        mut look: impl FnMut(&mut Waiting) -> Option<T>,
        what: impl Fn() -> String,
    ) -> Result<T, SoakFault> {
        let begin = Instant::now();
        let mut waiting = super::lock(&self.waiting);
        loop {
            if let Some(found) = look(&mut waiting) {
                return Ok(found);
            }
            if let Some(over) = &waiting.over {
                over.clone()?;
                return Err(SoakFault::new(format!("the gateway ended: {}", what())));
            }
            if begin.elapsed() > PATIENCE {
                let left: Vec<_> = waiting.calls.iter().take(3).collect();
                return Err(SoakFault::new(format!("{}: {left:?}", what())));
            }
            let waited = self.changed.wait_timeout(waiting, PATIENCE);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Reads until the gateway ends.
    fn read(&self, from: ChildStdout) -> Result<(), SoakFault> {
        let outcome = self.read_all(from);
        super::lock(&self.waiting).over = Some(outcome.clone());
        self.changed.notify_all();
        outcome
    }

    fn read_all(&self, from: ChildStdout) -> Result<(), SoakFault> {
        for line in BufReader::new(from).lines() {
            let line = line?;
            let Ok(message) = serde_json::from_str::<Value>(&line) else {
                return Err(SoakFault::new(format!("no JSON came: {line}")));
            };
            match message["method"].as_str() {
                Some("notifications/tools/list_changed") => self.tally.announced(),
                Some("ping") => {
                    let id = &message["id"];
                    self.send(json!({ "jsonrpc": "2.0", "id": id, "result": {} }))?;
                }
                Some(_) => {}
                None => self.settle(&message)?,
            }
        }
        Ok(())
    }

    fn settle(&self, message: &Value) -> Result<(), SoakFault> {
        let mut waiting = super::lock(&self.waiting);
        let Some(id) = message["id"].as_u64() else {
            return Err(SoakFault::new(format!(
                "an answer has no id of ours: {message}"
            )));
        };
        if id >= FIRST {
            waiting.greetings.insert(id, message.clone());
        } else if let Some((call, _)) = waiting.calls.remove(&id) {
            waiting.settled.insert(id);
            self.tally.enter(call.judge(self.number, id, message)?);
        } else if let Some(call) = waiting.cancelled.remove(&id) {
            waiting.settled.insert(id);
            self.tally.enter(call.judge(self.number, id, message)?);
        } else {
            let what = if waiting.settled.contains(&id) {
                "an answer came twice"
            } else {
                "an answer came that nobody asked for"
            };
            return Err(SoakFault::new(format!("{what}: {message}")));
        }
        drop(waiting);
        self.changed.notify_all();
        Ok(())
    }
}
