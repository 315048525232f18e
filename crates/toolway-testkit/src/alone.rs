//! A process for one test.
//!
//! Owns that a test which counts what its process has open counts nothing of its neighbours: with
//! plain `cargo test` all tests of a binary share one process.

use std::process::Command;

/// Set in the process that has nothing else to do.
const ALONE: &str = "TOOLWAY_TEST_ALONE";

/// Whether this process is for this test alone. Where it is not, the test is run in one that is,
/// and has to pass there; the caller has nothing more to do.
///
/// The name is the one that the test binary itself knows it by, such as `module::test`.
#[expect(
    clippy::disallowed_methods,
    reason = "a test process has no other way to know what it was started for"
)]
pub fn alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let own = std::env::current_exe().expect("a test knows its own path");
    let output = Command::new(own)
        .args([test, "--exact", "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap_or_else(|error| panic!("cannot start `{test}`: {error}"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "`{test}` in a process of its own: {}\n{said}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    false
}
