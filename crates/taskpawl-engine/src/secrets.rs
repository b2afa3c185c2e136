//! Secrets of a call: inserted into its arguments at the last moment, and removed from everything that it returns.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use taskpawl_manager::Redact;
use taskpawl_model::expr::with_secret_variables;
use taskpawl_model::value::{
    SecretPiece, mentions_secret, secret_names, secret_pieces, variable_names, variable_of_reference,
};
use taskpawl_tools::{
    OutputFilter, Redactor, RegisteredTool, SecretError, SecretSource, StreamFilter, ToolError, Vault,
    filter_file,
};

use crate::faults::{self, Fault};
use crate::variables::VariableValues;

/// Prefix of the environment variables through which a shell receives secret values.
const VARIABLE: &str = "TASKPAWL_SECRET_";

/// Beginning of the placeholder for a removed secret.
const MARK: &str = "[redacted:";

/// Removes secrets from everything that people and agents report. Only uses values that are already available at that
/// time: commands that print a secret are not run for it.
#[derive(Debug)]
pub(crate) struct Reported(Arc<dyn SecretSource>);

impl Reported {
    pub(crate) fn by(secrets: &Arc<dyn SecretSource>) -> Arc<dyn Redact> {
        Arc::new(Self(Arc::clone(secrets)))
    }
}

impl Redact for Reported {
    fn redact(&self, value: &mut Value) {
        redactor(&Vault::open(Arc::clone(&self.0))).value(value);
    }
}

/// Returns a redactor for all secrets that a vault knows.
pub(crate) fn redactor(vault: &Vault) -> Redactor {
    if faults::is_on(Fault::KeepSecrets) { Redactor::off() } else { vault.redactor() }
}

/// Returns arguments with the values of the secrets and environment variables that they name.
///
/// # Errors
/// A secret or a variable is not available, or the arguments do not match the schema of the tool. The message never contains a secret
/// value.
pub(crate) async fn fill(
    (vault, variables): (&Vault, &VariableValues),
    tool: &RegisteredTool,
    written: &Map<String, Value>,
    args: Value,
) -> Result<Value, ToolError> {
    let name = &tool.spec().name;
    refuse_marks(name, written, &args)?;
    if !any_text(&args, &mentions_secret) {
        return Ok(args);
    }
    let names = args.as_object().map(secret_names).unwrap_or_default();
    let mut values = values(vault, names).await?;
    for variable in args.as_object().map(variable_names).unwrap_or_default() {
        let Some(value) = variables.get(&variable) else { return Err(missing_variable(name, &variable)) };
        values.insert(format!("env.{variable}"), value.to_owned());
    }
    let filled = Filler { tool: name, values: &values }.args(args.clone())?;
    if let Err(error) = tool.check_call(&filled) {
        // A schema error quotes the beginning of the value. The check without secrets yields a precise message for
        // faults of other fields; otherwise the quoted value has to go.
        tool.check_call(&args)?;
        return Err(without_value(error));
    }
    Ok(filled)
}

/// The names of the secrets in a shell command, by the number of their environment variable.
#[derive(Debug)]
pub(crate) struct ShellNames(Vec<String>);

impl ShellNames {
    /// Returns those of the command in the arguments of a call; none for tools other than `shell`.
    pub(crate) fn of(tool: &RegisteredTool, args: &Value) -> Self {
        let command = args["command"].as_str().filter(|_| tool.spec().name == "shell");
        let command = command.filter(|command| mentions_secret(command)).unwrap_or_default();
        let mut names = Vec::new();
        for piece in secret_pieces(command).unwrap_or_default() {
            if let SecretPiece::Secret(name) = piece {
                number_of(&mut names, name);
            }
        }
        Self(names)
    }

    /// Returns a text about the command, with the variables replaced by the notation of its author.
    pub(crate) fn as_written(&self, mut text: String) -> String {
        // In descending order, because `TASKPAWL_SECRET_1` is a prefix of `TASKPAWL_SECRET_10`.
        for (number, name) in self.0.iter().enumerate().rev() {
            let (variable, written) = (format!("{VARIABLE}{number}"), as_author(name));
            for form in [format!("'\"${{{variable}}}\"'"), format!("${{{variable}}}"), variable] {
                text = text.replace(&form, &written);
            }
        }
        text
    }
}

/// Returns a reference as its author writes it.
fn as_author(name: &str) -> String {
    match variable_of_reference(name) {
        Some(_) => format!("${{{{ {name} }}}}"),
        None => format!("${{secret:{name}}}"),
    }
}

/// Returns the position of a name in `names`, and appends it if it is new.
fn number_of(names: &mut Vec<String>, name: &str) -> usize {
    let position = names.iter().position(|known| known == name);
    position.unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

async fn values(vault: &Vault, names: BTreeSet<String>) -> Result<BTreeMap<String, String>, ToolError> {
    if names.is_empty() || vault.knows(&names) {
        return Ok(vault.resolve(&names)?);
    }
    // A secret source may run a command, which would block the run loop.
    let vault = vault.clone();
    match tokio::task::spawn_blocking(move || vault.resolve(&names)).await {
        Ok(values) => Ok(values?),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime shut down before the task started.
            Err(_) => Err(ToolError::Cancelled { result: None }),
        },
    }
}

