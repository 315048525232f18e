//! How a client is to reach Toolway, from what was typed.

use toolway_config::connect::{
    ClientScope, ClientTarget, GatewayAddress, GatewayProgram, GatewayReach, gateway_command,
};
use toolway_types::is_this_machine;
use url::Url;

use super::ConnectArgs;
use crate::context::Context;
use crate::report::Report;

pub(super) fn of(
    context: &Context,
    args: &ConnectArgs,
    target: &ClientTarget,
) -> Result<GatewayReach, Report> {
    let environment = context.environment();
    if let Some(url) = &args.url {
        let token_file = args
            .token_file
            .as_ref()
            .map(|file| environment.cwd().join(file));
        if let Some(file) = token_file.as_ref().filter(|file| !file.is_file()) {
            context.warn(format!("there is no file `{}` yet", file.display()));
        }
        return Ok(GatewayReach::Address(GatewayAddress {
            url: address(url)?,
            token_file,
        }));
    }
    if let Some(profile) = &args.profile
        && (profile.is_empty() || profile.starts_with('-') || profile.contains(char::is_control))
    {
        return Err(
            Report::usage(format!("`{profile}` cannot be a profile's name"))
                .hint("name one as it stands under `profiles` in your settings"),
        );
    }
    let own = std::env::current_exe()?;
    // Where the settings are elsewhere, the client would serve others. What a project's file says
    // holds for other people too.
    let usual = environment.home().map(|home| home.join(".config/toolway"));
    let home = environment
        .var("TOOLWAY_HOME")
        .map(|_| environment.config_home());
    let home = home.filter(|home| Some(*home) != usual.as_deref());
    let home = home.filter(|_| target.scope == ClientScope::User);
    Ok(GatewayReach::Program(GatewayProgram {
        command: gateway_command(environment, target.client, &own),
        profile: args.profile.clone(),
        home: home.map(std::path::Path::to_path_buf),
    }))
}

fn address(typed: &str) -> Result<Url, Report> {
    let example = "e.g. `--url http://127.0.0.1:7777/mcp`";
    let url = Url::parse(typed)
        .map_err(|error| Report::usage(format!("`--url` is no address: {error}")).hint(example))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(Report::usage("`--url` takes an `http` or `https` address").hint(example));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Report::usage("`--url` must not hold a name or a password")
            .hint("name the file that the token is in: `--token-file <file>`"));
    }
    if url.scheme() == "http" && !is_this_machine(&url) {
        return Err(
            Report::usage("everybody on the way could read what goes to that address")
                .hint("use `https`; `http` is for this machine only"),
        );
    }
    Ok(url)
}
