//! Attacks: a repository that wants its agent's server started, a program that wants out of its view,
//! and another user at the socket.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// A repository's agent whose server says that it ran.
fn repositorys_agent(home: &TempHome, rest: &str) -> PathBuf {
    let text = format!(
        "---\nname: helper\nmcpServers:\n  - evil: {{command: touch, args: [ran]}}\n{rest}---\n"
    );
    home.write(home.project().join(".claude/agents/helper.md"), text)
}

#[test]
fn sec_01_a_repositorys_agent_starts_nothing_of_its_own_before_it_is_approved() {
    let home = TempHome::new();
    repositorys_agent(&home, "");
    assert_snapshot!(run(&home, &["--agent", "helper", "--", "true"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    warning: [PROJECT]/.claude/agents/helper.md:4: server `evil`: `evil` comes from an agent file of the project and is not approved
    hint: see it with `toolway approve evil --agent helper`
    ");
    repositorys_agent(&home, "requiredMcpServers: [evil]\n");
    assert_snapshot!(run(&home, &["--agent", "helper", "--", "true"]), @"
    exit: 6
    ----- stdout
    ----- stderr
    warning: [PROJECT]/.claude/agents/helper.md:4: server `evil`: `evil` comes from an agent file of the project and is not approved
    hint: see it with `toolway approve evil --agent helper`
    error: the program is not started: server `evil` cannot be used: `evil` comes from an agent file of the project and is not approved
    hint: see it with `toolway approve evil --agent helper`
    ");
    assert_snapshot!(toolway(&home, &["doctor"]), @"
    exit: 0
    ----- stdout
    config home   [HOME]/.config/toolway
    project root  [PROJECT]
    servers       none configured
    shield        servers behind it cannot write [HOME]/.config/toolway, [HOME]/.config/toolway/state/results, [HOME]/.config/toolway/state/private, [SYSTEM]
                  nor look into [HOME]/.config/toolway/vault, [HOME]/.config/toolway/state
    keychain      ok: there is no keychain here (zbus error: Failed to connect to address `unix:path=[HOME]/no-bus`: No such file or directory (os error 2)); logins are kept in an encrypted file: protects against copying the one file, not against someone who can read your home
    vault         ok: empty
    clock         ok: not compared with a server's: nothing is asked without `--network`
    callback      ok: a browser can come back to this machine
    proxy         ok: none
    certificates  ok: the system's

    warning: [PROJECT]/.claude/agents/helper.md:4: server `evil`: `evil` comes from an agent file of the project and is not approved
    hint: see it with `toolway approve evil --agent helper`
    ----- stderr
    ");
    assert!(!home.project().join("ran").exists());
}

#[test]
fn sec_05_an_approval_shows_what_starts_and_holds_for_that_alone() {
    let (home, canary) = (TempHome::new(), Canary::new());
    let entry = serde_json::to_string(&offering(&canary)).unwrap();
    let path = home.project().join(".toolway/agents/w.md");
    let text = |entry: &str| format!("---\nname: w\nmcpServers: [{{mine: {entry}}}]\n---\n");
    home.write(&path, text(r#"{"command": "run-me", "env": {"K": "v"}}"#));
    assert_snapshot!(toolway(&home, &["approve", "--agent", "w"]), @"
    exit: 6
    ----- stdout
    ----- stderr
    server `mine` from [PROJECT]/.toolway/agents/w.md:3
      env K: v
    This runs on this machine, with your rights:
      run-me
    error: nobody is there to confirm this
    hint: read the above, then run `toolway approve mine --agent w --yes`
    ");
    assert_snapshot!(toolway(&home, &["approve", "mine", "--agent", "w", "--yes"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    server `mine` from [PROJECT]/.toolway/agents/w.md:3
      env K: v
    This runs on this machine, with your rights:
      run-me
    approved `mine`: [HOME]/.config/toolway/approvals.json:6
    ");
    assert_snapshot!(toolway(&home, &["approve", "--agent", "w"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    no server waits for approval
    ");
    // Another definition under the same name.
    home.write(&path, text(&entry));
    let refused = run(&home, &["--agent", "w", "--required", "mine", "--", "true"]);
    assert_eq!(refused.code, Some(6), "{refused}");
    canary.assert_gone();
    toolway(
        &home,
        &[
            "approve",
            "mine",
            "--agent",
            "w",
            "--yes",
            "--allow-env",
            "HOME",
        ],
    );
    toolway(&home, &["approve", "mine", "--agent", "w", "--yes"]).expect_code(0);
    run(&home, &["--agent", "w", "--required", "mine", "--", "true"]).expect_code(0);
    toolway(&home, &["reject", "mine", "--agent", "w"]).expect_code(0);
    let refused = run(&home, &["--agent", "w", "--required", "mine", "--", "true"]);
    assert_eq!(refused.code, Some(6), "{refused}");
    canary.assert_gone();
}

#[test]
fn sec_55_an_unapproved_server_of_an_agent_does_not_become_the_persons_of_that_name() {
    let (home, canary) = (TempHome::new(), Canary::new());
    home.write_settings(servers(&[("evil", offering(&canary))]));
    repositorys_agent(&home, "");
    let running = Running::start(&home, &["--agent", "helper"]);
    let mut client = running.client();
    assert_eq!(client.tools(), Vec::<String>::new());
    assert!(client.call("evil__report")["error"].is_object());
    running.end();
    canary.assert_gone();
}

#[test]
fn sec_14_a_managed_policy_is_asked_about_an_agents_server() {
    let (home, canary) = (TempHome::new(), Canary::new());
    let entry = serde_json::to_string(&offering(&canary)).unwrap();
    write_agent(
        &home,
        "w",
        &format!("mcpServers: [{{mine: {entry}}}]\nrequiredMcpServers: mine\n"),
    );
    home.write(
        home.system().join("managed-settings.json"),
        r#"{"deniedMcpServers": [{"serverName": "mine"}]}"#,
    );
    assert_snapshot!(run(&home, &["--agent", "w", "--", "true"]), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: the program is not started: server `mine` cannot be used: denied by `{"serverName":"mine"}` in `deniedMcpServers` ([SYSTEM]/managed-settings.json:1)
    hint: it stands at [HOME]/.config/toolway/agents/w.md:3
    "#);
    canary.assert_gone();
}

#[test]
fn sec_31_a_program_reaches_no_tool_outside_its_view_by_any_name() {
    let (home, canary) = (TempHome::new(), Canary::new());
    home.write_settings(servers(&[
        ("a", offering(&canary)),
        ("b", offering(&canary)),
    ]));
    write_agent(&home, "w", "mcpServers: [a]\ntools: mcp__a__report\n");
    let running = Running::start(&home, &["--agent", "w"]);
    let mut client = running.client();
    assert_eq!(client.tools(), ["a__report"]);
    for name in [
        "b__report",
        "mcp__b__report",
        "b.report",
        "b/report",
        "B__report",
        "a__mirror",
        "mcp__a__mirror",
        "A__mirror",
        "mirror",
        "report",
        "a__report__",
        "toolway__call",
        "ToolSearch",
        "ListMcpResources",
        "ReadMcpResource",
        "a__ReadMcpResource",
    ] {
        let answer = client.call(name);
        assert!(answer["error"].is_object(), "{name}: {answer}");
    }
    canary.processes().iter().for_each(drop);
}

#[test]
fn sec_31_a_program_reads_nothing_of_servers_outside_its_view() {
    let (home, canary) = (TempHome::new(), Canary::new());
    home.write_settings(servers(&[
        ("a", offering(&canary)),
        ("b", offering(&canary)),
    ]));
    // What there is of `b`, as its owner sees it.
    let everything = Running::start(&home, &["--servers", "b"]);
    let mut owner = everything.client();
    let listed = owner.ask("resources/list", &json!({}));
    let uris: Vec<String> = listed["result"]["resources"]
        .as_array()
        .unwrap_or_else(|| panic!("{listed}"))
        .iter()
        .map(|resource| resource["uri"].as_str().unwrap().to_owned())
        .collect();
    let prompts = owner.ask("prompts/list", &json!({}));
    let prompts: Vec<String> = prompts["result"]["prompts"]
        .as_array()
        .unwrap_or_else(|| panic!("{prompts}"))
        .iter()
        .map(|prompt| prompt["name"].as_str().unwrap().to_owned())
        .collect();
    assert!(!uris.is_empty() && !prompts.is_empty());
    let read = owner.ask("resources/read", &json!({ "uri": uris[0] }));
    assert!(read["result"].is_object(), "{read}");
    everything.end();
    for agent in [
        "mcpServers: []\n",
        "mcpServers: [a]\ntools: mcp__a__report\n",
        "mcpServers: [a, b]\ntools: mcp__a__report\n",
        "mcpServers: [b]\ndisallowedTools: mcp__b\n",
        "mcpServers: [b]\ndisallowedTools: \"mcp__*\"\n",
        "mcpServers: [b]\ntools: Read\n",
    ] {
        write_agent(&home, "w", agent);
        let running = Running::start(&home, &["--agent", "w"]);
        let mut client = running.client();
        for method in ["resources/list", "resources/templates/list", "prompts/list"] {
            let answer = client.ask(method, &json!({}));
            let lists = answer["result"].as_object();
            let lists = lists.into_iter().flatten();
            let items = lists.filter_map(|(_, value)| value.as_array()).flatten();
            let of_b: Vec<_> = items.collect();
            assert!(of_b.is_empty(), "{agent}: {method}: {answer}");
        }
        for uri in &uris {
            for method in ["resources/read", "resources/subscribe"] {
                let answer = client.ask(method, &json!({ "uri": uri }));
                assert!(answer["error"].is_object(), "{agent}: {method}: {answer}");
            }
        }
        for prompt in &prompts {
            for name in [prompt.clone(), prompt.replacen("b__", "mcp__b__", 1)] {
                let answer = client.ask("prompts/get", &json!({ "name": name }));
                assert!(answer["error"].is_object(), "{agent}: {answer}");
                let params = json!({ "ref": { "type": "ref/prompt", "name": name },
                    "argument": { "name": "x", "value": "" } });
                let answer = client.ask("completion/complete", &params);
                assert!(answer["error"].is_object(), "{agent}: {answer}");
            }
        }
        running.end();
    }
}

#[test]
fn rules_that_deny_hold_for_an_agent_whatever_its_file_says() {
    let (home, canary) = (TempHome::new(), Canary::new());
    let mut settings: Value = serde_json::from_str(&servers(&[("a", offering(&canary))])).unwrap();
    settings["permissions"] = json!({ "deny": ["mcp__a__report"] });
    home.write_settings(settings.to_string());
    write_agent(
        &home,
        "w",
        "mcpServers: [a]\ntools: [mcp__a__report, \"mcp__*\"]\npermissionMode: bypassPermissions\n",
    );
    let running = Running::start(&home, &["--agent", "w"]);
    let answer = running.client().call("a__report");
    let text = answer.to_string();
    assert!(
        text.contains("mcp__a__report") && !text.contains("process"),
        "{text}"
    );
}

#[test]
fn sec_26_the_socket_and_its_folder_are_the_persons_alone() {
    let home = TempHome::new();
    let running = Running::start(&home, &[]);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&running.socket), 0o600);
    assert_eq!(mode(running.folder()), 0o700);
    assert_eq!(mode(running.folder().parent().unwrap()), 0o700);
    assert_eq!(mode(&running.folder().join("mcp.json")), 0o600);
}

#[test]
fn sec_26_another_user_at_the_socket_is_turned_away_although_the_files_let_them_in() {
    let home = TempHome::new();
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let running = Running::start(&home, &[]);
    // As if somebody had opened every door.
    let mut folder = Some(running.socket.as_path());
    while let Some(path) =
        folder.filter(|path| path.starts_with("/tmp/") && *path != Path::new("/tmp"))
    {
        let mode = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(path, mode).unwrap();
        folder = path.parent();
    }
    let script = "import os, socket, sys\nos.setgid(54321); os.setuid(54321)\n\
        s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n\
        try:\n    s.sendall(b'{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\\n')\n    \
        print(repr(s.recv(10)))\nexcept (BrokenPipeError, ConnectionResetError):\n    print(\"b''\")\n";
    let output = home.run(
        home.command("python3")
            .args(["-c", script])
            .arg(&running.socket),
    );
    assert_eq!(output.stdout.trim(), "b''", "{output}");
    // And the person's own bridge does not talk to somebody else's socket.
    let place = home.home().join("theirs");
    let bind = "import os, socket, sys\nos.makedirs(sys.argv[1], 0o700); p = sys.argv[1] + '/mcp.sock'\n\
        os.chown(sys.argv[1], 54321, 54321); os.setgid(54321); os.setuid(54321)\n\
        s = socket.socket(socket.AF_UNIX); s.bind(p); s.listen(1); print('ready', flush=True)\n\
        c, _ = s.accept(); print(repr(c.recv(10)))\n";
    std::fs::set_permissions(home.home(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut theirs = home
        .command("python3")
        .args(["-c", bind])
        .arg(&place)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(theirs.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let socket = place.join("mcp.sock");
    let output = toolway(&home, &["endpoint", socket.to_str().unwrap()]);
    assert_eq!(output.code, Some(4), "{output}");
    let _ = theirs.kill();
    let _ = theirs.wait();
}

#[test]
fn a_bridge_without_an_endpoint_says_so() {
    let home = TempHome::new();
    assert_snapshot!(toolway(&home, &["endpoint"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: no endpoint is named, and `TOOLWAY_ENDPOINT` is not set
    hint: `toolway run -- <command>` starts a program with an endpoint
    ");
    assert_snapshot!(toolway(&home, &["endpoint", "absent/mcp.sock"]), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: the endpoint `[PROJECT]/absent/mcp.sock` cannot be used: there is none
    hint: it ends with the program that `toolway run` started
    ");
}

#[test]
fn a_client_that_sends_garbage_or_never_reads_disturbs_no_other() {
    let (home, canary) = (TempHome::new(), Canary::new());
    home.write_settings(servers(&[("a", offering(&canary))]));
    let running = Running::start(&home, &["--servers", "a"]);
    let mut rude = UnixStream::connect(&running.socket).unwrap();
    rude.write_all(b"\0\xff{{{{\n[]\n\"x\"\n{\"id\":{}}\n")
        .unwrap();
    let mut silent = UnixStream::connect(&running.socket).unwrap();
    silent.set_nonblocking(true).unwrap();
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n".repeat(20_000);
    // As much as there is room for.
    let _ = silent.write(&ping);
    assert!(running.client().answering("a") > 0);
    assert_eq!(running.end(), 0);
    canary.assert_gone();
}
