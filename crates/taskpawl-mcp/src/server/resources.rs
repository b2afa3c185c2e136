//! What clients may read beside calling tools: where the plan stands, and each of its tasks, plans and runs.

use rmcp::model::{ErrorData, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};
use taskpawl::model::{Means, Query, RunId};
use taskpawl::{Error, Manager};

use super::answer::Answer;
use super::digest::digest;
use super::handler::McpServer;
use super::options::ResourceText;
use super::refusal::chain;
use super::tools::run_ready;
use super::{app, brief};

/// How every address begins.
const SCHEME: &str = "taskpawl://";

const TYPE: &str = "application/json";

const PLAIN: &str = "text/plain";

/// How many plans are listed.
const MOST_PLANS: usize = 50;

/// How many tasks of a plan are listed in it.
const MOST_TASKS: usize = 1_000;

/// Something that can be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Digest,
    Ready,
    Task(String),
    Plan(String),
    Run(String),
}

impl Place {
    /// Returns what an address names; nothing where it names nothing of ours.
    pub(super) fn of(uri: &str) -> Option<Self> {
        match uri.strip_prefix(SCHEME)?.split_once('/') {
            None if uri.ends_with("digest") => Some(Self::Digest),
            None if uri.ends_with("ready") => Some(Self::Ready),
            Some(("task", id)) if !id.is_empty() => Some(Self::Task(id.to_owned())),
            Some(("plan", name)) if !name.is_empty() => Some(Self::Plan(name.to_owned())),
            Some(("run", id)) if !id.is_empty() => Some(Self::Run(id.to_owned())),
            _ => None,
        }
    }

    /// Returns its address.
    pub(super) fn uri(&self) -> String {
        let path = match self {
            Self::Digest => "digest".to_owned(),
            Self::Ready => "ready".to_owned(),
            Self::Task(id) => format!("task/{id}"),
            Self::Plan(name) => format!("plan/{name}"),
            Self::Run(id) => format!("run/{id}"),
        };
        format!("{SCHEME}{path}")
    }
}

/// Returns what can be read without knowing an id; blocks.
pub(super) fn list(server: &McpServer) -> Result<Vec<Resource>, Error> {
    let of_plan = if server.options().has_plan { of_plan(server.plans().manager())? } else { Vec::new() };
    let others = texts(server).map(|text| {
        Resource::new(text.uri.clone(), text.name.clone())
            .with_description(text.description.clone())
            .with_mime_type(PLAIN)
    });
    let page = server.has_page().then(app::resource);
    Ok(of_plan.into_iter().chain(others).chain(page).collect())
}

/// Returns the resources of the sets.
fn texts(server: &McpServer) -> impl Iterator<Item = &ResourceText> {
    server.options().sets.iter().flat_map(|set| &set.resources)
}

fn of_plan(manager: &Manager) -> Result<Vec<Resource>, Error> {
    let resource = |place: &Place, name: &str, description: String| {
        Resource::new(place.uri(), name).with_description(description).with_mime_type(TYPE)
    };
    let mut all = vec![
        resource(&Place::Digest, "digest", "Where the plan stands, and what to do next".to_owned()),
        resource(&Place::Ready, "ready", "What is ready, in order".to_owned()),
    ];
    for name in plan_names(manager)?.into_iter().take(MOST_PLANS) {
        all.push(resource(&Place::Plan(name.clone()), &name, format!("The tasks of the plan `{name}`")));
    }
    Ok(all)
}

/// Returns the names of all plans, in order; blocks.
pub(super) fn plan_names(manager: &Manager) -> Result<Vec<String>, Error> {
    manager.read(|view| Ok(view.plans()?.into_iter().map(|plan| plan.name).collect()))
}

/// Returns what can be read by an id.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = |path: &str, name: &str, description: &str| {
        ResourceTemplate::new(format!("{SCHEME}{path}"), name)
            .with_description(description)
            .with_mime_type(TYPE)
    };
    vec![
        template("task/{id}", "task", "A task with everything that is known of it"),
        template("plan/{name}", "plan", "A plan: its parameters, and its tasks in short"),
        template("run/{id}", "run", "A run: how far it is or how it ended"),
    ]
}

/// Reads what is at an address; blocks.
pub(super) fn read(server: &McpServer, uri: &str) -> Result<Vec<ResourceContents>, ErrorData> {
    if let Some(text) = texts(server).find(|text| text.uri == uri) {
        return Ok(vec![ResourceContents::text((text.read)(), uri).with_mime_type(PLAIN)]);
    }
    if uri == app::URI && server.has_page() {
        return Ok(vec![app::read(server.options())]);
    }
    let manager = server.plans().manager();
    let missing = |why: String| ErrorData::resource_not_found(why, Some(json!({"uri": uri})));
    let place = Place::of(uri)
        .filter(|_| server.options().has_plan)
        .ok_or_else(|| missing(format!("there is nothing at `{uri}`")))?;
    let value = content(server, manager, &place).map_err(|error| missing(chain(&error)))?;
    Ok(vec![ResourceContents::text(value.to_string(), uri).with_mime_type(TYPE)])
}

fn content(server: &McpServer, manager: &Manager, place: &Place) -> Result<Value, Error> {
    let answer = match place {
        Place::Digest => digest(server.plans())?,
        Place::Ready => Answer::new(json!(manager.explain_ready(&[], MOST_TASKS, &Means::default())?)),
        Place::Task(id) => Answer::new(json!(manager.get(id)?)),
        Place::Plan(name) => plan(manager, name)?,
        Place::Run(id) => {
            let id = manager.find_run(id)?;
            run_ready::describe(server, manager, &RunId::from(id.as_str()))?
        }
    };
    Ok(answer.long_if(true).into_json())
}

fn plan(manager: &Manager, name: &str) -> Result<Answer, Error> {
    let record = manager.read(|view| Ok(view.plan(name)?))?;
    let record = record
        .ok_or_else(|| taskpawl::model::Refusal::NothingSelected { selector: format!("plan:{name}") })?;
    let page = manager.list(&Query { plan: Some(name.to_owned()), limit: MOST_TASKS, ..Query::default() })?;
    let tasks = brief::tasks(manager, &page.tasks)?;
    let answer = Answer::new(json!({"name": name, "tasks": tasks}));
    let answer = answer.with("header", json!(record.header)).with("params", json!(record.params));
    Ok(answer.with("more", if page.truncated { json!(true) } else { Value::Null }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for place in [
            Place::Digest,
            Place::Ready,
            Place::Task("a.0".to_owned()),
            Place::Plan("p".to_owned()),
            Place::Run("r".to_owned()),
        ] {
            assert_eq!(Place::of(&place.uri()), Some(place));
        }
        for uri in ["taskpawl://", "taskpawl://task/", "taskpawl://tasks", "file:///etc/passwd", "digest", ""]
        {
            assert_eq!(Place::of(uri), None, "{uri}");
        }
    }
}
