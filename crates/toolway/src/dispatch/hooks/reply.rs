//! What a hook says, and how it is read.
//!
//! Owns the shape of a hook's output and the meaning of its exit code. Reading is strict where a
//! refusal could hide: what cannot be understood is a failure of the hook, never an empty answer.
//! So is a key that is nearly one of ours, or one that occurs twice; keys that are like none of
//! ours are ignored.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolway_config::HookEvent;
use toolway_transport::program::ProgramOutput;
use toolway_types::{nearest, text};

use crate::client_handler::ElicitationAnswer;

/// The exit code that says no.
const BLOCKS: i32 = 2;
/// The longest reason, in characters.
const MAX_REASON: usize = 500;
/// The longest piece of context, in characters.
const MAX_CONTEXT: usize = 10_000;

/// The object that may hold any of the words below, as may what is printed itself.
const OWN: &str = "hookSpecificOutput";

/// What a hook may say. A word that is nearly one of these was meant to be one.
const WORDS: [&str; 11] = [
    "permissionDecision",
    "permissionDecisionReason",
    "decision",
    "reason",
    "continue",
    "stopReason",
    "updatedInput",
    "updatedToolOutput",
    "updatedMCPToolOutput",
    "additionalContext",
    "systemMessage",
];

/// What it may say besides, where a server asks. Elsewhere words like these mean other things.
const ANSWERS: [&str; 2] = ["action", "content"];

/// What hosts that run the same hooks read, or tell them. Never taken for a slip.
const FOREIGN: [&str; 22] = [
    "async",
    "asyncTimeout",
    "behavior",
    "context",
    "error",
    "hookEventName",
    "hook_event_name",
    "initialUserMessage",
    "interrupt",
    "message",
    "mode",
    "retry",
    "sessionTitle",
    "suppressOutput",
    "terminalSequence",
    "tool_input",
    "tool_name",
    "tool_response",
    "updatedPermissions",
    "url",
    "watchPaths",
    "worktreePath",
];

/// No slip is longer.
const MAX_WORD: usize = 64;

