//! Calls that run, who asked for them, and what models get of their answers.

use std::time::Duration;

use toolway_rows::{BlockRow, CallEnd, CallRow, CallerRow, EmbeddedText, ProgressRow};

use crate::call::{Caller, ModelBlock, Progress, ToolTarget};
use crate::host::{BackgroundCall, CallStage};

impl From<&Caller> for CallerRow {
    fn from(caller: &Caller) -> Self {
        Self {
            id: caller.id.to_string(),
            kind: caller.kind.as_str().into(),
            principal: caller.principal.to_string(),
            shown: caller.shown.to_string(),
        }
    }
}

impl From<&Progress> for ProgressRow {
    fn from(progress: &Progress) -> Self {
        let message = progress.message.as_ref();
        Self {
            progress: progress.progress,
            total: progress.total,
            message: message.map(|message| message.line().into_owned()),
        }
    }
}

/// A call as events tell of it: its number is of no use to others, so it is not its id.
pub(super) fn told_call(
    call: u64,
    caller: &Caller,
    tool: ToolTarget,
    end: Option<(Duration, CallEnd)>,
) -> CallRow {
    let (server, tool) = match tool {
        ToolTarget::Exposed(name) => (None, name),
        ToolTarget::Key(key) => (Some(key.server), key.tool),
    };
    let lasted = end.map(|(took, _)| took).unwrap_or_default();
    CallRow {
        id: Some(call.to_string()),
        server,
        tool,
        caller: caller.into(),
        background: false,
        stage: if end.is_some() { "finished" } else { "running" }.into(),
        milliseconds: u64::try_from(lasted.as_millis()).unwrap_or(u64::MAX),
        progress: None,
        outcome: end.map(|(_, outcome)| outcome),
    }
}

/// A call in the background, and whose it is.
pub fn background_row(call: &BackgroundCall, caller: &Caller) -> CallRow {
    let (server, tool) = match &call.target {
        ToolTarget::Exposed(name) => (None, name.clone()),
        ToolTarget::Key(key) => (Some(key.server.clone()), key.tool.clone()),
    };
    let stage = match call.stage {
        CallStage::Running => "running",
        CallStage::Finished => "finished",
    };
    CallRow {
        id: Some(call.id.to_string()),
        server,
        tool,
        caller: caller.into(),
        background: true,
        stage: stage.into(),
        milliseconds: u64::try_from(call.took.as_millis()).unwrap_or(u64::MAX),
        progress: call.progress.as_ref().map(ProgressRow::from),
        outcome: None,
    }
}

impl<'a> From<&'a ModelBlock> for BlockRow<'a> {
    fn from(block: &'a ModelBlock) -> Self {
        match block {
            ModelBlock::Text { text } | ModelBlock::Notice { text } => {
                Self::Text { text: text.into() }
            }
            ModelBlock::Image {
                data, mime_type, ..
            } => Self::Image {
                data: data.into(),
                mime_type: (*mime_type).into(),
            },
            ModelBlock::Resource {
                uri,
                mime_type,
                text,
            } => Self::Resource {
                resource: EmbeddedText {
                    uri: uri.into(),
                    mime_type: mime_type.as_ref().map(Into::into),
                    text: text.into(),
                },
            },
            ModelBlock::Link {
                uri,
                name,
                description,
                mime_type,
            } => Self::ResourceLink {
                uri: uri.into(),
                name: name.into(),
                description: description.as_ref().map(Into::into),
                mime_type: mime_type.as_ref().map(Into::into),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use toolway_types::Untrusted;

    use super::*;
    use crate::call::CallerKind;
    use crate::host::CallId;

    #[test]
    fn a_block_is_spelled_as_the_host_spells_it() {
        let text = || "t".to_owned();
        let blocks = [
            ModelBlock::Text { text: text() },
            ModelBlock::Notice { text: text() },
            ModelBlock::Image {
                data: text(),
                mime_type: "image/png",
                width: 1,
                height: 1,
            },
            ModelBlock::Resource {
                uri: text(),
                mime_type: Some(text()),
                text: text(),
            },
            ModelBlock::Resource {
                uri: text(),
                mime_type: None,
                text: text(),
            },
            ModelBlock::Link {
                uri: text(),
                name: text(),
                description: Some(text()),
                mime_type: Some(text()),
            },
            ModelBlock::Link {
                uri: text(),
                name: text(),
                description: None,
                mime_type: None,
            },
        ];
        for block in &blocks {
            let row = serde_json::to_string(&BlockRow::from(block)).unwrap();
            assert_eq!(row, serde_json::to_string(block).unwrap());
        }
    }

    #[test]
    fn a_call_in_the_background_says_whose_it_is_and_how_far() {
        let call = BackgroundCall {
            id: CallId::new(3),
            target: ToolTarget::Exposed("mcp__s__t".to_owned()),
            stage: CallStage::Running,
            took: Duration::from_millis(1_500),
            progress: Some(Progress {
                progress: 1.0,
                total: None,
                message: Some(Untrusted::new("a\u{1b}[2J\nb")),
                raw: None,
            }),
        };
        let row = background_row(&call, &Caller::new(CallerKind::Agent, "helper"));
        let shown = (row.id.as_deref(), &*row.tool, &*row.stage, row.milliseconds);
        assert_eq!(shown, (Some("3"), "mcp__s__t", "running", 1_500));
        assert_eq!((&*row.caller.kind, &*row.caller.shown), ("agent", "helper"));
        let message = row.progress.unwrap().message.unwrap();
        assert!(!message.contains(['\u{1b}', '\n']), "{message:?}");
    }
}
