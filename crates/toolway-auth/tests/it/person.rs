//! A user for tests: their browser walks through the login by itself, and what they are shown is
//! written down.

use std::collections::VecDeque;
use std::sync::Mutex;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use toolway_auth::login::{DeviceCodePrompt, LoginPage, LoginProgress, LoginUi};
use toolway_testkit::browser::{BrowserPage as Seen, browse, fetch};

/// What they do when they are to open a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Habit {
    /// Their browser goes there and comes back.
    Browses,
    /// No browser can be opened.
    HasNone,
    /// They never do anything.
    Sleeps,
}

pub(crate) struct Tester {
    habit: Habit,
    /// The addresses that they were sent to.
    pub(crate) opened: Mutex<Vec<String>>,
    pub(crate) shown: Mutex<Vec<String>>,
    pub(crate) said: Mutex<Vec<LoginProgress>>,
    /// The codes they were shown, and where to type them.
    pub(crate) devices: Mutex<Vec<(String, String)>>,
    walks: Mutex<Vec<JoinHandle<Vec<Seen>>>>,
    first: Mutex<VecDeque<String>>,
    paste: mpsc::UnboundedSender<String>,
    pasted: tokio::sync::Mutex<mpsc::UnboundedReceiver<String>>,
}

impl Tester {
    pub(crate) fn new(habit: Habit) -> Self {
        let (paste, pasted) = mpsc::unbounded_channel();
        Self {
            habit,
            opened: Mutex::default(),
            shown: Mutex::default(),
            said: Mutex::default(),
            devices: Mutex::default(),
            walks: Mutex::default(),
            first: Mutex::default(),
            paste,
            pasted: tokio::sync::Mutex::new(pasted),
        }
    }

    /// Something that they paste before the right thing.
    pub(crate) fn pastes_first(&self, text: &str) {
        self.first.lock().unwrap().push_back(text.to_owned());
    }

    /// The pages that their browser saw, once it is done.
    pub(crate) async fn walked(&self) -> Vec<Seen> {
        let walks: Vec<_> = self.walks.lock().unwrap().drain(..).collect();
        let mut pages = Vec::new();
        for walk in walks {
            pages.extend(walk.await.unwrap());
        }
        pages
    }

    pub(crate) fn is_walking(&self) -> bool {
        let walks = self.walks.lock().unwrap();
        walks.is_empty() || walks.iter().any(|walk| !walk.is_finished())
    }
}

impl LoginUi for Tester {
    fn open<'a>(&'a self, page: LoginPage<'a>) -> BoxFuture<'a, Result<(), String>> {
        self.opened.lock().unwrap().push(page.url.to_string());
        let address = page.url.to_string();
        match self.habit {
            Habit::Browses => {
                let walk = tokio::task::spawn_blocking(move || browse(&address));
                self.walks.lock().unwrap().push(walk);
            }
            Habit::HasNone => {
                return Box::pin(async { Err("no browser here".to_owned()) });
            }
            Habit::Sleeps => {}
        }
        Box::pin(async { Ok(()) })
    }

    /// Opens it on another machine, and pastes the address it ended at.
    fn show(&self, page: LoginPage<'_>) {
        let address = page.url.to_string();
        self.shown.lock().unwrap().push(address.clone());
        for text in self.first.lock().unwrap().drain(..) {
            self.paste.send(text).unwrap();
        }
        let paste = self.paste.clone();
        tokio::task::spawn_blocking(move || {
            let there = fetch(&address);
            if let Some(end) = there.and_then(|page| page.location) {
                // The login may have ended meanwhile.
                drop(paste.send(end));
            }
        });
    }

    fn pasted(&self) -> BoxFuture<'_, String> {
        Box::pin(async {
            match self.pasted.lock().await.recv().await {
                Some(text) => text,
                None => std::future::pending().await,
            }
        })
    }

    fn device(&self, device: DeviceCodePrompt<'_>) {
        let code = device.login.user_code().expose().to_owned();
        let place = device.login.verification_uri().to_string();
        self.devices.lock().unwrap().push((code, place));
    }

    fn say(&self, progress: LoginProgress) {
        self.said.lock().unwrap().push(progress);
    }
}
