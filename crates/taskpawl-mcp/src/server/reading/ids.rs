//! Ids of tasks, written in another way.

use serde_json::{Map, Value, json};
use taskpawl::model::command::Refusal;
use taskpawl::model::view::Query;
use taskpawl_text::nearest;

use super::{Reading, instead};
use crate::server::actions::Action;
use crate::server::refusal::Refused;
use crate::server::tools::Core;

/// Maximum number of tasks that are searched for a name.
const MAX_SEARCHED: usize = 5_000;

/// Maximum number of tasks that a refusal names.
const MAX_NAMED: usize = 5;

/// Actions that end or undo work: they take nothing but the id of the task.
const EXACT: &[&str] = &["cancel", "skip", "reopen", "fail"];

/// What a text means.
enum Meant {
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
    /// Reads the ids among the arguments.
    pub(super) fn ids(&mut self, tool: Core, arguments: &mut Map<String, Value>) -> Result<(), Refused> {
        let verb = arguments.get("action").and_then(Value::as_str).unwrap_or_default();
        let is_exact = tool == Core::TaskDelete
            || EXACT.contains(&verb)
            || arguments.get("cascade") == Some(&json!(true));
        match tool {
            Core::TaskGet | Core::TaskUpdate => self.id_in(tool, "id", None, is_exact, arguments)?,
            // The tasks of a repeated request are gone already; its answer is on record.
            Core::TaskDelete if arguments.contains_key("request_id") => {}
            Core::TaskDelete => {
                let count = arguments.get("ids").and_then(Value::as_array).map_or(0, Vec::len);
                for index in 0..count {
                    self.id_in(tool, "ids", Some(index), true, arguments)?;
                }
            }
            Core::TaskAdd => {
                self.id_in(tool, "parent", None, false, arguments)?;
                let count = arguments.get("needs").and_then(Value::as_array).map_or(0, Vec::len);
                for index in 0..count {
                    self.id_in(tool, "needs", Some(index), false, arguments)?;
                }
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
            Core::PlanShow | Core::PlanWrite => {}
        }
        Ok(())
    }

    /// Reads the id in an argument, or in an element of a list.
    fn id_in(
        &mut self,
        tool: Core,
        name: &str,
        index: Option<usize>,
        is_exact: bool,
        arguments: &mut Map<String, Value>,
    ) -> Result<(), Refused> {
        let given = match (arguments.get(name), index) {
            (Some(value), Some(index)) => value[index].as_str(),
            (Some(value), None) => value.as_str(),
            (None, _) => None,
        };
        let Some(given) = given.map(str::to_owned) else { return Ok(()) };
        let set = |arguments: &mut Map<String, Value>, id: &str| {
            if let Some(value) = arguments.get_mut(name) {
                match index {
                    Some(index) => value[index] = json!(id),
                    None => *value = json!(id),
                }
            }
        };
        match self.meant(&given)? {
            Meant::Id => {}
            Meant::Nothing => {
                let Err(unknown) = self.manager.get(&given) else { return Ok(()) };
                let refused = Refused::from(unknown);
                let mut corrected = arguments.clone();
                if let Some(near) = self.near(&given)? {
                    set(&mut corrected, &near);
                } else if tool == Core::TaskAdd {
                    drop_value(&mut corrected, name, index);
                } else {
                    return Err(refused);
                }
                return Err(refused.corrected(Action::call(tool.name(), corrected.into())));
            }
            Meant::Other(id) if is_exact => {
                let mut corrected = arguments.clone();
                set(&mut corrected, &id);
                let problem = format!("this needs the id of the task; did you mean `{id}`?");
                return Err(instead(tool, name, problem, corrected));
            }
            Meant::Case(id) | Meant::Other(id) => {
                self.tell(name, &json!(given), &json!(id));
                set(arguments, &id);
            }
            Meant::Several(ids) => {
                let mut corrected = arguments.clone();
                set(&mut corrected, &ids[0]);
                let problem = format!("several tasks can be meant: {}", ids.join(", "));
                return Err(instead(tool, name, problem, corrected));
            }
        }
        Ok(())
    }

    /// Returns the id that differs from a text by one letter or two, if only one does.
    fn near(&self, given: &str) -> Result<Option<String>, Refused> {
        let query = Query { limit: MAX_SEARCHED, ..Query::default() };
        let tasks = self.manager.list(&query)?.tasks;
        let ids: Vec<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
        let is_longer_by_one = |id: &&&str| given.len() == id.len() + 1 && given.starts_with(**id);
        Ok(nearest(given, ids.iter().copied())
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

    fn meant(&self, given: &str) -> Result<Meant, Refused> {
        if self.manager.read(|view| Ok(view.key(given)?.is_some()))? {
            return Ok(Meant::Id);
        }
        let wanted = given.trim().trim_start_matches('#').to_lowercase();
        if wanted.is_empty() {
            return Ok(Meant::Nothing);
        }
        let query = Query { limit: MAX_SEARCHED, ..Query::default() };
        let tasks = self.manager.list(&query)?.tasks;
        let of = |matches: &dyn Fn(&taskpawl::model::task::Task) -> bool| -> Vec<String> {
            tasks
                .iter()
                .filter(|task| matches(task))
                .map(|task| task.id.to_string())
                .take(MAX_NAMED)
                .collect()
        };
        let mut found = of(&|task| task.id.as_str().to_lowercase() == wanted);
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
            found = of(&|task| task.name.to_lowercase() == wanted);
        }
        if found.is_empty() {
            found = of(&|task| task.id.as_str().to_lowercase().starts_with(&wanted));
        }
        Ok(match &found[..] {
            [] => Meant::Nothing,
            [id] => Meant::Other(id.clone()),
            _ => Meant::Several(found),
        })
    }
}

/// Removes an argument, or an element of a list.
fn drop_value(arguments: &mut Map<String, Value>, name: &str, index: Option<usize>) {
    match (index, arguments.get_mut(name)) {
        (Some(index), Some(Value::Array(items))) if index < items.len() => drop(items.remove(index)),
        _ => drop(arguments.remove(name)),
    }
}
