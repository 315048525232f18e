//! Tables that fit the width of a terminal.
//!
//! Owns how wide columns are, and what is cut where there is no room; lines are `output/fold.rs`. Knows nothing of
//! streams.

use std::borrow::Cow;

use toolway_types::text::clean;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// What stands between two columns.
const GAP: usize = 2;

/// The last column has this much at least, as long as another one can give it.
const LAST: usize = 20;

/// No column is cut further than this: a name that short still says which it is.
const NARROWEST: usize = 8;

/// The least that the last column has beside others: below that, it stands on a row of its own.
const LAST_BESIDE: usize = 10;

/// Where the columns of a further row begin.
const FURTHER: usize = 4;

/// A table of plain columns, two spaces apart. With a width, the last column is cut to fit, then the
/// widest of the others that need not stay whole; columns that still do not fit go on rows below.
pub(crate) fn render_table(
    whole: &[&str],
    head: &[&str],
    rows: &[Vec<impl AsRef<str>>],
    width: Option<usize>,
) -> String {
    let mut widths: Vec<usize> = head.iter().map(|cell| columns(cell)).collect();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            widths[column] = widths[column].max(columns(cell.as_ref()));
        }
    }
    if let Some(width) = width {
        shrink(&mut widths, whole, head, width);
    }
    let turns = turns(&widths, width);
    let mut text = String::with_capacity((rows.len() + 1) * 96);
    let mut render = |cells: &mut dyn ExactSizeIterator<Item = &str>| {
        render_row(&mut text, cells, &widths, &turns, width);
    };
    render(&mut head.iter().copied());
    for row in rows {
        render(&mut row.iter().map(AsRef::as_ref));
    }
    text
}

/// The columns that begin a further row.
fn turns(widths: &[usize], width: Option<usize>) -> Vec<usize> {
    let Some(width) = width else {
        return Vec::new();
    };
    let mut turns = Vec::new();
    let mut used = 0;
    for (column, size) in widths.iter().enumerate() {
        let is_last = column + 1 == widths.len();
        let needed = if is_last {
            (*size).min(LAST_BESIDE)
        } else {
            *size
        };
        if used > FURTHER && used + needed > width {
            turns.push(column);
            used = FURTHER;
        }
        used += size + GAP;
    }
    turns
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

fn render_row(
    text: &mut String,
    cells: &mut dyn ExactSizeIterator<Item = &str>,
    widths: &[usize],
    turns: &[usize],
    width: Option<usize>,
) {
    let last = cells.len().saturating_sub(1);
    let mut used = 0;
    for (column, cell) in cells.enumerate() {
        let cell = clean(cell);
        if turns.contains(&column) {
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', FURTHER));
            used = FURTHER;
        }
        if column == last {
            match width {
                Some(width) => text.push_str(&fit(&cell, width.saturating_sub(used))),
                None => text.push_str(&cell),
            }
            break;
        }
        let cell = match width.map(|width| width.saturating_sub(used)) {
            Some(room) => fit(&cell, widths[column].min(room)),
            None => cell,
        };
        let gap = widths[column].saturating_sub(columns(&cell)) + GAP;
        text.push_str(&cell);
        text.extend(std::iter::repeat_n(' ', gap));
        used += widths[column] + GAP;
    }
    text.truncate(text.trim_end_matches(' ').len());
    text.push('\n');
}

/// How many columns a text takes.
pub(super) fn columns(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.width()
    }
}

/// Cuts text to a width, with an ellipsis where something is missing: the end, or the beginning of a
/// path, whose end says which file and line it is.
pub(super) fn fit(text: &str, width: usize) -> Cow<'_, str> {
    if columns(text) <= width {
        return text.into();
    }
    if text.starts_with('/') && !text.contains(' ') {
        let mut kept: Vec<char> = Vec::new();
        let mut used = 1;
        for character in text.chars().rev() {
            used += character.width().unwrap_or_default();
            if used > width {
                break;
            }
            kept.push(character);
        }
        return std::iter::once('…').chain(kept.into_iter().rev()).collect();
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
    cut.into()
}

/// The first line of a description, for a cell.
pub(crate) fn first_line(text: &str) -> String {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_keeps_its_end() {
        let path = "/home/someone/.config/toolway/settings.json:12";
        assert_eq!(fit(path, 17), "…settings.json:12");
        assert_eq!(fit("/a path and words", 9), "/a path …");
    }

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
    fn columns_without_room_stand_on_rows_below() {
        let rows = [vec![
            "2026-11-16T10:09:03Z".to_owned(),
            "command line".to_owned(),
            "y".repeat(40),
            "refused by a rule".to_owned(),
            "a rule in a file".to_owned(),
        ]];
        let head = ["TIME", "WHO", "TOOL", "OUTCOME", "DECIDED"];
        let text = render_table(&["TIME", "OUTCOME"], &head, &rows, Some(40));
        assert_eq!(
            text,
            "TIME                  WHO       TOOL\n    OUTCOME            DECIDED\n\
             2026-11-16T10:09:03Z  command…  yyyyyyy…\n    refused by a rule  a rule in a file\n"
        );
        for width in 1..80 {
            let text = render_table(&["TIME", "OUTCOME"], &head, &rows, Some(width));
            let widest = text.lines().map(columns).max().unwrap_or_default();
            assert!(widest <= width.max(FURTHER + 1), "{width}: {text}");
        }
    }
}
