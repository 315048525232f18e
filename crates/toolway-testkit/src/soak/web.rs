//! Clients over HTTP: each with several connections and one sequence of ids, in one of the eras.
//!
//! Owns what a client does around its calls: its session, its cancellations, hanging up, listening
//! for changes. What is called, and what counts as an answer, is `traffic.rs`.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::SoakFault;
use super::exchange::{Exchange, Heard, PATIENCE, WebAnswer};
use super::gateway::GatewayProcess;
use super::tally::{SoakOutcome, SoakTally};
use super::traffic::{FRAIL_SERVERS, STEADY, SoakCall, SoakKind, Traffic, frail};

const LEGACY: &str = "2025-11-25";
pub(super) const MODERN: &str = "2026-07-28";
/// A cancellation may overtake its call on another connection, so it is sent again.
const AGAIN: Duration = Duration::from_millis(200);
/// How long servers may take to be there.
const START: Duration = Duration::from_mins(1);

/// One client.
struct WebClient<'a> {
    number: usize,
    address: SocketAddr,
    path: &'a str,
    /// None in the modern era.
    session: Option<String>,
    modern: bool,
    next: AtomicU64,
    done: AtomicBool,
}

/// Waits until the gateway lists the tools of every server.
pub(super) fn await_ready(gateway: &GatewayProcess) -> Result<(), SoakFault> {
    let client = WebClient::new(0, gateway, true)?;
    let begin = Instant::now();
    loop {
        let mut exchange = Exchange::open(client.address)?;
        let answer = client.ask(&mut exchange, 1, "tools/list", &json!({}))?;
        let list = answer
            .messages
            .first()
            .map(|message| message["result"]["tools"].to_string());
        let list = list.unwrap_or_default();
        let mut servers = (0..FRAIL_SERVERS).map(frail).chain([STEADY.to_owned()]);
        if servers.all(|server| list.contains(&format!("\"{server}__echo\""))) {
            return Ok(());
        }
        if begin.elapsed() > START {
            let what = format!("not all servers are there: {answer:?}");
            return Err(SoakFault::new(what));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// One client until there are no more calls. Every other one is modern.
pub(super) fn run(
    number: usize,
    lanes: usize,
    gateway: &GatewayProcess,
    traffic: &Traffic,
    tally: &SoakTally,
) -> Result<(), SoakFault> {
    let mut client = WebClient::new(number, gateway, number % 2 == 1)?;
    if !client.modern {
        client.session = Some(client.open_session()?);
    }
    let client = &client;
    std::thread::scope(|scope| {
        let listener = (!client.modern).then(|| scope.spawn(move || client.listen(tally)));
        let lanes: Vec<_> = (0..lanes)
            .map(|_| {
                scope.spawn(move || {
                    let outcome = client.work(traffic, tally);
                    if outcome.is_err() {
                        traffic.stop();
                    }
                    outcome
                })
            })
            .collect();
        let ended = lanes.into_iter().try_for_each(join);
        client.done.store(true, Ordering::Relaxed);
        let heard = listener.map_or(Ok(()), join);
        ended.and(heard)
    })?;
    client.close()
}

fn join(thread: std::thread::ScopedJoinHandle<'_, Result<(), SoakFault>>) -> Result<(), SoakFault> {
    thread
        .join()
        .unwrap_or_else(|_| Err(SoakFault::new("a client panicked")))
}

impl<'a> WebClient<'a> {
    fn new(number: usize, gateway: &'a GatewayProcess, modern: bool) -> Result<Self, SoakFault> {
        let Some((address, path)) = &gateway.address else {
            return Err(SoakFault::new("the gateway listens nowhere"));
        };
        Ok(Self {
            number,
            address: *address,
            path,
            session: None,
            modern,
            next: AtomicU64::new(1),
            done: AtomicBool::new(false),
        })
    }

    /// Sends one message.
    fn send(&self, exchange: &mut Exchange, message: &mut Value) -> Result<(), SoakFault> {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let name = message["params"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let mut fields = vec![
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        if self.modern {
            message["params"]["_meta"] = modern_meta();
            fields.push(("MCP-Protocol-Version", MODERN));
            fields.push(("Mcp-Method", &method));
            if !name.is_empty() {
                fields.push(("Mcp-Name", &name));
            }
        } else if let Some(session) = &self.session {
            fields.push(("MCP-Protocol-Version", LEGACY));
            fields.push(("Mcp-Session-Id", session));
        }
        exchange.send("POST", self.path, &fields, &message.to_string())
    }

    fn ask(
        &self,
        exchange: &mut Exchange,
        id: u64,
        method: &str,
        params: &Value,
    ) -> Result<WebAnswer, SoakFault> {
        self.send(exchange, &mut request(id, method, params))?;
        exchange.answer()
    }

    fn open_session(&self) -> Result<String, SoakFault> {
        let mut exchange = Exchange::open(self.address)?;
        let params = json!({ "protocolVersion": LEGACY, "capabilities": {},
            "clientInfo": { "name": "soak", "version": "1" } });
        let answer = self.ask(&mut exchange, 0, "initialize", &params)?;
        let Some(session) = answer.session else {
            return Err(SoakFault::new(format!("no session was opened: {answer:?}")));
        };
        let opened = WebClient {
            session: Some(session.clone()),
            next: AtomicU64::new(0),
            done: AtomicBool::new(false),
            ..*self
        };
        opened.notify("notifications/initialized", &json!({}))?;
        Ok(session)
    }

    /// Says something on a connection of its own.
    fn notify(&self, method: &str, params: &Value) -> Result<(), SoakFault> {
        let mut exchange = Exchange::open(self.address)?;
        let mut message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.send(&mut exchange, &mut message)?;
        let answer = exchange.answer()?;
        if answer.status >= 300 {
            return Err(SoakFault::new(format!(
                "`{method}` was not taken: {answer:?}"
            )));
        }
        Ok(())
    }

    /// One connection, call after call.
    fn work(&self, traffic: &Traffic, tally: &SoakTally) -> Result<(), SoakFault> {
        let mut exchange = Exchange::open(self.address)?;
        while let Some(call) = traffic.next() {
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            let (method, params) = call.request(self.number, id);
            self.send(&mut exchange, &mut request(id, method, &params))?;
            let is_cancelled = matches!(call.kind, SoakKind::Cancelled { .. });
            let (outcome, is_open) = match (is_cancelled, self.modern) {
                // A modern client cancels by hanging up.
                (true, true) => (SoakOutcome::HungUp, false),
                (true, false) => self.cancel(&mut exchange, &call, id)?,
                (false, _) => {
                    let answer = exchange.answer()?;
                    (self.judge(&call, id, &answer)?, !answer.closes)
                }
            };
            tally.enter(outcome);
            if !is_open {
                exchange = Exchange::open(self.address)?;
            }
        }
        Ok(())
    }

    /// Cancels a call; what came of it, and whether the connection can be used further.
    fn cancel(
        &self,
        exchange: &mut Exchange,
        call: &SoakCall,
        id: u64,
    ) -> Result<(SoakOutcome, bool), SoakFault> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            self.notify("notifications/cancelled", &json!({ "requestId": id }))?;
            match exchange.hear(AGAIN)? {
                Heard::Answer(answer) if answers(&answer).next().is_none() => {
                    return Ok((SoakOutcome::CancelledSilent, !answer.closes));
                }
                Heard::Answer(answer) => {
                    return Ok((self.judge(call, id, &answer)?, !answer.closes));
                }
                Heard::End => return Ok((SoakOutcome::CancelledSilent, false)),
                Heard::Nothing => {}
            }
        }
        Err(SoakFault::new(format!(
            "a cancelled call does not end: {call:?} with id {id}"
        )))
    }

    fn judge(
        &self,
        call: &SoakCall,
        id: u64,
        answer: &WebAnswer,
    ) -> Result<SoakOutcome, SoakFault> {
        let mut found = answers(answer);
        let (Some(message), None) = (found.next(), found.next()) else {
            let what = format!("not one answer to {call:?} with id {id} but {answer:?}");
            return Err(SoakFault::new(what));
        };
        call.judge(self.number, id, message)
    }

    /// Reads what the gateway says unasked: answers have no business there.
    fn listen(&self, tally: &SoakTally) -> Result<(), SoakFault> {
        let session = self.session.as_deref().unwrap_or_default();
        let fields = [
            ("Accept", "text/event-stream"),
            ("MCP-Protocol-Version", LEGACY),
            ("Mcp-Session-Id", session),
        ];
        let mut exchange = Exchange::open(self.address)?;
        exchange.send("GET", self.path, &fields, "")?;
        while !self.done.load(Ordering::Relaxed) {
            let Some(messages) = exchange.events(AGAIN)? else {
                exchange = Exchange::open(self.address)?;
                exchange.send("GET", self.path, &fields, "")?;
                continue;
            };
            for message in messages {
                if message.get("method").is_none() {
                    let what = format!("an answer came on the stream of notices: {message}");
                    return Err(SoakFault::new(what));
                }
                if message["method"] == "notifications/tools/list_changed" {
                    tally.announced();
                }
            }
        }
        Ok(())
    }

    fn close(&self) -> Result<(), SoakFault> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        let mut exchange = Exchange::open(self.address)?;
        let fields = [
            ("Mcp-Session-Id", session.as_str()),
            ("MCP-Protocol-Version", LEGACY),
        ];
        exchange.send("DELETE", self.path, &fields, "")?;
        let answer = exchange.answer()?;
        if answer.status >= 300 {
            return Err(SoakFault::new(format!(
                "the session does not end: {answer:?}"
            )));
        }
        Ok(())
    }
}

/// The answers among the messages.
fn answers(answer: &WebAnswer) -> impl Iterator<Item = &Value> {
    answer
        .messages
        .iter()
        .filter(|message| message.get("method").is_none())
}

pub(super) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub(super) fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": { "name": "soak", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}
