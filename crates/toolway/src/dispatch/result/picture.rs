//! Pictures for models: decoded to see that they are what they are said to be, and made smaller
//! where they are too large.
//!
//! Owns the limits of pictures. A picture that fits passes byte for byte. One that does not is
//! scaled down and written anew: JPEG stays JPEG, everything else becomes PNG, and JPEG where PNG
//! would be too heavy. What it costs is told from the head of a file (`picture/memory.rs`) and
//! taken from a pool that all results of a host share, before a pixel is read: a small file which
//! claims a huge canvas costs nothing, and many at once cost no more than one.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::error::LimitErrorKind;
use image::imageops::FilterType;
use image::{
    DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, Rgb, RgbImage,
};
use toolway_types::text::{clean_line, cut};
use toolway_types::{BytePool, limits};

use self::memory::{PictureHead, half_way};
use crate::tokens::PIXELS_PER_TOKEN;

mod memory;

/// The longest edge, in pixels: models scale what is larger down to this themselves.
pub(crate) const MAX_EDGE: u32 = limits::result::PICTURE_EDGE;
/// The most bytes of a picture: five mebibytes in base64, which is what the Messages API takes.
pub(crate) const MAX_BYTES: usize = 5 * 1024 * 1024 / 4 * 3;
/// The longest edge that is decoded at all.
const MAX_DECODED_EDGE: u32 = 16_384;
/// The most memory that decoding and scaling may take, of all pictures at once.
pub(crate) const MAX_MEMORY: usize = limits::result::PICTURE_MEMORY;
/// The most memory that the head of a file may take beyond what the file itself is: enough for a
/// compressed colour profile, which is left out where it is larger.
const MAX_HEAD: usize = 4 * 1024 * 1024;
/// The qualities of JPEG that are tried until the bytes fit.
const QUALITIES: [u8; 4] = [85, 70, 50, 30];

/// A picture that a model can be shown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    /// Its bytes; none when those that were given are fit as they are.
    pub(crate) rewritten: Option<Vec<u8>>,
    /// What it is.
    pub(crate) mime_type: &'static str,
    /// Its width.
    pub(crate) width: u32,
    /// Its height.
    pub(crate) height: u32,
}

/// Why a picture cannot be shown.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnfitPicture {
    /// Nothing in it looks like a picture.
    #[error("it is not a picture")]
    NoPicture,
    /// A kind that models do not take.
    #[error("it is a picture of a kind that models do not take")]
    Kind,
    /// It claims to be larger than anything that is decoded.
    #[error("it is too large to decode{}", .size.map(|(width, height)| format!(" ({width} × {height} pixels)")).unwrap_or_default())]
    TooLarge {
        /// Width and height, where they are known.
        size: Option<(u32, u32)>,
    },
    /// It ends early or is damaged.
    #[error("it is damaged: {0}")]
    Damaged(String),
}

/// The media type of a kind that models take.
fn mime_type(format: ImageFormat) -> Option<&'static str> {
    match format {
        ImageFormat::Png => Some("image/png"),
        ImageFormat::Jpeg => Some("image/jpeg"),
        ImageFormat::Gif => Some("image/gif"),
        ImageFormat::WebP => Some("image/webp"),
        _ => None,
    }
}

/// Checks a picture and makes it fit; `max_tokens` is its share of the context window, and none
/// means that it is only checked. Waits until the pool has the memory that it takes.
pub(crate) fn fit(
    bytes: &[u8],
    max_tokens: Option<usize>,
    memory: &BytePool,
) -> Result<Picture, UnfitPicture> {
    let format = image::guess_format(bytes).map_err(|_| UnfitPicture::NoPicture)?;
    let mime = mime_type(format).ok_or(UnfitPicture::Kind)?;
    let limits = |most: usize| {
        let mut limits = Limits::no_limits();
        limits.max_image_width = Some(MAX_DECODED_EDGE);
        limits.max_image_height = Some(MAX_DECODED_EDGE);
        limits.max_alloc = Some(most as u64);
        limits
    };
    // Opening reads the head only, and what it reads is not yet taken from the pool.
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits(bytes.len().saturating_add(MAX_HEAD)));
    let mut decoder = reader
        .into_decoder()
        .map_err(|error| explain(&error, None))?;
    let mut limits = limits(memory.size());
    let size = decoder.dimensions();
    let explain = |error: ImageError| explain(&error, Some(size));
    let (width, height) = size;
    let scaled = max_tokens.and_then(|tokens| smaller(width, height, tokens));
    limits.check_dimensions(width, height).map_err(explain)?;
    let head = PictureHead {
        format,
        bytes,
        size,
        decoded: decoder.total_bytes(),
    };
    // Held until the picture is written anew or known to be fit.
    let _held = usize::try_from(head.cost(scaled))
        .ok()
        .and_then(|cost| memory.wait_for(cost))
        .ok_or(UnfitPicture::TooLarge { size: Some(size) })?;
    limits.reserve(decoder.total_bytes()).map_err(explain)?;
    decoder.set_limits(limits).map_err(explain)?;
    let orientation = decoder.orientation().map_err(explain)?;
    let mut picture = DynamicImage::from_decoder(decoder).map_err(explain)?;
    let too_heavy = max_tokens.is_some() && bytes.len() > MAX_BYTES;
    if scaled.is_none() && !too_heavy {
        return Ok(Picture {
            rewritten: None,
            mime_type: mime,
            width,
            height,
        });
    }
    if let Some(scaled) = scaled {
        if let Some((width, height)) = half_way(size, scaled) {
            picture = picture.thumbnail_exact(width, height);
        }
        picture = picture.resize_exact(scaled.0, scaled.1, FilterType::Triangle);
    }
    picture.apply_orientation(orientation);
    write(picture, format)
}

