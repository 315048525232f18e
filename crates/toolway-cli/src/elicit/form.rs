//! A server's form, asked field by field.
//!
//! Owns the order: who asks and why, a warning where a secret is asked for (SEC-36), every field
//! until its answer fits, all of it once more before it is sent. What a field takes is `field.rs`.

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolway::ElicitationAnswer;
use toolway_types::Untrusted;

use super::field::{Field, fields};
use super::{End, Talk, secret};
use crate::screen::words;

/// A form with more fields than this is not for a terminal.
const MAX_FIELDS: usize = 50;

/// The longest word on what is wrong with an answer.
const PROBLEM: usize = 500;

/// Stands for what is not shown again.
const HIDDEN: &str = "(not shown)";

type Answers = Map<String, Value>;

/// Asks for every field and gives what may be sent.
pub(super) async fn ask(
    talk: &mut Talk<'_>,
    message: &Untrusted,
    schema: &RawValue,
) -> Result<ElicitationAnswer, End> {
    talk.introduce("asks:", message);
    let schema: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    let fields = fields(&schema);
    if fields.len() > MAX_FIELDS {
        talk.say(&format!(
            "warning: it wants {} fields filled in, which is more than {MAX_FIELDS}",
            fields.len()
        ));
        return Err(End::Declined);
    }
    if !may_ask(talk, message, &fields).await? {
        return Err(End::Declined);
    }
    if fields.is_empty() {
        let question = format!("Tell {} that you agree?", talk.server());
        return if talk.confirm(&question).await? {
            Ok(ElicitationAnswer::Accept(Some(Answers::new())))
        } else {
            Err(End::Declined)
        };
    }
    talk.say("(`/decline` says no, `/cancel` or Ctrl-C puts the question away)");
    loop {
        let answers = fill(talk, &fields).await?;
        show(talk, &fields, &answers);
        let question = format!("Send this to {}? [Y/n/edit] ", talk.server());
        match talk.ask(&question).await?.trim().to_lowercase().as_str() {
            "" | "y" | "yes" => return Ok(ElicitationAnswer::Accept(Some(answers))),
            "e" | "edit" => {}
            _ => return Err(End::Declined),
        }
    }
}

/// Warns where a secret is asked for; without a yes the form is declined.
async fn may_ask(talk: &mut Talk<'_>, message: &Untrusted, fields: &[Field]) -> Result<bool, End> {
    let secrets: Vec<String> = fields
        .iter()
        .filter(|field| field.secret)
        .map(|field| format!("`{}`", field.title))
        .collect();
    let what = match secrets.as_slice() {
        [] if secret::names_one(&message.to_string()) => "it".to_owned(),
        [] => return Ok(true),
        names => names.join(", "),
    };
    talk.say_row(&format!(
        "warning: {what} looks like a secret. Servers must not ask for secrets in this way: what \
         you type is sent to {} as it is",
        talk.server()
    ));
    talk.confirm("Answer all the same?").await
}

async fn fill(talk: &mut Talk<'_>, fields: &[Field]) -> Result<Answers, End> {
    let mut answers = Answers::new();
    for field in fields {
        talk.say("");
        let mut sheet = talk.sheet();
        field.question(&mut sheet);
        let prompt = format!("{}> ", field.offer(&mut sheet));
        talk.say(&sheet.finish());
        loop {
            let line = if field.secret {
                talk.ask_hidden(&prompt).await?
            } else {
                talk.ask(&prompt).await?
            };
            match field.read_line(&line) {
                Ok(Some(value)) => {
                    answers.insert(field.name.clone(), value);
                    break;
                }
                Ok(None) => break,
                Err(problem) => {
                    let problem = words(&problem, PROBLEM);
                    talk.say_row(&format!("{problem}; expected: {}", field.expected()));
                }
            }
        }
    }
    Ok(answers)
}

fn show(talk: &Talk<'_>, fields: &[Field], answers: &Answers) {
    talk.say("");
    for field in fields {
        let answer = match answers.get(&field.name) {
            Some(_) if field.secret => HIDDEN.to_owned(),
            Some(value) => field.show(value),
            None => "left out".to_owned(),
        };
        talk.say_row(&format!("  {}: {answer}", field.title));
    }
}
