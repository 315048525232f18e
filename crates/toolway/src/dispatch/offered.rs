//! What is asked of a server beside calls, judged like a call.
//!
//! Owns the stages that such a request goes through: hooks, rules, a person's word, the audit, as
//! for a tool of that server (`offering.rs` says under which name). Only a [`PermittedOffering`]
//! lets one be sent. Does not own the requests themselves (`host/offers.rs`, `skills.rs`).

use serde_json::{Map, Value, json};
use toolway_types::ServerName;

use super::permission::PermittedCall;
use super::resolve::{CallArguments, ResolvedCall};
use super::{Dispatch, hooks, permission, validate};
use crate::audit::AuditEntry;
use crate::call::{CallError, CallOptions, ToolRequest, ToolTarget};
use crate::catalog::{Catalog, CatalogTool};
use crate::offering::{JudgedOffering, Offering, PinnedOffering, PriorConsent};
use crate::pins::Definition;

/// A request that was let through, as it is to be sent. Only this module makes one.
#[derive(Debug)]
pub(crate) struct PermittedOffering {
    server: ServerName,
    params: Map<String, Value>,
    /// What a person should know about it.
    pub(crate) warnings: Vec<String>,
}

impl PermittedOffering {
    /// Whose it is.
    pub(crate) fn server(&self) -> &ServerName {
        &self.server
    }

    /// What is to be sent: what was asked, or what a hook put in its place.
    pub(crate) fn params(&self) -> &Map<String, Value> {
        &self.params
    }

    /// A text among it.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.params.get(name).and_then(Value::as_str)
    }
}

impl Dispatch<'_> {
    /// Has a request judged; its line in the audit is the caller's to finish.
    pub(crate) async fn permit_offering(
        &self,
        offering: Offering,
        server: &ServerName,
        params: Map<String, Value>,
        leave: PriorConsent,
        options: &CallOptions,
    ) -> (AuditEntry, Result<PermittedOffering, CallError>) {
        let mut asked = params;
        asked.insert("server".to_owned(), server.as_str().into());
        let ask = OfferingRequest {
            offering,
            server,
            spelled: server.as_str(),
            arguments: &asked,
            leave,
        };
        let tool = ask.tool(self.catalog);
        let request = ToolRequest::new(ToolTarget::Key(tool.key.clone()), Map::new());
        let mut entry = AuditEntry::begin(self.audit, &request, self.caller);
        entry.asked(&asked, None);
        let mut arguments = CallArguments::from(asked);
        let judged = self.judge(&tool, &mut arguments, options, &mut entry).await;
        let permitted = judged.map(|call| {
            let mut params = call.arguments().clone();
            params.remove("server");
            PermittedOffering {
                server: server.clone(),
                params,
                warnings: call.warnings().to_vec(),
            }
        });
        (entry, permitted)
    }

    async fn judge<'a>(
        &self,
        tool: &'a CatalogTool,
        arguments: &'a mut CallArguments,
        options: &CallOptions,
        entry: &mut AuditEntry,
    ) -> Result<PermittedCall<'a>, CallError> {
        let call = validate::validate(ResolvedCall::of(tool, arguments))?;
        let call = hooks::run(call, self, entry).await;
        let call = permission::permit(call, self, options.consent, entry).await?;
        entry.granted(call.grant());
        Ok(call)
    }

    /// The tool as which a call of the host's own is judged when it names a server: one of that
    /// server. None where it is the host's own alone.
    pub(super) fn aimed(
        &self,
        call: &ResolvedCall<'_>,
    ) -> Result<Option<Box<CatalogTool>>, CallError> {
        let Some(own) = &call.tool().own else {
            return Ok(None);
        };
        let Some(aim) = &own.aim else {
            return Ok(None);
        };
        // Wrong arguments are told as those of the tool that was called.
        validate::check(call)?;
        let named = call.arguments().get("server").and_then(Value::as_str);
        let Some((spelled, server)) =
            named.and_then(|spelled| Some((spelled, self.routes.named(spelled)?)))
        else {
            return Ok(None);
        };
        let ask = OfferingRequest {
            offering: aim.offering,
            server: &server,
            spelled,
            arguments: call.arguments(),
            leave: PriorConsent::Wanted,
        };
        let tool = ask.tool(self.catalog);
        // Bound to the route of this very server, so that what is judged is what is read.
        let route = match aim.offering {
            Offering::ReadResource => Some(self.routes.route(&server)?),
            _ => None,
        };
        let tool = tool.answered_by(own.aimed_at(aim, server.clone(), route));
        Ok(Some(Box::new(tool)))
    }
}

