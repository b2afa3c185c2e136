//! Everything that the commands for planners share: their limits, the question before the first prompt, and the end of a planning.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use taskpawl::Taskpawl;
use taskpawl::model::advice::Hint;
use taskpawl::model::plan::{Position, plan_value};
use taskpawl::model::task::{Origin, Status};
use taskpawl::model::value::Period;
use taskpawl::model::view::Query;
use taskpawl::tools::{Power, ToolSpec};
use taskpawl::{Error, SandboxMode};
use taskpawl_planner::{Budget, Facts, PlannerError, Prompt, ProposeError, Refusal, Why, refused_text};

use super::checking::has_store;
use crate::app::App;
use crate::error::{CliError, Problem};
use crate::person;
use crate::planner::{Configured, ask_for_consent};
use crate::shown::shown;
use crate::text::{clean_block, count};
use crate::todo_lists;

/// Flags of the commands that ask a planner.
#[derive(Debug, clap::Args)]
pub(super) struct Asking {
    /// Apply it without asking, and approve nothing; also let a planner on another machine get the prompt
    #[arg(long)]
    pub(super) yes: bool,
    /// Print what the planner would get, and ask no planner
    #[arg(long)]
    pub(super) print_prompt: bool,
    /// The most tokens of all answers
    #[arg(long, value_name = "N", default_value_t = Budget::default().max_tokens, value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: u64,
    /// The most tasks of the answer
    #[arg(long, value_name = "N", default_value_t = Budget::default().max_tasks as u64, value_parser = clap::value_parser!(u64).range(1..=1000))]
    max_tasks: u64,
    /// The longest time for all answers
    #[arg(long, value_name = "TIME", default_value = "5m")]
    timeout: Period,
}

impl Default for Asking {
    fn default() -> Self {
        let Budget { max_tokens, max_tasks, timeout } = Budget::default();
        let max_tasks = u64::try_from(max_tasks).unwrap_or(u64::MAX);
        Self { yes: false, print_prompt: false, max_tokens, max_tasks, timeout: Period(timeout) }
    }
}

impl Asking {
    pub(super) fn budget(&self) -> Budget {
        let max_tasks = usize::try_from(self.max_tasks).unwrap_or(usize::MAX);
        Budget { max_tokens: self.max_tokens, max_tasks, timeout: self.timeout.0 }
    }

    /// Refuses a command that would apply its answer and could not ask, before a planner is paid for.
    pub(super) fn refuse_unasked(&self, app: &App, hint: &'static str) -> Result<(), CliError> {
        if self.yes || (app.terminal().can_ask() && !app.is_json()) {
            return Ok(());
        }
        Err(CliError::Unasked { what: "whether it is applied".to_owned(), hint: Hint::new(hint) })
    }

    /// Returns the planner, after a policy and a person let it have the prompt.
    pub(super) fn planner(
        &self,
        app: &App,
        by: &'static str,
        has_output: bool,
    ) -> Result<Configured, CliError> {
        let configured = Configured::of(app)?;
        person::check_power(app, Power::Planner, by)?;
        ask_for_consent(app, &configured, self.yes, has_output)?;
        Ok(configured)
    }
}

/// Returns the tools that a plan may call. Those of to-do lists run nothing.
pub(super) fn tools(app: &App, plans: &Taskpawl) -> Result<Vec<ToolSpec>, CliError> {
    let lists = todo_lists::tools(app)?;
    let is_of_list = |tool: &ToolSpec| lists.iter().any(|list| list.spec().name == tool.name);
    let tools = plans.blocking().tools_for(Origin::Agent);
    Ok(tools.into_iter().filter(|tool| !is_of_list(tool)).collect())
}

/// Returns what a planner may know about the project.
pub(super) fn facts(app: &App) -> Result<Facts, CliError> {
    let settings = app.config()?.sandbox();
    let sandbox = match (settings.mode, settings.net) {
        (SandboxMode::Off, _) => "off: programs have all rights of the user",
        (_, true) => "programs write to the project alone, and have the network",
        (_, false) => "programs write to the project alone, and have no network",
    };
    let grants = settings.hosts.iter().map(|host| format!("host {host}"));
    let ports = settings.ports.iter().map(|port| format!("port {port}"));
    let remembered = crate::grants::in_force(app)?;
    let grants = grants.chain(ports).chain(remembered.iter().map(ToString::to_string)).collect();
    let open_tasks = if has_store(app)? { open_tasks(app)? } else { Vec::new() };
    Ok(Facts { sandbox: sandbox.to_owned(), grants, open_tasks, ..Facts::of_directory(app.root()) })
}

