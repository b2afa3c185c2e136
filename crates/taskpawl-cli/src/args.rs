//! The tree of commands, and the way from the words of the command line to an exit code.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::app::App;
use crate::commands;
use crate::config::ColorWord;
use crate::environment::Environment;
use crate::error::CliError;
use crate::text::Paint;
use crate::within;

const EXIT_CODES: &str = "\
Exit codes:
  0      done; of a run: everything in its scope is finished
  1      of a run: a task failed
  2      the command line or the configuration is wrong, or a file cannot be read
  3      of a run: something waits for an approval, an agent or a decision
  4      of a run: tasks are blocked otherwise
  6      an id is unknown or not unique, or a plan or label selects nothing
  7      refused, or the plan or a value in it is wrong: nothing was changed
  8      the store cannot be used
  130    interrupted (143: terminated)

Within a call:
  A program of a call with `planAccess` (TASKPAWL_FD is set) looks at the plan of that call, and with \
`planAccess: add` adds tasks to it, in the name of the call; every other command is refused (7).

Examples:
  taskpawl init
  taskpawl apply plan.yaml && taskpawl run-all-ready
  taskpawl create \"Write the report\" --needs build --priority high
  taskpawl list --status failed,blocked --json";

/// Runs the plans of AI agents: keeps tasks safely, runs what is ready in parallel, tells the truth about where things stand
#[derive(Debug, Parser)]
#[command(name = "taskpawl", version, after_help = EXIT_CODES, max_term_width = 100)]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Debug, Clone, Args)]
#[expect(clippy::doc_markdown, reason = "the comments are help texts")]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Use this store: a database file or json:PATH [env: TASKPAWL_STORE]
    #[arg(long, global = true, value_name = "STORE")]
    pub(crate) store: Option<String>,
    // An attribute, because in a comment `user@host` would be a link.
    #[arg(long, global = true, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new(), help = "Act in this name [env: TASKPAWL_ACTOR] [default: user@host]")]
    pub(crate) actor: Option<String>,
    /// Print JSON: {schemaVersion, data, page?}, and errors as {schemaVersion, error}, both on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only these fields of each object, as in id,status,metadata.context; implies --json
    #[arg(long, global = true, value_name = "FIELDS", value_delimiter = ',')]
    pub(crate) fields: Vec<String>,
    /// Print ids alone where a command lists the tasks that it changed, and no remarks
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Use colours: auto (on a terminal, unless NO_COLOR is set), always or never [env: TASKPAWL_COLOR]
    #[arg(long, global = true, value_name = "WHEN", value_enum, hide_possible_values = true)]
    pub(crate) color: Option<ColorWord>,
}

/// What can be done. The order is that of `--help`.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    Init(commands::init::Args),
    Create(Box<commands::create::Args>),
    List(Box<commands::list::Args>),
    Show(commands::show::Args),
    Update(Box<commands::update::Args>),
    Delete(commands::delete::Args),
    Ready(commands::ready::Args),
    Claim(commands::claim::Args),
    Renew(commands::renew::Args),
    Release(commands::release::Args),
    Done(commands::done::Args),
    Fail(commands::fail::Args),
    Skip(commands::skip::Args),
    Block(commands::block::Args),
    Unblock(commands::unblock::Args),
    Retry(commands::retry::Args),
    Reopen(commands::reopen::Args),
    Cancel(commands::cancel::Args),
    Approve(commands::approve::Args),
    Reject(commands::reject::Args),
    AddToolCall(Box<commands::add_tool_call::Args>),
    AddDependency(commands::add_dependency::Args),
    RemoveDependency(commands::remove_dependency::Args),
    AddSubtask(Box<commands::add_subtask::Args>),
    Note(commands::note::Args),
    Apply(commands::apply::Args),
    Plan(commands::plan::Args),
    RunAllReady(commands::run_all_ready::Args),
    Run(commands::run::Args),
    Runs(commands::runs::Args),
    Logs(commands::logs::Args),
    Explain(commands::explain::Args),
    CriticalPath(commands::critical_path::Args),
    Graph(commands::graph::Args),
    History(commands::history::Args),
    Watch(commands::watch::Args),
    Prime(commands::prime::Args),
    Undo(commands::undo::Args),
    Prune(commands::prune::Args),
    Import(commands::import::Args),
    Export(commands::export::Args),
    Where(commands::placement::Args),
    Config(commands::config::Args),
    Tools(commands::tools::Args),
    Policy(Box<commands::policy::Args>),
    Todo(commands::todo::Args),
    #[command(flatten)]
    TodoQueue(commands::todo_queue::QueueCommand),
    Mcp(commands::mcp::Args),
    Trust(commands::trust::Args),
    Doctor(commands::doctor::Args),
    Schema(commands::schema::Args),
    Completions(commands::completions::Args),
    Man(commands::man::Args),
}

impl Command {
    /// Returns whether the command runs nothing and changes nothing of a plan.
    fn only_reads(&self) -> bool {
        matches!(
            self,
            Self::List(_)
                | Self::Show(_)
                | Self::Ready(_)
                | Self::Runs(_)
                | Self::Logs(_)
                | Self::Explain(_)
                | Self::CriticalPath(_)
                | Self::Graph(_)
                | Self::History(_)
                | Self::Watch(_)
                | Self::Prime(_)
                | Self::Where(_)
                | Self::Doctor(_)
        )
    }

