//! What an endpoint shows: exactly what the agent has.

use super::*;

/// A home with two servers that offer everything.
fn home_of_two() -> (TempHome, Canary) {
    let (home, canary) = (TempHome::new(), Canary::new());
    home.write_settings(servers(&[
        ("a", offering(&canary)),
        ("b", offering(&canary)),
    ]));
    (home, canary)
}

#[test]
fn without_an_agent_it_shows_all_that_the_person_has_or_the_servers_that_were_named() {
    let (home, canary) = home_of_two();
    let running = Running::start(&home, &[]);
    let tools = running.client().tools();
    for tool in ["a__report", "b__report"] {
        assert!(tools.iter().any(|it| it == tool), "{tools:?}");
    }
    assert_eq!(running.end(), 0);
    let running = Running::start(&home, &["--servers", "b"]);
    let mut client = running.client();
    let tools = client.tools();
    assert!(
        tools.iter().all(|tool| tool.starts_with("b__")),
        "{tools:?}"
    );
    assert!(client.call("a__report")["error"].is_object());
    running.end();
    canary.assert_gone();
}

#[test]
fn an_agents_endpoint_has_its_servers_and_tools_and_no_others() {
    let (home, canary) = home_of_two();
    let own = serde_json::to_string(&offering(&canary)).unwrap();
    write_agent(
        &home,
        "worker",
        &format!(
            "mcpServers:\n  - a\n  - mine: {own}\ntools: mcp__a__report, mcp__mine__*, Read\ndisallowedTools: mcp__mine__touch\n"
        ),
    );
    let running = Running::start(&home, &["--agent", "worker"]);
    let mut client = running.client();
    let tools = client.tools();
    assert!(tools.contains(&"a__report".to_owned()), "{tools:?}");
    assert!(tools.contains(&"mine__report".to_owned()), "{tools:?}");
    let is_own = |tool: &String| tool == "a__report" || tool.starts_with("mine__");
    assert!(tools.iter().all(is_own), "{tools:?}");
    assert!(!tools.contains(&"mine__touch".to_owned()), "{tools:?}");
    assert!(client.answering("a") > 0);
    assert!(client.answering("mine") > 0);
    running.end();
    canary.assert_gone();
}

#[test]
fn what_is_required_and_missing_keeps_the_program_from_starting() {
    let (home, canary) = home_of_two();
    write_agent(
        &home,
        "needy",
        "mcpServers:\n  - a\n  - gone: {command: /no/such/program}\nrequiredMcpServers: [a, gone]\n",
    );
    assert_snapshot!(run(&home, &["--agent", "needy", "--", "touch", "started"]), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: the program is not started: server `gone` failed: cannot start `/no/such/program`: no such program, or its interpreter is missing
    hint: it stands at [HOME]/.config/toolway/agents/needy.md:5
    ");
    assert_snapshot!(run(&home, &["--required", "absent", "--", "touch", "started"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: the program is not started: server `absent` is not configured here
    hint: `toolway list --no-connect` shows all that are
    ");
    assert_snapshot!(run(&home, &["--servers", "absent", "--", "touch", "started"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no server named `absent` is configured
    hint: see what is configured with `toolway list --no-connect`
    ");
    assert_snapshot!(run(&home, &["--agent", "nobody", "--", "touch", "started"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: no agent is called `nobody`
    hint: there are: needy
    ");
    assert!(!home.project().join("started").exists());
    canary.assert_gone();
}

#[test]
fn what_an_agent_file_has_wrong_is_said_and_spoils_nothing_else() {
    let (home, canary) = home_of_two();
    write_agent(
        &home,
        "odd",
        "mcpServers: [a, zzz, {bad: {comand: x}}]\ntools: [mcp__a__report, mcp__a__reprot, mcp__q__x]\nrequiredMcpServers: [a]\n",
    );
    assert_snapshot!(run(&home, &["--agent", "odd", "--", "true"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    error: [HOME]/.config/toolway/agents/odd.md:3: `mcpServers` names `zzz`, which is not configured
    hint: add it with `toolway add zzz -- <command>`, or write its definition below its name
    warning: [HOME]/.config/toolway/agents/odd.md:4: `mcp__q__x` in `tools` speaks of `q`, which the agent does not have
    hint: add `- q` to `mcpServers`, or take it out here
    error: [HOME]/.config/toolway/agents/odd.md:3: server `bad`: neither `command` nor `url` is given
    hint: rename `comand` to `command`
    warning: [HOME]/.config/toolway/agents/odd.md:4: `mcp__a__reprot` in `tools` names no tool that server `a` has
    hint: `toolway tools a` shows them
    ");
    canary.assert_gone();
}

#[test]
fn clients_are_told_by_a_file_and_by_a_command() {
    let (home, canary) = home_of_two();
    let script = format!(
        "{0} --strict-mcp-config --mcp-config \"$TOOLWAY_MCP_CONFIG\" call toolway a__report --json >/dev/null && echo by file; \
         echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}' | eval \"$TOOLWAY_ENDPOINT_COMMAND\"; \
         stat -c '%a %F' \"$TOOLWAY_ENDPOINT\" \"$TOOLWAY_MCP_CONFIG\" \"$(dirname \"$TOOLWAY_ENDPOINT\")\"",
        program()
    );
    assert_snapshot!(run(&home, &["--servers", "a", "--", "sh", "-c", &script]), @r#"
    exit: 0
    ----- stdout
    by file
    {"jsonrpc":"2.0","id":1,"result":{}}
    600 socket
    600 regular file
    700 directory
    ----- stderr
    "#);
    canary.assert_gone();
}

#[test]
fn several_clients_of_one_endpoint_share_the_agents_servers() {
    let (home, canary) = home_of_two();
    let own = serde_json::to_string(&offering(&canary)).unwrap();
    write_agent(
        &home,
        "w",
        &format!("mcpServers:\n  - mine: {own}\nrequiredMcpServers: mine\n"),
    );
    let running = Running::start(&home, &["--agent", "w"]);
    let process = running.client().answering("mine");
    assert_eq!(running.client().answering("mine"), process);
    assert_eq!(canary.processes().len(), 1);
    running.end();
    canary.assert_gone();
}

#[test]
fn no_method_of_an_owner_is_answered() {
    let (home, _canary) = home_of_two();
    let running = Running::start(&home, &["--servers", "a"]);
    let mut client = running.client();
    for method in [
        "toolway/status",
        "toolway/questions",
        "toolway/answer",
        "toolway/servers",
    ] {
        let answer = client.ask(method, &json!({}));
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
}
