//! Binary data inside of JSON: base64 and `data:` addresses in structured content, in a block of an
//! unknown kind and, where a model reads it, in text.
//!
//! Owns finding it, and the words that stand in its place: base64 is of no use to a reader, and a
//! model pays for every letter of it. It is saved like the media of a result, and what a block of
//! the content holds already is not saved again. What the server sent is not touched: this makes
//! copies.

use std::path::Path;

use base64::Engine as _;
use serde_json::Value;
use toolway_wire::view::{ContentBlock, ToolResult};

use super::media::{self, LENIENT, MAX_MEDIA, Media, MediaKind};
use super::spill::ResultDirectory;
use crate::call::{PlainBlock, SavedFile};

/// The shortest base64 that is taken out where something says that it is binary data.
const MIN_DECLARED: usize = 512;
/// The shortest that is taken out where nothing does. Long, because the marks by which servers
/// turn pages are base64 too, and have to be handed back to them.
const MIN_BARE: usize = 4_096;

/// How long `data:` is, and the most that stands before the data of such an address.
const SCHEME: usize = 5;
const MAX_HEAD: usize = 200;

/// Names under which a media type stands beside its data.
const TYPE_KEYS: [&str; 7] = [
    "mimeType",
    "mime_type",
    "mimetype",
    "contentType",
    "content_type",
    "mediaType",
    "media_type",
];

/// Whether text is to be looked through as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextScan {
    /// It is shown as it is.
    Kept,
    /// A model reads it.
    Searched,
}

/// Whether there can be any binary data in a result beside its media: looks at no more than the
/// runs of letters.
pub(super) fn any(result: &ToolResult, texts: TextScan) -> bool {
    let structured = result.structured.as_deref();
    structured.is_some_and(|structured| has_long_run(structured.get()))
        || result.content.iter().any(|block| match block {
            ContentBlock::Unknown { raw, .. } => has_long_run(raw.get()),
            ContentBlock::Text { text } => texts == TextScan::Searched && has_long_run(text),
            _ => false,
        })
}

/// Whether something in it is long enough to be base64; lines of it may be broken, in JSON by an
/// escape.
fn has_long_run(text: &str) -> bool {
    let mut run = 0_usize;
    text.bytes().any(|byte| {
        run = match byte {
            b'\\' | b'\n' | b'\r' => run,
            byte if is_base64(byte) => run + 1,
            _ => 0,
        };
        run == MIN_DECLARED
    })
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// Takes binary data out of copies, and saves it.
pub(super) struct BinarySieve<'a> {
    directory: &'a Path,
    store: Option<Result<ResultDirectory, String>>,
    /// The media of the content, and where they were saved.
    media: &'a [Media],
    beside: &'a [SavedFile],
    /// What was saved here.
    pub(super) saved: Vec<SavedFile>,
    /// Why something was not.
    pub(super) warnings: Vec<String>,
}

