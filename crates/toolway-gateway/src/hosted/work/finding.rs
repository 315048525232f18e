//! Which server a request is about, and what that server calls it.
//!
//! Owns finding the server, rewriting names to its own, and waiting for servers that are on their way
//! where none that is there has what is named. Carrying it out is `work.rs`.

use toolway::config::NameForm;
use toolway::types::{Era, ServerName, ToolKey};
use toolway::{CallOptions, HostSnapshot, PassedMethod, RawJson, ToolRequest, ToolTarget};
use toolway_wire::edit::{Replacement, rewritten};
use toolway_wire::{RpcError, error, request_head};

use super::super::answers;
use super::super::endpoint::facts;
use super::super::header_params;
use super::super::names::{self, MAX_NAME};
use super::super::party::ClientParty;
use super::super::scope::EndpointScope;
use super::{AskedOfServer, ServerWork};
use crate::conversation::{Answer, IncomingRequest};

/// Why a request does not go to a server.
pub(in crate::hosted) struct UnclearWork {
    answer: Box<Answer>,
    /// What it names, where no server that is there has it.
    unknown: Option<UnknownName>,
}

/// Which servers have been waited for.
pub(super) enum WaitedFor {
    None,
    Server(ServerName),
    All,
}

/// A name or an address that no server is known to have.
enum UnknownName {
    /// It says which server is meant, or can: the name that rules know.
    OfServer(String),
    /// Any server may have it.
    OfAny,
}

impl From<Box<Answer>> for UnclearWork {
    fn from(answer: Box<Answer>) -> Self {
        Self {
            answer,
            unknown: None,
        }
    }
}

impl From<Answer> for UnclearWork {
    fn from(answer: Answer) -> Self {
        Box::new(answer).into()
    }
}

impl UnclearWork {
    fn unknown(answer: Answer, name: UnknownName) -> Self {
        Self {
            answer: Box::new(answer),
            unknown: Some(name),
        }
    }

    /// Looks again once the servers are there that may have what is named.
    pub(in crate::hosted) async fn awaited(
        self,
        client: &ClientParty,
        request: &IncomingRequest,
        method: &'static str,
    ) -> Result<ServerWork, Box<Answer>> {
        let waited_for = match &self.unknown {
            None => return Err(self.answer),
            Some(UnknownName::OfAny) => {
                client.endpoint.all_came().await;
                WaitedFor::All
            }
            Some(UnknownName::OfServer(name)) => {
                let options = CallOptions::new(client.endpoint.consent());
                let awaited = client.attached.await_named(name, &options).await;
                match awaited.map_err(|error| Box::new(answers::failed(&error)))? {
                    Some(server) => WaitedFor::Server(server),
                    None => return Err(self.answer),
                }
            }
        };
        let found = ServerWork::find(client, request, method, waited_for);
        found.map_err(|unclear| unclear.answer)
    }
}

/// Finds what a request is about.
pub(super) struct WorkFinder<'a> {
    pub(super) client: &'a ClientParty,
    pub(super) request: &'a IncomingRequest,
    pub(super) snapshot: &'a HostSnapshot,
    pub(super) params: RawJson,
    pub(super) method: &'static str,
    pub(super) waited_for: WaitedFor,
}

