//! Pictures: what passes, what is made smaller, and what is only told of.

use image::{ExtendedColorType, ImageBuffer, ImageEncoder, Rgba};

use super::*;

/// With all the memory there is.
fn fit(bytes: &[u8], max_tokens: Option<usize>) -> Result<Picture, UnfitPicture> {
    super::fit(bytes, max_tokens, &BytePool::new(MAX_MEMORY))
}

fn picture(width: u32, height: u32) -> DynamicImage {
    DynamicImage::ImageRgba8(ImageBuffer::from_fn(width, height, |x, y| {
        Rgba([x.to_le_bytes()[0], y.to_le_bytes()[0], 7, 255])
    }))
}

fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Vec::new();
    let opaque = DynamicImage::ImageRgb8(picture.to_rgb8());
    let picture = if format == ImageFormat::Jpeg {
        &opaque
    } else {
        picture
    };
    picture
        .write_to(&mut Cursor::new(&mut bytes), format)
        .unwrap();
    bytes
}

const SHARE: Option<usize> = Some(20_000);

#[test]
fn a_picture_that_fits_passes_byte_for_byte() {
    for (format, mime_type) in [
        (ImageFormat::Png, "image/png"),
        (ImageFormat::Jpeg, "image/jpeg"),
        (ImageFormat::Gif, "image/gif"),
        (ImageFormat::WebP, "image/webp"),
    ] {
        let fit = fit(&encoded(&picture(20, 10), format), SHARE).unwrap();
        let wanted = Picture {
            rewritten: None,
            mime_type,
            width: 20,
            height: 10,
        };
        assert_eq!(fit, wanted);
    }
}

#[test]
fn the_longest_edge_decides_exactly() {
    let at = fit(&encoded(&picture(MAX_EDGE, 4), ImageFormat::Png), SHARE).unwrap();
    assert_eq!((at.rewritten, at.width), (None, MAX_EDGE));
    for (format, mime_type) in [
        (ImageFormat::Png, "image/png"),
        (ImageFormat::Jpeg, "image/jpeg"),
        (ImageFormat::Gif, "image/png"),
        (ImageFormat::WebP, "image/png"),
    ] {
        let over = fit(&encoded(&picture(MAX_EDGE + 1, 4), format), SHARE).unwrap();
        assert_eq!((over.width, over.mime_type), (MAX_EDGE, mime_type));
        let again = fit(&over.rewritten.unwrap(), SHARE).unwrap();
        assert_eq!((again.rewritten, again.width), (None, MAX_EDGE));
    }
}

#[test]
fn a_picture_keeps_to_its_share_of_the_context() {
    let bytes = encoded(&picture(400, 300), ImageFormat::Png);
    assert_eq!(fit(&bytes, Some(160)).unwrap().rewritten, None);
    let small = fit(&bytes, Some(40)).unwrap();
    assert_eq!((small.width, small.height), (200, 150));
    let least = fit(&bytes, Some(0)).unwrap();
    assert!(least.width > 0 && least.height > 0);
    // Without limits it is only looked at.
    let wide = encoded(&picture(MAX_EDGE + 100, 1), ImageFormat::Png);
    assert_eq!(fit(&wide, None).unwrap().rewritten, None);
}

#[test]
fn too_many_bytes_become_fewer() {
    // Noise cannot be compressed: one and a half million pixels of it are more than the limit.
    let mut state = 1_u32;
    let noise = ImageBuffer::from_fn(1_300, 1_200, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [_, red, green, blue] = state.to_le_bytes();
        Rgba([red, green, blue, 255])
    });
    let bytes = encoded(&DynamicImage::ImageRgba8(noise), ImageFormat::Png);
    assert!(bytes.len() > MAX_BYTES);
    let fit = fit(&bytes, SHARE).unwrap();
    assert_eq!((fit.mime_type, fit.width), ("image/jpeg", 1_300));
    assert!(fit.rewritten.unwrap().len() <= MAX_BYTES);
}

#[test]
fn transparency_becomes_white_in_jpeg() {
    let clear = DynamicImage::ImageRgba8(ImageBuffer::from_pixel(2, 2, Rgba([9, 9, 9, 0])));
    assert_eq!(on_white(&clear).get_pixel(0, 0), &Rgb([255, 255, 255]));
}

