//! What a server offers beside its tools, as rules, hooks and the audit know it.
//!
//! Owns the names. Reading a resource, rendering a prompt, asking for values or for a list is
//! judged as a call of a tool of that server, so that a rule or a matcher about the server speaks
//! of all that it offers (SEC-59), and `mcp__docs__ReadMcpResource(uri:file:///public/*)` of one
//! thing. The order of judging is `dispatch/offered.rs`; who asks is the host, or a tool of its
//! own.

use serde_json::{Map, Value, json};
use toolway_config::Permissions;
use toolway_config::permission::{CallSubject, PermissionDecision};
use toolway_types::{ServerName, ToolKey};

use crate::builtin::{LIST_RESOURCES, READ_RESOURCE};
use crate::call::RefusedBy;
use crate::catalog::{Catalog, CatalogTool, ToolHints};
use crate::pins::{Definition, Place};

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
}

impl Offering {
    /// Every one.
    pub const ALL: [Offering; 7] = [
        Offering::ReadResource,
        Offering::ListResources,
        Offering::GetPrompt,
        Offering::ListPrompts,
        Offering::Complete,
        Offering::ListSkills,
        Offering::ReadInstructions,
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
        match rules.decide(CallSubject::tool(&key).shown_as(self.name())) {
            PermissionDecision::Deny { rule } => Some(RefusedBy::Rule {
                rule: rule.rule.clone(),
                origin: rule.origin.clone(),
            }),
            PermissionDecision::Unreadable { origin } => Some(RefusedBy::Unreadable { origin }),
            PermissionDecision::Ask { .. } | PermissionDecision::Allow { .. } => None,
        }
    }

    /// Whether it takes nobody's yes: nothing is sent that the server did not write itself. A rule
    /// or a hook that wants somebody asked still counts.
    pub(crate) fn is_free(self, ask: &Ask<'_>, catalog: &Catalog) -> bool {
        match self {
            // Any other address carries words to the server, as the arguments of a tool do.
            Offering::ReadResource => {
                let uri = ask.text("uri").unwrap_or_default();
                catalog.resource(ask.server, uri).is_some()
            }
            Offering::GetPrompt | Offering::Complete => false,
            Offering::ListResources
            | Offering::ListPrompts
            | Offering::ListSkills
            | Offering::ReadInstructions => true,
        }
    }

    /// What it takes beside the server.
    fn properties(self) -> Value {
        let text = json!({ "type": "string" });
        let object = json!({ "type": "object" });
        match self {
            Offering::ReadResource | Offering::ListSkills => json!({ "uri": text }),
            Offering::GetPrompt => json!({ "name": text, "arguments": object }),
            Offering::Complete => json!({ "ref": object, "argument": object, "context": object }),
            Offering::ListResources | Offering::ListPrompts | Offering::ReadInstructions => {
                json!({})
            }
        }
    }
}

/// One thing asked of a server beside calls.
pub(crate) struct Ask<'a> {
    pub(crate) offering: Offering,
    pub(crate) server: &'a ServerName,
    /// What stands in `server` of the arguments: its name, or as somebody spelled it.
    pub(crate) spelled: &'a str,
    /// What is asked, `server` among it.
    pub(crate) arguments: &'a Map<String, Value>,
    pub(crate) leave: Leave,
}

/// Whether somebody's yes is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// It is judged like any call.
    Wanted,
    /// Whoever asks was permitted itself; a rule or a hook may want a person asked all the same.
    Given,
}

/// How a tool that stands for an offering is judged.
#[derive(Debug)]
pub(crate) struct Offered {
    /// Whether it may run unless a rule or a hook has something against it.
    pub(crate) free: bool,
    /// What its definition is remembered as, where it has one that can change.
    pub(crate) pin: Option<Pinned>,
}

/// What is remembered of an offering's definition (SEC-33).
#[derive(Debug)]
pub(crate) enum Pinned {
    /// The prompt of this name.
    Prompt(String),
    /// All templates of the server together: what its unlisted addresses mean.
    Templates,
}

impl Pinned {
    pub(crate) fn place(&self, server: &ServerName, definition: Option<&str>) -> Place {
        let (kind, name) = self.parts();
        Place::beside(server, definition, kind, name)
    }

    /// What it is called in the file of pins.
    pub(crate) fn label(&self) -> String {
        let (kind, name) = self.parts();
        format!("{kind} {name}")
    }

    fn parts(&self) -> (&'static str, &str) {
        match self {
            Pinned::Prompt(name) => ("prompt", name),
            Pinned::Templates => ("templates", ""),
        }
    }
}

impl Ask<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.arguments.get(name).and_then(Value::as_str)
    }

    /// The tool it is judged as. It takes no other server and no other prompt than these: a hook
    /// that writes arguments cannot lead it elsewhere.
    pub(crate) fn tool(&self, catalog: &Catalog) -> CatalogTool {
        let mut properties = self.offering.properties();
        properties["server"] = json!({ "enum": [self.spelled] });
        if self.offering == Offering::GetPrompt {
            properties["name"] = json!({ "enum": [self.text("name")] });
        }
        let schema = json!({
            "type": "object",
            "properties": properties,
            "required": ["server"],
            "additionalProperties": false,
        });
        let reads = ToolHints {
            read_only: Some(true),
            destructive: Some(false),
            idempotent: Some(true),
            open_world: None,
        };
        let listed = self.offering.is_free(self, catalog);
        let free = listed || self.leave == Leave::Given;
        let (pin, definition) = match self.pinned(catalog, listed) {
            Some((pin, definition)) => (Some(pin), Some(definition)),
            None => (None, None),
        };
        CatalogTool::offered(
            self.offering.of(self.server),
            &schema,
            reads,
            Offered { free, pin },
            definition,
        )
    }

    /// What its definition is, where one was or will be permitted. What a resource holds may
    /// change at any time, so of those that are listed nothing is remembered.
    fn pinned(&self, catalog: &Catalog, listed: bool) -> Option<(Pinned, Definition)> {
        match self.offering {
            Offering::GetPrompt => {
                let name = self.text("name")?;
                let prompt = catalog.prompt(self.server, name)?;
                let definition = Definition::of_prompt(&prompt.received);
                Some((Pinned::Prompt(name.to_owned()), definition))
            }
            Offering::ReadResource if !listed => {
                let templates = catalog.templates_of(self.server);
                let received = templates.iter().map(|template| &*template.received);
                let definition = Definition::of_templates(received);
                // None is something to remember too: what comes later is a change.
                Some((Pinned::Templates, definition))
            }
            _ => None,
        }
    }
}
