//! Foreign text as a user can trust it, where they decide about it (SEC-35, SEC-52).
//!
//! Owns what is done to single characters and words: what cannot be seen is spelled out, blanks
//! that push text away are counted, letters that pass for others are named. Which letters those
//! are is Unicode's word (UTS 39), by way of `unicode-security`.
//! Does not own: rows, margins and pages, which are the front-end's.
//!
//! Invariants: what [`legible`] gives is one line without a hidden character, and nothing is lost:
//! every mark says what stood in its place. Marks stand in brackets that foreign text cannot
//! write, since its own are spelled out.

#[cfg(test)]
mod tests;

use unicode_normalization::char::is_combining_mark;
use unicode_script::{Script, UnicodeScript as _};
use unicode_security::confusable_detection::skeleton;
use unicode_security::mixed_script::AugmentedScriptSet;

use super::is_hidden;

/// Stands where a line ended; foreign text cannot write it.
pub const LINE_BREAK: char = '⏎';

/// What marks stand in.
const BRACKETS: [char; 2] = ['⟨', '⟩'];

/// So many blanks, or line breaks, in a row are counted.
const MANY_BLANKS: usize = 3;

/// So many of one hidden character in a row are counted.
const MANY_HIDDEN: usize = 4;

/// The widest indentation that is kept in a line of a file.
const MAX_INDENT: usize = 40;

/// The most accents on one letter: more of them would cover the rows around it.
const MAX_ACCENTS: usize = 2;

/// Long words are taken apart after so many letters.
const STEP: usize = 16;

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// A program, an argument, a key, a name: every character decides.
    Code,
    /// A line of a file, which may be indented.
    Source,
    /// Words for people. Another language is no disguise, so that only what mixes languages, or
    /// could be read as one it is not, is marked.
    Prose,
}

/// A remark of ours within foreign text.
pub fn mark(words: &str) -> String {
    format!("{}{words}{}", BRACKETS[0], BRACKETS[1])
}

/// `1 blank`, `2,500 blanks`.
pub fn counted(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(count))
}

/// `2,500`.
fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// The text on one line, with everything named that could deceive.
pub fn legible(text: &str, kind: TextKind) -> String {
    LegibleText::of(text, kind).shown
}

/// As [`legible`], of a longer text than `most` characters only the beginning and the end, and
/// between them how much of it is left out.
pub fn legible_within(text: &str, kind: TextKind, most: usize) -> String {
    let LegibleText {
        shown,
        break_points,
        ..
    } = LegibleText::of(text, kind);
    let length = |part: &str| part.chars().count();
    if length(&shown) <= most {
        return shown;
    }
    let none = BreakPoint::default();
    let fits = |point: &&BreakPoint| length(&shown[..point.shown]) <= most * 2 / 3;
    let head = break_points.iter().take_while(fits).last().unwrap_or(&none);
    let fits = |point: &&BreakPoint| length(&shown[point.shown..]) <= most / 3;
    let end = BreakPoint {
        shown: shown.len(),
        read: length(text),
    };
    let tail = break_points
        .iter()
        .rev()
        .take_while(fits)
        .last()
        .unwrap_or(&end);
    if tail.read <= head.read {
        return shown;
    }
    let left_out = counted(tail.read - head.read, "character");
    format!(
        "{}{}{}",
        &shown[..head.shown],
        mark(&format!("{left_out} left out")),
        &shown[tail.shown..]
    )
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CharKind {
    Blank,
    LineBreak,
    Word,
    Other,
}

impl CharKind {
    fn of(c: char) -> Self {
        match c {
            '\n' => Self::LineBreak,
            // A pattern of dots without a dot.
            ' ' | '\t' | '\u{2800}' => Self::Blank,
            c if is_hidden(c) => Self::Other,
            c if c.is_whitespace() => Self::Blank,
            c if c.is_alphanumeric() || is_combining_mark(c) => Self::Word,
            _ => Self::Other,
        }
    }
}

/// A place where a text can be taken apart: never within a mark.
#[derive(Debug, Clone, Copy, Default)]
struct BreakPoint {
    /// How much is shown by then, in bytes.
    shown: usize,
    /// How much of the text that is, in characters.
    read: usize,
}

/// A text that is being made legible.
struct LegibleText<'a> {
    shown: String,
    break_points: Vec<BreakPoint>,
    kind: TextKind,
    /// The whole, and the scripts of it that are no disguise; found when they are first asked for.
    text: &'a str,
    expected_scripts: Option<Vec<Script>>,
}

