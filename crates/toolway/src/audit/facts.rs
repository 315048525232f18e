//! What is noted of a call while it runs, as it is at hand.
//!
//! Owns the one table from what became of a call to the words written down. Nothing is worded
//! before the thread that writes asks for it: noting must cost a call next to nothing.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolway_types::{ServerName, Untrusted, text};
use toolway_wire::RawJson;

use super::MAX_KEPT;
use super::{
    ActingHook, CallEnd, CallRecord, DecidedBy, RecordedCaller, RecordedClassification,
    RecordedDecision,
};
use crate::call::{CallError, CallFault, Caller, PermittedBy, RefusedBy, ToolRequest, ToolTarget};
use crate::catalog::CatalogTool;
use crate::journal::timestamp;

/// The longest name that is written down whole.
const MAX_NAME: usize = 256;

/// What is known of a call.
pub(super) struct CallFacts {
    asked: SystemTime,
    caller: Caller,
    /// What was asked for.
    target: ToolTarget,
    /// The tool that this turned out to be.
    tool: Option<(ServerName, Arc<str>)>,
    /// Where the failure of a call names its server, and nothing did before.
    server: Option<String>,
    pub(super) granted: Option<PermittedBy>,
    refused: Option<DecidedBy>,
    pub(super) changed: Option<Vec<String>>,
    pub(super) classified: Option<Box<RecordedClassification>>,
    pub(super) took: Duration,
    pub(super) rewritten_by: Option<Box<ActingHook>>,
    pub(super) replaced_by: Option<Box<ActingHook>>,
    /// How large the arguments are, once it is known.
    pub(super) sent: Option<usize>,
    received: Option<usize>,
    outcome: CallEnd,
    code: Option<i64>,
    arguments: Option<String>,
    pub(super) result: Option<RawJson>,
}

/// A call of which nothing is to be said but what every call that ran has.
pub(super) struct PlainCall<'a> {
    pub(super) asked: SystemTime,
    pub(super) caller: &'a Caller,
    pub(super) server: &'a ServerName,
    pub(super) tool: &'a Arc<str>,
    /// No hook's and no classifier's: of those there is more to say.
    pub(super) grant: &'a PermittedBy,
    pub(super) milliseconds: u64,
    pub(super) sent: usize,
    pub(super) received: Option<usize>,
    pub(super) outcome: CallEnd,
}

