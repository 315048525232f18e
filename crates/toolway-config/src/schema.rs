//! The JSON Schema of `.mcp.json` and the settings files.
//!
//! Owns the description for editors. What is checked is `raw`'s business; the two share the
//! tables in `keys`, and a test keeps every key of those in here.

use serde_json::{Value, json};
use toolway_types::{ProtocolMode, ShareMode, ShieldMode, TransportKind};

use crate::account;
use crate::identity;
use crate::idle::NEVER;
use crate::keys::{ENTRY, OAUTH, TOOL, ValueShape, about};
use crate::profile::{self, NameForm, ProfileMode, ResultForm};

/// The schema (draft 2020-12) of every file that holds servers or settings.
pub fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Toolway configuration",
        "description": "`.mcp.json`, `settings.json`, `settings.local.json`, `managed-settings.json` and `managed-mcp.json`. Comments and trailing commas are allowed.",
        "type": "object",
        "properties": settings(),
        "$defs": {
            "server": server(),
            "oauth": {"type": "object", "description": "How to log in.", "properties": properties(&OAUTH)},
            "tool": {"type": "object", "description": "What is changed about one tool.", "properties": properties(&TOOL)},
            "policyRule": policy_rule(),
            "account": account(),
            "identityProvider": identity_provider(),
            "profile": client_profile(),
        },
    })
}

fn settings() -> Value {
    let names =
        |about: &str| json!({"type": "array", "items": {"type": "string"}, "description": about});
    let rules = |about: &str| json!({"type": "array", "items": {"$ref": "#/$defs/policyRule"}, "description": about});
    json!({
        "$schema": {"type": "string"},
        "mcpServers": {
            "type": "object",
            "description": "Servers by name.",
            "additionalProperties": {"$ref": "#/$defs/server"},
        },
        "enabledMcpjsonServers": names("Servers of a project's `.mcp.json` that need no approval record, by a name that can mean no other. Ignored in the project's own files."),
        "disabledMcpjsonServers": names("Servers of a project's `.mcp.json` that never connect, in any spelling that comes to the same name."),
        "enableAllProjectMcpServers": {"type": "boolean", "description": "Every server of a project's `.mcp.json` needs no approval record."},
        "enabledMcpServers": names("Servers that are on although their entry says off."),
        "disabledMcpServers": names("Servers that are off."),
        "autoConnectIde": {"type": "boolean", "description": "The editor that has the working directory open is a server too, called `ide`. User and managed settings only."},
        "enabledPlugins": {"type": "object", "additionalProperties": {"type": "boolean"}, "description": "`false` switches a plugin's servers off."},
        "safeDirectories": names("Directories whose project files count although they belong to another user; `/srv/team/*` stands for everything below, `*` for all."),
        "projectVariables": names("Variables that every project's `.mcp.json` may read without your word for each; `*` stands for any characters, alone for all."),
        "permissions": {
            "type": "object",
            "description": "Which calls may run: deny beats ask beats allow.",
            "properties": {
                "allow": names("Calls that run without asking."),
                "ask": names("Calls that always ask."),
                "deny": names("Calls that never run."),
                "disableBypass": {"type": "boolean", "description": "Nobody may set the mode `bypass`."},
                "disableBypassPermissionsMode": {"enum": ["disable", true, false], "description": "The same, as others write it."},
                "defaultMode": {"enum": ["default", "auto", "bypass"], "description": "What happens without a rule."},
                "classifier": {
                    "description": "Who decides in mode `auto`; only in your own or managed settings. A command line, or a program or tool as in `hooks`.",
                    "anyOf": [{"type": "string"}, {"type": "object"}],
                },
                "pins": {"enum": ["ask", "warn", "off"], "description": "What happens when a tool's definition changed since it was first permitted."},
            },
        },
        "hooks": {"type": "object", "description": "Programs that run around calls, by event."},
        "allowedMcpServers": rules("Managed files only: the servers that may connect."),
        "deniedMcpServers": rules("Managed files only: the servers that may not."),
        "allowedMcpInstructions": rules("Managed files only: the servers whose instructions models see; with `[]` nobody's."),
        "deniedMcpInstructions": rules("Managed files only: the servers whose instructions are dropped."),
        "account": {"$ref": "#/$defs/account"},
        "identityProvider": {"$ref": "#/$defs/identityProvider"},
        "profiles": {
            "type": "object",
            "description": "What clients of the gateway see, by name. User and managed settings only.",
            "additionalProperties": {"$ref": "#/$defs/profile"},
        },
        "requireCrossAppAccess": {
            "description": "Managed files only: the servers that are logged in to by cross-app access and in no other way; `true` for every one.",
            "anyOf": [{"type": "boolean"}, {"type": "array", "items": {"$ref": "#/$defs/policyRule"}}],
        },
        "connectors": {"type": "boolean", "description": "`false` switches the account's connectors off."},
        "insecureStorage": {"type": "boolean", "description": "`false` forbids `--insecure-storage`: no secret is ever saved in plain text."},
        "env": {"type": "object", "additionalProperties": {"type": ["string", "number"]}, "description": "Managed settings only: `MCP_TIMEOUT`, `MCP_TOOL_TIMEOUT`, `MAX_MCP_OUTPUT_TOKENS`."},
    })
}

