//! What a sealed value promises, for any content, binding and input.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

const MINUTE: Duration = Duration::from_mins(1);

const PURPOSES: [SealPurpose; 4] = [
    SealPurpose::RequestState,
    SealPurpose::ParkedCall,
    SealPurpose::Task,
    SealPurpose::Cursor,
];

fn bound<'a>(principal: &'a str, request: &'a [u8]) -> SealBinding<'a> {
    SealBinding {
        purpose: SealPurpose::RequestState,
        principal,
        request,
    }
}

/// Keys whose clock stands where the number says, in milliseconds.
fn clocked(now: &Arc<AtomicU64>) -> SealKeys {
    let now = Arc::clone(now);
    let clock: SealClock = Arc::new(move || {
        SystemTime::UNIX_EPOCH + Duration::from_millis(now.load(Ordering::Relaxed))
    });
    SealKeys::random().unwrap().with_clock(clock)
}

fn is_refused(result: &Result<Vec<u8>, SealError>) -> bool {
    matches!(result, Err(SealError::Refused))
}

proptest! {
    #[test]
    fn what_was_sealed_comes_back(
        content in prop::collection::vec(any::<u8>(), 0..300),
        principal in ".{0,40}",
        request in prop::collection::vec(any::<u8>(), 0..100),
        purpose in 0..4_usize,
    ) {
        let keys = SealKeys::random().unwrap();
        let binding = SealBinding {
            purpose: PURPOSES[purpose],
            principal: &principal,
            request: &request,
        };
        let sealed = keys.seal(&binding, MINUTE, &content).unwrap();
        prop_assert!(sealed.starts_with(|first: char| first.is_ascii_alphabetic()));
        prop_assert!(
            sealed.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        );
        prop_assert_eq!(sealed.len(), ((content.len() + 47) * 4).div_ceil(3));
        prop_assert_eq!(keys.open(&binding, &sealed).unwrap(), content);
    }

    #[test]
    fn sec_26_a_sealed_value_is_useless_for_anything_else(
        content in prop::collection::vec(any::<u8>(), 0..60),
        principals in ("[a-c]{0,3}", "[a-c]{0,3}"),
        requests in ("[a-c]{0,3}", "[a-c]{0,3}"),
        purposes in (0..4_usize, 0..4_usize),
    ) {
        let keys = SealKeys::random().unwrap();
        let given = SealBinding {
            purpose: PURPOSES[purposes.0],
            principal: &principals.0,
            request: requests.0.as_bytes(),
        };
        let tried = SealBinding {
            purpose: PURPOSES[purposes.1],
            principal: &principals.1,
            request: requests.1.as_bytes(),
        };
        let is_same = purposes.0 == purposes.1
            && principals.0 == principals.1
            && requests.0 == requests.1;
        let sealed = keys.seal(&given, MINUTE, &content).unwrap();
        prop_assert_eq!(is_refused(&keys.open(&tried, &sealed)), !is_same);
        prop_assert!(is_refused(&SealKeys::random().unwrap().open(&given, &sealed)));
    }

    #[test]
    fn sec_26_a_sealed_value_that_was_changed_is_refused(
        content in prop::collection::vec(any::<u8>(), 0..60),
        place in any::<Index>(),
        bit in 0..8_u32,
        junk in prop::collection::vec(any::<u8>(), 1..20),
    ) {
        let (keys, binding) = (SealKeys::random().unwrap(), bound("a", b"b"));
        let sealed = keys.seal(&binding, MINUTE, &content).unwrap();
        // A bit of the bytes, whichever they are.
        let mut bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        bytes[place.index(sealed.len() * 3 / 4)] ^= 1 << bit;
        prop_assert!(is_refused(&keys.open(&binding, &URL_SAFE_NO_PAD.encode(&bytes))));
        // A bit of the text, where that is a text.
        let mut text = sealed.clone().into_bytes();
        text[place.index(sealed.len())] ^= 1 << bit;
        if let Ok(text) = String::from_utf8(text) {
            prop_assert!(is_refused(&keys.open(&binding, &text)));
        }
        // Cut off, and with more behind it.
        prop_assert!(is_refused(&keys.open(&binding, &sealed[..place.index(sealed.len())])));
        let longer = [&URL_SAFE_NO_PAD.decode(&sealed).unwrap()[..], &junk].concat();
        prop_assert!(is_refused(&keys.open(&binding, &URL_SAFE_NO_PAD.encode(longer))));
        for text in [format!("{sealed}="), format!(" {sealed}"), format!("{sealed}\n")] {
            prop_assert!(is_refused(&keys.open(&binding, &text)));
        }
    }

    #[test]
    fn no_text_of_anybody_opens(text in ".{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let keys = SealKeys::random().unwrap();
        let marked = [&[VERSION, keys.keys[0].mark], &bytes[..]].concat();
        for text in [text, URL_SAFE_NO_PAD.encode(bytes), URL_SAFE_NO_PAD.encode(marked)] {
            prop_assert!(is_refused(&keys.open(&bound("a", b""), &text)));
        }
    }

    #[test]
    fn sec_26_a_sealed_value_ends_with_its_time(
        begin in 0..4_000_000_000_000_u64,
        lasts in 0..100_000_u64,
        after in 0..200_000_u64,
    ) {
        let now = Arc::new(AtomicU64::new(begin));
        let (keys, binding) = (clocked(&now), bound("a", b""));
        let sealed = keys.seal(&binding, Duration::from_millis(lasts), b"content").unwrap();
        now.store(begin + after, Ordering::Relaxed);
        match keys.open(&binding, &sealed) {
            // Its end is kept in whole seconds.
            Ok(content) => prop_assert!(content == b"content" && after < lasts + 1_000),
            Err(SealError::Expired) => prop_assert!(after >= lasts),
            Err(other) => prop_assert!(false, "{other}"),
        }
        // That it is over is told to nobody else.
        prop_assert!(is_refused(&keys.open(&bound("b", b""), &sealed)));
    }
}

