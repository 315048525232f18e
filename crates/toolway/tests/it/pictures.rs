//! Pictures that are far larger than their files: SEC-56.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageFormat};
use serde_json::json;
use toolway::{CallOptions, Consent, Host, ModelBlock, ResultDelivery, ToolOutcome};
use toolway_testkit::{Script, ScriptedServer, Usage, alone};

use crate::support::{Home, name};

/// A PNG of one bit for each pixel, all of them black: a few kilobytes however large it is.
fn png(width: u32, height: u32) -> Vec<u8> {
    png_with_profile(width, height, &[])
}

/// The same with a colour profile, as it stands in the file.
fn png_with_profile(width: u32, height: u32, profile: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut head = [width.to_be_bytes(), height.to_be_bytes()].concat();
    // One bit, grey, and the only methods there are.
    head.extend([1, 0, 0, 0, 0]);
    chunk(&mut bytes, b"IHDR", &head);
    if !profile.is_empty() {
        // Its name and the only compression there is.
        chunk(&mut bytes, b"iCCP", &[b"wide\0\0", profile].concat());
    }
    let rows = (width.div_ceil(8) as usize + 1) * height as usize;
    chunk(&mut bytes, b"IDAT", &zeros(rows));
    chunk(&mut bytes, b"IEND", &[]);
    bytes
}

fn chunk(bytes: &mut Vec<u8>, kind: &[u8], data: &[u8]) {
    let length = u32::try_from(data.len()).expect("a short chunk");
    bytes.extend(length.to_be_bytes());
    let start = bytes.len();
    bytes.extend_from_slice(kind);
    bytes.extend_from_slice(data);
    let sum = bytes[start..].iter().fold(!0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(sum & 1))
        })
    });
    bytes.extend((!sum).to_be_bytes());
}

/// So many zeros, compressed by hand (RFC 1950, 1951): one, and then copies of it.
fn zeros(count: usize) -> Vec<u8> {
    let (mut bits, mut bytes) = (Vec::new(), vec![0x78, 0x01]);
    let mut put = |code: u32, length: u32| {
        bits.extend((0..length).rev().map(|place| code >> place & 1 == 1));
    };
    // The last block, with the fixed code.
    put(0b1, 1);
    put(0b10, 2);
    let literal = |put: &mut dyn FnMut(u32, u32)| put(0b0011_0000, 8);
    literal(&mut put);
    let (copies, rest) = ((count - 1) / 258, (count - 1) % 258);
    for _ in 0..copies {
        // 258 bytes from one byte back.
        put(0b1100_0101, 8);
        put(0, 5);
    }
    for _ in 0..rest {
        literal(&mut put);
    }
    // The end.
    put(0, 7);
    for eight in bits.chunks(8) {
        let byte = eight
            .iter()
            .rev()
            .fold(0, |byte, bit| byte << 1 | u8::from(*bit));
        bytes.push(byte);
    }
    let sum = u32::try_from(count % 65_521).expect("below the modulus") << 16 | 1;
    bytes.extend(sum.to_be_bytes());
    bytes
}

