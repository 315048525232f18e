//! The words of a command.
//!
//! Owns what of one is a secret: the value behind `--token=`, `TOKEN=` or `X-Api-Key:`, all of it
//! behind `--token`, `--header` or `-u`, and the password of `-p`, which to many programs is
//! something else. Which names say so is `names.rs`'s.

use std::ops::Range;

use super::names::{is_login, makes_secret, speaks_of_a_secret, takes_headers};

/// Programs that take something else behind `-p`, and how many words of theirs come before those
/// of the program that they start.
const OTHER_P: [(&str, usize); 14] = [
    ("bun", 2),
    ("bunx", 1),
    ("cargo", usize::MAX),
    ("claude", usize::MAX),
    ("cp", usize::MAX),
    ("git", usize::MAX),
    ("mkdir", usize::MAX),
    ("node", 1),
    ("npm", 2),
    ("npx", 1),
    ("pnpm", 2),
    ("pnpx", 1),
    ("uv", 2),
    ("uvx", 1),
];

/// Programs that take a password of any letters directly behind `-p`.
const PASSWORD_BEHIND_P: [&str; 4] = ["mariadb", "mysql", "mysqladmin", "mysqldump"];

/// Reads the words of a command, one after the other, its program first where that is known.
#[derive(Debug, Default)]
pub struct Words<'a> {
    previous: &'a str,
    /// How many words may come until `-p` belongs to another program.
    other_p: usize,
    /// Whether all letters directly behind `-p` are a password.
    password_behind_p: bool,
}

impl<'a> Words<'a> {
    /// What of the next word is a secret as a whole.
    pub fn read(&mut self, word: &'a str) -> Option<Range<usize>> {
        let found = self.secret(word);
        self.pass(word);
        found
    }

    fn pass(&mut self, word: &'a str) {
        let previous = std::mem::replace(&mut self.previous, word);
        let name = word.rsplit('/').next().unwrap_or(word);
        let known = OTHER_P.iter().find(|(program, _)| *program == name);
        let is_behind_flag = previous.starts_with('-') && previous != "--";
        if word == "--" || word.ends_with([';', '&', '|']) {
            (self.other_p, self.password_behind_p) = (0, false);
        } else if word.starts_with('-') || previous == "-p" {
            // A flag, or what belongs to one.
        } else if let Some((_, count)) = known
            && !is_behind_flag
        {
            self.other_p = *count;
        } else {
            self.other_p = self.other_p.saturating_sub(1);
            self.password_behind_p |= PASSWORD_BEHIND_P.contains(&name);
        }
    }

    fn secret(&self, word: &str) -> Option<Range<usize>> {
        let is_flag = self.previous.starts_with('-') && is_name(self.previous);
        // A flag that takes no value may stand before another.
        if is_flag && !is_flag_itself(word) {
            if takes_headers(self.previous) {
                return header(word);
            }
            if self.hides(self.previous, word) {
                return Some(0..word.len());
            }
        }
        if let Some((name, value)) = word.split_once('=')
            && is_name(name)
        {
            let start = word.len() - value.len();
            if takes_headers(name) {
                return header(value).map(|part| start + part.start..start + part.end);
            }
            return self.hides(name, value).then_some(start..word.len());
        }
        // The first word is a program.
        let value = word.get(2..).filter(|value| !value.is_empty());
        if let Some(value) = value.filter(|_| !self.previous.is_empty()) {
            match &word[..2] {
                "-H" => return header(value).map(|part| part.start + 2..part.end + 2),
                "-u" if is_login(value) => return Some(2..word.len()),
                "-p" if self.is_password_behind_p(value) => return Some(2..word.len()),
                _ => {}
            }
        }
        // `--header "Authorization: Bearer …"`, as bridges take it, under whichever flag.
        let (name, _) = word.split_once(':')?;
        (is_name(name) && speaks_of_a_secret(name))
            .then(|| header(word))
            .flatten()
    }

    /// Whether a flag or a variable makes a secret of this value.
    fn hides(&self, name: &str, value: &str) -> bool {
        match name {
            "-p" => self.is_password(value),
            "-u" | "-U" => is_login(value),
            _ => makes_secret(name.trim_start_matches('-'), value),
        }
    }

