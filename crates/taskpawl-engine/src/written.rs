//! Resolves the paths that tasks write, so that different names of one file compare as equal.

use std::path::{Path, PathBuf};

use taskpawl_manager::Paths;
use taskpawl_model::value::paths;
use taskpawl_tools::follow;

/// Resolves symbolic links below the root of a project.
#[derive(Debug)]
pub(crate) struct ProjectPaths {
    root: PathBuf,
}

impl ProjectPaths {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }
}

impl Paths for ProjectPaths {
    fn resolve(&self, writes: &[String]) -> Vec<String> {
        resolve(&self.root, writes)
    }
}

/// Returns the paths in `writes` relative to the project at `root`, with symbolic links resolved. A path that does not
/// exist is resolved as far as it does. A dangling link yields its target. Blocks.
pub(crate) fn resolve(root: &Path, writes: &[String]) -> Vec<String> {
    let real = follow(root).end;
    let resolved = |path: &String| {
        // Uses the fixed prefix of a pattern, and removes `..` textually: the author means the parent in the written
        // path, even if a link leads elsewhere.
        let path = paths::written(std::slice::from_ref(path)).pop().unwrap_or_default();
        let end = follow(&real.join(path)).end;
        match end.strip_prefix(&real) {
            Ok(beneath) => beneath.to_string_lossy().into_owned(),
            Err(_) => paths::outside(&end.to_string_lossy()),
        }
    };
    paths::written(&writes.iter().map(resolved).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn different_names_of_one_path_are_equal() {
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("out/deep")).unwrap();
        symlink("out", at("link")).unwrap();
        symlink("later", at("dangling")).unwrap();
        symlink("../out/deep", at("out/up")).unwrap();
        symlink("loop", at("loop")).unwrap();
        symlink(elsewhere.path(), at("data")).unwrap();
        let one = |path: &str| resolve(root.path(), &[path.to_owned()]).remove(0);
        for path in ["out", "link", "./out", "a/../out", "link/", "link/*.txt"] {
            assert_eq!(one(path), "out", "{path}");
        }
        assert_eq!(one("link/up/new/file"), "out/deep/new/file");
        assert_eq!((one("dangling/x"), one("later/x")), ("later/x".into(), "later/x".into()));
        assert_eq!((one("loop"), one(".")), ("loop".into(), String::new()));
        let data = elsewhere.path().canonicalize().unwrap().join("x");
        assert_eq!(one("data/x"), paths::outside(data.to_str().unwrap()));
        assert_eq!(resolve(root.path(), &["out/deep".into(), "link".into()]), ["out"]);
    }

    #[test]
    fn paths_are_the_same_if_the_project_root_is_a_link() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("real/out")).unwrap();
        symlink("real", dir.path().join("project")).unwrap();
        symlink("out", dir.path().join("real/link")).unwrap();
        assert_eq!(resolve(&dir.path().join("project"), &["link".to_owned()]), ["out"]);
    }
}
