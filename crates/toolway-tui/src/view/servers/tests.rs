//! What the list looks like.

use ratatui::backend::TestBackend;
use ratatui::style::Color;
use ratatui::{Terminal, buffer::Buffer};

use super::*;
use crate::state::clean;

fn row(name: &str, status: RowStatus, millis: u64) -> LiveServer {
    let took = Some(Duration::from_millis(millis));
    let took = took.filter(|_| !matches!(status, RowStatus::Pending { .. }));
    LiveServer {
        name: clean(name),
        status,
        since: Instant::now(),
        took,
    }
}

fn connected(tools: usize) -> RowStatus {
    let counts = Counts {
        tools,
        ..Counts::default()
    };
    RowStatus::Connected {
        counts: Some(counts),
    }
}

fn pending(attempt: u32) -> RowStatus {
    RowStatus::Pending {
        attempt,
        trouble: None,
    }
}

fn five() -> ViewState {
    let failed = RowStatus::Failed {
        reason: clean("cannot start `nope`: No such file\nor directory"),
    };
    let disabled = RowStatus::Disabled {
        reason: "needs approval".to_owned(),
    };
    ViewState {
        rows: vec![
            row("desk", connected(2), 40),
            row("github", RowStatus::NeedsAuth { further: false }, 310),
            row("library", pending(1), 0),
            row("nope", failed, 12),
            row("repo-server", disabled, 0),
        ],
        ..ViewState::default()
    }
}

fn drawn(state: &ViewState, theme: Theme, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let now = Instant::now() + Duration::from_millis(12_340);
    terminal
        .draw(|frame| draw(frame, state, now, theme))
        .unwrap();
    terminal
}

#[tokio::test(start_paused = true)]
async fn every_state_has_its_glyph_word_time_and_detail() {
    insta::assert_snapshot!(drawn(&five(), Theme::Plain, 76, 5).backend(), @r#"
    "✔ connected   desk           0.0s  2 tools                                  "
    "! needs-auth  github         0.3s  wants a login                            "
    "… pending     library       12.3s  ⠋ connecting                             "
    "✘ failed      nope           0.0s  cannot start `nope`: No such file or dir…"
    "⊘ disabled    repo-server          needs approval                           "
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_narrow_terminal_cuts_the_detail_not_the_state() {
    insta::assert_snapshot!(drawn(&five(), Theme::Plain, 44, 5).backend(), @r#"
    "✔ connected   desk           0.0s  2 tools  "
    "! needs-auth  github         0.3s  wants a …"
    "… pending     library       12.3s  ⠋ connec…"
    "✘ failed      nope           0.0s  cannot s…"
    "⊘ disabled    repo-server          needs ap…"
    "#);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_counted_and_what_moves_is_shown() {
    insta::assert_snapshot!(drawn(&five(), Theme::Plain, 60, 3).backend(), @r#"
    "… pending     library       12.3s  ⠋ connecting             "
    "✘ failed      nope           0.0s  cannot start `nope`: No …"
    "  and 3 more: 1 needs-auth, 1 connected, 1 disabled         "
    "#);
}

#[tokio::test(start_paused = true)]
async fn the_spinner_turns_and_a_further_attempt_is_named() {
    let mut state = ViewState {
        rows: vec![row("a", pending(3), 0)],
        ..ViewState::default()
    };
    state.ticks = 13;
    insta::assert_snapshot!(drawn(&state, Theme::Plain, 60, 1).backend(), @r#"
    "… pending     a   12.3s  ⠸ connecting, attempt 3            "
    "#);
}

#[tokio::test(start_paused = true)]
async fn hostile_text_steers_nothing() {
    let reason = clean("\u{1b}[2Jgone\u{202e}\u{200b} \u{9b}31mred\r\nline");
    let state = ViewState {
        rows: vec![row("x", RowStatus::Failed { reason }, 0)],
        ..ViewState::default()
    };
    let terminal = drawn(&state, Theme::Plain, 60, 1);
    let shown = terminal.backend().to_string();
    let steering = |c: char| toolway_types::text::is_hidden(c) && c != '\n';
    assert!(!shown.contains(steering), "{shown:?}");
    assert!(shown.contains("gone"), "{shown:?}");
}

#[tokio::test(start_paused = true)]
async fn colours_follow_the_theme() {
    let colours = |buffer: &Buffer| {
        let mut colours: Vec<Color> = buffer.content.iter().map(|cell| cell.fg).collect();
        colours.dedup();
        colours.retain(|colour| *colour != Color::Reset);
        colours
    };
    let terminal = drawn(&five(), Theme::Plain, 60, 5);
    assert_eq!(colours(terminal.backend().buffer()), []);
    let terminal = drawn(&five(), Theme::Colour, 60, 5);
    assert_eq!(
        colours(terminal.backend().buffer()),
        [
            Color::Green,
            Color::Yellow,
            Color::Cyan,
            Color::Red,
            Color::DarkGray
        ]
    );
}

#[test]
fn text_is_cut_by_columns_not_characters() {
    assert_eq!(cut("wide", 4), "wide");
    assert_eq!(cut("wider", 4), "wid…");
    assert_eq!(cut("日本語", 5), "日本…");
    assert_eq!(cut("日本語", 4), "日…");
    assert_eq!(cut("x", 0), "");
}
