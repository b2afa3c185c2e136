use std::path::PathBuf;

/// The reason why a directory becomes a project only if a person asks for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnsuitableRoot {
    /// It is in no git repository, and only git roots are allowed.
    #[error("it is in no git repository")]
    NoRepository,
    /// It is `/`.
    #[error("it is the root of the file system")]
    FileSystemRoot,
    /// It is the home directory.
    #[error("it is the home directory")]
    Home,
    /// It contains the home directory.
    #[error("the home directory is below it")]
    AboveHome,
    /// It is below a directory that is a project.
    #[error("it is below the project `{}`", .project.display())]
    BelowProject {
        /// The directory of the project.
        project: PathBuf,
    },
    /// Every user may write to it.
    #[error("every user may write to it")]
    WorldWritable,
    /// It belongs to another user.
    #[error("it belongs to another user")]
    OtherOwner,
    /// It contains git repositories, so it is a place for several projects.
    #[error("it contains the git repository `{}`", .repository.display())]
    ContainsRepository {
        /// The path of the repository, relative to the directory.
        repository: PathBuf,
    },
}
