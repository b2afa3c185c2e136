//! Ids of tasks, written in another way.

use serde_json::{Map, Value, json};
use taskpawl::model::view::Query;

use super::{Reading, instead};
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
            Core::RunReady | Core::ReadyList => self.scope(arguments)?,
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
            Meant::Id | Meant::Nothing => {}
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
