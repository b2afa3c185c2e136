use maud::{Markup, html};
use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};
use taskpawl::model::task::WORKTREE_TOOL;

use super::part;
use crate::answer::Problem;
use crate::asked::Asked;
use crate::page::Page;

/// The longest texts that are compared, in bytes.
const MAX_BYTES: usize = 512 << 10;

/// Lines of a difference that are shown.
const MAX_LINES: usize = 400;

/// Equal lines around a change.
const AROUND: usize = 3;

/// The part of a second after which a comparison becomes coarser.
const LIMIT: std::time::Duration = std::time::Duration::from_millis(300);

/// Returns what the calls of a question would change: in files, and against the arguments of their last start.
pub(super) fn fragment(page: &Page, asked: &Asked) -> Result<Markup, Problem> {
    let request = page.known(page.reader.approval_request(&asked.value))?;
    let Some(request) = request else { return Err(Problem::missing("the question is answered")) };
    let mut parts = Vec::new();
    for call in &request.calls {
        if let Some(diff) = of_file(page, &call.tool, &call.args) {
            parts.push(html! { h3 { "Change of the file" } (diff) });
        }
        let task = page.known(page.reader.get(call.task.as_str()))?;
        let before = task.metadata.tool_calls.iter().find(|known| known.id == call.call);
        if let Some(args) =
            before.filter(|call| call.attempts > 0).and_then(|call| call.evaluated_args.as_ref())
        {
            let (before, now) = (written(args), written(&call.args));
            parts.push(html! { h3 { "Arguments of its last start, and now" } (compared(&before, &now)) });
        }
    }
    if request.results.iter().any(|result| result.tool == WORKTREE_TOOL) {
        parts.push(of_worktree(page, request.task.as_str()));
    }
    Ok(html! {
        @for part in &parts { (part) }
        @if parts.is_empty() { p.quiet { "No file is changed by a file tool, and nothing of it has started before." } }
    })
}

/// Returns the changes of a task in its worktree.
fn of_worktree(page: &Page, task: &str) -> Markup {
    let diff = match page.plans.engine().worktree_diff(task) {
        Ok(diff) => diff,
        Err(why) => return html! { p.warn { "The changes cannot be shown: " (part::line(&why)) } },
    };
    let lines = diff.patch.lines();
    html! {
        p { (diff.files.len()) " changed files" }
        pre.diff tabindex="0" {
            @for line in lines.clone().take(MAX_LINES) {
                @match line.as_bytes().first() {
                    Some(b'+') => ins { (part::line(line)) },
                    Some(b'-') => del { (part::line(line)) },
                    _ => span { (part::line(line)) },
                }
            }
        }
        @let more = lines.count().saturating_sub(MAX_LINES);
        @if more > 0 { p.quiet { "and " (more) " more lines" } }
    }
}

/// Returns what a file tool would change; `None` for other tools.
fn of_file(page: &Page, tool: &str, args: &Map<String, Value>) -> Option<Markup> {
    let text = |name: &str| args.get(name).and_then(Value::as_str);
    match tool {
        "edit_file" => Some(compared(text("old")?, text("new")?)),
        "write_file" => {
            let (path, after) = (text("path")?, text("content")?);
            Some(match page.options.read_file.as_ref()?.0(path) {
                Ok(Some(before)) => compared(&before, after),
                Ok(None) => html! { p { "The file does not exist yet." } },
                Err(why) => html! { p.warn { "The file cannot be shown: " (part::line(&why)) } },
            })
        }
        _ => None,
    }
}

fn written(args: &Map<String, Value>) -> String {
    serde_json::to_string_pretty(args).unwrap_or_default()
}

/// Returns the changed lines with a few around them.
pub(super) fn compared(before: &str, after: &str) -> Markup {
    if before == after {
        return html! { p { "Nothing changes." } };
    }
    if before.len().max(after.len()) > MAX_BYTES {
        return html! { p.quiet { "The texts are too long to be compared here." } };
    }
    let diff = TextDiff::configure().timeout(LIMIT).diff_lines(before, after);
    let groups = diff.grouped_ops(AROUND);
    let changes: Vec<_> = groups.iter().flatten().flat_map(|op| diff.iter_changes(op)).collect();
    html! {
        pre.diff tabindex="0" {
            @for change in changes.iter().take(MAX_LINES) {
                @let line = change.value().trim_end_matches('\n');
                @match change.tag() {
                    ChangeTag::Insert => ins { "+ " (part::line(line)) },
                    ChangeTag::Delete => del { "- " (part::line(line)) },
                    ChangeTag::Equal => span { "  " (part::line(line)) },
                }
            }
        }
        @if changes.len() > MAX_LINES { p.quiet { "and " (changes.len() - MAX_LINES) " more lines" } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_changed_lines_as_text() {
        let html = compared("a\nb\nc\n", "a\n<b>\nc\n").into_string();
        assert!(html.contains("<del>- b</del><ins>+ &lt;b&gt;</ins>"), "{html}");
        assert!(html.contains("<span>  a</span>"), "{html}");
        assert!(compared("x", "x").into_string().contains("Nothing changes"));
    }
}
