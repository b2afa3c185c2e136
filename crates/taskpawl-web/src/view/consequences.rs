use maud::{Markup, html};
use taskpawl::model::insight::{Effects, ForecastOptions};
use taskpawl::model::value::TaskId;

use super::part;
use crate::answer::Problem;
use crate::asked::Asked;
use crate::page::Page;

/// Tasks that are listed of each kind.
const MAX_LISTED: usize = 8;

/// Returns what follows from a yes and from a no to the question of a task, as the forecast of the terminal has it.
pub(super) fn fragment(page: &Page, asked: &Asked) -> Result<Markup, Problem> {
    let yes = effects(page, &format!("done:{}", asked.value))?;
    let no = effects(page, &format!("fail:{}", asked.value))?;
    let request = page.known(page.reader.approval_request(&asked.value))?;
    let is_result = request.is_some_and(|request| request.after);
    Ok(html! {
        dl.args {
            dt { "Yes" }
            dd {
                @if is_result { "Its result is accepted, and it is done. " } @else { "It runs. " }
                (some("Then may start", &yes.ready)) (some("Ends with it", &yes.done))
                @if yes.ready.is_empty() && yes.done.is_empty() { "Nothing else waits for it alone." }
            }
            dt { "No" }
            dd {
                "It fails. " (some("Can no longer start", &no.blocked)) (some("May start", &no.ready)) (some("Skipped", &no.skipped))
                @if no.blocked.is_empty() && no.ready.is_empty() { "Nothing else changes." }
            }
        }
    })
}

fn effects(page: &Page, assumed: &str) -> Result<Effects, Problem> {
    let what_if = assumed.parse().map_err(|_| Problem::missing("there is no such task"))?;
    let options = ForecastOptions {
        jobs: page.options.run.jobs(),
        means: page.options.means.clone(),
        what_if: vec![what_if],
        ..ForecastOptions::default()
    };
    Ok(page.known(page.reader.forecast(&options))?.effects.unwrap_or_default())
}

fn some(word: &str, ids: &[TaskId]) -> Markup {
    html! {
        @if !ids.is_empty() {
            (word) ": "
            @for (at, id) in ids.iter().take(MAX_LISTED).enumerate() { @if at > 0 { ", " } (part::task_link(id)) }
            @if ids.len() > MAX_LISTED { " and " (ids.len() - MAX_LISTED) " more" }
            ". "
        }
    }
}
