//! A line of a journal: made here, and taken apart again.
//!
//! Owns the format, `<time> <process> <kind> <text>`, and with it the only spelling of a time in
//! this crate: RFC 3339 in UTC with milliseconds, twenty lines that need no crate.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a line tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalLineKind {
    /// What the server logged.
    Stderr,
    /// A message to the server.
    Sent,
    /// A message from the server.
    Received,
    /// What happened to the connection.
    Note,
}

impl JournalLineKind {
    /// The word in a file.
    pub fn as_str(self) -> &'static str {
        match self {
            JournalLineKind::Stderr => "stderr",
            JournalLineKind::Sent => "→",
            JournalLineKind::Received => "←",
            JournalLineKind::Note => "note",
        }
    }

    /// The word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            JournalLineKind::Sent => "sent",
            JournalLineKind::Received => "received",
            JournalLineKind::Stderr | JournalLineKind::Note => self.as_str(),
        }
    }

    /// Whether it is part of the protocol's trace.
    pub fn is_protocol(self) -> bool {
        matches!(self, JournalLineKind::Sent | JournalLineKind::Received)
    }

    fn parse(word: &str) -> Option<Self> {
        [
            JournalLineKind::Stderr,
            JournalLineKind::Sent,
            JournalLineKind::Received,
            JournalLineKind::Note,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == word)
    }
}

/// One line, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalLine {
    /// When, as written.
    pub time: String,
    /// The process that wrote it.
    pub process: u32,
    /// What it tells of.
    pub kind: JournalLineKind,
    /// The text, cleaned.
    pub text: String,
}

impl JournalLine {
    /// Reads a line of a file. The file is untrusted, so the text is cleaned again.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(4, ' ');
        let time = words.next().filter(|time| is_time(time))?.to_owned();
        let process = words.next()?.parse().ok()?;
        let kind = JournalLineKind::parse(words.next()?)?;
        let text = toolway_types::text::clean_line(words.next().unwrap_or_default()).into_owned();
        Some(Self {
            time,
            process,
            kind,
            text,
        })
    }
}

impl fmt::Display for JournalLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (time, process, kind) = (&self.time, self.process, self.kind.as_str());
        write!(formatter, "{time} {process} {kind} {}", self.text)
    }
}

/// A line of this process, with its end.
pub(super) fn format(at: SystemTime, kind: JournalLineKind, text: &str) -> String {
    let process = std::process::id();
    format!("{} {process} {} {text}\n", timestamp(at), kind.as_str())
}

/// A time as lines have it: RFC 3339, UTC, milliseconds.
pub fn timestamp(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let seconds = since.as_secs();
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let millis = u64::from(since.subsec_millis());
    // Written digit by digit, which costs less than formatting: every line of every log has one.
    let mut text = *b"0000-00-00T00:00:00.000Z";
    for (end, mut number) in [
        (4, year),
        (7, month),
        (10, day),
        (13, hour),
        (16, minute),
        (19, second),
        (23, millis),
    ] {
        let mut place = end;
        while number > 0 && place > 0 {
            place -= 1;
            text[place] = b'0' + u8::try_from(number % 10).unwrap_or_default();
            number /= 10;
        }
    }
    // Digits are text.
    std::str::from_utf8(&text).unwrap_or_default().to_owned()
}

/// The date of a day since 1970. Years are counted from March, so that the leap day is a year's
/// last, and in eras of 400 years, which all have the same number of days.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

fn is_time(word: &str) -> bool {
    word.len() == 24
        && word
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"-:.TZ".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spelled_as_rfc_3339_says() {
        for (seconds, shown) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_868_799, "2000-02-29T23:59:59.000Z"),
            (951_868_800, "2000-03-01T00:00:00.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
            (1_798_761_599, "2026-12-31T23:59:59.000Z"),
        ] {
            assert_eq!(timestamp(UNIX_EPOCH + Duration::from_secs(seconds)), shown);
        }
        let at = UNIX_EPOCH + Duration::from_millis(1_785_196_799_007);
        assert_eq!(timestamp(at), "2026-07-27T23:59:59.007Z");
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let at = UNIX_EPOCH + Duration::from_secs(5);
        for kind in [
            JournalLineKind::Stderr,
            JournalLineKind::Sent,
            JournalLineKind::Received,
            JournalLineKind::Note,
        ] {
            let text = format(at, kind, "two  words");
            let line = JournalLine::parse(text.trim_end_matches('\n')).unwrap();
            assert_eq!(format!("{line}\n"), text);
            assert_eq!((line.kind, line.text.as_str()), (kind, "two  words"));
        }
        assert_eq!(JournalLine::parse("half a line"), None);
        let planted = "1970-01-01T00:00:05.000Z 1 note a\u{1b}[2Jb";
        assert_eq!(JournalLine::parse(planted).unwrap().text, "ab");
    }
}
