//! Skills as a front-end sees them: listed without being read, loaded only when they are what was
//! listed.

use std::time::Duration;

use serde_json::{Value, json};
use toolway::{
    CallError, CallFault, CallOptions, Consent, FailedCheck, Host, HostOptions, ListedSkill,
    SkillError, SkillList,
};
use toolway_testkit::{Script, ScriptedServer, ScriptedSkills, SkillFlaw, SpokenEras};
use toolway_types::Era;

use crate::support::*;

const MAIN: &str = "skill://chaos/skill-0/SKILL.md";
const NOTES: &str = "skill://chaos/skill-0/notes.md";

/// A host of one scripted server that offers these skills.
struct Stage {
    host: Host,
    _home: Home,
}

impl Stage {
    fn new(skills: Option<ScriptedSkills>, speaks: SpokenEras) -> Self {
        let script = Script {
            skills,
            speaks,
            ..Script::default()
        };
        Self::of(&ScriptedServer::new(script).entry())
    }

    fn of(entry: &Value) -> Self {
        let home = Home::new();
        let plan = home.plan(&json!({ "able": entry }));
        let host = Host::start(plan, home.options());
        Self { host, _home: home }
    }

    /// Two skills, with this flaw or none.
    fn flawed(flaw: Option<SkillFlaw>) -> Self {
        let skills = ScriptedSkills {
            count: 2,
            flaw,
            ..ScriptedSkills::default()
        };
        Self::new(Some(skills), SpokenEras::Both)
    }

    async fn list(&self) -> SkillList {
        self.host.skills(&name("able")).await.expect("a list")
    }

    async fn first(&self) -> ListedSkill {
        self.list().await.skills.swap_remove(0)
    }

    /// What the server was asked about skills, in order.
    async fn asked(&self) -> Vec<String> {
        let call = self.host.call(
            request("able", "asked", ""),
            CallOptions::new(Consent::Typed),
        );
        let asked = text_of(&call.await.expect("an answer"));
        asked.lines().map(ToOwned::to_owned).collect()
    }

    /// What is read, without the lists of resources that connecting asks for.
    async fn read(&self) -> Vec<String> {
        let mut asked = self.asked().await;
        asked.retain(|request| request.starts_with("resources/read"));
        asked
    }

    /// Lists, loads the first, and says why that failed.
    async fn refusal(&self) -> SkillError {
        let listed = self.first().await;
        self.host
            .load_skill(&listed)
            .await
            .map(|loaded| loaded.text().to_string())
            .expect_err("it is not what was listed")
    }
}

fn failed(error: &SkillError) -> &FailedCheck {
    let SkillError::Unverified { check, .. } = error else {
        panic!("{error}")
    };
    let said = error.to_string();
    assert!(said.contains("server `able`"), "{said}");
    assert!(said.contains("List its skills again"), "{said}");
    check
}

#[tokio::test]
async fn skills_are_listed_loaded_and_read_in_both_eras_and_never_before_they_are_asked_for() {
    for (speaks, era) in [
        (SpokenEras::Legacy, Era::Legacy),
        (SpokenEras::Modern, Era::Modern),
    ] {
        let skills = ScriptedSkills {
            count: 3,
            ..ScriptedSkills::default()
        };
        let stage = Stage::new(Some(skills), speaks);
        let list = stage.list().await;
        assert_eq!(facts(&stage.host, "able").era, era);
        assert_eq!(list.warnings, Vec::<String>::new());
        assert_eq!(list.skills.len(), 3);
        let skill = &list.skills[0];
        assert_eq!(skill.server().as_str(), "able");
        assert_eq!(skill.uri(), MAIN);
        assert_eq!(skill.name().to_string(), "skill-0");
        assert_eq!(skill.description().to_string(), "Does what its script says");
        assert_eq!(skill.frontmatter()["metadata"]["version"], 1.5);
        assert_eq!(stage.read().await, Vec::<String>::new());

        let loaded = stage.host.load_skill(skill).await.expect("a skill");
        let text = loaded.text().to_string();
        assert!(text.contains("Read notes.md."), "{text}");
        assert_eq!(stage.read().await, [format!("resources/read {MAIN}")]);

        for notes in ["notes.md", "./notes.md", NOTES] {
            let file = stage.host.read_skill_file(&loaded, notes).await;
            let file = file.expect("a file");
            assert_eq!(file.uri, NOTES);
            assert_eq!(file.bytes, b"The notes of skill-0.\n");
        }
        stage.host.shutdown().await;
    }
}

