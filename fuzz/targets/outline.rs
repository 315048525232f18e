//! Fuzz target: outlines of results.
//!
//! Owns the promises of `toolway::dispatch::result::outline` for any text: an outline is one
//! bounded line without hidden characters, no deeper than it says, the same each time; more of
//! the same does not change it; the array it names is there and as long as it says.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use toolway::dispatch::result::fuzzing::outline_lines;
use toolway::dispatch::result::outline::{MAX_CHARS, Outline, outline};
use toolway_types::text::is_hidden;

/// How many brackets can be open at once: one for each level that is told apart.
const MAX_DEPTH: usize = 5;
/// The most processor time for all outlines of one input of 4 KiB.
const LIMIT: Duration = Duration::from_secs(2);

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let began = processor_time();
    let found = outline(&text);
    assert_eq!(found, outline(&text));
    let value = serde_json::from_str::<Value>(&text).ok();
    // The other way round it is not so: what an outline skips is read less strictly.
    assert!(found.is_some() || value.is_none(), "JSON has an outline");
    if let (Some(found), Some(value)) = (found, value) {
        check(&found);
        check_longest(&found, &value);
        check_repeated(&text);
    }
    if let Some(found) = outline_lines(&text) {
        check(&found);
        assert_eq!(found.longest, None);
    }
    let taken = processor_time() - began;
    assert!(taken < LIMIT, "outlines took {taken:?}");
});

fn check(found: &Outline) {
    let text = &found.text;
    assert!(!text.is_empty() && text.chars().count() <= MAX_CHARS);
    assert!(!text.contains(is_hidden), "{text:?}");
    assert!(depth(text) <= MAX_DEPTH, "{text}");
}

/// How deep brackets are nested, outside of quoted names.
fn depth(text: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0);
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => {
                while let Some(inside) = characters.next() {
                    match inside {
                        '\\' => {
                            characters.next();
                        }
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '[' | '{' => {
                open += 1;
                deepest = deepest.max(open);
            }
            ']' | '}' => open -= 1,
            _ => {}
        }
    }
    deepest
}

/// The way to the longest array is safe to paste, and leads to an array of that length.
fn check_longest(found: &Outline, value: &Value) {
    let Some((way, len)) = &found.longest else {
        assert!(!value.is_array());
        return;
    };
    let mut at = value;
    if way != "." {
        for name in way
            .strip_prefix('.')
            .expect("a way starts with a dot")
            .split('.')
        {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            assert!(!name.is_empty() && name.chars().all(plain), "{way}");
            at = at.get(name).expect("the way leads somewhere");
        }
    }
    assert_eq!(at.as_array().map(Vec::len), Some(*len), "{way}");
}

/// More of the same does not change the shape; many more take not much longer.
fn check_repeated(text: &str) {
    let one = outline(&format!("[{text}]")).map(|found| found.text);
    let three = outline(&format!("[{text},{text},{text}]")).map(|found| found.text);
    assert_eq!(one, three);
    let many = outline(&format!("[{}{text}]", format!("{text},").repeat(99)));
    assert_eq!(one, many.map(|found| found.text));
}

/// Of this thread: others on the machine must not make a finding.
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanoseconds)
}
