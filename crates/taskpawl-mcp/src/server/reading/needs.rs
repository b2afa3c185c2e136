//! Dependencies of the tasks of a plan, written in another way than by id or name.

use serde_json::{Value, json};
use taskpawl::model::value::id_from_name;

use super::Reading;
use super::ids::{MAX_NAMED, Meant};
use crate::server::refusal::Refused;

/// A task of the plan that is being read.
struct Listed {
    id: Option<String>,
    name: String,
    /// In lower case.
    folded_id: Option<String>,
    /// In lower case.
    folded_name: String,
    /// The id that a task without one gets, unless it is taken.
    made_id: Option<String>,
}

impl Listed {
    fn new(id: Option<String>, name: String) -> Self {
        let made_id = id.is_none().then(|| id_from_name(&name));
        let folded_id = id.as_ref().map(|id| id.to_lowercase());
        Self { folded_id, folded_name: name.to_lowercase(), made_id, id, name }
    }

    /// Returns the text by which the plan itself refers to the task.
    fn reference(&self) -> &str {
        self.id.as_deref().unwrap_or(&self.name)
    }
}

impl Reading<'_> {
    /// Reads the dependencies of all tasks of a plan. These tasks come before those of the store.
    pub(super) fn needs_of_plan(&mut self, tasks: &mut Value) -> Result<(), Refused> {
        let mut listed = Vec::new();
        list(tasks, &mut listed);
        self.needs_in(tasks, &listed)
    }

    fn needs_in(&mut self, tasks: &mut Value, listed: &[Listed]) -> Result<(), Refused> {
        for task in tasks.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            for field in ["needs", "dependencies"] {
                match task.get_mut(field) {
                    Some(Value::Array(needs)) => {
                        needs.iter_mut().try_for_each(|need| self.need(need, listed))?;
                    }
                    Some(need) => self.need(need, listed)?,
                    None => {}
                }
            }
            if let Some(subtasks) = task.get_mut("subtasks") {
                self.needs_in(subtasks, listed)?;
            }
        }
        Ok(())
    }

    fn need(&mut self, need: &mut Value, listed: &[Listed]) -> Result<(), Refused> {
        let Some(given) = need.as_str() else { return Ok(()) };
        let is_exact = |task: &Listed| task.id.as_deref() == Some(given) || task.name == given;
        if given.is_empty() || listed.iter().any(is_exact) {
            return Ok(());
        }
        let stored = self.meant(given)?;
        let found = match (&stored, in_plan(given, listed)) {
            (Meant::Id, _) => return Ok(()),
            (_, found) if !found.is_empty() => found,
            (Meant::Case(id) | Meant::Other(id), _) => vec![id.clone()],
            (Meant::Several(ids), _) => ids.clone(),
            // The check of the plan reports it, with all its other problems.
            (Meant::Nothing, _) => return Ok(()),
        };
        if let [one] = &found[..] {
            let read = json!(one);
            self.replace("needs", need, read);
            return Ok(());
        }
        let problem = format!("`{given}` can mean several tasks: {}", found.join(", "));
        Err(Refused::argument("plan.needs", problem))
    }
}

/// Collects the tasks of a plan.
fn list(tasks: &Value, listed: &mut Vec<Listed>) {
    for task in tasks.as_array().into_iter().flatten() {
        let text = |field: &str| task.get(field).and_then(Value::as_str).map(str::to_owned);
        let name = task.as_str().map(str::to_owned).or_else(|| text("name"));
        let id = text("id");
        if id.is_some() || name.is_some() {
            listed.push(Listed::new(id, name.unwrap_or_default()));
        }
        if let Some(subtasks) = task.get("subtasks") {
            list(subtasks, listed);
        }
    }
}

/// Returns the tasks of the plan that a text means which is neither an id nor a name in it.
fn in_plan(given: &str, listed: &[Listed]) -> Vec<String> {
    let wanted = given.trim().trim_start_matches('#').to_lowercase();
    if wanted.is_empty() {
        return Vec::new();
    }
    let is_id = |task: &Listed| task.folded_id.as_ref() == Some(&wanted);
    let is_name = |task: &Listed| task.folded_name == wanted;
    let is_made = |task: &Listed| task.made_id.as_ref() == Some(&wanted);
    let begins = |task: &Listed| task.folded_id.as_ref().unwrap_or(&task.folded_name).starts_with(&wanted);
    let ways: [&dyn Fn(&Listed) -> bool; 4] = [&is_id, &is_name, &is_made, &begins];
    let of = |way: &dyn Fn(&Listed) -> bool| -> Vec<String> {
        let found = listed.iter().filter(|task| way(task));
        found.map(|task| task.reference().to_owned()).take(MAX_NAMED).collect()
    };
    ways.into_iter().map(of).find(|found| !found.is_empty()).unwrap_or_default()
}
