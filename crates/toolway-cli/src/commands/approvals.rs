//! `toolway approvals`: the questions that wait in running gateways, and the owner's answers.
//!
//! Owns choosing a question by the beginning of its id, and giving one answer. Asking on the terminal,
//! and waiting for what comes, is `approvals/asking.rs`; how a question looks is `prompt.rs`'s.

mod asking;

use clap::{Args, Subcommand, ValueEnum};
use toolway_gateway::owner_socket::{OwnerCallError, OwnerClient};
use toolway_rows::{GivenAnswer, QuestionListing, QuestionRow};
use toolway_types::text::clean_line;

use crate::age;
use crate::connect;
use crate::context::Context;
use crate::exit::Exit;
use crate::gateways;
use crate::prompt;
use crate::report::{Outcome, Report};
use crate::screen;

/// The fewest characters of an id that are shown.
const SHORT: usize = 8;

/// Answer the questions that wait for you in gateways
///
/// When a client calls a tool that an `ask` rule or the mode `ask` of its profile is about, or one
/// that changed since it was permitted, and the client cannot be asked, the call waits here for ten
/// minutes. On a terminal each question is asked in turn; elsewhere they are listed.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  toolway approvals
  toolway approvals list --json
  toolway approvals answer 7f3a once
  toolway approvals --watch"
)]
pub(crate) struct ApprovalsArgs {
    #[command(subcommand)]
    command: Option<ApprovalsCommand>,

    /// Stay, and ask or show questions as they come, until Ctrl-C
    #[arg(long)]
    watch: bool,

    /// Print JSON, with `--watch` one object per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum ApprovalsCommand {
    /// Show the questions that wait, without asking
    List(ListApprovalsArgs),
    /// Answer one of them
    Answer(AnswerArgs),
}

#[derive(Debug, Args)]
struct ListApprovalsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct AnswerArgs {
    /// The question, or as much of its id as no other begins with
    id: String,

    /// What you say
    #[arg(value_enum)]
    answer: AnswerWord,

    /// Why not; the client is told
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// What the owner says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AnswerWord {
    /// The call runs
    Once,
    /// It runs, and later calls of this tool by the same client too
    Session,
    /// It runs, and a rule in your settings allows the tool from now on
    Always,
    /// It does not run
    No,
}

impl AnswerWord {
    /// As gateways know it.
    fn choice(self) -> &'static str {
        match self {
            Self::Once => "yes",
            Self::Session => "session",
            Self::Always => "always-tool",
            Self::No => "no",
        }
    }

    /// The word for a choice of a gateway, where there is one.
    fn of_choice(choice: &str) -> Option<&'static str> {
        Some(match choice {
            "yes" => "once",
            "session" => "session",
            "always-tool" => "always",
            "no" => "no",
            _ => return None,
        })
    }
}

/// A question, and the gateway that it waits in.
struct Waiting {
    row: QuestionRow,
    /// How much of its id tells it from the others.
    short: String,
    gateway: usize,
}

/// All questions that wait, oldest first, and the gateways.
struct AllWaiting {
    questions: Vec<Waiting>,
    gateways: Vec<OwnerClient>,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &ApprovalsArgs) -> Outcome {
    match &args.command {
        Some(ApprovalsCommand::List(list)) => connect::block_on(list_all(context, list.json)),
        Some(ApprovalsCommand::Answer(answer)) => connect::block_on(answer_one(context, answer)),
        None if args.watch => asking::watch(context, args.json),
        None if args.json || !context.output.can_ask() => {
            connect::block_on(list_all(context, args.json))
        }
        None => asking::ask_all(context),
    }
}

async fn list_all(context: &Context, json: bool) -> Outcome {
    let asked = gateways::questions(context).await?;
    let none_runs = asked.is_empty();
    let waiting = AllWaiting::of(gateways::answering(context, asked));
    if json {
        let questions = waiting.questions.into_iter().map(|it| it.row).collect();
        return context.json(&QuestionListing { questions });
    }
    if none_runs {
        gateways::say_none(context);
        return Ok(Exit::Success);
    }
    if waiting.questions.is_empty() {
        context.say("no question waits for an answer");
        return Ok(Exit::Success);
    }
    for (place, question) in waiting.questions.iter().enumerate() {
        if place > 0 {
            context.output.result("\n")?;
        }
        context.output.result(&question.listed(context))?;
    }
    Ok(Exit::Success)
}

