//! Skills: instructions for an agent that a server publishes beside its tools, as the extension
//! `io.modelcontextprotocol/skills` has it.
//!
//! Owns listing them, loading one and reading its files, in the only order there is: a
//! [`ListedSkill`] is what a server says about a skill, [`Host::load_skill`] makes a
//! [`LoadedSkill`] of it once its main file turned out to be what was listed, and only a loaded
//! skill has files that can be read. Nothing is read before it is asked for. What a file is held
//! against is `verify.rs`, what can go wrong `error.rs`. A server that does not declare the
//! extension may have skills all the same, as plain resources (`plain.rs`).
//!
//! Does not own consent: whether a person approved a skill, and what a model may do under it, is
//! for the embedding program. A digest that matches proves that list and file agree, not that
//! either can be trusted: all of it is text from a server.

mod error;
mod plain;
mod verify;

use std::collections::HashSet;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use toolway_config::RunLimits;
use toolway_types::{ConnectionState, ServerName, ToolKey, Untrusted, limits};
use toolway_wire::era::method;
use toolway_wire::view::{self, ResourceBody, SkillFile, SkillFiles, skill};

pub use self::error::{FailedCheck, SkillError};
use crate::call::{CallError, CallFault, CallOptions, Consent, ToolTarget};
use crate::dispatch::offered::PermittedOffering;
use crate::host::Attached;
use crate::offering::Offering;
use crate::session::list::{self, MAX_PAGES};

/// The most skills that are taken from one server.
pub const MAX_SKILLS: usize = view::LIST.items;

/// The most files that a skill may have; what every host must take, and we take no more.
pub const MAX_FILES: usize = limits::offers::SKILL_FILES;

/// The most bytes that the files of a skill may have together.
pub const MAX_SKILL_BYTES: u64 = limits::offers::SKILL_BYTES as u64;

/// What a server says about its skills.
#[derive(Debug, Clone)]
pub struct SkillList {
    /// In the server's order. It may leave out some that it serves all the same.
    pub skills: Vec<ListedSkill>,
    /// One line for each thing that was skipped.
    pub warnings: Vec<String>,
}

/// What a server says about one skill. Its identity is the server and the URI together: names
/// are labels, and two skills may share one.
#[derive(Clone)]
pub struct ListedSkill {
    server: ServerName,
    name: Untrusted,
    description: Untrusted,
    entry: view::Skill,
    /// Whether it is only a resource, of which the server promises nothing.
    plain: bool,
}

impl ListedSkill {
    fn new(server: &ServerName, entry: view::Skill) -> Self {
        Self {
            server: server.clone(),
            name: Untrusted::new(entry.name.as_str()),
            description: Untrusted::new(entry.description.as_str()),
            entry,
            plain: false,
        }
    }

    /// Whether it is a plain resource of a server without the extension: without digests, and
    /// shown as it is read.
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// The server that has it.
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// Where its main file is, as the server wrote it.
    pub fn uri(&self) -> &str {
        &self.entry.uri
    }

    /// What it is called.
    pub fn name(&self) -> &Untrusted {
        &self.name
    }

    /// What it is for.
    pub fn description(&self) -> &Untrusted {
        &self.description
    }

    /// Everything its author wrote at the head of the main file, as received. A wish for
    /// permissions that stands there (`allowed-tools`) grants nothing.
    pub fn frontmatter(&self) -> &Map<String, Value> {
        &self.entry.frontmatter
    }

    /// Its files, with digest and size: what an approval can be bound to.
    pub fn files(&self) -> &SkillFiles {
        &self.entry.files
    }

