use maud::{Markup, html};
use taskpawl::model::advice::Advice;
use taskpawl::model::task::{ApprovalRequest, AskedCall};
use taskpawl_text::revealed_line;

use super::{call, part};
use crate::answer::Problem;
use crate::options::Scope;
use crate::server::{Asked, Inner};

/// Elements of a list that are shown.
const MAX_ITEMS: usize = 50;

/// Returns the questions that tasks wait with, by plan, with everything that would run.
pub(super) fn fragment(page: &Inner, asked: &Asked) -> Result<Markup, Problem> {
    let now = page.reader.source().now();
    let mut requests = page.known(page.reader.approval_requests(&[]))?;
    requests.retain(|request| !request.is_over(now));
    requests.sort_by(|one, other| (&one.plan, &one.why).cmp(&(&other.plan, &other.why)));
    let may_ask = asked.scope == Scope::Act && page.options.approvals.is_some();
    let plain: Vec<&ApprovalRequest> = requests.iter().filter(|request| request.is_plain()).collect();
    Ok(html! {
        h1 { "Questions" }
        @if requests.is_empty() {
            (part::empty("No task waits for an approval.", "What needs a person's yes before it runs is listed here, with everything that would run."))
        } @else {
            p.quiet {
                @if may_ask { "Approving shows a code. You type it at the terminal where `taskpawl serve` runs; nothing is approved on this page alone." }
                @else { "Questions are answered at a terminal, with the command below each of them." }
            }
            @if may_ask && plain.len() > 1 {
                p { button type="button" data-approve=(named(&plain)) { "Approve these " (plain.len()) } }
            }
        }
        @for request in &requests { (question(page, may_ask, request)) }
    })
}

/// Returns the tasks and the hashes of questions, as the request that approves them names them.
fn named(requests: &[&ApprovalRequest]) -> String {
    let questions: Vec<_> = requests
        .iter()
        .map(|request| serde_json::json!({"task": request.task, "hash": request.hash}))
        .collect();
    serde_json::Value::from(questions).to_string()
}

fn question(page: &Inner, may_ask: bool, request: &ApprovalRequest) -> Markup {
    html! {
        section.card.question data-key=(request.hash) {
            h2 { (part::task_link(&request.task)) @if request.name != request.task.as_str() { " " span.quiet { (part::line(&request.name)) } } }
            @if let Some(plan) = &request.plan { p.quiet { "plan " (part::line(plan)) } }
            @if let Some(ask) = &request.ask { p.ask { (part::text(ask)) } }
            @if let Some(why) = &request.why { p { "Because " (part::line(why)) } }
            @for asked in &request.calls { (asked_call(request, asked)) }
            @if request.calls.is_empty() { p { "Nothing is run by it." } }
            @if let Some(items) = &request.items {
                details { summary { "For each of " (items.len()) " elements" }
                    ul.plain { @for item in items.iter().take(MAX_ITEMS) { li { code { (part::line(&item.to_string())) } } } }
                    @if items.len() > MAX_ITEMS { p.quiet { "and " (items.len() - MAX_ITEMS) " more" } }
                }
            }
            @if let Some(end) = request.expires_at {
                p { "Until " (part::time(page, end)) ", then: " (part::line(request.on_expiry.as_deref().unwrap_or("reject"))) }
            }
            @if may_ask && request.is_plain() {
                p { button type="button" data-approve=(named(&[request])) { "Approve" } }
            }
            ul.plain {
                @for advice in Advice::decisions_of(request) { li { code { (part::line(&page.options.line.of(&advice))) } } }
            }
            p.quiet { "hash " code { (request.hash.chars().take(12).collect::<String>()) } }
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
