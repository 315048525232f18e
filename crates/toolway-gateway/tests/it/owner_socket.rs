//! The owner's socket: who may connect, what is said there, and what garbage does.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use toolway_gateway::owner_socket::{OwnerCallError, OwnerClient, OwnerSocket, SocketFolder};
use toolway_gateway::{OwnerService, Service};
use toolway_testkit::patience::PATIENCE;
use toolway_types::Era;

use crate::scene::{ERAS, Scene, WAYS, Way};
use crate::{Echo, request, served};

/// A socket in a folder of its own, served beside the test.
struct Stage {
    folder: PathBuf,
    _root: tempfile::TempDir,
    _serving: JoinSet<()>,
}

impl Stage {
    async fn of(service: Arc<dyn Service>) -> Self {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("gateways");
        let socket = OwnerSocket::bind(&folder).await.unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move { socket.serve(service).await });
        Self {
            folder,
            _root: root,
            _serving: serving,
        }
    }

    fn socket(&self) -> PathBuf {
        let mut entries = std::fs::read_dir(&self.folder).unwrap();
        entries.next().unwrap().unwrap().path()
    }

    async fn connect(&self) -> BufReader<UnixStream> {
        BufReader::new(UnixStream::connect(self.socket()).await.unwrap())
    }

    async fn client(&self) -> OwnerClient {
        let stream = UnixStream::connect(self.socket()).await.unwrap();
        OwnerClient::over(stream).unwrap()
    }
}

async fn say(stream: &mut BufReader<UnixStream>, line: &[u8]) -> Value {
    stream.write_all(line).await.unwrap();
    stream.write_all(b"\n").await.unwrap();
    let mut answer = String::new();
    stream.read_line(&mut answer).await.unwrap();
    serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: `{answer}`"))
}

#[tokio::test]
async fn garbage_is_answered_with_errors_and_harms_nobody() {
    let stage = Stage::of(served(&Echo::shared())).await;
    let mut stream = stage.connect().await;
    for line in [
        &b"{"[..],
        b"null",
        b"[]",
        b"\xff\xfe",
        b"{\"id\":1}",
        b"GET / HTTP/1.1",
    ] {
        let answer = say(&mut stream, line).await;
        assert!(answer["error"]["code"].is_i64(), "{answer}");
    }
    let endless = vec![b'a'; 17 * 1024 * 1024];
    let answer = say(&mut stream, &endless).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("larger than"), "{answer}");
    let answer = say(
        &mut stream,
        request(7, "echo", &json!({ "x": 1 })).as_bytes(),
    )
    .await;
    assert_eq!(answer["result"], json!({ "x": 1 }));
}

#[tokio::test(start_paused = true)]
async fn who_connects_and_says_nothing_is_cut_off() {
    let stage = Stage::of(served(&Echo::shared())).await;
    let mut stream = stage.connect().await;
    // Half a message is none.
    stream.write_all(b"{\"jsonrpc\"").await.unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).await.unwrap();
    let heard = String::from_utf8(heard).unwrap();
    assert!(heard.is_empty() || heard.contains("-32700"), "{heard}");
}

#[tokio::test]
async fn connections_are_bounded_and_more_wait_their_turn() {
    let stage = Stage::of(served(&Echo::shared())).await;
    let mut open = Vec::new();
    for _ in 0..toolway_types::limits::gateway::OWNER_CONNECTIONS {
        let mut client = stage.client().await;
        let _: Value = client.ask("echo", &json!({}), PATIENCE).await.unwrap();
        open.push(client);
    }
    let mut late = stage.client().await;
    let short = Duration::from_millis(100);
    let silent = late.ask::<Value>("echo", &json!({}), short).await;
    assert!(
        matches!(silent, Err(OwnerCallError::Silent { .. })),
        "{silent:?}"
    );
    drop(open);
    let mut next = stage.client().await;
    let _: Value = next.ask("echo", &json!({}), PATIENCE).await.unwrap();
}

