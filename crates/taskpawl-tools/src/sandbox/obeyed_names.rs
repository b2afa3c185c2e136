//! Names of files that other programs obey without asking, from the list in `obeyed.txt`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::sandbox::names::is_skipped;

/// A file or directory that other programs obey without asking.
#[derive(Debug)]
pub(super) struct ObeyedName {
    /// The path, relative to the directory that it counts in.
    pub(super) path: &'static str,
    /// The first component of the path, in lower case: some file systems ignore case.
    pub(super) beginning: String,
    /// The path in lower case.
    folded: String,
    /// Set if the path counts only directly in a directory that programs may write, because it may be a home directory.
    is_of_home: bool,
}

/// The list, and the rows that begin with each component.
struct Names {
    /// The names of which each is one path.
    all: Vec<ObeyedName>,
    /// The names that stand for every file with an ending, which is their path without the `*`.
    endings: Vec<ObeyedName>,
    by_beginning: HashMap<String, Vec<usize>>,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| {
    let rows = rows(include_str!("obeyed.txt"));
    let (endings, all): (Vec<ObeyedName>, Vec<ObeyedName>) =
        rows.map(|row| name(row.0, row.1)).partition(|name| name.path.starts_with('*'));
    let mut by_beginning: HashMap<String, Vec<usize>> = HashMap::new();
    for (number, name) in all.iter().enumerate() {
        by_beginning.entry(name.beginning.clone()).or_default().push(number);
    }
    Names { all, endings, by_beginning }
});

/// Returns place, path and reason of each row.
fn rows(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| {
        let (what, why) = line.split_once(" -- ").expect("BUG: a row without a reason");
        let (place, path) = what.split_once(' ').expect("BUG: a row without a place");
        (place, path, why)
    })
}

fn name(place: &'static str, path: &'static str) -> ObeyedName {
    let folded = path.to_lowercase();
    let beginning = folded.split_once('/').map_or(folded.as_str(), |(first, _)| first).to_owned();
    ObeyedName { path, beginning, folded, is_of_home: place == "home" }
}

/// Returns the names that are obeyed in every directory of a project; with `is_root` also those of a home directory.
pub(super) fn all(is_root: bool) -> impl Iterator<Item = &'static ObeyedName> {
    NAMES.all.iter().filter(move |name| is_root || !name.is_of_home)
}

/// Returns the names whose first component equals `component`, without regard to case.
fn beginning_with(component: &str) -> impl Iterator<Item = &'static ObeyedName> {
    let numbers = NAMES.by_beginning.get(&component.to_lowercase());
    numbers.into_iter().flatten().filter_map(|number| NAMES.all.get(*number))
}

/// Returns whether a file name has an ending that other programs obey in every directory. Case is ignored.
pub(super) fn has_obeyed_ending(file_name: &str) -> bool {
    let folded = file_name.to_lowercase();
    NAMES.endings.iter().any(|name| folded.ends_with(&name.folded[1..]))
}

/// Returns the first component of an obeyed name, in lower case, if it equals `component`.
pub(super) fn beginning(component: &str, is_root: bool) -> Option<&'static str> {
    let mut names = beginning_with(component).filter(|name| is_root || !name.is_of_home);
    names.next().map(|name| name.beginning.as_str())
}

/// Returns the part of a path, relative to the root of a project, that other programs obey in every directory. Case is ignored.
pub(super) fn part_of(path: &Path) -> Option<PathBuf> {
    let components: Vec<String> =
        path.components().map(|name| name.as_os_str().to_string_lossy().to_lowercase()).collect();
    let looked_at = components.iter().position(|name| is_skipped(name)).unwrap_or(components.len());
    let ends = components.iter().take(looked_at + 1).enumerate().filter_map(|(from, first)| {
        if has_obeyed_ending(first) {
            return Some(from + 1);
        }
        let rest = components.get(from..)?;
        let names = beginning_with(first).filter(|name| !name.is_of_home);
        let counts = names.filter_map(|name| {
            let parts = name.folded.split('/');
            let same = rest.iter().zip(parts.clone()).filter(|(name, part)| name == part).count();
            (same == parts.count()).then_some(same)
        });
        Some(from + counts.min()?)
    });
    ends.min().map(|end| path.components().take(end).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_of_the_list_has_a_place_a_path_and_a_reason() {
        let mut seen = BTreeSet::new();
        for (place, path, why) in rows(include_str!("obeyed.txt")) {
            assert!(["any", "home"].contains(&place), "{path}");
            assert!(seen.insert(path), "{path} twice");
            let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
            assert!(path.split('/').all(is_plain) && !path.contains(' '), "{path}");
            assert!(why.split(' ').count() > 2 && !why.ends_with('.'), "{path}: {why}");
        }
        assert!(seen.len() > 300, "{}", seen.len());
    }

    #[test]
    fn files_that_shells_agents_editors_and_build_tools_obey_are_listed() {
        let (project, home): (Vec<_>, Vec<_>) = NAMES.all.iter().partition(|name| !name.is_of_home);
        let [project, home] =
            [project, home].map(|names| names.iter().map(|name| name.path).collect::<Vec<_>>());
        for name in
            [".bash_login", ".bash_logout", ".profile", ".zshenv", ".zlogin", ".zlogout", ".gitconfig"]
        {
            assert!(home.contains(&name), "{name}");
        }
        for name in [".envrc", ".vscode", ".idea", ".mcp.json", "CLAUDE.md", ".cargo/config.toml", ".npmrc"] {
            assert!(project.contains(&name), "{name}");
        }
    }

    #[test]
    fn a_path_in_any_directory_is_recognized_by_its_name() {
        let part = |path: &str| part_of(Path::new(path)).map(|part| part.to_str().unwrap().to_owned());
        for (path, of) in [
            (".mcp.json", ".mcp.json"),
            ("a/b/.VSCode/tasks.json", "a/b/.VSCode"),
            ("a/.claude/commands/x.md", "a/.claude/commands"),
            ("a/.taskpawl/project", "a/.taskpawl"),
            ("docs/Claude.md", "docs/Claude.md"),
            ("a/.cargo/config.toml", "a/.cargo/config.toml"),
            (".hg/hgrc", ".hg/hgrc"),
            ("a/My.code-Workspace", "a/My.code-Workspace"),
            (".githooks/pre-push", ".githooks"),
        ] {
            assert_eq!(part(path).as_deref(), Some(of));
        }
        for path in [
            "",
            "code-workspace",
            "a/.claude",
            "a/.claude/notes.md",
            "a/.bashrc",
            "node_modules/x/.vscode/tasks.json",
        ] {
            assert_eq!(part(path), None, "{path}");
        }
    }

    #[test]
    fn names_of_a_home_count_only_in_a_root() {
        assert_eq!(beginning(".Zlogin", true), Some(".zlogin"));
        assert_eq!(beginning(".zlogin", false), None);
        assert_eq!(beginning("CLAUDE.MD", false), Some("claude.md"));
        assert_eq!(beginning("notes", true), None);
    }
}
