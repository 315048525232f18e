//! Agent files: what they say, whose word their servers need, and what a repository cannot have with
//! one.

use std::os::unix::fs::symlink;

use insta::assert_snapshot;
use serde_json::json;
use toolway_config::{Agent, Flags, Plan, agents, find_agent};
use toolway_types::{Author, Diagnosis, ToolKey};

use crate::{Stage, exists, findings, spec, table, word};

const REPOSITORYS: &str = "home/repo/.claude/agents/a.md";
const OWN: &str = "home/.claude/agents/a.md";

impl Stage {
    fn agent(&self, word: &str) -> Agent {
        let environment = self.environment();
        let place = find_agent(&environment, word).unwrap();
        toolway_config::agent(&environment, place).unwrap()
    }

    fn refused_agent(&self, word: &str) -> String {
        let environment = self.environment();
        let refused = find_agent(&environment, word)
            .and_then(|place| toolway_config::agent(&environment, place));
        self.shown(&[refused.unwrap_err()])
    }

    fn agents_plan(&self, agent: &Agent) -> Plan {
        agent.own_plan(&self.environment(), &Flags::default())
    }

    fn shown(&self, diagnoses: &[Diagnosis]) -> String {
        let mut plan = Plan::default();
        plan.diagnoses = diagnoses.to_vec();
        findings(self, &plan)
    }

    fn approve_agents(&self, agent: &Agent, name: &str, allow_env: &[&str]) {
        let environment = self.environment();
        let plan = self.agents_plan(agent);
        let server = plan.winner(name).unwrap();
        let allow_env: Vec<_> = allow_env.iter().map(|name| (*name).to_owned()).collect();
        let files = toolway_config::repository_files(&environment, server);
        toolway_config::approve(&environment, server, &allow_env, &files.bound).unwrap();
    }
}

fn with_server(definition: &str) -> String {
    format!("---\nname: a\nmcpServers:\n  - x: {definition}\n---\nDo it.\n")
}

#[test]
fn an_agent_has_servers_by_name_and_of_its_own_and_only_some_tools() {
    let stage = Stage::new();
    stage.write(
        OWN,
        "---\nname: reviewer\ndescription: Reviews\nmodel: opus\nhooks: {a: [b]}\nmcpServers:\n  - github\n  - db:\n      command: run\n      args: [\"--port\", \"1\"]\n      env: {K: v}\nrequiredMcpServers: [db]\ntools: Read, Bash(git diff:*, x), mcp__github__list_*, mcp__db\ndisallowedTools:\n  - Write\n  - mcp__github__list_secrets\n---\nYou review.\n",
    );
    let agent = stage.agent("reviewer");
    assert_eq!(stage.shown(&agent.diagnoses), "");
    assert_eq!(agent.author, Author::Person);
    assert_eq!(agent.description.as_deref(), Some("Reviews"));
    let named: Vec<_> = agent
        .servers
        .iter()
        .flatten()
        .map(ToString::to_string)
        .collect();
    assert_eq!(named, ["github"]);
    let plan = stage.agents_plan(&agent);
    assert_snapshot!(table(&stage, &plan), @"db [dynamic] admitted");
    let confinement = agent.confinement().unwrap();
    let github = toolway_types::ServerName::new("github").unwrap();
    let db = toolway_types::ServerName::new("db").unwrap();
    let rules = plan
        .permissions
        .clone()
        .confined(confinement, &[&github, &db]);
    for (server, tool, is_there) in [
        ("github", "list_issues", true),
        ("github", "list_secrets", false),
        ("github", "LIST_SECRETS", false),
        ("github", "create_issue", false),
        ("db", "query", true),
        ("other", "list_x", false),
    ] {
        let key = ToolKey::new(toolway_types::ServerName::new(server).unwrap(), tool);
        assert_eq!(rules.boundaries().have(&key), is_there, "{server} {tool}");
    }
}

