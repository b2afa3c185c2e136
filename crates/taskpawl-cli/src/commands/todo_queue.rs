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

/// Generates the commands, whose names begin with a prefix. Each answers as the tool `task` does.
macro_rules! queue_commands {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $shown:literal, hidden: $is_hidden:literal) => {
        $(#[$doc])*
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum $name {
            /// Push an item to the front of a queue
            #[command(name = concat!($prefix, "lpush"), hide = $is_hidden, after_help = concat!("Examples:\n  taskpawl ", $shown, "lpush --agent agent-7 \"Fix the build first\""))]
            Lpush(PushArgs),
            /// Push an item to the end of a queue
            #[command(name = concat!($prefix, "rpush"), hide = $is_hidden, after_help = concat!("Examples:\n  taskpawl ", $shown, "rpush --agent agent-7 \"Fix authentication bug\""))]
            Rpush(PushArgs),
            /// Pop the first item of a queue. Processes that pop at the same time get different items
            #[command(name = concat!($prefix, "lpop"), hide = $is_hidden, after_help = concat!("Examples:\n  taskpawl ", $shown, "lpop --agent agent-7\n  taskpawl ", $shown, "lpop --agent agent-7 --lease 5m"))]
            Lpop(PopArgs),
            /// Pop the last item of a queue
            #[command(name = concat!($prefix, "rpop"), hide = $is_hidden, after_help = concat!("Examples:\n  taskpawl ", $shown, "rpop --agent agent-7"))]
            Rpop(PopArgs),
            /// Show the first item of a queue
            #[command(name = concat!($prefix, "lpeek"), hide = $is_hidden, after_help = concat!("Examples:\n  taskpawl ", $shown, "lpeek --agent agent-7"))]
            Lpeek(LookArgs),
            /// Show the last item of a queue
            #[command(name = concat!($prefix, "rpeek"), hide = $is_hidden, after_help = concat!("Examples:\n  taskpawl ", $shown, "rpeek --agent agent-7"))]
            Rpeek(LookArgs),
            /// List the items of a queue
            #[command(name = concat!($prefix, "list"), hide = $is_hidden, after_help = concat!("Examples:\n  taskpawl ", $shown, "list --agent agent-7"))]
            List(LookArgs),
            /// Count the items of a queue
            #[command(name = concat!($prefix, "count"), hide = $is_hidden, after_help = concat!("Examples:\n  taskpawl ", $shown, "count --agent agent-7"))]
            Count(LookArgs),
        }

        impl $name {
            /// Executes the operation.
            pub(crate) fn run(&self, app: &App) -> Result<ExitCode, CliError> {
                match self {
                    Self::Lpush(args) => operate(app, &args.queue, "lpush", json!({"item": args.item})),
                    Self::Rpush(args) => operate(app, &args.queue, "rpush", json!({"item": args.item})),
                    Self::Lpop(args) => operate(app, &args.queue, "lpop", json!({"lease": args.lease})),
                    Self::Rpop(args) => operate(app, &args.queue, "rpop", json!({"lease": args.lease})),
                    Self::Lpeek(args) => operate(app, args, "lpeek", json!({})),
                    Self::Rpeek(args) => operate(app, args, "rpeek", json!({})),
                    Self::List(args) => operate(app, args, "list", json!({})),
                    Self::Count(args) => operate(app, args, "count", json!({})),
                }
            }
        }
    };
}

queue_commands! {
    /// The commands of a queue below `todo`.
    QueueCommand, "", "todo ", hidden: false
}

queue_commands! {
    /// The same commands under the names that they had in version 0.1.
    QueueAlias, "todo-", "todo ", hidden: true
}

/// The queue, and its directory.
#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the comments are help texts")]
pub(crate) struct LookArgs {
    /// The agent that owns the queue [env: TASKPAWL_ACTOR]
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// The directory of the queues [default: files/ in the state directory]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

/// An item to push.
#[derive(Debug, clap::Args)]
pub(crate) struct PushArgs {
    /// The text of the item
    #[arg(value_name = "ITEM")]
    item: String,
    #[command(flatten)]
    queue: LookArgs,
}

/// Options of popping.
#[derive(Debug, clap::Args)]
pub(crate) struct PopArgs {
    /// Return the item to the queue after this time, as in 5m, unless `todo ack` confirms it
    #[arg(long, value_name = "DURATION")]
    lease: Option<String>,
    #[command(flatten)]
    queue: LookArgs,
}

/// The item that is done.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  taskpawl todo ack --agent agent-7 5f0c7f9e-4a50-4a3e-9a55-6f1e0a3b2c4d")]
pub(crate) struct AckArgs {
    /// The receipt that the command printed when it popped the item
    #[arg(value_name = "RECEIPT")]
    receipt: String,
    #[command(flatten)]
    queue: LookArgs,
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
        return CliError::usage_with(error, "`--agent ID` or `TASKPAWL_ACTOR` names the owner of the queue");
    }
    if let Some(root) = root.filter(|_| error.contains("(os error ")) {
        let hint = format!("queues are stored in `{}`: check its permissions", root.display());
        return CliError::usage_with(error, hint);
    }
    CliError::usage(error)
}
