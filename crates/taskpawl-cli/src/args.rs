//! The tree of commands.

use std::fmt::Write;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::app::App;
use crate::commands;
use crate::error::CliError;
use crate::global::Global;

const EXIT_CODES: &str = "\
Exit codes:
  0      done; of a run: everything in its scope is finished
  1      of a run: a task failed
  2      the command line or the configuration is wrong, or a file cannot be read
  3      of a run: something waits for an approval, an agent or a decision
  4      of a run: tasks are blocked otherwise
  5      of `claim --next`: nothing is ready to be claimed now
  6      an id is unknown or not unique, or a plan or label selects nothing
  7      refused, or the plan or a value in it is wrong: nothing was changed
  8      the store cannot be used, a planner gives no answer, or the output cannot be written
  130    interrupted (143: terminated)

Within a call:
  A program of a call with `planAccess` (TASKPAWL_FD is set) reads the plan of that call, and with \
`planAccess: add` adds tasks to it, in the name of the call. Every other command is refused (7).

`taskpawl COMMAND --help` describes a command.

Examples:
  taskpawl init
  taskpawl apply plan.yaml && taskpawl run-all-ready
  taskpawl create \"Write the report\" --needs build --priority high
  taskpawl list --status failed,blocked --json";

/// Runs the plans of AI agents: stores tasks durably, runs ready tasks in parallel, and reports what actually ran
#[derive(Debug, Parser)]
#[command(name = "taskpawl", version, after_help = EXIT_CODES, max_term_width = 100)]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Generates the tree of commands from one list: groups for the help, names, arguments, and the functions that run them.
macro_rules! commands {
    ($($group:literal { $($variant:ident = $name:literal in $module:ident: $kind:ident,)+ })+) => {
        /// The commands, in the order of the help.
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($(#[command(name = $name)] $variant(Box<commands::$module::Args>),)+)+
            #[command(flatten)]
            TodoQueue(commands::todo_queue::QueueAlias),
        }

        /// The groups of the help, each with its commands.
        pub(crate) const GROUPS: &[(&str, &[&str])] = &[$(($group, &[$($name),+])),+];

        impl Command {
            /// Runs the command.
            pub(crate) fn run(&self, app: &App) -> Result<ExitCode, CliError> {
                match self {
                    $($(Self::$variant(args) => commands::$module::run(app, args),)+)+
                    Self::TodoQueue(command) => command.run(app),
                }
            }

            /// Returns the name and the kind of the command.
            pub(crate) fn row(&self) -> (&'static str, Kind) {
                match self {
                    $($(Self::$variant(_) => ($name, Kind::$kind),)+)+
                    Self::TodoQueue(_) => ("todo", Kind::General),
                }
            }

            /// Returns the part of the tree for the command of this name. Returns `None` for an unknown name, and for
            /// the aliases of the commands of to-do queues.
            pub(crate) fn branch(name: &str) -> Option<clap::Command> {
                Some(match name {
                    $($($name => commands::$module::Args::augment_args(clap::Command::new($name)),)+)+
                    _ => return None,
                })
            }
        }
    };
}

commands! {
    "Run" {
        RunAllReady = "run-all-ready" in run_all_ready: Change,
        Run = "run" in run: Change,
        Stop = "stop" in stop: Change,
        Runs = "runs" in runs: Read,
        Logs = "logs" in logs: ReadFiles,
        Report = "report" in report: ReadFiles,
        Trace = "trace" in trace: ReadFiles,
        Replay = "replay" in replay: ReadFiles,
        Watch = "watch" in watch: ReadFiles,
        Serve = "serve" in serve: Change,
        Token = "token" in token: Change,
        Signal = "signal" in signal: Change,
        Schedules = "schedules" in schedules: Change,
        Workers = "workers" in workers: Read,
        Retry = "retry" in retry: Change,
        Reopen = "reopen" in reopen: Change,
        Approve = "approve" in approve: Change,
        Reject = "reject" in reject: Change,
    }
    "Work on tasks" {
        Ready = "ready" in ready: Read,
        Claim = "claim" in claim: Change,
        Renew = "renew" in renew: Change,
        Release = "release" in release: Change,
        Done = "done" in done: Change,
        Fail = "fail" in fail: Change,
        Skip = "skip" in skip: Change,
        Cancel = "cancel" in cancel: Change,
        Block = "block" in block: Change,
        Unblock = "unblock" in unblock: Change,
        Note = "note" in note: Add,
    }
    "Inspect" {
        List = "list" in list: Read,
        Show = "show" in show: Read,
        Explain = "explain" in explain: Read,
        Status = "status" in status: Read,
        Graph = "graph" in graph: Read,
        CriticalPath = "critical-path" in critical_path: Read,
        History = "history" in history: Read,
        Diff = "diff" in diff: ReadFiles,
    }
    "Plan" {
        Apply = "apply" in apply: Add,
        Plan = "plan" in plan: General,
        Create = "create" in create: Add,
        Update = "update" in update: Change,
        Delete = "delete" in delete: Change,
        AddSubtask = "add-subtask" in add_subtask: Add,
        AddToolCall = "add-tool-call" in add_tool_call: Add,
        AddDependency = "add-dependency" in add_dependency: Add,
        RemoveDependency = "remove-dependency" in remove_dependency: Change,
        Undo = "undo" in undo: Change,
        Import = "import" in import: Change,
        Export = "export" in export: Change,
    }
    "Agents" {
        Mcp = "mcp" in mcp: General,
        Prime = "prime" in prime: Read,
        Todo = "todo" in todo: General,
        Agents = "agents" in coding_agents: General,
        Tools = "tools" in tools: General,
        Policy = "policy" in policy: General,
        Allow = "allow" in allow: Change,
        Audit = "audit" in audit: ReadFiles,
        Trust = "trust" in trust: Change,
        Pin = "pin" in pin: Change,
    }
    "Set-up" {
        Init = "init" in init: Change,
        Where = "where" in placement: Read,
        Config = "config" in config: General,
        Doctor = "doctor" in doctor: ReadFiles,
        Prune = "prune" in prune: Change,
        Purge = "purge" in purge: Change,
        Backup = "backup" in backup: ReadFiles,
        Restore = "restore" in restore: Change,
        Schema = "schema" in schema: General,
        Completions = "completions" in completions: General,
        Man = "man" in man: General,
    }
}

/// Returns the whole tree, with a help that lists the commands by group.
///
/// clap puts all commands under one heading, so they are hidden from it and listed by the template.
pub(crate) fn tree() -> clap::Command {
    let tree = Cli::command();
    let mut groups = String::new();
    for (group, names) in GROUPS {
        let _ = write!(groups, "\n{group}:\n");
        for name in *names {
            let about = tree.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            // The further sentences are for the help of the command itself.
            let first = about.split(". ").next().unwrap_or_default();
            let _ = writeln!(groups, "  {name:17}  {first}");
        }
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\n{{all-args}}{{after-help}}\n"
    );
    tree.mut_subcommands(|command| command.hide(true))
        .override_usage("taskpawl [OPTIONS] <COMMAND>")
        .help_template(template)
}

/// Effect of a command on the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Reads the plan.
    Read,
    /// Reads the plan and files that calls do not see.
    ReadFiles,
    /// Adds to the plan.
    Add,
    /// Has several commands below it, or does not concern a plan.
    General,
    /// Changes the plan in other ways, or runs it.
    Change,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_that_of_the_whole_tree() {
        let mut tree = Cli::command();
        tree.build();
        for whole in tree.get_subcommands().filter(|whole| !whole.get_name().starts_with("todo-")) {
            let Some(branch) = Command::branch(whole.get_name()) else {
                assert_eq!(whole.get_name(), "help");
                continue;
            };
            let mut small = Global::augment_args(clap::Command::new("taskpawl")).subcommand(branch);
            small.build();
            let branch = small.find_subcommand(whole.get_name()).unwrap();
            let own = |command: &clap::Command| -> Vec<String> {
                command.get_arguments().map(ToString::to_string).collect()
            };
            assert_eq!(own(branch), own(whole));
        }
    }

    #[test]
    fn usage_has_the_arguments_in_the_order_in_which_they_are_taken() {
        fn check(command: &mut clap::Command) {
            let usage = command.render_usage().to_string().replace("[OPTIONS]", "");
            let mut positional: Vec<_> = command.get_positionals().cloned().collect();
            positional.sort_by_key(clap::Arg::get_index);
            let names = positional.iter().filter_map(|arg| arg.get_value_names()?.first().cloned());
            let place = |name: clap::builder::Str| {
                ["<", "[", "|"].iter().filter_map(|before| usage.find(&format!("{before}{name}"))).min()
            };
            let places: Vec<_> = names.filter_map(place).collect();
            assert!(places.is_sorted(), "{usage}");
            command.get_subcommands_mut().for_each(check);
        }
        let mut tree = Cli::command();
        tree.build();
        check(&mut tree);
    }
}
