//! The pin of what a server says to models about itself.
//!
//! Owns when it is made: with the first connection, and when a person accepts other words. What
//! becomes of words that changed is decided where they are passed on
//! (`supervisor/managed_server.rs`).

use toolway_types::ServerName;

use super::{Definition, Difference, PinPlace, PinState, Pins};

/// What a server says, and where that is remembered.
pub(crate) struct PinnedInstructions {
    place: PinPlace,
    label: String,
    definition: Definition,
}

impl PinnedInstructions {
    /// Of a server that is defined like this; empty when it says nothing.
    pub(crate) fn of(server: &ServerName, definition: &str, said: &str) -> Self {
        Self {
            place: PinPlace::beside(server, Some(definition), "instructions", ""),
            label: format!("{server}: instructions"),
            definition: Definition::of_instructions(said),
        }
    }

    /// How they differ from those that are remembered. New ones are remembered.
    pub(crate) async fn compare(self, pins: &Pins) -> Option<Difference> {
        match pins.check(&self.place, &self.definition, None) {
            PinState::Same => None,
            PinState::Changed(difference) => Some(difference),
            PinState::New => {
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
