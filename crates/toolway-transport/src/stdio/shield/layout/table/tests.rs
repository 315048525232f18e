//! What is read from a mount table, and what is made of it.

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
        aliases(&root.join("real/config"), &mounts).whole,
        [root.join("link/config")]
    );
}

#[test]
fn sec_07_a_mount_of_a_part_is_found_and_a_part_that_another_mount_covers_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    for name in ["config/plugins", "covered"] {
        std::fs::create_dir_all(root.join(name)).unwrap();
    }
    std::fs::write(root.join("config/pins.json"), "{}").unwrap();
    std::os::unix::fs::symlink(root.join("config/plugins"), root.join("folder")).unwrap();
    std::os::unix::fs::symlink(root.join("config/pins.json"), root.join("file")).unwrap();
    let mount = |from: &str, point: &str| Mount {
        device: b"1:1".to_vec(),
        root: from.into(),
        point: root.join(point),
    };
    let mounts = [
        mount("/top", ""),
        mount("/top/config/plugins", "folder"),
        mount("/top/config/pins.json", "file"),
        mount("/top/config/plugins", "covered"),
        mount("/top/configuration", "covered"),
    ];
    assert_eq!(
        aliases(&root.join("config"), &mounts).parts,
        [root.join("folder"), root.join("file")]
    );
}
