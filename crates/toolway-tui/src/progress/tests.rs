//! The loop, in virtual time, with its bytes played on a small terminal.

use std::sync::Mutex;

use toolway::{Counts, ServerSnapshot};
use toolway_types::{
    ConnectionState, Era, Failure, FailureKind, Origin, Scope, ServerFacts, ServerName,
};

use super::*;

/// Everything written, still readable while the view runs.
#[derive(Clone, Default)]
pub(crate) struct Tape(Arc<Mutex<Vec<u8>>>);

impl Tape {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// Makes the terminal this narrow, and has it wrap again what it shows.
    pub(crate) fn narrow(&self, width: usize) {
        let command = format!("\u{1b}[{width}{NARROW}");
        self.0.lock().unwrap().extend_from_slice(command.as_bytes());
    }

    /// What a terminal shows after the bytes so far.
    pub(crate) fn screen(&self) -> Vec<String> {
        play(&self.text())
    }
}

impl Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Not a view's command, but what happens to a terminal between two of them.
const NARROW: char = '@';

/// A terminal with only the moves this view may use; any other byte sequence fails the test.
fn play(text: &str) -> Vec<String> {
    let mut lines: Vec<Vec<char>> = vec![Vec::new()];
    let (mut x, mut y) = (0, 0);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\r' => x = 0,
            '\n' => {
                y += 1;
                if lines.len() <= y {
                    lines.push(Vec::new());
                }
            }
            '\u{1b}' => {
                assert_eq!(chars.next(), Some('['));
                let mut number = String::new();
                let command = loop {
                    match chars.next().unwrap() {
                        digit if digit.is_ascii_digit() || digit == ';' => number.push(digit),
                        command => break command,
                    }
                };
                let count = || number.parse::<usize>().unwrap();
                match command {
                    'A' => y -= count(),
                    'B' => y += count(),
                    'C' => x += count(),
                    'm' => {}
                    NARROW => {
                        let width = count();
                        let pieces = |line: &Vec<char>| line.len().div_ceil(width).max(1);
                        y = lines[..y].iter().map(pieces).sum::<usize>() + x / width;
                        x %= width;
                        let wrapped = lines.iter().flat_map(|line| {
                            let chunks = line.chunks(width).map(<[char]>::to_vec);
                            let empty = line.is_empty().then(Vec::new);
                            empty.into_iter().chain(chunks).collect::<Vec<_>>()
                        });
                        lines = wrapped.collect();
                    }
                    'J' => {
                        lines[y].truncate(x);
                        lines.truncate(y + 1);
                    }
                    other => panic!("unexpected command {other:?}"),
                }
                assert!(y < lines.len(), "moved below the lines it opened");
            }
            c => {
                assert!(!c.is_control(), "{c:?}");
                if lines[y].len() <= x {
                    lines[y].resize(x + 1, ' ');
                }
                lines[y][x] = c;
                x += 1;
            }
        }
    }
    lines
        .iter()
        .map(|line| line.iter().collect::<String>().trim_end().to_owned())
        .collect()
}

pub(crate) fn server(name: &str, state: ConnectionState, tools: Option<usize>) -> ServerSnapshot {
    ServerSnapshot {
        name: ServerName::new(name).unwrap(),
        scope: Scope::User,
        origin: Origin::Program,
        transport: None,
        state,
        verdict_word: "admitted",
        reason: None,
        counts: tools.map(|tools| Counts {
            tools,
            ..Counts::default()
        }),
        warnings: Vec::new(),
        rest: None,
    }
}

pub(crate) fn pending() -> ConnectionState {
    ConnectionState::Pending { attempt: 1 }
}

pub(crate) fn connected() -> ConnectionState {
    ConnectionState::Connected(Box::new(ServerFacts {
        era: Era::Modern,
        protocol_version: "2026-07-28".to_owned(),
        server_info: serde_json::Value::Null,
        capabilities: serde_json::Value::Null,
        instructions: None,
    }))
}

pub(crate) fn failed() -> ConnectionState {
    ConnectionState::Failed(Failure {
        kind: FailureKind::Spawn,
        message: "cannot start `nope`".to_owned(),
        stderr: Vec::new(),
    })
}

pub(crate) fn snapshot(servers: Vec<ServerSnapshot>) -> Arc<HostSnapshot> {
    let mut snapshot = HostSnapshot::default();
    snapshot.servers = servers.into_iter().map(Arc::new).collect();
    Arc::new(snapshot)
}

fn options() -> ViewOptions {
    ViewOptions {
        screen: TerminalSize {
            width: 60,
            height: 24,
            rewraps: true,
        },
        theme: Theme::Plain,
    }
}

