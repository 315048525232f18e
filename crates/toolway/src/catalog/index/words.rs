//! Words: how names, sentences and queries become comparable terms.
//!
//! Owns splitting, stemming, the words that say nothing, and the everyday words that mean the
//! same. Does not own how terms are weighed (`index.rs`).

/// Words of a query that say nothing about which tool is meant. Descriptions keep them: being
/// everywhere, they weigh next to nothing there.
const EMPTY: [&str; 59] = [
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "by", "can", "could",
    "do", "does", "for", "from", "have", "help", "how", "i", "if", "in", "into", "is", "it", "its",
    "let", "need", "of", "on", "or", "our", "out", "please", "should", "so", "some", "that", "the",
    "their", "them", "there", "these", "this", "to", "tool", "tools", "up", "us", "want", "we",
    "what", "which", "with", "would", "you", "your",
];

/// Words that say a little: most who write them mean nothing by it, and some tools are about it.
const FAINT: [&str; 3] = ["me", "mine", "my"];
/// What such a word weighs.
const FAINTLY: f32 = 0.3;

/// Words that people and servers use for one thing. Everyday words only: what belongs to one
/// trade stands in the descriptions of its tools.
const ALIKE: [&[&str]; 26] = [
    &["create", "add", "new", "make", "insert", "open"],
    &["delete", "remove", "drop", "erase", "destroy"],
    &[
        "get", "fetch", "read", "retrieve", "show", "view", "see", "open",
    ],
    &["list", "show", "enumerate", "browse"],
    &["update", "edit", "modify", "change", "set"],
    &["search", "find", "query", "lookup", "look"],
    &["run", "execute", "exec", "invoke", "start", "launch"],
    &["stop", "kill", "cancel", "terminate", "end"],
    &["send", "post", "publish"],
    &["write", "save", "store"],
    &["picture", "image", "photo"],
    &["folder", "directory", "dir"],
    &["document", "doc"],
    &["repository", "repo"],
    &["database", "db"],
    &["message", "msg"],
    &["configuration", "config", "settings"],
    &["environment", "env"],
    &["kubernetes", "k8s"],
    &["website", "webpage", "page", "site"],
    &["ticket", "issue", "bug"],
    &["pull", "pr"],
    &["merge", "mr"],
    &["mail", "email"],
    &["reply", "respond", "answer"],
    &["weather", "forecast"],
];

/// Calls `take` with each term of a text: pieces of letters and digits, split where the case
/// says so (`createPullRequest`, `HTTPServer`), in lower case, stemmed.
pub(crate) fn terms(text: &str, mut take: impl FnMut(&str)) {
    pieces(text, |piece| {
        cut_endings(piece);
        take(piece);
    });
}

/// As [`terms`], before stemming. The pieces share one buffer: an index reads many thousands.
pub(crate) fn pieces(text: &str, mut take: impl FnMut(&mut String)) {
    let mut piece = String::new();
    let mut give = |piece: &mut String| {
        take(piece);
        piece.clear();
    };
    let mut chars = text.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        let next = chars.peek().copied().unwrap_or(' ');
        let begins = c.is_uppercase()
            && (before.is_lowercase() || (before.is_uppercase() && next.is_lowercase()));
        if !piece.is_empty() && (begins || !c.is_alphanumeric() || is_ideograph(c)) {
            give(&mut piece);
        }
        if is_ideograph(c) {
            // Nothing separates words here; single characters find them well enough.
            piece.push(c);
            give(&mut piece);
        } else if c.is_ascii_alphanumeric() {
            piece.push(c.to_ascii_lowercase());
        } else if c.is_alphanumeric() {
            piece.extend(c.to_lowercase());
        }
        before = c;
    }
    if !piece.is_empty() {
        give(&mut piece);
    }
}

fn is_ideograph(c: char) -> bool {
    matches!(u32::from(c), 0x2E80..=0xD7FF | 0xF900..=0xFAFF | 0x2_0000..=0x3_FFFF)
        && c.is_alphanumeric()
}

/// A word without the endings that [`cut_endings`] cuts.
pub(crate) fn stem(mut word: String) -> String {
    cut_endings(&mut word);
    word
}

/// Cuts the endings that English puts on one word: `issues`, `creating`, `created`, `creation`
/// and `create` meet. It need not give words, only the same thing for the same word.
fn cut_endings(word: &mut String) {
    if word.len() <= 3 || !word.is_ascii() {
        return;
    }
    if word.ends_with("ies") {
        word.truncate(word.len() - "ies".len());
        word.push('y');
    } else if word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end)) {
        word.pop();
    }
    if word.ends_with("ied") {
        word.truncate(word.len() - "ied".len());
        word.push('y');
    }
    for ending in ["ing", "ed"] {
        if let Some(start) = word.strip_suffix(ending)
            && start.len() >= 3
            && start.contains(['a', 'e', 'i', 'o', 'u', 'y'])
        {
            let bytes = start.as_bytes();
            let twice = bytes[bytes.len() - 1] == bytes[bytes.len() - 2];
            let doubled = twice && !start.ends_with(['l', 's', 'z', 'e', 'o']);
            let kept = start.len() - usize::from(doubled);
            word.truncate(kept);
            break;
        }
    }
    if word.len() >= 6 && (word.ends_with("tion") || word.ends_with("sion")) {
        word.truncate(word.len() - "ion".len());
    }
    if word.len() > 3 && word.ends_with('e') {
        word.pop();
    }
}

/// What a word of a query weighs beside the others.
pub(crate) fn weight(word: &str) -> f32 {
    if FAINT.contains(&word) { FAINTLY } else { 1.0 }
}

/// Whether a word of a query says nothing.
pub(crate) fn is_empty(word: &str) -> bool {
    EMPTY.contains(&word)
}

/// The stems of the words that can stand for this one.
pub(crate) fn alike(stemmed: &str) -> impl Iterator<Item = String> {
    ALIKE
        .iter()
        .filter(move |group| group.iter().any(|word| stem((*word).to_owned()) == stemmed))
        .flat_map(|group| group.iter().map(|word| stem((*word).to_owned())))
        .filter(move |word| word != stemmed)
}
