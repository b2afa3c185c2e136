use std::io::Read as _;
use std::path::Path;

use maud::{Markup, html};
use serde_json::Value;
use taskpawl::model::command::ApplyReport;
use taskpawl::model::plan::{Plan, expand_plan, read_plan_file};
use taskpawl::model::task::PlanRecord;
use taskpawl::model::value::TaskId;
use taskpawl::tools::open_file;
use taskpawl::{ApplyOptions, PlanDirectory};

use super::part;
use crate::answer::Problem;
use crate::asked::Asked;
use crate::page::Page;

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 8 << 20;

/// Characters of a file that are shown.
const MAX_SHOWN: usize = 200_000;

/// Tasks that are listed of each kind.
const MAX_LISTED: usize = 20;

/// Returns the plans of the store.
pub(super) fn fragment(page: &Page) -> Result<Markup, Problem> {
    let mut plans = page.known(page.reader.read(|view| Ok(view.plans()?)))?;
    plans.sort_by_key(|plan| std::cmp::Reverse(plan.applied_at));
    Ok(html! {
        h1 { "Plans" }
        @if plans.is_empty() { (part::empty("No plan was applied.", "Tasks that were created one by one belong to no plan.")) }
        @for plan in &plans { (card(page, plan)) }
    })
}

fn card(page: &Page, plan: &PlanRecord) -> Markup {
    let header = serde_json::to_string_pretty(&plan.header).unwrap_or_default();
    html! {
        section.card data-key=(plan.name) {
            h2 { (part::line(&plan.name)) }
            @if let Some(text) = plan.header.get("description").and_then(Value::as_str) { p { (part::text(text)) } }
            p.quiet {
                @if let Some(at) = plan.applied_at { "applied " (part::time(page, at)) ", " }
                @if let Some(path) = &plan.path { "from " code { (part::line(path)) } ", " }
                a href={ "/tasks?q=plan%3A" (part::segment(&plan.name)) } { "its tasks" }
            }
            @if !plan.params.is_empty() {
                dl.args {
                    @for (name, value) in &plan.params {
                        dt { (part::line(name)) @if plan.param_origins.contains_key(name) { " (given by a model)" } }
                        dd { (super::call::value(value)) }
                    }
                }
            }
            details { summary { "Header of the file" } pre tabindex="0" { (part::text(&header)) } }
            @if page.options.root.is_some() && plan.path.is_some() {
                details.lazy data-load={ "/fragment/plan/" (part::segment(&plan.name)) } {
                    summary { "File, its long form, and the changes of applying it now" }
                    div data-keep { p.quiet { "Loading" } }
                }
            }
        }
    }
}

/// Returns the file of a plan, its long form, and its differences from the store.
pub(super) fn file(page: &Page, asked: &Asked) -> Result<Markup, Problem> {
    let plans = page.known(page.reader.read(|view| Ok(view.plans()?)))?;
    let record = plans.into_iter().find(|plan| plan.name == asked.value);
    let record = record.ok_or_else(|| Problem::missing("there is no such plan"))?;
    let (text, plan) = match read(page, &record) {
        Ok(found) => found,
        Err(why) => return Ok(html! { p.warn { (why) } }),
    };
    let long = serde_json::to_string_pretty(&expand_plan(&plan)).unwrap_or_default();
    Ok(html! {
        h3 { "Changes of applying the file now" }
        @match page.reader.preview_apply(plan, &record.name, ApplyOptions::default()) {
            Ok(report) => (drift(&report)),
            Err(error) => p.warn { (part::line(&taskpawl_text::error_chain(&error))) },
        }
        h3 { "File" }
        (shown(&text))
        details { summary { "Long form" } (shown(&long)) }
    })
}

/// Reads a text. A pipe in the place of a file would hold this thread until it has a writer, so it is not opened.
fn text_of(path: &Path) -> Result<String, &'static str> {
    let file = open_file(path).map_err(|_| "The file cannot be read any more.")?;
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(|_| "The file is no text any more.")?;
    Ok(text)
}

/// Reads the file of a plan. Only a file that is a plan is shown: another file may have taken its place.
fn read(page: &Page, record: &PlanRecord) -> Result<(String, Plan), &'static str> {
    let place = page.options.root.as_deref().zip(record.path.as_deref());
    let (root, path) = place.ok_or("The plan has no file in this project.")?;
    let text = text_of(&root.join(path))?;
    let mut files = PlanDirectory::of_file(root, &root.join(path));
    if let Some(names) = &page.options.plan_names {
        files = files.with_names(names.clone());
    }
    let mut plan = read_plan_file(&text, &files)
        .map_err(|_| "The file is not a valid plan any more: `taskpawl plan check` lists its faults.")?;
    let given: Vec<(String, String)> = record
        .params
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect();
    let given = given.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    plan.set_params(given).map_err(|_| "The parameters of the last apply do not fit the file any more.")?;
    Ok((text, plan))
}

fn drift(report: &ApplyReport) -> Markup {
    let lists = [
        ("New tasks", &report.created),
        ("Changed tasks", &report.changed),
        ("Tasks that are gone from the file", &report.gone),
    ];
    let is_same = lists.iter().all(|(_, ids)| ids.is_empty()) && report.header.is_empty();
    html! {
        @if is_same { p { "None: the store is equal to the file." } }
        @for (title, ids) in lists { (tasks(title, ids)) }
        @if !report.header.is_empty() { p { "Changed in the header: " (part::line(&report.header.join(", "))) } }
    }
}

fn tasks(title: &str, ids: &[TaskId]) -> Markup {
    html! {
        @if !ids.is_empty() {
            p {
                (title) ": "
                @for (at, id) in ids.iter().take(MAX_LISTED).enumerate() { @if at > 0 { ", " } (part::task_link(id)) }
                @if ids.len() > MAX_LISTED { " and " (ids.len() - MAX_LISTED) " more" }
            }
        }
    }
}

fn shown(text: &str) -> Markup {
    let end = text.char_indices().nth(MAX_SHOWN).map_or(text.len(), |(at, _)| at);
    html! {
        pre tabindex="0" { (part::text(&text[..end])) }
        @if end < text.len() { p.quiet { "and " (text.len() - end) " bytes more" } }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_pipe_in_the_place_of_a_plan_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plan.yaml");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert_eq!(text_of(&path), Err("The file cannot be read any more."));
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "tasks: []").unwrap();
        assert_eq!(text_of(&path).as_deref(), Ok("tasks: []"));
    }
}
