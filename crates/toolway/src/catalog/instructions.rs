//! What servers say to models about themselves: one section per server, and what changed.
//!
//! Owns the cleaning and the cut of `instructions`, the frame that tells whose words they are, and
//! the memory by which a front-end sends only what is new. Does not own where a front-end puts
//! them.
//!
//! A section is quoted line by line: whatever a server writes, a heading that names another server
//! included, stays inside its own section (SEC-32).

use std::fmt;
use std::sync::Arc;

use toolway_types::{ServerName, limits, text};

/// The longest instructions of one server, in characters.
pub const MAX_INSTRUCTIONS: usize = limits::offers::INSTRUCTIONS;

/// How many servers that are gone are remembered. A caller that asks about a time before the oldest
/// of them is told everything.
const MAX_GONE: usize = 1_024;

/// What one server says, cleaned and cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Whose words they are.
    pub server: ServerName,
    /// The words.
    pub text: Arc<str>,
    /// The revision since which the server has had instructions without a break.
    pub since: u64,
    /// The revision that brought this text.
    pub changed: u64,
}

/// As markdown: a heading with the server's name, and its words quoted.
impl fmt::Display for Section {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "## {}", self.server)?;
        for line in self.text.lines() {
            let line = line.trim_end();
            if line.is_empty() {
                formatter.write_str("\n>")?;
            } else {
                write!(formatter, "\n> {line}")?;
            }
        }
        Ok(())
    }
}

/// The sections of all connected servers at one revision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instructions {
    /// One per server that has any to say, by name.
    pub sections: Arc<[Section]>,
    revision: u64,
    /// Who had a section and has none, and since when; the latest last.
    gone: Arc<[(ServerName, u64)]>,
    /// What was gone up to here is forgotten.
    horizon: u64,
}

/// What changed in the sections since a revision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstructionsDelta<'a> {
    /// The revision this leads to: ask with it next time.
    pub revision: u64,
    /// Whether this is everything there is, to be put in place of whatever was known.
    pub complete: bool,
    /// Sections of servers that had none.
    pub new: Vec<&'a Section>,
    /// Sections with another text.
    pub changed: Vec<&'a Section>,
    /// Servers that have none any more.
    pub gone: Vec<&'a ServerName>,
}

impl InstructionsDelta<'_> {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        !self.complete && self.new.is_empty() && self.changed.is_empty() && self.gone.is_empty()
    }
}

/// As markdown: the sections, then who is gone.
impl fmt::Display for InstructionsDelta<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for section in self.new.iter().chain(&self.changed) {
            write!(formatter, "{between}{section}")?;
            between = "\n\n";
        }
        for server in &self.gone {
            write!(formatter, "{between}## {server}\n\n(no longer available)")?;
            between = "\n\n";
        }
        Ok(())
    }
}

impl fmt::Display for Instructions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.all().fmt(formatter)
    }
}

impl Instructions {
    /// The section of one server.
    pub fn of(&self, server: &ServerName) -> Option<&Section> {
        let found = self
            .sections
            .binary_search_by(|section| section.server.cmp(server));
        found.ok().map(|index| &self.sections[index])
    }

    /// What changed since a revision; everything, where that cannot be told.
    pub fn since(&self, revision: u64) -> InstructionsDelta<'_> {
        if revision == 0 || revision < self.horizon || revision > self.revision {
            return self.all();
        }
        let mut delta = InstructionsDelta {
            revision: self.revision,
            ..InstructionsDelta::default()
        };
        for section in self.sections.iter() {
            if section.since > revision {
                delta.new.push(section);
            } else if section.changed > revision {
                delta.changed.push(section);
            }
        }
        let gone = self.gone.iter().filter(|(_, since)| *since > revision);
        delta.gone = gone.map(|(server, _)| server).collect();
        delta
    }

    fn all(&self) -> InstructionsDelta<'_> {
        InstructionsDelta {
            revision: self.revision,
            complete: true,
            new: self.sections.iter().collect(),
            ..InstructionsDelta::default()
        }
    }

    /// The same sections at another revision.
    pub(super) fn unchanged(&self, revision: u64) -> Self {
        Self {
            revision,
            ..self.clone()
        }
    }

    /// The sections of the next revision: what each server says now, in the order of the servers.
    pub(super) fn next<'a>(
        &self,
        revision: u64,
        said: impl Iterator<Item = (&'a ServerName, &'a Arc<str>)>,
    ) -> Self {
        let mut known = self.sections.iter().peekable();
        let mut left = Vec::new();
        let mut sections: Vec<Section> = Vec::new();
        for (server, text) in said {
            while let Some(section) = known.next_if(|section| section.server < *server) {
                left.push((section.server.clone(), revision));
            }
            let before = known.next_if(|section| section.server == *server);
            let same = before.filter(|section| section.text == *text);
            sections.push(Section {
                server: server.clone(),
                text: Arc::clone(same.map_or(text, |section| &section.text)),
                since: before.map_or(revision, |section| section.since),
                changed: same.map_or(revision, |section| section.changed),
            });
        }
        left.extend(known.map(|section| (section.server.clone(), revision)));
        let is_back = |server: &ServerName| {
            let found = sections.binary_search_by(|section| section.server.cmp(server));
            found.is_ok()
        };
        let gone = self.gone.iter().filter(|(server, _)| !is_back(server));
        let mut gone: Vec<(ServerName, u64)> = gone.cloned().chain(left).collect();
        let excess = gone.len().saturating_sub(MAX_GONE);
        let forgotten = gone.drain(..excess).map(|(_, since)| since);
        let horizon = forgotten.fold(self.horizon, u64::max);
        Self {
            sections: sections.into(),
            revision,
            gone: gone.into(),
            horizon,
        }
    }
}

/// What a server says, cleaned and cut, if that is anything.
pub(super) fn cleaned(text: &str) -> Option<String> {
    let text = text::clean(text);
    let text = text.trim();
    (!text.is_empty()).then(|| text::cut(text, MAX_INSTRUCTIONS).into_owned())
}