fn properties(keys: &[(&str, ValueShape)]) -> Value {
    let described = keys.iter().map(|(key, shape)| {
        let mut value = shaped(*shape, key);
        value["description"] = json!(about(key));
        ((*key).to_owned(), value)
    });
    Value::Object(described.collect())
}

fn server() -> Value {
    json!({
        "type": "object",
        "description": "One server: a process (`command`) or a remote one (`url`).",
        "properties": properties(&ENTRY),
        "not": {"required": ["command", "url"]},
    })
}

fn identity_provider() -> Value {
    let mut properties = serde_json::Map::new();
    for (key, about) in identity::KEYS {
        let mut value = match key {
            "scopes" => shaped(ValueShape::Scopes, key),
            "callbackPort" => shaped(ValueShape::Port, key),
            _ => json!({"type": "string", "minLength": 1}),
        };
        value["description"] = json!(about);
        properties.insert(key.to_owned(), value);
    }
    json!({
        "type": "object",
        "description": "The organisation's identity provider, for cross-app access. User and managed settings only.",
        "properties": properties,
        "required": ["issuer", "clientId"],
    })
}

fn client_profile() -> Value {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let mut properties = serde_json::Map::new();
    for (key, about) in profile::KEYS {
        let mut value = match key {
            "servers" | "tools" => texts.clone(),
            "permissions" => json!({
                "type": "object",
                "properties": {"deny": texts, "ask": texts},
                "additionalProperties": false,
            }),
            "mode" => json!({"enum": words(ProfileMode::ALL, ProfileMode::as_str)}),
            "results" => json!({"enum": words(ResultForm::ALL, ResultForm::as_str)}),
            "names" => json!({"enum": words(NameForm::ALL, NameForm::as_str)}),
            "accounts" => {
                json!({"type": "object", "additionalProperties": {"type": "string", "minLength": 1}})
            }
            _ => json!({"type": "boolean"}),
        };
        value["description"] = json!(about);
        properties.insert(key.to_owned(), value);
    }
    json!({
        "type": "object",
        "description": "What a client of the gateway sees, and under which rules. It only narrows.",
        "properties": properties,
        "additionalProperties": false,
    })
}

fn words<T: Copy>(all: &[T], word_of: fn(T) -> &'static str) -> Vec<&'static str> {
    all.iter().map(|one| word_of(*one)).collect()
}

fn account() -> Value {
    let text = json!({"type": "string", "minLength": 1});
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let mut properties = serde_json::Map::new();
    for (key, about) in account::KEYS {
        let mut value = match key {
            "provider" => json!({"enum": [account::PRESET]}),
            "scopes" => shaped(ValueShape::Scopes, key),
            "callbackPort" => shaped(ValueShape::Port, key),
            "connectors" => json!({"type": "object", "properties": {
                "directoryUrl": text,
                "proxyUrl": {"type": "string", "pattern": "\\{id\\}"},
                "fields": {"type": "object", "properties": {"list": text, "id": text, "name": text, "url": text}},
                "headers": texts,
                "tokenHeader": text,
                "tokenPrefix": {"type": "string"},
            }}),
            _ => text.clone(),
        };
        value["description"] = json!(about);
        properties.insert(key.to_owned(), value);
    }
    json!({
        "type": "object",
        "description": "The account whose connectors are servers too. User and managed settings only.",
        "properties": properties,
    })
}

fn policy_rule() -> Value {
    json!({
        "type": "object",
        "oneOf": [{"required": ["serverName"]}, {"required": ["serverUrl"]}, {"required": ["serverCommand"]}],
        "dependentRequired": {"env": ["serverCommand"], "cwd": ["serverCommand"]},
        "additionalProperties": false,
        "properties": {
            "serverName": {"type": "string", "description": "A name; `*` stands for any characters."},
            "serverUrl": {"type": "string", "description": "A URL pattern such as `https://*.example.com/*`."},
            "serverCommand": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "The command and its arguments, each with `*`; a last `**` stands for any further arguments."},
            "env": {"type": "array", "items": {"type": "string"}, "description": "In a list that allows, beside `serverCommand`: variables that an entry may set although they can decide what code runs; `*` stands for any characters."},
            "cwd": {"type": "array", "items": {"type": "string"}, "description": "In a list that allows, beside `serverCommand`: the working directories that an entry may name, each with `*`."},
        },
    })
}

