//! Addresses, and the secrets that stand in them.
//!
//! Owns their places: who logs in, the values of a query, and a part of the path that may be a
//! token.

use std::ops::Range;

use super::names::names_a_secret;

/// The most letters and digits in one part of a path that may be mixed: `v4`, `cu126`, `nexus3`.
const MOST_MIXED: usize = 6;

/// A longer word is none.
const LONGEST_WORD: usize = 24;

/// A longer number is none that counts something.
const LONGEST_NUMBER: usize = 12;

/// More capitals behind small letters than a name has: `InternalPackageFeed`.
const MOST_HUMPS: usize = 2;

/// The secret parts of the addresses in a text: who logs in, and the values of queries, which often
/// are keys. By letters, because an address with variables in it is no URL yet.
pub fn of_addresses(text: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut from = 0;
    for word in text.split(|c: char| c.is_whitespace() || "\"'<>`".contains(c)) {
        let (mut behind, mut query) = (0, None);
        while let Some(found) = word[behind..].find("://") {
            let start = behind + found + "://".len();
            if query.is_some_and(|query| query < start) {
                break;
            }
            let length = login(&word[start..]);
            if length > 0 {
                parts.push(from + start..from + start + length);
            }
            behind = start + length;
            query = word[behind..].find(['?', '#']).map(|at| behind + at + 1);
        }
        // Without a scheme a question mark may be nothing else.
        if behind == 0 {
            query = word.find('?').map(|at| at + 1);
            query = query.filter(|at| word[*at..].contains('='));
        }
        if let Some(mut at) = query {
            for pair in word[at..].split(['&', '#', '?']) {
                let value = pair.split_once('=').map_or(pair, |(_, value)| value);
                if !value.is_empty() {
                    let end = from + at + pair.len();
                    parts.push(end - value.len()..end);
                }
                at += pair.len() + 1;
            }
        }
        from += word.len();
        from += text[from..].chars().next().map_or(0, char::len_utf8);
    }
    parts
}

/// How long the name and password are that an address begins with, behind its scheme.
fn login(address: &str) -> usize {
    let authority = address.find(['/', '\\', '?', '#']).unwrap_or(address.len());
    let host = &address[..authority];
    // A password with a slash in it looks like a port that is no number.
    let is_cut = host.rsplit_once(':').is_some_and(|(_, port)| {
        !port.ends_with(']') && !port.bytes().all(|byte| byte.is_ascii_digit())
    });
    let within = if is_cut { address } else { host };
    within.rfind('@').unwrap_or(0)
}

/// Whether a part of a path may be a token: letters and digits are mixed in it, its capitals are
/// strewn, or it is longer than words and numbers are; or it says that the next one is. Errs on
/// that side.
pub fn may_be_a_token(part: &str) -> bool {
    let mut mixed = 0;
    for word in part.split(|c: char| !c.is_alphanumeric()) {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let humps = word.as_bytes().windows(2);
        let humps =
            humps.filter(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
        if digits == word.len() {
            if digits > LONGEST_NUMBER {
                return true;
            }
        } else if digits > 0 {
            mixed += word.len();
        } else if word.len() > LONGEST_WORD || humps.count() > MOST_HUMPS {
            return true;
        }
    }
    mixed > MOST_MIXED || names_a_secret(part)
}
