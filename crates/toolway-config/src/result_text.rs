//! Whether hidden characters in the text of a result reach a model.
//!
//! Owns the setting and how it is written. `toolway` applies it.

use toolway_types::Diagnosis;

use crate::Environment;

/// The variable.
const NAME: &str = "TOOLWAY_RESULT_TEXT";

/// What becomes of hidden characters in the text that a model gets of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResultText {
    /// `clean`: they are removed, and the model is told how many.
    #[default]
    Clean,
    /// `keep`: they stay.
    Keep,
}

impl ResultText {
    /// Reads `clean` or `keep`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "clean" => Some(Self::Clean),
            "keep" => Some(Self::Keep),
            _ => None,
        }
    }

    /// What the environment says.
    pub(crate) fn read(environment: &Environment, found: &mut Vec<Diagnosis>) -> Option<Self> {
        let text = environment.var(NAME)?;
        if text.trim().is_empty() {
            return None;
        }
        let chosen = Self::parse(text);
        if chosen.is_none() {
            found.push(
                Diagnosis::warning(format!(
                    "`{NAME}` is neither `clean` nor `keep`; it is not applied"
                ))
                .hint(
                    "`clean` removes hidden characters from what a model gets, and is the default",
                ),
            );
        }
        chosen
    }
}
