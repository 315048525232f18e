//! What a server offers beside its tools, as rules, hooks and the audit know it.
//!
//! Owns the names. Reading a resource, rendering a prompt, asking for values or for a list is
//! judged as a call of a tool of that server, so that a rule or a matcher about the server speaks
//! of all that it offers (SEC-59), and `mcp__docs__ReadMcpResource(uri:file:///public/*)` of one
//! thing. The order of judging is `dispatch/offered.rs`; who asks is the host, or a tool of its
//! own.

use serde_json::{Value, json};
use toolway_config::permission::{CallSubject, PermissionDecision, ToolHints};
use toolway_config::{Boundaries, Permissions};
use toolway_types::{ServerName, ToolKey};

use crate::call::RefusedBy;
use crate::pins::PinPlace;

/// What is known about nearly each of them: the protocol has them change nothing.
pub(crate) const READS: ToolHints = ToolHints {
    read_only: Some(true),
    destructive: Some(false),
    idempotent: Some(true),
    open_world: None,
};

/// Something that is asked of a server beside calls of its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Offering {
    /// Reading a resource, and hearing that it changed.
    ReadResource,
    /// Being shown its resources and templates.
    ListResources,
    /// Rendering a prompt.
    GetPrompt,
    /// Being shown its prompts.
    ListPrompts,
    /// Asking for values of an argument or a variable.
    Complete,
    /// Being shown its skills.
    ListSkills,
    /// Passing on what it says to models about itself.
    ReadInstructions,
    /// A method that the protocol does not have.
    OtherMethod,
}

impl Offering {
    /// Every one.
    pub const ALL: [Offering; 8] = [
        Offering::ReadResource,
        Offering::ListResources,
        Offering::GetPrompt,
        Offering::ListPrompts,
        Offering::Complete,
        Offering::ListSkills,
        Offering::ReadInstructions,
        Offering::OtherMethod,
    ];

    /// What it is called in rules, to hooks and in the audit. No tool of a server has this name.
    pub fn name(self) -> &'static str {
        match self {
            Offering::ReadResource => READ_RESOURCE,
            Offering::ListResources => LIST_RESOURCES,
            Offering::GetPrompt => "GetMcpPrompt",
            Offering::ListPrompts => "ListMcpPrompts",
            Offering::Complete => "CompleteMcpArgument",
            Offering::ListSkills => "ListMcpSkills",
            Offering::ReadInstructions => "ReadMcpInstructions",
            Offering::OtherMethod => "CallMcpMethod",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// What rules, hooks and the audit know it by, of one server.
    pub fn of(self, server: &ServerName) -> ToolKey {
        ToolKey::new(server.clone(), self.name())
    }

    /// Who refuses all of it of one server, whatever it is asked with.
    pub(crate) fn denied(self, server: &ServerName, rules: &Permissions) -> Option<RefusedBy> {
        let key = self.of(server);
        match rules.decide(self.subject(&key)) {
            PermissionDecision::Deny { rule } => Some(RefusedBy::Rule {
                rule: rule.rule.clone(),
                origin: rule.origin.clone(),
            }),
            PermissionDecision::Unreadable { origin } => Some(RefusedBy::Unreadable { origin }),
            PermissionDecision::Ask { .. } | PermissionDecision::Allow { .. } => None,
        }
    }

    /// Whether whoever is kept to this has it of one server at all.
    pub(crate) fn is_within(self, server: &ServerName, boundaries: &Boundaries) -> bool {
        boundaries.have(self.subject(&self.of(server)))
    }

    /// What is known about it.
    pub(crate) fn hints(self) -> ToolHints {
        match self {
            // Nobody knows what it does.
            Offering::OtherMethod => ToolHints::default(),
            _ => READS,
        }
    }

    /// It as rules look at it.
    fn subject(self, key: &ToolKey) -> CallSubject<'_> {
        let named = CallSubject::tool(key).shown_as(self.name());
        named.with_hints(self.hints())
    }

    /// What it takes beside the server.
    pub(crate) fn properties(self) -> Value {
        let text = json!({ "type": "string" });
        let object = json!({ "type": "object" });
        match self {
            Offering::ReadResource | Offering::ListSkills => json!({ "uri": text }),
            Offering::GetPrompt => json!({ "name": text, "arguments": object }),
            Offering::Complete => json!({ "ref": object, "argument": object, "context": object }),
            Offering::OtherMethod => json!({ "method": text, "params": object }),
            Offering::ListResources | Offering::ListPrompts | Offering::ReadInstructions => {
                json!({})
            }
        }
    }
}

/// Whether there is permission already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PriorConsent {
    /// It is judged like any call.
    Wanted,
    /// The caller was permitted itself; a rule or a hook may want a user asked all the same.
    Given,
}

/// How a tool that stands for an offering is judged.
#[derive(Debug, Clone)]
pub(crate) struct JudgedOffering {
    /// Whether it may run unless a rule or a hook has something against it.
    pub(crate) free: bool,
    /// What its definition is remembered as, where it has one that can change.
    pub(crate) pin: Option<PinnedOffering>,
}

/// What is remembered of an offering's definition (SEC-33).
#[derive(Debug, Clone)]
pub(crate) enum PinnedOffering {
    /// The prompt of this name.
    Prompt(String),
    /// All templates of the server together: what its unlisted addresses mean.
    Templates,
}

impl PinnedOffering {
    pub(crate) fn place(&self, server: &ServerName, definition: Option<&str>) -> PinPlace {
        let (kind, name) = self.parts();
        PinPlace::beside(server, definition, kind, name)
    }

    /// What it is called in the file of pins.
    pub(crate) fn label(&self) -> String {
        let (kind, name) = self.parts();
        format!("{kind} {name}")
    }

    fn parts(&self) -> (&'static str, &str) {
        match self {
            PinnedOffering::Prompt(name) => ("prompt", name),
            PinnedOffering::Templates => ("templates", ""),
        }
    }
}

/// The name of the tool that lists resources.
pub const LIST_RESOURCES: &str = "ListMcpResources";

/// The name of the tool that reads one.
pub const READ_RESOURCE: &str = "ReadMcpResource";

/// The name of the tool that finds and loads tools.
pub const TOOL_SEARCH: &str = "ToolSearch";

/// Names that no server and no embedding program can take.
pub const RESERVED: [&str; 3] = [LIST_RESOURCES, READ_RESOURCE, TOOL_SEARCH];
