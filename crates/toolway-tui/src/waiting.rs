//! The live line of one call that takes long: what is waited for, how long, how far it has come.
//!
//! Owns the loop and its line. What the call is, and whether there is a terminal, is the caller's
//! to know; the line is gone when the call has ended.

use std::io::{self, Write};
use std::time::Duration;

use ratatui::Terminal;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};
use toolway::Progress;

use crate::backend::InlineBackend;
use crate::progress::{ViewOptions, open};
use crate::state::clean;
use crate::view::Theme;
use crate::view::servers::{SPINNER, cut, seconds};

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);
/// A call that ends before this needs no explanation.
const PATIENCE: Duration = Duration::from_millis(500);

/// Shows what is waited for until the future is dropped, and then takes it away. `what` reads
/// after "waiting for"; `progress` holds the newest word of the server.
pub async fn wait(
    what: &str,
    progress: watch::Receiver<Option<Progress>>,
    writer: impl Write,
    options: ViewOptions,
) -> io::Result<()> {
    let begun = Instant::now();
    let mut ticks = tokio::time::interval_at(begun + PATIENCE, TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks.tick().await;
    let mut terminal = open(InlineBackend::new(writer, options.screen.area(1)))?;
    let what = clean(what);
    for tick in 0.. {
        let news = progress.borrow().as_ref().map(describe);
        draw(&mut terminal, &what, tick, begun, news, options.theme)?;
        ticks.tick().await;
    }
    Ok(())
}

fn draw<W: Write>(
    terminal: &mut Terminal<InlineBackend<W>>,
    what: &str,
    tick: usize,
    begun: Instant,
    news: Option<String>,
    theme: Theme,
) -> io::Result<()> {
    let spinner = SPINNER[tick % SPINNER.len()];
    let elapsed = seconds(begun.elapsed());
    let rest = news.unwrap_or_else(|| "Ctrl-C cancels".to_owned());
    terminal.draw(|frame| {
        let width = usize::from(frame.area().width);
        let head = cut(&format!("{spinner} waiting for {what}  {elapsed}"), width);
        let room = width.saturating_sub(Span::raw(head.as_str()).width());
        let tail = cut(&format!("  {rest}"), room);
        let line = Line::from(vec![Span::raw(head), Span::styled(tail, theme.faint())]);
        frame.render_widget(Paragraph::new(line), frame.area());
    })?;
    Ok(())
}

/// `3 of 10: indexing`
fn describe(progress: &Progress) -> String {
    let count = match progress.total {
        Some(total) => format!("{} of {total}", progress.progress),
        None => progress.progress.to_string(),
    };
    match &progress.message {
        Some(message) => format!("{count}: {}", clean(&message.to_string())),
        None => count,
    }
}

#[cfg(test)]
mod tests {
    use toolway_types::Untrusted;

    use super::*;
    use crate::progress::TerminalSize;
    use crate::progress::tests::{Tape, pass};

    fn options(width: u16) -> ViewOptions {
        ViewOptions {
            screen: TerminalSize {
                width,
                height: 24,
                rewraps: true,
            },
            theme: Theme::Plain,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_call_says_what_it_waits_for_and_how_far_it_is() {
        let (sender, news) = watch::channel(None);
        let tape = Tape::default();
        let talk = async {
            pass(490).await;
            assert_eq!(tape.text(), "");
            pass(1560).await;
            insta::assert_snapshot!(
                tape.screen().join("\n"),
                @"⠴ waiting for `index` of server `docs`  2.0s  Ctrl-C cancels"
            );
            sender.send_replace(Some(Progress {
                progress: 3.0,
                total: Some(10.0),
                message: Some(Untrusted::new("reading\u{1b}[2J pages")),
                raw: None,
            }));
            pass(100).await;
            insta::assert_snapshot!(
                tape.screen().join("\n"),
                @"⠦ waiting for `index` of server `docs`  2.1s  3 of 10: reading pages"
            );
        };
        tokio::select! {
            ended = wait("`index` of server `docs`", news, tape.clone(), options(80)) => {
                panic!("it ended by itself: {ended:?}")
            }
            () = talk => {}
        }
        assert_eq!(tape.screen(), [""]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_narrow_terminal_cuts_the_line() {
        let (_sender, news) = watch::channel(None);
        let tape = Tape::default();
        let talk = async {
            pass(550).await;
            insta::assert_snapshot!(
                tape.screen().join("\n"),
                @"⠋ waiting for `index` of ser…"
            );
        };
        tokio::select! {
            ended = wait("`index` of server `docs`", news, tape.clone(), options(30)) => {
                panic!("it ended by itself: {ended:?}")
            }
            () = talk => {}
        }
    }
}
