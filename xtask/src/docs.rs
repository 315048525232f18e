//! `cargo xtask docs`: the documents that the program writes about itself.
//!
//! Owns which files below `docs/` are generated and how drift is shown. What stands in most of them
//! belongs to the CLI: its hidden command `generate-docs <dir>` writes them. The page of limits is
//! `docs/limits.rs`.

mod limits;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::command;
use crate::workspace::{Profile, Workspace};

/// The page of limits.
const LIMITS: &str = "limits.md";

/// Lines shown of each file that drifted.
const SHOWN: usize = 12;

/// Write or compare.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write nothing; fail if a generated document is not what the program says today
    #[arg(long)]
    pub(crate) check: bool,
}

/// Generated documents by their path below `docs/`.
type Documents = BTreeMap<String, String>;

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    println!(
        "\n$ cargo xtask docs{}",
        if options.check { " --check" } else { "" }
    );
    let binary = workspace.build_binary(Profile::Debug)?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let output = Command::new(&binary)
        .arg("generate-docs")
        .arg(folder.path())
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `{}`", binary.display()))?;
    if !output.status.success() {
        bail!(
            "`toolway generate-docs` failed ({}): {}",
            command::describe(output.status),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let mut generated = read(folder.path())?;
    let source = fs::read_to_string(workspace.path(limits::SOURCE))
        .with_context(|| format!("cannot read `{}`", limits::SOURCE))?;
    generated.insert(LIMITS.to_owned(), limits::page(&source)?);
    for expected in ["cli.md", "config.schema.json"] {
        if !generated.contains_key(expected) {
            bail!("`toolway generate-docs` wrote no `{expected}`");
        }
    }
    let docs = workspace.path("docs");
    let present = read(&docs)?;
    if options.check {
        check(&present, &generated)
    } else {
        write(&docs, &present, &generated)
    }
}

/// The generated documents in a folder; everything else there is written by hand.
fn read(folder: &Path) -> Result<Documents> {
    let mut documents = Documents::new();
    for name in ["cli.md", "config.schema.json", LIMITS] {
        if let Ok(text) = fs::read_to_string(folder.join(name)) {
            documents.insert(name.to_owned(), text);
        }
    }
    if let Ok(entries) = fs::read_dir(folder.join("man")) {
        for entry in entries {
            let path = entry.context("cannot list the man pages")?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            if path.extension().is_some_and(|extension| extension == "1") {
                let text = fs::read_to_string(&path)
                    .with_context(|| format!("cannot read `{}`", path.display()))?;
                documents.insert(format!("man/{name}"), text);
            }
        }
    }
    Ok(documents)
}

fn check(present: &Documents, generated: &Documents) -> Result<()> {
    let drifted = drift(present, generated);
    for difference in &drifted {
        eprintln!("{difference}");
    }
    if drifted.is_empty() {
        println!("docs: {} generated files are up to date", generated.len());
        Ok(())
    } else {
        bail!(
            "{} generated documents have drifted: run `cargo xtask docs` and commit the result",
            drifted.len()
        )
    }
}

fn write(docs: &Path, present: &Documents, generated: &Documents) -> Result<()> {
    for gone in present.keys().filter(|name| !generated.contains_key(*name)) {
        fs::remove_file(docs.join(gone)).with_context(|| format!("cannot remove `docs/{gone}`"))?;
        println!("removed docs/{gone}");
    }
    fs::create_dir_all(docs.join("man")).context("cannot create `docs/man`")?;
    for (name, text) in generated {
        if present.get(name) != Some(text) {
            fs::write(docs.join(name), text)
                .with_context(|| format!("cannot write `docs/{name}`"))?;
            println!("wrote docs/{name}");
        }
    }
    println!("docs: {} generated files", generated.len());
    Ok(())
}

/// One readable difference for each document that is missing, superfluous or changed.
fn drift(present: &Documents, generated: &Documents) -> Vec<String> {
    let mut differences = Vec::new();
    for (name, wanted) in generated {
        match present.get(name) {
            Some(found) if found == wanted => {}
            Some(found) => differences.push(format!("docs/{name}:\n{}", diff(found, wanted))),
            None => differences.push(format!("docs/{name}: is missing")),
        }
    }
    let superfluous = present.keys().filter(|name| !generated.contains_key(*name));
    differences.extend(superfluous.map(|name| format!("docs/{name}: is no longer generated")));
    differences
}

/// The first lines from where the two part: `-` as committed, `+` as generated.
fn diff(found: &str, wanted: &str) -> String {
    let (found, wanted): (Vec<_>, Vec<_>) = (found.lines().collect(), wanted.lines().collect());
    let same = found
        .iter()
        .zip(&wanted)
        .take_while(|(left, right)| left == right)
        .count();
    if same == found.len() && same == wanted.len() {
        return "  (only the line endings differ)".to_owned();
    }
    let mut lines = vec![format!("  from line {}:", same + 1)];
    for (sign, side) in [('-', &found), ('+', &wanted)] {
        lines.extend(
            side[same..]
                .iter()
                .take(SHOWN / 2)
                .map(|line| format!("  {sign} {line}")),
        );
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents<const N: usize>(files: [(&str, &str); N]) -> Documents {
        files
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .into()
    }

    #[test]
    fn equal_documents_have_no_drift() {
        let same = documents([("cli.md", "a\n"), ("man/toolway.1", "b\n")]);
        assert_eq!(drift(&same, &same), [""; 0]);
        check(&same, &same).unwrap();
    }

    #[test]
    fn a_changed_document_shows_where_it_parts() {
        let present = documents([("cli.md", "one\ntwo\nthree\n")]);
        let generated = documents([("cli.md", "one\n2\nthree\n")]);
        assert_eq!(
            drift(&present, &generated),
            ["docs/cli.md:\n  from line 2:\n  - two\n  - three\n  + 2\n  + three"]
        );
        assert!(check(&present, &generated).is_err());
    }

    #[test]
    fn missing_and_superfluous_documents_are_drift() {
        let present = documents([("man/toolway-old.1", "")]);
        let generated = documents([("cli.md", "")]);
        assert_eq!(
            drift(&present, &generated),
            [
                "docs/cli.md: is missing",
                "docs/man/toolway-old.1: is no longer generated"
            ]
        );
    }

    #[test]
    fn writing_makes_the_folder_match_and_leaves_other_files_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("man")).unwrap();
        fs::write(folder.path().join("man/toolway-old.1"), "old").unwrap();
        fs::write(folder.path().join("guide.md"), "by hand").unwrap();
        let generated = documents([("cli.md", "new\n"), ("man/toolway.1", "page\n")]);
        write(folder.path(), &read(folder.path()).unwrap(), &generated).unwrap();
        assert_eq!(read(folder.path()).unwrap(), generated);
        assert!(folder.path().join("guide.md").exists());
    }
}
