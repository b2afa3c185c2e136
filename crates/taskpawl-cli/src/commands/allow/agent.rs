//! `allow agent:NAME`: grants a coding agent what it needs.

use std::process::ExitCode;

use taskpawl::tools::Power;
use taskpawl_agent::AgentHost as _;

use super::{BY, choose};
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
    let answer = choose::answer(&"Give it to this agent in this project? [y/N] ".to_owned().into());
    if !answer.is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes")) {
        app.out().remark("nothing was granted");
        return Ok(ExitCode::SUCCESS);
    }
    person::refuse_without_person(app, BY)?;
    for power in [Power::Remembered, Power::Kits] {
        person::refuse_never(app, power)?;
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
