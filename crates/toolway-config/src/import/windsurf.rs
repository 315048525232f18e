//! Windsurf: one `mcp_config.json`, `serverUrl` for remote servers.

use super::translate::EntryDraft;

pub(super) fn entry(draft: &mut EntryDraft) {
    draft.transport("type");
    draft.process();
    let url = if draft.has("serverUrl") {
        "serverUrl"
    } else {
        "url"
    };
    draft.remote(url);
    draft.list("disabledTools", "excludeTools");
    draft.leave("alwaysAllow", "write permission rules instead");
    draft.leave("registry", "Toolway does not take servers from a registry");
    draft.ignore(&["description"]);
}
