//! What makes two requests of a client the same: what a sealed value must come back with.
//!
//! Owns the form that is hashed into seals. Clients may write the same arguments in another order or
//! with other spaces when they send a request again.

use serde_json::Value;
use toolway_wire::{RawJson, request_head};

/// The members of a request's parameters that say what is asked.
const ASKED: [&str; 3] = ["name", "uri", "arguments"];

/// A request without what may differ when it is sent again.
pub(super) fn identity(method: &str, params: &RawJson) -> Vec<u8> {
    let mut out = method.as_bytes().to_vec();
    for member in ASKED {
        out.push(0);
        let raw = request_head::raw_param(params, member);
        let value: Option<Value> = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
        match value {
            // No arguments and empty ones are the same.
            Some(Value::Object(members)) if members.is_empty() => {}
            Some(value) => write(&value, &mut out),
            None => {}
        }
    }
    out
}

/// Writes a value with the members of objects in order.
fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| name.as_str());
            out.push(b'{');
            for (name, value) in members {
                out.extend_from_slice(Value::from(name.as_str()).to_string().as_bytes());
                out.push(b':');
                write(value, out);
                out.push(b',');
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                write(item, out);
                out.push(b',');
            }
            out.push(b']');
        }
        other => out.extend_from_slice(other.to_string().as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn of(params: &'static str) -> Vec<u8> {
        let params = RawJson::read(&Bytes::from_static(params.as_bytes())).unwrap();
        identity("tools/call", &params)
    }

    #[test]
    fn the_same_request_is_the_same_however_it_is_written() {
        let first = of(r#"{"name":"a","arguments":{"x":1,"y":[{"b":2,"a":3}]}}"#);
        let again = of(
            r#"{ "requestState":"s", "arguments":{"y":[{"a":3,"b":2}],"x":1}, "name":"\u0061" }"#,
        );
        assert_eq!(first, again);
        assert_eq!(of(r#"{"name":"a"}"#), of(r#"{"name":"a","arguments":{}}"#));
        for other in [
            r#"{"name":"b","arguments":{"x":1,"y":[{"b":2,"a":3}]}}"#,
            r#"{"name":"a","arguments":{"x":2,"y":[{"b":2,"a":3}]}}"#,
            r#"{"name":"a","arguments":{"x":1,"y":[{"b":2},{"a":3}]}}"#,
            r#"{"uri":"a"}"#,
        ] {
            assert_ne!(first, of(other), "{other}");
        }
    }
}
