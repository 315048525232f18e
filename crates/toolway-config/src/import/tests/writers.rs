//! Who is taken for the writer of a file.

use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

use super::*;

const SERVERS: &str = r#"{"mcpServers": {"a": {"command": "a"}}}"#;

fn writers(places: &ClientLocations, client: ImportClient) -> Vec<FileWriter> {
    let found = discover(places, client);
    found.iter().map(|found| found.writer).collect()
}

#[test]
fn sec_01_a_file_of_a_project_is_a_strangers_whatever_marks_the_project() {
    for mark in [
        None,
        Some("work/project/.git"),
        Some("work/project/src/.toolway"),
    ] {
        let home = Home::new();
        let mut places = home.places();
        places.working_trees = Vec::new();
        if let Some(mark) = mark {
            fs::create_dir_all(home.path(mark)).unwrap();
        }
        home.write(".cursor/mcp.json", SERVERS);
        home.write("work/project/.cursor/mcp.json", SERVERS);
        assert_eq!(
            writers(&places, ImportClient::Cursor),
            [
                FileWriter::Person,
                FileWriter::Stranger(StrangerReason::Project)
            ],
            "{mark:?}"
        );
    }
}

#[test]
fn sec_01_the_home_directory_is_the_persons_wherever_they_work() {
    for cwd in ["", ".cursor", ".cursor/deep", "../"] {
        let home = Home::new();
        home.write(".cursor/mcp.json", SERVERS);
        fs::create_dir_all(home.path(".cursor/deep")).unwrap();
        let places = ClientLocations {
            cwd: home.path(cwd),
            working_trees: vec![home.path(".cursor")],
            ..home.places()
        };
        assert_eq!(
            writers(&places, ImportClient::Cursor),
            [FileWriter::Person],
            "{cwd}"
        );
    }
}

#[test]
fn sec_01_a_variable_that_leads_into_the_project_makes_nothing_the_persons_own() {
    let home = Home::new();
    for file in ["x/.claude.json", "x/Claude/claude_desktop_config.json"] {
        home.write(&format!("work/project/{file}"), SERVERS);
    }
    home.write(
        "work/project/x/config.toml",
        "[mcp_servers.a]\ncommand = \"a\"\n",
    );
    let inside = home.path("work/project/x");
    // A way round by a link is the same place.
    let link = home.path("link");
    symlink(&inside, &link).unwrap();
    for directory in [inside, link] {
        let places = ClientLocations {
            config_dir: directory.clone(),
            claude_config_dir: Some(directory.clone()),
            codex_home: Some(directory),
            ..home.places()
        };
        for client in [
            ImportClient::ClaudeDesktop,
            ImportClient::ClaudeCode,
            ImportClient::Codex,
        ] {
            assert_eq!(
                writers(&places, client),
                [FileWriter::Stranger(StrangerReason::Project)],
                "{client:?}"
            );
        }
    }
}

#[test]
fn sec_01_a_directory_that_was_unpacked_beside_the_working_directory_is_a_strangers() {
    let home = Home::new();
    for directory in ["dl/archive/c", "dl/c", "elsewhere"] {
        home.write(&format!("{directory}/.claude.json"), SERVERS);
    }
    let writers_of = |cwd: &str, directory: &str| {
        let cwd = home.path(cwd);
        fs::create_dir_all(&cwd).unwrap();
        let places = ClientLocations {
            // No mark of a repository is there.
            working_trees: Vec::new(),
            cwd,
            claude_config_dir: Some(home.path(directory)),
            ..home.places()
        };
        writers(&places, ImportClient::ClaudeCode)
    };
    for directory in ["dl/archive/c", "dl/c"] {
        assert_eq!(
            writers_of("dl/archive/sub", directory),
            [FileWriter::Stranger(StrangerReason::Project)],
            "{directory}"
        );
    }
    assert_eq!(
        writers_of("dl/archive/sub", "elsewhere"),
        [FileWriter::Person]
    );
    // All that is shared with the home directory itself is the home.
    assert_eq!(writers_of("", "dl/c"), [FileWriter::Person]);
}

#[test]
fn sec_01_a_file_that_others_own_or_write_is_a_strangers() {
    let home = Home::new();
    let path = home.write(".cursor/mcp.json", SERVERS);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(
        writers(&home.places(), ImportClient::Cursor),
        [FileWriter::Stranger(StrangerReason::WritableByAll)]
    );
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(
        writers(&home.places(), ImportClient::Cursor),
        [FileWriter::Person]
    );
    if rustix::process::geteuid().is_root() {
        chown(&path, Some(12_345), None).unwrap();
        assert_eq!(
            writers(&home.places(), ImportClient::Cursor),
            [FileWriter::Stranger(StrangerReason::Owner)]
        );
    }
}

#[test]
fn sec_01_a_file_that_is_named_is_the_persons_only_where_the_client_has_it() {
    let home = Home::new();
    let own = home.write(".cursor/mcp.json", SERVERS);
    let saved = home.write("Downloads/mcp.json", SERVERS);
    let project = home.write("work/project/.cursor/mcp.json", SERVERS);
    let writer = |path: &Path| read_file(&home.places(), ImportClient::Cursor, path).writer;
    assert_eq!(writer(&own), FileWriter::Person);
    assert_eq!(
        writer(&saved),
        FileWriter::Stranger(StrangerReason::Elsewhere)
    );
    assert_eq!(
        writer(&project),
        FileWriter::Stranger(StrangerReason::Project)
    );
    let indirect = home.path("work/project/src/../.cursor/mcp.json");
    assert_eq!(
        writer(&indirect),
        FileWriter::Stranger(StrangerReason::Project)
    );
}
