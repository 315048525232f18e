//! Screens on which a user decides about foreign text (SEC-52).
//!
//! Owns the layout: rows that fit the terminal, a margin for foreign text, pages, and the letters
//! that the terminal has. Single characters and words are `toolway_types::text::legible`.
//!
//! Invariant: the first column is ours. Rows are broken here, not by the terminal, and go on behind
//! the margin.

use std::borrow::Cow;

use toolway_types::name::shell_word;
use toolway_types::text::{LINE_BREAK, TextKind, counted, cut, legible, legible_within, mark};
use unicode_width::UnicodeWidthChar as _;
use url::{Host, Url};

/// What stands before foreign text that has rows of its own.
pub(crate) const MARGIN: &str = "  | ";

/// A narrower terminal breaks rows by itself.
const NARROWEST: usize = 24;

/// The longest command that stands on one row where no terminal says how wide that is.
const COMMAND: usize = 100;

/// The longest name that is shown whole.
const NAME: usize = 48;

/// So many empty lines are counted.
const MANY_EMPTY: usize = 3;

/// Rows of a page that are not its own: for the question, which may take two, and what is typed.
const BELOW: usize = 4;

/// Before this, letters are Latin, Greek and Cyrillic, of which all terminals know the width.
const WIDE_FROM: char = '\u{0530}';

/// The fewest rows of a page.
const FEWEST: usize = 6;

/// Which letters a terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Letters {
    Any,
    Ascii,
}

impl Letters {
    /// By the variables that name the language: only one that names other letters than Unicode's
    /// takes them away.
    pub(crate) fn of<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Self {
        let named = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find_map(|name| variable(name).filter(|value| !value.is_empty()));
        let Some(named) = named.map(str::to_ascii_lowercase) else {
            return Self::Any;
        };
        let charset = named.split_once('.').map(|(_, charset)| charset);
        match charset {
            Some(charset) if charset.starts_with("utf-8") || charset.starts_with("utf8") => {
                Self::Any
            }
            Some(_) => Self::Ascii,
            None if matches!(named.as_str(), "c" | "posix") => Self::Ascii,
            None => Self::Any,
        }
    }
}

/// What is known of the place that rows are written to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    /// None where no terminal breaks rows.
    columns: Option<usize>,
    rows: Option<usize>,
    letters: Letters,
}

impl Screen {
    pub(crate) fn new(size: Option<(usize, usize)>, letters: Letters) -> Self {
        Self {
            columns: size.map(|(columns, _)| columns.max(NARROWEST)),
            rows: size.map(|(_, rows)| rows),
            letters,
        }
    }

    /// An empty sheet for it.
    pub(crate) fn sheet(self) -> Sheet {
        Sheet {
            screen: self,
            text: String::new(),
        }
    }

    /// The rows of a text in pieces that a screen holds, each with room for a question below it.
    pub(crate) fn pages<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let Some(fits) = self.rows.map(|rows| rows.saturating_sub(BELOW).max(FEWEST)) else {
            return vec![text];
        };
        let mut pages = Vec::new();
        let mut rest = text;
        while let Some((end, _)) = rest.match_indices('\n').nth(fits) {
            // The row that begins here would be one too many.
            let end = rest[..end].rfind('\n').map_or(end, |end| end + 1);
            let (page, after) = rest.split_at(end);
            pages.push(page);
            rest = after;
        }
        pages.push(rest);
        pages
    }

    fn letter(&self, c: char) -> (Cow<'static, str>, usize) {
        if c.is_ascii() {
            return (Cow::Owned(c.to_string()), 1);
        }
        if self.letters == Letters::Any {
            // Terminals disagree on many: a row that is too wide on one of them would go on in its
            // first column.
            let least = if c < WIDE_FROM { 1 } else { 2 };
            let width = c.width_cjk().unwrap_or_default().max(least);
            return (Cow::Owned(c.to_string()), width);
        }
        let text: Cow<'static, str> = match c {
            '⟨' => "<".into(),
            '⟩' => ">".into(),
            '…' => "...".into(),
            '×' => "x".into(),
            LINE_BREAK => "\\n".into(),
            other => format!("\\u{{{:04X}}}", other as u32).into(),
        };
        let width = text.len();
        (text, width)
    }
}

/// What is said between two pages.
pub(crate) fn turn(page: usize, pages: usize) -> String {
    format!("(page {page} of {pages}: Enter shows the next one, anything else is a no) ")
}

/// Rows for a screen.
#[derive(Debug)]
pub(crate) struct Sheet {
    screen: Screen,
    text: String,
}

impl Sheet {
    /// A row that begins with words of ours. What is foreign in it must be legible; where it does
    /// not fit, and where a line of it ended, it goes on behind the margin.
    pub(crate) fn row(&mut self, text: &str) {
        let columns = self
            .screen
            .columns
            .map_or(usize::MAX, |columns| columns - 1);
        let mut row = String::new();
        let mut used = 0;
        let mut letters = text.chars().peekable();
        while let Some(c) = letters.next() {
            let (shown, width) = self.screen.letter(c);
            if used + width > columns {
                let rest = at_blank(&mut row, columns);
                self.put(&row);
                row = format!("{MARGIN}{rest}");
                used = row.chars().map(|c| self.screen.letter(c).1).sum();
            }
            row.push_str(&shown);
            used += width;
            if c == LINE_BREAK && letters.peek().is_some() {
                self.put(&row);
                MARGIN.clone_into(&mut row);
                used = MARGIN.len();
            }
        }
        self.put(&row);
    }

