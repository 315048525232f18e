//! Under which names and addresses an endpoint shows what servers offer, and back.
//!
//! Owns the names that clients see. Rules, hooks and the audit always speak of
//! `mcp__<server>__<tool>`; nothing here decides what may be called. A name is made from its tool
//! alone, so it stays the same whatever other servers do; only names that are too long, or own names
//! that collide, need the table of all.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use sha2::{Digest, Sha256};
use toolway::catalog::{CatalogPrompt, CatalogTool};
use toolway::config::NameForm;
use toolway::types::{ServerName, ToolKey};
use toolway::{Catalog, ToolTarget, UriTemplate};

/// The longest name in a merged view: clients put a prefix of their own before it, and the whole
/// has 64 characters at most.
pub const MAX_NAME: usize = 48;

/// What every exposed name of a server's tool begins with.
const EXPOSED: &str = "mcp__";

/// What an address begins with that says which server is meant.
const ADDRESSED: &str = "toolway:";

/// What a name is made from.
#[derive(Clone, Copy)]
struct Named<'a> {
    exposed: &'a str,
    key: &'a ToolKey,
}

impl<'a> Named<'a> {
    fn tool(tool: &'a CatalogTool) -> Self {
        Self {
            exposed: &tool.name,
            key: &tool.key,
        }
    }

    fn prompt(prompt: &'a CatalogPrompt) -> Self {
        Self {
            exposed: &prompt.name,
            key: &prompt.key,
        }
    }

    /// The short form; one that is too long ends with a digest of what it stands for.
    fn short(self) -> Cow<'a, str> {
        let name = self.exposed.strip_prefix(EXPOSED).unwrap_or(self.exposed);
        if name.len() <= MAX_NAME {
            return Cow::Borrowed(name);
        }
        let mut digest = Sha256::new();
        digest.update(self.key.server.as_str());
        digest.update([0]);
        digest.update(&self.key.tool);
        let digest = hex::encode(&digest.finalize()[..DIGEST / 2]);
        let kept = &name[..MAX_NAME - 1 - DIGEST];
        Cow::Owned(format!("{kept}_{digest}"))
    }
}

/// How many characters of a digest end a name that was too long.
const DIGEST: usize = 10;

/// Names that cannot be read back by themselves.
#[derive(Debug, Default)]
pub(super) struct CutNames {
    /// By the name that is shown.
    tools: HashMap<String, ToolKey>,
    prompts: HashMap<String, ToolKey>,
}

impl CutNames {
    pub(super) fn of(catalog: &Catalog, names: NameForm) -> Self {
        let tools = catalog.built_in().iter().chain(catalog.tools());
        let tools = tools.map(Named::tool);
        let prompts = catalog.prompts().map(Named::prompt);
        Self {
            tools: table(&tools.collect::<Vec<_>>(), names),
            prompts: table(&prompts.collect::<Vec<_>>(), names),
        }
    }

    /// What a tool is called.
    pub(super) fn of_tool<'a>(&self, tool: &'a CatalogTool, names: NameForm) -> Cow<'a, str> {
        shown(&self.tools, Named::tool(tool), names)
    }

    /// What a prompt is called.
    pub(super) fn of_prompt<'a>(&self, prompt: &'a CatalogPrompt, names: NameForm) -> Cow<'a, str> {
        shown(&self.prompts, Named::prompt(prompt), names)
    }

    /// The tool of this name, where only the table knows.
    pub(super) fn tool(&self, name: &str) -> Option<&ToolKey> {
        self.tools.get(name)
    }

    /// The prompt of this name, where only the table knows.
    pub(super) fn prompt(&self, name: &str) -> Option<&ToolKey> {
        self.prompts.get(name)
    }
}

/// The names that the table has to know: own ones that nobody else has, and those that were cut.
fn table(all: &[Named<'_>], names: NameForm) -> HashMap<String, ToolKey> {
    let mut table = HashMap::new();
    if names == NameForm::Own {
        let mut owners: BTreeMap<&str, Option<&ToolKey>> = BTreeMap::new();
        for named in all {
            let owner = owners.entry(&named.key.tool).or_insert(Some(named.key));
            if *owner != Some(named.key) {
                *owner = None;
            }
        }
        // A name that looks like another tool's short one is left to that one.
        let is_free = |name: &str| is_plain(name) && !name.contains("__");
        for (name, owner) in owners {
            if let Some(key) = owner.filter(|_| is_free(name)) {
                table.insert(name.to_owned(), key.clone());
            }
        }
    }
    if names != NameForm::Mcp {
        for named in all {
            if let Cow::Owned(name) = named.short() {
                // The same digest for another tool: the first keeps it, and the other is not shown.
                table.entry(name).or_insert_with(|| named.key.clone());
            }
        }
    }
    table
}

fn shown<'a>(table: &HashMap<String, ToolKey>, one: Named<'a>, names: NameForm) -> Cow<'a, str> {
    match names {
        NameForm::Mcp => Cow::Borrowed(one.exposed),
        NameForm::Own if table.get(&one.key.tool) == Some(one.key) => Cow::Borrowed(&one.key.tool),
        NameForm::Own | NameForm::Short => one.short(),
    }
}

/// Whether clients take this for the name of a tool.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(plain)
}

/// The name that rules know, of one that a client wrote.
pub(super) fn exposed(name: &str) -> String {
    match name.strip_prefix(EXPOSED) {
        Some(_) => name.to_owned(),
        None => format!("{EXPOSED}{name}"),
    }
}

