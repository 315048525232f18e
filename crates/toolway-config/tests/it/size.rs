//! Five hundred servers in twenty files: everything is there, each with its own line.

use std::fmt::Write as _;

use toolway_config::Flags;

use crate::Stage;

fn many(stage: &Stage) -> Flags {
    let mut mcp_config = Vec::new();
    for file in 0..20 {
        let mut text = "{\n  \"mcpServers\": {\n".to_owned();
        for entry in 0..25 {
            let _ = writeln!(
                text,
                "    \"s{file}-{entry}\": {{\"command\": \"npx\", \"args\": [\"-y\", \"server-{entry}\"], \"env\": {{\"TOKEN\": \"${{SECRET}}\"}}}},",
            );
        }
        text.push_str("  }\n}\n");
        let path = stage.write(&format!("many/{file}.json"), &text);
        mcp_config.push(path.display().to_string());
    }
    Flags {
        mcp_config,
        ..Flags::default()
    }
}

#[test]
fn five_hundred_servers_in_twenty_files_are_all_admitted() {
    let stage = Stage::new();
    let flags = many(&stage);
    let plan = stage.plan_with(&flags);
    assert_eq!(plan.admitted().count(), 500);
    for (server, _) in plan.admitted() {
        let (_, entry) = server.name.as_str().split_once('-').unwrap();
        let entry: u32 = entry.parse().unwrap();
        assert_eq!(server.origin.line(), Some(entry + 3));
    }
}
