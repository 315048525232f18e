//! What a server behind the shield can reach from its working directory, with and without a
//! launcher.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toolway_transport::{OpenOptions, ProtectedPath, Protection, Shield, ShieldError, ShieldState};
use toolway_types::{ShieldMode, TransportSpec};

use crate::peer::{Peer, program, spec};
use crate::process::Way;

/// Says where it stands, and how an attempt to write each of its arguments went.
const WRITER: &str = r#"
import os, sys, json, errno
def attempt(path):
    try:
        open(path, "w").close()
        return "done"
    except OSError as error: return errno.errorcode[error.errno]
print(json.dumps({"jsonrpc": "2.0", "method": "up", "params": {
    "at": os.getcwd(), "answers": [attempt(path) for path in sys.argv[1:]],
}}), flush=True)
sys.stdin.read()
"#;

#[expect(
    clippy::print_stderr,
    reason = "whoever reads the log must see what was not tested"
)]
fn skipped(reason: &str) {
    eprintln!("skipped: {reason}");
}

fn before(protected: &Path, protection: Protection) -> Option<Shield> {
    let shield = Shield::new(vec![ProtectedPath {
        path: protected.to_owned(),
        protection,
    }]);
    if let ShieldState::Unavailable(why) = shield.state(None) {
        skipped(&why.to_string());
        return None;
    }
    Some(shield)
}

/// What a server that starts in `directory` says about these paths.
async fn attempts(way: Way, shield: &Shield, directory: Option<PathBuf>, paths: &[&str]) -> Value {
    let mut spec = program("python3", &["-I", "-S", "-c", WRITER]);
    spec.args.extend(paths.iter().map(|&path| path.to_owned()));
    spec.cwd = directory.map_or_else(Default::default, Into::into);
    spec.shield = ShieldMode::Required;
    let options = OpenOptions {
        shield: shield.clone(),
        ..way.options()
    };
    let mut peer = Peer::open_with(TransportSpec::Stdio(spec), &options).await;
    let up = peer.message().await["params"].clone();
    peer.end().await;
    up
}

#[tokio::test]
async fn sec_07_the_working_directory_of_a_server_leads_around_no_shield() {
    let project = tempfile::tempdir().expect("a directory");
    let project = project.path().canonicalize().expect("it is there");
    let folder = project.join(".toolway");
    std::fs::create_dir(&folder).expect("a directory");
    let link = project.join("link");
    std::os::unix::fs::symlink(&project, &link).expect("a link");
    let Some(shield) = before(&folder, Protection::Existing) else {
        return;
    };
    let paths = [
        ".toolway/settings.local.json",
        "link/.toolway/settings.local.json",
        "../../../../../../proc/self/cwd/.toolway/settings.local.json",
        "own-work",
    ];
    for way in [Way::Direct, Way::Kept] {
        for directory in [&project, &link] {
            let up = attempts(way, &shield, Some(directory.clone()), &paths).await;
            assert_eq!(up["at"], project.to_str().expect("text"), "{way:?}");
            let expected = serde_json::json!(["EROFS", "EROFS", "EROFS", "done"]);
            assert_eq!(up["answers"], expected, "{way:?}");
        }
    }
    assert!(!folder.join("settings.local.json").exists());
}

#[tokio::test]
async fn sec_07_nor_does_the_one_it_shares_with_the_host() {
    let config = tempfile::tempdir().expect("a directory");
    let config = config.path().canonicalize().expect("it is there");
    let Some(shield) = before(&config, Protection::Private) else {
        return;
    };
    let here = std::env::current_dir().expect("it is there");
    let upwards = "../".repeat(here.components().count());
    let roundabout = format!("{upwards}{}/settings.json", config.display());
    for way in [Way::Direct, Way::Kept] {
        let up = attempts(way, &shield, Some(here.clone()), &[&roundabout]).await;
        assert_eq!(up["at"], here.to_str().expect("text"), "{way:?}");
        assert_eq!(up["answers"], serde_json::json!(["EROFS"]), "{way:?}");
    }
    assert!(!config.join("settings.json").exists());
}

#[tokio::test]
async fn sec_15_a_closed_host_without_a_launcher_lays_no_copy_of_itself_open() {
    if rustix::process::geteuid().is_root() {
        skipped("root's shields need nobody to be open");
        return;
    }
    let config = tempfile::tempdir().expect("a directory");
    let Some(known) = before(config.path(), Protection::Private) else {
        return;
    };
    toolway_transport::forbid_inspection().expect("it is allowed");
    let fresh = Shield::new(vec![ProtectedPath {
        path: config.path().to_owned(),
        protection: Protection::Private,
    }]);
    let state = fresh.state(None);
    assert_eq!(state, ShieldState::Unavailable(ShieldError::Closed));
    // Nor when it was found out before that shields work, and the launcher went away since.
    let options = OpenOptions {
        shield: known,
        ..Way::Direct.options()
    };
    let mut server = program("true", &[]);
    server.shield = ShieldMode::Required;
    let opened = toolway_transport::open(&spec(TransportSpec::Stdio(server)), &options).await;
    let refused = opened.err().expect("it is refused");
    assert!(refused.to_string().contains("closed"), "{refused}");
}
