use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use taskpawl::model::advice::Hint;
use taskpawl::model::command::NewTask;
use taskpawl::model::task::{CallSpec, NewCall, Status, TaskSpec, ToolCall};
use taskpawl::model::value::Map;
use taskpawl::store::{Location, PlacementError};
use taskpawl::tools::{CommandTool, Hints, ToolSpec};
use taskpawl::{Observer, RunControl, RunEvent, RunOptions, Taskpawl};

use crate::app::App;
use crate::commands::prompt::Prompt;
use crate::commands::running::Signals;
use crate::commands::sandbox::SandboxArgs;
use crate::commands::{calls, parse};
use crate::error::CliError;
use crate::output::say;
use crate::server_tools;
use crate::servers::private_directory;
use crate::shown::shown;
use crate::text::{Cell, Table, clean, clean_block, style, without_sequences};
use crate::toolbox::ToolSource;

/// List tools, and try one
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A tool of your own is a program with a template of its arguments, in config.toml:

  [tools.pods]
  description = \"Lists the pods of a namespace.\"
  argv = [\"kubectl\", \"get\", \"pods\", \"-n\", \"{namespace}\", [\"-l\", \"{labels}\"], \"-o\", \"json\"]
  parse = \"json\"                # standard output becomes the field json of the result
  readOnly = true               # also idempotent, destructive, openWorld
  timeout = \"30s\"               # also outputBytes = \"2MiB\", concurrency = 4
  [tools.pods.params.namespace]
  description = \"Where to look.\"
  pattern = \"^[a-z0-9-]+$\"
  [tools.pods.params.labels]
  type = \"array\"
  required = false

Each element becomes one argument, whatever a value contains; one whose parameter is missing \
is left out, a list repeats it. An inner list is a group that comes and goes as one. \
docs/tools.md has every field; `taskpawl config path` says where the file is.

The tools of an MCP server are named SERVER/TOOL; docs/mcp.md says more:

  [mcpServers.time]
  command = \"uvx\"
  args = [\"mcp-server-time\"]

Examples:
  taskpawl tools list
  taskpawl tools list --connect
  taskpawl tools show exec
  taskpawl tools call exec --args '{\"argv\": [\"date\"]}'")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List the tools, with where each comes from
    List {
        /// Start every MCP server first, to update the list of its tools
        #[arg(long)]
        connect: bool,
    },
    /// Show what a tool takes and how it behaves
    Show {
        /// The tool
        #[arg(value_name = "TOOL")]
        name: String,
    },
    /// Call a tool once, under the same rules as a run, and print its result; the plan is left alone
    Call {
        /// The tool
        #[arg(value_name = "TOOL")]
        name: String,
        /// Its arguments, as a JSON object
        #[arg(long, value_name = "JSON", value_parser = parse::object)]
        args: Option<Map>,
        #[command(flatten)]
        sandbox: SandboxArgs,
    },
}

/// A tool in the `--json` output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    #[serde(flatten)]
    spec: &'a ToolSpec,
    source: ToolSource,
    /// False if the project that describes the tool is not trusted.
    usable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    argv: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_bytes: Option<u64>,
}

/// The result of a call.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Called<'a> {
    tool: &'a str,
    task_status: Status,
    #[serde(flatten)]
    call: &'a ToolCall,
}

/// Lists, shows or calls tools.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    match &args.what {
        What::List { connect } => list(app, *connect),
        What::Show { name } => show(app, name),
        What::Call { name, args, sandbox } => call(app, name, args.clone().unwrap_or_default(), sandbox),
    }
}

fn all(app: &App) -> Result<Vec<Shown<'_>>, CliError> {
    let toolbox = app.toolbox()?;
    let usable = toolbox.registry().iter().map(|tool| {
        let (spec, described) = (tool.spec(), toolbox.described(&tool.spec().name));
        Shown::of(spec, toolbox.source(&spec.name), true, described)
    });
    let held = toolbox.held().map(|own| {
        let source = ToolSource::File { path: own.file.clone() };
        Shown::of(taskpawl::tools::Tool::spec(&*own.tool), source, false, Some(&own.tool))
    });
    let mut all: Vec<_> = usable.chain(held).collect();
    all.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
    Ok(all)
}

impl<'a> Shown<'a> {
    fn of(spec: &'a ToolSpec, source: ToolSource, usable: bool, described: Option<&CommandTool>) -> Self {
        let argv = described.map(CommandTool::template);
        Self { spec, source, usable, argv, output_bytes: described.and_then(CommandTool::output_bytes) }
    }

    fn from(&self) -> String {
        let from = match &self.source {
            ToolSource::Builtin => "built-in".to_owned(),
            ToolSource::File { path } => path.display().to_string(),
            ToolSource::Server { server, .. } => format!("MCP server {server}"),
        };
        if self.usable { from } else { format!("{from} (not trusted)") }
    }
}

