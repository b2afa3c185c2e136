use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use taskpawl::RunOptions;
use taskpawl::model::command::NewTask;
use taskpawl::model::task::{CallSpec, NewCall, TaskSpec};
use taskpawl::model::value::Period;
use taskpawl::store::{Diagnostic, Location, Severity};
use taskpawl::tools::Tool;
use taskpawl_agent::{AgentDefinition, AgentProbe, Preset};

use crate::app::App;
use crate::coding_agents::{AgentSource, CodingAgents};
use crate::commands::sandbox::SandboxArgs;
use crate::error::CliError;
use crate::grants::Grants;
use crate::servers::{private_directory, root};
use crate::text::{Cell, Table};

/// Most agents that `doctor` names.
const MAX_NOTED: usize = 5;

/// List the coding agents that calls of `agent` may name
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An agent is a program that speaks the Agent Client Protocol. Known agents are found on the search path; others, and \
other programs, are named in your own config.toml, never in that of a project:

  [agents.mine]
  command = [\"my-agent\", \"--acp\"]
  hosts = [\"models.example.org\"]          # what it needs beyond the sandbox: also read, write
  env = { MY_KEY = \"${secret:mine}\" }     # a key is a secret

A call starts it in the sandbox: {agent: {prompt: \"…\", using: mine}}. docs/agents-as-tools.md says more.

Examples:
  taskpawl agents
  taskpawl agents --check
  taskpawl allow agent:claude")]
pub(crate) struct Args {
    /// Start each of them in the sandbox, and see if it answers; sends no prompt
    #[arg(long)]
    check: bool,
}

/// An agent in `--json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    name: String,
    source: AgentSource,
    command: Vec<String>,
    needs: Vec<String>,
    /// True if a person has granted what it needs in this project.
    granted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<Checked>,
}

/// The result of starting an agent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase", untagged)]
enum Checked {
    Works(Value),
    Fails { error: String },
}

pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let agents = Arc::new(CodingAgents::of(app)?);
    let mut all = Vec::new();
    for (agent, source) in agents.all() {
        let check = if args.check { Some(check(app, &agents, &agent)?) } else { None };
        all.push(listed(app, &agent, source, check)?);
    }
    let out = app.out();
    if out.is_json {
        out.data(&all)?;
        return Ok(exit(&all));
    }
    let mut table = Table::new(2);
    for agent in &all {
        let cells = [agent.name.clone(), agent.command.join(" "), words(agent)];
        table.row(cells.iter().map(Cell::new).collect());
    }
    out.print(table.render(out.paint, out.width))?;
    if all.is_empty() {
        let known: Vec<&str> = Preset::ALL.iter().map(|preset| preset.name).collect();
        out.remark(&format!(
            "no coding agent is configured, and none of the known ones is on the search path: {}",
            known.join(", ")
        ));
    }
    Ok(exit(&all))
}

fn exit(all: &[Listed]) -> ExitCode {
    let fails = all.iter().any(|agent| matches!(agent.check, Some(Checked::Fails { .. })));
    ExitCode::from(u8::from(fails))
}

fn listed(
    app: &App,
    agent: &AgentDefinition,
    source: AgentSource,
    check: Option<Checked>,
) -> Result<Listed, CliError> {
    let granted = if app.place().is_ok() { Grants::agents_of_project(app)? } else { Vec::new() };
    let has = |granted: &crate::kits::GrantedAgent| {
        granted.agent == agent.name
            && granted.command == agent.argv
            && agent.needs.iter().all(|need| granted.grants.contains(need))
    };
    Ok(Listed {
        name: agent.name.clone(),
        source,
        command: agent.argv.clone(),
        needs: agent.needs.iter().map(ToString::to_string).collect(),
        granted: agent.needs.is_empty() || granted.iter().any(has),
        check,
    })
}

fn words(agent: &Listed) -> String {
    let access = if agent.granted {
        "ready".to_owned()
    } else {
        format!("needs `taskpawl allow agent:{}`", agent.name)
    };
    match &agent.check {
        None => access,
        Some(Checked::Fails { error }) => format!("fails: {error}"),
        Some(Checked::Works(about)) => {
            let version = about["version"].as_str().unwrap_or_default();
            let loads = if about["loadSession"] == true { "" } else { ", cannot continue sessions" };
            format!("works {version}{loads}, {access}")
        }
    }
}

/// Returns a note for `doctor` about the agents that are here; `None` without any.
pub(crate) fn note(app: &App) -> Result<Option<Diagnostic>, CliError> {
    let agents = CodingAgents::of(app)?.all();
    let mut words = Vec::new();
    for (agent, source) in agents.iter().take(MAX_NOTED) {
        let is_granted = listed(app, agent, *source, None)?.granted;
        words.push(format!("`{}`{}", agent.name, if is_granted { "" } else { " (not granted)" }));
    }
    if words.is_empty() {
        return Ok(None);
    }
    if let Some(more @ 1..) = agents.len().checked_sub(MAX_NOTED) {
        words.push(format!("{more} more"));
    }
    let message = format!("calls of `agent` can use {}", words.join(", "));
    let remedy = "`taskpawl agents --check` starts each of them";
    Ok(Some(Diagnostic::new("agents", Severity::Note, "agents", message, remedy)))
}

/// Starts an agent as a call does, in a run of one task.
fn check(app: &App, agents: &Arc<CodingAgents>, agent: &AgentDefinition) -> Result<Checked, CliError> {
    let probe = Arc::new(AgentProbe::new(Arc::clone(agents) as Arc<dyn taskpawl_agent::AgentHost>));
    let files = private_directory("taskpawl-agent-").map_err(CliError::Runtime)?;
    // A store in memory, so that the check leaves no trace in the plan.
    let builder = app.builder_at(Location::Memory, &root(app)?)?;
    let builder = builder.files(files.path()).tool(probe as Arc<dyn Tool>);
    let plans = app.held(builder, &SandboxArgs::default())?.open()?;
    let args = json!({"using": agent.name}).as_object().cloned().unwrap_or_default();
    let spec = CallSpec {
        tool_name: AgentProbe::NAME.to_owned(),
        args,
        timeout: Some(Period(std::time::Duration::from_mins(1))),
        ..CallSpec::default()
    };
    let calls = vec![NewCall { id: None, spec: spec.into() }];
    let spec = TaskSpec { name: AgentProbe::NAME.to_owned(), ..TaskSpec::default() };
    let task = plans.blocking().create_task(NewTask { spec, calls, ..NewTask::default() })?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    runtime.block_on(plans.execute_task(task.id.as_str(), RunOptions::default()))?;
    runtime.shutdown_background();
    let mut task = plans.blocking().get_task(task.id.as_str())?;
    let call = task.metadata.tool_calls.swap_remove(0);
    Ok(match (call.error, call.result) {
        (None, Some(about)) => Checked::Works(about),
        (error, _) => Checked::Fails { error: error.unwrap_or_else(|| "it was not started".to_owned()) },
    })
}
