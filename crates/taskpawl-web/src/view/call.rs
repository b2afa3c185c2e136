use maud::{Markup, html};
use serde_json::Value;
use taskpawl::model::task::{Artifact, Task, ToolCall};

use super::part;
use crate::page::Page;

/// Characters of an argument or a result that are shown at once; the rest is in the JSON of the task.
const MAX_SHOWN: usize = 4_000;

/// Files of one call that are listed.
const MAX_FILES: usize = 100;

/// Returns a tool call with its arguments, its result and its error.
pub(super) fn card(page: &Page, task: &Task, call: &ToolCall) -> Markup {
    let args = call.evaluated_args.as_ref().unwrap_or(&call.args);
    html! {
        section.card.call {
            h3 { (part::call_state(call.status)) " " span.id { (part::line(call.id.as_str())) } " " (part::line(&call.tool_name)) }
            p.quiet { (facts(page, call)) }
            @if let Some(error) = &call.error { pre.error tabindex="0" { (cut(error)) } }
            dl.args {
                @for (name, value) in args { dt { (part::line(name)) } dd { (self::value(value)) } }
            }
            @if call.attempts > 0 {
                p { a href={ "/log/" (part::segment(task.id.as_str())) "?call=" (part::segment(call.id.as_str())) } { "Output" } }
            }
            @if let Some(result) = &call.result {
                details { summary { "Result" @if !call.cut.is_empty() { " (cut)" } } (self::value(result)) }
            }
            @if !call.artifacts.is_empty() { (artifacts(&call.artifacts)) }
            @if let Some(usage) = &call.usage { details { summary { "Usage" } (self::value(usage)) } }
        }
    }
}

/// Returns the files that a call left, with the first of many.
pub(super) fn artifacts(files: &[Artifact]) -> Markup {
    html! {
        table {
            thead { tr { th scope="col" { "Artifact" } th scope="col" { "Type" } th.number scope="col" { "Size" } } }
            tbody {
                @for file in files.iter().take(MAX_FILES) {
                    tr {
                        td { (part::line(file.name())) " " code { (part::line(&file.path)) } }
                        td { (part::line(&file.media_type)) }
                        td.number { (part::bytes(file.bytes)) }
                    }
                }
            }
        }
        @if files.len() > MAX_FILES { p.quiet { "and " (files.len() - MAX_FILES) " more" } }
    }
}

fn facts(page: &Page, call: &ToolCall) -> Markup {
    let length = call.started_at.zip(call.finished_at).map(|(from, to)| (to - from).num_milliseconds());
    html! {
        "from " (call.origin.as_str())
        @if let Some(worker) = &call.worker { " · on @" (part::line(worker)) }
        @if call.attempts > 1 { " · start " (call.attempts) }
        @if let Some(at) = call.started_at { " · started " (part::time(page, at)) }
        @if let Some(length) = length { " · " (part::length(length)) }
        @if let Some(class) = &call.error_class { " · " (part::line(class)) }
        @if let Some(due) = call.due { " · again " (part::time(page, due)) }
        @if let Some(granted) = &call.granted { " · approved by " (part::line(&granted.by)) }
        @for value in &call.inserted { " · " (part::line(&value.to_string())) }
    }
}

/// Returns a value: text keeps its lines, anything else is JSON.
pub(super) fn value(value: &Value) -> Markup {
    match value.as_str() {
        Some(text) if !text.contains('\n') && text.len() < 200 => html! { code { (part::line(text)) } },
        Some(text) => html! { pre tabindex="0" { (cut(text)) } },
        None if value.is_number() || value.is_boolean() || value.is_null() => {
            html! { code { (value.to_string()) } }
        }
        None => {
            let text = serde_json::to_string_pretty(value).unwrap_or_default();
            html! { pre tabindex="0" { (cut(&text)) } }
        }
    }
}

fn cut(text: &str) -> Markup {
    let end = text.char_indices().nth(MAX_SHOWN).map_or(text.len(), |(at, _)| at);
    html! { (part::text(&text[..end])) @if end < text.len() { span.quiet { " … and " (text.len() - end) " bytes more" } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifacts_are_listed_as_data() {
        let file = Artifact::new("/keep/<b>.md", 2_048, "00", "text/<i>").named(Some("<script>".to_owned()));
        let html = artifacts(&[file]).into_string();
        for part in ["&lt;script&gt;", "&lt;b&gt;.md", "text/&lt;i&gt;", "2 KiB"] {
            assert!(html.contains(part), "{part} in {html}");
        }
        let many = vec![Artifact::new("a", 1, "00", "text/plain"); MAX_FILES + 2];
        assert!(artifacts(&many).into_string().contains("and 2 more"));
    }
}
