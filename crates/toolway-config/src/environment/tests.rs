//! Where things lie, and who may move them.

use std::fs;

use tempfile::TempDir;
use toolway_testkit::marked::MARK;

use super::*;

fn environment(pairs: &[(&str, &str)], cwd: &Path) -> Environment {
    let vars = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Environment::new(vars.collect(), cwd.to_path_buf())
}

fn place() -> (TempDir, PathBuf, PathBuf) {
    let directory = TempDir::new().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let (home, repo) = (root.join("home"), root.join("home/repo"));
    fs::create_dir_all(repo.join("deep/er")).unwrap();
    (directory, home, repo)
}

#[test]
fn homes_follow_toolway_home_then_xdg_then_the_home_directory() {
    let (_guard, home, repo) = place();
    let text = home.to_str().unwrap();
    let own = environment(
        &[("HOME", text), ("TOOLWAY_HOME", &format!("{text}/tw"))],
        &repo,
    );
    assert_eq!(own.config_home(), home.join("tw"));
    assert_eq!(own.state_home(), home.join("tw/state"));
    let xdg = environment(
        &[("HOME", text), ("XDG_CONFIG_HOME", &format!("{text}/xdg"))],
        &repo,
    );
    assert_eq!(xdg.config_home(), home.join("xdg/toolway"));
    assert_eq!(xdg.state_home(), home.join(".local/state/toolway"));
    let plain = environment(&[("HOME", text)], &repo);
    assert_eq!(plain.config_home(), home.join(".config/toolway"));
    assert_eq!(plain.diagnoses(), []);
}

#[test]
fn the_nearest_marked_ancestor_below_home_is_the_project() {
    let (_guard, home, repo) = place();
    fs::create_dir(home.join(".git")).unwrap();
    let inside = environment(&[("HOME", home.to_str().unwrap())], &repo.join("deep/er"));
    assert_eq!(
        inside.project_root(),
        repo.join("deep/er"),
        "home itself is no project"
    );
    fs::create_dir(repo.join(".git")).unwrap();
    let inside = environment(&[("HOME", home.to_str().unwrap())], &repo.join("deep/er"));
    assert_eq!(inside.project_root(), repo);
}

#[test]
fn the_walk_ends_at_home_or_at_the_root() {
    let (_guard, home, repo) = place();
    let below = environment(&[("HOME", home.to_str().unwrap())], &repo.join("deep"));
    let walked: Vec<_> = below.project_directories().collect();
    assert_eq!(walked, [repo.join("deep").as_path(), &repo, &home]);
    let beside = environment(&[("HOME", "/nonexistent/home")], &repo);
    assert_eq!(beside.project_directories().last(), Some(Path::new("/")));
}

#[test]
fn sec_04_pointers_written_by_a_repository_do_not_move_the_project() {
    let (_guard, home, repo) = place();
    fs::create_dir_all(home.join("trusted/.git")).unwrap();
    fs::write(
        repo.join(".git"),
        format!("gitdir: {}/trusted/.git\n", home.display()),
    )
    .unwrap();
    let inside = environment(&[("HOME", home.to_str().unwrap())], &repo.join("deep"));
    assert_eq!(inside.project_root(), repo);
    fs::remove_file(repo.join(".git")).unwrap();
    fs::create_dir(repo.join(".git")).unwrap();
    fs::write(repo.join(".git/commondir"), "../../trusted/.git\n").unwrap();
    let inside = environment(&[("HOME", home.to_str().unwrap())], &repo);
    assert_eq!(inside.project_root(), repo);
    std::os::unix::fs::symlink(&repo, home.join("link")).unwrap();
    let linked = environment(&[("HOME", home.to_str().unwrap())], &home.join("link"));
    assert_eq!(
        linked.project_root(),
        repo,
        "a linked root is known by where it really lies"
    );
}

