//! The permission prompt: whether a call may run, asked on a terminal.
//!
//! Owns what a person sees and the keys they answer with. When one is asked, and what becomes of
//! the answer, is the library's (`dispatch/permission.rs`).
//!
//! Everything a server said is spelled out, so that nothing can hide or pass for a line of ours
//! (SEC-34, SEC-35). Arguments are shown as they are, secrets too: whoever decides must see them.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::pin::Pin;

use tokio::sync::{oneshot, watch};
use toolway::{Answer, KeepIn, Lasting, Prompter, Question, Reach};
use toolway_types::text::spelled_out;

/// The longest value of an argument that is shown whole, in characters.
const MAX_VALUE: usize = 600;
/// The most arguments that are shown.
const MAX_ARGUMENTS: usize = 40;
/// How often an answer that cannot be understood is asked for again.
const ATTEMPTS: usize = 3;

/// Asks on stderr, reads from stdin.
pub(crate) struct TerminalPrompt {
    asking: watch::Sender<bool>,
}

impl TerminalPrompt {
    /// Both ends must be a terminal.
    pub(crate) fn new() -> Self {
        Self {
            asking: watch::Sender::new(false),
        }
    }

    /// Whether a question is on the screen, which is no place for anything else then.
    pub(crate) fn asking(&self) -> watch::Receiver<bool> {
        self.asking.subscribe()
    }

    async fn put(&self, question: &Question<'_>) -> Answer {
        write(&render(question));
        for _ in 0..ATTEMPTS {
            forget_typed();
            write(&keys(&question.lasting));
            let Some(line) = read_line().await else {
                write("\n");
                return Answer::No;
            };
            match understand(&line, &question.lasting) {
                Some(Key::Yes) => return Answer::Yes,
                Some(Key::Session) => return Answer::Session,
                Some(Key::No(None)) => return Answer::No,
                Some(Key::No(Some(reason))) => return Answer::NoBecause(reason),
                Some(Key::Always(reach, _))
                    if matches!(question.lasting, Lasting::AlwaysHere { .. }) =>
                {
                    let keep_in = KeepIn::Local;
                    return Answer::Always { reach, keep_in };
                }
                Some(Key::Always(reach, rule)) => {
                    write(&format!(
                        "Keep `{rule}` in your own settings (u) or only in this project's (l)? [u] "
                    ));
                    let keep_in = match read_line().await.as_deref().map(str::trim) {
                        Some("" | "u") => KeepIn::User,
                        Some("l") => KeepIn::Local,
                        _ => {
                            write("No rule is kept: it runs this once.\n");
                            return Answer::Yes;
                        }
                    };
                    return Answer::Always { reach, keep_in };
                }
                None => {}
            }
        }
        Answer::No
    }
}

impl Prompter for TerminalPrompt {
    fn ask<'a>(
        &'a self,
        question: &'a Question<'a>,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        Box::pin(async move {
            self.asking.send_replace(true);
            let _open = Open(&self.asking);
            // Whatever was drawn there is taken away first.
            tokio::task::yield_now().await;
            self.put(question).await
        })
    }
}

/// A question on the screen, until it is answered or its call is given up.
struct Open<'a>(&'a watch::Sender<bool>);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

/// An answer as it was typed.
#[derive(Debug, PartialEq, Eq)]
enum Key {
    Yes,
    Session,
    Always(Reach, String),
    No(Option<String>),
}

fn understand(line: &str, lasting: &Lasting) -> Option<Key> {
    let line = line.trim();
    let rule = |reach| {
        let (Lasting::Always { tool, server } | Lasting::AlwaysHere { tool, server }) = lasting
        else {
            return None;
        };
        let rule = match reach {
            Reach::Tool => tool,
            Reach::Server => server,
        };
        rule.clone().map(|rule| Key::Always(reach, rule))
    };
    match line {
        "y" | "Y" | "yes" => Some(Key::Yes),
        "s" if *lasting != Lasting::Once => Some(Key::Session),
        "t" => rule(Reach::Tool),
        "S" => rule(Reach::Server),
        // Enter alone is no yes.
        "" | "n" | "N" | "no" => Some(Key::No(None)),
        _ => {
            let (word, reason) = line.split_once(' ')?;
            matches!(word, "n" | "N" | "no").then(|| Key::No(Some(reason.trim().to_owned())))
        }
    }
}

fn keys(lasting: &Lasting) -> String {
    let mut text = "Run it? y once".to_owned();
    if *lasting != Lasting::Once {
        text.push_str(", s for this session");
    }
    if let Lasting::Always { tool, server } | Lasting::AlwaysHere { tool, server } = lasting {
        if tool.is_some() {
            text.push_str(", t always this tool");
        }
        if server.is_some() {
            text.push_str(", S always this server");
        }
    }
    text.push_str(", n no (n and a reason) [n] ");
    text
}

