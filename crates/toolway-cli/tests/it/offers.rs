//! Resources, prompts and skills on the command line.

use std::fs::Permissions;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::{Value, json};
use toolway_testkit::{
    CommandOutput, Script, ScriptedServer, ScriptedSkills, SkillFlaw, TempHome, marked, shell_code,
};

use crate::support::{command, home_with, program, servers, shown_on, terminal, toolway};

fn kit() -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/offers_server.py");
    json!({ "command": "python3", "args": ["-u", script] })
}

fn demo() -> Value {
    json!({ "command": program(), "args": ["demo-server", "library"] })
}

fn kit_home() -> TempHome {
    let home = TempHome::new();
    home.write_settings(servers(&[("kit", kit())]));
    home
}

#[test]
fn resources_of_all_servers_are_listed_with_their_owner() {
    let home = TempHome::new();
    home.write_settings(servers(&[("kit", kit()), ("demo", demo())]));
    let output = toolway(&home, &["resources"]).expect_code(0);
    insta::assert_snapshot!(output.stdout, @"
    URI                     SERVER  TYPE              DESCRIPTION
    demo://library/guide    demo    text/markdown     A short guide
    demo://library/planets  demo    application/json  The planets
    kit://both              kit     -                 both
    kit://broken            kit     -                 broken
    kit://counter           kit     -                 counter
    kit://logo              kit     -                 logo
    kit://none              kit     -                 none
    kit://text              kit     -                 text
    ");
    assert_eq!(
        output.stderr,
        "hint: there is a template too: see it with `toolway resources --templates`\n"
    );
    let templates = toolway(&home, &["resources", "kit", "--templates"]).expect_code(0);
    insta::assert_snapshot!(templates.stdout, @"
    TEMPLATE                  SERVER  TYPE  DESCRIPTION
    kit://city/{name}{?lang}  kit     -     city
    ");
    let listing = toolway(&home, &["resources", "demo", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(
        listing["resources"][0],
        json!({
            "uri": "demo://library/guide", "server": "demo", "name": "guide",
            "title": "A short guide", "description": "", "mimeType": "text/markdown", "size": 81,
        })
    );
    let listing = toolway(&home, &["resources", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(
        listing["templates"][0]["variables"],
        json!(["name", "lang"])
    );
}

#[test]
fn text_goes_to_stdout_and_bytes_to_a_private_file() {
    let home = kit_home();
    let text = toolway(&home, &["read", "kit://text"]).expect_code(0);
    assert_eq!(text.stdout, "plain \u{1b}[31mred", "a pipe gets the bytes");
    let logo = toolway(&home, &["read", "kit://logo"]).expect_code(0);
    let path = logo.stdout.trim_end().trim_end_matches(']');
    assert!(path.starts_with("[image/png, 15 bytes: "), "{logo}");
    let (_, path) = path.split_once(": ").unwrap();
    let path = path.replace("[HOME]", home.home().to_str().unwrap());
    assert_eq!(std::fs::read(&path).unwrap(), b"\x89PNG-not-really");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let both = toolway(&home, &["read", "kit://both"]).expect_code(0);
    assert!(
        both.stdout.starts_with(
            "<kit://both/1>\none\n<kit://both/2>\n[application/octet-stream, 3 bytes: "
        ),
        "{both}"
    );
    let none = toolway(&home, &["read", "kit://none"]).expect_code(0);
    assert_eq!(
        (none.stdout.as_str(), none.stderr.as_str()),
        ("", "the resource is empty\n")
    );
    let odd = toolway(&home, &["read", "kit://odd", "kit"]).expect_code(4);
    insta::assert_snapshot!(odd.stderr, @"
    error: server `kit` answered `kit://odd` with something that is no result: the result has no usable `contents`
    hint: see what happened with `toolway logs kit`
    ");
    let raw = toolway(&home, &["read", "kit://text", "--json"]).expect_code(0);
    assert_eq!(raw.json()["contents"][0]["text"], "plain \u{1b}[31mred");
}

#[test]
fn what_cannot_be_delivered_fails_the_read_and_the_rest_is_still_printed() {
    let home = kit_home();
    let broken = toolway(&home, &["read", "kit://broken"]).expect_code(7);
    assert_eq!(broken.stdout, "[binary content that could not be saved]\n");
    insta::assert_snapshot!(broken.stderr, @"
    error: `kit://broken` of server `kit` was not delivered whole
      part 0 was not saved: it is not base64 (Invalid symbol 42, offset 0.)
    hint: see what came with `--json`
    ");
    let half = toolway(&home, &["read", "kit://half", "kit"]).expect_code(7);
    assert_eq!(half.stdout, "the good part");
    assert!(
        half.stderr.contains("`kit://half` of server `kit`"),
        "{half}"
    );
    assert!(half.stderr.contains("  part 1 cannot be read: "), "{half}");
    toolway(&home, &["read", "kit://half", "kit", "-o", "half"]).expect_code(7);

    // Something lies in place of the directory, or it is open to others.
    let results = home.config_home().join("state/results");
    std::fs::create_dir_all(results.parent().unwrap()).unwrap();
    std::fs::write(&results, "in the way").unwrap();
    let occupied = toolway(&home, &["read", "kit://both"]).expect_code(1);
    assert_eq!(
        occupied.stdout,
        "<kit://both/1>\none\n<kit://both/2>\n[binary content that could not be saved]\n"
    );
    assert!(
        occupied
            .stderr
            .contains("hint: mend what is named above, or take all of it with `--json`"),
        "{occupied}"
    );
    std::fs::remove_file(&results).unwrap();
    std::fs::create_dir(&results).unwrap();
    std::fs::set_permissions(&results, Permissions::from_mode(0o755)).unwrap();
    let open = toolway(&home, &["read", "kit://logo"]).expect_code(1);
    for words in [
        "`kit://logo` of server `kit` was not delivered whole",
        "is open to other users (mode 0755, must be 0700)",
        "hint: mend what is named above, or choose a file with `--output`",
    ] {
        assert!(open.stderr.contains(words), "{words}: {open}");
    }
    // A program that takes the result itself needs no file.
    toolway(&home, &["read", "kit://logo", "--json"]).expect_code(0);
}

#[test]
fn sec_35_a_resource_does_not_steer_the_terminal_it_is_read_on() {
    let home = kit_home();
    let (ours, theirs) = terminal();
    let mut child = command(&home, &["read", "kit://text"])
        .stdin(Stdio::null())
        .stdout(theirs)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(shown_on(ours), "plain red\r\n");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_file_is_never_written_over_unasked() {
    let home = kit_home();
    let file = home.project().join("logo.png");
    let path = file.to_str().unwrap();
    let output = toolway(&home, &["read", "kit://logo", "--output", path]).expect_code(0);
    assert_eq!(output.stdout, "");
    assert_eq!(std::fs::read(&file).unwrap(), b"\x89PNG-not-really");
    std::fs::write(&file, "mine").unwrap();
    let refused = toolway(&home, &["read", "kit://logo", "--output", path]).expect_code(2);
    assert!(
        refused
            .stderr
            .contains("exists already; nothing was written"),
        "{refused}"
    );
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    toolway(&home, &["read", "kit://logo", "-o", path, "--force"]).expect_code(0);
    assert_eq!(std::fs::read(&file).unwrap(), b"\x89PNG-not-really");
    let both = toolway(&home, &["read", "kit://both", "-o", "two"]).expect_code(7);
    insta::assert_snapshot!(both.stderr, @"
    error: the resource has 2 parts, and one file holds one
    hint: leave out `--output`: each part is printed, or saved to a file of its own
    ");
}

/// Runs it where no file can grow beyond a kibibyte, as on a disk that is full.
fn on_a_full_disk(home: &TempHome, args: &[&str]) -> CommandOutput {
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    home.run(
        home.command("bash")
            .args(["-c", script, program()])
            .args(args),
    )
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let home = kit_home();
    let folder = home.project().join("out");
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("large.txt");
    let path = file.to_str().unwrap();
    let torn = on_a_full_disk(&home, &["read", "kit://large", "kit", "-o", path]).expect_code(1);
    assert!(torn.stderr.contains("cannot write `"), "{torn}");
    assert_eq!(
        std::fs::read_dir(&folder).unwrap().count(),
        0,
        "nothing is left"
    );

    std::fs::write(&file, "the old one").unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    let words = ["read", "kit://large", "kit", "--force", "-o", path];
    on_a_full_disk(&home, &words).expect_code(1);
    assert_eq!(std::fs::read(&file).unwrap(), b"the old one");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);

    // With room it is replaced, and stays as open as it was; what a link leads to is meant.
    let link = folder.join("link.txt");
    std::os::unix::fs::symlink("large.txt", &link).unwrap();
    let path = link.to_str().unwrap();
    toolway(
        &home,
        &["read", "kit://large", "kit", "--force", "-o", path],
    )
    .expect_code(0);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    let metadata = file.symlink_metadata().unwrap();
    assert_eq!(metadata.len(), 10_000);
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o640);

    // A new one is as open as the person's other new files, and a bare name is a file here.
    let script = "umask 027; exec \"$0\" read kit://large kit -o new.txt";
    let mut bash = home.command("bash");
    home.run(bash.args(["-c", script, program()]))
        .expect_code(0);
    let new = home.project().join("new.txt").symlink_metadata().unwrap();
    assert_eq!(new.permissions().mode() & 0o7777, 0o640);

    let nowhere = toolway(&home, &["read", "kit://text", "-o", "no/where"]).expect_code(1);
    insta::assert_snapshot!(nowhere.stderr, @"
    error: cannot write `no/where`: No such file or directory (os error 2)
    hint: choose another file with `--output`
    ");

    // What is no plain file is written into, not replaced.
    toolway(
        &home,
        &["read", "kit://large", "kit", "--force", "-o", "/dev/null"],
    )
    .expect_code(0);
    let piped = toolway(
        &home,
        &["read", "kit://text", "--force", "-o", "/dev/stdout"],
    );
    assert_eq!(piped.expect_code(0).stdout, "plain \u{1b}[31mred");
}

#[test]
fn a_template_is_filled_in_and_what_is_missing_is_named() {
    let home = TempHome::new();
    home.write_settings(servers(&[("kit", kit()), ("demo", demo())]));
    let template = "kit://city/{name}{?lang}";
    let city = toolway(&home, &["read", template, "name=São Paulo", "lang=pt"]).expect_code(0);
    assert_eq!(city.stdout, "kit://city/S%C3%A3o%20Paulo?lang=pt\n");
    // A URI that no list has, but a template could have made.
    let rome = toolway(&home, &["read", "kit://city/rome"]).expect_code(0);
    assert_eq!(rome.stdout, "kit://city/rome\n");
    let missing = toolway(&home, &["read", template, "lang=pt"]).expect_code(2);
    insta::assert_snapshot!(missing.stderr, @"
    error: `kit://city/{name}{?lang}` is not filled in
      `name` is missing
    hint: it is read as `toolway read 'kit://city/{name}{?lang}' name=<text> [lang=<text>]`
    ");
    let unknown = toolway(&home, &["read", template, "name=x", "nam=y"]).expect_code(2);
    insta::assert_snapshot!(unknown.stderr, @"
    error: `kit://city/{name}{?lang}` has no variable `nam`
    hint: it is read as `toolway read 'kit://city/{name}{?lang}' name=<text> [lang=<text>]`
    ");
    let broken = toolway(&home, &["read", "kit://{", "a=b"]).expect_code(2);
    insta::assert_snapshot!(broken.stderr, @"
    error: `kit://{` is not a URI template: a `{` without its `}`
    hint: see the URIs with variables with `toolway resources --templates`
    ");
    toolway(&home, &["read", "kit://text", "name=x"]).expect_code(2);
}

#[test]
fn an_unknown_or_ambiguous_resource_says_what_there_is() {
    let home = TempHome::new();
    home.write_settings(servers(&[("kit", kit()), ("kat", kit()), ("demo", demo())]));
    let near = toolway(&home, &["read", "demo://library/giude"]).expect_code(2);
    insta::assert_snapshot!(near.stderr, @"
    error: no server lists `demo://library/giude`
    hint: did you mean `demo://library/guide`?
    ");
    let far = toolway(&home, &["read", "nothing://like/this"]).expect_code(2);
    insta::assert_snapshot!(far.stderr, @"
    error: no server lists `nothing://like/this`
      servers with resources: `demo`, `kat`, `kit`
    hint: a server may have what it does not list: `toolway read nothing://like/this demo`
    ");
    let several = toolway(&home, &["read", "kit://text"]).expect_code(2);
    insta::assert_snapshot!(several.stderr, @"
    error: `kit://text` could be of `kat`, `kit`
    hint: say which one, e.g. `toolway read kit://text kat`
    ");
    toolway(&home, &["read", "kit://text", "kat"]).expect_code(0);
    let asked = toolway(&home, &["read", "demo://library/guid", "demo"]).expect_code(7);
    insta::assert_snapshot!(asked.stderr, @"
    error: server `demo` answered `demo://library/guid` with error -32002: no resource `demo://library/guid`
    hint: did you mean `demo://library/guide`?
    ");
}

#[test]
fn a_followed_resource_is_printed_again_whenever_it_changes() {
    let home = kit_home();
    let mut child = command(&home, &["read", "kit://counter", "--follow"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for expected in ["read 1", "read 2", "read 3"] {
        assert_eq!(lines.next().unwrap().unwrap(), expected);
    }
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let output = marked::output_of(child);
    // A shell is told that it was a Ctrl-C.
    assert_eq!(shell_code(output.status), Some(130), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    // One that does not end its lines, into a pipe.
    let mut child = command(&home, &["read", "kit://bare", "kit", "--follow"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for expected in ["bare 1", "bare 2"] {
        assert_eq!(lines.next().unwrap().unwrap(), expected);
    }
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    marked::output_of(child);
    // One that is not there.
    let unknown = toolway(&home, &["read", "kit://txet", "kit", "--follow"]).expect_code(7);
    insta::assert_snapshot!(unknown.stderr, @"
    error: server `kit` answered `kit://txet` with error -32002: not here
    hint: did you mean `kit://text`?
    ");
    // One that does not say when something changes.
    let home = TempHome::new();
    home.write_settings(servers(&[("demo", demo())]));
    let refused = toolway(&home, &["read", "demo://library/guide", "-f"]).expect_code(7);
    insta::assert_snapshot!(refused.stderr, @"
    error: server `demo` does not say when `demo://library/guide` changes: read it again instead
    hint: leave out `--follow`
    ");
}

#[test]
fn prompts_are_listed_and_rendered_by_their_declared_arguments() {
    let home = TempHome::new();
    home.write_settings(servers(&[("kit", kit()), ("demo", demo())]));
    let listed = toolway(&home, &["prompts"]).expect_code(0);
    insta::assert_snapshot!(listed.stdout, @"
    NAME                  ARGUMENTS                   DESCRIPTION
    mcp__demo__summarize  text=<text> [style=<text>]  Asks for a summary of a text in a few words.
    mcp__kit__draw        what=<text> [tone=<text>]   Draws.
    ");
    let listing = toolway(&home, &["prompts", "kit", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(
        listing["prompts"][0]["arguments"][0],
        json!({ "name": "what", "title": null, "description": "", "required": true })
    );
    let drawn = toolway(&home, &["prompt", "kit", "draw", "what=a cat"]).expect_code(0);
    insta::assert_snapshot!(drawn.stdout, @"
    [user]
    Draw a cat (any tone)

    [assistant]
    [image/png, 6 bytes: see it with `--json`]
    ");
    let drawn = toolway(
        &home,
        &["prompt", "mcp__kit__draw", "what=x", "tone=dark", "--json"],
    );
    let drawn = drawn.expect_code(0).json();
    assert_eq!(drawn["messages"][0]["content"]["text"], "Draw x (dark)");
    let file = home.write("cat.txt", "a cat from a file");
    let from_file = format!("what=@{}", file.display());
    let drawn = toolway(&home, &["prompt", "kit", "draw", &from_file]).expect_code(0);
    assert!(drawn.stdout.contains("Draw a cat from a file"), "{drawn}");
}

#[test]
fn a_prompt_that_is_typed_wrong_says_how_it_is_called() {
    let home = kit_home();
    let missing = toolway(&home, &["prompt", "kit", "draw", "tone=x"]).expect_code(2);
    insta::assert_snapshot!(missing.stderr, @"
    error: the arguments do not fit `draw` of server `kit`
      `what` is missing
    hint: it is called as `toolway prompt kit draw what=<text> [tone=<text>]`
    ");
    let unknown = toolway(&home, &["prompt", "kit", "drew", "what=x"]).expect_code(2);
    insta::assert_snapshot!(unknown.stderr, @"
    error: server `kit` has no prompt `drew`
    hint: did you mean `draw`?
    ");
    let far = toolway(&home, &["prompt", "mcp__kit__nothing_like_it"]).expect_code(2);
    insta::assert_snapshot!(far.stderr, @"
    error: no prompt `mcp__kit__nothing_like_it`
    hint: see its prompts with `toolway prompts kit`
    ");
    let which = toolway(&home, &["prompt", "kit"]).expect_code(2);
    insta::assert_snapshot!(which.stderr, @"
    error: which prompt of `kit`?
    hint: see its prompts with `toolway prompts kit`
    ");
    let slip = toolway(&home, &["prompt", "kit", "draw", "what=x", "ton=y"]).expect_code(0);
    insta::assert_snapshot!(slip.stderr, @"warning: `draw` has no argument `ton`; did you mean `tone`?");
    toolway(&home, &["prompt", "kit", "draw", "what=x", "what=y"]).expect_code(2);
    toolway(&home, &["prompt", "kitt", "draw"]).expect_code(3);
}

fn skilled(flaw: Option<SkillFlaw>) -> Value {
    let skills = ScriptedSkills {
        count: 2,
        flaw,
        ..ScriptedSkills::default()
    };
    ScriptedServer::new(Script {
        skills: Some(skills),
        ..Script::default()
    })
    .entry()
}

#[test]
fn skills_are_listed_apart_and_those_that_fail_a_check_are_named_with_it() {
    let home = TempHome::new();
    home.write_settings(servers(&[
        ("good", skilled(None)),
        ("other", skilled(Some(SkillFlaw::Size))),
        ("kit", kit()),
    ]));
    let listed = toolway(&home, &["skills"]).expect_code(0);
    insta::assert_snapshot!(listed.stdout, @"
    NAME     SERVER  DESCRIPTION
    skill-0  good    Does what its script says
    skill-1  good    Does what its script says
    skill-0  other   Does what its script says
    skill-1  other   Does what its script says
    ");
    assert_eq!(listed.stderr, "");
    let prompts = toolway(&home, &["prompts"]).expect_code(0);
    assert!(!prompts.stdout.contains("skill"), "{prompts}");
    let verified = toolway(&home, &["skills", "--verify"]).expect_code(0);
    insta::assert_snapshot!(verified.stderr, @"
    warning: `skill://chaos/skill-0/SKILL.md` of server `other` is not what was listed: its size is 112 bytes, and 102 were listed. List its skills again, in case it has changed; if that does not help, its server is broken or has been tampered with
    warning: `skill://chaos/skill-1/SKILL.md` of server `other` is not what was listed: its size is 112 bytes, and 102 were listed. List its skills again, in case it has changed; if that does not help, its server is broken or has been tampered with
    ");
    let rows = toolway(&home, &["skills", "--verify", "--json"])
        .expect_code(0)
        .json();
    let states: Vec<&Value> = rows["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["verified"])
        .collect();
    assert_eq!(states, [true, true, false, false]);

    let shown = toolway(&home, &["skill", "good", "skill-0"]).expect_code(0);
    assert!(shown.stdout.starts_with("---\n"), "{shown}");
    toolway(&home, &["skill", "good", "skill-0", "--file", "notes.md"]).expect_code(0);
    let refused = toolway(&home, &["skill", "other", "skill-0"]).expect_code(6);
    assert_eq!(refused.stdout, "");
    insta::assert_snapshot!(refused.stderr, @"
    error: `skill://chaos/skill-0/SKILL.md` of server `other` is not what was listed: its size is 112 bytes, and 102 were listed. List its skills again, in case it has changed; if that does not help, its server is broken or has been tampered with
    hint: see its skills with `toolway skills other`
    ");
    let near = toolway(&home, &["skill", "good", "skil-1"]).expect_code(2);
    insta::assert_snapshot!(near.stderr, @"
    error: server `good` has no skill `skil-1`
    hint: did you mean `skill-1`?
    ");
    let none = toolway(&home, &["skill", "kit", "x"]).expect_code(2);
    insta::assert_snapshot!(none.stderr, @"
    error: server `kit` offers no skills
    hint: see all skills with `toolway skills`
    ");
}

#[test]
fn a_skill_without_digests_is_told_without_being_read() {
    let home = home_with(Script {
        skills: Some(ScriptedSkills {
            count: 1,
            flaw: Some(SkillFlaw::Dynamic),
            ..ScriptedSkills::default()
        }),
        ..Script::default()
    });
    let listed = toolway(&home, &["skills"]).expect_code(0);
    insta::assert_snapshot!(listed.stderr, @"warning: the skill `skill://chaos/skill-0/SKILL.md` of server `chaos` cannot be verified, because its server lists its files as `dynamic`: ask for a skill with digests");
}
