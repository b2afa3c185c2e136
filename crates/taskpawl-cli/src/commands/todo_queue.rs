//! Commands for the queues of agents, one per operation.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use taskpawl::tools::{CallContext, ToolError};
use taskpawl_todo::Dialect;

use crate::app::App;
use crate::error::CliError;
use crate::output::to_text;
use crate::todo_lists;

/// Formats examples for the help of a command.
macro_rules! examples {
    ($($line:literal),+) => {
        concat!("Examples:", $("\n  taskpawl ", $line),+)
    };
}

/// The commands. Each answers as the tool `task` does.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum QueueCommand {
    /// Put an item at the front of an agent's queue
    #[command(name = "todo-lpush", after_help = examples!("todo-lpush --agent agent-7 \"Fix the build first\""))]
    Lpush(PushArgs),
    /// Put an item at the end of an agent's queue
    #[command(name = "todo-rpush", after_help = examples!("todo-rpush --agent agent-7 \"Fix authentication bug\""))]
    Rpush(PushArgs),
    /// Take the first item of an agent's queue; two that do so at once get two items
    #[command(
        name = "todo-lpop",
        after_help = examples!("todo-lpop --agent agent-7", "todo-lpop --agent agent-7 --lease 5m")
    )]
    Lpop(PopArgs),
    /// Take the last item of an agent's queue
    #[command(name = "todo-rpop", after_help = examples!("todo-rpop --agent agent-7"))]
    Rpop(PopArgs),
    /// Show the first item of an agent's queue
    #[command(name = "todo-lpeek", after_help = examples!("todo-lpeek --agent agent-7"))]
    Lpeek(LookArgs),
    /// Show the last item of an agent's queue
    #[command(name = "todo-rpeek", after_help = examples!("todo-rpeek --agent agent-7"))]
    Rpeek(LookArgs),
    /// Show all items of an agent's queue
    #[command(name = "todo-list", after_help = examples!("todo-list --agent agent-7"))]
    List(LookArgs),
    /// Say how many items an agent's queue has
    #[command(name = "todo-count", after_help = examples!("todo-count --agent agent-7"))]
    Count(LookArgs),
}

/// Whose queue it is and where.
#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the comments are help texts")]
pub(crate) struct LookArgs {
    /// The agent whose queue it is [env: TASKPAWL_ACTOR]
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Where queues are kept [default: files/ in the state directory]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

/// What is put into a queue.
#[derive(Debug, clap::Args)]
pub(crate) struct PushArgs {
    /// What is to be done
    #[arg(value_name = "ITEM")]
    item: String,
    #[command(flatten)]
    queue: LookArgs,
}

/// How an item is taken.
#[derive(Debug, clap::Args)]
pub(crate) struct PopArgs {
    /// Take it for so long, as in 5m; it comes back unless `todo ack` is given with the receipt
    #[arg(long, value_name = "DURATION")]
    lease: Option<String>,
    #[command(flatten)]
    queue: LookArgs,
}

/// Which item is done.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("todo ack --agent agent-7 5f0c7f9e-4a50-4a3e-9a55-6f1e0a3b2c4d"))]
pub(crate) struct AckArgs {
    /// What the command said that took the item
    #[arg(value_name = "RECEIPT")]
    receipt: String,
    #[command(flatten)]
    queue: LookArgs,
}

/// Executes one queue operation.
pub(crate) fn run(app: &App, command: &QueueCommand) -> Result<ExitCode, CliError> {
    match command {
        QueueCommand::Lpush(args) => operate(app, &args.queue, "lpush", json!({"item": args.item})),
        QueueCommand::Rpush(args) => operate(app, &args.queue, "rpush", json!({"item": args.item})),
        QueueCommand::Lpop(args) => operate(app, &args.queue, "lpop", json!({"lease": args.lease})),
        QueueCommand::Rpop(args) => operate(app, &args.queue, "rpop", json!({"lease": args.lease})),
        QueueCommand::Lpeek(args) => operate(app, args, "lpeek", json!({})),
        QueueCommand::Rpeek(args) => operate(app, args, "rpeek", json!({})),
        QueueCommand::List(args) => operate(app, args, "list", json!({})),
        QueueCommand::Count(args) => operate(app, args, "count", json!({})),
    }
}

/// Acknowledges a popped item, so that it is not delivered again.
pub(super) fn acknowledge(app: &App, args: &AckArgs) -> Result<ExitCode, CliError> {
    operate(app, &args.queue, "ack", json!({"receipt": args.receipt}))
}

fn operate(app: &App, queue: &LookArgs, operation: &str, mut args: Value) -> Result<ExitCode, CliError> {
    let agent = queue.agent.clone().or_else(|| app.environment().text("TASKPAWL_ACTOR"));
    args["agent_id"] = json!(agent);
    args["operation"] = json!(operation);
    let answer = call(app, queue.root.as_deref(), args)?;
    let out = app.out();
    if out.is_json {
        return out.data(&answer);
    }
    let text = to_text(&answer, false).map_err(|error| CliError::Output(error.into()))?;
    out.print(&(text + "\n"))
}

/// Calls the tool of the dialect and returns its answer.
fn call(app: &App, root: Option<&Path>, args: Value) -> Result<Value, CliError> {
    let lists = todo_lists::builder_for(app, root)?.build();
    let tool = lists.tools(Dialect::Queue).pop().expect("BUG: the dialect has a tool");
    let directory = &app.environment().directory;
    let cx = CallContext::new(directory, directory);
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(CliError::Runtime)?;
    let parse = |text: &Value| serde_json::from_str(text.as_str().unwrap_or_default()).unwrap_or(Value::Null);
    match runtime.block_on(tool.call(cx, args)) {
        Ok(text) => Ok(parse(&text)),
        Err(ToolError::Answered { message, result }) => {
            let error = parse(&result)["error"].as_str().map_or(message, str::to_owned);
            Err(refused(&error, todo_lists::queue_root(app, root).as_deref()))
        }
        Err(other) => Err(CliError::usage(other.to_string())),
    }
}

fn refused(error: &str, root: Option<&Path>) -> CliError {
    if error == "agent_id is required" {
        return CliError::usage_with(error, "`--agent ID` or `TASKPAWL_ACTOR` says whose queue it is");
    }
    if let Some(root) = root.filter(|_| error.contains("(os error ")) {
        let hint = format!("queues are kept in `{}`: check who may read and write there", root.display());
        return CliError::usage_with(error, hint);
    }
    CliError::usage(error)
}
