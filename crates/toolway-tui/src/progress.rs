//! The live view of connecting servers: waits for changes, draws, and takes itself away.
//!
//! Owns the loop and its clock. Whether there is a terminal to draw on is the caller's question;
//! nothing here is called when stderr is a pipe.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use ratatui::backend::{Backend as _, ClearType};
use ratatui::layout::Size;
use ratatui::{Terminal, TerminalOptions, Viewport};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};
use toolway::HostSnapshot;

use crate::backend::InlineBackend;
use crate::state::ViewState;
use crate::update::{ViewEvent, update};
use crate::view::{Theme, servers};

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);
/// A shorter wait is never drawn, so that nothing flashes.
const PATIENCE: Duration = Duration::from_millis(150);
/// The view never takes more lines than this.
const MAX_LINES: usize = 24;

/// The size of a terminal, and what it does when that changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// Columns.
    pub width: u16,
    /// Lines.
    pub height: u16,
    /// Whether what it shows is wrapped again when it becomes narrower; some cut it off instead.
    pub rewraps: bool,
}

impl TerminalSize {
    /// The terminal behind a descriptor; 80 by 24 when it does not say. Most terminals wrap again.
    pub fn of(terminal: impl AsFd) -> Self {
        let (width, height) = match rustix::termios::tcgetwinsize(terminal) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
            _ => (80, 24),
        };
        Self {
            width,
            height,
            rewraps: true,
        }
    }

    /// The part that is drawn on: so many lines, if there are. The last column stays free, since a
    /// terminal may wrap after writing it.
    pub(crate) fn area(self, lines: usize) -> Size {
        let lines = u16::try_from(lines).unwrap_or(u16::MAX);
        Size {
            width: self.width.saturating_sub(1).max(1),
            height: lines.min(self.height.saturating_sub(1)).max(1),
        }
    }
}

/// How to draw.
#[derive(Debug, Clone, Copy)]
pub struct ViewOptions {
    /// The terminal's size.
    pub screen: TerminalSize,
    /// Colours or none.
    pub theme: Theme,
}

/// Notices that are printed above the view.
pub struct NoticeFeed<'a> {
    /// The notice for a snapshot; called for each one, and now and then.
    pub of: &'a mut dyn FnMut(&HostSnapshot) -> Option<String>,
    /// Where it goes: the same terminal, perhaps another stream.
    pub to: &'a mut dyn Write,
}

/// Shows the servers while they connect. Returns when none is pending any more, with everything
/// it drew removed. Dropping the future removes it too.
pub async fn show<W: Write>(
    mut snapshots: watch::Receiver<Arc<HostSnapshot>>,
    writer: impl Fn() -> W,
    options: ViewOptions,
    mut notices: Option<NoticeFeed<'_>>,
) -> io::Result<()> {
    let mut state = ViewState::default();
    let mut snapshot = Arc::clone(&snapshots.borrow_and_update());
    update(
        &mut state,
        &ViewEvent::Snapshot(Arc::clone(&snapshot)),
        Instant::now(),
    );

    let mut ticks = tokio::time::interval_at(Instant::now() + PATIENCE, TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut terminal = None;
    while !state.is_settled() {
        let event = tokio::select! {
            changed = snapshots.changed() => match changed {
                Ok(()) => {
                    snapshot = Arc::clone(&snapshots.borrow_and_update());
                    ViewEvent::Snapshot(Arc::clone(&snapshot))
                }
                Err(_) => ViewEvent::Ended,
            },
            _ = ticks.tick() => ViewEvent::Tick,
        };
        update(&mut state, &event, Instant::now());
        if state.ticks == 0 {
            continue;
        }
        if let Some(notices) = &mut notices
            && let Some(text) = (notices.of)(&snapshot)
        {
            erase(terminal.take())?;
            notices.to.write_all(text.as_bytes())?;
            notices.to.flush()?;
        }
        if terminal.is_none() {
            let backend = InlineBackend::new(
                writer(),
                options.screen.area(state.rows.len().min(MAX_LINES)),
            );
            terminal = Some(open(backend)?);
        }
        if let Some(terminal) = &mut terminal {
            terminal.draw(|frame| servers::draw(frame, &state, Instant::now(), options.theme))?;
        }
    }
    erase(terminal)
}

fn erase<W: Write>(terminal: Option<Terminal<InlineBackend<W>>>) -> io::Result<()> {
    match terminal {
        Some(mut terminal) => terminal.backend_mut().erase(),
        None => Ok(()),
    }
}

pub(crate) fn open<W: Write>(
    mut backend: InlineBackend<W>,
) -> io::Result<Terminal<InlineBackend<W>>> {
    // After a scroll back or a `clear`, something may stand below the cursor.
    backend.clear_region(ClearType::AfterCursor)?;
    let viewport = Viewport::Inline(backend.size()?.height);
    Terminal::with_options(backend, TerminalOptions { viewport })
}

#[cfg(test)]
pub(crate) mod tests;
