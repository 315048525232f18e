//! Result: what the server sent becomes what the caller gets.
//!
//! Owns reading the result, saving its media and other binary data (`result/binary.rs`) and, where
//! the caller wants it, bounding it. A tool's
//! own error is a result. Nothing that fails here after the result was read can lose it: it
//! becomes a warning or a notice instead. What a model gets is decided in `result/bound.rs`.

use std::path::Path;
use std::sync::OnceLock;

use serde_json::Value;
use toolway_config::ResultText;
use toolway_types::{BytePool, Untrusted};
use toolway_wire::RawJson;
use toolway_wire::view::{self, ContentBlock, ResultType};

use super::permission::PermittedCall;
use super::send::RawResult;
use crate::call::{
    BoundedResult, CallError, CallFault, CallOptions, Continuations, PlainBlock, ResultDelivery,
    SavedFile, ToolOutcome,
};
use crate::projection::{self, Projection, ProjectionError};
use crate::tasks;
use binary::{BinarySieve, TextScan};
use bounds::ResultBounds;
use media::DecodedMedia;

mod binary;
mod bound;
mod bounds;
pub(crate) mod contents;
mod format;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod hidden;
mod media;
pub mod outline;
mod picture;
mod pieces;
mod spill;
mod structured;

pub use bounds::{MAX_CHARS, MAX_RAISED_CHARS};
pub(crate) use picture::MAX_MEMORY as MAX_PICTURE_MEMORY;
use structured::is_repeated;

/// A result without media that is shorter than this is not worth another thread.
const SMALL: usize = 64 * 1024;

/// Where files of results go, and how much of one a model gets.
#[derive(Debug, Clone, Copy)]
pub struct ResultSettings<'a> {
    /// The private directory.
    pub output_dir: &'a Path,
    /// The most tokens.
    pub max_tokens: usize,
    /// What becomes of hidden characters.
    pub text: ResultText,
    /// The memory that pictures are decoded in.
    pub picture_memory: &'a BytePool,
}

/// Reads the answer, saves its media in the private directory, and bounds it where that is asked
/// for.
pub async fn finish(
    answer: RawResult<'_>,
    options: &CallOptions,
    place: ResultSettings<'_>,
) -> Result<ToolOutcome, CallError> {
    let delivery = &options.delivery;
    // A few short texts, wanted whole: the commonest answer, with which nothing is to be done.
    // Who wants to see them reads them then.
    if let ResultDelivery::Whole | ResultDelivery::Raw = delivery
        && let Some(is_error) = view::skim_result(answer.result())
    {
        let (call, raw) = answer.into_parts();
        return Ok(outcome(
            &call,
            raw,
            is_error,
            None,
            FinishedResult::default(),
        ));
    }
    if *delivery == ResultDelivery::Raw || is_passed_on(answer.result(), options) {
        return as_received(answer);
    }
    // Boxed: a result that passes as it is must not carry the room for working on it along.
    Box::pin(process(answer, delivery, place)).await
}

/// Whether an answer that is not the last word is the caller's to go on from.
fn is_passed_on(answer: &RawJson, options: &CallOptions) -> bool {
    let is_last = || {
        let kind = ResultType::peek(answer);
        matches!(kind, Ok(ResultType::Complete) | Err(_)) && view::task::created(answer).is_none()
    };
    options.continuations != Continuations::Drive && !is_last()
}

/// An answer that is passed on: any object is one.
fn as_received(answer: RawResult<'_>) -> Result<ToolOutcome, CallError> {
    let (call, raw) = answer.into_parts();
    match view::says_error(&raw) {
        Ok(is_error) => {
            let done = FinishedResult::default();
            Ok(outcome(&call, raw, is_error, None, done))
        }
        Err(error) => {
            let what = format!("something that is no result: {error}");
            Err(call.failed(CallFault::Malformed(Untrusted::new(what))))
        }
    }
}

fn outcome(
    call: &PermittedCall<'_>,
    raw: RawJson,
    is_error: bool,
    read: Option<view::ToolResult>,
    done: FinishedResult,
) -> ToolOutcome {
    let mut warnings = call.warnings().to_vec();
    warnings.extend(done.warnings);
    ToolOutcome {
        is_error,
        tool: call.tool().own_name(),
        server: call.tool().key.server.clone(),
        raw,
        read: read.map_or_else(OnceLock::new, |read| OnceLock::from(Box::new(read))),
        saved: done.saved,
        plain: done.plain,
        bounded: done.bounded.map(Box::new),
        warnings,
        context: Vec::new(),
        replaced_by: None,
        replacement: None,
    }
}

