//! A person's answers: asked for once, and kept as long as they hold.
//!
//! Owns what a host remembers of answers. Those for a session are known by the identity of the
//! tool (its server's definition, its own name and its definition) and never by a name that is
//! shown: a tool that changed is another tool. Those for good become rules through a
//! [`RuleKeeper`] (`answers/keeper.rs`). Does not own when a person is asked (`permission.rs`).
//!
//! Invariants: one question is put at a time, unless the prompter takes several; calls that ask the same while it is open share its
//! answer; a call that is given up while it asks leaves the question to the next. What is
//! remembered is bounded.

mod keeper;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolway_config::RepositoryServer;
use toolway_config::permission::{rule_for_server, rule_for_tool};
use toolway_types::{Origin, ServerName, ToolKey, Untrusted};

pub use self::keeper::{RuleKeeper, SettingsRules};
use crate::call::{
    CallerKind, KeepIn, Lasting, PermissionAnswer, PermissionQuestion, PermittedBy, Prompter,
    RefusedBy, RuleReach,
};
use crate::catalog::CatalogTool;
use crate::lock::lock;
use crate::pins::{Difference, PinPlace, Pins};

/// How many answers a host remembers; the oldest is forgotten.
const MOST: usize = 1000;

/// What a host knows of a person's answers, and of the tools they were about.
#[derive(Default)]
pub struct PersonAnswers {
    pins: Pins,
    keeper: Option<Arc<dyn RuleKeeper>>,
    /// Who keeps the rules that the owner makes in the place of a caller that may make none.
    owners_keeper: Option<Arc<dyn RuleKeeper>>,
    said: Mutex<Remembered>,
    open: Mutex<HashMap<QuestionDigest, Weak<QuestionSlot>>>,
    turn: tokio::sync::Mutex<()>,
    /// Told when something is remembered.
    news: tokio::sync::watch::Sender<()>,
    /// The changed definitions that were accepted, where that is one caller's affair alone.
    accepted: Option<Mutex<VecDeque<AcceptedChange>>>,
}

/// A definition that a caller accepted in place of another.
#[derive(PartialEq, Eq)]
struct AcceptedChange {
    place: PinPlace,
    digest: String,
}

/// Why a person is asked, beside hooks.
pub(super) struct AskReasons<'a> {
    /// The digest of the server's definition.
    pub(super) server: Option<&'a str>,
    /// The rule that wants it.
    pub(super) rule: Option<(String, Origin)>,
    /// How the tool's definition changed.
    pub(super) change: Option<&'a Difference>,
    /// Whether the owner is asked, in the place of a caller that cannot be.
    pub(super) of_owner: bool,
    /// Whether nothing but the change stands in the way.
    pub(super) allowed: bool,
    /// Whether a program or an agent brought the server: then no rule is made of a yes.
    pub(super) apart: bool,
    /// The server, if a repository brought it: then a yes is kept for its definition.
    pub(super) brought: Option<&'a Arc<RepositoryServer>>,
}

impl<'a> AskReasons<'a> {
    pub(super) fn new(
        server: Option<&'a str>,
        rule: Option<(String, Origin)>,
        change: Option<&'a Difference>,
    ) -> Self {
        Self {
            server,
            rule,
            change,
            of_owner: false,
            allowed: false,
            apart: false,
            brought: None,
        }
    }

    /// Whether nothing but the mode wants a person asked.
    pub(super) fn is_of_mode(&self) -> bool {
        self.rule.is_none() && self.change.is_none() && !self.allowed
    }
}

/// What came of a question.
#[derive(Debug, Clone)]
pub(super) struct UserAnswer {
    pub(super) grant: Result<PermittedBy, RefusedBy>,
    /// What the person should know, such as a rule that could not be written.
    pub(super) warning: Option<String>,
    /// The arguments that the call is to have instead.
    pub(super) rewritten: Option<Map<String, Value>>,
}

/// One open question; the holder of the lock asks.
#[derive(Default)]
struct QuestionSlot(tokio::sync::Mutex<Option<UserAnswer>>);

/// What makes two questions the same: tool, definition, arguments and reasons.
type QuestionDigest = [u8; 32];

#[derive(Default)]
struct Remembered {
    answers: HashMap<ApprovalSubject, SessionApproval>,
    count: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ApprovalSubject {
    Tool(ToolKey),
    Server(ServerName),
}

/// A yes for a session, and to what.
struct SessionApproval {
    server: Option<String>,
    /// The tool's definition; none when it is about the whole server.
    tool: Option<String>,
    /// The rule that wanted it asked: another one wants it asked again.
    rule: Option<String>,
    number: u64,
}

impl PersonAnswers {
    /// Pins in this file, and rules to this keeper.
    pub fn new(pins: Option<PathBuf>, keeper: Option<Arc<dyn RuleKeeper>>) -> Self {
        Self {
            pins: Pins::at(pins),
            keeper,
            ..Self::default()
        }
    }

    /// As well, which tools were ever pinned in this file.
    #[must_use]
    pub fn with_roster(self, roster: Option<PathBuf>) -> Self {
        Self {
            pins: self.pins.with_roster(roster),
            ..self
        }
    }

