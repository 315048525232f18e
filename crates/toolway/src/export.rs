//! The tool pool in the shapes that providers of models take.
//!
//! Owns the `tools` value of a request to the Anthropic Messages API, to `OpenAI`'s Chat
//! Completions and Responses, and to Gemini (`functionDeclarations`). The catalogue passes schemas
//! through as they are; here, and only here, a schema loses what one target refuses, and only for
//! that target. What a call may hold is still checked against the server's own schema. Does not
//! own: which tools go in. Parts: `form.rs` (what is JSON Schema 2020-12 at all), `refs.rs` (where
//! references lead), `root.rs` (the root of a schema), `gemini.rs` (Gemini's subset).
//!
//! One refused schema costs a whole request, hence the rules. Each has its source:
//!
//! Anthropic (`name`, `description`, `input_schema`)
//! - `input_schema` is JSON Schema 2020-12 with `"type": "object"` (Messages API reference).
//! - `input_schema does not support oneOf, allOf, or anyOf at the top level`
//!   (anthropics/claude-code#27337).
//! - `Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'`, for the root's properties
//!   (anthropics/claude-code#79418, decocms/studio#6874).
//!
//! `OpenAI` Chat (`{"type": "function", "function": {…}}`) and Responses (the same, flat)
//! - `schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at
//!   the top level` (langchain-ai/langchainjs#9804, CherryHQ/stella#781).
//! - "array schema missing items", at any depth and for lists of types too
//!   (digitalocean-labs/mcp-digitalocean#265, campfirein/byterover-cli#42); a root without
//!   `properties` gets empty ones.
//! - Responses takes a tool without `strict` as strict, which few schemas of servers are, so it
//!   says `"strict": false` (Responses API reference). Chat's default is not strict.
//! - Descriptions have had no limit of length since May 2025 (run-llama/llama_index#18784).
//!
//! Gemini: see `gemini.rs`.
//!
//! Names need no rule: an exposed name has at most 64 characters of `[A-Za-z0-9_-]` and begins with
//! a letter or `_`, which all four take.

use serde_json::{Map, Value, json};

use crate::catalog::CatalogTool;

mod form;
mod gemini;
mod refs;
mod root;

#[cfg(test)]
mod tests;

/// Whose shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExportTarget {
    /// The Anthropic Messages API.
    Anthropic,
    /// `OpenAI`'s Chat Completions.
    OpenAi,
    /// `OpenAI`'s Responses.
    OpenAiResponses,
    /// Gemini's `generateContent`.
    Gemini,
}

impl ExportTarget {
    /// All of them.
    pub const ALL: [ExportTarget; 4] = [
        ExportTarget::Anthropic,
        ExportTarget::OpenAi,
        ExportTarget::OpenAiResponses,
        ExportTarget::Gemini,
    ];

    /// The word for it on a command line.
    pub fn as_str(self) -> &'static str {
        match self {
            ExportTarget::Anthropic => "anthropic",
            ExportTarget::OpenAi => "openai",
            ExportTarget::OpenAiResponses => "openai-responses",
            ExportTarget::Gemini => "gemini",
        }
    }
}

/// Tools in one target's shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Export {
    /// What stands under `tools` in a request.
    pub tools: Value,
    /// What a model cannot say through this target although the tool takes it.
    pub notes: Vec<ExportNote>,
}

/// An argument that did not get into an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportNote {
    /// The tool's exposed name.
    pub tool: String,
    /// The argument's name, clean.
    pub argument: String,
}

/// Puts tools into a target's shape, in the order given.
pub fn export<'a>(
    target: ExportTarget,
    tools: impl IntoIterator<Item = &'a CatalogTool>,
) -> Export {
    let mut declared = Vec::new();
    let mut notes = Vec::new();
    for tool in tools {
        // It was parsed when it was cleaned.
        let schema = serde_json::from_str(tool.input_schema.get()).unwrap_or_else(|_| json!({}));
        let (one, left_out) = declare(target, &tool.name, &tool.description, &schema);
        declared.push(one);
        notes.extend(left_out.into_iter().map(|argument| ExportNote {
            tool: tool.name.clone(),
            argument,
        }));
    }
    let tools = match target {
        ExportTarget::Gemini if declared.is_empty() => json!([]),
        ExportTarget::Gemini => json!([{ "functionDeclarations": declared }]),
        _ => Value::Array(declared),
    };
    Export { tools, notes }
}

/// One tool in a target's shape, and the arguments that did not fit in.
pub fn declare(
    target: ExportTarget,
    name: &str,
    description: &str,
    schema: &Value,
) -> (Value, Vec<String>) {
    let mut declared = Map::new();
    declared.insert("name".to_owned(), json!(name));
    if !description.is_empty() {
        declared.insert("description".to_owned(), json!(description));
    }
    let (schema, left_out) = input_schema(target, schema);
    match target {
        ExportTarget::Anthropic => {
            declared.insert("input_schema".to_owned(), schema.unwrap_or_default());
        }
        ExportTarget::OpenAi => {
            declared.insert("parameters".to_owned(), schema.unwrap_or_default());
            let declared = json!({ "type": "function", "function": declared });
            return (declared, left_out);
        }
        ExportTarget::OpenAiResponses => {
            declared.insert("parameters".to_owned(), schema.unwrap_or_default());
            declared.insert("strict".to_owned(), json!(false));
            declared.insert("type".to_owned(), json!("function"));
        }
        ExportTarget::Gemini => {
            if let Some(schema) = schema {
                declared.insert("parameters".to_owned(), schema);
            }
        }
    }
    (Value::Object(declared), left_out)
}

/// A schema as a target takes it, and the names of arguments that it does not. None where the
/// target wants nothing for a tool that takes nothing.
pub fn input_schema(target: ExportTarget, schema: &Value) -> (Option<Value>, Vec<String>) {
    let schema = refs::settled(schema);
    match target {
        ExportTarget::Anthropic => {
            let mut left_out = Vec::new();
            let mut made = root::plain(&schema, &["allOf", "anyOf", "oneOf"]);
            root::keep_properties(&mut made, is_anthropic_key, &mut left_out);
            (Some(refs::mended(&schema, &made)), left_out)
        }
        ExportTarget::OpenAi | ExportTarget::OpenAiResponses => {
            let refused = ["allOf", "anyOf", "oneOf", "enum", "const", "not"];
            let mut made = root::plain(&schema, &refused);
            made.entry("properties").or_insert_with(|| json!({}));
            let mut made = refs::mended(&schema, &made);
            form::give_items(&mut made);
            (Some(made), Vec::new())
        }
        ExportTarget::Gemini => gemini::parameters(&schema),
    }
}

fn is_anthropic_key(key: &str) -> bool {
    (1..=64).contains(&key.len())
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}
