//! `cargo xtask figures`: the shape of the product in numbers, counted from its source.
//!
//! Owns the tables, in Markdown. It counts and never judges: what may not grow is a rule of `tidy`.
//! How the program is timed is `bench`'s.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};

use crate::bench;
use crate::shape::{Crate, Cycle, Graph, Level, Lines, Names, Shape, Usage};
use crate::tree::Tree;
use crate::workspace::Workspace;

/// How many places of one use are shown.
const MOST_PLACES: usize = 6;

/// What is counted.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Show the cycles of one crate, and the uses without which there would be none
    #[arg(long, value_name = "CRATE")]
    cycles: Option<String>,

    /// Show every name that stands for two or more types
    #[arg(long)]
    names: bool,

    /// Build the program and time its start and a call beside their floors too
    #[arg(long)]
    build: bool,
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let shape = Shape::read(&Tree::read(workspace)?)?;
    if let Some(name) = &options.cycles {
        let found = shape.crates.iter().find(|one| one.name == *name);
        let found = found.with_context(|| {
            let names: Vec<_> = shape.crates.iter().map(|one| one.name.as_str()).collect();
            format!("there is no crate `{name}`: one of {}", names.join(", "))
        })?;
        print!("{}", cycles(found));
        return Ok(());
    }
    if options.names {
        print!("{}", ambiguous(&shape.names()));
        return Ok(());
    }
    print!("{}", summary(&shape));
    let timed = options.build.then(|| bench::startup_table(workspace));
    let timed = timed.transpose()?;
    if let Some(binary) = workspace.released_binary() {
        let bytes = fs::metadata(&binary)
            .with_context(|| format!("`{}` cannot be looked at", binary.display()))?
            .len();
        println!("\nThe program: {} MB.", tenths(bytes, 1_000_000));
    }
    if let Some(timed) = timed {
        print!("\n{timed}");
    }
    Ok(())
}

/// The figures of all crates together, and of each.
fn summary(shape: &Shape) -> String {
    let names = shape.names();
    let lines: Lines = shape.crates.iter().map(Crate::lines).sum();
    let files: usize = shape.crates.iter().map(|one| one.files.len()).sum();
    let (definitions, ambiguous) = (names.definitions(), names.ambiguous_definitions());
    let mut text = String::from("| figure | count |\n|---|---|\n");
    let mut figure = |what: &str, count: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {what} | {count} |");
    };
    figure("lines of product", lines.all.to_string());
    figure("of them neither blank nor comment", lines.code.to_string());
    figure("files", files.to_string());
    figure("type definitions", definitions.to_string());
    figure(
        "names that stand for two or more types",
        names.ambiguous().count().to_string(),
    );
    figure(
        "types with such a name",
        format!("{ambiguous} ({})", percent(ambiguous, definitions)),
    );
    figure(
        "names that are `pub` twice",
        names.public_twice().len().to_string(),
    );
    text.push_str(
        "\nCycles: how many modules each has. Deeper: modules in cycles among the modules below \
         one module; in brackets when what that module defines itself takes part, which alone \
         `tidy` does not refuse.\n\n\
         | crate | files | lines | code | types | modules | top-level | cycles | deeper |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for one in &shape.crates {
        let usages = one.usages();
        let lines = one.lines();
        let deeper = |level| -> usize {
            let graphs = one.deeper(level, &usages);
            graphs.iter().map(|(_, graph)| graph.in_cycles()).sum()
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} ({}) |",
            one.name,
            one.files.len(),
            lines.all,
            lines.code,
            one.types().count(),
            one.modules(),
            one.top_level(),
            sizes(&one.graph(&usages).cycles()),
            deeper(Level::Siblings),
            deeper(Level::WithParent),
        );
    }
    text
}

fn sizes(cycles: &[Cycle]) -> String {
    let sizes: Vec<String> = cycles
        .iter()
        .map(|it| it.members.len().to_string())
        .collect();
    if sizes.is_empty() {
        return "0".to_owned();
    }
    sizes.join(" + ")
}

fn percent(part: usize, whole: usize) -> String {
    format!("{} %", tenths(part as u64 * 100, whole as u64))
}

