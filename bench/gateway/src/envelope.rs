//! Finding members of a JSON-RPC message without reading the message.
//!
//! Owns a scan over the outermost object. It trusts that the text is JSON: whoever sent it is part
//! of the measuring.

use std::ops::Range;

use memchr::memchr2;

/// Where the value of an outermost member stands. The scan ends there, so what follows costs
/// nothing.
#[must_use]
pub fn member(message: &[u8], name: &[u8]) -> Option<Range<usize>> {
    let mut place = blank(message, 0);
    if message.get(place) != Some(&b'{') {
        return None;
    }
    place += 1;
    loop {
        place = blank(message, place);
        if message.get(place) != Some(&b'"') {
            return None;
        }
        let end = string(message, place)?;
        let key = &message[place + 1..end - 1];
        place = blank(message, end);
        if message.get(place) != Some(&b':') {
            return None;
        }
        place = blank(message, place + 1);
        let end = value(message, place)?;
        if key == name {
            return Some(place..end);
        }
        place = blank(message, end);
        if message.get(place) != Some(&b',') {
            return None;
        }
        place += 1;
    }
}

fn blank(message: &[u8], mut place: usize) -> usize {
    while matches!(message.get(place), Some(b' ' | b'\t' | b'\r' | b'\n')) {
        place += 1;
    }
    place
}

/// Behind the closing quote.
fn string(message: &[u8], place: usize) -> Option<usize> {
    let mut place = place + 1;
    loop {
        place += memchr2(b'"', b'\\', message.get(place..)?)?;
        if message[place] == b'"' {
            return Some(place + 1);
        }
        place += 2;
    }
}

/// Behind the value.
fn value(message: &[u8], place: usize) -> Option<usize> {
    match message.get(place)? {
        b'"' => string(message, place),
        b'{' | b'[' => {
            let (mut place, mut depth) = (place + 1, 1);
            while depth > 0 {
                match message.get(place)? {
                    b'"' => {
                        place = string(message, place)?;
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                place += 1;
            }
            Some(place)
        }
        _ => {
            let rest = &message[place..];
            let is_end =
                |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n');
            Some(place + rest.iter().position(is_end).unwrap_or(rest.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::member;

    fn found<'a>(message: &'a str, name: &str) -> Option<&'a str> {
        member(message.as_bytes(), name.as_bytes()).map(|range| &message[range])
    }

    #[test]
    fn only_the_outermost_object_counts() {
        let message = r#"{"jsonrpc":"2.0","params":{"id":7,"a":["}",{"id":8}]}, "id" : "a\"b" }"#;
        assert_eq!(found(message, "id"), Some(r#""a\"b""#));
        assert_eq!(found(message, "method"), None);
        assert_eq!(found(r#"{"id":12}"#, "id"), Some("12"));
        assert_eq!(found(r#"{"params":{"id":1}}"#, "id"), None);
    }

    #[test]
    fn what_is_cut_off_has_no_members() {
        for cut in [
            "",
            "[]",
            "{",
            r#"{"id"#,
            r#"{"id""#,
            r#"{"a":"b"#,
            r#"{"a":{"#,
        ] {
            assert_eq!(found(cut, "id"), None, "{cut}");
        }
    }
}
