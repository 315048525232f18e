//! Listens to everything that is logged while the tests run, at the most talkative level, and looks
//! for secrets in it. What it heard is not kept.

use std::io;
use std::sync::{Mutex, Once};

use toolway_testkit::marked;

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
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || Ear(heard))
        .finish()
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
