//! `plan new`: a planner proposes a plan for a goal.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::{Value, json};
use taskpawl::model::advice::Hint;
use taskpawl::model::task::{Origin, Status};
use taskpawl::model::value::Period;
use taskpawl::tools::{Power, ToolSpec};
use taskpawl::{CheckOptions, RunVariables, SandboxMode, Taskpawl};
use taskpawl_planner::{
    Budget, Document, Facts, MAX_DOCUMENT_BYTES, Planning, Prompt, Proposal, ProposeError, Refusal, Why,
    plan_text, refused_text,
};

use super::{checker, explain_tool, has_store};
use crate::app::App;
use crate::commands::apply::{PlanText, Takes, read_text};
use crate::commands::proposed;
use crate::error::{CliError, Problem};
use crate::person;
use crate::planner::{Configured, ask_for_consent};
use crate::shown::shown;
use crate::text::{clean_block, count};
use crate::todo_lists;

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
#[command(after_help = "\
The planner is named in your own configuration: docs/planner.md. It gets the goal, the documents, the tools, and names of the project, \
and no contents of files. Its answers are checked as `plan check` does; problems go back to it, and after 3 answers the best one is kept \
as PLAN.refused.yaml (exit code 7). Nothing runs.

Examples:
  taskpawl plan new \"Publish version 2\" -o release.yaml
  taskpawl plan new \"Implement the spec\" --from SPEC.md --apply
  taskpawl plan new - --print-prompt < goal.txt")]
pub(super) struct New {
    /// The goal in words; `-` for standard input
    #[arg(value_name = "GOAL")]
    goal: String,
    /// A document that belongs to the goal. May be given several times
    #[arg(long = "from", value_name = "FILE")]
    documents: Vec<PathBuf>,
    /// Write the plan to this file, which must not exist
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["apply", "print_prompt"])]
    output: Option<PathBuf>,
    /// Show the plan with everything that would run, and apply it after a yes. Its calls count as those of an agent
    #[arg(long, conflicts_with = "print_prompt")]
    apply: bool,
    /// Apply it without asking, and approve nothing; also let a planner on another machine get the prompt
    #[arg(long)]
    yes: bool,
    /// Print what the planner would get, and ask no planner
    #[arg(long)]
    print_prompt: bool,
    /// The most tokens of all answers
    #[arg(long, value_name = "N", default_value_t = Budget::default().max_tokens, value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: u64,
    /// The most tasks of the plan
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
    max_tasks: u64,
    /// The longest time for all answers
    #[arg(long, value_name = "TIME", default_value = "5m")]
    timeout: Period,
}

impl New {
    fn budget(&self) -> Budget {
        let max_tasks = usize::try_from(self.max_tasks).unwrap_or(usize::MAX);
        Budget { max_tokens: self.max_tokens, max_tasks, timeout: self.timeout.0 }
    }
}

/// Result of `plan new`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Made<'m> {
    /// The plan as YAML.
    text: &'m str,
    planning: Value,
    requests: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'m Path>,
    /// The name of the applied plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    applied: Option<String>,
}

/// Makes a plan for a goal.
pub(super) fn run(app: &App, args: &New) -> Result<ExitCode, CliError> {
    let goal = goal(args)?;
    let documents = documents(args)?;
    let plans = checker(app)?;
    let tools = tools(app, &plans)?;
    let prompt = Prompt::new(&goal, &documents, &tools, &facts(app)?, args.budget().max_tasks);
    if args.print_prompt {
        return print_prompt(app, &prompt);
    }
    refuse_early(app, args)?;
    let configured = Configured::of(app)?;
    person::check_power(app, Power::Planner, "plan new")?;
    ask_for_consent(app, &configured, args.yes)?;
    let (variables, explain) = (RunVariables::default(), |name: &str| explain_tool(app, name));
    let options = CheckOptions { origin: Origin::Agent, variables: &variables, explain: &explain };
    let planner = &*configured.planner;
    let proposal = match plans.blocking().propose(&prompt, &tools, planner, args.budget(), options) {
        Ok(proposal) => proposal,
        Err(ProposeError::Refused(refusal)) => return Err(refused(app, args, &planner.name(), *refusal)?),
        Err(ProposeError::Planner(taskpawl_planner::PlannerError::Interrupted { exit, .. })) => {
            return Ok(ExitCode::from(exit));
        }
        Err(ProposeError::Planner(error)) => return Err(error.into()),
        Err(ProposeError::Judge(error)) => return Err(error.into()),
    };
    finish(app, args, &planner.name(), &proposal)
}

/// Refuses a command that could not end well, before a planner is paid for.
fn refuse_early(app: &App, args: &New) -> Result<(), CliError> {
    if args.apply && !args.yes && !(app.terminal().can_ask() && !app.is_json()) {
        let hint = Hint::new("`--yes` applies it and approves nothing; `-o FILE` keeps it for later");
        return Err(CliError::Unasked { what: "whether the plan is applied".to_owned(), hint });
    }
    match &args.output {
        Some(path) if path.symlink_metadata().is_ok() => {
            let hint = Hint::new("name another file, or remove this one");
            Err(CliError::NotHere { path: path.clone(), why: "it exists".to_owned(), hint })
        }
        Some(_) | None => Ok(()),
    }
}

fn goal(args: &New) -> Result<String, CliError> {
    let goal = if args.goal == "-" { read_text(Path::new("-"), true)? } else { args.goal.clone() };
    let goal = goal.trim();
    if goal.is_empty() {
        return Err(CliError::usage_with(
            "the goal is empty",
            "say in a sentence or two what is to be reached",
        ));
    }
    Ok(goal.to_owned())
}