/// One thing asked of a server beside calls.
pub(crate) struct OfferingRequest<'a> {
    pub(crate) offering: Offering,
    pub(crate) server: &'a ServerName,
    /// What stands in `server` of the arguments: its name, or another spelling of it.
    pub(crate) spelled: &'a str,
    /// What is asked, `server` among it.
    pub(crate) arguments: &'a Map<String, Value>,
    pub(crate) leave: PriorConsent,
}

impl OfferingRequest<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.arguments.get(name).and_then(Value::as_str)
    }

    /// Whether it needs no permission: nothing is sent that the server did not write itself. A rule
    /// or a hook that wants a user asked still counts.
    fn is_free(&self, catalog: &Catalog) -> bool {
        match self.offering {
            // Any other address carries words to the server, as the arguments of a tool do.
            Offering::ReadResource => {
                let uri = self.text("uri").unwrap_or_default();
                catalog.resource(self.server, uri).is_some()
            }
            Offering::GetPrompt | Offering::Complete | Offering::OtherMethod => false,
            Offering::ListResources
            | Offering::ListPrompts
            | Offering::ListSkills
            | Offering::ReadInstructions => true,
        }
    }

    /// The tool it is judged as. It takes no other server and no other prompt than these: a hook
    /// that writes arguments cannot lead it elsewhere.
    pub(crate) fn tool(&self, catalog: &Catalog) -> CatalogTool {
        let mut properties = self.offering.properties();
        properties["server"] = json!({ "enum": [self.spelled] });
        if self.offering == Offering::OtherMethod {
            properties["method"] = json!({ "enum": [self.text("method")] });
        }
        if self.offering == Offering::GetPrompt {
            properties["name"] = json!({ "enum": [self.text("name")] });
        }
        let schema = json!({
            "type": "object",
            "properties": properties,
            "required": ["server"],
            "additionalProperties": false,
        });
        let listed = self.is_free(catalog);
        let free = listed || self.leave == PriorConsent::Given;
        let (pin, definition) = match self.pinned(catalog, listed) {
            Some((pin, definition)) => (Some(pin), Some(definition)),
            None => (None, None),
        };
        CatalogTool::offered(
            self.offering.of(self.server),
            &schema,
            self.offering.hints(),
            JudgedOffering { free, pin },
            definition,
        )
    }

    /// What its definition is, where one was or will be permitted. What a resource holds may
    /// change at any time, so of those that are listed nothing is remembered.
    fn pinned(&self, catalog: &Catalog, listed: bool) -> Option<(PinnedOffering, Definition)> {
        match self.offering {
            Offering::GetPrompt => {
                let name = self.text("name")?;
                let prompt = catalog.prompt(self.server, name)?;
                let definition = Definition::of_prompt(&prompt.received);
                Some((PinnedOffering::Prompt(name.to_owned()), definition))
            }
            Offering::ReadResource if !listed => {
                let templates = catalog.templates_of(self.server);
                let received = templates.iter().map(|template| &*template.received);
                let definition = Definition::of_templates(received);
                // None is something to remember too: what comes later is a change.
                Some((PinnedOffering::Templates, definition))
            }
            _ => None,
        }
    }
}
