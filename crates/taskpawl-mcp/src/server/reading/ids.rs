//! Ids of tasks, written in another way.

use serde_json::{Map, Value, json};
use taskpawl::model::command::Refusal;
use taskpawl::model::view::Query;
use taskpawl_text::only_nearest;

use super::{KnownTask, Reading, instead};
use crate::server::actions::Action;
use crate::server::core::Core;
use crate::server::refusal::Refused;

/// Maximum number of tasks that are searched for a name.
const MAX_SEARCHED: usize = 5_000;

/// Maximum number of tasks that a refusal names.
pub(super) const MAX_NAMED: usize = 5;

/// Actions that end or undo work: they take nothing but the id of the task.
const EXACT: &[&str] = &["cancel", "skip", "reopen", "fail"];

/// What a text means.
pub(super) enum Meant {
    /// The id of a task.
    Id,
    /// The id of a task in another case.
    Case(String),
    /// An id with `#`, the beginning of an id, or the name of a task.
    Other(String),
    /// Several tasks.
    Several(Vec<String>),
    Nothing,
}

impl Reading<'_> {
    /// Returns the tasks that a text can mean. They are read once for all texts of a call: a plan may name thousands.
    fn known(&self) -> Result<&[KnownTask], Refused> {
        if let Some(known) = self.known.get() {
            return Ok(known);
        }
        let query = Query { limit: MAX_SEARCHED, ..Query::default() };
        let tasks = self.manager.list(&query)?.tasks.into_iter();
        let known = tasks.map(|task| KnownTask {
            id: task.id.to_string(),
            folded_id: task.id.as_str().to_lowercase(),
            folded_name: task.name.to_lowercase(),
        });
        Ok(self.known.get_or_init(|| known.collect()))
    }

    /// Reads the ids among the arguments.
    pub(super) fn ids(&mut self, tool: Core, arguments: &mut Map<String, Value>) -> Result<(), Refused> {
        let verb = arguments.get("action").and_then(Value::as_str).unwrap_or_default();
        let is_exact = tool == Core::TaskDelete
            || EXACT.contains(&verb)
            || arguments.get("cascade") == Some(&json!(true));
        match tool {
            Core::TaskGet => self.id_at(tool, "/id", is_exact, arguments)?,
            Core::TaskUpdate => {
                self.id_at(tool, "/id", is_exact, arguments)?;
                // They end nothing, so they may be read also where the id of the task may not.
                self.ids_at(tool, "/fields/needs", false, arguments)?;
                self.ids_at(tool, "/fields/dependencies", false, arguments)?;
            }
            // The tasks of a repeated request are gone already; its answer is on record.
            Core::TaskDelete if arguments.contains_key("request_id") => {}
            Core::TaskDelete => self.ids_at(tool, "/ids", true, arguments)?,
            Core::TaskAdd => {
                self.id_at(tool, "/parent", false, arguments)?;
                self.ids_at(tool, "/needs", false, arguments)?;
                self.ids_at(tool, "/dependencies", false, arguments)?;
            }
            Core::RunReady | Core::ReadyList => {
                self.scope(arguments)?;
                let only = arguments.get("only").and_then(Value::as_array);
                if let Some([Value::String(word)]) = only.map(Vec::as_slice)
                    && let Some(name) = word.strip_prefix("plan:")
                {
                    self.unknown_plan(tool, name, arguments)?;
                }
            }
            // The dependencies in a plan are read with it.
            Core::PlanShow | Core::PlanWrite => {}
        }
        Ok(())
    }

    /// Reads the ids in a list, or the one that stands in its place.
    fn ids_at(
        &mut self,
        tool: Core,
        pointer: &str,
        is_exact: bool,
        arguments: &mut Map<String, Value>,
    ) -> Result<(), Refused> {
        match at(arguments, pointer).map(|list| list.as_array().map(Vec::len)) {
            None => Ok(()),
            Some(None) => self.id_at(tool, pointer, is_exact, arguments),
            Some(Some(count)) => (0..count)
                .try_for_each(|index| self.id_at(tool, &format!("{pointer}/{index}"), is_exact, arguments)),
        }
    }

    /// Reads the id at a JSON Pointer into the arguments.
    fn id_at(
        &mut self,
        tool: Core,
        pointer: &str,
        is_exact: bool,
        arguments: &mut Map<String, Value>,
    ) -> Result<(), Refused> {
        let Some(given) = at(arguments, pointer).and_then(Value::as_str).map(str::to_owned) else {
            return Ok(());
        };
        let name = named(pointer);
        match self.meant(&given)? {
            Meant::Id => {}
            Meant::Nothing => {
                let Err(unknown) = self.manager.get(&given) else { return Ok(()) };
                let refused = Refused::from(unknown);
                let mut corrected = arguments.clone();
                // Without a need, work would start too early; a task that waits for its holder can be added without.
                let has_work = ["call", "calls", "run"].iter().any(|name| arguments.contains_key(*name));
                let near = self.near(&given)?;
                if let Some(near) = &near
                    && changes(tool, pointer)
                {
                    return Err(refused.corrected(look_at(near)));
                }
                if let Some(near) = near {
                    set(&mut corrected, pointer, &near);
                } else if tool == Core::TaskAdd && !has_work {
                    drop_value(&mut corrected, pointer);
                } else {
                    return Err(refused);
                }
                return Err(refused.corrected(Action::call(tool.name(), corrected.into())));
            }
            Meant::Other(id) if is_exact => {
                let mut corrected = arguments.clone();
                set(&mut corrected, pointer, &id);
                let problem = format!("this needs the id of the task; did you mean `{id}`?");
                return Err(instead(tool, &name, problem, corrected));
            }
            Meant::Case(id) | Meant::Other(id) => {
                self.tell(&name, &json!(given), &json!(id));
                set(arguments, pointer, &id);
            }
            Meant::Several(ids) => {
                let problem = format!("several tasks can be meant: {}", ids.join(", "));
                return Err(Refused::argument(&name, problem).corrected(look_at(&ids[0])));
            }
        }
        Ok(())
    }

    /// Returns the id that differs from a text by one letter or two, if only one does.
    fn near(&self, given: &str) -> Result<Option<String>, Refused> {
        let ids: Vec<&str> = self.known()?.iter().map(|task| task.id.as_str()).collect();
        let is_longer_by_one = |id: &&&str| given.len() == id.len() + 1 && given.starts_with(**id);
        Ok(only_nearest(given, ids.iter().copied())
            .or_else(|| ids.iter().find(is_longer_by_one).copied())
            .map(str::to_owned))
    }

    /// Refuses a plan in `only` that does not exist, with the call for the only plan that does.
    fn unknown_plan(&self, tool: Core, name: &str, arguments: &Map<String, Value>) -> Result<(), Refused> {
        let plans = self.manager.read(|view| Ok(view.plans()?))?;
        let [plan] = &plans[..] else { return Ok(()) };
        let query = Query { plan: Some(name.to_owned()), limit: 1, ..Query::default() };
        if plan.name == name || !self.manager.list(&query)?.tasks.is_empty() {
            return Ok(());
        }
        let mut corrected = arguments.clone();
        corrected.insert("only".to_owned(), json!([format!("plan:{}", plan.name)]));
        let refused = Refused::from(Refusal::NothingSelected { selector: format!("plan:{name}") });
        Err(refused.corrected(Action::call(tool.name(), corrected.into())))
    }

    /// Reads a plain name of a plan in `only` as that plan, where no task has this id.
    fn scope(&mut self, arguments: &mut Map<String, Value>) -> Result<(), Refused> {
        let Some(Value::Array(only)) = arguments.get_mut("only") else { return Ok(()) };
        if only.is_empty() {
            return Ok(());
        }
        for word in only.iter_mut() {
            let Some(name) = word.as_str().filter(|name| !name.contains(':')).map(str::to_owned) else {
                continue;
            };
            if !matches!(self.meant(&name)?, Meant::Id) {
                let has_plan = self.manager.read(|view| Ok(view.plan(&name)?.is_some()))?;
                let read = match self.meant(&name)? {
                    _ if has_plan => format!("plan:{name}"),
                    Meant::Case(id) | Meant::Other(id) => id,
                    Meant::Id | Meant::Several(_) | Meant::Nothing => continue,
                };
                self.replace("only", word, json!(read));
            }
        }
        Ok(())
    }

    pub(super) fn meant(&self, given: &str) -> Result<Meant, Refused> {
        let is_id = match self.known.get().filter(|known| known.len() < MAX_SEARCHED) {
            Some(all) => all.iter().any(|task| task.id == given),
            None => self.manager.read(|view| Ok(view.key(given)?.is_some()))?,
        };
        if is_id {
            return Ok(Meant::Id);
        }
        let wanted = given.trim().trim_start_matches('#').to_lowercase();
        if wanted.is_empty() {
            return Ok(Meant::Nothing);
        }
        let tasks = self.known()?;
        let of = |matches: &dyn Fn(&KnownTask) -> bool| -> Vec<String> {
            tasks.iter().filter(|task| matches(task)).map(|task| task.id.clone()).take(MAX_NAMED).collect()
        };
        let mut found = of(&|task| task.folded_id == wanted);
        if let [id] = &found[..]
            && given.trim().to_lowercase() == wanted
        {
            return Ok(Meant::Case(id.clone()));
        }
        if found.is_empty() && tasks.len() == MAX_SEARCHED {
            // Among tasks that were not searched another one could have this name.
            return Ok(Meant::Nothing);
        }
        if found.is_empty() {
            found = of(&|task| task.folded_name == wanted);
        }
        if found.is_empty() {
            found = of(&|task| task.folded_id.starts_with(&wanted));
        }
        Ok(match &found[..] {
            [] => Meant::Nothing,
            [id] => Meant::Other(id.clone()),
            _ => Meant::Several(found),
        })
    }
}