fn missing_variable(tool: &str, name: &str) -> ToolError {
    let problem = format!(
        "needs the environment variable `{name}`, which this run does not have; pass it with `--env {name}`"
    );
    ToolError::InvalidArgs { tool: tool.to_owned(), field: "args".to_owned(), problem }
}

fn without_value(error: ToolError) -> ToolError {
    let ToolError::InvalidArgs { tool, field, .. } = error else { return error };
    ToolError::InvalidArgs { tool, field, problem: "is invalid with the secret inserted".to_owned() }
}

/// Refuses to write a text with placeholders into a file: an agent that edits a result it has read would replace the
/// secrets in the file. Allowed if the author of the plan wrote the placeholder.
fn refuse_marks(tool: &str, written: &Map<String, Value>, args: &Value) -> Result<(), ToolError> {
    let has_mark = |text: &str| text.contains(MARK);
    let writes = matches!(tool, "write_file" | "edit_file");
    if !writes || !any_text(args, &has_mark) || written.values().any(|value| any_text(value, &has_mark)) {
        return Ok(());
    }
    let problem = "contains text with a removed secret, and would be written without it";
    Err(ToolError::InvalidArgs {
        tool: tool.to_owned(),
        field: "args".to_owned(),
        problem: problem.to_owned(),
    })
}

fn any_text(value: &Value, is_so: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is_so(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, is_so)),
        Value::Object(map) => map.values().any(|item| any_text(item, is_so)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Replaces secret names by their values.
struct Filler<'a> {
    tool: &'a str,
    values: &'a BTreeMap<String, String>,
}

impl Filler<'_> {
    fn args(&self, args: Value) -> Result<Value, ToolError> {
        let Value::Object(mut args) = args else { return Ok(args) };
        let mut variables = Map::new();
        for (name, value) in &mut args {
            *value = match value.as_str().filter(|_| self.tool == "shell" && name == "command") {
                Some(command) => Value::String(self.command(command, &mut variables)?),
                None => self.value(value.take(), name)?,
            };
        }
        if !variables.is_empty()
            && let Value::Object(env) = args.entry("env").or_insert_with(|| Map::new().into())
        {
            env.extend(variables);
        }
        Ok(Value::Object(args))
    }

    /// Passes secrets to a shell through environment variables: the shell does not interpret their contents, and they
    /// do not appear in the list of processes.
    fn command(&self, command: &str, variables: &mut Map<String, Value>) -> Result<String, ToolError> {
        let mut names: Vec<String> = Vec::new();
        let variable = |name: &str| format!("{VARIABLE}{}", number_of(&mut names, name));
        let command = with_secret_variables(command, variable)
            .map_err(|error| self.invalid("command", error.fault.to_string()))?;
        for (number, name) in names.iter().enumerate() {
            variables.insert(format!("{VARIABLE}{number}"), self.value_of(name).into());
        }
        Ok(command)
    }

    fn value(&self, value: Value, field: &str) -> Result<Value, ToolError> {
        Ok(match value {
            Value::String(text) if mentions_secret(&text) => Value::String(self.text(&text, field)?),
            Value::Array(items) => {
                Value::Array(items.into_iter().map(|item| self.value(item, field)).collect::<Result<_, _>>()?)
            }
            Value::Object(map) => {
                let filled = map.into_iter().map(|(key, item)| Ok((key, self.value(item, field)?)));
                Value::Object(filled.collect::<Result<_, ToolError>>()?)
            }
            value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => value,
        })
    }

    fn text(&self, text: &str, field: &str) -> Result<String, ToolError> {
        let pieces =
            secret_pieces(text).map_err(|fault| self.invalid(field, format!("is invalid: {fault}")))?;
        let filled = pieces.into_iter().map(|piece| match piece {
            SecretPiece::Text(text) => text,
            SecretPiece::Secret(name) => self.value_of(name),
        });
        Ok(filled.collect())
    }

    fn value_of(&self, name: &str) -> &str {
        self.values.get(name).expect("BUG: a secret was not asked for")
    }

    fn invalid(&self, field: &str, problem: String) -> ToolError {
        ToolError::InvalidArgs { tool: self.tool.to_owned(), field: format!("args.{field}"), problem }
    }
}

/// Removes secrets from the output files of a start whose program could not be waited for. `stem` is the common path
/// without `.stdout` and `.stderr`.
pub(crate) fn clean_output(stem: &Path, filter: &dyn OutputFilter) -> io::Result<()> {
    if faults::is_on(Fault::KeepSecrets) {
        return Ok(());
    }
    for stream in ["stdout", "stderr"] {
        let mut path = stem.as_os_str().to_owned();
        path.push(format!(".{stream}"));
        match fs::metadata(&path) {
            Ok(data) if data.len() > 0 => drop(filter_file(path.as_ref(), filter)?),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Filter that replaces a whole file by a note.
#[derive(Debug)]
pub(crate) struct Removed(String);

impl Removed {
    /// Returns the filter for output whose secrets are unknown, so that nothing of it may be kept.
    pub(crate) fn because(error: &SecretError) -> Self {
        Self(format!("[removed: its run was killed before it ended, and {error}]\n"))
    }
}

impl OutputFilter for Removed {
    fn begin(&self) -> Box<dyn StreamFilter> {
        Box::new(Note(self.0.clone()))
    }
}

struct Note(String);

impl StreamFilter for Note {
    fn push(&mut self, _: &[u8], _: &mut Vec<u8>) {}

    fn finish(self: Box<Self>, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.as_bytes());
    }
}
