//! What a resource holds, from what was read to bytes and to private files.
//!
//! Owns nothing of its own: decoding is `media.rs`, files are `spill.rs`. A resource is saved by
//! the same rules as the media of a tool's answer.

use std::path::Path;

use toolway_wire::view::{ResourceBody, ResourceContents};

use super::media::{self, MAX_MEDIA, Media, MediaKind};
use super::spill;
use crate::call::SavedFile;
use crate::tasks;

/// The bytes of one part; what is wrong with it otherwise.
pub(crate) fn bytes(part: &ResourceContents) -> Result<Vec<u8>, String> {
    match &part.body {
        ResourceBody::Text(text) => Ok(text.clone().into_bytes()),
        ResourceBody::Blob(data) => {
            media::from_base64(data).map_err(|error| format!("it is not base64 ({error})"))
        }
    }
}

/// Saves the binary parts in the private directory; gives the files, whose `block` is the place of
/// the part, and one sentence for each that could not be saved.
pub(crate) async fn save(
    contents: &[ResourceContents],
    output_dir: &Path,
) -> (Vec<SavedFile>, Vec<String>) {
    let mut warnings = Vec::new();
    let mut media = Vec::new();
    for (block, part) in contents.iter().enumerate() {
        if !matches!(part.body, ResourceBody::Blob(_)) {
            continue;
        }
        if media.len() == MAX_MEDIA {
            warnings.push(format!(
                "only the first {MAX_MEDIA} binary parts were saved"
            ));
            break;
        }
        match bytes(part) {
            Ok(bytes) => media.push(Media {
                block,
                kind: MediaKind::of(part.mime_type.as_deref()),
                bytes,
            }),
            Err(why) => warnings.push(format!("part {block} was not saved: {why}")),
        }
    }
    if media.is_empty() {
        return (Vec::new(), warnings);
    }
    let directory = output_dir.to_owned();
    // Writing can take long; it must not hold up the others on this thread.
    let work = tasks::blocking("resource", move || spill::save_all(&directory, &media));
    match work.await {
        Ok((saved, failures)) => {
            warnings.extend(failures);
            (saved, warnings)
        }
        Err(error) => {
            warnings.push(format!("the binary parts were not saved: {error}"));
            (Vec::new(), warnings)
        }
    }
}