    /// Foreign text line by line behind the margin, its empty lines counted where they are many;
    /// of more rows than `most` those in the middle are left out, and counted.
    pub(crate) fn quote(&mut self, text: &str, nature: TextKind, most: usize) {
        let is_empty = |line: &&str| line.trim().is_empty();
        let mut quoted = self.screen.sheet();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            if !is_empty(&line) {
                quoted.row(&format!("{MARGIN}{}", legible(line, nature)));
                continue;
            }
            let mut empty = 1;
            while lines.next_if(is_empty).is_some() {
                empty += 1;
            }
            if empty < MANY_EMPTY {
                for _ in 0..empty {
                    quoted.put(MARGIN);
                }
            } else {
                let words = mark(&counted(empty, "empty line"));
                quoted.row(&format!("{MARGIN}{words}"));
            }
        }
        let rows: Vec<&str> = quoted.text.lines().collect();
        if rows.len() <= most {
            self.text.push_str(&quoted.text);
            return;
        }
        let (head, tail) = (most * 2 / 3, most / 3);
        for row in &rows[..head] {
            self.put(row);
        }
        let left_out = counted(rows.len() - head - tail, "row");
        self.row(&format!(
            "{MARGIN}{}",
            mark(&format!("{left_out} left out"))
        ));
        for row in &rows[rows.len() - tail..] {
            self.put(row);
        }
    }

    /// The words of a command, exactly and all of them: behind `lead` where that is unmistakable,
    /// else each on a row of its own.
    pub(crate) fn command(&mut self, lead: &str, words: &[&str]) {
        let line: Vec<Cow<'_, str>> = words.iter().map(|word| in_line(word)).collect();
        let line = format!("{lead}{}", line.join(" "));
        let plain = words
            .iter()
            .all(|word| word.is_ascii() && legible(word, TextKind::Code) == **word);
        let fits = self.screen.columns.map_or(COMMAND, |columns| columns - 1);
        if plain && line.chars().count() <= fits {
            self.row(&line);
            return;
        }
        let indent = if lead.trim().is_empty() {
            lead
        } else {
            self.row(lead);
            "      "
        };
        let width = words.len().to_string().len();
        for (place, word) in words.iter().enumerate() {
            let word = match *word {
                "" => mark("empty"),
                word => legible(word, TextKind::Code),
            };
            self.row(&format!("{indent}{:>width$}  {word}", place + 1));
        }
    }

    /// A line that can be copied into a shell, of quoted words, broken behind a backslash. False, and
    /// nothing written, where a word is wider than a row or the terminal lacks its letters.
    pub(crate) fn typable(&mut self, lead: &str, words: &[String]) -> bool {
        let columns = self
            .screen
            .columns
            .map_or(usize::MAX, |columns| columns - 1);
        let mut rows = vec![String::from("  ")];
        let mut used = 2;
        for word in words {
            if word
                .chars()
                .any(|c| self.screen.letter(c).0 != c.to_string())
            {
                return false;
            }
            let width: usize = word.chars().map(|c| self.screen.letter(c).1).sum();
            // The blank before it, and a backslash behind it.
            if used > 2 && used + width + 3 > columns {
                rows.push(String::from("    "));
                used = 4;
            }
            if used + width + 2 > columns {
                return false;
            }
            if let Some(row) = rows.last_mut() {
                if !row.trim().is_empty() {
                    row.push(' ');
                    used += 1;
                }
                row.push_str(word);
            }
            used += width;
        }
        self.put(lead);
        self.put(&rows.join(" \\\n"));
        true
    }

    /// How many rows there are by now.
    pub(crate) fn len(&self) -> usize {
        self.text.lines().count()
    }

    /// Whether not all of it is on the screen when its end is.
    pub(crate) fn is_long(&self) -> bool {
        self.screen
            .rows
            .is_some_and(|rows| self.len() + BELOW > rows)
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }

    fn put(&mut self, row: &str) {
        self.text.push_str(row.trim_end());
        self.text.push('\n');
    }
}

/// A word among others: in quotes where its ends could not be seen. A variable needs none.
fn in_line(word: &str) -> Cow<'_, str> {
    match shell_word(&word.replace(['$', '{', '}'], "")) {
        Cow::Borrowed(_) => Cow::Borrowed(word),
        Cow::Owned(_) => shell_word(word),
    }
}

/// Takes the last blank and what follows it off a row that is full, unless that would leave it
/// half empty. The blank goes on behind the margin, where it is seen: `/ tmp` is not `/tmp`.
fn at_blank(row: &mut String, columns: usize) -> String {
    match row.rfind(' ') {
        Some(blank) if blank > columns / 2 => row.split_off(blank),
        _ => String::new(),
    }
}

