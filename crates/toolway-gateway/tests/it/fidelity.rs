//! The same calls at a server itself and through the gateway: the same JSON, byte for byte.
//!
//! What may differ stands in `ERA_MEMBERS`, between the eras alone; ids are the envelope's.

mod corpus;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::json;
use serde_json::value::RawValue;
use toolway_types::Era;

use self::corpus::{Asked, corpus};
use crate::scene::{ERAS, Scene, Upstream, Way, full};
use crate::speaker::{Heard, Speaker};

/// The members that only modern results have: they are put there, or taken away.
const ERA_MEMBERS: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// The members of an object, in order, twice where they stand twice.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// What was answered, as far as it must be the same.
fn essence(answer: &Heard, differs: bool) -> (&'static str, Vec<(String, String)>) {
    let (kind, payload) = answer.payload();
    let Members(members) =
        serde_json::from_str(payload).unwrap_or_else(|error| panic!("{error}: {payload}"));
    let kept = members.into_iter().filter(|(name, _)| match kind {
        // A server may say more of an error than the protocol has room for.
        "error" => ["code", "message", "data"].contains(&name.as_str()),
        _ => !(differs && ERA_MEMBERS.contains(&name.as_str())),
    });
    let mut kept: Vec<_> = kept
        .map(|(name, value)| match name.as_str() {
            // Escapes are those of whoever writes it.
            "message" => (name, serde_json::from_str(value.get()).unwrap()),
            _ => (name, value.get().to_owned()),
        })
        .collect();
    if kind == "error" {
        kept.sort();
    }
    (kind, kept)
}

/// Makes one call; its whole answer.
async fn ask(speaker: &mut Speaker, asked: &Asked) -> Heard {
    let (method, params) = asked.request(speaker.prefix);
    let id = speaker.begin_text(method, &params);
    speaker.heard(id).await
}

/// Makes every call at the server and through the gateway.
async fn compare(server: Era, way: Way) {
    let mut all = corpus();
    all.retain(|(_, asked)| !asked.is_refused());
    assert!(all.len() >= 200, "{}", all.len());
    let scene = Scene::over(vec![Upstream::new("s", way, full(server, "s"))]).await;
    let mut direct = Speaker::new(server, scene.upstreams[0].line(), "directly");
    direct.meta = json!({ "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "com.example/odd": { "x": 1 } });
    direct.greet().await;
    let mut clients = Vec::new();
    for client in ERAS {
        for down in [Way::Stdio, Way::Http] {
            let mut speaker = scene.client(client, down).await;
            speaker.meta = direct.meta.clone();
            let mut alone = scene.line_to("s", client, down);
            alone.greet().await;
            alone.meta = direct.meta.clone();
            clients.extend([speaker, alone]);
        }
    }
    for (what, asked) in &all {
        let expected = ask(&mut direct, asked).await;
        for client in &mut clients {
            if client.is_over_http() && asked.is_too_large_for_http() {
                continue;
            }
            let answer = ask(client, asked).await;
            // A modern client gets `resultType` also where its server left it out.
            let differs = client.era != server || client.era == Era::Modern;
            let (answer, expected) = (essence(&answer, differs), essence(&expected, differs));
            assert!(
                answer == expected,
                "{what}, {} at {server:?} over {way:?}:\n{}\n{}",
                client.label,
                shortened(&answer),
                shortened(&expected),
            );
        }
    }
    drop((direct, clients));
    scene.end().await;
}

fn shortened(answer: &(&str, Vec<(String, String)>)) -> String {
    format!("{answer:?}").chars().take(600).collect()
}

#[tokio::test]
async fn every_call_at_a_legacy_server_gives_the_same_json_through_the_gateway() {
    for way in [Way::Stdio, Way::Http] {
        compare(Era::Legacy, way).await;
    }
}

#[tokio::test]
async fn every_call_at_a_modern_server_gives_the_same_json_through_the_gateway() {
    for way in [Way::Stdio, Way::Http] {
        compare(Era::Modern, way).await;
    }
}

/// Nothing of a call that is refused reaches the server, and the client goes on.
#[tokio::test]
async fn arguments_that_must_not_travel_are_refused_everywhere() {
    let scene = Scene::of(Era::Legacy, Way::Stdio).await;
    let refused: Vec<_> = corpus()
        .into_iter()
        .filter(|(_, asked)| matches!(asked, Asked::Arguments(_)) && asked.is_refused())
        .collect();
    assert_eq!(refused.len(), 4);
    for era in ERAS {
        for down in [Way::Stdio, Way::Http] {
            let mut client = scene.client(era, down).await;
            for (what, asked) in &refused {
                if down == Way::Http && asked.is_too_large_for_http() {
                    continue;
                }
                let answer = ask(&mut client, asked).await;
                let (kind, payload) = answer.payload();
                // What does not fit the tool is told to the model, which can mend it.
                let is_refusal = kind == "error" || payload.ends_with(r#""isError":true}"#);
                assert!(is_refusal, "{what}: {payload}");
            }
            let fine = Asked::Arguments(r#"{"x":1.0}"#.to_owned());
            assert_eq!(ask(&mut client, &fine).await.payload().0, "result");
        }
    }
    scene.end().await;
}

#[tokio::test]
async fn a_legacy_result_that_looks_modern_is_not_given_members_twice() {
    let scene = Scene::of(Era::Legacy, Way::Stdio).await;
    let mut client = scene.client(Era::Modern, Way::Stdio).await;
    for result in [
        r#"{"resultType":"complete","content":[]}"#,
        r#"{"content":[],"resultType":"complete"}"#,
    ] {
        let asked = Asked::Result(result.to_owned());
        let answer = ask(&mut client, &asked).await;
        assert_eq!(answer.payload(), ("result", result));
    }
    drop(client);
    scene.end().await;
}
