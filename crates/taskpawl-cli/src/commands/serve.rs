use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use serde_json::json;
use taskpawl::Taskpawl;
use taskpawl::model::advice::CommandLine;
use taskpawl::tools::{OwnListener, Power, Ruling};
use taskpawl_http::{ListenError, Listener};
use taskpawl_mcp::McpServer;
use taskpawl_web::{Ask, PageOptions, PageServer, Tokens, Words};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::commands::confirm::Terminal;
use crate::commands::heartbeat::{Heartbeat, Heartbeats};
use crate::commands::prune::keep_quota;
use crate::commands::sandbox::SandboxArgs;
use crate::commands::serve_runs::{Runner, RunnerOptions};
use crate::commands::serve_schedules::Scheduler;
use crate::commands::server_signals::Signals;
use crate::commands::{history, mcp, page_files, print, running};
use crate::error::CliError;
use crate::plan_library;
use crate::schedules::Place;
use crate::text;
use crate::tokens;

/// Show the plan in a browser
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The page shows running tasks and the reasons why others do not run, logs, questions, runs and history.
Prints one URL, whose part behind `#` has the token. Browsers never send that part, and a program without the token \
gets nothing. The token ends with this command; `taskpawl token create` makes tokens that outlive it.
The page has the rights of a program at the command line: retry, reopen, skip, cancel, block and unblock tasks, start and \
stop runs. It approves nothing by itself: it shows a code, and the person at this terminal sees the question and types \
the code.

Examples:
  taskpawl serve
  taskpawl serve --read-only
  taskpawl serve --run
  taskpawl serve --run --heartbeat /run/user/1000/taskpawl.beat
  taskpawl serve --mcp --json
  taskpawl serve --addr 127.0.0.1:8080")]
pub(crate) struct Args {
    /// Listen on this address of this machine; port 0 is any free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", value_parser = address)]
    addr: SocketAddr,
    /// Serve a page that only reads
    #[arg(long)]
    read_only: bool,
    /// Start runs whenever tasks are ready, and end durable waits. Questions stay open
    #[arg(long, conflicts_with = "read_only")]
    run: bool,
    /// With --run: show once a minute that it runs, by a request to this address or the time in this file. May be given
    /// several times
    #[arg(long, value_name = "URL|FILE", requires = "run")]
    heartbeat: Vec<Heartbeat>,
    /// Also serve MCP to agents at /mcp, with a token of its own
    #[arg(long)]
    mcp: bool,
    #[command(flatten)]
    sandbox: SandboxArgs,
}

/// Parses a port of the loopback interface, or an address with a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port))).ok();
    let address =
        || text.parse().map_err(|_| "expected an address with a port such as 127.0.0.1:8080".to_owned());
    port.map_or_else(address, Ok)
}

/// Serves until a signal arrives.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    // Requests are parsed and handled on different threads: with separate heaps, freed memory would not be reused.
    taskpawl::tools::share_heap();
    let plans = if args.read_only { app.onlooker(&args.sandbox)? } else { app.runner(&args.sandbox)? };
    if !args.read_only {
        app.check_apart(&args.sandbox)?;
    }
    let (sender, asks) = mpsc::channel(1);
    let terminal = if args.read_only { None } else { Terminal::of(app)? };
    let agents = Agents::of(app, args)?;
    let options = PageOptions {
        run: running::configured(app)?,
        means: running::means(app)?,
        line: CommandLine { actor: None, ..(*app.out().line).clone() },
        words: Words {
            event: history::change,
            reason: print::reason,
            time: |at, now| text::time(at, Some(now)),
        },
        approvals: terminal.is_some().then_some(sender),
        root: Some(app.root().to_owned()),
        plan_names: Some(plan_library::names(app)),
        read_file: Some(page_files::reader(app, &args.sandbox)?),
        refuses_signals: app.ruling(Power::Signals)?.ruling != Ruling::Allow,
        mcp: agents.as_ref().map(|agents| agents.server.mounted(&agents.stop)),
    };
    let page = PageServer::new(&plans, options)?;
    if let Some(terminal) = terminal {
        start(terminal, asks)?;
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    let runner = if args.run { Some(runner(app, args, &plans)?) } else { None };
    let served = Served { page: &page, agents: agents.as_ref(), runner };
    let ended = runtime.block_on(until_it_ends(app, args, served));
    runtime.shutdown_background();
    finish(app, args, &plans, ended?)
}

/// Prepares the runs that the server starts by itself.
fn runner(app: &App, args: &Args, plans: &Taskpawl) -> Result<RunnerOptions, CliError> {
    let run = running::configured(app)?;
    let scheduler = Scheduler {
        plans: plans.clone(),
        place: Place::find(app)?,
        options: run.clone(),
        heartbeats: Heartbeats::new(args.heartbeat.clone()),
        out: app.out(),
    };
    Ok(RunnerOptions { plans: plans.clone(), run, scheduler })
}