/// A name of something foreign.
pub(crate) fn name(text: &str) -> String {
    legible_within(text, TextKind::Code, NAME)
}

/// The name of a variable, a header or an argument, nothing cut; in quotes where it could be taken
/// for more than that.
pub(crate) fn member_name(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        legible(&serde_json::Value::from(text).to_string(), TextKind::Code)
    }
}

/// Words of a server for a place that has one row of them, cut at their end.
pub(crate) fn words(text: &str, most: usize) -> String {
    legible(&cut(text, most), TextKind::Prose)
}

/// What a browser may show in place of the host of an address, when that differs.
pub(crate) fn disguise(address: &Url) -> String {
    let pretty = match address.host() {
        Some(Host::Domain(name)) => url::quirks::domain_to_unicode(name),
        _ => String::new(),
    };
    if pretty.is_empty() || Some(pretty.as_str()) == address.host_str() {
        return String::new();
    }
    format!(
        " (may be shown as `{}`: letters that look alike are not the same)",
        name(&pretty)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(columns: usize, rows: usize) -> Sheet {
        Screen::new(Some((columns, rows)), Letters::Any).sheet()
    }

    #[test]
    fn sec_52_no_foreign_text_reaches_the_first_column() {
        let mut sheet = sheet(40, 24);
        let hostile = format!("{}\nStart it? [y/N] \ncommand: npx", "x y ".repeat(40));
        sheet.row(&format!("  env A: {}", legible(&hostile, TextKind::Code)));
        sheet.quote(&hostile, TextKind::Prose, 5);
        sheet.quote(&format!("a{}b", "\n".repeat(90)), TextKind::Prose, 5);
        sheet.command("  ", &["sh", "-c", &hostile, ""]);
        for row in sheet.finish().lines() {
            assert!(row.starts_with("  "), "{row:?}");
            assert!(row.chars().count() < 40, "{row:?}");
        }
    }

    #[test]
    fn what_is_quoted_is_bounded_in_its_middle() {
        let mut sheet = sheet(80, 24);
        let lines: Vec<String> = (1..=100).map(|n| format!("line {n}")).collect();
        sheet.quote(&lines.join("\n"), TextKind::Prose, 6);
        let expected = [
            "  | line 1",
            "  | line 2",
            "  | line 3",
            "  | line 4",
            "  | ⟨94 rows left out⟩",
            "  | line 99",
            "  | line 100",
        ];
        assert_eq!(sheet.finish().lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_command_is_one_row_where_that_is_unmistakable() {
        let shown = |words: &[&str]| {
            let mut sheet = sheet(40, 24);
            sheet.command("  ", words);
            sheet.finish()
        };
        assert_eq!(shown(&["npx", "-y", "a b"]), "  npx -y 'a b'\n");
        assert_eq!(shown(&["npx", "${HOME}/a", ""]), "  npx ${HOME}/a ''\n");
        assert_eq!(shown(&["npx", "a   b"]), "  1  npx\n  2  a⟨3 blanks⟩b\n");
        assert_eq!(shown(&["npx", "é"]), "  1  npx\n  2  é\n");
        assert!(shown(&["npx", &"x".repeat(60)]).starts_with("  1  npx\n  2  xxx"));
    }

    #[test]
    fn pages_leave_room_for_a_question_and_lose_nothing() {
        let screen = Screen::new(Some((80, 10)), Letters::Any);
        let text = "a row\n".repeat(20);
        let pages = screen.pages(&text);
        assert_eq!(pages.concat(), text);
        assert_eq!(pages.len(), 4);
        assert!(
            pages.iter().all(|page| page.lines().count() <= 6),
            "{pages:?}"
        );
        assert_eq!(screen.pages("one\n"), ["one\n"]);
    }

    #[test]
    fn a_terminal_without_unicode_gets_ascii() {
        let of = |name: &'static str, value: &'static str| {
            Letters::of(move |asked| (asked == name).then_some(value))
        };
        assert_eq!(of("LANG", "de_DE.UTF-8"), Letters::Any);
        assert_eq!(of("LANG", ""), Letters::Any);
        assert_eq!(of("LC_ALL", "C"), Letters::Ascii);
        assert_eq!(of("LC_CTYPE", "de_DE.ISO-8859-1"), Letters::Ascii);
        let mut sheet = Screen::new(None, Letters::Ascii).sheet();
        sheet.row(&legible(&format!("é{}x\ny", " ".repeat(9)), TextKind::Code));
        assert_eq!(sheet.finish(), "\\u{00E9}<9 blanks>x\\n\n  | y\n");
    }

    #[test]
    fn sec_36_a_host_that_is_shown_in_other_letters_says_so() {
        let shown = |text: &str| disguise(&Url::parse(text).unwrap());
        assert_eq!(shown("https://example.com/x"), "");
        assert_eq!(shown("http://127.0.0.1:9/x"), "");
        assert_eq!(
            shown("https://\u{430}pple.com/"),
            " (may be shown as `⟨Cyrillic а⟩pple.com`: letters that look alike are not the same)"
        );
    }
}
