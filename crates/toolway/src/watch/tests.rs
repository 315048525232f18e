//! Real files, changed the way people and editors change them.

use std::fs;
use std::path::Path;

use super::*;

/// Far longer than any look takes, and shorter than the pause between two regular looks: what is
/// seen in this time was noticed.
const PATIENCE: Duration = Duration::from_secs(8);

struct Place {
    _directory: tempfile::TempDir,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("config")).unwrap();
        Self {
            _directory: directory,
            root,
        }
    }

    fn file(&self) -> PathBuf {
        self.root.join("config/settings.json")
    }

    fn watched(&self) -> Watched {
        let paths = vec![self.file(), self.root.join("absent/deep/.mcp.json")];
        Watched {
            paths: Arc::new(move || paths.clone()),
            reconnects: Some(self.root.join("state/reconnect")),
        }
    }

    fn watch(&self) -> ConfigWatch {
        ConfigWatch::start(self.watched())
    }
}

async fn next(watch: &mut ConfigWatch) -> ConfigChange {
    timeout(PATIENCE, watch.next()).await.unwrap().unwrap()
}

fn server(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

fn rename_over(path: &Path, text: &str) {
    let temporary = path.with_extension("tmp~");
    fs::write(&temporary, text).unwrap();
    fs::rename(&temporary, path).unwrap();
}

#[tokio::test]
async fn a_file_is_seen_appearing_changing_in_every_way_and_going() {
    let place = Place::new();
    let file = place.file();
    let mut watch = place.watch();
    fs::write(&file, "{}").unwrap();
    assert_eq!(next(&mut watch).await, ConfigChange::Files);
    fs::write(&file, "{ }").unwrap();
    assert_eq!(next(&mut watch).await, ConfigChange::Files);
    rename_over(&file, "{  }");
    assert_eq!(next(&mut watch).await, ConfigChange::Files);
    // As some editors do: the old file steps aside, a new one takes its name.
    fs::rename(&file, file.with_extension("bak")).unwrap();
    fs::write(&file, "{   }").unwrap();
    assert_eq!(next(&mut watch).await, ConfigChange::Files);
    fs::remove_file(&file).unwrap();
    assert_eq!(next(&mut watch).await, ConfigChange::Files);
}

#[tokio::test]
async fn directories_may_come_and_go() {
    let place = Place::new();
    let mut watch = place.watch();
    let deep = place.root.join("absent/deep");
    for _ in 0..3 {
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join(".mcp.json"), "{}").unwrap();
        assert_eq!(next(&mut watch).await, ConfigChange::Files);
        fs::remove_dir_all(place.root.join("absent")).unwrap();
        assert_eq!(next(&mut watch).await, ConfigChange::Files);
    }
}

#[tokio::test]
async fn what_a_link_leads_to_is_seen_changing() {
    let place = Place::new();
    let real = place.root.join("dotfiles.json");
    fs::write(&real, "{}").unwrap();
    std::os::unix::fs::symlink(&real, place.file()).unwrap();
    let paths = vec![place.file(), real.clone()];
    let mut watch = ConfigWatch::start(Watched {
        paths: Arc::new(move || paths.clone()),
        reconnects: None,
    });
    fs::write(&real, "{ }").unwrap();
    assert_eq!(next(&mut watch).await, ConfigChange::Files);
}

#[test]
fn a_neighbour_is_no_change() {
    let place = Place::new();
    fs::write(place.file(), "{}").unwrap();
    let mut eyes = PathWatcher::open(place.watched(), &Arc::default());
    fs::write(place.root.join("config/other.json"), "{}").unwrap();
    fs::read(place.file()).unwrap();
    assert_eq!(eyes.look(), []);
    fs::write(place.file(), "{ }").unwrap();
    assert_eq!(eyes.look(), [ConfigChange::Files]);
    assert_eq!(eyes.look(), []);
}

