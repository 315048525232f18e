//! What clients of `toolway serve` see: a profile, narrowed by flags.
//!
//! Owns putting the two together. What a profile means is `toolway-config`'s and the host's.

use std::sync::Arc;
use std::time::Duration;

use toolway::{Host, View, ViewSpec};
use toolway_config::{NameForm, NoProfile, Plan, Profile, ProfileMode, ResultForm, ToolSearch};
use toolway_gateway::hosted::{OwnTools, ShownProfile};
use toolway_gateway::{EndpointOptions, HostService};
use toolway_types::ServerName;

use super::{NamesWord, ResultsWord, ServeArgs, ToolsWord};
use crate::context::Context;
use crate::report::Report;

/// A profile as an endpoint of its own.
pub(super) type ServedProfile = (Arc<str>, View, EndpointOptions);

/// What clients see, and what narrows it whatever files say later.
pub(super) struct Shown {
    flags: ShownFlags,
    pub(super) endpoint: EndpointOptions,
    /// What `/mcp` shows; all that the owner sees when absent.
    base: Option<ViewSpec>,
    profiles: Vec<ShownProfile>,
    /// Whether any endpoint lets clients search for tools.
    pub(super) searches: bool,
}

/// What the flags say of it.
#[derive(Clone)]
pub(super) struct ShownFlags {
    profile: Option<String>,
    servers: Option<Vec<ServerName>>,
    read_only: bool,
    names: Option<NameForm>,
    results: Option<ResultForm>,
    tools: Option<ToolsWord>,
    resource_tools: bool,
    wait: Option<Duration>,
}

impl ShownFlags {
    fn of(args: &ServeArgs, plan: &Plan) -> Result<Self, Report> {
        let servers = args.servers.as_ref().map(|names| {
            let names = names.iter().map(|name| known_server(plan, name));
            names.collect::<Result<Vec<_>, _>>()
        });
        Ok(Self {
            profile: args.profile.clone(),
            servers: servers.transpose()?,
            read_only: args.read_only,
            names: args.names.map(NamesWord::form),
            results: args.results.map(ResultsWord::form),
            tools: args.tools,
            resource_tools: args.resource_tools,
            wait: args.wait,
        })
    }

    /// Whether `/mcp` shows less than the owner sees.
    fn narrows(&self) -> bool {
        self.profile.is_some() || self.servers.is_some() || self.read_only
    }

    /// A profile with what it must not show taken away.
    fn narrowed(&self, profile: &Profile) -> Profile {
        let mut profile = profile.clone();
        if let Some(wanted) = &self.servers {
            let mut wanted = wanted.clone();
            if let Some(shown) = &profile.servers {
                wanted.retain(|name| shown.contains(name));
            }
            profile.servers = Some(wanted);
        }
        profile.read_only |= self.read_only;
        profile
    }

    /// What `/mcp` shows.
    fn base(&self, profile: &Profile) -> Profile {
        let mut profile = self.narrowed(profile);
        if let Some(names) = self.names {
            profile.names = names;
        }
        if let Some(results) = self.results {
            profile.results = results;
        }
        if let Some(tools) = self.tools {
            profile.tool_search = tools == ToolsWord::Search;
        }
        profile
    }

    fn endpoint(&self, profile: &Profile) -> EndpointOptions {
        EndpointOptions {
            own_tools: OwnTools {
                resources: self.resource_tools,
                ..OwnTools::default()
            },
            wait: self.wait,
            ..EndpointOptions::of_profile(profile)
        }
    }

    /// Every profile that is served, as an endpoint of its own: the one that was asked for, or all.
    /// None shows what the flags take away.
    fn profiles(&self, plan: &Plan) -> Vec<ShownProfile> {
        let is_served = |name: &str| self.profile.as_deref().is_none_or(|only| only == name);
        let served = plan.profiles.iter().filter(|(name, _)| is_served(name));
        let shown = served.map(|(name, profile)| {
            let profile = self.narrowed(profile);
            ShownProfile {
                name: name.as_str().into(),
                spec: ViewSpec::of_profile(&profile),
                options: EndpointOptions {
                    wait: self.wait,
                    ..EndpointOptions::of_profile(&profile)
                },
            }
        });
        shown.collect()
    }

    /// Has a service show what a new plan says, narrowed as before.
    pub(super) async fn follow(&self, plan: &Plan, service: &HostService) {
        if self.narrows() {
            let profile = match &self.profile {
                None => Some(Profile::default()),
                Some(name) => plan.profile(name).ok().map(|it| Profile::clone(it)),
            };
            let shown = profile.map(|profile| self.base(&profile));
            let spec = shown.as_ref().map(ViewSpec::of_profile);
            // Where it was taken away, nothing is shown in its place.
            let spec = spec.unwrap_or_else(ViewSpec::nothing);
            let mode = shown.map_or(ProfileMode::Ask, |it| it.mode);
            service.set_view(spec, mode).await;
        }
        service.set_profiles(self.profiles(plan)).await;
    }
}

impl Shown {
    /// The profile that was asked for, narrowed by flags.
    pub(super) fn of(context: &Context, args: &ServeArgs, plan: &Plan) -> Result<Self, Report> {
        let profile = match &args.profile {
            None => Profile::default(),
            Some(name) => {
                let profile = plan.profile(name).map_err(|error| {
                    let known = plan.profiles.keys().map(String::as_str);
                    let known: Vec<&str> = known.collect();
                    let meant = match &error {
                        NoProfile::Faulty { .. } => {
                            return Report::configuration(error.to_string())
                                .hint("`toolway doctor` says where that stands");
                        }
                        NoProfile::Unknown { meant, .. } => meant,
                    };
                    let hint = if let Some(meant) = meant {
                        format!("did you mean `{meant}`?")
                    } else if known.is_empty() {
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
        let flags = ShownFlags::of(args, plan)?;
        let profile = flags.base(&profile);
        context.say_findings(&plan.profile_remarks(&profile));
        let all = plan.profiles.values();
        let searches = profile.tool_search || all.into_iter().any(|it| it.tool_search);
        Ok(Self {
            base: flags.narrows().then(|| ViewSpec::of_profile(&profile)),
            endpoint: flags.endpoint(&profile),
            profiles: flags.profiles(plan),
            flags,
            searches,
        })
    }

    /// What holds whatever files say later.
    pub(super) fn flags(&self) -> ShownFlags {
        self.flags.clone()
    }

    /// The only servers that can be shown, whatever files say later; none where all can.
    pub(super) fn servers(&self) -> Option<Vec<ServerName>> {
        self.flags.servers.clone()
    }

    /// What the plan needs for it.
    pub(super) fn prepare(&self, plan: &mut Plan) {
        let_search(plan, self.searches);
    }

    /// The view of `/mcp`; none where it is all that the owner sees.
    pub(super) async fn view(&self, host: &Host) -> Option<View> {
        match &self.base {
            Some(spec) => Some(host.view(spec.clone()).await),
            None => None,
        }
    }

    /// Every profile, as an endpoint of its own.
    pub(super) async fn profiles(&self, host: &Host) -> Vec<ServedProfile> {
        let mut served = Vec::new();
        for ShownProfile {
            name,
            spec,
            options,
        } in &self.profiles
        {
            let view = host.view(spec.clone()).await;
            served.push((Arc::clone(name), view, options.clone()));
        }
        served
    }
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