/// Returns whether a tool changes the tasks whose ids stand at a JSON Pointer.
fn changes(tool: Core, pointer: &str) -> bool {
    tool == Core::TaskDelete || (tool == Core::TaskUpdate && pointer == "/id")
}

/// Returns the call that shows a task. A call that changes something is not suggested for a task that was not chosen.
fn look_at(id: &str) -> Action {
    Action::call(Core::TaskGet.name(), json!({"id": id}))
}

/// Returns the value at a JSON Pointer.
fn at<'v>(arguments: &'v Map<String, Value>, pointer: &str) -> Option<&'v Value> {
    let (name, rest) = split(pointer);
    arguments.get(name)?.pointer(rest)
}

fn set(arguments: &mut Map<String, Value>, pointer: &str, id: &str) {
    let (name, rest) = split(pointer);
    if let Some(value) = arguments.get_mut(name).and_then(|value| value.pointer_mut(rest)) {
        *value = json!(id);
    }
}

/// Removes an argument, or an element of a list.
fn drop_value(arguments: &mut Map<String, Value>, pointer: &str) {
    let (name, rest) = split(pointer);
    let index = rest.strip_prefix('/').and_then(|index| index.parse::<usize>().ok());
    match (index, arguments.get_mut(name)) {
        (Some(index), Some(Value::Array(items))) if index < items.len() => drop(items.remove(index)),
        _ => drop(arguments.remove(name)),
    }
}

/// Returns the argument that a JSON Pointer leads into, and the pointer within its value.
fn split(pointer: &str) -> (&str, &str) {
    let path = &pointer[1..];
    path.find('/').map_or((path, ""), |end| path.split_at(end))
}

/// Returns a JSON Pointer as answers name places, without the positions in lists.
fn named(pointer: &str) -> String {
    let names: Vec<&str> =
        pointer.split('/').filter(|part| part.parse::<usize>().is_err() && !part.is_empty()).collect();
    names.join(".")
}
