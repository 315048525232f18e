//! A filter, from text to operations.
//!
//! Owns the grammar and the faults of it. Nesting and length are bounded, so that no filter
//! exhausts the stack.

use toolway_types::limits;

use super::{FilterNode, FilterOp, ProjectionError};

/// How deep a filter may nest.
pub const MAX_DEPTH: usize = limits::result::FILTER_DEPTH;
/// How many bytes a filter may have.
pub const MAX_LENGTH: usize = limits::result::FILTER;

/// Reads a whole filter.
pub(super) fn parse(text: &str) -> Result<FilterNode, ProjectionError> {
    if text.len() > MAX_LENGTH {
        return Err(ProjectionError {
            column: 1,
            message: format!("a filter has at most {MAX_LENGTH} bytes"),
        });
    }
    let mut reader = FilterReader {
        chars: text.chars().collect(),
        at: 0,
        depth: 0,
        links: 0,
    };
    let root = reader.pipe(true)?;
    match reader.peek() {
        None => Ok(root),
        Some(other) => Err(reader.fault(format!("`{other}` does not belong here"))),
    }
}

struct FilterReader {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    /// How long the chain of suffixes and pipes is: it nests when it is applied.
    links: usize,
}

/// Operations that stand one behind the other are one inside the other once they are read.
const MAX_LINKS: usize = 256;

impl FilterReader {
    fn fault(&self, message: impl Into<String>) -> ProjectionError {
        ProjectionError {
            column: self.at + 1,
            message: message.into(),
        }
    }

    fn skip_space(&mut self) {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
    }

