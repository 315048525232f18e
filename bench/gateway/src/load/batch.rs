//! Timing calls: one after another, or many side by side.
//!
//! Owns connections and clocks. A batch ends after so many calls or so much time, whichever comes
//! first; connections are opened before the clock starts, each with one call.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;

use super::answer::IncomingAnswer;
use super::request::{Ask, Target, check_echo};

/// Longer than this, nothing is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// When a batch ends.
#[derive(Clone, Copy)]
pub struct Extent {
    pub calls: u64,
    pub time: Duration,
}

/// What a batch took.
pub struct Batch {
    pub calls: u64,
    pub elapsed: Duration,
    /// The middle time of a call.
    pub median: Duration,
    /// The time that one of a hundred took, or longer.
    pub slowest: Duration,
}

impl Batch {
    #[must_use]
    pub fn rate(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "calls of a batch are few")]
        let calls = self.calls as f64;
        calls / self.elapsed.as_secs_f64()
    }
}

/// A connection that waits for each answer.
pub struct Line {
    stream: TcpStream,
    output: Vec<u8>,
    pub answer: IncomingAnswer,
    chunk: Vec<u8>,
}

impl Line {
    pub fn open(target: &Target) -> Result<Self> {
        let stream = TcpStream::connect(target.address).context("no connection is taken")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream,
            output: Vec::new(),
            answer: IncomingAnswer::default(),
            chunk: vec![0; 1 << 18],
        })
    }

    /// Asks, and waits for the whole answer; how long that took.
    pub fn ask(&mut self, target: &Target, id: u64, ask: Ask<'_>) -> Result<Duration> {
        self.output.clear();
        target.put(&mut self.output, id, ask);
        self.answer.clear();
        let begin = Instant::now();
        self.stream.write_all(&self.output)?;
        while !self.answer.is_whole()? {
            let count = self
                .stream
                .read(&mut self.chunk)
                .context("no answer came")?;
            if count == 0 {
                bail!("the connection ended before the answer");
            }
            self.answer.input.extend_from_slice(&self.chunk[..count]);
        }
        Ok(begin.elapsed())
    }
}

/// Calls one after another.
pub fn one_by_one(target: &Target, extent: Extent) -> Result<Batch> {
    let mut line = Line::open(target)?;
    let mut times = Vec::new();
    line.ask(target, 1, Ask::Echo)?;
    check_echo(&line.answer, 1)?;
    let begin = Instant::now();
    for id in 2..extent.calls + 2 {
        times.push(line.ask(target, id, Ask::Echo)?);
        check_echo(&line.answer, id)?;
        if begin.elapsed() > extent.time {
            break;
        }
    }
    let elapsed = begin.elapsed();
    Ok(Batch {
        calls: times.len() as u64,
        elapsed,
        median: middle(&mut times),
        slowest: slowest(&times),
    })
}

/// One of many connections.
struct Lane {
    stream: TcpStream,
    answer: IncomingAnswer,
    id: u64,
    sent: Instant,
}

/// So many calls at a time, each on a connection of its own.
pub fn side_by_side(target: &Target, width: u64, extent: Extent) -> Result<Batch> {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut lanes = Vec::new();
    let mut output = Vec::new();
    for number in 0..width {
        // The first call of a connection waits for its answer, so that all begin alike.
        let mut line = Line::open(target)?;
        line.ask(target, number, Ask::Echo)?;
        check_echo(&line.answer, number)?;
        line.stream.set_nonblocking(true)?;
        epoll::add(
            &poll,
            &line.stream,
            EventData::new_u64(number),
            EventFlags::IN,
        )?;
        lanes.push(Lane {
            stream: line.stream,
            answer: IncomingAnswer::default(),
            id: 0,
            sent: Instant::now(),
        });
    }
    let (mut next, mut done) = (0, 0);
    let mut times = Vec::new();
    let begin = Instant::now();
    for lane in &mut lanes {
        send(lane, target, next, &mut output)?;
        next += 1;
    }
    let mut is_over = false;
    let mut events: Vec<Event> = Vec::with_capacity(lanes.len());
    let patience = rustix::event::Timespec {
        tv_sec: PATIENCE.as_secs().cast_signed(),
        tv_nsec: 0,
    };
    while done < next {
        events.clear();
        match epoll::wait(&poll, spare_capacity(&mut events), Some(&patience)) {
            Ok(0) => bail!("{} of {width} calls are not answered", next - done),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let number = usize::try_from(event.data.u64())?;
            let lane = &mut lanes[number];
            lane.answer.input.reserve(1 << 14);
            match rustix::io::read(&lane.stream, spare_capacity(&mut lane.answer.input)) {
                Ok(0) => bail!("a connection ended before the answer"),
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if !lane.answer.is_whole()? {
                continue;
            }
            times.push(lane.sent.elapsed());
            check_echo(&lane.answer, lane.id)?;
            done += 1;
            is_over = is_over || next >= extent.calls || begin.elapsed() > extent.time;
            if !is_over {
                send(lane, target, next, &mut output)?;
                next += 1;
            }
        }
    }
    let elapsed = begin.elapsed();
    Ok(Batch {
        calls: done,
        elapsed,
        median: middle(&mut times),
        slowest: slowest(&times),
    })
}

fn send(lane: &mut Lane, target: &Target, id: u64, output: &mut Vec<u8>) -> Result<()> {
    output.clear();
    target.put(output, id, Ask::Echo);
    lane.answer.clear();
    (lane.id, lane.sent) = (id, Instant::now());
    // A request is far smaller than what a socket takes at once.
    lane.stream.write_all(output)?;
    Ok(())
}

/// The middle one.
pub fn middle(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The one that one of a hundred reaches; they are in order.
fn slowest(times: &[Duration]) -> Duration {
    times.get(times.len() * 99 / 100).copied().unwrap_or_default()
}
