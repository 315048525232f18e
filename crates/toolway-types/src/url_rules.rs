//! The organisation's lists of addresses, as a value that travels with a definition.
//!
//! Owns what the lists say about an address that shows only later: where a server redirects to,
//! where it wants messages posted, what its name leads to. A denial is read widely, a permission
//! narrowly.
//! Does not own: where lists come from and who is held against which (`toolway-config`), or
//! asking before a request is sent (`toolway-transport`, `toolway-auth`).

mod host;
mod path;
mod pattern;
mod reading;

use std::net::IpAddr;

use url::Url;

pub use path::forms as path_forms;
pub use pattern::UrlPattern;
pub use reading::PatternReading;

/// Every list that an address is held against.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UrlRules {
    /// Addresses that one of these has are denied.
    pub denied: Vec<UrlList>,
    /// Addresses that one of these does not have are left out.
    pub allowed: Vec<UrlList>,
}

/// Some patterns of one list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlList {
    /// The patterns.
    pub patterns: Vec<UrlPattern>,
    /// Why an address is refused by them; it completes the sentence "it is …".
    pub reason: String,
}

impl UrlList {
    fn has(&self, url: &Url, reading: PatternReading) -> bool {
        self.patterns
            .iter()
            .any(|pattern| pattern.matches(url, reading))
    }
}

impl UrlRules {
    /// Whether a server's own requests may go there; the reason when not.
    pub fn admits(&self, url: &Url) -> Result<(), &str> {
        self.denies(url)?;
        let without = self
            .allowed
            .iter()
            .find(|list| !list.has(url, PatternReading::Narrow));
        match without {
            Some(list) => Err(&list.reason),
            None => Ok(()),
        }
    }

    /// The reason when an address is denied.
    pub fn denies(&self, url: &Url) -> Result<(), &str> {
        match self
            .denied
            .iter()
            .find(|list| list.has(url, PatternReading::Wide))
        {
            Some(list) => Err(&list.reason),
            None => Ok(()),
        }
    }

    /// The reason when what the name in a URL leads to is denied.
    pub fn denies_at(&self, url: &Url, address: IpAddr) -> Result<(), &str> {
        let mut there = url.clone();
        match there.set_ip_host(address) {
            Ok(()) => self.denies(&there),
            // Only an address without a host has none to replace.
            Err(()) => Ok(()),
        }
    }

    /// Whether a denial could speak of what a name leads to, so that it is worth asking.
    pub fn speak_of_addresses(&self) -> bool {
        let patterns = self.denied.iter().flat_map(|list| &list.patterns);
        patterns.into_iter().any(UrlPattern::speaks_of_addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(pattern: &str, reason: &str) -> UrlList {
        UrlList {
            patterns: vec![UrlPattern::parse(pattern).unwrap()],
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn sec_53_a_name_that_leads_to_a_denied_address_is_denied() {
        let url = Url::parse("https://inside.example:8443/mcp").unwrap();
        let rules = UrlRules {
            denied: vec![list("*://localhost:*/*", "denied")],
            allowed: Vec::new(),
        };
        assert!(rules.speak_of_addresses());
        assert_eq!(rules.admits(&url), Ok(()));
        for address in [
            "127.0.0.1",
            "127.0.1.1",
            "::1",
            "0.0.0.0",
            "::ffff:127.0.0.1",
        ] {
            let address = address.parse().unwrap();
            assert_eq!(rules.denies_at(&url, address), Err("denied"), "{address}");
        }
        assert_eq!(rules.denies_at(&url, "10.0.0.1".parse().unwrap()), Ok(()));
        let by_name = UrlRules {
            denied: vec![list("https://evil.example/*", "denied")],
            allowed: Vec::new(),
        };
        assert!(!by_name.speak_of_addresses());
    }

    #[test]
    fn every_allow_list_has_its_say_and_deny_beats_allow() {
        let rules = UrlRules {
            denied: vec![list("https://a.example/x/*", "denied")],
            allowed: vec![list("https://a.example/*", "one"), list("*/*", "two")],
        };
        let ask = |url: &str| rules.admits(&Url::parse(url).unwrap()).err();
        assert_eq!(ask("https://a.example/y"), None);
        assert_eq!(ask("https://a.example/x/y"), Some("denied"));
        assert_eq!(ask("https://b.example/y"), Some("one"));
    }
}
