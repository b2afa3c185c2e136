use maud::{Markup, html};

use super::part;
use crate::answer::Problem;
use crate::outlook::Outlook;
use crate::page::Page;

/// Tasks of the critical path that are listed.
const MAX_PATH: usize = 12;

/// Returns the forecast of a run, and the longest chain of unfinished tasks.
pub(super) fn fragment(page: &Page) -> Result<Markup, Problem> {
    let outlook = page.outlooks.get(page)?;
    Ok(html! {
        @if outlook.starts > 0 || outlook.approvals > 0 {
            p.outlook { strong { (outlook.words()) } span.quiet { ", if every call succeeds and every question is answered with yes" } }
            details { summary { "Longest chain that is left" } (path(&outlook)) }
        }
    })
}

/// Returns the critical path.
pub(super) fn path(outlook: &Outlook) -> Markup {
    html! {
        @if !outlook.critical.is_empty() {
            ol.path { @for task in outlook.critical.iter().take(MAX_PATH) { li { (part::task_link(task)) } } }
            p.quiet {
                @if outlook.critical.len() > MAX_PATH { "and " (outlook.critical.len() - MAX_PATH) " more" }
                @if let Some(length) = outlook.critical_length { " The chain takes " (part::length(i64::try_from(length.0.as_millis()).unwrap_or(i64::MAX))) " at least." }
            }
        }
    }
}
