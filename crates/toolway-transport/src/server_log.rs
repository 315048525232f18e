//! What a server logs: always read, only the last of it kept (REL-06).
//!
//! Owns the ring and its followers. Stdout lines that are no messages are added too, marked; too
//! many of them are reported (REL-05).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{broadcast, watch};
use tokio::time::{Duration, Instant};
use toolway_types::Untrusted;

/// A longer line is kept in pieces.
const LONGEST_LINE: usize = 8 * 1024;

/// How many lines a close reason carries.
const TAIL: usize = 20;

/// How many lines may wait for a follower; a slower one is told how many it missed.
const FOLLOWED: usize = 256;

/// What marks a line that came on stdout.
const STDOUT_MARK: &str = "[stdout] ";

/// More than this on stdout that is no message, in all or in one second, is no stray banner.
const NOISE_BYTES: usize = 1024 * 1024;
const NOISE_LINES: u32 = 100;

/// The last lines a server logged. A cheap handle.
#[derive(Debug, Clone)]
pub struct ServerLog {
    ring: Arc<Mutex<LogRing>>,
    noisy: Arc<watch::Sender<bool>>,
}

#[derive(Debug)]
struct LogRing {
    lines: VecDeque<String>,
    bytes: usize,
    limit: usize,
    partial: Vec<u8>,
    noise: StdoutNoise,
    followers: LogFollowers,
}

/// The receivers of new lines.
#[derive(Debug)]
enum LogFollowers {
    /// No follower has subscribed yet.
    None,
    Some(broadcast::Sender<Untrusted>),
    /// The server has ended: there will be no new line.
    Over,
}

/// What came on stdout and was no message.
#[derive(Debug)]
struct StdoutNoise {
    bytes: usize,
    second: Instant,
    lines: u32,
}

impl StdoutNoise {
    /// Counts a line; whether that is too much.
    fn count(&mut self, length: usize, now: Instant) -> bool {
        self.bytes = self.bytes.saturating_add(length);
        if now.duration_since(self.second) >= Duration::from_secs(1) {
            (self.second, self.lines) = (now, 0);
        }
        self.lines = self.lines.saturating_add(1);
        self.bytes > NOISE_BYTES || self.lines > NOISE_LINES
    }
}

