//! The grammar of `WWW-Authenticate`, read without complaint.
//!
//! Owns one pass over the header. A comma separates challenges as well as parameters, so each
//! piece is told by what follows its first word: `=` makes it a parameter of the challenge before
//! it, anything else a new challenge.

use super::Challenge;

/// Every challenge in a header value, in order.
pub fn parse(header: &str) -> Vec<Challenge> {
    let mut challenges: Vec<Challenge> = Vec::new();
    let mut rest = Cursor { rest: header };
    loop {
        rest.skip(|c| is_space(c) || c == ',');
        if rest.is_done() {
            return challenges;
        }
        let word = rest.take(is_token);
        if word.is_empty() {
            rest.skip_piece();
            continue;
        }
        rest.skip(is_space);
        if rest.eat('=') {
            rest.skip(is_space);
            let value = rest.value();
            // A parameter before any scheme is ignored.
            if let Some(challenge) = challenges.last_mut() {
                challenge
                    .parameters
                    .push((word.to_ascii_lowercase(), value));
            }
        } else {
            challenges.push(Challenge {
                scheme: word.to_ascii_lowercase(),
                token68: rest.token68(),
                parameters: Vec::new(),
            });
        }
    }
}

struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn skip(&mut self, belongs: impl Fn(char) -> bool) {
        self.take(belongs);
    }

    fn eat(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// A quoted string, or anything up to a comma or space: servers leave URLs unquoted.
    fn value(&mut self) -> String {
        if self.eat('"') {
            self.quoted()
        } else {
            self.take(|c| c != ',' && !is_space(c)).to_owned()
        }
    }

    /// Behind the opening quote; an unclosed string reaches to the end.
    fn quoted(&mut self) -> String {
        let mut text = String::new();
        let mut chars = self.rest.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => break,
                '\\' => text.extend(chars.next()),
                c => text.push(c),
            }
        }
        self.rest = chars.as_str();
        text
    }

    /// A bare value behind a scheme: it must fill the piece up to its comma, else it is the name
    /// of a parameter.
    fn token68(&mut self) -> Option<String> {
        let mut ahead = Cursor { rest: self.rest };
        let body = ahead.take(is_token68);
        let padding = ahead.take(|c| c == '=');
        ahead.skip(is_space);
        if body.is_empty() || !(ahead.is_done() || ahead.rest.starts_with(',')) {
            return None;
        }
        self.rest = ahead.rest;
        Some(format!("{body}{padding}"))
    }

    /// Skips what no rule fits, up to the next comma outside quotes or the next space.
    fn skip_piece(&mut self) {
        if self.eat('"') {
            self.quoted();
            return;
        }
        let mut chars = self.rest.chars();
        // At least one character, so that the loop above always ends.
        chars.next();
        self.rest = chars.as_str();
        self.skip(|c| c != ',' && c != '"' && !is_space(c));
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

fn is_token68(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~+/".contains(c)
}
