//! Skills as a server lists them (extension `io.modelcontextprotocol/skills`).
//!
//! Owns the shape of an entry: where its main file is, its front matter, and the manifest of its
//! files. An entry that contradicts itself is a fault of that entry: one whose name is not the
//! last part of its path, whose manifest lacks its main file, names a file twice or one outside
//! its folder. Does not own reading a file or holding it against the manifest.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{ListPage, ListView, ViewError, object, required};
use crate::lenient;
use crate::members::RawMembers;
use crate::raw_json::JsonText;

/// The name under which a server declares that it has skills.
pub const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// What the URI of every skill ends with.
const MAIN_FILE: &str = "/SKILL.md";

/// One skill.
#[derive(Debug, Clone)]
pub struct Skill {
    /// Where its main file is. Names it within its server.
    pub uri: String,
    /// Its name, as received: a label that others may have too.
    pub name: String,
    /// What it is for, as received.
    pub description: String,
    /// Everything its author wrote at the head of the main file, name and description included.
    pub frontmatter: Map<String, Value>,
    /// Its files.
    pub files: SkillFiles,
    /// The whole entry, untouched.
    pub raw: Box<RawValue>,
}

/// What is said in advance about the files of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillFiles {
    /// These and no others, the main file among them.
    Listed(Vec<SkillFile>),
    /// They are made when they are read, so nothing can be said.
    Dynamic,
}

/// One file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// Where it is.
    pub uri: String,
    /// `sha256:` and 64 digits, of its bytes.
    pub digest: String,
    /// How many bytes it has.
    pub size: u64,
}

impl Skill {
    /// The folder that its files are in, without a slash at the end.
    pub fn root(&self) -> &str {
        self.uri.strip_suffix(MAIN_FILE).unwrap_or(&self.uri)
    }
}

/// The list of skills.
pub const SKILLS: ListView<Skill> = ListView {
    list: "skills",
    label: "uri",
    read: skill,
};

/// Views a `skills/list` result that is all of the list.
pub fn skills(result: &(impl JsonText + ?Sized)) -> Result<ListPage<Skill>, ViewError> {
    SKILLS.whole(result)
}

/// Views a `skills/get` result.
pub fn skill_result(result: &(impl JsonText + ?Sized)) -> Result<Skill, SkillFault> {
    let members = object(result)?;
    let raw = members.value("skill").ok_or(ViewError::Missing("skill"))?;
    let entry = object(raw)?;
    skill(raw, &entry).map_err(SkillFault::Entry)
}

/// Why an entry that was asked for cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkillFault {
    /// There is none in the result.
    #[error(transparent)]
    View(#[from] ViewError),
    /// It is malformed, or contradicts itself.
    #[error("a skill that cannot be used: {0}")]
    Entry(String),
}

fn skill(raw: &RawValue, entry: &RawMembers<'_>) -> Result<Skill, String> {
    let uri = required(entry, "uri")?;
    let frontmatter = entry
        .value("frontmatter")
        .ok_or("`frontmatter` is missing")?;
    // Read as members first: a doubled name could be shown as one thing and compared as another.
    let head = RawMembers::read(frontmatter.get())
        .map_err(|error| format!("`frontmatter` is not a usable object: {error}"))?;
    let name = required(&head, "name")?;
    let description = required(&head, "description")?;
    let folder = uri
        .strip_suffix(MAIN_FILE)
        .ok_or("`uri` does not end in `/SKILL.md`")?;
    if name.is_empty() || folder.rsplit('/').next() != Some(&name) {
        return Err(format!(
            "its name is `{name}`, and its `uri` says otherwise"
        ));
    }
    let files = entry.value("resources").ok_or("`resources` is missing")?;
    Ok(Skill {
        files: if files.get() == "\"dynamic\"" {
            SkillFiles::Dynamic
        } else {
            SkillFiles::Listed(manifest(files, &uri, folder)?)
        },
        frontmatter: serde_json::from_str(frontmatter.get())
            .map_err(|error| format!("`frontmatter` is not a usable object: {error}"))?,
        uri,
        name,
        description,
        raw: raw.to_owned(),
    })
}

fn manifest(files: &RawValue, main: &str, folder: &str) -> Result<Vec<SkillFile>, String> {
    let items: Vec<&RawValue> = serde_json::from_str(files.get())
        .map_err(|_| "`resources` is neither a list nor `dynamic`")?;
    let mut listed = Vec::with_capacity(items.len());
    let mut seen = std::collections::HashSet::with_capacity(items.len());
    for item in items {
        let members = RawMembers::read(item.get())
            .map_err(|error| format!("one of its `resources` is not a usable object: {error}"))?;
        let file = SkillFile {
            uri: required(&members, "uri")?,
            digest: required(&members, "digest")?,
            size: members
                .value("size")
                .and_then(lenient::unsigned)
                .ok_or("one of its `resources` has no usable `size`")?,
        };
        if !is_digest(&file.digest) {
            return Err(format!("`{}` has no SHA-256 `digest`", file.uri));
        }
        if !is_within(&file.uri, folder) {
            return Err(format!("`{}` is outside its folder", file.uri));
        }
        if !seen.insert(file.uri.clone()) {
            return Err(format!("`{}` is listed twice", file.uri));
        }
        listed.push(file);
    }
    if !seen.contains(main) {
        return Err("its `resources` lack its own `SKILL.md`".to_owned());
    }
    Ok(listed)
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64
            && hex
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Whether a URI names something in this folder, by its text and after any reader resolved it.
fn is_within(uri: &str, folder: &str) -> bool {
    let inside = uri
        .strip_prefix(folder)
        .and_then(|rest| rest.strip_prefix('/'));
    inside.is_some_and(|path| {
        path.split(['/', '\\']).all(|part| {
            let plain = part.to_ascii_lowercase().replace("%2e", ".");
            !matches!(plain.as_str(), "" | "." | "..")
        })
    })
}

#[cfg(test)]
mod tests;
