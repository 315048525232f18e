//! What is looked at, made and left alone before a shield is raised; raising it is tested from outside.

use super::*;

const TABLE: &[u8] = b"\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:21 / /proc rw - proc proc rw
30 22 254:1 /@home /home rw - btrfs /dev/vdb rw
31 22 254:1 / /mnt/the\\040disk rw - btrfs /dev/vdb rw
";

#[test]
fn the_mount_table_is_read_with_its_escapes() {
    let mounts = mounts_of(TABLE);
    assert_eq!(mounts.len(), 4);
    assert_eq!(
        mounts[3],
        Mount {
            device: b"254:1".to_vec(),
            root: "/".into(),
            point: "/mnt/the disk".into(),
        }
    );
    assert_eq!(unescaped(b"a\\134b\\"), PathBuf::from("a\\b\\"));
}

#[test]
fn another_mount_of_the_same_directory_is_found_and_one_that_is_not_the_same_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    for name in ["real/config", "link", "other/config"] {
        std::fs::create_dir_all(root.join(name)).unwrap();
    }
    // What a second mount shows, as far as looking goes.
    std::os::unix::fs::symlink(root.join("real/config"), root.join("link/config")).unwrap();
    let mount = |from: &str, point: &str| Mount {
        device: b"1:1".to_vec(),
        root: from.into(),
        point: root.join(point),
    };
    let mounts = [
        mount("/top/real", "real"),
        mount("/top/real", "link"),
        mount("/top/real", "other"),
        mount("/elsewhere", "link"),
    ];
    assert_eq!(
        aliases(&root.join("real/config"), &mounts),
        [root.join("link/config")]
    );
}

#[test]
fn sec_42_an_absent_directory_is_made_for_one_person_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/toolway");
    let entry = |protection| Protected {
        path: path.clone(),
        protection,
    };
    let (layout, _) = Layout::of(&[entry(Protection::Existing)], Absent::Make);
    assert!(layout.read_only.is_empty() && !path.exists());
    let (layout, _) = Layout::of(&[entry(Protection::Private)], Absent::StandIn);
    assert!(!layout.read_only.is_empty() && !path.exists());
    let (layout, gaps) = Layout::of(&[entry(Protection::Private)], Absent::Make);
    assert!(gaps.is_empty() && !layout.read_only.is_empty());
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o700);
    // Whoever may write the directory above could put another in its place.
    let above = directory.path().canonicalize().unwrap().join("a");
    assert!(layout.held.contains(&c_path(above).unwrap()));
}

#[test]
fn a_link_in_a_repository_protects_nothing_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join(".toolway");
    std::os::unix::fs::symlink("/tmp", &link).unwrap();
    let entry = Protected {
        path: link,
        protection: Protection::Existing,
    };
    let (layout, gaps) = Layout::of(&[entry], Absent::Make);
    assert!(layout.read_only.is_empty() && layout.held.is_empty() && gaps.is_empty());
}

#[test]
fn what_cannot_be_protected_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let entry = Protected {
        path: file.path().to_owned(),
        protection: Protection::Private,
    };
    let (_, gaps) = Layout::of(&[entry], Absent::Make);
    assert!(gaps[0].to_string().contains("cannot protect"), "{gaps:?}");
}
