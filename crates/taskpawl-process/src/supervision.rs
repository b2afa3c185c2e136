use std::path::PathBuf;

/// The process that starts and owns programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Supervision {
    /// The host program itself, executed a second time. Its `main` has to begin with
    /// [`child_entry`](crate::child_entry).
    #[default]
    Reexecute,
    /// This program: a `taskpawl` of the same version, or a program whose `main` begins with
    /// [`child_entry`](crate::child_entry). A name without a slash is looked up in `PATH`.
    Binary(PathBuf),
    /// No supervisor: the host process starts programs itself. Programs survive if the host is killed, and
    /// processes that leave their process group survive the end of their call.
    Off,
}