impl CallFacts {
    /// The same, where it is such a call.
    pub(super) fn plain(&self) -> Option<PlainCall<'_>> {
        let Self {
            asked,
            caller,
            target: _,
            tool: Some((server, tool)),
            server: None,
            granted: Some(grant),
            refused: None,
            changed: None,
            classified: None,
            took: _,
            rewritten_by: None,
            replaced_by: None,
            sent,
            received,
            outcome,
            code: None,
            arguments: None,
            result: None,
        } = self
        else {
            return None;
        };
        if matches!(grant, PermittedBy::Hook(_) | PermittedBy::Classifier(_)) {
            return None;
        }
        Some(PlainCall {
            asked: *asked,
            caller,
            server,
            tool,
            grant,
            milliseconds: self.milliseconds(),
            sent: sent.unwrap_or_default(),
            received: *received,
            outcome: *outcome,
        })
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX)
    }

    /// What is known when a call is asked for. It counts as given up until it has ended.
    pub(super) fn of(request: &ToolRequest, caller: Caller) -> Self {
        Self {
            asked: SystemTime::now(),
            caller,
            target: request.target.clone(),
            tool: None,
            server: None,
            granted: None,
            refused: None,
            changed: None,
            classified: None,
            took: Duration::ZERO,
            rewritten_by: None,
            replaced_by: None,
            sent: None,
            received: None,
            outcome: CallEnd::Cancelled,
            code: None,
            arguments: None,
            result: None,
        }
    }

    /// The arguments that were asked for, and the text of them where it is to be kept.
    pub(super) fn asked(&mut self, arguments: &Map<String, Value>, keep: bool) {
        let size = size(arguments);
        self.sent = Some(size);
        if keep && size <= MAX_KEPT {
            self.arguments = serde_json::to_string(arguments).ok();
        }
    }

    /// The arguments as JSON text.
    pub(super) fn sent(&mut self, arguments: &str, keep: bool) {
        self.sent = Some(arguments.len());
        self.arguments = (keep && arguments.len() <= MAX_KEPT).then(|| arguments.to_owned());
    }

    /// The tool is known from here on.
    pub(super) fn resolved(&mut self, tool: &CatalogTool) {
        self.tool = Some((tool.key.server.clone(), tool.own_name()));
    }

    /// What became of it: the size of an answer, and whether it says that the tool failed.
    pub(super) fn ended(&mut self, outcome: Result<(usize, bool), &CallError>, took: Duration) {
        self.took = took;
        let error = match outcome {
            Ok((size, is_error)) => {
                self.received = Some(size);
                self.outcome = CallEnd::of_answer(is_error);
                return;
            }
            Err(error) => error,
        };
        if let Some(server) = error.server() {
            self.server = Some(server.as_str().to_owned());
        }
        self.outcome = CallEnd::from(error);
        match error {
            CallError::Failed(_, CallFault::Refused(by)) => self.refused = Some(refuser(by)),
            CallError::Failed(_, CallFault::Protocol { code, .. }) => self.code = Some(*code),
            _ => {}
        }
    }

    /// The same, in words.
    pub(super) fn into_record(self, process: u32) -> CallRecord {
        let milliseconds = self.milliseconds();
        let (server, tool) = match (&self.tool, &self.target) {
            (Some((server, tool)), _) => (Some(server), &**tool),
            (None, ToolTarget::Exposed(name)) => (None, name.as_str()),
            (None, ToolTarget::Key(key)) => (Some(&key.server), key.tool.as_str()),
        };
        let server = server.map(|server| server.as_str().to_owned());
        let (decision, by) = match (self.refused, self.granted) {
            (Some(by), _) => (Some(RecordedDecision::Refused), Some(by)),
            (None, Some(grant)) => (Some(RecordedDecision::Allowed), Some(granter(grant))),
            (None, None) => (None, None),
        };
        CallRecord {
            time: timestamp(self.asked),
            process,
            who: Some(shown(&self.caller.shown)),
            caller: recorded_caller(&self.caller).map(Box::new),
            tool: shown(tool),
            server: self.server.or(server),
            decision,
            by,
            changed: self.changed,
            classified: self.classified.map(|classified| *classified),
            rewritten_by: self.rewritten_by.map(|hook| *hook),
            replaced_by: self.replaced_by.map(|hook| *hook),
            milliseconds,
            sent: self.sent.unwrap_or_default(),
            received: self.received,
            outcome: self.outcome,
            code: self.code,
            arguments: self
                .arguments
                .and_then(|text| RawValue::from_string(text).ok()),
            result: self
                .result
                .and_then(|result| RawValue::from_string(result.get().to_owned()).ok()),
        }
    }
}

#[cfg(test)]
impl CallFacts {
    /// A call that was let run.
    pub(super) fn ran(
        request: &ToolRequest,
        caller: Caller,
        tool: (ServerName, Arc<str>),
        grant: PermittedBy,
    ) -> Self {
        Self {
            tool: Some(tool),
            granted: Some(grant),
            ..Self::of(request, caller)
        }
    }

    pub(super) fn end_as(&mut self, outcome: CallEnd, received: Option<usize>) {
        self.outcome = outcome;
        self.received = received;
    }

    pub(super) fn asked_at(&mut self, asked: SystemTime) {
        self.asked = asked;
    }
}

/// What is written down of a caller beside its name; nothing of a person who is the owner.
fn recorded_caller(caller: &Caller) -> Option<RecordedCaller> {
    let text = |text: &str| Untrusted::new(text).line().into_owned();
    (!caller.is_owner()).then(|| RecordedCaller {
        id: text(&caller.id),
        kind: caller.kind.as_str().to_owned(),
        principal: text(&caller.principal),
    })
}

