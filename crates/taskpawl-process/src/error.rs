use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::bounded::Unfinished;
use crate::sandbox::Refusal;

/// A failure to start a program or to keep its output.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// This program is built without starting programs.
    #[error(
        "this program is built without starting programs; build it with the feature `programs` of `taskpawl`"
    )]
    NotBuilt,
    /// The command has no words.
    #[error("the command is empty; its first word must be a program")]
    EmptyCommand,
    /// No directory of `PATH` contains the program.
    #[error("program `{program}` is not in PATH (`{path}`); install it or use its full path")]
    NotInPath {
        /// The program, as named by the command.
        program: String,
        /// The `PATH` that was searched.
        path: String,
    },
    /// The program exists only in directories that sandboxed programs can write, but it would run outside the
    /// sandbox.
    #[error("`{program}` is writable by programs of plans, so it is not run outside the sandbox; install it elsewhere", program = program.display())]
    Planted {
        /// The file that was found there.
        program: PathBuf,
    },
    /// The named file does not exist.
    #[error("program `{program}` does not exist")]
    NotFound {
        /// The path that was tried.
        program: PathBuf,
    },
    /// The file exists, but is not executable.
    #[error("program `{program}` is not executable; run `chmod +x` on it")]
    NotExecutable {
        /// The file without permission to execute.
        program: PathBuf,
    },
    /// The working directory does not exist or cannot be entered.
    #[error("working directory `{path}` is not an accessible directory")]
    WorkingDirectory {
        /// The working directory.
        path: PathBuf,
    },
    /// The program was not found before the deadline or the cancellation. A file system may not answer.
    #[error("program `{program}` was not started: {}", match why {
        Unfinished::Cancelled => "its lookup was cancelled",
        Unfinished::TimedOut => "its lookup took too long, so a file system may not respond",
    })]
    NotFoundInTime {
        /// The program, as the command names it.
        program: String,
        /// The reason why the search was abandoned.
        why: Unfinished,
    },
    /// An output file, or the file for standard input, cannot be created. The program was not started.
    #[error("failed to use file `{path}` for the program's input or output")]
    File {
        /// The file that could not be created.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The output of the program could not be stored.
    #[error("failed to save the output of the program to `{path}`")]
    Output {
        /// The output file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The program exists, but the system failed to execute it.
    #[error(
        "failed to start program `{program}`{}",
        if is_format(source) { "; a script must begin with `#!` and an existing interpreter" } else { "" }
    )]
    Start {
        /// The file that was executed.
        program: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Only a supervisor can pass a descriptor to a program; this run has none.
    #[error(
        "plan access of programs needs a supervisor, and this run has none; call `taskpawl::child_entry();` first in the host's `main`, or set a `taskpawl` program with `Builder::supervision`"
    )]
    HandoverUnsupervised,
    /// The descriptor for the program could not be duplicated.
    #[error("failed to pass a descriptor to the program")]
    Handover {
        /// The error of the operating system.
        source: io::Error,
    },
    /// The host program has no supervisor, and running without one was not requested.
    #[error(
        "programs need a supervisor; call `taskpawl::child_entry();` first in the host's `main`, or set a `taskpawl` program with `Builder::supervision`"
    )]
    NoSupervisor,
    /// The supervisor could not be started.
    #[error("failed to start `{program}` as the supervisor of programs")]
    SupervisorStart {
        /// The program that should be the supervisor.
        program: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The started program does not work as a supervisor.
    #[error("`{program}` does not work as the supervisor of programs: {problem}")]
    SupervisorRefused {
        /// The program that should be the supervisor.
        program: PathBuf,
        /// Describes its unexpected behavior.
        problem: String,
    },
    /// The sandbox cannot be enforced on this machine. The program was not started.
    #[error(
        "the sandbox of the program cannot be enforced: {missing}; {advice}, or run programs with all your permissions with `--sandbox=off`"
    )]
    Sandbox {
        /// The missing feature.
        missing: String,
        /// Advice for making it available.
        advice: String,
    },
    /// The supervisor was killed while the program ran, so the status of the program is unknown.
    #[error(
        "the supervisor of the run was killed while the program ran; the result of the program is unknown"
    )]
    SupervisorLost,
    /// The run of the program is over.
    #[error("the run has ended with all its programs")]
    Closed,
}

impl SpawnError {
    #[cfg(feature = "programs")]
    /// Returns whether the program was not started because the process or the machine is out of descriptors.
    pub(crate) fn lacks_descriptors(&self) -> bool {
        let (Self::File { source, .. }
        | Self::Start { source, .. }
        | Self::Handover { source }
        | Self::SupervisorStart { source, .. }) = self
        else {
            return false;
        };
        let errno = rustix::io::Errno::from_io_error(source);
        errno == Some(rustix::io::Errno::MFILE) || errno == Some(rustix::io::Errno::NFILE)
    }
}

impl From<Refusal> for SpawnError {
    fn from(Refusal { missing, advice, .. }: Refusal) -> Self {
        Self::Sandbox { missing, advice }
    }
}

/// Returns whether the file is a script without a usable interpreter: NOENT means that its interpreter is
/// missing, NOEXEC that it names none. The file itself exists; `SpawnSpec::of` has checked that.
fn is_format(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    errno == Some(rustix::io::Errno::NOEXEC) || errno == Some(rustix::io::Errno::NOENT)
}
