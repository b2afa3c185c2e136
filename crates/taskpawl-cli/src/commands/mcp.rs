use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::ValueEnum;
use serde_json::json;
use taskpawl::Taskpawl;
use taskpawl::model::advice::{CommandLine, Hint};
use taskpawl::model::command::Refusal;
use taskpawl::model::task::{Origin, PlanAccess};
use taskpawl::store::Location;
use taskpawl::tools::{CallOrigin, Power, Ruling};
use taskpawl_mcp::{
    HttpListener, ListenError, McpServer, Offer, PromptText, ResourceText, ServerOptions, ToolSet,
};
use taskpawl_todo::{Dialect, Lists, ScopeRule};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::commands::mcp_project::{self, McpProject};
use crate::commands::prune::keep_quota;
use crate::commands::running;
use crate::commands::sandbox::SandboxArgs;
use crate::commands::server_signals::Signals;
use crate::commands::todo;
use crate::error::CliError;
use crate::person;
use crate::text::quoted;
use crate::todo_lists;

/// Serve the plan to an agent over MCP. Speaks MCP on standard input and output
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An agent starts it by itself: name `taskpawl mcp --project DIR` in its list of MCP servers.
The policy decides about the calls of an agent: tools that only read run, everything else waits for \
`taskpawl approve`, unless `--allow sandboxed` lets it run inside the sandbox.
When the agent closes the connection, calls that run may end and nothing more starts.
Where there is no project, the first tool that writes makes one, but only at the root of a git repository. Elsewhere \
those tools answer that `taskpawl init` is missing, and to-do lists are kept in memory.
A program of a call with `planAccess` that starts it reaches the plan of that call: it looks, with \
`planAccess: add` it adds tasks, and no more.

Examples:
  taskpawl mcp --project ~/work/site
  taskpawl mcp --project ~/work/site --allow sandboxed
  taskpawl mcp --read-only
  taskpawl mcp --tools work
  taskpawl mcp --dialect checklist --dialect core
  taskpawl mcp --http 8080 --json")]
#[expect(
    clippy::struct_excessive_bools,
    clippy::doc_markdown,
    reason = "each is a flag, and the comments are help texts"
)]
pub(crate) struct Args {
    /// Serve the plan of this project [default: that of the current directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Let calls of the agent run inside the sandbox without an approval
    #[arg(long, value_name = "WHAT", value_enum)]
    allow: Option<Allow>,
    /// Offer only tools that read: nothing is written, claimed or run
    #[arg(long, conflicts_with_all = ["allow", "approve_elicited"])]
    read_only: bool,
    /// Put the questions of runs to a person through the agent's own program
    #[arg(long)]
    approve_elicited: bool,
    /// Serve by HTTP instead, on this port of 127.0.0.1 or on ADDRESS:PORT, 0 for any port: prints the URL, and the new random
    /// token that each request has to bear
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "0", value_parser = address)]
    http: Option<SocketAddr>,
    /// With --http: let ADDRESS be one that other machines reach
    #[arg(long, requires = "http")]
    allow_remote: bool,
    /// Serve the tools of a to-do dialect instead of those of the plan: conversation, checklist, checklist:manage_todo_list, session
    /// or queue; `core` adds those of the plan. Repeatable
    #[arg(long, value_name = "NAME", value_parser = served)]
    dialect: Vec<Served>,
    /// Offer only some tools of the plan: `work` has those for one worker, which takes a task, looks at it and reports on it
    #[arg(long, value_name = "WHICH", value_enum, conflicts_with = "dialect")]
    tools: Option<Tools>,
    /// Owner of the to-do lists: the id of a conversation or a session; without it calls may name it
    #[arg(long, value_name = "ID", env = "TASKPAWL_SCOPE", hide_env_values = true)]
    scope: Option<String>,
    /// Keep the last checklist for review when the server ends
    #[arg(long, requires = "dialect")]
    keep: bool,
    #[command(flatten)]
    sandbox: SandboxArgs,
}

