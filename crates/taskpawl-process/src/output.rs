//! Output of a program.

use std::path::PathBuf;

/// The output files of a program.
#[derive(Clone, Debug)]
pub struct OutputFiles {
    /// The file for standard output.
    pub stdout: PathBuf,
    /// The file for standard error. Must differ from `stdout`.
    pub stderr: PathBuf,
}

/// The captured output of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// The whole output, or its head and tail with a line between them that states the omitted bytes. Invalid
    /// UTF-8 is replaced by U+FFFD.
    pub text: String,
    /// The length of the output in bytes.
    pub bytes: u64,
    /// True if `text` is only head and tail.
    pub truncated: bool,
    /// The file with the whole output; `None` if there was no output.
    pub file: Option<PathBuf>,
}