#[tokio::test(start_paused = true)]
async fn without_notices_files_are_looked_at_now_and_then() {
    let place = Place::new();
    let mut eyes = PathWatcher::open(place.watched(), &Arc::default());
    eyes.go_blind();
    assert_eq!(eyes.patience(), Duration::from_secs(2));
    let (sender, mut changes) = mpsc::channel(1);
    let _task = tasks::spawn("looking", look_on(eyes, Arc::default(), sender));
    for text in ["{}", "{ }", "{  }"] {
        rename_over(&place.file(), text);
        assert_eq!(changes.recv().await, Some(ConfigChange::Files));
    }
}

#[tokio::test(start_paused = true)]
async fn rel_31_a_file_that_never_rests_is_told_of_about_once_a_second() {
    let dirty = Arc::new(Notify::new());
    let restless = Arc::clone(&dirty);
    let _task = tasks::spawn("restless", async move {
        loop {
            restless.notify_one();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let start = Instant::now();
    settle(&dirty).await;
    let waited = start.elapsed();
    assert!(waited >= LATEST && waited < LATEST + QUIET, "{waited:?}");
}

#[tokio::test]
async fn a_stamp_asks_for_one_server_and_only_a_new_one_counts() {
    let place = Place::new();
    let directory = place.root.join("state/reconnect");
    request_reconnect(&directory, &server("before")).unwrap();
    let mut watch = place.watch();
    let odd = server("../odd/ö");
    request_reconnect(&directory, &odd).unwrap();
    assert_eq!(next(&mut watch).await, ConfigChange::Reconnect(odd.clone()));
    request_reconnect(&directory, &server("before")).unwrap();
    assert_eq!(
        next(&mut watch).await,
        ConfigChange::Reconnect(server("before"))
    );
    request_reconnect(&directory, &odd).unwrap();
    assert_eq!(next(&mut watch).await, ConfigChange::Reconnect(odd));
}

#[test]
fn rel_34_stamps_that_were_left_behind_mean_nothing() {
    let place = Place::new();
    let directory = place.root.join("state/reconnect");
    request_reconnect(&directory, &server("one")).unwrap();
    // A process that was killed in the middle of writing.
    fs::write(directory.join(".0123456789abcdef"), "{\"server\":").unwrap();
    fs::write(directory.join("torn"), "{\"server\":").unwrap();
    let mut stamps = stamp::Stamps::read(directory.clone());
    assert_eq!(stamps.news(), []);
    request_reconnect(&directory, &server("torn")).unwrap();
    assert_eq!(stamps.news(), [server("torn")]);
    assert_eq!(stamps.news(), []);
}

#[tokio::test]
async fn dropping_a_watch_ends_it() {
    let place = Place::new();
    let held = Arc::new(place.file());
    let path = Arc::clone(&held);
    let watch = ConfigWatch::start(Watched {
        paths: Arc::new(move || vec![path.to_path_buf()]),
        reconnects: None,
    });
    drop(watch);
    let gone = async {
        while Arc::strong_count(&held) > 1 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, gone).await.unwrap();
}

#[test]
fn sec_30_what_is_planted_among_the_stamps_is_neither_followed_nor_waited_for() {
    let place = Place::new();
    let stamps = place.root.join("state/reconnect");
    let mut seen = stamp::Stamps::read(stamps.clone());
    request_reconnect(&stamps, &server("one")).unwrap();
    let stamp = fs::read_to_string(stamps.join("one")).unwrap();
    let elsewhere = place.root.join("elsewhere");
    fs::write(&elsewhere, stamp.replace("one", "two")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, stamps.join("two")).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let pipe = stamps.join("three");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert_eq!(seen.news(), [server("one")]);

    // A flood of them is not all read.
    for number in 0..2000 {
        let name = format!("name-{number}");
        fs::write(stamps.join(&name), stamp.replace("one", &name)).unwrap();
    }
    assert!(seen.news().len() <= 1024);
}
