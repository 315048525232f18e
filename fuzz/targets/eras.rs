//! Fuzz target: a server's results and errors on their way to a client of either era.
//!
//! Owns the promises of the bridge in `toolway_gateway::hosted`: a result that is an object stays one,
//! as JSON on one line; every member that means the same in both eras arrives in its place, byte for
//! byte; a modern client is told what kind of result it is, and a legacy one nothing that it does not
//! know; an error keeps its code and its data; ids and addresses are written anew and nothing else.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use toolway_gateway::Answer;
use toolway_gateway::hosted::fuzzing;
use toolway_types::Era;
use toolway_wire::{Id, RawJson, RpcError, scan};

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];
const MODERN: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

fuzz_target!(|data: &[u8]| {
    let Ok(result) = RawJson::read(&Bytes::copy_from_slice(data)) else {
        return;
    };
    check_error(&result);
    // What is no object, or what two readers could read differently, is refused before.
    if !result.get().starts_with('{') || scan::doubled_key(result.get()).is_some() {
        return;
    }
    for from in ERAS {
        for to in ERAS {
            for says_caching in [false, true] {
                check_result(&result, from, to, says_caching);
            }
        }
    }
    check_rewritten(&result);
});

/// The members of an object, with their names read.
fn members(json: &str) -> Vec<(String, &str)> {
    let members = scan::members(json);
    let read = |key| scan::text(key).unwrap_or_default().into_owned();
    members.map(|(key, value)| (read(key), value)).collect()
}

fn payload(message: &str) -> &str {
    let read: &RawValue = serde_json::from_str(message).expect("a message is JSON");
    let members = scan::members(read.get());
    let found = members.into_iter().find(|(key, _)| *key == "\"result\"");
    found.unwrap_or_else(|| panic!("no result: {message}")).1
}

fn check_result(result: &RawJson, from: Era, to: Era, says_caching: bool) {
    let answer = fuzzing::passed_on(result.clone(), from, to, says_caching);
    let id = Id::Text("a \" \u{2028}\n".to_owned());
    let message = answer.message(&id);
    let message = std::str::from_utf8(&message).expect("JSON is text");
    assert!(!message.contains(['\n', '\r']), "{message:?}");
    let parts = fuzzing::in_parts(&answer, &id);
    let parts = std::str::from_utf8(&parts).expect("JSON is text");
    assert_eq!(parts.replace(['\n', '\r'], " "), message);

    let came: Vec<_> = members(result.get());
    let went = members(payload(parts));
    let kept = |all: &[(String, &str)]| -> Vec<(String, String)> {
        let kept = all.iter().filter(|(name, _)| !MODERN.contains(&name.as_str()));
        kept.map(|(name, value)| (name.clone(), (*value).to_owned())).collect()
    };
    assert_eq!(kept(&came), kept(&went));
    let has = |name: &str| went.iter().any(|(it, _)| it == name);
    let had = |name: &str| came.iter().any(|(it, _)| it == name);
    match (from, to) {
        (_, Era::Modern) => assert!(has("resultType"), "{parts}"),
        (Era::Modern, Era::Legacy) => assert!(!MODERN.iter().any(|name| has(name)), "{parts}"),
        (Era::Legacy, Era::Legacy) => assert_eq!(came, went),
    }
    if to == Era::Modern && had("resultType") {
        assert_eq!(came, went);
    }
    assert_eq!(scan::doubled_key(parts), None, "{parts}");
}

fn check_error(error: &RawJson) {
    let read = RpcError::read(error.as_raw());
    let (code, data) = (read.code, read.data.clone());
    let message = Answer::from(read).message(&Id::Number(7.into()));
    let message = std::str::from_utf8(&message).expect("JSON is text");
    assert!(!message.contains(['\n', '\r']), "{message:?}");
    let whole: &RawValue = serde_json::from_str(message).expect("a message is JSON");
    let mut all = scan::members(whole.get());
    let (_, error) = all.find(|(key, _)| *key == "\"error\"").expect("an error");
    let went = members(error);
    let of = |name: &str| went.iter().find(|(it, _)| it == name).map(|(_, value)| *value);
    assert_eq!(of("code"), Some(code.to_string().as_str()));
    let same = data.as_ref().map(|data| data.get().replace(['\n', '\r'], " "));
    assert_eq!(of("data").map(str::to_owned), same);
}

fn check_rewritten(result: &RawJson) {
    let task = fuzzing::of_task(result, "sealed");
    let read = fuzzing::readdressed(result, "toolway:s:x");
    for (written, changed) in [(&task, ["task", "taskId"]), (&read, ["contents", "contents"])] {
        let valid: Result<&RawValue, _> = serde_json::from_str(written.get());
        assert!(valid.is_ok(), "{}", written.get());
        let (came, went) = (members(result.get()), members(written.get()));
        assert_eq!(came.len(), went.len(), "{}", written.get());
        for ((name, before), (now, after)) in came.iter().zip(&went) {
            assert_eq!(name, now);
            if !changed.contains(&name.as_str()) {
                assert_eq!(before, after, "{name}");
            }
        }
    }
}
