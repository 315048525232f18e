//! A PNG made by hand: a row of coloured squares.
//!
//! Indexed colours and an uncompressed stream, so that a picture is a kilobyte and needs no
//! library.

/// The side of a square, in pixels.
const SIDE: usize = 24;

/// A colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Colour([u8; 3]);

impl Colour {
    /// A soft colour of this hue, in degrees.
    pub(super) fn from_hue(hue: u64) -> Self {
        // Between these bounds the channels rise and fall as the hue goes round.
        const LOW: u8 = 70;
        const HIGH: u8 = 220;
        let hue = hue % 360;
        let step = u64::from(HIGH - LOW) * (hue % 60) / 60;
        let step = u8::try_from(step).unwrap_or(HIGH - LOW);
        let (up, down) = (LOW + step, HIGH - step);
        Self(match hue / 60 {
            0 => [HIGH, up, LOW],
            1 => [down, HIGH, LOW],
            2 => [LOW, HIGH, up],
            3 => [LOW, down, HIGH],
            4 => [up, LOW, HIGH],
            _ => [HIGH, LOW, down],
        })
    }

    /// `#rrggbb`
    pub(super) fn code(self) -> String {
        let [red, green, blue] = self.0;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

/// The picture of a few colours, at most 255.
pub(super) fn swatches(colours: &[Colour]) -> Vec<u8> {
    let colours = &colours[..colours.len().min(usize::from(u8::MAX))];
    let mut header = Vec::new();
    header.extend(big_endian(colours.len() * SIDE));
    header.extend(big_endian(SIDE));
    // Eight bits per pixel, indexed colour, default compression and filter, not interlaced.
    header.extend([8, 3, 0, 0, 0]);
    let palette: Vec<u8> = colours.iter().flat_map(|colour| colour.0).collect();
    // Each row opens with its filter: none.
    let mut row = vec![0];
    for index in (0..=u8::MAX).take(colours.len()) {
        row.extend([index; SIDE]);
    }
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    write_chunk(&mut png, *b"IHDR", &header);
    write_chunk(&mut png, *b"PLTE", &palette);
    write_chunk(&mut png, *b"IDAT", &zlib_stored(&row.repeat(SIDE)));
    write_chunk(&mut png, *b"IEND", &[]);
    png
}

fn write_chunk(png: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    png.extend(big_endian(data.len()));
    let start = png.len();
    png.extend(kind);
    png.extend(data);
    let sum = crc32(&png[start..]);
    png.extend(sum.to_be_bytes());
}

fn big_endian(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes()
}

/// A zlib stream whose blocks are stored as they are.
fn zlib_stored(data: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let mut blocks = data.chunks(usize::from(u16::MAX)).peekable();
    while let Some(block) = blocks.next() {
        let len = u16::try_from(block.len()).unwrap_or(u16::MAX);
        stream.push(u8::from(blocks.peek().is_none()));
        stream.extend(len.to_le_bytes());
        stream.extend((!len).to_le_bytes());
        stream.extend(block);
    }
    stream.extend(adler32(data).to_be_bytes());
    stream
}

fn adler32(data: &[u8]) -> u32 {
    let (a, b) = data.iter().fold((1u32, 0u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    b << 16 | a
}

fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            if sum & 1 == 1 {
                sum >> 1 ^ 0xEDB8_8320
            } else {
                sum >> 1
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksums_are_the_published_ones() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(adler32(b"Wikipedia"), 0x11E6_0398);
    }

    #[test]
    fn hues_go_round_through_all_colours() {
        let codes: Vec<String> = (0..6)
            .map(|step| Colour::from_hue(step * 60).code())
            .collect();
        assert_eq!(
            codes,
            [
                "#dc4646", "#dcdc46", "#46dc46", "#46dcdc", "#4646dc", "#dc46dc"
            ]
        );
        assert_eq!(Colour::from_hue(360), Colour::from_hue(0));
    }

    #[test]
    fn a_picture_has_its_size_and_every_pixel() {
        let png = swatches(&[Colour::from_hue(0), Colour::from_hue(120)]);
        assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
        assert_eq!(png[16..24], [0, 0, 0, 48, 0, 0, 0, 24]);
        let at = png.windows(4).position(|window| window == b"IDAT").unwrap();
        // zlib and block heads, then the first row: its filter, then both colours.
        let row = &png[at + 4 + 2 + 5..][..49];
        assert_eq!(row[0], 0);
        assert!(row[1..25].iter().all(|pixel| *pixel == 0));
        assert!(row[25..].iter().all(|pixel| *pixel == 1));
        assert!(png.ends_with(b"IEND\xae\x42\x60\x82"));
    }
}
