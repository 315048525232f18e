//! The address of a connector behind its provider's proxy.
//!
//! Owns the template with `{id}`, and that an id, which the directory chose, stays one piece of
//! the path or query whatever it holds.

use std::fmt;

use url::Url;

use crate::http_syntax::confidential_url;

/// Where the id goes.
const PLACE: &str = "{id}";
/// Stands for an id while the template is parsed. No real address contains it.
const STAND_IN: &str = "id-7d1f0c2ab9e44c6f";
/// The longest id.
const LONGEST_ID: usize = 256;

/// How a connector's address is made of its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyUrl {
    before: String,
    after: String,
}

impl ProxyUrl {
    /// Reads a template such as `https://proxy.example.com/{id}/mcp`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.matches(PLACE).count() != 1 {
            return Err(format!(
                "must have `{PLACE}` once, where a connector's id goes"
            ));
        }
        let url = confidential_url(&text.replace(PLACE, STAND_IN))?;
        let whole = url.as_str();
        let origin = url.origin().ascii_serialization();
        match whole.split_once(STAND_IN) {
            Some((before, after)) if before.len() > origin.len() => Ok(Self {
                before: before.to_owned(),
                after: after.to_owned(),
            }),
            _ => Err(format!("must have `{PLACE}` in its path or query")),
        }
    }

    /// The address of a connector; nothing for an id that could mean another place.
    pub fn of(&self, id: &str) -> Option<Url> {
        // A segment of dots alone would lead out of its place.
        if id.len() > LONGEST_ID || id.chars().all(|c| c == '.') {
            return None;
        }
        let url = format!("{}{}{}", self.before, escaped(id), self.after);
        let url = Url::parse(&url).ok()?;
        self.leads_to(&url).then_some(url)
    }

    /// Whether this is the address of some connector: the only addresses that the account's token
    /// is sent to.
    pub fn leads_to(&self, url: &Url) -> bool {
        let id = url
            .as_str()
            .strip_prefix(&self.before)
            .and_then(|rest| rest.strip_suffix(&self.after));
        id.is_some_and(|id| {
            !id.is_empty()
                && id.bytes().all(|byte| is_plain(byte) || byte == b'%')
                && !id.bytes().all(|byte| byte == b'.')
        })
    }
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{PLACE}{}", self.before, self.after)
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte)
}

/// Every byte that means something in a URL, or could, is spelled as a number.
fn escaped(id: &str) -> String {
    let mut text = String::with_capacity(id.len());
    for byte in id.bytes() {
        if is_plain(byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            text.push_str(&hex::encode_upper([byte]));
        }
    }
    text
}
