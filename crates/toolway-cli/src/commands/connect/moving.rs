//! The servers that a client has by itself, on their way behind Toolway.
//!
//! Owns which of them can move, and the question. How they are translated and added is `import`'s.

use toolway_config::check_definition;
use toolway_config::connect::{ClientReading, ClientTarget, MovedServer};
use toolway_config::import::ImportClient;
use toolway_types::text::{TextKind, counted, legible};
use toolway_types::{Scope, ServerName, Severity};
use unicode_width::UnicodeWidthStr as _;

use crate::commands::import::preview::added;
use crate::commands::import::{Candidate, Fate, add, offered};
use crate::context::Context;
use crate::report::Report;
use crate::screen::{Sheet, name};

pub(super) struct MovingServers<'a> {
    candidates: Vec<Candidate<'a>>,
}

impl<'a> MovingServers<'a> {
    /// What becomes of each server of a client's file. What policy refuses stays with the client.
    pub(super) fn of(context: &Context, target: &ClientTarget, reading: &'a ClientReading) -> Self {
        let environment = context.environment();
        // A file that Toolway itself reads has nothing to move.
        let is_ours = environment.settings_file(Scope::Project).as_ref() == Some(&target.path);
        if is_ours || reading.file.servers.is_empty() {
            return Self {
                candidates: Vec::new(),
            };
        }
        let mut candidates = offered(context.plan(), &reading.file);
        for candidate in &mut candidates {
            let Fate::Add(target) = candidate.fate else {
                continue;
            };
            let Ok(name) = ServerName::new(candidate.server.name.as_str()) else {
                continue;
            };
            let definition = &candidate.server.definition;
            let findings = check_definition(environment, &name, definition, target.scope());
            let mut faults = findings.iter().filter(|it| it.severity == Severity::Error);
            if let Some(fault) = faults.next() {
                candidate.fate = Fate::Skip(fault.message.clone());
            }
        }
        Self { candidates }
    }

    /// Whether any can move.
    pub(super) fn any(&self) -> bool {
        self.candidates.iter().any(can_move)
    }

    /// How many there are, and the command that moves them.
    pub(super) fn staying(&self, command: &str) -> String {
        let all = self.candidates.len();
        let (stays, them) = match all {
            1 => ("stays", "it"),
            _ => ("stay", "them"),
        };
        let movable = self.candidates.iter().filter(|it| can_move(it)).count();
        let moved = if movable == all {
            them.to_owned()
        } else {
            format!("{movable} of them")
        };
        let all = counted(all, "server");
        format!("{all} {stays} there beside it; `{command}` moves {moved} behind Toolway")
    }

    /// How many of them move.
    pub(super) fn heading(&self, moved: usize) -> String {
        let all = self.candidates.len();
        let verb = if moved == 1 { "moves" } else { "move" };
        if moved == all {
            format!("{} {verb} behind Toolway:", counted(all, "server"))
        } else {
            format!(
                "{moved} of {} {verb} behind Toolway:",
                counted(all, "server")
            )
        }
    }

    /// Those that can move, as the client has them.
    pub(super) fn taken(&self, reading: &ClientReading) -> Vec<MovedServer> {
        let movable = self.candidates.iter().filter(|it| can_move(it));
        movable.filter_map(|it| reading.moved(it.server)).collect()
    }

    /// A row for each, and what is lost of it.
    pub(super) fn rows(&self, sheet: &mut Sheet) {
        let names = self
            .candidates
            .iter()
            .map(|it| name(&it.server.name).width());
        let width = names.max().unwrap_or_default();
        for candidate in &self.candidates {
            let name = name(&candidate.server.name);
            let name = format!("{name}{}", " ".repeat(width.saturating_sub(name.width())));
            let words = |text: &str| legible(text, TextKind::Prose);
            match &candidate.fate {
                Fate::Add(_) => added(sheet, &format!("  + {name}  "), candidate),
                Fate::Same(why) => sheet.row(&format!("  = {name}  {}", words(why))),
                Fate::Skip(why) => sheet.row(&format!("  - {name}  stays: {}", words(why))),
                Fate::LeaveOut(why) => {
                    sheet.row(&format!("  - {name}  stays: {}", words(&why.to_string())));
                }
            }
        }
    }

    /// Asks whether they are to move.
    pub(super) fn ask(&self, context: &Context, client: ImportClient) -> Result<bool, Report> {
        let mut sheet = context.output.screen().sheet();
        let count = counted(self.candidates.len(), "server");
        let are = if self.candidates.len() == 1 {
            "is"
        } else {
            "are"
        };
        sheet.row(&format!("{count} {are} configured in {}:", client.title()));
        self.rows(&mut sheet);
        let them = if self.candidates.len() == 1 {
            "it"
        } else {
            "them"
        };
        Ok(context.output.lay_before(&sheet.finish())?
            && context
                .output
                .confirm(&format!("Move {them} behind Toolway?"))?)
    }

    /// Adds those that move to Toolway's own settings.
    pub(super) fn import(&self, context: &Context) -> Result<(), Report> {
        for candidate in &self.candidates {
            if let Fate::Add(target) = candidate.fate {
                match add(context, candidate, target) {
                    // Another run may have done the same in the meantime.
                    Err(_) if is_there(context, candidate) => {}
                    done => done?,
                }
            }
        }
        Ok(())
    }
}

fn can_move(candidate: &Candidate<'_>) -> bool {
    matches!(candidate.fate, Fate::Add(_) | Fate::Same(_))
}

fn is_there(context: &Context, candidate: &Candidate<'_>) -> bool {
    let plan = context.setup.plan();
    let server = candidate.server;
    let mut named = plan
        .servers
        .iter()
        .filter(|it| it.name.as_str() == server.name);
    named.any(|it| it.definition == server.definition)
}
