//! `taskpawl-worker`: executes calls of taskpawl that arrive through a Restate server.

#![expect(deprecated, reason = "the newer form of a service fixes its name when it is compiled")]

mod endpoint;
mod service;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use taskpawl::Offer;
use taskpawl_cli::worker::{self, WorkerHost};

/// Execute calls of taskpawl that arrive through a Restate server
#[derive(Debug, Parser)]
#[command(
    name = "taskpawl-worker",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "\
Calls run below --project, with the tools, the sandbox, the policy and the secrets of this machine. Only calls that a trusted \
coordinator has signed run: `taskpawl workers key` prints its key, and `taskpawl-worker trust KEY` trusts it here.

Examples:
  taskpawl-worker trust taskpawl-ed25519-…
  taskpawl-worker --restate-admin http://127.0.0.1:9070 --project /srv/app --slots 4 --label gpu
  taskpawl-worker --project /srv/app --check"
)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Address of the admin interface of the server, where the worker registers
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9070")]
    restate_admin: String,
    /// Address to listen on. Keep it over restarts: the server brings calls back to it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9080")]
    listen: SocketAddr,
    /// Address under which the server reaches this worker [default: that of --listen]
    #[arg(long, value_name = "URL")]
    advertise: Option<String>,
    /// The pool of workers
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = word)]
    pool: String,
    /// Name of this worker, unique in its pool [default: the host name]
    #[arg(long, value_name = "NAME", value_parser = word)]
    name: Option<String>,
    /// Run at most so many calls at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = slots)]
    slots: usize,
    /// A label for `runsOn`; may be given several times
    #[arg(long = "label", value_name = "LABEL", value_parser = word)]
    labels: Vec<String>,
    /// The directory in which calls run
    #[arg(long, value_name = "DIR", default_value = ".")]
    project: PathBuf,
    /// Git remote of runs with `--files git` [default: `remote` of `[engines.restate]` in the user's configuration]
    #[arg(long, value_name = "URL")]
    files_remote: Option<String>,
    /// Request identity key of the server: only it may reach this worker
    #[arg(long, value_name = "KEY")]
    identity_key: Option<String>,
    /// Check the configuration, the sandbox and the tools, and end
    #[arg(long)]
    check: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Trust the key of a coordinator: its calls run here
    Trust {
        /// The public key that `taskpawl workers key` prints
        key: String,
    },
}

fn main() -> ExitCode {
    taskpawl::child_entry();
    match run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("error: {error}"));
            ExitCode::from(2)
        }
    }
}

fn run(args: Args) -> Result<(), Box<dyn std::error::Error>> {
    if let Some(Command::Trust { key }) = args.command {
        worker::trust(&key)?;
        tell("the key is trusted; running workers use it after a restart");
        return Ok(());
    }
    let name = match args.name {
        Some(name) => name,
        None => host_name(),
    };
    let labels = args.labels.into_iter().collect();
    let offer = Offer { worker: name, slots: args.slots, labels, tools: [].into() };
    let trusted = worker::trusted_keys()?;
    let host = WorkerHost::open(&args.project, offer, args.files_remote)?;
    if trusted.is_empty() {
        tell(
            "warning: no coordinator is trusted, so every call is refused; `taskpawl-worker trust KEY` trusts one",
        );
    }
    if args.check {
        tell("the worker can start");
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let executor = host.start().await?;
        let uri = args.advertise.unwrap_or_else(|| format!("http://{}", args.listen));
        let worker = Arc::new(service::CallService::new(executor, args.pool, trusted));
        endpoint::serve(worker, args.listen, args.identity_key.as_deref(), &args.restate_admin, &uri).await
    })
}

/// Returns the host name, with the characters that names of workers have.
fn host_name() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let name: String = text.trim().chars().map(|c| if is_word(c) { c } else { '-' }).collect();
    if name.is_empty() { "worker".to_owned() } else { name }
}

fn word(text: &str) -> Result<String, String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let is_name = !text.is_empty() && text.len() <= 64 && text.chars().all(is_word);
    if is_name {
        Ok(text.to_owned())
    } else {
        Err("expected up to 64 letters, digits, `_` and `-`".to_owned())
    }
}

fn slots(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|slots| (1..=1000).contains(slots))
        .ok_or_else(|| "expected 1 to 1000".to_owned())
}

/// Prints a line for the operator.
#[expect(clippy::print_stderr, reason = "a program of its own, whose output is a log")]
fn tell(message: &str) {
    eprintln!("{message}");
}
