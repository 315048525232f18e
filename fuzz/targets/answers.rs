//! Fuzz target: answers that are looked through instead of read.
//!
//! Owns the promise of `toolway_wire::view::skim_result`: what it says of any JSON is what reading
//! it says too, and it speaks only of answers that consist of texts. How they are read is checked
//! against JSON as everybody reads it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use serde_json::value::RawValue;
use toolway::view::{self, ContentBlock, ResultType};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let Ok(raw) = serde_json::from_str::<&RawValue>(&text) else {
        return;
    };
    let Some(is_error) = view::skim_result(raw) else {
        return;
    };
    let read = view::tool_result(raw).expect("what is known can be read");
    assert_eq!(read.is_error, is_error);
    assert_eq!(read.result_type, ResultType::Complete);
    assert!(read.structured.is_none() && read.meta.is_none());
    let value: Value = serde_json::from_str(raw.get()).expect("it was read before");
    assert_eq!(value["isError"] == true, is_error);
    let blocks = value["content"].as_array();
    assert_eq!(read.content.len(), blocks.map_or(0, Vec::len));
    for (block, value) in read.content.iter().zip(blocks.into_iter().flatten()) {
        let ContentBlock::Text { text } = block else {
            panic!("{block:?} is no text");
        };
        assert_eq!(value["type"], "text");
        assert_eq!(value["text"], *text);
        assert_eq!(value.as_object().map(|members| members.len()), Some(2));
    }
});
