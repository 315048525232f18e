//! Where a path leads.
//!
//! Owns following links one by one, also to where nothing is yet. Makes and opens nothing.

use std::path::{Component, Path, PathBuf};

/// The most links that are followed on the way to one place, as many as the kernel follows.
pub const MOST_LINKS: usize = 40;

/// Where a path leads, whether anything is there or not, and the links on the way, each by the
/// real path of the directory it stands in.
pub fn follow(path: &Path) -> (PathBuf, Vec<PathBuf>) {
    let mut links = Vec::new();
    let (mut real, mut rest) = (PathBuf::new(), path.to_owned());
    while links.len() < MOST_LINKS {
        let mut components = rest.components();
        let Some(first) = components.next() else {
            break;
        };
        let mut after = components.as_path().to_owned();
        match first {
            // Only the path of a relative beginning can be left upwards.
            Component::ParentDir if real.as_os_str().is_empty() || real.ends_with("..") => {
                real.push("..");
            }
            Component::ParentDir => {
                real.pop();
            }
            Component::CurDir | Component::Prefix(_) => {}
            Component::RootDir => real = PathBuf::from("/"),
            Component::Normal(name) => {
                let here = real.join(name);
                match here.read_link() {
                    Ok(target) => {
                        after = target.join(after);
                        links.push(here);
                    }
                    Err(_) => real = here,
                }
            }
        }
        rest = after;
    }
    (real, links)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_followed_to_where_nothing_is_yet_and_never_round_and_round() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("data/state")).unwrap();
        std::fs::create_dir_all(root.join("home")).unwrap();
        std::os::unix::fs::symlink("../data", root.join("home/state")).unwrap();
        std::os::unix::fs::symlink("home/../home", root.join("to-home")).unwrap();
        let (real, links) = follow(&root.join("to-home/./state/absent"));
        assert_eq!(real, root.join("data/absent"));
        assert_eq!(links, [root.join("to-home"), root.join("home/state")]);
        std::os::unix::fs::symlink("round", root.join("round")).unwrap();
        assert_eq!(follow(&root.join("round/and")).1.len(), MOST_LINKS);
        assert_eq!(follow(Path::new("../../a/../b")).0, Path::new("../../b"));
    }
}
