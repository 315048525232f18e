//! Whether somebody else slows the others down: their slowest calls beside a bad neighbour, beside
//! the same alone a moment before.
//!
//! Owns the neighbours. Each runs in a thread of the load, at a pace that leaves the processors to
//! the others: what is measured is the gateway, not who has the processor.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::batch::{Extent, side_by_side};
use super::place::Place;
use super::request::{Ask, Target};

/// How many calls of the others are in flight.
pub const WIDTH: u64 = 4;
/// How much of them is looked at. The slowest of a hundred is the 40th slowest.
pub const EXTENT: Extent = Extent {
    calls: 4_000,
    time: Duration::from_millis(600),
};

/// How large the results are that are not read, or slowly.
const LARGE: usize = 10_000_000;
/// How many connections are opened and used for nothing, in all and at a time.
const JUNK: usize = 10_000;
const JUNK_AT_A_TIME: usize = 900;
/// How often something happens.
const PACE: Duration = Duration::from_millis(5);

/// Who else is there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Neighbour {
    /// Four clients that ask for 10 MB each and never read it.
    NeverReads,
    /// One that asks for 10 MB again and again, and reads a little at a time.
    ReadsSlowly,
    /// Ten thousand connections that begin a request and leave it at that.
    Junk,
    /// Somebody who adds a server and takes it away again, so that the plan is made anew, a process
    /// starts or ends, and the list of tools changes.
    Reloads,
}

impl Neighbour {
    pub const ALL: [Self; 4] = [
        Self::NeverReads,
        Self::ReadsSlowly,
        Self::Junk,
        Self::Reloads,
    ];

    /// As it is called in the figures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NeverReads => "clients that never read",
            Self::ReadsSlowly => "a slow client",
            Self::Junk => "junk connections",
            Self::Reloads => "reloads",
        }
    }

    /// The slowest of a hundred calls alone, and beside it.
    pub fn measure(self, place: &Place) -> Result<(Duration, Duration)> {
        let alone = side_by_side(&place.target, WIDTH, EXTENT)?.slowest;
        let disturbance = Disturbance::start(self, place)?;
        let beside = side_by_side(&place.target, WIDTH, EXTENT);
        let done = disturbance.end()?;
        if done == 0 {
            bail!("there was no disturbance by {}", self.name());
        }
        Ok((alone, beside?.slowest))
    }
}

/// A neighbour at work.
struct Disturbance {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Result<usize>>,
}

impl Disturbance {
    /// Begins, and waits until it is felt.
    fn start(neighbour: Neighbour, place: &Place) -> Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let is_over = {
            let over = Arc::clone(&over);
            move || over.load(Ordering::Relaxed)
        };
        let target = place.target.clone();
        let config = place.config.clone();
        let thread = std::thread::spawn(move || match neighbour {
            Neighbour::NeverReads => never_read(&target, is_over),
            Neighbour::ReadsSlowly => read_slowly(&target, is_over),
            Neighbour::Junk => connect_for_nothing(&target, is_over),
            Neighbour::Reloads => reload(&config, is_over),
        });
        std::thread::sleep(PACE * 10);
        Ok(Self { over, thread })
    }

    /// Ends it; how often it did what it does.
    fn end(self) -> Result<usize> {
        self.over.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(done) => done,
            Err(_) => bail!("a neighbour panicked"),
        }
    }
}

fn ask(target: &Target, ask: Ask<'_>) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(target.address)?;
    let mut output = Vec::new();
    target.put(&mut output, 1, ask);
    stream.write_all(&output)?;
    Ok(stream)
}

fn never_read(target: &Target, is_over: impl Fn() -> bool) -> Result<usize> {
    let streams: Vec<TcpStream> = (0..4)
        .map(|_| ask(target, Ask::Big(LARGE)))
        .collect::<Result<_>>()?;
    while !is_over() {
        std::thread::sleep(PACE);
    }
    Ok(streams.len())
}

fn read_slowly(target: &Target, is_over: impl Fn() -> bool) -> Result<usize> {
    let mut stream = ask(target, Ask::Big(LARGE))?;
    stream.set_read_timeout(Some(PACE))?;
    let mut chunk = vec![0; 1 << 14];
    let mut pieces = 0;
    while !is_over() {
        // Nothing to read yet is no fault: it is slow, not the gateway.
        pieces += usize::from(stream.read(&mut chunk).is_ok_and(|count| count > 0));
        std::thread::sleep(PACE);
    }
    Ok(pieces)
}

fn connect_for_nothing(target: &Target, is_over: impl Fn() -> bool) -> Result<usize> {
    let mut open = std::collections::VecDeque::new();
    let mut opened = 0;
    while opened < JUNK && !is_over() {
        for _ in 0..20 {
            let mut stream = TcpStream::connect(target.address)?;
            stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: somebody\r\nX-")?;
            open.push_back(stream);
            opened += 1;
        }
        while open.len() > JUNK_AT_A_TIME {
            open.pop_front();
        }
        std::thread::sleep(PACE);
    }
    while !is_over() {
        std::thread::sleep(PACE);
    }
    Ok(opened)
}

fn reload(config: &std::path::Path, is_over: impl Fn() -> bool) -> Result<usize> {
    let before = fs::read_to_string(config).context("cannot read the configuration")?;
    let mut with_one: serde_json::Value = serde_json::from_str(&before)?;
    let servers = with_one["mcpServers"].as_object_mut();
    let servers = servers.context("there are no servers")?;
    let some = servers.values().next().cloned().unwrap_or_default();
    servers.insert("passing".to_owned(), some);
    let with_one = with_one.to_string();
    let mut changes = 0;
    while !is_over() {
        let text = if changes % 2 == 0 { &with_one } else { &before };
        fs::write(config, text)?;
        changes += 1;
        let begin = Instant::now();
        while begin.elapsed() < PACE * 40 && !is_over() {
            std::thread::sleep(PACE);
        }
    }
    fs::write(config, before)?;
    Ok(changes)
}
