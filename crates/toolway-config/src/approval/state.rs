//! Where a server stands with the person whose approval it needs.

/// What a person said about an entry, if anybody has to be asked.
#[derive(Debug, Clone)]
pub(crate) enum ApprovalState {
    /// Yes, or nobody is asked.
    Approved {
        /// What it may read of the environment beyond the harmless.
        allow_env: Vec<String>,
        vouched: ApprovalBasis,
    },
    /// A person said no.
    Rejected { reason: String },
    /// Nobody said anything, or about something else.
    Pending {
        reason: String,
        changed: Option<String>,
    },
}

impl ApprovalState {
    /// Whether a person has seen this very entry.
    pub(crate) fn vouched(&self) -> ApprovalBasis {
        match self {
            Self::Approved { vouched, .. } => *vouched,
            Self::Rejected { .. } | Self::Pending { .. } => ApprovalBasis::Unseen,
        }
    }

    /// That of an entry about which nobody has to be asked.
    pub(crate) fn unasked() -> Self {
        Self::Approved {
            allow_env: Vec::new(),
            vouched: ApprovalBasis::Unseen,
        }
    }
}

/// How a yes came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalBasis {
    /// Nobody had to be asked, or a word for the whole repository covers it.
    Unseen,
    /// A person saw this very definition and said yes.
    Seen,
    /// A person typed it.
    Typed,
}
