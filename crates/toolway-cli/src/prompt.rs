//! The permission prompt: whether a call may run, asked on a terminal.
//!
//! Owns what the user sees and the keys they answer with. When one is asked, and what becomes of
//! the answer, is the library's (`dispatch/permission.rs`).
//!
//! Nothing foreign can hide, or pass for a row of ours (SEC-34, SEC-35, SEC-52): `screen.rs`.
//! Arguments are shown with their secrets, which the user must see to decide. Of long ones the middle
//! is left out until all of it is asked for; of a definition that changed, nothing.

mod put_question;

use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;
use toolway::{
    Against, KeepIn, Lasting, PermissionAnswer, PermissionQuestion, Prompter, RuleReach,
};
use toolway_rows::QuestionRow;
use toolway_types::text::{TextKind, counted, legible, legible_within, mark};

use self::put_question::PutQuestion;
use crate::context::Context;
use crate::output::Output;
use crate::screen::{Screen, member_name, name, turn};
use crate::terminal::TypedLine;
use crate::terminal_turns::{Asker, TerminalTurns};

/// The longest value of an argument that is shown whole at first, in characters.
const MAX_VALUE: usize = 600;
/// The longest name of an argument that is shown whole at first.
const MAX_NAME: usize = 100;
/// The most arguments that are shown at first.
const MAX_ARGUMENTS: usize = 40;
/// How often an answer that cannot be understood is asked for again.
const ATTEMPTS: usize = 3;

/// Asks on stderr, reads from stdin.
pub(crate) struct TerminalPrompt {
    output: Output,
    turns: Arc<TerminalTurns>,
}

/// How much of the arguments is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Bounded,
    Whole,
}

/// Where a rule can be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RulePlaces {
    /// In the user's own settings or in the project's: they are asked.
    Both,
    /// In the user's own.
    User,
}

/// A question of another process as it is listed, without asking; none where it asks for no
/// permission. And whether something is left out of it.
pub(crate) fn listed(row: &QuestionRow, screen: Screen) -> Option<(String, bool)> {
    let question = PutQuestion::of_row(row)?;
    let shown = render(&question, screen, Extent::Bounded);
    Some((shown.text, shown.is_cut))
}

/// What the user sees before they decide.
struct Shown {
    text: String,
    /// Whether something is left out of it.
    is_cut: bool,
}

impl TerminalPrompt {
    /// Both ends must be a terminal.
    pub(crate) fn new(context: &Context) -> Self {
        Self {
            output: context.output.clone(),
            turns: Arc::clone(&context.turns),
        }
    }

    /// Asks what another process wants to know; none where it asks for no permission. A rule is kept
    /// in the user's own settings: the project of that process need not be the one here.
    pub(crate) async fn ask_row(&self, row: &QuestionRow) -> Option<PermissionAnswer> {
        let question = PutQuestion::of_row(row)?;
        let _open = self.turns.open(Asker::Program).await;
        Some(self.put(&question, RulePlaces::User).await)
    }

    async fn put(&self, question: &PutQuestion<'_>, places: RulePlaces) -> PermissionAnswer {
        let screen = self.output.screen();
        let mut shown = render(question, screen, Extent::Bounded);
        if !self.lay_before(&shown.text, screen).await {
            return PermissionAnswer::No;
        }
        let mut attempts = 0;
        while attempts < ATTEMPTS {
            attempts += 1;
            let keys = keys(&question.lasting, &shown);
            let TypedLine::Typed(line) = self.output.terminal().line(&keys).await else {
                self.output.say("");
                return PermissionAnswer::No;
            };
            match understand(&line, &question.lasting) {
                Some(Key::View) if shown.is_cut => {
                    attempts = 0;
                    shown = render(question, screen, Extent::Whole);
                    if !self.lay_before(&shown.text, screen).await {
                        return PermissionAnswer::No;
                    }
                }
                Some(Key::Yes) => return PermissionAnswer::Yes,
                Some(Key::Session) => return PermissionAnswer::Session,
                Some(Key::No(None)) => return PermissionAnswer::No,
                Some(Key::No(Some(reason))) => return PermissionAnswer::NoBecause(reason),
                Some(Key::Always(reach, _))
                    if matches!(question.lasting, Lasting::AlwaysHere { .. }) =>
                {
                    let keep_in = KeepIn::Local;
                    return PermissionAnswer::Always { reach, keep_in };
                }
                Some(Key::Always(reach, _)) if places == RulePlaces::User => {
                    let keep_in = KeepIn::User;
                    return PermissionAnswer::Always { reach, keep_in };
                }
                Some(Key::Always(reach, rule)) => {
                    if let Some(keep_in) = self.place_of(&rule).await {
                        return PermissionAnswer::Always { reach, keep_in };
                    }
                    self.output.say("No rule is kept: it runs this once.");
                    return PermissionAnswer::Yes;
                }
                Some(Key::View) | None => {}
            }
        }
        PermissionAnswer::No
    }

