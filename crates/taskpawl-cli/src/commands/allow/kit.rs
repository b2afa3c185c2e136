//! `allow kit:NAME`: grants a kit to tasks.

use std::process::ExitCode;

use super::{BY, may_give};
use crate::app::App;
use crate::audit::{self, Action};
use crate::error::CliError;
use crate::grants::{Grants, Project};
use crate::kits::{GrantedKit, Kit, KitTask};
use crate::person;
use crate::shown::Shown;
use crate::text::clean;

/// Shows the tasks with all their calls, and what has changed in those that have the kit, and grants it after a yes.
pub(super) fn give(app: &App, kit: Kit, ids: &[String], agents: bool) -> Result<ExitCode, CliError> {
    person::refuse_other_callers(app, BY)?;
    if ids.is_empty() {
        return Err(CliError::usage_with(
            "a kit is for named tasks, and none is named",
            "name them with `--task ID`",
        ));
    }
    let grants =
        kit.grants(app).map_err(|why| CliError::usage(format!("the kit {kit} cannot be given: {why}")))?;
    let tasks = read(app, ids)?;
    let known: Vec<KitTask> = Grants::kits_of_project(app)?
        .into_iter()
        .filter(|known| known.kit == kit)
        .flat_map(|known| known.tasks)
        .collect();
    app.out().print(text(
        kit,
        &grants.iter().map(ToString::to_string).collect::<Vec<_>>(),
        &tasks,
        &known,
    ))?;
    if !may_give(app, "Give it to these tasks, as they are shown? [y/N] ")? {
        return Ok(ExitCode::SUCCESS);
    }
    let (project, now) = (Project::of(app)?, app.source()?.now());
    Grants::change_kits(app, |own| {
        // Tasks that had it keep it as they had it; those that are named have it as they are now.
        for known in own.iter_mut().filter(|known| known.kit == kit) {
            known.tasks.retain(|task| !tasks.iter().any(|new| new.id == task.id));
        }
        own.retain(|known| !known.tasks.is_empty());
        own.push(GrantedKit::new(project, kit, tasks.clone(), agents, now));
    })?;
    let whom = if agents { ", also calls of models" } else { "" };
    let names: Vec<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
    let about = format!("kit {kit} for {}{whom}", clean(&names.join(", ")));
    audit::record(app, Action::Grant, &about)?;
    app.out().remark(&format!("remembered: {about}"));
    Ok(ExitCode::SUCCESS)
}

fn read(app: &App, ids: &[String]) -> Result<Vec<KitTask>, CliError> {
    let manager = app.reader()?.manager();
    let read = |id: &String| {
        // The beginning of an id is enough, as for other commands.
        let task = manager.get(id)?;
        KitTask::read(manager, task.id.as_str())?
            .filter(|task| !task.calls.is_empty())
            .ok_or_else(|| CliError::usage(format!("task `{}` has no calls that could use a kit", clean(id))))
    };
    ids.iter().map(read).collect()
}

fn text(kit: Kit, grants: &[String], tasks: &[KitTask], known: &[KitTask]) -> Shown {
    let mut text = Shown::new();
    text.push(format!("kit {kit}: {}\n", clean(&grants.join(", "))));
    text.push(format!("  {}\n", kit.risk()));
    for task in tasks {
        let before = known.iter().find(|old| old.id == task.id);
        let lines = match before.map(|old| task.difference(old)) {
            Some(difference) if difference.is_empty() => vec!["  as before".to_owned()],
            Some(difference) => difference,
            None => task.calls.iter().map(|call| format!("  {}", call.text)).collect(),
        };
        let note = if before.is_some() { " (has it)" } else { "" };
        text.push(format!("task {}{note}\n", clean(task.id.as_str())));
        for line in lines {
            text.push(format!("  {}\n", taskpawl_text::revealed_line(&line)));
        }
    }
    text
}

/// Takes a kit away from all tasks. Less access needs no PIN.
pub(super) fn remove(app: &App, kit: Kit) -> Result<ExitCode, CliError> {
    person::refuse_other_callers(app, BY)?;
    let mut had = false;
    Grants::change_kits(app, |own| {
        had = own.iter().any(|known| known.kit == kit);
        own.retain(|known| known.kit != kit);
    })?;
    if had {
        audit::record(app, Action::Revoke, &format!("kit {kit}"))?;
    }
    app.out().remark(if had { "it is no longer remembered" } else { "none of it was remembered" });
    Ok(ExitCode::SUCCESS)
}
