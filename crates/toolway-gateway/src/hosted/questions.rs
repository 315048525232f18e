//! Questions to a client: what servers ask because of its requests, and whether a call may run.
//!
//! Owns the shapes of such questions and of their answers. How they reach the client differs between
//! the eras: as requests on the stream of the call (`stream_asker.rs`), or as the answer to the call
//! (`parked.rs`).

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use toolway::types::text;
use toolway::{
    Elicitation, ElicitationAnswer, Lasting, PermissionAnswer, PermissionQuestion, Root,
};
use toolway_wire::RawJson;
use url::Url;

/// The most of a call's arguments that is shown, in characters.
const MAX_ARGUMENTS: usize = 2_000;

/// The field by which a client's user answers whether a call may run.
const ANSWER: &str = "answer";

/// The parameters of `elicitation/create`. What a server wrote stays as it wrote it: it may hold
/// numbers that no value of ours has room for.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ElicitationParams<'a> {
    mode: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    requested_schema: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elicitation_id: Option<&'a str>,
}

/// The parameters of `elicitation/create`.
pub(super) fn elicitation_params(question: &Elicitation) -> Box<RawValue> {
    raw(&match question {
        Elicitation::Form { message, schema } => ElicitationParams {
            mode: "form",
            message: message.as_received(),
            requested_schema: Some(schema),
            url: None,
            elicitation_id: None,
        },
        Elicitation::Url {
            message, url, id, ..
        } => ElicitationParams {
            mode: "url",
            message: message.as_received(),
            requested_schema: None,
            url: Some(url.as_str()),
            elicitation_id: id.as_deref(),
        },
    })
}

/// What a client answered to `elicitation/create`.
pub(super) fn elicitation_answer(result: &RawJson) -> ElicitationAnswer {
    let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
    match result["action"].as_str() {
        Some("accept") => ElicitationAnswer::Accept(result["content"].as_object().cloned()),
        Some("decline") => ElicitationAnswer::Decline,
        _ => ElicitationAnswer::Cancel,
    }
}

/// Whether a call may run, as a form.
pub(super) fn permission_params(question: &PermissionQuestion<'_>) -> Box<RawValue> {
    let mut message = format!(
        "Toolway asks: may the tool `{}` of server `{}` run?\n\nArguments: {}",
        text::clean_line(&question.key.tool),
        question.key.server,
        shown_arguments(question.arguments),
    );
    if let Some((rule, origin)) = question.rule {
        let rule = text::clean_line(rule);
        let _ = write!(
            message,
            "\n\nThe rule `{rule}` ({origin}) wants you to be asked."
        );
    }
    if let Some(change) = question.change {
        let lines = change.lines.join(" | ");
        let said = "The tool is not defined as it was when it was permitted";
        let _ = write!(message, "\n\n{said}: {lines}");
    }
    for remark in [question.hook, question.classifier].into_iter().flatten() {
        message.push_str("\n\n");
        message.push_str(remark);
    }
    let mut choices = vec!["once"];
    if question.lasting != Lasting::Once {
        choices.push("session");
    }
    choices.push("no");
    raw(&json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                ANSWER: {
                    "type": "string",
                    "title": "May it run?",
                    "description": "`once` runs this call, `session` also later ones of this tool, `no` refuses",
                    "enum": choices,
                },
            },
            "required": [ANSWER],
        },
    }))
}

/// What a client's user said to that. An answer is worth a session at most: a model may have given
/// it.
pub(super) fn permission_answer(result: &RawJson) -> PermissionAnswer {
    match elicitation_answer(result) {
        ElicitationAnswer::Accept(fields) => {
            let fields = fields.unwrap_or_default();
            match fields.get(ANSWER).and_then(Value::as_str) {
                Some("once") => PermissionAnswer::Yes,
                Some("session") => PermissionAnswer::Session,
                _ => PermissionAnswer::No,
            }
        }
        ElicitationAnswer::Decline => PermissionAnswer::No,
        ElicitationAnswer::Cancel => PermissionAnswer::Unanswered,
    }
}

/// The roots that a client named.
pub(super) fn read_roots(result: &RawJson) -> Vec<Root> {
    let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let roots = result["roots"].as_array().map_or(&[][..], Vec::as_slice);
    let roots = roots.iter().take(MAX_ROOTS).filter_map(|root| {
        Some(Root {
            uri: Url::parse(root["uri"].as_str()?).ok()?,
            name: root["name"].as_str().map(str::to_owned),
        })
    });
    roots.collect()
}

/// The most roots of one client.
const MAX_ROOTS: usize = 256;

fn shown_arguments(arguments: &Map<String, Value>) -> String {
    let shown = serde_json::to_string(arguments).unwrap_or_default();
    let shown = text::spelled_out(&shown);
    text::cut(&shown, MAX_ARGUMENTS).into_owned()
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