/// What a hook says. Nothing of it need be there: the default is no opinion.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookReply {
    /// Whether the call may run.
    pub decision: Option<HookDecision>,
    /// Why.
    pub reason: Option<String>,
    /// Arguments to call with instead. They are checked against the tool's schema again.
    pub updated_input: Option<Map<String, Value>>,
    /// Something that the reader of the result should know too.
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
    pub(super) fn of_program(event: HookEvent, ended: &ProgramOutput) -> Result<Self, String> {
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
    pub fn parse(event: HookEvent, text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let said = ReplyObject::read(event, text)?;
        let mut reply = Self {
            updated_input: said.object("updatedInput")?,
            additional_context: said.string("additionalContext")?,
            updated_tool_output: ["updatedToolOutput", "updatedMCPToolOutput"]
                .into_iter()
                .find_map(|word| said.get(word))
                .cloned(),
            answer: said.answer()?,
            system_message: said.string("systemMessage")?,
            ..Self::default()
        };
        if let Some(word) = said.string("permissionDecision")? {
            let decision = match word.as_str() {
                "allow" => HookDecision::Allow,
                "ask" => HookDecision::Ask,
                "deny" => HookDecision::Deny,
                _ => return Err(expected("permissionDecision", "`allow`, `ask` or `deny`")),
            };
            reply.decide(decision, said.string("permissionDecisionReason")?);
        }
        if let Some(word) = said.string("decision")? {
            let decision = match word.as_str() {
                "block" => HookDecision::Deny,
                "approve" => HookDecision::Allow,
                _ => return Err(expected("decision", "`block` or `approve`")),
            };
            reply.decide(decision, said.string("reason")?);
        }
        match said.get("continue") {
            None | Some(Value::Bool(true)) => {}
            Some(Value::Bool(false)) => {
                reply.decide(HookDecision::Deny, said.string("stopReason")?);
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

    /// What the reader of the result should know too.
    pub(super) fn context(&self) -> Option<String> {
        self.additional_context.as_deref().map(context)
    }
}

/// Foreign text as one short line.
pub(in crate::dispatch) fn one_line(words: &str) -> String {
    text::cut(&text::clean_line(words), MAX_REASON).into_owned()
}

/// Foreign text for a model to read.
pub(super) fn context(words: &str) -> String {
    text::cut(&text::clean(words), MAX_CONTEXT).into_owned()
}

/// The words of a hook, from either place.
struct ReplyObject(Map<String, Value>);

impl ReplyObject {
    fn read(event: HookEvent, text: &str) -> Result<Self, String> {
        let Ok(outer) = serde_json::from_str::<ReplyMembers>(text) else {
            return Err("it printed something that is not one JSON object".to_owned());
        };
        let mut said = Self(Map::new());
        for (word, value) in said.take(event, outer, &[OWN])? {
            // Only the object of its own is left over.
            if value.get() == "null" {
                continue;
            }
            let Ok(own) = serde_json::from_str::<ReplyMembers>(value.get()) else {
                return Err(expected(&word, "an object"));
            };
            if own.0.iter().any(|(word, _)| word == OWN) {
                return Err(format!("its `{OWN}` stands in itself"));
            }
            said.take(event, own, &[])?;
        }
        if let Some(other) = said.string("hookEventName")?
            && other != event.as_str()
        {
            return Err(format!("it answers for the event `{}`", one_line(&other)));
        }
        Ok(said)
    }

    /// Takes the words of one place, and gives back those that are named apart.
    fn take(
        &mut self,
        event: HookEvent,
        members: ReplyMembers,
        apart: &[&str],
    ) -> Result<Vec<(String, Box<RawValue>)>, String> {
        let mut left = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        let known = WORDS.iter().chain(&ANSWERS).chain(&["hookEventName"]);
        let known: Vec<&str> = known.chain(apart).copied().collect();
        for (word, value) in members.0 {
            let Some(known) = known.iter().find(|known| **known == word) else {
                match meant(event, &word) {
                    Some(meant) => {
                        let word = one_line(&word);
                        return Err(format!("it says `{word}`, which may mean `{meant}`"));
                    }
                    None => continue,
                }
            };
            if seen.contains(known) {
                return Err(format!("it says `{known}` twice"));
            }
            seen.push(known);
            if apart.contains(known) {
                left.push((word, value));
                continue;
            }
            let value = serde_json::from_str(value.get()).unwrap_or(Value::Null);
            if value.is_null() {
                continue;
            }
            if self.0.get(*known).is_some_and(|before| *before != value) {
                return Err(format!("it says two different things with `{known}`"));
            }
            self.0.insert(word, value);
        }
        Ok(left)
    }

    fn get(&self, word: &str) -> Option<&Value> {
        self.0.get(word)
    }

    fn answer(&self) -> Result<Option<ElicitationAnswer>, String> {
        let Some(action) = self.string("action")? else {
            return Ok(None);
        };
        Ok(Some(match action.as_str() {
            "accept" => ElicitationAnswer::Accept(self.object("content")?),
            "decline" => ElicitationAnswer::Decline,
            "cancel" => ElicitationAnswer::Cancel,
            _ => return Err(expected("action", "`accept`, `decline` or `cancel`")),
        }))
    }

    fn string(&self, word: &str) -> Result<Option<String>, String> {
        match self.get(word) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(expected(word, "a string")),
        }
    }

    fn object(&self, word: &str) -> Result<Option<Map<String, Value>>, String> {
        match self.get(word) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object.clone())),
            Some(_) => Err(expected(word, "an object")),
        }
    }
}

/// The members of an object as they were written: of two with one name both.
struct ReplyMembers(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for ReplyMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = ReplyMembers;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ReplyMembers, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(ReplyMembers(members))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// Which of our words was meant by one that is none: the same letters in another case or with
/// other joints, or a slip.
fn meant(event: HookEvent, word: &str) -> Option<&'static str> {
    if word.len() > MAX_WORD || FOREIGN.contains(&word) {
        return None;
    }
    let answers = match event {
        HookEvent::Elicitation | HookEvent::ElicitationResult => ANSWERS.as_slice(),
        HookEvent::PreToolUse | HookEvent::PostToolUse | HookEvent::PostToolUseFailure => &[],
    };
    let letters: String = word.chars().filter(|c| c.is_alphanumeric()).collect();
    nearest(&letters, WORDS.iter().chain(answers).copied().chain([OWN]))
}

fn expected(key: &str, what: &str) -> String {
    format!("its `{key}` must be {what}")
}
