//! The journal as a whole: what stands in the files, and what never does.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use toolway_testkit::ScannedFolder;
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;

use toolway_types::ServerShare;

use super::file::server_of;
use super::*;

const CANARY: &str = marked!("", "\"9e");

fn server(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

struct Place {
    _home: ScannedFolder,
    directory: PathBuf,
}

impl Place {
    fn new() -> Self {
        let home = ScannedFolder::new();
        let directory = home.path().join("state/logs");
        Self {
            _home: home,
            directory,
        }
    }

    fn journal(&self) -> Journal {
        Journal::in_directory(self.directory.clone())
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.directory.join(name)).unwrap()
    }

    fn lines(&self, name: &str) -> Vec<JournalLine> {
        let (lines, _) = read_last(&self.directory, &(&server(name)).into(), usize::MAX, |_| {
            true
        })
        .unwrap()
        .unwrap();
        lines
    }
}

#[tokio::test]
async fn every_kind_of_line_is_kept_in_order_in_a_private_file() {
    let place = Place::new();
    let journal = place.journal();
    let writer = journal.open(&server("one"), Vec::new());
    writer.note(1, "starting");
    writer.stderr(&Untrusted::new("a \u{1b}[31mred\u{1b}[0m\tword"));
    writer.sent(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    writer.received(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    journal.flush().await;
    let shown: Vec<(JournalLineKind, String)> = place
        .lines("one")
        .into_iter()
        .map(|line| (line.kind, line.text))
        .collect();
    let expected = [
        (JournalLineKind::Note, "attempt 1: starting"),
        (JournalLineKind::Stderr, "a red word"),
        (
            JournalLineKind::Sent,
            r#"ping #1 40 bytes {"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        ),
        (
            JournalLineKind::Received,
            r#"result #1 36 bytes {"jsonrpc":"2.0","id":1,"result":{}}"#,
        ),
    ];
    assert_eq!(shown, expected.map(|(kind, text)| (kind, text.to_owned())));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.directory), 0o700);
    assert_eq!(mode(&place.directory.join("one.log")), 0o600);
}

#[tokio::test]
async fn a_journal_without_messages_has_the_rest() {
    let place = Place::new();
    let journal = place.journal().without_messages();
    let writer = journal.open(&server("one"), Vec::new());
    writer.sent(b"{}");
    writer.received(b"{}");
    writer.note(1, "here");
    journal.flush().await;
    assert_eq!(place.lines("one").len(), 1);
}

#[tokio::test]
async fn sec_47_no_secret_reaches_the_file() {
    let place = Place::new();
    let journal = place.journal();
    let writer = journal.open(&server("one"), vec![Secret::new(CANARY)]);
    let message = serde_json::json!({
        "jsonrpc": "2.0", "id": CANARY, "method": format!("tools/{CANARY}"),
        "params": { "arguments": {
            "password": marked!("typed-"), "text": format!("x{CANARY}x"),
            "nested": serde_json::json!({ "api_key": marked!("typed-"), "a": CANARY }).to_string(),
        } },
    })
    .to_string();
    writer.note(1, &format!("cannot reach https://host/?k={CANARY}"));
    writer.stderr(&Untrusted::new(format!(
        "env is {CANARY}, token=typed-{MARK}"
    )));
    writer.stderr(&Untrusted::new(format!(
        "hidden {}",
        CANARY.replace('7', "7\u{200b}")
    )));
    writer.sent(message.as_bytes());
    writer.received(message.as_bytes());
    for shift in 0..CANARY.len() + 40 {
        let filler = "x".repeat(SHOWN_OF_A_MESSAGE - 40 + shift);
        writer.received(
            serde_json::json!({ "r": filler, "s": CANARY })
                .to_string()
                .as_bytes(),
        );
        writer.received(
            serde_json::json!({ "r": format!("{filler}{CANARY}{filler}") })
                .to_string()
                .as_bytes(),
        );
    }
    // A line so long that it comes in pieces, cut inside the secret.
    let long = "y".repeat(FULL_PIECE - 7);
    let (first, second) = CANARY.split_at(7);
    writer.stderr(&Untrusted::new(format!("{long}{first}")));
    writer.stderr(&Untrusted::new(format!("{second} and the rest of it")));
    journal.flush().await;
    let text = place.text("one.log");
    for part in [marked!("typed-"), &CANARY[..6], second] {
        let leak = text.lines().find(|line| line.contains(part));
        assert_eq!(leak, None);
    }
    assert!(text.contains("[redacted]") && text.contains("rest of it"));
    assert_eq!(
        text.lines().count(),
        text.lines().filter_map(JournalLine::parse).count()
    );
}

#[tokio::test]
async fn more_than_the_queue_holds_is_dropped_and_said() {
    let place = Place::new();
    let journal = place.journal();
    let writer = journal.open(&server("one"), Vec::new());
    // The thread waits for the page, so that the queue fills.
    let held = writer.sink.page.lock().unwrap();
    let count = QUEUE_LINES * 2;
    for number in 0..count {
        writer.note(1, &number.to_string());
    }
    drop(held);
    journal.flush().await;
    writer.note(1, "after");
    journal.flush().await;
    let lines = place.lines("one");
    let said: usize = lines
        .iter()
        .filter_map(|line| {
            line.text
                .split_once(" lines are missing here")?
                .0
                .parse::<usize>()
                .ok()
        })
        .sum();
    let kept = lines
        .iter()
        .filter(|line| line.text.starts_with("attempt 1"))
        .count();
    assert!(said > 0);
    assert_eq!(said + kept, count + 1);
}

#[tokio::test]
async fn what_cannot_be_written_costs_nothing() {
    let place = Place::new();
    let parent = place.directory.parent().unwrap();
    std::fs::create_dir_all(parent).unwrap();
    std::fs::write(&place.directory, "a file where the directory should be").unwrap();
    let journal = place.journal();
    let writer = journal.open(&server("one"), Vec::new());
    for number in 0..5000 {
        writer.note(1, &number.to_string());
    }
    journal.flush().await;
    assert!(journal.shared.warned.load(Ordering::Relaxed));
}

#[tokio::test]
async fn sec_37_a_link_in_the_files_place_is_not_followed() {
    let place = Place::new();
    std::fs::create_dir_all(&place.directory).unwrap();
    let victim = place.directory.join("victim");
    std::fs::write(&victim, "mine").unwrap();
    symlink(&victim, place.directory.join("one.log")).unwrap();
    std::fs::hard_link(&victim, place.directory.join("two.log")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.directory.join("pipe.log"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let journal = place.journal();
    for name in ["one", "two", "pipe"] {
        journal.open(&server(name), Vec::new()).note(1, "there");
    }
    journal.flush().await;
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
}

#[tokio::test]
async fn a_name_with_slashes_stays_in_the_directory() {
    let place = Place::new();
    let journal = place.journal();
    let long = "ö".repeat(200);
    let names = [
        "../../escape",
        ".hidden",
        "a b",
        "%2F",
        "ü",
        "x.log",
        long.as_str(),
    ];
    for name in names {
        journal.open(&server(name), Vec::new()).note(1, name);
    }
    journal.flush().await;
    for name in names {
        assert_eq!(place.lines(name)[0].text, format!("attempt 1: {name}"));
    }
    let listed: Vec<String> = logged_servers(&place.directory)
        .iter()
        .map(ToString::to_string)
        .collect();
    // The longest has only a digest for a name.
    assert_eq!(
        listed,
        ["%2F", "../../escape", ".hidden", "a b", "x.log", "ü"]
    );
}

#[test]
fn rel_34_two_writers_rotate_one_file_and_lose_nothing_of_the_last_part() {
    let place = Place::new();
    let size = 20_000;
    std::thread::scope(|scope| {
        for who in ["left", "right"] {
            let directory = place.directory.clone();
            scope.spawn(move || {
                let mut file = LogFile::new(directory, JournalName::from(&server("one")).file())
                    .rotating_at(size);
                for number in 0..2000 {
                    let text = format!("{who} {number}");
                    file.append(&line::format(
                        SystemTime::now(),
                        JournalLineKind::Note,
                        &text,
                    ))
                    .unwrap();
                }
            });
        }
    });
    let mut files: Vec<String> = std::fs::read_dir(&place.directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["one.log", "one.log.1"]);
    let lines = place.lines("one");
    for who in ["left", "right"] {
        let last = lines.iter().rfind(|line| line.text.starts_with(who));
        if let Some(last) = last {
            assert_eq!(last.text, format!("{who} 1999"));
        }
    }
    assert!(lines.iter().any(|line| line.text.ends_with("1999")));
    let written = place.text("one.log") + &place.text("one.log.1");
    assert_eq!(written.lines().count(), lines.len(), "every line is whole");
    let old = place.text("one.log.1").len() as u64;
    // Each writer looks at the name only now and then.
    assert!(old >= size && old < 2 * size, "{old}");
}

#[test]
fn a_follower_reads_on_across_a_rotation_and_waits_for_whole_lines() {
    let place = Place::new();
    let mut file = LogFile::new(
        place.directory.clone(),
        JournalName::from(&server("one")).file(),
    )
    .rotating_at(200);
    let mut put = |text: &str| {
        file.append(&line::format(
            SystemTime::now(),
            JournalLineKind::Note,
            text,
        ))
        .unwrap();
    };
    put("before");
    let (lines, mut follower) = read_last(&place.directory, &(&server("one")).into(), 10, |_| true)
        .unwrap()
        .unwrap();
    assert_eq!(lines.len(), 1);
    let mut seen = Vec::new();
    for number in 0..40 {
        put(&number.to_string());
        follower.poll(|line| seen.push(line.text)).unwrap();
    }
    let expected: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    assert_eq!(seen, expected);
    let path = place.directory.join("one.log");
    let mut raw = std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap();
    std::io::Write::write_all(&mut raw, b"1970-01-01T00:00:00.000Z 1 note ha").unwrap();
    follower.poll(|line| panic!("half a line: {line}")).unwrap();
    std::io::Write::write_all(&mut raw, b"lf\n").unwrap();
    let mut seen = Vec::new();
    follower.poll(|line| seen.push(line.text)).unwrap();
    assert_eq!(seen, ["half"]);
}

#[test]
fn no_journal_is_no_error() {
    let place = Place::new();
    assert!(
        read_last(&place.directory, &(&server("one")).into(), 1, |_| true)
            .unwrap()
            .is_none()
    );
    assert!(logged_servers(&place.directory).is_empty());
}

#[tokio::test]
async fn sec_47_headers_that_stand_in_no_definition_are_kept_back_once_they_are_sent() {
    let place = Place::new();
    let journal = place.journal();
    let writer = journal.open(&server("one"), vec![Secret::new(CANARY)]);
    let header = |name: &str, value: &str| (name.to_owned(), Secret::new(value));
    for round in ["first", "second"] {
        // A helper gives new values each time; those of earlier rounds stay secret.
        writer.keep_back(&[
            header("Authorization", &format!("Bearer {MARK}-{round}")),
            header("X-Tenant", marked!("tenant-")),
            header("Accept", "application/json"),
        ]);
    }
    writer.stderr(&Untrusted::new(format!(
        "got {MARK}-first, {MARK}-second and tenant-{MARK}, wants application/json"
    )));
    let answer = format!(r#"{{"id":1,"result":{{"a":"{MARK}-first","b":"tenant-{MARK} x"}}}}"#);
    writer.received(answer.as_bytes());
    writer.note(1, &format!("sent {MARK}-second and {CANARY}"));
    journal.flush().await;
    let text = place.text("one.log");
    assert!(!text.contains(MARK), "{text}");
    assert!(text.contains("wants application/json"), "{text}");
    assert_eq!(text.matches("[redacted]").count(), 7, "{text}");
}

#[test]
fn servers_of_one_name_in_two_projects_have_journals_of_their_own() {
    let of = |share: ServerShare| JournalName::of(&server("github"), &share).file();
    let project = |root: &str| of(ServerShare::Project(root.into()));
    assert_eq!(of(ServerShare::User), "github.log");
    assert_ne!(project("/a"), project("/b"));
    // Also where each caller has an instance of its own.
    assert_eq!(of(ServerShare::Session(Some("/a".into()))), project("/a"));
    assert_eq!(of(ServerShare::Session(None)), "github.log");
    for file in [project("/a"), of(ServerShare::User)] {
        assert_eq!(server_of(&file), Some(server("github")), "{file}");
    }
}
