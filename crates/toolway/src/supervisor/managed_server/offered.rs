//! What a server offers under the plan of this moment.
//!
//! Owns what of a plan decides about a server's lists: its entry, the rules that leave things out,
//! and the pins. The server's part of the catalogue is made when one of these or the lists change,
//! and at no other time. Cleaning and naming are the catalogue's.

use std::sync::Arc;

use toolway_config::{Boundaries, Curation, Permissions, PinPolicy};
use toolway_types::TransportKind;
use toolway_types::name::as_word;

use super::ManagedServer;
use crate::catalog::{EDITOR_TOOLS, ServerCatalog, ServerOffer};
use crate::offering::Offering;
use crate::pins::Against;
use crate::pool::Loading;

/// What a server offers, and the terms under which it does.
pub(crate) struct OfferedServer {
    terms: OfferTerms,
    catalog: Arc<ServerCatalog>,
}

/// Everything beside the lists that decides what of a server is on offer.
#[derive(PartialEq)]
struct OfferTerms {
    is_editor: bool,
    loading: Loading,
    curation: Arc<Curation>,
    bare_names: bool,
    declares_resources: bool,
    /// Whether a rule leaves its resources out.
    without_resources: bool,
    /// The same of its prompts.
    without_prompts: bool,
    instructions: Option<String>,
    /// The tools that the view has at all.
    boundaries: Boundaries,
    remarks: Vec<String>,
}

impl ManagedServer {
    /// Its part of the catalogue; an empty one while it is not connected.
    pub(in crate::supervisor) fn catalog(
        &mut self,
        permissions: &Permissions,
    ) -> Arc<ServerCatalog> {
        if let Some(offered) = &self.offered
            && !self.is_touched
        {
            return Arc::clone(&offered.catalog);
        }
        let terms = self.terms(permissions);
        if let Some(offered) = &self.offered
            && offered.terms == terms
        {
            return Arc::clone(&offered.catalog);
        }
        let catalog = Arc::new(ServerCatalog::of(self.offer(&terms)));
        self.offered = Some(OfferedServer {
            terms,
            catalog: Arc::clone(&catalog),
        });
        catalog
    }

    fn offer(&self, terms: &OfferTerms) -> ServerOffer {
        let mut offer = self.lists.offer(&self.shown.name);
        if terms.is_editor {
            offer.listed = Some(&EDITOR_TOOLS);
        }
        if terms.without_resources {
            offer.resources.clear();
            offer.resource_templates.clear();
        }
        if terms.without_prompts {
            offer.prompts.clear();
        }
        offer.loading = terms.loading;
        offer.curation = Arc::clone(&terms.curation);
        offer.bare_names = terms.bare_names;
        offer.declares_resources = terms.declares_resources;
        offer.instructions.clone_from(&terms.instructions);
        offer.boundaries.clone_from(&terms.boundaries);
        offer.remarks.clone_from(&terms.remarks);
        offer
    }

    fn terms(&self, permissions: &Permissions) -> OfferTerms {
        let transport = self.shown.transport;
        let mut terms = OfferTerms {
            is_editor: transport.is_some_and(TransportKind::is_editor),
            loading: self.loading,
            curation: Arc::clone(&self.curation),
            bare_names: self.no_prefix && transport == Some(TransportKind::Sdk),
            declares_resources: false,
            without_resources: false,
            without_prompts: false,
            instructions: None,
            boundaries: permissions.boundaries().clone(),
            remarks: Vec::new(),
        };
        if let Some(facts) = self.offering_facts() {
            let said = facts.instructions.as_ref();
            terms.instructions = said.map(|said| said.as_received().to_owned());
            let resources = facts.capabilities.get("resources");
            terms.declares_resources = resources.is_some_and(|said| !said.is_null());
        }
        self.leave_out_denied(&mut terms, permissions);
        self.hold_back(&mut terms, permissions.pins());
        terms
    }

    /// Leaves out what a rule denies as a whole, so that lists need not ask, and says so once.
    fn leave_out_denied(&self, terms: &mut OfferTerms, permissions: &Permissions) {
        let name = &self.shown.name;
        let mut refused = None;
        let mut left_out = Vec::new();
        let mut denies = |offering: Offering, has_any: bool, what: &'static str| {
            let by = has_any
                .then(|| offering.denied(name, permissions))
                .flatten();
            let is_denied = by.is_some();
            // What the view does not have is no news to whoever sees it.
            if is_denied && offering.is_within(name, permissions.boundaries()) {
                left_out.push(what);
                refused = refused.take().or(by);
            }
            is_denied
        };
        let lists = &self.lists;
        let has_resources = !(lists.resources.items.is_empty() && lists.templates.items.is_empty());
        let has_prompts = !lists.prompts.items.is_empty();
        let has_instructions = terms.instructions.is_some();
        terms.without_resources = denies(Offering::ListResources, has_resources, "resources");
        // What is not listed can still be read, unless that is denied too.
        let is_read = Offering::ReadResource.denied(name, permissions).is_none();
        terms.declares_resources &= is_read;
        terms.without_prompts = denies(Offering::ListPrompts, has_prompts, "prompts");
        if denies(Offering::ReadInstructions, has_instructions, "instructions") {
            terms.instructions = None;
        }
        if let Some(by) = refused {
            terms.remarks.push(format!(
                "its {} are left out: refused {by}",
                left_out.join(" and its ")
            ));
        }
    }

    /// Holds back instructions that changed, where a change takes a person's word (SEC-33).
    fn hold_back(&self, terms: &mut OfferTerms, policy: PinPolicy) {
        let (Some(change), Some(_)) = (&self.instructions, &terms.instructions) else {
            return;
        };
        let lines = change.lines.join(" | ");
        let found = if change.against == Against::Permitted {
            "what it says to models is not what it said when it first connected"
        } else {
            "nobody can tell whether what it says to models is what it said when it first connected"
        };
        let server = as_word(self.shown.name.as_str()).into_owned();
        let remark = match policy {
            PinPolicy::Off => return,
            PinPolicy::Warn => format!("{found}: {lines}"),
            PinPolicy::Ask => {
                terms.instructions = None;
                format!(
                    "{found}, so it is held back until you accept it with `toolway tools {server} \
                     --instructions --accept-change`: {lines}"
                )
            }
        };
        terms.remarks.push(remark);
    }
}
