//! Working directories of programs, as rules see them.

use std::path::Path;

/// Directory in which a program may run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Directory {
    /// Path relative to the root of the project; empty for the root.
    Within(String),
    /// Directory that may be outside of the project; no rule covers it.
    Elsewhere,
}

impl Directory {
    /// Returns the root of the project.
    pub(crate) fn root() -> Self {
        Self::Within(String::new())
    }

    /// Parses a path relative to the root of the project.
    ///
    /// `..` counts as leaving the project even after a name. After a link it leads elsewhere than the text suggests,
    /// and the policy does not read the file system.
    pub(crate) fn of(path: &str) -> Self {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let is_within = !path.starts_with(['/', '~']) && !parts.contains(&"..") && !path.contains("${{");
        if is_within { Self::Within(parts.join("/")) } else { Self::Elsewhere }
    }

    /// Parses a path that may also be absolute beneath one of the paths of the root.
    pub(crate) fn beneath(path: &str, roots: [&Path; 2]) -> Self {
        let mut absolute = roots.into_iter().filter(|root| root.is_absolute());
        let inner = absolute.find_map(|root| Path::new(path).strip_prefix(root).ok()?.to_str());
        Self::of(inner.unwrap_or(path))
    }

    /// Returns the directory that a path leads to from here.
    pub(crate) fn join(&self, path: &str) -> Self {
        match (self, Self::of(path)) {
            (Self::Within(base), Self::Within(inner)) if base.is_empty() => Self::Within(inner),
            (Self::Within(base), Self::Within(inner)) if inner.is_empty() => Self::Within(base.clone()),
            (Self::Within(base), Self::Within(inner)) => Self::Within(format!("{base}/{inner}")),
            (Self::Elsewhere, _) | (_, Self::Elsewhere) => Self::Elsewhere,
        }
    }

    /// Returns the path relative to the root of the project, if the directory is within it.
    pub(crate) fn within(&self) -> Option<&str> {
        match self {
            Self::Within(path) => Some(path),
            Self::Elsewhere => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_may_leave_the_project_is_elsewhere() {
        let within = |path: &str| Directory::of(path).within().map(str::to_owned);
        for (path, expected) in [("", ""), (".", ""), ("./a//b/", "a/b"), ("..a", "..a")] {
            assert_eq!(within(path).as_deref(), Some(expected), "{path}");
        }
        for path in ["/", "/etc", "~", "~/x", "..", "a/..", "a/../b", "${{ item }}", "a/${{ item }}"] {
            assert_eq!(within(path), None, "{path}");
        }
    }

    #[test]
    fn an_absolute_path_beneath_the_root_is_within() {
        let roots = [Path::new("/work/link"), Path::new("/work/project")];
        let within = |path: &str| Directory::beneath(path, roots).within().map(str::to_owned);
        assert_eq!(within("/work/project/crates/a").as_deref(), Some("crates/a"));
        assert_eq!(within("/work/link").as_deref(), Some(""));
        assert_eq!(within("/work/project/../x"), None);
        assert_eq!(within("/work/projects"), None);
        // Without a known root no absolute path counts as inner.
        assert_eq!(Directory::beneath("/a", [Path::new(""); 2]), Directory::Elsewhere);
    }

    #[test]
    fn joined_paths_stay_within() {
        let base = Directory::of("a");
        assert_eq!(base.join("b"), Directory::of("a/b"));
        assert_eq!(base.join("."), base);
        assert_eq!(Directory::root().join("b"), Directory::of("b"));
        assert_eq!(base.join(".."), Directory::Elsewhere);
        assert_eq!(Directory::Elsewhere.join("b"), Directory::Elsewhere);
    }
}
