//! The ways clients write variables inside strings, put into our `${NAME}`.
//!
//! Owns the syntaxes. Which string of an entry is one to look into is `translate.rs`'s choice.

/// How a client writes variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VariableSyntax {
    /// Not at all: every string is taken as it is.
    None,
    /// `${NAME}` and `${NAME:-default}`, as we do.
    Braced,
    /// `$NAME` and `${NAME}`.
    Shell,
    /// `${env:NAME}`, `${input:id}`, `${workspaceFolder}` and the like.
    Editor,
    /// `{env:NAME}` and `{file:path}`.
    Bare,
}

/// A string in our words, with what is to be said about it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TranslatedText {
    pub(super) text: String,
    pub(super) notes: Vec<String>,
    pub(super) dropped: Vec<String>,
}

impl VariableSyntax {
    /// Puts the variables of a string into our words.
    pub(super) fn translate(self, text: &str) -> TranslatedText {
        let mut out = TranslatedText::default();
        let mut rest = text;
        while let Some(at) = rest.find(['$', '{']) {
            out.text.push_str(&rest[..at]);
            rest = &rest[at..];
            let length = match self {
                VariableSyntax::None => literal(rest, &mut out),
                VariableSyntax::Braced => 0,
                VariableSyntax::Shell => shell(rest, &mut out),
                VariableSyntax::Editor => editor(rest, &mut out),
                VariableSyntax::Bare => bare(rest, &mut out),
            };
            // What is no variable stays, character by character.
            if length == 0 {
                out.text.push_str(&rest[..1]);
                rest = &rest[1..];
            } else {
                rest = &rest[length..];
            }
        }
        out.text.push_str(rest);
        out
    }
}

/// The inside and the whole length of something in braces behind an opening.
fn braced<'a>(rest: &'a str, opening: &str) -> Option<(&'a str, usize)> {
    let inside = rest.strip_prefix(opening)?;
    let end = inside.find('}')?;
    Some((&inside[..end], opening.len() + end + 1))
}

fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    characters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn literal(rest: &str, out: &mut TranslatedText) -> usize {
    let Some((inside, length)) = braced(rest, "${") else {
        return 0;
    };
    if !is_name(inside.split(":-").next().unwrap_or_default()) {
        return 0;
    }
    out.text.push_str(&rest[..length]);
    out.notes.push(format!(
        "`{}` was plain text before; here it is replaced by the variable's value.",
        &rest[..length]
    ));
    length
}

fn shell(rest: &str, out: &mut TranslatedText) -> usize {
    if rest.starts_with("${") {
        return 0;
    }
    let Some(behind) = rest.strip_prefix('$') else {
        return 0;
    };
    let length = behind
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(behind.len());
    if !is_name(&behind[..length]) {
        return 0;
    }
    out.text.push_str(&format_variable(&behind[..length]));
    length + 1
}

fn editor(rest: &str, out: &mut TranslatedText) -> usize {
    let Some((inside, length)) = braced(rest, "${") else {
        return 0;
    };
    let whole = &rest[..length];
    let mut unknown = || {
        out.dropped.push(format!(
            "`{whole}` is known only to the editor; replace it by hand."
        ));
        out.text.push_str(whole);
    };
    match inside.split_once(':') {
        Some(("env", name)) if is_name(name) => out.text.push_str(&format_variable(name)),
        Some(("input", id)) => {
            let name = input_name(id);
            out.notes.push(format!(
                "the input `{id}` is asked for by the editor; here it is the environment variable `{name}`."
            ));
            out.text.push_str(&format_variable(&name));
        }
        // `${NAME:-default}` is ours already; some editors read it too.
        Some((name, default)) if is_name(name) && default.starts_with('-') => return 0,
        Some(_) => unknown(),
        None => match inside {
            "userHome" => out.text.push_str("${HOME}"),
            "workspaceFolder" | "workspaceRoot" | "cwd" => {
                out.text.push_str("${TOOLWAY_PROJECT_DIR}");
            }
            "pathSeparator" | "/" => out.text.push('/'),
            "workspaceFolderBasename" => unknown(),
            _ => return 0,
        },
    }
    length
}

fn bare(rest: &str, out: &mut TranslatedText) -> usize {
    if let Some((name, length)) = braced(rest, "{env:")
        && is_name(name)
    {
        out.text.push_str(&format_variable(name));
        return length;
    }
    if let Some((_, length)) = braced(rest, "{file:") {
        let whole = &rest[..length];
        out.dropped.push(format!(
            "`{whole}` puts in the content of a file, which Toolway does not; use a variable."
        ));
        out.text.push_str(whole);
        return length;
    }
    0
}

fn format_variable(name: &str) -> String {
    format!("${{{name}}}")
}

/// The environment variable that takes the place of an input: its id in capitals.
fn input_name(id: &str) -> String {
    let name: String = id
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect();
    if is_name(&name) {
        name
    } else {
        format!("INPUT_{name}")
    }
}
