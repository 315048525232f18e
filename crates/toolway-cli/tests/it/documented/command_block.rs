//! What README, docs and help tell people to type: the commands, and what they are said to print.

use std::fs;
use std::path::Path;

use toolway_testkit::peers::workspace;

/// Commands that stand together, to be typed one after the other.
#[derive(Debug)]
pub(crate) struct CommandBlock {
    /// Where, for whoever has to mend it.
    pub(crate) place: String,
    pub(crate) commands: Vec<Documented>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Documented {
    pub(crate) line: String,
    /// What it prints; nothing where the page does not say.
    pub(crate) output: String,
}

impl CommandBlock {
    /// Of README and docs: `console` and `sh` blocks, and blocks of no language that begin with
    /// our name. Scripts are not typed.
    pub(crate) fn of_pages() -> Vec<Self> {
        let root = workspace();
        let mut pages: Vec<_> = fs::read_dir(root.join("docs"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|it| it == "md"))
            .filter(|path| !path.ends_with("cli.md"))
            .collect();
        pages.push(root.join("README.md"));
        pages.sort();
        pages.iter().flat_map(|page| Self::of_page(page)).collect()
    }

    fn of_page(path: &Path) -> Vec<Self> {
        let text = fs::read_to_string(path).unwrap();
        let name = path.strip_prefix(workspace()).unwrap().display();
        let mut blocks = Vec::new();
        let mut lines = text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let Some(language) = line.strip_prefix("```") else {
                continue;
            };
            let block: Vec<&str> = lines
                .by_ref()
                .map(|(_, line)| line)
                .take_while(|line| *line != "```")
                .collect();
            let commands = match language {
                "console" => console(&block),
                "sh" => typed(&block),
                "" if block.iter().any(|line| line.starts_with("toolway ")) => typed(&block),
                _ => continue,
            };
            if block[0].starts_with("#!") {
                continue;
            }
            blocks.push(CommandBlock {
                place: format!("{name}:{}", number + 1),
                commands,
            });
        }
        blocks
    }

    /// The examples that the help of each command ends with, as its page has them.
    pub(crate) fn of_help() -> Vec<Self> {
        let text = fs::read_to_string(workspace().join("docs/cli.md")).unwrap();
        let (mut blocks, mut section) = (Vec::new(), "");
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(title) = line.strip_prefix("## ") {
                section = title;
            }
            if line != "Examples:" && line != "Example:" {
                continue;
            }
            let examples: Vec<&str> = lines
                .by_ref()
                .map_while(|line| line.strip_prefix("  "))
                .collect();
            blocks.push(CommandBlock {
                place: format!("the help of {section}"),
                commands: typed(&examples),
            });
        }
        blocks
    }
}

fn console(block: &[&str]) -> Vec<Documented> {
    let mut commands: Vec<Documented> = Vec::new();
    for line in block {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(line), _) => commands.push(Documented {
                line: line.to_owned(),
                output: String::new(),
            }),
            (None, Some(last)) => last.output.extend([line, "\n"]),
            (None, None) => panic!("`{line}` stands before any command"),
        }
    }
    for command in &mut commands {
        command.output = command.output.trim_end().to_owned();
    }
    commands
}

fn typed(block: &[&str]) -> Vec<Documented> {
    let lines = block.iter().filter(|line| !line.is_empty());
    lines
        .map(|line| Documented {
            line: (*line).to_owned(),
            output: String::new(),
        })
        .collect()
}