impl<'a> BinarySieve<'a> {
    pub(super) fn new(directory: &'a Path, media: &'a [Media], beside: &'a [SavedFile]) -> Self {
        Self {
            directory,
            store: None,
            media,
            beside,
            saved: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Every part of a result that had binary data, without it.
    pub(super) fn parts(&mut self, result: &ToolResult, texts: TextScan) -> Vec<PlainBlock> {
        let mut plain = Vec::new();
        for (block, content) in result.content.iter().enumerate() {
            let text = match content {
                ContentBlock::Unknown { raw, .. } => self.json(block, raw.get()),
                ContentBlock::Text { text } if texts == TextScan::Searched => self
                    .word(block, text, None)
                    .or_else(|| self.json(block, text))
                    .or_else(|| self.prose(block, text)),
                _ => None,
            };
            plain.extend(text.map(|text| PlainBlock { block, text }));
        }
        let block = result.content.len();
        let structured = result.structured.as_deref();
        let text = structured.and_then(|structured| self.json(block, structured.get()));
        plain.extend(text.map(|text| PlainBlock { block, text }));
        plain
    }

    /// JSON without binary data; nothing where it has none.
    fn json(&mut self, block: usize, text: &str) -> Option<String> {
        if !text.trim_start().starts_with(['{', '[', '"']) || !has_long_run(text) {
            return None;
        }
        let mut value: Value = serde_json::from_str(text).ok()?;
        self.strain(block, &mut value, None)
            .then(|| value.to_string())
    }

    /// Takes binary data out of a value; says whether there was any.
    pub(super) fn strain(
        &mut self,
        block: usize,
        value: &mut Value,
        declared: Option<&str>,
    ) -> bool {
        match value {
            Value::String(text) => {
                let word = self.word(block, text, declared);
                match word.or_else(|| self.prose(block, text)) {
                    Some(word) => {
                        *text = word;
                        true
                    }
                    None => false,
                }
            }
            Value::Array(items) => {
                let mut any = false;
                for item in items {
                    any |= self.strain(block, item, declared);
                }
                any
            }
            Value::Object(members) => {
                let named = TYPE_KEYS.into_iter().find_map(|key| members.get(key));
                let named = named.and_then(Value::as_str).map(str::to_owned);
                let mut any = false;
                for member in members.values_mut() {
                    any |= self.strain(block, member, named.as_deref());
                }
                any
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// A text without the `data:` addresses in it; nothing where it has none that are long.
    fn prose(&mut self, block: usize, text: &str) -> Option<String> {
        if !has_long_run(text) {
            return None;
        }
        let mut made = String::new();
        let mut rest = text;
        // The part of the text that is passed is never looked at again.
        while let Some(at) = rest.find("data:") {
            let (before, address) = rest.split_at(at);
            made.push_str(before);
            let head = address.bytes().take(MAX_HEAD).position(|byte| byte == b',');
            let body = head.map_or(SCHEME, |comma| comma + 1);
            let is_data = |byte: &u8| is_base64(*byte) || *byte == b'=';
            let run = address.bytes().skip(body).take_while(is_data).count();
            let (address, behind) = address.split_at(match head {
                Some(_) => body + run,
                None => SCHEME,
            });
            match self.word(block, address, None) {
                Some(word) => made.push_str(&word),
                None => made.push_str(address),
            }
            rest = behind;
        }
        made.push_str(rest);
        (made != text).then_some(made)
    }

    /// What stands in the place of a text; nothing where it is no binary data.
    fn word(&mut self, block: usize, text: &str, declared: Option<&str>) -> Option<String> {
        let (kind, bytes) = binary(text, declared)?;
        let size = bytes.len();
        if let Some(known) = self.media.iter().find(|media| media.bytes == bytes) {
            let what = format!(
                "{}, {size} bytes, the same as block {}",
                known.kind.mime_type, known.block
            );
            let file = self.beside.iter().find(|file| file.block == known.block);
            return Some(match file {
                Some(file) => format!("[{what}: {}]", file.path.display()),
                None => format!("[{what}]"),
            });
        }
        let what = format!("{}, {size} bytes", kind.mime_type);
        Some(match self.save(&Media { block, kind, bytes }) {
            Some(path) => format!("[{what}: {path}]"),
            None => format!("[{what}, not saved]"),
        })
    }

    fn save(&mut self, media: &Media) -> Option<String> {
        if self.media.len() + self.saved.len() >= MAX_MEDIA {
            self.warn(format!(
                "only the first {MAX_MEDIA} media of this result were saved"
            ));
            return None;
        }
        let directory = self.directory;
        let store = self.store.get_or_insert_with(|| {
            ResultDirectory::open(directory).map_err(|error| error.to_string())
        });
        let beside: Vec<SavedFile> = self.beside.iter().chain(&self.saved).cloned().collect();
        let saved = match store {
            Ok(store) => store
                .save_beside(media, &beside)
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.clone()),
        };
        match saved {
            Ok(file) => {
                let path = file.path.display().to_string();
                if !self.saved.iter().any(|known| known.path == file.path) {
                    self.saved.push(file);
                }
                Some(path)
            }
            Err(error) => {
                self.warn(format!("binary data in this result was not saved: {error}"));
                None
            }
        }
    }

    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// The bytes of a text that is binary data, and what they are.
fn binary(text: &str, declared: Option<&str>) -> Option<(MediaKind, Vec<u8>)> {
    if text.len() < MIN_DECLARED {
        return None;
    }
    if let Some((declared, data)) = data_address(text) {
        let bytes = decode(data)?;
        let kind = kind_of(Some(declared), &bytes);
        return Some((kind, bytes));
    }
    // A long word, a number or a digest in hex has letters of one case.
    let has = |like: fn(&u8) -> bool| text.as_bytes().iter().any(like);
    if !has(u8::is_ascii_uppercase) || !has(u8::is_ascii_lowercase) {
        return None;
    }
    let bytes = decode(text)?;
    let kind = kind_of(declared, &bytes);
    let is_known = kind != MediaKind::OTHER || declared.is_some_and(|named| named.contains('/'));
    let is_binary = std::str::from_utf8(&bytes).is_err();
    (is_known || (is_binary && text.len() >= MIN_BARE)).then_some((kind, bytes))
}

/// The media type and the base64 of a `data:` address.
fn data_address(text: &str) -> Option<(&str, &str)> {
    let scheme = text.get(..5)?;
    if !scheme.eq_ignore_ascii_case("data:") {
        return None;
    }
    let (head, data) = text[5..].split_once(',')?;
    let (declared, encoding) = head.rsplit_once(';').unwrap_or(("", head));
    encoding
        .trim()
        .eq_ignore_ascii_case("base64")
        .then_some((declared, data))
}

/// Base64 in either alphabet, in one line or several; nothing where it is none.
fn decode(text: &str) -> Option<Vec<u8>> {
    let is_part = |byte: u8| is_base64(byte) || byte == b'=' || byte.is_ascii_whitespace();
    if !text.bytes().all(is_part) {
        return None;
    }
    if text.contains(['-', '_']) {
        return LENIENT
            .decode(text.replace('-', "+").replace('_', "/"))
            .ok();
    }
    media::from_base64(text).ok()
}

/// What the bytes are: by their server's word where that is on our list, else by how they begin.
fn kind_of(declared: Option<&str>, bytes: &[u8]) -> MediaKind {
    let named = MediaKind::of(declared);
    if named == MediaKind::OTHER {
        MediaKind::of(beginning(bytes))
    } else {
        named
    }
}

fn beginning(bytes: &[u8]) -> Option<&'static str> {
    if let Ok(format) = image::guess_format(bytes) {
        return Some(format.to_mime_type());
    }
    let marks: [(&[u8], &str); 6] = [
        (b"%PDF-", "application/pdf"),
        (b"PK\x03\x04", "application/zip"),
        (b"\x1f\x8b", "application/gzip"),
        (b"ID3", "audio/mpeg"),
        (b"OggS", "audio/ogg"),
        (b"fLaC", "audio/flac"),
    ];
    let mark = marks.into_iter().find(|(mark, _)| bytes.starts_with(mark));
    mark.map(|(_, mime_type)| mime_type)
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

    use super::*;

    /// Bytes that are no text, as many as this.
    fn noise(count: usize) -> Vec<u8> {
        (0..count)
            .map(|at| u8::try_from(at * 7919 % 251).unwrap_or(0))
            .collect()
    }

    fn found(text: &str, declared: Option<&str>) -> Option<&'static str> {
        binary(text, declared).map(|(kind, _)| kind.mime_type)
    }

    #[test]
    fn binary_data_is_told_from_texts_that_look_like_it() {
        let long = STANDARD.encode(noise(6_000));
        let short = STANDARD.encode(noise(600));
        let picture = STANDARD.encode([b"\x89PNG\r\n\x1a\n".as_slice(), &noise(600)].concat());
        let lines: Vec<_> = long.as_bytes().chunks(76).collect();
        let broken = String::from_utf8(lines.join(b"\r\n".as_slice())).unwrap();
        let url_safe = URL_SAFE_NO_PAD.encode(noise(6_000));
        for (text, declared, expected) in [
            (&*long, None, Some("application/octet-stream")),
            (&*broken, None, Some("application/octet-stream")),
            (&*url_safe, None, Some("application/octet-stream")),
            (&*picture, None, Some("image/png")),
            (&*short, Some("audio/wav"), Some("audio/wav")),
            (&*short, Some("x/y"), Some("application/octet-stream")),
            // A mark to turn pages by.
            (&*short, None, None),
            (&*"deadBEEF".repeat(20), None, None),
            (&*"deadbeef".repeat(1_000), None, None),
            (&*"ACGT".repeat(2_000), None, None),
            (&*STANDARD.encode("words ".repeat(2_000)), None, None),
            (&*format!("{long}.{long}.{long}"), None, None),
            (
                &*format!("data:image/gif;base64,{short}"),
                None,
                Some("image/gif"),
            ),
            (
                &*format!("DATA:text/plain;charset=utf-8;base64,{short}"),
                None,
                Some("text/plain"),
            ),
            (&*format!("data:text/plain,{short}"), None, None),
        ] {
            assert_eq!(found(text, declared), expected, "{text:.60}");
        }
    }

    #[test]
    fn data_addresses_are_taken_out_of_prose_in_one_pass() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("results");
        let data = STANDARD.encode(noise(600));
        let mut sieve = BinarySieve::new(&directory, &[], &[]);
        let text = format!("![a](data:image/png;base64,{data}) data: 1, ü, data:x;base64,AA==");
        let plain = sieve.prose(0, &text).unwrap();
        let start = "![a]([image/png, 600 bytes: ";
        assert!(plain.starts_with(start), "{plain}");
        assert!(
            plain.ends_with(".png]) data: 1, ü, data:x;base64,AA=="),
            "{plain}"
        );
        assert_eq!(sieve.saved.len(), 1);
        let hostile = format!("{}{data}", "data:,data:".repeat(50_000));
        assert_eq!(sieve.prose(0, &hostile), None);
    }

    #[test]
    fn every_long_run_is_seen_before_anything_is_parsed() {
        let line = "A".repeat(76);
        let broken = vec![line; 10].join("\\r\\n");
        for (text, expected) in [
            ("A".repeat(MIN_DECLARED), true),
            ("A".repeat(MIN_DECLARED - 1), false),
            (broken, true),
            ("word ".repeat(1_000), false),
        ] {
            assert_eq!(has_long_run(&text), expected, "{text:.40}");
        }
    }
}