    /// The answers of another caller: none yet. How tools were defined is the same for all. That a
    /// tool changed is accepted for all by a person alone, and rules are kept for those who may.
    pub(crate) fn of_another_caller(&self, kind: CallerKind, keeps_rules: bool) -> Self {
        Self {
            pins: self.pins.clone(),
            keeper: self.keeper.clone().filter(|_| keeps_rules),
            owners_keeper: self.keeper.clone(),
            accepted: (kind != CallerKind::Person).then(Mutex::default),
            ..Self::default()
        }
    }

    /// Whether this caller, and it alone, accepted what is defined there now.
    pub(super) fn has_accepted(&self, place: &PinPlace, digest: &str) -> bool {
        let is_it = |it: &AcceptedChange| it.place == *place && it.digest == digest;
        let accepted = self.accepted.as_ref();
        accepted.is_some_and(|accepted| lock(accepted).iter().any(is_it))
    }

    /// Accepts a changed definition for this caller alone; false where it is accepted for all.
    pub(super) fn accept_alone(&self, place: &PinPlace, digest: &str) -> bool {
        let Some(accepted) = &self.accepted else {
            return false;
        };
        let mut accepted = lock(accepted);
        accepted.retain(|it| it.place != *place);
        if accepted.len() == MOST {
            accepted.pop_front();
        }
        accepted.push_back(AcceptedChange {
            place: place.clone(),
            digest: digest.to_owned(),
        });
        true
    }

    pub(crate) fn pins(&self) -> &Pins {
        &self.pins
    }

    /// Whether a person has said yes to this for the session. What was said of a tool or server
    /// that is another by now is forgotten.
    pub(super) fn covers(&self, tool: &CatalogTool, asking: &AskReasons<'_>) -> bool {
        let mut said = lock(&self.said);
        let abouts = [
            ApprovalSubject::Tool(tool.key.clone()),
            ApprovalSubject::Server(tool.key.server.clone()),
        ];
        for about in abouts {
            let Some(yes) = said.answers.get(&about) else {
                continue;
            };
            let same = yes.server.as_deref() == asking.server
                && yes
                    .tool
                    .as_deref()
                    .is_none_or(|digest| digest == tool.definition().digest());
            if !same {
                said.answers.remove(&about);
                continue;
            }
            match &asking.rule {
                None => return true,
                Some((rule, _)) if yes.rule.as_deref() == Some(rule) => return true,
                Some(_) => {}
            }
        }
        false
    }

    /// How long an answer can hold. A hook looks at every call anew; a rule that asks beats any
    /// rule that allows.
    pub(super) fn lasting(
        &self,
        tool: &CatalogTool,
        asking: &AskReasons<'_>,
        hook: bool,
    ) -> Lasting {
        if hook || asking.allowed {
            Lasting::Once
        } else if asking.rule.is_some() || asking.apart || self.keeper_for(asking).is_none() {
            Lasting::Session
        } else {
            let (tool, server) = (rule_for_tool(&tool.key), rule_for_server(&tool.key.server));
            match asking.brought {
                Some(_) => Lasting::AlwaysHere { tool, server },
                None => Lasting::Always { tool, server },
            }
        }
    }

    /// Who makes a rule of an answer.
    fn keeper_for(&self, asking: &AskReasons<'_>) -> Option<&Arc<dyn RuleKeeper>> {
        let owners = self.owners_keeper.as_ref();
        self.keeper
            .as_ref()
            .or_else(|| owners.filter(|_| asking.of_owner))
    }

    /// Puts a question, unless another call is about to hear the same answer.
    pub(super) async fn ask(
        &self,
        prompter: &dyn Prompter,
        tool: &CatalogTool,
        question: &PermissionQuestion<'_>,
        asking: &AskReasons<'_>,
    ) -> UserAnswer {
        let asked = asked(tool, question, asking.of_owner);
        let slot = if prompter.shares_answers() {
            self.slot(asked)
        } else {
            Arc::default()
        };
        let mut said = slot.0.lock().await;
        if let Some(said) = &*said {
            return said.clone();
        }
        let turn = if prompter.takes_several() {
            None
        } else {
            Some(self.turn.lock().await)
        };
        // What is said while this waits may be an answer to this as well.
        let covered = async {
            if question.lasting == Lasting::Once || question.change.is_some() {
                std::future::pending::<()>().await;
            }
            let mut news = self.news.subscribe();
            while !self.covers(tool, asking) {
                // Never an error: the sender is held.
                let _ = news.changed().await;
            }
        };
        // Asked when it comes to that: a prompter may begin when it is called.
        let given = async { prompter.ask(question).await };
        let answer = tokio::select! {
            biased;
            () = covered => UserAnswer {
                grant: Ok(PermittedBy::Session),
                warning: None,
                rewritten: None,
            },
            answer = given => self.take(answer, tool, question, asking).await,
        };
        drop(turn);
        // Later callers ask anew.
        if prompter.shares_answers() {
            lock(&self.open).remove(&asked);
        }
        *said = Some(answer.clone());
        answer
    }

