//! What servers ask of the person at the terminal, and what they hear when there is none.

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::marked::MARK;
use toolway_testkit::{Script, ScriptedServer, SpokenEras, TempHome};

use crate::support::{command, home_with, toolway};
use crate::terminal::TerminalProgram;

fn home() -> TempHome {
    home_with(Script {
        drama: true,
        ..Script::default()
    })
}

/// `toolway call` of a tool that asks this, with a person in front of it.
fn terminal(home: &TempHome, request: &Value) -> TerminalProgram {
    let request = format!("request:={request}");
    TerminalProgram::take(&mut command(home, &["call", "chaos", "elicit", &request]))
}

fn form(properties: &Value, required: &[&str]) -> Value {
    json!({
        "mode": "form",
        "message": "what do you say?",
        "requestedSchema": { "type": "object", "properties": properties, "required": required },
    })
}

fn answer(stdout: &str) -> Value {
    serde_json::from_str(stdout).unwrap()
}

#[test]
fn a_form_is_asked_field_by_field_and_sent_after_a_look_at_it() {
    let home = home();
    let request = form(
        &json!({
            "name": { "type": "string", "title": "Your name", "minLength": 2 },
            "age": { "type": "integer", "minimum": 1, "maximum": 120 },
            "news": { "type": "boolean", "default": true },
            "colour": { "type": "string", "oneOf": [
                { "const": "r", "title": "Red" }, { "const": "g", "title": "Green" } ] },
            "days": { "type": "array", "items": { "type": "string", "enum": ["mo", "tu", "we"] } },
            "note": { "type": "string" },
        }),
        &["name", "age"],
    );
    let mut terminal = terminal(&home, &request);
    let asked = terminal.expect("> ");
    let asked = asked.split_once("server `chaos`").unwrap().1;
    assert_snapshot!(asked.replace('\r', ""), @"
     asks:
      | what do you say?
    (`/decline` says no, `/cancel` or Ctrl-C puts the question away)

    field `Your name` (required): text, at least 2 characters
    >
    ");
    terminal.type_line("x");
    let again = terminal.expect("> ");
    assert!(
        again.contains("expected: text, at least 2 characters"),
        "{again}"
    );
    terminal.type_line("Ada");
    terminal.expect("a whole number, 1 to 120\r\n> ");
    terminal.type_line("200");
    terminal.expect("expected: a whole number, 1 to 120\r\n> ");
    terminal.type_line("36");
    terminal.expect("field `news` (optional): yes or no\r\n[yes] > ");
    terminal.type_line("");
    terminal
        .expect("field `colour` (optional): one of these\r\n  1  Red (r)\r\n  2  Green (g)\r\n");
    terminal.expect("> ");
    terminal.type_line("2");
    terminal.expect("field `days` (optional)");
    terminal.expect("> ");
    terminal.type_line("1, we");
    terminal.expect("[left out] > ");
    terminal.type_line("");
    let review = terminal.expect("[Y/n/edit] ");
    assert_snapshot!(review.replace('\r', ""), @"
      Your name: Ada
      age: 36
      news: yes
      colour: Green
      days: mo, we
      note: left out
    Send this to server `chaos`? [Y/n/edit]
    ");
    terminal.type_line("");
    terminal.expect("answered");
    let left = terminal.leave();
    assert_eq!(left.code, Some(0), "{}", left.shown);
    assert_eq!(
        answer(&left.stdout),
        json!({ "action": "accept", "content":
            { "name": "Ada", "age": 36, "news": true, "colour": "g", "days": ["mo", "we"] } })
    );
}

#[test]
fn a_question_can_be_declined_or_put_away_at_every_prompt() {
    let home = home();
    let request = form(&json!({ "word": { "type": "string" } }), &["word"]);
    for (line, action) in [("/decline", "decline"), ("/cancel", "cancel")] {
        let mut terminal = terminal(&home, &request);
        terminal.expect("> ");
        terminal.type_line(line);
        let left = terminal.leave();
        assert_eq!(left.code, Some(0), "{}", left.shown);
        assert_eq!(answer(&left.stdout), json!({ "action": action }));
    }
    // Also where all has been filled in; and the words themselves can be an answer.
    let mut terminal = terminal(&home, &request);
    terminal.expect("> ");
    terminal.type_line("//decline");
    terminal.expect("word: /decline\r\n");
    terminal.expect("[Y/n/edit] ");
    terminal.type_line("n");
    assert_eq!(
        answer(&terminal.leave().stdout),
        json!({ "action": "decline" })
    );
}

#[test]
fn the_first_ctrl_c_puts_the_question_away_and_the_second_ends_the_program() {
    let home = home();
    let request = form(&json!({ "word": { "type": "string" } }), &["word"]);
    let mut first = terminal(&home, &request);
    first.expect("> ");
    first.interrupt();
    first.expect("put away without an answer");
    let left = first.leave();
    assert_eq!(left.code, Some(0), "{}", left.shown);
    assert_eq!(answer(&left.stdout), json!({ "action": "cancel" }));

    let request = format!("request:={request}");
    let words = ["call", "chaos", "elicit", "rounds=3", &request];
    let mut both = TerminalProgram::take(&mut command(&home, &words));
    both.expect("> ");
    both.interrupt();
    both.expect("put away");
    // The server asks once more.
    both.expect("> ");
    both.interrupt();
    both.expect("error: interrupted");
    assert_eq!(both.leave().code, Some(130));
}

#[test]
fn sec_36_a_form_that_asks_for_a_secret_is_flagged_and_declined_unless_told_otherwise() {
    let home = home();
    let request = form(
        &json!({ "user": { "type": "string" }, "api_key": { "type": "string" } }),
        &["user", "api_key"],
    );
    let mut declined = terminal(&home, &request);
    let warned = declined.expect("Answer all the same? [y/N] ");
    assert!(
        warned.contains(
            "warning: `api_key` looks like a secret. Servers must not ask for secrets in this \
             way: what you type is sent to server `chaos` as it is"
        ),
        "{warned}"
    );
    declined.type_line("");
    let left = declined.leave();
    assert_eq!(answer(&left.stdout), json!({ "action": "decline" }));

    let mut insisted = terminal(&home, &request);
    insisted.expect("[y/N] ");
    insisted.type_line("y");
    insisted.expect("> ");
    insisted.type_line("ada");
    insisted.expect("> ");
    insisted.type_line(MARK);
    insisted.expect("api_key: (not shown)");
    insisted.expect("[Y/n/edit] ");
    insisted.type_line("y");
    let left = insisted.leave();
    assert_eq!(answer(&left.stdout)["content"]["api_key"], MARK);
    assert!(!left.shown.contains(MARK), "{}", left.shown);
}

#[test]
fn sec_36_a_page_is_shown_in_full_and_opened_only_after_a_yes() {
    let home = home();
    let record = home.home().join("opened");
    let browser = home.write(
        home.home().join("browser"),
        "#!/bin/sh\nprintf '%s|' \"$#\" \"$@\" >> \"$HOME/opened\"\n",
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&browser, mode).unwrap();
    let page = "https://xn--pple-43d.com/pay?a=1&b=$(touch%20x);c=d|e";
    let request = json!({ "mode": "url", "message": "pay\u{1b}[2J here", "url": page,
        "elicitationId": "e1" });
    let words = format!("request:={request}");
    let visit = |typed: &str| {
        let mut command = command(&home, &["call", "chaos", "elicit", &words]);
        let mut terminal = TerminalProgram::take(command.env("BROWSER", &browser));
        let shown = terminal.expect("Open it in your browser? [y/N] ");
        assert!(!record.exists(), "nothing is opened before the yes");
        terminal.type_line(typed);
        (shown, terminal.leave())
    };
    let (shown, left) = visit("");
    assert_eq!(answer(&left.stdout), json!({ "action": "decline" }));
    assert!(!record.exists());
    for line in [
        "server `chaos` asks you to visit a page:",
        "  | pay\\u{001B}[2J here",
        "  host: xn--pple-43d.com (may be shown as `⟨Cyrillic \u{430}⟩pple.com`",
        &format!("  page: {page}"),
    ] {
        assert!(shown.contains(line), "no {line:?} in {shown}");
    }
    let (_, left) = visit("y");
    assert_eq!(left.code, Some(0), "{}", left.shown);
    assert_eq!(answer(&left.stdout), json!({ "action": "accept" }));
    assert_eq!(
        std::fs::read_to_string(&record).unwrap(),
        format!("1|{page}|"),
        "one argument, as it is, through no shell"
    );
}

#[test]
fn a_hook_that_stops_an_answer_is_named_after_it() {
    let home = TempHome::new();
    let script = Script {
        drama: true,
        ..Script::default()
    };
    let line = "echo 'not from here' >&2; exit 2";
    let settings = json!({
        "mcpServers": { "chaos": ScriptedServer::new(script).entry() },
        "hooks": { "ElicitationResult": [{ "hooks": [{ "type": "command", "command": line }] }] },
    });
    home.write_settings(settings.to_string());
    let mut terminal = terminal(&home, &form(&json!({}), &[]));
    terminal.expect("Tell server `chaos` that you agree? [y/N] ");
    terminal.type_line("y");
    terminal.expect("answered\r\n");
    let warned = terminal.expect("not from here\r\n");
    assert!(
        warned.contains("warning: server `chaos`: the hook `echo"),
        "{warned}"
    );
    assert!(
        warned.contains("said no to what was answered to server `chaos`: not from here"),
        "{warned}"
    );
    assert_eq!(
        answer(&terminal.leave().stdout),
        json!({ "action": "decline" })
    );
}

#[test]
fn a_page_that_no_program_opens_is_left_to_the_person() {
    let home = home();
    let request = json!({ "mode": "url", "message": "sign", "url": "https://example.com/sign" });
    let words = format!("request:={request}");
    let mut command = command(&home, &["call", "chaos", "elicit", &words]);
    command
        .env("BROWSER", "/nonexistent/browser")
        .env("PATH", "/nonexistent");
    let mut terminal = TerminalProgram::take(&mut command);
    terminal.expect("[y/N] ");
    terminal.type_line("y");
    terminal.expect("no program opened it");
    terminal.expect("open the page above yourself");
    assert_eq!(
        answer(&terminal.leave().stdout),
        json!({ "action": "accept" })
    );
}

#[test]
fn what_was_typed_before_a_question_is_no_answer_to_it() {
    let home = home_with(Script {
        drama: true,
        start_delay_ms: 700,
        ..Script::default()
    });
    let mut terminal = terminal(&home, &form(&json!({}), &[]));
    terminal.type_line("y");
    terminal.expect("Tell server `chaos` that you agree? [y/N] ");
    terminal.type_line("n");
    assert_eq!(
        answer(&terminal.leave().stdout),
        json!({ "action": "decline" })
    );
}

#[test]
fn without_a_terminal_the_error_says_how_to_answer() {
    let modern = home_with(Script {
        drama: true,
        speaks: SpokenEras::Modern,
        ..Script::default()
    });
    assert_snapshot!(toolway(&modern, &["call", "chaos", "elicit"]), @"
    exit: 7
    ----- stdout
    ----- stderr
    error: server `chaos` needs input for `elicit` that nobody here can give: elicitation/create (form)
    hint: run `toolway call chaos elicit` in a terminal, or answer with an `Elicitation` hook
    ");
    assert_snapshot!(toolway(&modern, &["call", "chaos", "sample"]), @"
    exit: 7
    ----- stdout
    ----- stderr
    error: server `chaos` needs input for `sample` that nobody here can give: sampling/createMessage
    hint: no model answers servers here: call it from a program that offers one
    ");
}

#[test]
fn a_question_that_goes_with_its_call_says_so() {
    let home = home();
    let words = ["call", "chaos", "elicit", "--timeout", "2"];
    let mut terminal = TerminalProgram::take(&mut command(&home, &words));
    terminal.expect("> ");
    terminal.expect("the question is gone");
    terminal.expect("error: `elicit` of server `chaos` did not answer within 2s");
    assert_eq!(terminal.leave().code, Some(8));
}
