//! What servers offer: tools, resources, templates, prompts, skills; and the lines of their logs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use toolway_rows::{
    AskedRow, InstructionsListing, InstructionsRow, LeftOutRow, LogRow, PromptArgumentRow,
    PromptRow, ResourceRow, SkillRow, TemplateRow, ToolRow,
};
use toolway_types::ServerName;
use toolway_wire::view::SkillFiles;

use crate::catalog::{
    Catalog, CatalogPrompt, CatalogResource, CatalogTemplate, CatalogTool, Instructions,
    LeftOutTool,
};
use crate::journal::JournalLine;
use crate::skills::{ListedSkill, SkillError};
use crate::supervisor::recall::RecalledServer;
use crate::template::UriTemplate;

/// A tool as a catalogue offers it: whether it is deferred is the catalogue's to say.
pub fn tool_row<'a>(catalog: &Catalog, tool: &'a CatalogTool) -> ToolRow<'a> {
    ToolRow {
        name: tool.name.as_str().into(),
        server: Cow::Borrowed(&tool.key.server),
        tool: tool.key.tool.as_str().into(),
        title: tool.title.as_deref().map(Cow::Borrowed),
        description: tool.description.as_str().into(),
        input_schema: Cow::Borrowed(&tool.input_schema),
        output_schema: tool.output_schema.as_deref().map(Cow::Borrowed),
        annotations: tool.annotations.as_deref().map(Cow::Borrowed),
        deferred: catalog.is_deferred(tool),
        signature: None,
        page: None,
    }
}

impl From<&LeftOutTool> for LeftOutRow {
    fn from(tool: &LeftOutTool) -> Self {
        Self {
            server: tool.key.server.clone(),
            tool: tool.key.tool.clone(),
            description: tool.description.clone(),
            reason: tool.reason.clone(),
        }
    }
}

impl From<&Instructions> for InstructionsListing {
    fn from(instructions: &Instructions) -> Self {
        let sections = instructions.sections.iter();
        let sections = sections.map(|section| InstructionsRow {
            server: section.server.clone(),
            text: section.text.to_string(),
        });
        Self {
            instructions: sections.collect(),
        }
    }
}

impl From<&CatalogResource> for ResourceRow {
    fn from(resource: &CatalogResource) -> Self {
        Self {
            uri: resource.uri.clone(),
            server: resource.server.clone(),
            name: resource.name.clone(),
            title: resource.title.clone(),
            description: resource.description.clone(),
            mime_type: resource.mime_type.clone(),
            size: resource.size,
        }
    }
}

impl From<&CatalogTemplate> for TemplateRow {
    fn from(template: &CatalogTemplate) -> Self {
        let parsed = UriTemplate::parse(&template.uri_template).ok();
        let variables = parsed.iter().flat_map(UriTemplate::variables);
        Self {
            uri_template: template.uri_template.clone(),
            server: template.server.clone(),
            name: template.name.clone(),
            title: template.title.clone(),
            description: template.description.clone(),
            mime_type: template.mime_type.clone(),
            variables: variables.map(str::to_owned).collect(),
        }
    }
}

impl From<&CatalogPrompt> for PromptRow {
    fn from(prompt: &CatalogPrompt) -> Self {
        let arguments = prompt.arguments.iter().map(|argument| PromptArgumentRow {
            name: argument.name.clone(),
            title: argument.title.clone(),
            description: argument.description.clone(),
            required: argument.required,
        });
        Self {
            name: prompt.name.clone(),
            server: prompt.key.server.clone(),
            prompt: prompt.key.tool.clone(),
            title: prompt.title.clone(),
            description: prompt.description.clone(),
            arguments: arguments.collect(),
        }
    }
}

impl From<&JournalLine> for LogRow {
    fn from(line: &JournalLine) -> Self {
        Self {
            time: line.time.clone(),
            process: line.process,
            kind: line.kind.name().into(),
            text: line.text.clone(),
        }
    }
}

/// When each server was asked.
pub fn asked_rows(known: &BTreeMap<ServerName, RecalledServer>) -> Vec<AskedRow> {
    let asked = known.iter().map(|(server, known)| AskedRow {
        server: server.clone(),
        seconds_ago: known.age.as_secs(),
    });
    asked.collect()
}

/// A skill, and what came of reading it, where it was read.
pub fn skill_row(skill: &ListedSkill, read: Option<Result<(), SkillError>>) -> SkillRow {
    let files = match skill.files() {
        SkillFiles::Listed(files) => Some(files.len()),
        SkillFiles::Dynamic => None,
    };
    SkillRow {
        name: skill.name().line().into_owned(),
        server: skill.server().clone(),
        uri: skill.uri().to_owned(),
        description: skill.description().to_string(),
        files,
        digests: files.is_some(),
        verified: read.as_ref().map(Result::is_ok),
        problem: read.and_then(Result::err).map(|error| error.to_string()),
    }
}
