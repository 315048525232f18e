//! Text that came from a server.
//!
//! Owns the cleaning of everything a server says before a person or a model sees it, and the
//! type that cannot be displayed uncleaned.

use std::fmt;

/// Whether a character is invisible or steers the terminal or the direction of text.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{00AD}' | '\u{061C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
                | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}' | '\u{E0100}'..='\u{E01EF}'
        )
}

/// Text from outside. `Display` shows it cleaned; the original is reached only by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Untrusted(String);

impl Untrusted {
    /// Wraps text as received.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text as received, for forwarding and comparing, never for showing.
    pub fn as_received(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Untrusted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