/// Reads the documents. More than the limit is refused: the planner would not know what was left out.
fn documents(args: &New) -> Result<Vec<Document>, CliError> {
    let document = |path: &PathBuf| {
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok(Document { name, text: read_text(path, false)? })
    };
    let documents = args.documents.iter().map(document).collect::<Result<Vec<_>, CliError>>()?;
    let bytes: usize = documents.iter().map(|document| document.text.len()).sum();
    if bytes > MAX_DOCUMENT_BYTES {
        let message =
            format!("the documents have {bytes} bytes, and at most {MAX_DOCUMENT_BYTES} go to a planner");
        return Err(CliError::usage_with(message, "give the parts that matter"));
    }
    Ok(documents)
}

/// Returns the tools that a plan may call. Those of to-do lists run nothing.
fn tools(app: &App, plans: &Taskpawl) -> Result<Vec<ToolSpec>, CliError> {
    let lists = todo_lists::tools(app)?;
    let is_of_list = |tool: &ToolSpec| lists.iter().any(|list| list.spec().name == tool.name);
    let tools = plans.blocking().tools_for(Origin::Agent);
    Ok(tools.into_iter().filter(|tool| !is_of_list(tool)).collect())
}

fn facts(app: &App) -> Result<Facts, CliError> {
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
    use taskpawl::model::view::Query;
    let status = vec![Status::Todo, Status::InProgress, Status::Blocked];
    let page = app.reader()?.manager().list(&Query { status, limit: 20, ..Query::default() })?;
    Ok(page.tasks.iter().map(|task| format!("{}: {}", task.id, task.name)).collect())
}

fn print_prompt(app: &App, prompt: &Prompt) -> Result<ExitCode, CliError> {
    let configured = match app.config()?.planner() {
        Some(_) => Some(Configured::of(app)?),
        None => None,
    };
    let out = app.out();
    if let Some(configured) = &configured {
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

/// Keeps the best refused plan, and returns the error.
fn refused(app: &App, args: &New, planner: &str, refusal: Refusal) -> Result<CliError, CliError> {
    let Refusal { why, best, turns, requests: _, usage } = refusal;
    let reason = match why {
        Why::Turns => "its last answer still has problems".to_owned(),
        Why::SameAnswer => "it gave the same answer again".to_owned(),
        Why::CutOff => "its answer is cut off".to_owned(),
        Why::Declined(words) => format!("it declined: {}", taskpawl_text::cut(&words, 300)),
        Why::Tokens => format!("its answers took all {} tokens", args.max_tokens),
    };
    let turns = count(u64::from(turns), "answer");
    let message = format!("`{planner}` made no plan in {turns} ({} output tokens): {reason}", usage.output);
    let Some(best) = best else {
        let hint = if reason.contains("cut off") { "`--max-tokens` gives it more" } else { "" };
        return Ok(CliError::NoPlan { message, problems: Vec::new(), hint: Hint::new(hint) });
    };
    let path = refused_path(app, args, &best.text);
    let text = refused_text(planner, &best.text, &best.problems);
    fs::write(&path, text).map_err(|source| CliError::File {
        action: "write",
        path: path.clone(),
        source,
    })?;
    let problem = |text: &String| Problem::at(None, taskpawl::model::plan::Position::default(), String::new(), text.clone());
    let problems = best.problems.iter().map(problem).collect();
    let hint = Hint::new("the best answer is in ").data(path.display()).text(", with its problems");
    Ok(CliError::NoPlan { message, problems, hint })
}

/// Returns the file for a refused plan: beside that of `-o`, or named as the plan.
fn refused_path(app: &App, args: &New, text: &str) -> PathBuf {
    if let Some(path) = &args.output {
        return path.with_extension("refused.yaml");
    }
    let plan = taskpawl::model::plan::plan_value(text).unwrap_or_default();
    let is_kept = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name: String = plan["name"].as_str().unwrap_or_default().chars().filter(is_kept).take(64).collect();
    let name = if name.is_empty() { "plan".to_owned() } else { name };
    app.environment().directory.join(format!("{name}.refused.yaml"))
}

fn finish(app: &App, args: &New, planner: &str, proposal: &Proposal) -> Result<ExitCode, CliError> {
    let Proposal { plan, turns, requests, usage } = proposal;
    let planning = Planning { planner: planner.to_owned(), turns: *turns, usage: *usage };
    let text = plan_text(plan, &planning);
    let out = app.out();
    let cost = usage.cost.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
    let answers = count(u64::from(*turns), "answer");
    let spent = format!(
        "planned by `{planner}` in {answers}: {} input and {} output tokens{cost}",
        usage.input, usage.output
    );
    out.remark(&spent);
    let mut made =
        Made { text: &text, planning: planning.to_json(), requests: *requests, file: None, applied: None };
    if let Some(path) = &args.output {
        let write = |mut file: fs::File| std::io::Write::write_all(&mut file, text.as_bytes());
        let written = fs::File::create_new(path).and_then(write);
        written.map_err(|source| CliError::File { action: "write", path: path.clone(), source })?;
        made.file = Some(path);
        if out.is_json {
            return out.data(&made);
        }
        let hint = Hint::new("wrote ").data(path.display()).text("; ");
        out.advise(
            &hint
                .data(format!("taskpawl apply {}", crate::text::quoted(&path.display().to_string())))
                .text(" shows what would run, and asks"),
        );
        return Ok(ExitCode::SUCCESS);
    }
    if args.apply {
        let file = PlanText::of_planner(text.clone()).plan(app, &Takes::default())?;
        let Some(name) = proposed::apply(app, file, args.yes)? else { return Ok(ExitCode::SUCCESS) };
        made.applied = Some(name);
        return if out.is_json { out.data(&made) } else { Ok(ExitCode::SUCCESS) };
    }
    if out.is_json {
        return out.data(&made);
    }
    out.print(clean_block(&text))
}
