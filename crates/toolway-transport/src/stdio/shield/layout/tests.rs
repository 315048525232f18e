//! What is looked at, made and left alone before a shield is raised; raising it is tested from
//! outside.

use super::*;

#[test]
fn sec_42_an_absent_directory_is_made_for_one_person_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/toolway");
    let entry = |protection| ProtectedPath {
        path: path.clone(),
        protection,
    };
    let (layout, _) = MountLayout::of(&[entry(Protection::Existing)], AbsentDirectory::Make);
    assert!(layout.read_only.is_empty() && !path.exists());
    let (layout, _) = MountLayout::of(&[entry(Protection::Private)], AbsentDirectory::StandIn);
    assert!(!layout.read_only.is_empty() && !path.exists());
    let (layout, gaps) = MountLayout::of(&[entry(Protection::Private)], AbsentDirectory::Make);
    assert!(gaps.is_empty() && !layout.read_only.is_empty());
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o700);
    // A process that may write the directory above could replace it.
    let above = directory.path().canonicalize().unwrap().join("a");
    assert!(layout.held.contains(&c_path(above).unwrap()));
}

#[test]
fn a_link_in_a_repository_protects_nothing_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join(".toolway");
    std::os::unix::fs::symlink("/tmp", &link).unwrap();
    let entry = ProtectedPath {
        path: link,
        protection: Protection::Existing,
    };
    let (layout, gaps) = MountLayout::of(&[entry], AbsentDirectory::Make);
    assert!(layout.read_only.is_empty() && layout.held.is_empty() && gaps.is_empty());
}

#[test]
fn what_cannot_be_protected_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let entry = ProtectedPath {
        path: file.path().to_owned(),
        protection: Protection::Private,
    };
    let (_, gaps) = MountLayout::of(&[entry], AbsentDirectory::Make);
    assert!(gaps[0].to_string().contains("cannot protect"), "{gaps:?}");
}

#[test]
fn a_hidden_directory_shows_what_is_merely_read_only() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let entry = |name: &str, protection| ProtectedPath {
        path: root.join(name),
        protection,
    };
    let entries = [
        entry("state", Protection::Hidden),
        entry("state/results", Protection::Private),
        entry("state/results/old", Protection::Private),
        entry("state/audit", Protection::Hidden),
        entry("state/deep/below/config", Protection::Private),
        entry("state/deep/below/config/vault", Protection::Hidden),
        entry("state/deep/below/config/vault/shown", Protection::Private),
    ];
    let (layout, gaps) = MountLayout::of(&entries, AbsentDirectory::Make);
    assert!(gaps.is_empty(), "{gaps:?}");
    let hidden = |name: &str, seen: &[&str]| {
        HiddenDirectory::new(&root.join(name), seen.iter().map(Path::new)).unwrap()
    };
    assert_eq!(
        layout.hidden,
        [
            hidden("state", &["deep/below/config", "results"]),
            hidden("state/deep/below/config/vault", &["shown"]),
        ]
    );
    for made in entries {
        let mode = made.path.metadata().unwrap().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", made.path.display());
    }
}

#[test]
fn sec_54_every_link_on_the_way_that_could_be_replaced_is_held() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("data/state")).unwrap();
    std::fs::create_dir_all(root.join("home")).unwrap();
    std::os::unix::fs::symlink("../data", root.join("home/state")).unwrap();
    let entry = ProtectedPath {
        path: root.join("home/state/state"),
        protection: Protection::Links,
    };
    let (layout, _) = MountLayout::of(&[entry], AbsentDirectory::Make);
    let held = |name: &str| layout.held.contains(&c_path(root.join(name)).unwrap());
    assert!(held("home/state") && held("home"), "{:?}", layout.held);
    assert!(layout.read_only.is_empty() && layout.hidden.is_empty());
}

#[test]
fn sec_54_where_a_link_leads_is_made_before_a_server_could_make_it() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    std::os::unix::fs::symlink("data/state", root.join("link")).unwrap();
    let entry = ProtectedPath {
        path: root.join("link/toolway"),
        protection: Protection::Hidden,
    };
    let (layout, gaps) = MountLayout::of(&[entry], AbsentDirectory::Make);
    assert!(gaps.is_empty(), "{gaps:?}");
    let made = root.join("data/state/toolway");
    assert_eq!(made.metadata().unwrap().mode() & 0o777, 0o700);
    assert_eq!(layout.hidden, [HiddenDirectory::new(&made, []).unwrap()]);
}

#[test]
fn sec_07_what_is_believed_is_protected_where_links_lead_and_nowhere_else() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, root.join(name)).unwrap();
    };
    for folder in ["home/plugins/plain", "state", "far/plugin"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    for file in ["far/settings", "home/plain", "state/file"] {
        std::fs::write(root.join(file), "").unwrap();
    }
    link("../step", "home/settings");
    link("far/settings", "step");
    link("../../far/plugin", "home/plugins/one");
    link("../state/file", "home/hidden");
    link("../far/absent", "home/nowhere");
    link("/", "home/root");
    let entry = |name: &str, protection| ProtectedPath {
        path: root.join(name),
        protection,
    };
    let mut entries = vec![
        entry("home", Protection::Private),
        entry("state", Protection::Hidden),
    ];
    for name in ["settings", "plugins", "plain", "hidden", "nowhere", "none"] {
        entries.push(entry(&format!("home/{name}"), Protection::Believed));
    }
    for absent in [AbsentDirectory::Make, AbsentDirectory::StandIn] {
        let (layout, gaps) = MountLayout::of(&entries, absent);
        let led_to = [root.join("far/settings"), root.join("far/plugin")];
        assert_eq!(layout.led_to, led_to);
        let path = |name: &str| c_path(root.join(name)).unwrap();
        let read_only = ["far/plugin", "far/settings", "home"].map(path);
        assert_eq!(layout.read_only, read_only);
        assert!(layout.held.contains(&path("step")), "{:?}", layout.held);
        assert!(layout.held.contains(&path("far")), "{:?}", layout.held);
        let gap = ShieldError::Directory {
            path: root.join("home/nowhere"),
            errno: Errno::NOENT,
        };
        assert_eq!(gaps, [gap]);
    }
    let (_, gaps) = MountLayout::of(
        &[entry("home/root", Protection::Believed)],
        AbsentDirectory::Make,
    );
    assert_eq!(gaps.len(), 1, "{gaps:?}");
}
