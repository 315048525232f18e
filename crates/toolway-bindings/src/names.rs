//! Identifiers made of names that servers give.
//!
//! Owns the letters they may have: ASCII, so that none looks like another or reads from right to left.

use std::collections::{BTreeMap, BTreeSet};

/// The longest identifier before it is made unique.
const LONGEST: usize = 80;

/// The words of a name: runs of ASCII letters and digits, split where a capital begins one.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    let mut length = 0;
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() {
            let begins = letter.is_ascii_uppercase()
                && (before.is_ascii_lowercase() || before.is_ascii_digit());
            if begins && !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            word.push(letter);
            length += 1;
        } else if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        before = letter;
        if length == LONGEST {
            break;
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    let rest: String = letters.collect();
    // A word in capitals only is one that people write so; `ABCDef` is not told apart.
    let rest = if rest.bytes().any(|byte| byte.is_ascii_lowercase()) {
        rest
    } else {
        rest.to_ascii_lowercase()
    };
    first.into_iter().collect::<String>() + &rest
}

/// `get-sum` as `GetSum`.
pub(crate) fn pascal(name: &str) -> String {
    let joined: String = words(name).iter().map(|word| capital(word)).collect();
    begun(joined, 'N', "Unnamed")
}

/// `get-sum` as `getSum`.
pub(crate) fn camel(name: &str) -> String {
    let words = words(name);
    let mut joined = String::new();
    for (place, word) in words.iter().enumerate() {
        if place == 0 {
            joined.push_str(&word.to_ascii_lowercase());
        } else {
            joined.push_str(&capital(word));
        }
    }
    begun(joined, 'n', "unnamed")
}

/// `getSum` as `get_sum`.
pub(crate) fn snake(name: &str) -> String {
    let words = words(name);
    let words: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
    begun(words.join("_"), 'n', "unnamed")
}

fn begun(name: String, digit: char, empty: &str) -> String {
    match name.chars().next() {
        None => empty.to_owned(),
        Some(first) if first.is_ascii_digit() => format!("{digit}{name}"),
        Some(_) => name,
    }
}

/// The name of a server's file, without its ending; none that a language or a system keeps for itself.
pub fn stem(server: &str) -> String {
    let stem = snake(server);
    let kept = [
        "index",
        "mod",
        "lib",
        "main",
        "toolway",
        "init",
        "con",
        "prn",
        "aux",
        "nul",
        "typing",
        "dataclasses",
        "collections",
        "contextlib",
        "abc",
        "serde",
        "serde_json",
        "std",
        "core",
    ];
    if kept.contains(&stem.as_str())
        || RUST.contains(&stem.as_str())
        || PYTHON.contains(&stem.as_str())
        || TYPESCRIPT.contains(&stem.as_str())
    {
        return format!("{stem}_");
    }
    stem
}

/// Identifiers that nothing else may have.
#[derive(Debug, Default)]
pub(crate) struct TakenNames {
    taken: BTreeSet<String>,
    /// The last number behind a name: many are alike.
    numbers: BTreeMap<String, u32>,
}

impl TakenNames {
    /// Nothing is called like these.
    pub(crate) fn without(reserved: &[&str]) -> Self {
        let mut names = Self::default();
        names.reserve(reserved);
        names
    }

    pub(crate) fn reserve(&mut self, reserved: &[&str]) {
        self.taken
            .extend(reserved.iter().map(|name| (*name).to_owned()));
    }

    /// The name itself, or with a number behind it.
    pub(crate) fn take(&mut self, name: String) -> String {
        self.numbered(name, "_")
    }

    /// The same for names of types, where no underscore is usual.
    pub(crate) fn take_type(&mut self, name: String) -> String {
        let is_number = name.ends_with(|last: char| last.is_ascii_digit());
        self.numbered(name, if is_number { "V" } else { "" })
    }

    fn numbered(&mut self, name: String, gap: &str) -> String {
        if self.taken.insert(name.clone()) {
            return name;
        }
        let number = self.numbers.entry(name.clone()).or_insert(1);
        loop {
            *number += 1;
            let numbered = format!("{name}{gap}{number}");
            if self.taken.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

/// Words of TypeScript that name nothing, or not what they seem to in a class.
pub(crate) const TYPESCRIPT: &[&str] = &[
    "abstract",
    "any",
    "arguments",
    "as",
    "async",
    "await",
    "boolean",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "constructor",
    "continue",
    "debugger",
    "declare",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "from",
    "function",
    "get",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "is",
    "keyof",
    "let",
    "module",
    "namespace",
    "never",
    "new",
    "null",
    "number",
    "object",
    "of",
    "package",
    "private",
    "protected",
    "prototype",
    "public",
    "readonly",
    "require",
    "return",
    "set",
    "static",
    "string",
    "super",
    "switch",
    "symbol",
    "then",
    "this",
    "throw",
    "true",
    "try",
    "type",
    "typeof",
    "undefined",
    "unique",
    "unknown",
    "var",
    "void",
    "while",
    "with",
    "yield",
    "name",
    "length",
    "caller",
];

/// Words of Python that name nothing, and built-in names that a module of ours uses.
pub(crate) const PYTHON: &[&str] = &[
    "and",
    "as",
    "assert",
    "async",
    "await",
    "bool",
    "break",
    "case",
    "class",
    "classmethod",
    "continue",
    "def",
    "del",
    "dict",
    "elif",
    "else",
    "except",
    "finally",
    "float",
    "for",
    "from",
    "global",
    "if",
    "import",
    "in",
    "int",
    "is",
    "isinstance",
    "lambda",
    "list",
    "match",
    "nonlocal",
    "not",
    "object",
    "or",
    "pass",
    "print",
    "property",
    "raise",
    "return",
    "self",
    "staticmethod",
    "str",
    "super",
    "try",
    "tuple",
    "type",
    "while",
    "with",
    "yield",
];

/// Words of Rust, of all editions.
pub(crate) const RUST: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "union", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];
