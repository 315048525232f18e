//! Noticing that a stream has gone silent.
//!
//! A peer that vanishes leaves a connection on which nothing arrives, like that of an idle server
//! (REL-12). Many servers send keepalives at regular intervals: one that stops is gone. Servers
//! without keepalives are left to TCP probes and request timeouts.

use std::time::Duration;

use tokio::time::Instant;

use super::EventDecoder;
use crate::http::body::within;

/// After this many keepalives, further ones are expected.
const HABIT: u32 = 2;

/// Measures one stream.
#[derive(Debug)]
pub(crate) struct SilenceWatchdog {
    floor: Duration,
    /// How long to wait for servers without keepalives; forever when absent.
    otherwise: Option<Duration>,
    longest: Duration,
}

/// Nothing arrived for this long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamSilent(pub(crate) Duration);

impl SilenceWatchdog {
    pub(crate) fn new(floor: Duration, otherwise: Option<Duration>) -> Self {
        Self {
            floor,
            otherwise,
            longest: Duration::ZERO,
        }
    }

    /// Waits for the next piece of the stream that `decoder` reads.
    pub(crate) async fn guard<T>(
        &mut self,
        decoder: &EventDecoder,
        next: impl Future<Output = T>,
    ) -> Result<T, StreamSilent> {
        let patience = if decoder.keepalives() >= HABIT {
            Some(self.floor.max(self.longest * 3))
        } else {
            self.otherwise
        };
        // Counted from when we began to listen: a reader that was held up is not the server's
        // silence.
        let begun = Instant::now();
        let piece = within(patience, next).await.map_err(StreamSilent)?;
        self.longest = self.longest.max(begun.elapsed());
        Ok(piece)
    }
}

impl std::fmt::Display for StreamSilent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "nothing arrived for {} s", self.0.as_secs_f32())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    async fn after(duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    #[tokio::test(start_paused = true)]
    async fn rel_12_a_stream_that_stops_giving_signs_of_life_is_noticed() {
        let second = Duration::from_secs(1);
        let mut decoder = EventDecoder::new(1000);
        let mut watchdog = SilenceWatchdog::new(30 * second, None);
        for _ in 0..3 {
            let waited = watchdog.guard(&decoder, after(15 * second)).await;
            assert_eq!(waited, Ok(()));
            decoder.feed(b": ping\n\n");
            assert_eq!(decoder.next_event(), Ok(None));
        }
        let silence = watchdog.guard(&decoder, pending::<()>()).await;
        assert_eq!(silence, Err(StreamSilent(45 * second)));
    }

    #[tokio::test(start_paused = true)]
    async fn rel_12_a_server_without_the_habit_may_be_silent_for_long() {
        let day = Duration::from_hours(24);
        let decoder = EventDecoder::new(1000);
        let mut watchdog = SilenceWatchdog::new(Duration::from_secs(30), None);
        assert_eq!(watchdog.guard(&decoder, after(day)).await, Ok(()));
        let mut watchdog = SilenceWatchdog::new(Duration::from_secs(30), Some(day));
        let silence = watchdog.guard(&decoder, pending::<()>()).await;
        assert_eq!(silence, Err(StreamSilent(day)));
    }
}