    /// The manifest, if it is one that we load from.
    fn manifest(&self) -> Result<&[SkillFile], SkillError> {
        let server = || self.server.clone();
        let skill = || Untrusted::new(self.uri());
        let SkillFiles::Listed(files) = self.files() else {
            return Err(SkillError::Unverifiable {
                server: server(),
                skill: skill(),
            });
        };
        if files.len() > MAX_FILES {
            return Err(SkillError::TooManyFiles {
                server: server(),
                skill: skill(),
                found: files.len(),
            });
        }
        let bytes = files
            .iter()
            .fold(0_u64, |sum, file| sum.saturating_add(file.size));
        if bytes > MAX_SKILL_BYTES {
            return Err(SkillError::TooLarge {
                server: server(),
                skill: skill(),
                found: bytes,
            });
        }
        Ok(files)
    }
}

impl fmt::Debug for ListedSkill {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ListedSkill")
            .field("server", &self.server)
            .field("uri", &self.entry.uri)
            .field("files", &self.entry.files)
            .finish_non_exhaustive()
    }
}

/// A skill whose main file is what was listed, or a plain one, of which nothing was. There is no
/// other way to come by one.
#[derive(Debug, Clone)]
pub struct LoadedSkill {
    listed: ListedSkill,
    text: Untrusted,
}

impl LoadedSkill {
    /// What was listed, and still holds for every other file.
    pub fn listed(&self) -> &ListedSkill {
        &self.listed
    }

    /// The main file, head included. Where it is shown to a model, say which server it is from.
    pub fn text(&self) -> &Untrusted {
        &self.text
    }
}

/// A file of a loaded skill.
#[derive(Debug, Clone)]
pub struct SkillContents {
    /// Where it is.
    pub uri: String,
    /// Its media type, as the server has it.
    pub mime_type: Option<Untrusted>,
    /// Its bytes, as received.
    pub bytes: Vec<u8>,
}

impl Attached {
    /// Lists the skills of a server: all pages, and nothing but the list. A server that is still
    /// connecting is waited for. An entry that cannot be used is a warning.
    pub async fn skills(&self, server: &ServerName) -> Result<SkillList, SkillError> {
        let (permitted, plain) = self.permit_skills(server, Map::new()).await?;
        self.skills_by(&permitted, plain).await
    }

    async fn skills_by(
        &self,
        permitted: &PermittedOffering,
        plain: Option<SkillList>,
    ) -> Result<SkillList, SkillError> {
        if let Some(list) = plain {
            return Ok(list);
        }
        let chosen = self.snapshot().settings.limits.connect_timeout;
        let after = chosen.unwrap_or(RunLimits::USUAL_CONNECT);
        let listed = tokio::time::timeout(after, self.list_skills(permitted)).await;
        listed.unwrap_or_else(|_| {
            let late = CallError::timed_out(permitted.server(), method::SKILLS_LIST, after);
            Err(SkillError::Call(late))
        })
    }

    /// What a server says about one skill, by its URI or by its name. A URI is asked for
    /// directly, because a server need not list all it has.
    pub async fn skill(&self, server: &ServerName, which: &str) -> Result<ListedSkill, SkillError> {
        let is_uri = which.contains("://");
        let params = is_uri.then(|| ("uri".to_owned(), which.into()));
        let permitted = self.permit_skills(server, params.into_iter().collect());
        let (permitted, plain) = permitted.await?;
        if plain.is_none() && is_uri {
            match self.get_skill(&permitted, which).await {
                Ok(skill) => return Ok(skill),
                // It does not know it, or does not know how to say so: perhaps it lists it.
                Err(SkillError::Call(CallError::Failed(
                    _,
                    CallFault::Protocol { .. } | CallFault::Malformed(_),
                ))) => {}
                Err(error) => return Err(error),
            }
        }
        let mut found = self.skills_by(&permitted, plain).await?.skills;
        found.retain(|skill| skill.uri() == which || skill.name.as_received() == which);
        match (found.pop(), found.is_empty()) {
            (None, _) => Err(SkillError::Unknown {
                server: server.clone(),
                which: Untrusted::new(which),
            }),
            (Some(only), true) => Ok(only),
            (Some(last), false) => {
                found.push(last);
                Err(SkillError::Ambiguous {
                    server: server.clone(),
                    name: Untrusted::new(which),
                    candidates: found.iter().map(|s| Untrusted::new(s.uri())).collect(),
                })
            }
        }
    }

