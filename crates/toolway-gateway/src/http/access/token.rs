//! One token, for whoever runs this program.
//!
//! Owns comparing it in constant time (SEC-27). Where it lies is not known here.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{AccessCheck, AccessRefusal, Authenticator, Identity};

/// Takes one token. It is kept as a digest.
pub struct OwnerToken {
    digest: [u8; 32],
    identity: Arc<Identity>,
}

impl OwnerToken {
    /// Takes this token. What people are shown of its bearer is `shown`.
    pub fn new(token: &str, shown: &str) -> Self {
        Self {
            digest: Sha256::digest(token.as_bytes()).into(),
            identity: Arc::new(Identity::owner(shown)),
        }
    }

    fn takes(&self, token: &str) -> bool {
        // Digests have one length, and which bytes of them differ says nothing of the token.
        let shown: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        shown.ct_eq(&self.digest).into()
    }
}

impl Authenticator for OwnerToken {
    fn check<'a>(&'a self, token: Option<&'a str>) -> AccessCheck<'a> {
        let checked = match token {
            None => Err(AccessRefusal::no_token()),
            Some(token) if self.takes(token) => Ok(Arc::clone(&self.identity)),
            Some(_) => Err(AccessRefusal::unknown_token()),
        };
        Box::pin(std::future::ready(checked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_whole_token_is_taken() {
        let one = OwnerToken::new("right", "test");
        assert!(one.check(Some("right")).await.unwrap().is_owner);
        for wrong in ["", "righ", "rightt", "RIGHT"] {
            let refused = one.check(Some(wrong)).await.unwrap_err();
            assert_eq!(refused.status, 401, "{wrong}");
        }
        assert_eq!(one.check(None).await, Err(AccessRefusal::no_token()));
    }
}
