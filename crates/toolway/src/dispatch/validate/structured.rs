//! Does the structured content of an answer fit the schema that its tool promised.
//!
//! Owns the finding, which is a warning and never more: the answer is there, and a person may need
//! it all the same. What is checked is what the server sent, whatever hooks make of it later.

use serde_json::Value;
use toolway_wire::RawJson;
use toolway_wire::view::{self, ResultType};

use crate::catalog::CatalogTool;
use crate::json_schema::{Problem, SchemaVerdict, ValueSize};

/// How many problems the warning tells.
const MAX_TOLD: usize = 4;

/// What is to be said about the structured content of an answer; nothing when it fits, and
/// nothing about a tool that promises none or that says that it failed.
pub(in crate::dispatch) fn structured(tool: &CatalogTool, answer: &RawJson) -> Option<String> {
    let checker = tool.output_checker()?;
    // One that is no result fails in a later stage.
    let result = view::tool_result(answer).ok()?;
    if result.is_error || result.result_type != ResultType::Complete {
        return None;
    }
    let shown = &tool.shown;
    let Some(content) = &result.structured else {
        return Some(format!(
            "`{shown}` promises structured content by its output schema, and sent none"
        ));
    };
    let unchecked =
        |why: &str| format!("the structured content of `{shown}` was not checked: {why}");
    let Ok(value) = serde_json::from_str::<Value>(content.get()) else {
        return Some(unchecked("it is nested too deep"));
    };
    let size = ValueSize::of_value(&value);
    if size.is_past_limits() {
        return Some(unchecked("it is too large or nested too deep"));
    }
    match checker.check(&value, size) {
        SchemaVerdict::Fits => checker.gap().map(|gap| {
            format!("the structured content of `{shown}` was checked in part only: {gap}")
        }),
        SchemaVerdict::Unchecked(why) => Some(unchecked(&format!("the output schema {why}"))),
        SchemaVerdict::Violates(problems) => Some(format!(
            "the structured content of `{shown}` does not fit its output schema: {}",
            told(&problems)
        )),
    }
}

fn told(problems: &[Problem]) -> String {
    let mut text: Vec<String> = problems
        .iter()
        .take(MAX_TOLD)
        .map(|problem| {
            let path = match problem.path.as_str() {
                "" => "/",
                path => path,
            };
            format!("`{path}`: {}", problem.message)
        })
        .collect();
    if problems.len() > MAX_TOLD {
        text.push("and more".to_owned());
    }
    text.join("; ")
}
