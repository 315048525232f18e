//! `toolway doctor --bundle`: one text with what a report of a bug needs, without secrets.
//!
//! Owns which parts it has and that arguments and results of tools are in none. The parts are what
//! commands print, run here as they are typed, so each is redacted already; the whole is searched once
//! more for every secret that is known.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use toolway::journal::{
    JournalLine, JournalLineKind, JournalName, logged_servers, read_last, secrets_of, timestamp,
    without_secrets,
};
use toolway_config::Plan;
use toolway_types::Secret;
use toolway_types::name::shell_word;
use toolway_types::secret::parts::names_a_secret;

use crate::connect;
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};

/// Where it goes when no place is named.
pub(super) const FILE: &str = "toolway-report.md";
/// The last lines of each server's log.
const LINES: usize = 60;
/// What is kept of a part.
const PART: usize = 60_000;
/// The most servers that are told of one by one.
const SERVERS: usize = 40;

/// A part of the text.
struct Part {
    title: String,
    /// What it holds, in words.
    holds: &'static str,
    text: String,
}

/// Writes the text, or shows it.
pub(super) fn run(context: &Context, plan: &Plan, path: &Path, is_dry_run: bool) -> Outcome {
    let path = context.path(path);
    if !is_dry_run && path.symlink_metadata().is_ok() {
        let shown = path.display().to_string();
        return Err(Report::configuration(format!("`{shown}` is there already"))
            .hint("name another file: `toolway doctor --bundle <file>`"));
    }
    let parts = parts(context, plan);
    let contents: Vec<String> = parts
        .iter()
        .map(|part| format!("  {:<22}{}", part.title, part.holds))
        .collect();
    context.say(format!(
        "the report holds, without secrets, and without arguments and results of tools:\n{}",
        contents.join("\n")
    ));
    let text = whole(context, plan, &parts);
    if is_dry_run {
        context.output.result(&text)?;
        return Ok(Exit::Success);
    }
    write(&path, text.as_bytes()).map_err(|error| {
        Report::configuration(format!("cannot write `{}`: {error}", path.display()))
            .hint("name another file: `toolway doctor --bundle <file>`")
    })?;
    let word = shell_word(&path.display().to_string()).into_owned();
    context.say(format!(
        "wrote `{}` ({} KB); names of files and servers are in it: read it before you send it\n\
         hint: `less {word}`",
        path.display(),
        text.len().div_ceil(1000)
    ));
    Ok(Exit::Success)
}

/// A file for its owner alone, where nothing was.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)
}

fn parts(context: &Context, plan: &Plan) -> Vec<Part> {
    let flags = context.flags();
    let mut given = Vec::new();
    for file in &flags.mcp_config {
        given.extend(["--mcp-config".to_owned(), file.clone()]);
    }
    for server in &flags.mcp_server {
        given.extend(["--mcp-server".to_owned(), server.clone()]);
    }
    if flags.strict {
        given.push("--strict-mcp-config".to_owned());
    }
    let own = |words: &[&str]| own(context, &given, words);
    let mut parts = vec![
        Part {
            title: "Platform".to_owned(),
            holds: "version, system, variables of Toolway's by name",
            text: platform(context),
        },
        Part {
            title: "Checkup".to_owned(),
            holds: "what `toolway doctor` finds",
            text: own(&["doctor"]),
        },
        Part {
            title: "Servers".to_owned(),
            holds: "what `toolway list --cached` and `--no-connect` print",
            text: format!(
                "{}\n{}",
                own(&["list", "--cached"]),
                own(&["list", "--no-connect"])
            ),
        },
        Part {
            title: "Daemon and gateways".to_owned(),
            holds: "what `toolway daemon status` and `toolway status` print",
            text: format!("{}\n{}", own(&["daemon", "status"]), own(&["status"])),
        },
        Part {
            title: "Rules".to_owned(),
            holds: "what `toolway permissions` prints",
            text: own(&["permissions"]),
        },
        Part {
            title: "Last calls".to_owned(),
            holds: "who called which tool, and how it ended",
            text: own(&["audit", "-n", "40"]),
        },
    ];
    let mut names: Vec<&str> = plan
        .servers
        .iter()
        .map(|server| server.name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    let mut settings = String::new();
    for name in names.iter().take(SERVERS) {
        settings.push_str(&own(&["explain", "--", name]));
        settings.push('\n');
    }
    if names.len() > SERVERS {
        let _ = writeln!(settings, "and {} more servers", names.len() - SERVERS);
    }
    parts.insert(
        3,
        Part {
            title: "Settings".to_owned(),
            holds: "what `toolway explain` says of each server",
            text: settings,
        },
    );
    parts.push(Part {
        title: "Logs".to_owned(),
        holds: "the last lines of servers; of messages, what they were and how long",
        text: logs(context),
    });
    parts
}

/// What a command of ours prints, as it is typed. It starts no server.
fn own(context: &Context, given: &[String], words: &[&str]) -> String {
    let shown = format!("$ toolway {}\n", words.join(" "));
    let Ok(program) = std::env::current_exe() else {
        return shown;
    };
    let ran = Command::new(program)
        .args(words.iter().take_while(|word| **word != "--"))
        .args(given)
        .args(words.iter().skip_while(|word| **word != "--"))
        .env("NO_COLOR", "1")
        .env("TOOLWAY_DAEMON", "off")
        .current_dir(context.environment().cwd())
        .stdin(Stdio::null())
        .output();
    match ran {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            let beside = String::from_utf8_lossy(&output.stderr);
            let code = output.status.code().unwrap_or(-1);
            let end = if code == 0 {
                String::new()
            } else {
                format!("(exit code {code})\n")
            };
            format!("{shown}{said}{beside}{end}")
        }
        Err(error) => format!("{shown}{error}\n"),
    }
}

