use std::collections::BTreeMap;

use maud::{Markup, html};
use taskpawl::model::task::Task;
use taskpawl::model::value::{Key, TaskId};
use taskpawl::model::view::{Query as TaskQuery, View, ViewResult};

use super::part;
use crate::answer::Problem;
use crate::asked::Asked;
use crate::board::Cell;
use crate::page::Page;
use crate::past::{self, Past};
use crate::request::Query;

/// Tasks of one page of the list.
const PAGE: usize = 100;

/// The most tasks that one request gets.
const MAX_PAGE: usize = 1_000;

/// Returns one page of the tasks that a query matches, and their number.
pub(crate) fn matching(page: &Page, query: &Query) -> Result<(Vec<Task>, usize), Problem> {
    let offset: usize = query.number("offset")?.unwrap_or_default();
    let limit: usize = query.number("limit")?.unwrap_or(PAGE).clamp(1, MAX_PAGE);
    let letters = query.text("state").unwrap_or_default();
    let past = past::past(page, query)?;
    let ids: Vec<TaskId> = match query.text("q") {
        Some(words) => {
            let found = page.known(page.reader.read(|view| {
                let keys = view.find(&task_query(words))?.into_iter();
                let found = keys.map(|key| Ok((view.id(key)?, cell_in(view, past.as_ref(), key)?)));
                Ok(found.collect::<Result<Vec<_>, taskpawl::model::view::ViewError>>()?)
            }))?;
            let wanted = |cell: Cell| letters.is_empty() || letters.contains(cell.letter());
            let found = found.into_iter().filter_map(|(id, cell)| Some((id?, cell?)));
            found.filter(|(_, cell)| wanted(*cell)).map(|(id, _)| id).collect()
        }
        None => past::shown(page, query)?.ids_in(letters).cloned().collect(),
    };
    let wanted: Vec<String> = ids.iter().skip(offset).take(limit).map(ToString::to_string).collect();
    // A task may be deleted between the two reads; the next change reads the list again.
    let tasks = page.known(page.reader.get_all(&wanted))?;
    Ok((tasks, ids.len()))
}

/// Reads the words of a search: `plan:NAME`, `label:NAME`, and the rest as text.
fn task_query(words: &str) -> TaskQuery {
    let mut query = TaskQuery::default();
    let mut text = Vec::new();
    for word in words.split_whitespace() {
        if let Some(plan) = word.strip_prefix("plan:") {
            query.plan = Some(plan.to_owned());
        } else if let Some(label) = word.strip_prefix("label:") {
            query.labels.push(label.to_owned());
        } else {
            text.push(word);
        }
    }
    query.text = (!text.is_empty()).then(|| text.join(" "));
    query
}

fn cell_in(view: &dyn View, past: Option<&Past>, key: Key) -> ViewResult<Option<Cell>> {
    match past {
        Some(past) => Ok(past.board().cell_of(key)),
        None => Ok(view.node(key)?.map(|node| Cell::of(&node))),
    }
}

/// Returns the states of tasks by id: now, or in the past.
pub(super) fn cells(
    page: &Page,
    past: Option<&Past>,
    ids: &[TaskId],
) -> Result<BTreeMap<TaskId, Cell>, Problem> {
    page.known(page.reader.read(|view| {
        let mut cells = BTreeMap::new();
        for id in ids {
            let Some(key) = view.key(id.as_str())? else { continue };
            cells.extend(cell_in(view, past, key)?.map(|cell| (id.clone(), cell)));
        }
        Ok(cells)
    }))
}

/// Returns tasks as a table.
fn table(page: &Page, past: Option<&Past>, tasks: &[Task]) -> Result<Markup, Problem> {
    let ids: Vec<TaskId> = tasks.iter().map(|task| task.id.clone()).collect();
    let cells = cells(page, past, &ids)?;
    Ok(html! {
            table {
                thead {
                    tr {
                        th scope="col" { "State" }
                        th scope="col" { "Task" }
                        th scope="col" { "Name" }
                        th.number scope="col" { "Attempts" }
                        th scope="col" { "Changed" }
                    }
                }
                tbody { @for task in tasks { (row(page, past, task, cells.get(&task.id).copied())) } }
            }
    })
}

