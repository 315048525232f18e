//! Renewals that outlive whoever waited for them: a call that is dropped or out of time, one of
//! several, a host that ends. What the authorization server gave is kept (REL-15).

use std::time::Duration;

use serde_json::{Map, json};
use toolway::auth::{AuthOptions, Invitation, LoginOptions};
use toolway::{
    CallError, CallFault, CallOptions, Consent, Host, HostOptions, ToolRequest, ToolTarget,
};
use toolway_auth::logins::{Login, Logins};
use toolway_auth::vault::{StorageChoice, Vault, VaultOptions};
use toolway_testkit::authority::{Authority, AuthoritySettings, RequestedParty};
use toolway_testkit::browser::browse;
use toolway_testkit::eventually;
use toolway_types::{ConnectionState, ToolKey};

use crate::support::*;

struct Scene {
    home: Home,
    authority: Authority,
}

impl Scene {
    fn new() -> Self {
        Self {
            home: Home::new(),
            authority: Authority::start(AuthoritySettings::default()),
        }
    }

    /// As another process would open it.
    fn vault(&self) -> Vault {
        Vault::open(VaultOptions {
            storage: StorageChoice::File,
            ..VaultOptions::new(self.home.path().join("vault"))
        })
    }

    async fn host(&self) -> Host {
        let options = HostOptions {
            auth: AuthOptions {
                vault: Some(self.vault()),
                ..AuthOptions::default()
            },
            ..self.home.options()
        };
        let servers = json!({ "shop": self.authority.entry() });
        let host = Host::start(self.home.plan(&servers), options);
        host.settled().await;
        host
    }

    /// A host that is logged in, with a token that has just ended.
    async fn with_ended_token(&self) -> Host {
        let host = self.host().await;
        let login = host.login("shop", LoginOptions::default()).await;
        let mut login = login.expect("begun");
        let Some(Invitation::Page { url, .. }) = login.invitation().await else {
            panic!("a page");
        };
        let visited = tokio::task::spawn_blocking(move || browse(url.as_str())).await;
        visited.expect("no panic");
        let outcome = login.outcome().await.expect("it is ours");
        outcome.expect("logged in");
        let mut snapshots = host.watch();
        let connected = snapshots.wait_for(|snapshot| {
            let state = snapshot.server("shop").map(|server| &server.state);
            matches!(state, Some(ConnectionState::Connected(_)))
        });
        drop(connected.await.expect("the host runs"));
        self.authority.expire_access_tokens();
        host
    }

    fn refreshes(&self) -> usize {
        let seen = self.authority.seen_at(RequestedParty::Issuer, "/token");
        let grants = seen.iter().filter_map(|seen| seen.param("grant_type"));
        grants.filter(|grant| *grant == "refresh_token").count()
    }

    /// Waits until a refresh is with the authority, which holds it.
    async fn is_sent(&self) {
        eventually(|| match self.refreshes() {
            0 => Err("nothing was sent".to_owned()),
            _ => Ok(()),
        })
        .await;
    }

    /// The login as another process has it.
    async fn kept(&self) -> Login {
        let logins = Logins::new(self.vault());
        let listed = logins.vault().list().await.expect("a list");
        let mut keys = listed.into_iter().map(|listed| listed.key);
        let key = keys.find(|key| key.server == "shop").expect("a login");
        logins.read(&key).await.expect("read").expect("kept")
    }

    /// Whether the token that is kept is one that the server takes, and nothing was lost for it.
    async fn assert_kept(&self) {
        let kept = self.kept().await;
        assert!(self.authority.is_valid(kept.tokens.access.expose()));
        let refresh = kept.tokens.refresh.expect("it rotates");
        let valid = self.authority.valid_refresh_tokens();
        assert!(valid.iter().any(|valid| valid == refresh.expose()));
        assert_eq!(self.refreshes(), 1);
        assert_eq!(self.authority.report().families_revoked, 0);
    }
}

async fn whoami(host: &Host, timeout: Option<Duration>) -> Result<String, CallError> {
    let request = ToolRequest::new(
        ToolTarget::Key(ToolKey::new(name("shop"), "whoami")),
        Map::new(),
    );
    let options = CallOptions {
        timeout,
        ..CallOptions::new(Consent::Typed)
    };
    let answer = host.call(request, options).await;
    answer.map(|answer| text_of(&answer))
}

#[tokio::test]
async fn rel_15_a_call_that_is_dropped_takes_no_renewal_with_it() {
    let scene = Scene::new();
    let host = scene.with_ended_token().await;
    let held = scene.authority.hold("/token");
    tokio::select! {
        outcome = whoami(&host, None) => panic!("{outcome:?}"),
        () = scene.is_sent() => {}
    }
    drop(held);
    let answer = whoami(&host, None).await.expect("an answer");
    assert!(answer.starts_with("subject=person-1"), "{answer}");
    scene.assert_kept().await;
    host.shutdown().await;
}

#[tokio::test]
async fn rel_15_a_call_that_is_out_of_time_takes_no_renewal_with_it() {
    let scene = Scene::new();
    let host = scene.with_ended_token().await;
    let held = scene.authority.hold("/token");
    let mut call = Box::pin(whoami(&host, Some(Duration::from_secs(5))));
    tokio::select! {
        outcome = &mut call => panic!("{outcome:?}"),
        () = scene.is_sent() => {}
    }
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(6)).await;
    tokio::time::resume();
    let error = call.await.expect_err("nobody answers");
    assert!(
        matches!(error, CallError::Failed(_, CallFault::TimedOut { .. })),
        "{error:?}"
    );
    drop(held);
    whoami(&host, None).await.expect("an answer");
    scene.assert_kept().await;
    host.shutdown().await;
}

#[tokio::test]
async fn rel_15_calls_share_a_renewal_also_when_the_first_one_is_dropped() {
    let scene = Scene::new();
    let host = scene.with_ended_token().await;
    let held = scene.authority.hold("/token");
    let mut second = Box::pin(whoami(&host, None));
    tokio::select! {
        biased;
        outcome = whoami(&host, None) => panic!("{outcome:?}"),
        outcome = &mut second => panic!("{outcome:?}"),
        () = scene.is_sent() => {}
    }
    drop(held);
    second.await.expect("an answer");
    scene.assert_kept().await;
    host.shutdown().await;
}

#[tokio::test]
async fn rel_15_a_host_that_ends_keeps_what_is_on_its_way() {
    let scene = Scene::new();
    let host = scene.with_ended_token().await;
    let held = scene.authority.hold("/token");
    tokio::select! {
        outcome = whoami(&host, None) => panic!("{outcome:?}"),
        () = scene.is_sent() => {}
    }
    let answering = async { drop(held) };
    tokio::join!(host.shutdown(), answering);
    scene.assert_kept().await;
    // The next process needs nobody.
    let next = scene.host().await;
    whoami(&next, None).await.expect("an answer");
    assert_eq!(scene.refreshes(), 1);
    next.shutdown().await;
}

#[tokio::test]
async fn rel_15_a_host_does_not_wait_for_an_answer_that_never_comes() {
    let scene = Scene::new();
    let host = scene.with_ended_token().await;
    let _held = scene.authority.hold("/token");
    tokio::select! {
        outcome = whoami(&host, None) => panic!("{outcome:?}"),
        () = scene.is_sent() => {}
    }
    // The clock goes as fast as nothing else happens; the request itself may take half a minute.
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    host.shutdown().await;
    assert!(begun.elapsed() < Duration::from_secs(15));
}