    /// The next character that is no space.
    fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.chars.get(self.at).copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, wanted: char, what: &str) -> Result<(), ProjectionError> {
        if self.take(wanted) {
            return Ok(());
        }
        Err(match self.peek() {
            None => self.fault(format!("`{wanted}` is missing after {what}")),
            Some(other) => self.fault(format!("`{wanted}` expected after {what}, not `{other}`")),
        })
    }

    fn link(&mut self) -> Result<(), ProjectionError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(self.fault(format!("a filter has at most {MAX_LINKS} steps")));
        }
        Ok(())
    }

    fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ProjectionError>,
    ) -> Result<T, ProjectionError> {
        if self.depth == MAX_DEPTH {
            return Err(self.fault(format!("a filter nests at most {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// `f | g | h`; in the fields of an object a comma ends it.
    fn pipe(&mut self, commas: bool) -> Result<FilterNode, ProjectionError> {
        let mut left = self.either(commas)?;
        while self.take('|') {
            self.link()?;
            let column = self.at;
            let right = self.either(commas)?;
            left = FilterNode {
                column,
                op: FilterOp::Pipe(Box::new(left), Box::new(right)),
            };
        }
        Ok(left)
    }

    fn either(&mut self, commas: bool) -> Result<FilterNode, ProjectionError> {
        let first = self.term()?;
        if !commas || self.peek() != Some(',') {
            return Ok(first);
        }
        let column = first.column;
        let mut all = vec![first];
        while self.take(',') {
            self.link()?;
            all.push(self.term()?);
        }
        Ok(FilterNode {
            column,
            op: FilterOp::Comma(all),
        })
    }

    fn term(&mut self) -> Result<FilterNode, ProjectionError> {
        let start = self.peek();
        let column = self.at + 1;
        let mut node = match start {
            Some('.') => {
                self.at += 1;
                let identity = FilterNode {
                    column,
                    op: FilterOp::Identity,
                };
                match self.chars.get(self.at) {
                    Some('.') => {
                        return Err(self.fault("`..` is not known here: name the way instead"));
                    }
                    Some(c) if begins_name(*c) || *c == '"' => self.field(identity, column)?,
                    _ => identity,
                }
            }
            Some('(') => {
                self.at += 1;
                let inner = self.deeper(|reader| reader.pipe(true))?;
                self.expect(')', "what `(` began")?;
                inner
            }
            Some('[') => {
                self.at += 1;
                let inner = self.deeper(|reader| reader.pipe(true))?;
                self.expect(']', "what `[` began")?;
                FilterNode {
                    column,
                    op: FilterOp::Collect(Box::new(inner)),
                }
            }
            Some('{') => {
                self.at += 1;
                self.deeper(|reader| reader.object(column))?
            }
            Some(c) if begins_name(c) => {
                return Err(self.fault(format!(
                    "a field begins with a dot: `.{}`",
                    self.clone_name()
                )));
            }
            Some('$') => return Err(self.fault("variables are not known here")),
            Some(other) => return Err(self.fault(format!("`{other}` does not begin a filter"))),
            None => return Err(self.fault("a filter is missing, e.g. `.items[].id`")),
        };
        loop {
            let next = self.peek();
            let column = self.at + 1;
            node = match next {
                Some('?') => {
                    self.at += 1;
                    self.link()?;
                    FilterNode {
                        column,
                        op: FilterOp::Try(Box::new(node)),
                    }
                }
                Some('[') => {
                    self.at += 1;
                    self.link()?;
                    self.bracket(node, column)?
                }
                Some('.') => {
                    self.at += 1;
                    self.link()?;
                    match self.chars.get(self.at) {
                        Some('[') => {
                            self.at += 1;
                            self.bracket(node, column)?
                        }
                        Some(c) if begins_name(*c) || *c == '"' => self.field(node, column)?,
                        _ => return Err(self.fault("the name of a field is missing")),
                    }
                }
                _ => return Ok(node),
            };
        }
    }

    fn field(&mut self, of: FilterNode, column: usize) -> Result<FilterNode, ProjectionError> {
        let name = self.name()?;
        Ok(FilterNode {
            column,
            op: FilterOp::Field(Box::new(of), name),
        })
    }

    /// What follows `[` behind a value.
    fn bracket(&mut self, of: FilterNode, column: usize) -> Result<FilterNode, ProjectionError> {
        let of = Box::new(of);
        let op = match self.peek() {
            Some(']') => FilterOp::Each(of),
            Some('"') => FilterOp::Field(of, self.quoted()?),
            Some(c) if c == ':' || c == '-' || c.is_ascii_digit() => {
                let from = self.number()?;
                if self.take(':') {
                    let to = self.number()?;
                    if from.is_none() && to.is_none() {
                        return Err(self.fault("a number is missing, e.g. `[2:5]`"));
                    }
                    FilterOp::Slice(of, from, to)
                } else {
                    let wanted = from.ok_or_else(|| self.fault("a number is missing"))?;
                    FilterOp::Index(of, wanted)
                }
            }
            Some(other) => {
                let what = "a number, `from:to`, a name in quotes or `]`";
                return Err(self.fault(format!("{what} expected after `[`, not `{other}`")));
            }
            None => return Err(self.fault("`]` is missing after `[`")),
        };
        self.expect(']', "what `[` began")?;
        Ok(FilterNode { column, op })
    }

    fn number(&mut self) -> Result<Option<i64>, ProjectionError> {
        self.skip_space();
        let start = self.at;
        if self.chars.get(self.at) == Some(&'-') {
            self.at += 1;
        }
        while self.chars.get(self.at).is_some_and(char::is_ascii_digit) {
            self.at += 1;
        }
        let digits: String = self.chars[start..self.at].iter().collect();
        if digits.is_empty() {
            return Ok(None);
        }
        digits.parse().map(Some).map_err(|_| ProjectionError {
            column: start + 1,
            message: format!("`{digits}` is no number that counts elements"),
        })
    }

    /// `{a, "b c", d: .e}`, behind the brace.
    fn object(&mut self, column: usize) -> Result<FilterNode, ProjectionError> {
        let mut fields = Vec::new();
        if !self.take('}') {
            loop {
                self.link()?;
                self.skip_space();
                let place = self.at + 1;
                let name = self.name()?;
                let value = if self.take(':') {
                    self.pipe(false)?
                } else {
                    let identity = FilterNode {
                        column: place,
                        op: FilterOp::Identity,
                    };
                    FilterNode {
                        column: place,
                        op: FilterOp::Field(Box::new(identity), name.clone()),
                    }
                };
                fields.push((name, value));
                if !self.take(',') {
                    break;
                }
            }
            self.expect('}', "what `{` began")?;
        }
        Ok(FilterNode {
            column,
            op: FilterOp::Object(fields),
        })
    }

    /// A bare or a quoted name.
    fn name(&mut self) -> Result<String, ProjectionError> {
        match self.chars.get(self.at) {
            Some('"') => self.quoted(),
            Some(c) if begins_name(*c) => {
                let name = self.clone_name();
                self.at += name.chars().count();
                Ok(name)
            }
            Some(other) => Err(self.fault(format!("the name of a field expected, not `{other}`"))),
            None => Err(self.fault("the name of a field is missing")),
        }
    }

    fn clone_name(&self) -> String {
        let is_inside = |c: &&char| begins_name(**c) || c.is_ascii_digit();
        self.chars[self.at..].iter().take_while(is_inside).collect()
    }

    /// A JSON string.
    fn quoted(&mut self) -> Result<String, ProjectionError> {
        let start = self.at;
        let mut end = start + 1;
        loop {
            match self.chars.get(end) {
                None => {
                    return Err(ProjectionError {
                        column: start + 1,
                        message: "the quote is never closed".to_owned(),
                    });
                }
                Some('"') => break,
                Some('\\') => end += 2,
                Some(_) => end += 1,
            }
        }
        let text: String = self.chars[start..=end].iter().collect();
        self.at = end + 1;
        serde_json::from_str(&text).map_err(|_| ProjectionError {
            column: start + 1,
            message: "the name in quotes is no JSON text".to_owned(),
        })
    }
}

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}
