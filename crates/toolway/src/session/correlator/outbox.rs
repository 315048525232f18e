//! What we have to say to a server that may not be reading.
//!
//! Owns how much of it waits. Answers carry the server's own ids, so it is the server that decides
//! how large they are: a few pings with ids of megabytes would be gigabytes otherwise.

use std::collections::VecDeque;

use toolway_transport::ChannelCommand;
use toolway_types::Budget;

/// How much may wait.
const ROOM: Budget = Budget::new(16 << 20, 1024);

#[derive(Debug)]
pub(super) struct Outbox {
    waiting: VecDeque<ChannelCommand>,
    room: Budget,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            room: ROOM,
        }
    }
}

impl Outbox {
    /// Takes a message; false when there is no room for it. A large answer of ours passes when
    /// nothing else waits.
    pub(super) fn push(&mut self, command: ChannelCommand) -> bool {
        if self.room.take(size(&command)).is_err() {
            if !self.waiting.is_empty() {
                return false;
            }
            self.room = Budget::new(0, self.room.items - 1);
        }
        self.waiting.push_back(command);
        true
    }

    /// The next one to be sent.
    pub(super) fn pop(&mut self) -> Option<ChannelCommand> {
        let command = self.waiting.pop_front()?;
        if self.waiting.is_empty() {
            self.room = ROOM;
        } else {
            self.room.give_back(size(&command));
        }
        Some(command)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

fn size(command: &ChannelCommand) -> usize {
    match command {
        ChannelCommand::Send(outgoing) => outgoing.bytes.len(),
        ChannelCommand::Abandon(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use toolway_transport::{AnswerTimeout, OutgoingMessage};

    use super::*;

    fn message(bytes: usize) -> ChannelCommand {
        ChannelCommand::Send(OutgoingMessage {
            bytes: Bytes::from(vec![b' '; bytes]),
            tag: None,
            headers: Vec::new(),
            answer_timeout: AnswerTimeout::ByChannel,
        })
    }

    #[test]
    fn sec_51_answers_to_a_server_that_does_not_read_have_a_total() {
        let mut outbox = Outbox::default();
        let mib = 1 << 20;
        let taken = (0..100).filter(|_| outbox.push(message(mib))).count();
        assert_eq!(taken, 16);
        // What was sent makes room for exactly as much.
        assert!(outbox.pop().is_some());
        assert!(!outbox.push(message(mib + 1)));
        assert!(outbox.push(message(mib)));
        outbox.clear();
        let taken = (0..2000).filter(|_| outbox.push(message(1))).count();
        assert_eq!(taken, 1024);
    }

    #[test]
    fn an_answer_larger_than_the_room_passes_when_it_is_alone() {
        let mut outbox = Outbox::default();
        assert!(outbox.push(message(ROOM.bytes + 1)));
        assert!(!outbox.push(message(1)));
        assert!(outbox.pop().is_some());
        assert!(outbox.is_empty());
        assert!(outbox.push(message(ROOM.bytes)));
    }
}
