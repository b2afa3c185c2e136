//! `plan new`: a planner proposes a plan for a goal.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::Value;
use taskpawl::model::advice::Hint;
use taskpawl::model::task::Origin;
use taskpawl::{CheckOptions, RunVariables};
use taskpawl_planner::{Document, MAX_DOCUMENT_BYTES, Planning, Prompt, Proposal, TokenUsage, plan_text};

use super::asking::{self, Asking};
use super::checking::{checker, explain_tool};
use crate::app::App;
use crate::commands::plan_file::{PlanText, Takes, read_text};
use crate::commands::proposed;
use crate::error::CliError;
use crate::text::{clean_block, count, path_word};

#[derive(Debug, clap::Args)]
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
    #[command(flatten)]
    asking: Asking,
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
    let (plans, budget) = (checker(app)?, args.asking.budget());
    let tools = asking::tools(app, &plans)?;
    let prompt = Prompt::new(&goal, &documents, &tools, &asking::facts(app)?, budget.max_tasks);
    if args.asking.print_prompt {
        return asking::print_prompt(app, &prompt);
    }
    refuse_early(app, args)?;
    let configured = args.asking.planner(app, "plan new", false)?;
    let (variables, explain) = (RunVariables::default(), |name: &str| explain_tool(app, name));
    let options =
        CheckOptions { origin: Origin::Agent, variables: &variables, explain: &explain, files: None };
    let planner = &*configured.planner;
    let proposed = plans.blocking().propose(&prompt, &tools, planner, budget, options);
    match asking::outcome(app, &planner.name(), args.output.as_deref(), proposed)? {
        Ok(proposal) => finish(app, args, &planner.name(), &proposal),
        Err(code) => Ok(code),
    }
}

/// Refuses a command that could not end well, before a planner is paid for.
fn refuse_early(app: &App, args: &New) -> Result<(), CliError> {
    if args.apply {
        args.asking
            .refuse_unasked(app, "`--yes` applies it and approves nothing; `-o FILE` keeps it for later")?;
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
        return Err(CliError::usage_with("the goal is empty", "describe the goal in a sentence or two"));
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

/// Returns the line about the answers of a planner.
pub(super) fn spent(verb: &str, planner: &str, turns: u32, usage: TokenUsage) -> String {
    let usage = usage.described();
    let usage = if usage.is_empty() { usage } else { format!(": {usage}") };
    format!("{verb} by `{planner}` in {}{usage}", count(u64::from(turns), "answer"))
}

fn finish(app: &App, args: &New, planner: &str, proposal: &Proposal) -> Result<ExitCode, CliError> {
    let Proposal { plan, turns, requests, usage } = proposal;
    let planning = Planning { planner: planner.to_owned(), turns: *turns, usage: *usage };
    let text = plan_text(plan, &planning);
    let out = app.out();
    out.remark(&spent("planned", planner, *turns, *usage));
    let mut made =
        Made { text: &text, planning: planning.to_json(), requests: *requests, file: None, applied: None };
    if let Some(path) = args.output.as_ref().filter(|path| path.as_os_str() != "-") {
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
                .data(format!("taskpawl apply {}", crate::text::quoted(&path_word(path))))
                .text(" shows what would run, and asks"),
        );
        return Ok(ExitCode::SUCCESS);
    }
    if args.apply {
        let file = PlanText::of_planner(text.clone()).plan(app, &Takes::default())?;
        let Some(name) = proposed::apply(app, &file, args.asking.yes)? else { return Ok(ExitCode::SUCCESS) };
        made.applied = Some(name);
        return if out.is_json { out.data(&made) } else { Ok(ExitCode::SUCCESS) };
    }
    if out.is_json {
        return out.data(&made);
    }
    out.print(clean_block(&text))
}
