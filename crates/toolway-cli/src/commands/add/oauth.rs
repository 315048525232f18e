//! What `add`'s flags say about logging in.

use serde_json::{Map, Value, json};

use super::{AddArgs, WritableScope};
use crate::report::Report;

/// The `oauth` object of the entry; empty where no flag speaks of it.
pub(super) fn of(args: &AddArgs) -> Result<Map<String, Value>, Report> {
    let mut oauth = Map::new();
    if let Some(id) = &args.client_id {
        oauth.insert("clientId".to_owned(), json!(id));
    }
    if let Some(port) = args.callback_port {
        oauth.insert("callbackPort".to_owned(), json!(port));
    }
    if let Some(account) = &args.account {
        oauth.insert("account".to_owned(), json!(account));
    }
    if args.xaa {
        oauth.insert("xaa".to_owned(), json!(true));
    }
    let workload = match &args.workload_token_file {
        Some(file) => Some(json!({ "tokenFile": file })),
        None => (args.workload_github_actions).then(|| json!({ "githubActions": true })),
    };
    if let Some(workload) = workload {
        if args.writing.scope == WritableScope::Project {
            let message = "a project's file cannot say where this machine's identity is";
            return Err(Report::usage(message)
                .hint("write it to your own settings: `--scope user` or `--scope local`"));
        }
        oauth.insert("workload".to_owned(), workload);
    }
    Ok(oauth)
}
