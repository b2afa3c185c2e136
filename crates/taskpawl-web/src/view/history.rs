use maud::{Markup, html};
use taskpawl::{HistoryEntry, HistoryFilter};

use super::part;
use crate::answer::Problem;
use crate::asked::Asked;
use crate::page::Page;

/// Events of one page.
const PAGE: usize = 100;

/// Returns the last events of the store, the latest first.
pub(super) fn fragment(page: &Page, asked: &Asked) -> Result<Markup, Problem> {
    let last = page.hub.board().revision();
    let until: u64 = asked.query.number("until")?.unwrap_or(last).min(last);
    let after = until.saturating_sub(PAGE as u64);
    let filter = HistoryFilter { after, limit: PAGE, ..HistoryFilter::default() };
    let mut entries = page.known(page.reader.find_history(&filter))?;
    entries.retain(|entry| entry.event.revision <= until);
    Ok(html! {
        h1 { "History" }
        @if entries.is_empty() { (part::empty("Nothing has happened yet.", "Every change of the store is listed here.")) }
        @else { (table(page, &entries, true)) }
        nav.pager aria-label="Pages" {
            @if until < last { a href="/history" { "Latest" } }
            @if after > 0 { a href={ "/history?until=" (after) } { "Older" } }
        }
    })
}

/// Returns events as a table, the latest first. The events of one task need not name it.
pub(super) fn table(page: &Page, entries: &[HistoryEntry], has_tasks: bool) -> Markup {
    html! {
        div.table tabindex="0" role="region" aria-label="Events" {
            table {
                thead { tr { th.number scope="col" { "Revision" } th scope="col" { "When" } @if has_tasks { th scope="col" { "Task" } } th scope="col" { "Change" } th scope="col" { "By" } } }
                tbody { @for entry in entries.iter().rev() { (row(page, entry, has_tasks)) } }
            }
        }
    }
}

fn row(page: &Page, entry: &HistoryEntry, has_tasks: bool) -> Markup {
    let event = &entry.event;
    html! {
        tr data-key=(event.revision) {
            td.number { a href={ "/undo/" (event.revision) } title="Its changes, and a preview of its undo" { (event.revision) } }
            td { (part::time(page, event.at)) }
            @if has_tasks { td { @if let Some(task) = &event.task { (part::task_link(task)) } } }
            td.wide {
                (part::line(&(page.options.words.event)(event)))
                @if let Some(undo) = entry.undone_by { span.quiet { " undone by " (undo) } }
            }
            td { (part::line(&event.actor)) }
        }
    }
}