impl Args {
    /// Returns whether the tools of the plan are served.
    fn has_plan(&self) -> bool {
        self.dialect.is_empty() || self.dialect.contains(&Served::Core)
    }
}

/// A set of tools that the server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Served {
    /// The tools of the plan.
    Core,
    /// The tools of a to-do list dialect.
    Dialect(Dialect),
}

fn served(word: &str) -> Result<Served, String> {
    const CORE: &str = "core";
    let unknown = || {
        let words: Vec<&str> = Dialect::WORDS.into_iter().chain([CORE]).collect();
        todo::unknown_dialect(word, &words)
    };
    if word == CORE {
        return Ok(Served::Core);
    }
    Dialect::from_word(word).map(Served::Dialect).ok_or_else(unknown)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tools {
    /// Those for one worker
    Work,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Allow {
    /// Everything, held by the sandbox
    Sandboxed,
}

/// Parses a port of the loopback interface, or an address with a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port))).ok();
    let address = || {
        text.parse()
            .map_err(|_| "expected a port, or an address with a port such as 127.0.0.1:8080".to_owned())
    };
    port.map_or_else(address, Ok)
}

/// Serves until the client disconnects or a signal arrives.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    match &args.project {
        None => serve(app, args),
        Some(directory) => {
            let path = app.environment().directory.join(directory);
            if !path.is_dir() {
                let message = format!(
                    "`--project` names {}, which is no directory",
                    quoted(&path.display().to_string())
                );
                let hint = Hint::new("name the directory of ").command("init");
                return Err(CliError::usage_with(message, hint));
            }
            serve(&app.in_directory(path), args)
        }
    }
}

fn serve(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    // Requests are parsed and handled on different threads: with separate heaps, freed memory would not be reused.
    taskpawl::tools::share_heap();
    let within = within(app, args)?;
    let project = mcp_project::of(app, needs_project(args), args.read_only)?;
    let has_project = project.is_placed();
    let plans = if has_project { plans(app, args)? } else { no_plans(app)? };
    let lists = lists(app, args, &project)?;
    if within.is_none() && has_project {
        todo_lists::mirror(&lists, &plans);
    }
    let options = ServerOptions {
        read_only: args.read_only,
        within,
        approve_elicited: args.approve_elicited,
        // An agent is no person at a terminal, so that `ask` refuses as well.
        refuses_signals: within.is_none() && app.ruling(Power::Signals)?.ruling != Ruling::Allow,
        lease: app.config()?.lease,
        run: running::configured(app)?,
        found_later: app.servers()?.found_later(),
        absent: Some(app.absent_tools()?),
        line: CommandLine { actor: None, ..(*app.out().line).clone() },
        has_plan: args.has_plan(),
        offer: if args.tools == Some(Tools::Work) { Offer::Work } else { Offer::All },
        sets: sets(args, &lists, &plans),
        project: project.absent(),
    };
    let server = McpServer::new(plans.clone(), options).map_err(taskpawl::OpenError::from)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    let ended = runtime.block_on(until_it_ends(app, args, &server));
    lists.end();
    // A blocked read from standard input cannot be cancelled, so it is not awaited.
    runtime.shutdown_background();
    let exit = ended?;
    if within.is_none() && has_project {
        keep_quota(app, &plans)?;
    }
    Ok(exit)
}

/// Returns the access that the surrounding call has to its plan, if this program runs inside a call.
fn within(app: &App, args: &Args) -> Result<Option<PlanAccess>, CliError> {
    if !app.is_within_call() {
        return Ok(None);
    }
    if args.http.is_some() {
        let what = "`mcp` serves it on standard input and output, and `--http` is not allowed".to_owned();
        return Err(Refusal::BeyondAccess { access: None, what }.into());
    }
    // Agents start the server with the same arguments everywhere, so these are only worth a warning.
    for (flag, is_set) in [("--allow", args.allow.is_some()), ("--approve-elicited", args.approve_elicited)] {
        if is_set {
            app.out().warn(&format!(
                "`{flag}` changes nothing within a call: its run decides what runs, and asks"
            ));
        }
    }
    let Location::Call(listener) = &app.place()?.location else { return Ok(None) };
    Ok(Some(listener.access()?))
}

