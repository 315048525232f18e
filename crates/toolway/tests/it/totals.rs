//! What is gathered over many messages has a total: SEC-51.

use std::time::Duration;

use serde_json::json;
use toolway::Host;
use toolway_testkit::{BulkLists, Script, ScriptedServer, Usage, alone};
use toolway_types::ConnectionState;

use crate::support::{Home, echo, shown, text_of};

/// Waits until the server is connected.
async fn connected(host: &Host, server: &str) {
    let mut snapshots = host.watch();
    let connected = snapshots.wait_for(|snapshot| {
        let server = snapshot.server(server);
        server.is_some_and(|server| matches!(server.state, ConnectionState::Connected(_)))
    });
    let outcome = tokio::time::timeout(Duration::from_mins(1), connected).await;
    outcome
        .unwrap_or_else(|_| panic!("`{server}`: {:?}", shown(host, server).state))
        .expect("the host runs");
}

/// What a server is warned of in its lists.
fn warnings(host: &Host, server: &str) -> Vec<String> {
    let mut warnings = shown(host, server).warnings;
    warnings.retain(|warning| warning.contains("/list`:"));
    warnings
}

#[tokio::test]
async fn sec_51_a_hundred_pages_of_megabytes_are_read_up_to_a_total() {
    if !alone("totals::sec_51_a_hundred_pages_of_megabytes_are_read_up_to_a_total") {
        return;
    }
    let flooding = ScriptedServer::new(Script {
        bulk: Some(BulkLists {
            pages: 100,
            items: 16,
            item_bytes: 64 * 1024,
            ..BulkLists::default()
        }),
        ..Script::default()
    });
    let remote = flooding.serve_http();
    let home = Home::new();
    let before = Usage::take().peak;
    let servers = json!({
        "local": flooding.entry(),
        "remote": remote.entry(),
        "honest": ScriptedServer::default().entry(),
    });
    let host = Host::start(home.plan(&servers), home.options());
    for server in ["honest", "local", "remote"] {
        connected(&host, server).await;
    }
    // Eight lists of 16 MiB, each of which is kept as received and as it is shown.
    let grown = (Usage::take().peak - before) / 1024;
    assert!(grown < 900, "{grown} MiB more");
    for server in ["local", "remote"] {
        assert_eq!(
            warnings(&host, server),
            [
                "`tools/list`: the list has more than 16 MiB; what follows the first 255 items is \
                 left out",
                "`resources/list`: the list has more than 16 MiB; what follows the first 255 items \
                 is left out",
                "`resources/templates/list`: the list has more than 16 MiB; what follows the first \
                 255 items is left out",
                "`prompts/list`: the list has more than 16 MiB; what follows the first 255 items \
                 is left out",
            ],
            "{server}"
        );
    }
    assert_eq!(shown(&host, "honest").warnings, Vec::<String>::new());
    let answer = echo(&host, "honest", "hello").await;
    assert_eq!(text_of(&answer.expect("an answer")), "hello");
    host.shutdown().await;
}
