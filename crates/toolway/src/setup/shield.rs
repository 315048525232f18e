//! What no server of a person may write or see. How it is kept from them is the transport's.

use std::path::Path;

use toolway_config::Environment;
use toolway_transport::{ProtectedPath, Protection, Shield};
use toolway_types::Scope;

use super::StateFiles;

/// What no server may write: all that the next start trusts. And what none may see: secrets, and the
/// state of others. Files of results are seen: their paths may be arguments of the next call.
pub(super) fn shield(environment: &Environment) -> Shield {
    let files = StateFiles(environment);
    let entry = |path: &Path, protection| ProtectedPath {
        path: path.to_owned(),
        protection,
    };
    let mut protected = vec![
        entry(environment.config_home(), Protection::Private),
        entry(&files.vault(), Protection::Hidden),
        entry(environment.state_home(), Protection::Hidden),
        entry(&files.results(), Protection::Private),
        // Servers start there, and put nothing there for others.
        entry(&environment.private_folder(), Protection::Private),
        entry(environment.system_dir(), Protection::Existing),
    ];
    if let Some(folder) = environment
        .settings_file(Scope::Local)
        .as_deref()
        .and_then(Path::parent)
    {
        protected.push(entry(folder, Protection::Existing));
    }
    // Managers of dotfiles put links there, and where they lead is written as easily.
    let settings = environment.settings_file(Scope::User);
    for believed in settings.into_iter().chain([
        environment.approvals_file(),
        files.pinned(),
        environment.plugins_folder(),
    ]) {
        protected.push(entry(&believed, Protection::Believed));
    }
    for named in environment.named_homes() {
        protected.push(entry(named, Protection::Links));
    }
    Shield::new(protected)
}