/// Returns the tasks that matter most, by state, at most `most`.
pub(super) fn first(page: &Page, query: &Query, most: usize) -> Result<Markup, Problem> {
    let past = past::past(page, query)?;
    let ids: Vec<String> = {
        let board = past::shown(page, query)?;
        let states = Cell::ALL.map(|(_, letter, _)| letter.to_string());
        let ids = states.iter().flat_map(|letter| board.ids_in(letter)).take(most);
        ids.map(ToString::to_string).collect()
    };
    let table = table(page, past.as_ref(), &page.known(page.reader.get_all(&ids))?)?;
    Ok(html! { div.table tabindex="0" role="region" aria-label="Tasks" { (table) } })
}

/// Returns the list of tasks, which has everything that the matrix shows.
pub(super) fn fragment(page: &Page, asked: &Asked) -> Result<Markup, Problem> {
    let (tasks, total) = matching(page, &asked.query)?;
    let offset: usize = asked.query.number("offset")?.unwrap_or_default();
    let past = past::past(page, &asked.query)?;
    Ok(html! {
        h1 { "Tasks" }
        @if let Some(past) = &past { (part::past(page, past, "/tasks")) }
        (search(page, &asked.query)?)
        @if tasks.is_empty() {
            (part::empty("No task matches.", "Choose another state, or search for other words."))
        } @else {
            p.quiet role="status" { (total) @if total == 1 { " task" } @else { " tasks" } }
            // A script shows all of them in one list, and reads what is seen.
            div #list.table data-keep[total > PAGE] data-total=(total) data-offset=(offset) tabindex="0" role="region" aria-label="Tasks" {
                (table(page, past.as_ref(), &tasks)?)
            }
            (pager(&asked.query, offset, total))
        }
    })
}

fn search(page: &Page, query: &Query) -> Result<Markup, Problem> {
    let counts = past::shown(page, query)?.count_cells();
    let chosen = query.text("state").unwrap_or_default();
    Ok(html! {
        form.search data-path="/tasks" role="search" {
            @if let Some(at) = query.text("at") { input type="hidden" name="at" value=(at); }
            label { "Search " input type="search" name="q" value=(query.text("q").unwrap_or_default()) placeholder="id, name, plan:NAME or label:NAME"; }
            label {
                "State "
                select name="state" {
                    option value="" selected[chosen.is_empty()] { "all" }
                    @for (cell, letter, name) in Cell::ALL {
                        option value=(letter) selected[chosen == cell.letter().to_string()] { (name) " (" (counts.get(&letter).copied().unwrap_or_default()) ")" }
                    }
                }
            }
            button type="submit" { "Show" }
        }
    })
}

fn row(page: &Page, past: Option<&Past>, task: &Task, cell: Option<Cell>) -> Markup {
    // Error and reason are those of today.
    let detail = task.error.clone().or_else(|| task.blocked_reason.as_ref().map(page.options.words.reason));
    let detail = detail.filter(|_| past.is_none());
    html! {
        tr data-key=(task.id) {
            td { @if let Some(cell) = cell { (part::state(cell)) } }
            td { (part::task_link(&task.id)) }
            td.wide {
                @if task.name != task.id.as_str() { (part::line(&task.name)) }
                @if let Some(detail) = detail { span.detail { (part::line(detail.lines().next().unwrap_or_default())) } }
            }
            td.number { (task.attempt) }
            td { (part::time(page, task.updated_at)) }
        }
    }
}

fn pager(query: &Query, offset: usize, total: usize) -> Markup {
    let link = |offset: usize| {
        let words = [("q", query.text("q")), ("state", query.text("state")), ("at", query.text("at"))];
        let kept =
            words.into_iter().filter_map(|(name, value)| Some(format!("&{name}={}", part::segment(value?))));
        format!("/tasks?offset={offset}{}", kept.collect::<String>())
    };
    html! {
        nav.pager aria-label="Pages" {
            @if offset > 0 { a href=(link(offset.saturating_sub(PAGE))) { "Previous" } }
            @if offset + PAGE < total { a href=(link(offset + PAGE)) { "Next" } }
        }
    }
}