fn shaped(shape: ValueShape, key: &str) -> Value {
    match (shape, key) {
        (ValueShape::Word, "type") => {
            let kinds = || TransportKind::ALL.iter();
            let mut words: Vec<_> = kinds().map(|kind| kind.as_str()).collect();
            words.extend(kinds().flat_map(|kind| kind.facts().aliases));
            json!({"enum": words})
        }
        (ValueShape::Word, "shield") => json!({"enum": ShieldMode::ALL.map(ShieldMode::as_str)}),
        (ValueShape::Word, "share") => json!({"enum": ShareMode::ALL.map(ShareMode::as_str)}),
        (ValueShape::Word, _) => {
            let modes = [
                ProtocolMode::Auto,
                ProtocolMode::Legacy,
                ProtocolMode::Modern,
            ];
            json!({"enum": modes.map(ProtocolMode::as_str)})
        }
        (ValueShape::Text, _) => json!({"type": "string", "minLength": 1}),
        (ValueShape::Texts, _) => json!({"type": "array", "items": {"type": "string"}}),
        (ValueShape::TextMap, "alias") => json!({
            "type": "object",
            "additionalProperties": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,56}$"},
        }),
        (ValueShape::Tools, _) => {
            json!({"type": "object", "additionalProperties": {"$ref": "#/$defs/tool"}})
        }
        (ValueShape::TextMap, _) => {
            json!({"type": "object", "additionalProperties": {"type": "string"}})
        }
        (ValueShape::Switch, _) => json!({"type": "boolean"}),
        (ValueShape::Idle, _) => {
            json!({"oneOf": [{"type": "integer", "minimum": 1}, {"const": NEVER}]})
        }
        (ValueShape::Milliseconds, _) => json!({"type": "integer", "minimum": 1000}),
        (ValueShape::Oauth, _) => json!({"$ref": "#/$defs/oauth"}),
        (ValueShape::Object(keys, ways), _) => {
            let ways: Vec<_> = ways.iter().map(|way| json!({"required": [way]})).collect();
            json!({"type": "object", "properties": properties(keys), "oneOf": ways})
        }
        (ValueShape::Port, _) => json!({"type": "integer", "minimum": 1, "maximum": 65535}),
        (ValueShape::Scopes, _) => {
            json!({"type": ["string", "array"], "items": {"type": "string"}})
        }
    }
}

#[cfg(test)]
mod tests {
    use toolway_types::VoucherKind;

    use super::*;
    use crate::keys::SETTINGS;

    fn assert_explained(schema: &Value, keys: &[(&str, ValueShape)]) {
        for (key, shape) in keys {
            let described = &schema["properties"][*key];
            assert_ne!(described["description"], "", "{key}");
            assert!(described.is_object(), "{key}");
            if let ValueShape::Object(keys, _) = shape {
                assert_explained(described, keys);
            }
        }
    }

    #[test]
    fn every_key_the_parser_knows_is_in_the_schema_and_explained() {
        let schema = schema();
        for key in SETTINGS.into_iter().chain(["mcpServers"]) {
            assert!(schema["properties"][key].is_object(), "{key}");
        }
        let definitions = &schema["$defs"];
        assert_explained(&definitions["server"], &ENTRY);
        assert_explained(&definitions["oauth"], &OAUTH);
        assert_explained(&definitions["tool"], &TOOL);
        for kind in VoucherKind::ALL {
            let described = &definitions["oauth"]["properties"][kind.as_str()];
            assert!(described.is_object(), "{kind:?}");
        }
        let word = |key: &str| schema["$defs"]["server"]["properties"][key]["enum"].clone();
        assert_eq!(word("shield"), json!(["off", "best-effort", "required"]));
        assert_eq!(word("protocol"), json!(["auto", "legacy", "2026-07-28"]));
        for key in ["serverName", "serverUrl", "serverCommand", "env", "cwd"] {
            assert!(
                schema["$defs"]["policyRule"]["properties"][key].is_object(),
                "{key}"
            );
        }
    }
}
