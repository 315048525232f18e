//! A person at a terminal: `toolway` with stdin and stderr on a pty, read and typed to.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};
use toolway_testkit::shell_code;

/// The longest that is waited for a word.
const PATIENCE: Duration = Duration::from_secs(30);

/// A small terminal.
const ROWS: u16 = 24;
const COLUMNS: u16 = 80;

/// A program on a terminal.
pub(crate) struct TerminalProgram {
    child: Child,
    keyboard: File,
    screen: Arc<(Mutex<Screen>, Condvar)>,
    seen: usize,
}

/// Where a program's results go.
#[derive(Clone, Copy)]
enum Stdout {
    Piped,
    Shown,
}

#[derive(Default)]
struct Screen {
    text: String,
    ended: bool,
}

/// What is left when the program has ended.
pub(crate) struct Left {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    /// Everything the terminal got.
    pub(crate) shown: String,
}

impl TerminalProgram {
    /// Starts a program with stdin and stderr on a wide terminal. What is typed is not echoed, so
    /// that the screen holds only the program's own words.
    pub(crate) fn take(command: &mut Command) -> Self {
        Self::of_size(command, Stdout::Piped, 50, 200)
    }

    /// The same with stdout on the terminal too, as shells have it.
    pub(crate) fn take_with_stdout(command: &mut Command) -> Self {
        Self::of_size(command, Stdout::Shown, 50, 200)
    }

    /// The same on the terminal that people have.
    pub(crate) fn small(command: &mut Command) -> Self {
        Self::of_size(command, Stdout::Piped, ROWS, COLUMNS)
    }

    /// The same on a terminal that shows what is typed, as people's do.
    pub(crate) fn echoing(command: &mut Command) -> Self {
        Self::with_echo(command, Stdout::Piped, (50, 200), true)
    }

    /// That terminal with stdout on it too.
    pub(crate) fn small_with_stdout(command: &mut Command) -> Self {
        Self::of_size(command, Stdout::Shown, ROWS, COLUMNS)
    }

    /// The same with so many columns.
    pub(crate) fn narrow_with_stdout(command: &mut Command, columns: u16) -> Self {
        Self::of_size(command, Stdout::Shown, ROWS, columns)
    }

    fn of_size(command: &mut Command, stdout: Stdout, rows: u16, columns: u16) -> Self {
        Self::with_echo(command, stdout, (rows, columns), false)
    }

    fn with_echo(
        command: &mut Command,
        stdout: Stdout,
        (rows, columns): (u16, u16),
        echoes: bool,
    ) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let open = || {
            let options = &mut File::options();
            let path = name.to_str().unwrap();
            options.read(true).write(true).open(path).unwrap()
        };
        let theirs = open();
        let mut modes = tcgetattr(&theirs).unwrap();
        modes.local_modes.set(LocalModes::ECHO, echoes);
        tcsetattr(&theirs, OptionalActions::Now, &modes).unwrap();
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&theirs, size).unwrap();
        let child = command
            .env("NO_COLOR", "1")
            .stdin(open())
            .stdout(match stdout {
                Stdout::Piped => Stdio::piped(),
                Stdout::Shown => Stdio::from(open()),
            })
            .stderr(theirs)
            .spawn()
            .unwrap();
        // The command keeps copies of the terminal: without them reading ends with the child.
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null());
        let keyboard = File::from(ours);
        let screen = Arc::new((Mutex::new(Screen::default()), Condvar::new()));
        let (mut reader, shared) = (keyboard.try_clone().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            loop {
                let count = reader.read(&mut chunk).unwrap_or(0);
                let mut screen = shared.0.lock().unwrap();
                screen.text += &String::from_utf8_lossy(&chunk[..count]);
                screen.ended = count == 0;
                shared.1.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        Self {
            child,
            keyboard,
            screen,
            seen: 0,
        }
    }

    /// Waits until the terminal shows this, after what was waited for before; gives what came
    /// up to its end.
    pub(crate) fn expect(&mut self, words: &str) -> String {
        let (screen, news) = &*self.screen;
        let mut screen = screen.lock().unwrap();
        let begun = Instant::now();
        loop {
            let new = &screen.text[self.seen..];
            if let Some(place) = new.find(words) {
                let end = place + words.len();
                let met = new[..end].to_owned();
                self.seen += end;
                return met;
            }
            let left = PATIENCE.saturating_sub(begun.elapsed());
            assert!(
                !screen.ended && !left.is_zero(),
                "no {words:?} in {:?}",
                screen.text
            );
            screen = news.wait_timeout(screen, left).unwrap().0;
        }
    }

    /// What stands on a small terminal by now, row by row, without the empty ones at its end.
    pub(crate) fn rows(&self) -> Vec<String> {
        let sizes = [ROWS, COLUMNS].map(|size| NonZeroU16::new(size).unwrap());
        let mut terminal = vt100::Parser::new(sizes[0], sizes[1], 0);
        terminal.process(self.screen.0.lock().unwrap().text.as_bytes());
        let rows = terminal.screen().rows(0, COLUMNS);
        let mut rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    /// Types a line.
    pub(crate) fn type_line(&mut self, line: &str) {
        self.type_keys(&format!("{line}\n"));
    }

    /// Types these and nothing more.
    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// What the terminal does at Ctrl-C.
    pub(crate) fn interrupt(&self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
    }

    /// Whether the terminal edits lines and shows what is typed, as it did before the program.
    pub(crate) fn is_as_it_was(&self) -> bool {
        let wanted = LocalModes::ECHO | LocalModes::ICANON;
        let begun = Instant::now();
        loop {
            let modes = tcgetattr(&self.keyboard).unwrap().local_modes;
            if modes.contains(wanted) || begun.elapsed() > PATIENCE {
                return modes.contains(wanted);
            }
            std::thread::yield_now();
        }
    }

    /// Ends the program, which would not end by itself.
    pub(crate) fn end(self) {
        drop(self);
    }

    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end of a program whose stdout is the terminal; gives all that was shown.
    pub(crate) fn shown_to_the_end(mut self) -> String {
        self.child.wait().unwrap();
        let (screen, news) = &*self.screen;
        let screen = news
            .wait_timeout_while(screen.lock().unwrap(), PATIENCE, |screen| !screen.ended)
            .unwrap()
            .0;
        screen.text.replace("\r\n", "\n")
    }

    /// Waits for the program's end.
    pub(crate) fn leave(mut self) -> Left {
        let mut stdout = String::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_string(&mut stdout).unwrap();
        }
        let code = shell_code(self.child.wait().unwrap());
        let (screen, news) = &*self.screen;
        let screen = news
            .wait_timeout_while(screen.lock().unwrap(), PATIENCE, |screen| !screen.ended)
            .unwrap()
            .0;
        Left {
            code,
            stdout,
            shown: screen.text.clone(),
        }
    }
}

impl Drop for TerminalProgram {
    /// A test that is done, or failed, leaves nobody at a question.
    fn drop(&mut self) {
        // It may have ended, and its end may have been waited for.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
