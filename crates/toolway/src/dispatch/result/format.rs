//! What a long text is, and how to read it from a file in parts.
//!
//! Owns telling formats apart and the commands that an answer suggests. A command is made of our
//! own path, numbers we counted and plain names only: no word of a server that a shell could
//! understand ever enters one.

use std::path::Path;

use toolway_types::name::shell_word;

use super::media::MediaKind;
use super::outline::{Outline, outline, outline_lines};

/// How many bytes one command should give at most.
const STEP: usize = 20_000;
/// A line longer than this is not for line tools.
const LONG_LINE: usize = 2_000;

/// The format of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TextFormat {
    /// One JSON value.
    Json(Outline),
    /// One JSON value a line.
    JsonLines(Outline),
    /// XML.
    Xml,
    /// Comma-separated values, by the server's word.
    Csv,
    /// Markdown, by the server's word.
    Markdown,
    /// Anything else.
    Text,
}

impl TextFormat {
    /// Tells a text's format; the server's word counts only where the text itself says nothing.
    pub(crate) fn of(text: &str, mime_type: Option<&str>) -> Self {
        let start = text.trim_start();
        if start.starts_with(['{', '[', '"'])
            && let Some(found) = outline(text)
        {
            return TextFormat::Json(found);
        }
        if start.starts_with(['{', '['])
            && let Some(found) = outline_lines(text)
        {
            return TextFormat::JsonLines(found);
        }
        if start.starts_with("<?xml") {
            return TextFormat::Xml;
        }
        match MediaKind::of(mime_type).mime_type {
            "application/xml" => TextFormat::Xml,
            "text/csv" => TextFormat::Csv,
            "text/markdown" => TextFormat::Markdown,
            _ => TextFormat::Text,
        }
    }

    /// Its name for people and models.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            TextFormat::Json(_) => "JSON",
            TextFormat::JsonLines(_) => "JSON lines",
            TextFormat::Xml => "XML",
            TextFormat::Csv => "CSV",
            TextFormat::Markdown => "Markdown",
            TextFormat::Text => "plain text",
        }
    }

    /// The kind of file it becomes.
    pub(crate) fn kind(&self) -> MediaKind {
        MediaKind::of(Some(match self {
            TextFormat::Json(_) => "application/json",
            TextFormat::JsonLines(_) => "application/jsonl",
            TextFormat::Xml => "application/xml",
            TextFormat::Csv => "text/csv",
            TextFormat::Markdown => "text/markdown",
            TextFormat::Text => "text/plain",
        }))
    }

    /// The outline, where there is a structure.
    pub(crate) fn outline(&self) -> Option<&str> {
        match self {
            TextFormat::Json(found) | TextFormat::JsonLines(found) => Some(&found.text),
            _ => None,
        }
    }

    /// Commands that read the file in parts, each ready to run.
    pub(crate) fn recipes(&self, path: &Path, text: &str) -> Vec<String> {
        let path = path.to_string_lossy();
        let file = shell_word(&path);
        let lines = LineLayout::count(text);
        let mut recipes = Vec::new();
        match self {
            TextFormat::Json(found) => {
                if let Some((way, len)) = &found.longest {
                    let whole = if way == "." {
                        "length".to_owned()
                    } else {
                        format!("{way} | length")
                    };
                    recipes.push(format!("jq '{whole}' {file}"));
                    let some = (*len).min(10);
                    recipes.push(format!("jq -c '{way}[0:{some}]' {file} | head -c {STEP}"));
                }
                recipes.push(format!("jq -r . {file} | head -c {STEP}"));
            }
            TextFormat::JsonLines(_) => {
                recipes.push(format!("wc -l {file}"));
                recipes.push(format!("sed -n '1,10p' {file} | head -c {STEP}"));
                recipes.push(format!("jq -c . {file} | head -c {STEP}"));
            }
            TextFormat::Xml | TextFormat::Csv | TextFormat::Markdown | TextFormat::Text => {
                if lines.longest <= LONG_LINE && lines.count > 1 {
                    let step = (STEP * lines.count / text.len().max(1)).clamp(1, 1_000);
                    recipes.push(format!("sed -n '1,{step}p' {file}"));
                    recipes.push(format!("sed -n '{},{}p' {file}", step + 1, step * 2));
                    recipes.push(format!("grep -n -i 'WORD' {file} | head -n 50"));
                    return recipes;
                }
            }
        }
        recipes.push(format!("head -c {STEP} {file}"));
        recipes.push(format!("tail -c +{} {file} | head -c {STEP}", STEP + 1));
        recipes
    }
}

/// How a text divides into lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineLayout {
    /// How many there are.
    pub(crate) count: usize,
    /// How many bytes the longest has.
    pub(crate) longest: usize,
}

impl LineLayout {
    /// Counts them.
    pub(crate) fn count(text: &str) -> Self {
        let mut lines = LineLayout {
            count: 0,
            longest: 0,
        };
        for line in text.split_inclusive('\n') {
            lines.count += 1;
            lines.longest = lines.longest.max(line.trim_end_matches('\n').len());
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_tells_its_format_before_the_server_does() {
        for (text, mime_type, name) in [
            (r#"{"a": 1}"#, Some("text/plain"), "JSON"),
            ("[1]\n", None, "JSON"),
            ("\"text\"", None, "JSON"),
            ("{\"a\": 1}\n{\"a\": 2}\n", None, "JSON lines"),
            ("{\"a\": 1}\nno\n", Some("application/json"), "plain text"),
            ("<?xml version=\"1.0\"?><a/>", None, "XML"),
            ("a,b\n1,2\n", Some("text/csv"), "CSV"),
            ("a,b\n1,2\n", None, "plain text"),
            ("# Head", Some("text/markdown; charset=utf-8"), "Markdown"),
            ("12", None, "plain text"),
        ] {
            assert_eq!(TextFormat::of(text, mime_type).name(), name, "{text}");
        }
    }

    #[test]
    fn every_recipe_reads_a_part_of_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let long = "w".repeat(50_000);
        let items: Vec<_> = (0..3_000).map(|id| serde_json::json!({"id": id})).collect();
        let texts = [
            serde_json::json!({ "items": items }).to_string(),
            serde_json::json!(items).to_string(),
            serde_json::json!(long).to_string(),
            "{\"a\": 1}\n".repeat(5_000),
            "a line of text with a word\n".repeat(4_000),
            long.clone(),
            format!("short\n{long}\n"),
            "<?xml version=\"1.0\"?>\n".to_owned() + &"<a/>\n".repeat(9_000),
        ];
        for text in texts {
            let format = TextFormat::of(&text, None);
            let name = format!("it's a $(file).{}", format.kind().extension);
            let path = directory.path().join(name);
            std::fs::write(&path, &text).unwrap();
            let recipes = format.recipes(&path, &text);
            assert!(recipes.len() >= 2, "{recipes:?}");
            for recipe in recipes {
                let output = std::process::Command::new("sh")
                    .args(["-c", &recipe])
                    .output()
                    .unwrap();
                let told = String::from_utf8_lossy(&output.stderr);
                assert!(
                    output.status.success() && told.is_empty(),
                    "{recipe}: {told}"
                );
                assert!(
                    output.stdout.len() <= STEP * 2,
                    "{recipe}: {}",
                    output.stdout.len()
                );
                let found_nothing = recipe.starts_with("grep") && !text.contains("word");
                assert!(found_nothing || !output.stdout.is_empty(), "{recipe}");
            }
        }
    }
}
