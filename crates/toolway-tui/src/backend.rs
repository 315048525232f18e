//! Cells to bytes, relative to where the cursor stood.
//!
//! The usual backend asks the terminal where its cursor is, by writing to stdout and reading from
//! stdin; both may be a pipe here, and stdout carries data. This one needs no answer: the line
//! the cursor stands on is line 0, and every move is relative. It hides nothing and switches
//! nothing, so a process that is killed half-way leaves a usable terminal.

use std::io::{self, Write};

use ratatui::backend::{Backend, ClearType, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

/// Draws below the cursor, and takes everything back when dropped.
pub(crate) struct InlineBackend<W: Write> {
    out: W,
    /// One frame, written at once.
    frame: Vec<u8>,
    size: Size,
    cursor: Position,
    /// Up to which column each line was written.
    written: Vec<u16>,
    style: (Color, Modifier),
    drawn: bool,
}

impl<W: Write> InlineBackend<W> {
    /// Takes `size` as the whole screen.
    pub(crate) fn new(out: W, size: Size) -> Self {
        let style = (Color::Reset, Modifier::empty());
        Self {
            out,
            frame: Vec::new(),
            size,
            cursor: Position::ORIGIN,
            written: Vec::new(),
            style,
            drawn: false,
        }
    }

    /// Removes what was drawn; the cursor stands where it stood at first.
    pub(crate) fn erase(&mut self) -> io::Result<()> {
        if self.drawn {
            self.clear()?;
            self.drawn = false;
        }
        self.flush()
    }

    /// As [`InlineBackend::erase`], on a terminal that is this wide by now and has wrapped what it
    /// could not show any more: one line of ours is several of its lines.
    pub(crate) fn erase_rewrapped(&mut self, width: u16) -> io::Result<()> {
        let above = self.written.iter().take(usize::from(self.cursor.y));
        let pieces = above.map(|columns| columns.div_ceil(width.max(1)).max(1));
        // Behind a line's first piece stand those of the line that the cursor is in.
        let own = self.cursor.x / width.max(1);
        self.cursor = Position {
            x: self.cursor.x,
            y: pieces.fold(own, u16::saturating_add),
        };
        self.erase()
    }

    /// Puts the cursor at the beginning of its line, where it stays when a terminal wraps again.
    pub(crate) fn rest(&mut self) -> io::Result<()> {
        self.move_to(Position {
            x: 0,
            y: self.cursor.y,
        });
        self.flush()
    }

    /// Leaves what was drawn on the screen; the cursor stands below it.
    pub(crate) fn leave(&mut self) -> io::Result<()> {
        if self.drawn {
            let last = self.size.height.saturating_sub(1);
            self.move_to(Position { x: 0, y: last });
            self.put("\r\n");
            self.drawn = false;
        }
        self.flush()
    }

    fn put(&mut self, text: &str) {
        self.frame.extend_from_slice(text.as_bytes());
        self.drawn = true;
    }

    fn move_to(&mut self, to: Position) {
        let from = self.cursor;
        if to == from {
            return;
        }
        match to.y.cmp(&from.y) {
            std::cmp::Ordering::Less => self.put(&format!("\x1b[{}A", from.y - to.y)),
            std::cmp::Ordering::Greater => self.put(&format!("\x1b[{}B", to.y - from.y)),
            std::cmp::Ordering::Equal => {}
        }
        self.put("\r");
        if to.x > 0 {
            self.put(&format!("\x1b[{}C", to.x));
        }
        self.cursor = to;
    }

    fn set_style(&mut self, style: (Color, Modifier)) {
        if style == self.style {
            return;
        }
        self.put("\x1b[0");
        let (colour, modifier) = style;
        if modifier.contains(Modifier::BOLD) {
            self.put(";1");
        }
        if modifier.contains(Modifier::DIM) {
            self.put(";2");
        }
        if let Some(code) = colour_code(colour) {
            self.put(&format!(";{code}"));
        }
        self.put("m");
        self.style = style;
    }
}

/// The colours the themes use; any other stays the terminal's own.
fn colour_code(colour: Color) -> Option<u8> {
    Some(match colour {
        Color::Red => 31,
        Color::Green => 32,
        Color::Yellow => 33,
        Color::Cyan => 36,
        Color::DarkGray => 90,
        _ => return None,
    })
}

impl<W: Write> Backend for InlineBackend<W> {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        for (x, y, cell) in content {
            self.move_to(Position { x, y });
            self.set_style((cell.fg, cell.modifier));
            self.put(cell.symbol());
            let width = u16::try_from(cell.symbol().width()).unwrap_or(1);
            self.cursor.x = self.cursor.x.saturating_add(width);
            let line = usize::from(y);
            if self.written.len() <= line {
                self.written.resize(line + 1, 0);
            }
            self.written[line] = self.written[line].max(self.cursor.x);
        }
        self.set_style((Color::Reset, Modifier::empty()));
        Ok(())
    }

    fn append_lines(&mut self, count: u16) -> io::Result<()> {
        for _ in 0..count {
            self.put("\r\n");
        }
        self.cursor = Position {
            x: 0,
            y: self.cursor.y.saturating_add(count),
        };
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(self.cursor)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.move_to(position.into());
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        match region {
            // What stands above line 0 is not ours.
            ClearType::All | ClearType::BeforeCursor => {
                self.move_to(Position::ORIGIN);
                self.put("\x1b[J");
                self.written.clear();
            }
            ClearType::AfterCursor => self.put("\x1b[J"),
            ClearType::CurrentLine => self.put("\x1b[2K"),
            ClearType::UntilNewLine => self.put("\x1b[K"),
        }
        Ok(())
    }

    fn size(&self) -> io::Result<Size> {
        Ok(self.size)
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize {
            columns_rows: self.size,
            pixels: Size::ZERO,
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.frame.is_empty() {
            self.out.write_all(&self.frame)?;
            self.frame.clear();
        }
        self.out.flush()
    }
}

impl<W: Write> Drop for InlineBackend<W> {
    fn drop(&mut self) {
        // The wait was given up; an error of the terminal cannot be reported any more.
        drop(self.erase());
    }
}
