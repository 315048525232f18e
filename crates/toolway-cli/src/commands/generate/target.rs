//! The files that modules go to.
//!
//! Owns what `-o` means: a file for one server, or a directory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toolway_bindings::{Language, ServerTools, index, module, stem};
use toolway_types::ServerName;

use crate::report::Report;

/// Where modules go.
pub(super) enum Target {
    Stdout,
    File(PathBuf),
    /// A directory, with the stem of each server's file, in the order of the servers.
    Folder(PathBuf, Vec<String>),
}

/// A file, and what it is to hold.
pub(super) struct TargetFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// The server whose module it is; none for the index.
    pub(super) server: Option<String>,
}

impl Target {
    pub(super) fn of(
        language: Language,
        names: &[ServerName],
        path: Option<&Path>,
    ) -> Result<Self, Report> {
        let Some(path) = path else {
            return match names {
                [_] => Ok(Self::Stdout),
                several => Err(Report::usage(format!(
                    "{} modules cannot be printed as one",
                    several.len()
                ))
                .hint("name a directory for them with `-o DIR`")),
            };
        };
        let ends = path.extension().and_then(|end| end.to_str());
        let is_folder = path.is_dir()
            || path.as_os_str().as_encoded_bytes().ends_with(b"/")
            || (ends.is_none() && !path.is_file())
            || names.len() > 1;
        if !is_folder {
            let meant = Language::ALL
                .into_iter()
                .find(|one| ends == Some(one.extension()) && *one != language);
            if let Some(other) = meant {
                return Err(Report::usage(format!(
                    "`{}` is a name for {}, and this would be {}",
                    path.display(),
                    other.word(),
                    language.word()
                ))
                .hint(format!("end it with `.{}`", language.extension())));
            }
            return Ok(Self::File(path.to_owned()));
        }
        if path.is_file() || (ends == Some(language.extension()) && !path.is_dir()) {
            return Err(Report::usage(format!(
                "the modules of {} servers do not fit into the file `{}`",
                names.len(),
                path.display()
            ))
            .hint("name a directory for them with `-o DIR`"));
        }
        let mut taken = BTreeSet::new();
        let stems = names.iter().map(|name| {
            let plain = stem(name.as_str());
            let mut own = plain.clone();
            let mut number = 2_u32;
            while !taken.insert(own.clone()) {
                own = format!("{plain}_{number}");
                number += 1;
            }
            own
        });
        Ok(Self::Folder(path.to_owned(), stems.collect()))
    }

    /// The files, with what they hold.
    pub(super) fn files(&self, language: Language, offered: &[ServerTools]) -> Vec<TargetFile> {
        let file = |path: PathBuf, server: &ServerTools| TargetFile {
            path,
            text: module(language, server),
            server: Some(server.server.clone()),
        };
        match self {
            Self::Stdout => Vec::new(),
            Self::File(path) => offered
                .iter()
                .map(|server| file(path.clone(), server))
                .collect(),
            Self::Folder(folder, stems) => {
                let mut files: Vec<TargetFile> = offered
                    .iter()
                    .zip(stems)
                    .map(|(server, stem)| {
                        let name = format!("{stem}.{}", language.extension());
                        file(folder.join(name), server)
                    })
                    .collect();
                if offered.len() > 1 {
                    let servers: Vec<(String, String)> = offered
                        .iter()
                        .zip(stems)
                        .map(|(server, stem)| (server.server.clone(), stem.clone()))
                        .collect();
                    files.push(TargetFile {
                        path: folder.join(language.index_name()),
                        text: index(language, &servers),
                        server: None,
                    });
                }
                files
            }
        }
    }
}
