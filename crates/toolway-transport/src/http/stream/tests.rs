//! Event streams, cut at every byte.

use super::*;

const RECORDED: &str = "\u{FEFF}: hello\nid: 1\nevent: message\ndata: {\"a\":1}\n\n\
    retry: 250\r\nid: 2\r\ndata: {\"b\":\r\ndata:  2}\r\n\r\nevent: ping\rdata: x\r\r\
    id: 3\ndata:\n\ndata: {\"c\":3}\n\n";

fn shown(event: StreamEvent) -> String {
    match event {
        StreamEvent::Message(data) => String::from_utf8(data.to_vec()).expect("text"),
        other => format!("{other:?}"),
    }
}

fn decode(pieces: &[&[u8]]) -> (Vec<String>, EventDecoder) {
    let mut decoder = EventDecoder::new(1000);
    let mut events = Vec::new();
    for piece in pieces {
        decoder.feed(piece);
        while let Some(event) = decoder.next_event().expect("within the cap") {
            events.push(shown(event));
        }
    }
    (events, decoder)
}

#[test]
fn rel_25_a_stream_cut_at_every_byte_is_the_same_stream() {
    let expected = ["{\"a\":1}", "{\"b\":\n 2}", "{\"c\":3}"];
    for cut in 0..=RECORDED.len() {
        let (before, after) = RECORDED.as_bytes().split_at(cut);
        let (events, decoder) = decode(&[before, after]);
        assert_eq!(events, expected, "cut at {cut}");
        assert_eq!(decoder.last_id(), Some("3"));
        assert_eq!(decoder.retry(), Some(Duration::from_millis(250)));
    }
    let bytes: Vec<&[u8]> = RECORDED.as_bytes().chunks(1).collect();
    assert_eq!(decode(&bytes).0, expected);
}

#[test]
fn rel_25_an_event_that_was_cut_off_is_neither_delivered_nor_resumed_after() {
    let text = "id: 1\ndata: {}\n\nid: 2\ndata: {\"x\"";
    let (events, mut decoder) = decode(&[text.as_bytes()]);
    assert_eq!((events.len(), decoder.last_id()), (1, Some("1")));
    decoder.restart();
    decoder.feed(b"data: {\"y\":1}\n\n");
    let event = decoder
        .next_event()
        .expect("within the cap")
        .expect("an event");
    assert_eq!(shown(event), "{\"y\":1}");
}

#[test]
fn an_event_over_the_cap_is_refused_in_one_line_and_in_many() {
    for text in [
        format!("data: {}", "x".repeat(2000)),
        "data: xxxxxxxxx\n".repeat(200),
    ] {
        let mut decoder = EventDecoder::new(1000);
        decoder.feed(text.as_bytes());
        assert_eq!(decoder.next_event(), Err(EventTooLarge));
    }
    let mut decoder = EventDecoder::new(1000);
    decoder.feed(
        format!("data: {}\n\n", "x".repeat(990))
            .repeat(5)
            .as_bytes(),
    );
    let mut count = 0;
    while decoder.next_event().is_ok_and(|event| event.is_some()) {
        count += 1;
    }
    assert_eq!(count, 5);
}

#[test]
fn an_endpoint_is_told_from_a_message_and_signs_of_life_are_counted() {
    let text =
        ": ping\n\nevent: endpoint\ndata: /messages?id=1\n\n: ping\n\nevent: ping\ndata: x\n\n";
    let (events, decoder) = decode(&[text.as_bytes()]);
    assert_eq!(events, ["Endpoint(b\"/messages?id=1\")"]);
    assert_eq!(decoder.keepalives(), 3);
}

#[test]
fn rel_11_an_event_over_the_cap_is_read_past_wherever_it_is_cut() {
    let large = "x".repeat(3000);
    let stream = format!(
        "id: 1\r\ndata: {{\"jsonrpc\":\"2.0\",\r\ndata: \"result\":\"{large}\",\r\nid: 2\r\n: hm\r\ndata: \
         \"id\":7}}\r\n\r\ndata: {{}}\r\n\r\n"
    );
    let stream = stream.as_bytes();
    for size in [1, 2, 7, 500, 1100, stream.len()] {
        let mut decoder = EventDecoder::new(1000);
        let mut events = Vec::new();
        for piece in stream.chunks(size) {
            decoder.feed(piece);
            loop {
                match decoder.next_event() {
                    Ok(Some(event)) => events.push(event),
                    Ok(None) => break,
                    Err(EventTooLarge) => decoder.skip(),
                }
                assert!(decoder.buffer.len() < 2 * 1000 + size, "nothing piles up");
            }
        }
        assert_eq!(
            events,
            [
                StreamEvent::Oversized(Some(Id::Number(7))),
                StreamEvent::Message("{}".into())
            ],
            "in pieces of {size}"
        );
        assert_eq!(decoder.last_id(), Some("2"), "it is not asked for again");
    }
}

/// All that a stream of this many bytes at a time brings, with what is over the cap read past.
fn in_pieces(stream: &[u8], size: usize) -> (Vec<StreamEvent>, Option<String>) {
    let mut decoder = EventDecoder::new(1000);
    let mut events = Vec::new();
    for piece in stream.chunks(size) {
        decoder.feed(piece);
        loop {
            match decoder.next_event() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(EventTooLarge) => decoder.skip(),
            }
        }
    }
    (events, decoder.last_id().map(ToOwned::to_owned))
}

#[test]
fn rel_25_what_is_over_the_cap_does_not_depend_on_how_the_stream_is_cut() {
    let long = |count: usize| "x".repeat(count);
    for stream in [
        // A comment, an unknown field, data that fits and does not by the length of its name.
        format!(": {}\ndata: {{}}\n\n", long(2000)),
        format!("what: {}\ndata: {{}}\n\ndata: {{}}\n\n", long(2000)),
        format!("data: {}\n\ndata: {{}}\n\n", long(994)),
        format!("data: {}\n\ndata: {{}}\n\n", long(995)),
        // An id that is too long to be sent back, in an event that is read past.
        format!(
            "data: {}\nid: {}\n\nid: 7\ndata: {{}}\n\n",
            long(1500),
            long(9000)
        ),
        format!("\u{FEFF}data: {}\n\n\u{FEFF}data: {{}}\n\n", long(1500)),
    ] {
        let whole = in_pieces(stream.as_bytes(), stream.len());
        for size in [1, 3, 999, 1001] {
            let cut = in_pieces(stream.as_bytes(), size);
            assert_eq!(cut, whole, "in pieces of {size}: {}", &stream[..12]);
        }
    }
}
