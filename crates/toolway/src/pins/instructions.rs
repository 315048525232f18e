//! The pin of what a server says to models about itself.
//!
//! Owns when it is made: with the first connection, and when a person accepts other words. What
//! becomes of words that changed is decided where they are passed on (`supervisor/member.rs`).

use toolway_types::ServerName;

use super::{Definition, Difference, Pins, Place, Standing};

/// What a server says, and where that is remembered.
pub(crate) struct Instructions {
    place: Place,
    label: String,
    definition: Definition,
}

impl Instructions {
    /// Of a server that is defined like this; empty when it says nothing.
    pub(crate) fn of(server: &ServerName, definition: &str, said: &str) -> Self {
        Self {
            place: Place::beside(server, Some(definition), "instructions", ""),
            label: format!("{server}: instructions"),
            definition: Definition::of_instructions(said),
        }
    }

    /// How they differ from those that are remembered. New ones are remembered.
    pub(crate) async fn compare(self, pins: &Pins) -> Option<Difference> {
        match pins.check(&self.place, &self.definition, None) {
            Standing::Same => None,
            Standing::Changed(difference) => Some(difference),
            Standing::New => {
                self.accept(pins).await;
                None
            }
        }
    }

    /// Remembers them as they are.
    pub(crate) async fn accept(self, pins: &Pins) {
        pins.pin(self.place, self.label, &self.definition, None)
            .await;
    }
}
