//! The protected resource: MCP over Streamable HTTP in both eras, for clients with a token; and the
//! connectors that an account hosts.
//!
//! Owns the challenge and the few methods. The scripted server is the place for everything else
//! that an MCP server can do.

use serde_json::{Value, json};

use super::http::AuthorityReply;
use super::record::{RecordedRequest, RequestedParty};
use super::state::{AuthorityState, IssuedGrant};
use super::{AuthoritySettings, Switch, dpop, metadata};

const MODERN: &str = "2026-07-28";
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// Answers a request at the resource's endpoint.
pub(super) fn answer(state: &AuthorityState, seen: &RecordedRequest) -> AuthorityReply {
    let attacker = &state.places.attacker;
    if state.on(Switch::McpRedirect307) {
        return AuthorityReply::redirect(307, &format!("{attacker}/mcp"));
    }
    if state.on(Switch::McpRedirect302) {
        return AuthorityReply::redirect(302, &format!("{attacker}/mcp"));
    }
    let grant = match admitted(state, seen) {
        Ok(grant) => grant,
        Err(refused) => return refused,
    };
    if state.on(Switch::ForbiddenBare) {
        state.memory().report.forbidden += 1;
        return AuthorityReply::empty(403);
    }
    let message: Value = serde_json::from_str(&seen.body).unwrap_or_default();
    let held: Vec<&str> = grant.scope.split(' ').collect();
    let lacks = |scope: &String| !held.contains(&scope.as_str());
    let taken = taken(&state.settings, &message);
    let missing = taken.iter().any(lacks);
    if state.on(Switch::ScopeGrowing) || state.on(Switch::ScopeNever) || missing {
        return insufficient(state, taken);
    }
    state.memory().report.mcp_allowed += 1;
    mcp(state, seen, &message, &grant)
}

/// The scopes that a request takes.
fn taken<'a>(settings: &'a AuthoritySettings, message: &Value) -> &'a [String] {
    match message["method"].as_str() {
        Some("tools/call") => {
            let tool = message["params"]["name"].as_str().unwrap_or_default();
            settings
                .tool_scopes
                .get(tool)
                .unwrap_or(&settings.call_scopes)
        }
        Some("resources/read" | "prompts/get") => &settings.offer_scopes,
        _ => &[],
    }
}

/// The grant behind the token of a request, or the challenge.
fn admitted(state: &AuthorityState, seen: &RecordedRequest) -> Result<IssuedGrant, AuthorityReply> {
    let carried = seen.header("authorization").unwrap_or_default();
    let (scheme, token) = carried.split_once(' ').unwrap_or((carried, ""));
    let refused = |error: Option<&str>| challenge(state, error);
    if token.is_empty() {
        return Err(refused(None));
    }
    let believed = state.believed();
    let grant = state.memory().good_access(token).cloned();
    let places = &state.places;
    let grant = grant.filter(|grant| {
        let ours = [&places.resource, &places.resource_origin];
        let meant = grant
            .resource
            .as_ref()
            .is_none_or(|resource| ours.contains(&resource));
        meant && grant.party == believed && !state.on(Switch::Storm)
    });
    let Some(grant) = grant else {
        return Err(refused(Some("invalid_token")));
    };
    if let Some(bound) = &grant.jkt {
        let proven = if scheme.eq_ignore_ascii_case("dpop") {
            dpop::proof(state, seen, Some(token))
        } else {
            Ok(None)
        };
        match proven {
            Ok(Some(key)) if key == *bound => {}
            Err(reply) if reply.value()["error"] == "use_dpop_nonce" => {
                state.memory().report.unauthorized += 1;
                let mut answer = AuthorityReply::empty(401);
                answer.headers = reply.headers;
                let why = "DPoP error=\"use_dpop_nonce\"".to_owned();
                return Err(answer.with("www-authenticate", why));
            }
            _ => return Err(refused(Some("invalid_dpop_proof"))),
        }
    } else if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(refused(Some("invalid_token")));
    }
    Ok(grant)
}

fn challenge(state: &AuthorityState, error: Option<&str>) -> AuthorityReply {
    state.memory().report.unauthorized += 1;
    let reply = AuthorityReply::json(401, &json!({ "error": error.unwrap_or("unauthorized") }));
    if state.on(Switch::ChallengeMissing) {
        return reply;
    }
    let scopes = state.settings.challenge_scopes.join(" ");
    let value = parameters(state, error, &scopes);
    reply.with("www-authenticate", value)
}

fn insufficient(state: &AuthorityState, taken: &[String]) -> AuthorityReply {
    let mut scopes = taken.to_vec();
    {
        let mut memory = state.memory();
        memory.report.forbidden += 1;
        memory.scope_steps += 1;
        if state.on(Switch::ScopeGrowing) {
            scopes.extend((1..=memory.scope_steps).map(|step| format!("step-{step}")));
        }
    }
    if scopes.is_empty() {
        scopes.push("never".to_owned());
    }
    if !state.settings.names_scopes {
        scopes.clear();
    }
    let value = parameters(state, Some("insufficient_scope"), &scopes.join(" "));
    AuthorityReply::json(403, &json!({ "error": "insufficient_scope" }))
        .with("www-authenticate", value)
}

fn parameters(state: &AuthorityState, error: Option<&str>, scopes: &str) -> String {
    let mut parts = Vec::new();
    if let Some(error) = error {
        parts.push(format!("error=\"{error}\""));
    }
    if !scopes.is_empty() {
        parts.push(format!("scope=\"{scopes}\""));
    }
    if let Some(metadata) = metadata::challenge(state) {
        parts.push(format!("resource_metadata=\"{metadata}\""));
    }
    format!("Bearer {}", parts.join(", ")).trim_end().to_owned()
}

