//! What it costs to look at a picture, told from its head before a pixel is read (SEC-56).
//!
//! Owns the estimates: of decoding, by the kind of file, and of scaling down. They are upper bounds
//! of what the decoders and the scaling take at their worst moment. Who may take how much at once
//! is the pool's, in `picture.rs`.

use image::ImageFormat;

/// A picture of which only the head was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct PictureHead<'a> {
    pub(super) format: ImageFormat,
    pub(super) bytes: &'a [u8],
    pub(super) size: (u32, u32),
    /// How many bytes its pixels are once they are decoded.
    pub(super) decoded: u64,
}

impl PictureHead<'_> {
    /// The most memory that decoding it and scaling it down to this size takes.
    pub(super) fn cost(self, scaled: Option<(u32, u32)>) -> u64 {
        let scaling = scaled.map_or(0, |scaled| self.scaling(scaled));
        self.decoded.saturating_add(self.decoding().max(scaling))
    }

    /// What a decoder holds besides the pixels that it gives.
    fn decoding(self) -> u64 {
        let pixels = area(self.size);
        match self.format {
            // A whole picture of coefficients, two bytes for each colour of each pixel; four
            // colours at most.
            ImageFormat::Jpeg if is_progressive(self.bytes) => pixels.saturating_mul(8),
            // Rows.
            ImageFormat::Png | ImageFormat::Jpeg => 0,
            // One frame beside the canvas.
            ImageFormat::Gif => pixels.saturating_mul(4),
            // Planes or a frame, and the canvas that frames are put on.
            _ => pixels.saturating_mul(8),
        }
    }

    /// What scaling holds besides the pixels: those in between, and those it gives.
    fn scaling(self, scaled: (u32, u32)) -> u64 {
        let per_pixel = self.decoded / area(self.size).max(1) + 1;
        let (between, first) = match half_way(self.size, scaled) {
            Some(between) => (between, area(between).saturating_mul(per_pixel)),
            None => (self.size, 0),
        };
        // The scaling works on four floats for each pixel of the narrow, high picture in between.
        let floats = area((between.0, scaled.1)).saturating_mul(16);
        // What is written is turned, laid on white and encoded: copies of a small picture.
        let written = area(scaled).saturating_mul(4 * per_pixel.max(4));
        first.saturating_add(floats).saturating_add(written)
    }
}

/// The size that a picture is brought to first where it is far larger than the one that is wanted:
/// by plain averages, which need no memory to speak of.
pub(super) fn half_way(size: (u32, u32), scaled: (u32, u32)) -> Option<(u32, u32)> {
    let (width, height) = (scaled.0.saturating_mul(2), scaled.1.saturating_mul(2));
    (size.0 > width && size.1 > height).then_some((width, height))
}

fn area((width, height): (u32, u32)) -> u64 {
    u64::from(width) * u64::from(height)
}

/// Whether a JPEG comes in passes over the whole picture. What cannot be read counts as such.
fn is_progressive(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(2..).unwrap_or_default();
    while let [0xff, marker, tail @ ..] = rest {
        match marker {
            // Padding, and marks without a length.
            0xff => rest = &rest[1..],
            0x01 | 0xd0..=0xd8 => rest = tail,
            0xc0 | 0xc1 => return false,
            0xc2..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => return true,
            _ => {
                let [high, low, ..] = tail else { return true };
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                let Some(next) = tail.get(length.max(2)..) else {
                    return true;
                };
                rest = next;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use image::codecs::jpeg::JpegEncoder;
    use image::{DynamicImage, RgbImage};

    use super::*;

    fn head(format: ImageFormat, size: (u32, u32), per_pixel: u64) -> PictureHead<'static> {
        PictureHead {
            format,
            bytes: &[],
            size,
            decoded: area(size) * per_pixel,
        }
    }

    fn baseline() -> Vec<u8> {
        let mut bytes = Vec::new();
        let picture = DynamicImage::ImageRgb8(RgbImage::new(8, 8));
        JpegEncoder::new(&mut bytes).encode_image(&picture).unwrap();
        bytes
    }

    #[test]
    fn far_larger_pictures_are_brought_half_way_first() {
        assert_eq!(half_way((6000, 4000), (1568, 1045)), Some((3136, 2090)));
        assert_eq!(half_way((3136, 2090), (1568, 1045)), None);
        assert_eq!(half_way((16_384, 1), (1568, 1)), None);
    }

    #[test]
    fn photographs_fit_and_bombs_do_not() {
        let most = super::super::MAX_MEMORY as u64;
        let photograph = head(ImageFormat::Jpeg, (8064, 6048), 3);
        // Without its bytes it counts as progressive.
        assert!(photograph.cost(Some((1568, 1176))) > most);
        let bytes = &baseline();
        let photograph = PictureHead {
            bytes,
            ..photograph
        };
        assert!(photograph.cost(Some((1568, 1176))) < most);
        let photograph = head(ImageFormat::Png, (6000, 4000), 4);
        assert!(photograph.cost(Some((1568, 1045))) < most);
        let bomb = head(ImageFormat::Png, (16_000, 16_000), 1);
        assert!(bomb.cost(Some((1568, 1568))) > most);
        let bomb = head(ImageFormat::WebP, (16_383, 16_383), 3);
        assert!(bomb.cost(None) > most);
    }

    #[test]
    fn baseline_jpegs_are_told_from_progressive_ones() {
        let mut bytes = baseline();
        assert!(!is_progressive(&bytes));
        let frame = bytes
            .iter()
            .zip(&bytes[1..])
            .position(|it| it == (&0xff, &0xc0));
        bytes[frame.unwrap() + 1] = 0xc2;
        assert!(is_progressive(&bytes));
        for end in 0..bytes.len() {
            is_progressive(&bytes[..end]);
        }
        assert!(is_progressive(&[]));
    }
}
