//! The tokens that clients show to the gateway. None of them is ever in it.

use serde::{Deserialize, Serialize};

/// Every named token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenListing {
    /// One row each, by name.
    pub tokens: Vec<TokenRow>,
}

/// A named token. Absent values are null, never left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenRow {
    /// What its owner calls it.
    pub name: String,
    /// The profile that it is bound to.
    pub profile: Option<String>,
    /// When it was made, in UTC.
    pub created_at: String,
    /// From when on it opens nothing, in UTC.
    pub expires_at: Option<String>,
    /// Whether that is so now.
    pub expired: bool,
}