/// With one decimal.
fn tenths(part: u64, whole: u64) -> String {
    let tenths = (part * 10 + whole / 2).checked_div(whole).unwrap_or(0);
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// Every cycle of a crate, first among its top-level modules, then below each.
fn cycles(one: &Crate) -> String {
    let usages = one.usages();
    let mut text = format!("# Cycles of {}\n", one.name);
    show(&mut text, "top-level modules", &one.graph(&usages));
    for (parent, graph) in one.deeper(Level::Siblings, &usages) {
        show(&mut text, &format!("modules below `{parent}`"), &graph);
    }
    text
}

fn show(text: &mut String, among: &str, graph: &Graph) {
    for cycle in graph.cycles() {
        let upwards = graph.upwards(&cycle);
        let _ = write!(
            text,
            "\n## {} {among}\n\nLowest first: {}. There is no cycle without these uses:\n",
            cycle.members.len(),
            cycle.members.join(" < ")
        );
        for (from, to) in upwards {
            let _ = writeln!(text, "\n- {from} → {to}");
            for (item, places) in by_item(graph.usages(from, to)) {
                let more = places.len().saturating_sub(MOST_PLACES);
                let shown: Vec<&str> = places
                    .iter()
                    .take(MOST_PLACES)
                    .map(String::as_str)
                    .collect();
                let more = if more > 0 {
                    format!(" and {more} more")
                } else {
                    String::new()
                };
                let _ = writeln!(text, "  - `{item}`: {}{more}", shown.join(", "));
            }
        }
    }
}

/// What is used, and where.
fn by_item(usages: &[Usage]) -> BTreeMap<&str, Vec<String>> {
    let mut items = BTreeMap::<&str, Vec<String>>::new();
    for usage in usages {
        let place = format!("{}:{}", usage.file, usage.line);
        let places = items.entry(&usage.item).or_default();
        if !places.contains(&place) {
            places.push(place);
        }
    }
    items
}

/// Each name that stands for two or more types, with where they are defined.
fn ambiguous(names: &Names<'_>) -> String {
    let mut names: Vec<_> = names.ambiguous().collect();
    names.sort_by_key(|(_, types)| std::cmp::Reverse(types.len()));
    let mut text = String::from("| name | types | where |\n|---|---|---|\n");
    for (name, types) in names {
        let places: Vec<String> = types
            .iter()
            .map(|it| {
                let public = if it.is_public { " (pub)" } else { "" };
                format!("{}:{}{public}", it.file, it.line)
            })
            .collect();
        let _ = writeln!(
            text,
            "| `{name}` | {} | {} |",
            types.len(),
            places.join(", ")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape::read(&Tree::of([
            ("crates/x/src/lib.rs", "//! X.\n\nmod a;\nmod b;\n"),
            ("crates/x/src/a.rs", "use crate::b::{Line, Other};\n"),
            (
                "crates/x/src/b.rs",
                "pub struct Line;\npub struct Other;\nfn f() { crate::a::g() }\n",
            ),
            ("crates/y/src/main.rs", "pub struct Line;\n"),
        ]))
        .unwrap()
    }

    #[test]
    fn the_tables_show_lines_names_and_cycles() {
        let text = summary(&shape());
        for row in [
            "| lines of product | 9 |",
            "| of them neither blank nor comment | 7 |",
            "| types with such a name | 2 (66.7 %) |",
            "| names that are `pub` twice | 1 |",
            "| x | 3 | 8 | 6 | 2 | 3 | 2 | 2 | 0 (0) |",
            "| y | 1 | 1 | 1 | 1 | 1 | 0 | 0 | 0 (0) |",
        ] {
            assert!(text.lines().any(|line| line == row), "{row}\n{text}");
        }
    }

    #[test]
    fn a_cycle_is_shown_with_the_place_of_the_use_that_closes_it() {
        let text = cycles(&shape().crates[0]);
        assert!(text.contains("Lowest first: b < a."), "{text}");
        let edge = "- b → a\n  - `g`: crates/x/src/b.rs:3\n";
        assert!(text.ends_with(edge), "{text}");
    }

    #[test]
    fn an_ambiguous_name_is_shown_with_its_places() {
        let text = ambiguous(&shape().names());
        let row = "| `Line` | 2 | crates/x/src/b.rs:1 (pub), crates/y/src/main.rs:1 (pub) |\n";
        assert!(text.ends_with(row), "{text}");
    }
}
