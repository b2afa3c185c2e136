//! Errors of locating a store.

use std::path::PathBuf;

use taskpawl_model::advice::Hint;

use super::unsuitable::UnsuitableRoot;
use crate::StoreError;

/// The store of a project could not be located or created.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// No project was found, and no store was named.
    #[error("`{}` is not in a taskpawl project", .directory.display())]
    NoProject {
        /// The directory where the upward search started.
        directory: PathBuf,
    },
    /// No project was found, and none is made without being asked for.
    #[error(
        "`{}` is not in a taskpawl project, and none is made {} without being asked for: {reason}",
        .directory.display(),
        if .root == .directory { "there".to_owned() } else { format!("at `{}`", .root.display()) }
    )]
    NotMade {
        /// The directory where the upward search started.
        directory: PathBuf,
        /// The directory that would have become a project: `directory`, or the git root above it.
        root: PathBuf,
        /// The reason.
        reason: UnsuitableRoot,
    },
    /// Another process made the directory a project with another store.
    #[error("another process made `{}` a project in the meantime", .project.display())]
    MadeElsewhere {
        /// The directory of the project.
        project: PathBuf,
    },
    /// Neither `HOME` nor `XDG_STATE_HOME` is an absolute path.
    #[error("there is no state directory: neither `HOME` nor `XDG_STATE_HOME` is set to an absolute path")]
    NoStateDirectory,
    /// The state directory is inside the project, where tools of a run could modify the store.
    #[error("the state directory `{}` is inside the project `{}`", .state.display(), .project.display())]
    StateInsideProject {
        /// The state directory.
        state: PathBuf,
        /// The root of the project.
        project: PathBuf,
    },
    /// Two directories have the same project id, and the user has to decide whether they share their tasks.
    #[error("`{}` is a copy of the project `{}`", .copy.display(), .original.display())]
    Copied {
        /// The recorded directory, which still exists.
        original: PathBuf,
        /// The other directory with the same id.
        copy: PathBuf,
    },
    /// The path of a project is not UTF-8 and therefore cannot be recorded in JSON.
    #[error("the path of the project `{}` is not UTF-8", .directory.display())]
    NotUtf8 {
        /// The directory with that path.
        directory: PathBuf,
    },
    /// The project file is invalid. It was not changed.
    #[error("`{}` does not describe a project: {detail}", .path.display())]
    BadProjectFile {
        /// The invalid file.
        path: PathBuf,
        /// Describes the fault.
        detail: String,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] StoreError),
}

impl PlacementError {
    /// Returns advice for the user.
    pub fn hint(&self) -> Hint {
        match self {
            Self::NoProject { .. } | Self::NotMade { .. } => {
                Hint::new("run ").command("init").text(" in the project directory, or use `--store PATH`")
            }
            Self::MadeElsewhere { .. } => "repeat the command".into(),
            Self::NoStateDirectory => "set `HOME`, or use `--store PATH`".into(),
            Self::StateInsideProject { .. } => {
                Hint::new("use a path outside the project with ").command("init --store PATH")
            }
            Self::Copied { .. } => Hint::new("share the tasks of the original with ")
                .command("init --share")
                .text(", or start without them with ")
                .command("init --new"),
            Self::NotUtf8 { .. } => "rename the directory or its parent".into(),
            Self::BadProjectFile { .. } => "fix the file, or use `--store PATH`".into(),
            Self::File(error) => error.hint(),
        }
    }
}