/// The connectors of an account: a directory, and a way to each.
pub(super) fn account(
    state: &AuthorityState,
    seen: &RecordedRequest,
    path: &str,
) -> Option<AuthorityReply> {
    let account = state.settings.account.as_ref()?;
    let connector = path
        .strip_prefix("/proxy/")
        .and_then(|rest| rest.strip_suffix("/mcp"));
    if path != "/directory" && connector.is_none() {
        return None;
    }
    state.memory().report.connector_requests += 1;
    let token = seen
        .header("authorization")
        .and_then(|value| value.strip_prefix("Bearer "))
        .unwrap_or_default();
    let grant = state.memory().good_access(token).cloned();
    let grant =
        grant.filter(|grant| grant.party == RequestedParty::Issuer && !state.on(Switch::Storm));
    let Some(grant) = grant else {
        state.memory().report.unauthorized += 1;
        let error = "Bearer error=\"invalid_token\"".to_owned();
        return Some(AuthorityReply::empty(401).with("www-authenticate", error));
    };
    let issuer = &state.places.issuer;
    let Some(connector) = connector else {
        let listed: Vec<Value> = account
            .connectors
            .iter()
            .map(|name| {
                json!({ "id": name, "name": name, "url": format!("{issuer}/proxy/{name}/mcp") })
            })
            .collect();
        return Some(AuthorityReply::json(200, &json!({ "connectors": listed })));
    };
    if !account.connectors.iter().any(|known| known == connector) {
        return Some(AuthorityReply::json(
            404,
            &json!({ "error": "unknown connector" }),
        ));
    }
    let given = seen.header(&account.header);
    let fits = given.is_some_and(|given| {
        let wanted = account.value.as_deref();
        wanted.is_none_or(|wanted| wanted == given)
    });
    if !fits {
        let why = format!("the header `{}` is missing or wrong", account.header);
        return Some(AuthorityReply::json(400, &json!({ "error": why })));
    }
    let message = serde_json::from_str(&seen.body).unwrap_or_default();
    Some(mcp(state, seen, &message, &grant))
}

/// Enough of MCP to see who is let in.
fn mcp(
    state: &AuthorityState,
    seen: &RecordedRequest,
    message: &Value,
    grant: &IssuedGrant,
) -> AuthorityReply {
    if seen.method != "POST" {
        return AuthorityReply::empty(405);
    }
    let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else {
        return AuthorityReply::empty(if message.is_null() { 400 } else { 202 });
    };
    let params = &message["params"];
    let version = params["_meta"][VERSION_KEY].as_str();
    let fault = |status: u16, code: i64, text: &str| {
        let mut error = json!({ "code": code, "message": text });
        if code == -32022 {
            error["data"] = json!({ "supported": [MODERN], "requested": version });
        }
        AuthorityReply::json(
            status,
            &json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        )
    };
    if version.is_some_and(|version| version != MODERN) {
        return fault(400, -32022, "unsupported protocol version");
    }
    let modern = version.is_some();
    let info = json!({ "name": "whoami", "version": "1.0.0" });
    let mut capabilities = json!({ "tools": {} });
    let settings = &state.settings;
    if !settings.offer_scopes.is_empty() {
        capabilities["resources"] = json!({});
        capabilities["prompts"] = json!({});
    }
    let who = format!(
        "subject={} client={} scope={}",
        grant.subject, grant.client, grant.scope
    );
    let mut result = match method {
        "initialize" => json!({ "protocolVersion": spoken(params), "capabilities": capabilities,
            "serverInfo": info }),
        "server/discover" if modern => json!({ "supportedVersions": [MODERN],
            "capabilities": capabilities,
            "_meta": { "io.modelcontextprotocol/serverInfo": info } }),
        "ping" if !modern => json!({}),
        "tools/list" => {
            let names = settings.tool_scopes.keys().map(String::as_str);
            let tools = std::iter::once("whoami").chain(names).map(|name| {
                json!({ "name": name, "description": "Who asks",
                    "inputSchema": { "type": "object", "properties": {} },
                    "annotations": { "readOnlyHint": true } })
            });
            json!({ "tools": tools.collect::<Vec<_>>() })
        }
        "tools/call" if is_tool(settings, &params["name"]) => {
            json!({ "content": [{ "type": "text", "text": who }], "isError": false })
        }
        "resources/list" => json!({ "resources": [{ "uri": "who://ami", "name": "who" }] }),
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        "resources/read" => json!({ "contents": [{ "uri": "who://ami", "text": who }] }),
        "prompts/list" => json!({ "prompts": [{ "name": "who" }] }),
        "prompts/get" => json!({ "messages": [{ "role": "user",
            "content": { "type": "text", "text": who } }] }),
        "tools/call" => return fault(200, -32602, "unknown tool"),
        _ => return fault(if modern { 404 } else { 200 }, -32601, "method not found"),
    };
    if modern {
        result["resultType"] = json!("complete");
        if method != "tools/call" {
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
        }
    }
    AuthorityReply::json(
        200,
        &json!({ "jsonrpc": "2.0", "id": id, "result": result }),
    )
}

fn is_tool(settings: &AuthoritySettings, name: &Value) -> bool {
    let name = name.as_str().unwrap_or_default();
    name == "whoami" || settings.tool_scopes.contains_key(name)
}

fn spoken(params: &Value) -> &str {
    let known = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    if known.contains(&asked) {
        asked
    } else {
        known[3]
    }
}
