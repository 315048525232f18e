//! The entry points of the fuzz target `eras` in `fuzz/`: what becomes of a server's words on their way
//! to a client.
//!
//! Owns nothing. It exists only where the compiler is told `--cfg fuzzing`.

use toolway::types::Era;
use toolway_wire::RawJson;

use super::answers::{self, Caching};
use crate::conversation::Answer;

/// A complete result of a server of one era for a client of another.
pub fn passed_on(result: RawJson, from: Era, to: Era, says_caching: bool) -> Answer {
    let caching = if says_caching {
        Caching::Said
    } else {
        Caching::Unsaid
    };
    answers::complete(result, from, to, caching)
}

/// A result that is a task, under the id that a client knows.
pub fn of_task(result: &RawJson, id: &str) -> RawJson {
    super::sealing::with_task_id(result, id)
}

/// The answer to a read, with the address that the client knows.
pub fn readdressed(result: &RawJson, shown: &str) -> RawJson {
    super::work::readdressed(result, shown)
}

/// A message in parts, as it is written into an event stream or a large body.
pub fn in_parts(answer: &Answer, id: &toolway_wire::Id) -> Vec<u8> {
    answer.parts(id).concat()
}
