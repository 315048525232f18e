//! Drawing: from state to cells, without writing anything.

pub(crate) mod servers;

use ratatui::style::{Color, Modifier, Style};

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
    fn coloured(self, colour: Color) -> Style {
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
