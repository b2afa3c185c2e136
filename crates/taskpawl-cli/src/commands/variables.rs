//! Environment variables that a run passes to the programs of its calls.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use taskpawl::RunVariables;
use taskpawl::model::advice::Hint;

use crate::app::App;
use crate::error::CliError;
use crate::files;

/// Flags for environment variables of one run.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Variables of the programs")]
pub(crate) struct VariableArgs {
    /// Pass an environment variable to the programs of `exec` and `shell` calls in this run, with this value or the one that it has here
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Like `--env NAME`, and redact the value in everything that is stored or shown; values under 6 bytes are never redacted
    #[arg(long, value_name = "NAME")]
    secret_env: Vec<String>,
    /// Pass the variables of a file with lines `NAME=VALUE`; redacts those named *KEY*, *TOKEN*, *SECRET*, *PASS* or *_URL, and random values of 16 bytes or more
    #[arg(long, value_name = "FILE")]
    env_file: Vec<PathBuf>,
}

impl VariableArgs {
    /// Returns these options as words of a command line, without values.
    pub(super) fn words(&self) -> impl Iterator<Item = String> {
        let files = self.env_file.iter().map(|file| ["--env-file".to_owned(), file.display().to_string()]);
        let names = self.env.iter().map(|text| ["--env".to_owned(), split(text).0.to_owned()]);
        let secret = self.secret_env.iter().map(|name| ["--secret-env".to_owned(), name.clone()]);
        files.chain(names).chain(secret).flatten()
    }

    /// Returns the variables with their values. Later options win over earlier ones, and names over files.
    pub(super) fn read(&self, app: &App) -> Result<RunVariables, CliError> {
        let mut variables = RunVariables::default();
        for file in &self.env_file {
            read_file(app, file, &mut variables)?;
        }
        for text in &self.env {
            let (name, value) = split(text);
            let value = value.map_or_else(|| outer(app, "--env", name), |value| Ok(value.to_owned()))?;
            variables.set(name, value).map_err(|error| CliError::usage(format!("--env: {error}")))?;
        }
        for name in &self.secret_env {
            if let (name, Some(_)) = split(name) {
                let hint = format!("set the variable first, and pass its name: `--secret-env {name}`");
                return Err(CliError::usage_with(
                    "--secret-env: a value on the command line is visible",
                    hint,
                ));
            }
            let value = outer(app, "--secret-env", name)?;
            let set = variables.set_secret(name, value);
            set.map_err(|error| CliError::usage(format!("--secret-env: {error}")))?;
        }
        Ok(variables)
    }
}

fn split(text: &str) -> (&str, Option<&str>) {
    text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)))
}

fn read_file(app: &App, file: &Path, variables: &mut RunVariables) -> Result<(), CliError> {
    let path = app.environment().directory.join(file);
    let failed = |error: &dyn std::fmt::Display| {
        CliError::usage(format!("failed to read the variables in `{}`: {error}", file.display()))
    };
    let text = files::read_file(&path).map_err(|error| failed(&error))?;
    variables.set_from_file(&text).map_err(|error| failed(&error))
}

/// Returns the value of a variable of this process.
fn outer(app: &App, option: &str, name: &str) -> Result<String, CliError> {
    let all = app.environment().variables();
    let Some(value) = all.get(OsStr::new(name)) else {
        let hint: Hint = format!("set it before the command: `export {name}=…`").into();
        return Err(CliError::usage_with(format!("{option}: `{name}` is not set"), hint));
    };
    let value = value.to_str().map(str::to_owned);
    value.ok_or_else(|| CliError::usage(format!("{option}: the value of `{name}` is not UTF-8")))
}

/// Returns the line at the head of a run that names its variables. `None` if there are none.
pub(super) fn variables_text(variables: &RunVariables) -> Option<String> {
    let (redacted, short): (Vec<&str>, Vec<&str>) =
        (variables.redacted_names().collect(), variables.unredacted_names().collect());
    let name = |name: &str| match (redacted.contains(&name), short.contains(&name)) {
        (true, _) => format!("{name} (redacted)"),
        (false, true) => format!("{name} (too short to be redacted)"),
        (false, false) => name.to_owned(),
    };
    let names: Vec<String> = variables.names().map(name).collect();
    (!names.is_empty()).then(|| format!("variables of this run: {}", names.join(", ")))
}
