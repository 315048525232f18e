//! The line of a call, as text.
//!
//! Owns that what many calls have in common is put into words once: who asked for which tool, and why
//! it may run. The words are those of the record (`toolway_rows`), cut out of the first such line.

use std::sync::Arc;

use toolway_types::ServerName;

use super::facts::{CallFacts, PlainCall};
use super::{AuditLine, PermittedBy};
use crate::call::Caller;
use crate::journal::timestamp;

/// For so many kinds of calls the words are kept.
const KEPT: usize = 16;

/// Where the common part of a line begins and ends.
const BEGIN: &str = "\"who\":";
const END: &str = ",\"milliseconds\":";

/// Writes lines.
pub(super) struct LineWriter {
    /// The number of this process: asking for it again is a system call.
    process: u32,
    kept: Vec<CommonPart>,
    /// The next that makes room for another.
    next: usize,
}

/// What the lines of one caller's calls of one tool have in common.
struct CommonPart {
    caller: Caller,
    server: ServerName,
    tool: Arc<str>,
    grant: PermittedBy,
    text: String,
}

impl LineWriter {
    pub(super) fn new() -> Self {
        Self {
            process: std::process::id(),
            kept: Vec::new(),
            next: 0,
        }
    }

    /// Appends the line of a call, with its end. Where that fails, part of it may stand there.
    pub(super) fn add(&mut self, facts: CallFacts, out: &mut Vec<u8>) -> serde_json::Result<()> {
        let plain = facts.plain();
        if let Some(call) = &plain
            && let Some(common) = self.kept.iter().find(|it| it.is_of(call))
        {
            self.write(call, &common.text, out);
            return Ok(());
        }
        let common = plain.map(|call| CommonPart {
            caller: call.caller.clone(),
            server: call.server.clone(),
            tool: Arc::clone(call.tool),
            grant: call.grant.clone(),
            text: String::new(),
        });
        let begin = out.len();
        let record = facts.into_record(self.process);
        serde_json::to_writer(&mut *out, &AuditLine::Call(Box::new(record)))?;
        if let Some(common) = common {
            self.keep(common, &out[begin..]);
        }
        out.push(b'\n');
        Ok(())
    }

    fn keep(&mut self, mut common: CommonPart, line: &[u8]) {
        let line = std::str::from_utf8(line).unwrap_or_default();
        // Before the one stand a time and a number, behind the other numbers and a word.
        let (Some(begin), Some(end)) = (line.find(BEGIN), line.rfind(END)) else {
            return;
        };
        let words = line.get(begin..end).unwrap_or_default();
        words.clone_into(&mut common.text);
        if self.kept.len() < KEPT {
            self.kept.push(common);
        } else {
            self.kept[self.next] = common;
            self.next = (self.next + 1) % KEPT;
        }
    }

    fn write(&self, call: &PlainCall<'_>, common: &str, out: &mut Vec<u8>) {
        let add = |out: &mut Vec<u8>, text: &str| out.extend_from_slice(text.as_bytes());
        // Memory takes all that is written.
        let count = |out: &mut Vec<u8>, number: u64| drop(serde_json::to_writer(out, &number));
        add(out, "{\"time\":\"");
        add(out, &timestamp(call.asked));
        add(out, "\",\"process\":");
        count(out, u64::from(self.process));
        add(out, ",");
        add(out, common);
        add(out, END);
        count(out, call.milliseconds);
        add(out, ",\"sent\":");
        count(out, call.sent as u64);
        if let Some(received) = call.received {
            add(out, ",\"received\":");
            count(out, received as u64);
        }
        add(out, ",\"outcome\":\"");
        add(out, call.outcome.as_str());
        add(out, "\"}\n");
    }
}

impl CommonPart {
    /// Whether the line of this call says the same. Compared by where the words lie, which are held
    /// here: others of the same spelling only cost a line that is written in full.
    fn is_of(&self, call: &PlainCall<'_>) -> bool {
        Arc::ptr_eq(&self.tool, call.tool)
            && Arc::ptr_eq(&self.caller.id, &call.caller.id)
            && Arc::ptr_eq(&self.caller.principal, &call.caller.principal)
            && Arc::ptr_eq(&self.caller.shown, &call.caller.shown)
            && self.caller.kind == call.caller.kind
            && self.server == *call.server
            && match (&self.grant, call.grant) {
                (PermittedBy::Rule(one), PermittedBy::Rule(other)) => Arc::ptr_eq(one, other),
                (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
            }
    }
}

#[cfg(test)]
mod tests;
