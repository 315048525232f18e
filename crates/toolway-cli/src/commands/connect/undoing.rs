//! `toolway connect <client> --undo`.

use toolway_config::EditError;
use toolway_config::connect::{self, ClientEntryError, ClientTarget, UndoneConnect};
use toolway_config::import::ImportClient;
use toolway_types::name::as_word;

use super::{ConnectArgs, SettingsScope, change_sheet, show};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};

pub(super) fn run(context: &Context, args: &ConnectArgs, client: ImportClient) -> Outcome {
    let environment = context.environment();
    let records = context.setup.files().clients();
    let scope = args.scope.scope();
    let name = args.name.as_deref();
    let mut target = ClientTarget::find(environment, client, scope)?;
    let mut found = difference(context, &target, name)?;
    if found.is_none()
        && let Some(recorded) = connect::recorded_target(&records, client, scope)?
        && args.scope == SettingsScope::User
    {
        target = recorded;
        found = difference(context, &target, name)?;
    }
    let Some((change, _)) = found else {
        if !args.dry_run {
            connect::forget(&records, &target, name)?;
        }
        let path = target.path.display();
        context.say(format!(
            "nothing to take back: {} is not connected in {path}",
            client.title()
        ));
        return Ok(Exit::Success);
    };
    let asks = !args.yes && !args.dry_run && context.output.can_ask();
    let sheet = change_sheet(context, &target, &change);
    let seen = show(context, asks, &sheet.finish())?;
    if args.dry_run {
        return Ok(Exit::Success);
    }
    if !args.yes && !asks {
        return Err(
            Report::refused("nothing was changed: nobody is there to confirm this").hint(format!(
                "read the above, then run `{}`",
                args.about(client, "--undo --yes")
            )),
        );
    }
    let question = format!("Take this back in the settings of {}?", client.title());
    let agreed = args.yes || seen && context.output.confirm(&question)?;
    if !agreed {
        return Err(Report::refused("nothing was changed").hint(format!(
            "to look at it again: `{}`",
            args.about(client, "--undo --dry-run")
        )));
    }
    if let Some(edited) = connect::undo(environment, &records, &target, name)? {
        say_done(
            context,
            client,
            &edited.path.display().to_string(),
            &edited.value,
        );
    }
    Ok(Exit::Success)
}

/// What would be taken back. Where it is no longer what was written, a person has to decide.
fn difference(
    context: &Context,
    target: &ClientTarget,
    name: Option<&str>,
) -> Result<Option<(String, UndoneConnect)>, Report> {
    let records = context.setup.files().clients();
    let found = connect::undo_difference(&records, target, name);
    found.map_err(|error| match error {
        ClientEntryError::Edit(error @ (EditError::Refused(_) | EditError::Unfit { .. })) => {
            Report::from(error).hint(format!(
                "nothing was written; mend it by hand in `{}`",
                target.path.display()
            ))
        }
        other => Report::from(other),
    })
}

fn say_done(context: &Context, client: ImportClient, path: &str, undone: &UndoneConnect) {
    let title = client.title();
    if undone.removed {
        context.say(format!("disconnected {title}: {path} is gone again"));
    } else {
        context.say(format!("disconnected {title}: {path}"));
    }
    if undone.was_changed {
        context.say("note: the file was changed since, so only the entries were taken back");
    }
    if let [first, ..] = undone.put_back.as_slice() {
        let names: Vec<String> = undone.put_back.iter().map(|it| format!("`{it}`")).collect();
        let (stand, stay) = if names.len() == 1 {
            ("stands", "stays")
        } else {
            ("stand", "stay")
        };
        context.say(format!(
            "{} {stand} there again, and {stay} in Toolway too",
            names.join(", ")
        ));
        context.hint(format!(
            "take what you do not want twice out of Toolway: `toolway remove {} -s user`",
            as_word(first)
        ));
    }
}
