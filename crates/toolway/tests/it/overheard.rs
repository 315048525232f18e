//! Listens to everything that is logged while the tests run, and looks for secrets in it: to us at
//! the most talkative level, to libraries at the most talkative one that anybody would switch on.
//! Theirs below that comes with every byte on a socket, and a test under load would measure the
//! listening. What it heard is not kept.

use std::io;
use std::sync::{Mutex, Once};

use toolway_testkit::marked;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;

/// Where secrets were heard: the beginning of each line, which names who spoke and when.
static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Listens from now on.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing::subscriber::set_global_default(listener(&HEARD)).expect("nobody else listens");
    });
}

/// Panics when a secret was logged by anything in this process.
pub(crate) fn assert_no_secrets() {
    let heard = HEARD.lock().expect("no panic");
    assert!(heard.is_empty(), "secrets were logged: {heard:#?}");
}

fn listener(heard: &'static Mutex<Vec<String>>) -> impl tracing::Subscriber + Send + Sync {
    let spoken = Targets::new()
        .with_default(LevelFilter::DEBUG)
        .with_target("toolway", LevelFilter::TRACE)
        .with_target("it", LevelFilter::TRACE);
    let ear = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(move || Ear(heard))
        .with_filter(spoken);
    tracing_subscriber::registry().with(ear)
}

struct Ear(&'static Mutex<Vec<String>>);

impl io::Write for Ear {
    /// Gets one line at a time.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Some(offset) = marked::find(line) {
            let start = String::from_utf8_lossy(&line[..offset.min(200)]);
            // What stands right before the mark may be a part of the secret.
            let shown = start.rsplit_once(' ').map_or("", |(shown, _)| shown);
            self.0.lock().expect("no panic").push(shown.to_owned());
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_logged_secret_is_heard() {
    static PLANTED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    tracing::subscriber::with_default(listener(&PLANTED), || {
        tracing::trace!(token = "none", "nothing");
        tracing::trace!(token = marked::DEVELOPERS_SECRET, "planted by this test");
    });
    let heard = PLANTED.lock().expect("no panic");
    assert_eq!(heard.len(), 1);
    assert!(heard[0].contains("planted by this test"), "{heard:?}");
    assert!(marked::find(heard[0].as_bytes()).is_none(), "{heard:?}");
}
