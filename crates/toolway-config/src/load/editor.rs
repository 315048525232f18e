//! The editor that has the working directory open, as a server.
//!
//! Owns: `--ide` and `autoConnectIde`. Lock files are read only when an editor is asked for.

use serde_json::{Value, json};
use toolway_types::{Diagnosis, Scope, TransportKind};

use super::{Flags, Loader};
use crate::ide::{Editor, RunningEditors, ambiguous};
use crate::raw;
use crate::source::TextSource;

const FLAG: &str = "--ide";

/// The name of the server that the flag or the setting brings.
const NAME: &str = "ide";

impl Loader<'_> {
    /// Looks for editors, when one is asked for.
    pub(super) fn editors(&mut self, flags: &Flags) -> RunningEditors {
        let is_set = |layer: &super::Layer| layer.settings.auto_connect_ide;
        let by_setting = !self.strict && self.layers.iter().any(is_set);
        let by_entry = self
            .layers
            .iter()
            .flat_map(|layer| &layer.servers)
            .any(|server| server.kind.is_some_and(TransportKind::is_editor));
        if !flags.ide && !by_setting && !by_entry {
            return RunningEditors::default();
        }
        let editors = RunningEditors::look(self.environment);
        self.diagnoses.extend(editors.diagnoses.clone());
        if flags.ide || by_setting {
            let message = match &editors.here()[..] {
                [only] => {
                    self.add_editor(only);
                    return editors;
                }
                // The setting applies whenever there is one.
                [] if !flags.ide => return editors,
                [] => "no editor with this workspace is running".to_owned(),
                several => ambiguous(several.iter().copied()),
            };
            let key = if flags.ide { FLAG } else { "autoConnectIde" };
            let mut diagnosis = Diagnosis::warning(format!("`{key}`: {message}"));
            diagnosis.origin = flags.ide.then(|| TextSource::Flag(FLAG).origin(1));
            self.diagnoses.push(diagnosis);
        }
        editors
    }

    fn add_editor(&mut self, editor: &Editor) {
        let Value::Object(definition) =
            json!({"type": editor.kind.facts().word, "url": editor.url()})
        else {
            return;
        };
        let source = TextSource::file(&editor.lock_file);
        let file = raw::single(NAME.to_owned(), definition, &source);
        let place = self.place_at_cwd(editor.lock_file.to_string_lossy());
        // Before the flags that name servers, so that theirs win.
        self.add(Scope::Dynamic, 0, place, file);
    }
}
