//! Tables and lines that fit the width of a terminal.
//!
//! Owns how wide columns are, and what is cut or broken where there is no room. Knows nothing of
//! streams.

use toolway_types::text::clean;
use unicode_width::UnicodeWidthStr as _;

/// What stands between two columns.
const GAP: usize = 2;

/// The last column has this much at least, as long as another one can give it.
const LAST: usize = 16;

/// No column is cut further than this: a name that short still says which it is.
const NARROWEST: usize = 8;

/// Where the text of labelled lines begins, as `toolway doctor` prints them.
const LABEL: usize = 14;

/// Further rows of a line without a label stand in by this.
const FURTHER: usize = 2;

/// A table of plain columns, two spaces apart. With a width, the last column is cut to fit, and
/// where that is not enough, the widest of the others, but for those that are to stay whole. Cells
/// are cleaned one by one: nearly all are plain, and then that costs nothing.
pub(crate) fn render_table(
    whole: &[&str],
    head: &[&str],
    rows: &[Vec<String>],
    width: Option<usize>,
) -> String {
    let mut widths: Vec<usize> = head.iter().map(|cell| columns(cell)).collect();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            widths[column] = widths[column].max(columns(cell));
        }
    }
    if let Some(width) = width {
        shrink(&mut widths, whole, head, width);
    }
    let mut text = String::with_capacity((rows.len() + 1) * 96);
    render_row(&mut text, head.iter().copied(), &widths, width);
    for row in rows {
        render_row(&mut text, row.iter().map(String::as_str), &widths, width);
    }
    text
}

/// Takes columns from the widest until the last one has room.
fn shrink(widths: &mut [usize], whole: &[&str], head: &[&str], width: usize) {
    let Some((last, others)) = widths.split_last_mut() else {
        return;
    };
    let room = width.saturating_sub((*last).min(LAST));
    let needed = |others: &[usize]| others.iter().map(|width| width + GAP).sum::<usize>();
    while needed(others) > room {
        let may_shrink = |(column, width): &(usize, &mut usize)| {
            **width > NARROWEST && !whole.contains(&head[*column])
        };
        let candidates = others.iter_mut().enumerate().filter(may_shrink);
        let Some((_, widest)) = candidates.max_by_key(|(_, width)| **width) else {
            return;
        };
        *widest -= 1;
    }
}

fn render_row<'a>(
    text: &mut String,
    cells: impl ExactSizeIterator<Item = &'a str>,
    widths: &[usize],
    width: Option<usize>,
) {
    let last = cells.len().saturating_sub(1);
    let mut used = 0;
    for (column, cell) in cells.enumerate() {
        let cell = clean(cell);
        if column == last {
            match width {
                Some(width) => text.push_str(&fit(&cell, width.saturating_sub(used).max(10))),
                None => text.push_str(&cell),
            }
            break;
        }
        let cell = fit(&cell, widths[column]);
        let gap = widths[column].saturating_sub(columns(&cell)) + GAP;
        text.push_str(&cell);
        text.extend(std::iter::repeat_n(' ', gap));
        used += widths[column] + GAP;
    }
    text.truncate(text.trim_end_matches(' ').len());
    text.push('\n');
}

/// How many columns a text takes.
fn columns(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.width()
    }
}

/// Cuts text to a width, with an ellipsis where something is missing.
fn fit(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    for character in text.chars() {
        let mut longer = cut.clone();
        longer.push(character);
        if longer.width() + 1 > width {
            break;
        }
        cut = longer;
    }
    cut.push('…');
    cut
}

/// Text whose lines are broken between words. What follows a label stays behind it.
pub(super) fn wrapped(text: &str, width: usize) -> String {
    let mut shown = String::with_capacity(text.len() + text.len() / 8);
    for line in text.lines() {
        wrap_line(line, width, &mut shown);
    }
    shown
}

fn wrap_line(line: &str, width: usize, shown: &mut String) {
    if columns(line) <= width {
        shown.push_str(line);
        shown.push('\n');
        return;
    }
    // A label, or the empty place of one, and then words.
    let is_labelled = line
        .split_at_checked(LABEL)
        .is_some_and(|(label, rest)| label.ends_with(' ') && !rest.starts_with(' '));
    let start = if is_labelled { LABEL } else { 0 };
    let (label, words) = line.split_at(start);
    let indent = if is_labelled { LABEL } else { FURTHER };
    shown.push_str(label);
    let mut used = columns(label);
    let mut is_first = true;
    for word in words.split(' ').filter(|word| !word.is_empty()) {
        let size = columns(word);
        if is_first {
            is_first = false;
        } else if used + 1 + size <= width {
            shown.push(' ');
            used += 1;
        } else {
            // A long path may only fit where nothing stands in.
            let indent = if indent + size <= width {
                indent
            } else {
                FURTHER
            };
            shown.push('\n');
            shown.extend(std::iter::repeat_n(' ', indent));
            used = indent;
        }
        shown.push_str(word);
        used += size;
    }
    shown.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_columns_give_way_to_the_last_one() {
        let rows = [vec![
            "x".repeat(60),
            "y".repeat(40),
            "2026-11-16T10:09:03Z".to_owned(),
            "some words that say something".to_owned(),
        ]];
        let head = ["A", "B", "TIME", "WORDS"];
        let text = render_table(&["TIME"], &head, &rows, Some(60));
        assert!(text.lines().all(|line| columns(line) <= 60), "{text}");
        assert!(text.contains("2026-11-16T10:09:03Z"), "{text}");
        let whole = render_table(&["TIME"], &head, &rows, None);
        assert!(whole.contains(&"x".repeat(60)), "{whole}");
    }

    #[test]
    fn lines_are_broken_between_words_and_stay_behind_their_label() {
        let text =
            "shield        servers behind it cannot write this or that\nno label at all here";
        assert_eq!(
            wrapped(text, 30),
            "shield        servers behind\n              it cannot write\n              this or \
             that\nno label at all here\n"
        );
    }
}
