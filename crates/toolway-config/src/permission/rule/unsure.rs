//! Tools of which only a spelling is known, and the rules that can mean them.
//!
//! Owns holding a rule that restricts against a name in which characters may have been replaced by
//! `_`, or whose end may have been cut (SEC-31): what is judged before a server was asked what it
//! offers must not overlook a deny rule in the server's own spelling. Calls do not come here: they
//! carry the server's own name.

use toolway_types::text::{decomposed, fold};
use toolway_types::{ToolKey, name};

use super::super::spelling::{BETWEEN, PREFIX, ToolNames, UnsureName};
use super::PermissionRule;

/// One character of a name.
#[derive(Debug, Clone, Copy)]
enum GuessedLetter {
    Known(char),
    /// `_`, or any character that it can stand for; a hidden one is not seen.
    Replaced,
    /// One digit of a digest.
    Digit,
}

impl GuessedLetter {
    fn can_be(self, wanted: char) -> bool {
        match self {
            GuessedLetter::Known(letter) => letter == wanted,
            GuessedLetter::Replaced => name::normalize(wanted.encode_utf8(&mut [0; 4])) == "_",
            GuessedLetter::Digit => wanted.is_ascii_hexdigit(),
        }
    }
}

/// A name, folded, as far as it is known.
#[derive(Debug, Clone, Default)]
struct GuessedName {
    letters: Vec<GuessedLetter>,
    /// Whether more may follow.
    is_cut: bool,
}

impl GuessedName {
    fn known(mut self, text: &str) -> Self {
        self.letters.extend(text.chars().map(GuessedLetter::Known));
        self
    }

    /// Adds what is a spelling only.
    fn spelled(mut self, text: &str) -> Self {
        self.letters.extend(text.chars().map(|letter| match letter {
            '_' => GuessedLetter::Replaced,
            letter => GuessedLetter::Known(letter),
        }));
        self
    }

    /// Whether a name that this can be fits a pattern in which `*` stands for anything.
    fn can_fit(&self, pattern: &str) -> bool {
        let end = self.letters.len();
        // Up to where the name is used up, in every way to read the pattern so far.
        let mut reached = vec![false; end + 1];
        reached[0] = true;
        self.pass_unseen(&mut reached);
        for wanted in pattern.chars() {
            if self.is_cut && reached[end] {
                return true;
            }
            if wanted == '*' {
                let first = reached.iter().position(|is_reached| *is_reached);
                let first = first.unwrap_or(end + 1);
                reached.iter_mut().skip(first).for_each(|it| *it = true);
                continue;
            }
            for place in (0..end).rev() {
                reached[place + 1] = reached[place] && self.letters[place].can_be(wanted);
            }
            reached[0] = false;
            self.pass_unseen(&mut reached);
        }
        reached[end]
    }

    /// Passes over what may be hidden, which no rule spells.
    fn pass_unseen(&self, reached: &mut [bool]) {
        for (place, letter) in self.letters.iter().enumerate() {
            if let GuessedLetter::Replaced = letter {
                reached[place + 1] |= reached[place];
            }
        }
    }
}

impl PermissionRule {
    /// Whether, as a restricting rule, it can speak of a tool of which only a spelling is known.
    pub(in crate::permission) fn could_mean(
        &self,
        key: &ToolKey,
        shown: &str,
        spelled: &ToolNames,
        unsure: UnsureName,
    ) -> bool {
        let names = whole_names(key, shown, spelled, unsure);
        // What a broken rule was written as may be a name too.
        let written = (self.whole.len() > 1).then_some(self.cited.rule.as_str());
        let texts = std::iter::once(self.name.as_str()).chain(written);
        texts.flat_map(patterns).any(|pattern| {
            let all_of = format!("{}__*", pattern.strip_prefix(PREFIX).unwrap_or(&pattern));
            let is_server = || {
                // Wherever the border is.
                let whole = GuessedName::default().spelled(&fold(&key.spelled()[PREFIX.len()..]));
                unsure == UnsureName::Both && whole.can_fit(&all_of)
            };
            names.iter().any(|name| name.can_fit(&pattern)) || is_server()
        })
    }
}

/// A rule's text in every form in which it is held against names: a character that is replaced by
/// one `_` may be two when its case or its composition is another.
fn patterns(text: &str) -> [String; 3] {
    let folded = fold(text);
    let apart = decomposed(&folded);
    [text.to_ascii_lowercase(), folded, apart]
}

/// The whole names of a tool, as far as they are known.
fn whole_names(
    key: &ToolKey,
    shown: &str,
    spelled: &ToolNames,
    unsure: UnsureName,
) -> Vec<GuessedName> {
    let tool = fold(&name::normalize(&key.tool));
    let mut tools = vec![(tool.as_str(), false)];
    if name::ends_like_suffix(&tool) {
        // A digest stands behind it, and in place of what did not fit.
        tools.push((
            name::without_suffix(&tool),
            shown.len() == name::MAX_EXPOSED_LEN,
        ));
    }
    let servers: Vec<GuessedName> = match unsure {
        UnsureName::Both => vec![GuessedName::default().spelled(&fold(&key.server.normalized()))],
        UnsureName::Tool => {
            let forms = spelled.server.iter();
            let apart = forms.clone().map(|form| decomposed(form));
            let forms = forms.cloned().chain(apart);
            forms
                .map(|form| GuessedName::default().known(&form))
                .collect()
        }
    };
    // Whatever can stand before the tool's name.
    let mut before = vec![GuessedName::default()];
    for server in servers {
        let mut prefixed = GuessedName::default().known(PREFIX);
        prefixed.letters.extend(&server.letters);
        before.push(match unsure {
            UnsureName::Tool => prefixed.known("__"),
            UnsureName::Both => prefixed.spelled("__"),
        });
        before.extend(BETWEEN.map(|between| server.clone().known(between)));
    }
    let mut names = Vec::new();
    for (tool, is_cut) in tools {
        names.extend(before.iter().map(|before| GuessedName {
            is_cut,
            ..before.clone().spelled(tool)
        }));
    }
    names.push(apart(key));
    names
}

/// The name that a digest tells from all others, whatever the digest is.
fn apart(key: &ToolKey) -> GuessedName {
    let spelled = fold(&key.spelled());
    let digits = name::SUFFIX_LEN;
    let kept = spelled.len().min(name::MAX_EXPOSED_LEN - digits - 1);
    let mut apart = GuessedName::default().known(&spelled[..kept]).known("_");
    apart.letters.extend(vec![GuessedLetter::Digit; digits]);
    apart
}