    fn run(&self, app: &App) -> Result<ExitCode, CliError> {
        match self {
            Self::Init(args) => commands::init::run(app, args),
            Self::Create(args) => commands::create::run(app, args),
            Self::List(args) => commands::list::run(app, args),
            Self::Show(args) => commands::show::run(app, args),
            Self::Update(args) => commands::update::run(app, args),
            Self::Delete(args) => commands::delete::run(app, args),
            Self::Ready(args) => commands::ready::run(app, args),
            Self::Claim(args) => commands::claim::run(app, args),
            Self::Renew(args) => commands::renew::run(app, args),
            Self::Release(args) => commands::release::run(app, args),
            Self::Done(args) => commands::done::run(app, args),
            Self::Fail(args) => commands::fail::run(app, args),
            Self::Skip(args) => commands::skip::run(app, args),
            Self::Block(args) => commands::block::run(app, args),
            Self::Unblock(args) => commands::unblock::run(app, args),
            Self::Retry(args) => commands::retry::run(app, args),
            Self::Reopen(args) => commands::reopen::run(app, args),
            Self::Cancel(args) => commands::cancel::run(app, args),
            Self::Approve(args) => commands::approve::run(app, args),
            Self::Reject(args) => commands::reject::run(app, args),
            Self::AddToolCall(args) => commands::add_tool_call::run(app, args),
            Self::AddDependency(args) => commands::add_dependency::run(app, args),
            Self::RemoveDependency(args) => commands::remove_dependency::run(app, args),
            Self::AddSubtask(args) => commands::add_subtask::run(app, args),
            Self::Note(args) => commands::note::run(app, args),
            Self::Apply(args) => commands::apply::run(app, args),
            Self::Plan(args) => commands::plan::run(app, args),
            Self::RunAllReady(args) => commands::run_all_ready::run(app, args),
            Self::Run(args) => commands::run::run(app, args),
            Self::Runs(args) => commands::runs::run(app, args),
            Self::Logs(args) => commands::logs::run(app, args),
            Self::Explain(args) => commands::explain::run(app, args),
            Self::CriticalPath(args) => commands::critical_path::run(app, args),
            Self::Graph(args) => commands::graph::run(app, args),
            Self::History(args) => commands::history::run(app, args),
            Self::Watch(args) => commands::watch::run(app, args),
            Self::Prime(args) => commands::prime::run(app, args),
            Self::Undo(args) => commands::undo::run(app, args),
            Self::Prune(args) => commands::prune::run(app, args),
            Self::Import(args) => commands::import::run(app, args),
            Self::Export(args) => commands::export::run(app, args),
            Self::Where(args) => commands::placement::run(app, args),
            Self::Config(args) => commands::config::run(app, args),
            Self::Tools(args) => commands::tools::run(app, args),
            Self::Policy(args) => commands::policy::run(app, args),
            Self::Todo(args) => commands::todo::run(app, args),
            Self::TodoQueue(command) => commands::todo_queue::run(app, command),
            Self::Mcp(args) => commands::mcp::run(app, args),
            Self::Trust(args) => commands::trust::run(app, args),
            Self::Doctor(args) => commands::doctor::run(app, args),
            Self::Schema(args) => commands::schema::run(app, args),
            Self::Completions(args) => commands::completions::run(app, args),
            Self::Man(args) => commands::man::run(app, args),
        }
    }
}

/// Does what the command line says and returns the exit code.
pub(crate) fn main(environment: Environment) -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let [_, word] = words.as_slice()
        && (word == "--version" || word == "-V")
    {
        return print_version();
    }
    let cli = match understood(&words) {
        Ok(cli) => cli,
        Err(error) => {
            let plain = Paint { is_on: false };
            return CliError::from(error).report(asks_for_json(&words), environment.terminal, plain);
        }
    };
    let app = App::new(cli.global, environment);
    let report = |error: CliError| error.report(app.is_json(), app.terminal(), app.out().paint_err);
    if cli.command.only_reads() {
        app.only_reads();
    }
    let allowed = within::check(&app, &cli.command);
    let code = allowed.and_then(|()| cli.command.run(&app)).unwrap_or_else(report);
    app.end();
    code
}

/// Understands a command line. First only that branch of the tree of commands grows which it names: the whole tree takes 0.8 MB. It does
/// where that is not enough, as for the help, for a name that is like another one, and for what is wrong.
fn understood(words: &[OsString]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(words).or_else(|_| {
        let mut tree = Cli::command();
        tree.build();
        let matches = tree.try_get_matches_from_mut(words)?;
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut tree))
    })
}

/// Prints what the tree of commands would print, without growing it: that costs more than all else together.
fn print_version() -> ExitCode {
    // Who closed the other end wants no more.
    let _ = writeln!(std::io::stdout(), "taskpawl {}", env!("CARGO_PKG_VERSION"));
    ExitCode::SUCCESS
}

/// Returns whether a command line that could not be understood asks for JSON all the same.
fn asks_for_json(words: &[OsString]) -> bool {
    let is_flag = |word: &OsStr| word == "--json" || word.to_string_lossy().starts_with("--fields");
    words.iter().take_while(|word| *word != "--").any(|word| is_flag(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_branch_that_a_command_line_names_grows() {
        let arguments = |tree: &clap::Command, name: &str| {
            tree.find_subcommand(name).map(|branch| branch.get_arguments().count()).unwrap_or_default()
        };
        let mut tree = Cli::command();
        assert_eq!((arguments(&tree, "create"), arguments(&tree, "show")), (0, 0));
        tree.try_get_matches_from_mut(["taskpawl", "show", "t1"]).unwrap();
        assert_eq!(arguments(&tree, "create"), 0);
        assert!(arguments(&tree, "show") > 0);
    }

    #[test]
    fn help_is_that_of_the_whole_tree() {
        let words = ["taskpawl", "--help"].map(OsString::from);
        let help = understood(&words).unwrap_err().to_string();
        assert!(help.contains("Make a task; without calls"), "{help}");
        let words = ["taskpawl", "help", "show"].map(OsString::from);
        assert!(understood(&words).unwrap_err().to_string().contains("Show everything about a task"));
    }
}