/// A small grey JPEG that says it is progressive and this large.
fn jpeg(width: u16, height: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    let small = DynamicImage::new_luma8(8, 8);
    JpegEncoder::new(&mut bytes)
        .encode_image(&small)
        .expect("a picture");
    let frame = bytes
        .windows(2)
        .position(|two| two == [0xff, 0xc0])
        .expect("a frame");
    bytes[frame + 1] = 0xc2;
    bytes[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
    bytes[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
    bytes
}

fn small(format: ImageFormat) -> Vec<u8> {
    let mut bytes = Vec::new();
    let small = DynamicImage::new_rgba8(8, 8);
    small
        .write_to(&mut Cursor::new(&mut bytes), format)
        .expect("a picture");
    bytes
}

/// A small animation whose canvas is this large.
fn gif(width: u16, height: u16) -> Vec<u8> {
    let mut bytes = small(ImageFormat::Gif);
    bytes[6..8].copy_from_slice(&width.to_le_bytes());
    bytes[8..10].copy_from_slice(&height.to_le_bytes());
    bytes
}

/// A small lossless picture whose head says that it is this large.
fn webp(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = small(ImageFormat::WebP);
    let place = bytes
        .windows(4)
        .position(|four| four == b"VP8L")
        .expect("a head")
        + 9;
    let size = (width - 1) | (height - 1) << 14;
    let kept = bytes[place + 3] & 0xf0;
    bytes[place..place + 4].copy_from_slice(&size.to_le_bytes());
    bytes[place + 3] = bytes[place + 3] & 0x0f | kept;
    bytes
}

/// Has the server answer with this picture, as a model would get it.
async fn show(host: &Host, mime_type: &str, picture: &[u8]) -> ToolOutcome {
    let picture =
        json!({ "type": "image", "mimeType": mime_type, "data": STANDARD.encode(picture) });
    let arguments = json!({ "result": { "content": [picture] } });
    let options = CallOptions {
        delivery: ResultDelivery::Bounded,
        ..CallOptions::new(Consent::Typed)
    };
    let request = toolway::ToolRequest::new(
        toolway::ToolTarget::Key(toolway_types::ToolKey::new(name("able"), "answer")),
        arguments.as_object().cloned().expect("an object"),
    );
    host.call(request, options).await.expect("an answer")
}

/// What a model is told instead of a picture, without where it is saved.
fn told(outcome: &ToolOutcome) -> String {
    let blocks = &outcome.bounded.as_ref().expect("bounded").blocks;
    let text: Vec<_> = blocks.iter().map(ModelBlock::text).collect();
    let text = text.join("\n");
    text.split(" is saved as")
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn able(home: &Home) -> Host {
    let script = Script {
        drama: true,
        ..Script::default()
    };
    let servers = json!({ "able": ScriptedServer::new(script).entry() });
    Host::start(home.plan(&servers), home.options())
}

#[tokio::test]
async fn sec_56_a_picture_that_would_take_too_much_memory_is_saved_and_told_of() {
    if !alone("pictures::sec_56_a_picture_that_would_take_too_much_memory_is_saved_and_told_of") {
        return;
    }
    let home = Home::new();
    let host = able(&home);
    // The first call waits for the server.
    show(&host, "image/png", &png(8, 8)).await;
    let before = Usage::take().peak;
    for (mime_type, size, picture) in [
        ("image/png", "16000 × 16000", png(16_000, 16_000)),
        ("image/jpeg", "16000 × 16000", jpeg(16_000, 16_000)),
        ("image/gif", "8000 × 8000", gif(8_000, 8_000)),
        ("image/webp", "8000 × 8000", webp(8_000, 8_000)),
    ] {
        assert!(picture.len() < 300 * 1024);
        let outcome = show(&host, mime_type, &picture).await;
        assert_eq!(
            told(&outcome),
            format!(
                "[The picture of block 0, declared as `{mime_type}`, is not shown: it is too \
                 large to decode ({size} pixels); it"
            )
        );
        let saved = std::fs::read(&outcome.saved[0].path).expect("it is saved");
        assert_eq!(saved, picture);
    }
    let grown = (Usage::take().peak - before) / 1024;
    assert!(grown < 64, "{grown} MiB more");
    host.shutdown().await;
}

#[tokio::test]
async fn sec_56_pictures_that_are_decoded_at_once_share_their_memory() {
    if !alone("pictures::sec_56_pictures_that_are_decoded_at_once_share_their_memory") {
        return;
    }
    let home = Home::new();
    let host = able(&home);
    show(&host, "image/png", &png(8, 8)).await;
    let before = Usage::take().peak;
    let picture = png(5_000, 5_000);
    let all = (0..8).map(|_| show(&host, "image/png", &picture));
    for outcome in futures_util::future::join_all(all).await {
        let blocks = &outcome.bounded.as_ref().expect("bounded").blocks;
        assert!(
            matches!(
                blocks[0],
                ModelBlock::Image {
                    width: 1568,
                    height: 1568,
                    ..
                }
            ),
            "{:?}",
            told(&outcome)
        );
    }
    // Each takes 160 MiB, and all of them may take 256 MiB; what an allocator keeps of blocks that
    // were given back, thread by thread, comes on top.
    let grown = (Usage::take().peak - before) / 1024;
    assert!(grown < 600, "{grown} MiB more");
    host.shutdown().await;
}

#[tokio::test]
async fn sec_56_a_colour_profile_is_not_inflated_beyond_its_file() {
    if !alone("pictures::sec_56_a_colour_profile_is_not_inflated_beyond_its_file") {
        return;
    }
    let home = Home::new();
    let host = able(&home);
    show(&host, "image/png", &png(8, 8)).await;
    // Some hundred kilobytes that claims to be the profile of eight pixels by eight.
    let picture = png_with_profile(8, 8, &zeros(64 << 20));
    assert!(picture.len() < 1 << 20);
    // What the messages themselves take is not the profile's.
    show(
        &host,
        "image/png",
        &png_with_profile(8, 8, &vec![0; picture.len() - 200]),
    )
    .await;
    let before = Usage::take().peak;
    let all = (0..4).map(|_| show(&host, "image/png", &picture));
    for outcome in futures_util::future::join_all(all).await {
        let blocks = &outcome.bounded.as_ref().expect("bounded").blocks;
        assert!(
            matches!(blocks[0], ModelBlock::Image { width: 8, .. }),
            "{:?}",
            told(&outcome)
        );
    }
    let grown = (Usage::take().peak - before) / 1024;
    assert!(grown < 100, "{grown} MiB more");
    host.shutdown().await;
}
