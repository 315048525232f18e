//! Access for the fuzz targets in `fuzz/` to what is otherwise private.
//!
//! Owns nothing. It exists only where the compiler is told `--cfg fuzzing`, so that files and
//! lines of a result can be driven with any input without becoming part of the library.

use std::path::Path;

use serde_json::value::RawValue;
use toolway_types::BytePool;
use toolway_wire::view;

use super::bounds::ResultBounds;
use super::outline::{self, Outline};
use crate::call::{BoundedResult, ResultDelivery, SavedFile};

/// The outline of many JSON texts, one a line.
pub fn outline_lines(text: &str) -> Option<Outline> {
    outline::outline_lines(text)
}

/// Takes a result through saving and bounding: its media, what a model gets, the warnings.
pub fn deliver(
    result: &str,
    max_tokens: usize,
    directory: &Path,
) -> Option<(Vec<SavedFile>, BoundedResult, Vec<String>)> {
    let raw: &RawValue = serde_json::from_str(result).ok()?;
    let result = view::tool_result(raw).ok()?;
    let bounds = ResultBounds::of(None, max_tokens);
    let pictures = BytePool::new(super::MAX_PICTURE_MEMORY);
    let done = super::work(
        &result,
        &ResultDelivery::Bounded,
        bounds,
        directory,
        &pictures,
    );
    Some((done.saved, done.bounded?, done.warnings))
}
