//! Media in a result: images, audio and binary resources, from base64 to bytes.
//!
//! Owns decoding and the closed list of media types. A server's own words — type, name, URI —
//! only select from that list; none of them gets any further (SEC-38).

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use toolway_wire::view::{ContentBlock, ResourceBody};

/// The most media of one result that are saved.
pub(crate) const MAX_MEDIA: usize = 64;

/// Peers forget the padding, and some leave stray bits.
pub(super) const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A kind of file: its media type and the end of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MediaKind {
    /// The media type.
    pub(crate) mime_type: &'static str,
    /// The extension, without the dot.
    pub(crate) extension: &'static str,
}

/// Every kind we save by name. HTML and SVG are left out on purpose: they can run scripts when
/// a person opens them.
const KINDS: [MediaKind; 27] = [
    kind("image/png", "png"),
    kind("image/jpeg", "jpg"),
    kind("image/gif", "gif"),
    kind("image/webp", "webp"),
    kind("image/avif", "avif"),
    kind("image/bmp", "bmp"),
    kind("image/tiff", "tiff"),
    kind("audio/wav", "wav"),
    kind("audio/mpeg", "mp3"),
    kind("audio/ogg", "ogg"),
    kind("audio/flac", "flac"),
    kind("audio/aac", "aac"),
    kind("audio/mp4", "m4a"),
    kind("audio/webm", "weba"),
    kind("video/mp4", "mp4"),
    kind("video/webm", "webm"),
    kind("application/pdf", "pdf"),
    kind("application/json", "json"),
    kind("application/jsonl", "jsonl"),
    kind("application/zip", "zip"),
    kind("application/gzip", "gz"),
    kind("application/xml", "xml"),
    kind("text/plain", "txt"),
    kind("text/csv", "csv"),
    kind("text/markdown", "md"),
    kind(
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "xlsx",
    ),
    kind(
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "docx",
    ),
];

const fn kind(mime_type: &'static str, extension: &'static str) -> MediaKind {
    MediaKind {
        mime_type,
        extension,
    }
}

impl MediaKind {
    /// What is not on the list.
    pub(super) const OTHER: MediaKind = kind("application/octet-stream", "bin");

    /// The kind that a media type names; anything unknown is plain bytes.
    pub(crate) fn of(mime_type: Option<&str>) -> MediaKind {
        let essence = mime_type
            .unwrap_or_default()
            .split(';')
            .next()
            .unwrap_or_default()
            .trim();
        let essence = match essence.to_ascii_lowercase() {
            alias if alias == "image/jpg" => "image/jpeg".to_owned(),
            alias if alias == "audio/x-wav" || alias == "audio/wave" => "audio/wav".to_owned(),
            alias if alias == "audio/mp3" => "audio/mpeg".to_owned(),
            essence => essence,
        };
        KINDS
            .into_iter()
            .find(|kind| kind.mime_type == essence)
            .unwrap_or(Self::OTHER)
    }
}

impl MediaKind {
    /// Whether files of some kind end like this.
    pub(crate) fn is_extension(extension: &[u8]) -> bool {
        let mut known = KINDS.iter().chain(std::iter::once(&Self::OTHER));
        known.any(|kind| kind.extension.as_bytes() == extension)
    }
}

/// One decoded piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Media {
    /// Which block of the content it was.
    pub(crate) block: usize,
    /// Its kind.
    pub(crate) kind: MediaKind,
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
}

/// What became of a result's media.
#[derive(Debug, Default)]
pub(crate) struct DecodedMedia {
    /// What could be decoded.
    pub(crate) media: Vec<Media>,
    /// What could not: which block, and why.
    pub(crate) faults: Vec<(usize, String)>,
    /// Whether there were more than are saved.
    pub(crate) too_many: bool,
}

impl DecodedMedia {
    /// What a person should know about it.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        let faults = self
            .faults
            .iter()
            .map(|(block, why)| format!("block {block} of this result was not saved: {why}"));
        let rest = self
            .too_many
            .then(|| format!("only the first {MAX_MEDIA} media of this result were saved"));
        faults.chain(rest)
    }
}

/// Decodes every image, sound and binary resource.
pub(crate) fn decode(content: &[ContentBlock]) -> DecodedMedia {
    let mut decoded = DecodedMedia::default();
    for (block, item) in content.iter().enumerate() {
        let Some((data, mime_type)) = encoded(item) else {
            continue;
        };
        if decoded.media.len() + decoded.faults.len() == MAX_MEDIA {
            decoded.too_many = true;
            break;
        }
        match from_base64(data) {
            Ok(bytes) => decoded.media.push(Media {
                block,
                kind: MediaKind::of(mime_type),
                bytes,
            }),
            Err(error) => {
                let why = format!("it is not base64 ({error})");
                decoded.faults.push((block, why));
            }
        }
    }
    decoded
}

/// Whether a result has any media.
pub(crate) fn any(content: &[ContentBlock]) -> bool {
    content.iter().any(|item| encoded(item).is_some())
}

/// The base64 of a block that has any, and what it is said to be.
pub(crate) fn encoded(content: &ContentBlock) -> Option<(&str, Option<&str>)> {
    match content {
        ContentBlock::Image { data, mime_type } | ContentBlock::Audio { data, mime_type } => {
            Some((data, Some(mime_type)))
        }
        ContentBlock::Resource {
            body: ResourceBody::Blob(data),
            mime_type,
            ..
        } => Some((data, mime_type.as_deref())),
        ContentBlock::Resource { .. }
        | ContentBlock::Text { .. }
        | ContentBlock::ResourceLink { .. }
        | ContentBlock::Unknown { .. } => None,
    }
}

pub(super) fn from_base64(data: &str) -> Result<Vec<u8>, base64::DecodeError> {
    // MIME tools break base64 into lines; only then is a copy needed.
    if data.bytes().any(|byte| byte.is_ascii_whitespace()) {
        let joined: String = data.split_ascii_whitespace().collect();
        return LENIENT.decode(joined);
    }
    LENIENT.decode(data)
}
