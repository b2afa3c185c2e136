//! Completion of ids and names in arguments of prompts and resource templates.

use std::collections::BTreeSet;

use rmcp::model::{CompleteRequestParams, CompletionInfo, Reference};
use taskpawl::{Error, Manager, RunFilter};

use super::resources::plan_names;

/// Returns the completions of an argument. Blocks.
pub(super) fn complete(manager: &Manager, request: &CompleteRequestParams) -> Result<CompletionInfo, Error> {
    let begun = request.argument.value.as_str();
    let of = match &request.r#ref {
        Reference::Resource(template) => template.uri.as_str(),
        Reference::Prompt(prompt) => prompt.name.as_str(),
        _ => "",
    };
    let most = CompletionInfo::MAX_VALUES;
    let mut found = match (of, request.argument.name.as_str()) {
        ("taskpawl://task/{id}", "id") | ("plan_expand", "task") => manager.read(|view| {
            // One more than is returned, to know whether there are more.
            let ids = view.ids_with_prefix(begun, most + 1)?;
            Ok(ids.iter().map(ToString::to_string).collect())
        })?,
        ("taskpawl://run/{id}", "id") => {
            let runs = manager.runs(&RunFilter::default())?.into_iter().map(|run| run.id.to_string());
            runs.filter(|id| id.starts_with(begun)).take(most + 1).collect()
        }
        ("taskpawl://plan/{name}", "name") | ("review_failures" | "plan_repair", "plan") => {
            let names = plan_names(manager)?.into_iter().filter(|name| name.starts_with(begun));
            names.take(most + 1).collect::<Vec<String>>()
        }
        ("resume_work", "agent") => {
            agents(manager)?.into_iter().filter(|name| name.starts_with(begun)).take(most + 1).collect()
        }
        _ => Vec::new(),
    };
    let has_more = found.len() > most;
    found.truncate(most);
    let mut info = CompletionInfo::default();
    (info.values, info.has_more) = (found, Some(has_more));
    Ok(info)
}

/// Returns the names of agents that hold tasks or have started runs, sorted.
fn agents(manager: &Manager) -> Result<BTreeSet<String>, Error> {
    let holders = manager.read(|view| {
        let mut holders = BTreeSet::new();
        for key in view.leases(None)? {
            let task = view.task(key)?;
            holders.extend(
                task.and_then(|task| task.body.state.lease_holder().map(|holder| holder.as_str().to_owned())),
            );
        }
        Ok(holders)
    })?;
    let runs = manager.runs(&RunFilter::default())?.into_iter().map(|run| run.actor);
    Ok(holders.into_iter().chain(runs).collect())
}
