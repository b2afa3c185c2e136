use maud::{Markup, html};
use serde_json::Value;
use taskpawl::HistoryFilter;
use taskpawl::model::insight::{DefinitionChange, definition_changes};
use taskpawl::model::value::TaskId;

use super::{diff, history, part};
use crate::answer::Problem;
use crate::asked::Asked;
use crate::page::Page;
use crate::scope::Scope;

/// Tasks and events that are listed.
const MAX_LISTED: usize = 50;

/// Returns the definitions that a command changed, and what an undo of it would change. Nothing is changed by looking.
pub(super) fn fragment(page: &Page, asked: &Asked) -> Result<Markup, Problem> {
    let revision: u64 = asked.value.parse().map_err(|_| Problem::invalid("the revision is not a number"))?;
    let changes = page.known(page.reader.read(|view| Ok(definition_changes(view, revision)?)))?;
    let changes = changes.unwrap_or_default();
    let head = html! { h1 { "Revision " (revision) } };
    let undone = match page.known(page.reader.preview_undo(Some(revision))) {
        Ok(undone) => undone,
        // A refusal is the answer: it names what stands in the way.
        Err(problem) if problem.status == hyper::StatusCode::CONFLICT => {
            let hint = problem.hint.unwrap_or_default();
            return Ok(html! {
                (head)
                (differences(&changes))
                (part::empty("This cannot be undone.", &format!("{} {hint}", problem.message)))
            });
        }
        Err(problem) => return Err(problem),
    };
    let count = usize::try_from(undone.last.saturating_sub(undone.first) + 1).unwrap_or(usize::MAX);
    let filter = HistoryFilter {
        after: undone.first.saturating_sub(1),
        limit: count.min(MAX_LISTED),
        ..HistoryFilter::default()
    };
    let entries = page.known(page.reader.find_history(&filter))?;
    let line = page.options.line.with(&format!("undo {revision}"));
    Ok(html! {
        (head)
        (differences(&changes))
        h2 { "Undo" }
        p { "It would take back the command that " strong { (part::line(&undone.actor)) } " gave:" }
        (history::table(page, &entries, true))
        @if count > entries.len() { p.quiet { "and " (count - entries.len()) " more changes" } }
        (tasks("Tasks that would be as before", &undone.restored))
        (tasks("Tasks that would be gone", &undone.removed))
        div.action {
            @if asked.scope == Scope::Act {
                button type="button" data-command="undo" data-revision=(revision) data-confirm="Undo this command?" { "Undo" }
            }
            code { (line) }
        }
    })
}

/// Returns the definitions before a command and now, as differences.
fn differences(changes: &[DefinitionChange]) -> Markup {
    let text = |value: &Option<Value>| {
        value.as_ref().and_then(|value| serde_json::to_string_pretty(value).ok()).unwrap_or_default()
    };
    html! {
        @if !changes.is_empty() {
            section {
                h2 { "Definitions before it, and now " span.quiet { (changes.len()) } }
                @for change in changes.iter().take(MAX_LISTED) {
                    h3 {
                        (part::task_link(&change.id))
                        @if change.before.is_none() { span.quiet { " added" } }
                        @if change.now.is_none() { span.quiet { " gone" } }
                    }
                    (diff::compared(&text(&change.before), &text(&change.now)))
                }
                @if changes.len() > MAX_LISTED { p.quiet { "and " (changes.len() - MAX_LISTED) " more tasks" } }
            }
        }
    }
}

fn tasks(title: &str, ids: &[TaskId]) -> Markup {
    html! {
        @if !ids.is_empty() {
            section {
                h2 { (title) " " span.quiet { (ids.len()) } }
                ul.plain { @for id in ids.iter().take(MAX_LISTED) { li { (part::task_link(id)) } } }
                @if ids.len() > MAX_LISTED { p.quiet { "and " (ids.len() - MAX_LISTED) " more" } }
            }
        }
    }
}
