//! A Secret Service to test against: the bus and the service behind it, in one peer.
//!
//! It never sees a secret: its half of the key exchange is the number one, so every session has
//! the same key, and what one session sealed another can open. It can be locked, it can stop
//! answering, and it counts the windows it would have opened.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tokio::net::UnixListener;
use tokio::task::JoinSet;
use zbus::object_server::ObjectServer;
use zbus::zvariant::{ObjectPath, OwnedObjectPath, OwnedValue, Value};
use zbus::{AuthMechanism, Connection, Guid, connection, interface};

const SERVICE: &str = "/org/freedesktop/secrets";
const COLLECTION: &str = "/org/freedesktop/secrets/collection/login";

/// A secret as it passes over the bus.
type Wired = (OwnedObjectPath, Vec<u8>, Vec<u8>, String);

#[derive(Default)]
pub(super) struct State {
    pub(super) locked: bool,
    /// Requests are taken and never answered.
    pub(super) silent: bool,
    pub(super) windows: u32,
    items: Vec<Kept>,
    made: u32,
}

#[derive(Clone)]
struct Kept {
    path: OwnedObjectPath,
    attributes: HashMap<String, String>,
    parameters: Vec<u8>,
    value: Vec<u8>,
}

type Shared = Arc<Mutex<State>>;

pub(super) struct SecretService {
    pub(super) address: String,
    pub(super) state: Shared,
    // Held for its drop.
    _peers: JoinSet<()>,
}

impl SecretService {
    pub(super) fn start(folder: &Path) -> Self {
        let path = folder.join("bus");
        let listener = UnixListener::bind(&path).unwrap();
        let state = Shared::default();
        let shared = Arc::clone(&state);
        let mut peers = JoinSet::new();
        peers.spawn(async move {
            let mut open = Vec::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                // One that has gone away meanwhile is no matter.
                if let Ok(connection) = serve(stream, &shared).await {
                    open.push(connection);
                }
            }
        });
        Self {
            address: format!("unix:path={}", path.display()),
            state,
            _peers: peers,
        }
    }

    pub(super) fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }

    pub(super) fn len(&self) -> usize {
        self.state.lock().unwrap().items.len()
    }
}

async fn serve(stream: tokio::net::UnixStream, shared: &Shared) -> zbus::Result<Connection> {
    let connection = connection::Builder::unix_stream(stream)
        .server(Guid::generate())?
        .p2p()
        .auth_mechanism(AuthMechanism::External)
        .serve_at("/org/freedesktop/DBus", Bus)?
        .serve_at(SERVICE, Service(Arc::clone(shared)))?
        .serve_at(COLLECTION, Collection(Arc::clone(shared)))?
        .build()
        .await?;
    let kept = shared.lock().unwrap().items.clone();
    for item in kept {
        let own = Item(Arc::clone(shared), item.path.clone());
        connection.object_server().at(item.path, own).await?;
    }
    Ok(connection)
}

/// Waits forever when the service is to be silent.
async fn answer(shared: &Shared) {
    let silent = shared.lock().unwrap().silent;
    if silent {
        std::future::pending::<()>().await;
    }
}

struct Bus;

#[interface(name = "org.freedesktop.DBus")]
impl Bus {
    fn hello(&self) -> &'static str {
        ":1.1"
    }
    fn add_match(&self, _rule: &str) {}
    fn remove_match(&self, _rule: &str) {}
    fn get_name_owner(&self, _name: &str) -> &'static str {
        ":1.0"
    }
}

struct Service(Shared);

#[interface(name = "org.freedesktop.Secret.Service")]
impl Service {
    async fn open_session(
        &self,
        algorithm: &str,
        _input: Value<'_>,
    ) -> (OwnedValue, OwnedObjectPath) {
        answer(&self.0).await;
        let output = if algorithm == "plain" {
            Value::from("")
        } else {
            Value::from(vec![1_u8])
        };
        (
            output.try_into().unwrap(),
            path("/org/freedesktop/secrets/session/s"),
        )
    }

    async fn search_items(
        &self,
        attributes: HashMap<String, String>,
    ) -> (Vec<OwnedObjectPath>, Vec<OwnedObjectPath>) {
        answer(&self.0).await;
        let state = self.0.lock().unwrap();
        let matches = |item: &&Kept| {
            attributes
                .iter()
                .all(|(name, value)| item.attributes.get(name) == Some(value))
        };
        let found = state.items.iter().filter(matches);
        let found = found.map(|item| item.path.clone()).collect();
        if state.locked {
            (Vec::new(), found)
        } else {
            (found, Vec::new())
        }
    }

    fn unlock(&self, _objects: Vec<ObjectPath<'_>>) -> (Vec<OwnedObjectPath>, OwnedObjectPath) {
        self.0.lock().unwrap().windows += 1;
        (Vec::new(), path("/org/freedesktop/secrets/prompt/p"))
    }

    async fn read_alias(&self, _name: &str) -> OwnedObjectPath {
        answer(&self.0).await;
        path(COLLECTION)
    }
}

struct Collection(Shared);

#[interface(name = "org.freedesktop.Secret.Collection")]
impl Collection {
    async fn create_item(
        &self,
        properties: HashMap<String, OwnedValue>,
        secret: Wired,
        _replace: bool,
        #[zbus(object_server)] server: &ObjectServer,
    ) -> (OwnedObjectPath, OwnedObjectPath) {
        answer(&self.0).await;
        let attributes = &properties["org.freedesktop.Secret.Item.Attributes"];
        let attributes = attributes.try_clone().unwrap().try_into().unwrap();
        let own = {
            let mut state = self.0.lock().unwrap();
            state.made += 1;
            let own = path(&format!("{COLLECTION}/{}", state.made));
            state.items.push(Kept {
                path: own.clone(),
                attributes,
                parameters: secret.1,
                value: secret.2,
            });
            own
        };
        let item = Item(Arc::clone(&self.0), own.clone());
        server.at(&own, item).await.unwrap();
        (own, path("/"))
    }

    #[zbus(property)]
    async fn locked(&self) -> bool {
        answer(&self.0).await;
        self.0.lock().unwrap().locked
    }

    #[zbus(property)]
    fn label(&self) -> &'static str {
        "login"
    }
}

struct Item(Shared, OwnedObjectPath);

#[interface(name = "org.freedesktop.Secret.Item")]
impl Item {
    async fn get_secret(&self, session: OwnedObjectPath) -> (Wired,) {
        answer(&self.0).await;
        let state = self.0.lock().unwrap();
        let kept = state.items.iter().find(|item| item.path == self.1).unwrap();
        let kind = "application/octet-stream".to_owned();
        ((session, kept.parameters.clone(), kept.value.clone(), kind),)
    }

    async fn set_secret(&self, secret: Wired) {
        answer(&self.0).await;
        let mut state = self.0.lock().unwrap();
        let kept = state.items.iter_mut().find(|item| item.path == self.1);
        let kept = kept.unwrap();
        (kept.parameters, kept.value) = (secret.1, secret.2);
    }

    async fn delete(&self) -> OwnedObjectPath {
        answer(&self.0).await;
        self.0
            .lock()
            .unwrap()
            .items
            .retain(|item| item.path != self.1);
        path("/")
    }

    #[zbus(property)]
    async fn locked(&self) -> bool {
        self.0.lock().unwrap().locked
    }
}

fn path(text: &str) -> OwnedObjectPath {
    ObjectPath::try_from(text.to_owned()).unwrap().into()
}
