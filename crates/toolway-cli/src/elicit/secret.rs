//! What looks like a secret in a server's form.
//!
//! Owns the words that give it away. Servers must not ask for secrets in forms (SEC-36); this
//! only has to be right often enough that a person stops and thinks, so a doubtful word counts.

use serde_json::Value;

/// Words that name a secret by themselves.
const WORDS: &[&str] = &[
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "secrets",
    "token",
    "apikey",
    "credential",
    "credentials",
];

/// Words that do as the name of a field; in a sentence they may mean something else.
const NAMES: &[&str] = &["pwd", "otp", "totp", "cvv", "cvc", "pin"];

/// Words that do when they follow one another.
const PAIRS: &[(&str, &str)] = &[
    ("api", "key"),
    ("access", "key"),
    ("private", "key"),
    ("secret", "key"),
    ("signing", "key"),
    ("ssh", "key"),
    ("pass", "word"),
    ("pass", "phrase"),
    ("recovery", "phrase"),
    ("seed", "phrase"),
    ("card", "number"),
];

/// Whether a field asks for a secret, by what it is called, how it is described or its format.
pub(super) fn is_field(name: &str, property: &Value) -> bool {
    let text = |key: &str| property[key].as_str().unwrap_or_default();
    if text("format") == "password" || property["writeOnly"] == Value::Bool(true) {
        return true;
    }
    // A choice or a yes tells no secret, and a count of tokens is a number.
    let free = property["enum"].is_null()
        && property["oneOf"].is_null()
        && !matches!(text("type"), "boolean" | "number" | "array");
    let is_name = |name: &str| {
        let words = words(name);
        words.iter().any(|word| NAMES.contains(&word.as_str()))
    };
    let named = [name, text("title")];
    free && (named.into_iter().any(is_name)
        || named.into_iter().any(names_one)
        || names_one(text("description")))
}

/// Whether a server's words speak of a secret.
pub(super) fn names_one(text: &str) -> bool {
    let words = words(text);
    words.iter().any(|word| WORDS.contains(&word.as_str()))
        || words
            .windows(2)
            .any(|pair| PAIRS.contains(&(pair[0].as_str(), pair[1].as_str())))
}

/// `yourAPIKey`, `api_key` and `API key` are the same words.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let characters: Vec<char> = text.chars().collect();
    for (place, &character) in characters.iter().enumerate() {
        if !character.is_alphanumeric() {
            words.push(String::new());
            continue;
        }
        let before = place.checked_sub(1).map(|place| characters[place]);
        let after = characters.get(place + 1);
        let begins = character.is_uppercase()
            && (before.is_some_and(char::is_lowercase)
                || (before.is_some_and(char::is_uppercase)
                    && after.is_some_and(|after| after.is_lowercase())));
        if begins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(character.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sec_36_a_field_that_asks_for_a_secret_is_known_by_name_title_description_or_format() {
        let plain = json!({ "type": "string" });
        for name in [
            "password",
            "userPassword",
            "API_KEY",
            "yourAPIKey",
            "apikey",
            "access-token",
            "private_key",
            "pass phrase",
            "client.secret",
            "OTP",
        ] {
            assert!(is_field(name, &plain), "{name}");
        }
        for property in [
            json!({ "type": "string", "format": "password" }),
            json!({ "type": "string", "writeOnly": true }),
            json!({ "type": "string", "title": "Your API key" }),
            json!({ "type": "string", "description": "The token from your account page" }),
            json!({ "type": "integer", "title": "PIN" }),
        ] {
            assert!(is_field("value", &property), "{property}");
        }
    }

    #[test]
    fn what_only_resembles_one_is_left_alone() {
        let plain = json!({ "type": "string" });
        for name in [
            "name",
            "keyboard",
            "tokenizer",
            "pineapple",
            "passenger",
            "monkey",
        ] {
            assert!(!is_field(name, &plain), "{name}");
        }
        for property in [
            json!({ "type": "boolean", "title": "Show the password?" }),
            json!({ "type": "number", "title": "token budget" }),
            json!({ "type": "integer", "description": "Any number (but not your phone's pin)" }),
            json!({ "type": "string", "enum": ["token", "none"], "title": "How to use a token" }),
        ] {
            assert!(!is_field("value", &property), "{property}");
        }
    }
}
