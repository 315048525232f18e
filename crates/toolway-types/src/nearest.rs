//! "Did you mean …?": which known word a mistyped one was probably meant to be.
//!
//! Owns the one measure of a slip, for keys, servers, tools and commands alike. Ranking the
//! results of a search is another measure (`toolway::search`).

/// The longest word that is looked at, in bytes: comparing takes its length times the other's.
const LONGEST: usize = 256;

/// How many slips (a letter too many, missing, wrong, or two exchanged) are forgiven to a word of
/// this many letters. Short words are like too many others.
fn forgiven(letters: usize) -> usize {
    match letters {
        0..=2 => 0,
        3..=7 => 1,
        _ => 2,
    }
}

/// The word that was probably meant. Letter case does not matter.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    several_nearest(word, known, 1).pop()
}

/// The words that were probably meant, the nearest first, and among equals in alphabetical order.
/// What has two slips more than the best is left out.
pub fn several_nearest<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    if word.len() > LONGEST {
        return Vec::new();
    }
    let folded = word.to_lowercase();
    let letters = folded.chars().count();
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|candidate| {
            let other = candidate.to_lowercase();
            let reach = forgiven(letters.min(other.chars().count()));
            let slips = strsim::osa_distance(&folded, &other);
            (slips <= reach).then_some((slips, candidate))
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    let best = near.first().map_or(0, |(slips, _)| *slips);
    near.into_iter()
        .take_while(|(slips, _)| *slips <= best + 1)
        .take(most)
        .map(|(_, candidate)| candidate)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slip_is_forgiven_to_a_short_word_and_two_to_a_long_one() {
        let known = ["url", "github", "enabledMcpServers"];
        assert_eq!(nearest("ulr", known), Some("url"));
        assert_eq!(nearest("rul", ["url"]), Some("url"));
        assert_eq!(nearest("ur", known), None);
        assert_eq!(nearest("GITHUP", known), Some("github"));
        assert_eq!(nearest("gitlab", known), None);
        assert_eq!(
            nearest("enabeldMcpServer", known),
            Some("enabledMcpServers")
        );
        assert_eq!(nearest("enabeldServer", known), None);
        assert_eq!(nearest(&"x".repeat(LONGEST + 1), known), None);
    }

    #[test]
    fn several_are_given_in_order_of_their_slips() {
        let known = ["list_items", "list_item", "last_item", "read_item"];
        assert_eq!(
            several_nearest("list_itme", known, 3),
            ["list_item", "last_item", "list_items"]
        );
        assert_eq!(several_nearest("list_item", known, 1), ["list_item"]);
    }
}
