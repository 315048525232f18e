//! Which of a server's last words says why it failed.
//!
//! Owns the choice. The words are the server's: they are shown, and nothing follows from them.

/// What lines that give a reason have in them.
const SIGNS: [&str; 15] = [
    "error",
    "cannot",
    "can't",
    "could not",
    "not found",
    "no such",
    "failed",
    "fatal",
    "denied",
    "missing",
    "invalid",
    "required",
    "refused",
    "panicked",
    "exception",
];

/// What lines begin with that only say where.
const PLACES: [&str; 4] = ["at ", "File \"", "in ", "| "];

/// What npm and its like say of themselves.
const ASIDES: [&str; 2] = ["complete log of this run", "debug-0.log"];

/// The last line that gives a reason, else the last one.
pub(super) fn telling_line(words: &[String]) -> Option<&str> {
    let mut lines = words.iter().map(|line| line.trim()).filter(|line| {
        let is_place = PLACES.iter().any(|place| line.starts_with(place));
        let is_aside = ASIDES.iter().any(|aside| line.contains(aside));
        !line.is_empty() && !is_place && !is_aside
    });
    let gives_reason = |line: &&str| {
        let line = line.to_lowercase();
        SIGNS.iter().any(|sign| line.contains(sign))
    };
    let last = lines.clone().next_back();
    lines.rfind(gives_reason).or(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Option<String> {
        let words: Vec<String> = text.lines().map(str::to_owned).collect();
        telling_line(&words).map(str::to_owned)
    }

    #[test]
    fn the_reason_is_found_among_frames_and_asides() {
        let node = "node:internal/modules\nError: Cannot find module 'x'\n    at require (a.js)\n\nNode.js v22";
        assert_eq!(line(node).unwrap(), "Error: Cannot find module 'x'");
        let python =
            "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'TOKEN'";
        assert_eq!(line(python).unwrap(), "KeyError: 'TOKEN'");
        let npm = "npm error code E404\nnpm error 404 Not Found\nnpm error A complete log of this run can be found in: /x";
        assert_eq!(line(npm).unwrap(), "npm error 404 Not Found");
        assert_eq!(line("starting\nbye").unwrap(), "bye");
        assert_eq!(line(""), None);
    }
}
