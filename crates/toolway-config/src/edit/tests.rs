use super::*;
use serde_json::json;

#[test]
fn a_new_file_is_made_with_its_directories() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a/b/settings.json");
    let done = edit(&path, |document| {
        document.set(&["mcpServers", "x"], &json!({"command": "y"}))
    })
    .unwrap();
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "{\n  \"mcpServers\": {\n    \"x\": {\n      \"command\": \"y\"\n    }\n  }\n}\n"
    );
    assert_eq!(done.line, Some(3));
    assert_eq!(done.backup, None);
    assert!(done.changed);
}
