//! Tools that stand for something else that a server offers.
//!
//! Owns how one is made, and what is different about it: whether a user has to permit it, and what
//! its pin is. What they stand for is `offering.rs`.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use serde_json::value::to_raw_value;
use toolway_types::ToolKey;
use toolway_wire::view;

use super::{CatalogTool, MadeOnce, ServerTool, ToolHints};
use crate::catalog::BuiltinBackend;
use crate::offering::{JudgedOffering, PinnedOffering};
use crate::pins::{Definition, ShownTool, label_of};

impl CatalogTool {
    /// What stands for something that a server offers beside its tools.
    pub(crate) fn offered(
        key: ToolKey,
        schema: &Value,
        hints: ToolHints,
        offered: JudgedOffering,
        definition: Option<Definition>,
    ) -> Self {
        let input_schema = to_raw_value(schema).unwrap_or_default();
        let name = key.tool.clone();
        let made = MadeOnce {
            definition: definition.map_or_else(OnceLock::new, OnceLock::from),
            ..MadeOnce::default()
        };
        let tool = ServerTool {
            usual_name: name.clone(),
            alias: None,
            shown: name.clone(),
            title: None,
            description: String::new(),
            input_schema: input_schema.clone(),
            output_schema: None,
            annotations: None,
            hints,
            search_hint: None,
            always_load: false,
            defer_loading: false,
            received: view::Tool {
                name: name.clone(),
                title: None,
                description: None,
                raw: input_schema.clone(),
                input_schema,
                output_schema: None,
                annotations: view::ToolAnnotations::default(),
                requires_task: false,
                meta: None,
            },
            made: Arc::new(made),
            own: None,
            offered: Some(Box::new(offered)),
            key,
        };
        Self {
            // No tool of a server has one of these names.
            spelled_alone: true,
            ..Self::new(name, Arc::new(tool))
        }
    }

    /// The same, answered by the host itself.
    pub(crate) fn answered_by(mut self, own: BuiltinBackend) -> Self {
        Arc::make_mut(&mut self.tool).own = Some(own);
        self
    }

    /// Whether it may run unless a rule or a hook has something against it.
    pub(crate) fn is_free(&self) -> bool {
        match (&self.offered, &self.own) {
            (Some(offered), _) => offered.free,
            (None, own) => own.as_ref().is_some_and(|answers| answers.free),
        }
    }

    /// Whether its definition is remembered. The host's own tools change only with the program.
    pub(crate) fn is_pinned(&self) -> bool {
        match &self.offered {
            Some(offered) => offered.pin.is_some(),
            None => self.own.is_none(),
        }
    }

    /// What its pin is called.
    pub(crate) fn pin_label(&self) -> String {
        match self.pinned_as() {
            Some(pin) => format!("{}: {}", self.key.server, pin.label()),
            None => label_of(&self.key),
        }
    }

    /// The name that it is permitted under; none for what is no tool.
    pub(crate) fn shown_for_pin(&self) -> Option<ShownTool<'_>> {
        let (name, key) = (self.name.as_str(), &self.key);
        self.offered.is_none().then_some(ShownTool { name, key })
    }
}

impl ServerTool {
    /// What it is pinned as, when it stands for something else.
    pub(super) fn pinned_as(&self) -> Option<&PinnedOffering> {
        self.offered.as_ref()?.pin.as_ref()
    }
}