impl<'a> LegibleText<'a> {
    fn of(text: &'a str, kind: TextKind) -> Self {
        let mut legible = LegibleText {
            shown: String::with_capacity(text.len() + 16),
            break_points: Vec::new(),
            kind,
            expected_scripts: None,
            text,
        };
        let mut rest = text;
        if kind == TextKind::Source {
            rest = legible.indentation(text);
        }
        if kind == TextKind::Prose && text.contains(is_right_to_left) {
            // Its letters also make the row one that runs from left to right.
            legible.shown.push_str(&mark("right to left"));
            legible.shown.push(' ');
        }
        let mut begins = true;
        while let Some(first) = rest.chars().next() {
            let kind = CharKind::of(first);
            let end = rest
                .find(|c| CharKind::of(c) != kind || (kind == CharKind::Other && c != first))
                .unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            let before = legible.shown.len();
            match kind {
                CharKind::Blank => legible.blanks(run, begins || after.is_empty()),
                CharKind::LineBreak => legible.line_breaks(run),
                CharKind::Word => legible.word(run),
                CharKind::Other => legible.others(first, run),
            }
            legible.join(before, run);
            begins = false;
            rest = after;
        }
        legible
    }

    /// Notes the end of a run, and within one that is shown as it is a place every few letters.
    fn join(&mut self, before: usize, run: &str) {
        let mut read = self.break_points.last().map_or(0, |point| point.read);
        if &self.shown[before..] == run {
            for (place, (index, _)) in run.char_indices().enumerate().skip(1) {
                if place.is_multiple_of(STEP) {
                    self.break_points.push(BreakPoint {
                        shown: before + index,
                        read: read + place,
                    });
                }
            }
        }
        read += run.chars().count();
        self.break_points.push(BreakPoint {
            shown: self.shown.len(),
            read,
        });
    }

    /// Keeps what a line is indented by, as blanks.
    fn indentation<'l>(&mut self, line: &'l str) -> &'l str {
        let rest = line.trim_start_matches([' ', '\t']);
        let indent = &line[..line.len() - rest.len()];
        let width: usize = indent.chars().map(|c| if c == '\t' { 2 } else { 1 }).sum();
        if rest.is_empty() || width > MAX_INDENT {
            return line;
        }
        self.shown.extend(std::iter::repeat_n(' ', width));
        rest
    }

    fn blanks(&mut self, run: &str, at_edge: bool) {
        let count = run.chars().count();
        let plain = run.bytes().all(|byte| byte == b' ');
        let counts = count >= MANY_BLANKS || (at_edge && self.kind == TextKind::Code);
        if counts && plain {
            self.shown.push_str(&mark(&counted(count, "blank")));
        } else if counts && count >= MANY_BLANKS {
            let words = format!("{} of several kinds", counted(count, "blank"));
            self.shown.push_str(&mark(&words));
        } else {
            for c in run.chars() {
                if c == ' ' {
                    self.shown.push(c);
                } else {
                    self.spell(c);
                }
            }
        }
    }

    fn line_breaks(&mut self, run: &str) {
        if run.len() >= MANY_BLANKS {
            self.shown
                .push_str(&mark(&counted(run.len(), "line break")));
        }
        self.shown.push(LINE_BREAK);
        if run.len() == 2 {
            self.shown.push(LINE_BREAK);
        }
    }

    /// A run of one character that is part of no word.
    fn others(&mut self, c: char, run: &str) {
        let count = run.chars().count();
        let deceives = self.kind != TextKind::Prose
            && !c.is_ascii()
            && (is_right_to_left(c) || is_private(c) || passes_for_ascii(run));
        if is_hidden(c) && count >= MANY_HIDDEN {
            let words = format!("{} × {}", grouped(count), spelled(c));
            self.shown.push_str(&mark(&words));
        } else if is_hidden(c) || deceives || BRACKETS.contains(&c) || c == LINE_BREAK {
            for _ in 0..count {
                self.spell(c);
            }
        } else {
            self.shown.push_str(run);
        }
    }

    fn word(&mut self, word: &str) {
        if word.is_ascii() {
            self.shown.push_str(word);
        } else if self.kind != TextKind::Prose && word.contains(is_right_to_left) {
            self.letters(word, is_right_to_left);
        } else if is_mixed(word) {
            self.mixed(word);
        } else if passes_for_ascii(word) && !self.is_expected_script(word) {
            match script_of(word) {
                Some(script) if script != Script::Latin => self.named(script, word),
                _ => self.letters(word, |c| !c.is_ascii()),
            }
        } else {
            self.letters(word, |_| false);
        }
    }

    /// A word with some of its letters spelled out, and with no more accents than it needs.
    fn letters(&mut self, word: &str, spells: impl Fn(char) -> bool) {
        // An accent without a letter would sit on what is ours.
        let mut accents = MAX_ACCENTS;
        for c in word.chars() {
            let is_accent = is_combining_mark(c);
            accents = if is_accent { accents + 1 } else { 0 };
            if spells(c) || (is_accent && accents > MAX_ACCENTS) {
                self.spell(c);
            } else {
                self.shown.push(c);
            }
        }
    }

    /// Letters with the name of their script.
    fn named(&mut self, script: Script, letters: &str) {
        self.shown.push(BRACKETS[0]);
        self.shown.push_str(script.full_name());
        self.shown.push(' ');
        self.letters(letters, |_| false);
        self.shown.push(BRACKETS[1]);
    }

    /// A word of several scripts: those beside its Latin letters, or else beside its first, are
    /// named.
    fn mixed(&mut self, word: &str) {
        let has_latin = word.chars().any(|c| c.script() == Script::Latin);
        let home = if has_latin {
            Some(Script::Latin)
        } else {
            script_of(word)
        };
        let mut rest = word;
        while let Some(first) = rest.chars().next() {
            let script = own_script(first);
            let odd = script.is_some() && script != home;
            let same = |c: char| own_script(c).is_none_or(|other| Some(other) == script);
            let end = rest.find(|c| !same(c)).unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            match script {
                Some(script) if odd => self.named(script, run),
                _ => self.letters(run, |_| false),
            }
            rest = after;
        }
    }

    /// Whether a word that could be read as another one stands among others of its script that
    /// could not, as the short words of a language do.
    fn is_expected_script(&mut self, word: &str) -> bool {
        if self.kind != TextKind::Prose {
            return false;
        }
        let Some(script) = script_of(word).filter(|script| *script != Script::Latin) else {
            return true;
        };
        let text = self.text;
        let expected_scripts = self.expected_scripts.get_or_insert_with(|| {
            let words = text.split(|c| CharKind::of(c) != CharKind::Word);
            let expected_scripts = words.filter(|word| !word.is_ascii() && !passes_for_ascii(word));
            expected_scripts.filter_map(script_of).collect()
        });
        expected_scripts.contains(&script)
    }

    fn spell(&mut self, c: char) {
        self.shown.push_str(&spelled(c));
    }
}

