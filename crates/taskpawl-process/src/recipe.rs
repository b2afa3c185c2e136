use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::environment::Environment;
use crate::error::SpawnError;
use crate::locate::locate;
use crate::program::Program;

/// Everything that starting a program takes but its three streams: found, checked, and fit to be sent elsewhere.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Recipe<'a> {
    pub(crate) file: OsString,
    pub(crate) argv: Vec<&'a OsStr>,
    /// Absolute, as is the file: who starts the program may be somewhere else.
    pub(crate) cwd: OsString,
    /// Whether the variables are changes to those of the process that starts the program.
    pub(crate) inherits: bool,
    /// A value sets a variable, `None` removes it.
    pub(crate) variables: Vec<(&'a OsStr, Option<&'a OsStr>)>,
    /// The variable that tells the number of the descriptor that it inherits beside its streams.
    pub(crate) handover: Option<&'a OsStr>,
}

impl<'a> Recipe<'a> {
    /// Finds the program and refuses what no system would start.
    pub(crate) fn of(program: &'a Program) -> Result<Self, SpawnError> {
        let name = program.argv.first().ok_or(SpawnError::EmptyCommand)?;
        if !program.cwd.is_dir() {
            return Err(SpawnError::WorkingDirectory { path: program.cwd.clone() });
        }
        let cwd = std::path::absolute(&program.cwd)
            .map_err(|_| SpawnError::WorkingDirectory { path: program.cwd.clone() })?;
        let file = locate(name, &cwd, program.environment.path())?;
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
        let (file, cwd) = (file.into_os_string(), cwd.into_os_string());
        let handover = program.handover.as_ref().map(|handover| OsStr::new(handover.variable));
        let recipe = Self { file, argv, cwd, inherits, variables, handover };
        if recipe.has_nul() {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "nul byte found in provided data");
            return Err(SpawnError::Start { program: recipe.file.into(), source });
        }
        Ok(recipe)
    }

    fn has_nul(&self) -> bool {
        let variables = self.variables.iter().flat_map(|(name, value)| [Some(*name), *value]).flatten();
        let mut texts = self.argv.iter().copied().chain(variables);
        texts.any(|text| text.as_bytes().contains(&0))
    }

    /// Returns the command that leads a process group of its own; its streams are still to be set.
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

    /// Returns what it means that the system did not start it.
    pub(crate) fn refusal(&self, source: io::Error) -> SpawnError {
        let program = Path::new(&self.file).to_owned();
        if source.kind() == io::ErrorKind::PermissionDenied {
            // Entering the directory is refused in the child and looks the same from here.
            return match rustix::fs::access(Path::new(&self.cwd), rustix::fs::Access::EXEC_OK) {
                Ok(()) => SpawnError::NotExecutable { program },
                Err(_) => SpawnError::WorkingDirectory { path: Path::new(&self.cwd).to_owned() },
            };
        }
        SpawnError::Start { program, source }
    }
}
