//! Helpers as programs of the system write them, and as hostile ones do.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex as Cell};

use http::Method;
use toolway_testkit::ScannedFolder;
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_types::{ShieldMode, StdioSpec};

use super::*;

struct Scene {
    home: ScannedFolder,
}

impl Scene {
    fn new() -> Self {
        Self {
            home: ScannedFolder::new(),
        }
    }

    fn path(&self, name: &str) -> String {
        self.home.path().join(name).display().to_string()
    }

    fn helper(&self, script: &str) -> HelperRunner {
        let path = self.home.write("helper", format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self.named(&path)
    }

    fn named(&self, path: &Path) -> HelperRunner {
        let secret = |name: &str, value: &str| (name.to_owned(), Secret::new(value));
        let inherited = BTreeMap::from([secret("PATH", "/usr/local/bin:/usr/bin:/bin")]);
        let definition = HeadersHelper {
            command: "./helper --flag ${SECRET}".to_owned(),
            process: StdioSpec {
                program: None,
                command: path.display().to_string(),
                args: vec!["--flag".to_owned(), "a b; $(id)".to_owned()],
                inherited: Arc::new(inherited),
                env: BTreeMap::from([secret("DECLARED", "yes")]),
                cwd: self.home.path().to_path_buf().into(),
                shield: ShieldMode::Off,
                umask: None,
            },
        };
        HelperRunner::new(
            ServerName::new("shop").unwrap(),
            "https://shop.example/mcp".parse().unwrap(),
            definition,
            OpenOptions::default(),
        )
    }

    async fn error(&self, script: &str) -> String {
        let error = self.helper(script).run().await.unwrap_err().to_string();
        assert!(
            error.starts_with("the headers helper `./helper --flag ${SECRET}` "),
            "{error}"
        );
        assert!(!error.contains(MARK), "{error}");
        assert!(!error.contains("a b; $(id)"), "{error}");
        error
    }
}

#[tokio::test]
async fn what_it_prints_becomes_headers_without_those_of_the_protocol() {
    let scene = Scene::new();
    let helper = scene.helper(marked!(
        r#"echo '{"Authorization": "Bearer "#,
        r#"", "X-Team": "a", "Host": "evil", "Mcp-Session-Id": "x",
            "Content-Length": "1", "transfer-encoding": "chunked"}'"#
    ));
    let headers = helper.run().await.unwrap();
    let names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
    assert_eq!(names, ["authorization", "x-team"]);
    assert_eq!(headers["authorization"], marked!("Bearer "));
    assert!(!format!("{headers:?}").contains(MARK));
}

#[tokio::test]
async fn sec_39_it_gets_the_servers_name_and_url_and_what_was_declared_and_no_shell() {
    let scene = Scene::new();
    let helper = scene.helper(r#"env > env.txt; printf '%s|' "$@" > args.txt; echo '{}'"#);
    assert!(helper.run().await.unwrap().is_empty());
    assert_eq!(
        fs::read_to_string(scene.path("args.txt")).unwrap(),
        "--flag|a b; $(id)|"
    );
    let env = fs::read_to_string(scene.path("env.txt")).unwrap();
    let mut names: Vec<&str> = env
        .lines()
        .map(|line| line.split('=').next().unwrap())
        .collect();
    // What the shell adds by itself, and the mark by which everything it starts is found again.
    names.retain(|name| !matches!(*name, "PWD" | "OLDPWD" | "SHLVL" | "_"));
    names.retain(|name| *name != "TOOLWAY_SERVER_MARK");
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "CLAUDE_CODE_MCP_SERVER_NAME",
            "CLAUDE_CODE_MCP_SERVER_URL",
            "DECLARED",
            "PATH",
            "TOOLWAY_SERVER_NAME",
            "TOOLWAY_SERVER_URL"
        ]
    );
    assert!(env.contains("TOOLWAY_SERVER_NAME=shop\n"), "{env}");
    assert!(
        env.contains("TOOLWAY_SERVER_URL=https://shop.example/mcp\n"),
        "{env}"
    );
}