/// A PNG whose head claims a size; the pixels are missing.
fn claims(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = encoded(&picture(1, 1), ImageFormat::Png);
    bytes[16..20].copy_from_slice(&width.to_be_bytes());
    bytes[20..24].copy_from_slice(&height.to_be_bytes());
    let sum = crc(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&sum.to_be_bytes());
    bytes
}

fn crc(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(sum & 1))
        })
    };
    !bytes.iter().fold(!0, step)
}

#[test]
fn a_canvas_beyond_all_bounds_costs_nothing() {
    for (width, height) in [
        (100_000, 100_000),
        (1, 16_385),
        (16_384, 16_384),
        (u32::MAX >> 1, 1),
    ] {
        let start = std::time::Instant::now();
        let error = fit(&claims(width, height), SHARE).unwrap_err();
        assert!(
            matches!(error, UnfitPicture::TooLarge { .. }),
            "{width} × {height}: {error}"
        );
        assert!(start.elapsed() < std::time::Duration::from_secs(2));
    }
}

#[test]
fn what_is_no_picture_or_a_damaged_one_is_told_apart() {
    assert_eq!(fit(b"hello", SHARE), Err(UnfitPicture::NoPicture));
    assert_eq!(fit(b"", SHARE), Err(UnfitPicture::NoPicture));
    assert_eq!(
        fit(b"%PDF-1.7 and more", SHARE),
        Err(UnfitPicture::NoPicture)
    );
    assert_eq!(fit(b"BM and a bitmap", SHARE), Err(UnfitPicture::Kind));
    let whole = encoded(&picture(50, 50), ImageFormat::Png);
    for end in [8, 20, 40, whole.len() / 2] {
        let error = fit(&whole[..end], SHARE).unwrap_err();
        assert!(matches!(error, UnfitPicture::Damaged(_)), "{end}: {error}");
    }
}

#[test]
fn no_bytes_panic() {
    let mut whole = Vec::new();
    for format in [
        ImageFormat::Png,
        ImageFormat::Jpeg,
        ImageFormat::Gif,
        ImageFormat::WebP,
    ] {
        whole.push(encoded(&picture(9, 9), format));
    }
    for bytes in whole {
        for at in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[at] ^= 0xff;
            let _ = fit(&broken, SHARE);
        }
    }
}

#[test]
fn a_turned_photograph_stays_turned_when_it_is_scaled() {
    // Orientation 6: to be turned by a quarter.
    let exif = [
        0x49, 0x49, 0x2a, 0, 8, 0, 0, 0, 1, 0, 0x12, 0x01, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0,
    ];
    let mut bytes = Vec::new();
    let mut encoder = JpegEncoder::new(&mut bytes);
    encoder.set_exif_metadata(exif.to_vec()).unwrap();
    let pixels = picture(3_136, 8).to_rgb8();
    encoder
        .write_image(&pixels, 3_136, 8, ExtendedColorType::Rgb8)
        .unwrap();
    let fit = fit(&bytes, SHARE).unwrap();
    assert_eq!((fit.width, fit.height), (4, MAX_EDGE));
}

#[test]
fn a_photograph_of_24_megapixels_is_scaled_down() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("photograph");
    let photograph = DynamicImage::new_rgb8(6_000, 4_000);
    photograph
        .save_with_format(&path, ImageFormat::Jpeg)
        .unwrap();
    let fit = fit(&std::fs::read(&path).unwrap(), SHARE).unwrap();
    assert_eq!((fit.width, fit.height), (1567, 1045));
    assert_eq!(fit.mime_type, "image/jpeg");
    assert!(image::load_from_memory(&fit.rewritten.unwrap()).is_ok());
}

#[test]
fn sec_56_a_picture_waits_for_the_memory_it_takes() {
    let memory = BytePool::new(MAX_MEMORY);
    let bytes = encoded(&picture(2_000, 2_000), ImageFormat::Png);
    let held = memory.wait_for(MAX_MEMORY).unwrap();
    let waiting = std::thread::spawn({
        let memory = memory.clone();
        move || super::fit(&bytes, SHARE, &memory).map(|fit| fit.width)
    });
    drop(held);
    assert_eq!(waiting.join().unwrap(), Ok(MAX_EDGE));
    // And gives it back.
    assert!(memory.wait_for(MAX_MEMORY).is_some());
}