impl AllWaiting {
    fn of(answered: Vec<(QuestionListing, OwnerClient)>) -> Self {
        let (mut questions, mut gateways) = (Vec::new(), Vec::new());
        for (gateway, (listing, client)) in answered.into_iter().enumerate() {
            gateways.push(client);
            questions.extend(listing.questions.into_iter().map(|row| Waiting {
                row,
                short: String::new(),
                gateway,
            }));
        }
        let ids: Vec<String> = questions.iter().map(|it| it.row.id.clone()).collect();
        for question in &mut questions {
            question.short = shortened(&question.row.id, &ids);
        }
        questions.sort_by(|one, other| one.row.asked_at.cmp(&other.row.asked_at));
        Self {
            questions,
            gateways,
        }
    }
}

/// As much of an id as tells it from the others.
fn shortened(id: &str, all: &[String]) -> String {
    let is_alone = |length: usize| {
        let beginning: String = id.chars().take(length).collect();
        all.iter().filter(|it| it.starts_with(&beginning)).count() < 2
    };
    let length = (SHORT..id.len()).find(|length| is_alone(*length));
    id.chars().take(length.unwrap_or(id.len())).collect()
}

impl Waiting {
    /// Who asks, since when and until when.
    fn head(&self) -> String {
        let row = &self.row;
        let ago = age::since(&row.asked_at).map(age::short);
        let left = row.expires_at.as_deref().and_then(age::until);
        let left = left.map_or_else(String::new, |left| {
            format!(", waits {} more", age::short(left))
        });
        let also = if row.put_to == "caller" {
            ", which is asked as well"
        } else {
            ""
        };
        let named = row.client.as_deref().map(|client| {
            let client = screen::name(client);
            format!(", which calls itself `{client}`")
        });
        let named = named.unwrap_or_default();
        let also = if named.is_empty() || also.is_empty() {
            also.to_owned()
        } else {
            " and is asked as well".to_owned()
        };
        format!(
            "Question {}, asked {} ago by the client `{}`{named}{also}{left}",
            self.short,
            ago.unwrap_or_default(),
            clean_line(&row.caller.shown),
        )
    }

    /// The tool that is asked about, for a sentence.
    fn subject(&self) -> String {
        let tool = self.row.tool.as_deref().unwrap_or(&self.row.kind);
        format!("`{}` of server `{}`", clean_line(tool), self.row.server)
    }

    /// The words that `toolway approvals answer` takes for it.
    fn words(&self) -> Vec<&'static str> {
        let choices = self.row.choices.iter();
        choices
            .filter_map(|choice| AnswerWord::of_choice(&choice.answer))
            .collect()
    }

    /// All of it, with what can be answered.
    fn listed(&self, context: &Context) -> String {
        let head = self.head();
        let screen = context.output.result_screen();
        let Some((text, is_cut)) = prompt::listed(&self.row, screen) else {
            return format!("{head}\n{}\n", self.of_another_kind());
        };
        let cut = if is_cut {
            "All of it is in `toolway approvals list --json`.\n"
        } else {
            ""
        };
        let (text, words) = (text.trim_end(), self.words().join("|"));
        let answer = format!("toolway approvals answer {} {words}", self.short);
        format!("{head}\n{text}\n{cut}Answer it with `{answer}`\n")
    }

    /// What is asked otherwise than whether a call may run.
    fn of_another_kind(&self) -> String {
        format!(
            "Server `{}` wants a {}; the client is asked that itself.",
            self.row.server,
            clean_line(&self.row.kind)
        )
    }

    /// What an answer means, said once it is given.
    fn said(&self, choice: &str) -> String {
        let subject = self.subject();
        let rule = self.row.choices.iter().find(|it| it.answer == choice);
        let rule = rule.and_then(|choice| choice.rule.as_deref());
        match (choice, rule) {
            ("no", _) => format!("{subject} is refused"),
            ("session", _) => format!(
                "{subject} runs, and later calls of it by `{}` in this session",
                clean_line(&self.row.caller.shown)
            ),
            (_, Some(rule)) => {
                let rule = clean_line(rule);
                format!(
                    "{subject} runs, and the rule `{rule}` in your settings allows it from now on"
                )
            }
            (_, None) => format!("{subject} runs, this once"),
        }
    }
}

