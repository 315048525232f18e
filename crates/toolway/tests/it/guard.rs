//! A guard before a server that knows nothing of logins: whoever shows no token of an authority is
//! turned away, with the challenge that names where tokens are had.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use toolway_testkit::authority::Authority;

const METADATA: &str = "/.well-known/oauth-protected-resource";

/// A place that is guarded from when it is served.
pub(crate) struct Gate {
    listener: TcpListener,
    /// The resource: what tokens must be for.
    pub(crate) resource: String,
}

/// What stands there. Ends when dropped.
pub(crate) struct Guard {
    task: JoinHandle<()>,
    passed: Arc<Mutex<Vec<String>>>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Gate {
    /// A free place; the server behind it is at this path.
    pub(crate) async fn new(path: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        Self {
            listener,
            resource: format!("http://{address}{path}"),
        }
    }

    /// Lets whoever shows a token of the authority through to the server at this address.
    pub(crate) fn serve(self, authority: &Arc<Authority>, server: &str) -> Guard {
        let passed = Arc::new(Mutex::new(Vec::new()));
        let (authority, server) = (Arc::clone(authority), server.to_owned());
        let log = Arc::clone(&passed);
        let task = tokio::spawn(async move {
            // Whoever is inside is turned out with the guard.
            let mut inside = tokio::task::JoinSet::new();
            while let Ok((client, _)) = self.listener.accept().await {
                let (authority, server) = (Arc::clone(&authority), server.clone());
                let (resource, log) = (self.resource.clone(), Arc::clone(&log));
                inside.spawn(async move {
                    // Whoever hangs up in the middle of it has hung up.
                    let _ = admit(client, &authority, &server, &resource, &log).await;
                });
            }
        });
        Guard { task, passed }
    }
}

impl Guard {
    /// The first lines of what was let through, one for each connection.
    pub(crate) fn passed(&self) -> Vec<String> {
        self.passed.lock().expect("no panic").clone()
    }
}

async fn admit(
    mut client: TcpStream,
    authority: &Authority,
    server: &str,
    resource: &str,
    log: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let first = text.lines().next().unwrap_or_default().to_owned();
    if first.contains(METADATA) {
        let document = json!({
            "resource": resource,
            "authorization_servers": [authority.issuer()],
            "scopes_supported": ["read"],
        });
        return answer(&mut client, "200 OK", "", &document.to_string()).await;
    }
    let token = text.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        let is_token = name.eq_ignore_ascii_case("authorization");
        value.strip_prefix("Bearer ").filter(|_| is_token)
    });
    if !token.is_some_and(|token| authority.is_valid(token)) {
        let origin = resource.parse::<url::Url>().expect("an address").origin();
        let metadata = format!("{}{METADATA}", origin.ascii_serialization());
        let challenge = format!("www-authenticate: Bearer resource_metadata=\"{metadata}\"\r\n");
        return answer(&mut client, "401 Unauthorized", &challenge, "{}").await;
    }
    log.lock().expect("no panic").push(first);
    let mut behind = TcpStream::connect(server).await?;
    behind.write_all(&head).await?;
    copy_bidirectional(&mut client, &mut behind).await?;
    Ok(())
}

/// Each answer ends its connection, so that the next request is looked at too.
async fn answer(
    client: &mut TcpStream,
    status: &str,
    headers: &str,
    body: &str,
) -> std::io::Result<()> {
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         {headers}connection: close\r\n\r\n{body}"
    );
    client.write_all(text.as_bytes()).await?;
    client.shutdown().await?;
    // What was sent with the request and not read would cut the answer off.
    tokio::io::copy(client, &mut tokio::io::sink()).await?;
    Ok(())
}
