//! Skills of a server that does not declare the extension: plain resources under `skill://`.
//!
//! Owns which resources those are, and reading them. Nothing is said of their files in advance, so
//! nothing is held against anything: neither size nor digest nor head.

use serde_json::Map;
use serde_json::value::RawValue;
use toolway_types::ServerName;
use toolway_wire::view::{self, SkillFiles};

use super::{ListedSkill, MAX_SKILLS, SkillList};
use crate::catalog::Catalog;

/// What the address of such a skill begins with.
const SCHEME: &str = "skill://";
/// What it ends with.
const MAIN_FILE: &str = "/SKILL.md";

/// The skills among the resources of a server, in its order; none where there are none.
pub(super) fn list(catalog: &Catalog, server: &ServerName) -> Option<SkillList> {
    let mut skills: Vec<ListedSkill> = catalog
        .resources_of(server)
        .iter()
        .filter_map(|resource| {
            let name = name(&resource.uri)?;
            let entry = view::Skill {
                uri: resource.uri.clone(),
                name: name.to_owned(),
                description: resource.description.clone(),
                frontmatter: Map::new(),
                files: SkillFiles::Dynamic,
                raw: RawValue::NULL.to_owned(),
            };
            let plain = true;
            Some(ListedSkill {
                plain,
                ..ListedSkill::new(server, entry)
            })
        })
        .collect();
    skills.truncate(MAX_SKILLS);
    let warnings = Vec::new();
    (!skills.is_empty()).then_some(SkillList { skills, warnings })
}

/// The name in `skill://<name>/SKILL.md`.
fn name(uri: &str) -> Option<&str> {
    let name = uri.strip_prefix(SCHEME)?.strip_suffix(MAIN_FILE)?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}

/// Whether an address is of a file in the folder of such a skill, and of nothing outside of it.
pub(super) fn is_within(root: &str, uri: &str) -> bool {
    uri.strip_prefix(root)
        .and_then(|path| path.strip_prefix('/'))
        .is_some_and(|path| {
            let mut parts = path.split('/');
            let is_part = |part: &str| {
                let part = part.to_ascii_lowercase().replace("%2e", ".");
                !matches!(part.as_str(), "" | "." | "..") && !part.contains(['\\', '?', '#'])
            };
            parts.all(is_part) && !path.to_ascii_lowercase().contains("%2f")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_is_told_by_its_address() {
        for (uri, expected) in [
            ("skill://pdf/SKILL.md", Some("pdf")),
            ("skill:///SKILL.md", None),
            ("skill://a/b/SKILL.md", None),
            ("skill://pdf/notes.md", None),
            ("file://pdf/SKILL.md", None),
        ] {
            assert_eq!(name(uri), expected, "{uri}");
        }
    }

    #[test]
    fn a_file_is_inside_of_its_skill() {
        let root = "skill://pdf";
        for (path, inside) in [
            ("/notes.md", true),
            ("/a/b.md", true),
            ("/../other/SKILL.md", false),
            ("/%2E%2e/other/SKILL.md", false),
            ("/a%2f..%2fb", false),
            ("/a//b", false),
            ("/", false),
            ("-2/SKILL.md", false),
            ("/a?b", false),
        ] {
            assert_eq!(is_within(root, &format!("{root}{path}")), inside, "{path}");
        }
    }
}
