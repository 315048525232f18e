//! The protected server in both eras, and the connectors of an account.

use serde_json::{Value, json};
use toolway_testkit::authority::{Authority, AuthoritySettings, ConnectorAccount};

use super::{Answer, answer, call, client};

async fn say(url: &str, token: &str, header: Option<(&str, &str)>, body: &Value) -> Answer {
    let mut request = client()
        .post(url)
        .header("authorization", format!("Bearer {token}"))
        .body(body.to_string());
    if let Some((name, value)) = header {
        request = request.header(name, value);
    }
    answer(request).await
}

fn legacy(method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method,
        "params": { "protocolVersion": "2025-11-25", "name": "whoami" } })
}

#[tokio::test]
async fn it_speaks_both_eras_to_whoever_has_a_token() {
    let authority = Authority::start(AuthoritySettings::default());
    let token = authority.issue("app", "read").access;
    let url = authority.resource();
    let greeting = say(url, &token, None, &legacy("initialize")).await.json();
    assert_eq!(greeting["result"]["protocolVersion"], "2025-11-25");
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(say(url, &token, None, &ready).await.status, 202);
    let list = say(url, &token, None, &legacy("tools/list")).await.json();
    assert_eq!(list["result"]["tools"][0]["name"], "whoami");
    assert!(list["result"].get("resultType").is_none());
    let who = say(url, &token, None, &legacy("tools/call")).await.json();
    let text = "subject=person-1 client=app scope=read";
    assert_eq!(who["result"]["content"][0]["text"], text);

    let found = call(&authority, Some(&token), "server/discover")
        .await
        .json();
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]));
    let who = call(&authority, Some(&token), "tools/call").await.json();
    assert_eq!(who["result"]["resultType"], "complete");
    assert_eq!(call(&authority, Some(&token), "no/such").await.status, 404);
    let open = client()
        .get(url)
        .header("authorization", format!("Bearer {token}"));
    assert_eq!(answer(open).await.status, 405);

    assert_eq!(call(&authority, None, "tools/list").await.status, 401);
    let query = format!("{url}?access_token={token}");
    assert_eq!(
        answer(client().post(query).body("{}")).await.status,
        401,
        "only in the header"
    );
    let report = authority.report();
    assert_eq!(
        (report.mcp_requests, report.mcp_allowed, report.unauthorized),
        (10, 8, 2)
    );
}

#[tokio::test]
async fn a_call_needs_its_scope() {
    let authority = Authority::start(AuthoritySettings {
        challenge_scopes: vec!["read".to_owned()],
        call_scopes: vec!["read".to_owned(), "write".to_owned()],
        ..AuthoritySettings::default()
    });
    let challenge = call(&authority, None, "tools/list").await;
    assert!(
        challenge
            .header("www-authenticate")
            .contains("scope=\"read\"")
    );
    let less = authority.issue("app", "read").access;
    assert_eq!(
        call(&authority, Some(&less), "tools/list").await.status,
        200
    );
    let refused = call(&authority, Some(&less), "tools/call").await;
    assert_eq!(refused.status, 403);
    let header = refused.header("www-authenticate");
    assert!(
        header.contains("error=\"insufficient_scope\", scope=\"read write\""),
        "{header}"
    );
    let more = authority.issue("app", "read write").access;
    assert_eq!(
        call(&authority, Some(&more), "tools/call").await.status,
        200
    );
    assert_eq!(authority.report().forbidden, 1);
}

#[tokio::test]
async fn a_tool_and_what_else_is_offered_have_scopes_of_their_own() {
    let authority = Authority::start(AuthoritySettings {
        tool_scopes: [("post".to_owned(), vec!["write".to_owned()])].into(),
        offer_scopes: vec!["openid".to_owned()],
        ..AuthoritySettings::default()
    });
    let token = authority.issue("app", "read").access;
    let ask = async |method: &str, name: &str| {
        let mut message = legacy(method);
        message["params"] = json!({ "name": name });
        say(authority.resource(), &token, None, &message).await
    };
    for (method, name, wanted) in [
        ("tools/call", "whoami", None),
        ("tools/call", "post", Some("write")),
        ("resources/read", "", Some("openid")),
        ("prompts/get", "who", Some("openid")),
        ("prompts/list", "", None),
    ] {
        let answer = ask(method, name).await;
        match wanted {
            None => assert_eq!(answer.status, 200, "{method}"),
            Some(wanted) => {
                assert_eq!(answer.status, 403, "{method}");
                let header = answer.header("www-authenticate");
                assert!(header.contains(&format!("scope=\"{wanted}\"")), "{header}");
            }
        }
    }
}

#[tokio::test]
async fn signed_tokens_open_it_too() {
    let authority = Authority::start(AuthoritySettings {
        signed_access: true,
        ..AuthoritySettings::default()
    });
    let token = authority.issue("app", "read").access;
    assert_eq!(token.split('.').count(), 3);
    assert!(toolway_testkit::authority::holds_secret(&token));
    assert_eq!(
        call(&authority, Some(&token), "tools/call").await.status,
        200
    );
}

#[tokio::test]
async fn an_account_hosts_connectors() {
    let authority = Authority::start(AuthoritySettings {
        account: Some(ConnectorAccount {
            connectors: vec!["notes".to_owned()],
            header: "x-client".to_owned(),
            value: Some("toolway".to_owned()),
        }),
        ..AuthoritySettings::account_provider()
    });
    let token = authority.issue("app", "read").access;
    let directory = |token: String| {
        let request = client().get(authority.directory());
        async move { answer(request.header("authorization", format!("Bearer {token}"))).await }
    };
    assert_eq!(directory("wrong".to_owned()).await.status, 401);
    let listed = directory(token.clone()).await.json();
    let url = listed["connectors"][0]["url"].as_str().unwrap();
    assert_eq!(url, authority.connector("notes"));
    let header = Some(("x-client", "toolway"));
    let list = say(url, &token, header, &legacy("tools/list")).await;
    assert_eq!(list.json()["result"]["tools"][0]["name"], "whoami");
    for wrong in [None, Some(("x-client", "other"))] {
        assert_eq!(
            say(url, &token, wrong, &legacy("tools/list")).await.status,
            400
        );
    }
    let other = authority.connector("other");
    assert_eq!(
        say(&other, &token, header, &legacy("ping")).await.status,
        404
    );
    authority.expire_access_tokens();
    assert_eq!(say(url, &token, header, &legacy("ping")).await.status, 401);
    assert_eq!(authority.report().connector_requests, 7);
}
