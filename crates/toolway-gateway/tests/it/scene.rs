//! A host over real servers, the gateway in front of it, and clients at every door.
//!
//! Owns starting and ending all of it, and the combinations that tests run through.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolway::config::{self, Environment, Flags};
use toolway::{Host, HostOptions, RetryFirst, Tracer, ViewSpec};
use toolway_gateway::hosted::{RoutedQuestions, ShownProfile};
use toolway_gateway::http::access::{AccessCheck, AccessLease};
use toolway_gateway::http::{
    Access, AccessRefusal, Authenticator, FrontObserver as _, HttpOptions, HttpServer, Identity,
};
use toolway_gateway::{
    Endpoint, EndpointOptions, HostService, HostServiceOptions, Peer, SealKeys, Service,
};
use toolway_testkit::{
    ListeningServer, ScannedFolder, Script, ScriptedServer, SpokenEras, eventually,
};
use toolway_types::{ConnectionState, Era};

use crate::speaker::Speaker;
use crate::wire::Wire;

/// How messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Stdio,
    Http,
}

pub(crate) const WAYS: [Way; 2] = [Way::Stdio, Way::Http];
pub(crate) const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// A server that has everything, of this era.
pub(crate) fn full(era: Era, name: &str) -> Script {
    Script {
        name: name.to_owned(),
        speaks: match era {
            Era::Legacy => SpokenEras::Legacy,
            Era::Modern => SpokenEras::Modern,
        },
        drama: true,
        offers: true,
        sessions: true,
        get_stream: true,
        ..Script::default()
    }
}

/// A server, as a process or behind a port.
pub(crate) struct Upstream {
    pub(crate) name: &'static str,
    script: Script,
    /// Further members of its entry.
    pub(crate) also: Value,
    pub(crate) listening: Option<ListeningServer>,
}

impl Upstream {
    pub(crate) fn new(name: &'static str, way: Way, script: Script) -> Self {
        let server = ScriptedServer::new(script.clone());
        let listening = (way == Way::Http).then(|| server.serve_http());
        Self {
            name,
            script,
            also: json!({}),
            listening,
        }
    }

    fn entry(&self) -> Value {
        let mut entry = match &self.listening {
            Some(listening) => listening.entry(),
            None => ScriptedServer::new(self.script.clone()).entry(),
        };
        for (key, value) in self.also.as_object().unwrap() {
            entry[key] = value.clone();
        }
        entry
    }

    /// A line to the server itself, without the gateway.
    pub(crate) fn line(&self) -> Wire {
        if let Some(listening) = &self.listening {
            Wire::http(listening.url(), None)
        } else {
            let server = ScriptedServer::new(self.script.clone());
            Wire::process(ScriptedServer::program(), &server.args())
        }
    }
}

/// Everything of one test.
pub(crate) struct Scene {
    pub(crate) host: Arc<Host>,
    service: Arc<HostService>,
    http: HttpServer,
    tasks: JoinSet<()>,
    pub(crate) upstreams: Vec<Upstream>,
    environment: Environment,
    flags: Flags,
    folder: ScannedFolder,
}

/// Every token is that of whom it names, bound to the profile behind a full stop where it names one.
struct Named;

impl Authenticator for Named {
    fn check<'a>(&'a self, token: Option<&'a str>) -> AccessCheck<'a> {
        let identity = token.map(|token| {
            let (name, profile) = match token.split_once('.') {
                Some((name, profile)) => (name, Some(profile)),
                None => (token, None),
            };
            Arc::new(Identity {
                principal: name.into(),
                shown: name.into(),
                profile: profile.map(Into::into),
                scopes: Vec::new(),
                is_owner: false,
                lease: AccessLease::default(),
            })
        });
        Box::pin(std::future::ready(
            identity.ok_or_else(AccessRefusal::no_token),
        ))
    }
}

impl Scene {
    /// One server `s`.
    pub(crate) async fn of(era: Era, way: Way) -> Self {
        let upstream = Upstream::new("s", way, full(era, "s"));
        Self::over(vec![upstream]).await
    }

    /// These servers, once all of them are connected.
    pub(crate) async fn over(upstreams: Vec<Upstream>) -> Self {
        let scene = Self::begun(upstreams, &EndpointOptions::default());
        scene.host.settled().await;
        let snapshot = scene.host.snapshot();
        for server in &*snapshot.servers {
            let state = &server.state;
            assert!(matches!(state, ConnectionState::Connected(_)), "{state:?}");
        }
        scene
    }

    /// One legacy server `s`, under the owner's `permissions`.
    pub(crate) async fn under(permissions: &Value) -> Self {
        let upstream = Upstream::new("s", Way::Stdio, full(Era::Legacy, "s"));
        Self::governed(vec![upstream], &json!({ "permissions": permissions })).await
    }

