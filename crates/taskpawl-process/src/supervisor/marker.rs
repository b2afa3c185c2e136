//! The name of a supervisor among the processes of the machine.

/// The name of a supervisor process, passed as `argv[0]`, or as the first argument inside `bwrap`.
pub(crate) const MARKER: &str = "taskpawl-supervisor";
