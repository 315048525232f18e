//! Asking the questions of running gateways on the terminal, one after the other, and waiting for
//! more.
//!
//! Owns that a question which ends elsewhere is taken from the terminal, and when waiting ends.

use std::collections::HashSet;
use std::time::Duration;

use toolway::{PermissionAnswer, RuleReach};
use toolway_gateway::owner_socket::OwnerClient;
use toolway_rows::GivenAnswer;
use toolway_types::text::counted;

use super::{AllWaiting, Waiting};
use crate::connect;
use crate::context::Context;
use crate::exit::Exit;
use crate::gateways;
use crate::prompt::TerminalPrompt;
use crate::report::{Outcome, Report};
use crate::signals::stdout_closed;

/// How often it is looked whether something changed.
const PAUSE: Duration = Duration::from_millis(500);

/// Asks all that waits now.
pub(super) fn ask_all(context: &Context) -> Outcome {
    connect::block_on(async {
        let mut signals = context.signals();
        tokio::select! {
            asked = ask_waiting(context) => asked,
            _ = signals.next() => {
                context.output.leave_line();
                Err(Report::new(Exit::Interrupted, "interrupted")
                    .hint("what you did not answer still waits: `toolway approvals`"))
            }
        }
    })
}

async fn ask_waiting(context: &Context) -> Outcome {
    let asked = gateways::questions(context).await?;
    if asked.is_empty() {
        gateways::say_none(context);
        return Ok(Exit::Success);
    }
    let mut waiting = AllWaiting::of(gateways::answering(context, asked));
    if waiting.questions.is_empty() {
        context.say("no question waits for an answer");
        context.hint("`toolway approvals --watch` stays and asks as they come");
        return Ok(Exit::Success);
    }
    if waiting.questions.len() > 1 {
        let many = counted(waiting.questions.len(), "question");
        context.say(format!("{many} wait, the oldest first"));
    }
    for (place, question) in waiting.questions.iter().enumerate() {
        if place > 0 {
            context.say("\n");
        }
        if let Some(gateway) = waiting.gateways.get_mut(question.gateway) {
            ask(context, question, gateway).await?;
        }
    }
    Ok(Exit::Success)
}

/// Asks or shows what comes, until it is told to end.
pub(super) fn watch(context: &Context, json: bool) -> Outcome {
    connect::block_on(async {
        let mut signals = context.signals();
        tokio::select! {
            shown = watch_waiting(context, json) => shown,
            // To be told to end is how watching succeeds; a Ctrl-C is shown to the shell.
            _ = signals.next() => {
                context.output.leave_line();
                Ok(Exit::Success)
            }
            () = stdout_closed(context.output.streams()) => Ok(Exit::Success),
        }
    })
}

async fn watch_waiting(context: &Context, json: bool) -> Outcome {
    let mut known = HashSet::new();
    let mut said = false;
    loop {
        // One that does not answer now may answer next time: nothing is said of it.
        let asked = gateways::questions(context).await?;
        let answered = asked.into_iter().filter_map(|it| it.answered.ok());
        let mut waiting = AllWaiting::of(answered.collect());
        known.retain(|id| waiting.questions.iter().any(|it| it.row.id == *id));
        if !said && waiting.questions.is_empty() {
            said = true;
            context.say("waiting for questions; Ctrl-C ends it");
        }
        for question in &waiting.questions {
            if !known.insert(question.row.id.clone()) {
                continue;
            }
            if json {
                context.output.json_line(&question.row)?;
            } else if !context.output.can_ask() {
                context.output.result(&question.listed(context))?;
            } else if let Some(gateway) = waiting.gateways.get_mut(question.gateway) {
                ask(context, question, gateway).await?;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Asks one question, and gives the answer to its gateway.
async fn ask(
    context: &Context,
    question: &Waiting,
    gateway: &mut OwnerClient,
) -> Result<(), Report> {
    context.say(question.head());
    let prompt = TerminalPrompt::new(context);
    let answer = tokio::select! {
        answer = prompt.ask_row(&question.row) => answer,
        () = ended(question, gateway) => {
            context.output.leave_line();
            context.say("It does not stand any more: it was answered elsewhere, or its call ended.");
            return Ok(());
        }
    };
    let Some(answer) = answer else {
        context.say(question.of_another_kind());
        return Ok(());
    };
    let given = given(&question.row.id, answer);
    let said = question.said(&given.answer);
    match gateways::answer(gateway, &given).await {
        Ok(_) => context.say(said),
        // The others still wait.
        Err(error) => context.warn_of(&super::untaken(error)),
    }
    Ok(())
}

/// Resolves when a question does not stand any more.
async fn ended(question: &Waiting, gateway: &mut OwnerClient) {
    loop {
        tokio::time::sleep(PAUSE).await;
        match gateways::questions_of(gateway).await {
            Ok(listing) if listing.questions.iter().any(|it| it.id == question.row.id) => {}
            _ => return,
        }
    }
}

/// An answer as gateways take it.
fn given(id: &str, answer: PermissionAnswer) -> GivenAnswer {
    let (word, reason) = match answer {
        PermissionAnswer::Yes | PermissionAnswer::YesWith(..) => ("yes", None),
        PermissionAnswer::Session => ("session", None),
        PermissionAnswer::Always { reach, .. } => match reach {
            RuleReach::Tool => ("always-tool", None),
            RuleReach::Server => ("always-server", None),
        },
        PermissionAnswer::No | PermissionAnswer::Unanswered => ("no", None),
        PermissionAnswer::NoBecause(reason) => ("no", Some(reason)),
    };
    GivenAnswer {
        id: id.to_owned(),
        answer: word.into(),
        reason,
    }
}
