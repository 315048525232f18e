//! VS Code: `servers` and `inputs` in `mcp.json` of the workspace or of a profile.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use toolway_types::Diagnosis;

use super::client_json::ClientJson;
use super::translate::{self, EntryDraft};
use super::variables::VariableSyntax;
use super::{ClientFile, ClientLocations};

/// The directories of the editor and its siblings.
const PRODUCTS: [&str; 3] = ["Code", "Code - Insiders", "VSCodium"];

pub(super) fn files(places: &ClientLocations) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for user in PRODUCTS
        .iter()
        .flat_map(|product| places.at_applications(&format!("{product}/User")))
    {
        files.push(user.join("mcp.json"));
        let profiles = fs::read_dir(user.join("profiles"))
            .into_iter()
            .flatten()
            .flatten();
        let mut profiles: Vec<PathBuf> = profiles
            .map(|profile| profile.path().join("mcp.json"))
            .collect();
        profiles.sort();
        files.extend(profiles);
    }
    files
}

pub(super) fn read(found: &mut ClientFile, text: &str) -> Result<(), Diagnosis> {
    let json = ClientJson::parse(found, text)?;
    let inputs = json
        .get(&["inputs"])
        .or_else(|| json.get(&["mcp", "inputs"]));
    for entry in json.servers(found, &["servers"]) {
        let inputs = mentioned(&entry.value, inputs.as_ref());
        translate::each(found, vec![entry], VariableSyntax::Editor, |draft| {
            draft.transport("type");
            draft.process();
            draft.remote("url");
            draft.oauth("oauth", "clientId", "scopes");
            draft.leave("envFile", "put its variables into `env`");
            draft.leave("dev", "Toolway does not restart servers for debugging");
            draft.leave("sandboxEnabled", "the sandbox is VS Code's own");
            draft.leave("sandbox", "the sandbox is VS Code's own");
            draft.ignore(&["gallery", "version", "description"]);
            say_inputs(draft, &inputs);
        });
    }
    Ok(())
}

/// The inputs an entry mentions.
fn mentioned<'a>(entry: &Value, inputs: Option<&'a Value>) -> Vec<(&'a str, &'a Value)> {
    let spelled = entry.to_string();
    let all = inputs.and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|input| Some((input.get("id")?.as_str()?, input)))
        .filter(|(id, _)| spelled.contains(&format!("${{input:{id}}}")))
        .collect()
}

/// Says what stays behind of the inputs: a default, or the command that gives the value.
fn say_inputs(draft: &mut EntryDraft, inputs: &[(&str, &Value)]) {
    for (id, input) in inputs {
        if input.get("type").and_then(Value::as_str) == Some("command") {
            draft.drop(format!(
                "the input `{id}` runs a command of VS Code, which stays behind."
            ));
        } else if input.get("default").is_some() {
            draft.drop(format!(
                "the input `{id}` has a default in VS Code, which stays behind."
            ));
        }
    }
}
