//! Which resource was meant, and whose it is.

use toolway::HostSnapshot;
use toolway::template::UriTemplate;
use toolway_types::name::{as_word, shell_word};
use toolway_types::{ServerName, Untrusted, several_nearest};

use crate::commands::offers::pairs;
use crate::context::Context;
use crate::report::Report;

/// How many near misses are named.
const MAX_NEAR: usize = 3;
/// How many servers are named.
const MAX_SERVERS: usize = 8;

/// What was typed, filled in.
pub(super) struct Target<'a> {
    /// The address, whole.
    pub(super) uri: String,
    /// The template it was made of, as typed.
    template: Option<&'a str>,
    /// The server as typed, if one was.
    pub(super) server: Option<&'a str>,
}

impl<'a> Target<'a> {
    /// Reads the words: one without `=` is the server, the others fill in the template.
    pub(super) fn parse(
        context: &Context,
        uri: &'a str,
        words: &'a [String],
    ) -> Result<Self, Report> {
        // A URL with a query has a `=` too.
        let is_server = |word: &&String| !word.contains('=') || word.contains("://");
        let (servers, values): (Vec<&String>, Vec<&String>) = words.iter().partition(is_server);
        if let [first, second, ..] = servers[..] {
            return Err(Report::usage(format!(
                "`{first}` and `{second}`: one server can be named"
            ))
            .hint("values of a template are written `key=value`"));
        }
        let values: Vec<String> = values.into_iter().cloned().collect();
        let values = pairs(context, &values)?;
        let server = servers.first().map(|server| server.as_str());
        if !uri.contains(['{', '}']) {
            if let Some(key) = values.keys().next() {
                return Err(Report::usage(format!("`{uri}` has no variable `{key}`"))
                    .hint("see the URIs with variables with `toolway resources --templates`"));
            }
            return Ok(Self {
                uri: uri.to_owned(),
                template: None,
                server,
            });
        }
        let template = UriTemplate::parse(uri).map_err(|error| {
            Report::usage(error.to_string())
                .hint("see the URIs with variables with `toolway resources --templates`")
        })?;
        let usage = || {
            let needed = template.required();
            let variables: Vec<String> = template
                .variables()
                .iter()
                .map(|name| {
                    let pair = format!("{}=<text>", shell_word(name));
                    if needed.contains(name) {
                        pair
                    } else {
                        format!("[{pair}]")
                    }
                })
                .collect();
            format!("toolway read {} {}", shell_word(uri), variables.join(" "))
        };
        let known = template.variables();
        if let Some(key) = values.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(Report::usage(format!("`{uri}` has no variable `{key}`"))
                .hint(format!("it is read as `{}`", usage())));
        }
        let missing: Vec<String> = template
            .required()
            .into_iter()
            .filter(|name| !values.contains_key(*name))
            .map(|name| format!("`{name}` is missing"))
            .collect();
        if !missing.is_empty() {
            return Err(Report::usage(format!("`{uri}` is not filled in"))
                .details(missing)
                .hint(format!("it is read as `{}`", usage())));
        }
        Ok(Self {
            uri: template.expand(&values),
            template: Some(uri),
            server,
        })
    }

    /// The server that has it: the one that was named, the one that lists it, or the one whose
    /// template it fits.
    pub(super) fn choose(
        &self,
        snapshot: &HostSnapshot,
        only: Option<&ServerName>,
    ) -> Result<ServerName, Report> {
        if let Some(server) = only {
            return Ok(server.clone());
        }
        let catalog = &snapshot.catalog;
        let listing = catalog
            .resources()
            .filter(|resource| resource.uri == self.uri)
            .map(|resource| &resource.server);
        let mut owners: Vec<&ServerName> = listing.collect();
        if owners.is_empty() {
            let families = catalog.templates().filter(|family| {
                self.template == Some(family.uri_template.as_str())
                    || UriTemplate::parse(&family.uri_template)
                        .is_ok_and(|template| template.could_be(&self.uri))
            });
            owners = families.map(|family| &family.server).collect();
        }
        owners.sort();
        owners.dedup();
        match owners[..] {
            [only] => Ok(only.clone()),
            [] => {
                let shown = Untrusted::new(&self.uri);
                let message = format!("no server lists `{}`", shown.line());
                Err(self.near(snapshot, Report::usage(message), None))
            }
            [first, ..] => {
                let shown = Untrusted::new(&self.uri);
                let names: Vec<String> = owners.iter().map(|name| format!("`{name}`")).collect();
                Err(Report::usage(format!(
                    "`{}` could be of {}",
                    shown.line(),
                    names.join(", ")
                ))
                .hint(format!("say which one, e.g. `{}`", self.line(first))))
            }
        }
    }

    /// The same with what is near it, of one server or of all, and who has resources at all.
    pub(super) fn near(
        &self,
        snapshot: &HostSnapshot,
        report: Report,
        server: Option<&ServerName>,
    ) -> Report {
        let catalog = &snapshot.catalog;
        let of = |owner: &ServerName| server.is_none_or(|server| server == owner);
        let listed = catalog
            .resources()
            .filter(|resource| of(&resource.server))
            .map(|resource| resource.uri.as_str());
        let near = several_nearest(&self.uri, listed, MAX_NEAR);
        if !near.is_empty() {
            return report.hint(format!("did you mean `{}`?", near.join("` or `")));
        }
        if let Some(server) = server {
            return report.hint(format!(
                "see what it has with `toolway resources {}`",
                as_word(server.as_str())
            ));
        }
        let mut owners: Vec<&ServerName> = catalog
            .resources()
            .map(|resource| &resource.server)
            .chain(catalog.templates().map(|template| &template.server))
            .collect();
        owners.sort();
        owners.dedup();
        let Some(first) = owners.first() else {
            return report
                .details(["no connected server has resources".to_owned()])
                .hint("see the servers with `toolway list`");
        };
        let hint = format!(
            "a server may have what it does not list: `{}`",
            self.line(first)
        );
        let mut names: Vec<String> = owners.iter().map(|name| format!("`{name}`")).collect();
        if names.len() > MAX_SERVERS {
            let more = names.len() - MAX_SERVERS;
            names.truncate(MAX_SERVERS);
            names.push(format!("{more} more"));
        }
        report
            .details([format!("servers with resources: {}", names.join(", "))])
            .hint(hint)
    }

    /// The line that asks this server for it.
    fn line(&self, server: &ServerName) -> String {
        let line = format!(
            "toolway read {} {}",
            shell_word(&self.uri),
            as_word(server.as_str())
        );
        Untrusted::new(line).line().into_owned()
    }
}
