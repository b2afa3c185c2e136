use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::environment::Environment;
use crate::error::SpawnError;
use crate::located::Located;
use crate::program::Program;

/// A validated spawn spec: everything that is needed to start a program, except its streams. It can be sent
/// to a supervisor.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SpawnSpec<'a> {
    pub(crate) file: OsString,
    pub(crate) argv: Vec<&'a OsStr>,
    /// Absolute, like the file, because the supervisor may have another working directory.
    pub(crate) cwd: OsString,
    /// True if `variables` are changes to the environment of the process that starts the program.
    pub(crate) inherits: bool,
    /// A value sets a variable, `None` removes it.
    pub(crate) variables: Vec<(&'a OsStr, Option<&'a OsStr>)>,
    /// The variable for the number of the passed descriptor.
    pub(crate) handover: Option<&'a OsStr>,
}

impl<'a> SpawnSpec<'a> {
    /// Refuses specs that no system could execute.
    pub(crate) fn of(program: &'a Program, located: Located) -> Result<Self, SpawnError> {
        let (inherits, variables) = match &program.environment {
            Environment::Inherit(changes) => {
                (true, changes.iter().map(|(name, value)| (name.as_os_str(), value.as_deref())).collect())
            }
            Environment::Exactly(variables) => {
                let some = |(name, value): (&'a OsString, &'a OsString)| (name.as_os_str(), Some(&**value));
                (false, variables.iter().map(some).collect())
            }
        };
        let argv = program.argv.iter().map(OsStr::new).collect();
        let (file, cwd) = (located.file.into_os_string(), located.cwd.into_os_string());
        let handover = program.handover.as_ref().map(|handover| OsStr::new(handover.variable));
        let spec = Self { file, argv, cwd, inherits, variables, handover };
        if spec.has_nul() {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "nul byte found in provided data");
            return Err(SpawnError::Start { program: spec.file.into(), source });
        }
        Ok(spec)
    }

    fn has_nul(&self) -> bool {
        let variables = self.variables.iter().flat_map(|(name, value)| [Some(*name), *value]).flatten();
        let mut texts = self.argv.iter().copied().chain(variables);
        texts.any(|text| text.as_bytes().contains(&0))
    }

    /// Returns a command that leads its own process group, without its streams.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.file);
        let (name, arguments) = self.argv.split_first().map_or((OsStr::new(""), &[][..]), |(n, a)| (*n, a));
        command.arg0(name).args(arguments).current_dir(&self.cwd).process_group(0);
        if !self.inherits {
            command.env_clear();
        }
        for (name, value) in &self.variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// Converts an error of the system call to an error that names the cause.
    pub(crate) fn refusal(&self, source: io::Error) -> SpawnError {
        let program = Path::new(&self.file).to_owned();
        if source.kind() == io::ErrorKind::PermissionDenied {
            // A directory that the child cannot enter causes the same error as a file that it cannot execute.
            return match rustix::fs::access(Path::new(&self.cwd), rustix::fs::Access::EXEC_OK) {
                Ok(()) => SpawnError::NotExecutable { program },
                Err(_) => SpawnError::WorkingDirectory { path: Path::new(&self.cwd).to_owned() },
            };
        }
        SpawnError::Start { program, source }
    }
}
