//! The words of a settings file for what happens beside rules.
//!
//! Owns the mode, for calls that no rule names, and the word on pins, for tools that changed.

/// What happens to a call that no rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// A person is asked.
    #[default]
    Default,
    /// A classifier decides; where none is named, a person is asked.
    Auto,
    /// It runs.
    Bypass,
}

impl Mode {
    /// The word in a settings file.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Default => "default",
            Mode::Auto => "auto",
            Mode::Bypass => "bypass",
        }
    }

    /// Reads the word of a settings file, aliases included.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "default" => Some(Mode::Default),
            "auto" => Some(Mode::Auto),
            "bypass" | "bypassPermissions" => Some(Mode::Bypass),
            _ => None,
        }
    }
}

/// What happens when a tool's definition is no longer the one that was first permitted (SEC-33).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PinPolicy {
    /// A person is asked again, whatever a rule allows.
    #[default]
    Ask,
    /// The call runs, with a warning.
    Warn,
    /// Nothing is pinned or compared.
    Off,
}

impl PinPolicy {
    /// The word in a settings file.
    pub fn as_str(self) -> &'static str {
        match self {
            PinPolicy::Ask => "ask",
            PinPolicy::Warn => "warn",
            PinPolicy::Off => "off",
        }
    }

    /// Reads the word of a settings file.
    pub fn parse(text: &str) -> Option<Self> {
        [PinPolicy::Ask, PinPolicy::Warn, PinPolicy::Off]
            .into_iter()
            .find(|policy| policy.as_str() == text)
    }
}