    /// Whether the value of `-p` is a password, and no port, directory or package.
    fn is_password(&self, value: &str) -> bool {
        self.other_p == 0 && !value.starts_with(['/', '.', '~']) && !is_ports(value)
    }

    /// The same for a value in the same word, where `-port` and `-profile` are flags.
    fn is_password_behind_p(&self, value: &str) -> bool {
        let is_plain = value
            .bytes()
            .all(|it| it.is_ascii_lowercase() || it == b'-');
        self.is_password(value) && (!is_plain || self.password_behind_p)
    }
}

/// Whether a value is a port, or says which port leads to which.
fn is_ports(value: &str) -> bool {
    let bare = ["/tcp", "/udp"]
        .iter()
        .find_map(|kind| value.strip_suffix(kind));
    let numbers = bare.unwrap_or(value).split([':', '.', '-', '[', ']']);
    let mut numbers = numbers.filter(|number| !number.is_empty()).peekable();
    numbers.peek().is_some() && numbers.all(|number| number.parse::<u16>().is_ok())
}

/// The same for all words of a line, of which only the blanks and the quotes are known.
pub fn of_line(line: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut words = Words::default();
    let mut at = 0;
    loop {
        let rest = line[at..].trim_start();
        let word = first_word(rest);
        if word.is_empty() {
            return parts;
        }
        at = line.len() - rest.len();
        let quotes = ['"', '\''];
        let inner = quotes
            .iter()
            .find_map(|quote| word.strip_prefix(*quote)?.strip_suffix(*quote));
        let bare = inner.unwrap_or_else(|| word.trim_start_matches(quotes));
        let start = at + word.find(bare).unwrap_or_default();
        at += word.len();
        if bare.is_empty() {
            continue;
        }
        if let Some(part) = words.read(bare) {
            parts.push(start + part.start..start + part.end);
        } else if bare.len() < line.len() && bare.contains(char::is_whitespace) {
            // A line inside of the line.
            let inner = of_line(bare).into_iter();
            parts.extend(inner.map(|part| start + part.start..start + part.end));
        }
    }
}

/// The first word of a line, with its blanks where they are quoted. An apostrophe opens nothing.
fn first_word(line: &str) -> &str {
    let end = line.find(char::is_whitespace).unwrap_or(line.len());
    let opens = |(at, sign): &(usize, char)| {
        matches!(sign, '"' | '\'') && !line[..*at].ends_with(char::is_alphanumeric)
    };
    let opened = line[..end].char_indices().find(opens);
    let closed = opened.and_then(|(at, sign)| Some(at + 2 + line[at + 1..].find(sign)?));
    let is_whole = |end: &usize| !line[*end..].starts_with(|c: char| !c.is_whitespace());
    let end = closed
        .filter(is_whole)
        .map_or(end, |closed| closed.max(end));
    &line[..end]
}

/// The value of `Name: value`, without the scheme of an `Authorization`.
fn header(word: &str) -> Option<Range<usize>> {
    let (name, value) = word.split_once(':')?;
    let plain = ["accept", "content-type", "user-agent"];
    if plain
        .iter()
        .any(|name_of| name.trim().eq_ignore_ascii_case(name_of))
    {
        return None;
    }
    let value = value.trim_start();
    let bare = ["Bearer ", "Basic ", "Token "]
        .iter()
        .find_map(|scheme| {
            let start = value.get(..scheme.len())?;
            start
                .eq_ignore_ascii_case(scheme)
                .then(|| value[scheme.len()..].trim_start())
        })
        .unwrap_or(value);
    (!bare.is_empty()).then(|| word.len() - bare.len()..word.len())
}

fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !text.is_empty() && text.chars().all(is_plain)
}

/// Whether a word is plainly a flag and no value that begins with a dash.
fn is_flag_itself(word: &str) -> bool {
    let Some(name) = word.strip_prefix("--") else {
        return word.len() == 2 && word.starts_with('-');
    };
    let name = name.split('=').next().unwrap_or(name);
    let is_plain = |c: char| c.is_ascii_lowercase() || c == '-';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_plain)
}
