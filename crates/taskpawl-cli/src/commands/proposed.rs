//! Plans of planners: everything that would run is shown before a person applies one.

use std::collections::BTreeSet;

use taskpawl::model::advice::Hint;
use taskpawl::model::insight::ForecastOptions;
use taskpawl::model::task::{ApprovalRequest, Origin};
use taskpawl::model::value::{Selector, TaskId};
use taskpawl::store::{AllowedRoots, Location};
use taskpawl::{ApplyOptions, Manager, RunOptions, Taskpawl};

use crate::app::App;
use crate::audit::{self, Action};
use crate::commands::apply_report::text_of;
use crate::commands::forecast;
use crate::commands::plan_file::PlanFile;
use crate::commands::question::{self, Extent};
use crate::commands::running;
use crate::commands::sandbox::SandboxArgs;
use crate::error::CliError;
use crate::output::write_err;
use crate::person;
use crate::shown::shown;
use crate::text::count;

/// The answer to the question about a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// Apply it, and approve everything that was shown.
    All,
    /// Apply it, and ask about each call.
    Each,
    /// Apply it, and approve nothing.
    Apply,
    /// Leave it.
    Leave,
}

/// Shows a plan of a planner, asks, and applies it with the origin `agent`. Returns its name, or `None` if it was not applied.
///
/// # Errors
/// There is no person to ask, and `is_yes` is false.
pub(super) fn apply(app: &App, file: &PlanFile, is_yes: bool) -> Result<Option<String>, CliError> {
    file.check(app)?;
    let trial = trial(app, file, Origin::Agent)?;
    let name = file.name.clone();
    let ahead = trial.manager().approvals_ahead(&[Selector::Plan(name.clone())])?.requests;
    show(app, &trial, file)?;
    let can_approve = !is_yes && person::refuse_other_callers(app, "approve").is_ok();
    let choice = if is_yes { Choice::Apply } else { ask(app, &ahead, can_approve)? };
    if choice == Choice::Leave {
        app.out().remark("nothing was applied");
        return Ok(None);
    }
    if matches!(choice, Choice::All | Choice::Each) && !ahead.is_empty() {
        crate::pin::ask(app, "approve")?;
    }
    app.plan_project(AllowedRoots::All)?;
    let manager = app.manager()?.clone().with_origin(Origin::Agent);
    let options = ApplyOptions { keeps_approvals: app.was_started_by_task(), ..ApplyOptions::default() };
    let applied = manager.apply(file.plan.clone(), &name, options);
    let report = applied.map_err(|error| file.placed(&manager, error))?;
    let out = app.out();
    if !out.is_json {
        out.print(text_of(app, &report))?;
    }
    approve(app, &name, &ahead, choice)?;
    Ok(Some(report.plan))
}

/// Shows a plan whose file begins with the comment of generated plans, and asks once. A plan that changes nothing is not asked about.
///
/// # Errors
/// There is no person to ask, or the person says no.
pub(super) fn confirm(
    app: &App,
    file: &PlanFile,
    options: ApplyOptions,
    is_yes: bool,
) -> Result<(), CliError> {
    if !file.is_generated || is_yes || is_applied(app, file, options) {
        return Ok(());
    }
    let hint = Hint::new("look at the file and remove its first comment, or give `--yes`");
    if !app.terminal().can_ask() || app.is_json() {
        let what = format!("whether `{}`, which a planner wrote, is applied", file.name);
        return Err(CliError::Unasked { what, hint });
    }
    show(app, &trial(app, file, Origin::Plan)?, file)?;
    match line(&"A planner wrote this plan. Apply it as your own? [y/N] ".into()).as_deref() {
        Some("y" | "yes") => Ok(()),
        _ => Err(CliError::NoPlan { message: "nothing was applied".to_owned(), problems: Vec::new(), hint }),
    }
}

/// Returns whether the store has this plan already.
fn is_applied(app: &App, file: &PlanFile, options: ApplyOptions) -> bool {
    if !app.place().is_ok_and(|place| place.new_root().is_none()) {
        return false;
    }
    let Ok(reader) = app.reader() else { return false };
    let manager = reader.manager().clone().with_origin(Origin::Plan);
    let previewed = manager.preview_apply(file.plan.clone(), &file.name, options);
    previewed.is_ok_and(|report| {
        report.created.is_empty()
            && report.changed.is_empty()
            && report.header.is_empty()
            && report.unchanged > 0
    })
}

