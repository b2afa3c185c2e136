use maud::{Markup, html};

use super::part;
use crate::ansi;
use crate::answer::Problem;
use crate::asked::Asked;
use crate::output::{self, Part, Window};
use crate::page::Page;

/// Characters of a line that are shown in one row. The rest follows in further rows.
const MAX_LINE: usize = 4_000;

/// Returns the output of a task: a chosen stream from its first byte, and links to the others.
pub(super) fn fragment(page: &Page, asked: &Asked) -> Result<Markup, Problem> {
    let task = page.known(page.reader.get(&asked.value))?;
    let parts = output::parts(&page.plans, &task);
    let chosen = output::chosen(&parts, &task, &asked.query)?;
    let head = html! { h1 { "Log of " (part::task_link(&task.id)) } };
    let Some(chosen) = chosen else {
        return Ok(
            html! { (head) (part::empty("Nothing was printed.", "The calls of this task have printed nothing that can be shown.")) },
        );
    };
    let window = output::window(&page.plans, chosen, &asked.query)?;
    Ok(html! {
        (head)
        nav.parts aria-label="Outputs" { @for part in &parts { (tab(&asked.value, part, part == chosen)) } }
        (tools(chosen))
        div #log.log data-keep data-task=(asked.value) data-call=(chosen.call) data-start=(chosen.start)
            data-stream=(chosen.stream) data-live[chosen.is_live] class={ "log " (chosen.stream) } tabindex="0" role="log" aria-label="Output" {
            (rows(&window))
        }
    })
}

fn tab(task: &str, part: &Part, is_chosen: bool) -> Markup {
    let path = format!(
        "/log/{}?call={}&start={}&stream={}",
        part::segment(task),
        part::segment(&part.call),
        part.start,
        part.stream
    );
    html! {
        a href=(path) aria-current=[is_chosen.then_some("page")] {
            (part::line(&part.call)) " " (part::line(&part.tool)) @if part.start > 1 { ", start " (part.start) } ", "
            strong class=(part.stream) { (part.stream) } @if let Some(worker) = &part.worker { " on @" (part::line(worker)) } " " span.quiet { (part::bytes(part.bytes)) @if part.is_live { ", running" } }
        }
    }
}

fn tools(part: &Part) -> Markup {
    html! {
        form #find.search role="search" {
            @if !part.is_live {
                label { "Find " input type="search" name="find" autocomplete="off"; }
                button type="submit" { "Find" }
                button type="button" data-find="error" { "First error" }
                button type="button" data-jump="previous" { "Previous" }
                button type="button" data-jump="next" { "Next" }
            }
            button type="button" data-jump="begin" { "Begin" }
            button type="button" data-jump="end" { "End" }
            output name="hits" role="status" {}
        }
    }
}

/// Returns further lines of a stream.
pub(super) fn lines(page: &Page, asked: &Asked) -> Result<Markup, Problem> {
    let task = page.known(page.reader.get(&asked.value))?;
    let parts = output::parts(&page.plans, &task);
    let Some(chosen) = output::chosen(&parts, &task, &asked.query)? else {
        return Err(Problem::missing("nothing was printed"));
    };
    Ok(rows(&output::window(&page.plans, chosen, &asked.query)?))
}

fn rows(window: &Window) -> Markup {
    html! {
        div.window data-from=(window.from) data-to=(window.to) data-bytes=(window.bytes) data-line=(window.line) {
            @for (index, line) in window.text.split_terminator('\n').enumerate() {
                @let number = window.line + index as u64;
                @for (at, piece) in pieces(line).enumerate() {
                    div.row { @if at == 0 { span.number { (number) } } @else { span.number { "" } } span.text { (ansi::line(piece)) } }
                }
            }
        }
    }
}

/// Cuts a long line into pieces at characters.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.char_indices().nth(MAX_LINE).map(|(at, _)| at);
        rest = end.map(|end| &text[end..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_at_characters_and_nothing_is_lost() {
        let long = "ä".repeat(MAX_LINE * 2 + 5);
        let cut: Vec<&str> = pieces(&long).collect();
        assert_eq!((cut.len(), cut.concat().len()), (3, long.len()));
        assert_eq!(pieces("").count(), 1);
    }
}
