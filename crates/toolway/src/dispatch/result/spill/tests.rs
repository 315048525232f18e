//! Files of results: where they go, what they are called, and the traps that do not catch us.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::json;
use serde_json::value::to_raw_value;
use toolway_wire::view;

use super::*;
use crate::dispatch::result::media::{self, MediaKind};

fn png(bytes: &[u8]) -> Media {
    Media {
        block: 0,
        kind: MediaKind::of(Some("image/png")),
        bytes: bytes.to_vec(),
    }
}

fn private() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state/results");
    (directory, path)
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path)
        .unwrap()
        .permissions()
        .mode()
        & 0o7777
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_directory_and_its_files_are_for_this_user_alone() {
    let (_home, path) = private();
    let file = ResultDirectory::open(&path)
        .unwrap()
        .save(&png(b"picture"))
        .unwrap();
    assert_eq!((mode(&path), mode(&file.path)), (0o700, 0o600));
    assert_eq!(file.bytes, 7);
    assert_eq!(std::fs::read(&file.path).unwrap(), b"picture");
}

#[test]
fn the_same_bytes_twice_are_one_file() {
    let (_home, path) = private();
    let store = ResultDirectory::open(&path).unwrap();
    let first = store.save(&png(b"picture")).unwrap();
    assert_eq!(store.save(&png(b"picture")).unwrap(), first);
    assert_eq!(names(&path).len(), 1);
    store.save(&png(b"another")).unwrap();
    assert_eq!(names(&path).len(), 2);
}

#[test]
fn sec_38_no_word_of_a_server_becomes_part_of_a_path() {
    let long = "n".repeat(4096);
    let hostile = [
        "../../etc/passwd",
        "/etc/passwd",
        "a\0b",
        "CON",
        long.as_str(),
        "..%2f..%2fetc",
        "\u{202e}gnp.exe",
        "png/../../x",
        "image/png\0.sh",
        "image/../../x",
        ".",
        "",
    ];
    let (home, path) = private();
    for text in hostile {
        let result = to_raw_value(&json!({
            "content": [
                {"type": "image", "data": "aGVsbG8=", "mimeType": text},
                {"type": "audio", "data": "aGVsbG8=", "mimeType": text},
                {"type": "resource", "resource":
                    {"uri": text, "name": text, "title": text, "mimeType": text, "blob": "aGVsbG8="}},
                {"type": "resource", "resource":
                    {"uri": format!("file:///{text}"), "mimeType": "image/png", "blob": "aGVsbG8="}},
            ],
        }));
        let content = view::tool_result(&result.unwrap()).unwrap().content;
        let decoded = media::decode(&content);
        let (saved, failures) = save_all(&path, &decoded.media);
        assert_eq!(
            (saved.len(), decoded.faults.len(), failures.len()),
            (4, 0, 0),
            "{text:?}"
        );
        for file in saved {
            assert_eq!(file.path.parent(), Some(path.as_path()));
            assert_eq!(std::fs::read(&file.path).unwrap(), b"hello");
        }
    }
    let digest = hex::encode(Sha256::digest(b"hello"));
    assert_eq!(
        names(&path),
        [format!("{digest}.bin"), format!("{digest}.png")]
    );
    assert_eq!(names(home.path()), ["state"]);
}

#[test]
fn sec_38_the_extension_comes_from_the_fixed_list() {
    for (mime_type, extension) in [
        (Some("image/png"), "png"),
        (Some("IMAGE/JPEG; charset=x"), "jpg"),
        (Some("image/jpg"), "jpg"),
        (Some("audio/mp3"), "mp3"),
        (Some("image/svg+xml"), "bin"),
        (Some("text/html"), "bin"),
        (Some("application/x-sh"), "bin"),
        (Some("image/png/../sh"), "bin"),
        (None, "bin"),
    ] {
        assert_eq!(
            MediaKind::of(mime_type).extension,
            extension,
            "{mime_type:?}"
        );
    }
}

#[test]
fn sec_37_a_symbolic_link_in_place_of_the_directory_is_refused() {
    let (home, path) = private();
    let elsewhere = home.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::create_dir(home.path().join("state")).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert!(matches!(
        ResultDirectory::open(&path),
        Err(SpillError::Directory { .. })
    ));
    assert_eq!(names(&elsewhere), [""; 0]);
}

