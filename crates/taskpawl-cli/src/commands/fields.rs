//! Flags for the fields of a task, shared by all commands that create or update tasks.

use clap::builder::NonEmptyStringValueParser;
use serde_json::{Value, json};
use taskpawl::model::command::NewTask;
use taskpawl::model::plan::{PlanTask, task_from_json};
use taskpawl::model::value::Map;

use crate::app::App;
use crate::commands::{calls, parse};
use crate::error::CliError;

/// Fields that have a flag of their own, and `--set` for all others.
#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the comments are help texts")]
#[command(next_help_heading = "Fields")]
pub(crate) struct FieldArgs {
    /// Description of the work, in any length
    #[arg(long, short, value_name = "TEXT")]
    description: Option<String>,
    /// Priority [default: medium]
    #[arg(long, short, value_name = "PRIORITY", value_parser = parse::priority())]
    priority: Option<taskpawl::model::task::Priority>,
    /// Due date: 2026-05-31 or 2026-05-31T12:00:00Z
    #[arg(long, value_name = "DATE")]
    due: Option<String>,
    /// Assignee: the actor for the task, or `person` for people alone
    #[arg(long, value_name = "NAME")]
    assignee: Option<String>,
    /// A word to select by; may be given several times
    #[arg(long = "label", short, value_name = "LABEL", value_delimiter = ',')]
    labels: Vec<String>,
    /// Condition on its dependencies for its start [default: all_done]
    #[arg(long, value_name = "TRIGGER", value_parser = parse::trigger())]
    trigger: Option<taskpawl::model::task::Trigger>,
    /// Order of its calls: one after the other, or all at once [default: sequential]
    #[arg(long, value_name = "MODE", value_parser = parse::mode())]
    mode: Option<taskpawl::model::task::Mode>,
    /// The longest that each attempt may take, such as 5m
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// Expected duration
    #[arg(long, value_name = "DURATION")]
    estimate: Option<String>,
    /// A join that ends by itself
    #[arg(long, value_name = "BOOL", hide_possible_values = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    milestone: Option<bool>,
    /// A value for its context: KEY=VALUE, the value JSON or text; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse::pairs)]
    context: Vec<Map>,
    /// Metadata of your own: KEY=VALUE or a JSON object; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse::pairs)]
    metadata: Vec<Map>,
    /// Any field by its name in plan files, as in retry='{"attempts": 3}'; may be given several times
    #[arg(long, value_name = "FIELD=JSON", value_parser = parse::field)]
    set: Vec<(String, Value)>,
}

impl FieldArgs {
    /// Returns the given fields under their names in plan files.
    pub(super) fn to_map(&self) -> Result<Map, CliError> {
        let merged = |what: &str, maps: &[Map]| {
            let all = maps.iter().flatten().map(|(key, value)| (key.clone(), value.clone()));
            let map = parse::once(what, all)?;
            Ok::<_, CliError>(if maps.is_empty() { Value::Null } else { Value::Object(map) })
        };
        let given = [
            ("description", json!(self.description)),
            ("priority", json!(self.priority)),
            ("dueDate", json!(self.due)),
            ("assignee", json!(self.assignee)),
            ("labels", if self.labels.is_empty() { Value::Null } else { json!(self.labels) }),
            ("trigger", json!(self.trigger)),
            ("mode", json!(self.mode)),
            ("timeout", json!(self.timeout)),
            ("estimate", json!(self.estimate)),
            ("milestone", json!(self.milestone)),
            ("context", merged("context value", &self.context)?),
            ("metadata", merged("metadata value", &self.metadata)?),
        ];
        let given = given.into_iter().filter(|(_, value)| !value.is_null());
        let given = given.map(|(name, value)| (name.to_owned(), value));
        // `--set` can repeat a field that has a flag: `once` refuses the duplicate.
        parse::once("field", given.chain(self.set.iter().cloned()))
    }
}

/// Further fields of a new task.
#[derive(Debug, clap::Args)]
pub(crate) struct NewTaskArgs {
    /// Its id; without one it gets one from its name
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// A task that it depends on; may be given several times, or as a list with commas
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    needs: Vec<String>,
    /// The command that does the work: one call of the tool `shell`
    #[arg(long, value_name = "COMMAND", conflicts_with = "tool")]
    run: Option<String>,
    /// The tool that does the work: one call, with --args
    #[arg(long, value_name = "TOOL", value_parser = NonEmptyStringValueParser::new())]
    tool: Option<String>,
    /// The arguments of --tool, as a JSON object
    #[arg(long, value_name = "JSON", value_parser = parse::object, requires = "tool", conflicts_with = "run")]
    args: Option<Map>,
    #[command(flatten)]
    fields: FieldArgs,
}

impl NewTaskArgs {
    /// Returns the task that the flags describe, after checking its tool calls.
    pub(super) fn to_task(&self, app: &App, name: &str, parent: Option<&str>) -> Result<NewTask, CliError> {
        let args = self.args.clone().unwrap_or_default();
        let own = [
            ("name", json!(name)),
            ("id", json!(self.id)),
            ("run", json!(self.run)),
            ("call", json!(self.tool.as_ref().map(|tool| json!({"toolName": tool, "args": args})))),
        ];
        let own = own.into_iter().filter(|(_, value)| !value.is_null());
        let own = own.map(|(field, value)| (field.to_owned(), value));
        let fields = parse::once("field", own.chain(self.fields.to_map()?))?;
        let PlanTask { id, spec, context, calls, needs_outside, .. } =
            task_from_json(&Value::Object(fields)).map_err(taskpawl::Error::from)?;
        if !calls.is_empty() {
            calls::check_all(app, &calls)?;
        }
        let dependencies = self.needs.iter().cloned();
        let dependencies = dependencies.chain(needs_outside.iter().map(ToString::to_string)).collect();
        let parent = parent.map(str::to_owned);
        let (id, spec) = (id.unwrap_or_default(), spec.into_inner());
        Ok(NewTask { id, spec, context, calls, dependencies, parent, plan: None })
    }
}
