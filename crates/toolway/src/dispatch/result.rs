//! Result: what the server sent becomes what the caller gets.
//!
//! Owns reading the result and saving its media. A tool's own error is a result. Nothing that
//! fails here after the result was read can lose it: it becomes a warning instead.

use std::path::Path;

use toolway_types::Untrusted;
use toolway_wire::view::{self, ResultType};

use super::send::RawResult;
use crate::call::{CallError, SavedFile, ToolOutcome};

pub(crate) mod contents;
mod media;
mod spill;

/// Reads the answer and saves its media in the private directory.
pub async fn finish(answer: RawResult, output_dir: &Path) -> Result<ToolOutcome, CallError> {
    let (call, raw) = answer.into_parts();
    let server = call.tool().key.server.clone();
    let malformed = |what: String| CallError::Malformed {
        server: server.clone(),
        tool: call.tool_name(),
        what: Untrusted::new(what),
    };
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
    let mut warnings = call.warnings().to_vec();
    let saved = save(
        media::decode(&result.content, &mut warnings),
        output_dir,
        &mut warnings,
    )
    .await;
    Ok(ToolOutcome {
        is_error: result.is_error,
        tool: call.tool().key.tool.clone(),
        server,
        raw,
        result,
        saved,
        warnings,
        context: Vec::new(),
        replaced_by: None,
    })
}

async fn save(
    media: Vec<media::Media>,
    output_dir: &Path,
    warnings: &mut Vec<String>,
) -> Vec<SavedFile> {
    if media.is_empty() {
        return Vec::new();
    }
    let directory = output_dir.to_owned();
    // Writing can take long; it must not hold up the others on this thread.
    let work = tokio::task::spawn_blocking(move || spill::save_all(&directory, &media));
    match work.await {
        Ok((saved, failures)) => {
            warnings.extend(failures);
            saved
        }
        Err(error) => {
            warnings.push(format!("the media of this result were not saved: {error}"));
            Vec::new()
        }
    }
}
