//! `-f`: showing what is appended to a file of lines.
//!
//! Owns how often the file is looked at and when following ends. Which lines are shown, and how,
//! is the command's.

use std::pin::pin;
use std::time::Duration;

use toolway::journal::LineFollower;

use crate::connect;
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};
use crate::signals::stdout_closed;

/// How often the file is looked at.
const PAUSE: Duration = Duration::from_millis(200);

/// Shows every line that comes until Ctrl-C, or until the reader of stdout is gone.
pub(crate) fn follow<L>(
    context: &Context,
    mut follower: LineFollower<L>,
    show: impl Fn(&L) -> Result<(), Report>,
) -> Outcome {
    connect::block_on(async {
        let mut signals = context.signals();
        let mut closed = pin!(stdout_closed(context.output.streams()));
        let mut pauses = tokio::time::interval(PAUSE);
        loop {
            tokio::select! {
                _ = pauses.tick() => {}
                // To be told to end is how following succeeds; a Ctrl-C is shown to the shell.
                _ = signals.next() => return Ok(Exit::Success),
                () = &mut closed => return Ok(Exit::Success),
            }
            let mut shown = Ok(());
            follower.poll(|line| {
                if shown.is_ok() {
                    shown = show(&line);
                }
            })?;
            shown?;
        }
    })
}