#[tokio::test]
async fn the_owner_talks_mcp_like_every_client_and_may_look_besides() {
    for era in ERAS {
        let scene = Scene::of(era, Way::Stdio).await;
        let owner = OwnerService::new(scene.service(), "/work");
        let stage = Stage::of(Arc::new(owner)).await;
        let mut client = stage.client().await;
        let status: Value = client
            .ask("toolway/status", &json!({}), PATIENCE)
            .await
            .unwrap();
        assert_eq!(status["pid"], std::process::id());
        assert_eq!(status["directory"], "/work");
        assert_eq!(status["servers"][0]["state"], "connected");
        assert_eq!(status["clients"], json!([]), "who looks is no client");
        let listed: Value = client
            .ask("tools/list", &json!({}), PATIENCE)
            .await
            .unwrap();
        assert!(
            listed["tools"]
                .as_array()
                .is_some_and(|tools| !tools.is_empty())
        );
        let params = json!({ "name": "s__echo", "arguments": { "text": "hi" } });
        let called: Value = client.ask("tools/call", &params, PATIENCE).await.unwrap();
        assert_eq!(called["content"][0]["text"], "hi");
        let status: Value = client
            .ask("toolway/status", &json!({}), PATIENCE)
            .await
            .unwrap();
        assert_eq!(status["clients"][0]["name"], "toolway");
        assert_eq!(status["clients"][0]["calls"], 1);
        let unknown = client
            .ask::<Value>("toolway/other", &json!({}), PATIENCE)
            .await;
        assert!(
            matches!(unknown, Err(OwnerCallError::Refused { code: -32601, .. })),
            "{unknown:?}"
        );
        let given = json!({ "id": "", "answer": "yes" });
        let refused = client
            .ask::<Value>("toolway/answer", &given, PATIENCE)
            .await;
        let Err(OwnerCallError::Refused { reason, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(reason.as_deref(), Some("unknown"));
        drop((client, stage));
        scene.end().await;
    }
}

#[tokio::test]
async fn sec_09_no_client_reaches_the_owners_methods_by_any_way_in() {
    for era in ERAS {
        let scene = Scene::of(Era::Legacy, Way::Stdio).await;
        for way in WAYS {
            for mut client in [scene.line(era, way, "anna"), scene.line_to("s", era, way)] {
                client.greet().await;
                for method in [
                    "toolway/status",
                    "toolway/questions",
                    "toolway/answer",
                    "toolway/x",
                ] {
                    let answer = client
                        .ask(method, json!({ "id": "a", "answer": "yes" }))
                        .await;
                    assert_eq!(answer["error"]["code"], -32601, "{answer}");
                    // The gateway's own words: no server was asked.
                    let message = format!("method not found: {method}");
                    assert_eq!(answer["error"]["message"], message, "{answer}");
                }
            }
        }
        // Nor is it told to the server that a client talks to alone.
        let mut alone = scene.line_to("s", era, Way::Stdio);
        alone.greet().await;
        alone.tell(
            "toolway/answer",
            Some(json!({ "id": "a", "answer": "yes" })),
        );
        alone.tell("acme/told", Some(json!({})));
        let told = json!([["acme/told", {}]]);
        alone.reports("told", &told).await;
        drop(alone);
        scene.end().await;
    }
}

#[tokio::test]
async fn rel_34_two_gateways_stand_side_by_side_and_a_dead_one_is_removed() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("gateways");
    let one = OwnerSocket::bind(&folder).await.unwrap();
    let other = OwnerSocket::bind(&folder).await.unwrap();
    let found = || async {
        let folder = SocketFolder::open_if_there(&folder).unwrap().unwrap();
        folder.gateways().await.len()
    };
    assert_eq!(found().await, 2);
    drop(one);
    assert_eq!(found().await, 1);
    // As a killed process leaves it: the name without anybody behind it.
    let entry = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap();
    drop(other);
    drop(std::os::unix::net::UnixListener::bind(entry.path()).unwrap());
    assert!(entry.path().exists());
    assert_eq!(found().await, 0);
    assert!(!entry.path().exists());
    // On a disk that machines share, another's is left.
    let foreign = folder.join("00000000-0000000000000000.sock");
    drop(std::os::unix::net::UnixListener::bind(&foreign).unwrap());
    assert_eq!(found().await, 0);
    assert!(foreign.exists());
}

/// A program in the place of another user; none where only root can do that, and is not there.
fn as_nobody(script: &str, path: &Path) -> Option<Command> {
    if !rustix::process::geteuid().is_root() {
        drop(writeln!(
            std::io::stderr(),
            "left out: only root can be another user"
        ));
        return None;
    }
    let mut command = Command::new("python3");
    command.args(["-c", script]).arg(path).uid(65534).gid(65534);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    Some(command)
}

fn open_to_all(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn sec_09_another_user_who_gets_as_far_as_the_socket_is_told_nothing() {
    const ASK: &str = "
import socket, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[1])
try:
    s.sendall(b'{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{}}\\n')
    print(len(s.recv(100)))
except (ConnectionError, BrokenPipeError):
    print(0)
";
    let echo = Echo::shared();
    let stage = Stage::of(served(&echo)).await;
    let socket = stage.socket();
    let Some(mut command) = as_nobody(ASK, &socket) else {
        return;
    };
    // As if the folder and the socket had been open to all.
    open_to_all(stage.folder.parent().unwrap(), 0o777);
    open_to_all(&stage.folder, 0o777);
    open_to_all(&socket, 0o666);
    let asked = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = asked.await.unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        "0",
        "{output:?}"
    );
    assert_eq!(echo.seen(), 0);
}

#[tokio::test]
async fn sec_09_another_users_socket_in_our_folder_is_not_talked_to() {
    const LISTEN: &str = "
import socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()
print('listening', flush=True); sys.stdin.read()
";
    let root = tempfile::tempdir().unwrap();
    open_to_all(root.path(), 0o777);
    let folder = root.path().join("gateways");
    drop(SocketFolder::open(&folder).unwrap());
    open_to_all(&folder, 0o777);
    let socket = folder.join("00000000-1111111111111111.sock");
    let Some(mut command) = as_nobody(LISTEN, &socket) else {
        return;
    };
    let mut child = command.spawn().unwrap();
    let mut line = [0; 9];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
    let look = || async {
        let folder = SocketFolder::open_if_there(&folder).unwrap().unwrap();
        folder.gateways().await
    };
    assert!(look().await.is_empty(), "the file is another user's");
    // As if it had our name on it: whoever listens is still another.
    std::os::unix::fs::chown(&socket, Some(0), Some(0)).unwrap();
    let found = look().await;
    assert!(
        matches!(
            found[0].reached,
            Err(OwnerCallError::Stranger { uid: 65534 })
        ),
        "{found:?}"
    );
    drop(child.stdin.take());
    child.wait().unwrap();
}
