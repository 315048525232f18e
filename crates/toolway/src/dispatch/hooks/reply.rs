//! What a hook says, and how it is read.
//!
//! Owns the shape of a hook's output and the meaning of its exit code. Reading is strict where a
//! no could hide: what cannot be understood is a failure of the hook, never an empty answer.

use serde_json::{Map, Value};
use toolway_config::HookEvent;
use toolway_transport::program::Finished;
use toolway_types::text;

use crate::respondent::ElicitationAnswer;

/// The exit code that says no.
const BLOCKS: i32 = 2;
/// The longest reason, in characters.
const MAX_REASON: usize = 500;
/// The longest piece of context, in characters.
const MAX_CONTEXT: usize = 10_000;

/// What a hook says. Nothing of it need be there: the default is no opinion.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookReply {
    /// Whether the call may run.
    pub decision: Option<HookDecision>,
    /// Why.
    pub reason: Option<String>,
    /// Arguments to call with instead. They are checked against the tool's schema again.
    pub updated_input: Option<Map<String, Value>>,
    /// Something that whoever reads the result should know too.
    pub additional_context: Option<String>,
    /// What to show in the place of the result: a text, content blocks, or a whole MCP result.
    pub updated_tool_output: Option<Value>,
    /// The answer to a server's question.
    pub answer: Option<ElicitationAnswer>,
    /// Something that the person should know.
    pub system_message: Option<String>,
}

/// A hook's word on a call. The stricter of two counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookDecision {
    /// It may run without a person asked, unless a rule wants one asked.
    Allow,
    /// A person is to be asked.
    Ask,
    /// It must not run. After a call: something is wrong with its result.
    Deny,
}

impl HookReply {
    /// It may run.
    pub fn allow() -> Self {
        Self::decided(HookDecision::Allow, None)
    }

    /// A person is to be asked.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self::decided(HookDecision::Ask, Some(reason.into()))
    }

    /// It must not run.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::decided(HookDecision::Deny, Some(reason.into()))
    }

    fn decided(decision: HookDecision, reason: Option<String>) -> Self {
        Self {
            decision: Some(decision),
            reason,
            ..Self::default()
        }
    }

    /// Reads how a program ended and what it printed. The error says what is wrong with it.
    pub(super) fn of_program(event: HookEvent, ended: &Finished) -> Result<Self, String> {
        let complaint = || {
            let said = String::from_utf8_lossy(&ended.stderr);
            Some(one_line(&said)).filter(|said| !said.is_empty())
        };
        match ended.status.code() {
            Some(0) => match std::str::from_utf8(&ended.stdout) {
                Ok(text) => Self::parse(event, text),
                Err(_) => Err("it printed something that is not text".to_owned()),
            },
            Some(BLOCKS) => {
                let reason = complaint().unwrap_or_else(|| "it gives no reason".to_owned());
                Ok(Self::deny(reason))
            }
            _ => Err(match complaint() {
                Some(said) => format!("it failed ({}): {said}", ended.status),
                None => format!("it failed ({})", ended.status),
            }),
        }
    }

    /// Reads what a hook printed. The error says what is wrong with it.
    pub(super) fn parse(event: HookEvent, text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let Ok(Value::Object(said)) = serde_json::from_str(text) else {
            return Err("it printed something that is not one JSON object".to_owned());
        };
        let own = match said.get("hookSpecificOutput") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(own)) => own.clone(),
            Some(_) => return Err(expected("hookSpecificOutput", "an object")),
        };
        if let Some(other) = string(&own, "hookEventName")?
            && other != event.as_str()
        {
            return Err(format!("it answers for the event `{}`", one_line(&other)));
        }
        let mut reply = Self {
            updated_input: object(&own, "updatedInput")?,
            additional_context: string(&own, "additionalContext")?,
            updated_tool_output: ["updatedToolOutput", "updatedMCPToolOutput"]
                .iter()
                .find_map(|key| own.get(*key).filter(|value| !value.is_null()))
                .cloned(),
            answer: answer(&own)?.map_or_else(|| answer(&said), |own| Ok(Some(own)))?,
            system_message: string(&said, "systemMessage")?,
            ..Self::default()
        };
        if let Some(word) = string(&own, "permissionDecision")? {
            let decision = match word.as_str() {
                "allow" => HookDecision::Allow,
                "ask" => HookDecision::Ask,
                "deny" => HookDecision::Deny,
                _ => return Err(expected("permissionDecision", "`allow`, `ask` or `deny`")),
            };
            reply.decide(decision, string(&own, "permissionDecisionReason")?);
        }
        if let Some(word) = string(&said, "decision")? {
            let decision = match word.as_str() {
                "block" => HookDecision::Deny,
                "approve" => HookDecision::Allow,
                _ => return Err(expected("decision", "`block` or `approve`")),
            };
            reply.decide(decision, string(&said, "reason")?);
        }
        match said.get("continue") {
            None | Some(Value::Null | Value::Bool(true)) => {}
            Some(Value::Bool(false)) => {
                reply.decide(HookDecision::Deny, string(&said, "stopReason")?);
            }
            Some(_) => return Err(expected("continue", "true or false")),
        }
        Ok(reply)
    }

    /// The stricter word counts, and its reason with it.
    fn decide(&mut self, decision: HookDecision, reason: Option<String>) {
        if self.decision.is_none_or(|known| known < decision) {
            self.decision = Some(decision);
            self.reason = reason;
        }
    }

    /// Why, in one short line.
    pub(super) fn why(&self) -> Option<String> {
        self.reason.as_deref().map(one_line)
    }

    /// What whoever reads the result should know too.
    pub(super) fn context(&self) -> Option<String> {
        self.additional_context.as_deref().map(context)
    }
}

/// Somebody's words as one short line.
pub(super) fn one_line(words: &str) -> String {
    text::cut(&text::clean_line(words), MAX_REASON).into_owned()
}

/// Somebody's words for a model to read.
pub(super) fn context(words: &str) -> String {
    text::cut(&text::clean(words), MAX_CONTEXT).into_owned()
}

fn answer(from: &Map<String, Value>) -> Result<Option<ElicitationAnswer>, String> {
    let Some(action) = string(from, "action")? else {
        return Ok(None);
    };
    Ok(Some(match action.as_str() {
        "accept" => ElicitationAnswer::Accept(object(from, "content")?),
        "decline" => ElicitationAnswer::Decline,
        "cancel" => ElicitationAnswer::Cancel,
        _ => return Err(expected("action", "`accept`, `decline` or `cancel`")),
    }))
}

fn string(from: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match from.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(expected(key, "a string")),
    }
}

fn object(from: &Map<String, Value>, key: &str) -> Result<Option<Map<String, Value>>, String> {
    match from.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object.clone())),
        Some(_) => Err(expected(key, "an object")),
    }
}

fn expected(key: &str, what: &str) -> String {
    format!("its `{key}` must be {what}")
}
