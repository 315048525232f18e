//! Skills of all servers of an endpoint, as one list.
//!
//! Owns asking every server that has skills, and finding the one that a skill belongs to: the one that
//! lists it, for any other could answer for it. Their files are resources (`work.rs`). An endpoint of
//! one server passes these methods on as they are.

use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use toolway::types::{Era, ServerName};
use toolway::{CallError, CallOptions, RawJson};
use toolway_wire::era::method;
use toolway_wire::request_head;

use super::super::answers::{self, Caching};
use super::super::endpoint::{connected, has_skills};
use super::HostedClient;
use crate::conversation::{Answer, IncomingRequest};

/// The most pages of one server's skills.
const MAX_PAGES: usize = 16;

impl HostedClient {
    /// `skills/list` or `skills/get` of a merged view.
    pub(super) async fn skills(&self, request: &IncomingRequest) -> Answer {
        let servers = self.skill_servers();
        if servers.is_empty() {
            return answers::no_method(&request.method);
        }
        let mut options = CallOptions::new(self.endpoint.consent());
        options.trace.clone_from(&request.trace);
        options.capabilities.clone_from(&request.head.capabilities);
        let params = request.params.as_ref();
        let found = match (request.method.as_str(), servers.as_slice()) {
            (_, [only]) => self.asked_of(only, request, &options).await,
            (method::SKILLS_LIST, _) => Ok(self.all_skills(&servers, &options).await),
            _ => {
                let Some(uri) = request_head::text_param(params, "uri") else {
                    return answers::invalid("`uri` is missing");
                };
                match self.owners(&servers, &uri, &options).await.as_slice() {
                    [owner] => self.asked_of(owner, request, &options).await,
                    [] => return answers::invalid("no server here lists such a skill"),
                    [one, other, ..] => {
                        return answers::invalid(format!(
                            "`{one}` and `{other}` both list such a skill: ask one of them at its own \
                             address"
                        ));
                    }
                }
            }
        };
        match found {
            Ok(result) => answers::complete(result, Era::Modern, request.era, Caching::Said),
            Err(error) => answers::failed(&error),
        }
    }

    fn skill_servers(&self) -> Vec<ServerName> {
        let snapshot = self.endpoint.view.snapshot();
        let servers = connected(&snapshot).filter(|(_, facts)| has_skills(facts));
        servers.map(|(server, _)| server.clone()).collect()
    }

    /// What a server answers to the request as it is.
    async fn asked_of(
        &self,
        server: &ServerName,
        request: &IncomingRequest,
        options: &CallOptions,
    ) -> Result<RawJson, CallError> {
        let params = request.params.as_ref();
        let asked = self
            .attached
            .pass_on_other(server, &request.method, params, options);
        Ok(asked.await?.raw)
    }

    /// The servers that list a skill of this address.
    async fn owners(
        &self,
        servers: &[ServerName],
        uri: &str,
        options: &CallOptions,
    ) -> Vec<ServerName> {
        let listed = self.listed(servers, options).await;
        let own = listed
            .into_iter()
            .filter(|(_, skills)| skills.iter().any(|skill| skill["uri"] == uri));
        own.map(|(server, _)| server.clone()).collect()
    }

    /// The skills of several servers, one after the other.
    async fn all_skills(&self, servers: &[ServerName], options: &CallOptions) -> RawJson {
        let listed = self.listed(servers, options).await.into_iter();
        let all: Vec<Value> = listed.flat_map(|(_, skills)| skills).collect();
        let result = json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "skills": all,
        });
        to_raw_value(&result).map(RawJson::from).unwrap_or_default()
    }

    /// What each server lists. One that fails is left out.
    async fn listed<'a>(
        &self,
        servers: &'a [ServerName],
        options: &CallOptions,
    ) -> Vec<(&'a ServerName, Vec<Value>)> {
        let mut all = Vec::new();
        for server in servers {
            let mut skills = Vec::new();
            let mut cursor: Option<Value> = None;
            for _ in 0..MAX_PAGES {
                let params = match &cursor {
                    Some(cursor) => json!({ "cursor": cursor }),
                    None => json!({}),
                };
                let params = to_raw_value(&params).map(RawJson::from).unwrap_or_default();
                let asked = self.attached.pass_on_other(
                    server,
                    method::SKILLS_LIST,
                    Some(&params),
                    options,
                );
                let page = match asked.await {
                    Ok(page) => page.raw,
                    Err(error) => {
                        tracing::warn!(%server, %error, "its skills are left out");
                        break;
                    }
                };
                let page: Value = serde_json::from_str(page.get()).unwrap_or_default();
                skills.extend(page["skills"].as_array().cloned().unwrap_or_default());
                match page.get("nextCursor") {
                    Some(next) if !next.is_null() => cursor = Some(next.clone()),
                    _ => break,
                }
            }
            all.push((server, skills));
        }
        all
    }
}
