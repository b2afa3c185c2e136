//! Start options of a program: the facts beside its words that determine its effect.

use std::path::Path;

use serde_json::{Map, Value};

use super::directory::Directory;
use crate::tool::ToolCommand;

/// Start options of a program, as its call gives them.
#[derive(Debug)]
pub(crate) struct StartOptions {
    /// Text of its standard input, if known.
    pub(crate) input: Option<String>,
    /// Set if it has standard input, also of unknown text.
    pub(crate) has_input: bool,
    /// Working directory.
    pub(crate) directory: Directory,
    /// Variables that the call sets, with values that are texts.
    pub(crate) variables: Vec<(String, String)>,
    /// Names of all variables that the call sets; `None` if its `env` is invalid.
    pub(crate) names: Option<Vec<String>>,
}

impl StartOptions {
    /// Reads the arguments of `exec` or `shell`.
    ///
    /// A field of the wrong type is never treated as absent: the policy must not depend on a later check of the
    /// arguments.
    pub(crate) fn of_args(args: &Map<String, Value>, roots: [&Path; 2]) -> Self {
        let input = args.get("stdin").filter(|input| !input.is_null());
        let directory = match args.get("cwd") {
            None | Some(Value::Null) => Directory::root(),
            Some(cwd) => cwd.as_str().map_or(Directory::Elsewhere, |cwd| Directory::beneath(cwd, roots)),
        };
        let env = args.get("env");
        let set = env.and_then(Value::as_object);
        let texts = set.into_iter().flatten();
        Self {
            input: input.and_then(Value::as_str).map(str::to_owned),
            has_input: input.is_some_and(|input| input.as_str() != Some("")),
            directory,
            variables: texts
                .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                .collect(),
            names: match (env, set) {
                (None, _) => Some(Vec::new()),
                (Some(_), set) => set.map(|set| set.keys().cloned().collect()),
            },
        }
    }

    /// Reads the command that a tool reports; returns its words and start options.
    pub(crate) fn of_command(command: ToolCommand, roots: [&Path; 2]) -> (Vec<String>, Self) {
        let ToolCommand { argv, input, cwd, env } = command;
        let options = Self {
            has_input: input.as_ref().is_some_and(|input| !input.is_empty()),
            input,
            directory: cwd.map_or_else(Directory::root, |cwd| Directory::beneath(&cwd, roots)),
            names: Some(env.keys().cloned().collect()),
            variables: env.into_iter().collect(),
        };
        (argv, options)
    }
}
