//! A result as pieces: text that can be saved or cut, and what is shown as it is.
//!
//! Owns the way from content blocks to pieces, and what stands in place of a block that cannot be
//! shown. Text is borrowed until it is known that it passes.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use toolway_types::{BytePool, limits};
use toolway_wire::view::{ContentBlock, ResourceBody};

use super::bounds::{ResultBounds, TextSize};
use super::media::{self, DecodedMedia, MAX_MEDIA, Media, MediaKind};
use super::picture;
use super::structured::is_repeated;
use crate::call::{
    MAX_DESCRIPTION, MAX_NAME, MAX_URI, ModelBlock, PlainBlock, SavedFile, framed, line, link_text,
    resource_text,
};
use crate::tokens;
use crate::tokens::Meter;

/// The most pictures that are shown.
pub(super) const MAX_PICTURES: usize = limits::result::PICTURES;

/// A result, its media and where they were saved.
pub(super) struct ResultSource<'a> {
    pub(super) content: &'a [ContentBlock],
    pub(super) structured: Option<&'a RawValue>,
    /// The parts that had binary data, without it.
    pub(super) plain: &'a [PlainBlock],
    pub(super) decoded: &'a DecodedMedia,
    pub(super) saved: &'a [SavedFile],
    /// The memory that pictures are decoded in.
    pub(super) picture_memory: &'a BytePool,
}

/// One piece.
#[derive(Debug, Clone)]
pub(super) struct ResultPiece<'a> {
    /// Which block it was.
    pub(super) block: usize,
    /// Whether it is structured content.
    pub(super) structured: bool,
    pub(super) body: PieceBody<'a>,
    size: TextSize,
}

#[derive(Debug, Clone)]
pub(super) enum PieceBody<'a> {
    Text(Cow<'a, str>),
    Resource {
        uri: &'a str,
        mime_type: Option<&'a str>,
        text: &'a str,
    },
    Link {
        uri: &'a str,
        name: &'a str,
        description: Option<&'a str>,
        mime_type: Option<&'a str>,
    },
    /// A picture or a notice.
    Shown(ModelBlock),
}

/// How large a text is.
pub(super) fn size_of(text: &str) -> TextSize {
    let mut meter = Meter::default();
    let mut chars = 0;
    for c in text.chars() {
        meter.push(c);
        chars += 1;
    }
    TextSize {
        chars,
        tokens: meter.tokens(),
        pictures: 0,
    }
}

/// How large a block is.
pub(super) fn size_of_block(block: &ModelBlock) -> TextSize {
    match block {
        ModelBlock::Image { width, height, .. } => TextSize {
            chars: 0,
            tokens: tokens::of_picture(*width, *height),
            pictures: 1,
        },
        other => size_of(&other.text()),
    }
}

impl<'a> ResultPiece<'a> {
    fn new(block: usize, body: PieceBody<'a>) -> Self {
        let mut piece = Self {
            block,
            structured: false,
            body,
            size: TextSize::default(),
        };
        piece.size = match &piece.body {
            PieceBody::Shown(block) => size_of_block(block),
            _ => size_of(&piece.words()),
        };
        piece
    }

    pub(super) fn text(block: usize, text: String) -> Self {
        Self::new(block, PieceBody::Text(Cow::Owned(text)))
    }

    pub(super) fn notice(block: usize, text: &str) -> Self {
        Self::new(block, PieceBody::Shown(ModelBlock::notice(text)))
    }

    /// Whether it can be saved or cut.
    pub(super) fn is_text(&self) -> bool {
        !matches!(self.body, PieceBody::Shown(_))
    }

    pub(super) fn size(&self) -> TextSize {
        self.size
    }