impl ServerLog {
    /// An empty log that keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        let ring = LogRing {
            lines: VecDeque::new(),
            bytes: 0,
            limit,
            partial: Vec::new(),
            noise: StdoutNoise {
                bytes: 0,
                second: Instant::now(),
                lines: 0,
            },
            followers: LogFollowers::None,
        };
        Self {
            ring: Arc::new(Mutex::new(ring)),
            noisy: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Resolves once the server has written far more to stdout than belongs there.
    pub async fn noisy(&self) {
        // The sender lives as long as this handle.
        let _ = self.noisy.subscribe().wait_for(|noisy| *noisy).await;
    }

    /// Everything that is kept, oldest first.
    pub fn lines(&self) -> Vec<Untrusted> {
        self.with(|ring| ring.last(usize::MAX))
    }

    /// The last few lines.
    pub fn tail(&self) -> Vec<Untrusted> {
        self.with(|ring| ring.last(TAIL))
    }

    /// Every whole line from now on. Bounded: a slow follower loses lines and is told how many
    /// ([`RecvError::Lagged`](broadcast::error::RecvError::Lagged)); the server is never held up.
    /// Ends with the server.
    pub fn subscribe(&self) -> broadcast::Receiver<Untrusted> {
        self.with(|ring| match &ring.followers {
            LogFollowers::Some(sender) => sender.subscribe(),
            LogFollowers::None => {
                let (sender, receiver) = broadcast::channel(FOLLOWED);
                ring.followers = LogFollowers::Some(sender);
                receiver
            }
            LogFollowers::Over => broadcast::channel(1).1,
        })
    }

    /// Nothing follows; what stands at the end without a line break is a line too.
    pub(crate) fn close(&self) {
        self.with(|ring| {
            if !ring.partial.is_empty() {
                ring.end_line();
            }
            ring.followers = LogFollowers::Over;
        });
    }

    pub(crate) fn push_stderr(&self, bytes: &[u8]) {
        self.with(|ring| ring.feed(bytes));
    }

    pub(crate) fn push_stdout(&self, line: &[u8]) {
        let shown = &line[..line.len().min(LONGEST_LINE)];
        let text = format!("{STDOUT_MARK}{}", String::from_utf8_lossy(shown));
        let too_much = self.with(|ring| {
            ring.push(text);
            ring.noise.count(line.len(), Instant::now())
        });
        if too_much {
            self.noisy
                .send_if_modified(|noisy| !std::mem::replace(noisy, true));
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut LogRing) -> T) -> T {
        // A panic elsewhere leaves at worst half a line.
        work(&mut self.ring.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl LogRing {
    fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = LONGEST_LINE - self.partial.len();
            let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
            let taken = end.min(room);
            self.partial.extend_from_slice(&bytes[..taken]);
            let ends_here = taken == end && end < bytes.len();
            bytes = &bytes[taken + usize::from(ends_here)..];
            if ends_here || self.partial.len() == LONGEST_LINE {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.partial)
            .trim_end_matches('\r')
            .to_owned();
        self.partial.clear();
        self.push(line);
    }

    fn push(&mut self, line: String) {
        if let LogFollowers::Some(followers) = &self.followers
            && followers.receiver_count() > 0
        {
            // The followers may be gone.
            let _ = followers.send(Untrusted::new(line.clone()));
        }
        self.bytes += line.len();
        self.lines.push_back(line);
        // An empty line costs memory too.
        while self.bytes > self.limit || self.lines.len() > self.limit / 16 {
            let Some(oldest) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= oldest.len();
        }
    }

    fn last(&self, count: usize) -> Vec<Untrusted> {
        let partial =
            (!self.partial.is_empty()).then(|| String::from_utf8_lossy(&self.partial).into_owned());
        let kept = count.saturating_sub(usize::from(partial.is_some()));
        let skipped = self.lines.len().saturating_sub(kept);
        self.lines
            .iter()
            .skip(skipped)
            .cloned()
            .chain(partial)
            .map(Untrusted::new)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(log: &ServerLog) -> Vec<String> {
        log.lines()
            .iter()
            .map(|line| line.as_received().to_owned())
            .collect()
    }

    #[test]
    fn rel_05_the_limits_of_noise() {
        let start = Instant::now();
        let noise = || StdoutNoise {
            bytes: 0,
            second: start,
            lines: 0,
        };
        let mut lines = noise();
        assert!((0..NOISE_LINES).all(|_| !lines.count(1, start)));
        assert!(lines.count(1, start), "one more in the same second");
        assert!(
            !lines.count(1, start + Duration::from_secs(1)),
            "a new second"
        );
        let mut bytes = noise();
        assert!(!bytes.count(NOISE_BYTES, start));
        assert!(bytes.count(1, start + Duration::from_mins(1)));
    }

    #[test]
    fn lines_come_out_as_they_went_in_however_they_were_cut() {
        let log = ServerLog::new(1024);
        for piece in [&b"one\r\ntw"[..], b"o\n", b"", b"\nthr"] {
            log.push_stderr(piece);
        }
        log.push_stdout(b"banner");
        assert_eq!(shown(&log), ["one", "two", "", "[stdout] banner", "thr"]);
    }

    #[test]
    fn rel_06_only_the_last_bytes_are_kept() {
        let log = ServerLog::new(4096);
        for number in 0..10_000 {
            log.push_stderr(format!("line {number}\n").as_bytes());
        }
        log.push_stderr(&vec![b'x'; 1_000_000]);
        let kept: usize = shown(&log).iter().map(String::len).sum();
        assert!(kept <= 4096 + LONGEST_LINE, "{kept}");
        let log = ServerLog::new(4096);
        log.push_stderr(&vec![b'\n'; 1_000_000]);
        assert_eq!(shown(&log).len(), 4096 / 16);
    }

    #[tokio::test]
    async fn a_follower_gets_every_line_or_the_number_it_missed_and_the_end() {
        use broadcast::error::{RecvError, TryRecvError};

        let log = ServerLog::new(4096);
        log.push_stderr(b"before\n");
        let (mut fast, mut slow) = (log.subscribe(), log.subscribe());
        for number in 0..FOLLOWED + 44 {
            log.push_stderr(format!("{number}\n").as_bytes());
            assert_eq!(fast.recv().await, Ok(Untrusted::new(number.to_string())));
        }
        assert_eq!(slow.recv().await, Err(RecvError::Lagged(44)));
        assert_eq!(slow.recv().await, Ok(Untrusted::new("44")));
        log.push_stderr(b"la");
        assert_eq!(fast.try_recv(), Err(TryRecvError::Empty));
        log.push_stderr(b"st");
        log.close();
        assert_eq!(fast.recv().await, Ok(Untrusted::new("last")));
        assert_eq!(fast.recv().await, Err(RecvError::Closed));
        assert_eq!(log.subscribe().recv().await, Err(RecvError::Closed));
    }

    #[test]
    fn a_close_reason_carries_the_last_lines() {
        let log = ServerLog::new(4096);
        for number in 0..100 {
            log.push_stderr(format!("{number}\n").as_bytes());
        }
        assert_eq!(log.tail().len(), TAIL);
        assert_eq!(log.tail()[TAIL - 1], Untrusted::new("99"));
    }
}
