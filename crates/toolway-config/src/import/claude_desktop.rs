//! Claude Desktop: `claude_desktop_config.json`, processes only, no variables.

use super::translate::EntryDraft;

pub(super) fn entry(draft: &mut EntryDraft) {
    draft.transport("type");
    draft.process();
    draft.remote("url");
    draft.ignore(&["description"]);
}