    /// Where a rule is to be kept.
    async fn place_of(&self, rule: &str) -> Option<KeepIn> {
        let question =
            format!("Keep `{rule}` in your own settings (u) or only in this project's (l)? [u] ");
        let TypedLine::Typed(line) = self.output.terminal().line(&question).await else {
            return None;
        };
        match line.trim() {
            "" | "u" => Some(KeepIn::User),
            "l" => Some(KeepIn::Local),
            _ => None,
        }
    }

    /// Shows a text page by page. False when the user stopped before its end.
    async fn lay_before(&self, text: &str, screen: Screen) -> bool {
        let pages = screen.pages(text);
        for (place, page) in pages.iter().enumerate() {
            self.output.say(page);
            if place + 1 == pages.len() {
                break;
            }
            let turned = self
                .output
                .terminal()
                .line(&turn(place + 1, pages.len()))
                .await;
            if !matches!(turned, TypedLine::Typed(line) if line.trim().is_empty()) {
                return false;
            }
        }
        true
    }
}

impl Prompter for TerminalPrompt {
    fn ask<'a>(
        &'a self,
        question: &'a PermissionQuestion<'a>,
    ) -> Pin<Box<dyn Future<Output = PermissionAnswer> + Send + 'a>> {
        Box::pin(async move {
            let _open = self.turns.open(Asker::Program).await;
            self.put(&question.into(), RulePlaces::Both).await
        })
    }
}

/// An answer as it was typed.
#[derive(Debug, PartialEq, Eq)]
enum Key {
    Yes,
    Session,
    Always(RuleReach, String),
    No(Option<String>),
    /// All of what is asked about.
    View,
}

fn understand(line: &str, lasting: &Lasting) -> Option<Key> {
    let line = line.trim();
    let rule = |reach| {
        let (Lasting::Always { tool, server } | Lasting::AlwaysHere { tool, server }) = lasting
        else {
            return None;
        };
        let rule = match reach {
            RuleReach::Tool => tool,
            RuleReach::Server => server,
        };
        rule.clone().map(|rule| Key::Always(reach, rule))
    };
    match line {
        "y" | "Y" | "yes" => Some(Key::Yes),
        "s" if *lasting != Lasting::Once => Some(Key::Session),
        "v" => Some(Key::View),
        "t" => rule(RuleReach::Tool),
        // A word, which is no slip of the finger: it reaches farther than any other answer.
        "all" => rule(RuleReach::Server),
        // Enter alone is no yes.
        "" | "n" | "N" | "no" => Some(Key::No(None)),
        _ => {
            let (word, reason) = line.split_once(' ')?;
            matches!(word, "n" | "N" | "no").then(|| Key::No(Some(reason.trim().to_owned())))
        }
    }
}

fn keys(lasting: &Lasting, shown: &Shown) -> String {
    let mut text = "Run it? y once".to_owned();
    if *lasting != Lasting::Once {
        text.push_str(", s for this session");
    }
    if let Lasting::Always { tool, server } | Lasting::AlwaysHere { tool, server } = lasting {
        if tool.is_some() {
            text.push_str(", t always this tool");
        }
        if server.is_some() {
            text.push_str(", all always this server");
        }
    }
    if shown.is_cut {
        text.push_str(", v view all of it");
    }
    text.push_str(", n no (n and a reason) [n] ");
    text
}

