use maud::{Markup, html};
use taskpawl::HistoryFilter;
use taskpawl::model::advice::Advice;
use taskpawl::model::insight::Explanation;
use taskpawl::model::task::{Status, Task};
use taskpawl::model::value::TaskId;

use super::part::{self, Button};
use super::{call, history, list};
use crate::answer::Problem;
use crate::asked::Asked;
use crate::page::Page;

/// Needs, dependents and subtasks that are listed.
const MAX_LISTED: usize = 50;

/// Events of the task that are listed.
const MAX_EVENTS: usize = 30;

/// Returns a task with the reason for its state, its neighbours, its calls and its history.
pub(super) fn fragment(page: &Page, asked: &Asked) -> Result<Markup, Problem> {
    let mut task = page.known(page.reader.get(&asked.value))?;
    page.plans.engine().call_places().fill(&mut task);
    let explanation = page.known(page.reader.explain(task.id.as_str(), &page.options.means))?;
    let dependents = dependents(page, &task.id)?;
    Ok(html! {
        (head(page, &task)?)
        div.columns {
            div {
                (why(page, &explanation))
                @if !task.metadata.tool_calls.is_empty() {
                    section { h2 { "Calls" } @for tool_call in &task.metadata.tool_calls { (call::card(page, &task, tool_call)) } }
                }
                (notes(page, &task))
                section { h2 { "History" } (events(page, &task)?) }
            }
            div.attention {
                section { h2 { "Actions" } (actions(page, asked, &task)) }
                (neighbours(page, "Needs", &task.dependencies)?)
                (neighbours(page, "Dependents", &dependents)?)
                (neighbours(page, "Subtasks", &task.subtasks)?)
            }
        }
    })
}

fn head(page: &Page, task: &Task) -> Result<Markup, Problem> {
    let cell = list::cells(page, None, std::slice::from_ref(&task.id))?.remove(&task.id);
    let length = task.started_at.zip(task.finished_at).map(|(from, to)| (to - from).num_milliseconds());
    let path = part::segment(task.id.as_str());
    Ok(html! {
        div.head {
            div {
                h1 { (part::line(&task.name)) }
                p.quiet {
                    @if let Some(cell) = cell { (part::state(cell)) " " }
                    span.id { (part::line(task.id.as_str())) }
                    @if let Some(plan) = &task.plan { " · plan " (part::line(plan)) }
                    @if let Some(parent) = &task.parent { " · below " (part::task_link(parent)) }
                    @if task.attempt > 0 { " · attempt " (task.attempt) }
                    @if let Some(length) = length { " · " (part::length(length)) }
                    @if let Some(wait) = &task.progress.waiting_for { " · " (part::line(&wait.to_string())) }
                    @else if let Some(claim) = &task.claim { " · held by " (part::line(&claim.actor)) }
                }
                @if !task.description.is_empty() { p { (part::text(&task.description)) } }
            }
            nav.controls aria-label="Views of this task" {
                a href={ "/log/" (path) } { "Log" } " " a href={ "/graph/" (path) } { "Graph" }
            }
        }
    })
}

fn why(page: &Page, explanation: &Explanation) -> Markup {
    html! {
        section {
            h2 { "Why" }
            ol.chain {
                @for link in &explanation.chain {
                    li {
                        (part::task_link(&link.task)) " " strong { (link.status.as_str().replace('_', " ")) }
                        p { (part::line(&link.text)) }
                    }
                }
            }
            @if explanation.omitted > 0 { p.quiet { (explanation.omitted) " more in between are left out." } }
            @if !explanation.next_actions.is_empty() {
                p { "Next:" }
                ul.plain { @for next in &explanation.next_actions { li { code { (part::line(&page.options.line.of(next.advice()))) } } } }
            }
        }
    }
}

fn actions(page: &Page, asked: &Asked, task: &Task) -> Markup {
    let id = task.id.as_str();
    let line = |advice: &Advice| page.options.line.of(advice);
    let command = |words: &str| page.options.line.with(&format!("{words} {id}"));
    let plain = |name: &'static str, label: &'static str, confirm| Button {
        command: name,
        label,
        id,
        confirm,
        line: command(name),
    };
    let mut buttons = Vec::new();
    match task.status {
        Status::Failed => {
            buttons.push(Button { line: line(&Advice::retry(&task.id)), ..plain("retry", "Retry", None) });
            buttons.push(plain(
                "skip",
                "Skip",
                Some("Skip this task and its subtasks? Dependents may start."),
            ));
        }
        Status::Done | Status::Cancelled | Status::Skipped => {
            buttons.push(plain("reopen", "Reopen", Some("Start this task over from its first call?")));
        }
        Status::Todo | Status::InProgress | Status::Blocked => {
            let confirm = Some("Cancel this task and its subtasks? Dependents are blocked.");
            buttons.push(plain("cancel", "Cancel", confirm));
        }
    }
    html! {
        @for button in &buttons { (part::button(asked, button)) }
        @if asked.scope == crate::scope::Scope::Read { p.quiet { "This token only reads: give the commands at a terminal." } }
    }
}

fn neighbours(page: &Page, title: &str, ids: &[TaskId]) -> Result<Markup, Problem> {
    if ids.is_empty() {
        return Ok(Markup::default());
    }
    let shown = &ids[..ids.len().min(MAX_LISTED)];
    let cells = list::cells(page, None, shown)?;
    Ok(html! {
        section {
            h2 { (title) " " span.quiet { (ids.len()) } }
            ul.plain {
                @for id in shown { li { @if let Some(cell) = cells.get(id) { (part::state(*cell)) " " } (part::task_link(id)) } }
            }
            @if shown.len() < ids.len() { p.quiet { "and " (ids.len() - shown.len()) " more" } }
        }
    })
}

fn dependents(page: &Page, id: &TaskId) -> Result<Vec<TaskId>, Problem> {
    page.known(page.reader.read(|view| {
        let Some(key) = view.key(id.as_str())? else { return Ok(Vec::new()) };
        let ids = view.dependents(key)?.into_iter().map(|key| view.id(key));
        Ok(ids.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }))
}

fn notes(page: &Page, task: &Task) -> Markup {
    html! {
        @if !task.notes.is_empty() {
            section {
                h2 { "Notes" }
                ul.cards {
                    @for note in &task.notes {
                        li { p { (part::text(&note.text)) } p.quiet { (part::line(&note.actor)) ", " (part::time(page, note.at)) } }
                    }
                }
            }
        }
    }
}

fn events(page: &Page, task: &Task) -> Result<Markup, Problem> {
    let (id, limit) = (Some(task.id.to_string()), MAX_EVENTS);
    let filter = HistoryFilter { task: id, limit, latest: true, ..HistoryFilter::default() };
    let entries = page.known(page.reader.find_history(&filter))?;
    Ok(history::table(page, &entries, false))
}
