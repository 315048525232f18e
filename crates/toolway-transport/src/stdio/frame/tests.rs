//! Framing: the same lines however the bytes are cut, and bounded memory.

use proptest::prelude::*;

use super::*;

fn lines(limit: usize, pieces: &[&[u8]]) -> Vec<StdoutLine> {
    let mut framer = LineFramer::new(limit);
    let mut lines = Vec::new();
    for piece in pieces {
        framer.room().extend_from_slice(piece);
        lines.extend(std::iter::from_fn(|| framer.next_line()));
    }
    lines.extend(std::iter::from_fn(|| framer.finish()));
    lines
}

fn message(text: &'static str) -> StdoutLine {
    StdoutLine::Message(Bytes::from_static(text.as_bytes()))
}

fn noise(text: &'static str) -> StdoutLine {
    StdoutLine::Noise(Bytes::from_static(text.as_bytes()))
}

const ONE: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

#[test]
fn rel_05_what_surrounds_a_message_invisibly_is_taken_off() {
    for around in [
        "{}\n",
        "{}\r\n",
        "\u{FEFF}{}\n",
        "\0{}\0\r\n",
        "  {}  ",
        "\u{1b}[2K\u{1b}[1G{}\u{1b}[0m\n",
        "\u{1b}]0;title\u{7}{}",
        "\n\r\n \n{}\n\n",
    ] {
        let text = around.replace("{}", ONE);
        assert_eq!(
            lines(1000, &[text.as_bytes()]),
            [message(ONE)],
            "{around:?}"
        );
    }
}

#[test]
fn rel_05_what_is_no_message_is_noise() {
    for text in [
        "Server listening on stdio",
        "\u{1b}[32minfo\u{1b}[39m ready",
        r#"loading... {"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"level":30,"msg":"started","pid":7}"#,
        "{'jsonrpc': 'python'}",
        r#"{"jsonrpc":"2.0","id":1,"#,
        "[INFO] up",
        "[1,2]",
        "{}",
    ] {
        let found = lines(1000, &[text.as_bytes(), b"\n", ONE.as_bytes()]);
        assert!(
            matches!(&found[..], [StdoutLine::Noise(_), StdoutLine::Message(_)]),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn rel_05_a_broken_character_does_not_lose_the_answer() {
    let found = lines(1000, &[b"{\"id\":1,\"result\":\"a\xffb\"}\n"]);
    assert_eq!(found, [message("{\"id\":1,\"result\":\"a\u{FFFD}b\"}")]);
}

#[test]
fn a_batch_becomes_its_messages() {
    let text = format!("[{ONE}, {ONE}]\n");
    let expected = StdoutLine::Batch(vec![Bytes::from(ONE); 2]);
    assert_eq!(lines(1000, &[text.as_bytes()]), [expected]);
}

#[test]
fn rel_11_a_line_over_the_cap_is_skipped_and_names_its_call() {
    let at_cap = format!(r#"{{"id":7,"result":"{}"}}"#, "x".repeat(80));
    let limit = at_cap.len();
    assert!(matches!(
        &lines(limit, &[at_cap.as_bytes(), b"\n"])[..],
        [StdoutLine::Message(_)]
    ));
    let pieces: Vec<&[u8]> = at_cap
        .as_bytes()
        .chunks(7)
        .chain([&b"\n"[..], ONE.as_bytes()])
        .collect();
    assert_eq!(
        lines(limit - 1, &pieces),
        [StdoutLine::Oversized(Some(Id::Number(7))), message(ONE)]
    );
    let noisy = "x".repeat(500);
    assert_eq!(
        lines(100, &[noisy.as_bytes(), b"\nhi"]),
        [StdoutLine::Oversized(None), noise("hi")]
    );
}

#[test]
fn rel_11_memory_stays_bounded_while_a_line_is_skipped() {
    let limit = 4 * 1024 * 1024;
    let mut framer = LineFramer::new(limit);
    framer.room().extend_from_slice(br#"{"id":7,"result":""#);
    let piece = vec![b'x'; READ];
    for _ in 0..1000 {
        framer.room().extend_from_slice(&piece);
        assert_eq!(framer.next_line(), None);
        assert!(
            framer.buffer.capacity() <= 3 * limit,
            "{}",
            framer.buffer.capacity()
        );
    }
    framer.room().extend_from_slice(b"\"}\n");
    assert_eq!(
        framer.next_line(),
        Some(StdoutLine::Oversized(Some(Id::Number(7))))
    );
}

proptest! {
    #[test]
    fn cutting_changes_nothing(
        text in prop::collection::vec(prop_oneof![
            Just(b"\n".to_vec()), Just(ONE.as_bytes().to_vec()), Just(b"noise \xff\0".to_vec()),
            Just(vec![b'y'; 90]), Just(b"\r\n".to_vec()), Just(b"\xEF\xBB\xBF".to_vec()),
        ], 0..12),
        size in 1usize..40,
    ) {
        let whole: Vec<u8> = text.concat();
        let pieces: Vec<&[u8]> = whole.chunks(size).collect();
        prop_assert_eq!(lines(80, &pieces), lines(80, &[&whole]));
    }
}
