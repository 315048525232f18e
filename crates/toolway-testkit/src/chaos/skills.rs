//! The scripted server's skills: entries with digests, and files that fit them or do not.
//!
//! Owns `skills/list`, `skills/get` and the resources that skills are made of. Which flaw they
//! have is the script's.

use std::fmt::Write as _;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::server::MethodFault;
use crate::{ScriptedSkills, SkillFlaw};

/// The tool that tells which requests came.
pub(super) const ASKED: &str = "asked";

/// Larger than any skill that a host has to take.
const FLOOD: usize = 20 * 1024 * 1024;

const DESCRIPTION: &str = "Does what its script says";

/// A request about skills, for people who ask later.
pub(super) fn request(method: &str, params: &Value) -> String {
    let of = params["uri"].as_str().or(params["cursor"].as_str());
    format!("{method} {}", of.unwrap_or_default())
        .trim_end()
        .to_owned()
}

/// What such a request is answered with; none when it is about something else.
pub(super) fn answer(
    skills: ScriptedSkills,
    method: &str,
    params: &Value,
) -> Option<Result<Value, MethodFault>> {
    match method {
        "skills/list" => Some(list(skills, params)),
        "skills/get" if skills.flaw != Some(SkillFlaw::NoGet) => Some(get(skills, params)),
        "resources/read" => Some(read(skills, params)),
        // They need not be listed as resources to be read.
        "resources/list" => Some(Ok(json!({ "resources": [] }))),
        "resources/templates/list" => Some(Ok(json!({ "resourceTemplates": [] }))),
        _ => None,
    }
}

fn list(skills: ScriptedSkills, params: &Value) -> Result<Value, MethodFault> {
    let start = match params["cursor"].as_str() {
        None => 0,
        Some(cursor) => cursor
            .parse::<usize>()
            .map_err(|_| MethodFault(-32602, format!("unknown cursor `{cursor}`")))?,
    };
    let size = match skills.page_size {
        0 => skills.count,
        size => size,
    };
    let endless = skills.flaw == Some(SkillFlaw::Endless);
    let end = if endless {
        start + size
    } else {
        skills.count.min(start + size)
    };
    let mut entries = Vec::new();
    for number in start..end {
        let name = format!("skill-{number}");
        let mut listed = entry(skills, "chaos", &name);
        if skills.flaw == Some(SkillFlaw::Malformed) && number % 2 == 1 {
            listed["resources"] = Value::Null;
        }
        entries.push(listed);
        if skills.flaw == Some(SkillFlaw::Twins) {
            entries.push(entry(skills, "twins", &name));
        }
    }
    let mut result = json!({ "skills": entries });
    if endless || end < skills.count {
        result["nextCursor"] = json!(end.to_string());
    }
    Ok(result)
}

fn get(skills: ScriptedSkills, params: &Value) -> Result<Value, MethodFault> {
    let (folder, name, file) = find(skills, params)?;
    if file != "SKILL.md" {
        return Err(MethodFault(
            -32602,
            "not the main file of a skill".to_owned(),
        ));
    }
    Ok(json!({ "skill": entry(skills, folder, name) }))
}

fn read(skills: ScriptedSkills, params: &Value) -> Result<Value, MethodFault> {
    let (_, name, file) = find(skills, params)?;
    let text = served(skills, name, file)
        .ok_or_else(|| MethodFault(-32602, format!("no file `{file}` in `{name}`")))?;
    let content = json!({ "uri": params["uri"], "mimeType": "text/markdown", "text": text });
    Ok(json!({ "contents": [content] }))
}

/// Folder, skill and file of a URI that is served.
fn find(skills: ScriptedSkills, params: &Value) -> Result<(&str, &str, &str), MethodFault> {
    let uri = params["uri"].as_str().unwrap_or_default();
    let unknown = || MethodFault(-32602, format!("nothing is served at `{uri}`"));
    let path = uri.strip_prefix("skill://").ok_or_else(unknown)?;
    let mut parts = path.splitn(3, '/');
    let (Some(folder), Some(name), Some(file)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(unknown());
    };
    let number = name.strip_prefix("skill-");
    let number = number.and_then(|number| number.parse::<usize>().ok());
    if name == "hidden" || number.is_some_and(|number| number < skills.count) {
        Ok((folder, name, file))
    } else {
        Err(unknown())
    }
}

fn entry(skills: ScriptedSkills, folder: &str, name: &str) -> Value {
    let root = format!("skill://{folder}/{name}");
    let main = match skills.flaw {
        // Size and digest are those of the file that describes itself otherwise.
        Some(SkillFlaw::Frontmatter) => served(skills, name, "SKILL.md").unwrap_or_default(),
        _ => honest(name, "SKILL.md"),
    };
    let mut files = vec![
        listed(&format!("{root}/SKILL.md"), &main),
        listed(&format!("{root}/notes.md"), &honest(name, "notes.md")),
    ];
    match skills.flaw {
        Some(SkillFlaw::Heavy) => files[1]["size"] = json!(FLOOD),
        Some(SkillFlaw::Crowded) => {
            let more = (0..600).map(|number| listed(&format!("{root}/{number}.md"), ""));
            files.extend(more);
        }
        _ => {}
    }
    json!({
        "uri": format!("{root}/SKILL.md"),
        "frontmatter": { "name": name, "description": DESCRIPTION, "metadata": { "version": 1.5 } },
        "resources": match skills.flaw {
            Some(SkillFlaw::Dynamic) => json!("dynamic"),
            _ => Value::Array(files),
        },
    })
}

fn listed(uri: &str, text: &str) -> Value {
    let mut digest = String::from("sha256:");
    for byte in Sha256::digest(text) {
        let _ = write!(digest, "{byte:02x}");
    }
    json!({ "uri": uri, "digest": digest, "size": text.len() })
}

/// A file as it should be.
fn honest(name: &str, file: &str) -> String {
    match file {
        "SKILL.md" => format!(
            "---\nname: {name}\ndescription: {DESCRIPTION}\nmetadata:\n  version: 1.5\n---\n\nRead \
             notes.md.\n"
        ),
        _ => format!("The notes of {name}.\n"),
    }
}

/// A file as it is served; none when there is none.
fn served(skills: ScriptedSkills, name: &str, file: &str) -> Option<String> {
    let text = honest(name, file);
    Some(match (file, skills.flaw) {
        ("SKILL.md", Some(SkillFlaw::Digest)) => text.replace("Read", "Heed"),
        ("SKILL.md", Some(SkillFlaw::Size)) => text + "And more.\n",
        ("SKILL.md", Some(SkillFlaw::Frontmatter)) => text.replace(DESCRIPTION, "Sends secrets"),
        ("SKILL.md", Some(SkillFlaw::Flood)) => text + &"x".repeat(FLOOD),
        ("notes.md", Some(SkillFlaw::Notes)) => text.replace("notes", "votes"),
        ("SKILL.md" | "notes.md", _) => text,
        // Served, but no entry lists it.
        ("secret.md", _) => "Not for you.\n".to_owned(),
        _ => return None,
    })
}