fn finish(app: &App, args: &Args, plans: &Taskpawl, exit: u8) -> Result<ExitCode, CliError> {
    if !args.read_only {
        keep_quota(app, plans)?;
    }
    Ok(ExitCode::from(exit))
}

/// Starts the thread that asks at the terminal. It waits for a person, so it is not joined.
fn start(terminal: Terminal, asks: mpsc::Receiver<Ask>) -> Result<(), CliError> {
    let thread = std::thread::Builder::new().name("taskpawl-confirm".to_owned());
    thread.spawn(move || terminal.confirm(asks)).map_err(CliError::Runtime).map(drop)
}

/// Serves, then waits for the runs of the page to end. The first signal stops starting calls, the second kills them.
async fn until_it_ends(app: &App, args: &Args, served: Served<'_>) -> Result<u8, CliError> {
    let Served { page, agents, runner } = served;
    let mut runner = runner.map(Runner::start);
    let stop_of_runner = runner.as_ref().map(Runner::stopper);
    let stop_runs = || {
        page.stop_runs();
        if let Some(stop) = &stop_of_runner {
            stop();
        }
        agents.inspect(|agents| agents.server.stop_runs());
    };
    let mut signals = Signals::listen().map_err(CliError::Runtime)?;
    let listener = Listener::open(args.addr, false).await.map_err(refused)?;
    // Programs of runs do not reach the page, even where its port is granted. An error means that the port is announced already.
    let _announced = OwnListener::announce(listener.address().port()).ok();
    let mut tokens = Tokens::new(args.read_only);
    if agents.is_some() {
        tokens = tokens.with_mcp();
    }
    tokens.stored = tokens::for_server(app, args.read_only)?;
    announce(app, &listener, &tokens)?;
    let stop = CancellationToken::new();
    let mut exit = tokio::select! {
        () = page.serve(listener, &tokens, stop.clone()) => 0,
        ended = ended(runner.as_mut()) => ended.map(|()| 0)?,
        exit = signals.stop(stop_runs) => exit,
    };
    stop.cancel();
    let end = async {
        page.wait_for_runs().await;
        if let Some(runner) = runner.as_mut() {
            runner.ended().await?;
        }
        if let Some(agents) = agents {
            agents.stop.cancel();
            agents.server.wait_for_runs().await;
        }
        Ok::<(), CliError>(())
    };
    tokio::pin!(end);
    for _ in 0..2 {
        tokio::select! {
            ended = &mut end => {
                ended?;
                break;
            }
            signal = signals.stop(stop_runs) => exit = signal,
        }
    }
    Ok(exit)
}

/// Everything that the server serves.
struct Served<'a> {
    page: &'a PageServer,
    agents: Option<&'a Agents>,
    /// The runs that the server starts by itself.
    runner: Option<RunnerOptions>,
}

/// Waits for an error of the runs; without runs there is none.
async fn ended(runner: Option<&mut Runner>) -> Result<(), CliError> {
    match runner {
        Some(runner) => runner.ended().await,
        None => std::future::pending().await,
    }
}

/// The MCP server on the port of the page.
struct Agents {
    server: McpServer,
    stop: CancellationToken,
}

impl Agents {
    fn of(app: &App, args: &Args) -> Result<Option<Self>, CliError> {
        if !args.mcp {
            return Ok(None);
        }
        let server = mcp::for_page(app, &args.sandbox, args.read_only)?;
        Ok(Some(Self { server, stop: CancellationToken::new() }))
    }
}

fn announce(app: &App, listener: &Listener, tokens: &Tokens) -> Result<(), CliError> {
    let url = |token: &str| format!("http://{}/#token={token}", listener.address());
    let main = tokens.act.as_deref().unwrap_or(&tokens.read);
    let out = app.out();
    if out.is_json {
        let address = listener.address().to_string();
        let mut data =
            json!({"url": url(main), "token": main, "readUrl": url(&tokens.read), "address": address});
        if let Some(token) = &tokens.mcp {
            data["mcpUrl"] = json!(format!("http://{address}/mcp"));
            data["mcpToken"] = json!(token);
        }
        out.data(&data)?;
    } else {
        let mcp = tokens
            .mcp
            .as_ref()
            .map(|token| format!("http://{}/mcp\nAuthorization: Bearer {token}\n", listener.address()));
        out.print(format!("{}\n{}", url(main), mcp.unwrap_or_default()))?;
    }
    Ok(())
}

fn refused(error: ListenError) -> CliError {
    let hint = if matches!(error, ListenError::Open { .. } | ListenError::Every { .. }) {
        "the page is for this machine alone: use 127.0.0.1, and a tunnel such as `ssh -L` from elsewhere"
    } else {
        return CliError::Listen(error);
    };
    CliError::usage_with(format!("`--addr`: {error}"), hint)
}
