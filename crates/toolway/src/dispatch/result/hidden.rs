//! Invisible characters in the text of a result, before a model gets it (SEC-35).
//!
//! Owns the removing and the notice about it. Whether it is done is a setting; what is saved to a
//! file, and the result itself, stay as received.

use toolway_types::text::clean_counted;

use super::bounds::{TextSize, grouped};
use super::pieces::{ResultPiece, size_of_block};
use crate::call::{BoundedResult, ModelBlock};

/// How large the notice will be; nothing where there is nothing to tell.
pub(super) fn size_of_notice(pieces: &[ResultPiece<'_>]) -> TextSize {
    let texts = pieces.iter().filter(|piece| piece.is_text());
    match texts.map(|piece| clean_counted(&piece.bare()).1).sum() {
        0 => TextSize::default(),
        count => size_of_block(&notice(count)),
    }
}

/// Removes it from the text of every block, and says how much that was. Text that hides nothing
/// stays as it is, to the byte.
pub(super) fn remove(bounded: &mut BoundedResult) {
    let mut count = 0;
    for block in &mut bounded.blocks {
        let (ModelBlock::Text { text } | ModelBlock::Resource { text, .. }) = block else {
            continue;
        };
        let (cleaned, removed) = clean_counted(text);
        if removed > 0 {
            count += removed;
            *text = cleaned.into_owned();
        }
    }
    if count == 0 {
        return;
    }
    // Models' interfaces refuse a text of nothing.
    bounded
        .blocks
        .retain(|block| !matches!(block, ModelBlock::Text { text } if text.is_empty()));
    bounded.blocks.push(notice(count));
    let sizes = bounded.blocks.iter().map(size_of_block);
    bounded.tokens = sizes
        .fold(TextSize::default(), |sum, size| sum + size)
        .tokens;
}

fn notice(count: usize) -> ModelBlock {
    let what = match count {
        1 => "One hidden character was".to_owned(),
        _ => format!("{} hidden characters were", grouped(count)),
    };
    ModelBlock::notice(format!("{what} removed from the text of this result"))
}
