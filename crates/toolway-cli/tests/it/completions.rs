//! Completions, manual pages and help: they exist, and say the exit codes.

use toolway_testkit::TempHome;

use crate::support::toolway;

#[test]
fn every_shell_gets_its_completions() {
    let home = TempHome::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = toolway(&home, &["completions", shell]).expect_code(0);
        assert!(output.stdout.contains("add-json"), "{shell}");
        assert!(output.stdout.contains("mcp-config"), "{shell}");
        assert!(output.stdout.contains("version"), "{shell}");
        // Bash, zsh and fish ask `__complete`, and none of them offers it.
        let asked = output.stdout.matches("__complete").count();
        assert!(asked <= 1, "{shell}: {asked}");
        for hidden in ["demo-server", "generate-docs"] {
            assert!(!output.stdout.contains(hidden), "{shell}: {hidden}");
        }
    }
}

#[test]
fn help_and_manual_state_the_exit_codes() {
    let home = TempHome::new();
    for words in [&["--help"][..], &["man"]] {
        let output = toolway(&home, words).expect_code(0);
        assert!(output.stdout.contains("timed out or cancelled"), "{output}");
    }
    let page = toolway(&home, &["man", "call"]).expect_code(0);
    assert!(page.stdout.contains("toolway\\-call"), "{page}");
    toolway(&home, &["man", "cal"]).expect_code(2);
}
