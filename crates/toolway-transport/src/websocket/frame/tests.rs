//! Frames, cut at every byte, too large, and against the rules.

use super::*;

const TEXT: u8 = 0x1;
const CONTINUE: u8 = 0x0;
const FINAL: u8 = 0x80;

/// A frame of a server.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..126 => bytes.push(u8::try_from(length).expect("small")),
        length @ 126..65_536 => {
            bytes.push(126);
            bytes.extend(u16::try_from(length).expect("small").to_be_bytes());
        }
        length => {
            bytes.push(127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes.extend(payload);
    bytes
}

fn decode(pieces: &[&[u8]], limit: usize) -> Result<Vec<IncomingFrame>, ProtocolViolation> {
    let mut decoder = FrameDecoder::new(limit);
    let mut found = Vec::new();
    for piece in pieces {
        decoder.buffer().extend_from_slice(piece);
        while let Some(incoming) = decoder.next()? {
            found.push(incoming);
        }
        let kept = match &decoder.message {
            Some(PartialMessage::Kept(whole)) => whole.len(),
            _ => 0,
        };
        assert!(kept <= limit && decoder.buffer.len() <= piece.len() + 14);
    }
    Ok(found)
}

#[test]
fn frames_cut_at_every_byte_are_the_same_messages() {
    let stream = [
        frame(FINAL | TEXT, b"{\"a\":1}"),
        frame(TEXT, b"{\"b\":"),
        frame(FINAL | 0x9, b"ping"),
        frame(CONTINUE, b""),
        frame(FINAL | CONTINUE, &b" ".repeat(300)),
        frame(FINAL | 0xA, b""),
        frame(FINAL | 0x2, b""),
        frame(FINAL | 0x8, b"\x03\xE8bye"),
    ]
    .concat();
    let expected = [
        IncomingFrame::Message("{\"a\":1}".into()),
        IncomingFrame::Ping("ping".into()),
        IncomingFrame::Message(format!("{{\"b\":{}", " ".repeat(300)).into()),
        IncomingFrame::Pong,
        IncomingFrame::Message(Bytes::new()),
        IncomingFrame::Close {
            code: Some(1000),
            reason: "bye".to_owned(),
        },
    ];
    for cut in 0..=stream.len() {
        let (before, after) = stream.split_at(cut);
        let found = decode(&[before, after], 1000).expect("well-formed");
        assert_eq!(found, expected, "cut at {cut}");
    }
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(decode(&bytes, 1000).expect("well-formed"), expected);
}

#[test]
fn rel_11_a_message_over_the_cap_is_read_past_in_one_frame_and_in_many() {
    let text = format!("{{\"result\":\"{}\",\"id\":7}}", "x".repeat(5000));
    let whole = frame(FINAL | TEXT, text.as_bytes());
    let mut pieces = vec![frame(TEXT, b"")];
    pieces.extend(
        text.as_bytes()
            .chunks(700)
            .map(|part| frame(CONTINUE, part)),
    );
    pieces.push(frame(FINAL | CONTINUE, b""));
    for large in [whole, pieces.concat()] {
        let stream = [large, frame(FINAL | TEXT, b"{}")].concat();
        for size in [1, 3, 1000, stream.len()] {
            let chunks: Vec<&[u8]> = stream.chunks(size).collect();
            let expected = [
                IncomingFrame::Oversized(Some(Id::Number(7))),
                IncomingFrame::Message("{}".into()),
            ];
            assert_eq!(decode(&chunks, 4000).expect("well-formed"), expected);
        }
    }
    let exact = frame(FINAL | TEXT, &[b' '; 4000]);
    let found = decode(&[&exact], 4000).expect("well-formed");
    assert!(matches!(&found[..], [IncomingFrame::Message(_)]));
}

#[test]
fn frames_against_the_rules_end_the_connection() {
    let masked = [FINAL | TEXT, 0x80 | 1, 1, 2, 3, 4, 5];
    for (bytes, violation) in [
        (
            frame(FINAL | 0x40 | TEXT, b""),
            ProtocolViolation::Extension,
        ),
        (masked.to_vec(), ProtocolViolation::Masked),
        (frame(FINAL | 0x3, b""), ProtocolViolation::Unknown),
        (frame(FINAL | 0xB, b""), ProtocolViolation::Unknown),
        (frame(0x9, b""), ProtocolViolation::Control),
        (frame(FINAL | 0x9, &[0; 126]), ProtocolViolation::Control),
        (frame(FINAL | CONTINUE, b""), ProtocolViolation::Stray),
        (
            [frame(TEXT, b""), frame(TEXT, b"")].concat(),
            ProtocolViolation::Interleaved,
        ),
    ] {
        assert_eq!(decode(&[&bytes], 1000), Err(violation));
    }
}

#[test]
fn what_we_send_is_masked_and_means_what_it_should() {
    let frame = text("{\"a\":1}".into()).expect("random numbers");
    assert_eq!(&frame[..2], [FINAL | TEXT, 0x80 | 7]);
    let mask = &frame[2..6];
    let unmasked: Vec<u8> = frame[6..]
        .iter()
        .zip(mask.iter().cycle())
        .map(|(a, b)| a ^ b)
        .collect();
    assert_eq!(unmasked, b"{\"a\":1}");
    assert_ne!(text("x".into()), text("x".into()), "another mask each time");
}
