//! Skills of all servers of an endpoint, as one list.
//!
//! Owns asking every server that has skills, and finding the one that a skill belongs to. Their
//! files are resources (`work.rs`). An endpoint of one server passes these methods on as they are.

use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use toolway::types::{Era, ServerName};
use toolway::{CallError, CallOptions, RawJson};
use toolway_wire::era::method;

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
        let found = match request.method.as_str() {
            method::SKILLS_LIST if servers.len() > 1 => self.all_skills(&servers, &options).await,
            _ => self.first_answer(&servers, request, params, &options).await,
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

    /// The answer of the first server that has one.
    async fn first_answer(
        &self,
        servers: &[ServerName],
        request: &IncomingRequest,
        params: Option<&RawJson>,
        options: &CallOptions,
    ) -> Result<RawJson, CallError> {
        let mut last = None;
        for server in servers {
            let asked = self
                .attached
                .pass_on_other(server, &request.method, params, options);
            match asked.await {
                Ok(answer) => return Ok(answer.raw),
                Err(error) => last = Some(error),
            }
        }
        match last {
            Some(error) => Err(error),
            None => Ok(RawJson::default()),
        }
    }

    /// The skills of several servers, one after the other. One that fails is left out.
    async fn all_skills(
        &self,
        servers: &[ServerName],
        options: &CallOptions,
    ) -> Result<RawJson, CallError> {
        let mut all = Vec::new();
        for server in servers {
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
                all.extend(page["skills"].as_array().cloned().unwrap_or_default());
                match page.get("nextCursor") {
                    Some(next) if !next.is_null() => cursor = Some(next.clone()),
                    _ => break,
                }
            }
        }
        let result = json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "skills": all,
        });
        Ok(to_raw_value(&result).map(RawJson::from).unwrap_or_default())
    }
}
