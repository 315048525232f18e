//! Who wrote a piece of configuration.
//!
//! Owns the list of authors and what each may ask for. A scope says where an entry stands and what
//! it wins over; what it may do follows from its author alone. Finding the author out is
//! `toolway-config`'s work: it does so once per entry; all other code asks this value.

use crate::ShieldMode;

/// Who wrote an entry or a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Author {
    /// The organisation, in the system directory.
    Organisation,
    /// The user at the keyboard: their own settings, and what Toolway wrote for them or they
    /// approved in the project's local settings.
    Person,
    /// The flags of this run, or the program that embeds the host.
    Invocation,
    /// An installed plugin.
    Plugin,
    /// The provider of the account's connectors.
    Provider,
    /// The repository: `.mcp.json`, and local settings that the user has not approved.
    Repository,
    /// Another user of this machine, whose file lies where a project's would.
    Stranger,
}

impl Author {
    /// Whether what this author wrote starts only after a user agreed to it.
    pub fn needs_approval(self) -> bool {
        matches!(self, Author::Repository | Author::Stranger)
    }

    /// Whether an entry of this author may name the user's secrets: `${keychain:…}`, `${file:…}`,
    /// `${cmd:…}`.
    pub fn may_name_secrets(self) -> bool {
        self == Author::Person
    }

    /// Whether this author came with files of its own, and so has no business with the user's.
    pub fn brings_files(self) -> bool {
        matches!(
            self,
            Author::Plugin | Author::Provider | Author::Repository | Author::Stranger
        )
    }

    /// Whether an entry of this author may use the identity of this machine.
    pub fn may_use_machine_identity(self) -> bool {
        matches!(self, Author::Person | Author::Organisation)
    }

    /// Whether an entry of this author may have a login made that is less safe than others. What
    /// came with something else can only make the user's logins stricter.
    pub fn may_weaken_logins(self) -> bool {
        matches!(
            self,
            Author::Person | Author::Organisation | Author::Invocation
        )
    }

    /// Whether an entry of this author reads every variable of the environment, or only those that
    /// a user allowed.
    pub fn reads_any_variable(self) -> bool {
        !self.needs_approval()
    }

    /// Whether a process of this author's entry gets the user's settings of the network:
    /// certificates, proxies and package registries, without credentials.
    pub fn has_the_persons_network(self) -> bool {
        self == Author::Person
    }

    /// How a process of this author's entry is shielded: by the entry's own word, the user's
    /// (`TOOLWAY_SHIELD`), and what is usual. What came with a repository or a plugin is shielded
    /// unless the user says otherwise, and its own entry can only make that stricter. Nothing
    /// weakens a user's `required`.
    pub fn shield(self, entry: Option<ShieldMode>, person: Option<ShieldMode>) -> ShieldMode {
        let foreign = matches!(self, Author::Plugin | Author::Repository | Author::Stranger);
        match (entry, person) {
            (_, Some(ShieldMode::Required)) => ShieldMode::Required,
            (entry, person) if foreign => {
                let least = person.unwrap_or(ShieldMode::BestEffort);
                entry.map_or(least, |entry| entry.max(least))
            }
            (Some(entry), _) => entry,
            (None, person) => person.unwrap_or(ShieldMode::Off),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ShieldMode::{BestEffort, Off, Required};

    #[test]
    fn sec_54_what_came_with_a_repository_can_only_strengthen_its_shield() {
        for author in [Author::Plugin, Author::Repository, Author::Stranger] {
            for (entry, person, expected) in [
                (None, None, BestEffort),
                (Some(Off), None, BestEffort),
                (Some(Required), None, Required),
                (Some(Off), Some(BestEffort), BestEffort),
                (Some(Off), Some(Required), Required),
                (Some(Required), Some(Off), Required),
                // The user's own word, for this machine.
                (None, Some(Off), Off),
                (Some(Off), Some(Off), Off),
            ] {
                let shield = author.shield(entry, person);
                assert_eq!(shield, expected, "{author:?} {entry:?} {person:?}");
            }
        }
    }

    #[test]
    fn a_persons_own_entry_has_the_shield_that_it_asks_for() {
        for (entry, person, expected) in [
            (None, None, Off),
            (None, Some(BestEffort), BestEffort),
            (Some(Off), Some(BestEffort), Off),
            (Some(BestEffort), None, BestEffort),
            (Some(Off), Some(Required), Required),
        ] {
            assert_eq!(Author::Person.shield(entry, person), expected);
        }
    }
}
