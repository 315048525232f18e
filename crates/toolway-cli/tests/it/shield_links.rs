//! SEC-07: what the next start believes is behind the shield wherever links in the config home
//! lead, as those that managers of dotfiles make.

use std::os::unix::fs::symlink;
use std::path::Path;

use insta::{allow_duplicates, assert_snapshot};
use serde_json::json;
use toolway_testkit::{Script, ScriptedServer};

use crate::support::servers;
use crate::user_home::{Homes, UserHome};

/// What lies elsewhere, below the home, and what it holds.
const TARGETS: [(&str, &str); 4] = [
    ("dotfiles/settings.json", r#"{"mcpServers": {}}"#),
    ("dotfiles/approvals.json", "{}"),
    ("dotfiles/plugins/two/plugin.json", r#"{"name": "two"}"#),
    ("more/one/plugin.json", r#"{"name": "one"}"#),
];

/// Links below the home, the last of which are in the config home.
const LINKS: [(&str, &str); 5] = [
    ("chain.json", "dotfiles/settings.json"),
    ("dotfiles/plugins/one", "../../more/one"),
    (".config/toolway/settings.json", "../../chain.json"),
    (
        ".config/toolway/approvals.json",
        "../../dotfiles/approvals.json",
    ),
    (".config/toolway/plugins", "../../dotfiles/plugins"),
];

/// Tries everything on every target and on all that leads there, and says what worked.
const ATTACK: &str = r#"
cd "$HOME"
echo planted > evil; mkdir -p evil-folder
try() { "$@" 2>/dev/null && echo "DONE: $*"; }
write() { echo planted > "$1"; }
for it in dotfiles/settings.json dotfiles/approvals.json dotfiles/plugins/two/plugin.json \
    more/one/plugin.json dotfiles/plugins/three chain.json dotfiles/plugins/one; do
    try write "$it"
    try truncate -s 0 "$it"
    try chmod 777 "$it"
    try mv -T "$it" stolen
    try mv -T evil "$it"
    try ln -f evil "$it"
    try ln -sfn "$HOME/evil" "$it"
    try rm -r "$it"
    try mkdir "$it"
done
for it in dotfiles/plugins/two dotfiles/plugins more/one more dotfiles; do
    try mv -T "$it" "$it.old"
    try umount "$it"
done
for it in dotfiles/settings.json dotfiles/approvals.json dotfiles/plugins more/one; do
    try umount "$it"
    try mount -o remount,bind,rw "$it"
done
echo mine > dotfiles/other && echo "own work: $(cat dotfiles/other)"
"#;

fn lay(home: &Path, links: &[(&str, &str)]) {
    for (link, target) in links {
        let link = home.join(link);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(target, link).unwrap();
    }
}

#[test]
fn sec_07_links_in_the_config_home_lead_no_server_to_what_the_next_start_believes() {
    for user in UserHome::all_with(Homes::Standard) {
        let home = user.home.home();
        for (path, text) in TARGETS {
            user.home.write(home.join(path), text);
        }
        lay(home, &LINKS);
        user.give();
        let said = user.shell(ATTACK);
        assert_eq!(said, "own work: mine\nexit 0", "{:?}", user.person);
        for (path, text) in TARGETS {
            let found = std::fs::read_to_string(home.join(path)).unwrap();
            assert_eq!(found, text, "{:?}: {path}", user.person);
        }
        for (link, target) in LINKS {
            let found = home.join(link).read_link().unwrap();
            assert_eq!(found, Path::new(target), "{:?}: {link}", user.person);
        }
    }
}

#[test]
fn sec_07_doctor_says_where_links_lead_and_which_cannot_be_protected() {
    for user in UserHome::all_with(Homes::Standard) {
        let home = user.home.home();
        let entry = |shield: &str| {
            let mut entry = ScriptedServer::new(Script::default()).entry();
            entry["shield"] = json!(shield);
            entry
        };
        let both = [
            ("strict", entry("required")),
            ("easy", entry("best-effort")),
        ];
        let settings = servers(&both);
        user.home
            .write(home.join("dotfiles/settings.json"), settings);
        // Nothing is where the second leads; the third has a second name that nobody can find.
        lay(home, &LINKS[2..4]);
        lay(home, &[("chain.json", "dotfiles/settings.json")]);
        let pinned = home.join(".config/toolway/pinned.json");
        user.home.write(&pinned, "{}");
        std::fs::hard_link(pinned, home.join("second-name")).unwrap();
        user.give();
        let output = user.toolway(&["doctor"]);
        let lines = output.stdout.lines();
        let lines = lines.skip_while(|line| !line.starts_with("shield"));
        let lines = lines.take_while(|line| !line.starts_with("keychain"));
        let lines = lines.collect::<Vec<_>>().join("\n");
        allow_duplicates! { assert_snapshot!(lines, @r"
        shield        servers behind it cannot write [HOME]/.config/toolway, [HOME]/.local/state/toolway/results, [HOME]/.local/state/toolway/private, [SYSTEM], [HOME]/dotfiles/settings.json
                      nor look into [HOME]/.config/toolway/vault, [HOME]/.local/state/toolway
                      it cannot protect `[HOME]/.config/toolway/approvals.json`: No such file or directory (os error 2)
                      it cannot protect `[HOME]/.config/toolway/pinned.json`: it has a second name
                      behind it: easy
                      do not start without all of it: strict
        ") }
        let shield = user.toolway(&["doctor", "--json"]).json()["shield"].clone();
        assert_eq!(
            shield["gaps"],
            json!([
                "cannot protect `[HOME]/.config/toolway/approvals.json`: No such file or directory (os error 2)",
                "cannot protect `[HOME]/.config/toolway/pinned.json`: it has a second name",
            ])
        );
        // Who insists on the shield gets all of it or does not start.
        user.toolway(&["tools", "easy"]).expect_code(0);
        let refused = user.toolway(&["tools", "strict"]);
        assert!(refused.stderr.contains("cannot protect"), "{refused}");
    }
}