/// Returns the server for the port of the page: the tools of the plan, with the policy for agents.
pub(super) fn for_page(app: &App, sandbox: &SandboxArgs, read_only: bool) -> Result<McpServer, CliError> {
    let args = Args {
        project: None,
        allow: None,
        read_only,
        approve_elicited: false,
        http: None,
        allow_remote: false,
        dialect: Vec::new(),
        tools: None,
        scope: None,
        keep: false,
        sandbox: sandbox.clone(),
    };
    let plans = plans(app, &args)?;
    let options = ServerOptions {
        read_only,
        refuses_signals: app.ruling(Power::Signals)?.ruling != Ruling::Allow,
        lease: app.config()?.lease,
        run: running::configured(app)?,
        found_later: app.servers()?.found_later(),
        absent: Some(app.absent_tools()?),
        line: CommandLine { actor: None, ..(*app.out().line).clone() },
        ..ServerOptions::default()
    };
    McpServer::new(plans, options).map_err(taskpawl::OpenError::from).map_err(Into::into)
}

/// Returns whether the tools work on a project. Lists of sessions and queues do not.
fn needs_project(args: &Args) -> bool {
    let is_apart = |served: &Served| matches!(served, Served::Dialect(Dialect::Session | Dialect::Queue));
    args.has_plan() || !args.dialect.iter().all(is_apart)
}

/// Returns an empty plan in memory, for servers without a project.
fn no_plans(app: &App) -> Result<Taskpawl, CliError> {
    let builder = app.builder_at(Location::Memory, &app.environment().directory)?;
    Ok(builder.without_builtin_tools().open()?)
}

/// Returns the to-do lists. Over HTTP nothing is stored for a client, so each call has to name the scope of
/// its list.
fn lists(app: &App, args: &Args, project: &McpProject) -> Result<Lists, CliError> {
    let rule = match &args.scope {
        Some(scope) => ScopeRule::fixed(scope),
        None if args.http.is_some() => ScopeRule::argument(),
        None => ScopeRule::argument_or_own(),
    };
    let builder = todo_lists::builder(app)?.scope(rule).keep(args.keep).read_only(args.read_only);
    Ok(builder.in_memory(!project.is_placed()).build())
}

/// Returns the tools of all dialects, each with its guide as a prompt. Beside the plan, `todo_promote` makes
/// tasks of items.
fn sets(args: &Args, lists: &Lists, plans: &Taskpawl) -> Vec<ToolSet> {
    let mut dialects: Vec<Dialect> = Vec::new();
    for served in &args.dialect {
        if let Served::Dialect(dialect) = served
            && !dialects.contains(dialect)
        {
            dialects.push(*dialect);
        }
    }
    let has_checklist =
        dialects.iter().any(|dialect| matches!(dialect, Dialect::Checklist | Dialect::TodoList));
    let block = has_checklist.then(|| ToolSet { resources: vec![block(lists)], ..ToolSet::default() });
    let has_both = args.dialect.contains(&Served::Core) && !dialects.is_empty() && !args.read_only;
    let promoter = has_both.then(|| lists.promoter(&dialects, plans.manager()));
    let promoter = promoter.map(|tool| ToolSet { tools: vec![tool], ..ToolSet::default() });
    dialects.into_iter().map(|dialect| set(dialect, lists)).chain(promoter).chain(block).collect()
}

fn set(dialect: Dialect, lists: &Lists) -> ToolSet {
    let guide = PromptText {
        name: format!("{}_guide", dialect.as_str().replace(':', "_")),
        description: format!("When and how to keep a to-do list: the dialect {dialect}"),
        text: taskpawl_todo::guide(dialect),
    };
    ToolSet { tools: lists.tools(dialect), prompts: vec![guide], ..ToolSet::default() }
}