fn open_tasks(app: &App) -> Result<Vec<String>, CliError> {
    let status = vec![Status::Todo, Status::InProgress, Status::Blocked];
    let page = app.reader()?.manager().list(&Query { status, limit: 20, ..Query::default() })?;
    Ok(page.tasks.iter().map(|task| format!("{}: {}", task.id, task.name)).collect())
}

/// Prints a prompt, and the planner that would get it.
pub(super) fn print_prompt(app: &App, prompt: &Prompt) -> Result<ExitCode, CliError> {
    let out = app.out();
    if app.config()?.planner().is_some() {
        let configured = Configured::without_key(app)?;
        let to = configured.remote.as_ref().map(|address| format!(", by {address}")).unwrap_or_default();
        out.remark(&format!("this goes to `{}`{to}", configured.planner.name()));
        if configured.reads_files {
            out.remark("this planner reads your files itself");
        }
    } else {
        out.remark("no planner is configured; nothing would be sent");
    }
    if out.is_json {
        return out.data(&json!({"instructions": prompt.instructions, "goal": prompt.goal}));
    }
    out.print(shown![clean_block(&prompt.instructions), "\n", clean_block(&prompt.goal)])
}

/// Returns the result of a planning, or the exit code of a signal. The best refused answer is kept in a file: beside `output`, or in the
/// working directory.
pub(super) fn outcome<T>(
    app: &App,
    planner: &str,
    output: Option<&Path>,
    result: Result<T, ProposeError<Error>>,
) -> Result<Result<T, ExitCode>, CliError> {
    match result {
        Ok(made) => Ok(Ok(made)),
        Err(ProposeError::Refused(refusal)) => Err(refused(app, planner, output, *refusal)?),
        Err(ProposeError::Planner(PlannerError::Interrupted { exit, .. })) => Ok(Err(ExitCode::from(exit))),
        Err(ProposeError::Planner(error)) => Err(error.into()),
        Err(ProposeError::Judge(error)) => Err(error.into()),
    }
}

/// Keeps the best refused plan, and returns the error.
fn refused(app: &App, planner: &str, output: Option<&Path>, refusal: Refusal) -> Result<CliError, CliError> {
    let Refusal { why, best, turns, requests: _, usage } = refusal;
    let (reason, hint) = match why {
        Why::Turns => ("its last answer still has problems".to_owned(), ""),
        Why::SameAnswer => ("it gave the same answer again".to_owned(), ""),
        Why::CutOff => ("its answer is cut off".to_owned(), "`--max-tokens` gives it more"),
        Why::Declined(words) => (format!("it declined: {}", taskpawl_text::cut(&words, 300)), ""),
        Why::Tokens => ("its answers took all tokens".to_owned(), "`--max-tokens` gives it more"),
    };
    let turns = count(u64::from(turns), "answer");
    // Programs do not always report their consumption.
    let spent = if usage.output == 0 { String::new() } else { format!(" of {} tokens", usage.output) };
    let message = format!("`{planner}` gave no usable plan in {turns}{spent}: {reason}");
    let Some(best) = best else {
        return Ok(CliError::NoPlan { message, problems: Vec::new(), hint: Hint::new(hint) });
    };
    let path = refused_path(app, output, &best.text);
    let text = refused_text(planner, &best.text, &best.problems);
    fs::write(&path, text).map_err(|source| CliError::File {
        action: "write",
        path: path.clone(),
        source,
    })?;
    let problem = |text: &String| Problem::at(None, Position::default(), String::new(), text.clone());
    let problems = best.problems.iter().map(problem).collect();
    let hint =
        Hint::new("the best answer is in ").data(path.display()).text(", with its problems at the end");
    Ok(CliError::NoPlan { message, problems, hint })
}

/// Returns the file for a refused plan: beside that of the plan, or named as the plan.
fn refused_path(app: &App, output: Option<&Path>, text: &str) -> PathBuf {
    if let Some(path) = output {
        return path.with_extension("refused.yaml");
    }
    let plan = plan_value(text).unwrap_or_default();
    let is_kept = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name: String = plan["name"].as_str().unwrap_or_default().chars().filter(is_kept).take(64).collect();
    let name = if name.is_empty() { "plan".to_owned() } else { name };
    app.environment().directory.join(format!("{name}.refused.yaml"))
}
