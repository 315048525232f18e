//! Drawing: from state to cells, without writing anything.

pub(crate) mod servers;

use ratatui::style::{Color, Modifier, Style};

use crate::state::RowStatus;

/// Whether the view may use colours. The caller knows: `NO_COLOR`, `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// Colours beside the words.
    #[default]
    Colour,
    /// Words only.
    Plain,
}

impl Theme {
    fn of(self, status: &RowStatus) -> Style {
        let colour = match status {
            RowStatus::Pending { .. } => Color::Cyan,
            RowStatus::Connected { .. } => Color::Green,
            RowStatus::Failed { .. } => Color::Red,
            RowStatus::NeedsAuth { .. } => Color::Yellow,
            RowStatus::Disabled { .. } => Color::DarkGray,
        };
        match self {
            Theme::Colour => Style::new().fg(colour),
            Theme::Plain => Style::new(),
        }
    }

    pub(crate) fn faint(self) -> Style {
        match self {
            Theme::Colour => Style::new().add_modifier(Modifier::DIM),
            Theme::Plain => Style::new(),
        }
    }
}
