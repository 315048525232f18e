//! What a model gets of a result: the tiers.
//!
//! Owns the decision and the words of the answer:
//!
//! 1. within the limits, everything passes as it is;
//! 2. longer text is saved to a file, and the answer says where, how large, what it is, how it is
//!    built and how to read it;
//! 3. with pictures the text is cut instead, so that they stay visible, and saved besides;
//! 4. where saving fails, the text is cut and the answer says why.
//!
//! Whatever cannot be shown (broken base64, no picture, a canvas beyond all bounds) has a notice in
//! its place. Nothing here fails. Parts: `bounds.rs` (the numbers), `pieces.rs` (a result as
//! pieces), `format.rs` and `outline.rs` (what a text is), `spill.rs` (the files), `hidden.rs`
//! (invisible characters).

use std::fmt::Write as _;
use std::path::Path;

use toolway_config::ResultText;
use toolway_types::text::clean_line;

use super::bounds::{ResultBounds, TextSize, grouped};
use super::format::{LineLayout, TextFormat};
use super::hidden;
use super::media::Media;
use super::pieces::{PieceBody, ResultPiece, ResultSource, gather};
use super::spill::{ResultDirectory, SpillError};
use crate::call::{BoundedResult, SavedFile, Treatment};
use crate::tokens::Meter;

#[cfg(test)]
mod tests;

/// Makes a result fit.
pub(super) fn bound(
    source: &ResultSource<'_>,
    bounds: ResultBounds,
    directory: &Path,
) -> BoundedResult {
    let pieces = gather(source, bounds);
    let whole = size(&pieces);
    let has_text = pieces.iter().any(ResultPiece::is_text);
    let told = match bounds.text {
        ResultText::Clean => hidden::size_of_notice(&pieces),
        ResultText::Keep => TextSize::default(),
    };
    let mut bounded = if !has_text || !bounds.hold() || bounds.admit(whole + told) {
        result(pieces, Treatment::Passed)
    } else {
        shorten(pieces, source, bounds, directory, told)
    };
    if told != TextSize::default() {
        hidden::remove(&mut bounded);
    }
    bounded
}

/// Makes one that is too long fit, with room for what is `told` besides.
fn shorten(
    pieces: Vec<ResultPiece<'_>>,
    source: &ResultSource<'_>,
    bounds: ResultBounds,
    directory: &Path,
    told: TextSize,
) -> BoundedResult {
    let whole = size(&pieces);
    if whole.pictures > 0 {
        let saved = save_text(&pieces, source.saved, directory);
        return cut(pieces, bounds, saved, told);
    }
    match save(&pieces, bounds, source.saved, directory, told) {
        Ok(done) => done,
        Err(error) => cut(pieces, bounds, Err(error), told),
    }
}