fn platform(context: &Context) -> String {
    let system = rustix::system::uname();
    let mut text = format!(
        "toolway {}\n{} {} {}\nmade {}\n",
        env!("CARGO_PKG_VERSION"),
        system.sysname().to_string_lossy(),
        system.release().to_string_lossy(),
        system.machine().to_string_lossy(),
        timestamp(SystemTime::now()),
    );
    let variables = context.environment().variables();
    let names = ["LANG", "LC_ALL", "TERM", "SHELL"];
    for name in names {
        if let Some(value) = variables.get(name) {
            let _ = writeln!(text, "{name}={value}");
        }
    }
    // What they are is somebody's own; that they are set says enough.
    let set: Vec<&str> = variables
        .keys()
        .map(String::as_str)
        .filter(|name| {
            let folded = name.to_ascii_uppercase();
            ["TOOLWAY_", "MCP_"]
                .iter()
                .any(|start| folded.starts_with(start))
                || folded.ends_with("_PROXY")
                || folded.starts_with("SSL_CERT")
        })
        .collect();
    let _ = writeln!(
        text,
        "set: {}",
        if set.is_empty() {
            "none".to_owned()
        } else {
            set.join(" ")
        }
    );
    text
}

/// The last lines of every server's log, without what messages hold.
fn logs(context: &Context) -> String {
    let folder = context.setup.files().logs();
    let mut text = String::new();
    for server in logged_servers(&folder).into_iter().take(SERVERS) {
        let _ = writeln!(text, "{server}:");
        let name = JournalName::from(&server);
        match read_last(&folder, &name, LINES, |_| true) {
            Ok(Some((lines, _))) => {
                for line in &lines {
                    let _ = writeln!(text, "  {}", shown(line));
                }
            }
            Ok(None) => {}
            Err(error) => drop(writeln!(text, "  {error}")),
        }
    }
    text
}

/// A line of a log. Of a message, only its kind and its size: what it holds is the user's.
fn shown(line: &JournalLine) -> String {
    let said = match line.kind {
        JournalLineKind::Stderr | JournalLineKind::Note => line.text.clone(),
        JournalLineKind::Sent | JournalLineKind::Received => kind_of(&line.text),
    };
    format!(
        "{} {} {} {said}",
        line.time,
        line.process,
        line.kind.as_str()
    )
}

/// What a message is, as far as its beginning says so: it may be cut.
fn kind_of(text: &str) -> String {
    let size = text.len();
    let after = |name: &str| {
        let at = text.find(&format!("\"{name}\":"))? + name.len() + 3;
        let value = text[at..].trim_start();
        let value = match value.strip_prefix('"') {
            Some(text) => text.split('"').next(),
            None => value.split([',', '}', ' ']).next(),
        };
        value.map(|value| value.chars().take(60).collect::<String>())
    };
    let is_plain = |word: &String| {
        word.bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"/_-.".contains(&it))
    };
    let before_values = text.find("\"params\"").or_else(|| text.find("\"result\""));
    let method = after("method").filter(|_| {
        // A method named inside a result is somebody's word.
        before_values.is_none_or(|at| text.find("\"method\"").is_some_and(|it| it < at))
    });
    let id = after("id").filter(is_plain).map(|id| format!(" {id}"));
    let what = match method.filter(is_plain) {
        Some(method) => method,
        None if text.contains("\"error\":") && !text.contains("\"result\":") => {
            let code = after("code").filter(is_plain).unwrap_or_default();
            format!("error {code}")
        }
        None => "answer".to_owned(),
    };
    format!(
        "{what}{} ({size} bytes shown in the log)",
        id.unwrap_or_default()
    )
}

/// All parts as one text, searched for secrets once more.
fn whole(context: &Context, plan: &Plan, parts: &[Part]) -> String {
    let secrets = known(context, plan);
    let mut text = String::from("# Report of Toolway\n\nIn it:\n\n");
    for part in parts {
        let _ = writeln!(text, "- {}: {}", part.title, part.holds);
    }
    text.push_str(
        "\nNot in it: secrets, as far as they are known; arguments and results of tools; what messages \
         hold.\n",
    );
    for part in parts {
        let body = without_secrets(&part.text, &secrets);
        // The last lines say most.
        let cut = body.len().saturating_sub(PART);
        let cut = body.ceil_char_boundary(cut);
        let mark = if cut > 0 { "…\n" } else { "" };
        let fence = fence(&body);
        let _ = write!(
            text,
            "\n## {}\n\n{fence}text\n{mark}{}\n{fence}\n",
            part.title,
            body[cut..].trim_end()
        );
    }
    text
}

/// A fence that the text does not hold.
fn fence(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    fence
}

/// Every secret that can be known without asking anybody.
fn known(context: &Context, plan: &Plan) -> Vec<Secret> {
    let mut known: Vec<Secret> = plan
        .admitted()
        .flat_map(|(_, spec)| secrets_of(spec))
        .collect();
    let variables = context.environment().variables().into_iter();
    let named = variables.filter(|(name, _)| names_a_secret(name));
    known.extend(named.map(|(_, value)| Secret::new(value)));
    let kept = connect::block_on(async {
        let vault = connect::vault(context);
        let mut kept = Vec::new();
        for listed in vault.list().await? {
            // One that cannot be read can stand nowhere.
            if let Ok(Some(secret)) = vault.read(&listed.key).await {
                kept.push(secret);
            }
        }
        Ok(kept)
    });
    known.extend(kept.unwrap_or_default());
    known
}