/// The size that fits, if this one does not.
fn smaller(width: u32, height: u32, max_tokens: usize) -> Option<(u32, u32)> {
    let pixels = f64::from(width) * f64::from(height);
    let tokens = u32::try_from(max_tokens).unwrap_or(u32::MAX);
    #[expect(clippy::cast_precision_loss, reason = "a small constant")]
    let most = f64::from(tokens.max(1)) * PIXELS_PER_TOKEN as f64;
    let by_edge = f64::from(MAX_EDGE) / f64::from(width.max(height));
    let by_area = (most / pixels).sqrt();
    let factor = by_edge.min(by_area);
    (factor < 1.0).then(|| (scale(width, factor), scale(height, factor)))
}

fn scale(edge: u32, factor: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the edge it came from"
    )]
    let scaled = (f64::from(edge) * factor) as u32;
    scaled.max(1)
}

/// Writes a picture anew, smaller and smaller until its bytes fit.
fn write(mut picture: DynamicImage, format: ImageFormat) -> Result<Picture, UnfitPicture> {
    let damaged = |error: ImageError| UnfitPicture::Damaged(words(&error));
    let made = |picture: &DynamicImage, bytes, mime_type| Picture {
        rewritten: Some(bytes),
        mime_type,
        width: picture.width(),
        height: picture.height(),
    };
    if format != ImageFormat::Jpeg {
        let mut bytes = Vec::new();
        picture
            .write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)
            .map_err(damaged)?;
        if bytes.len() <= MAX_BYTES {
            return Ok(made(&picture, bytes, "image/png"));
        }
    }
    loop {
        let opaque = on_white(&picture);
        for quality in QUALITIES {
            let mut bytes = Vec::new();
            JpegEncoder::new_with_quality(&mut bytes, quality)
                .encode_image(&opaque)
                .map_err(damaged)?;
            if bytes.len() <= MAX_BYTES {
                return Ok(made(&picture, bytes, "image/jpeg"));
            }
        }
        if picture.width() == 1 && picture.height() == 1 {
            return Err(UnfitPicture::TooLarge { size: None });
        }
        let half = |edge: u32| (edge / 2).max(1);
        let (width, height) = (half(picture.width()), half(picture.height()));
        picture = picture.resize_exact(width, height, FilterType::Triangle);
    }
}

/// JPEG knows no transparency.
fn on_white(picture: &DynamicImage) -> RgbImage {
    if !picture.color().has_alpha() {
        return picture.to_rgb8();
    }
    let picture = picture.to_rgba8();
    RgbImage::from_fn(picture.width(), picture.height(), |x, y| {
        let [red, green, blue, alpha] = picture.get_pixel(x, y).0;
        let blend = |colour: u8| {
            let sum = u32::from(colour) * u32::from(alpha) + 255 * (255 - u32::from(alpha));
            u8::try_from(sum / 255).unwrap_or(u8::MAX)
        };
        Rgb([blend(red), blend(green), blend(blue)])
    })
}

fn explain(error: &ImageError, size: Option<(u32, u32)>) -> UnfitPicture {
    match error {
        ImageError::Limits(limit)
            if matches!(
                limit.kind(),
                LimitErrorKind::DimensionError | LimitErrorKind::InsufficientMemory
            ) =>
        {
            UnfitPicture::TooLarge { size }
        }
        ImageError::Unsupported(_) => UnfitPicture::Kind,
        other => UnfitPicture::Damaged(words(other)),
    }
}

fn words(error: &ImageError) -> String {
    let text = error.to_string();
    cut(&clean_line(&text), 200).into_owned()
}

#[cfg(test)]
mod tests;