    /// The text by itself, without the line that says where it is from.
    pub(super) fn bare(&self) -> Cow<'_, str> {
        match &self.body {
            PieceBody::Resource { text, .. } => Cow::Borrowed(text),
            _ => self.words(),
        }
    }

    /// What the server says the text is.
    pub(super) fn mime_type(&self) -> Option<&'a str> {
        match self.body {
            PieceBody::Resource { mime_type, .. } => mime_type,
            _ => None,
        }
    }

    /// The piece as a model reads it.
    pub(super) fn words(&self) -> Cow<'_, str> {
        match &self.body {
            PieceBody::Text(text) => Cow::Borrowed(text),
            PieceBody::Resource { uri, text, .. } => Cow::Owned(resource_text(uri, text)),
            PieceBody::Link {
                uri,
                name,
                description,
                mime_type,
            } => Cow::Owned(link_text(uri, name, *description, *mime_type)),
            PieceBody::Shown(block) => block.text(),
        }
    }

    pub(super) fn into_block(self) -> ModelBlock {
        match self.body {
            PieceBody::Text(text) => ModelBlock::Text {
                text: text.into_owned(),
            },
            PieceBody::Resource {
                uri,
                mime_type,
                text,
            } => ModelBlock::Resource {
                uri: line(uri, MAX_URI),
                mime_type: mime_type.map(|text| line(text, MAX_NAME)),
                text: text.to_owned(),
            },
            PieceBody::Link {
                uri,
                name,
                description,
                mime_type,
            } => ModelBlock::Link {
                uri: line(uri, MAX_URI),
                name: line(name, MAX_NAME),
                description: description.map(|text| line(text, MAX_DESCRIPTION)),
                mime_type: mime_type.map(|text| line(text, MAX_NAME)),
            },
            PieceBody::Shown(block) => block,
        }
    }
}

impl<'a> ResultSource<'a> {
    /// A part without its binary data; as it is where it has none.
    fn read(&self, block: usize, text: &'a str) -> Cow<'a, str> {
        let plain = self.plain.iter().find(|plain| plain.block == block);
        Cow::Borrowed(plain.map_or(text, |plain| &plain.text))
    }
}

/// Every block of a result as a piece, in order; empty text is nothing.
pub(super) fn gather<'a>(source: &ResultSource<'a>, bounds: ResultBounds) -> Vec<ResultPiece<'a>> {
    let mut gallery = Gallery::new(source, bounds);
    let mut pieces = Vec::new();
    let mut left_out = 0_usize;
    for (block, content) in source.content.iter().enumerate() {
        let body = match content {
            ContentBlock::Text { text } if text.is_empty() => continue,
            ContentBlock::Text { text } => PieceBody::Text(source.read(block, text)),
            ContentBlock::Resource {
                uri,
                mime_type,
                body: ResourceBody::Text(text),
            } => PieceBody::Resource {
                uri,
                mime_type: mime_type.as_deref(),
                text,
            },
            ContentBlock::ResourceLink {
                uri,
                name,
                title,
                description,
                mime_type,
            } => PieceBody::Link {
                uri,
                name: title.as_deref().unwrap_or(name),
                description: description.as_deref(),
                mime_type: mime_type.as_deref(),
            },
            ContentBlock::Unknown { raw, .. } => PieceBody::Text(source.read(block, raw.get())),
            ContentBlock::Image { .. }
            | ContentBlock::Audio { .. }
            | ContentBlock::Resource { .. } => {
                if gallery.seen == MAX_MEDIA {
                    left_out += 1;
                } else {
                    pieces.extend(gallery.hang(block, content));
                }
                continue;
            }
        };
        pieces.push(ResultPiece::new(block, body));
    }
    if left_out > 0 {
        let text = format!("{left_out} more blocks of media are neither shown nor saved");
        pieces.push(ResultPiece::notice(source.content.len(), &text));
    }
    if let Some(structured) = source.structured
        && !is_repeated(structured, source.content)
    {
        let block = source.content.len();
        let text = PieceBody::Text(source.read(block, structured.get()));
        let piece = ResultPiece::new(block, text);
        pieces.push(ResultPiece {
            structured: true,
            ..piece
        });
    }
    pieces
}

/// The media of one result, on their way to be shown.
struct Gallery<'a, 's> {
    source: &'s ResultSource<'a>,
    /// How many tokens each picture may take; none where nothing is limited.
    share: Option<usize>,
    seen: usize,
    pictures: usize,
}