#[test]
fn sec_08_a_config_home_inside_the_workspace_is_ignored_with_a_warning() {
    let (_guard, home, repo) = place();
    fs::create_dir(repo.join(".git")).unwrap();
    fs::write(repo.join(".env"), "TOOLWAY_HOME=./evil\n").unwrap();
    std::os::unix::fs::symlink(repo.join("deep"), home.join("outside")).unwrap();
    let text = home.to_str().unwrap();
    let outside = format!("{text}/outside/er");
    let dotted = format!("{text}/other/../repo/new");
    for (variable, value) in [
        ("XDG_CONFIG_HOME", "."),
        ("TOOLWAY_HOME", "../.toolway"),
        ("TOOLWAY_HOME", outside.as_str()),
        ("TOOLWAY_HOME", dotted.as_str()),
        ("XDG_STATE_HOME", "state"),
    ] {
        let found = environment(&[("HOME", text), (variable, value)], &repo.join("deep"));
        assert_eq!(
            found.config_home(),
            home.join(".config/toolway"),
            "{variable}={value}"
        );
        assert_eq!(
            found.state_home(),
            home.join(".local/state/toolway"),
            "{variable}={value}"
        );
        assert_eq!(found.diagnoses().len(), 1, "{variable}={value}");
        assert!(
            found.diagnoses()[0]
                .message
                .starts_with(&format!("`{variable}` is ignored"))
        );
    }
    let at_home = environment(
        &[("HOME", text), ("TOOLWAY_HOME", &format!("{text}/tw"))],
        &home,
    );
    assert_eq!(
        at_home.config_home(),
        home.join("tw"),
        "home is everybody's own place"
    );
}

#[test]
fn sec_39_only_harmless_variables_are_inherited() {
    let (_guard, _home, repo) = place();
    let pairs = [
        ("HOME", "/h"),
        ("LC_ALL", "C"),
        ("TERM", "() { :; }; evil"),
        ("AWS_SECRET_ACCESS_KEY", MARK),
        ("LD_PRELOAD", "/evil.so"),
    ];
    let inherited = environment(&pairs, &repo).inherited();
    assert_eq!(
        inherited.into_keys().collect::<Vec<_>>(),
        ["HOME", "LC_ALL", "TOOLWAY_PROJECT_DIR"]
    );
}

#[test]
fn debug_output_shows_no_variable() {
    let (_guard, _home, repo) = place();
    let shown = format!("{:?}", environment(&[("TOKEN", MARK)], &repo));
    assert!(!shown.contains(MARK));
}

#[test]
fn paths_that_are_not_text_are_told_apart() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let key = |bytes: &'static [u8]| path_key(Path::new(OsStr::from_bytes(bytes)));
    assert_ne!(key(b"/x/\xff"), key(b"/x/\xfe"));
    assert_eq!(key(b"/x/y"), "/x/y");
}

#[test]
fn sec_08_a_repository_called_like_our_folder_is_still_a_repository() {
    let (_guard, home, _) = place();
    let repo = home.join("src/toolway");
    fs::create_dir_all(repo.join(".git")).unwrap();
    let above = home.join("src");
    let given = environment(
        &[
            ("HOME", home.to_str().unwrap()),
            ("XDG_CONFIG_HOME", above.to_str().unwrap()),
            ("XDG_STATE_HOME", above.to_str().unwrap()),
        ],
        &repo,
    );
    assert_eq!(given.config_home(), home.join(".config/toolway"));
    assert_eq!(given.state_home(), home.join(".local/state/toolway"));
    assert_eq!(given.diagnoses().len(), 2);
}

#[test]
fn sec_08_a_repository_cannot_shrink_itself_to_let_a_config_home_in() {
    let (_guard, home, repo) = place();
    fs::create_dir_all(repo.join(".git")).unwrap();
    fs::create_dir_all(repo.join("deep/.toolway")).unwrap();
    let settings = repo.join("settings");
    let given = environment(
        &[
            ("HOME", home.to_str().unwrap()),
            ("TOOLWAY_HOME", settings.to_str().unwrap()),
        ],
        &repo.join("deep"),
    );
    assert_eq!(given.project_root(), repo.join("deep"));
    assert_eq!(given.config_home(), home.join(".config/toolway"));
}
