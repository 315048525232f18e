//! What the program is asked because of its calls: whether one may run, and what servers want to know.
//!
//! Owns the questions as requests to the program, and what its answers mean. Who is asked at all, and
//! for how long a question stands, is the host's. An answer that cannot be understood is no answer.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use toolway::types::ServerName;
use toolway::{
    ClientHandler, ClientOffers, Elicitation, ElicitationAnswer, KeepIn, Lasting, PermissionAnswer,
    PermissionQuestion, Prompter, RawJson, RequestAsked, RpcError, RuleReach, View,
};
use toolway_wire::error;

use super::brought::ResidentLink;
use super::messages::{
    AskElicitation, AskPermission, AskedServer, Asks, ElicitationReply, PermissionReply,
    RememberWord, SuggestedRule,
};
use super::methods::{ASK_ELICITATION, ASK_PERMISSION};
use super::rows::Provenances;

/// Asks a program.
pub(super) struct ProgramAsker {
    pub(super) link: ResidentLink,
    pub(super) asks: Asks,
    /// What is asked about is seen there.
    pub(super) view: View,
    pub(super) provenances: Provenances,
    /// The agent for which it asks.
    pub(super) agent: Option<Arc<str>>,
}

impl ProgramAsker {
    /// For requests: who asks about them, as far as the program answers.
    pub(super) fn asked(self: &Arc<Self>) -> RequestAsked {
        RequestAsked {
            prompter: self.prompter(),
            client_handler: (self.asks.form || self.asks.url).then(|| Arc::clone(self) as _),
        }
    }

    /// Who asks whether calls may run, where the program answers that.
    pub(super) fn prompter(self: &Arc<Self>) -> Option<Arc<dyn Prompter>> {
        (self.asks.permission).then(|| Arc::clone(self) as _)
    }

    async fn ask(&self, method: &str, params: &impl Serialize) -> Result<RawJson, RpcError> {
        let params = to_raw_value(params)
            .map_err(|error| RpcError::new(error::INTERNAL_ERROR, error.to_string()))?;
        let ResidentLink { questions, outlet } = &self.link;
        questions.ask(outlet, method, &params).await
    }

    fn id(&self) -> String {
        format!("q{}", self.link.questions.next())
    }

    fn server<'a>(&self, name: &'a ServerName) -> AskedServer<'a> {
        let snapshot = self.view.snapshot();
        let server = snapshot.server(name.as_str());
        AskedServer {
            name: name.as_str(),
            provenance: self.provenances.named(&snapshot, name),
            source: server.map(|server| (&server.origin).into()),
        }
    }

    async fn may_run(&self, question: &PermissionQuestion<'_>) -> PermissionAnswer {
        let description = {
            let snapshot = self.view.snapshot();
            let mut tools = snapshot.catalog.tools();
            let tool = tools.find(|tool| tool.key == *question.key);
            tool.map(|tool| tool.description.clone())
        };
        let (choices, suggestions) = choices(&question.lasting);
        let changed = question.change.map(|change| change.lines.clone());
        let params = AskPermission {
            id: self.id(),
            server: self.server(&question.key.server),
            tool: &question.key.tool,
            name: question.name,
            title: question.title,
            description,
            arguments: question.arguments,
            rule: question.rule.map(|(rule, _)| rule),
            reason: question.hook.or(question.classifier),
            default_to_no: changed.is_some() || question.destructive == Some(true),
            changed: changed.unwrap_or_default(),
            destructive: question.destructive,
            agent: self.agent.as_deref(),
            choices,
            suggestions,
        };
        let Ok(answer) = self.ask(ASK_PERMISSION, &params).await else {
            return PermissionAnswer::Unanswered;
        };
        match serde_json::from_str(answer.get()) {
            Ok(reply) => answered(reply, &params.choices),
            Err(error) => {
                tracing::warn!(%error, "the program's answer is none");
                PermissionAnswer::Unanswered
            }
        }
    }
}

/// The answers that there are, and the rules that they keep.
fn choices(lasting: &Lasting) -> (Vec<&'static str>, Vec<SuggestedRule>) {
    let mut choices = vec!["yes"];
    let mut rules = Vec::new();
    if *lasting != Lasting::Once {
        choices.push("session");
    }
    if let Lasting::Always { tool, server } | Lasting::AlwaysHere { tool, server } = lasting {
        for (remember, rule) in [("always-tool", tool), ("always-server", server)] {
            if let Some(rule) = rule {
                choices.push(remember);
                rules.push(SuggestedRule {
                    rule: rule.clone(),
                    behavior: "allow",
                    remember,
                });
            }
        }
    }
    choices.push("no");
    (choices, rules)
}