    /// Reads the main file of a skill that was listed, and gives it only if its size, its digest
    /// and its head are what was listed. A skill that a user approved is loaded from the very entry
    /// they saw.
    pub async fn load_skill(&self, skill: &ListedSkill) -> Result<LoadedSkill, SkillError> {
        let read = self.read_listed(skill, skill.uri()).await?;
        let text = String::from_utf8(read.bytes)
            .map_err(|_| SkillError::unreadable(skill, skill.uri(), "it is not UTF-8 text"))?;
        if !skill.plain {
            verify::frontmatter(skill.frontmatter(), &text)
                .map_err(|check| SkillError::unverified(skill, skill.uri(), check))?;
        }
        Ok(LoadedSkill {
            listed: skill.clone(),
            text: Untrusted::new(text),
        })
    }

    /// Finds a skill by its URI or name and loads it: [`Host::skill`] and [`Host::load_skill`].
    pub async fn read_skill(
        &self,
        server: &ServerName,
        which: &str,
    ) -> Result<LoadedSkill, SkillError> {
        let listed = self.skill(server, which).await?;
        self.load_skill(&listed).await
    }

    /// Reads another file of a skill, by its URI or by its path from the skill's folder. Only
    /// files that were listed are asked for, and only of the skill's own server; of a plain skill
    /// any in its folder.
    pub async fn read_skill_file(
        &self,
        skill: &LoadedSkill,
        file: &str,
    ) -> Result<SkillContents, SkillError> {
        let skill = &skill.listed;
        if file.contains("://") {
            return self.read_listed(skill, file).await;
        }
        let path = file.strip_prefix("./").unwrap_or(file);
        let uri = format!("{}/{path}", skill.entry.root());
        self.read_listed(skill, &uri).await
    }

    /// Waits for the server, and makes sure that it has skills at all. Gives those of a server
    /// that does not declare the extension.
    async fn await_skills(&self, server: &ServerName) -> Result<Option<SkillList>, SkillError> {
        let options = CallOptions::new(Consent::Typed);
        let key = ToolKey::new(server.clone(), method::SKILLS_LIST);
        self.await_server(&ToolTarget::Key(key), &options).await?;
        let snapshot = self.snapshot();
        let Some(ConnectionState::Connected(facts)) =
            snapshot.server(server.as_str()).map(|shown| &shown.state)
        else {
            // One that is being brought back has a route all the same, and is waited for there.
            let route = snapshot.route(server).map(drop);
            return route.map(|()| None).map_err(SkillError::Call);
        };
        let extensions = facts.capabilities.get("extensions");
        let declared = extensions
            .and_then(|extensions| extensions.get(skill::EXTENSION))
            .is_some_and(|extension| !extension.is_null());
        if declared {
            return Ok(None);
        }
        match plain::list(&snapshot.catalog, server) {
            Some(list) => Ok(Some(list)),
            None => Err(SkillError::NotOffered {
                server: server.clone(),
            }),
        }
    }

    /// Has it judged whether a server that has skills may be asked for them. Gives those of one
    /// that does not declare the extension, too.
    async fn permit_skills(
        &self,
        server: &ServerName,
        params: Map<String, Value>,
    ) -> Result<(PermittedOffering, Option<SkillList>), SkillError> {
        let offering = Offering::ListSkills;
        // Of one that a rule denies nothing is known.
        let plain = match self.snapshot().refusal(server, offering) {
            Some(_) => None,
            None => self.await_skills(server).await?,
        };
        let permitted = self
            .permit_offering(offering, server, params, &self.usual_options())
            .await?;
        Ok((permitted, plain))
    }