async fn process(
    answer: RawResult<'_>,
    delivery: &ResultDelivery,
    place: ResultSettings<'_>,
) -> Result<ToolOutcome, CallError> {
    let of_editor = answer.is_of_editor();
    let (call, raw) = answer.into_parts();
    let malformed = |what: String| call.failed(CallFault::Malformed(Untrusted::new(what)));
    let result = view::tool_result(&raw)
        .map_err(|error| malformed(format!("something that is no result: {error}")))?;
    match &result.result_type {
        ResultType::Complete => {}
        // We declare neither capability, so a server must not answer with one.
        ResultType::InputRequired => {
            return Err(malformed(
                "a wish for input that was never offered".to_owned(),
            ));
        }
        ResultType::Task => return Err(malformed("a task that was never asked for".to_owned())),
        ResultType::Unknown(kind) => {
            return Err(malformed(format!("a result of the unknown type `{kind}`")));
        }
    }
    let is_error = result.is_error;
    if *delivery == ResultDelivery::Whole && !is_work(&result, delivery) {
        let done = FinishedResult::default();
        return Ok(outcome(&call, raw, is_error, Some(result), done));
    }
    let bounds = if of_editor {
        ResultBounds::NONE
    } else {
        ResultBounds {
            text: place.text,
            ..ResultBounds::of(call.tool().received().meta.as_deref(), place.max_tokens)
        }
    };
    let (read, done) = work_aside(result, raw.get().len(), delivery, bounds, place).await;
    Ok(outcome(&call, raw, is_error, read, done))
}

/// What was made of a result.
#[derive(Default)]
struct FinishedResult {
    saved: Vec<SavedFile>,
    plain: Vec<PlainBlock>,
    bounded: Option<BoundedResult>,
    warnings: Vec<String>,
}

/// Whether a result holds something that is decoded and saved.
fn is_work(result: &view::ToolResult, delivery: &ResultDelivery) -> bool {
    media::any(&result.content) || binary::any(result, texts(delivery))
}

/// A person gets text as it is; a model does not read base64.
fn texts(delivery: &ResultDelivery) -> TextScan {
    match delivery {
        ResultDelivery::Whole | ResultDelivery::Raw => TextScan::Kept,
        ResultDelivery::Bounded | ResultDelivery::Selected(_) => TextScan::Searched,
    }
}

/// Works on a result, on another thread where that can take long; gives it back, unless it was
/// lost there.
async fn work_aside(
    result: view::ToolResult,
    size: usize,
    delivery: &ResultDelivery,
    bounds: ResultBounds,
    place: ResultSettings<'_>,
) -> (Option<view::ToolResult>, FinishedResult) {
    let (directory, memory) = (place.output_dir, place.picture_memory);
    if !is_work(&result, delivery) && size < SMALL {
        let done = work(&result, delivery, bounds, directory, memory);
        return (Some(result), done);
    }
    // Decoding and writing can take long; they must not hold up the others on this thread.
    let (delivery, directory) = (delivery.clone(), directory.to_owned());
    let memory = memory.clone();
    let wants_bounds = delivery != ResultDelivery::Whole;
    let work = tasks::blocking("result", move || {
        let done = work(&result, &delivery, bounds, &directory, &memory);
        (result, done)
    });
    match work.await {
        Ok((result, done)) => (Some(result), done),
        Err(failure) => {
            let why = format!("this result was not processed: {failure}");
            let done = FinishedResult {
                bounded: wants_bounds.then(|| bound::nothing(&why)),
                warnings: vec![why],
                ..FinishedResult::default()
            };
            (None, done)
        }
    }
}

