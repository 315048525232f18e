//! Fuzz target: sealed values that clients bring back.
//!
//! Owns the promises of `toolway_gateway::seal`: nothing opens that these keys did not seal, and
//! what they sealed opens unchanged, for its own binding and in its time alone. So every input is
//! tried as a text as it is, as the bytes of one, and as changes of one that is genuine.
#![no_main]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use libfuzzer_sys::fuzz_target;
use toolway_gateway::seal::{SealBinding, SealError, SealKeys, SealPurpose};

const PURPOSES: [SealPurpose; 4] = [
    SealPurpose::RequestState,
    SealPurpose::ParkedCall,
    SealPurpose::Task,
    SealPurpose::Cursor,
];
const LASTS: u64 = 60;

/// Seconds since 1970.
static NOW: AtomicU64 = AtomicU64::new(0);
static KEYS: LazyLock<SealKeys> = LazyLock::new(|| {
    let now = || SystemTime::UNIX_EPOCH + Duration::from_secs(NOW.load(Ordering::Relaxed));
    let keys = SealKeys::random().expect("the system has random bytes");
    keys.with_clock(Arc::new(now))
});

// Parts are separated by 0xFF, which no text has: principal, request, content; the first byte of
// the input says which purpose, the second how long is waited.
fuzz_target!(|data: &[u8]| {
    let (purpose, waits) = match data {
        [purpose, waits, ..] => (usize::from(*purpose) % 4, u64::from(*waits)),
        _ => (0, 0),
    };
    let mut parts = data.get(2..).unwrap_or_default().splitn(3, |byte| *byte == 0xFF);
    let principal = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let request = parts.next().unwrap_or_default();
    let content = parts.next().unwrap_or_default();
    let binding = SealBinding {
        purpose: PURPOSES[purpose],
        principal: &principal,
        request,
    };

    NOW.store(1_000_000, Ordering::Relaxed);
    check_strangers(&binding, data);

    let lasts = Duration::from_secs(LASTS);
    let sealed = KEYS.seal(&binding, lasts, content).expect("it is small");
    assert!(sealed.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
    assert_eq!(KEYS.open(&binding, &sealed).expect("it is genuine"), content);
    check_changes(&binding, &sealed, data);
    check_other_bindings(&binding, &sealed);

    NOW.fetch_add(waits, Ordering::Relaxed);
    match KEYS.open(&binding, &sealed) {
        Ok(opened) => assert!(opened == content && waits < LASTS),
        Err(SealError::Expired) => assert!(waits >= LASTS),
        Err(other) => panic!("{other}"),
    }
});

fn check_refused(binding: &SealBinding<'_>, text: &str) {
    let opened = KEYS.open(binding, text);
    assert!(matches!(opened, Err(SealError::Refused)), "{opened:?}");
}

fn check_strangers(binding: &SealBinding<'_>, data: &[u8]) {
    check_refused(binding, &String::from_utf8_lossy(data));
    check_refused(binding, &URL_SAFE_NO_PAD.encode(data));
    // With the head of a genuine one, whose key is tried.
    let genuine = KEYS.seal(binding, Duration::MAX, b"").expect("it is small");
    let mut bytes = URL_SAFE_NO_PAD.decode(genuine).expect("it is base64");
    bytes.truncate(2);
    bytes.extend_from_slice(data);
    check_refused(binding, &URL_SAFE_NO_PAD.encode(bytes));
}

/// The input says which bytes change, and into what.
fn check_changes(binding: &SealBinding<'_>, sealed: &str, data: &[u8]) {
    let bytes = URL_SAFE_NO_PAD.decode(sealed).expect("it is base64");
    for pair in data.chunks_exact(2).take(4) {
        let (place, change) = (usize::from(pair[0]) % bytes.len(), pair[1].max(1));
        let mut changed = bytes.clone();
        changed[place] ^= change;
        check_refused(binding, &URL_SAFE_NO_PAD.encode(&changed));
        check_refused(binding, &URL_SAFE_NO_PAD.encode(&bytes[..place]));
        changed = bytes.clone();
        changed.insert(place, change);
        check_refused(binding, &URL_SAFE_NO_PAD.encode(changed));
    }
    for (at, _) in sealed.char_indices().step_by(29) {
        let mut text = sealed.to_owned();
        text.replace_range(at..=at, if text.as_bytes()[at] == b'A' { "B" } else { "A" });
        check_refused(binding, &text);
    }
}

/// The border between principal and request counts too.
fn check_other_bindings(binding: &SealBinding<'_>, sealed: &str) {
    for purpose in PURPOSES.into_iter().filter(|purpose| *purpose != binding.purpose) {
        check_refused(&SealBinding { purpose, ..*binding }, sealed);
    }
    let longer = format!("{}x", binding.principal);
    check_refused(&SealBinding { principal: &longer, ..*binding }, sealed);
    let more = [binding.request, b"x"].concat();
    check_refused(&SealBinding { request: &more, ..*binding }, sealed);
    if let Some((at, _)) = binding.principal.char_indices().next_back() {
        let (principal, moved) = binding.principal.split_at(at);
        let request = [moved.as_bytes(), binding.request].concat();
        let shifted = SealBinding { principal, request: &request, ..*binding };
        check_refused(&shifted, sealed);
    }
}