/// What a person must see to decide.
pub(crate) fn render(question: &Question<'_>) -> String {
    let mut text = format!(
        "Tool `{}` of server `{}` wants to run",
        spelled_out(&question.key.tool),
        spelled_out(question.key.server.as_str()),
    );
    text.push_str(if question.arguments.is_empty() {
        " without arguments.\n"
    } else {
        " with\n"
    });
    for (name, value) in question.arguments.iter().take(MAX_ARGUMENTS) {
        let _ = writeln!(
            text,
            "  {}: {}",
            spelled_out(name),
            shown(&value.to_string())
        );
    }
    if let Some(more) = question.arguments.len().checked_sub(MAX_ARGUMENTS)
        && more > 0
    {
        let _ = writeln!(text, "  … and {more} more arguments");
    }
    match question.destructive {
        Some(true) => text.push_str("Its server calls it destructive.\n"),
        Some(false) => text.push_str("Its server says that it destroys nothing.\n"),
        None => {}
    }
    if let Some((rule, origin)) = question.rule {
        let _ = writeln!(text, "The rule `{}` in {origin} asks.", spelled_out(rule));
    }
    if let Some(hook) = question.hook {
        let _ = writeln!(text, "Asked by {}", spelled_out(hook));
    }
    if let Some(change) = question.change {
        text.push_str(if change.compared {
            "Its definition changed since it was permitted:\n"
        } else {
            "Nobody can tell whether it changed since it was permitted:\n"
        });
        for line in &change.lines {
            let _ = writeln!(text, "  {}", spelled_out(line));
        }
    }
    if let Some(unheeded) = question.unheeded {
        let _ = writeln!(
            text,
            "`{}` here comes from {}; your rule `{}` in {} was given for another server of that name.",
            spelled_out(unheeded.server.server.as_str()),
            unheeded.server.origin,
            spelled_out(&unheeded.rule.rule),
            unheeded.rule.origin,
        );
    } else if question.rule.is_none() && question.hook.is_none() && question.change.is_none() {
        text.push_str("No rule speaks of it.\n");
    }
    text
}

/// A value on one line; of a long one the beginning, and how much is missing.
fn shown(value: &str) -> String {
    let count = value.chars().count();
    if count <= MAX_VALUE {
        return spelled_out(value);
    }
    let head: String = value.chars().take(MAX_VALUE).collect();
    format!(
        "{}… ({} more characters)",
        spelled_out(&head),
        count - MAX_VALUE
    )
}

/// A closed stderr is nobody's problem: then nothing is read either.
fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush());
}

/// Drops what was typed before the question was there: it cannot have been meant as its answer.
fn forget_typed() {
    // Where it cannot be dropped, it is read.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

/// A line of stdin; none at its end. Read by a thread of its own that nobody waits for: Ctrl-C
/// must end the program while it reads.
async fn read_line() -> Option<String> {
    let (done, line) = oneshot::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = io::stdin().read_line(&mut text);
        // Nobody may wait any more.
        let _ = done.send(read.is_ok_and(|bytes| bytes > 0).then_some(text));
    });
    line.await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};
    use toolway_types::{Origin, ServerName, ToolKey};

    use super::*;

    fn always() -> Lasting {
        Lasting::Always {
            tool: Some("mcp__s__t".to_owned()),
            server: None,
        }
    }

    #[test]
    fn only_what_is_offered_is_understood() {
        let of = |line| understand(line, &always());
        assert_eq!(of("y\n"), Some(Key::Yes));
        assert_eq!(of("s\n"), Some(Key::Session));
        let rule = "mcp__s__t".to_owned();
        assert_eq!(of("t"), Some(Key::Always(Reach::Tool, rule)));
        assert_eq!(of("S"), None);
        assert_eq!(of(""), Some(Key::No(None)));
        assert_eq!(of("n not now\n"), Some(Key::No(Some("not now".to_owned()))));
        assert_eq!(of("yess"), None);
        for line in ["s", "t", "S"] {
            assert_eq!(understand(line, &Lasting::Once), None, "{line}");
        }
    }

    #[test]
    fn sec_34_the_prompt_shows_the_real_server_and_the_arguments_and_hides_nothing() {
        let key = ToolKey::new(ServerName::new("s").unwrap(), "read\u{202e}\nRun it?");
        let mut arguments = Map::new();
        arguments.insert("path".to_owned(), json!("a\u{1b}[2Jb"));
        arguments.insert("text".to_owned(), json!("x".repeat(1000)));
        let origin = Origin::Program;
        let question = Question {
            key: &key,
            name: "mcp__s__read",
            title: Some("A harmless title"),
            arguments: &arguments,
            destructive: Some(false),
            rule: Some(("mcp__s", &origin)),
            unheeded: None,
            hook: Some("the hook `h`: look"),
            change: None,
            lasting: Lasting::Once,
        };
        let text = render(&question);
        let cut = format!("  text: \"{}… (402 more characters)", "x".repeat(599));
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                "Tool `read\\u{202E}\\u{000A}Run it?` of server `s` wants to run with",
                "  path: \"a\\u001b[2Jb\"",
                cut.as_str(),
                "Its server says that it destroys nothing.",
                &format!("The rule `mcp__s` in {origin} asks."),
                "Asked by the hook `h`: look",
            ]
        );
    }
}
