//! The view that stays, in virtual time, played on the small terminal of `progress`.

use std::cell::Cell;

use toolway_types::ConnectionState;

use super::*;
use crate::progress::tests::{Tape, connected, failed, pass, pending, server, snapshot};

const SCREEN: TerminalSize = TerminalSize {
    width: 60,
    height: 24,
    rewraps: true,
};

#[tokio::test(start_paused = true)]
async fn servers_come_change_and_go_and_the_last_picture_stays() {
    let (sender, receiver) = watch::channel(snapshot(vec![server("a", pending(), None)]));
    let (_texts, texts) = mpsc::channel(1);
    let tape = Tape::default();
    let talk = async {
        pass(50).await;
        insta::assert_snapshot!(tape.screen().join("\n"), @"
        … pending     a    0.0s  ⠋ connecting
          0 of 1 connected · Ctrl-C ends
        ");
        let mut lost = server("a", ConnectionState::Pending { attempt: 2 }, None);
        lost.warnings
            .push("the process ended by signal 9".to_owned());
        sender.send_replace(snapshot(vec![lost, server("b", connected(), Some(1))]));
        pass(50).await;
        insta::assert_snapshot!(tape.screen().join("\n"), @"
        … pending     a    0.1s  ⠋ connecting, attempt 2: the proc…
        ✔ connected   b    0.0s  1 tool
          1 of 2 connected · Ctrl-C ends
        ");
        sender.send_replace(snapshot(vec![server("b", failed(), None)]));
        pass(50).await;
        insta::assert_snapshot!(tape.screen().join("\n"), @"
        ✘ failed      b    0.0s  cannot start `nope`
          0 of 1 connected · Ctrl-C ends
        ");
        drop(sender);
    };
    let view = watch(receiver, texts, || tape.clone(), || SCREEN, Theme::Plain);
    let (shown, ()) = tokio::join!(view, talk);
    shown.unwrap();
    insta::assert_snapshot!(tape.screen().join("\n"), @"
    ✘ failed      b    0.0s  cannot start `nope`
      0 of 1 connected · Ctrl-C ends
    ");
}

#[tokio::test(start_paused = true)]
async fn text_passes_above_the_view_and_a_smaller_terminal_is_followed() {
    let all = (0..9).map(|number| server(&format!("s{number}"), connected(), Some(2)));
    let (sender, receiver) = watch::channel(snapshot(all.collect()));
    let (say, texts) = mpsc::channel(1);
    let tape = Tape::default();
    let height = Cell::new(24);
    let screen = || TerminalSize {
        width: 50,
        height: height.get(),
        rewraps: true,
    };
    let talk = async {
        pass(50).await;
        assert_eq!(tape.screen().len(), 10);
        height.set(5);
        pass(1000).await;
        say.send("error: a file is broken\n".to_owned())
            .await
            .unwrap();
        pass(50).await;
        insta::assert_snapshot!(tape.screen().join("\n"), @"
        error: a file is broken
        ✔ connected   s0    0.0s  2 tools
        ✔ connected   s1    0.0s  2 tools
          and 7 more: 7 connected
          9 of 9 connected · Ctrl-C ends
        ");
        drop(sender);
    };
    let view = watch(receiver, texts, || tape.clone(), screen, Theme::Plain);
    let (shown, ()) = tokio::join!(view, talk);
    shown.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_terminal_that_wraps_anew_keeps_no_pieces_of_the_wider_view() {
    let all = (0..3).map(|number| server(&format!("server-{number}"), connected(), Some(2)));
    let all: Vec<_> = all.collect();
    let (sender, receiver) = watch::channel(snapshot(all.clone()));
    let (say, texts) = mpsc::channel(1);
    let tape = Tape::default();
    let width = Cell::new(60);
    let screen = || TerminalSize {
        width: width.get(),
        height: 24,
        rewraps: true,
    };
    let talk = async {
        // What stands above is not ours, and stays.
        say.send("error: above\n".to_owned()).await.unwrap();
        pass(50).await;
        for narrow in [30_u16, 12] {
            width.set(narrow);
            tape.narrow(usize::from(narrow));
            pass(1000).await;
            let shown = tape.screen();
            assert_eq!(shown.len(), 5, "{shown:#?}");
            assert_eq!(shown[0], "error: above");
            assert!(shown[1].starts_with("✔ connected"), "{shown:#?}");
            // A change that is drawn on top, so that more was written than is shown.
            let mut changed = all.clone();
            changed[0] = server("server-0", failed(), None);
            sender.send_replace(snapshot(changed));
            pass(50).await;
            sender.send_replace(snapshot(all.clone()));
            pass(50).await;
        }
        drop(sender);
    };
    let view = watch(receiver, texts, || tape.clone(), screen, Theme::Plain);
    let (shown, ()) = tokio::join!(view, talk);
    shown.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_view_that_is_dropped_leaves_the_cursor_below_its_picture() {
    let (_sender, receiver) = watch::channel(snapshot(vec![server("a", connected(), Some(2))]));
    let (_texts, texts) = mpsc::channel(1);
    let tape = Tape::default();
    let view = watch(receiver, texts, || tape.clone(), || SCREEN, Theme::Plain);
    assert!(
        tokio::time::timeout(Duration::from_millis(10), view)
            .await
            .is_err()
    );
    assert_eq!(tape.screen().len(), 3);
    assert_eq!(tape.screen()[2], "");
}
