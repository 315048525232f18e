//! The demo needs nothing but the binary.

use toolway_testkit::TempHome;

use crate::support::toolway;

#[test]
fn the_demo_connects_lists_and_calls_three_servers() {
    let home = TempHome::new();
    let output = toolway(&home, &["demo"]).expect_code(0);
    assert_eq!(output.stdout.matches("✔ connected").count(), 3, "{output}");
    assert!(output.stdout.contains("in-process"), "{output}");
    let left: Vec<_> = std::fs::read_dir(home.config_home())
        .map(|entries| entries.flatten().map(|entry| entry.file_name()).collect())
        .unwrap_or_default();
    assert!(
        left.is_empty(),
        "the demo keeps out of the real config home: {left:?}"
    );
}