fn list(app: &App, connects: bool) -> Result<ExitCode, CliError> {
    if connects {
        server_tools::connect(app)?;
    }
    let (tools, out) = (all(app)?, app.out());
    if out.is_json {
        return out.data(&tools);
    }
    let mut table = Table::new(3);
    for tool in &tools {
        table.row(vec![
            Cell::styled(&tool.spec.name, style::BOLD),
            Cell::styled(tool.from(), style::DIM),
            Cell::new(hints(tool.spec.hints)),
            Cell::new(&tool.spec.description),
        ]);
    }
    out.print(table.render(out.paint, out.width))
}

fn hints(hints: Hints) -> String {
    let words = [
        (hints.read_only, "read-only"),
        (hints.idempotent && !hints.read_only, "idempotent"),
        (hints.destructive, "destructive"),
        (hints.open_world, "open-world"),
    ];
    words.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect::<Vec<_>>().join(", ")
}

fn show(app: &App, name: &str) -> Result<ExitCode, CliError> {
    let (tools, out) = (all(app)?, app.out());
    let Some(tool) = tools.iter().find(|tool| tool.spec.name == name) else {
        return Err(calls::unknown_tool(app, name)?);
    };
    if out.is_json {
        return out.data(tool);
    }
    let spec = tool.spec;
    let mut text = shown![out.paint.style(style::BOLD, &clean(name)), "\n", clean(&spec.description), "\n"];
    let limit = |value: &Value| value.as_str().map(str::to_owned);
    let timeout = serde_json::to_value(spec).ok().and_then(|spec| limit(&spec["timeout"]));
    let facts = [
        ("source", Some(tool.from())),
        ("hints", Some(hints(spec.hints)).filter(|hints| !hints.is_empty())),
        ("timeout", timeout),
        ("output", tool.output_bytes.map(|bytes| format!("at most {bytes} bytes"))),
        ("argv", tool.argv.as_ref().map(|argv| argv.join(" "))),
    ];
    for (label, fact) in facts.into_iter().filter_map(|(label, fact)| Some((label, fact?))) {
        let _ = writeln!(text, "  {:<8}  {}", label, clean(&fact));
    }
    for (label, schema) in [("arguments", Some(&spec.args_schema)), ("result", spec.result_schema.as_ref())] {
        let Some(fields) = schema.and_then(fields) else { continue };
        let _ = writeln!(text, "{label}");
        text.push(fields.render(out.paint, out.width));
    }
    out.print(text)
}

/// Returns a table with one line per field of a schema.
fn fields(schema: &Value) -> Option<Table> {
    let properties = schema["properties"].as_object().filter(|properties| !properties.is_empty())?;
    let mut table = Table::new(3);
    for (name, field) in properties {
        let is_required =
            schema["required"].as_array().is_some_and(|names| names.iter().any(|it| it == name));
        let default = field.get("default").map(|default| format!("default {default}"));
        table.row(vec![
            Cell::styled(format!("  {name}"), style::BOLD),
            Cell::new(kind(field)),
            Cell::styled(
                if is_required { "required".to_owned() } else { default.unwrap_or_default() },
                style::DIM,
            ),
            Cell::new(described(field)),
        ]);
    }
    Some(table)
}

/// Schema keywords that restrict a value.
const BOUNDS: &[&str] = &[
    "pattern",
    "format",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
];

/// Returns the description of a field with its restrictions.
fn described(field: &Value) -> String {
    let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let bound = |name: &&str| Some(format!("{name} {}", value(field.get(*name)?)));
    let bounds: Vec<String> = BOUNDS.iter().filter_map(bound).collect();
    match (field["description"].as_str().unwrap_or_default(), bounds.join(", ")) {
        (description, bounds) if bounds.is_empty() => description.to_owned(),
        ("", bounds) => bounds,
        (description, bounds) => format!("{description} ({bounds})"),
    }
}

fn kind(field: &Value) -> String {
    let joined = |values: &[Value]| {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        values.iter().map(text).collect::<Vec<_>>().join("|")
    };
    match (&field["type"], &field["enum"], field.get("const")) {
        (_, Value::Array(values), _) => joined(values),
        (_, _, Some(value)) => joined(std::slice::from_ref(value)),
        (Value::String(kind), _, _) => kind.clone(),
        (Value::Array(kinds), _, _) => joined(kinds),
        _ => "any".to_owned(),
    }
}