fn granter(grant: PermittedBy) -> DecidedBy {
    match grant {
        PermittedBy::Rule(cited) => DecidedBy::Rule {
            rule: cited.rule.clone(),
            origin: cited.origin.to_string(),
        },
        PermittedBy::Hook(hook) => DecidedBy::Hook {
            hook: hook.title,
            origin: hook.origin.to_string(),
        },
        PermittedBy::Classifier(classifier) => DecidedBy::Classifier {
            classifier: classifier.title,
            origin: classifier.origin.to_string(),
        },
        PermittedBy::Mode => DecidedBy::Mode,
        PermittedBy::Typed => DecidedBy::Typed,
        PermittedBy::Caller => DecidedBy::Caller,
        PermittedBy::Person => DecidedBy::Person,
        PermittedBy::Session => DecidedBy::Session,
        PermittedBy::BuiltIn => DecidedBy::BuiltIn,
    }
}

fn refuser(by: &RefusedBy) -> DecidedBy {
    match by {
        RefusedBy::Rule { rule, origin } => DecidedBy::Rule {
            rule: rule.clone(),
            origin: origin.to_string(),
        },
        RefusedBy::Unreadable { origin } => DecidedBy::Unreadable {
            origin: origin.to_string(),
        },
        RefusedBy::Hook { origin, title, .. } | RefusedBy::NobodyForHook { origin, title, .. } => {
            DecidedBy::Hook {
                hook: title.to_string(),
                origin: origin.to_string(),
            }
        }
        RefusedBy::Classifier { origin, title, .. }
        | RefusedBy::NobodyForClassifier { origin, title, .. } => DecidedBy::Classifier {
            classifier: title.to_string(),
            origin: origin.to_string(),
        },
        RefusedBy::Person { .. } => DecidedBy::Person,
        RefusedBy::Changed { .. } | RefusedBy::Withdrawn => DecidedBy::Changed,
        RefusedBy::NobodyToAsk { .. }
        | RefusedBy::NobodyForBrought { .. }
        | RefusedBy::NobodyAnswered => DecidedBy::Nobody,
    }
}

/// A name as it is written down: cleaned, because terminals show the file.
fn shown(name: &str) -> String {
    text::cut(&Untrusted::new(name).line(), MAX_NAME).into_owned()
}

/// How long arguments are as JSON. They are counted, not kept: a call that is refused is never
/// serialised.
fn size(arguments: &Map<String, Value>) -> usize {
    struct ByteCount(usize);

    impl Write for ByteCount {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.0 += bytes.len();
            Ok(())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut count = ByteCount(0);
    match serde_json::to_writer(&mut count, arguments) {
        Ok(()) => count.0,
        Err(_) => 0,
    }
}

impl From<&CallError> for CallEnd {
    fn from(error: &CallError) -> Self {
        match error {
            CallError::Unknown { .. } | CallError::Ambiguous { .. } => CallEnd::Unknown,
            CallError::Unavailable { .. } => CallEnd::Unavailable,
            CallError::NeedsAuth { .. } => CallEnd::NeedsAuth,
            CallError::Failed(_, fault) => match fault {
                CallFault::LeftOut { .. } => CallEnd::Unknown,
                CallFault::Invalid(_) => CallEnd::Invalid,
                CallFault::Refused(_) => CallEnd::Refused,
                CallFault::TimedOut { .. } => CallEnd::TimedOut,
                CallFault::Cancelled | CallFault::CancelledByServer => CallEnd::Cancelled,
                CallFault::Protocol { .. }
                | CallFault::InputRefused(_)
                | CallFault::TooManyRounds(_)
                | CallFault::Malformed(_)
                | CallFault::Transport { .. }
                | CallFault::TooLarge { .. } => CallEnd::Failed,
            },
        }
    }
}
