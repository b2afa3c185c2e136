//! The directory that becomes a project without being asked about. This is the only place that decides it.

use std::fs;
use std::path::{Path, PathBuf};

use super::PlacementError;
use super::discover;
use super::unsuitable::UnsuitableRoot;

/// Maximum number of directories that are searched for git repositories. The rule spares people surprises and is no
/// protection, so a huge directory need not be searched to its end.
const MAX_SEARCHED: usize = 5_000;

/// The kind of a directory that can become a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RootKind {
    /// The root of a git repository or of a git worktree.
    GitRoot,
    /// The working directory, outside of all git repositories.
    WorkingDirectory,
}

impl std::fmt::Display for RootKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::GitRoot => "the root of a git repository",
            Self::WorkingDirectory => "the working directory",
        })
    }
}

/// The directories that a command may make projects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedRoots {
    /// Git roots, and working directories outside of git repositories.
    All,
    /// Git roots alone: an agent's host starts its servers in directories that nobody chose.
    GitRoots,
}

/// A directory that can become a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) directory: PathBuf,
    pub(super) kind: RootKind,
}

/// Returns the candidate for `directory`, which is the git root at or above it, otherwise the directory itself.
pub(super) fn candidate(directory: &Path) -> Candidate {
    match directory.ancestors().find(|above| above.join(".git").exists()) {
        Some(root) => Candidate { directory: root.to_owned(), kind: RootKind::GitRoot },
        None => Candidate { directory: directory.to_owned(), kind: RootKind::WorkingDirectory },
    }
}

/// The user who runs this program.
#[derive(Debug, Clone, Copy)]
pub(super) struct User<'a> {
    /// The home directory, with resolved links.
    pub(super) home: Option<&'a Path>,
    /// The user id of the process.
    pub(super) id: u32,
}

/// Returns the reason why the candidate is unsuitable, or `None` if it may become a project.
///
/// # Errors
/// The directory cannot be read, or a project file above it is damaged.
pub(super) fn unsuitable(
    candidate: &Candidate,
    allowed: AllowedRoots,
    user: User<'_>,
) -> Result<Option<UnsuitableRoot>, PlacementError> {
    let directory = candidate.directory.as_path();
    if candidate.kind != RootKind::GitRoot && allowed == AllowedRoots::GitRoots {
        return Ok(Some(UnsuitableRoot::NoRepository));
    }
    if directory.parent().is_none() {
        return Ok(Some(UnsuitableRoot::FileSystemRoot));
    }
    match user.home {
        Some(home) if home == directory => return Ok(Some(UnsuitableRoot::Home)),
        Some(home) if home.starts_with(directory) => return Ok(Some(UnsuitableRoot::AboveHome)),
        Some(_) | None => {}
    }
    if let Some(found) = discover::find(directory)? {
        return Ok(Some(UnsuitableRoot::BelowProject { project: found.project }));
    }
    if let Some(reason) = reason_of_owner(directory, user.id)? {
        return Ok(Some(reason));
    }
    let repository = repository_below(directory, candidate.kind);
    Ok(repository.map(|repository| UnsuitableRoot::ContainsRepository { repository }))
}

#[cfg(unix)]
fn reason_of_owner(directory: &Path, user: u32) -> Result<Option<UnsuitableRoot>, PlacementError> {
    use std::os::unix::fs::MetadataExt as _;

    let data = fs::metadata(directory).map_err(|error| discover::unreadable(directory, error))?;
    Ok(if data.uid() != user {
        Some(UnsuitableRoot::OtherOwner)
    } else if data.mode() & 0o002 != 0 {
        Some(UnsuitableRoot::WorldWritable)
    } else {
        None
    })
}

#[cfg(not(unix))]
fn reason_of_owner(_: &Path, _: u32) -> Result<Option<UnsuitableRoot>, PlacementError> {
    Ok(None)
}

/// Returns the first git repository one or two levels below. Below a git root only whole repositories count:
/// submodules and worktrees, which have a `.git` file, belong to the repository around them.
fn repository_below(directory: &Path, kind: RootKind) -> Option<PathBuf> {
    let is_repository = |path: &Path| match kind {
        RootKind::GitRoot => path.join(".git").is_dir(),
        RootKind::WorkingDirectory => path.join(".git").exists(),
    };
    let first: Vec<PathBuf> = directories_in(directory).take(MAX_SEARCHED).collect();
    let second = first.iter().flat_map(|below| directories_in(below)).take(MAX_SEARCHED);
    let found = first.iter().cloned().chain(second).find(|path| is_repository(path))?;
    Some(found.strip_prefix(directory).map(Path::to_owned).unwrap_or(found))
}