/// The tool of a merged view that has this name.
pub(super) fn tool_named<'a>(
    catalog: &'a Catalog,
    names: NameForm,
    name: &str,
    table: impl FnOnce() -> Option<ToolKey>,
) -> Option<&'a CatalogTool> {
    let by_exposed = |exposed: String| {
        let tool = catalog.find(&ToolTarget::Exposed(exposed)).ok()?;
        let is_meant = match names {
            NameForm::Mcp => tool.name == name,
            NameForm::Short | NameForm::Own => Named::tool(tool).short() == name,
        };
        is_meant.then_some(tool)
    };
    let found = match names {
        NameForm::Mcp => by_exposed(name.to_owned()),
        NameForm::Short | NameForm::Own => {
            by_exposed(format!("{EXPOSED}{name}")).or_else(|| by_exposed(name.to_owned()))
        }
    };
    found.or_else(|| catalog.find(&ToolTarget::Key(table()?)).ok())
}

/// The prompt of a merged view that has this name.
pub(super) fn prompt_named<'a>(
    catalog: &'a Catalog,
    names: NameForm,
    name: &str,
    table: impl FnOnce() -> Option<ToolKey>,
) -> Option<&'a CatalogPrompt> {
    let is_meant = |prompt: &&CatalogPrompt| match names {
        NameForm::Mcp => prompt.name == name,
        NameForm::Short | NameForm::Own => Named::prompt(prompt).short() == name,
    };
    let found = catalog.prompts().find(is_meant);
    found.or_else(|| {
        let key = table()?;
        catalog.prompt(&key.server, &key.tool)
    })
}

/// Which addresses of resources more than one server has.
#[derive(Debug, Default)]
pub(super) struct SharedAddresses {
    /// By URI or template: the only server that has it, or none where several do.
    owners: HashMap<String, Option<ServerName>>,
}

impl SharedAddresses {
    pub(super) fn of(catalog: &Catalog) -> Self {
        let mut owners: HashMap<String, Option<ServerName>> = HashMap::new();
        let resources = catalog.resources().map(|it| (&it.uri, &it.server));
        let templates = catalog.templates().map(|it| (&it.uri_template, &it.server));
        for (address, server) in resources.chain(templates) {
            match owners.get_mut(address) {
                None => {
                    owners.insert(address.clone(), Some(server.clone()));
                }
                Some(owner) if owner.as_ref() != Some(server) => *owner = None,
                Some(_) => {}
            }
        }
        Self { owners }
    }

    /// What a resource or template of a server is called.
    pub(super) fn shown<'a>(&self, server: &ServerName, address: &'a str) -> Cow<'a, str> {
        // An address that looks like one of ours is told apart too.
        let is_shared = matches!(self.owners.get(address), Some(None));
        if is_shared || address.starts_with(ADDRESSED) {
            Cow::Owned(addressed(server, address))
        } else {
            Cow::Borrowed(address)
        }
    }

    /// The server that a listed address belongs to.
    fn owner(&self, address: &str) -> Option<&ServerName> {
        self.owners.get(address)?.as_ref()
    }
}

/// An address that says which server is meant.
pub(super) fn addressed(server: &ServerName, address: &str) -> String {
    format!("{ADDRESSED}{server}:{address}")
}

/// Which server a client means by an address, and how that server calls it.
pub(super) fn resource_at<'a>(
    catalog: &Catalog,
    addresses: &SharedAddresses,
    servers: &[ServerName],
    address: &'a str,
) -> Option<(ServerName, &'a str)> {
    if let Some((server, rest)) = explicit(servers, address) {
        return Some((server.clone(), rest));
    }
    if let Some(owner) = addresses.owner(address) {
        return Some((owner.clone(), address));
    }
    let mut by_template = catalog.templates().filter(|template| {
        UriTemplate::parse(&template.uri_template).is_ok_and(|it| it.could_be(address))
    });
    if let Some(first) = by_template.next() {
        let is_only = by_template.all(|other| other.server == first.server);
        return is_only.then(|| (first.server.clone(), address));
    }
    // Not listed: a server may have it all the same, but it has to be clear which.
    let scheme = |uri: &str| uri.split_once(':').map(|(scheme, _)| scheme.to_owned());
    let wanted = scheme(address);
    let listed = catalog.resources().map(|it| (&it.uri, &it.server));
    let listed = listed.chain(catalog.templates().map(|it| (&it.uri_template, &it.server)));
    let mut alike = listed
        .filter(|(uri, _)| scheme(uri) == wanted)
        .map(|(_, server)| server);
    if let Some(first) = alike.next() {
        return alike
            .all(|other| other == first)
            .then(|| (first.clone(), address));
    }
    match servers {
        [only] => Some((only.clone(), address)),
        _ => None,
    }
}

/// An address that names its server, split.
pub(super) fn explicit<'a, 's>(
    servers: &'s [ServerName],
    address: &'a str,
) -> Option<(&'s ServerName, &'a str)> {
    let rest = address.strip_prefix(ADDRESSED)?;
    // The longest name that fits: one can begin with another and a colon.
    let fitting = servers.iter().filter_map(|server| {
        let rest = rest.strip_prefix(server.as_str())?.strip_prefix(':')?;
        Some((server, rest))
    });
    fitting.max_by_key(|(server, _)| server.as_str().len())
}

#[cfg(test)]
mod tests;