#[test]
fn every_form_of_pattern_takes_away_what_it_could_mean() {
    let stage = Stage::new();
    for (patterns, gone, left) in [
        ("mcp__a", vec![("a", "t"), ("a", "u")], vec![("b", "t")]),
        ("mcp__a__*", vec![("a", "t"), ("a", "u")], vec![("b", "t")]),
        (
            "mcp__a__t",
            vec![("a", "t"), ("a", "T")],
            vec![("a", "u"), ("b", "t")],
        ),
        ("mcp__*", vec![("a", "t"), ("b", "u")], vec![]),
        ("\"*\"", vec![("a", "t"), ("b", "u")], vec![]),
        (
            "\"mcp__*__t\"",
            vec![("a", "t"), ("b", "t")],
            vec![("a", "u")],
        ),
        ("Bash, Read(*)", vec![], vec![("a", "t")]),
        // What cannot be read takes away all that it could mean.
        ("mcp__a__t(x:y)", vec![("a", "t")], vec![("a", "u")]),
        ("mcp__a__", vec![("a", "t"), ("a", "u")], vec![("b", "t")]),
        ("mcp__", vec![("a", "t"), ("b", "t")], vec![]),
        ("{a: b}", vec![("a", "t"), ("b", "t")], vec![]),
        ("[[mcp__a__t]]", vec![("a", "t"), ("b", "t")], vec![]),
        ("5", vec![("a", "t"), ("b", "t")], vec![]),
    ] {
        stage.write(
            OWN,
            &format!("---\nname: a\ndisallowedTools: {patterns}\n---\n"),
        );
        let agent = stage.agent("a");
        let rules = Plan::default().permissions;
        let rules = match agent.confinement() {
            Some(confinement) => rules.confined(confinement, &[]),
            None => rules,
        };
        let is_there = |(server, tool): &(&str, &str)| {
            let key = ToolKey::new(toolway_types::ServerName::new(*server).unwrap(), *tool);
            rules.boundaries().have(&key)
        };
        assert!(!gone.iter().any(is_there), "{patterns}: {gone:?}");
        assert!(left.iter().all(is_there), "{patterns}: {left:?}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_line_and_spoils_nothing_else() {
    let stage = Stage::new();
    stage.write(
        OWN,
        "---\nname: [1]\nmcpServer: x\nmcpServers:\n  - good: {command: run}\n  - bad: {comand: run}\n  - 7\n  - one: {command: a}\n    two: {command: b}\n  - good\n  - text: hello\n  - ok\ntools: [mcp__good, \"mcp__good__t(x)\", 3]\nrequiredMcpServers: [absent]\n---\n",
    );
    let agent = stage.agent("a");
    let mut all = agent.diagnoses.clone();
    let plan = stage.agents_plan(&agent);
    all.extend(
        plan.servers
            .iter()
            .flat_map(|server| server.diagnoses.clone()),
    );
    assert_snapshot!(stage.shown(&all), @r#"
    home/.claude/agents/a.md:2 `name` must be a text, not a list | write `name: …`
    home/.claude/agents/a.md:3 `mcpServer` is not a key Toolway reads | did you mean `mcpServers`?
    home/.claude/agents/a.md:7 an entry of `mcpServers` must be a name or a definition, not a number | write a list: `- name` for a server that is configured, `- name: {command: …}` for one of the agent's own
    home/.claude/agents/a.md:8 an entry of `mcpServers` has 2 names | write each server as an entry of its own, and its definition deeper than its name
    home/.claude/agents/a.md:10 `good` stands twice in `mcpServers`; the first counts | keep one of them
    home/.claude/agents/a.md:13 an entry of `tools` must be a text, not a number | write it in quotes
    home/.claude/agents/a.md:13 `mcp__good__t(x)` in `tools` cannot be read: `x` is neither `argument:pattern` nor `@annotation` | write `mcp__server`, `mcp__server__*` or `mcp__server__tool`
    home/.claude/agents/a.md:14 `requiredMcpServers` names `absent`, which is not among `mcpServers` | add `- absent` to `mcpServers`
    home/.claude/agents/a.md:6 neither `command` nor `url` is given | rename `comand` to `command`
    home/.claude/agents/a.md:11 a server must be an object, not a string | write `{"command": "…", "args": []}` or `{"type": "http", "url": "https://…"}`
    "#);
    assert_snapshot!(table(&stage, &plan), @"
    bad [dynamic] invalid: neither `command` nor `url` is given
    good [dynamic] admitted
    text [dynamic] invalid: a server must be an object, not a string
    ");
    let servers = agent.servers.clone().unwrap();
    assert_eq!(servers.len(), 1);
    assert_snapshot!(stage.shown(&agent.remarks(&stage.plan())), @"home/.claude/agents/a.md:12 `mcpServers` names `ok`, which is not configured | add it with `toolway add ok -- <command>`, or write its definition below its name");
}

#[test]
fn what_is_no_agent_file_is_said() {
    let stage = Stage::new();
    stage.write("home/repo/x.md", "# No front matter\n");
    assert_snapshot!(stage.refused_agent("x.md"), @"home/repo/x.md:1 there is no front matter | begin the file with `---`, a line `name: …`, and another `---`");
    stage.write("home/repo/x.md", "---\nname: a\n  b: c\n---\n");
    assert_snapshot!(stage.refused_agent("x.md"), @"home/repo/x.md:3 the front matter is not valid YAML: mapping values are not allowed in this context | mend the YAML at that place; texts with `:` or `#` in them need quotes");
    assert_snapshot!(stage.refused_agent("./absent.md"), @"there is no agent file `home/repo/./absent.md` | give a file's path, or the name of an agent in `.claude/agents` or `.toolway/agents`");
    assert_snapshot!(stage.refused_agent("absent"), @"no agent is called `absent` | agents are Markdown files in `.claude/agents` or `.toolway/agents` of the project, or of yours; or give a file's path");
    stage.write(OWN, "---\nname: reviewer\n---\n");
    assert_snapshot!(stage.refused_agent("reviewr"), @"no agent is called `reviewr` | did you mean `reviewer`?");
    assert_snapshot!(stage.refused_agent("zz"), @"no agent is called `zz` | there are: reviewer");
}

#[test]
fn sec_01_a_repositorys_agent_starts_and_expands_nothing_before_it_is_approved() {
    let stage = Stage::new();
    stage.write(
        REPOSITORYS,
        &with_server("{command: run, args: [\"${SECRET}\"]}"),
    );
    let agent = stage.agent("a");
    assert_eq!(agent.author, Author::Repository);
    let plan = stage.agents_plan(&agent);
    assert_snapshot!(table(&stage, &plan), @"x [project] pending-approval: `x` comes from an agent file of the project and is not approved; it asks for `SECRET`");
    // The whole repository's approval by settings was given for `.mcp.json`.
    for settings in [
        r#"{"enableAllProjectMcpServers": true}"#,
        r#"{"enabledMcpjsonServers": ["x"]}"#,
    ] {
        stage.user(settings);
        assert_eq!(
            word(&stage.agents_plan(&agent), "x"),
            "pending-approval",
            "{settings}"
        );
    }
    stage.user("{}");
    // Approved, it still reads no variable that nobody allowed.
    stage.approve_agents(&agent, "x", &[]);
    assert_eq!(word(&stage.agents_plan(&agent), "x"), "refused");
    stage.approve_agents(&agent, "x", &["SECRET"]);
    assert_eq!(word(&stage.agents_plan(&agent), "x"), "admitted");
}

#[test]
fn sec_05_a_yes_holds_for_one_definition_in_one_agent_file() {
    let stage = Stage::new();
    let text = with_server("{command: run}");
    stage.write(REPOSITORYS, &text);
    let agent = stage.agent(".claude/agents/a.md");
    stage.approve_agents(&agent, "x", &[]);
    assert_eq!(word(&stage.agents_plan(&agent), "x"), "admitted");
    // Another file, and `.mcp.json`, have another yes, and keep theirs.
    stage.write(
        "home/repo/.claude/agents/b.md",
        &text.replace("name: a", "name: b"),
    );
    let other = stage.agent("b");
    assert_eq!(word(&stage.agents_plan(&other), "x"), "pending-approval");
    stage.project(r#"{"mcpServers": {"x": {"command": "run"}}}"#);
    assert_eq!(word(&stage.plan(), "x"), "pending-approval");
    stage.approve("x", &[]);
    stage.approve_agents(&other, "x", &[]);
    for agent in [&agent, &other] {
        assert_eq!(word(&stage.agents_plan(agent), "x"), "admitted");
    }
    assert_eq!(word(&stage.plan(), "x"), "admitted");
    // Another definition asks again.
    stage.write(REPOSITORYS, &with_server("{command: run, args: [evil]}"));
    let agent = stage.agent(".claude/agents/a.md");
    assert_snapshot!(table(&stage, &stage.agents_plan(&agent)), @"x [project] pending-approval: `x` has changed since it was approved");
    assert_eq!(
        toolway_config::reset(&stage.environment()).unwrap().value,
        3
    );
    assert_eq!(word(&stage.agents_plan(&other), "x"), "pending-approval");
}

#[test]
fn sec_05_a_script_that_changed_since_it_was_approved_asks_again() {
    let stage = Stage::new();
    stage.write("home/repo/server.py", "print(1)\n");
    stage.write(
        REPOSITORYS,
        &with_server("{command: python3, args: [server.py]}"),
    );
    let agent = stage.agent("a");
    stage.approve_agents(&agent, "x", &[]);
    let plan = stage.agents_plan(&agent);
    assert_eq!(word(&plan, "x"), "admitted");
    stage.write("home/repo/server.py", "print(2)\n");
    assert_snapshot!(table(&stage, &stage.agents_plan(&agent)), @"x [project] pending-approval: `server.py` has changed since `x`, which runs it, was approved");
}

#[test]
fn sec_40_a_repositorys_agent_names_no_secret_although_it_is_approved() {
    let stage = Stage::new();
    for named in [
        "${file:/etc/hostname}",
        "${cmd:touch stolen}",
        "${keychain:k}",
    ] {
        let definition = json!({"command": "run", "env": {"K": named}});
        stage.write(REPOSITORYS, &with_server(&definition.to_string()));
        let agent = stage.agent("a");
        stage.approve_agents(&agent, "x", &[]);
        assert_ne!(word(&stage.agents_plan(&agent), "x"), "admitted", "{named}");
    }
    assert!(!exists(&stage.root.join("home/repo/stolen")));
    // A person's own file may.
    let definition = json!({"command": "run", "env": {"K": "${keychain:k}"}});
    stage.write(
        "home/.claude/agents/mine.md",
        &with_server(&definition.to_string()).replace("name: a", "name: mine"),
    );
    let agent = stage.agent("mine");
    spec(&stage.agents_plan(&agent), "x");
}

#[test]
fn sec_55_a_repositorys_agent_does_not_take_the_name_of_the_persons_own() {
    let stage = Stage::new();
    stage.write(REPOSITORYS, "---\nname: a\n---\n");
    stage.write("home/repo/.claude/agents/z.md", "---\nname: mine\n---\n");
    assert_eq!(stage.agent("mine").author, Author::Repository);
    stage.write(
        "home/.config/toolway/agents/any.md",
        "---\nname: mine\ntools: mcp__a__b\n---\n",
    );
    let agent = stage.agent("mine");
    assert_eq!(agent.author, Author::Person);
    let found = agents(&stage.environment());
    let names: Vec<&str> = found.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["mine", "a", "mine"]);
}

#[test]
fn sec_55_a_file_is_a_repositorys_wherever_it_lies_in_one_and_whatever_leads_to_it() {
    let mut stage = Stage::new();
    let text = with_server("{command: run}");
    for path in [
        "home/repo/a.md",
        "home/repo/deep/er/a.md",
        "home/plain/.claude/agents/a.md",
    ] {
        stage.write(path, &text);
        let path = stage.root.join(path);
        assert_eq!(
            stage.agent(path.to_str().unwrap()).author,
            Author::Repository,
            "{path:?}"
        );
    }
    // A link of the person's to a repository, by path; and one of the repository's to the person.
    let own = stage.write(OWN, &text);
    let link = stage.root.join("home/link.md");
    symlink(stage.root.join("home/repo/a.md"), &link).unwrap();
    assert_eq!(
        stage.agent(link.to_str().unwrap()).author,
        Author::Repository
    );
    let link = stage.root.join("home/repo/.claude/agents/link.md");
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink(&own, &link).unwrap();
    assert_eq!(
        stage.agent(link.to_str().unwrap()).author,
        Author::Repository
    );
    // A folder of theirs that is a link in disguise.
    let folder = stage.root.join("home/repo/agents");
    symlink(stage.root.join("home/.claude/agents"), &folder).unwrap();
    assert_eq!(stage.agent(own.to_str().unwrap()).author, Author::Person);
    // Outside of any, it is the word of who typed it.
    let path = stage.write("home/elsewhere/a.md", &text);
    assert_eq!(
        stage.agent(path.to_str().unwrap()).author,
        Author::Invocation
    );
    // Where one stands is the project, although nothing marks it.
    stage.cwd = stage.root.join("home/elsewhere");
    assert_eq!(stage.agent("./a.md").author, Author::Repository);
}

#[test]
fn sec_14_managed_policy_is_asked_about_an_agents_own_servers() {
    let stage = Stage::new();
    stage.write(OWN, &with_server("{command: run}"));
    let agent = stage.agent("a");
    assert_eq!(word(&stage.agents_plan(&agent), "x"), "admitted");
    stage.managed(r#"{"deniedMcpServers": [{"serverName": "x"}]}"#);
    assert_eq!(word(&stage.agents_plan(&agent), "x"), "refused");
    stage.managed(r#"{"allowedMcpServers": [{"serverCommand": ["other"]}]}"#);
    assert_eq!(word(&stage.agents_plan(&agent), "x"), "refused");
    stage.managed("{");
    assert_eq!(word(&stage.agents_plan(&agent), "x"), "refused");
    std::fs::remove_file(stage.root.join("system/managed-settings.json")).unwrap();
    stage.enterprise(r#"{"mcpServers": {}}"#);
    assert_eq!(word(&stage.agents_plan(&agent), "x"), "refused");
}

#[test]
fn an_agents_servers_are_switched_off_as_all_others() {
    let stage = Stage::new();
    stage.write(OWN, &with_server("{command: run}"));
    stage.user(r#"{"disabledMcpServers": ["x"]}"#);
    let agent = stage.agent("a");
    assert_eq!(word(&stage.agents_plan(&agent), "x"), "disabled");
}

#[test]
fn sec_55_another_users_agent_file_says_nothing() {
    let stage = Stage::new();
    let path = stage.write(REPOSITORYS, &with_server("{command: run}"));
    if std::os::unix::fs::chown(&path, Some(54_321), None).is_err() {
        eprintln!("skipped: only root can give a file to somebody else");
        return;
    }
    assert_snapshot!(stage.refused_agent(".claude/agents/a.md"), @"home/repo/.claude/agents/a.md:1 the agent file, or its directory, belongs to another user (id 54321): nothing in it counts | if you trust that user, add `home/repo` to `safeDirectories` in your settings");
}
