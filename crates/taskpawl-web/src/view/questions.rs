use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::Value;
use taskpawl::model::advice::Advice;
use taskpawl::model::task::{ApprovalRequest, AskedCall, AskedResult, WORKTREE_TOOL};
use taskpawl_text::revealed_line;

use super::{call, part};
use crate::answer::Problem;
use crate::approvals::is_repeatable;
use crate::asked::Asked;
use crate::page::Page;
use crate::scope::Scope;

/// Elements of a list that are shown.
const MAX_ITEMS: usize = 50;

/// Returns the questions that tasks wait with, by plan, with everything that would run.
pub(super) fn fragment(page: &Page, asked: &Asked) -> Result<Markup, Problem> {
    let now = page.reader.source().now();
    let mut requests = page.known(page.reader.approval_requests(&[]))?;
    requests.retain(|request| !request.is_over(now));
    requests.sort_by(|one, other| (&one.plan, &one.why).cmp(&(&other.plan, &other.why)));
    let may_ask = asked.scope == Scope::Act && page.options.approvals.is_some();
    let plain: Vec<&ApprovalRequest> = requests.iter().filter(|request| request.is_plain()).collect();
    Ok(html! {
        h1 { "Questions" }
        @if requests.is_empty() {
            (part::empty("No task waits for an approval.", "Calls that need the approval of a person are listed here, with everything that would run."))
        } @else {
            p.quiet {
                @if may_ask { "Approving shows a code. You type it at the terminal where `taskpawl serve` runs; nothing is approved on this page alone." }
                @else { "Questions are answered at a terminal, with the command below each of them." }
            }
            @if may_ask && plain.len() > 1 {
                p { button type="button" data-approve=(named(&plain)) { "Approve these " (plain.len()) } }
            }
            (for_a_time(may_ask, &requests))
        }
        @for request in &requests { (question(page, may_ask, request)) }
    })
}

/// Returns a button for each plan and rule with questions that may be approved for ten minutes.
fn for_a_time(may_ask: bool, requests: &[ApprovalRequest]) -> Markup {
    let mut groups: BTreeMap<_, Vec<&ApprovalRequest>> = BTreeMap::new();
    for request in requests.iter().filter(|request| may_ask && is_repeatable(request)) {
        groups.entry((&request.plan, &request.why)).or_default().push(request);
    }
    html! {
        @for ((plan, why), requests) in &groups {
            p {
                button.plainer type="button" data-approve=(named(requests)) data-minutes="10" {
                    "Approve for 10 minutes: " (requests.len()) " of plan " (part::line(plan.as_deref().unwrap_or_default()))
                }
                @if let Some(why) = why { " " span.quiet { "because " (part::line(why)) } }
            }
        }
    }
}

/// Returns the tasks and the hashes of questions, as the request that approves them names them.
fn named(requests: &[&ApprovalRequest]) -> String {
    let questions: Vec<_> = requests
        .iter()
        .map(|request| serde_json::json!({"task": request.task, "hash": request.hash}))
        .collect();
    serde_json::Value::from(questions).to_string()
}

fn question(page: &Page, may_ask: bool, request: &ApprovalRequest) -> Markup {
    html! {
        section.card.question data-key=(request.hash) {
            h2 { (part::task_link(&request.task)) @if request.name != request.task.as_str() { " " span.quiet { (part::line(&request.name)) } } }
            @if let Some(plan) = &request.plan { p.quiet { "plan " (part::line(plan)) } }
            @if let Some(ask) = &request.ask { p.ask { (part::text(ask)) } }
            @if let Some(why) = &request.why { p { "Because " (part::line(why)) } }
            @for asked in &request.calls { (asked_call(request, asked)) }
            @for result in &request.results { (asked_result(result)) }
            @if request.calls.is_empty() && !request.after { p { "Nothing is run by it." } }
            @if let Some(items) = &request.items {
                details { summary { "For each of " (items.len()) " elements" }
                    ul.plain { @for item in items.iter().take(MAX_ITEMS) { li { code { (part::line(&item.to_string())) } } } }
                    @if items.len() > MAX_ITEMS { p.quiet { "and " (items.len() - MAX_ITEMS) " more" } }
                }
            }
            @if let Some(end) = request.expires_at {
                p { "Until " (part::time(page, end)) ", then: " (part::line(request.on_expiry.as_deref().unwrap_or("reject"))) }
            }
            details.lazy data-load={ "/fragment/consequences/" (part::segment(request.task.as_str())) } {
                summary { "Consequences of yes and no" }
                div data-keep { p.quiet { "Loading" } }
            }
            @if !request.calls.is_empty() || request.results.iter().any(|result| result.tool == WORKTREE_TOOL) {
                details.lazy data-load={ "/fragment/diff/" (part::segment(request.task.as_str())) } {
                    summary { @if request.after { "Its changes" } @else { "Changes" } }
                    div data-keep { p.quiet { "Loading" } }
                }
            }
            @if may_ask { (answers(page, request)) }
            ul.plain {
                @for advice in Advice::decisions_of(request) { li { code { (part::line(&page.options.line.of(&advice))) } } }
            }
            p.quiet { "hash " code { (request.hash.chars().take(12).collect::<String>()) } }
        }
    }
}

/// Returns the buttons that answer a question, and the form for other arguments of its only call.
fn answers(page: &Page, request: &ApprovalRequest) -> Markup {
    let named = named(&[request]);
    html! {
        div.action {
            @if request.is_plain() { button type="button" data-approve=(named) { "Approve" } }
            @for option in &request.options {
                button type="button" data-approve=(named) data-answer=(option) { (part::line(option)) }
            }
        }
        @if request.is_plain() && let [call] = &request.calls[..] {
            details { summary { "Approve with other arguments" } (form(page, request, call)) }
        }
    }
}