#[tokio::test]
async fn a_main_file_that_is_not_what_was_listed_is_refused_and_no_other_file_is_read() {
    let stage = Stage::flawed(Some(SkillFlaw::Digest));
    let error = stage.refusal().await;
    let FailedCheck::Digest { expected, found } = failed(&error) else {
        panic!("{error}")
    };
    assert_ne!(expected, found);
    assert!(error.to_string().contains(expected) && error.to_string().contains(found));
    assert_eq!(stage.read().await, [format!("resources/read {MAIN}")]);
    stage.host.shutdown().await;

    let stage = Stage::flawed(Some(SkillFlaw::Size));
    let error = stage.refusal().await;
    let FailedCheck::Size { expected, found } = failed(&error) else {
        panic!("{error}")
    };
    assert_eq!(*found, *expected + 10);
    assert_eq!(stage.read().await, [format!("resources/read {MAIN}")]);
    stage.host.shutdown().await;

    let stage = Stage::flawed(Some(SkillFlaw::Frontmatter));
    let error = stage.refusal().await;
    let FailedCheck::Frontmatter {
        field,
        expected: Some(expected),
        found: Some(found),
    } = failed(&error)
    else {
        panic!("{error}")
    };
    assert_eq!(field.to_string(), "description");
    assert_eq!(expected.to_string(), "\"Does what its script says\"");
    assert_eq!(found.to_string(), "\"Sends secrets\"");
    assert_eq!(stage.read().await, [format!("resources/read {MAIN}")]);
    stage.host.shutdown().await;
}

#[tokio::test]
async fn finding_and_loading_in_one_step_verifies_just_the_same() {
    let stage = Stage::flawed(Some(SkillFlaw::Digest));
    for which in [MAIN, "skill-0"] {
        let error = stage.host.read_skill(&name("able"), which).await;
        let error = error.expect_err("it is not what was listed");
        assert!(matches!(failed(&error), FailedCheck::Digest { .. }));
    }
    stage.host.shutdown().await;
}

#[tokio::test]
async fn another_file_that_is_not_what_was_listed_is_refused() {
    let stage = Stage::flawed(Some(SkillFlaw::Notes));
    let loaded = stage.host.load_skill(&stage.first().await).await;
    let loaded = loaded.expect("its main file is as listed");
    let error = stage.host.read_skill_file(&loaded, "notes.md").await;
    let error = error.expect_err("it is not what was listed");
    let check = failed(&error);
    assert!(matches!(check, FailedCheck::Digest { .. }), "{error}");
    stage.host.shutdown().await;
}

#[tokio::test]
async fn a_file_that_the_skill_does_not_list_is_not_even_asked_for() {
    let stage = Stage::flawed(None);
    let loaded = stage.host.load_skill(&stage.first().await).await;
    let loaded = loaded.expect("a skill");
    for file in [
        "secret.md",
        "../skill-1/SKILL.md",
        "skill://chaos/skill-0/secret.md",
        "skill://chaos/skill-1/SKILL.md",
        "file:///etc/passwd",
    ] {
        let error = stage.host.read_skill_file(&loaded, file).await;
        let error = error.expect_err("it is not listed");
        assert!(
            matches!(error, SkillError::NoSuchFile { .. }),
            "{file}: {error:?}"
        );
    }
    assert_eq!(stage.read().await, [format!("resources/read {MAIN}")]);
    stage.host.shutdown().await;
}

