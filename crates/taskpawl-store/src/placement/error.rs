//! Why no store can be named.

use std::path::PathBuf;

use taskpawl_model::Hint;

use crate::StoreError;

/// The place of a store could not be found or made.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// There is no project here, and no store was named.
    #[error("`{}` is not in a taskpawl project", .directory.display())]
    NoProject {
        /// Where it was looked for, upwards.
        directory: PathBuf,
    },
    /// Neither `HOME` nor `XDG_STATE_HOME` says where the state of the user is.
    #[error("there is no state directory: neither `HOME` nor `XDG_STATE_HOME` is set to an absolute path")]
    NoStateDirectory,
    /// Tools of the project could write the store.
    #[error("the state directory `{}` lies inside the project `{}`", .state.display(), .project.display())]
    StateInsideProject {
        /// The state directory.
        state: PathBuf,
        /// The project.
        project: PathBuf,
    },
    /// Two directories have the same project id: somebody has to say whether they share their tasks.
    #[error("`{}` is a copy of the project `{}`", .copy.display(), .original.display())]
    Copied {
        /// Where the project was recorded, and still is.
        original: PathBuf,
        /// The directory with the same id.
        copy: PathBuf,
    },
    /// The path of a project is no text, so that it cannot be recorded.
    #[error("the path of the project `{}` is not UTF-8", .directory.display())]
    NotUtf8 {
        /// The directory.
        directory: PathBuf,
    },
    /// The file that marks a project cannot be understood; it was left as it is.
    #[error("`{}` does not describe a project: {detail}", .path.display())]
    BadProjectFile {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        detail: String,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] StoreError),
}

impl PlacementError {
    /// Returns what the reader can do about it.
    pub fn hint(&self) -> Hint {
        match self {
            Self::NoProject { .. } => Hint::new("run ")
                .command("init")
                .text(" in the directory of the project, or name a store with `--store PATH`"),
            Self::NoStateDirectory => "set `HOME`, or name a store with `--store PATH`".into(),
            Self::StateInsideProject { .. } => {
                Hint::new("name a place outside the project with ").command("init --store PATH")
            }
            Self::Copied { .. } => Hint::new("share the tasks of the original with ")
                .command("init --share")
                .text(", or begin without them with ")
                .command("init --new"),
            Self::NotUtf8 { .. } => "rename the directory, or a directory above it".into(),
            Self::BadProjectFile { .. } => "correct the file, or name a store with `--store PATH`".into(),
            Self::File(error) => error.hint(),
        }
    }
}
