//! Errors of a store. A command that the rules refuse is not one of them: see
//! [`Refusal`](taskpawl_model::command::Refusal).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use taskpawl_model::advice::Hint;
use taskpawl_model::view::ViewError;

/// A failure to read or write a store.
///
/// Cheap to clone, because all requests of a failed batch get the same error.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A system call failed.
    #[error("failed to {action} `{}`", .path.display())]
    Io {
        /// The attempted action, as a verb phrase such as "open".
        action: &'static str,
        /// The affected file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: Arc<io::Error>,
    },
    /// The disk or the quota is full. Nothing of the batch was written.
    #[error("no space left to write `{}`", .path.display())]
    Full {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// The file or its directory is not writable.
    #[error("`{}` is read-only", .path.display())]
    ReadOnly {
        /// The file that could not be written.
        path: PathBuf,
    },
    /// The file exists, but is not a store.
    #[error("`{}` is not a taskpawl store", .path.display())]
    NotAStore {
        /// The file of another format.
        path: PathBuf,
    },
    /// The file is not a backup: it is a store, or something else.
    #[error("`{}` is not a backup of a taskpawl store", .path.display())]
    NotABackup {
        /// The file.
        path: PathBuf,
    },
    /// The file contains the output of a command with `--json`, not a store.
    #[error("`{}` is the output of a command with `--json`, not a store", .path.display())]
    Printed {
        /// The file with the printed output.
        path: PathBuf,
    },
    /// The file is damaged. It was not changed.
    #[error("`{}` is damaged: {detail}", .path.display())]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// Describes the damage.
        detail: String,
        /// True if this kind of store has a write-ahead log, the `-wal` file beside it.
        has_log: bool,
    },
    /// The file was written by a later version of this program. It was not changed.
    #[error("`{}` has schema version {found}, this taskpawl supports versions up to {known}", .path.display())]
    Newer {
        /// The file of the later version.
        path: PathBuf,
        /// The schema version of the file.
        found: i64,
        /// The latest schema version that this program supports.
        known: i64,
    },
    /// Another program kept the file locked for longer than the busy timeout.
    #[error("`{}` is locked by another program", .path.display())]
    Busy {
        /// The locked file.
        path: PathBuf,
    },
    /// The file was deleted or replaced while it was open.
    #[error("`{}` was replaced while it was open", .path.display())]
    Replaced {
        /// The path that now has another file, or none.
        path: PathBuf,
    },
    /// The store is a SQLite database, and this program is built without them.
    #[error("`{}` is a SQLite store, and this program is built without them", .path.display())]
    NoSqlite {
        /// The database file.
        path: PathBuf,
    },
    /// SQLite failed for another reason.
    #[error("failed to use `{}`", .path.display())]
    Sql {
        /// The database file.
        path: PathBuf,
        /// The error of SQLite.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A commit failed at a point where its durability is unknown. After the store is opened again, either
    /// all of the batch is visible or nothing.
    #[error("`{}` may or may not contain the change", .path.display())]
    InDoubt {
        /// The file of the store.
        path: PathBuf,
        /// The error of the failed commit.
        source: Arc<StoreError>,
    },
    /// An earlier commit through this handle failed, and its durability is unknown. Open the store again to
    /// continue.
    #[error("`{}` is closed after a failed write", .path.display())]
    Poisoned {
        /// The file of the store.
        path: PathBuf,
    },
    /// The call through which the plan was reached has ended.
    #[error("the call that gave access to this plan has ended")]
    CallOver,
    /// The plan of the surrounding call cannot be reached.
    #[error("failed to reach the plan of this call: {problem}")]
    OutOfReach {
        /// Describes the failure.
        problem: String,
    },
    /// The callback of a read failed for a reason outside the store.
    #[error("failed to read the store")]
    View {
        /// The error of the callback.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
}

impl StoreError {
    /// Returns advice for the user.
    pub fn hint(&self) -> Hint {
        if let Self::Printed { .. } = self {
            return Hint::default()
                .command("export tasks PATH")
                .text(" writes a valid store file; ")
                .command("import PATH")
                .text(" imports these tasks into a store");
        }
        self.plain_hint().into()
    }

    fn plain_hint(&self) -> &'static str {
        match self {
            Self::Io { source, .. } if lacks_descriptors(source) => {
                "raise the limit of open files, see `ulimit -n`, or run fewer calls at once with `--jobs`"
            }
            Self::Io { .. } => "check that the path exists and is readable and writable",
            Self::Full { .. } => "free disk space and retry: no partial write happened",
            Self::ReadOnly { .. } => "check the permissions of the file and of its directory",
            Self::NotAStore { .. } => "use another file with `--store`",
            Self::NotABackup { .. } => "name a file that `taskpawl backup` has written",
            Self::Corrupt { has_log: false, .. } => {
                "keep it and restore a backup in its place, or use another store with `--store`"
            }
            Self::Corrupt { has_log: true, .. } => {
                "keep it and its `-wal` file, if any, and restore a backup in its place, or use another store with `--store`"
            }
            Self::Newer { .. } => {
                "use the taskpawl that wrote it, or a newer one; a backup may be next to it, named `.bak`"
            }
            Self::InDoubt { .. } => "check the disk, and check the store before you repeat the command",
            Self::NoSqlite { .. } => {
                "build it with the feature `sqlite` of `taskpawl`, or use `:memory:` or `json:PATH`"
            }
            Self::Busy { .. } => "find the program that locks it and end its transaction",
            Self::Replaced { .. } | Self::Poisoned { .. } => "open the store again",
            Self::Sql { .. } => {
                "retry; if it fails again, keep a copy of the file and use another store with `--store`"
            }
            Self::CallOver => "programs that outlive their call have no access to its plan",
            Self::OutOfReach { .. } => {
                "every program in between must pass on the descriptor in `TASKPAWL_FD`"
            }
            Self::Printed { .. } | Self::View { .. } => "check the cause",
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

    #[cfg(feature = "sqlite")]
    pub(crate) fn sql(path: &Path, source: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let path = path.to_owned();
        if let rusqlite::Error::FromSqlConversionFailure(column, _, cause) = &source {
            let detail = format!("invalid column {column}: {cause}");
            return Self::Corrupt { path, detail, has_log: true };
        }
        match source.sqlite_error_code() {
            Some(Code::NotADatabase) => Self::NotAStore { path },
            Some(Code::DatabaseCorrupt) => Self::Corrupt { path, detail: source.to_string(), has_log: true },
            Some(Code::DiskFull) => Self::Full { path },
            Some(Code::ReadOnly) => Self::ReadOnly { path },
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => Self::Busy { path },
            // SQLite does not tell the reason; the system gives it at another attempt.
            Some(Code::CannotOpen) => match std::fs::File::open(&path) {
                Ok(_) => Self::Sql { path, source: Arc::new(source) },
                Err(error) => Self::io("open", &path, error),
            },
            _ => Self::Sql { path, source: Arc::new(source) },
        }
    }

    /// Extracts a store error from the error of a view, or wraps the foreign error.
    pub(crate) fn from_view(error: ViewError) -> Self {
        match error.0.downcast::<Self>() {
            Ok(own) => *own,
            Err(other) => Self::View { source: Arc::from(other) },
        }
    }

    /// Returns the error of a commit whose durability is unknown.
    pub(crate) fn in_doubt(path: &Path, cause: Self) -> Self {
        Self::InDoubt { path: path.to_owned(), source: Arc::new(cause) }
    }
}

/// Returns whether this process or the machine has too many open files.
fn lacks_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

impl From<StoreError> for ViewError {
    fn from(error: StoreError) -> Self {
        Self(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_descriptors_is_named_with_its_limit() {
        let error = StoreError::io("open", Path::new("tasks.db"), Errno::MFILE.into());
        assert!(error.hint().to_string().contains("ulimit"), "{error:?}");
        let error = StoreError::io("open", Path::new("tasks.db"), Errno::NOENT.into());
        assert!(error.hint().to_string().contains("path exists"), "{error:?}");
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn a_database_that_cannot_be_opened_has_the_error_of_the_system() {
        let path = Path::new("/nowhere/tasks.db");
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
        let error = rusqlite::Connection::open_with_flags(path, flags).unwrap_err();
        let error = StoreError::sql(path, error);
        assert!(matches!(&error, StoreError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound));
    }
}
