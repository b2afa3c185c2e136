//! Resources that clients can read: the digest, the ready list, and each task, plan and run.

use rmcp::model::{ErrorData, ListResourcesResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;
use taskpawl::model::command::Refusal;
use taskpawl::model::rules::Means;
use taskpawl::model::value::RunId;
use taskpawl::model::view::Query;
use taskpawl::{Error, Manager};
use taskpawl_text::error_chain;

use super::actions::Action;
use super::answer::{Answer, MAX_BYTES_READ};
use super::digest::digest;
use super::error_text::{internal, named, short};
use super::mcp_server::McpServer;
use super::options::ResourceText;
use super::page::Page;
use super::tools::{ready_list, run_ready};
use super::{app, brief, invalid_request};

/// Beginning of every address.
const SCHEME: &str = "taskpawl://";

const TYPE: &str = "application/json";

const PLAIN: &str = "text/plain";

/// Number of resources on a page of the list.
const PAGE: usize = 40;

/// Maximum number of ready tasks of each kind.
const MAX_READY: usize = 20;

/// Maximum number of a plan's tasks that are read for one answer.
const MAX_TASKS: usize = 100;

/// Weight reserved for the calls that read the rest of a task.
const NAMED_CALLS: usize = 600;

/// A resource that can change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Digest,
    Ready,
    /// The to-do list, which is a resource of a set.
    Checklist,
    Task(String),
    Plan(String),
    Run(String),
}

impl Place {
    /// Parses an address. `None` is an address of nothing here.
    pub(super) fn of(uri: &str) -> Option<Self> {
        let path = uri.strip_prefix(SCHEME)?;
        match path.split_once('/') {
            None if path == "digest" => Some(Self::Digest),
            None if path == "ready" => Some(Self::Ready),
            None if path == "checklist" => Some(Self::Checklist),
            Some(("task", id)) if !id.is_empty() => Some(Self::Task(decoded(id))),
            Some(("plan", name)) if !name.is_empty() => Some(Self::Plan(decoded(name))),
            Some(("run", id)) if !id.is_empty() => Some(Self::Run(decoded(id))),
            _ => None,
        }
    }

    /// Returns the address.
    pub(super) fn uri(&self) -> String {
        let path = match self {
            Self::Digest => "digest".to_owned(),
            Self::Ready => "ready".to_owned(),
            Self::Checklist => "checklist".to_owned(),
            Self::Task(id) => format!("task/{}", encoded(id)),
            Self::Plan(name) => format!("plan/{}", encoded(name)),
            Self::Run(id) => format!("run/{}", encoded(id)),
        };
        format!("{SCHEME}{path}")
    }
}

/// Percent-encodes a name for an address.
fn encoded(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Decodes a name from an address. Characters that should be encoded, but are not, stand for themselves.
fn decoded(part: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), part.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        rest = if byte.is_some() { &after[2..] } else { after };
        bytes.push(byte.unwrap_or(*first));
    }
    String::from_utf8(bytes).unwrap_or_else(|_| part.to_owned())
}

/// Returns a page of the resources that can be read without an id. Blocks.
pub(super) fn list(server: &McpServer, cursor: Option<&str>) -> Result<ListResourcesResult, ErrorData> {
    let all = all(server).map_err(|error| internal(&error))?;
    let start = match cursor {
        None => 0,
        Some(cursor) => cursor
            .parse()
            .ok()
            .filter(|start| *start <= all.len())
            .ok_or_else(invalid_request::unknown_cursor)?,
    };
    let end = all.len().min(start + PAGE);
    let mut page = ListResourcesResult::with_all_items(all[start..end].to_vec());
    page.next_cursor = (end < all.len()).then(|| end.to_string());
    Ok(page)
}

fn all(server: &McpServer) -> Result<Vec<Resource>, Error> {
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
        resource(&Place::Ready, "ready", "Ready tasks, in order".to_owned()),
    ];
    for name in plan_names(manager)? {
        all.push(resource(&Place::Plan(name.clone()), &name, format!("The tasks of the plan `{name}`")));
    }
    Ok(all)
}

/// Returns the names of all plans, sorted. Blocks.
pub(super) fn plan_names(manager: &Manager) -> Result<Vec<String>, Error> {
    manager.read(|view| Ok(view.plans()?.into_iter().map(|plan| plan.name).collect()))
}

/// Returns the templates of resources with an id.
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