#[test]
fn what_lasts_forever_does() {
    let now = Arc::new(AtomicU64::new(u64::MAX / 1_000_000));
    let (keys, binding) = (clocked(&now), bound("a", b""));
    let sealed = keys.seal(&binding, Duration::MAX, b"").unwrap();
    assert_eq!(keys.open(&binding, &sealed).unwrap(), b"");
}

#[test]
fn sec_26_two_values_of_one_content_have_nothing_in_common() {
    let (keys, binding) = (SealKeys::random().unwrap(), bound("alice", b"request"));
    let one = keys
        .seal(&binding, MINUTE, b"the server's own state")
        .unwrap();
    let other = keys
        .seal(&binding, MINUTE, b"the server's own state")
        .unwrap();
    assert_ne!(one, other);
    for sealed in [one, other] {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).unwrap();
        for told in [&b"alice"[..], b"request", b"server"] {
            assert!(!bytes.windows(told.len()).any(|window| window == told));
        }
    }
    let shown = format!("{keys:?}");
    assert_eq!(shown, "SealKeys { keys: 1, .. }");
}

#[test]
fn the_largest_content_is_sealed_and_a_larger_one_is_not() {
    let (keys, binding) = (SealKeys::random().unwrap(), bound("a", b""));
    let largest = vec![7; MAX_SEALED];
    let sealed = keys.seal(&binding, MINUTE, &largest).unwrap();
    assert_eq!(keys.open(&binding, &sealed).unwrap(), largest);
    let larger = vec![7; MAX_SEALED + 1];
    let refused = keys.seal(&binding, MINUTE, &larger);
    assert!(matches!(refused, Err(SealError::TooLarge { size }) if size == MAX_SEALED + 1));
    assert!(is_refused(
        &keys.open(&binding, &"A".repeat(sealed.len() * 1000))
    ));
}

#[test]
fn instances_that_begin_at_once_share_one_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state").join("seal-keys");
    let start = Barrier::new(8);
    let sealed: Vec<String> = thread::scope(|scope| {
        let starters: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    let keys = SealKeys::load_or_create(&path).unwrap();
                    keys.seal(&bound("a", b""), MINUTE, b"shared").unwrap()
                })
            })
            .collect();
        starters
            .into_iter()
            .map(|starter| starter.join().unwrap())
            .collect()
    });
    let keys = SealKeys::load_or_create(&path).unwrap();
    for sealed in sealed {
        assert_eq!(keys.open(&bound("a", b""), &sealed).unwrap(), b"shared");
    }
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn an_older_key_opens_until_it_is_taken_away() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seal-keys");
    let binding = bound("a", b"");
    let old = SealKeys::load_or_create(&path).unwrap();
    let sealed = old.seal(&binding, MINUTE, b"of the old key").unwrap();

    let (old_line, new_line) = (fs::read_to_string(&path).unwrap(), "7".repeat(64));
    fs::write(&path, format!("{new_line}\n\n{old_line}")).unwrap();
    let both = SealKeys::load_or_create(&path).unwrap();
    assert_eq!(both.open(&binding, &sealed).unwrap(), b"of the old key");
    let anew = both.seal(&binding, MINUTE, b"of the new key").unwrap();
    assert!(is_refused(&old.open(&binding, &anew)));

    fs::write(&path, new_line).unwrap();
    let new = SealKeys::load_or_create(&path).unwrap();
    assert_eq!(new.open(&binding, &anew).unwrap(), b"of the new key");
    assert!(is_refused(&new.open(&binding, &sealed)));
}

fn fault_of(path: &Path) -> String {
    match SealKeys::load_or_create(path) {
        Err(SealError::KeyFile { source, .. }) => source.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn sec_26_a_file_of_keys_that_cannot_be_trusted_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seal-keys");
    let good = "0f".repeat(32);
    let write = |text: &str, mode: u32| {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    write(&good, 0o640);
    assert!(fault_of(&path).starts_with("others may read it"));
    write(&good, 0o620);
    assert_eq!(fault_of(&path), "others may write the file");
    write("\n\n", 0o600);
    assert_eq!(fault_of(&path), "it has no key");
    write(&format!("{good}\n{good}0"), 0o600);
    let shown = fault_of(&path);
    assert!(shown.starts_with("line 2 should be"), "{shown}");
    assert!(!shown.contains("0f0f"), "{shown}");
    write(&format!("{good}\n").repeat(17), 0o600);
    assert!(fault_of(&path).starts_with("line 17 should be"));
    write(&good, 0o600);
    assert!(SealKeys::load_or_create(&path).is_ok());
    // A link leads to a file that somebody else chose.
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(!fault_of(&link).is_empty());
}
