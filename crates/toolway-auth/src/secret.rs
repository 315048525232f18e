//! Secrets on their way into the vault and out of it.
//!
//! Owns the only serialisation of [`Secret`], which has none of its own on purpose: a field says
//! `#[serde(with = "crate::secret")]` (or `crate::secret::option`), and so says that whatever it
//! is part of is written to the vault and to nothing else.

use serde::{Deserialize, Deserializer, Serializer};
use toolway_types::Secret;

/// Writes the value itself.
pub fn serialize<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}

/// Reads a string.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
    String::deserialize(deserializer).map(Secret::new)
}

/// The same for a secret that may be absent.
pub mod option {
    use serde::{Deserialize, Deserializer, Serializer};
    use toolway_types::Secret;

    /// Writes the value itself, or `null`.
    pub fn serialize<S: Serializer>(
        secret: &Option<Secret>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match secret {
            Some(secret) => serializer.serialize_some(secret.expose()),
            None => serializer.serialize_none(),
        }
    }

    /// Reads a string or `null`.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Secret>, D::Error> {
        let value = Option::<String>::deserialize(deserializer)?;
        Ok(value.map(Secret::new))
    }
}