#[tokio::test]
async fn a_skill_that_is_too_much_is_refused_before_anything_of_it_is_read() {
    let stage = Stage::flawed(Some(SkillFlaw::Heavy));
    let error = stage.refusal().await;
    assert!(
        matches!(error, SkillError::TooLarge { found, .. } if found > 20 * 1024 * 1024),
        "{error}"
    );
    assert_eq!(stage.read().await, Vec::<String>::new());
    stage.host.shutdown().await;

    let stage = Stage::flawed(Some(SkillFlaw::Crowded));
    let error = stage.refusal().await;
    assert!(
        matches!(error, SkillError::TooManyFiles { found: 602, .. }),
        "{error}"
    );
    assert_eq!(stage.read().await, Vec::<String>::new());
    stage.host.shutdown().await;

    // Nothing to hold it against is no pass.
    let stage = Stage::flawed(Some(SkillFlaw::Dynamic));
    let error = stage.refusal().await;
    assert!(matches!(error, SkillError::Unverifiable { .. }), "{error}");
    assert_eq!(stage.read().await, Vec::<String>::new());
    stage.host.shutdown().await;
}

#[tokio::test]
async fn a_flood_in_place_of_a_file_is_refused_and_the_server_goes_on() {
    let stage = Stage::flawed(Some(SkillFlaw::Flood));
    let error = stage.refusal().await;
    assert!(
        matches!(
            error,
            SkillError::Unverified {
                check: FailedCheck::Size { .. },
                ..
            } | SkillError::Call(CallError::Failed(_, CallFault::TooLarge { .. }))
        ),
        "{error}"
    );
    let echoed = echo(&stage.host, "able", "still here").await;
    assert_eq!(text_of(&echoed.expect("an answer")), "still here");
    stage.host.shutdown().await;
}

#[tokio::test]
async fn a_thousand_skills_in_pages_are_all_listed() {
    let skills = ScriptedSkills {
        count: 1000,
        page_size: 30,
        flaw: None,
    };
    let stage = Stage::new(Some(skills), SpokenEras::Both);
    let list = stage.list().await;
    assert_eq!(list.warnings, Vec::<String>::new());
    assert_eq!(list.skills.len(), 1000);
    assert_eq!(list.skills[999].name().to_string(), "skill-999");
    let asked = stage.asked().await;
    let pages = asked.iter().filter(|it| it.starts_with("skills/list"));
    assert_eq!(pages.count(), 34);
    assert_eq!(stage.read().await, Vec::<String>::new());
    stage.host.shutdown().await;
}

#[tokio::test]
async fn a_list_without_an_end_is_ended() {
    for (page_size, expected, word) in [(1, 100, "pages"), (2500, 10_000, "skills")] {
        let skills = ScriptedSkills {
            count: 1,
            page_size,
            flaw: Some(SkillFlaw::Endless),
        };
        let stage = Stage::new(Some(skills), SpokenEras::Both);
        let list = stage.list().await;
        assert_eq!(list.skills.len(), expected);
        assert!(list.warnings[0].contains(word), "{:?}", list.warnings);
        stage.host.shutdown().await;
    }
}

#[tokio::test]
async fn an_entry_that_cannot_be_used_costs_only_itself() {
    let stage = Stage::flawed(Some(SkillFlaw::Malformed));
    let list = stage.list().await;
    assert_eq!(list.skills.len(), 1);
    assert_eq!(list.warnings.len(), 1);
    assert!(
        list.warnings[0].contains("skill-1") && list.warnings[0].contains("`resources` is missing"),
        "{:?}",
        list.warnings
    );
    stage.host.shutdown().await;
}

#[tokio::test]
async fn a_skill_that_is_not_listed_is_found_by_its_uri_and_not_by_its_name() {
    let stage = Stage::flawed(None);
    let server = name("able");
    let hidden = "skill://chaos/hidden/SKILL.md";
    let loaded = stage.host.read_skill(&server, hidden).await;
    assert_eq!(loaded.expect("a skill").listed().uri(), hidden);
    for which in ["hidden", "skill://chaos/nothing/SKILL.md"] {
        let error = stage.host.read_skill(&server, which).await;
        let error = error.expect_err("there is none");
        assert!(matches!(error, SkillError::Unknown { .. }), "{error}");
        assert!(error.to_string().contains(which), "{error}");
    }
    stage.host.shutdown().await;
}

