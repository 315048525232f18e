//! Prompts in the catalogue: commands `mcp__<server>__<prompt>`.
//!
//! Owns their cleaned shape. Names follow the same rules as those of tools.

use std::collections::HashSet;
use std::sync::Arc;

use toolway_types::text::is_hidden;
use toolway_types::{ServerName, ToolKey, limits};
use toolway_wire::view;

use super::{CatalogWarning, sanitize};

/// The most prompts of one server.
pub const MAX_PROMPTS: usize = limits::offers::PROMPTS;
/// The most arguments of one prompt.
pub const MAX_ARGUMENTS: usize = limits::offers::PROMPT_ARGUMENTS;

/// A prompt as people see it.
#[derive(Debug, Clone)]
pub struct CatalogPrompt {
    /// The command: unique, at most 64 characters of `[A-Za-z0-9_-]`.
    pub name: String,
    /// Its identity: the server, and the name that server gave it.
    pub key: ToolKey,
    /// The prompt's own name, cleaned for showing.
    pub shown: String,
    /// Its title, cleaned.
    pub title: Option<String>,
    /// Its description, cleaned and cut; empty when there is none.
    pub description: String,
    /// What it takes, in the server's order.
    pub arguments: Vec<CatalogPromptArgument>,
    /// As the server sent it: what cleaning takes away can be the very change.
    pub(crate) received: Arc<view::Prompt>,
}

/// One argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogPromptArgument {
    /// Its name.
    pub name: String,
    /// Its title, cleaned.
    pub title: Option<String>,
    /// Its description, cleaned and cut; empty when there is none.
    pub description: String,
    /// Whether the prompt needs it.
    pub required: bool,
}

/// Takes in one server's prompts, ordered by name.
pub(super) fn admit(
    server: &ServerName,
    prompts: Vec<view::Prompt>,
    warnings: &mut Vec<CatalogWarning>,
) -> Vec<CatalogPrompt> {
    let mut warn = |message: String| warnings.push(CatalogWarning::new(server, message));
    let offered = prompts.len();
    if offered > MAX_PROMPTS {
        warn(format!(
            "the server offers {offered} prompts; only the first {MAX_PROMPTS} it lists are used"
        ));
    }
    let mut seen = HashSet::new();
    let mut admitted = Vec::with_capacity(offered.min(MAX_PROMPTS));
    for prompt in prompts.into_iter().take(MAX_PROMPTS) {
        let shown = sanitize::line(&prompt.name);
        if !seen.insert(prompt.name.clone()) {
            warn(format!(
                "prompt `{shown}` is listed twice; the first one is used"
            ));
        } else if let Some(reason) = unfit(&prompt) {
            warn(format!("prompt `{shown}` is skipped: {reason}"));
        } else {
            admitted.push(cleaned(server, shown, prompt));
        }
    }
    admitted.sort_by(|one, other| one.key.cmp(&other.key));
    admitted
}

fn unfit(prompt: &view::Prompt) -> Option<String> {
    if prompt.name.is_empty() {
        return Some("it has no name".to_owned());
    }
    if prompt.arguments.len() > MAX_ARGUMENTS {
        return Some(format!("it has over {MAX_ARGUMENTS} arguments"));
    }
    let names = || {
        let arguments = prompt
            .arguments
            .iter()
            .map(|argument| argument.name.as_str());
        arguments.chain([prompt.name.as_str()])
    };
    if names().any(|name| name.len() > sanitize::MAX_NAME) {
        return Some(format!("a name has over {} bytes", sanitize::MAX_NAME));
    }
    // An argument's name is sent back as it came; it cannot be cleaned.
    let mut characters = prompt
        .arguments
        .iter()
        .flat_map(|argument| argument.name.chars());
    characters.find(|c| is_hidden(*c)).map(|c| {
        format!(
            "an argument's name has an invisible character (U+{:04X})",
            c as u32
        )
    })
}

fn cleaned(server: &ServerName, shown: String, prompt: view::Prompt) -> CatalogPrompt {
    let arguments = prompt
        .arguments
        .iter()
        .map(|argument| CatalogPromptArgument {
            name: argument.name.clone(),
            title: argument.title.as_deref().map(sanitize::line),
            description: sanitize::description(argument.description.as_deref().unwrap_or("")),
            required: argument.required,
        });
    let key = ToolKey::new(server.clone(), &prompt.name);
    CatalogPrompt {
        name: key.exposed(),
        key,
        shown,
        title: prompt.title.as_deref().map(sanitize::line),
        description: sanitize::description(prompt.description.as_deref().unwrap_or("")),
        arguments: arguments.collect(),
        received: Arc::new(prompt),
    }
}
