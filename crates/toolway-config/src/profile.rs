//! Profiles: what a client of the gateway sees, and under which rules.
//!
//! Owns the typed form of `profiles.<name>` and which of several counts. It comes from the user's or
//! the organisation's settings only: no repository decides what a client may have. A profile narrows,
//! so one with a fault is not used at all: what could not be read may have been what narrows.
//! Reading one is `profile/read.rs`. Does not own what comes of it (`toolway`, the gateway).

mod read;

use std::collections::BTreeMap;
use std::sync::Arc;

use toolway_types::{Diagnosis, Origin, Scope, ServerName};

use crate::permission::{Permissions, ToolPatterns};

pub(crate) use read::read;

/// The keys of a profile, and what editors say about each.
pub(crate) const KEYS: [(&str, &str); 9] = [
    (
        "servers",
        "The servers that are shown, by name; all when absent.",
    ),
    (
        "tools",
        "The only tools that are offered and can be called, as in rules: `mcp__github__*`. Resources and prompts go by `mcp__github` or by their names in rules; all when absent.",
    ),
    (
        "permissions",
        "Rules beside those of your settings: `deny` and `ask`.",
    ),
    (
        "mode",
        "What becomes of a call that no rule speaks of: `client` lets it run, because the client asks its own user, `ask` asks, `bypass` lets it run unasked.",
    ),
    (
        "accounts",
        "Which of your logins is used, by server: `{\"github\": \"work\"}`.",
    ),
    (
        "results",
        "`raw` gives results as the servers sent them, `bounded` as a model can take them in.",
    ),
    (
        "toolSearch",
        "`true` keeps tools out of the list until a search finds them.",
    ),
    (
        "names",
        "What tools are called: `short` is `<server>__<tool>`, `mcp` is `mcp__<server>__<tool>`, `own` their own names where none collide.",
    ),
    (
        "readOnly",
        "`true` offers only tools that say of themselves that they only read.",
    ),
];

/// What a client sees and may do. The default narrows nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Where it stands.
    pub origin: Origin,
    /// The servers that are shown; all when absent.
    pub servers: Option<Vec<ServerName>>,
    /// The only tools that are offered and can be called; all when absent.
    pub tools: Option<ToolPatterns>,
    /// Rules that deny and ask, beside those of the settings.
    pub permissions: Permissions,
    /// What becomes of a call that no rule speaks of.
    pub mode: ProfileMode,
    /// The user's word for the account whose login is used, by server.
    pub accounts: BTreeMap<ServerName, String>,
    /// What is made of results.
    pub results: ResultForm,
    /// Whether tools stay out of the list until a search finds them.
    pub tool_search: bool,
    /// What tools are called.
    pub names: NameForm,
    /// Whether only tools are offered that say of themselves that they only read.
    pub read_only: bool,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            origin: Origin::Program,
            servers: None,
            tools: None,
            permissions: Permissions::empty(),
            mode: ProfileMode::default(),
            accounts: BTreeMap::new(),
            results: ResultForm::default(),
            tool_search: false,
            names: NameForm::default(),
            read_only: false,
        }
    }
}

/// A choice among a few words of a settings file or a flag.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum $name {
            $($(#[$each])* $variant),+
        }

        impl $name {
            /// Every one, the default first.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The word in settings and flags.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word),+
                }
            }

            /// The one of this word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == word)
            }
        }
    };
}

words! {
    /// What becomes of a call that no rule speaks of. Rules, hooks, changed tools and policy hold in
    /// every mode.
    ProfileMode {
        /// It runs: the client is a host that asks its own user.
        #[default]
        Client = "client",
        /// The client, or else the owner, is asked.
        Ask = "ask",
        /// It runs, and nobody has to ask anybody. Counts as `ask` where bypass is forbidden.
        Bypass = "bypass",
    }
}

words! {
    /// What is made of results.
    ResultForm {
        /// They are given as the server sent them.
        #[default]
        Raw = "raw",
        /// They are cut and cleaned as for a model.
        Bounded = "bounded",
    }
}

words! {
    /// What tools are called where several servers are offered as one.
    NameForm {
        /// `<server>__<tool>`
        #[default]
        Short = "short",
        /// `mcp__<server>__<tool>`
        Mcp = "mcp",
        /// The tool's own name, where it does not collide.
        Own = "own",
    }
}

/// Why there is no such profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoProfile {
    /// No settings have it.
    #[error("no profile is called `{name}`")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The one that was probably meant.
        meant: Option<String>,
    },
    /// It cannot be used as it is written.
    #[error("the profile `{name}` cannot be used: {}", .fault.message)]
    Faulty {
        /// What was asked for.
        name: String,
        /// The first thing that is wrong with it.
        fault: Box<Diagnosis>,
    },
}

/// The profiles of one file, or of all of them: each to be used, or the first thing that is wrong
/// with it.
pub(crate) type ReadProfiles = BTreeMap<String, Result<Arc<Profile>, Diagnosis>>;

/// What one file says under `profiles`; an error where it is no object.
pub(crate) type FileProfiles = Result<ReadProfiles, Diagnosis>;

/// The profiles of all files. The one of the highest precedence counts as a whole, faulty or not; a
/// file in which none can be told apart leaves none of those below it.
pub(crate) fn merged<'a>(files: impl Iterator<Item = (Scope, &'a FileProfiles)>) -> ReadProfiles {
    let mut files: Vec<_> = files.collect();
    files.sort_by_key(|(scope, _)| *scope);
    let mut all = ReadProfiles::new();
    for (_, profiles) in files {
        match profiles {
            Ok(profiles) => all.extend(profiles.clone()),
            Err(fault) => all
                .values_mut()
                .for_each(|profile| *profile = Err(fault.clone())),
        }
    }
    all
}
