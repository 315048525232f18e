//! Which call comes when, and what a right answer to it is.
//!
//! Owns the mix. It depends on nothing but the number of a call, so that a run can be repeated. Ids
//! are the clients' own and collide; what a call carries says whose it is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use serde_json::{Value, json};

use super::SoakFault;
use super::tally::SoakOutcome;

/// The server that answers everything.
pub(super) const STEADY: &str = "steady";
/// How many servers crash. A host gives one up that crashes five times in short order, so each
/// crashes less often than that.
pub(super) const FRAIL_SERVERS: u64 = 10;
const CRASHES_EACH: u64 = 4;
const LIST_CHANGES: u64 = 50;
/// The most tools that a change adds.
const MOST_FILLERS: u64 = 5;

/// The name of a server that crashes.
pub(super) fn frail(number: u64) -> String {
    format!("frail{number}")
}

/// The calls that are left.
pub(super) struct Traffic {
    calls: u64,
    next: AtomicU64,
    stopped: AtomicBool,
    tenth: Mutex<bool>,
    reached: Condvar,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SoakCall {
    /// Its number among all.
    pub(super) number: u64,
    pub(super) kind: SoakKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SoakKind {
    /// A server says the text again.
    Echo { server: String, may_fail: bool },
    /// It never answers, or only once it is cancelled.
    Cancelled { tool: &'static str },
    /// The server ends.
    Crash { server: String },
    /// The steady server offers so many more tools.
    Change { fillers: u64 },
    /// All tools are listed.
    List,
}

impl Traffic {
    pub(super) fn new(calls: u64) -> Self {
        Self {
            calls,
            next: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            tenth: Mutex::new(false),
            reached: Condvar::new(),
        }
    }

    /// The next call, until there are none.
    pub(super) fn next(&self) -> Option<SoakCall> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number == self.calls / 10 {
            self.pass_tenth();
        }
        if number >= self.calls || self.stopped.load(Ordering::Relaxed) {
            return None;
        }
        Some(SoakCall {
            number,
            kind: kind(number, self.calls),
        })
    }

    /// Nobody begins another call.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.pass_tenth();
    }

    /// Waits until so many calls were begun; false when nobody begins any more.
    pub(super) fn await_begun(&self, calls: u64) -> bool {
        while self.next.load(Ordering::Relaxed) < calls.min(self.calls) {
            if self.stopped.load(Ordering::Relaxed) {
                return false;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        !self.stopped.load(Ordering::Relaxed)
    }

    /// Waits until a tenth of the calls were begun.
    pub(super) fn await_tenth(&self) {
        let mut passed = super::lock(&self.tenth);
        while !*passed {
            let waited = self.reached.wait(passed);
            passed = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn pass_tenth(&self) {
        *super::lock(&self.tenth) = true;
        self.reached.notify_all();
    }
}

fn kind(number: u64, calls: u64) -> SoakKind {
    let crashes = FRAIL_SERVERS * CRASHES_EACH;
    if let Some(crash) = turn(number, calls, crashes) {
        return SoakKind::Crash {
            server: frail(crash % FRAIL_SERVERS),
        };
    }
    // Moved by one, so that both can happen in a short run.
    if let Some(change) = turn(number + 1, calls, LIST_CHANGES) {
        return SoakKind::Change {
            fillers: 1 + change % MOST_FILLERS,
        };
    }
    match number % 200 {
        13 => SoakKind::Cancelled { tool: "hang" },
        113 => SoakKind::Cancelled { tool: "late" },
        77 => SoakKind::List,
        place if place % 4 == 0 => SoakKind::Echo {
            server: frail(number / 4 % FRAIL_SERVERS),
            may_fail: true,
        },
        _ => SoakKind::Echo {
            server: STEADY.to_owned(),
            may_fail: false,
        },
    }
}

/// Which one of so many events, spread over all calls, this call is.
fn turn(number: u64, calls: u64, events: u64) -> Option<u64> {
    let apart = (calls / events).max(50);
    (number % apart == apart - 1).then_some(number / apart)
}

impl SoakCall {
    /// What the call carries and must bring back: nobody else's carries the same.
    pub(super) fn text(&self, client: usize, id: u64) -> String {
        let padding = usize::try_from(self.number % 300).unwrap_or(0);
        format!(
            "client {client} id {id} call {} ü {}",
            self.number,
            "x".repeat(padding)
        )
    }

    /// The method and its parameters; names as a merged view has them.
    pub(super) fn request(&self, client: usize, id: u64) -> (&'static str, Value) {
        let call = |server: &str, tool: &str, arguments: Value| {
            let name = format!("{server}__{tool}");
            (
                "tools/call",
                json!({ "name": name, "arguments": arguments }),
            )
        };
        match &self.kind {
            SoakKind::Echo { server, .. } => {
                call(server, "echo", json!({ "text": self.text(client, id) }))
            }
            SoakKind::Cancelled { tool } => call(STEADY, tool, json!({})),
            SoakKind::Crash { server } => call(server, "crash", json!({})),
            SoakKind::Change { fillers } => call(STEADY, "offer", json!({ "fillers": fillers })),
            SoakKind::List => ("tools/list", json!({})),
        }
    }

    /// What an answer means, or what is wrong with it.
    pub(super) fn judge(
        &self,
        client: usize,
        id: u64,
        answer: &Value,
    ) -> Result<SoakOutcome, SoakFault> {
        let wrong = |what: &str| {
            let what = format!("{what}: {self:?} with id {id} was answered {answer}");
            Err(SoakFault::new(what))
        };
        if answer["id"] != id {
            return wrong("the id is another's");
        }
        let result = &answer["result"];
        let failed = answer.get("error").is_some() || result["isError"] == true;
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        if answer["error"]["data"]["reason"] == "in-doubt"
            && !matches!(self.kind, SoakKind::Cancelled { .. })
        {
            return Ok(SoakOutcome::InDoubt);
        }
        match &self.kind {
            SoakKind::Echo { may_fail: true, .. } if failed => Ok(SoakOutcome::Failed),
            SoakKind::Echo { .. } if failed => wrong("a steady server failed"),
            SoakKind::Echo { .. } if text != self.text(client, id) => wrong("crossed"),
            SoakKind::Echo { .. } => Ok(SoakOutcome::Answered),
            SoakKind::Cancelled { .. } if failed || text == "too late" => {
                Ok(SoakOutcome::CancelledAnswered)
            }
            SoakKind::Cancelled { .. } => wrong("nothing like this was asked"),
            SoakKind::Crash { .. } if failed => Ok(SoakOutcome::Crash),
            SoakKind::Crash { .. } => wrong("a server that ended has answered"),
            SoakKind::Change { .. } if text == "offered" => Ok(SoakOutcome::Changed),
            SoakKind::Change { .. } => wrong("the list was not changed"),
            SoakKind::List => {
                let tools = result["tools"].as_array();
                let names = tools
                    .into_iter()
                    .flatten()
                    .filter_map(|tool| tool["name"].as_str());
                let names: Vec<&str> = names.collect();
                let echo = format!("{STEADY}__echo");
                match names.iter().filter(|name| **name == echo).count() {
                    1 => Ok(SoakOutcome::Listed),
                    _ => wrong("a tool is missing or listed twice"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(may_fail: bool) -> SoakCall {
        let server = STEADY.to_owned();
        SoakCall {
            number: 4,
            kind: SoakKind::Echo { server, may_fail },
        }
    }

    fn said(id: u64, text: &str) -> Value {
        json!({ "id": id, "result": { "content": [{ "type": "text", "text": text }] } })
    }

    #[test]
    fn an_answer_of_somebody_else_is_a_fault_however_it_looks() {
        let call = echo(true);
        let right = said(9, &call.text(1, 9));
        assert_eq!(call.judge(1, 9, &right), Ok(SoakOutcome::Answered));
        for (client, id) in [(2, 9), (1, 8)] {
            assert!(call.judge(client, id, &right).is_err(), "{client} {id}");
        }
        assert!(call.judge(1, 9, &said(9, "")).is_err());
        assert!(
            call.judge(1, 9, &json!({ "id": "9", "result": right["result"] }))
                .is_err()
        );
    }

    #[test]
    fn only_servers_that_crash_may_fail() {
        let error = json!({ "id": 9, "error": { "code": -32603, "message": "gone" } });
        assert_eq!(echo(true).judge(1, 9, &error), Ok(SoakOutcome::Failed));
        assert!(echo(false).judge(1, 9, &error).is_err());
    }

    #[test]
    fn every_kind_of_call_comes_and_no_server_crashes_too_often() {
        for calls in [4_000, 1_000_000] {
            let traffic = Traffic::new(calls);
            let (mut crashes, mut changes, mut others) = (Vec::new(), 0, [0; 3]);
            while let Some(call) = traffic.next() {
                match call.kind {
                    SoakKind::Crash { server } => crashes.push(server),
                    SoakKind::Change { .. } => changes += 1,
                    SoakKind::Cancelled { .. } => others[0] += 1,
                    SoakKind::List => others[1] += 1,
                    SoakKind::Echo { .. } => others[2] += 1,
                }
            }
            crashes.sort();
            let most = crashes
                .chunk_by(|one, other| one == other)
                .map(<[_]>::len)
                .max();
            assert_eq!(most, Some(4), "{calls}");
            assert!(changes >= 40, "{calls}: {changes}");
            assert!(others.iter().all(|count| *count > 0), "{calls}: {others:?}");
        }
    }
}
