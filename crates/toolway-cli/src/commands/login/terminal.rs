//! A login at this terminal.
//!
//! Owns what the user sees of it and what they type. What becomes of that is the library's.

use std::io::{BufRead as _, BufReader};
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use toolway_auth::callback::LOGIN_TIMEOUT;
use toolway_auth::login::{DeviceCodePrompt, LoginPage, LoginProgress, LoginUi};
use toolway_transport::browser::Browser;
use toolway_types::text::spelled_out;

use crate::context::Context;
use crate::elicit;
use crate::output::Output;
use crate::screen::{disguise, name};
use crate::streams::Streams;
use crate::terminal::TypedLine;

/// Shows a login on this terminal.
pub(in crate::commands) struct AtTerminal {
    output: Output,
    browser: Browser,
    lines: tokio::sync::Mutex<Option<mpsc::UnboundedReceiver<String>>>,
    opened: AtomicBool,
}

impl AtTerminal {
    pub(in crate::commands) fn new(context: &Context) -> Self {
        Self {
            output: context.output.clone(),
            browser: elicit::browser(context.environment()),
            lines: tokio::sync::Mutex::new(None),
            opened: AtomicBool::new(false),
        }
    }
}

impl LoginUi for AtTerminal {
    fn open<'a>(&'a self, page: LoginPage<'a>) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let host = whose(&page);
            let said = format!("opening a login page of {host} in your browser");
            self.output.say(&said);
            let opened = self.browser.show(page.url).await;
            self.opened.store(opened.is_ok(), Ordering::Release);
            opened.map_err(|error| error.to_string())
        })
    }

    fn show(&self, page: LoginPage<'_>) {
        self.output.say(&format!(
            "open this page of {} in a browser:\n\n  {}\n",
            whose(&page),
            page.url
        ));
    }

    fn pasted(&self) -> BoxFuture<'_, String> {
        Box::pin(async move {
            if self.output.stdin_is_terminal() {
                return match self.output.terminal().next_line().await {
                    TypedLine::Typed(line) => line,
                    TypedLine::End => std::future::pending().await,
                };
            }
            let mut lines = self.lines.lock().await;
            let lines = lines.get_or_insert_with(|| typed(self.output.streams()));
            match lines.recv().await {
                Some(line) => line,
                // Nothing more can be typed: the browser may still come back.
                None => std::future::pending().await,
            }
        })
    }

    fn device(&self, device: DeviceCodePrompt<'_>) {
        let login = device.login;
        self.output.say(&format!(
            "on any device, open {}{} and type the code {} (good for {} minutes)",
            login.verification_uri(),
            disguise(login.verification_uri()),
            name(login.user_code().expose()),
            login.life().as_secs().div_ceil(60)
        ));
    }

    fn say(&self, progress: LoginProgress) {
        match progress {
            LoginProgress::NoBrowser(why) => {
                self.output.say(&format!("no browser was opened: {why}"));
            }
            LoginProgress::Pasted(why) => self.output.say(&format!("that cannot be used: {why}")),
            LoginProgress::Slow(place) => say_slow(&self.output, &place),
            LoginProgress::RegisteringAnew => self
                .output
                .say("the last login there had no answer: registering this program anew"),
            LoginProgress::UnannouncedPkce(issuer) => self.output.say(&format!(
                "warning: {issuer} does not announce PKCE: whether a stolen login could be used \
                 there is not known (`oauth.allowUnannouncedPkce`)"
            )),
            LoginProgress::Waiting => self.output.say(&self.waiting()),
            LoginProgress::Discovering | LoginProgress::Registering | LoginProgress::Finishing => {}
        }
    }
}

/// Says who is being waited for: an address, of which nothing is cut, so that it can be asked.
pub(in crate::commands) fn say_slow(output: &Output, place: &str) {
    output.say(&format!("waiting for {} to answer", spelled_out(place)));
}

impl AtTerminal {
    /// What is waited for, and what to do where it does not come. The page's own words cannot be
    /// seen from here.
    fn waiting(&self) -> String {
        let minutes = LOGIN_TIMEOUT.as_secs() / 60;
        let can_paste = self.output.stdin_is_terminal();
        if !self.opened.load(Ordering::Acquire) {
            return format!(
                "(good for {minutes} minutes; if the page shows an error, press Ctrl-C and log in \
                 again)\nthen paste the address that the browser ended at, and press Enter:"
            );
        }
        if !can_paste {
            return format!(
                "waiting for the browser to come back, for {minutes} minutes at most; if the page \
                 shows an error, press Ctrl-C and log in again"
            );
        }
        format!(
            "waiting for the browser to come back, for {minutes} minutes at most; if\n  \
             no page opened: press Ctrl-C and add `--no-browser`\n  \
             the page shows an error: press Ctrl-C and log in again\n  \
             it cannot come back: paste the address that it ended at, and press Enter"
        )
    }
}

/// The host of a page as it is looked up, and what a browser may show in its place.
fn whose(page: &LoginPage<'_>) -> String {
    format!("{}{}", name(page.host), disguise(page.url))
}

/// The lines of stdin, read by a thread that is not joined: Ctrl-C must end the program while it
/// reads.
fn typed(streams: &Streams) -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    let input = BufReader::new(streams.reader());
    std::thread::spawn(move || {
        for line in input.lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}