#[tokio::test]
async fn a_server_that_only_lists_is_asked_for_its_list() {
    let stage = Stage::flawed(Some(SkillFlaw::NoGet));
    let loaded = stage.host.read_skill(&name("able"), MAIN).await;
    assert_eq!(loaded.expect("a skill").listed().uri(), MAIN);
    stage.host.shutdown().await;
}

#[tokio::test]
async fn two_skills_of_one_name_are_told_apart_by_their_uris() {
    let stage = Stage::flawed(Some(SkillFlaw::Twins));
    let server = name("able");
    assert_eq!(stage.list().await.skills.len(), 4);
    let error = stage.host.read_skill(&server, "skill-0").await;
    let error = error.expect_err("it could be either");
    let SkillError::Ambiguous { candidates, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(candidates.len(), 2);
    let twin = "skill://twins/skill-0/SKILL.md";
    assert!(error.to_string().contains(twin), "{error}");
    let loaded = stage.host.read_skill(&server, twin).await;
    assert_eq!(loaded.expect("a skill").listed().uri(), twin);
    stage.host.shutdown().await;
}

#[tokio::test]
async fn a_server_that_declares_no_skills_is_not_asked() {
    let stage = Stage::new(None, SpokenEras::Both);
    for error in [
        stage.host.skills(&name("able")).await.map(drop),
        stage.host.read_skill(&name("able"), MAIN).await.map(drop),
    ] {
        let error = error.expect_err("it has none");
        assert!(matches!(error, SkillError::NotOffered { .. }), "{error}");
        assert_eq!(error.to_string(), "server `able` offers no skills");
    }
    let error = stage.host.skills(&name("nobody")).await;
    let error = error.expect_err("there is no such server");
    assert!(
        matches!(error, SkillError::Call(CallError::Unavailable { .. })),
        "{error}"
    );
    stage.host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_lists_is_given_up() {
    let server = scripted(|message, _| match message["method"].as_str() {
        Some("initialize") => Reply::Result(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "extensions": { "io.modelcontextprotocol/skills": {} } },
            "serverInfo": { "name": "mute", "version": "1" },
        })),
        Some("skills/list") => Reply::Silence,
        _ => legacy(message),
    });
    let home = Home::new();
    let options = HostOptions {
        in_process: vec![(name("mute"), server)],
        ..home.options()
    };
    let host = Host::start(home.plan(&json!({})), options);
    let error = host.skills(&name("mute")).await;
    let error = error.expect_err("it never answers");
    assert!(
        matches!(
            error,
            SkillError::Call(CallError::Failed(_, CallFault::TimedOut { after, .. })) if after == Duration::from_secs(30)
        ),
        "{error}"
    );
    host.shutdown().await;
}

/// Text that steers a terminal in name, description and head.
#[tokio::test(start_paused = true)]
async fn what_a_server_says_of_a_skill_is_shown_cleaned() {
    let server = scripted(|message, _| match message["method"].as_str() {
        Some("initialize") => Reply::Result(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "extensions": { "io.modelcontextprotocol/skills": {} } },
            "serverInfo": { "name": "sly", "version": "1" },
        })),
        Some("skills/list") => Reply::Result(json!({ "skills": [
            {
                "uri": "skill://a\u{202e}/SKILL.md",
                "frontmatter": { "name": "a\u{202e}", "description": "\u{1b}[2Jnice" },
                "resources": "dynamic",
            },
            { "uri": "skill://b\u{1b}[2J/SKILL.md" },
        ] })),
        _ => legacy(message),
    });
    let home = Home::new();
    let host = home.host([("sly", server)]);
    let list = host.skills(&name("sly")).await.expect("a list");
    assert_eq!(list.skills[0].name().to_string(), "a");
    assert_eq!(list.skills[0].description().to_string(), "nice");
    let error = host.load_skill(&list.skills[0]).await.expect_err("dynamic");
    for shown in [list.warnings[0].clone(), error.to_string()] {
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
    }
    host.shutdown().await;
}