#[test]
fn sec_37_a_directory_that_others_can_enter_is_refused() {
    let (_home, path) = private();
    std::fs::create_dir_all(&path).unwrap();
    for open in [0o755, 0o770, 0o701, 0o1777] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(open)).unwrap();
        let error = ResultDirectory::open(&path).unwrap_err();
        assert!(
            matches!(error, SpillError::NotPrivate { mode, .. } if mode == open),
            "{error}"
        );
    }
}

#[test]
fn sec_37_a_directory_of_another_user_is_refused() {
    // Only the superuser can give a directory away, and then everything is theirs to test.
    let (_home, path) = private();
    std::fs::create_dir_all(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    let other = rustix::process::geteuid().as_raw() + 12_345;
    let refused = match std::os::unix::fs::chown(&path, Some(other), None) {
        Ok(()) => ResultDirectory::open(&path),
        // Without the right to do so, the root directory is another user's.
        Err(_) => ResultDirectory::open(Path::new("/")),
    };
    assert!(
        matches!(refused, Err(SpillError::NotOurs { .. })),
        "{refused:?}"
    );
}

/// Puts a trap in a place, which may lead to a victim.
type Plant = fn(&Path, &Path) -> io::Result<()>;

#[test]
fn sec_37_nothing_planted_under_the_name_is_followed_or_overwritten() {
    let bytes = b"picture";
    let digest = hex::encode(Sha256::digest(bytes));
    let planted: [(&str, Plant); 6] = [
        ("symbolic link", |place, victim| symlink(victim, place)),
        ("dangling link", |place, victim| {
            symlink(victim.with_extension("new"), place)
        }),
        ("hard link", |place, victim| {
            std::fs::hard_link(victim, place)
        }),
        ("directory", |place, _| std::fs::create_dir(place)),
        ("pipe", |place, _| {
            let (kind, mode) = (rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR);
            Ok(rustix::fs::mknodat(rustix::fs::CWD, place, kind, mode, 0)?)
        }),
        ("torn file", |place, _| std::fs::write(place, b"pict")),
    ];
    for (what, plant) in planted {
        let (home, path) = private();
        let store = ResultDirectory::open(&path).unwrap();
        let victim = home.path().join("victim");
        // The same bytes: a link to them must not pass for our file either.
        std::fs::write(&victim, bytes).unwrap();
        plant(&path.join(format!("{digest}.png")), &victim).unwrap();
        let file = store.save(&png(bytes)).unwrap();
        assert_eq!(file.path, path.join(format!("{digest}-2.png")), "{what}");
        assert_eq!(std::fs::read(&file.path).unwrap(), bytes, "{what}");
        assert_eq!(std::fs::read(&victim).unwrap(), bytes, "{what}");
        assert!(!victim.with_extension("new").exists(), "{what}");
        assert_eq!(store.save(&png(bytes)).unwrap(), file, "{what}");
    }
}

#[test]
fn names_that_are_all_taken_are_an_error_and_no_loop() {
    let (_home, path) = private();
    let store = ResultDirectory::open(&path).unwrap();
    let digest = hex::encode(Sha256::digest(b"picture"));
    std::fs::create_dir(path.join(format!("{digest}.png"))).unwrap();
    for attempt in 2..=MAX_NAMES {
        std::fs::create_dir(path.join(format!("{digest}-{attempt}.png"))).unwrap();
    }
    assert!(matches!(
        store.save(&png(b"picture")),
        Err(SpillError::Occupied { .. })
    ));
}

const SMALL: Quota = Quota {
    bytes: 100,
    files: 5,
    age: std::time::Duration::from_mins(1),
};

fn aged(path: &Path, seconds: u64) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let then = SystemTime::now() - std::time::Duration::from_secs(seconds);
    file.set_modified(then).unwrap();
}

