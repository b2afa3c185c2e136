//! What can go wrong with a store. What the rules refuse is no error of the store: see [`Refusal`](taskpawl_model::Refusal).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taskpawl_model::{Hint, ViewError};

/// A store could not be read or written.
///
/// It is cheap to clone: all requests of a batch that failed get the same error.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refused.
    #[error("failed to {action} `{}`", .path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: Arc<io::Error>,
    },
    /// There is no room. Nothing of the batch was written.
    #[error("no space left to write `{}`", .path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file or its directory may not be written.
    #[error("`{}` cannot be written", .path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("`{}` is not a taskpawl store", .path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// The file is what a command printed with `--json`.
    #[error("`{}` is what a command printed with `--json`, and no store", .path.display())]
    Printed {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged; it was left as it is.
    #[error("`{}` is damaged: {detail}", .path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        detail: String,
        /// Whether such a store has a log, the `-wal` file beside it.
        has_log: bool,
    },
    /// The file was written by a later version; it was left as it is.
    #[error("`{}` has schema version {found}, this taskpawl knows versions up to {known}", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: i64,
        /// The latest version that this program knows.
        known: i64,
    },
    /// Another program holds the file for longer than is usual.
    #[error("`{}` is held by another program", .path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The file was deleted or replaced while it was open.
    #[error("`{}` was replaced while it was open", .path.display())]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// SQLite failed in another way.
    #[error("failed to use `{}`", .path.display())]
    Sql {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: Arc<rusqlite::Error>,
    },
    /// A commit failed at a point from which nobody knows whether it is durable. Whoever opens the store again sees either all of it
    /// or nothing.
    #[error("`{}` may or may not have taken the change", .path.display())]
    InDoubt {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: Arc<StoreError>,
    },
    /// An earlier commit through this handle failed, and nobody knows how much of it is durable.
    #[error("`{}` is closed after a failed write", .path.display())]
    Poisoned {
        /// The file.
        path: PathBuf,
    },
    /// The call is over through which the plan was reached.
    #[error("the call is over through which this plan was reached")]
    CallOver,
    /// The plan of the call that this runs in cannot be reached.
    #[error("failed to reach the plan of this call: {problem}")]
    OutOfReach {
        /// Why.
        problem: String,
    },
    /// What was to be done with a view failed for a reason outside the store.
    #[error("failed to look at the store")]
    View {
        /// Why.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
}

impl StoreError {
    /// Returns what the reader can do about it.
    pub fn hint(&self) -> Hint {
        if let Self::Printed { .. } = self {
            return Hint::default()
                .command("export tasks PATH")
                .text(" writes a file that can be one; ")
                .command("import PATH")
                .text(" takes these tasks into a store");
        }
        self.plain_hint().into()
    }

    fn plain_hint(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check that the path exists and may be read and written",
            Self::Full { .. } => "make room on the disk and try again: nothing was half written",
            Self::ReadOnly { .. } => "check the permissions of the file and of its directory",
            Self::NotAStore { .. } => "name another file with `--store`",
            Self::Corrupt { has_log: false, .. } => {
                "keep it, and put a copy of an earlier state in its place, or name another with `--store`"
            }
            Self::Corrupt { has_log: true, .. } => {
                "keep it, with the `-wal` file beside it if there is one, and put a copy of an earlier state in its place, or name another with `--store`"
            }
            Self::Newer { .. } => {
                "use the taskpawl that wrote it, or a newer one; a copy of what it was before may stand beside it, named `.bak`"
            }
            Self::InDoubt { .. } => {
                "see what the store says before you repeat the command, and check the disk"
            }
            Self::Busy { .. } => "find the program that has it open and end its transaction",
            Self::Replaced { .. } | Self::Poisoned { .. } => "open the store again",
            Self::Sql { .. } => {
                "try again; if it stays, keep a copy of the file and name another store with `--store`"
            }
            Self::CallOver => "what a call leaves running has no part in its plan any more",
            Self::OutOfReach { .. } => {
                "the descriptor that `TASKPAWL_FD` names has to be passed on by every program in between"
            }
            Self::Printed { .. } | Self::View { .. } => "see the cause",
        }
    }

    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            Self::Full { path }
        } else if source.kind() == io::ErrorKind::ReadOnlyFilesystem {
            Self::ReadOnly { path }
        } else {
            Self::Io { action, path, source: Arc::new(source) }
        }
    }

    pub(crate) fn sql(path: &Path, source: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let path = path.to_owned();
        if let rusqlite::Error::FromSqlConversionFailure(column, _, cause) = &source {
            let detail = format!("column {column} cannot be understood: {cause}");
            return Self::Corrupt { path, detail, has_log: true };
        }
        match source.sqlite_error_code() {
            Some(Code::NotADatabase) => Self::NotAStore { path },
            Some(Code::DatabaseCorrupt) => Self::Corrupt { path, detail: source.to_string(), has_log: true },
            Some(Code::DiskFull) => Self::Full { path },
            Some(Code::ReadOnly) => Self::ReadOnly { path },
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => Self::Busy { path },
            _ => Self::Sql { path, source: Arc::new(source) },
        }
    }

    /// Takes an error of the store back out of the error of a view.
    pub(crate) fn from_view(error: ViewError) -> Self {
        match error.0.downcast::<Self>() {
            Ok(own) => *own,
            Err(other) => Self::View { source: Arc::from(other) },
        }
    }

    /// Returns the error of a commit whose end nobody knows.
    pub(crate) fn in_doubt(path: &Path, cause: Self) -> Self {
        Self::InDoubt { path: path.to_owned(), source: Arc::new(cause) }
    }
}

impl From<StoreError> for ViewError {
    fn from(error: StoreError) -> Self {
        Self(Box::new(error))
    }
}
