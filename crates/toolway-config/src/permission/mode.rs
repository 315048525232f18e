//! The mode and the pin policy of a settings file.

/// What happens to a call that no rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PermissionMode {
    /// The user is asked.
    #[default]
    Default,
    /// A classifier decides; without one, the user is asked.
    Auto,
    /// It runs.
    Bypass,
}

impl PermissionMode {
    /// The word in a settings file.
    pub fn as_str(self) -> &'static str {
        match self {
            PermissionMode::Default => "default",
            PermissionMode::Auto => "auto",
            PermissionMode::Bypass => "bypass",
        }
    }

    /// Reads the word of a settings file, aliases included.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "default" => Some(PermissionMode::Default),
            "auto" => Some(PermissionMode::Auto),
            "bypass" | "bypassPermissions" => Some(PermissionMode::Bypass),
            _ => None,
        }
    }
}

/// What happens when a tool's definition is no longer the one that was first permitted (SEC-33).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PinPolicy {
    /// The user is asked again, whatever a rule allows.
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
