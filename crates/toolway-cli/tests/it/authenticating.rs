//! `mcp__<server>__authenticate` typed at a command line: the login is waited for.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use toolway_testkit::authority::{AuthoritySettings, Switch};
use toolway_testkit::browser::browse;
use toolway_testkit::marked;

use crate::login::Scene;

/// A command that prints a page and waits.
struct Waiting {
    child: Child,
    stdout: BufReader<ChildStdout>,
    page: String,
}

impl Waiting {
    /// Starts it and reads until it has shown the page; `of` finds that in a line.
    fn start(mut command: Command, of: impl Fn(&str) -> Option<String>) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut waiting = Self {
            child,
            stdout,
            page: String::new(),
        };
        while waiting.page.is_empty() {
            let mut line = String::new();
            let read = waiting.stdout.read_line(&mut line).unwrap();
            assert_ne!(read, 0, "no page was shown");
            waiting.page = of(&line).unwrap_or_default();
        }
        waiting
    }

    fn end(mut self) -> (Option<i32>, String) {
        let mut rest = Vec::new();
        self.stdout.read_to_end(&mut rest).unwrap();
        let mut stderr = String::new();
        let mut pipe = self.child.stderr.take().unwrap();
        pipe.read_to_string(&mut stderr).unwrap();
        marked::assert_none("the program's stderr", stderr.as_bytes());
        (self.child.wait().unwrap().code(), stderr)
    }
}

fn in_text(line: &str) -> Option<String> {
    let line = line.strip_prefix("  http")?;
    Some(format!("http{}", line.trim_end()))
}

#[test]
fn a_call_waits_until_the_person_is_logged_in() {
    for words in [
        ["call", "shop", "authenticate"].as_slice(),
        &["call", "mcp__shop__authenticate"],
    ] {
        let scene = Scene::new(AuthoritySettings::default());
        let waiting = Waiting::start(scene.command(words), in_text);
        browse(&waiting.page);
        let (code, stderr) = waiting.end();
        assert_eq!(code, Some(0), "{stderr}");
        assert_eq!(
            stderr,
            "waiting for the login to `shop`, for 5 minutes at most (Ctrl-C gives it up)\n\
             logged in to `shop` as `default`, renews itself\n"
        );
        scene.run(&["call", "shop", "whoami"]).expect_code(0);
    }
}

#[test]
fn a_batch_waits_too() {
    let scene = Scene::new(AuthoritySettings::default());
    let file = scene.home.home().join("batch");
    scene.home.write(
        &file,
        "{\"server\": \"shop\", \"tool\": \"authenticate\"}\n",
    );
    let words = ["call", "--batch", file.to_str().unwrap()];
    let waiting = Waiting::start(scene.command(&words), |line| {
        let answer: serde_json::Value = serde_json::from_str(line).ok()?;
        let text = answer["result"]["content"][0]["text"].as_str()?;
        text.lines().find_map(in_text)
    });
    browse(&waiting.page);
    let (code, stderr) = waiting.end();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("logged in to `shop`"), "{stderr}");
    scene.run(&["call", "shop", "whoami"]).expect_code(0);
}

#[test]
fn a_login_that_fails_is_an_error_with_the_command_that_may_mend_it() {
    let scene = Scene::new(AuthoritySettings::with(&[Switch::AuthorizationDenied]));
    let waiting = Waiting::start(scene.command(&["call", "shop", "authenticate"]), in_text);
    browse(&waiting.page);
    let (code, stderr) = waiting.end();
    assert_eq!(code, Some(5), "{stderr}");
    assert!(
        stderr.contains("error: cannot log in to `shop`: the login was declined at"),
        "{stderr}"
    );
    assert!(
        stderr.contains("hint: start it again: `toolway login shop`"),
        "{stderr}"
    );
}

#[test]
fn a_time_limit_counts_for_the_login_too_and_ctrl_c_ends_it() {
    let scene = Scene::new(AuthoritySettings::default());
    let words = ["call", "shop", "authenticate", "--timeout", "2"];
    let (code, stderr) = Waiting::start(scene.command(&words), in_text).end();
    assert_eq!(code, Some(8), "{stderr}");
    assert!(
        stderr.contains("error: nobody logged in to `shop` within 2s"),
        "{stderr}"
    );
    let waiting = Waiting::start(scene.command(&["call", "shop", "authenticate"]), in_text);
    kill_process(Pid::from_child(&waiting.child), Signal::INT).unwrap();
    let (code, stderr) = waiting.end();
    assert_ne!(code, Some(0), "{stderr}");
}
