//! Random values: states, verifiers, nonces, paths.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The system gave no random bytes: nothing may be made up instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gave no random bytes, and nothing can take their place")]
pub struct NoRandom;

/// That many random bytes, as base64url.
pub(crate) fn word(bytes: usize) -> Result<String, NoRandom> {
    let mut buffer = vec![0; bytes];
    getrandom::fill(&mut buffer).map_err(|_| NoRandom)?;
    Ok(URL_SAFE_NO_PAD.encode(buffer))
}
