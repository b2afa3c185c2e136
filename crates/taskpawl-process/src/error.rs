use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::sandbox::Refusal;

/// Why a program could not be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The command has no words.
    #[error("the command is empty; its first word has to name a program")]
    EmptyCommand,
    /// No directory of `PATH` holds the program.
    #[error("program `{program}` is in no directory of PATH (`{path}`); install it or name it with its path")]
    NotInPath {
        /// The program, as the command names it.
        program: String,
        /// The `PATH` that was searched.
        path: String,
    },
    /// The program is only where programs inside the sandbox may have put it, and it would run outside.
    #[error("`{program}` is where programs of plans may write, so it is not run outside of the sandbox; install it elsewhere", program = program.display())]
    Planted {
        /// Its file.
        program: PathBuf,
    },
    /// There is no file of this name.
    #[error("program `{program}` does not exist")]
    NotFound {
        /// Where the program was looked for.
        program: PathBuf,
    },
    /// There is a file, but it cannot be executed.
    #[error("program `{program}` may not be executed; `chmod +x` makes it a program")]
    NotExecutable {
        /// The file.
        program: PathBuf,
    },
    /// The directory in which the program shall run cannot be entered.
    #[error("working directory `{path}` is no directory that can be entered")]
    WorkingDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// An output file, or the file that serves as standard input, cannot be made; the program was not started.
    #[error("failed to use file `{path}` for the program's input or output")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What the program printed cannot be kept.
    #[error("failed to keep in `{path}` what the program printed")]
    Output {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The program is there, but the system does not start it.
    #[error(
        "failed to start program `{program}`{}",
        if is_format(source) { "; a script has to begin with `#!` and an interpreter that exists" } else { "" }
    )]
    Start {
        /// The file.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Without a supervisor nothing is handed over to a program but its streams.
    #[error(
        "a program gets its plan access from a supervisor, and this run does without; let the host's `main` begin with \
         `taskpawl::child_entry();`, or name a `taskpawl` program by `Builder::supervision`"
    )]
    HandoverUnsupervised,
    /// What the program is to inherit beside its streams cannot be passed on.
    #[error("failed to hand a descriptor over to the program")]
    Handover {
        /// What the system said.
        source: io::Error,
    },
    /// The program in whose process this is has no supervisor for programs and was not told to do without.
    #[error(
        "no program is started without a supervisor; let the host's `main` begin with `taskpawl::child_entry();`, or name a \
         `taskpawl` program by `Builder::supervision`"
    )]
    NoSupervisor,
    /// The supervisor could not be started.
    #[error("failed to start `{program}` as the supervisor of programs")]
    SupervisorStart {
        /// The program that should be the supervisor.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What was started as the supervisor is none.
    #[error("`{program}` does not work as the supervisor of programs: {problem}")]
    SupervisorRefused {
        /// The program that should be the supervisor.
        program: PathBuf,
        /// What it did instead.
        problem: String,
    },
    /// The sandbox that the program should run in cannot be enforced here, so it was not started.
    #[error(
        "the sandbox of the program cannot be enforced: {missing}; {advice}, or let programs do whatever you may by `--sandbox=off`"
    )]
    Sandbox {
        /// What is missing.
        missing: String,
        /// How to get it.
        advice: String,
    },
    /// The supervisor was ended from outside while the program ran. Nobody knows how far the program came.
    #[error("the supervisor of the run was killed while the program ran; nobody knows how the program ended")]
    SupervisorLost,
    /// The run that the program belongs to is over.
    #[error("the run is over, and with it all of its programs")]
    Closed,
}

impl SpawnError {
    /// Returns whether the program was not started because this process, or the machine, has no descriptors left.
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

/// A file that is there and still "not found" is a script whose interpreter is not; one of no known format is a
/// script that names none.
fn is_format(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    errno == Some(rustix::io::Errno::NOEXEC) || errno == Some(rustix::io::Errno::NOENT)
}
