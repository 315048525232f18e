//! What modules are made of: languages, and tools as their servers describe them.

use serde_json::Value;

/// The version that stands in the head of modules.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A language that modules are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// TypeScript, for the package `toolway`.
    TypeScript,
    /// Python, for the package `toolway`.
    Python,
    /// Rust, for the crate `toolway`.
    Rust,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::TypeScript, Self::Python, Self::Rust];

    /// The word for it on a command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::TypeScript => "typescript",
            Self::Python => "python",
            Self::Rust => "rust",
        }
    }

    /// How the names of its files end.
    pub fn extension(self) -> &'static str {
        match self {
            Self::TypeScript => "ts",
            Self::Python => "py",
            Self::Rust => "rs",
        }
    }

    /// The file that leads to the modules beside it.
    pub fn index_name(self) -> &'static str {
        match self {
            Self::TypeScript => "index.ts",
            Self::Python => "__init__.py",
            Self::Rust => "mod.rs",
        }
    }

    /// What a comment line begins with.
    pub(crate) fn comment(self) -> &'static str {
        match self {
            Self::TypeScript | Self::Rust => "//",
            Self::Python => "#",
        }
    }
}

/// A tool, as its server describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// Its own name.
    pub name: String,
    /// What its server says of it.
    pub description: String,
    /// What it takes.
    pub input: Value,
    /// What it gives, where the server says so.
    pub output: Option<Value>,
}

/// What a module is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTools {
    /// The server's name.
    pub server: String,
    /// Its tools, in any order.
    pub tools: Vec<ToolDefinition>,
}
