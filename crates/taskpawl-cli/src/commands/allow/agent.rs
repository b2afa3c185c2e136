//! `allow agent:NAME`: grants a coding agent what it needs.

use std::process::ExitCode;

use taskpawl_agent::AgentHost as _;

use super::{BY, may_give};
use crate::app::App;
use crate::audit::{self, Action};
use crate::coding_agents::CodingAgents;
use crate::error::CliError;
use crate::grants::{Grants, Project};
use crate::kits::GrantedAgent;
use crate::person;
use crate::shown::Shown;
use crate::text::clean;

/// Shows the program and its access, and grants it after a yes.
pub(super) fn give(app: &App, name: &str, agents: bool) -> Result<ExitCode, CliError> {
    person::refuse_other_callers(app, BY)?;
    let agent = CodingAgents::of(app)?.agent(Some(name)).map_err(CliError::usage)?;
    if agent.needs.is_empty() {
        app.out().remark(&format!("agent `{}` needs nothing beyond the sandbox of its calls", clean(name)));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = Shown::new();
    text.push(format!("agent {}: {}\n", clean(&agent.name), clean(&agent.argv.join(" "))));
    for grant in &agent.needs {
        text.push(format!("  {}\n", clean(&grant.to_string())));
    }
    text.push("  everything that the agent runs can read and change this, a login in it too\n");
    app.out().print(text)?;
    if !may_give(app, "Give it to this agent in this project? [y/N] ")? {
        return Ok(ExitCode::SUCCESS);
    }
    let granted = GrantedAgent::new((Project::of(app)?, app.source()?.now()), &agent, agents);
    Grants::change_agents(app, |own| {
        own.retain(|known| known.agent != granted.agent);
        own.push(granted.clone());
    })?;
    let whom = if agents { ", also for calls of models" } else { "" };
    let about = format!("kit {}{whom}", clean(&granted.kit()));
    audit::record(app, Action::Grant, &about)?;
    app.out().remark(&format!("remembered: {about}"));
    Ok(ExitCode::SUCCESS)
}

/// Takes the kit of an agent away. Less access needs no PIN.
pub(super) fn remove(app: &App, name: &str) -> Result<ExitCode, CliError> {
    person::refuse_other_callers(app, BY)?;
    let mut had = false;
    Grants::change_agents(app, |own| {
        had = own.iter().any(|known| known.agent == name);
        own.retain(|known| known.agent != name);
    })?;
    if had {
        audit::record(app, Action::Revoke, &format!("kit agent:{}", clean(name)))?;
    }
    app.out().remark(if had { "it is no longer remembered" } else { "none of it was remembered" });
    Ok(ExitCode::SUCCESS)
}
