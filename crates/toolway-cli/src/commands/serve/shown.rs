//! What clients of `toolway serve` see: a profile, narrowed by flags.
//!
//! Owns putting the two together. What a profile means is `toolway-config`'s and the host's.

use std::sync::Arc;

use toolway::{Host, View, ViewSpec};
use toolway_config::{Plan, Profile, ToolSearch};
use toolway_gateway::EndpointOptions;
use toolway_gateway::hosted::OwnTools;
use toolway_types::ServerName;

use super::{ServeArgs, ToolsWord};
use crate::context::Context;
use crate::report::Report;

/// A profile as an endpoint of its own.
pub(super) type ServedProfile = (Arc<str>, View, EndpointOptions);

/// What clients see.
pub(super) struct Shown {
    profile: Profile,
    is_narrowed: bool,
    pub(super) endpoint: EndpointOptions,
    all: Vec<(String, Arc<Profile>)>,
    /// Whether any endpoint lets clients search for tools.
    pub(super) searches: bool,
}

impl Shown {
    /// The profile that was asked for, narrowed by flags.
    pub(super) fn of(context: &Context, args: &ServeArgs, plan: &Plan) -> Result<Self, Report> {
        let mut profile = match &args.profile {
            None => Profile::default(),
            Some(name) => {
                let profile = plan.profile(name).map_err(|error| {
                    let known = plan.profiles.keys().map(String::as_str);
                    let known: Vec<&str> = known.collect();
                    let hint = if known.is_empty() {
                        "write it below `profiles` in your settings: see docs/configuration.md"
                            .to_owned()
                    } else {
                        format!("there are: {}", known.join(", "))
                    };
                    Report::configuration(error.to_string()).hint(hint)
                })?;
                Profile::clone(profile)
            }
        };
        if let Some(names) = &args.servers {
            let mut wanted = Vec::new();
            for name in names {
                wanted.push(known_server(plan, name)?);
            }
            if let Some(shown) = &profile.servers {
                wanted.retain(|name| shown.contains(name));
            }
            profile.servers = Some(wanted);
        }
        profile.read_only |= args.read_only;
        if let Some(names) = args.names {
            profile.names = names.form();
        }
        if let Some(results) = args.results {
            profile.results = results.form();
        }
        if let Some(tools) = args.tools {
            profile.tool_search = tools == ToolsWord::Search;
        }
        context.say_findings(&plan.profile_remarks(&profile));
        let endpoint = EndpointOptions {
            own_tools: OwnTools {
                resources: args.resource_tools,
                ..OwnTools::default()
            },
            ..EndpointOptions::of_profile(&profile)
        };
        let all: Vec<_> = plan
            .profiles
            .iter()
            .map(|(name, profile)| (name.clone(), Arc::clone(profile)))
            .collect();
        let searches = profile.tool_search || all.iter().any(|(_, it)| it.tool_search);
        Ok(Self {
            is_narrowed: args.profile.is_some() || args.servers.is_some() || args.read_only,
            profile,
            endpoint,
            all,
            searches,
        })
    }

    /// What the plan needs for it.
    pub(super) fn prepare(&self, plan: &mut Plan) {
        let_search(plan, self.searches);
    }

    /// The view of `/mcp`; none where it is all that the owner sees.
    pub(super) async fn view(&self, host: &Host) -> Option<View> {
        if !self.is_narrowed {
            return None;
        }
        Some(host.view(ViewSpec::of_profile(&self.profile)).await)
    }

    /// Every profile, as an endpoint of its own.
    pub(super) async fn profiles(&self, host: &Host) -> Vec<ServedProfile> {
        endpoints(host, &self.all).await
    }
}

/// Every profile of a plan, as an endpoint of its own.
pub(super) async fn profiles(host: &Host, plan: &Plan) -> Vec<ServedProfile> {
    let all: Vec<_> = plan
        .profiles
        .iter()
        .map(|(name, profile)| (name.clone(), Arc::clone(profile)))
        .collect();
    endpoints(host, &all).await
}

async fn endpoints(host: &Host, profiles: &[(String, Arc<Profile>)]) -> Vec<ServedProfile> {
    let mut served = Vec::new();
    for (name, profile) in profiles {
        let view = host.view(ViewSpec::of_profile(profile)).await;
        let options = EndpointOptions::of_profile(profile);
        served.push((name.as_str().into(), view, options));
    }
    served
}

/// Has tools deferred, so that there is something to search for.
pub(super) fn let_search(plan: &mut Plan, searches: bool) {
    if searches {
        plan.limits.tool_search = ToolSearch::On;
    }
}

fn known_server(plan: &Plan, name: &str) -> Result<ServerName, Report> {
    let known = plan.servers.iter().find(|it| it.name.as_str() == name);
    known.map(|it| it.name.clone()).ok_or_else(|| {
        let report = Report::configuration(format!("no server `{name}` is configured"));
        match plan.suggest(name) {
            Some(meant) => report.hint(format!("did you mean `{meant}`?")),
            None => report.hint("`toolway list --no-connect` shows all of them"),
        }
    })
}
