use crate::policy::directory::Directory;
use crate::policy::start::StartOptions;

/// Command that is understood completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    /// Program and its arguments.
    pub(crate) argv: Vec<String>,
    /// Names of the variables that are set for it.
    pub(crate) variables: Vec<String>,
    /// Set if other variables may be set as well: the `env` of the call is invalid.
    pub(crate) has_unknown_env: bool,
    /// Set if it has standard input: that of the call, or a pipe.
    pub(crate) has_input: bool,
    /// Directories in which it may run, at least one. They are relative to the start of the line until `start` is
    /// applied.
    pub(crate) directories: Vec<Directory>,
}

impl Plain {
    pub(super) fn new(argv: Vec<String>, variables: Vec<String>) -> Self {
        Self {
            argv,
            variables,
            has_unknown_env: false,
            has_input: false,
            directories: vec![Directory::root()],
        }
    }

    /// Adds the start options of the call, which apply to each of its commands.
    pub(super) fn start(&mut self, options: &StartOptions) {
        self.has_input |= options.has_input;
        self.has_unknown_env = options.names.is_none();
        self.variables.extend(options.names.iter().flatten().cloned());
        for directory in &mut self.directories {
            *directory = match directory {
                Directory::Within(path) => options.directory.join(path),
                Directory::Elsewhere => Directory::Elsewhere,
            };
        }
    }
}