fn work(
    result: &view::ToolResult,
    delivery: &ResultDelivery,
    bounds: ResultBounds,
    output_dir: &Path,
    picture_memory: &BytePool,
) -> FinishedResult {
    let decoded = media::decode(&result.content);
    let mut warnings: Vec<String> = decoded.warnings().collect();
    let saved = if decoded.media.is_empty() {
        Vec::new()
    } else {
        let (saved, failures) = spill::save_all(output_dir, &decoded.media);
        warnings.extend(failures);
        saved
    };
    let mut sieve = BinarySieve::new(output_dir, &decoded.media, &saved);
    let plain = sieve.parts(result, texts(delivery));
    let whole = || {
        let source = pieces::ResultSource {
            content: &result.content,
            structured: result.structured.as_deref(),
            plain: &plain,
            decoded: &decoded,
            saved: &saved,
            picture_memory,
        };
        bound::bound(&source, bounds, output_dir)
    };
    let bounded = match delivery {
        ResultDelivery::Whole | ResultDelivery::Raw => None,
        ResultDelivery::Bounded => Some(whole()),
        // A tool's own error has none of the fields that were wished for.
        ResultDelivery::Selected(_) if result.is_error => Some(whole()),
        ResultDelivery::Selected(projection) => Some(match select(result, projection) {
            Ok(mut values) => {
                for value in &mut values {
                    sieve.strain(result.content.len(), value, None);
                }
                let content = [ContentBlock::Text {
                    text: projection::lines(&values),
                }];
                let source = pieces::ResultSource {
                    content: &content,
                    structured: None,
                    plain: &[],
                    decoded: &DecodedMedia::default(),
                    saved: &[],
                    picture_memory,
                };
                bound::bound(&source, bounds, output_dir)
            }
            Err(error) => {
                let mut bounded = whole();
                let text = format!("The selection `{}` failed: {error}", projection.as_str());
                bounded.blocks.insert(0, crate::ModelBlock::notice(text));
                bounded
            }
        }),
    };
    let BinarySieve {
        saved: strained,
        warnings: failures,
        ..
    } = sieve;
    warnings.extend(failures);
    FinishedResult {
        saved: saved.into_iter().chain(strained).collect(),
        plain,
        bounded,
        warnings,
    }
}

/// Why nothing can be selected from a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// There is neither structured content nor text that is JSON.
    #[error("the result is neither structured nor JSON")]
    NoJson,
    /// The filter does not fit.
    #[error(transparent)]
    Filter(#[from] ProjectionError),
}

/// What a filter gives of a result: of its structured content, or of its text where that is JSON.
/// Several texts that are all JSON are one array.
pub fn select(
    result: &view::ToolResult,
    projection: &Projection,
) -> Result<Vec<Value>, SelectError> {
    let value = structure(result).ok_or(SelectError::NoJson)?;
    Ok(projection.apply(&value)?)
}

fn structure(result: &view::ToolResult) -> Option<Value> {
    if let Some(structured) = &result.structured {
        return serde_json::from_str(structured.get()).ok();
    }
    let texts = result.content.iter().filter_map(|block| match block {
        ContentBlock::Text { text }
        | ContentBlock::Resource {
            body: view::ResourceBody::Text(text),
            ..
        } => Some(serde_json::from_str::<Value>(text).ok()),
        _ => None,
    });
    let mut values: Vec<Value> = texts.collect::<Option<_>>()?;
    match values.len() {
        0 => None,
        1 => values.pop(),
        _ => Some(Value::Array(values)),
    }
}

/// The outline of what can be selected from a result.
pub fn outline_of(result: &view::ToolResult) -> Option<outline::Outline> {
    outline::outline(&structure(result)?.to_string())
}

impl ToolOutcome {
    /// What a filter gives of the whole result: of its structured content, or of its text where
    /// that is JSON.
    pub fn select(&self, projection: &Projection) -> Result<Vec<Value>, SelectError> {
        select(self.result(), projection)
    }

    /// The structured content as JSON, unless the content says the same already. In the place of
    /// binary data it says what that is and where it was saved.
    pub fn unsaid_structure(&self) -> Option<&str> {
        let result = self.result();
        let structured = result.structured.as_deref()?;
        if is_repeated(structured, &result.content) {
            return None;
        }
        let plain = self.plain(result.content.len());
        Some(plain.unwrap_or(structured.get()))
    }

    /// The shape of what can be selected from.
    pub fn outline(&self) -> Option<outline::Outline> {
        outline_of(self.result())
    }
}
