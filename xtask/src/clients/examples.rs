//! The examples of `docs/packages.md`, as files that can be run.
//!
//! Owns taking them out of the page. Each begins with a comment that names its file; a block of
//! `text` right after one is what it prints, which the packages' tests hold it to.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

const PAGE: &str = "docs/packages.md";

/// Whose examples.
#[derive(Clone, Copy)]
pub(super) enum Language {
    Python,
    TypeScript,
}

impl Language {
    fn fence(self) -> &'static str {
        match self {
            Self::Python => "```python",
            Self::TypeScript => "```ts",
        }
    }

    fn comment(self) -> &'static str {
        match self {
            Self::Python => "# ",
            Self::TypeScript => "// ",
        }
    }
}

/// An example and what it prints.
#[derive(Debug, PartialEq)]
struct Example {
    name: String,
    code: String,
    output: Option<String>,
}

/// Writes all of one language into a folder.
pub(super) fn write(workspace: &Workspace, language: Language, folder: &Path) -> Result<()> {
    let page = fs::read_to_string(workspace.path(PAGE))
        .with_context(|| format!("`{PAGE}` cannot be read"))?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
    let found = examples(&page, language)?;
    if found.is_empty() {
        bail!("`{PAGE}` has no examples in {}", language.fence());
    }
    for example in found {
        let file = folder.join(&example.name);
        fs::write(&file, example.code)
            .with_context(|| format!("cannot write `{}`", file.display()))?;
        if let Some(output) = example.output {
            fs::write(file.with_extension("out"), output)
                .with_context(|| format!("cannot write what `{}` prints", file.display()))?;
        }
    }
    Ok(())
}

fn examples(page: &str, language: Language) -> Result<Vec<Example>> {
    let mut found: Vec<Example> = Vec::new();
    let mut lines = page.lines();
    // Whether nothing but empty lines came since the last example.
    let mut follows = false;
    while let Some(line) = lines.next() {
        let is_example = line == language.fence();
        let is_output = line == "```text" && follows;
        if !line.starts_with("```") {
            follows &= line.is_empty();
            continue;
        }
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let text: String = body.iter().flat_map(|line| [*line, "\n"]).collect();
        follows = is_example;
        if is_example {
            let first = body.first().copied().unwrap_or_default();
            let name = first
                .strip_prefix(language.comment())
                .filter(|name| name.contains('.') && !name.contains([' ', '/']))
                .with_context(|| {
                    format!("an example in `{PAGE}` begins with no comment that names its file")
                })?;
            found.push(Example {
                name: name.to_owned(),
                code: text,
                output: None,
            });
        } else if is_output && let Some(example) = found.last_mut() {
            example.output = Some(text);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_taken_with_what_they_print() {
        let page = "Words.\n\n```python\n# a.py\nprint(1)\n```\n\n```text\n1\n```\n\n```ts\n// a.ts\n```\n\n```python\n# b.py\n```\nWords between.\n\n```text\nno output\n```\n";
        let example = |name: &str, code: &str, output: Option<&str>| Example {
            name: name.to_owned(),
            code: code.to_owned(),
            output: output.map(str::to_owned),
        };
        assert_eq!(
            examples(page, Language::Python).unwrap(),
            [
                example("a.py", "# a.py\nprint(1)\n", Some("1\n")),
                example("b.py", "# b.py\n", None),
            ]
        );
        assert_eq!(
            examples(page, Language::TypeScript).unwrap(),
            [example("a.ts", "// a.ts\n", None)]
        );
    }

    #[test]
    fn an_example_without_a_name_is_told() {
        assert!(examples("```python\nprint(1)\n```\n", Language::Python).is_err());
    }
}