/// What the user must see to decide. The tool and its server are named once more where the rows
/// that follow push their name away.
fn render(question: &PutQuestion<'_>, screen: Screen, extent: Extent) -> Shown {
    let mut sheet = screen.sheet();
    let mut is_cut = false;
    let who = format!(
        "`{}` of server `{}`",
        name(question.tool),
        name(question.server.as_str()),
    );
    sheet.row(&format!(
        "Tool {who} wants to run {}",
        if question.arguments.is_empty() {
            "without arguments."
        } else {
            "with"
        }
    ));
    let most = match extent {
        Extent::Bounded => MAX_ARGUMENTS,
        Extent::Whole => usize::MAX,
    };
    let mut bounded = |text: &str, whole: String, most| match extent {
        Extent::Bounded => {
            let shown = legible_within(text, TextKind::Code, most);
            if shown == legible(text, TextKind::Code) {
                return whole;
            }
            is_cut = true;
            shown
        }
        Extent::Whole => whole,
    };
    for (argument, value) in question.arguments.iter().take(most) {
        // What a server takes for a path or a command is code, wherever it stands.
        let value = value.to_string();
        let value = bounded(&value, legible(&value, TextKind::Code), MAX_VALUE);
        let quoted = Value::from(argument.as_str()).to_string();
        let argument = bounded(&quoted, member_name(argument), MAX_NAME);
        sheet.row(&format!("  {argument}: {value}"));
    }
    if let Some(more) = question.arguments.len().checked_sub(most)
        && more > 0
    {
        is_cut = true;
        let words = format!("{} left out", counted(more, "argument"));
        sheet.row(&format!("  {}", mark(&words)));
    }
    match question.destructive {
        Some(true) => sheet.row("Its server calls it destructive."),
        Some(false) => sheet.row("Its server says that it destroys nothing."),
        None => {}
    }
    let words = |text: &str| legible(text, TextKind::Prose);
    if let Some((rule, origin)) = &question.rule {
        let (rule, origin) = (words(rule), words(origin));
        sheet.row(&format!("The rule `{rule}` in {origin} asks."));
    }
    if let Some(hook) = question.hook {
        sheet.row(&format!("Asked by {}", words(hook)));
    }
    if let Some(classifier) = question.classifier {
        let words = words(classifier);
        let said = words.strip_prefix("the ").map(|rest| format!("The {rest}"));
        sheet.row(&said.unwrap_or(words));
    }
    if let Some((against, lines)) = question.change {
        sheet.row(match against {
            Against::Permitted => "Its definition changed since it was permitted:",
            Against::Nothing => "Nobody can tell whether it changed since it was permitted:",
            Against::Namesake => "Another tool was permitted under its name:",
        });
        // These are legible already.
        for line in lines {
            sheet.row(&format!("  {line}"));
        }
    }
    if let Some(unheeded) = &question.unheeded {
        sheet.row(&format!(
            "`{}` here comes from {}; your rule `{}` in {} was given for another server of that name.",
            name(unheeded.server.as_str()),
            words(&unheeded.entry),
            words(unheeded.rule),
            words(&unheeded.origin),
        ));
    } else if question.rule.is_none() && question.hook.is_none() && question.change.is_none() {
        sheet.row("No rule speaks of it.");
    }
    if sheet.is_long() {
        sheet.row(&format!("That is tool {who}."));
    }
    Shown {
        text: sheet.finish(),
        is_cut,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};
    use toolway::Difference;
    use toolway_types::{Origin, ServerName, ToolKey};

    use super::*;
    use crate::screen::Letters;

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
        assert_eq!(of("t"), Some(Key::Always(RuleReach::Tool, rule)));
        assert_eq!(of("all"), None);
        // One shift away from an answer is nothing.
        let whole = Lasting::Always {
            tool: Some("mcp__s__t".to_owned()),
            server: Some("mcp__s".to_owned()),
        };
        assert_eq!(understand("S", &whole), None);
        assert_eq!(understand("a", &whole), None);
        let rule = "mcp__s".to_owned();
        let all = Key::Always(RuleReach::Server, rule);
        assert_eq!(understand("all", &whole), Some(all));
        assert_eq!(of(""), Some(Key::No(None)));
        assert_eq!(of("n not now\n"), Some(Key::No(Some("not now".to_owned()))));
        assert_eq!(of("yess"), None);
        for line in ["s", "t", "all"] {
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
        let question = PermissionQuestion {
            key: &key,
            name: "mcp__s__read",
            title: Some("A harmless title"),
            arguments: &arguments,
            destructive: Some(false),
            rule: Some(("mcp__s", &origin)),
            unheeded: None,
            hook: Some("the hook `h`: look"),
            classifier: Some("the classifier `c` in settings.json:3 asks: it writes"),
            change: None,
            lasting: Lasting::Once,
        };
        let screen = Screen::new(None, Letters::Any);
        let shown = render(&PutQuestion::from(&question), screen, Extent::Bounded);
        assert!(shown.is_cut);
        let cut = format!(
            "  text: \"{}⟨432 characters left out⟩{}\"",
            "x".repeat(384),
            "x".repeat(184)
        );
        assert_eq!(
            shown.text.lines().collect::<Vec<_>>(),
            [
                "Tool `read\\u{202E}⏎",
                "  | Run it?` of server `s` wants to run with",
                "  path: \"a\\u001b[2Jb\"",
                cut.as_str(),
                "Its server says that it destroys nothing.",
                &format!("The rule `mcp__s` in {origin} asks."),
                "Asked by the hook `h`: look",
                "The classifier `c` in settings.json:3 asks: it writes",
            ]
        );
        let whole = render(&PutQuestion::from(&question), screen, Extent::Whole);
        assert!(!whole.is_cut);
        assert!(whole.text.contains(&"x".repeat(1000)), "{}", whole.text);
    }

    #[test]
    fn sec_52_every_line_of_a_change_is_shown_and_the_tool_named_again_below_it() {
        let key = ToolKey::new(ServerName::new("s").unwrap(), "read");
        let all: Vec<String> = (1..=100).map(|n| format!("+ description: {n}")).collect();
        let change = Difference {
            lines: all[..3].to_vec(),
            all,
            against: Against::Permitted,
        };
        let question = PermissionQuestion {
            key: &key,
            name: "mcp__s__read",
            title: None,
            arguments: &Map::new(),
            destructive: None,
            rule: None,
            hook: None,
            classifier: None,
            change: Some(&change),
            unheeded: None,
            lasting: Lasting::Once,
        };
        let screen = Screen::new(Some((80, 24)), Letters::Any);
        let shown = render(&PutQuestion::from(&question), screen, Extent::Bounded).text;
        let end = "  + description: 99\n  + description: 100\nThat is tool `read` of server `s`.\n";
        assert!(shown.ends_with(end), "{shown}");
        assert_eq!(shown.lines().count(), 103);
    }
}
