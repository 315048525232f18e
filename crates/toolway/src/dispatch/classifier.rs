//! The classifier: who decides in mode `auto` about a call that no rule and no hook decides.
//!
//! Owns whose counts (an organisation's, then that of the embedding program, then the person's
//! own), how its answer is read, and what is made of it. It runs as hooks do, by their runner. It is
//! asked only where a person would be, so it never stands against a rule; when it fails, or says
//! something that cannot be understood, the person is asked after all.
//! Does not own: what it is told, and the value an embedder makes (`hooks/library_classifier.rs`).

use serde::Deserialize;
use serde_json::Value;
use toolway_config::permission::{CallSubject, Classifier};
use toolway_types::Origin;

use super::Dispatch;
use super::hooks::{
    Classification, ClassifierInput, ClassifierRule, HookDecision, HookResources, HookedCall,
    LibraryClassifier, Printed, one_line, title,
};
use crate::audit::RecordedClassification;
use crate::call::RefusedBy;

/// Who is asked.
enum ChosenClassifier<'a> {
    Configured(&'a Classifier),
    Library(&'a LibraryClassifier),
}

/// What a classifier said of one call, or how it failed.
pub(super) struct ClassifierOpinion {
    title: String,
    origin: Origin,
    said: Result<Classification, String>,
}

/// What is made of it.
pub(super) enum ClassifierVerdict {
    Allow,
    Deny,
    /// Its word, or that it failed.
    Ask,
}

impl ClassifierOpinion {
    pub(super) fn verdict(&self) -> ClassifierVerdict {
        match self.said.as_ref().map(|said| said.decision) {
            Ok(HookDecision::Allow) => ClassifierVerdict::Allow,
            Ok(HookDecision::Deny) => ClassifierVerdict::Deny,
            Ok(HookDecision::Ask) | Err(_) => ClassifierVerdict::Ask,
        }
    }

    /// What went wrong, as a warning.
    pub(super) fn failure(&self) -> Option<String> {
        let why = self.said.as_ref().err()?;
        Some(format!("{} failed: {why}", self.name()))
    }

    fn name(&self) -> String {
        format!("the classifier `{}` in {}", self.title, self.origin)
    }

    fn reason(&self) -> Option<&str> {
        match &self.said {
            Ok(said) => said.reason.as_deref(),
            Err(why) => Some(why),
        }
    }

    /// For the person who is asked.
    pub(super) fn shown(&self) -> String {
        match (&self.said, self.reason()) {
            (Err(why), _) => format!("{} failed: {why}", self.name()),
            (Ok(_), Some(reason)) => format!("{} asks: {reason}", self.name()),
            (Ok(_), None) => format!("{} asks", self.name()),
        }
    }

    pub(super) fn granting(&self) -> (String, Origin) {
        (self.title.clone(), self.origin.clone())
    }

    pub(super) fn refusal(&self) -> RefusedBy {
        RefusedBy::Classifier {
            title: self.title.as_str().into(),
            origin: self.origin.clone(),
            reason: self.reason().map(Into::into),
        }
    }

    /// As a refusal, where a person is to be asked and there is none.
    pub(super) fn refusal_without_person(&self) -> RefusedBy {
        RefusedBy::NobodyForClassifier {
            title: self.title.as_str().into(),
            origin: self.origin.clone(),
            failed: self.said.is_err(),
            reason: self.reason().map(Into::into),
        }
    }

    /// For the audit.
    pub(super) fn noted(&self) -> RecordedClassification {
        let verdict = match self.said.as_ref().map(|said| said.decision) {
            Ok(HookDecision::Allow) => "allow",
            Ok(HookDecision::Ask) => "ask",
            Ok(HookDecision::Deny) => "deny",
            Err(_) => "failed",
        };
        RecordedClassification {
            classifier: self.title.clone(),
            origin: self.origin.to_string(),
            verdict: verdict.to_owned(),
            reason: self.reason().map(str::to_owned),
        }
    }
}

/// Asks the classifier of mode `auto`; `None` where there is none.
pub(super) async fn ask(
    call: &HookedCall<'_>,
    subject: CallSubject<'_>,
    dispatch: &Dispatch<'_>,
) -> Option<ClassifierOpinion> {
    let own = dispatch.runner.classifier();
    let chosen = match (dispatch.permissions.classifier(), own) {
        (Some(policy), _) if policy.is_policy() => ChosenClassifier::Configured(policy),
        (_, Some(own)) => ChosenClassifier::Library(own),
        (Some(configured), None) => ChosenClassifier::Configured(configured),
        (None, None) => return None,
    };
    let input = input(call, &subject, dispatch);
    let (name, origin, said) = match chosen {
        ChosenClassifier::Configured(classifier) => (
            classifier.action.title(),
            classifier.origin.clone(),
            configured(classifier, &input, dispatch).await,
        ),
        ChosenClassifier::Library(own) => (own.name.clone(), Origin::Program, own.run(input).await),
    };
    Some(ClassifierOpinion {
        title: title(&name),
        origin,
        said: match said {
            Ok(said) => Ok(Classification {
                reason: said.reason.map(|reason| one_line(&reason)),
                ..said
            }),
            Err(why) => Err(one_line(&why)),
        },
    })
}

fn input(
    call: &HookedCall<'_>,
    subject: &CallSubject<'_>,
    dispatch: &Dispatch<'_>,
) -> ClassifierInput {
    let tool = call.tool();
    let hints = [
        ("readOnlyHint", tool.hints.read_only),
        ("destructiveHint", tool.hints.destructive),
        ("idempotentHint", tool.hints.idempotent),
        ("openWorldHint", tool.hints.open_world),
    ];
    let said = hints
        .into_iter()
        .filter_map(|(name, hint)| Some((name.to_owned(), Value::Bool(hint?))));
    let rules = dispatch.permissions.concerning(subject);
    ClassifierInput {
        session_id: dispatch.runner.session().to_owned(),
        cwd: dispatch.hooks.place().workspace.display().to_string(),
        server: tool.key.server.as_str().to_owned(),
        tool: tool.key.tool.clone(),
        tool_name: tool.name.clone(),
        tool_input: call.arguments().clone(),
        title: tool.title.clone(),
        description: tool.description.clone(),
        annotations: said.collect(),
        rules: rules
            .into_iter()
            .map(|(list, cited)| ClassifierRule {
                list,
                rule: cited.rule.clone(),
                origin: cited.origin.to_string(),
            })
            .collect(),
        brought: dispatch
            .permissions
            .repository_server(&tool.key.server)
            .is_some(),
    }
}

async fn configured(
    classifier: &Classifier,
    input: &ClassifierInput,
    dispatch: &Dispatch<'_>,
) -> Result<Classification, String> {
    let means = HookResources {
        place: dispatch.hooks.place(),
        calls: Some(dispatch),
    };
    let (action, limit) = (&classifier.action, classifier.timeout);
    match dispatch.runner.printed(action, limit, input, means).await? {
        Printed::Program(ended) if ended.status.success() => match str::from_utf8(&ended.stdout) {
            Ok(text) => read(text),
            Err(_) => Err("it printed something that is not text".to_owned()),
        },
        // No exit code says no, as that of a hook does: one that cannot start has a code too.
        Printed::Program(ended) => {
            let complaint = String::from_utf8_lossy(&ended.stderr);
            let complaint = complaint.trim();
            let colon = if complaint.is_empty() { "" } else { ": " };
            Err(format!("it ended with {}{colon}{complaint}", ended.status))
        }
        Printed::Tool(text) => read(&text),
    }
}

/// Reads what a classifier printed. A word that is said twice is an error of the format.
fn read(text: &str) -> Result<Classification, String> {
    #[derive(Deserialize)]
    struct Said {
        decision: Word,
        reason: Option<String>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Allow,
        Ask,
        Deny,
    }
    if text.trim().is_empty() {
        return Err("it said nothing".to_owned());
    }
    let said: Said = serde_json::from_str(text).map_err(|error| {
        format!("it did not say `{{\"decision\": \"allow\", \"ask\" or \"deny\"}}`: {error}")
    })?;
    Ok(Classification {
        decision: match said.decision {
            Word::Allow => HookDecision::Allow,
            Word::Ask => HookDecision::Ask,
            Word::Deny => HookDecision::Deny,
        },
        reason: said.reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_plain_answer_is_understood() {
        for (text, expected) in [
            (r#"{"decision": "allow"}"#, Some(HookDecision::Allow)),
            (
                r#"{"decision": "deny", "reason": "no", "score": 0.1}"#,
                Some(HookDecision::Deny),
            ),
            (r#"{"decision": "ask"}"#, Some(HookDecision::Ask)),
            ("", None),
            ("allow", None),
            (r#""allow""#, None),
            (r#"{"decision": "Allow"}"#, None),
            (r#"{"decision": "deny", "decision": "allow"}"#, None),
            (r#"{"decision": "allow"} {"decision": "deny"}"#, None),
            (r#"[{"decision": "allow"}]"#, None),
            (r#"{"permissionDecision": "allow"}"#, None),
        ] {
            assert_eq!(
                read(text).ok().map(|said| said.decision),
                expected,
                "{text}"
            );
        }
    }
}
