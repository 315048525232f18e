//! How much is asked of the shield that keeps servers from writing Toolway's own files.

/// Whether a server may start without its shield. The derived order is that of strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShieldMode {
    /// No shield.
    Off,
    /// A shield where the system allows one; without it servers start too.
    BestEffort,
    /// Without a shield no server starts.
    Required,
}

impl ShieldMode {
    /// Every mode, in the order in which they grow stricter.
    pub const ALL: [Self; 3] = [Self::Off, Self::BestEffort, Self::Required];

    /// The word that names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::BestEffort => "best-effort",
            Self::Required => "required",
        }
    }

    /// The mode a word names.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }
}
