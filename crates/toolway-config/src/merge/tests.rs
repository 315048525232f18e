//! Precedence is total, and the order in which files are read does not matter.

use std::collections::BTreeMap;

use proptest::prelude::*;
use toolway_types::Origin;

use super::*;
use crate::load::{Layer, usual_author};
use crate::raw;
use crate::source::{FileKind, TextSource};

fn layer(scope: Scope, order: u32, text: &str) -> Layer {
    let source = TextSource::file(format!("/{scope}/{order}"));
    let file = raw::read(text, &source, FileKind::User).unwrap();
    let place = Arc::new(LayerLocation {
        file: format!("/{scope}/{order}"),
        ..LayerLocation::default()
    });
    Layer {
        scope,
        author: usual_author(scope),
        order,
        place,
        servers: file.servers,
        settings: file.settings,
    }
}

fn merged(files: Vec<Layer>) -> Config {
    merge(Layers {
        editors: crate::ide::RunningEditors::default(),
        environment: Environment::new(BTreeMap::new(), "/".into()),
        consent: ProjectConsent::ThisRun,
        files,
        approvals: ApprovalsFile::Read(crate::approval::ApprovalRecords::default()),
        diagnoses: Vec::new(),
        blocked: None,
    })
}

type Outcome = (
    String,
    Origin,
    Option<(ShadowedEntry, String)>,
    Vec<ShadowedEntry>,
);

/// What a merge settled: per mention its name, its place, and what it lost to.
fn outcome(config: &Config) -> Vec<Outcome> {
    config
        .servers
        .iter()
        .map(|server| {
            let lost = server
                .lost
                .as_ref()
                .map(|lost| (lost.to.clone(), lost.reason.clone()));
            let name = server.raw.name.to_string();
            (
                name,
                server.raw.origin.clone(),
                lost,
                server.shadows.clone(),
            )
        })
        .collect()
}

#[test]
fn every_scope_beats_all_before_it() {
    for (index, winner) in Scope::ALL.into_iter().enumerate() {
        let entry = |scope: Scope| {
            layer(
                scope,
                0,
                &format!(r#"{{"mcpServers": {{"a": {{"command": "{scope}"}}}}}}"#),
            )
        };
        let config = merged(
            Scope::ALL[..=index]
                .iter()
                .map(|scope| entry(*scope))
                .collect(),
        );
        assert_eq!(config.servers[0].scope, winner);
        assert_eq!(config.servers[0].shadows.len(), index);
        assert!(config.servers[1..].iter().all(|loser| loser.lost.is_some()));
    }
}

#[test]
fn servers_configured_by_hand_stand_for_the_same_of_plugins_and_connectors() {
    let config = merged(vec![
        layer(
            Scope::Connector,
            0,
            r#"{"mcpServers": {"c": {"url": "https://A.example/mcp/"}}}"#,
        ),
        layer(
            Scope::Plugin,
            2,
            r#"{"mcpServers": {"p1": {"url": "https://b.example"}}}"#,
        ),
        layer(
            Scope::Plugin,
            1,
            r#"{"mcpServers": {"p2": {"url": "https://b.example:443/#x"}}}"#,
        ),
        layer(
            Scope::User,
            0,
            r#"{"mcpServers": {"u": {"url": "https://a.example/mcp"},
                               "v": {"url": "https://a.example/mcp"}}}"#,
        ),
    ]);
    let reason = |name: &str| {
        let server = config
            .servers
            .iter()
            .find(|server| server.raw.name.as_str() == name);
        server
            .unwrap()
            .lost
            .as_ref()
            .map(|lost| lost.reason.as_str())
    };
    assert_eq!(reason("c"), Some("duplicate of `u`"));
    assert_eq!(reason("p1"), None);
    assert_eq!(reason("p2"), Some("duplicate of `p1`"));
    assert_eq!(
        (reason("u"), reason("v")),
        (None, None),
        "somebody wanted both"
    );
}

#[test]
fn another_environment_is_another_server() {
    let of = |text: &str| match serde_json::from_str(text).unwrap() {
        serde_json::Value::Object(map) => signature(&map),
        _ => None,
    };
    let plain = of(r#"{"command": "x", "args": []}"#);
    assert_eq!(plain, of(r#"{"command": "x", "timeout": 1000}"#));
    assert_ne!(plain, of(r#"{"command": "x", "env": {"A": "1"}}"#));
    assert_ne!(plain, of(r#"{"command": "x", "args": ["y"]}"#));
    assert_eq!(
        of(r#"{"command": "x", "env": {"A": "1", "B": "2"}}"#),
        of(r#"{"command": "x", "env": {"B": "2", "A": "1"}}"#)
    );
    assert_eq!(of(r#"{"type": "sdk"}"#), None);
}

#[test]
fn what_does_not_run_takes_nobody_elses_place() {
    for manual in [r#""disabled": true"#, r#""timeout": 1"#] {
        let user = format!(r#"{{"mcpServers": {{"u": {{"command": "x", {manual}}}}}}}"#);
        let config = merged(vec![
            layer(Scope::User, 0, &user),
            layer(
                Scope::Plugin,
                0,
                r#"{"mcpServers": {"p": {"command": "x"}}}"#,
            ),
        ]);
        assert!(
            config.servers.iter().all(|server| server.lost.is_none()),
            "{manual}"
        );
    }
}

fn layers() -> impl Strategy<Value = Vec<Layer>> {
    let entry = (prop::sample::select(vec!["a", "b", "c", " a"]), 0..3_u8);
    let file = (0..8_usize, prop::collection::vec(entry, 0..4));
    prop::collection::vec(file, 0..8).prop_map(|files| {
        (0..)
            .zip(files)
            .map(|(order, (scope, entries))| {
                let entries: Vec<_> = entries
                    .into_iter()
                    .map(|(name, command)| format!(r#""{name}": {{"command": "{command}"}}"#))
                    .collect();
                let text = format!(r#"{{"mcpServers": {{{}}}}}"#, entries.join(", "));
                layer(Scope::ALL[scope], order, &text)
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn any_order_of_the_layers_gives_the_same_winners(
        (straight, shuffled) in layers().prop_flat_map(|files| {
            (Just(files.clone()), Just(files).prop_shuffle())
        })
    ) {
        prop_assert_eq!(outcome(&merged(straight)), outcome(&merged(shuffled)));
    }

    #[test]
    fn every_name_has_one_winner_and_nothing_is_lost(files in layers()) {
        let mentions: usize = files.iter().map(|layer| layer.servers.len()).sum();
        let config = merged(files);
        prop_assert_eq!(config.servers.len(), mentions);
        for group in config.servers.chunk_by(|a, b| a.raw.name == b.raw.name) {
            let active = group.iter().filter(|server| {
                let by_name =
                    server.lost.as_ref().is_some_and(|lost| lost.reason == "by precedence");
                server.raw.name_stands && !by_name
            });
            prop_assert!(active.count() <= 1);
            let highest = group.iter().filter(|s| s.raw.name_stands).map(|s| s.scope).max();
            if let Some(highest) = highest {
                prop_assert_eq!(group[0].scope, highest);
            }
        }
    }
}
