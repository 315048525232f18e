//! What an allow rule can mean in another spelling than its own.
//!
//! Owns the second reading of a rule that permits: `mcp__my_server__get_item` for `get.item` of
//! `my server`. It counts only while it can mean one thing: one configured server, and one tool.

use toolway_types::{ServerName, ToolKey, name, text};

use super::super::glob::Glob;
use super::super::spelling::PREFIX;
use super::{PermissionRule, RuleIdentity};

/// The one server, and tools of it, that can be meant.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MeantName {
    server: ServerName,
    /// Against tools' names as they are and normalised; none for all of the server.
    tool: Option<Glob>,
}

impl PermissionRule {
    /// Finds out which of these servers it can mean, were it written in another spelling.
    pub(in crate::permission) fn aim(&mut self, servers: &[&ServerName]) {
        let mut readings = self.readings(servers);
        self.meant = match (readings.pop(), readings.is_empty()) {
            (Some(only), true) => Some(only),
            _ => None,
        };
    }

    /// What it can mean, of each of these servers at most one thing. A name with stars is read as
    /// it stands.
    fn readings(&self, servers: &[&ServerName]) -> Vec<MeantName> {
        let Some(rest) = self.name.strip_prefix(PREFIX) else {
            return Vec::new();
        };
        let read = |server: &&ServerName| {
            let forms = [server.to_string(), server.normalized()];
            let tool = forms.iter().find_map(|form| {
                let behind = rest.strip_prefix(form.as_str())?;
                // Where the border is unclear, a name without a tool is another server's tool.
                let is_whole = behind.is_empty() && !form.contains("__");
                let tool = behind.strip_prefix("__").filter(|tool| !tool.is_empty());
                is_whole.then_some(None).or(tool.map(Some))
            })?;
            Some(MeantName {
                server: ServerName::clone(server),
                tool: tool.map(Glob::new),
            })
        };
        servers.iter().filter_map(read).collect()
    }

    /// The servers among these that it can mean, where it is not clear which.
    pub(in crate::permission) fn unclear<'s>(
        &self,
        servers: &[&'s ServerName],
    ) -> Vec<&'s ServerName> {
        let mut read = servers.to_vec();
        read.retain(|server| !self.readings(&[*server]).is_empty());
        if read.len() < 2 {
            read.clear();
        }
        read
    }

    /// Whether it counts for this server though others could be meant: it is written as that one
    /// is, and as none of the others.
    pub(in crate::permission) fn is_exactly(&self, server: &ServerName) -> bool {
        match &self.identity {
            RuleIdentity::Given { server: glob, .. } => glob.literal() == Some(server.as_str()),
            RuleIdentity::Exposed(name) => {
                let rest = name
                    .strip_prefix(PREFIX)
                    .and_then(|rest| rest.split_once("__"));
                rest.is_some_and(|(own, _)| own == server.as_str())
            }
            RuleIdentity::Everything | RuleIdentity::Bare(_) => false,
        }
    }

    /// Whether this tool is the only one that it can mean. `alone` says that no other tool that is
    /// known is spelled like it.
    pub(in crate::permission) fn means(&self, key: &ToolKey, alone: bool) -> bool {
        let Some(MeantName { server, tool }) = &self.meant else {
            return false;
        };
        *server == key.server
            && tool.as_ref().is_none_or(|glob| {
                let is_named = if glob.is_everything() {
                    true
                } else {
                    alone && glob.matches(&name::normalize(&key.tool))
                };
                (is_named || glob.matches(&key.tool))
                    && (glob.is_literal() || !key.tool.contains(text::is_hidden))
            })
    }
}
