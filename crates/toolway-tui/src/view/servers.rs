//! The list of servers: one line each, cut to the width; what does not fit is counted.

use std::time::Duration;

use ratatui::Frame;
use ratatui::style::Color;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use tokio::time::Instant;
use toolway::Counts;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::Theme;
use crate::state::{LiveServer, RowStatus, ViewState};

pub(crate) const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// The longest word of a state.
const WORD: usize = "needs-auth".len();
/// A name takes no more than this, so that there is room for a reason.
const NAME: usize = 32;
/// `9999.9s`
const ELAPSED: usize = 7;

/// Draws the servers, and below them a line that says what this is.
pub(crate) fn draw_live(frame: &mut Frame<'_>, state: &ViewState, now: Instant, theme: Theme) {
    let area = frame.area();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut lines = lines(state, now, theme, width, height.saturating_sub(1));
    let footer = cut(&footer(state), width);
    // Where a terminal echoes what is typed, it disturbs nothing.
    let column = u16::try_from(footer.width() + 1).unwrap_or(u16::MAX);
    frame.set_cursor_position((
        area.x + column.min(area.width.saturating_sub(1)),
        area.bottom().saturating_sub(1),
    ));
    lines.push(Line::styled(footer, theme.faint()));
    frame.render_widget(Paragraph::new(lines), area);
}

fn footer(state: &ViewState) -> String {
    let connected = |row: &&LiveServer| matches!(row.status, RowStatus::Connected { .. });
    let connected = state.rows.iter().filter(connected).count();
    match state.rows.len() {
        0 => "  no server is configured · Ctrl-C ends".to_owned(),
        all => format!("  {connected} of {all} connected · Ctrl-C ends"),
    }
}

/// Draws the whole view.
pub(crate) fn draw(frame: &mut Frame<'_>, state: &ViewState, now: Instant, theme: Theme) {
    let area = frame.area();
    let lines = lines(
        state,
        now,
        theme,
        usize::from(area.width),
        usize::from(area.height),
    );
    frame.render_widget(Paragraph::new(lines), area);
}

fn lines(
    state: &ViewState,
    now: Instant,
    theme: Theme,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let names = state
        .rows
        .iter()
        .map(|row| row.name.width())
        .max()
        .unwrap_or(0)
        .min(NAME);
    let line = |row: &LiveServer| line(row, names, state.ticks, now, theme, width);
    if state.rows.len() <= height {
        return state.rows.iter().map(line).collect();
    }
    let mut rows: Vec<&LiveServer> = state.rows.iter().collect();
    rows.sort_by_key(|row| look(&row.status).place);
    let (shown, hidden) = rows.split_at(height.saturating_sub(1));
    let mut lines: Vec<_> = shown.iter().map(|row| line(row)).collect();
    lines.push(Line::styled(cut(&summary(hidden), width), theme.faint()));
    lines
}

/// How a state looks.
struct Look {
    /// States that a user waits for come first.
    place: u8,
    glyph: &'static str,
    word: &'static str,
    colour: Color,
}

fn look(status: &RowStatus) -> Look {
    let (place, glyph, word, colour) = match status {
        RowStatus::Pending { .. } => (0, "…", "pending", Color::Cyan),
        RowStatus::Failed { .. } => (1, "✘", "failed", Color::Red),
        RowStatus::NeedsAuth { .. } => (2, "!", "needs-auth", Color::Yellow),
        RowStatus::Connected { .. } => (3, "✔", "connected", Color::Green),
        RowStatus::Disabled { .. } => (4, "⊘", "disabled", Color::DarkGray),
    };
    Look {
        place,
        glyph,
        word,
        colour,
    }
}

fn summary(hidden: &[&LiveServer]) -> String {
    // They are sorted, so equal words stand together.
    let counts: Vec<String> = hidden
        .chunk_by(|a, b| look(&a.status).place == look(&b.status).place)
        .map(|same| format!("{} {}", same.len(), look(&same[0].status).word))
        .collect();
    format!("  and {} more: {}", hidden.len(), counts.join(", "))
}

fn line(
    row: &LiveServer,
    names: usize,
    ticks: usize,
    now: Instant,
    theme: Theme,
    width: usize,
) -> Line<'static> {
    let look = look(&row.status);
    let state = format!("{} {:WORD$}", look.glyph, look.word);
    let name = cut(&row.name, names);
    let padding = " ".repeat(names.saturating_sub(name.width()));
    let elapsed = elapsed(row, now);
    let used = 2 + WORD + 2 + names + 1 + ELAPSED + 2;
    let detail = cut(&detail(&row.status, ticks), width.saturating_sub(used));
    Line::from(vec![
        Span::styled(state, theme.coloured(look.colour)),
        Span::raw(format!("  {name}{padding} ")),
        Span::styled(format!("{elapsed:>ELAPSED$}  "), theme.faint()),
        Span::raw(detail),
    ])
}

/// A server that never tried has no time to show.
fn elapsed(row: &LiveServer, now: Instant) -> String {
    match row.status {
        RowStatus::Disabled { .. } => String::new(),
        _ => seconds(row.elapsed(now)),
    }
}

pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.1}s", duration.as_secs_f64())
}

fn detail(status: &RowStatus, ticks: usize) -> String {
    match status {
        RowStatus::Pending { attempt, trouble } => {
            let spinner = SPINNER[ticks % SPINNER.len()];
            let again = match attempt {
                0 | 1 => String::new(),
                attempt => format!(", attempt {attempt}"),
            };
            match trouble {
                Some(trouble) => format!("{spinner} connecting{again}: {trouble}"),
                None => format!("{spinner} connecting{again}"),
            }
        }
        RowStatus::Connected { counts: None } => String::new(),
        RowStatus::Connected {
            counts: Some(counts),
        } => offers(*counts),
        RowStatus::NeedsAuth { further: false } => "wants a login".to_owned(),
        RowStatus::NeedsAuth { further: true } => "wants a login that reaches further".to_owned(),
        RowStatus::Failed { reason } | RowStatus::Disabled { reason } => reason.clone(),
    }
}

/// What a server offers, in words; tools are always named, for they are what is looked for.
pub fn offers(counts: Counts) -> String {
    let some = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    };
    let mut words = vec![some(counts.tools, "tool")];
    for (count, one) in [(counts.resources, "resource"), (counts.prompts, "prompt")] {
        if count > 0 {
            words.push(some(count, one));
        }
    }
    words.join(", ")
}

/// The text in at most `width` columns; `…` stands for what is gone.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        kept.push(c);
    }
    if width > 0 {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests;