/// What an answer means. What was not offered to be remembered is not.
fn answered(reply: PermissionReply, choices: &[&str]) -> PermissionAnswer {
    let (arguments, remember) = match reply {
        PermissionReply::Allow {
            updated_arguments,
            remember,
        } => (updated_arguments, remember),
        PermissionReply::Deny { message: None } => return PermissionAnswer::No,
        PermissionReply::Deny { message: Some(why) } => return PermissionAnswer::NoBecause(why),
    };
    let always = |reach| PermissionAnswer::Always {
        reach,
        keep_in: KeepIn::User,
    };
    let yes = match remember {
        Some(RememberWord::Session) if choices.contains(&"session") => PermissionAnswer::Session,
        Some(RememberWord::AlwaysTool) if choices.contains(&"always-tool") => {
            always(RuleReach::Tool)
        }
        Some(RememberWord::AlwaysServer) if choices.contains(&"always-server") => {
            always(RuleReach::Server)
        }
        _ => PermissionAnswer::Yes,
    };
    match arguments {
        Some(arguments) => PermissionAnswer::YesWith(arguments, Box::new(yes)),
        None => yes,
    }
}

impl Prompter for ProgramAsker {
    fn ask<'a>(&'a self, question: &'a PermissionQuestion<'a>) -> BoxFuture<'a, PermissionAnswer> {
        Box::pin(self.may_run(question))
    }

    fn takes_several(&self) -> bool {
        true
    }

    fn shares_answers(&self) -> bool {
        false
    }
}

impl ClientHandler for ProgramAsker {
    fn offers(&self) -> ClientOffers {
        ClientOffers {
            form: self.asks.form,
            url: self.asks.url,
            ..ClientOffers::default()
        }
    }

    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        request: Elicitation,
    ) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async move {
            let title = {
                let snapshot = self.view.snapshot();
                let facts = snapshot.server(server.as_str()).and_then(|it| it.facts());
                let title = facts.and_then(|facts| facts.server_info["title"].as_str());
                title.map(str::to_owned)
            };
            let common = AskElicitation {
                id: self.id(),
                server: self.server(server),
                mode: "form",
                message: String::new(),
                schema: None,
                url: None,
                elicitation_id: None,
                title,
                agent: self.agent.as_deref(),
            };
            let params = match &request {
                Elicitation::Form { message, schema } => AskElicitation {
                    message: message.to_string(),
                    schema: Some(schema),
                    ..common
                },
                Elicitation::Url {
                    message, url, id, ..
                } => AskElicitation {
                    mode: "url",
                    message: message.to_string(),
                    url: Some(url.as_str()),
                    elicitation_id: id.as_deref(),
                    ..common
                },
            };
            let Ok(answer) = self.ask(ASK_ELICITATION, &params).await else {
                return ElicitationAnswer::Cancel;
            };
            match serde_json::from_str(answer.get()) {
                Ok(ElicitationReply::Accept { content }) => ElicitationAnswer::Accept(content),
                Ok(ElicitationReply::Decline) => ElicitationAnswer::Decline,
                Ok(ElicitationReply::Cancel) => ElicitationAnswer::Cancel,
                Err(error) => {
                    tracing::warn!(%error, "the program's answer is none");
                    ElicitationAnswer::Cancel
                }
            }
        })
    }

    fn sample<'a>(
        &'a self,
        _server: &'a ServerName,
        _request: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, RpcError>> {
        let nobody = RpcError::new(error::METHOD_NOT_FOUND, "method not found");
        Box::pin(std::future::ready(Err(nobody)))
    }
}

/// Asks nobody: for calls that the program vouches for.
pub(super) struct NobodyAsked;

impl Prompter for NobodyAsked {
    fn ask<'a>(&'a self, _question: &'a PermissionQuestion<'a>) -> BoxFuture<'a, PermissionAnswer> {
        Box::pin(std::future::ready(PermissionAnswer::Unanswered))
    }

    fn takes_several(&self) -> bool {
        true
    }

    fn shares_answers(&self) -> bool {
        false
    }
}