    async fn list_skills(&self, permitted: &PermittedOffering) -> Result<SkillList, SkillError> {
        let server = permitted.server();
        let options = CallOptions::new(Consent::Typed);
        let name = method::SKILLS_LIST;
        let mut skills = Vec::new();
        let mut warnings = Vec::new();
        let mut room = view::LIST;
        let (mut known, mut cursors) = (HashSet::new(), HashSet::new());
        let mut params = json!({});
        let mut pages = 0;
        let ended = loop {
            if pages == MAX_PAGES {
                break Some(format!(
                    "`{name}`: more than {MAX_PAGES} pages; the rest is left out"
                ));
            }
            pages += 1;
            let raw = self.request(permitted, name, &params, &options).await?;
            let page = view::SKILLS
                .page(&raw, &mut room)
                .map_err(|error| error::malformed(server, name, &error))?;
            list::tell(&mut warnings, name, &page.faults);
            for entry in page.items {
                if known.insert(entry.uri.clone()) {
                    skills.push(ListedSkill::new(server, entry));
                } else {
                    let uri = Untrusted::new(entry.uri);
                    warnings.push(format!("`{name}`: `{}` is listed twice", uri.line()));
                }
            }
            // An empty cursor is a cursor like any other; only its absence ends the list.
            let (spent, cursor) = match (page.spent, page.next_cursor) {
                (None, None) => break None,
                (spent, cursor) => (spent, cursor.unwrap_or_default()),
            };
            if let Some(spent) = spent.or_else(|| room.take_bytes(cursor.len()).err()) {
                break Some(list::ended(name, spent, skills.len()));
            }
            params = json!({ "cursor": cursor });
            if !cursors.insert(cursor) {
                let why = "the server sent a cursor twice; the list ends there";
                break Some(format!("`{name}`: {why}"));
            }
        };
        warnings.extend(ended);
        Ok(SkillList { skills, warnings })
    }

    async fn get_skill(
        &self,
        permitted: &PermittedOffering,
        uri: &str,
    ) -> Result<ListedSkill, SkillError> {
        let server = permitted.server();
        let options = CallOptions::new(Consent::Typed);
        let params = json!({ "uri": uri });
        let raw = self.request(permitted, method::SKILLS_GET, &params, &options);
        let raw = raw.await?;
        let entry =
            view::skill_result(&raw).map_err(|error| error::malformed(server, uri, &error))?;
        if entry.uri != uri {
            let reason = "the entry of another skill";
            return Err(error::malformed(server, uri, &reason));
        }
        Ok(ListedSkill::new(server, entry))
    }

    /// Reads a file of a skill and holds it against the manifest, where there is one. What the
    /// manifest lacks is not even asked for.
    async fn read_listed(
        &self,
        skill: &ListedSkill,
        uri: &str,
    ) -> Result<SkillContents, SkillError> {
        let no_such = || SkillError::NoSuchFile {
            server: skill.server.clone(),
            skill: Untrusted::new(skill.uri()),
            file: Untrusted::new(uri),
        };
        let listed = if skill.plain {
            if !plain::is_within(skill.entry.root(), uri) {
                return Err(no_such());
            }
            None
        } else {
            let mut files = skill.manifest()?.iter();
            let listed = files.find(|file| file.uri == uri);
            Some(listed.ok_or_else(no_such)?)
        };
        let read = self.read_resource(&skill.server, uri).await?;
        let mut parts = read.result.contents;
        if parts.len() > 1 {
            parts.retain(|part| part.uri == uri);
        }
        let (Some(part), true) = (parts.pop(), parts.is_empty()) else {
            let reason = "the answer does not hold it once";
            return Err(SkillError::unreadable(skill, uri, reason));
        };
        let bytes = match part.body {
            ResourceBody::Text(text) => text.into_bytes(),
            ResourceBody::Blob(blob) => STANDARD
                .decode(blob)
                .map_err(|_| SkillError::unreadable(skill, uri, "its blob is not base64"))?,
        };
        if let Some(listed) = listed {
            verify::bytes(listed, &bytes)
                .map_err(|check| SkillError::unverified(skill, uri, check))?;
        }
        Ok(SkillContents {
            uri: uri.to_owned(),
            mime_type: part.mime_type.map(Untrusted::new),
            bytes,
        })
    }
}
