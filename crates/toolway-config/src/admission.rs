//! Who may connect: the verdict on every server, and the plan.
//!
//! Owns: putting the plan together; the verdict on one server is `admission/judge.rs`.
//! Does not own: what the organisation's lists say (`policy`), or whether a single call may run
//! (`permission`).

use std::collections::BTreeMap;
use std::sync::Arc;

use toolway_types::Diagnosis;

use crate::decision::note_repository_servers;
use crate::environment::inherited::InheritedVariables;
use crate::load::account_settings;
use crate::managed::managed_variables;
use crate::merge::Config;
use crate::permission::HookLocation;
use crate::plan::{Plan, PlannedServer, RunLimits};
use crate::policy::Policy;
use crate::profile::{Profile, ReadProfiles};

mod judge;
mod settings;
mod weak_rules;

use judge::Judge;
use settings::{call_settings, identity_settings, no_prefix, profiles};

/// Gives every server its verdict.
pub fn admit(config: Config) -> Plan {
    let Config {
        basis,
        servers,
        mut diagnoses,
        blocked,
        exclusive,
    } = config;
    let policy = Policy::of(&basis.settings, exclusive);
    let written: Vec<_> = (basis.settings.iter())
        .flat_map(|(_, settings)| settings.env.clone())
        .collect();
    let managed_env = managed_variables(&basis.environment, &written, &basis.approvals);
    let limits = RunLimits::read(&basis.environment, &managed_env, &mut diagnoses);
    let (mut permissions, hooks) = call_settings(&basis.settings, &mut diagnoses);
    let (account, connectors_off) = {
        let settings: Vec<_> = (basis.settings.iter())
            .map(|(scope, settings)| (*scope, settings))
            .collect();
        account_settings(&settings)
    };
    let identity = identity_settings(&basis.settings);
    let (profiles, faulty_profiles) =
        split(profiles(&basis.settings, &permissions, &mut diagnoses));
    let insecure_storage_off =
        (basis.settings.iter()).find_map(|(_, settings)| settings.insecure_storage_off.clone());
    let inherited = InheritedVariables::from(basis.environment.inherited());
    let inherited_env = Arc::clone(&inherited.in_project);
    let inherited_with_network =
        InheritedVariables::from(basis.environment.inherited_with_network());
    let command_directory = basis.environment.command_directory();
    let hooks = hooks.placed(HookLocation {
        workspace: basis.environment.cwd().to_owned(),
        directory: command_directory.clone(),
        environment: Arc::clone(&inherited_env),
    });
    let judge = Judge {
        basis: &basis,
        policy: &policy,
        blocked: blocked.as_ref(),
        inherited: &inherited,
        inherited_with_network: &inherited_with_network,
    };
    let servers: Vec<PlannedServer> = servers
        .into_iter()
        .map(|candidate| judge.plan(candidate))
        .collect();
    let approvals_file = basis.environment.approvals_file();
    note_repository_servers(
        &mut permissions,
        &servers,
        &basis.approvals,
        &approvals_file,
    );
    let names: Vec<_> = servers.iter().map(|server| &server.name).collect();
    diagnoses.extend(permissions.aim(&hooks, &names));
    Plan {
        no_prefix: no_prefix(&basis.environment, &mut diagnoses),
        servers,
        diagnoses,
        permissions,
        hooks,
        blocked,
        limits,
        managed_env,
        command_directory,
        inherited_env,
        policy: Arc::new(policy),
        identity,
        account,
        connectors_off,
        insecure_storage_off,
        profiles,
        faulty_profiles,
    }
}

/// Those that can be used, and what is wrong with the others.
fn split(profiles: ReadProfiles) -> (BTreeMap<String, Arc<Profile>>, BTreeMap<String, Diagnosis>) {
    let (mut usable, mut faulty) = (BTreeMap::new(), BTreeMap::new());
    for (name, profile) in profiles {
        match profile {
            Ok(profile) => drop(usable.insert(name, profile)),
            Err(fault) => drop(faulty.insert(name, fault)),
        }
    }
    (usable, faulty)
}