/// Returns a field for each argument: by the schema of the tool, and as JSON where the schema has no plain type.
fn form(page: &Page, request: &ApprovalRequest, call: &AskedCall) -> Markup {
    let spec = page.plans.tool_specs().into_iter().find(|spec| spec.name == call.tool);
    let schema = spec.map(|spec| spec.args_schema).unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut names: Vec<&String> = call.args.keys().chain(properties.keys()).collect();
    names.sort_unstable();
    names.dedup();
    html! {
        form.edit data-edit data-task=(request.task) data-hash=(request.hash) {
            @for name in names {
                @let (value, schema) = (call.args.get(name), properties.get(name));
                label {
                    span { (part::line(name)) @if required.contains(&name.as_str()) { " (needed)" } }
                    (field(name, value, schema))
                    @if let Some(text) = schema.and_then(|schema| schema.get("description")).and_then(Value::as_str) { span.quiet { (part::line(text)) } }
                }
            }
            p { button type="submit" { "Approve with these" } " " span.quiet { "The tool checks them before it runs." } }
        }
    }
}

fn field(name: &str, value: Option<&Value>, schema: Option<&Value>) -> Markup {
    let kind = schema.and_then(|schema| schema.get("type")).and_then(Value::as_str);
    let options = schema.and_then(|schema| schema.get("enum")).and_then(Value::as_array);
    match (options, kind, value) {
        (Some(options), ..) => html! {
            select name=(name) data-kind="json" {
                option value="" selected[value.is_none()] {}
                @for option in options { option value=(option) selected[value == Some(option)] { (part::line(&option.to_string())) } }
            }
        },
        (_, Some("boolean"), _) => html! {
            select name=(name) data-kind="json" {
                option value="" selected[value.is_none()] {}
                @for option in [true, false] { option value=(option) selected[value.and_then(Value::as_bool) == Some(option)] { (option) } }
            }
        },
        (_, Some("integer" | "number"), _) => {
            html! { input name=(name) type="number" step=(if kind == Some("integer") { "1" } else { "any" }) data-kind="json" value=(value.map(Value::to_string).unwrap_or_default()); }
        }
        (_, Some("string"), None | Some(Value::String(_))) | (_, None, Some(Value::String(_))) => {
            let text = value.and_then(Value::as_str).unwrap_or_default();
            html! { textarea name=(name) data-kind="text" data-given=(value.is_some()) rows=(text.lines().count().clamp(1, 12)) { (text) } }
        }
        _ => {
            let text = value
                .map(|value| serde_json::to_string_pretty(value).unwrap_or_default())
                .unwrap_or_default();
            html! { textarea name=(name) data-kind="json" rows=(text.lines().count().clamp(1, 12)) { (text) } }
        }
    }
}

fn asked_call(request: &ApprovalRequest, asked: &AskedCall) -> Markup {
    html! {
        section.call {
            h3 {
                @if asked.task != request.task { (part::line(asked.task.as_str())) "/" }
                span.id { (part::line(asked.call.as_str())) } " " (part::line(&asked.tool)) " "
                span.quiet { "from " (asked.origin.as_str()) }
            }
            @if let Some(sandbox) = &asked.sandbox { p.warn { "Asks of the sandbox: " (part::line(&sandbox.described())) } }
            @for value in asked.untrusted.iter().filter(|value| !value.is_data) { p.warn { (part::line(&value.to_string())) } }
            @if !asked.trusts.is_empty() { p.warn { "Approving it also trusts later values of " (part::line(&asked.trusts.join(", "))) } }
            dl.args {
                @for (name, value) in &asked.args {
                    dt { (part::line(name)) @if asked.unknown.contains(name) { " (not known yet)" } }
                    dd { @match host(name, value) { Some((before, host, after)) => code { (before) strong.host { (host) } (after) }, None => (call::value(value)) } }
                }
            }
        }
    }
}

/// Returns the result of a call that a question is about. Everything in it is data of programs and models.
fn asked_result(asked: &AskedResult) -> Markup {
    html! {
        section.call {
            h3 { "Result of " span.id { (part::line(asked.call.as_str())) } " " (part::line(&asked.tool)) }
            dl.args {
                @match &asked.result {
                    Some(Value::Object(fields)) => @for (name, value) in fields { dt { (part::line(name)) } dd { (call::value(value)) } },
                    Some(Value::Null) | None => {},
                    Some(value) => { dt { "result" } dd { (call::value(value)) } },
                }
            }
            @if !asked.cut.is_empty() { p.quiet { "Shortened: " (part::line(&asked.cut.join(", "))) } }
            @if !asked.artifacts.is_empty() { (call::artifacts(&asked.artifacts)) }
        }
    }
}

/// Splits an address around its host, which decides where data goes.
fn host(name: &str, value: &serde_json::Value) -> Option<(String, String, String)> {
    let text = value.as_str().filter(|_| name == "url")?;
    let begin = text.find("://")? + 3;
    let end = text[begin..].find(['/', '?', '#']).map_or(text.len(), |at| begin + at);
    let begin = text[begin..end].rfind('@').map_or(begin, |at| begin + at + 1);
    Some((revealed_line(&text[..begin]), revealed_line(&text[begin..end]), revealed_line(&text[end..])))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_host_of_an_address_is_what_the_connection_goes_to() {
        let of = |url: &str| host("url", &json!(url)).map(|(_, host, _)| host);
        assert_eq!(of("https://a.example/x?y").as_deref(), Some("a.example"));
        assert_eq!(of("https://good.example@evil.example:8/x").as_deref(), Some("evil.example:8"));
        assert_eq!(of("plain"), None);
        assert_eq!(host("other", &json!("https://a.example")), None);
    }
}
