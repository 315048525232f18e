//! Where words go: results to stdout, everything else to stderr.
//!
//! Owns terminal detection, colour and width. Tables are `output/table.rs`, folded lines
//! `output/fold.rs`; foreign text that a user decides about is laid out by `screen.rs`.

mod fold;
mod table;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd;

use serde::Serialize;
use toolway_config::Environment;
use toolway_types::text::{clean, is_hidden};
use toolway_types::{Diagnosis, Severity};

use self::fold::folded;
use self::table::fit;
pub(crate) use self::table::{first_line, render_table};
use crate::log;
use crate::report::{Report, render_diagnosis};
use crate::screen::{Letters, Screen, turn};
use crate::streams::Streams;
use crate::terminal::Terminal;

/// The streams and what is known about them.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    streams: Streams,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    stdin_is_terminal: bool,
    colour: bool,
    width: Option<usize>,
    stderr_width: Option<usize>,
    letters: Letters,
    errors: Errors,
}

/// How errors are told on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errors {
    /// For people.
    Text,
    /// One line of JSON each.
    Json,
}

impl Output {
    /// Looks at the streams of this process once.
    pub(crate) fn new(environment: &Environment) -> Self {
        Self::on(Streams::default(), environment)
    }

    /// Looks at these streams once.
    pub(crate) fn on(streams: Streams, environment: &Environment) -> Self {
        let stdout_is_terminal = streams.output().is_terminal();
        let stderr_is_terminal = streams.errors().is_terminal();
        Self {
            stdout_is_terminal,
            stderr_is_terminal,
            stdin_is_terminal: streams.input().is_terminal(),
            colour: environment.var("NO_COLOR").is_none_or(str::is_empty)
                && environment.var("TERM") != Some("dumb"),
            width: terminal_width(streams.output()).filter(|_| stdout_is_terminal),
            stderr_width: terminal_width(streams.errors()).filter(|_| stderr_is_terminal),
            letters: Letters::of(|name| environment.var(name)),
            errors: Errors::Text,
            streams,
        }
    }

    /// Where it writes, and reads from.
    pub(crate) fn streams(&self) -> &Streams {
        &self.streams
    }