#[tokio::test]
async fn sec_15_what_cannot_be_a_header_is_refused_as_a_whole() {
    let scene = Scene::new();
    for (script, expected) in [
        (
            marked!(r#"printf %s '{"X": ""#, r#"\r\nEvil: 1"}'"#),
            "a value for `x` that a header cannot have",
        ),
        (
            marked!(r#"printf %s '{"X": ""#, r#"\u0000"}'"#),
            "a value for `x` that a header cannot have",
        ),
        (
            marked!(r#"printf %s '{"X\r\n"#, r#"": "v"}'"#),
            "a header whose name is not valid",
        ),
        (
            marked!(r#"printf %s '{"a "#, r#"": "v"}'"#),
            "a header whose name is not valid",
        ),
        (
            r#"printf %s '{"": "v"}'"#,
            "a header whose name is not valid",
        ),
        (r#"printf %s '{"X": 1}'"#, "a value that is no string"),
        (
            marked!(r#"printf %s '{"X": [""#, r#""]}'"#),
            "a value that is no string",
        ),
        (
            marked!(r#"printf %s '[""#, r#""]'"#),
            "another kind of JSON",
        ),
        (
            marked!(r#"printf %s '{"X": "a", "X": ""#, r#""}'"#),
            "an object with a doubled key",
        ),
        (
            marked!(r#"printf %s '{"X": "a", "x": ""#, r#""}'"#),
            "printed `x` twice",
        ),
        (marked!("echo 'Authorization: ", "'"), "printed no JSON"),
        (marked!("printf '\\377\\376", "'"), "printed no text"),
        ("true", "printed nothing"),
        (
            marked!("key=", "; echo $key; echo $key >&2; exit 1"),
            "ended with exit code 1",
        ),
        ("kill -9 $$", "ended with signal 9"),
    ] {
        let error = scene.error(script).await;
        assert!(error.contains(expected), "{script}: {error}");
    }
    let missing = scene.named(Path::new(marked!("/nowhere/")));
    let error = missing.run().await.unwrap_err().to_string();
    assert!(
        error.contains("was not started: no such program"),
        "{error}"
    );
    assert!(!error.contains(MARK), "{error}");
}

#[tokio::test]
async fn rel_30_one_that_prints_a_gigabyte_or_never_ends_is_killed_with_all_it_started() {
    let scene = Scene::new();
    let error = scene
        .error("echo $$ > pid.txt; head -c 1073741824 /dev/zero; sleep 1000")
        .await;
    assert!(error.contains("printed more than 65536 bytes"), "{error}");
    assert_gone(&scene.path("pid.txt"));

    let mut helper = scene.helper("echo $$ > pid.txt; sleep 1000");
    helper.time = Duration::from_secs(2);
    let error = helper.run().await.unwrap_err();
    assert_eq!(error.why, HelperFault::TimedOut(Duration::from_secs(2)));
    assert_gone(&scene.path("pid.txt"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn sec_15_a_daemon_that_it_leaves_behind_is_ended_and_its_output_counts() {
    let scene = Scene::new();
    let helper = scene.helper(
        r#"setsid sh -c 'echo $$ > pid.txt; exec sleep 1000' &
           while [ ! -s pid.txt ]; do sleep 0.01; done
           echo '{"X": "v"}'"#,
    );
    assert_eq!(helper.run().await.unwrap()["x"], "v");
    assert_gone(&scene.path("pid.txt"));
}

fn assert_gone(pid_file: &str) {
    let pid = fs::read_to_string(pid_file).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", pid.trim()));
    // A zombie of the shell's is as good as gone.
    let lives = status.is_ok_and(|status| !status.contains("State:\tZ"));
    assert!(!lives, "{pid} is left");
}

const COUNTING: &str = r#"echo run >> runs.txt; printf '{"X": "v%s"}' "$(wc -l < runs.txt)""#;

fn credentials(scene: &Scene, script: &str) -> (HelperCredentials, Arc<Cell<Vec<String>>>) {
    let kept = Arc::new(Cell::new(Vec::new()));
    let keeper = Arc::clone(&kept);
    let keep_back = move |headers: &[(String, Secret)]| {
        let mut kept = keeper.lock().unwrap();
        kept.extend(headers.iter().map(|(_, value)| value.expose().to_owned()));
    };
    let credentials = HelperCredentials::new(scene.helper(script), Box::new(keep_back));
    (credentials, kept)
}

async fn present(credentials: &HelperCredentials) -> Result<CredentialHeaders, CredentialsError> {
    let url = "https://shop.example/mcp".parse().unwrap();
    let method = Method::POST;
    credentials
        .present(CredentialRequest {
            method: &method,
            url: &url,
        })
        .await
}

async fn refused(credentials: &HelperCredentials, presented: &CredentialHeaders) -> RetryDecision {
    let url = "https://shop.example/mcp".parse().unwrap();
    let refusal = CredentialRefusal {
        request: CredentialRequest {
            method: &Method::POST,
            url: &url,
        },
        status: 401,
        headers: &HeaderMap::new(),
    };
    credentials.refused(presented, refusal).await
}

#[tokio::test]
async fn it_runs_once_for_all_who_ask_and_once_more_for_all_who_were_refused() {
    let scene = Scene::new();
    let (credentials, kept) = credentials(&scene, COUNTING);
    let wanted = futures_util::future::join_all((0..8).map(|_| present(&credentials))).await;
    let first: Vec<CredentialHeaders> = wanted.into_iter().map(Result::unwrap).collect();
    assert!(
        first
            .iter()
            .all(|presented| presented.headers()["x"] == "v1")
    );
    let verdicts =
        futures_util::future::join_all(first.iter().map(|one| refused(&credentials, one)));
    assert!(
        verdicts
            .await
            .iter()
            .all(|verdict| *verdict == RetryDecision::Again)
    );
    assert_eq!(present(&credentials).await.unwrap().headers()["x"], "v2");
    assert_eq!(*kept.lock().unwrap(), ["v1", "v2"]);
    assert!(!format!("{credentials:?}").contains("v2"));
}

#[tokio::test]
async fn one_that_fails_is_told_once_and_run_anew_for_the_next_request() {
    let scene = Scene::new();
    let script = format!(
        r#"[ "$(wc -l < runs.txt 2>/dev/null)" = 1 ] && {{ echo run >> runs.txt; exit 3; }}; {COUNTING}"#
    );
    let (credentials, _) = credentials(&scene, &script);
    let first = present(&credentials).await.unwrap();
    assert_eq!(refused(&credentials, &first).await, RetryDecision::Again);
    let error = present(&credentials).await.unwrap_err();
    assert!(
        matches!(&error, CredentialsError::Broken(why) if why.contains("exit code 3")),
        "{error}"
    );
    assert_eq!(present(&credentials).await.unwrap().headers()["x"], "v3");
}