/// Runs the call as a task in a store in memory, so that policy, limits and sandbox apply as to calls of
/// plans.
fn call(app: &App, name: &str, args: Map, sandbox: &SandboxArgs) -> Result<ExitCode, CliError> {
    calls::require_tool(app, name)?;
    let known = app.toolbox()?.registry().get(name);
    let is_known = known.is_some();
    let spec = CallSpec { tool_name: name.to_owned(), args, ..CallSpec::default() };
    let new = NewCall { id: None, spec: spec.into() };
    // A tool that validates its arguments itself is called with any: its answer is more useful than ours.
    if known.is_some_and(|tool| tool.tool().policy_args().is_none()) {
        calls::check_all(app, std::slice::from_ref(&new))?;
    }
    let root = match app.place() {
        Ok(place) => place.root.clone(),
        // A tool can be tried outside of a project.
        Err(CliError::Placement(PlacementError::NoProject { .. })) => app.environment().directory.clone(),
        Err(error) => return Err(error),
    };
    let files = private_directory("taskpawl-call-").map_err(CliError::Runtime)?;
    let builder = app.builder_at(Location::Memory, &root)?.files(files.path());
    app.warn_of_ignored(sandbox)?;
    let plans = app.held(builder, sandbox)?.open()?;
    let spec = TaskSpec { name: name.to_owned(), ..TaskSpec::default() };
    let task = plans.blocking().create_task(NewTask { spec, calls: vec![new], ..NewTask::default() })?;
    let left = go(app, &plans, task.id.as_str())?;
    let mut task = plans.blocking().get_task(task.id.as_str())?;
    let call = &mut task.metadata.tool_calls[0];
    let servers = app.servers()?;
    if let Some(lack) = servers.lack(name).filter(|_| !is_known && !servers.has(name)) {
        let message = format!("no tool `{name}` is known here: {}", lack.why);
        return Err(CliError::usage_with(message, Hint::from(lack.advice).text(" says more")));
    }
    // The files are deleted when this function returns, so the result must not refer to them.
    call.result = call.result.take().map(|result| whole(result, files.path()));
    print(app, name, &Called { tool: name, task_status: task.status, call })?;
    Ok(ExitCode::from(left))
}

/// Returns the result with the content of its files. A file that cannot be read leaves its part cut.
fn whole(mut result: Value, files: &Path) -> Value {
    let file = |result: &Value, field: &str| {
        let path = PathBuf::from(result[field].as_str()?);
        path.starts_with(files).then_some(path)
    };
    if let Some(path) = file(&result, "resultFile")
        && let Ok(text) = fs::read(path)
        && let Ok(all) = serde_json::from_slice(&text)
    {
        result = all;
    }
    if let Some(path) = file(&result, "outputFile")
        && let Some(fields) = result.as_object_mut()
    {
        for stream in ["stdout", "stderr"] {
            if let Ok(text) = fs::read(path.with_extension(stream)) {
                fields.insert(stream.to_owned(), String::from_utf8_lossy(&text).into());
            }
        }
        fields.insert("truncated".to_owned(), false.into());
        fields.remove("outputFile");
    }
    result
}

/// Prints progress and warnings of the call on standard error.
#[derive(Debug)]
struct Listener;

impl Observer for Listener {
    fn event(&self, event: &RunEvent) {
        if let RunEvent::Progress { message, .. } | RunEvent::Warning { message } = event {
            say(clean(&without_sequences(message)));
        }
    }
}

fn go(app: &App, plans: &Taskpawl, task: &str) -> Result<u8, CliError> {
    let control = RunControl::default();
    let options = RunOptions {
        approver: if app.is_json() { None } else { Prompt::of_person(app, None) },
        observer: Some(Arc::new(Listener)),
        control: control.clone(),
        ..RunOptions::default()
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    let mut signals = runtime.block_on(async { Signals::listen(control) }).map_err(CliError::Runtime)?;
    let ended = runtime.block_on(async {
        tokio::select! {
            ended = plans.execute_task(task, options) => Some(ended),
            () = signals.escalate() => None,
        }
    });
    runtime.shutdown_background();
    match ended {
        Some(summary) if !signals.has_come() => Ok(summary?.exit),
        Some(_) | None => Ok(signals.exit),
    }
}

fn print(app: &App, name: &str, called: &Called<'_>) -> Result<ExitCode, CliError> {
    let out = app.out();
    if out.is_json {
        return out.data(called);
    }
    if let Some(error) = &called.call.error {
        let failed = out.paint_err.style(style::ERROR, "failed:");
        say(shown![failed, " `", name, "`: ", clean(&without_sequences(error))]);
    } else if called.task_status != Status::Done {
        say(format!("the call was not made: its task is {}", called.task_status));
    }
    let Some(result) = &called.call.result else { return Ok(ExitCode::SUCCESS) };
    let pretty = || serde_json::to_string_pretty(result).map_err(|error| CliError::Output(error.into()));
    let text = result.as_str().map_or_else(pretty, |text| Ok(text.to_owned()))?;
    out.print(format!("{}\n", clean_block(&without_sequences(&text))))
}
