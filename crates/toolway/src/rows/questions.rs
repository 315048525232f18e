//! Open questions, as front-ends show them.

use toolway_rows::{ChangeRow, ChoiceRow, QuestionRow};

use super::permissions::unheeded_row;
use crate::call::Lasting;
use crate::call::questions::{AskedPermission, OpenQuestion, QuestionKind};
use crate::journal::timestamp;
use crate::pins::Against;

impl From<&OpenQuestion> for QuestionRow {
    fn from(question: &OpenQuestion) -> Self {
        let row = Self {
            id: question.id.to_string(),
            kind: question.kind.as_str().into(),
            server: question.server.clone(),
            tool: question.tool.as_ref().map(|key| key.tool.clone()),
            call: None,
            caller: (&question.caller).into(),
            put_to: question.put_to.as_str().into(),
            message: String::new(),
            choices: elicitation_choices(),
            asked_at: timestamp(question.asked_at),
            expires_at: Some(timestamp(question.expires_at)),
            client: None,
            name: None,
            title: None,
            arguments: None,
            destructive: None,
            rule: None,
            source: None,
            unheeded: None,
            hook: None,
            classifier: None,
            changed: Vec::new(),
            change: None,
            schema: None,
            url: None,
            code: None,
            has: Vec::new(),
            wants: Vec::new(),
        };
        match &question.kind {
            QuestionKind::Permission(asked) => of_permission(row, asked),
            QuestionKind::Form { message, schema } => Self {
                message: message.to_string(),
                schema: serde_json::from_str(schema.get()).ok(),
                ..row
            },
            QuestionKind::Page { message, url } => Self {
                message: message.to_string(),
                url: Some(url.to_string()),
                ..row
            },
            QuestionKind::Login {
                message,
                url,
                rights,
            } => Self {
                message: message.to_string(),
                url: Some(url.to_string()),
                code: rights.code.as_ref().map(|code| code.expose().to_owned()),
                has: rights.has.clone(),
                wants: rights.wants.clone(),
                ..row
            },
        }
    }
}

fn of_permission(row: QuestionRow, asked: &AskedPermission) -> QuestionRow {
    let (rule, source) = asked.rule.clone().unzip();
    QuestionRow {
        message: format!("may `{}` be called?", asked.name),
        choices: permission_choices(&asked.lasting),
        name: Some(asked.name.clone()),
        title: asked.title.clone(),
        arguments: Some(asked.arguments.clone()),
        destructive: asked.destructive,
        rule,
        source: source.as_ref().map(Into::into),
        unheeded: asked.unheeded.as_ref().map(unheeded_row),
        hook: asked.hook.clone(),
        classifier: asked.classifier.clone(),
        changed: asked
            .change
            .as_ref()
            .map(|change| change.lines.clone())
            .unwrap_or_default(),
        change: asked.change.as_ref().map(|change| ChangeRow {
            against: against(change.against).into(),
            lines: change.all.clone(),
        }),
        ..row
    }
}

/// What a definition is compared with, as a word.
fn against(against: Against) -> &'static str {
    match against {
        Against::Permitted => "permitted",
        Against::Nothing => "nothing",
        Against::Namesake => "namesake",
    }
}

fn choice(answer: &'static str, rule: Option<&String>) -> ChoiceRow {
    ChoiceRow {
        answer: answer.into(),
        rule: rule.cloned(),
    }
}

fn elicitation_choices() -> Vec<ChoiceRow> {
    ["accept", "decline", "cancel"]
        .map(|answer| choice(answer, None))
        .into()
}

/// The answers that can hold, in the order of how long they do.
fn permission_choices(lasting: &Lasting) -> Vec<ChoiceRow> {
    let mut choices = vec![choice("yes", None)];
    if !matches!(lasting, Lasting::Once) {
        choices.push(choice("session", None));
    }
    if let Lasting::Always { tool, server } | Lasting::AlwaysHere { tool, server } = lasting {
        let always = [("always-tool", tool), ("always-server", server)];
        let always = always.into_iter().filter(|(_, rule)| rule.is_some());
        choices.extend(always.map(|(answer, rule)| choice(answer, rule.as_ref())));
    }
    choices.push(choice("no", None));
    choices
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use serde_json::json;
    use serde_json::value::to_raw_value;
    use toolway_types::{ServerName, ToolKey, Untrusted};

    use super::*;
    use crate::call::questions::{Askee, QuestionId};
    use crate::call::{Caller, CallerKind};

    fn question(kind: QuestionKind) -> OpenQuestion {
        let server = ServerName::new("s").unwrap();
        OpenQuestion {
            id: QuestionId::new("7f"),
            kind,
            tool: Some(ToolKey::new(server.clone(), "rm")),
            server,
            caller: Caller::new(CallerKind::Client, "ada"),
            put_to: Askee::Owner,
            asked_at: UNIX_EPOCH,
            expires_at: UNIX_EPOCH + Duration::from_mins(1),
        }
    }

    #[test]
    fn a_question_for_permission_says_what_can_be_answered() {
        let asked = AskedPermission {
            key: ToolKey::new(ServerName::new("s").unwrap(), "rm"),
            name: "mcp__s__rm".to_owned(),
            title: None,
            arguments: json!({ "path": "x" }).as_object().cloned().unwrap(),
            destructive: Some(true),
            rule: None,
            unheeded: None,
            hook: None,
            classifier: None,
            change: None,
            lasting: Lasting::Always {
                tool: Some("mcp__s__rm".to_owned()),
                server: None,
            },
        };
        let row = QuestionRow::from(&question(QuestionKind::Permission(Box::new(asked))));
        let answers: Vec<&str> = row.choices.iter().map(|it| &*it.answer).collect();
        assert_eq!(answers, ["yes", "session", "always-tool", "no"]);
        assert_eq!((&*row.kind, &*row.caller.shown), ("permission", "ada"));
        assert_eq!(&*row.put_to, "owner");
        assert_eq!(row.arguments.unwrap()["path"], "x");
        assert_eq!(row.expires_at.unwrap(), "1970-01-01T00:01:00.000Z");
    }

    #[test]
    fn a_servers_words_are_clean_and_its_form_is_whole() {
        let schema = json!({ "type": "object", "properties": { "word": { "type": "string" } } });
        let row = QuestionRow::from(&question(QuestionKind::Form {
            message: Untrusted::new("your \u{1b}[31mword"),
            schema: to_raw_value(&schema).unwrap(),
        }));
        assert!(!row.message.contains('\u{1b}'), "{}", row.message);
        assert_eq!(row.schema, Some(schema));
        let answers: Vec<&str> = row.choices.iter().map(|it| &*it.answer).collect();
        assert_eq!(answers, ["accept", "decline", "cancel"]);
    }
}
