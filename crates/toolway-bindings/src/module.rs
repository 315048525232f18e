//! A whole module, and the file that leads to several.

use crate::stamp::{self, ModuleStamp};
use crate::tools::{Language, ServerTools, ToolDefinition};
use crate::{python, rust, typescript};

/// The module of a server.
pub fn module(language: Language, server: &ServerTools) -> String {
    let mut tools: Vec<&ToolDefinition> = server.tools.iter().collect();
    tools.sort_by(|one, two| one.name.cmp(&two.name));
    tools.dedup_by(|one, two| one.name == two.name);
    let body = match language {
        Language::TypeScript => typescript::module(&server.server, &tools),
        Language::Python => python::module(&server.server, &tools),
        Language::Rust => rust::module(&server.server, &tools),
    };
    let stamp = ModuleStamp::of(&server.server, &tools);
    let mut text = stamp.head(language);
    text.push_str(&body);
    text.push_str(&stamp.foot(language));
    text
}

/// The file that leads to the modules of these servers, each with the stem of its file.
pub fn index(language: Language, servers: &[(String, String)]) -> String {
    let mut servers = servers.to_vec();
    servers.sort();
    let body = match language {
        Language::TypeScript => typescript::index(&servers),
        Language::Python => python::index(&servers),
        Language::Rust => rust::index(&servers),
    };
    format!("{}{body}", stamp::index_head(language))
}