pub(crate) async fn pass(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

#[tokio::test(start_paused = true)]
async fn it_follows_the_servers_and_leaves_nothing_behind() {
    let (sender, receiver) = watch::channel(snapshot(vec![
        server("a", pending(), None),
        server("b", pending(), None),
    ]));
    let tape = Tape::default();
    let talk = async {
        pass(140).await;
        assert_eq!(tape.text(), "");
        pass(20).await;
        insta::assert_snapshot!(tape.screen().join("\n"), @"
        … pending     a    0.1s  ⠙ connecting
        … pending     b    0.1s  ⠙ connecting
        ");
        sender.send_replace(snapshot(vec![
            server("a", connected(), Some(7)),
            server("b", pending(), None),
        ]));
        pass(400).await;
        insta::assert_snapshot!(tape.screen().join("\n"), @"
        ✔ connected   a    0.2s  7 tools
        … pending     b    0.6s  ⠴ connecting
        ");
        sender.send_replace(snapshot(vec![
            server("a", connected(), Some(7)),
            server("b", failed(), None),
        ]));
    };
    let (shown, ()) = tokio::join!(show(receiver, || tape.clone(), options(), None), talk);
    shown.unwrap();
    assert_eq!(tape.screen(), [""]);
    assert!(
        !tape.text().contains("\u{1b}[0"),
        "a plain theme writes no style"
    );
}

#[tokio::test(start_paused = true)]
async fn what_settles_at_once_is_never_drawn() {
    let (sender, receiver) = watch::channel(snapshot(vec![server("a", pending(), None)]));
    let tape = Tape::default();
    let talk = async {
        pass(100).await;
        sender.send_replace(snapshot(vec![server("a", connected(), Some(1))]));
    };
    let (shown, ()) = tokio::join!(show(receiver, || tape.clone(), options(), None), talk);
    shown.unwrap();
    assert_eq!(tape.text(), "");
}

#[tokio::test(start_paused = true)]
async fn a_view_that_is_given_up_takes_its_lines_away() {
    let (_sender, receiver) = watch::channel(snapshot(vec![server("a", pending(), None)]));
    let tape = Tape::default();
    let given_up = tokio::time::timeout(
        Duration::from_secs(3),
        show(receiver, || tape.clone(), options(), None),
    )
    .await;
    assert!(given_up.is_err());
    assert!(tape.text().contains("connecting"));
    assert_eq!(tape.screen(), [""]);
}

#[tokio::test(start_paused = true)]
async fn it_ends_when_the_host_is_gone() {
    let (sender, receiver) = watch::channel(snapshot(vec![server("a", pending(), None)]));
    let tape = Tape::default();
    let talk = async {
        pass(500).await;
        drop(sender);
    };
    let (shown, ()) = tokio::join!(show(receiver, || tape.clone(), options(), None), talk);
    shown.unwrap();
    assert_eq!(tape.screen(), [""]);
}

#[tokio::test(start_paused = true)]
async fn more_servers_than_lines_fit_the_screen() {
    let servers = (0..100)
        .map(|n| server(&format!("server-{n}"), pending(), None))
        .collect();
    let (_sender, receiver) = watch::channel(snapshot(servers));
    let tape = Tape::default();
    let options = ViewOptions {
        screen: TerminalSize {
            width: 40,
            height: 6,
            rewraps: true,
        },
        theme: Theme::Colour,
    };
    let talk = pass(300);
    tokio::select! {
        shown = show(receiver, || tape.clone(), options, None) => panic!("it ended: {shown:?}"),
        () = talk => {}
    }
    assert!(tape.text().contains("and 96 more: 96 pending"));
    assert_eq!(tape.screen(), [""]);
}

#[tokio::test(start_paused = true)]
async fn a_broken_entry_has_failed_as_the_table_says() {
    let disabled = || ConnectionState::Disabled {
        reason: "not connected".to_owned(),
    };
    let (sender, receiver) = watch::channel(snapshot(vec![
        ServerSnapshot {
            verdict_word: "invalid",
            reason: Some("neither `command` nor `url` is given".to_owned()),
            ..server("broken", disabled(), None)
        },
        ServerSnapshot {
            verdict_word: "disabled",
            ..server("off", disabled(), None)
        },
        server("slow", pending(), None),
    ]));
    let tape = Tape::default();
    let talk = async {
        pass(160).await;
        insta::assert_snapshot!(tape.screen().join("\n"), @"
        ✘ failed      broken    0.0s  neither `command` nor `url` …
        ⊘ disabled    off             not connected
        … pending     slow      0.1s  ⠙ connecting
        ");
        drop(sender);
    };
    let (shown, ()) = tokio::join!(show(receiver, || tape.clone(), options(), None), talk);
    shown.unwrap();
}