    /// These servers, once all of them are connected, under settings of the user's.
    pub(crate) async fn governed(upstreams: Vec<Upstream>, settings: &Value) -> Self {
        Self::governed_with(upstreams, settings, &json!({})).await
    }

    /// The same with more in every server's entry.
    pub(crate) async fn governed_with(
        upstreams: Vec<Upstream>,
        settings: &Value,
        more: &Value,
    ) -> Self {
        let scene = Self::set_up(upstreams, &EndpointOptions::default(), settings, more);
        scene.host.settled().await;
        scene.show_profiles().await;
        scene
    }

    /// Puts other settings in the place of those before, as a change of the file does.
    pub(crate) async fn change_settings(&self, settings: &Value) {
        self.write_settings(settings);
        let plan = config::plan(&self.environment, &self.flags);
        self.host.apply(plan).await;
        self.show_profiles().await;
    }

    fn write_settings(&self, settings: &Value) {
        write_settings(self.folder.path(), settings);
    }

    async fn show_profiles(&self) {
        let plan = config::plan(&self.environment, &self.flags);
        let shown = plan.profiles.iter().map(|(name, profile)| ShownProfile {
            name: name.as_str().into(),
            spec: ViewSpec::of_profile(profile),
            options: EndpointOptions::of_profile(profile),
        });
        self.service.set_profiles(shown.collect()).await;
    }

    /// These servers, which may still be on their way.
    pub(crate) fn begun(upstreams: Vec<Upstream>, options: &EndpointOptions) -> Self {
        Self::set_up(upstreams, options, &json!({}), &json!({}))
    }

    /// The same with spans of what happens.
    pub(crate) fn traced(
        upstreams: Vec<Upstream>,
        options: &EndpointOptions,
        tracer: Option<Tracer>,
    ) -> Self {
        let nothing = json!({});
        Self::put_together(upstreams, options, &nothing, &nothing, None, tracer)
    }

    fn set_up(
        upstreams: Vec<Upstream>,
        options: &EndpointOptions,
        settings: &Value,
        more: &Value,
    ) -> Self {
        Self::put_together(upstreams, options, settings, more, None, None)
    }

    /// The same with a home that others before it had, and what they kept of servers there.
    pub(crate) fn remembering(
        upstreams: Vec<Upstream>,
        options: &EndpointOptions,
        kept: &Path,
    ) -> Self {
        Self::put_together(upstreams, options, &json!({}), &json!({}), Some(kept), None)
    }

    fn put_together(
        upstreams: Vec<Upstream>,
        options: &EndpointOptions,
        settings: &Value,
        more: &Value,
        kept: Option<&Path>,
        tracer: Option<Tracer>,
    ) -> Self {
        let folder = ScannedFolder::new();
        let mut servers = upstreams
            .iter()
            .map(|it| (it.name.to_owned(), it.entry()))
            .collect::<serde_json::Map<_, _>>();
        for entry in servers.values_mut() {
            for (name, value) in more.as_object().unwrap() {
                entry[name] = value.clone();
            }
        }
        let home = kept.unwrap_or(folder.path()).join("home");
        let work = home.join("work");
        std::fs::create_dir_all(&work).unwrap();
        write_settings(folder.path(), settings);
        let variables = BTreeMap::from([
            ("HOME".to_owned(), home.display().to_string()),
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ]);
        let environment =
            Environment::new(variables, work).with_system_dir(folder.path().join("system"));
        let flags = Flags {
            mcp_config: vec![json!({ "mcpServers": servers }).to_string()],
            ..Flags::default()
        };
        let host_options = HostOptions {
            output_dir: folder.path().join("output"),
            client_handler: Some(Arc::new(RoutedQuestions)),
            retry_first: RetryFirst::Backoff,
            catalog_memory: kept.map(|kept| kept.join("memory")),
            offers_remembered: true,
            ..HostOptions::default()
        };
        let host = Arc::new(Host::start(
            config::plan(&environment, &flags),
            host_options,
        ));
        let service_options = HostServiceOptions {
            view: None,
            endpoint: options.clone(),
            profiles: Vec::new(),
            seal: SealKeys::random().unwrap(),
            tracer,
        };
        let (service, driver) = HostService::new(Arc::clone(&host), service_options);
        let http_options = HttpOptions {
            access: Access::Checked(Arc::new(Named)),
            ..HttpOptions::default()
        };
        let (http, http_driver) =
            HttpServer::bind(Arc::clone(&service) as _, &http_options).unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(driver);
        tasks.spawn(http_driver);
        Self {
            host,
            service,
            http,
            tasks,
            upstreams,
            environment,
            flags,
            folder,
        }
    }

