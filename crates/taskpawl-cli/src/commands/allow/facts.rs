//! Places in a project that name a host: lock files, settings of registries, and the remotes of git.

use std::fs;
use std::path::Path;

use taskpawl::model::value::Timestamp;
use taskpawl::tools::NamedGrant;

use super::asked::Asked;
use crate::files::read_bytes;

/// Files that name the hosts which the tools of a project reach.
const FILES: &[&str] = &[
    ".cargo/config.toml",
    ".git/config",
    ".gitmodules",
    ".npmrc",
    ".yarnrc.yml",
    "Cargo.lock",
    "Cargo.toml",
    "Gemfile",
    "Gemfile.lock",
    "Pipfile",
    "Pipfile.lock",
    "build.gradle",
    "build.gradle.kts",
    "bun.lock",
    "composer.json",
    "composer.lock",
    "deno.lock",
    "flake.lock",
    "go.mod",
    "go.sum",
    "gradle/wrapper/gradle-wrapper.properties",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "package.json",
    "pdm.lock",
    "pip.conf",
    "pnpm-lock.yaml",
    "poetry.lock",
    "pom.xml",
    "pyproject.toml",
    "requirements.txt",
    "settings.gradle",
    "settings.gradle.kts",
    "uv.lock",
    "uv.toml",
    "yarn.lock",
];

/// The most bytes of a file that are searched.
const MAX_BYTES: u64 = 32 << 20;

/// Adds to each host the place in the project that names it.
///
/// A file that changed after the start of the run counts for nothing: a program of the run may have written the name itself. The time of
/// the last change of the inode tells, which a program cannot set.
pub(super) fn add_places(asked: &mut [Asked], root: &Path, started_at: Timestamp) {
    for file in FILES {
        let open: Vec<&mut Asked> = asked.iter_mut().filter(|asked| asked.place.is_none()).collect();
        if open.is_empty() {
            return;
        }
        let Some(text) = unchanged_since(&root.join(file), started_at) else { continue };
        for asked in open {
            let NamedGrant::Host(host) = &asked.grant else { continue };
            asked.place = line_with(&text, host.name()).map(|line| format!("{file} line {line}"));
        }
    }
}

/// Reads a file that has not changed since a time.
fn unchanged_since(path: &Path, time: Timestamp) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;

    let metadata = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    let is_older = metadata.ctime() < time.timestamp() && metadata.len() <= MAX_BYTES;
    if !is_older {
        return None;
    }
    let bytes = read_bytes(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the number of the first line that has a name, and not as a part of a longer name.
fn line_with(text: &str, name: &str) -> Option<usize> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let has = |line: &str| {
        let line = line.to_ascii_lowercase();
        line.match_indices(name).any(|(at, _)| {
            let (before, after) = (line[..at].chars().next_back(), line[at + name.len()..].chars().next());
            !before.is_some_and(is_of_name) && !after.is_some_and(is_of_name)
        })
    };
    text.lines().position(has).map(|line| line + 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_name_is_found_as_a_whole_alone() {
        let text = "x\n\"resolved\": \"https://Packages.Example.org/a.tgz\"\n";
        assert_eq!(line_with(text, "packages.example.org"), Some(2));
        for other in ["example.org", "packages.example", "ackages.example.org", "packages.example.org.evil"] {
            assert_eq!(line_with(text, other), None, "{other}");
        }
        assert_eq!(line_with("git@git.example.org:a/b", "git.example.org"), Some(1));
    }

    #[test]
    fn a_file_that_a_program_of_the_run_wrote_is_no_fact() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("yarn.lock"), "a.example\n").unwrap();
        let asked = |hours: i64| {
            let mut asked = [Asked {
                grant: "host:a.example".parse().unwrap(),
                tasks: BTreeSet::default(),
                programs: BTreeSet::default(),
                calls: 1,
                plans: BTreeSet::default(),
                place: None,
            }];
            let now = chrono::Utc::now() + chrono::TimeDelta::hours(hours);
            add_places(&mut asked, directory.path(), now);
            asked[0].place.clone()
        };
        assert_eq!((asked(1), asked(-1)), (Some("yarn.lock line 1".to_owned()), None));
    }
}
