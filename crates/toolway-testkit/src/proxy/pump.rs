//! One direction of one connection through the proxy.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::{
    AnswerHold, ConnectionCut, ConnectionEnd, Direction, ProxiedConnection, ProxyFaults,
    ProxyState, lock,
};

/// How much is read at once.
const PIECE: usize = 16 * 1024;

/// Passes bytes on until either side ends, spoiled by whatever holds at each moment.
pub(super) fn run(shared: &ProxyState, link: &ProxiedConnection, direction: Direction) {
    let (from, to) = match direction {
        Direction::Up => (&link.client, &link.server),
        Direction::Down => (&link.server, &link.client),
    };
    let mut passed = 0;
    let mut buffer = vec![0; PIECE];
    while let Some(piece) = read(shared, from, &mut buffer) {
        let Some(toxics) = wait_until_open(shared) else {
            break;
        };
        if lock(&shared.chance).per_mille(toxics.resets_per_mille) {
            return link.end(ConnectionEnd::Reset);
        }
        let cut = toxics.cut.filter(|cut| cut.direction == direction);
        let room = cut.map_or(usize::MAX, |cut| cut.after.saturating_sub(passed));
        let kept = &piece[..room.min(piece.len())];
        if !pass(shared, &toxics, to, kept) {
            break;
        }
        passed += kept.len();
        if let Some(ConnectionCut { after, end, .. }) = cut
            && passed >= after
        {
            return link.end(end);
        }
    }
    // The other direction may still have something to say.
    drop(to.shutdown(Shutdown::Write));
}

/// The next bytes, gathered while the proxy holds them; none at the end.
fn read(shared: &ProxyState, from: &TcpStream, buffer: &mut [u8]) -> Option<Vec<u8>> {
    let first = some(from, buffer)?;
    let mut piece = buffer[..first].to_vec();
    let Some(AnswerHold { bytes, time }) = shared.toxics().hold else {
        return Some(piece);
    };
    let deadline = Instant::now() + time;
    while piece.len() < bytes {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || from.set_read_timeout(Some(left)).is_err() {
            break;
        }
        match some(from, buffer) {
            Some(more) => piece.extend_from_slice(&buffer[..more]),
            None => break,
        }
    }
    drop(from.set_read_timeout(None));
    Some(piece)
}

/// How many bytes came; none when no more do.
fn some(mut from: &TcpStream, buffer: &mut [u8]) -> Option<usize> {
    loop {
        match from.read(buffer) {
            Ok(0) => return None,
            Ok(count) => return Some(count),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// What is spoiled now; waits while nothing passes, and is none when the proxy ends.
fn wait_until_open(shared: &ProxyState) -> Option<ProxyFaults> {
    let mut toxics = shared.toxics();
    while toxics.half_open && !shared.is_stopped() {
        toxics = shared
            .changed
            .wait(toxics)
            .unwrap_or_else(PoisonError::into_inner);
    }
    (!shared.is_stopped()).then(|| toxics.clone())
}

/// Passes bytes on as slowly and in as small pieces as it must; false when the other side is gone.
fn pass(shared: &ProxyState, toxics: &ProxyFaults, mut to: &TcpStream, bytes: &[u8]) -> bool {
    let size = match toxics.slice {
        0 => bytes.len().max(1),
        size => size,
    };
    for slice in bytes.chunks(size) {
        let jitter = u64::try_from(toxics.jitter.as_micros()).unwrap_or(u64::MAX);
        let more = Duration::from_micros(lock(&shared.chance).below(jitter));
        let length = u64::try_from(slice.len()).unwrap_or(u64::MAX);
        let width = toxics
            .bandwidth
            .and_then(|width| (length * 1_000_000).checked_div(width))
            .map_or(Duration::ZERO, Duration::from_micros);
        let wait = toxics.latency + more + width;
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        if to.write_all(slice).is_err() {
            return false;
        }
    }
    true
}