/// Returns the checklist as a resource for system prompts.
fn block(lists: &Lists) -> ResourceText {
    let lists = lists.clone();
    ResourceText {
        uri: "taskpawl://checklist".to_owned(),
        name: "checklist".to_owned(),
        description:
            "The checklist as a block for the system prompt of every turn; empty where there is none"
                .to_owned(),
        read: Arc::new(move || lists.prompt_block(&lists.default_scope())),
    }
}

/// Opens the plan with the policy and the sandbox for calls over MCP.
fn plans(app: &App, args: &Args) -> Result<Taskpawl, CliError> {
    if app.is_within_call() {
        // Calls are executed by the surrounding run, which also knows the calling task.
        return Ok(app.builder()?.open()?);
    }
    app.warn_of_ignored(&args.sandbox)?;
    let builder = app.held(app.builder()?, &args.sandbox)?.origin(Origin::Mcp);
    if args.read_only {
        return Ok(builder.open()?);
    }
    if args.has_plan() {
        app.check_apart(&args.sandbox)?;
    }
    // A planned project is made by the first tool that writes.
    if app.place()?.new_root().is_none() {
        app.place()?.record()?;
    }
    if args.approve_elicited {
        person::check_power(app, Power::Mcp, "--approve-elicited")?;
    }
    if args.allow != Some(Allow::Sandboxed) {
        return Ok(builder.open()?);
    }
    person::check_power(app, Power::Mcp, "--allow")?;
    let policy =
        app.policy_of_calls()?.clone().confined_by(&args.sandbox.settings(app)?).sandboxing(CallOrigin::Mcp);
    match policy.holds_back(CallOrigin::Mcp) {
        Some(why) => {
            Err(CliError::Forbidden { what: "let calls over MCP run without being asked about", why })
        }
        None => Ok(builder.policy(policy).open()?),
    }
}

/// Serves, then waits for runs to end. The first signal stops starting calls, the second kills them, the
/// third exits.
async fn until_it_ends(app: &App, args: &Args, server: &McpServer) -> Result<ExitCode, CliError> {
    let mut signals = Signals::listen().map_err(CliError::Runtime)?;
    let mut exit = tokio::select! {
        ended = serve_client(app, args, server) => {
            ended?;
            server.stop_runs();
            None
        }
        exit = signals.stop(|| server.stop_runs()) => Some(exit),
    };
    // Two more signals at most: the first one or the end of the client has already asked the runs to stop.
    for _ in 0..2 {
        tokio::select! {
            () = server.wait_for_runs() => break,
            signal = signals.stop(|| server.stop_runs()) => exit = Some(signal),
        }
    }
    Ok(exit.map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// Serves one client over stdio, or any number over HTTP.
async fn serve_client(app: &App, args: &Args, server: &McpServer) -> Result<(), CliError> {
    let Some(address) = args.http else {
        return server.serve_stdio().await.map_err(CliError::Serve);
    };
    let listener = HttpListener::open(address, args.allow_remote).await.map_err(refused)?;
    let out = app.out();
    if out.is_json {
        out.data(&json!({"url": listener.url(), "token": listener.token()}))?;
    } else {
        out.print(format!("{}\nAuthorization: Bearer {}\n", listener.url(), listener.token()))?;
    }
    server.serve_http(listener, CancellationToken::new()).await;
    Ok(())
}

fn refused(error: ListenError) -> CliError {
    let hint = if matches!(error, ListenError::Open { .. }) {
        "add `--allow-remote` if other machines shall reach it; their requests are not encrypted"
    } else if matches!(error, ListenError::Every { .. }) {
        "name the one address that clients use"
    } else {
        return CliError::Listen(error);
    };
    CliError::usage_with(format!("`--http`: {error}"), hint)
}
