//! The words of an unfinished line as the shell it is typed in reads them.
//!
//! Owns quotes and backslashes: what each word says without them, and which quote is open where
//! the line stops. What only the shell could work out (variables, substitutions) is not guessed.

/// How a shell reads quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Bash and zsh: nothing is special between single quotes.
    Posix,
    /// Fish: a backslash works between single quotes too, and backticks are letters.
    Fish,
}

/// The quote that is open where a line stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    /// None is.
    Bare,
    /// `"`
    Double,
    /// `'`
    Single,
}

/// A line up to the cursor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Words {
    /// The words before the last.
    pub(super) finished: Vec<String>,
    /// What the last one says so far; empty behind a blank. None where only the shell knows.
    pub(super) last: Option<String>,
    /// What is open at the end.
    pub(super) quote: Quote,
    /// The line stops behind a backslash, which is not part of what the last word says.
    pub(super) is_escaped: bool,
}

impl Words {
    /// Reads a line.
    pub(super) fn read(line: &str, dialect: Dialect) -> Self {
        let mut reader = Reader {
            dialect,
            finished: Vec::new(),
            word: String::new(),
            has_begun: false,
            is_known: true,
            quote: Quote::Bare,
            is_escaped: false,
        };
        for c in line.chars() {
            reader.take(c);
        }
        Self {
            finished: reader.finished,
            last: reader.is_known.then_some(reader.word),
            quote: reader.quote,
            is_escaped: reader.is_escaped,
        }
    }
}

struct Reader {
    dialect: Dialect,
    finished: Vec<String>,
    word: String,
    has_begun: bool,
    is_known: bool,
    quote: Quote,
    is_escaped: bool,
}

impl Reader {
    fn take(&mut self, c: char) {
        if self.is_escaped {
            self.is_escaped = false;
            return self.take_escaped(c);
        }
        match (self.quote, c) {
            (Quote::Bare, c) if c.is_whitespace() => return self.end_word(),
            (Quote::Bare, '\'') => self.quote = Quote::Single,
            (Quote::Bare, '"') => self.quote = Quote::Double,
            (Quote::Single, '\'') | (Quote::Double, '"') => self.quote = Quote::Bare,
            (Quote::Bare | Quote::Double, '\\') => self.is_escaped = true,
            (Quote::Single, '\\') if self.dialect == Dialect::Fish => self.is_escaped = true,
            (quote, c) => {
                if self.is_expanded(quote, c) {
                    self.is_known = false;
                }
                self.word.push(c);
            }
        }
        self.has_begun = true;
    }

    /// Whether a shell puts something else in the place of this, or ends the word there.
    fn is_expanded(&self, quote: Quote, c: char) -> bool {
        let everywhere = c == '$' || (c == '`' && self.dialect == Dialect::Posix);
        match quote {
            Quote::Bare => everywhere || ";&|<>()".contains(c),
            Quote::Double => everywhere,
            Quote::Single => false,
        }
    }

    fn take_escaped(&mut self, c: char) {
        let is_special = match (self.dialect, self.quote) {
            // Letters and digits behind a backslash stand for other characters.
            (Dialect::Fish, Quote::Bare) if c.is_alphanumeric() => {
                self.is_known = false;
                true
            }
            (_, Quote::Bare) => true,
            (Dialect::Posix, Quote::Double) => "$`\"\\\n".contains(c),
            (Dialect::Fish, Quote::Double) => "$\"\\\n".contains(c),
            (_, Quote::Single) => "'\\".contains(c),
        };
        if !is_special {
            self.word.push('\\');
        }
        // A line that goes on below is one line.
        if c != '\n' || !is_special {
            self.word.push(c);
        }
        self.has_begun = true;
    }

    fn end_word(&mut self) {
        if std::mem::take(&mut self.has_begun) {
            self.finished.push(std::mem::take(&mut self.word));
        }
        self.is_known = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_the_shell_hands_on() {
        for (line, finished, last, quote) in [
            ("a b", &["a"][..], "b", Quote::Bare),
            ("a ", &["a"], "", Quote::Bare),
            ("a  b=\"x y", &["a"], "b=x y", Quote::Double),
            ("a 'x y' b='x\"", &["a", "x y"], "b=x\"", Quote::Single),
            (r"a x\ y", &["a"], "x y", Quote::Bare),
            (r#"a "x\"\y"#, &["a"], r#"x"\y"#, Quote::Double),
            (r"a 'x'\''y", &["a"], "x'y", Quote::Single),
            ("a '' ", &["a", ""], "", Quote::Bare),
            ("a '$(x)'b", &["a"], "$(x)b", Quote::Bare),
        ] {
            let words = Words::read(line, Dialect::Posix);
            let finished = finished.iter().map(|&word| word.to_owned()).collect();
            let expected = Words {
                finished,
                last: Some(last.to_owned()),
                quote,
                is_escaped: false,
            };
            assert_eq!(words, expected, "{line}");
        }
        let fish = Words::read(r"a 'it\'s", Dialect::Fish);
        assert_eq!(
            (fish.last.as_deref(), fish.quote),
            (Some("it's"), Quote::Single)
        );
    }

    #[test]
    fn a_backslash_at_the_end_is_no_part_of_the_word() {
        let words = Words::read("a x\\", Dialect::Posix);
        assert_eq!((words.last.as_deref(), words.is_escaped), (Some("x"), true));
        let literal = Words::read("a 'x\\", Dialect::Posix);
        assert_eq!(
            (literal.last.as_deref(), literal.is_escaped),
            (Some("x\\"), false)
        );
    }

    #[test]
    fn what_only_the_shell_knows_is_not_guessed() {
        for line in [
            "a $x", "a \"$x", "a `x", "a \"`x", "a $'x", "a <x", "a x;b", "a (",
        ] {
            assert_eq!(Words::read(line, Dialect::Posix).last, None, "{line}");
        }
        assert_eq!(Words::read(r"a \x41", Dialect::Fish).last, None);
        // An earlier word does not matter.
        let words = Words::read("a $x b", Dialect::Posix);
        assert_eq!(words.last.as_deref(), Some("b"));
    }
}