/// Reads the resource at an address. Blocks.
pub(super) fn read(server: &McpServer, uri: &str) -> Result<Vec<ResourceContents>, ErrorData> {
    if let Some(text) = texts(server).find(|text| text.uri == uri) {
        return Ok(vec![ResourceContents::text((text.read)(), uri).with_mime_type(PLAIN)]);
    }
    if uri == app::URI && server.has_page() {
        return Ok(vec![app::read(server.options())]);
    }
    let manager = server.plans().manager();
    let missing = |why: String| ErrorData::resource_not_found(short(&why), Some(json!({"uri": named(uri)})));
    let place = place_in(server, uri).ok_or_else(|| missing(nothing_at(uri)))?;
    let answer = content(server, manager, &place).map_err(|error| missing(error_chain(&error)))?;
    let text = answer.only_here(server.options()).into_text();
    Ok(vec![ResourceContents::text(text, uri).with_mime_type(TYPE)])
}

/// Returns the resource of a server at an address, unless it never changes.
pub(super) fn place_in(server: &McpServer, uri: &str) -> Option<Place> {
    let is_here = |place: &Place| match place {
        Place::Checklist => texts(server).any(|text| text.uri == uri),
        Place::Digest | Place::Ready | Place::Task(_) | Place::Plan(_) | Place::Run(_) => {
            server.options().has_plan
        }
    };
    Place::of(uri).filter(is_here)
}

/// Returns whether a client can subscribe to an address: all listed resources, even the page, which never changes.
pub(super) fn is_subscribable(server: &McpServer, uri: &str) -> bool {
    place_in(server, uri).is_some() || uri == app::URI && server.has_page()
}

/// Describes an address without a resource.
pub(super) fn nothing_at(uri: &str) -> String {
    format!("there is nothing at `{}`", named(uri))
}

fn content(server: &McpServer, manager: &Manager, place: &Place) -> Result<Answer, Error> {
    match place {
        Place::Digest => digest(server.plans(), &server.means()),
        Place::Ready => {
            let means = Means { jobs: Some(server.options().run.jobs()), ..server.means() };
            ready_list::ready(manager, &means, &[], MAX_READY)
        }
        // The text of a set is read as such before this.
        Place::Checklist => Ok(Answer::default()),
        Place::Task(id) => task(manager, id),
        Place::Plan(name) => plan(manager, &server.means(), name),
        Place::Run(id) => {
            let id = manager.find_run(id)?;
            run_ready::describe(server, manager, &RunId::from(id.as_str()))
        }
    }
}

/// Returns a task unchanged. If it does not fit, the next steps read the rest.
fn task(manager: &Manager, id: &str) -> Result<Answer, Error> {
    let task = manager.get(id)?;
    let mut actions = Vec::new();
    if json!(task).to_string().len() > MAX_BYTES_READ - NAMED_CALLS {
        actions.push(Action::call("task_get", json!({"id": task.id})));
        let parts = [("result", task.result.is_some()), ("description", !task.description.is_empty())];
        let parts = parts.into_iter().filter(|(_, is_there)| *is_there);
        actions.extend(parts.map(|(part, _)| Action::call("task_get", json!({"id": task.id, "part": part}))));
    }
    Ok(Answer::new(json!(task)).next(actions))
}

fn plan(manager: &Manager, means: &Means, name: &str) -> Result<Answer, Error> {
    let query = Query { plan: Some(name.to_owned()), ..Query::default() };
    let (record, total) = manager.read(|view| Ok((view.plan(name)?, view.find(&query)?.len())))?;
    let record = record.ok_or_else(|| Refusal::NothingSelected { selector: format!("plan:{name}") })?;
    let page = manager.list(&Query { limit: MAX_TASKS, ..query })?;
    let tasks = brief::tasks(manager, means, &page.tasks)?;
    let tasks = Page::of_list("tasks", 0, tasks, page.truncated)
        .then(Action::call("plan_show", json!({"plan": name})));
    let answer = Answer::new(json!({"name": name, "total": total})).page(tasks).out_of("tasks", total);
    Ok(answer.with("header", json!(record.header)).with("params", json!(record.params)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for place in [
            Place::Digest,
            Place::Ready,
            Place::Checklist,
            Place::Task("a.0".to_owned()),
            Place::Plan("p".to_owned()),
            Place::Run("r".to_owned()),
            Place::Plan("my plan/é 100%".to_owned()),
        ] {
            assert_eq!(Place::of(&place.uri()), Some(place));
        }
        assert_eq!(Place::Plan("my plan".to_owned()).uri(), "taskpawl://plan/my%20plan");
        // Addresses of clients that do not encode names are accepted.
        for (uri, name) in [
            ("taskpawl://plan/a b/c", "a b/c"),
            ("taskpawl://plan/50%", "50%"),
            ("taskpawl://plan/%ff", "%ff"),
        ] {
            assert_eq!(Place::of(uri), Some(Place::Plan(name.to_owned())), "{uri}");
        }
        for uri in [
            "taskpawl://",
            "taskpawl://task/",
            "taskpawl://tasks",
            "taskpawl://xdigest",
            "file:///etc/passwd",
            "digest",
            "",
        ] {
            assert_eq!(Place::of(uri), None, "{uri}");
        }
    }
}
