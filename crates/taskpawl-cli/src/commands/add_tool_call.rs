use std::process::ExitCode;

use serde_json::{Value, json};
use taskpawl::model::plan::call_from_json;
use taskpawl::model::value::Map;

use crate::app::App;
use crate::commands::{calls, parse, print};
use crate::error::CliError;

/// Add a tool call to a task. Adds it after the calls that the task has
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_field_names, reason = "`args` is the word for the arguments of a call")]
#[command(after_help = "\
Examples:
  taskpawl add-tool-call build --tool shell --args '{\"command\": \"cargo build\"}'
  taskpawl add-tool-call build --tool exec --args '{\"argv\": [\"make\"]}' --save-as made")]
pub(crate) struct Args {
    /// The task: its id, or the beginning of it
    #[arg(value_name = "ID")]
    task: String,
    /// The tool
    #[arg(long, value_name = "TOOL")]
    tool: String,
    /// Its arguments, as a JSON object
    #[arg(long, value_name = "JSON", value_parser = parse::object)]
    args: Option<Map>,
    /// The id of the call, unique in its task [default: c1, c2, …]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// The name in the context of the task that takes the result
    #[arg(long, value_name = "NAME")]
    save_as: Option<String>,
    /// The longest that it may take, such as 5m
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// Allow another start after an interruption with an unknown outcome
    #[arg(long, value_name = "BOOL", hide_possible_values = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    idempotent: Option<bool>,
    /// Any other field by its name in plan files, as in retry='{"attempts": 3}'; may be given several times
    #[arg(long, value_name = "FIELD=JSON", value_parser = parse::field)]
    set: Vec<(String, Value)>,
}

/// Adds the call to the task, after checking it against the registered tools.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let call = call_from_json(&args.to_json()?).map_err(taskpawl::Error::from)?;
    calls::check_all(app, std::slice::from_ref(&call))?;
    let id = app.manager()?.add_tool_call(&args.task, call)?;
    print::task(app, &id)
}

impl Args {
    /// Returns the call in the form of a plan file, without the fields that were not given.
    fn to_json(&self) -> Result<Value, CliError> {
        let given = [
            ("toolName", json!(self.tool)),
            ("args", json!(self.args)),
            ("id", json!(self.id)),
            ("saveAs", json!(self.save_as)),
            ("timeout", json!(self.timeout)),
            ("idempotent", json!(self.idempotent)),
        ];
        let given = given.into_iter().filter(|(_, value)| !value.is_null());
        let given = given.map(|(name, value)| (name.to_owned(), value));
        // `--set` can repeat a field that has an option of its own: `once` refuses the duplicate instead of
        // picking one.
        parse::once("field", given.chain(self.set.iter().cloned())).map(Value::Object)
    }
}