impl WorkFinder<'_> {
    fn text(&self, member: &'static str) -> Result<String, UnclearWork> {
        let text = request_head::text_param(Some(&self.params), member);
        let missing = || answers::invalid(format!("`{member}` is missing"));
        Ok(text.ok_or_else(missing)?.into_owned())
    }

    /// The prompt that a client means.
    fn prompt_named(&self, name: &str) -> Result<ToolKey, UnclearWork> {
        let endpoint = &self.client.endpoint;
        let found = endpoint.prompt(&self.snapshot.catalog, name);
        match (found, &endpoint.scope, &self.waited_for) {
            (Some(prompt), ..) => Ok(prompt.key.clone()),
            (None, EndpointScope::One(server), _) => Ok(ToolKey::new(server.clone(), name)),
            // The host says what is wrong with it.
            (None, _, WaitedFor::Server(server)) if facts(self.snapshot, server).is_none() => {
                Ok(ToolKey::new(server.clone(), name))
            }
            (None, EndpointScope::Merged(_), _) => {
                let answer = answers::invalid(format!("no prompt `{name}`"));
                Err(UnclearWork::unknown(answer, self.unknown(name)))
            }
        }
    }

    fn resource_at<'n>(&self, address: &'n str) -> Result<(ServerName, &'n str), UnclearWork> {
        self.client.endpoint.resource(address).ok_or_else(|| {
            let answer = no_resource(address, self.request.era);
            UnclearWork::unknown(answer, UnknownName::OfAny)
        })
    }

    /// What the name of a tool or a prompt says about its server.
    fn unknown(&self, name: &str) -> UnknownName {
        match self.client.endpoint.scope {
            EndpointScope::Merged(form) if form == NameForm::Own || name.len() == MAX_NAME => {
                UnknownName::OfAny
            }
            _ => UnknownName::OfServer(names::exposed(name)),
        }
    }

    fn work(self, asked: AskedOfServer, server: ServerName) -> ServerWork {
        ServerWork {
            to: self.request.era,
            asked,
            method: self.method,
            params: self.params,
            server,
            shown_address: None,
        }
    }

    pub(super) fn call(self) -> Result<ServerWork, UnclearWork> {
        let name = self.text("name")?;
        let endpoint = &self.client.endpoint;
        let found = endpoint.tool(&self.snapshot.catalog, &name);
        let target = match (found, &endpoint.scope) {
            (Some(tool), _) => {
                header_params::check(tool, self.request, &self.params)?;
                ToolTarget::Key(tool.key.clone())
            }
            // Its server may be on its way: the host waits for it, or says what is wrong.
            (None, EndpointScope::One(server)) => {
                ToolTarget::Key(ToolKey::new(server.clone(), &name))
            }
            (None, EndpointScope::Merged(_)) => {
                let may_be_any = matches!(self.unknown(&name), UnknownName::OfAny)
                    && matches!(self.waited_for, WaitedFor::None);
                if may_be_any && !self.snapshot.is_settled() {
                    let answer = answers::invalid(format!("no tool `{name}`"));
                    return Err(UnclearWork::unknown(answer, UnknownName::OfAny));
                }
                ToolTarget::Exposed(names::exposed(&name))
            }
        };
        let is_own = found.is_some_and(|tool| tool.is_built_in());
        let server = match (&target, is_own) {
            (ToolTarget::Key(key), false) => key.server.clone(),
            _ => ServerName::built_in(),
        };
        let call = ToolRequest::of_params(target, &self.params)
            .map_err(|error| answers::invalid(error.to_string()))?;
        Ok(self.work(AskedOfServer::Call(call), server))
    }

    pub(super) fn read(self, how: PassedMethod) -> Result<ServerWork, UnclearWork> {
        let address = self.text("uri")?;
        let (server, uri) = self.resource_at(&address)?;
        let is_same = uri == address;
        let params = if is_same {
            self.params.clone()
        } else {
            rewritten(&self.params, |name| match name {
                "uri" => Replacement::Text(Some(uri)),
                _ => Replacement::Kept,
            })
        };
        let asked = AskedOfServer::Other(how, params);
        let mut work = self.work(asked, server);
        work.shown_address = (!is_same).then_some(address);
        Ok(work)
    }

    pub(super) fn prompt(self) -> Result<ServerWork, UnclearWork> {
        let name = self.text("name")?;
        let key = self.prompt_named(&name)?;
        let params = if key.tool == name {
            self.params.clone()
        } else {
            rewritten(&self.params, |member| match member {
                "name" => Replacement::Text(Some(&key.tool)),
                _ => Replacement::Kept,
            })
        };
        let asked = AskedOfServer::Other(PassedMethod::GetPrompt, params);
        Ok(self.work(asked, key.server))
    }

    pub(super) fn completion(self) -> Result<ServerWork, UnclearWork> {
        let reference = request_head::raw_param(&self.params, "ref");
        let reference = reference.ok_or_else(|| answers::invalid("`ref` is missing"))?;
        let reference = RawJson::from(reference);
        let text = |member| request_head::text_param(Some(&reference), member);
        let (server, member, own) = match (text("name"), text("uri")) {
            // Which of both a server takes is not known, so neither was judged.
            (Some(_), Some(_)) => {
                return Err(answers::invalid("`ref` names a prompt and a resource").into());
            }
            (Some(name), None) => {
                let key = self.prompt_named(&name)?;
                (key.server, "name", key.tool)
            }
            (None, Some(uri)) => {
                let (server, own) = self.resource_at(&uri)?;
                (server, "uri", own.to_owned())
            }
            (None, None) => return Err(answers::invalid("`ref` names nothing").into()),
        };
        let reference = rewritten(&reference, |name| {
            if name == member {
                Replacement::Text(Some(&own))
            } else {
                Replacement::Kept
            }
        });
        let params = rewritten(&self.params, |name| match name {
            "ref" => Replacement::Json(Some(reference.get())),
            _ => Replacement::Kept,
        });
        let asked = AskedOfServer::Other(PassedMethod::Complete, params);
        Ok(self.work(asked, server))
    }
}

/// What a client is told of a resource that no server is known to have.
fn no_resource(address: &str, era: Era) -> Answer {
    let code = match era {
        Era::Legacy => error::RESOURCE_NOT_FOUND,
        Era::Modern => error::INVALID_PARAMS,
    };
    let shown: String = address.chars().take(200).collect();
    let shown = toolway::types::text::clean_line(&shown).into_owned();
    let mut refusal = RpcError::new(
        code,
        format!(
            "no server is known to have the resource `{shown}`: write `toolway:<server>:<uri>` to say which one is meant"
        ),
    );
    refusal.data = serde_json::value::to_raw_value(&serde_json::json!({ "uri": address })).ok();
    refusal.into()
}