async fn answer_one(context: &Context, args: &AnswerArgs) -> Outcome {
    if args.reason.is_some() && args.answer != AnswerWord::No {
        return Err(Report::usage("`--reason` goes with `no`"));
    }
    let asked = gateways::questions(context).await?;
    if asked.is_empty() {
        return Err(Report::new(Exit::Connection, "no gateway is running")
            .hint("a question ends with its gateway; see `toolway audit` for what was called"));
    }
    let mut waiting = AllWaiting::of(gateways::answering(context, asked));
    let given = GivenAnswer {
        id: args.id.trim().to_ascii_lowercase(),
        answer: args.answer.choice().into(),
        reason: args.reason.clone(),
    };
    let begins = |question: &&Waiting| question.row.id.starts_with(&given.id);
    let found: Vec<&Waiting> = waiting.questions.iter().filter(begins).collect();
    let question = match found.as_slice() {
        [question] if !given.id.is_empty() => *question,
        [] => return Err(not_waiting(context, args, &given).await?),
        several => {
            let ids: Vec<String> = several.iter().map(|it| format!("`{}`", it.short)).collect();
            return Err(Report::usage(format!(
                "several questions begin with `{}`",
                clean_line(&args.id)
            ))
            .hint(format!("say more of it: {}", ids.join(", "))));
        }
    };
    let words = question.words();
    let word = AnswerWord::of_choice(&given.answer).unwrap_or_default();
    if !words.contains(&word) {
        return Err(not_offered(question, word, &words));
    }
    let given = GivenAnswer {
        id: question.row.id.clone(),
        ..given
    };
    let said = question.said(&given.answer);
    let gateway = question.gateway;
    let Some(client) = waiting.gateways.get_mut(gateway) else {
        return Err(Report::new(Exit::Unexpected, "the gateway is gone"));
    };
    gateways::answer(client, &given).await.map_err(untaken)?;
    context.say(said);
    Ok(Exit::Success)
}

/// An answer that cannot be given to this.
fn not_offered(question: &Waiting, word: &str, words: &[&str]) -> Report {
    if words.is_empty() {
        return Report::usage(question.of_another_kind())
            .hint("see what waits for you with `toolway approvals list`");
    }
    let subject = question.subject();
    let why = match (&question.row.rule, word) {
        (Some(rule), "always") => format!(
            "`always` cannot be said of {subject}: the rule `{}` asks every time",
            clean_line(rule)
        ),
        _ => format!("`{word}` cannot be said of {subject}"),
    };
    Report::usage(why).hint(format!(
        "say {}: `toolway approvals answer {} {}`",
        words.join(", "),
        question.short,
        words.first().unwrap_or(&"no")
    ))
}

/// Why no open question has this id: a gateway may remember it.
async fn not_waiting(
    context: &Context,
    args: &AnswerArgs,
    given: &GivenAnswer,
) -> Result<Report, Report> {
    for gateway in gateways::answer_all(context, given).await? {
        if let Err(OwnerCallError::Refused { reason, .. }) = &gateway.answered
            && matches!(reason.as_deref(), Some("answered" | "ended"))
            && let Err(error) = gateway.answered
        {
            return Ok(untaken(error));
        }
    }
    let id = clean_line(&args.id);
    Ok(Report::usage(format!("no question `{id}` waits"))
        .hint("see what waits with `toolway approvals list`"))
}

/// An answer that was not taken.
fn untaken(error: OwnerCallError) -> Report {
    let report = Report::from(error);
    report.hint("see what still waits with `toolway approvals list`")
}
