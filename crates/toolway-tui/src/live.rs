//! The live view of the servers that stays until it is stopped.
//!
//! Owns the loop. Unlike `progress.rs` it never ends by itself, follows the size of the terminal
//! and the number of servers, lets lines of text pass above the view, and leaves its last frame
//! on the screen.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::layout::Size;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use toolway::HostSnapshot;

use crate::backend::InlineBackend;
use crate::progress::{TerminalSize, open};
use crate::state::ViewState;
use crate::update::{ViewEvent, update};
use crate::view::{Theme, servers};

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);
/// How often the size of the terminal is looked at while nothing moves.
const STILL: Duration = Duration::from_secs(1);

/// Shows the servers until the future is dropped or the host is gone. `texts` are printed above
/// the view as they come. `writer` and `screen` give the terminal, again and again.
pub async fn watch<W: Write>(
    mut snapshots: watch::Receiver<Arc<HostSnapshot>>,
    mut texts: mpsc::Receiver<String>,
    writer: impl Fn() -> W,
    screen: impl Fn() -> TerminalSize,
    theme: Theme,
) -> io::Result<()> {
    let mut state = ViewState::default();
    let first = ViewEvent::Snapshot(Arc::clone(&snapshots.borrow_and_update()));
    update(&mut state, &first, Instant::now());
    let mut canvas = DrawnView {
        writer,
        screen,
        drawing: None,
    };
    while !state.ended {
        canvas.draw(&state, theme)?;
        let pause = if state.is_settled() { STILL } else { TICK };
        let event = tokio::select! {
            changed = snapshots.changed() => match changed {
                Ok(()) => ViewEvent::Snapshot(Arc::clone(&snapshots.borrow_and_update())),
                Err(_) => ViewEvent::Ended,
            },
            Some(text) = texts.recv() => {
                canvas.print(&text)?;
                continue;
            }
            () = tokio::time::sleep(pause) => ViewEvent::Tick,
        };
        update(&mut state, &event, Instant::now());
    }
    Ok(())
}

/// What is on the screen.
struct DrawnView<W: Write, O: Fn() -> W, S: Fn() -> TerminalSize> {
    writer: O,
    screen: S,
    drawing: Option<(Size, Terminal<InlineBackend<W>>)>,
}

impl<W: Write, O: Fn() -> W, S: Fn() -> TerminalSize> DrawnView<W, O, S> {
    fn draw(&mut self, state: &ViewState, theme: Theme) -> io::Result<()> {
        let screen = (self.screen)();
        let wanted = screen.area(state.rows.len() + 1);
        if self
            .drawing
            .as_ref()
            .is_some_and(|(size, _)| *size != wanted)
        {
            self.erase_on(screen)?;
        }
        if self.drawing.is_none() {
            let terminal = open(InlineBackend::new((self.writer)(), wanted))?;
            self.drawing = Some((wanted, terminal));
        }
        if let Some((_, terminal)) = &mut self.drawing {
            terminal.draw(|frame| servers::draw_live(frame, state, Instant::now(), theme))?;
            terminal.backend_mut().rest()?;
        }
        Ok(())
    }

    fn print(&mut self, text: &str) -> io::Result<()> {
        self.erase_on((self.screen)())?;
        let mut writer = (self.writer)();
        writer.write_all(text.as_bytes())?;
        writer.flush()
    }

    fn erase_on(&mut self, screen: TerminalSize) -> io::Result<()> {
        let Some((size, mut terminal)) = self.drawing.take() else {
            return Ok(());
        };
        if screen.rewraps && screen.width < size.width {
            terminal.backend_mut().erase_rewrapped(screen.width)
        } else {
            terminal.backend_mut().erase()
        }
    }
}

impl<W: Write, O: Fn() -> W, S: Fn() -> TerminalSize> Drop for DrawnView<W, O, S> {
    fn drop(&mut self) {
        if let Some((_, terminal)) = &mut self.drawing {
            // The terminal is gone; its error cannot be reported.
            drop(terminal.backend_mut().leave());
        }
    }
}

#[cfg(test)]
mod tests;