    /// What reads lines that are typed.
    pub(crate) fn terminal(&self) -> Terminal<'_> {
        Terminal::on(&self.streams)
    }

    /// The same, telling errors in this way.
    pub(crate) fn telling(self, errors: Errors) -> Self {
        Self { errors, ..self }
    }

    /// Tells an error.
    pub(crate) fn report(&self, report: &Report) {
        match self.errors {
            Errors::Text => self.say(&report.render()),
            Errors::Json => self.write_err(&escape_hidden(
                &serde_json::to_string(&report.row()).unwrap_or_default(),
            )),
        }
    }

    /// Tells what is wrong with the configuration.
    pub(crate) fn diagnosis(&self, diagnosis: &Diagnosis) {
        match (self.errors, diagnosis.severity) {
            (Errors::Json, Severity::Error) => self.report(&Report::of_entry(diagnosis)),
            _ => self.say(&render_diagnosis(diagnosis)),
        }
    }

    /// Whether the user can be asked: stdin and stderr are a terminal.
    pub(crate) fn can_ask(&self) -> bool {
        self.stdin_is_terminal && self.stderr_is_terminal
    }

    /// Whether a live view may be drawn on stderr.
    pub(crate) fn can_animate(&self) -> bool {
        self.stderr_is_terminal
    }

    /// Whether stdin is a terminal.
    pub(crate) fn stdin_is_terminal(&self) -> bool {
        self.stdin_is_terminal
    }

    /// Whether stdout is a terminal, where control characters would act.
    pub(crate) fn stdout_is_terminal(&self) -> bool {
        self.stdout_is_terminal
    }

    /// Whether colours are wanted.
    pub(crate) fn colour(&self) -> bool {
        self.colour
    }

    /// Writes a result, cleaned of what would act on a terminal (SEC-35).
    pub(crate) fn result(&self, text: &str) -> io::Result<()> {
        self.verbatim(&clean(text))
    }

    /// Writes a text of others: on a terminal a control character would act, in a pipe, bytes are
    /// bytes.
    pub(crate) fn text(&self, text: &str) -> io::Result<()> {
        if self.stdout_is_terminal {
            self.result(text)
        } else {
            self.verbatim(text)
        }
    }

    /// Writes a result as it is, for programs that read it.
    pub(crate) fn verbatim(&self, text: &str) -> io::Result<()> {
        self.streams.write_output(text.as_bytes())
    }

    /// Writes a result as one JSON document.
    pub(crate) fn json(&self, value: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(value)?;
        text.push('\n');
        self.verbatim(&escape_hidden(&text))
    }

    /// Writes a result as one line of JSON.
    pub(crate) fn json_line(&self, value: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_string(value)?;
        text.push('\n');
        self.verbatim(&escape_hidden(&text))
    }

    /// Text as [`Output::say`] prints it to a terminal, for a view that prints it itself.
    pub(crate) fn painted(&self, text: &str) -> String {
        let text = fold_to(self.width, clean(text), None);
        if self.colour {
            paint(&text).into_owned()
        } else {
            text.into_owned()
        }
    }

    /// Says something that is not a result, its lines broken where a terminal would break them.
    pub(crate) fn say(&self, text: &str) {
        self.write_err(&fold_to(self.stderr_width, clean(text), None));
    }

    /// Writes a cleaned text to stderr; that it is closed is no error.
    fn write_err(&self, text: &str) {
        let painted = if self.stderr_is_terminal && self.colour {
            paint(text)
        } else {
            Cow::Borrowed(text)
        };
        let mut painted = painted.into_owned();
        if !text.ends_with('\n') {
            painted.push('\n');
        }
        let _ = self.streams.write_errors(painted.as_bytes());
    }

    /// Begins a new line where the cursor stands behind `^C`, or behind a question.
    pub(crate) fn leave_line(&self) {
        if self.can_ask() {
            let _ = self.streams.write_errors(b"\n");
        }
    }

    /// The screen that questions stand on.
    pub(crate) fn screen(&self) -> Screen {
        let size = self
            .stderr_is_terminal
            .then(|| terminal_size(self.streams.errors()));
        Screen::new(size, self.letters)
    }

    /// The screen that results stand on.
    pub(crate) fn result_screen(&self) -> Screen {
        let size = self
            .stdout_is_terminal
            .then(|| terminal_size(self.streams.output()));
        Screen::new(size, self.letters)
    }

    /// Shows a text that the user decides about, page by page. False when they stopped before its
    /// end, which is a no.
    pub(crate) fn lay_before(&self, text: &str) -> io::Result<bool> {
        let _log = log::hold();
        let screen = self.screen();
        let pages = if self.can_ask() {
            screen.pages(text)
        } else {
            vec![text]
        };
        for (place, page) in pages.iter().enumerate() {
            self.say(page);
            let turn = turn(place + 1, pages.len());
            if place + 1 < pages.len() && self.answer(&turn)?.as_deref() != Some("") {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Asks a yes-or-no question; anything but a yes is a no.
    pub(crate) fn confirm(&self, question: &str) -> io::Result<bool> {
        let answer = self.answer(&format!("{question} [y/N] "))?;
        let answer = answer.unwrap_or_default().to_ascii_lowercase();
        Ok(matches!(answer.as_str(), "y" | "yes"))
    }

    /// What is typed to a question; none when there is nothing more to read.
    pub(crate) fn answer(&self, question: &str) -> io::Result<Option<String>> {
        // What was typed before the question stood there is no answer to it. From a pipe it is.
        let terminal = self.terminal();
        let is_typed = terminal.forget_typed().is_ok();
        let _log = log::hold();
        self.streams.write_errors(clean(question).as_bytes())?;
        let answer = if is_typed {
            terminal.wait_for_line()?
        } else {
            terminal.piped_line()?
        };
        Ok(answer.map(|answer| answer.trim().to_owned()))
    }

    /// Writes rows, each cut at the width.
    pub(crate) fn rows(&self, rows: impl IntoIterator<Item = String>) -> io::Result<()> {
        let mut text = String::new();
        for row in rows {
            let row = clean(&row).replace('\n', " ");
            match self.width {
                Some(width) => text.push_str(&fit(&row, width)),
                None => text.push_str(&row),
            }
            text.push('\n');
        }
        self.verbatim(&text)
    }

    /// Writes rows as a table with a head; the last column takes what is left of the width.
    pub(crate) fn table(
        &self,
        head: &[&str],
        rows: impl IntoIterator<Item = Vec<impl AsRef<str>>>,
    ) -> io::Result<()> {
        self.verbatim(&self.table_text(head, rows))
    }

    /// The same; the columns of these names are never cut, however narrow the terminal is.
    pub(crate) fn table_keeping(
        &self,
        whole: &[&str],
        head: &[&str],
        rows: &[Vec<String>],
    ) -> io::Result<()> {
        self.verbatim(&render_table(whole, head, rows, self.width))
    }

    /// The text of a table, for a view that prints it itself.
    pub(crate) fn table_text(
        &self,
        head: &[&str],
        rows: impl IntoIterator<Item = Vec<impl AsRef<str>>>,
    ) -> String {
        let rows: Vec<_> = rows.into_iter().collect();
        render_table(&[], head, &rows, self.width)
    }

    /// Writes a result for people, its lines broken at words where a terminal would break them
    /// anywhere. What stands behind a label, which ends at that column, stays there.
    pub(crate) fn paragraphs(&self, text: &str, label: Option<usize>) -> io::Result<()> {
        self.verbatim(&fold_to(self.width, clean(text), label))
    }
}

/// A text broken to a width, where there is one.
fn fold_to(width: Option<usize>, text: Cow<'_, str>, label: Option<usize>) -> Cow<'_, str> {
    match width {
        Some(width) => Cow::Owned(folded(&text, width, label)),
        None => text,
    }
}

/// JSON with every hidden character as an escape: the same document, which no terminal obeys.
/// Such characters can stand only inside strings, except for white space.
fn escape_hidden(json: &str) -> Cow<'_, str> {
    let acts = |c: char| is_hidden(c) && !matches!(c, '\n' | '\r' | '\t');
    if !json.contains(acts) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if acts(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Gives the word that a line begins with its colour, so that the eye finds it.
fn paint(text: &str) -> Cow<'_, str> {
    const COLOURS: [(&str, &str); 3] = [
        ("error:", "\x1b[1;31m"),
        ("warning:", "\x1b[1;33m"),
        ("hint:", "\x1b[1;36m"),
    ];
    let mut painted = String::new();
    for line in text.split_inclusive('\n') {
        let start = COLOURS
            .iter()
            .find_map(|(word, colour)| Some((word, colour, line.strip_prefix(word)?)));
        match start {
            Some((word, colour, rest)) => {
                painted.extend([colour, *word, "\x1b[0m", rest]);
            }
            None => painted.push_str(line),
        }
    }
    Cow::Owned(painted)
}

/// Columns and rows; where the terminal does not know, what terminals have always had.
fn terminal_size(stream: impl AsFd) -> (usize, usize) {
    match rustix::termios::tcgetwinsize(stream) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
            (usize::from(size.ws_col), usize::from(size.ws_row))
        }
        _ => (80, 24),
    }
}

fn terminal_width(stream: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}