/// Applies a plan to a store in memory, to learn what it would run and ask.
fn trial(app: &App, file: &PlanFile, origin: Origin) -> Result<Taskpawl, CliError> {
    let builder = app.builder_at(Location::Memory, app.root())?;
    let plans = app.held(builder, &SandboxArgs::default())?.open()?;
    let manager: Manager = plans.manager().clone().with_origin(origin);
    let mut plan = file.plan.clone();
    // The tasks of the store that it depends on are not in this one.
    for task in &mut plan.tasks {
        task.needs_outside.clear();
    }
    manager.apply(plan, &file.name, ApplyOptions::default()).map_err(|error| file.placed(&manager, error))?;
    Ok(plans)
}

/// Prints the order of the tasks, and every call that asks with its arguments.
fn show(app: &App, trial: &Taskpawl, file: &PlanFile) -> Result<(), CliError> {
    let out = app.out();
    if out.is_json {
        return Ok(());
    }
    let only = vec![Selector::Plan(file.name.clone())];
    let jobs = RunOptions { jobs: app.config()?.jobs, ..RunOptions::default() }.jobs();
    let options = ForecastOptions {
        only: only.clone(),
        jobs,
        means: running::means(app)?,
        ..ForecastOptions::default()
    };
    let mut found = trial.manager().forecast(&options)?;
    found.next_actions.clear();
    out.print(forecast::text(&out, &found, &[]))?;
    let calls: usize = file.plan.tasks.iter().map(|task| task.calls.len()).sum();
    out.print(format!("{} in all\n\n", count(calls as u64, "call")))?;
    for request in trial.manager().approvals_ahead(&only)?.requests {
        out.print(shown![question::text(&request, Extent::Full, out.paint), "\n"].wrapped(out.width))?;
    }
    Ok(())
}

/// Asks whether a plan is applied, and which of its calls are approved.
fn ask(app: &App, ahead: &[ApprovalRequest], can_approve: bool) -> Result<Choice, CliError> {
    if !app.terminal().can_ask() || app.is_json() {
        let hint = Hint::new("`--yes` applies it and approves nothing");
        return Err(CliError::Unasked { what: "whether the plan is applied".to_owned(), hint });
    }
    if ahead.is_empty() || !can_approve {
        return Ok(match line(&"Apply this plan? [y/N] ".into()).as_deref() {
            Some("y" | "yes") => Choice::Apply,
            _ => Choice::Leave,
        });
    }
    let questions = count(ahead.len() as u64, "question");
    let text = format!(
        "Apply this plan? It asks {questions}: [a] yes, and approve all as shown, [o] one by one, [y] yes, and approve nothing; [N] no: "
    );
    Ok(match line(&text.into()).as_deref() {
        Some("a" | "all") => Choice::All,
        Some("o" | "one") => Choice::Each,
        Some("y" | "yes") => Choice::Apply,
        _ => Choice::Leave,
    })
}

/// Asks at the terminal; `None` if the question cannot be shown or answered.
fn line(text: &crate::shown::Shown) -> Option<String> {
    write_err(text).ok()?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).ok()?;
    Some(line.trim().to_lowercase())
}

/// Approves the calls that were shown, and no others: each answer is bound to the hash of what was shown.
fn approve(app: &App, name: &str, shown: &[ApprovalRequest], choice: Choice) -> Result<(), CliError> {
    if !matches!(choice, Choice::All | Choice::Each) {
        return Ok(());
    }
    let hashes: BTreeSet<&str> = shown.iter().map(|request| request.hash.as_str()).collect();
    let manager = app.manager()?;
    let now = manager.approvals_ahead(&[Selector::Plan(name.to_owned())])?.requests;
    let (same, other): (Vec<_>, Vec<_>) =
        now.into_iter().partition(|request| hashes.contains(&*request.hash));
    let mut approved: Vec<TaskId> = Vec::new();
    for request in &same {
        let text = shown!["Approve ", request.task.to_string(), "? [y/N] "];
        let is_wanted = choice == Choice::All || matches!(line(&text).as_deref(), Some("y" | "yes"));
        if is_wanted {
            approved.extend(manager.approve_ahead(request)?);
        }
    }
    approved.dedup();
    audit::record_tasks(app, Action::Approve, &approved)?;
    let out = app.out();
    out.remark(&format!("approved: {}", count(approved.len() as u64, "task")));
    if !other.is_empty() {
        let hint =
            Hint::new(format!("{} changed since they were shown: ", count(other.len() as u64, "call")));
        out.advise(
            &hint
                .data(format!("taskpawl approve --only plan:{}", crate::text::quoted(name)))
                .text(" shows them"),
        );
    }
    Ok(())
}