fn spelled(c: char) -> String {
    format!("\\u{{{:04X}}}", c as u32)
}

/// The script of a character that has one of its own.
fn own_script(c: char) -> Option<Script> {
    let script = c.script();
    let own = !matches!(script, Script::Common | Script::Inherited | Script::Unknown);
    own.then_some(script)
}

fn script_of(word: &str) -> Option<Script> {
    word.chars().find_map(own_script)
}

/// Whether a word has letters of scripts that no language writes together. Latin beside Chinese,
/// Japanese or Korean is how those are written (UTS 39, section 5.2).
fn is_mixed(word: &str) -> bool {
    let of = |letters: &mut dyn Iterator<Item = char>| {
        let mut set = AugmentedScriptSet::default();
        letters.for_each(|c| set.intersect_with(AugmentedScriptSet::for_char(c)));
        set
    };
    if !of(&mut word.chars()).is_empty() {
        return false;
    }
    let beside = of(&mut word.chars().filter(|c| c.script() != Script::Latin));
    !(beside.hanb || beside.jpan || beside.kore)
}

/// Whether a user could take it for ASCII.
fn passes_for_ascii(word: &str) -> bool {
    skeleton(word).all(|c| c.is_ascii())
}

/// Whether a character belongs to a script that runs from right to left, and so can change the
/// order in which its neighbours are seen. Unicode keeps these ranges for such scripts.
fn is_right_to_left(c: char) -> bool {
    matches!(
        c,
        '\u{0590}'..='\u{08FF}'
            | '\u{FB1D}'..='\u{FDFF}'
            | '\u{FE70}'..='\u{FEFF}'
            | '\u{10800}'..='\u{10FFF}'
            | '\u{1E800}'..='\u{1EFFF}'
    )
}

/// Whether a character looks like whatever a font makes of it.
fn is_private(c: char) -> bool {
    matches!(
        c,
        '\u{E000}'..='\u{F8FF}' | '\u{F0000}'..='\u{FFFFD}' | '\u{100000}'..='\u{10FFFD}'
    )
}
