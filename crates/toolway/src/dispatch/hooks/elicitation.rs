//! The hooks around a server's question: the first to be asked, and the last to see the answer.
//!
//! Owns what their words add up to. A hook that fails might have said no, so the server hears a
//! no (REL-30), and the person hears which hook it was.

use toolway_config::HookEvent;
use toolway_config::permission::names_of_server;
use toolway_types::ServerName;

use super::runner::{HookName, HookResources, HookResult, HookRunner};
use super::{HookDecision, HookInput};
use crate::call::{Caller, Remarks};
use crate::client_handler::{Elicitation, ElicitationAnswer, GivenAnswer};
use crate::snapshot::CallSettings;

impl HookRunner {
    /// Whether hooks may answer what this server asks.
    pub(crate) fn answers(&self, server: &ServerName) -> bool {
        let event = HookEvent::Elicitation;
        let settings = self.settings();
        !self
            .concerned(&settings.hooks, event, &names_of_server(server))
            .is_empty()
    }

    /// What hooks answer to a question; nothing when they leave it to a person.
    pub(crate) async fn answer(
        &self,
        server: &ServerName,
        request: &Elicitation,
        remarks: &Remarks,
    ) -> Option<GivenAnswer> {
        let event = HookEvent::Elicitation;
        let settings = self.settings();
        if settings.hooks.is_empty() && !self.has(event) {
            return None;
        }
        let input = HookInput::question(event, server, request, self.cause(remarks));
        let heard = self.hear(server, event, input, &settings).await;
        let whose = format!("a question of server `{server}`");
        verdict(&whose, heard, remarks)
    }

    /// What becomes of a person's answer.
    pub(crate) async fn review(
        &self,
        server: &ServerName,
        request: &Elicitation,
        answer: ElicitationAnswer,
        remarks: &Remarks,
    ) -> GivenAnswer {
        let event = HookEvent::ElicitationResult;
        let settings = self.settings();
        if settings.hooks.is_empty() && !self.has(event) {
            return GivenAnswer::by_nobody(answer);
        }
        let input = HookInput::question(event, server, request, self.cause(remarks));
        let input = input.answered(&answer);
        let heard = self.hear(server, event, input, &settings).await;
        let whose = format!("what was answered to server `{server}`");
        verdict(&whose, heard, remarks).unwrap_or_else(|| GivenAnswer::by_nobody(answer))
    }

    /// Whose request caused a question; the host's own where none did.
    fn cause<'a>(&'a self, remarks: &'a Remarks) -> &'a Caller {
        let own = || &self.caller().caller;
        remarks.caller().unwrap_or_else(own)
    }

    async fn hear(
        &self,
        server: &ServerName,
        event: HookEvent,
        input: HookInput,
        settings: &CallSettings,
    ) -> Vec<HookResult> {
        let concerned = self.concerned(&settings.hooks, event, &names_of_server(server));
        if concerned.is_empty() {
            return Vec::new();
        }
        let snapshot = self.snapshot();
        // A server that asks while its own tool runs as a hook could have hooks call it for ever.
        let dispatch = snapshot
            .as_deref()
            .filter(|_| !self.is_busy(server))
            .map(|snapshot| self.dispatch(snapshot));
        let means = HookResources {
            place: settings.hooks.place(),
            calls: dispatch.as_ref(),
        };
        self.run(concerned, event, input, means).await
    }
}

/// A refusal beats a cancel, which beats a yes; of several of a kind the last counts. Hooks that
/// refuse or cancel are remarked on.
fn verdict(whose: &str, heard: Vec<HookResult>, remarks: &Remarks) -> Option<GivenAnswer> {
    let mut verdict: Option<(ElicitationAnswer, HookName)> = None;
    for HookResult { hook, said } in heard {
        let (answer, objection) = match said {
            Err(failure) => (
                ElicitationAnswer::Decline,
                Some(format!(
                    "{hook} failed on {whose}, so the server heard a no: {failure}"
                )),
            ),
            Ok(said) if said.decision == Some(HookDecision::Deny) => {
                let reason = said.why();
                let reason = reason.as_deref().unwrap_or("it gives no reason");
                (
                    ElicitationAnswer::Decline,
                    Some(format!("{hook} said no to {whose}: {reason}")),
                )
            }
            Ok(said) => match said.answer {
                Some(answer @ ElicitationAnswer::Accept(_)) => (answer, None),
                Some(ElicitationAnswer::Decline) => (
                    ElicitationAnswer::Decline,
                    Some(format!("{hook} declined {whose}")),
                ),
                Some(ElicitationAnswer::Cancel) => (
                    ElicitationAnswer::Cancel,
                    Some(format!("{hook} put {whose} away")),
                ),
                None => continue,
            },
        };
        if let Some(objection) = objection {
            remarks.make(&objection);
        }
        if let (Some((ElicitationAnswer::Accept(_), other)), ElicitationAnswer::Accept(_)) =
            (&verdict, &answer)
        {
            remarks.make(&format!(
                "{other} answered {whose}, and so did {hook}: the latter's answer was sent"
            ));
        }
        if verdict
            .as_ref()
            .is_none_or(|(known, _)| rank(&answer) >= rank(known))
        {
            verdict = Some((answer, hook));
        }
    }
    verdict.map(|(answer, hook)| GivenAnswer {
        answer,
        by: Some(hook.to_string()),
    })
}

fn rank(answer: &ElicitationAnswer) -> u8 {
    match answer {
        ElicitationAnswer::Accept(_) => 0,
        ElicitationAnswer::Cancel => 1,
        ElicitationAnswer::Decline => 2,
    }
}
