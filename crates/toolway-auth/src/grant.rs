//! The grants: the ways to a login, and the facts about each.
//!
//! Owns what a grant is called, whether it needs a user, and how its login is renewed or made once
//! more. What asks for these facts matches no grant by itself, so a new one is told here.
//! Does not own: the steps of a grant (`login.rs`, `voucher.rs`).

use serde::{Deserialize, Serialize};
use toolway_types::VoucherKind;

use crate::token::TokenGrant;

/// By which grant a login was made, which is how it can be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoginGrant {
    /// In a browser, with a code.
    Code,
    /// On another device.
    Device,
    /// With client credentials.
    ClientCredentials,
    /// With an assertion of the identity provider.
    CrossApp,
    /// With the word of somebody else whom the server's entry names.
    #[serde(untagged)]
    Vouched(VoucherKind),
}

impl LoginGrant {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Device => "device",
            Self::ClientCredentials => "client-credentials",
            Self::CrossApp => "cross-app",
            Self::Vouched(kind) => kind.as_str(),
        }
    }

    /// Whether a user takes part, who may be absent when it is to be renewed: then a refresh token
    /// has to do.
    pub fn needs_user(self) -> bool {
        match self {
            Self::Code | Self::Device => true,
            Self::ClientCredentials | Self::CrossApp | Self::Vouched(_) => false,
        }
    }

    /// How it is begun, where that is a choice of the user or of the client. The others follow from
    /// the server's entry.
    pub fn method(self) -> Option<LoginMethod> {
        match self {
            Self::Code => Some(LoginMethod::Browser),
            Self::Device => Some(LoginMethod::Device),
            Self::ClientCredentials => Some(LoginMethod::ClientCredentials),
            Self::CrossApp | Self::Vouched(_) => None,
        }
    }

    /// How it is made once more by the client alone.
    pub fn without_user(self) -> Option<LoginMethod> {
        self.method().filter(|_| !self.needs_user())
    }

    /// What gets tokens once more where the client alone is enough.
    pub fn repeated(self) -> Option<TokenGrant<'static>> {
        (self == Self::ClientCredentials).then(TokenGrant::client_credentials)
    }
}

/// How to log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LoginMethod {
    /// A browser on this machine is opened, and comes back to it.
    #[default]
    Browser,
    /// The user opens the page wherever they like, and pastes the address it ended at.
    Paste,
    /// The user types a code on another device (RFC 8628).
    Device,
    /// No user: the client logs in for itself.
    ClientCredentials,
}

impl LoginMethod {
    /// The grant that it leads to.
    pub fn grant(self) -> LoginGrant {
        match self {
            Self::Browser | Self::Paste => LoginGrant::Code,
            Self::Device => LoginGrant::Device,
            Self::ClientCredentials => LoginGrant::ClientCredentials,
        }
    }

    /// The flag of `toolway login` that chooses it, after a space; none for the usual one.
    pub fn flag(self) -> &'static str {
        match self {
            Self::Browser => "",
            Self::Paste => " --no-browser",
            Self::Device => " --device",
            Self::ClientCredentials => " --client-credentials",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_stored_with_the_word_of_its_grant() {
        let mut grants = vec![LoginGrant::CrossApp];
        grants.extend(VoucherKind::ALL.map(LoginGrant::Vouched));
        grants.extend([LoginMethod::Browser, LoginMethod::Device].map(LoginMethod::grant));
        grants.push(LoginMethod::ClientCredentials.grant());
        for grant in grants {
            let stored = serde_json::to_value(grant).expect("written");
            assert_eq!(stored, grant.as_str());
            let read: LoginGrant = serde_json::from_value(stored).expect("read");
            assert_eq!(read, grant);
        }
        assert!(serde_json::from_value::<LoginGrant>("other".into()).is_err());
    }
}