    async fn take(
        &self,
        answer: PermissionAnswer,
        tool: &CatalogTool,
        question: &PermissionQuestion<'_>,
        asking: &AskReasons<'_>,
    ) -> UserAnswer {
        let mut warning = None;
        let (answer, rewritten) = match answer {
            PermissionAnswer::YesWith(arguments, answer) => (*answer, Some(arguments)),
            answer => (answer, None),
        };
        let grant = match answer {
            PermissionAnswer::No => Err(RefusedBy::Person { reason: None }),
            PermissionAnswer::NoBecause(reason) => Err(RefusedBy::Person {
                reason: Some(crate::call::brief(&Untrusted::new(reason))),
            }),
            PermissionAnswer::Unanswered => Err(RefusedBy::NobodyAnswered),
            // One yes in another means nothing more.
            PermissionAnswer::Yes | PermissionAnswer::YesWith(..) => Ok(PermittedBy::Person),
            PermissionAnswer::Session => {
                self.remember(RuleReach::Tool, tool, question, asking);
                Ok(PermittedBy::Person)
            }
            PermissionAnswer::Always { reach, keep_in } => {
                // It holds at once, before the settings are read again.
                self.remember(reach, tool, question, asking);
                warning = self.keep(reach, keep_in, question, asking).await;
                Ok(PermittedBy::Person)
            }
        };
        UserAnswer {
            grant,
            warning,
            rewritten,
        }
    }

    fn remember(
        &self,
        reach: RuleReach,
        tool: &CatalogTool,
        question: &PermissionQuestion<'_>,
        asking: &AskReasons<'_>,
    ) {
        if question.lasting == Lasting::Once {
            return;
        }
        let mut said = lock(&self.said);
        said.count += 1;
        let number = said.count;
        let (about, definition) = match reach {
            RuleReach::Tool => (
                ApprovalSubject::Tool(tool.key.clone()),
                Some(tool.definition().digest().to_owned()),
            ),
            RuleReach::Server => (ApprovalSubject::Server(tool.key.server.clone()), None),
        };
        let yes = SessionApproval {
            server: asking.server.map(str::to_owned),
            tool: definition,
            rule: asking.rule.as_ref().map(|(rule, _)| rule.clone()),
            number,
        };
        said.answers.insert(about, yes);
        if said.answers.len() > MOST {
            let oldest = said.answers.iter().min_by_key(|(_, yes)| yes.number);
            if let Some(about) = oldest.map(|(about, _)| about.clone()) {
                said.answers.remove(&about);
            }
        }
        drop(said);
        self.news.send_replace(());
    }

    /// Makes a rule of an answer; says why not, where it cannot.
    async fn keep(
        &self,
        reach: RuleReach,
        keep_in: KeepIn,
        question: &PermissionQuestion<'_>,
        asking: &AskReasons<'_>,
    ) -> Option<String> {
        let rule = match (&question.lasting, reach) {
            (Lasting::Always { tool, .. } | Lasting::AlwaysHere { tool, .. }, RuleReach::Tool) => {
                tool.clone()
            }
            (
                Lasting::Always { server, .. } | Lasting::AlwaysHere { server, .. },
                RuleReach::Server,
            ) => server.clone(),
            (Lasting::Session, _) => None,
            (Lasting::Once, _) => {
                return Some("the answer holds for this call only".to_owned());
            }
        };
        let why = match (rule, self.keeper_for(asking)) {
            (Some(rule), Some(keeper)) => {
                let kept = match asking.brought {
                    Some(server) => keeper.keep_for(&rule, server),
                    None => keeper.keep(&rule, keep_in),
                };
                match kept.await {
                    Ok(()) => return None,
                    Err(why) => format!("the rule `{rule}` was not kept: {why}"),
                }
            }
            _ => "no rule can be written for it".to_owned(),
        };
        Some(format!("{why}; the answer holds until this program ends"))
    }

    /// The slot of a question, shared with callers that ask the same at this moment.
    fn slot(&self, asked: QuestionDigest) -> Arc<QuestionSlot> {
        let mut open = lock(&self.open);
        open.retain(|_, slot| slot.strong_count() > 0);
        if let Some(slot) = open.get(&asked).and_then(Weak::upgrade) {
            return slot;
        }
        let slot = Arc::<QuestionSlot>::default();
        open.insert(asked, Arc::downgrade(&slot));
        slot
    }
}

impl fmt::Debug for PersonAnswers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PersonAnswers")
            .field("answers", &lock(&self.said).answers.len())
            .field("pins", &self.pins)
            .field("keeper", &self.keeper.is_some())
            .finish_non_exhaustive()
    }
}

/// What the owner is asked is another question than the same put to the caller: nobody answers in
/// the owner's place.
fn asked(tool: &CatalogTool, question: &PermissionQuestion<'_>, of_owner: bool) -> QuestionDigest {
    let what = serde_json::json!([
        of_owner,
        tool.key.server.as_str(),
        tool.key.tool,
        tool.definition().digest(),
        question.arguments,
        question.rule.map(|(rule, _)| rule),
        question.hook,
        question.change.map(|change| &change.lines),
    ]);
    Sha256::digest(what.to_string()).into()
}