fn size(pieces: &[ResultPiece<'_>]) -> TextSize {
    pieces
        .iter()
        .fold(TextSize::default(), |sum, piece| sum + piece.size())
}

fn result(pieces: Vec<ResultPiece<'_>>, treatment: Treatment) -> BoundedResult {
    let tokens = size(&pieces).tokens;
    BoundedResult {
        blocks: pieces.into_iter().map(ResultPiece::into_block).collect(),
        treatment,
        tokens,
    }
}

/// The pieces that go into one file: content, or structured content.
struct FileGroup {
    structured: bool,
    text: String,
    format: TextFormat,
    block: usize,
}

impl FileGroup {
    /// All text of one kind; none when there is none.
    fn of(pieces: &[ResultPiece<'_>], structured: bool) -> Option<Self> {
        let members: Vec<&ResultPiece<'_>> = pieces
            .iter()
            .filter(|piece| piece.is_text() && piece.structured == structured)
            .collect();
        let first = members.first()?;
        Some(Self::join(&members, first.block, structured))
    }

    fn join(members: &[&ResultPiece<'_>], block: usize, structured: bool) -> Self {
        let (text, mime_type) = match members {
            // One text is a file byte for byte.
            [only] => (only.bare().into_owned(), only.mime_type()),
            several => (join(several), None),
        };
        Self {
            structured,
            format: TextFormat::of(&text, mime_type),
            text,
            block,
        }
    }

    fn save(&self, store: &ResultDirectory, beside: &[SavedFile]) -> Result<SavedFile, SpillError> {
        let media = Media {
            block: self.block,
            kind: self.format.kind(),
            bytes: self.text.clone().into_bytes(),
        };
        store.save_beside(&media, beside)
    }

    /// Where it is, how large, what it is, how it is built and how to read it.
    fn notice(&self, file: &SavedFile, bounds: ResultBounds) -> String {
        let size = super::pieces::size_of(&self.text);
        let what = if self.structured {
            "The structured content of this result"
        } else {
            "The text of this result"
        };
        let limit = if bounds.raised {
            format!("{} characters", grouped(bounds.chars))
        } else {
            format!(
                "{} characters and {} tokens",
                grouped(bounds.chars),
                grouped(bounds.tokens)
            )
        };
        format!(
            "{what} is too long to show: {} characters, about {} tokens; the limit is {limit}. \
             It was saved whole.\n{}",
            grouped(size.chars),
            grouped(size.tokens),
            self.description(file),
        )
    }

    /// The part of a notice that is about the file.
    fn description(&self, file: &SavedFile) -> String {
        let lines = LineLayout::count(&self.text);
        let mut text = format!(
            "File: {}\nSize: {} bytes in {}\nFormat: {}\n",
            file.path.display(),
            grouped(self.text.len()),
            match lines.count {
                1 => "one line".to_owned(),
                count => format!(
                    "{} lines, the longest of {}",
                    grouped(count),
                    grouped(lines.longest)
                ),
            },
            self.format.name(),
        );
        if let Some(outline) = self.format.outline() {
            let _ = writeln!(text, "Structure: {outline}");
        }
        text.push_str("How to read it, in parts and never all at once:\n");
        for recipe in self.format.recipes(&file.path, &self.text) {
            let _ = writeln!(text, "  {recipe}");
        }
        text.push_str("It is removed after seven days, or earlier when room is needed.");
        text
    }
}

/// Several texts as one: JSON lines where all of them are JSON, otherwise one after the other.
fn join(several: &[&ResultPiece<'_>]) -> String {
    let as_json: Option<Vec<String>> = several
        .iter()
        .map(|piece| match &piece.body {
            PieceBody::Text(text) if text.trim_start().starts_with(['{', '[']) => {
                let raw: &serde_json::value::RawValue = serde_json::from_str(text).ok()?;
                // White space between tokens may hold breaks; inside of texts it cannot.
                Some(raw.get().replace(['\n', '\r'], " "))
            }
            _ => None,
        })
        .collect();
    if let Some(lines) = as_json {
        return lines.join("\n") + "\n";
    }
    let texts: Vec<_> = several.iter().map(|piece| piece.words()).collect();
    texts.join("\n")
}

fn save(
    pieces: &[ResultPiece<'_>],
    bounds: ResultBounds,
    media: &[SavedFile],
    directory: &Path,
    told: TextSize,
) -> Result<BoundedResult, SpillError> {
    let store = ResultDirectory::open(directory)?;
    let mut groups: Vec<FileGroup> = [false, true]
        .into_iter()
        .filter_map(|structured| FileGroup::of(pieces, structured))
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.text.len()));
    let mut beside = media.to_vec();
    let mut files: Vec<SavedFile> = Vec::new();
    let mut notices: Vec<(bool, String)> = Vec::new();
    for group in &groups {
        let file = group.save(&store, &beside)?;
        notices.push((group.structured, group.notice(&file, bounds)));
        beside.push(file.clone());
        files.push(file);
        let left = pieces
            .iter()
            .filter(|piece| {
                !(piece.is_text() && notices.iter().any(|(of, _)| *of == piece.structured))
            })
            .fold(TextSize::default(), |sum, piece| sum + piece.size());
        let notices = notices.iter().fold(told, |sum, (_, text)| {
            sum + ResultPiece::notice(0, text).size()
        });
        // The shorter part stays where it fits beside the news of the longer one.
        if bounds.admit(left + notices) {
            break;
        }
    }
    let mut left = Vec::new();
    for piece in pieces {
        let told = notices
            .iter_mut()
            .find(|(of, _)| piece.is_text() && *of == piece.structured);
        match told {
            None => left.push(piece.clone()),
            // In the place of the first; the others are in the same file.
            Some((_, text)) if !text.is_empty() => {
                left.push(ResultPiece::notice(piece.block, &std::mem::take(text)));
            }
            Some(_) => {}
        }
    }
    Ok(result(left, Treatment::Saved { files }))
}

/// All text of a result in one file, for a result that is cut; with what there is to say about it.
fn save_text(
    pieces: &[ResultPiece<'_>],
    media: &[SavedFile],
    directory: &Path,
) -> Result<(SavedFile, String), SpillError> {
    let texts: Vec<&ResultPiece<'_>> = pieces.iter().filter(|piece| piece.is_text()).collect();
    let block = texts.first().map_or(0, |piece| piece.block);
    let group = FileGroup::join(&texts, block, false);
    let file = group.save(&ResultDirectory::open(directory)?, media)?;
    let description = group.description(&file);
    Ok((file, description))
}

/// As much of the text as fits beside everything else.
fn cut(
    pieces: Vec<ResultPiece<'_>>,
    bounds: ResultBounds,
    saved: Result<(SavedFile, String), SpillError>,
    told: TextSize,
) -> BoundedResult {
    let shown = pieces
        .iter()
        .filter(|piece| !piece.is_text())
        .fold(TextSize::default(), |sum, piece| sum + piece.size());
    let of: usize = pieces
        .iter()
        .filter(|piece| piece.is_text())
        .map(|piece| piece.size().chars)
        .sum();
    // No number in it will be longer than this one.
    let notice = told + ResultPiece::notice(0, &cut_notice(of, of, &saved)).size();
    let mut chars_left = beside(bounds.chars.saturating_sub(shown.chars), notice.chars);
    let mut tokens_left = if bounds.raised && shown.pictures == 0 {
        usize::MAX
    } else {
        beside(bounds.tokens.saturating_sub(shown.tokens), notice.tokens)
    };
    let mut kept = 0;
    let mut left = Vec::new();
    let mut is_full = false;
    let mut at = 0;
    for piece in pieces {
        if !piece.is_text() {
            left.push(piece);
            continue;
        }
        if is_full {
            continue;
        }
        let size = piece.size();
        if size.chars <= chars_left && size.tokens <= tokens_left {
            chars_left -= size.chars;
            tokens_left -= size.tokens;
            kept += size.chars;
            left.push(piece);
            at = left.len();
            continue;
        }
        is_full = true;
        let words = piece.words();
        let head = head(&words, chars_left, tokens_left);
        if !head.is_empty() {
            kept += head.chars().count();
            left.push(ResultPiece::text(piece.block, head.to_owned()));
        }
        at = left.len();
    }
    left.insert(at, ResultPiece::notice(0, &cut_notice(kept, of, &saved)));
    let file = saved.ok().map(|(file, _)| file);
    result(left, Treatment::Cut { kept, of, file })
}

/// What is left for text beside a notice. Under a very low limit the notice goes over it, because
/// the beginning of the text says more.
fn beside(room: usize, notice: usize) -> usize {
    room - notice.min(room / 2)
}

fn cut_notice(kept: usize, of: usize, saved: &Result<(SavedFile, String), SpillError>) -> String {
    let mut notice = format!(
        "The text of this result is cut: {} of {} characters are shown.",
        grouped(kept),
        grouped(of)
    );
    let _ = match saved {
        Ok((_, description)) => write!(notice, " All of it was saved.\n{description}"),
        Err(error) => {
            let why = error.to_string();
            write!(notice, " The rest could not be saved: {}", clean_line(&why))
        }
    };
    notice
}

/// The longest beginning of a text that fits.
fn head(text: &str, chars: usize, tokens: usize) -> &str {
    let mut meter = Meter::default();
    for (count, (index, c)) in text.char_indices().enumerate() {
        meter.push(c);
        if count == chars || meter.tokens() > tokens {
            return &text[..index];
        }
    }
    text
}

/// Only for the notice that stands where nothing else could.
pub(super) fn nothing(why: &str) -> BoundedResult {
    result(vec![ResultPiece::notice(0, why)], Treatment::Passed)
}
