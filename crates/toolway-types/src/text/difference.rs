//! How two texts differ, line by line.
//!
//! Owns the comparison and its form as a unified diff. What is compared, and what of it is shown,
//! is the caller's affair.
//!
//! Invariants: the lines that are not [`LineChange::Added`] are the old text and those that are not
//! [`LineChange::Removed`] the new one, in their order, whatever the texts are. Time and memory are
//! bounded: texts too large to compare are one whole replacement.

use std::fmt::Write as _;

/// The most pairs of lines that are compared: 1,000 lines with 1,000 others, 4 MB.
const MAX_PAIRS: usize = 1_000_000;

/// One line of a comparison, with its line break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineChange<'a> {
    /// It is in both texts.
    Kept(&'a str),
    /// It is in the old text only.
    Removed(&'a str),
    /// It is in the new text only.
    Added(&'a str),
}

/// The lines of both texts. What was removed stands before what was added in its place.
pub fn differences<'a>(old: &'a str, new: &'a str) -> Vec<LineChange<'a>> {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let before = same(old.iter(), new.iter());
    let (old_rest, new_rest) = (&old[before..], &new[before..]);
    let behind = same(old_rest.iter().rev(), new_rest.iter().rev());
    let old_part = &old_rest[..old_rest.len() - behind];
    let new_part = &new_rest[..new_rest.len() - behind];
    let mut lines: Vec<LineChange<'a>> = Vec::new();
    lines.extend(old[..before].iter().map(|line| LineChange::Kept(line)));
    compare(old_part, new_part, &mut lines);
    lines.extend(
        old[old.len() - behind..]
            .iter()
            .map(|line| LineChange::Kept(line)),
    );
    lines
}

/// How many lines are the same from the beginning.
fn same<'a, 'b>(
    one: impl Iterator<Item = &'a &'b str>,
    other: impl Iterator<Item = &'a &'b str>,
) -> usize
where
    'b: 'a,
{
    one.zip(other)
        .take_while(|(one, other)| one == other)
        .count()
}

/// By a longest common subsequence.
fn compare<'a>(old: &[&'a str], new: &[&'a str], lines: &mut Vec<LineChange<'a>>) {
    let width = new.len() + 1;
    if (old.len() + 1).saturating_mul(width) > MAX_PAIRS {
        lines.extend(old.iter().map(|line| LineChange::Removed(line)));
        lines.extend(new.iter().map(|line| LineChange::Added(line)));
        return;
    }
    // How many lines the rests behind each pair have in common.
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for (row, old) in old.iter().enumerate().rev() {
        for (column, new) in new.iter().enumerate().rev() {
            let at = row * width + column;
            common[at] = if old == new {
                common[at + width + 1] + 1
            } else {
                common[at + width].max(common[at + 1])
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    loop {
        match (old.get(row), new.get(column)) {
            (Some(one), Some(other)) if one == other => {
                lines.push(LineChange::Kept(one));
                row += 1;
                column += 1;
            }
            (Some(one), other) => {
                let at = row * width + column;
                if let Some(other) = other
                    && common[at + 1] > common[at + width]
                {
                    lines.push(LineChange::Added(other));
                    column += 1;
                } else {
                    lines.push(LineChange::Removed(one));
                    row += 1;
                }
            }
            (None, Some(other)) => {
                lines.push(LineChange::Added(other));
                column += 1;
            }
            (None, None) => return,
        }
    }
}

/// A unified diff with so many lines around each change; nothing where the texts are the same.
pub fn unified(old: (&str, &str), new: (&str, &str), context: usize) -> String {
    let lines = differences(old.1, new.1);
    let is_change = |line: &LineChange<'_>| !matches!(line, LineChange::Kept(_));
    let near = |at: usize| {
        let last = at.saturating_add(context).min(lines.len() - 1);
        lines[at.saturating_sub(context)..=last]
            .iter()
            .any(is_change)
    };
    let mut text = String::new();
    let (mut old_line, mut new_line) = (0, 0);
    let mut at = 0;
    while at < lines.len() {
        let end = (at..lines.len())
            .find(|at| !near(*at))
            .unwrap_or(lines.len());
        let hunk = &lines[at..end];
        if hunk.is_empty() {
            old_line += 1;
            new_line += 1;
            at += 1;
            continue;
        }
        let removed = hunk
            .iter()
            .filter(|line| matches!(line, LineChange::Removed(_)));
        let added = hunk
            .iter()
            .filter(|line| matches!(line, LineChange::Added(_)));
        let (removed, added) = (removed.count(), added.count());
        let (of_old, of_new) = (hunk.len() - added, hunk.len() - removed);
        if text.is_empty() {
            let _ = write!(text, "--- {}\n+++ {}\n", old.0, new.0);
        }
        let _ = writeln!(
            text,
            "@@ -{} +{} @@",
            range(old_line, of_old),
            range(new_line, of_new)
        );
        for line in hunk {
            let (sign, line) = match line {
                LineChange::Kept(line) => (' ', line),
                LineChange::Removed(line) => ('-', line),
                LineChange::Added(line) => ('+', line),
            };
            let _ = writeln!(text, "{sign}{}", line.trim_end_matches('\n'));
        }
        old_line += of_old;
        new_line += of_new;
        at = end;
    }
    text
}

/// Lines as a unified diff counts them; an empty range names the line before it.
fn range(start: usize, length: usize) -> String {
    match length {
        0 => format!("{start},0"),
        1 => (start + 1).to_string(),
        _ => format!("{},{length}", start + 1),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(old: &str, new: &str) -> String {
        let lines = differences(old, new).into_iter();
        lines
            .map(|line| match line {
                LineChange::Kept(line) => format!(" {line}"),
                LineChange::Removed(line) => format!("-{line}"),
                LineChange::Added(line) => format!("+{line}"),
            })
            .collect()
    }

    #[test]
    fn what_was_removed_stands_before_what_came_in_its_place() {
        assert_eq!(shown("a\nb\nc\n", "a\nx\ny\nc\n"), " a\n-b\n+x\n+y\n c\n");
        assert_eq!(shown("", "a\n"), "+a\n");
        assert_eq!(shown("a\n", ""), "-a\n");
        assert_eq!(shown("", ""), "");
    }

    #[test]
    fn lines_that_stayed_are_found_between_those_that_changed() {
        assert_eq!(
            shown("one\nkeep\ntwo\nstay\n", "keep\nnew\nstay\nmore\n"),
            "-one\n keep\n-two\n+new\n stay\n+more\n"
        );
    }

    #[test]
    fn texts_too_large_to_compare_are_replaced_as_a_whole() {
        let text = |word: &str| {
            let lines: Vec<String> = (0..1_100).map(|line| format!("{word} {line}\n")).collect();
            lines.concat()
        };
        let (old, new) = (text("old"), text("new"));
        let (old, new) = (format!("first\n{old}same\n"), format!("first\n{new}same\n"));
        let lines = differences(&old, &new);
        assert_eq!(lines.len(), 2_202);
        assert_eq!(lines[0], LineChange::Kept("first\n"));
        assert_eq!(lines[1], LineChange::Removed("old 0\n"));
        assert_eq!(lines[2_200], LineChange::Added("new 1099\n"));
        assert_eq!(lines[2_201], LineChange::Kept("same\n"));
    }

    #[test]
    fn a_unified_diff_shows_changes_in_their_surroundings() {
        let lines = |changed: &[usize]| -> String {
            let word = |at| if changed.contains(&at) { "new" } else { "line" };
            let lines: Vec<String> = (1..=20).map(|at| format!("{} {at}\n", word(at))).collect();
            lines.concat()
        };
        let said = unified(("was", &lines(&[])), ("is", &lines(&[2, 18])), 2);
        assert_eq!(
            said,
            "--- was\n+++ is\n\
             @@ -1,4 +1,4 @@\n line 1\n-line 2\n+new 2\n line 3\n line 4\n\
             @@ -16,5 +16,5 @@\n line 16\n line 17\n-line 18\n+new 18\n line 19\n line 20\n"
        );
        assert_eq!(unified(("was", "a\n"), ("is", "a\n"), 3), "");
        assert_eq!(
            unified(("was", ""), ("is", "a\n"), 3),
            "--- was\n+++ is\n@@ -0,0 +1 @@\n+a\n"
        );
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_from_their_comparison(
            old in "([abc]\n){0,12}[abc]?",
            new in "([abc]\n){0,12}[abc]?",
        ) {
            let lines = differences(&old, &new);
            let of = |left_out: fn(&LineChange<'_>) -> bool| -> String {
                let kept = lines.iter().filter(|line| !left_out(line));
                kept.map(|line| match line {
                    LineChange::Kept(line) | LineChange::Removed(line) | LineChange::Added(line) => *line,
                })
                .collect()
            };
            prop_assert_eq!(&of(|line| matches!(line, LineChange::Added(_))), &old);
            prop_assert_eq!(&of(|line| matches!(line, LineChange::Removed(_))), &new);
        }
    }
}
