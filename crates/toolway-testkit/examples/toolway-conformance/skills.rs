//! What is tried with skills: list them, and use each as a program that wants all of it would.
//!
//! Owns which check must stop a tampered skill. One that is not stopped is used to its last file,
//! which is what the suite watches for.

use toolway::types::ServerName;
use toolway::view::SkillFiles;
use toolway::{FailedCheck, Host, ListedSkill, SkillError};

use crate::walk::Failure;

pub(crate) async fn walk(scenario: &str, host: &Host, server: &str) -> Result<(), Failure> {
    let server = ServerName::new(server).map_err(|error| Failure::Plan(error.to_string()))?;
    let list = host.skills(&server).await?;
    if list.skills.is_empty() || !list.warnings.is_empty() {
        return Err(Failure::NoSkill(list.warnings));
    }
    // A list is all that this one wants, and nothing may be read because of it.
    if scenario == "sep-2640-client-no-prefetch" {
        return Ok(());
    }
    for skill in &list.skills {
        match use_all(host, skill).await {
            Ok(()) => return Err(Failure::Deceived(skill.uri().to_owned())),
            Err(SkillError::Unverified { check, .. }) if stops(scenario, &check) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

async fn use_all(host: &Host, skill: &ListedSkill) -> Result<(), SkillError> {
    let loaded = host.load_skill(skill).await?;
    if let SkillFiles::Listed(files) = skill.files() {
        for file in files {
            host.read_skill_file(&loaded, &file.uri).await?;
        }
    }
    Ok(())
}

/// Whether this is what is wrong with the skill of a scenario.
fn stops(scenario: &str, check: &FailedCheck) -> bool {
    match scenario {
        "sep-2640-client-verify-digest" => matches!(check, FailedCheck::Digest { .. }),
        "sep-2640-client-verify-size" => matches!(check, FailedCheck::Size { .. }),
        "sep-2640-client-verify-frontmatter" => {
            matches!(check, FailedCheck::Frontmatter { field, .. } if field.as_received() == "description")
        }
        _ => false,
    }
}
