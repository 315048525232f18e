//! Where a reference within the same document leads.
//!
//! Owns JSON pointers and how they are spelled as the fragment of a URI. Names (`$anchor`, `$id`)
//! are for those who need them: they take a walk through the whole document.

use serde_json::Value;

/// The schema that a `$ref` of this one leads to by its pointer.
pub fn target<'a>(root: &'a Value, schema: &Value) -> Option<&'a Value> {
    let reference = schema.get("$ref")?.as_str()?;
    root.pointer(&pointer_of(reference)?)
}

/// The pointer that a reference inside the same document is.
pub fn pointer_of(reference: &str) -> Option<String> {
    decoded(reference.strip_prefix('#')?)
}

/// The fragment of a URI without its escapes.
pub fn decoded(fragment: &str) -> Option<String> {
    let mut text = Vec::with_capacity(fragment.len());
    let mut bytes = fragment.bytes();
    while let Some(byte) = bytes.next() {
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        text.push(match byte {
            b'%' => u8::try_from(digit()? * 16 + digit()?).ok()?,
            plain => plain,
        });
    }
    String::from_utf8(text).ok()
}

/// The address that a schema gives itself.
pub fn identifier(schema: &Value) -> Option<&str> {
    let id = schema.get("$id")?.as_str()?;
    Some(id.trim_end_matches('#')).filter(|id| !id.is_empty())
}

/// A member's name as a step of a pointer.
pub fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A step of a pointer as a member's name.
pub fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}
