//! Which tool of a catalogue is meant.
//!
//! Owns the order in which a name is tried: exactly, then as one that tells a tool from all others,
//! then loosely. Only the servers that can have such a tool are asked (`neighbours.rs`).

use toolway_types::ToolKey;
use toolway_types::name::ends_like_suffix;

use super::{Catalog, CatalogTool, LeftOutTool, ServerView, names};
use crate::call::{CallError, KeptOutBy, ToolTarget};

impl Catalog {
    /// Finds a tool: by its exposed name, by the plain `mcp__server__tool` spelling where only
    /// one tool answers to it, or by server and tool, original, normalised or its alias.
    pub fn find(&self, target: &ToolTarget) -> Result<&CatalogTool, CallError> {
        let exact = match target {
            ToolTarget::Exposed(name) => self.named(name),
            ToolTarget::Key(key) => self.keyed(key),
        };
        match exact.or_else(|| self.told_apart(target)) {
            Some(tool) => Ok(tool),
            None => self.find_loosely(target),
        }
    }

    /// Whether a tool is exposed under exactly this name.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.named(name).is_some()
    }

    fn named(&self, name: &str) -> Option<&CatalogTool> {
        let mut servers = self.that_may_have(name);
        let of_server = servers.find_map(|server| server.names().named(name));
        of_server.or_else(|| self.built_in().iter().find(|tool| tool.name == name))
    }

    /// The place of the server that shows a tool under this name.
    pub(super) fn place_of(&self, name: &str) -> Option<u32> {
        let mut places = self.neighbours.that_may_have(name).iter().copied();
        places.find(|place| {
            let server = self.servers.get(*place as usize);
            server.is_some_and(|server| server.names().named(name).is_some())
        })
    }

    fn that_may_have(&self, name: &str) -> impl Iterator<Item = &ServerView> {
        let places = self.neighbours.that_may_have(name).iter();
        places.filter_map(|place| self.servers.get(*place as usize))
    }

    fn keyed(&self, key: &ToolKey) -> Option<&CatalogTool> {
        let server = self.server(&key.server);
        let own = server.and_then(|server| {
            let listed = server.names().own(&key.tool);
            listed.or_else(|| server.catalog.host_only(&key.tool))
        });
        own.or_else(|| {
            let mut built_in = self.built_in().iter();
            built_in.find(|tool| tool.key == *key)
        })
        .or_else(|| server.and_then(|server| server.aliased(&key.tool)))
    }

    /// The name that tells a tool from all others is its own, whether or not it is shown so.
    fn told_apart(&self, target: &ToolTarget) -> Option<&CatalogTool> {
        let ToolTarget::Exposed(name) = target else {
            return None;
        };
        if !ends_like_suffix(name) {
            return None;
        }
        let mut tools = self.that_may_have(name).flat_map(ServerView::tools);
        tools.find(|tool| tool.key.exposed_apart() == *name)
    }

    fn find_loosely(&self, target: &ToolTarget) -> Result<&CatalogTool, CallError> {
        let kept_out = self.kept_out(target);
        let unknown = || CallError::Unknown {
            target: target.clone(),
            suggestions: names::suggest(self.tools().chain(self.built_in()), target),
        };
        let refusal = |tool: &LeftOutTool| match tool.by {
            KeptOutBy::View => unknown(),
            _ => tool.error(),
        };
        // What is called exactly this is meant, even if it is not to be had.
        if let (ToolTarget::Key(_), Some(tool)) = (target, kept_out) {
            return Err(refusal(tool));
        }
        let spelled = target.spelled();
        let alike = self.that_may_have(&spelled);
        let matching: Vec<&CatalogTool> = alike
            .flat_map(|server| server.names().spelled(&spelled))
            .filter(|tool| {
                let alias = tool.alias.as_ref();
                names::answers(&tool.key, target)
                    || alias.is_some_and(|alias| names::answers(alias, target))
            })
            .collect();
        match names::closest(&matching, target) {
            Some(tool) => Ok(tool),
            None if matching.is_empty() => Err(kept_out.map_or_else(unknown, refusal)),
            None => Err(CallError::Ambiguous {
                target: target.clone(),
                candidates: matching.iter().map(|tool| tool.name.clone()).collect(),
            }),
        }
    }

    /// The tool that was meant, if it is kept out.
    fn kept_out(&self, target: &ToolTarget) -> Option<&LeftOutTool> {
        let spelled = target.spelled();
        let servers = self.that_may_have(&spelled);
        let of_servers = servers.flat_map(|server| server.names().left_out.iter());
        let mut all = self.host.left_out.iter().chain(of_servers);
        all.find(|tool| match target {
            ToolTarget::Key(key) => tool.key == *key,
            ToolTarget::Exposed(name) => {
                tool.key.exposed_apart() == *name || tool.key.spelled() == spelled
            }
        })
    }
}

impl ServerView {
    /// The tool that goes by this alias. A tool's own name is its own, even that of one that is
    /// kept out (SEC-31).
    fn aliased(&self, name: &str) -> Option<&CatalogTool> {
        let is_taken = self
            .names()
            .left_out
            .binary_search_by(|other| other.key.tool.as_str().cmp(name))
            .is_ok();
        let is_meant = |tool: &&CatalogTool| {
            let alias = tool.alias.as_ref();
            alias.is_some_and(|alias| alias.tool == name)
        };
        let mut tools = self.tools().iter().filter(|_| !is_taken);
        tools.find(is_meant)
    }
}