#[test]
fn sec_37_the_oldest_files_make_room_and_no_others() {
    let (_home, path) = private();
    let store = ResultDirectory::open(&path).unwrap().with_quota(SMALL);
    let save = |bytes: &[u8]| store.save_beside(&png(bytes), &[]).unwrap().path;
    let [old, middle, young] = [1, 2, 3].map(|byte| save(&[byte; 30]));
    for (file, age) in [(&old, 50), (&middle, 40), (&young, 30)] {
        aged(file, age);
    }
    // Exactly full.
    let fourth = save(&[4; 10]);
    assert_eq!(names(&path).len(), 4);
    // One byte more.
    save(&[5; 1]);
    assert_eq!(
        [&old, &middle, &young, &fourth].map(|file| file.exists()),
        [false, true, true, true]
    );
}

#[test]
fn sec_37_a_file_that_is_too_old_goes_when_another_is_saved() {
    let (_home, path) = private();
    let store = ResultDirectory::open(&path).unwrap().with_quota(SMALL);
    let save = |bytes: &[u8]| store.save_beside(&png(bytes), &[]).unwrap().path;
    let (old, young, again) = (save(b"old"), save(b"young"), save(b"again"));
    aged(&old, 61);
    aged(&young, 59);
    aged(&again, 58);
    // Handed out once more, it counts as new.
    save(b"again");
    assert!(!old.exists() && young.exists());
    aged(&young, 61);
    save(b"last");
    assert!(!young.exists() && again.exists());
}

#[test]
fn sec_37_files_are_counted_too() {
    let (_home, path) = private();
    let store = ResultDirectory::open(&path).unwrap().with_quota(SMALL);
    for byte in 0..20_u8 {
        store.save_beside(&png(&[byte]), &[]).unwrap();
    }
    assert_eq!(names(&path).len(), SMALL.files);
}

#[test]
fn sec_37_what_is_not_ours_is_never_collected() {
    let (home, path) = private();
    let store = ResultDirectory::open(&path).unwrap().with_quota(SMALL);
    let victim = home.path().join("victim");
    std::fs::write(&victim, [0; 200]).unwrap();
    aged(&victim, 1_000);
    let digest = "0123456789abcdef".repeat(4);
    symlink(&victim, path.join(format!("{digest}.png"))).unwrap();
    std::fs::create_dir(path.join(format!("{digest}-2.png"))).unwrap();
    let (kind, mode) = (rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR);
    let pipe = path.join(format!("{digest}-3.png"));
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
    // Another name, another extension: not a file of ours.
    for name in [
        "notes.txt".to_owned(),
        format!("{digest}.sh"),
        digest.to_uppercase() + ".png",
    ] {
        std::fs::write(path.join(&name), [0; 200]).unwrap();
        aged(&path.join(&name), 1_000);
    }
    // A hard link under a name of ours goes; what it leads to stays.
    std::fs::hard_link(&victim, path.join(format!("{digest}-4.png"))).unwrap();
    let before = names(&path).len();
    let saved = store.save_beside(&png(b"picture"), &[]).unwrap();
    assert!(saved.path.exists());
    assert_eq!(
        names(&path).len(),
        before,
        "one came, one went: {:?}",
        names(&path)
    );
    assert_eq!(std::fs::read(&victim).unwrap(), [0; 200]);
    assert!(std::fs::symlink_metadata(path.join(format!("{digest}.png"))).is_ok());
}

#[test]
fn sec_37_the_files_of_one_result_do_not_push_each_other_out() {
    let (_home, path) = private();
    let store = ResultDirectory::open(&path).unwrap().with_quota(SMALL);
    let first = store.save_beside(&png(&[1; 60]), &[]).unwrap();
    aged(&first.path, 30);
    let error = store
        .save_beside(&png(&[2; 60]), std::slice::from_ref(&first))
        .unwrap_err();
    assert!(
        matches!(
            error,
            SpillError::OverQuota {
                needed: 60,
                limit: 100,
                ..
            }
        ),
        "{error}"
    );
    assert!(first.path.exists());
    store.save_beside(&png(&[2; 60]), &[]).unwrap();
    assert!(!first.path.exists());
    let error = store.save_beside(&png(&[3; 101]), &[]).unwrap_err();
    assert!(
        matches!(error, SpillError::OverQuota { needed: 101, .. }),
        "{error}"
    );
}

#[test]
fn the_quota_is_what_is_documented() {
    let quota = Quota::default();
    assert_eq!(quota.bytes, 1 << 30);
    assert_eq!(quota.age.as_secs(), 7 * 24 * 60 * 60);
}