impl<'a, 's> Gallery<'a, 's> {
    fn new(source: &'s ResultSource<'a>, bounds: ResultBounds) -> Self {
        let is_picture = |media: &&Media| media.kind.mime_type.starts_with("image/");
        let media = &source.decoded.media;
        let count = media
            .iter()
            .filter(is_picture)
            .count()
            .clamp(1, MAX_PICTURES);
        Self {
            source,
            // A fifth is kept for words.
            share: bounds.hold().then_some(bounds.tokens / 5 * 4 / count),
            seen: 0,
            pictures: 0,
        }
    }

    /// What stands in place of one block of media.
    fn hang(&mut self, block: usize, content: &ContentBlock) -> Vec<ResultPiece<'a>> {
        self.seen += 1;
        let what = match content {
            ContentBlock::Audio { .. } => "sound",
            ContentBlock::Image { .. } => "picture",
            _ => "resource",
        };
        let notice = |text: &str| vec![ResultPiece::notice(block, text)];
        let Some(media) = self
            .source
            .decoded
            .media
            .iter()
            .find(|one| one.block == block)
        else {
            let fault = self
                .source
                .decoded
                .faults
                .iter()
                .find(|(at, _)| *at == block);
            let why = fault.map_or("there are too many", |(_, why)| why);
            return notice(&format!("The {what} of block {block} is not shown: {why}"));
        };
        let declared = media::encoded(content).and_then(|(_, declared)| declared);
        let is_picture = matches!(content, ContentBlock::Image { .. })
            || declared.is_some_and(starts_with_image);
        let place = self.place(block);
        if !is_picture {
            let kind = media.kind.mime_type;
            let size = media.bytes.len();
            let from = match content {
                ContentBlock::Resource { uri, .. } => format!(" from {}", brief(uri)),
                _ => String::new(),
            };
            return notice(&format!("A {what}{from}: {kind}, {size} bytes, {place}"));
        }
        if self.pictures == MAX_PICTURES {
            let text = format!("only {MAX_PICTURES} pictures are; this one is {place}");
            return notice(&format!("The {what} of block {block} is not shown: {text}"));
        }
        match picture::fit(&media.bytes, self.share, self.source.picture_memory) {
            Ok(found) => {
                self.pictures += 1;
                frame(block, media, declared, &found, &place)
            }
            Err(why) => {
                let declared = brief(declared.unwrap_or_default());
                notice(&format!(
                    "The {what} of block {block}, declared as `{declared}`, is not shown: {why}; \
                     it is {place}"
                ))
            }
        }
    }

    /// Where the bytes of a block are.
    fn place(&self, block: usize) -> String {
        match self.source.saved.iter().find(|file| file.block == block) {
            Some(file) => format!("saved as {}", file.path.display()),
            None => "not saved".to_owned(),
        }
    }
}

/// A picture, and what there is to say about it.
fn frame<'a>(
    block: usize,
    media: &Media,
    declared: Option<&str>,
    found: &picture::Picture,
    place: &str,
) -> Vec<ResultPiece<'a>> {
    let mut remarks = Vec::new();
    if found.rewritten.is_some() {
        remarks.push(format!(
            "scaled down to {} × {} pixels; the original is {place}",
            found.width, found.height
        ));
    } else if MediaKind::of(declared).mime_type != found.mime_type {
        let declared = brief(declared.unwrap_or_default());
        remarks.push(format!(
            "declared as `{declared}`, but it is {}",
            found.mime_type
        ));
    }
    let bytes = found.rewritten.as_ref().unwrap_or(&media.bytes);
    let image = ModelBlock::Image {
        data: STANDARD.encode(bytes),
        mime_type: found.mime_type,
        width: found.width,
        height: found.height,
    };
    let mut pieces = vec![ResultPiece::new(block, PieceBody::Shown(image))];
    if !remarks.is_empty() {
        let text = format!("The picture of block {block}: {}", remarks.join("; "));
        pieces.push(ResultPiece::notice(block, &text));
    }
    pieces
}

fn starts_with_image(mime_type: &str) -> bool {
    let head = mime_type.trim_start().get(..6);
    head.is_some_and(|head| head.eq_ignore_ascii_case("image/"))
}

/// A server's word inside one of our sentences.
fn brief(text: &str) -> String {
    framed(text, 100)
}
