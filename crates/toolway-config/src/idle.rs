//! How long a server may go unused before it rests, as its entry says (`idle`).
//!
//! Owns the two ways to write it. It is no part of a definition: what a server leads to does not
//! change with it, so another value starts nothing anew. Where nothing rests, nobody asks for it.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::json::EntryMembers as _;

/// The word of a server that never rests.
pub(crate) const NEVER: &str = "never";

/// How long a server may go unused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerIdle {
    /// For this long, then it rests.
    After(Duration),
    /// As long as it likes: it never rests.
    Never,
}

impl ServerIdle {
    /// What an entry says; nothing where it says nothing, or what nobody can read.
    pub fn of(definition: &Map<String, Value>) -> Option<Self> {
        Self::read(definition.member("idle")?)
    }

    /// Reads the value of `idle`.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(word) if word == NEVER => Some(Self::Never),
            value => {
                let seconds = value.as_u64().filter(|seconds| *seconds > 0)?;
                Some(Self::After(Duration::from_secs(seconds)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_seconds_or_never() {
        let read = |value: Value| ServerIdle::read(&value);
        let minute = ServerIdle::After(Duration::from_mins(1));
        assert_eq!(read(json!(60)), Some(minute));
        assert_eq!(read(json!("never")), Some(ServerIdle::Never));
        for wrong in [json!(0), json!(-1), json!(1.5), json!("60"), json!(true)] {
            assert_eq!(read(wrong.clone()), None, "{wrong}");
        }
    }
}
