//! Cursor: `mcp.json` in `.cursor`, a bare `url` for remote servers, the editor's variables.

use super::translate::EntryDraft;

pub(super) fn entry(draft: &mut EntryDraft) {
    draft.transport("type");
    draft.process();
    draft.remote("url");
    draft.oauth("auth", "CLIENT_ID", "scopes");
    draft.timeout("timeout", 1.0);
    draft.leave("envFile", "put its variables into `env`");
    draft.leave("autoApprove", "write permission rules instead");
    draft.ignore(&["description"]);
}
