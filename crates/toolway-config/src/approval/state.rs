//! The state of an entry's approval.

/// Whether an entry is approved.
#[derive(Debug, Clone)]
pub(crate) enum ApprovalState {
    /// Approved, or in need of no approval.
    Approved {
        /// The variables it may read beyond the harmless ones.
        allow_env: Vec<String>,
        vouched: ApprovalBasis,
    },
    /// Rejected by the user.
    Rejected { reason: String },
    /// Not decided, or decided about another definition.
    Pending {
        reason: String,
        changed: Option<String>,
    },
}

impl ApprovalState {
    /// How it was approved.
    pub(crate) fn vouched(&self) -> ApprovalBasis {
        match self {
            Self::Approved { vouched, .. } => *vouched,
            Self::Rejected { .. } | Self::Pending { .. } => ApprovalBasis::Unseen,
        }
    }

    /// The state of an entry that needs no approval.
    pub(crate) fn unasked() -> Self {
        Self::Approved {
            allow_env: Vec::new(),
            vouched: ApprovalBasis::Unseen,
        }
    }

    /// Not decided, with no change to show.
    pub(crate) fn pending(reason: String) -> Self {
        let changed = None;
        Self::Pending { reason, changed }
    }
}

/// How an entry was approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalBasis {
    /// No approval is needed, or the whole repository is approved.
    Unseen,
    /// The user saw this definition and approved it.
    Seen,
    /// The user typed it.
    Typed,
}
