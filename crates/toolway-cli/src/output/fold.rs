//! Lines folded to the width of a terminal.
//!
//! Owns where a line is broken, and where its further rows begin. What stands in backticks is kept
//! on one row where it fits, since commands are copied. An address is never broken, so that
//! terminals can open it.

use unicode_width::UnicodeWidthChar as _;

use super::table::columns;

/// Further rows of a line stand in by this, from where it begins itself.
const FURTHER: usize = 2;

/// The least of a word that is left at the end of a row when the word has to be broken anyway.
const LEAST: usize = 8;

/// Text whose lines are broken where a terminal of this width would break them. What stands behind a
/// label, up to the column `label`, stays behind it.
pub(super) fn folded(text: &str, width: usize, label: Option<usize>) -> String {
    let mut shown = String::with_capacity(text.len() + text.len() / 8);
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        if columns(line) <= width {
            shown.push_str(line);
        } else {
            Rows::begin(&mut shown, line, width, label).fill(line);
        }
        shown.push_str(end);
    }
    shown
}

/// The rows of one line.
struct Rows<'s> {
    shown: &'s mut String,
    width: usize,
    /// Where further rows begin.
    hang: usize,
    /// Where the line's words begin, in bytes.
    start: usize,
    used: usize,
    is_empty: bool,
}

impl<'s> Rows<'s> {
    fn begin(shown: &'s mut String, line: &str, width: usize, label: Option<usize>) -> Self {
        let blank = line.len() - line.trim_start_matches(' ').len();
        let is_labelled = |label: &usize| {
            line.split_at_checked(*label)
                .is_some_and(|(before, rest)| before.ends_with(' ') && !rest.starts_with(' '))
        };
        let label = label.filter(is_labelled);
        let start = label.unwrap_or(blank);
        let hang = label.unwrap_or(blank + FURTHER).min(width / 2);
        shown.push_str(&line[..start]);
        Self {
            used: columns(&line[..start]),
            shown,
            width,
            hang,
            start,
            is_empty: true,
        }
    }

    fn fill(&mut self, line: &str) {
        let most = self.width.saturating_sub(self.hang);
        let mut rest = &line[self.start..];
        while !rest.is_empty() {
            let gap = rest.len() - rest.trim_start_matches(' ').len();
            rest = &rest[gap..];
            let (word, after) = rest.split_at(unit(rest, most));
            self.put(gap, word);
            rest = after;
        }
    }

    fn put(&mut self, gap: usize, word: &str) {
        let size = columns(word);
        let gap = if self.is_empty { 0 } else { gap };
        if self.used + gap + size <= self.width {
            self.push(gap, word, size);
        } else if size + self.hang <= self.width {
            self.turn(self.hang);
            self.push(0, word, size);
        } else if size + FURTHER <= self.width {
            // A long path may only fit where little stands before it.
            self.turn(FURTHER);
            self.push(0, word, size);
        } else if is_address(word) {
            self.push(gap, word, size);
        } else {
            if self.used + gap + LEAST > self.width {
                self.turn(self.hang);
            } else {
                self.push(gap, "", 0);
            }
            self.push_broken(word);
        }
    }

    fn push(&mut self, gap: usize, word: &str, size: usize) {
        self.shown.extend(std::iter::repeat_n(' ', gap));
        self.shown.push_str(word);
        self.used += gap + size;
        self.is_empty = false;
    }

    /// Breaks a word that no row holds at the last column of each.
    fn push_broken(&mut self, word: &str) {
        for letter in word.chars() {
            let size = letter.width().unwrap_or_default();
            if self.used + size > self.width {
                self.turn(self.hang);
            }
            self.shown.push(letter);
            self.used += size;
        }
        self.is_empty = false;
    }

    /// Begins a row, unless the one at hand has only what every row has before its words.
    fn turn(&mut self, indent: usize) {
        if self.is_empty && self.used <= indent {
            return;
        }
        let end = self.shown.trim_end_matches(' ').len();
        self.shown.truncate(end);
        self.shown.push('\n');
        self.shown.extend(std::iter::repeat_n(' ', indent));
        self.used = indent;
        self.is_empty = true;
    }
}

/// The length of what is not broken at the start of a text: a word, or all between two backticks
/// where that fits a row.
fn unit(text: &str, most: usize) -> usize {
    let word = text.find(' ').unwrap_or(text.len());
    if !text[..word].matches('`').count().is_multiple_of(2)
        && let Some(closed) = text[word..].find('`').map(|place| word + place + 1)
    {
        let end = text[closed..].find(' ');
        let end = end.map_or(text.len(), |place| closed + place);
        let is_closed = text[..end].matches('`').count().is_multiple_of(2);
        if is_closed && columns(&text[..end]) <= most {
            return end;
        }
    }
    word
}

fn is_address(word: &str) -> bool {
    let word = word.trim_start_matches(['`', '(', '<', '"']);
    word.starts_with("http://") || word.starts_with("https://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, width: usize, label: Option<usize>) -> Vec<String> {
        let shown = folded(text, width, label);
        shown.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_line_is_broken_between_words_and_goes_on_behind_its_own_beginning() {
        assert_eq!(
            rows("  some words  that do not fit here\nnext", 16, None),
            ["  some words", "    that do not", "    fit here", "next"]
        );
        assert_eq!(rows("short", 16, None), ["short"]);
        assert_eq!(
            folded("no end of a line here", 12, None),
            "no end of a\n  line here"
        );
        assert_eq!(folded("\n\n", 12, None), "\n\n");
    }

    #[test]
    fn what_follows_a_label_stays_behind_it() {
        let text =
            "shield        servers behind it cannot write this or that\nno label at all here\n";
        assert_eq!(
            folded(text, 30, Some(14)),
            "shield        servers behind\n              it cannot write\n              this or \
             that\nno label at all here\n"
        );
    }

    #[test]
    fn a_word_that_no_row_holds_is_broken_at_the_last_column() {
        assert_eq!(
            rows(&format!("at {}", "x".repeat(30)), 16, None),
            ["at xxxxxxxxxxxxx", "  xxxxxxxxxxxxxx", "  xxx"]
        );
        assert_eq!(
            rows(&format!("label   {}", "日".repeat(9)), 16, Some(8)),
            ["label   日日日日", "        日日日日", "        日"]
        );
        // One that fits a row of its own is not.
        assert_eq!(
            rows("some words at /a/path:12", 16, None),
            ["some words at", "  /a/path:12"]
        );
        assert_eq!(
            rows("label   words /a/path/b:12", 14, Some(8)),
            ["label   words", "  /a/path/b:12"]
        );
    }

    #[test]
    fn commands_stay_together_where_they_fit_and_addresses_always() {
        assert_eq!(
            rows("hint: log in with `toolway login shop`, then", 26, None),
            ["hint: log in with", "  `toolway login shop`,", "  then"]
        );
        assert_eq!(
            rows("hint: `a command that is longer than a row`", 20, None),
            ["hint: `a command", "  that is longer", "  than a row`"]
        );
        let address = "http://127.0.0.1/a?b=c&d=e";
        assert_eq!(
            rows(&format!("open {address} now"), 20, None),
            [&format!("open {address}"), "  now"]
        );
    }

    #[test]
    fn a_narrow_terminal_ends() {
        for width in 1..8 {
            let shown = folded("  label  words `and a command` http://x", width, Some(9));
            let words = shown.split_whitespace().collect::<String>();
            assert_eq!(words, "labelwords`andacommand`http://x", "{width}");
        }
    }
}
