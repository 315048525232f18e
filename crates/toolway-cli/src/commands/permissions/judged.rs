//! What the rules say about one tool, and which of them does.
//!
//! Owns the words and the row for it. What is known of the tool is the caller's to say.

use std::sync::Arc;

use toolway::rows::unheeded_row;
use toolway::{Builtin, CatalogTool, Offering, builtin};
use toolway_config::permission::{CallSubject, CitedRule, PermissionDecision, Permissions};
use toolway_config::{PermissionMode, UnheededRule};
use toolway_rows::{JudgmentRow, SourceRow};
use toolway_types::name::as_word;
use toolway_types::{ToolKey, Untrusted};

use super::mode;

/// Whether it is the host's own.
pub(super) enum Own {
    Never,
    /// It is this one.
    Always(Box<Builtin>),
    /// As long as its server wants a login.
    WhileLocked,
}

/// What was decided about a tool.
pub(in crate::commands) struct Judged<'a> {
    key: &'a ToolKey,
    word: &'static str,
    rule: Option<Arc<CitedRule>>,
    /// A rule that would count, were its server the one it was given for.
    unheeded: Option<UnheededRule>,
    /// What is decided once its server wants no login any more.
    otherwise: Option<&'static str>,
    /// Whether no rule decides.
    is_open: bool,
    mode: &'static str,
    by_mode: String,
    /// Whether a rule counts only because it is not known what its server calls the tool.
    is_presumed: bool,
}

impl<'a> Judged<'a> {
    /// Of a tool that a connected server offers.
    pub(in crate::commands) fn of_tool(permissions: &Permissions, tool: &'a CatalogTool) -> Self {
        let own = builtin::own(&tool.name).filter(|_| tool.is_built_in());
        let own = own.map_or(Own::Never, |own| Own::Always(Box::new(own)));
        Self::of(permissions, &tool.key, tool.subject(), &own)
    }

    pub(super) fn of(
        permissions: &Permissions,
        key: &'a ToolKey,
        subject: CallSubject<'_>,
        own: &Own,
    ) -> Self {
        let is_auto = permissions.mode() == PermissionMode::Auto;
        let named = permissions.classifier().filter(|_| is_auto);
        let displaced = permissions.classifier_displaced_by();
        let classifier = named.filter(|_| displaced.is_none());
        let (word, rule) = match permissions.decide(subject) {
            PermissionDecision::Deny { rule } => ("denied", Some(rule)),
            PermissionDecision::Unreadable { origin } => {
                let rule = "a file that cannot be read".to_owned();
                ("denied", Some(Arc::new(CitedRule { rule, origin })))
            }
            PermissionDecision::Ask { rule: None } if classifier.is_some() => ("classified", None),
            PermissionDecision::Ask { rule } => ("asked", rule),
            PermissionDecision::Allow { rule } => ("allowed", rule),
        };
        // The host's own tools run without a question unless a rule wants one.
        let is_open = rule.is_none() && matches!(word, "asked" | "classified");
        let unheeded = is_open.then(|| permissions.unheeded(subject)).flatten();
        let (word, otherwise) = match own {
            Own::Always(own) if own.is_free() && is_open => ("allowed", None),
            Own::WhileLocked if is_open => ("allowed", Some(word)),
            _ => (word, None),
        };
        let by_mode = match (named, displaced) {
            (Some(classifier), None) => format!(
                "by `{}` in the mode `auto`: no rule names it",
                classifier.action.title()
            ),
            (Some(classifier), Some(by)) => format!(
                "by the mode `auto`, whose classifier `{}` decides nothing (`{}` here comes from \
                 {}): no rule names it",
                classifier.action.title(),
                by.server,
                by.origin
            ),
            (None, _) if is_auto => {
                "by the mode `auto`, which has no classifier: no rule names it".to_owned()
            }
            (None, _) => format!("by the mode `{}`: no rule names it", mode(permissions)),
        };
        Self {
            key,
            word,
            rule,
            unheeded,
            otherwise,
            is_open,
            mode: mode(permissions),
            by_mode,
            is_presumed: false,
        }
    }

    /// The same, because a rule can mean what the tool may be called.
    pub(super) fn presumed(self) -> Self {
        Self {
            is_presumed: true,
            ..self
        }
    }

    /// Whether the same is decided, for the same reason.
    pub(super) fn says_as(&self, other: &Self) -> bool {
        self.word == other.word && self.rule == other.rule
    }

    /// How much is let through; the least is refused.
    pub(super) fn leniency(&self) -> u8 {
        match self.word {
            "denied" => 0,
            "asked" => 1,
            "classified" => 2,
            _ => 3,
        }
    }

    /// Why a rule counts that may mean another tool.
    pub(super) fn note(&self) -> Option<String> {
        let ToolKey { server, tool } = self.key;
        self.is_presumed.then(|| {
            format!(
                "note: server `{server}` has not said whether `{}` is what it calls the tool; a \
                 rule that restricts counts if it can mean it\nhint: ask it with `toolway tools {}`",
                Untrusted::new(tool).line(),
                as_word(server.as_str())
            )
        })
    }

    /// As data.
    pub(in crate::commands) fn row(&self) -> JudgmentRow {
        let rule = self.rule.as_ref();
        JudgmentRow {
            server: self.key.server.clone(),
            tool: self.key.tool.clone(),
            decision: self.word.into(),
            rule: rule.map(|cited| cited.rule.clone()),
            source: rule.map(|cited| SourceRow::from(&cited.origin)),
            mode: self.mode.into(),
            unheeded: self.unheeded.as_ref().map(unheeded_row),
            name_is_known: self.is_presumed.then_some(false),
            while_state: self.otherwise.map(|_| "needs-auth".into()),
            otherwise: self.otherwise.map(Into::into),
        }
    }

    /// In words: a line, or two where it depends.
    pub(in crate::commands) fn lines(&self) -> impl Iterator<Item = String> + use<> {
        let Self {
            key, word, by_mode, ..
        } = self;
        let server = &key.server;
        let mut second = None;
        let first = match (&self.rule, self.otherwise) {
            (Some(cited), _) => format!("{word} by `{}` in {}", cited.rule, cited.origin),
            (None, Some(otherwise)) => {
                second = Some(format!("otherwise {otherwise} {by_mode}"));
                format!(
                    "{word} while server `{server}` wants a login: it is Toolway's own then, and \
                     no rule names it"
                )
            }
            (None, None) if self.is_open && *word == "allowed" => {
                format!("{word}: it is Toolway's own, and no rule names it")
            }
            (None, None) => match (&self.unheeded, Offering::named(&key.tool)) {
                (Some(unheeded), _) => format!("{word}: {}", told(unheeded)),
                (None, Some(Offering::ReadResource)) if self.is_open => {
                    format!("allowed for what `{server}` lists, otherwise {word} {by_mode}")
                }
                (None, _) => format!("{word} {by_mode}"),
            },
        };
        [Some(first), second].into_iter().flatten()
    }
}

/// Why a rule does not count.
pub(super) fn told(UnheededRule { rule, server }: &UnheededRule) -> String {
    format!(
        "`{}` here comes from {}, and `{}` in {} was given for another server of that name",
        server.server, server.origin, rule.rule, rule.origin
    )
}