/// Returns the directories in a directory. Links are not followed, and unreadable directories count as empty.
fn directories_in(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.filter(|entry| entry.file_name() != ".git").map(|entry| entry.path())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::super::project::ProjectFile;
    use super::*;

    struct World {
        _directory: tempfile::TempDir,
        top: PathBuf,
    }

    impl World {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let top = fs::canonicalize(directory.path()).unwrap();
            let world = Self { _directory: directory, top };
            world.make("home");
            world
        }

        fn make(&self, path: &str) -> PathBuf {
            let path = self.top.join(path);
            fs::create_dir_all(&path).unwrap();
            path
        }

        fn reason_for(&self, path: &str) -> Option<UnsuitableRoot> {
            self.reason_with(path, |id| id)
        }

        fn reason_with(&self, path: &str, user: impl FnOnce(u32) -> u32) -> Option<UnsuitableRoot> {
            let home = self.top.join("home");
            let user = User { home: Some(&home), id: user(fs::metadata(&self.top).unwrap().uid()) };
            unsuitable(&candidate(&self.make(path)), AllowedRoots::All, user).unwrap()
        }
    }

    #[test]
    fn the_git_root_comes_before_the_working_directory() {
        let world = World::new();
        let below = world.make("home/site/src/parts");
        assert_eq!(
            candidate(&below),
            Candidate { directory: below.clone(), kind: RootKind::WorkingDirectory }
        );
        world.make("home/site/.git");
        let root = world.top.join("home/site");
        assert_eq!(candidate(&below), Candidate { directory: root, kind: RootKind::GitRoot });
    }

    #[test]
    fn a_git_root_and_a_plain_directory_are_suitable() {
        let world = World::new();
        world.make("home/site/.git");
        assert_eq!(world.reason_for("home/site/src"), None);
        assert_eq!(world.reason_for("home/notes"), None);
    }

    #[test]
    fn where_git_roots_alone_are_allowed_a_plain_directory_is_unsuitable() {
        let world = World::new();
        world.make("home/site/.git");
        let user = User { home: None, id: fs::metadata(&world.top).unwrap().uid() };
        let reason = |path: PathBuf| unsuitable(&candidate(&path), AllowedRoots::GitRoots, user).unwrap();
        assert_eq!(reason(world.make("home/site/src")), None);
        assert_eq!(reason(world.make("home/notes")), Some(UnsuitableRoot::NoRepository));
    }

    #[test]
    fn the_root_and_the_home_directory_and_those_above_it_are_unsuitable() {
        let world = World::new();
        assert_eq!(world.reason_for("home"), Some(UnsuitableRoot::Home));
        assert_eq!(world.reason_for("."), Some(UnsuitableRoot::AboveHome));
        let root = candidate(Path::new("/"));
        let user = User { home: None, id: 0 };
        assert_eq!(unsuitable(&root, AllowedRoots::All, user).unwrap(), Some(UnsuitableRoot::FileSystemRoot));
    }

    #[test]
    fn a_home_directory_under_git_stays_unsuitable_from_below() {
        let world = World::new();
        world.make("home/.git");
        assert_eq!(world.reason_for("home/notes"), Some(UnsuitableRoot::Home));
    }

    #[test]
    fn a_directory_below_a_project_is_unsuitable() {
        let world = World::new();
        let project = world.make("home/site");
        ProjectFile::new("id-1", &project).unwrap().write(&project).unwrap();
        world.make("home/site/library/.git");
        assert_eq!(world.reason_for("home/site/library"), Some(UnsuitableRoot::BelowProject { project }));
    }

    #[test]
    fn a_directory_that_others_own_or_may_write_to_is_unsuitable() {
        let world = World::new();
        assert_eq!(world.reason_with("home/theirs", |id| id + 1), Some(UnsuitableRoot::OtherOwner));
        let open = world.make("home/open");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(world.reason_for("home/open"), Some(UnsuitableRoot::WorldWritable));
    }

    #[test]
    fn a_directory_with_repositories_up_to_two_levels_below_is_unsuitable() {
        let world = World::new();
        let contains =
            |repository: &str| Some(UnsuitableRoot::ContainsRepository { repository: repository.into() });
        world.make("home/one/site/.git");
        assert_eq!(world.reason_for("home/one"), contains("site"));
        world.make("home/two/work/site/.git");
        assert_eq!(world.reason_for("home/two"), contains("work/site"));
        world.make("home/three/a/b/site/.git");
        assert_eq!(world.reason_for("home/three"), None);
        world.make("home/four/.git");
        world.make("home/four/other/.git");
        assert_eq!(world.reason_for("home/four"), contains("other"));
    }

    #[test]
    fn submodules_and_worktrees_of_a_git_root_belong_to_it() {
        let world = World::new();
        world.make("home/site/.git");
        fs::write(world.make("home/site/library").join(".git"), "gitdir: ../.git/modules/library").unwrap();
        assert_eq!(world.reason_for("home/site"), None);
        fs::write(world.make("home/work/tree").join(".git"), "gitdir: /elsewhere").unwrap();
        assert!(world.reason_for("home/work").is_some());
    }
}
