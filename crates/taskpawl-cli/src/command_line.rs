//! From the words of the command line to an exit code.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, FromArgMatches};
use taskpawl::model::advice::Hint;

use crate::app::App;
use crate::args::{Cli, Command, Kind, tree};
use crate::context::Context;
use crate::environment::Environment;
use crate::error::CliError;
use crate::global::Global;
use crate::nested_call;
use crate::output::{self, Output};
use crate::plan_relay;
use crate::text::Paint;

/// Runs the command line and returns the exit code.
pub(crate) fn main(environment: Environment) -> ExitCode {
    let words = given_words(&environment);
    if let [_, word] = words.as_slice()
        && (word == "--version" || word == "-V")
    {
        return print_version(&environment);
    }
    if let [_, word, rest @ ..] = words.as_slice()
        && word == plan_relay::WORD
    {
        return plan_relay::main(&environment, rest);
    }
    let cli = match understood(&words) {
        Ok(cli) => cli,
        Err(error) => {
            let out = output_of(&environment, asks_for_json(&words));
            let error = meant(&error).or_else(|| option_of_others(&error)).unwrap_or_else(|| error.into());
            return output::settle(error.report(&out), out.paint_err);
        }
    };
    if environment.text("GITHUB_ACTIONS").is_some_and(|value| value == "true") {
        output::neutralize_workflow_commands();
    }
    let app = App::new(cli.global, environment);
    let report = |error: CliError| error.report(&app.out());
    if matches!(cli.command.row().1, Kind::Read | Kind::ReadFiles) {
        app.only_reads();
    }
    let allowed = nested_call::check(&app, &cli.command);
    let code = allowed.and_then(|()| cli.command.run(&app)).unwrap_or_else(report);
    app.end();
    output::settle(code, app.out().paint_err)
}

/// Returns the words of the command line. Without any, and in a project, they ask where its plan stands.
fn given_words(environment: &Environment) -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if words.len() == 1 && Context::new(Global::default(), environment.clone()).place().is_ok() {
        words.push("status".into());
    }
    words
}

/// Names of commands of other programs, each with the words that mean the same here.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("add", "create NAME", " adds a task"),
    ("new", "create NAME", " adds a task"),
    ("ps", "runs", " lists the runs"),
    ("tasks", "list", " lists the tasks"),
    ("exec", "tools call exec --args JSON", " runs a program as a call of a plan would"),
    ("start", "run-all-ready", " runs everything that is ready"),
];

/// Returns the error for a command that has another name here; `None` for any other error.
fn meant(error: &clap::Error) -> Option<CliError> {
    let ContextValue::String(given) = error.get(ContextKind::InvalidSubcommand)? else { return None };
    let (name, words, what) = ELSEWHERE.iter().find(|(name, ..)| name == given)?;
    Some(CliError::usage_with(
        format!("there is no command `{name}`"),
        Hint::default().command(words).text(*what),
    ))
}

/// Commands that are named at most for an option that another one does not have.
const MAX_COMMANDS: usize = 3;

/// Returns the error for an option that only other commands have; `None` for any other error.
fn option_of_others(error: &clap::Error) -> Option<CliError> {
    let is_unknown =
        error.kind() == ErrorKind::UnknownArgument && error.get(ContextKind::SuggestedArg).is_none();
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg).filter(|_| is_unknown) else {
        return None;
    };
    let name = given.strip_prefix("--")?;
    let tree = tree();
    let has_option = |command: &&clap::Command| {
        command.get_arguments().any(|option| option.get_long() == Some(name) && !option.is_hide_set())
    };
    let commands = tree.get_subcommands().filter(has_option).map(clap::Command::get_name);
    let examples: Vec<String> =
        commands.take(MAX_COMMANDS).map(|name| format!("`taskpawl {name} {given}`")).collect();
    if examples.is_empty() {
        return None;
    }
    let hint = format!("use it as in {}", examples.join(" or "));
    Some(CliError::usage_with(format!("this command has no option `{given}`"), hint))
}

/// Returns the output for the time before the command line is parsed.
fn output_of(environment: &Environment, is_json: bool) -> Output {
    let paint = |is_terminal: bool| Paint { is_on: environment.has_colours(is_terminal) };
    Output {
        is_json,
        is_pretty: environment.terminal.stdout,
        paint: paint(environment.terminal.stdout),
        paint_err: paint(environment.terminal.stderr),
        ..Output::default()
    }
}

/// Parses a command line. First builds only the named command's part of the tree, because the whole tree takes 0.8
/// MB. The whole tree is built if that fails: for the help, for suggestions, and for errors.
fn understood(words: &[OsString]) -> Result<Cli, clap::Error> {
    of_one_branch(words).map_or_else(|| of_whole_tree(words), Ok)
}

/// Parses a command line that may have options alone. They then belong to `status`, as no words at all do.
fn of_whole_tree(words: &[OsString]) -> Result<Cli, clap::Error> {
    match tree().try_get_matches_from(words) {
        Ok(matches) => Cli::from_arg_matches(&matches),
        Err(error) if error.kind() == ErrorKind::MissingSubcommand => {
            let status = OsString::from("status");
            Cli::from_arg_matches(&tree().try_get_matches_from(words.iter().chain([&status]))?)
        }
        Err(error) => Err(error),
    }
}

fn of_one_branch(words: &[OsString]) -> Option<Cli> {
    // The first such word may be the value of a flag; parsing then fails, and the whole tree decides.
    let branch = words.iter().skip(1).find_map(|word| Command::branch(word.to_str()?))?;
    let tree = Global::augment_args(clap::Command::new("taskpawl")).subcommand(branch);
    Cli::from_arg_matches(&tree.try_get_matches_from(words).ok()?).ok()
}

/// Prints the version without building the tree of commands, which would cost more than everything else together.
fn print_version(environment: &Environment) -> ExitCode {
    let out = output_of(environment, false);
    let _ = output::write_out(&concat!("taskpawl ", env!("CARGO_PKG_VERSION"), "\n").into());
    output::settle(ExitCode::SUCCESS, out.paint_err)
}

/// Returns whether an invalid command line asks for JSON, so that its error can be printed as JSON.
fn asks_for_json(words: &[OsString]) -> bool {
    let is_flag = |word: &OsStr| word == "--json" || word.to_string_lossy().starts_with("--fields");
    words.iter().take_while(|word| *word != "--").any(|word| is_flag(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn what_is_right_takes_one_branch_and_all_else_the_whole_tree() {
        let one = of_one_branch(&words("taskpawl --actor create show t1 --json")).is_some();
        assert!(!one, "`create` is a name here, and `show` the command");
        assert!(matches!(
            understood(&words("taskpawl --actor create show t1 --json")).unwrap().command,
            Command::Show(_)
        ));
        let cli = of_one_branch(&words("taskpawl show t1 --json")).unwrap();
        assert!(cli.global.json && matches!(cli.command, Command::Show(_)));
        assert!(of_one_branch(&words("taskpawl show --wrong")).is_none());
        for line in ["taskpawl --json", "taskpawl --store x.db --color never"] {
            assert!(matches!(understood(&words(line)).unwrap().command, Command::Status(_)), "{line}");
        }
        assert!(understood(&words("taskpawl --jsn")).is_err());
        let help = understood(&words("taskpawl --help")).unwrap_err().to_string();
        assert!(help.contains("\nRun:\n  run-all-ready      Run all ready tasks\n"), "{help}");
    }
}