    pub(crate) fn service(&self) -> Arc<HostService> {
        Arc::clone(&self.service)
    }

    /// A client of the merged view.
    pub(crate) fn line(&self, era: Era, way: Way, principal: &str) -> Speaker {
        let mut speaker = self.speaker(era, way, principal, Endpoint::All);
        speaker.prefix = "s__";
        speaker
    }

    /// A client over HTTP with headers of its own.
    pub(crate) fn line_with(&self, era: Era, headers: &[(&'static str, &str)]) -> Speaker {
        let wire = Wire::http_with(&self.http.url(), Some("anna"), headers);
        let mut speaker = Speaker::new(era, wire, &format!("{era:?} with headers"));
        speaker.prefix = "s__";
        speaker
    }

    /// A client of the endpoint of one server.
    pub(crate) fn line_to(&self, server: &str, era: Era, way: Way) -> Speaker {
        self.speaker(era, way, "anna", Endpoint::Server(server.into()))
    }

    pub(crate) fn address(&self) -> std::net::SocketAddr {
        self.http.address()
    }

    fn speaker(&self, era: Era, way: Way, principal: &str, endpoint: Endpoint) -> Speaker {
        let label = format!("{principal}, {era:?} over {way:?}");
        let wire = match way {
            Way::Stdio => Wire::pipe(
                Arc::clone(&self.service) as Arc<dyn Service>,
                Peer {
                    principal: principal.split('.').next().unwrap().into(),
                    shown: principal.into(),
                    endpoint,
                    profile: principal.split_once('.').map(|(_, profile)| profile.into()),
                    lease: AccessLease::default(),
                },
            ),
            Way::Http => {
                let base = self.http.url();
                let url = match &endpoint {
                    Endpoint::Server(name) => format!("{base}/{name}"),
                    _ => base,
                };
                Wire::http(&url, Some(principal))
            }
        };
        Speaker::new(era, wire, &label)
    }

    /// A client of the merged view that has shaken hands, with roots that it names when asked.
    pub(crate) async fn client(&self, era: Era, way: Way) -> Speaker {
        self.client_of(era, way, "anna").await
    }

    pub(crate) async fn client_of(&self, era: Era, way: Way, principal: &str) -> Speaker {
        let mut client = self.line(era, way, principal);
        client.greet().await;
        if era == Era::Legacy {
            // It is asked for them at once, and that is answered before anything else.
            let asked = client.question_of("roots/list").await;
            client.reply(&asked, &roots(principal));
        }
        client
    }

    /// The page of numbers, as of now.
    pub(crate) fn metrics(&self) -> String {
        let mut page = String::new();
        self.service.write_metrics(&mut page);
        page
    }

    /// Ends everything; whoever still talks is cut off.
    pub(crate) async fn end(self) {
        let Self {
            host,
            service,
            http,
            mut tasks,
            upstreams,
            folder: _folder,
            ..
        } = self;
        drop((service, http));
        tasks.shutdown().await;
        eventually(|| match Arc::strong_count(&host) {
            1 => Ok(()),
            count => Err(format!("{count} still hold the host")),
        })
        .await;
        Arc::into_inner(host).unwrap().shutdown().await;
        drop(upstreams);
    }
}

fn write_settings(folder: &std::path::Path, settings: &Value) {
    let directory = folder.join("home/.config/toolway");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("settings.json"), settings.to_string()).unwrap();
}

/// The roots of somebody.
pub(crate) fn roots(whose: &str) -> Value {
    json!({ "roots": [{ "uri": format!("file:///work/{whose}"), "name": whose }] })
}

/// A combination that a test runs in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pairing {
    pub(crate) client: Era,
    pub(crate) server: Era,
    pub(crate) down: Way,
    pub(crate) up: Way,
}

/// Every combination of transports for a client and a server of these eras.
pub(crate) fn ways_of(client: Era, server: Era) -> impl Iterator<Item = Pairing> {
    WAYS.into_iter().flat_map(move |down| {
        WAYS.into_iter().map(move |up| Pairing {
            client,
            server,
            down,
            up,
        })
    })
}

/// Every combination there is.
pub(crate) fn pairings() -> impl Iterator<Item = Pairing> {
    let eras = ERAS
        .into_iter()
        .flat_map(|client| ERAS.map(|server| (client, server)));
    eras.flat_map(|(client, server)| ways_of(client, server))
}

impl Pairing {
    /// Plays it: a scene, and a client in it.
    pub(crate) async fn play(self, talk: impl AsyncFnOnce(&Scene, &mut Speaker)) {
        let scene = Scene::of(self.server, self.up).await;
        let mut client = scene.client(self.client, self.down).await;
        client.label = format!("{self:?}");
        talk(&scene, &mut client).await;
        drop(client);
        scene.end().await;
    }
}
